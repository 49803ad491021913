//! How many of the newest time values stay, as somebody asks for it. Pure.

/// The most that can be asked for.
pub const MOST: i32 = 10_000;

/// The number; 0 and none mean that the age alone decides.
///
/// # Errors
/// A number that is negative or above [`MOST`], in words.
pub fn read(wanted: Option<i64>) -> Result<Option<i32>, String> {
    let number = wanted.unwrap_or_default();
    match i32::try_from(number) {
        Ok(0) => Ok(None),
        Ok(number @ 1..=MOST) => Ok(Some(number)),
        _ => Err(format!("keep_last is {number}, and must be a number from 0 to {MOST}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_from_one_to_ten_thousand_is_kept() {
        for (wanted, expected) in [
            (None, Ok(None)),
            (Some(0), Ok(None)),
            (Some(1), Ok(Some(1))),
            (Some(10_000), Ok(Some(10_000))),
        ] {
            assert_eq!(read(wanted), expected, "{wanted:?}");
        }
        for wanted in [-1, 10_001, i64::MAX, i64::MIN] {
            let said = format!("keep_last is {wanted}, and must be a number from 0 to 10000");
            assert_eq!(read(Some(wanted)), Err(said));
        }
    }
}
