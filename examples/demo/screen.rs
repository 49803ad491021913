//! What the demo writes, and the sign of life while something takes long.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Begins a section: its title, and what it is about.
pub fn section(title: &str, about: &str) -> io::Result<()> {
    text(&format!("\n{title}\n{}", indented(about)))
}

/// Writes a text as it is.
pub fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Every line moved to the right; empty ones stay empty.
pub fn indented(text: &str) -> String {
    text.lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("   {line}\n") })
        .collect()
}

/// Does the work; on a terminal something moves meanwhile.
pub async fn busy<T>(doing: &'static str, work: impl Future<Output = T>) -> T {
    if !io::stderr().is_terminal() {
        return work.await;
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    bar.set_message(doing);
    bar.enable_steady_tick(Duration::from_millis(100));
    let result = work.await;
    bar.finish_and_clear();
    result
}
