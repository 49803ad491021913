//! Whether a file was there by a time: pure.

use super::{Begin, CatalogState};
use crate::rules::instant::UtcInstant;

/// Whether a file was there by a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WasThere {
    /// It was.
    Yes,
    /// It came later.
    No,
    /// Unknown: expiry has deleted its snapshot, and the floor is younger than the time.
    BelowFloor,
    /// Unknown: its snapshot is missing, and that is not expiry's doing.
    NoSnapshot,
}

/// What is known of a snapshot that expiry has deleted is that it is older than the floor. Of one above
/// the floor that is missing, nothing is.
pub fn was_there(begin: &Begin, then: UtcInstant, state: &CatalogState) -> WasThere {
    if let Some(at) = begin.at {
        return if UtcInstant::from(at) <= then { WasThere::Yes } else { WasThere::No };
    }
    match state.floor_time.filter(|_| begin.begin_snapshot <= state.floor) {
        Some(floor) if UtcInstant::from(floor) <= then => WasThere::Yes,
        Some(_) => WasThere::BelowFloor,
        None => WasThere::NoSnapshot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_was_there_where_that_is_certain() {
        let at = |day| UtcInstant::from_days(day).to_chrono();
        let now = at(20).expect("a time");
        for (began, begin_snapshot, floor_time, expected) in [
            (Some(10), 8, None, WasThere::Yes),
            (Some(11), 8, None, WasThere::No),
            (Some(11), 8, Some(12), WasThere::No),
            // The floor is at 7.
            (None, 7, Some(10), WasThere::Yes),
            (None, 7, Some(11), WasThere::BelowFloor),
            (None, 8, Some(10), WasThere::NoSnapshot),
            (None, 8, Some(11), WasThere::NoSnapshot),
            (None, 7, None, WasThere::NoSnapshot),
        ] {
            let begin = Begin { data_file_id: 1, begin_snapshot, at: began.and_then(at) };
            let floor_time = floor_time.and_then(at);
            let state = CatalogState { head: 9, floor: 7, floor_time, now };
            let found = was_there(&begin, UtcInstant::from_days(10), &state);
            assert_eq!(found, expected, "{begin:?} {floor_time:?}");
        }
    }
}
