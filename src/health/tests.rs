use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use super::*;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
}

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
    let place = Place::File(path.clone());
    std::fs::write(&path, "an old one, longer than what follows").expect("written");
    write(&place, &report()).expect("written");
    let text = std::fs::read_to_string(&path).expect("read");
    assert_eq!(
        text,
        "{\"pid\":42,\"written_at\":\"2026-09-17T05:01:00Z\",\"state\":\"database_away\",\
         \"last_pass_at\":\"2026-09-17T05:00:00Z\",\"last_pass_ok\":false}\n"
    );
    assert_eq!(std::fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 1);

    let found = check(&place, Duration::from_secs(60), report().written_at).expect("alive");
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
    let place = Place::File(path.clone());
    write(&place, &report()).expect("written");
    let age =
        |now: &str| check(&place, Duration::from_secs(60), at(now)).map_err(|e| e.to_string());
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
    let place = Place::File(path.clone());
    std::fs::write(&victim, "precious").expect("written");
    symlink(&victim, &path).expect("linked");
    let refused = write(&place, &report()).expect_err("a link");
    assert_eq!(refused.to_string(), "it is a symbolic link");
    assert_eq!(std::fs::read_to_string(&victim).expect("read"), "precious");
    let refused = check(&place, Duration::from_secs(60), report().written_at);
    assert!(matches!(refused, Err(Unhealthy::Unreadable { .. })), "{refused:?}");
}

#[test]
fn other_content_is_not_a_heartbeat() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("health.json");
    let place = Place::File(path.clone());
    let found = || check(&place, Duration::from_secs(60), report().written_at);
    assert!(matches!(found(), Err(Unhealthy::Unreadable { .. })));
    for text in ["", "{}", "null", "\u{0}"] {
        std::fs::write(&path, text).expect("written");
        assert!(matches!(found(), Err(Unhealthy::NotAHeartbeat { .. })), "{text:?}");
    }
}

#[test]
fn a_file_of_another_owner_proves_no_daemon() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = Place::File(folder.path().join("health.json"));
    write(&place, &report()).expect("written");
    let found = || check(&place, Duration::from_secs(60), report().written_at);
    assert_eq!(found().expect("ours"), report());
    // Only root can give a file away.
    if own_uid() != 0 {
        return;
    }
    chown(place.file(), Some(65_534), None).expect("given away");
    let refused = found().expect_err("a stranger's").to_string();
    let says =
        "it belongs to user 65534, and this process is user 0: run this as the daemon's user";
    assert!(refused.contains(says), "{refused}");
    // A daemon that has that user, in a folder of its own, as under systemd.
    chown(folder.path(), Some(65_534), None).expect("given away");
    assert_eq!(found().expect("the folder's owner's"), report());
    set_mode(folder.path(), 0o1777);
    assert!(found().is_err(), "anybody may have put it there");
}

#[test]
fn a_folder_of_somebody_elses_is_not_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = folder.path().join("tailrace-7");
    let alone = |path: &Path| alone(&std::fs::symlink_metadata(path).expect("there"));
    std::fs::create_dir(&made).expect("made");
    for (mode, expected) in [
        (0o700, Ok(())),
        (0o755, Ok(())),
        (0o777, Err("may be written by others (mode 0777)")),
        (0o1770, Err("may be written by others (mode 1770)")),
    ] {
        set_mode(&made, mode);
        assert_eq!(alone(&made), expected.map_err(str::to_owned), "{mode:o}");
    }
    let link = folder.path().join("tailrace-8");
    symlink(&made, &link).expect("linked");
    assert_eq!(alone(&link), Err("is not a folder".to_owned()));
    if own_uid() == 0 {
        set_mode(&made, 0o700);
        chown(&made, Some(65_534), None).expect("given away");
        let whose = "belongs to user 65534, and this process is user 0";
        assert_eq!(alone(&made), Err(whose.to_owned()));
    }
}
