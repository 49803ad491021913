//! Pins the parts of a request that are hashed into its receipt, over HTTP: a retry by a later
//! version must match the receipt of the first request. `rows/read.rs` tests that receipts with
//! such hashes are replayed. `explicit/receipts.rs` tests that a change of any of these parts makes
//! another request.

use anyhow::Result;
use tailrace_kit::lake::Field;

use crate::http::address;
use crate::http::client::Client;
use crate::support::TestDatabase;

const UUID: &str = "11111111-2222-4333-8444-aaaaaaaaaaaa";

/// Table and call, body without its key, and the SHA-256 of a text of which this is the first:
/// `{"kind":"drop","catalog":"lake","namespace":"events","table":"raw","tuples":[[1,["a","18000"],false]],`
/// `"fence":false,"expected_table_uuid":null,"read_snapshot":null}`
const REQUESTS: [(&str, &str, &str); 10] = [
    (
        "raw/partitions/drop",
        r#""partitions": [{"partition_values": ["a", "18000"]}]"#,
        "034c1305b4f8e7d17491e72b0808e3cb83439bcea25d8c1f536b24579c10033e",
    ),
    (
        "raw/partitions/drop",
        r#""partitions": [{"partition_values": ["a", "18000"], "spec_id": 1, "literal": false}],
           "author": "somebody", "message": "words""#,
        "034c1305b4f8e7d17491e72b0808e3cb83439bcea25d8c1f536b24579c10033e",
    ),
    (
        "raw/partitions/drop",
        r#""partitions": [{"partition_values": ["null", "x"], "literal": true},
                          {"partition_values": ["a", "18000"]},
                          {"partition_values": [null, "18000"]}]"#,
        "83cf635b2cec6a51e783d6fcda2808c9ba40a9612478a8b41b9e9b1d235b1f2a",
    ),
    (
        "raw/partitions/drop",
        r#""partitions": [{"partition_values": ["a", "18000"]}], "fence": true"#,
        "a41b3749c809e68bc559a8d6857661c0c8230d3dc53154dc54337e31a84ad396",
    ),
    (
        "raw/partitions/drop",
        r#""partitions": [{"partition_values": ["a", "18000"]}], "expected_table_uuid": "UUID""#,
        "a7688646d8a0b3723b1cbbc71a931d8b3b35a65b5055158fc46308b5b09b7da5",
    ),
    (
        "raw/partitions/drop",
        r#""partitions": [{"partition_values": ["a", "18000"]}], "read_snapshot": 3"#,
        "0e829e511e987bbad34264d1d6a3d2a4e5e87d602ca6c71b8c6addb406f9aaa5",
    ),
    (
        "other/partitions/drop",
        r#""partitions": [{"partition_values": ["18000"]}]"#,
        "1ebb9885c8bbdfbe98aafc26fea9370e2a8415bf76404df40f40c953c07516ee",
    ),
    (
        "raw/truncate?expected_table_uuid=UUID",
        r#""author": "somebody", "message": "words""#,
        "23fb2dbf13f8089b23c8a2961f40ba87f25fb0ef65248b0a70a09ad5006ae09c",
    ),
    (
        "raw/truncate?expected_table_uuid=UUID",
        r#""read_snapshot": 3"#,
        "c045b20e8acb8950872a43ce13ef29636907f0ca41528c30c6a1af112d66bcca",
    ),
    (
        "raw/truncate?expected_table_uuid=UUID",
        "",
        "23fb2dbf13f8089b23c8a2961f40ba87f25fb0ef65248b0a70a09ad5006ae09c",
    ),
];

#[tokio::test]
async fn requests_have_these_hashes() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    // Without a file, so that no request makes a snapshot: each is made after snapshot 3.
    database.table(&catalog, "raw", &[Field::identity("kind"), Field::day("at")]).await?;
    database.sql(&format!("UPDATE hog_table SET table_uuid = '{UUID}'")).await?;
    database.table(&catalog, "other", &[Field::day("at")]).await?;
    let mut daemon = database.start(&["run"], &[])?;
    let client = Client { address: address(&mut daemon).await?, headers: Vec::new() };
    let mut found = Vec::new();
    for (number, (of, body, _)) in REQUESTS.into_iter().enumerate() {
        let key = format!("11111111-2222-4333-8444-0000000000{number:02}");
        let path = format!("/v1/catalogs/lake/namespaces/events/tables/{of}").replace("UUID", UUID);
        let comma = if body.is_empty() { "" } else { ", " };
        let body = format!(r#"{{"idempotency_key": "{key}"{comma}{body}}}"#).replace("UUID", UUID);
        let answer = client.json("POST", &path, &body).await?;
        assert_eq!(answer.status, 200, "{body}: {answer:?}");
        let hash = format!(
            "SELECT encode(fingerprint, 'hex') FROM tailrace.drop_receipt
              WHERE idempotency_key = '{key}'"
        );
        found.push(database.text(&hash).await?.unwrap_or_default());
    }
    assert_eq!(found, REQUESTS.map(|(.., hash)| hash));
    Ok(())
}
