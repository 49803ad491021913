//! Passes between two ticks, for which the pass before asked.

use super::*;

/// Passes as [`Bench::passes`] has them, that note as what they run.
fn told(bench: &Bench, plan: &'static [Planned]) -> impl Pass + 'static {
    let (note, mut count) = (bench.note(), 0);
    move |kind, _| {
        let (seconds, end) = plan[count.min(plan.len() - 1)];
        count += 1;
        let note = note.clone();
        async move {
            note(match kind {
                PassKind::Regular => "regular",
                PassKind::Wake => "wake",
            });
            sleep(Duration::from_secs(seconds)).await;
            end()
        }
    }
}

fn wake_in(seconds: u64) -> PassEnd {
    PassEnd::Done { wake_in: Some(Duration::from_secs(seconds)) }
}

#[tokio::test(start_paused = true)]
async fn a_wake_comes_when_it_was_asked_for_and_moves_no_tick() {
    let mut bench = bench(every(600));
    // In 90 s from its end: at 93 s. The wake asks for one more.
    let plan: &[Planned] = &[(3, || wake_in(90)), (5, || wake_in(300)), (5, done)];
    let pass = told(&bench, plan);
    bench.run(1_300, pass).await;
    assert_eq!(
        bench.seen(),
        [
            (0, "regular"),
            (93_000, "wake"),
            (398_000, "wake"),
            (600_000, "regular"),
            (1_200_000, "regular"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_wake_just_before_a_tick_is_left_to_it() {
    for (seconds, expected) in [
        (584, &[(0, "regular"), (584_000, "wake"), (600_000, "regular")][..]),
        (585, &[(0, "regular"), (585_000, "wake"), (600_000, "regular")]),
        (586, &[(0, "regular"), (600_000, "regular")]),
        (600, &[(0, "regular"), (600_000, "regular")]),
        (u64::MAX, &[(0, "regular"), (600_000, "regular")]),
    ] {
        let mut bench = bench(every(600));
        let (note, mut asked) = (bench.note(), Some(Duration::from_secs(seconds)));
        let pass = move |kind, _| {
            note(if kind == PassKind::Wake { "wake" } else { "regular" });
            let wake_in = asked.take();
            async move { PassEnd::Done { wake_in } }
        };
        bench.run(650, pass).await;
        assert_eq!(bench.seen(), expected, "in {seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn the_delay_of_a_tick_is_the_same_after_a_wake() {
    let mut bench = bench(every(600));
    bench.scheduler.jitter = Duration::from_secs(100);
    let mut random = fastrand::Rng::with_seed(7);
    let mut delay = || Duration::from_secs(100).mul_f64(random.f64()).as_millis();
    let expected = [0, 60_000, 600_000 + delay(), 1_200_000 + delay()];
    let plan: &[Planned] = &[(0, || wake_in(60)), (0, done)];
    let pass = told(&bench, plan);
    bench.run(1_390, pass).await;
    let seen = bench.seen();
    let off: Vec<u128> = seen.iter().zip(expected).map(|((at, _), due)| at - due).collect();
    assert!(off.len() == 4 && off.iter().all(|off| *off <= 2), "{seen:?} {expected:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_goes_by_during_a_wake_is_not_missed() {
    let mut bench = bench(every(600));
    let plan: &[Planned] = &[(0, || wake_in(500)), (150, || wake_in(1)), (0, done)];
    let pass = told(&bench, plan);
    bench.run(1_250, pass).await;
    assert_eq!(
        bench.seen(),
        [(0, "regular"), (500_000, "wake"), (650_000, "regular"), (1_200_000, "regular")]
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_wakes_it_between_the_instants_of_a_cron() {
    let mut bench = bench(Schedule::Cron(Box::new("0 */5 * * * *".parse().expect("valid"))));
    let plan: &[Planned] = &[(0, || wake_in(60))];
    let pass = told(&bench, plan);
    bench.run(650, pass).await;
    assert_eq!(bench.seen(), [(0, "regular"), (300_000, "regular"), (600_000, "regular")]);
}

#[tokio::test(start_paused = true)]
async fn after_a_failed_wake_comes_a_tick_or_the_wake_it_asked_for() {
    for (end, expected) in [
        (failed as fn() -> PassEnd, &[(0, "regular"), (60_000, "wake"), (600_000, "regular")][..]),
        (
            || {
                let error = anyhow::anyhow!("catalog lake: disk full");
                PassEnd::Failed { error, wake_in: Some(Duration::from_secs(40)) }
            },
            &[(0, "regular"), (60_000, "wake"), (100_000, "wake"), (600_000, "regular")],
        ),
    ] {
        let log = capture::start("info");
        let mut bench = bench(every(600));
        let (note, mut count) = (bench.note(), 0);
        let pass = move |kind, _| {
            note(if kind == PassKind::Wake { "wake" } else { "regular" });
            count += 1;
            async move {
                match count {
                    1 => wake_in(60),
                    2 => end(),
                    _ => done(),
                }
            }
        };
        bench.run(650, pass).await;
        assert_eq!(bench.seen(), expected);
        assert_eq!(log.events(), ["pass_failed"]);
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_database_is_away_nothing_wakes_it() {
    let mut bench = bench(every(600));
    let plan: &[Planned] =
        &[(0, || wake_in(60)), (0, away), (0, away), (0, || wake_in(100)), (0, done)];
    let pass = told(&bench, plan);
    bench.run(650, pass).await;
    let seen = bench.seen();
    let kinds: Vec<&str> = seen.iter().map(|(_, kind)| *kind).collect();
    assert_eq!(kinds, ["regular", "wake", "regular", "regular", "wake", "regular"]);
    // It is back after the usual pauses, and the ticks are where they were.
    let at: Vec<u128> = seen.iter().map(|(at, _)| *at).collect();
    assert!((61_000..=62_001).contains(&at[2]), "{seen:?}");
    assert!((at[2] + 2_000..=at[2] + 4_001).contains(&at[3]), "{seen:?}");
    assert_eq!((at[4], at[5]), (at[3] + 100_000, 600_000));
}

#[tokio::test(start_paused = true)]
async fn a_wake_in_flight_ends_before_the_scheduler_does() {
    let mut bench = bench(every(600));
    let plan: &[Planned] = &[(0, || wake_in(60)), (12, done)];
    let pass = told(&bench, plan);
    let begun = Instant::now();
    assert_eq!(bench.run(65, pass).await, Stopped::Cleanly);
    assert_eq!(begun.elapsed().as_secs(), 72);
    assert_eq!(bench.seen(), [(0, "regular"), (60_000, "wake")]);
    assert_eq!(bench.status.borrow().state, State::Stopping);
}
