//! Passes that somebody asked for: one at a time, each with an id to ask about it.

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
use crate::sweep::pass_lock::Turn;
use crate::sweep::report::{Outcome, PassReport};

/// Runs a pass.
pub type RunPass = Arc<
    dyn Fn(Scope, CancellationToken) -> BoxFuture<'static, anyhow::Result<PassReport>>
        + Send
        + Sync,
>;

/// So many passes are remembered, the last ones.
const REMEMBERED: usize = 100;

/// What stands in the place of an error that may tell of the server's insides.
const SEE_LOG: &str = "it could not be worked on; the server's log says why";

/// How far a pass is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PassState {
    /// It runs.
    Running,
    /// It came to its end; its report says how each table fared.
    Done,
    /// It could not go through.
    Failed,
}

/// A pass that somebody asked for.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PassAnswer {
    /// Its id, by which to ask about it.
    pub id: Uuid,
    /// The catalog that it goes over.
    pub catalog: String,
    /// How far it is.
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
    turn: Turn,
    run: RunPass,
    tasks: TaskTracker,
    stop: CancellationToken,
    known: Arc<Mutex<VecDeque<PassAnswer>>>,
}

impl Passes {
    pub(super) fn new(
        turn: Turn,
        run: RunPass,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        Passes { turn, run, tasks, stop, known: Arc::default() }
    }

    /// Starts a pass over a catalog. It ends by itself, or soon after the daemon is told to stop.
    ///
    /// # Errors
    /// [`Problem::PassRunning`] while another one runs in this daemon.
    pub fn start(&self, catalog: String) -> Result<PassAnswer, Failure> {
        let turn = self.turn.take().ok_or(Failure::Problem(Problem::PassRunning))?;
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
            drop(turn);
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

/// A report for whoever asks: where something failed that nobody foresaw, its words may be the
/// database's, and stay in the log.
fn without_insides(mut report: PassReport) -> PassReport {
    for table in report.tables.iter_mut().filter(|table| table.outcome == Outcome::Failed) {
        table.error = Some(SEE_LOG.to_owned());
    }
    for catalog in &mut report.failed_catalogs {
        catalog.error = SEE_LOG.to_owned();
    }
    report
}
