//! Commands on policies as texts that a person copies.

use crate::catalog::checks::replaced::LeftPolicy;

/// A word as a shell takes it literally, in quotes only where it needs them: names of tables and
/// columns are anybody's, and a line to copy must do what it says and nothing else.
pub fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:=@%+,".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// What gives the table the policy that was left behind.
pub fn set_again(catalog: &str, left: &LeftPolicy) -> String {
    let mode = match left.mode.as_str() {
        "enforce" => String::new(),
        mode => format!(" --mode {}", shell_word(mode)),
    };
    let last = left.keep_last.map(|number| format!(" --keep-last {number}")).unwrap_or_default();
    format!(
        "tailrace policy set {} {} --field {} --keep {}{last}{mode}",
        shell_word(catalog),
        shell_word(&format!("{}.{}", left.namespace, left.table)),
        shell_word(&left.field),
        shell_word(&left.keep)
    )
}

/// What forgets the policy that was left behind.
pub fn forget(catalog: &str, left: &LeftPolicy) -> String {
    format!(
        "tailrace policy unset {} {}",
        shell_word(catalog),
        shell_word(&format!("{}.{}", left.namespace, left.table))
    )
}
