//! Tests of a pass that loses its session, and with it the lease, between the look-up of a value
//! and the removal of the value's row. Meanwhile another daemon reads a late file of the value. No
//! later pass will read the file as late, so the row must still exist.

use anyhow::Result;
use tailrace::sweep::report::{Outcome, PassReport};
use tailrace::sweep::{Scope, Settings, run_pass};
use tailrace_kit::simulated_loops::HeldFiles;
use tokio_util::sync::CancellationToken;

use super::orders::{Days, REMOVAL};
use crate::support::gate::{Gate, leases, queue};
use crate::support::proxy::{Message, Proxy};
use crate::support::wait::until;

impl Days {
    /// Ends the session that has the lease.
    async fn end_the_session(&self) -> Result<()> {
        let catalog = &self.scene.catalog;
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND application_name = 'through'";
        sqlx::query(end).execute(catalog.pool()).await?;
        until("the lease is free", async || Ok(leases(catalog).await? == 0)).await
    }

    /// A late file of the day without one lands, and another daemon reads it: it cannot end it, for somebody has
    /// locked its row, and its row of the calendar stays.
    async fn read_by_another(&self) -> Result<HeldFiles> {
        let scene = &self.scene;
        let late = scene.table.append(vec![scene.file(9).pending()]).await?.file_ids;
        let held = HeldFiles::hold(&scene.catalog, 10).await?;
        assert_eq!(held.file_ids, late);
        let other = scene.sweep().await?;
        assert_eq!((other.outcome, other.full), (Outcome::Busy, Some(false)), "{other:?}");
        let through: i64 = sqlx::query_scalar("SELECT through_snapshot FROM tailrace.table_state")
            .fetch_one(scene.catalog.pool())
            .await?;
        assert!(through >= scene.catalog.head().await? - 1, "it has read the late file");
        Ok(held)
    }

    /// Nobody has the file locked any more: it goes with the next pass, which is no full one.
    async fn goes(&self, held: HeldFiles) -> Result<()> {
        let (files, rows) = self.left().await?;
        assert_eq!((files, rows.len()), (1, 1), "{rows:?}");
        assert_eq!(rows[0].split(' ').nth(1), Some(self.scene.day(9).as_str()));
        held.finish().await?;
        let next = self.scene.sweep().await?;
        assert_eq!((next.outcome, next.full), (Outcome::Dropped, Some(false)), "{next:?}");
        assert_eq!(self.left().await?, (0, Vec::new()));
        Ok(())
    }

    /// A pass through the network, beside whatever is done meanwhile.
    async fn beside(
        &self,
        meanwhile: impl AsyncFnOnce(&Proxy) -> Result<HeldFiles>,
        hold: Option<Message>,
    ) -> Result<(PassReport, HeldFiles)> {
        let (proxy, mut through) = self.scene.database.through_proxy().await?;
        through.options = through.options.application_name("through");
        let settings = Settings { as_of: Some(self.scene.now), ..self.scene.settings };
        let (scope, stop) = (Scope::default(), CancellationToken::new());
        if let Some(message) = hold {
            proxy.hold(message);
        }
        let pass = run_pass(&through, &settings, &scope, &stop, &|_| {});
        tokio::try_join!(pass, meanwhile(&proxy))
    }
}

#[tokio::test]
async fn a_removal_on_its_way_does_not_arrive() -> Result<()> {
    for is_large in [false, true] {
        let mut days = Days::new(is_large).await?;
        days.next().await?;
        let meanwhile = async |proxy: &Proxy| {
            proxy.is_held().await;
            days.end_the_session().await?;
            let held = days.read_by_another().await?;
            proxy.go_on();
            Ok(held)
        };
        let (report, held) = days.beside(meanwhile, Some(Message::With(REMOVAL))).await?;
        assert_eq!(report.tables[0].outcome, Outcome::Failed, "{report:?}");
        days.goes(held).await?;
    }
    Ok(())
}

/// The pass waits for the commit lock when its session ends, and goes on in another one, once the other daemon
/// is through: it does not act by what it saw before.
#[tokio::test]
async fn a_look_of_a_lost_session_removes_nothing() -> Result<()> {
    for is_large in [false, true] {
        let mut days = Days::new(is_large).await?;
        days.next().await?;
        let gate = Gate::shut(&days.scene.catalog).await?;
        let meanwhile = async |proxy: &Proxy| {
            queue(&days.scene.catalog, 1).await?;
            // What opens the next session.
            proxy.hold(Message::Number(proxy.messages() + 1));
            days.end_the_session().await?;
            proxy.is_held().await;
            gate.open().await?;
            let held = days.read_by_another().await?;
            proxy.go_on();
            Ok(held)
        };
        let (report, held) = days.beside(meanwhile, None).await?;
        let [table] = report.tables.as_slice() else { panic!("{report:?}") };
        assert_eq!((table.error.as_deref(), table.counts().files), (None, 0), "{report:?}");
        days.goes(held).await?;
    }
    Ok(())
}
