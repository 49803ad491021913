mod stopping;
mod wakes;

use std::sync::{Arc, Mutex};

use super::*;
use crate::telemetry::capture;

/// Paused time starts at this instant of the calendar.
const START: &str = "2026-09-17T05:00:00Z";

fn start() -> DateTime<Utc> {
    START.parse().expect("a time")
}

std::thread_local! {
    static ORIGIN: std::cell::Cell<Option<Instant>> = const { std::cell::Cell::new(None) };
}

/// The calendar of paused time.
fn calendar() -> DateTime<Utc> {
    let origin = ORIGIN.get().expect("set by the test");
    start() + origin.elapsed()
}

/// How many seconds a pass takes, and how it ends.
type Planned = (u64, fn() -> PassEnd);

struct Bench {
    scheduler: Scheduler,
    status: watch::Receiver<Status>,
    stop: CancellationToken,
    /// When passes began and ended, in milliseconds since the test began.
    seen: Arc<Mutex<Vec<(u128, &'static str)>>>,
}

fn bench(schedule: Schedule) -> Bench {
    let origin = Instant::now();
    ORIGIN.set(Some(origin));
    let (sender, status) = watch::channel(Status::STARTING);
    let stop = CancellationToken::new();
    let scheduler = Scheduler {
        schedule,
        jitter: Duration::ZERO,
        lag: Duration::from_secs(30),
        grace: Duration::from_secs(15),
        random: fastrand::Rng::with_seed(7),
        clock: calendar,
        status: sender,
        stop: stop.clone(),
        lost: None,
    };
    Bench { scheduler, status, stop, seen: Arc::default() }
}

fn every(seconds: u64) -> Schedule {
    Schedule::Every(Duration::from_secs(seconds))
}

impl Bench {
    fn note(&self) -> impl Fn(&'static str) + Clone + Send + 'static {
        let (origin, seen) = (Instant::now(), self.seen.clone());
        move |what| seen.lock().expect("no panic").push((origin.elapsed().as_millis(), what))
    }

    fn seen(&self) -> Vec<(u128, &'static str)> {
        self.seen.lock().expect("no panic").clone()
    }

    fn begun(&self) -> Vec<u128> {
        self.seen().iter().filter(|(_, what)| *what == "begin").map(|(at, _)| *at).collect()
    }

    /// Passes that take these many seconds and end so, the last one repeated.
    fn passes(&self, plan: &'static [Planned]) -> impl Pass + 'static {
        let (note, mut count) = (self.note(), 0);
        move |_, _| {
            let (seconds, end) = plan[count.min(plan.len() - 1)];
            count += 1;
            let note = note.clone();
            async move {
                note("begin");
                sleep(Duration::from_secs(seconds)).await;
                note("end");
                end()
            }
        }
    }

    /// Runs for so many seconds, then stops.
    async fn run(&mut self, seconds: u64, pass: impl Pass) -> Stopped {
        let stop = self.stop.clone();
        let spare = bench(every(1)).scheduler;
        let scheduler = std::mem::replace(&mut self.scheduler, spare);
        let (how, ()) = tokio::join!(scheduler.run(pass), async {
            sleep(Duration::from_secs(seconds)).await;
            stop.cancel();
        });
        how
    }
}

fn done() -> PassEnd {
    PassEnd::Done { wake_in: None }
}

fn away() -> PassEnd {
    PassEnd::DatabaseAway { error: anyhow::anyhow!("connection refused"), answered: false }
}

fn interrupted() -> PassEnd {
    PassEnd::DatabaseAway { error: anyhow::anyhow!("connection reset"), answered: true }
}

fn failed() -> PassEnd {
    PassEnd::Failed { error: anyhow::anyhow!("disk full").context("a pass"), wake_in: None }
}

#[tokio::test(start_paused = true)]
async fn a_pass_at_start_and_one_each_tick() {
    let mut bench = bench(every(10));
    let pass = bench.passes(&[(3, done)]);
    assert_eq!(bench.run(35, pass).await, Stopped::Cleanly);
    assert_eq!(bench.begun(), [0, 10_000, 20_000, 30_000]);
}

#[tokio::test(start_paused = true)]
async fn missed_ticks_collapse_and_passes_never_overlap() {
    let mut bench = bench(every(10));
    let pass = bench.passes(&[(34, done), (0, done)]);
    bench.run(55, pass).await;
    assert_eq!(
        bench.seen(),
        [
            (0, "begin"),
            (34_000, "end"),
            (40_000, "begin"),
            (40_000, "end"),
            (50_000, "begin"),
            (50_000, "end"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_ends_on_a_tick_waits_for_the_next_one() {
    let mut bench = bench(every(10));
    let pass = bench.passes(&[(10, done), (0, done)]);
    bench.run(25, pass).await;
    assert_eq!(bench.begun(), [0, 20_000]);
}

#[tokio::test(start_paused = true)]
async fn jitter_delays_each_tick_anew_and_does_not_add_up() {
    let mut bench = bench(every(100));
    bench.scheduler.jitter = Duration::from_secs(50);
    let mut random = fastrand::Rng::with_seed(7);
    let mut delay = || Duration::from_secs(50).mul_f64(random.f64()).as_millis();
    let expected = [0, 100_000 + delay(), 200_000 + delay(), 300_000 + delay()];
    let pass = bench.passes(&[(0, done)]);
    bench.run(390, pass).await;
    // The timer counts whole milliseconds and rounds up.
    let off: Vec<u128> = bench.begun().iter().zip(expected).map(|(got, due)| got - due).collect();
    assert!(off.len() == 4 && off.iter().all(|off| *off <= 2), "{off:?}");
    assert_ne!(expected[1] - 100_000, expected[2] - 200_000);
}

#[tokio::test(start_paused = true)]
async fn cron_ticks_on_the_calendar_and_collapses_what_it_missed() {
    let mut bench = bench(Schedule::Cron(Box::new("30 */5 * * * *".parse().expect("valid"))));
    let pass = bench.passes(&[(0, done), (601, done), (0, done)]);
    bench.run(1_300, pass).await;
    // 05:00:00, 05:00:30 (until 05:10:31, missing two), 05:15:30, 05:20:30.
    assert_eq!(bench.begun(), [0, 30_000, 930_000, 1_230_000]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_database_is_logged_once_and_retried_with_backoff() {
    let log = capture::start("info");
    let mut bench = bench(every(600));
    let pass = bench.passes(&[(0, away), (0, away), (0, away), (0, done)]);
    let mut random = fastrand::Rng::with_seed(7);
    let pauses: Vec<u128> =
        (0..3).map(|attempt| DATABASE_AWAY.pause(attempt, random.f64()).as_millis()).collect();
    bench.run(300, pass).await;
    let begun = bench.begun();
    let off: Vec<u128> =
        begun.windows(2).zip(&pauses).map(|(pair, pause)| pair[1] - pair[0] - pause).collect();
    assert!(off.len() == 3 && off.iter().all(|off| *off <= 1), "{begun:?} {pauses:?}");
    assert_eq!(log.events(), ["database_lost", "database_back"]);
    assert_eq!(log.lines()[0]["error"], "connection refused");
    assert_eq!(u128::from(log.lines()[1]["away_seconds"].as_u64().unwrap()), begun[3] / 1000);
}

#[tokio::test(start_paused = true)]
async fn passes_that_the_database_answered_do_not_make_the_pause_grow() {
    let log = capture::start("info");
    let mut bench = bench(every(600));
    let pass = bench.passes(&[
        (0, away),
        (0, away),
        (0, away),
        (0, interrupted),
        (0, interrupted),
        (0, away),
        (0, away),
        (0, interrupted),
        (0, done),
    ]);
    let mut random = fastrand::Rng::with_seed(7);
    let pauses: Vec<u128> = [0, 1, 2, 0, 0, 1, 2, 0]
        .map(|attempt| DATABASE_AWAY.pause(attempt, random.f64()).as_millis())
        .into();
    bench.run(300, pass).await;
    let begun = bench.begun();
    let off: Vec<u128> =
        begun.windows(2).zip(&pauses).map(|(pair, pause)| pair[1] - pair[0] - pause).collect();
    assert!(off.len() == 8 && off.iter().all(|off| *off <= 1), "{begun:?} {pauses:?}");
    // It is one outage to whoever reads the log, until a pass goes through.
    assert_eq!(log.events(), ["database_lost", "database_back"]);
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_the_schedule_goes_on_as_before() {
    let mut bench = bench(every(10));
    let pass = bench.passes(&[(0, away), (0, done)]);
    bench.run(25, pass).await;
    let begun = bench.begun();
    assert!((1_000..=2_001).contains(&begun[1]), "{begun:?}");
    assert_eq!(begun[2..], [10_000, 20_000]);
}

#[tokio::test(start_paused = true)]
async fn a_second_outage_is_told_again_and_starts_with_short_pauses() {
    let log = capture::start("info");
    let mut bench = bench(every(100));
    let pass = bench.passes(&[(0, away), (0, away), (0, away), (0, done), (0, away), (0, done)]);
    bench.run(150, pass).await;
    let begun = bench.begun();
    assert_eq!(begun[4], 100_000);
    assert!((101_000..=102_001).contains(&begun[5]), "{begun:?}");
    let events = log.events();
    assert_eq!(events, ["database_lost", "database_back", "database_lost", "database_back"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_pass_tells_its_causes_and_waits_for_the_next_tick() {
    let log = capture::start("info");
    let mut bench = bench(every(10));
    let pass = bench.passes(&[(1, failed), (1, done)]);
    bench.run(15, pass).await;
    assert_eq!(bench.begun(), [0, 10_000]);
    assert_eq!(log.events(), ["pass_failed"]);
    assert_eq!(log.lines()[0]["error"], "a pass: disk full");
    assert_eq!(bench.status.borrow().last_pass_ok, Some(true));
    assert_eq!(bench.status.borrow().last_pass_at, Some(start() + Duration::from_secs(11)));
}
