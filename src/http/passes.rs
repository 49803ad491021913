//! Passes that were requested over HTTP. One pass runs at a time, and each has an id by which a
//! client can read its state.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use utoipa::ToSchema;
use uuid::Uuid;

use super::failure::Failure;
use crate::explicit::problem::Problem;
use crate::sweep::Scope;
use crate::sweep::pass_lock::PassLock;
use crate::sweep::report::{Outcome, PassReport};

/// Runs a pass.
pub type RunPass = Arc<
    dyn Fn(Scope, CancellationToken) -> BoxFuture<'static, anyhow::Result<PassReport>>
        + Send
        + Sync,
>;

/// The number of passes that are remembered: the last ones.
const REMEMBERED: usize = 100;

/// What stands in the place of an error that may reveal the server's insides.
const SEE_LOG: &str = "it failed; the server's log says why";

/// The state of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PassState {
    /// It runs.
    Running,
    /// It finished; its report has the outcome of each table.
    Done,
    /// It failed.
    Failed,
}

/// A pass that somebody asked for.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PassAnswer {
    /// Its id, by which a client can read its state.
    pub id: Uuid,
    /// The catalog that it works on.
    pub catalog: String,
    /// Its state.
    pub state: PassState,
    /// When it began, by this host's clock.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// Why it failed.
    pub error: Option<String>,
    /// What it did, as `tailrace sweep --output json` has it; null until it is done.
    #[schema(value_type = Option<PassReport>)]
    pub report: Option<Value>,
}

/// The passes that were asked for since the daemon started.
pub struct Passes {
    pass_lock: PassLock,
    run: RunPass,
    tasks: TaskTracker,
    stop: CancellationToken,
    known: Arc<Mutex<VecDeque<PassAnswer>>>,
}

impl Passes {
    pub(super) fn new(
        pass_lock: PassLock,
        run: RunPass,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        Passes { pass_lock, run, tasks, stop, known: Arc::default() }
    }

    /// Starts a pass over a catalog. It ends by itself, or soon after the daemon is told to stop.
    ///
    /// # Errors
    /// [`Problem::PassRunning`] while another one runs in this daemon.
    pub fn start(&self, catalog: String) -> Result<PassAnswer, Failure> {
        let guard = self.pass_lock.try_acquire().ok_or(Failure::Problem(Problem::PassRunning))?;
        let answer = PassAnswer {
            id: Uuid::new_v4(),
            catalog: catalog.clone(),
            state: PassState::Running,
            started_at: Utc::now(),
            ended_at: None,
            error: None,
            report: None,
        };
        self.remember(answer.clone());
        let scope = Scope { catalog: Some(catalog), table: None };
        // A task within the task: a pass that panics has failed, and does not run for ever.
        let running = (self.run)(scope, self.stop.child_token());
        let (known, id) = (self.known.clone(), answer.id);
        let work = async move {
            let ended = tokio::spawn(running.in_current_span()).await;
            let end = match ended {
                Ok(Ok(report)) => Ok(report),
                Ok(Err(_)) | Err(_) => Err(SEE_LOG.to_owned()),
            };
            note(&known, id, end);
            drop(guard);
        };
        self.tasks.spawn(work.in_current_span());
        Ok(answer)
    }

    /// A pass over this catalog by its id, as long as it is remembered.
    pub fn get(&self, catalog: &str, id: Uuid) -> Option<PassAnswer> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|pass| pass.id == id && pass.catalog == catalog).cloned()
    }

    fn remember(&self, answer: PassAnswer) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.truncate(REMEMBERED - 1);
        known.push_front(answer);
    }
}

fn note(known: &Mutex<VecDeque<PassAnswer>>, id: Uuid, end: Result<PassReport, String>) {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(pass) = known.iter_mut().find(|pass| pass.id == id) else { return };
    pass.ended_at = Some(Utc::now());
    match end.map(|report| serde_json::to_value(without_insides(report))) {
        Ok(Ok(report)) => {
            pass.state = PassState::Done;
            pass.report = Some(report);
        }
        Ok(Err(_)) | Err(_) => {
            pass.state = PassState::Failed;
            pass.error = Some(SEE_LOG.to_owned());
        }
    }
}

/// The report for the caller. The message of an unexpected error may be the database's, so it is
/// only logged.
fn without_insides(mut report: PassReport) -> PassReport {
    for table in report.tables.iter_mut().filter(|table| table.outcome == Outcome::Failed) {
        table.error = Some(SEE_LOG.to_owned());
    }
    for catalog in &mut report.failed_catalogs {
        catalog.error = SEE_LOG.to_owned();
    }
    report
}
