//! How long a pass rests after it has held the commit lock.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// The rest that keeps our share of the lock at `duty`, in (0, 1]: after a hold of 1 s, a duty
/// of 0.2 rests for 4 s.
pub fn rest_after(hold: Duration, duty: f64) -> Duration {
    Duration::try_from_secs_f64(hold.as_secs_f64() * (1.0 - duty) / duty).unwrap_or(Duration::MAX)
}

/// Rests; ends at once when the pass is told to stop.
pub async fn rest(hold: Duration, duty: f64, stop: &CancellationToken) {
    tokio::select! {
        () = tokio::time::sleep(rest_after(hold, duty)) => {}
        () = stop.cancelled() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_the_duty() {
        let second = Duration::from_secs(1);
        assert_eq!(rest_after(second, 0.2), Duration::from_secs(4));
        assert_eq!(rest_after(second, 0.5), second);
        assert_eq!(rest_after(second, 1.0), Duration::ZERO);
        assert_eq!(rest_after(Duration::ZERO, 0.2), Duration::ZERO);
    }
}
