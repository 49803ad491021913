//! Tests of pauses and holds, which no drop passes.

mod approvals;
mod commands;
mod grace;
mod holds;
mod http;
mod mistakes;
mod newest;
mod pauses;
mod races;
mod radius;
mod window;

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use tailrace::guards::hold::{self, NewHold};
use tailrace::guards::pause::{self, PauseScope};
use tailrace::guards::resume::resume;
use tailrace::rules::hold::{HeldPartition, HoldScope};

use crate::explicit::Scene;

const TABLE: PauseScope<'static> = PauseScope::Table("lake", "events", "raw");

impl Scene {
    /// Pauses in a session of its own.
    async fn pause(&self, scope: PauseScope<'_>) -> Result<()> {
        pause::pause(&mut self.session().await?, scope, "anna", "audit").await?;
        Ok(())
    }

    /// Resumes in a session of its own; how many pauses that took away.
    async fn resume(&self, scope: PauseScope<'_>) -> Result<usize> {
        Ok(resume(&mut self.session().await?, scope, "ben", Duration::ZERO).await?.len())
    }

    /// Holds in a session of its own; gives the id.
    async fn hold(&self, scope: HoldScope) -> Result<i64> {
        let live = self.database.live(&self.table).await?.identity;
        let new =
            NewHold { scope, column: Some("kind"), reason: "case 7", by: "anna", until: None };
        let column = matches!(new.scope, HoldScope::Value { .. });
        let new = NewHold { column: new.column.filter(|_| column), ..new };
        Ok(hold::add(&mut self.session().await?, &live, new).await?.hold_id)
    }

    /// The catalog's guard revision.
    async fn revision(&self) -> Result<Option<String>> {
        self.database.text("select revision::text from tailrace.guard_state").await
    }

    /// The plan of the table by the command, as JSON.
    async fn plan(&self) -> Result<Value> {
        Ok(self.database.done(&["plan", "--output", "json"]).await?["tables"][0].clone())
    }
}

/// Partitions of spec 1 by their one value.
fn partitions<const N: usize>(values: [&str; N]) -> HoldScope {
    let partition =
        |value: &str| HeldPartition { spec_id: 1, values: vec![Some(value.to_owned())] };
    HoldScope::Partitions(values.map(partition).to_vec())
}
