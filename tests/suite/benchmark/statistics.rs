//! Tests the summary of several measurements.

use std::time::Duration;

use super::parts::statistics::{Hold, Sample, busiest_share};

#[test]
fn medians_and_percentiles() {
    let mut sample = Sample::default();
    assert!(sample.median().is_nan() && sample.percentile(0.99).is_nan());
    assert!(sample.min().is_nan() && sample.max().is_nan());
    sample.push_time(Duration::from_micros(1_500));
    assert_eq!((sample.median(), sample.percentile(0.5), sample.len()), (1.5, 1.5, 1));
    let sample: Sample = [3.0, 1.0, 10.0, 2.0].into_iter().collect();
    assert_eq!(sample.median(), 2.5);
    assert_eq!((sample.min(), sample.max()), (1.0, 10.0));
    assert_eq!((sample.percentile(0.5), sample.percentile(0.51)), (2.0, 3.0));
    let hundred: Sample = (1..=100).map(f64::from).collect();
    assert_eq!((hundred.percentile(0.99), hundred.percentile(1.0)), (99.0, 100.0));
}

#[test]
fn the_busiest_window_is_found_wherever_it_begins() {
    let hold = |from, to| Hold { from, to };
    for (holds, length, expected) in [
        (vec![], 10.0, 0.0),
        (vec![hold(5.0, 6.0)], 10.0, 0.1),
        // A hold longer than the window fills it.
        (vec![hold(0.0, 30.0)], 10.0, 1.0),
        // The last ten seconds hold both ends, the first ten only one.
        (vec![hold(0.0, 1.0), hold(12.0, 14.0), hold(20.0, 22.0)], 10.0, 0.4),
        // A window that begins where no hold does.
        (vec![hold(0.0, 4.0), hold(9.0, 14.0)], 10.0, 0.5),
    ] {
        let share = busiest_share(&holds, length);
        assert!((share - expected).abs() < 1e-9, "{holds:?}: {share}");
    }
}
