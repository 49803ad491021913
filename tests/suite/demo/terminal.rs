//! Tests of the demo on a terminal of 80 columns and 24 lines, which util-linux's `script`
//! provides.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::{COLORS, left_over, program::program, temporary};

/// A demo on a terminal.
struct Terminal {
    process: Child,
    keys: ChildStdin,
    output: ChildStdout,
    shown: String,
}

impl Terminal {
    fn start(temporary: &Path, args: &str, environment: &[(&str, &str)]) -> Result<Self> {
        let demo = program()?;
        // Its progress, on stderr, is no page.
        let line = format!("stty cols 80 rows 24; exec {} {args} 2>/dev/null", demo.display());
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env("SHELL", "/bin/sh").env("TMPDIR", temporary);
        for variable in COLORS.iter().chain(&["RUST_LOG"]) {
            command.env_remove(variable);
        }
        command.env("TERM", "xterm").envs(environment.iter().copied());
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let keys = process.stdin.take().context("a pipe")?;
        let output = process.stdout.take().context("a pipe")?;
        Ok(Self { process, keys, output, shown: String::new() })
    }

    /// Reads until the end of what is shown is this.
    fn wait_for(&mut self, end: &str) -> Result<()> {
        let mut bytes = self.shown.clone().into_bytes();
        let mut byte = [0];
        while !bytes.ends_with(end.as_bytes()) {
            if self.output.read(&mut byte)? == 0 {
                bail!("no {end:?} in {}", String::from_utf8_lossy(&bytes));
            }
            bytes.extend(byte);
        }
        self.shown = String::from_utf8(bytes)?;
        Ok(())
    }

    fn press(&mut self, keys: &str) -> Result<()> {
        Ok(self.keys.write_all(keys.as_bytes())?)
    }

    /// The exit code, and all that was shown.
    fn end(mut self) -> Result<(Option<i32>, String)> {
        self.output.read_to_string(&mut self.shown)?;
        let code = self.process.wait()?.code();
        Ok((code, self.shown.replace("\r\n", "\n")))
    }
}

/// A failing test leaves no demo behind: it ends with its terminal.
impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn question(page: usize) -> String {
    format!("Press Enter for the next page ({page} of 8), or q and Enter to quit: ")
}

#[test]
fn enter_leads_through_all_pages_which_fit_and_are_in_colour() -> Result<()> {
    let folder = temporary()?;
    let mut terminal = Terminal::start(folder.path(), "", &[])?;
    for page in 2..=8 {
        terminal.wait_for(&question(page))?;
        assert!(!terminal.shown.contains(&format!("\u{1b}[1m{page} of 8  ")), "it waits");
        terminal.press("\n")?;
    }
    let (code, shown) = terminal.end()?;
    assert_eq!(code, Some(0), "{shown}");
    for sign in
        ["\u{1b}[33m░", "\u{1b}[32m█", "\u{1b}[31m·", "\u{1b}[1m8 of 8  The verdict\u{1b}[0m"]
    {
        assert!(shown.contains(sign), "{sign:?} in {shown}");
    }
    // A page and its question.
    let heights: Vec<usize> =
        shown.split("\u{1b}[1m").skip(1).map(|page| page.lines().count()).collect();
    assert_eq!(heights.len(), 8);
    assert!(heights.iter().all(|height| *height <= 24), "{heights:?}");
    assert_eq!(left_over(folder.path())?, Vec::<String>::new());
    Ok(())
}

#[test]
fn q_and_the_end_of_input_quit_and_leave_nothing() -> Result<()> {
    for keys in ["q\n", "\u{4}"] {
        let folder = temporary()?;
        let mut terminal = Terminal::start(folder.path(), "--keep", &[])?;
        terminal.wait_for("(2 of 9), or q and Enter to quit: ")?;
        terminal.press(keys)?;
        let (code, shown) = terminal.end()?;
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.ends_with("\nNothing is left of the demo's server.\n"), "{shown}");
        assert!(!shown.contains("2 of 9  "), "{shown}");
        assert_eq!(left_over(folder.path())?, Vec::<String>::new());
    }
    Ok(())
}

#[test]
fn an_interrupt_at_a_page_leaves_nothing() -> Result<()> {
    let folder = temporary()?;
    let mut terminal = Terminal::start(folder.path(), "", &[])?;
    terminal.wait_for(&question(2))?;
    terminal.press("\u{3}")?;
    let (code, shown) = terminal.end()?;
    assert_eq!(code, Some(1), "{shown}");
    assert!(!shown.contains("2 of 8  "), "{shown}");
    assert_eq!(left_over(folder.path())?, Vec::<String>::new());
    Ok(())
}

#[test]
fn no_color_and_no_pause_are_heeded_on_a_terminal() -> Result<()> {
    let folder = temporary()?;
    let terminal = Terminal::start(folder.path(), "--no-pause", &[("NO_COLOR", "1")])?;
    let (code, shown) = terminal.end()?;
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("\n8 of 8  The verdict\n"), "{shown}");
    assert!(!shown.contains("Press Enter") && !shown.contains('\u{1b}'), "{shown}");
    Ok(())
}
