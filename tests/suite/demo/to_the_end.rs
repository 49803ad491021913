//! The demo from its start to its end.

use anyhow::Result;
use chrono::{Days, Utc};

use super::{demo, left_over, temporary};

#[test]
fn it_shows_what_it_promises_and_leaves_nothing() -> Result<()> {
    let folder = temporary()?;
    let started = Utc::now().date_naive();
    let output = demo(folder.path(), &[])?.output()?;
    let ended = Utc::now().date_naive();
    let shown = String::from_utf8(output.stdout)?;
    let told = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(0), "{shown}{told}");
    assert_eq!(told, "", "no log, and no progress where there is no terminal");
    assert_eq!(left_over(folder.path())?, Vec::<String>::new());

    let has =
        |line: &str| assert!(shown.lines().any(|shown| shown.trim() == line), "{line}\n{shown}");
    assert!(shown.contains(&format!(" in {}/tailrace-", folder.path().display())), "{shown}");
    for (line, count) in [
        ("web.events_raw: day(timestamp) keep 7d", 2),
        ("web.orders: placed_at keep 45d", 2),
        ("web.team_events: day(timestamp) keep 2d", 2),
        ("web.audit_log: no policy", 2),
    ] {
        assert_eq!(shown.lines().filter(|shown| shown.trim() == line).count(), count, "{line}");
    }
    for table in ["events_raw", "orders", "team_events"] {
        has(&format!("demo web.{table}: dropped"));
    }
    assert!(shown.contains("stand-ins here, written from the server's contract."));
    // But for the folder's name, and for the line of sums that the plan has.
    let wide: Vec<&str> = shown
        .lines()
        .filter(|line| !line.contains(" in /") && !line.starts_with("     expired "))
        .filter(|line| line.chars().count() > 80)
        .collect();
    assert_eq!(wide, Vec::<&str>::new());

    // A day that has ended 7 days ago is gone, the one after it is the oldest.
    let oldest = |today: chrono::NaiveDate| {
        let oldest = today.checked_sub_days(Days::new(7)).expect("a day");
        shown.contains(&format!("ok      web.events_raw, oldest day left: {oldest}\n"))
    };
    assert!(oldest(started) || oldest(ended), "{shown}");
    has("All 20 checks hold.");
    assert_eq!(shown.lines().filter(|line| line.starts_with("   ok      ")).count(), 20);
    assert!(!shown.contains("FAILED"));
    Ok(())
}
