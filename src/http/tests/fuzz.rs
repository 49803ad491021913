//! Random requests to the HTTP interface. No request causes a panic or reveals internals, and each
//! error has the shape of hoglake's errors. The interface has no database here, so a request that
//! needs the database is refused or answered with 503.

use proptest::prelude::*;

use super::{ask, bytes, state};
use crate::http::routes::router;

/// JSON that is near what is asked for: right and wrong keys with values of every kind.
fn near_json() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap_or_default()),
        Just("\"0b9f6d0e-6f0e-4a3e-9c83-0d4f6a1f9a10\"".to_owned()),
    ];
    let value = scalar.prop_recursive(4, 40, 6, |inner| {
        let key = prop_oneof![
            Just("partitions"),
            Just("partition_values"),
            Just("spec_id"),
            Just("literal"),
            Just("idempotency_key"),
            Just("read_snapshot"),
            Just("dry_run"),
            Just("field"),
            Just("keep"),
            Just("?"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5)
                .prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((key, inner), 0..6).prop_map(|pairs| {
                let pairs: Vec<_> =
                    pairs.into_iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                format!("{{{}}}", pairs.join(","))
            }),
        ]
    });
    prop_oneof![4 => value, 1 => any::<String>()]
}

/// Paths near ours, with segments of anything that a URI may hold.
fn near_path() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        Just("catalogs".to_owned()),
        Just("lake".to_owned()),
        Just("namespaces".to_owned()),
        Just("tables".to_owned()),
        Just("partitions".to_owned()),
        Just("drop".to_owned()),
        Just("truncate".to_owned()),
        Just("partition-retention".to_owned()),
        Just("changes".to_owned()),
        "[!-~&&[^#?/ \"<>\\\\^`{|}]]{0,12}".prop_map(|text| text.replace('%', "%25")),
        Just("%FF".to_owned()),
        Just("%00".to_owned()),
        Just("..".to_owned()),
    ];
    let query = prop_oneof![
        3 => Just(String::new()),
        1 => "[a-z_]{1,16}=[0-9A-Za-z-]{0,24}".prop_map(|query| format!("?{query}")),
        1 => Just("?from_snapshot=-1&to_snapshot=x&limit=99999999999999999999".to_owned()),
    ];
    let free = (prop::collection::vec(segment, 0..9), query)
        .prop_map(|(segments, query)| format!("/{}{query}", segments.join("/")));
    let table = "/v1/catalogs/lake/namespaces/events/tables/raw";
    prop_oneof![
        2 => free,
        1 => Just(format!("{table}/partitions/drop")),
        1 => Just(format!("{table}/truncate")),
        1 => Just(format!("{table}/partition-retention")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_answer_is_one_of_ours(
        method in prop_oneof![Just("GET"), Just("POST"), Just("PUT"), Just("DELETE"), Just("PATCH")],
        path in near_path(),
        body in near_json(),
    ) {
        if path.parse::<axum::http::Uri>().is_err() {
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (status, body) = runtime.block_on(async {
            let response = ask(router(state()), method, &path, &body).await;
            (response.status().as_u16(), bytes(response).await)
        });
        prop_assert!(status < 500 || status == 503, "{method} {path}: {status} {body}");
        prop_assert!(!body.contains("secret") && !body.contains("panic"), "{body}");
        if status >= 400 {
            let told: serde_json::Value = serde_json::from_str(&body).unwrap();
            prop_assert!(told["error"].is_string() && told["detail"].is_string(), "{body}");
        }
    }
}
