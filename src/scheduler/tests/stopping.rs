//! The scheduler is told to stop.

use super::*;

#[tokio::test(start_paused = true)]
async fn stopping_waits_for_the_pass_in_flight_and_starts_no_other() {
    let mut bench = bench(every(10));
    let pass = bench.passes(&[(12, done)]);
    assert_eq!(bench.run(5, pass).await, Stopped::Cleanly);
    assert_eq!(bench.seen(), [(0, "begin"), (12_000, "end")]);
    assert_eq!(bench.status.borrow().state, State::Stopping);
}

#[tokio::test(start_paused = true)]
async fn the_pass_sees_that_it_is_to_stop() {
    let mut bench = bench(every(10));
    let note = bench.note();
    let pass = move |_, stop: CancellationToken| {
        let note = note.clone();
        async move {
            stop.cancelled().await;
            note("saw");
            PassEnd::Done { wake_in: None }
        }
    };
    assert_eq!(bench.run(5, pass).await, Stopped::Cleanly);
    assert_eq!(bench.seen(), [(5_000, "saw")]);
}

#[tokio::test(start_paused = true)]
async fn the_grace_has_an_end() {
    let mut bench = bench(every(10));
    let pass = bench.passes(&[(1_000, done)]);
    let begun = Instant::now();
    assert_eq!(bench.run(5, pass).await, Stopped::GraceExceeded);
    assert_eq!(begun.elapsed().as_secs(), 20);
    assert_eq!(bench.seen(), [(0, "begin")]);
}

#[tokio::test(start_paused = true)]
async fn stopping_while_it_rests_takes_no_time() {
    for pass_end in [done as fn() -> PassEnd, away] {
        let mut bench = bench(every(600));
        let note = bench.note();
        let pass = move |_, _| {
            note("begin");
            async move { pass_end() }
        };
        let begun = Instant::now();
        assert_eq!(bench.run(5, pass).await, Stopped::Cleanly);
        assert_eq!(begun.elapsed().as_secs(), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn told_to_stop_before_the_start_it_runs_nothing() {
    let mut bench = bench(every(10));
    bench.stop.cancel();
    let pass = bench.passes(&[(0, done)]);
    assert_eq!(bench.run(0, pass).await, Stopped::Cleanly);
    assert_eq!(bench.seen(), []);
}
