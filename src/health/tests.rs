use std::os::unix::fs::{MetadataExt, symlink};

use super::*;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("a time")
}

fn report() -> Report {
    let status = Status {
        state: State::DatabaseAway,
        last_pass_at: Some(at("2026-09-17T05:00:00Z")),
        last_pass_ok: Some(false),
    };
    Report { pid: 42, written_at: at("2026-09-17T05:01:00Z"), status }
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("health.json");
    std::fs::write(&path, "an old one, longer than what follows").expect("written");
    write(&path, &report()).expect("written");
    let text = std::fs::read_to_string(&path).expect("read");
    assert_eq!(
        text,
        "{\"pid\":42,\"written_at\":\"2026-09-17T05:01:00Z\",\"state\":\"database_away\",\
         \"last_pass_at\":\"2026-09-17T05:00:00Z\",\"last_pass_ok\":false}\n"
    );
    assert_eq!(std::fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 1);

    let found = check(&path, Duration::from_secs(60), report().written_at).expect("alive");
    assert_eq!(found, report());
    assert_eq!(
        found.to_string(),
        "alive: waiting for the database, heartbeat of 2026-09-17T05:01:00Z, last pass failed \
         at 2026-09-17T05:00:00Z"
    );
}

#[test]
fn age_counts_to_the_microsecond_in_both_directions() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("health.json");
    write(&path, &report()).expect("written");
    let age = |now: &str| check(&path, Duration::from_secs(60), at(now)).map_err(|e| e.to_string());
    assert!(age("2026-09-17T05:02:00Z").is_ok());
    assert_eq!(
        age("2026-09-17T05:02:00.000001Z").expect_err("too old"),
        "the heartbeat of process 42 is 1m away from now, more than 1m (health.max_age): the \
         daemon hangs or is gone, or the clock was set"
    );
    assert!(age("2026-09-17T05:00:00Z").is_ok());
    assert!(age("2026-09-17T04:59:59.999999Z").is_err());
}

#[test]
fn links_are_neither_written_nor_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, victim) = (folder.path().join("health.json"), folder.path().join("victim"));
    std::fs::write(&victim, "precious").expect("written");
    symlink(&victim, &path).expect("linked");
    let refused = write(&path, &report()).expect_err("a link");
    assert_eq!(refused.to_string(), "it is a symbolic link");
    assert_eq!(std::fs::read_to_string(&victim).expect("read"), "precious");
    let refused = check(&path, Duration::from_secs(60), report().written_at);
    assert!(matches!(refused, Err(Unhealthy::Unreadable { .. })), "{refused:?}");
}

#[test]
fn other_content_is_not_a_heartbeat() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("health.json");
    let found = || check(&path, Duration::from_secs(60), report().written_at);
    assert!(matches!(found(), Err(Unhealthy::Unreadable { .. })));
    for text in ["", "{}", "null", "\u{0}"] {
        std::fs::write(&path, text).expect("written");
        assert!(matches!(found(), Err(Unhealthy::NotAHeartbeat { .. })), "{text:?}");
    }
}
