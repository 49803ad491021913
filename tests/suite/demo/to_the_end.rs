//! Tests of the demo from start to end, in a pipe.

use std::path::Path;

use anyhow::Result;
use chrono::{Days, NaiveDate, Utc};

use super::{demo, left_over, temporary};

/// What a demo shows that ends well, and writes nothing else.
fn shown(folder: &Path, args: &[&str]) -> Result<String> {
    let output = demo(folder, args)?.output()?;
    let shown = String::from_utf8(output.stdout)?;
    let said = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(0), "{shown}{said}");
    assert_eq!(said, "", "no log, and no progress where there is no terminal");
    Ok(shown)
}

/// The pages, each with its title and without the blank line before the next one.
fn pages(shown: &str) -> Vec<Vec<&str>> {
    let mut pages: Vec<Vec<&str>> = Vec::new();
    for line in shown.lines() {
        match pages.last_mut() {
            Some(page) if !line.starts_with(|c: char| c.is_ascii_digit()) => page.push(line),
            _ => pages.push(vec![line]),
        }
    }
    for page in &mut pages {
        if page.last() == Some(&"") {
            page.pop();
        }
    }
    pages
}

#[test]
fn each_page_fits_a_terminal_and_the_last_is_a_verdict() -> Result<()> {
    let folder = temporary()?;
    let shown = shown(folder.path(), &[])?;
    assert_eq!(left_over(folder.path())?, Vec::<String>::new());
    assert!(shown.contains(&format!("\n   {}/tailrace-", folder.path().display())), "{shown}");

    let pages = pages(&shown);
    let titles: Vec<&str> = pages.iter().map(|page| page[0]).collect();
    assert_eq!(
        titles,
        [
            "1 of 8  A lake of its own",
            "2 of 8  The plan: what `tailrace plan` shows of web.orders",
            "3 of 8  A pass, as the daemon runs it",
            "4 of 8  Before and after: web.events_raw",
            "5 of 8  Before and after: web.orders",
            "6 of 8  Before and after: web.team_events",
            "7 of 8  The objects on disk, which tailrace never touches",
            "8 of 8  The verdict",
        ]
    );
    // With the question below it, a page has 24 lines.
    let high: Vec<&Vec<&str>> = pages.iter().filter(|page| page.len() > 23).collect();
    assert_eq!(high, Vec::<&Vec<&str>>::new());
    // But for the folder's name.
    let lines = shown.lines().filter(|line| !line.contains("/tailrace-"));
    let wide: Vec<&str> = lines.filter(|line| line.chars().count() > 80).collect();
    assert_eq!(wide, Vec::<&str>::new());
    assert!(!shown.contains('\u{1b}') && !shown.contains("Press Enter"), "{shown}");

    for table in ["events_raw", "orders", "team_events"] {
        let dropped = format!("   demo web.{table}: dropped");
        assert!(pages[2].contains(&dropped.as_str()), "{shown}");
    }
    let verdict = &pages[7][2..7];
    let words: Vec<&str> =
        verdict.iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(words, ["Dropped", "Kept", "Readers", "Objects", "Checks"]);
    assert!(verdict[1].ends_with(" that are not old enough, and 2 that are undatable"), "{shown}");
    assert_eq!(verdict[4], "   Checks   20 of 20 hold");
    assert!(pages[7].iter().any(|line| line.starts_with("   $ make demo DEMO=--keep ")), "{shown}");
    Ok(())
}

#[test]
fn each_check_is_listed_where_that_is_asked_for() -> Result<()> {
    let folder = temporary()?;
    let started = Utc::now().date_naive();
    let shown = shown(folder.path(), &["--checks", "--no-pause"])?;
    let ended = Utc::now().date_naive();

    let pages = pages(&shown);
    assert_eq!(pages.len(), 9, "{shown}");
    assert_eq!(pages[7][0], "8 of 9  What was checked");
    assert!(pages[7].len() <= 23, "{shown}");
    assert_eq!(pages[7].iter().filter(|line| line.starts_with("   ok      ")).count(), 20);
    assert!(!shown.contains("FAILED"), "{shown}");
    // A day that ended 7 days ago was dropped, and the one after it is the oldest.
    let is_oldest = |today: NaiveDate| {
        let oldest = today.checked_sub_days(Days::new(7)).expect("a day");
        shown.contains(&format!("ok      web.events_raw, oldest day left: {oldest}\n"))
    };
    assert!(is_oldest(started) || is_oldest(ended), "{shown}");
    Ok(())
}
