//! How long what is let go waits: `guard.policy_grace`, and not at all where it is confirmed.

use std::time::Duration;

use super::problem::Problem;

/// How long a pause that is resumed, or a hold that is released, still keeps what it keeps.
///
/// # Errors
/// With `guard.four_eyes` nobody confirms what they let go themselves.
pub fn grace(is_confirmed: bool, grace: Duration, four_eyes: bool) -> Result<Duration, Problem> {
    match (is_confirmed, four_eyes) {
        (false, _) => Ok(grace),
        (true, false) => Ok(Duration::ZERO),
        (true, true) => Err(Problem::FourEyes(
            "guard.four_eyes is on: nobody confirms what they let go themselves; without the confirmation it \
             waits for guard.policy_grace"
                .to_owned(),
        )),
    }
}
