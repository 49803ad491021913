//! Tests of passes whose connections end between any two statements.

use anyhow::Result;
use tailrace::sweep::{Scope, Settings, run_pass};
use tokio_util::sync::CancellationToken;

use super::Scene;
use crate::support::proxy::{Break, Message};
use crate::support::wait::until;

/// How a connection ends: as where the process is killed, or so that its owner may come back, before a
/// statement or after it.
pub const ENDS: [(bool, bool); 3] = [(true, false), (false, false), (false, true)];

/// The end before, or after, the statement of this number.
pub fn end_at(number: usize, (ends_all, arrives): (bool, bool)) -> Break {
    Break { at: Message::Statement(number), arrives, ends_all }
}

impl Scene {
    /// A pass whose connections end so. Whether it came that far: otherwise it went through. When this
    /// returns, the server has noticed.
    pub async fn broken_sweep(&self, planned: Break) -> Result<bool> {
        let (proxy, mut through) = self.database.through_proxy().await?;
        through.options = through.options.application_name("through");
        let settings = Settings { as_of: Some(self.now), ..self.settings };
        let (scope, stop) = (Scope::default(), CancellationToken::new());
        proxy.break_at(planned);
        let pass = run_pass(&through, &settings, &scope, &stop, &|_| {}).await;
        let has_broken = proxy.has_broken();
        if !has_broken {
            pass?;
        }
        drop(proxy);
        until("no session of the pass is left", async || {
            let sessions: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_stat_activity
                  WHERE datname = current_database() AND application_name = 'through'",
            )
            .fetch_one(&self.database.pool)
            .await?;
            Ok(sessions == 0)
        })
        .await?;
        Ok(has_broken)
    }
}
