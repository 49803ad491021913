//! Tests of an explicit drop and of a truncate on a network that falls silent.

use anyhow::Result;
use futures_util::future::join_all;
use tailrace::catalog::connect::Database;
use uuid::Uuid;

use super::served::{Served, ask, is_done};
use super::{BOUND, Lake, at_text, silent_at};
use crate::http::TABLE;
use crate::http::client::Answer;
use crate::support::gate::{Gate, queue};
use crate::support::program::days_ago;
use crate::support::proxy::Comes;

const KEY: Uuid = Uuid::from_u128(1);

async fn drop_both_days(database: &Database) -> Result<Answer> {
    let body = serde_json::json!({
        "idempotency_key": KEY,
        "partitions": [{"partition_values": [days_ago(9)]}, {"partition_values": [days_ago(8)]}],
    });
    ask(database, "POST", &format!("{TABLE}/partitions/drop"), &body.to_string()).await
}

async fn truncate(lake: &Lake, database: &Database, body: &str) -> Result<Answer> {
    ask(database, "POST", &truncate_path(lake), body).await
}

fn truncate_path(lake: &Lake) -> String {
    format!("{TABLE}/truncate?expected_table_uuid={}", lake.table.table_uuid)
}

/// The same key tells what became of the first one, or carries it out.
#[tokio::test]
async fn a_drop_is_whole_or_absent_and_its_key_tells() -> Result<()> {
    let act = async |_: &Lake, through: &Database| {
        let answer = drop_both_days(through).await?;
        if is_done(&answer)? {
            assert_eq!(answer.json()?["files_ended"], 4, "{answer:?}");
        }
        Ok(())
    };
    let after = async |lake: &Lake| {
        let before = lake.drops().await?;
        let answer = drop_both_days(&lake.database.tailrace()).await?;
        let told = answer.json()?;
        assert_eq!((&told["committed"], &told["files_ended"]), (&true.into(), &4.into()), "{told}");
        assert_eq!(told["replayed"], before.len() == 1, "{told}");
        let drops = lake.drops().await?;
        assert_eq!(drops, [(told["snapshot_id"].as_i64().unwrap_or_default(), 4)]);
        assert_eq!(lake.ends().await?[4..], [None, None]);
        let receipts = lake.database.text("SELECT count(*) FROM tailrace.drop_receipt").await?;
        assert_eq!(receipts.as_deref(), Some("1"));
        Ok(())
    };
    silent_at(&["COMMIT"], 1, act, after).await
}

/// The snapshot that emptied the table; all of it, with the history's row, or none.
async fn truncated_at(lake: &Lake) -> Result<Option<i64>> {
    lake.let_go().await?;
    let [first, rest @ ..] = lake.ends().await?;
    assert!(rest.iter().all(|end| *end == first), "{first:?}, {rest:?}");
    let noted =
        "SELECT string_agg(snapshot_id || ' ' || files_ended, ',') FROM tailrace.drop_history";
    assert_eq!(lake.database.text(noted).await?, first.map(|snapshot| format!("{snapshot} 6")));
    Ok(first)
}

/// With a key it is as with a drop; without one the answer says where to look.
#[tokio::test]
async fn a_truncate_is_whole_or_absent() -> Result<()> {
    let keyed = serde_json::json!({"idempotency_key": KEY}).to_string();
    let act = async |lake: &Lake, through: &Database| {
        is_done(&truncate(lake, through, &keyed).await?)?;
        Ok(())
    };
    let after = async |lake: &Lake| {
        let before = truncated_at(lake).await?;
        let answer = truncate(lake, &lake.database.tailrace(), &keyed).await?;
        let after = truncated_at(lake).await?;
        assert_eq!(answer.json()?["snapshot_id"].as_i64(), after);
        assert!(after.is_some() && (before.is_none() || before == after));
        Ok(())
    };
    silent_at(&["COMMIT"], 4, act, after).await
}

#[tokio::test]
async fn a_truncate_without_a_key_says_how_to_find_out() -> Result<()> {
    let told = |answer: &Answer| (answer.status, answer.body.clone());
    let unknown = r#"{"detail":"the database was lost while it committed: whether the files of table events.raw were ended is not known; if they were, it is the newest drop of the table in `tailrace trace` and GET .../drops. Look there before you ask again, or files that were added since are dropped too","error":"unavailable"}"#;
    let runs = at_text("COMMIT").map(|silence| async move {
        let lake = Lake::new().await?;
        let (proxy, through) = lake.network().await?;
        proxy.silence(silence);
        let answer = truncate(&lake, &through, "{}").await?;
        assert_eq!(told(&answer), (503, unknown.to_owned()), "{silence:?}");
        proxy.plug_in();
        let is_committed = silence.comes != Comes::Nowhere;
        assert_eq!(truncated_at(&lake).await?.is_some(), is_committed, "{silence:?}");
        // Where it says.
        let path = format!("{TABLE}/partition-retention/drops");
        let drops = ask(&lake.database.tailrace(), "GET", &path, "").await?.json()?;
        let told = drops["drops"].as_array().map_or(0, Vec::len);
        assert_eq!(told, usize::from(is_committed), "{drops}");
        anyhow::Ok(())
    });
    join_all(runs).await.into_iter().collect()
}

/// As many as may be in flight at once are all silent, in the middle of what they do. Each is answered,
/// and then there is room.
#[tokio::test]
async fn a_silent_drop_gives_its_place_back() -> Result<()> {
    let lake = Lake::new().await?;
    let (proxy, through) = lake.network().await?;
    let served = Served::with(&through, &[("TAILRACE__DROP__LOCK_TIMEOUT", "10s")]).await?;
    let path = truncate_path(&lake);
    let ask = || served.client.json("POST", &path, "{}");
    let gate = Gate::shut(&lake.catalog).await?;
    let all = tokio::time::timeout(BOUND, join_all([ask(), ask(), ask(), ask()]));
    let one_more = async {
        queue(&lake.catalog, 4).await?;
        proxy.unplug();
        assert_eq!(ask().await?.json()?["error"], "too_many_drops");
        anyhow::Ok(())
    };
    let (silent, one_more) = tokio::join!(all, one_more);
    one_more?;
    for answer in silent? {
        assert!(!is_done(&answer?)?);
    }
    gate.open().await?;
    proxy.plug_in();
    lake.let_go().await?;
    let answer = ask().await?;
    assert!(is_done(&answer)?);
    assert_eq!(truncated_at(&lake).await?, answer.json()?["snapshot_id"].as_i64());
    served.stop().await
}
