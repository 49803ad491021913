//! The requests to the routes of tables and catalogs.

use anyhow::{Context, Result};
use tailrace_kit::lake::NewFile;

use super::{Daemon, KEY, PASS, TABLE};
use crate::support::gate::Gate;
use crate::support::program::days_ago;
use crate::support::wait::until;

/// A body for a drop of a partition that is there, with what follows.
pub fn drop_body(rest: &str) -> String {
    let day = days_ago(1);
    format!(
        r#"{{"idempotency_key": "{KEY}", "partitions": [{{"partition_values": ["7", "{day}"]}}]{rest}}}"#
    )
}

pub async fn policies(daemon: &mut Daemon) -> Result<()> {
    let of = |table: &str| format!("{}{table}/partition-retention", TABLE.trim_end_matches("raw"));
    let policy = of("raw");
    daemon.get("that is stored", &policy).await?;
    daemon.get("that is a property", &of("property")).await?;
    daemon.get("that is not followed", &of("broken")).await?;
    daemon.get("of no table", &of("nothing")).await?;
    let body = |keep: &str| format!(r#"{{"field": "day(at)", "keep": "{keep}", "fence": true}}"#);
    daemon.ask("for good", "PUT", &policy, &body("7d")).await?;
    daemon.ask("of no JSON", "PUT", &policy, "{").await?;
    daemon.ask("of a wrong keep", "PUT", &policy, &body("7 months")).await?;
    daemon.ask("of no table", "PUT", &of("nothing"), &body("7d")).await?;
    daemon.ask("of one", "DELETE", &of("paused"), "").await?;
    daemon.ask("of none", "DELETE", &of("paused"), "").await?;
    daemon.ask("of a table that is gone", "DELETE", &of("gone"), "").await?;
    daemon.ask("of a stored one", "PUT", &of("property"), &body("7d")).await?;
    daemon.ask("where a property takes over", "DELETE", &of("property"), "").await?;
    let anyway = of("property") + "?accept_property=true";
    daemon.ask("where a property may take over", "DELETE", &anyway, "").await?;
    daemon.get("now", &(policy.clone() + "/plan")).await?;
    daemon.get("of another time", &(policy.clone() + "/plan?at=2019-06-01T00:00:00Z")).await?;
    daemon.get("of no time", &(policy.clone() + "/plan?at=x")).await?;
    daemon.get("without a policy", &(of("paused") + "/plan")).await?;
    daemon.get("of a policy that is not followed", &(of("broken") + "/plan")).await?;
    Ok(())
}

pub async fn passes(daemon: &mut Daemon) -> Result<()> {
    // One that waits for the commit lock, so that there is another beside it.
    daemon.lake.raw.append(vec![NewFile::of(["7", &days_ago(9)])]).await?;
    let gate = Gate::shut(&daemon.lake.catalog).await?;
    let started = daemon.ask("for good", "POST", PASS, "").await?.json()?;
    daemon.ask("while one runs", "POST", PASS, "").await?;
    let path = format!("{PASS}/{}", started["id"].as_str().context("an id")?);
    daemon.get("that runs", &path).await?;
    gate.open().await?;
    let (client, at) = (daemon.client.clone(), path.clone());
    until("the pass ends", async || Ok(client.get(&at).await?.json()?["state"] != "running"))
        .await?;
    daemon.get("that has ended", &path).await?;
    daemon.get("that nobody knows", &format!("{PASS}/{KEY}")).await?;
    daemon.get("of no id", &format!("{PASS}/7")).await?;
    let sea = PASS.replace("lake", "sea");
    daemon.ask("over no catalog", "POST", &sea, "").await?;
    daemon.ask("over all", "POST", &format!("{PASS}/verify"), "").await?;
    daemon.ask("of one table", "POST", &format!("{PASS}/verify?table=events.raw"), "").await?;
    daemon.ask("of no table", "POST", &format!("{PASS}/verify?table=raw"), "").await?;
    daemon.ask("over no catalog", "POST", &format!("{sea}/verify"), "").await?;
    Ok(())
}

pub async fn drops(daemon: &mut Daemon) -> Result<()> {
    let drop = format!("{TABLE}/partitions/drop");
    daemon.ask("a rehearsal", "POST", &drop, &drop_body(r#", "dry_run": true"#)).await?;
    let gate = Gate::shut(&daemon.lake.catalog).await?;
    daemon.ask("without the commit lock", "POST", &drop, &drop_body("")).await?;
    gate.open().await?;
    daemon.ask("for good", "POST", &drop, &drop_body("")).await?;
    daemon.ask("again", "POST", &drop, &drop_body("")).await?;
    daemon
        .ask("another one by the same key", "POST", &drop, &drop_body(r#", "fence": true"#))
        .await?;
    daemon.ask("of no JSON", "POST", &drop, "{").await?;
    let other =
        drop_body(&format!(r#", "expected_table_uuid": "{KEY}""#)).replace("-5555", "-6666");
    daemon.ask("of another UUID", "POST", &drop, &other).await?;
    let read = drop_body(r#", "read_snapshot": 1"#).replace("-5555", "-6666");
    daemon.ask("of a table that was altered since", "POST", &drop, &read).await?;
    let gone = drop.replace("raw", "nothing");
    daemon.ask("of no table", "POST", &gone, &drop_body("").replace("-5555", "-6666")).await?;
    let refused = format!(
        r#"{{"idempotency_key": "{KEY}", "partitions": [{{"partition_values": ["18000"]}}]}}"#
    )
    .replace("-5555", "-7777");
    daemon
        .ask("that the database refuses", "POST", &drop.replace("raw", "refused"), &refused)
        .await?;
    daemon.get("of the table", &format!("{TABLE}/partition-retention/drops")).await?;
    daemon.get("one at a time", &format!("{TABLE}/partition-retention/drops?limit=1")).await?;
    daemon.get("too many", &format!("{TABLE}/partition-retention/drops?limit=0")).await?;
    let sea = TABLE.replace("lake", "sea");
    daemon.get("of no catalog", &format!("{sea}/partition-retention/drops")).await?;
    let unnamed = format!("{}large/truncate", TABLE.trim_end_matches("raw"));
    daemon.ask("without a UUID", "POST", &unnamed, "").await?;
    let large = daemon.lake.catalog.open_table("events", "large").await?.table_uuid;
    let truncate = format!("{unnamed}?expected_table_uuid={large}");
    daemon.ask("for good", "POST", &truncate, "").await?;
    daemon
        .ask(
            "by a key",
            "POST",
            &truncate,
            &format!(r#"{{"idempotency_key": "{KEY}"}}"#).replace("-5555", "-8888"),
        )
        .await?;
    let other = format!("{unnamed}?expected_table_uuid={KEY}");
    daemon.ask("of another UUID", "POST", &other, "").await?;
    daemon.ask("of no table", "POST", &truncate.replace("large", "nothing"), "").await?;
    daemon.ask("of no JSON", "POST", &truncate, "{").await?;
    Ok(())
}

/// After the drops, from the snapshot before them on.
pub async fn changes(daemon: &mut Daemon, from: i64) -> Result<()> {
    let ids = daemon.lake.raw.append(vec![NewFile::of(["7", &days_ago(0)])]).await?.file_ids;
    daemon.lake.raw.register_vector(ids[0], 3, None).await?;
    let changes = format!("{TABLE}/changes");
    let window = format!("{changes}?from_snapshot={from}&ended_files=true");
    let first = daemon.get("the first page", &format!("{window}&limit=1")).await?.json()?;
    let cursor = first["next_cursor"].as_str().context("a cursor")?;
    daemon.get("a later page", &format!("{window}&limit=100&cursor={cursor}")).await?;
    daemon.get("of no window", &changes).await?;
    daemon.get("of a wrong cursor", &format!("{window}&limit=1&cursor=x")).await?;
    daemon.get("of the future", &format!("{changes}?from_snapshot=1000000&limit=1")).await?;
    daemon.get("from before the table", &format!("{changes}?from_snapshot=0&limit=100")).await?;
    daemon.lake.database.sql("UPDATE hog_catalog SET earliest_snapshot_id = 2").await?;
    daemon.get("from below the floor", &format!("{changes}?from_snapshot=1&limit=1")).await?;
    daemon
        .get("of no table", &format!("{}?from_snapshot=2", changes.replace("raw", "nothing")))
        .await?;
    Ok(())
}
