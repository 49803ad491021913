//! The configurations that are refused, and the messages.

use super::*;

#[test]
fn bad_values_name_key_value_origin_and_what_is_right() {
    let length = "accepted: a length (500ms, 30s, 1h 30m) from 1ms to 1m";
    let variable = "the variable TAILRACE__SWEEP__LOCK_TIMEOUT";
    for (text, why) in [
        ("0s", "it is too short"),
        ("61s", "it is too long"),
        ("1500us", "it is not a whole number of milliseconds"),
        ("1month", "months and years differ in length: say it in days"),
        ("5m5m", "it names a unit twice"),
        ("5", "time unit needed, for example 5sec or 5ms"),
        ("", "value was empty"),
    ] {
        assert_eq!(
            refusal(&[("TAILRACE__SWEEP__LOCK_TIMEOUT", text)]),
            format!("sweep.lock_timeout = {text:?} ({variable}): {why}; {length}")
        );
    }
    for (variable, text, start) in [
        ("SWEEP__MAX_FILES_PER_COMMIT", "0", "sweep.max_files_per_commit = \"0\" "),
        ("SWEEP__MAX_FILES_PER_COMMIT", "-1", "sweep.max_files_per_commit = \"-1\" "),
        ("SWEEP__MAX_FILES_PER_COMMIT", "many", "sweep.max_files_per_commit = \"many\" "),
        ("SWEEP__LOCK_DUTY", "0", "sweep.lock_duty = \"0\" "),
        ("SWEEP__LOCK_DUTY", "1.01", "sweep.lock_duty = \"1.01\" "),
        ("SWEEP__LOCK_DUTY", "NaN", "sweep.lock_duty = \"NaN\" "),
        ("SWEEP__OVERSIZE", "Split", "sweep.oversize = \"Split\" "),
        ("DATABASE__SCHEMA", "a\"b", "database.schema = \"a\\\"b\" "),
        ("DATABASE__SCHEMA", "tailrace", "database.schema = \"tailrace\" "),
        ("DATABASE__MIGRATE_ON_START", "maybe", "database.migrate_on_start = \"maybe\" "),
        ("SCHEDULE__CRON", "*/10 * * * *", "schedule.cron = \"*/10 * * * *\" "),
        ("SCHEDULE__CRON", "0 0 0 30 2 *", "schedule.cron = \"0 0 0 30 2 *\" "),
        ("SCHEDULE__CRON", "0 0 0 1 1 * 2020", "schedule.cron = \"0 0 0 1 1 * 2020\" "),
        ("LOG__FILTER", "tailrace=loud", "log.filter = \"tailrace=loud\" "),
    ] {
        let variable = format!("TAILRACE__{variable}");
        let message = refusal(&[(&variable, text)]);
        assert!(message.starts_with(&format!("{start}(the variable {variable}): ")), "{message}");
        assert!(message.contains("; accepted: "), "{message}");
    }
}

#[test]
fn values_of_files_are_refused_in_the_same_words() {
    let refusal = |text: &str| {
        let folder = folder("a.toml", text);
        let message = load(folder.path(), Some("a.toml"), &[]).expect_err("wrong").to_string();
        message.replace(&format!("{}/", folder.path().display()), "")
    };
    assert_eq!(
        refusal("[sweep]\nmax_files_per_commit = 2.5\n"),
        "sweep.max_files_per_commit = \"2.5\" (a.toml): it is not a whole number; accepted: a \
         whole number from 1 to 1000000"
    );
    assert_eq!(
        refusal("[sweep]\nlock_timeout = ['2s']\n"),
        "sweep.lock_timeout = [...] (a.toml): it is of another type; accepted: a length \
         (500ms, 30s, 1h 30m) from 1ms to 1m"
    );
    assert_eq!(
        refusal("[sweep]\nlock_timout = '2s'\n"),
        "unknown key sweep.lock_timout (a.toml); sweep has lock_timeout, max_files_per_commit, \
         max_files_per_tuple, oversize, lock_duty, full_pass_every, max_duration, \
         removal_queue_ceiling, parallel_catalogs"
    );
    assert_eq!(
        refusal("[swoop]\n"),
        "unknown key swoop (a.toml); the sections are database, schedule, sweep, drop, discovery, compaction, history, \
         verify, guard, http, shutdown, health, log"
    );
    assert_eq!(
        refusal("sweep = 3"),
        "sweep (a.toml) is a section, not a value: write [sweep] and its keys"
    );
    let message = refusal("[database]\nurl = 'postgres://u:hunter2@h/db' x\n");
    assert!(message.starts_with("a.toml, line 2, is not TOML: "), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
}

/// With a retention of days, the queue of a busy lake has many millions of objects.
#[test]
fn the_ceiling_of_the_removal_queue_may_be_a_hundred_million() {
    let ceiling = |number| ("TAILRACE__SWEEP__REMOVAL_QUEUE_CEILING", number);
    let config = with(&[ceiling("100000000")]).expect("in the range");
    assert_eq!(config.sweep.removal_queue_ceiling.map(Count::get), Some(100_000_000));
    assert!(refusal(&[ceiling("100000001")]).ends_with("a whole number from 1 to 100000000"));
}

#[test]
fn unknown_variables_are_errors() {
    assert_eq!(
        refusal(&[("TAILRACE__DROP__MAX_HELD", "1s")]),
        "unknown key drop.max_held (the variable TAILRACE__DROP__MAX_HELD); drop has \
         lock_timeout, max_files, receipt_retention, row_lock_timeout, max_hold"
    );
    assert!(refusal(&[("TAILRACE__", "")]).starts_with("unknown key  (the variable TAILRACE__)"));
    with(&[("TAILRACE_PORT", "tcp://10.0.0.1:80")]).expect("Kubernetes sets such ones by itself");
}

#[test]
fn keys_that_contradict_each_other_are_errors() {
    let production = ("TAILRACE_ENV", "production");
    let every = ("TAILRACE__SCHEDULE__EVERY", "20s");
    let cron = ("TAILRACE__SCHEDULE__CRON", "0 0 * * * *");
    let jitter = |text| ("TAILRACE__SCHEDULE__JITTER", text);
    assert!(refusal(&[production, every, cron]).ends_with("unset the other with an empty text"));
    assert_eq!(
        refusal(&[production, every, jitter("20s")]),
        "schedule.jitter = 20s (the variable TAILRACE__SCHEDULE__JITTER) must be less than \
         schedule.every, which is 20s"
    );
    with(&[production, every, jitter("19s 999ms")]).expect("less");
    let drops = |number| ("TAILRACE__HTTP__MAX_CONCURRENT_DROPS", number);
    assert_eq!(
        refusal(&[drops("8")]),
        "http.max_concurrent_drops = 8 (the variable TAILRACE__HTTP__MAX_CONCURRENT_DROPS) must be \
         less than http.max_sessions, which is 8"
    );
    with(&[drops("7")]).expect("less");
    with(&[production, cron, jitter("1h")]).expect("a cron has no length to compare with");

    let file = folder("a.toml", "[schedule]\nevery = '1h'\n");
    assert!(load(file.path(), Some("a.toml"), &[cron]).is_err());
    let unset = ("TAILRACE__SCHEDULE__EVERY", "");
    let config = load(file.path(), Some("a.toml"), &[cron, unset]).expect("valid");
    assert_eq!(config.schedule.cron.unwrap().to_string(), "0 0 * * * *");

    assert!(
        refusal(&[("TAILRACE__SWEEP__MAX_FILES_PER_TUPLE", "7999")])
            .ends_with("must be at least sweep.max_files_per_commit, which is 8000")
    );
    assert!(
        refusal(&[("TAILRACE__DROP__MAX_HOLD", "499ms")])
            .ends_with("must be at most drop.max_hold, which is 499ms")
    );
}

#[test]
fn a_missing_url_is_told_with_its_variables() {
    let missing = with(&[]).expect("valid without").connect_options().expect_err("no database");
    assert_eq!(
        missing.to_string(),
        "database.url is not set: give it in the configuration file or as \
         TAILRACE__DATABASE__URL or DATABASE_URL"
    );
}

#[test]
fn schema_names_are_those_that_a_server_can_use() {
    let name = |text: &str| text.parse::<SchemaName>();
    assert_eq!(name("Lake-1$x").expect("fine").quoted(), "\"Lake-1$x\"");
    for bad in ["", "1a", "a b", "a.b", "ä", "pg_catalog", "tailrace", "a\"", &"x".repeat(64)] {
        assert!(name(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_variable_that_is_nearly_one_of_ours_is_named() {
    for (variable, meant) in [
        ("TAILRACE_SWEEP__LOCK_DUTY", "TAILRACE__SWEEP__LOCK_DUTY"),
        ("TAILRACE_SWEEP_LOCK_DUTY", "TAILRACE__SWEEP__LOCK_DUTY"),
        ("TAILRACE_DATABASE_URL", "TAILRACE__DATABASE__URL"),
        ("Tailrace__Http__Bind", "TAILRACE__HTTP__BIND"),
        ("TAILRACE__ENV", "TAILRACE_ENV"),
        ("TAILRACE_CONFIGDIR", "TAILRACE_CONFIG_DIR"),
        ("TAILRACE_EVN", "TAILRACE_ENV"),
        ("TAILRACE_ENVV", "TAILRACE_ENV"),
        ("TAILRACE_EN", "TAILRACE_ENV"),
        ("TAILRACE_CONFIG", ""),
        // Kubernetes sets such variables in every container if there is a service of this name.
        ("TAILRACE_SERVICE_HOST", ""),
        ("TAILRACE_PORT_8917_TCP_PORT", ""),
        ("TAILRACE_HTTP_SERVICE_PORT", ""),
    ] {
        let loaded = with(&[(variable, "0.5")]).map(drop).map_err(|error| error.to_string());
        let expected = match meant {
            "" => Ok(()),
            meant => Err(format!("the variable {variable} is not read: write {meant}")),
        };
        assert_eq!(loaded, expected, "{variable}");
    }
}
