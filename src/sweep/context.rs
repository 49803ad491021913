//! What the work of a pass needs, whichever table it is on.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::pacing::Pacing;
use super::settings::Settings;
use crate::catalog::clock;
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::rules::clock_guard::Reading;
use crate::rules::fair_queue::Step;
use crate::rules::instant::UtcInstant;

/// What a pass reports while it works.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// It is going to work on so many tables of a catalog.
    Tables(usize),
    /// It turned to a table.
    Table(&'a TableIdentity),
    /// It ended files of a table.
    Dropped { table: &'a TableIdentity, files: i64 },
}

/// Until when commits may start, by the clock of [`Pacing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The end of the time slice that the table or catalog has; not after `pass_ends`. The first
    /// commit of a time slice may start later, so that every time slice gets somewhere.
    pub slice_ends: Instant,
    /// The end of `sweep.max_duration`.
    pub pass_ends: Instant,
}

/// What a pass over a table needs beside its session.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The time of every decision.
    pub now: UtcInstant,
    /// When that was, by the clock of `pacing`.
    pub began: Instant,
    /// What the clocks said when that was read.
    pub clock: Reading,
    pub settings: &'a Settings,
    /// No commit starts once it is cancelled.
    pub stop: &'a CancellationToken,
    /// Receives every table and every commit.
    pub progress: &'a (dyn Fn(Progress<'_>) + Send + Sync),
    /// The clock of budgets and pauses, and the holds of late.
    pub pacing: &'a Pacing,
    /// Until when commits may start.
    pub budget: Budget,
    /// How often a commit asks for the commit lock before it gives up; at least 1.
    pub lock_tries: u32,
    /// Whether a commit of the table went through in an earlier time slice of the pass.
    pub went_through: bool,
    /// The last step of the table that the pass is through with.
    pub done: Option<Step>,
    /// The last step that this time slice goes to: others wait with earlier ones than those after it.
    pub through: Step,
    /// The earliest step that another catalog waits with in this round.
    pub first_waiting: &'a (dyn Fn() -> Option<Step> + Send + Sync),
    /// When what is not due ends, for something else has fallen due by then.
    pub gives_way: Option<GivesWay>,
    /// When the pass came to the last step of any table.
    pub rest_began: &'a OnceLock<Instant>,
}

/// When what is not due gives way to what fell due meanwhile, by the clock of [`Pacing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivesWay {
    /// Not before then.
    pub at: Instant,
    /// Nor before the pass has been at it for so long: what is due of many tables may take all the time.
    pub after: Duration,
}

impl Context<'_> {
    /// The database's time at this moment, asked anew: a pass may have been suspended since it began.
    /// In a rehearsal, `now` and what has passed since.
    pub async fn time_of_moment(&self, connection: &mut Session) -> sqlx::Result<UtcInstant> {
        match self.settings.rehearsed().is_some() {
            true => Ok(self.now.plus(self.pacing.now().saturating_duration_since(self.began))),
            false => clock::now(connection).await,
        }
    }

    /// Whether the pass was told to stop, or the time of the table's time slice is over: what can go on
    /// in another time slice or pass stops then.
    pub fn is_over(&self) -> bool {
        self.stop.is_cancelled() || self.pacing.now() >= self.budget.slice_ends
    }

    /// Whether what is not due ends here, for something else has fallen due since the pass began.
    pub fn gives_way(&self) -> bool {
        let Some((GivesWay { at, after }, began)) = self.gives_way.zip(self.rest_began.get())
        else {
            return false;
        };
        let now = self.pacing.now();
        now >= at && now.saturating_duration_since(*began) >= after
    }

    /// Notes that the pass is at the last step of a table.
    pub fn begin_rest(&self) {
        self.rest_began.get_or_init(|| self.pacing.now());
    }

    /// Whether the time of the pass is over: no commit starts any more.
    pub fn pass_is_over(&self) -> bool {
        self.pacing.now() >= self.budget.pass_ends
    }

    /// Whether no commit of this catalog starts any more in this pass: its time is over, or is before the
    /// commit lock may be held again. Another time slice would find nothing that it may do.
    pub fn rest_outlasts_pass(&self, catalog_id: i64) -> bool {
        let (pacing, now) = (self.pacing, self.pacing.now());
        let rest = pacing.rest(catalog_id, self.settings.lock_duty);
        now.checked_add(rest).is_none_or(|then| then >= self.budget.pass_ends)
    }

    /// The same, for a time slice of this length within what is left.
    pub fn for_time_slice(&self, length: Duration) -> Self {
        let ends = self.pacing.now().checked_add(length);
        let slice_ends =
            ends.map_or(self.budget.slice_ends, |ends| ends.min(self.budget.slice_ends));
        Context { budget: Budget { slice_ends, ..self.budget }, ..*self }
    }

    /// What is left of the time slice.
    pub fn left(&self) -> Duration {
        self.budget.slice_ends.saturating_duration_since(self.pacing.now())
    }
}
