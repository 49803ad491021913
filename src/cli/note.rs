//! Names and sentences that are recorded, as arguments: each as long as the HTTP interface takes it.

use crate::explicit::validate::{LONGEST_AUTHOR, LONGEST_MESSAGE, fits};

/// Who acts.
pub fn name(text: &str) -> Result<String, String> {
    fits(text, LONGEST_AUTHOR).map(|()| text.to_owned())
}

/// The message of a snapshot, or a reason.
pub fn message(text: &str) -> Result<String, String> {
    fits(text, LONGEST_MESSAGE).map(|()| text.to_owned())
}
