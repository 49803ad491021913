//! Summarises several measurements of one thing: median, percentiles, range (pure).

use std::time::Duration;

/// Measurements of one thing, in a unit that the caller chooses.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// Adds one.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_by(f64::total_cmp);
    }

    /// Adds a length of time, in milliseconds.
    pub fn push_time(&mut self, length: Duration) {
        self.push(length.as_secs_f64() * 1e3);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The one in the middle, or the mean of the two there; NaN without any.
    pub fn median(&self) -> f64 {
        let (low, high) = (self.0.len().saturating_sub(1) / 2, self.0.len() / 2);
        match (self.0.get(low), self.0.get(high)) {
            (Some(low), Some(high)) => f64::midpoint(*low, *high),
            _ => f64::NAN,
        }
    }

    /// The smallest of them that at least `share` of them, in (0, 1], do not exceed; NaN without
    /// any.
    pub fn percentile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
    }

    /// The largest; NaN without any.
    pub fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    /// The smallest; NaN without any.
    pub fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut sample = Sample(values.into_iter().collect());
        sample.0.sort_by(f64::total_cmp);
        sample
    }
}

/// A stretch of time for which a lock was held, in seconds from some common start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hold {
    /// When it was granted.
    pub from: f64,
    /// When it was released.
    pub to: f64,
}

/// The largest share of any window of `length` seconds for which the lock was held. The holds
/// must not overlap.
pub fn busiest_share(holds: &[Hold], length: f64) -> f64 {
    // While a window slides, its share changes linearly until an end of the window meets an end of a hold.
    // So the largest share is at one of these positions.
    let starts = holds.iter().flat_map(|hold| [hold.from, hold.to - length]);
    let share = |start: f64| {
        let held = |hold: &Hold| (hold.to.min(start + length) - hold.from.max(start)).max(0.0);
        holds.iter().map(held).sum::<f64>() / length
    };
    starts.map(share).fold(0.0, f64::max)
}
