mod deploy;
mod refusals;

use std::path::{Path, PathBuf};

use super::*;

/// The configuration with these variables, and no others, in the environment.
fn with(env: &[(&str, &str)]) -> Result<Config, ConfigError> {
    load(Path::new("/nonexistent"), None, env)
}

fn load(folder: &Path, file: Option<&str>, env: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::load(&LoadOptions {
        file: file.map(PathBuf::from),
        env: env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        folder: folder.into(),
    })
}

fn refusal(env: &[(&str, &str)]) -> String {
    with(env).expect_err("this configuration is wrong").to_string()
}

/// A folder with one file in it.
fn folder(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
    std::fs::write(path, text).expect("a file");
    folder
}

#[test]
fn default_toml_is_the_list_of_keys() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/default.toml");
    if std::env::var_os("TAILRACE_BLESS").is_some() {
        std::fs::write(&path, document()).expect("config/default.toml can be written");
    }
    let file = std::fs::read_to_string(path).expect("config/default.toml is there");
    assert_eq!(file, document(), "TAILRACE_BLESS=1 cargo test --lib default_toml writes it anew");
}

#[test]
fn every_example_of_an_unset_key_is_accepted() {
    for key in KEYS {
        let Preset::Unset(example) = key.preset else {
            continue;
        };
        let text = example.trim_matches('"');
        with(&[(&key.variable(), text)]).expect("what the help shows is right");
    }
}

#[test]
fn the_defaults_are_those_of_the_documentation() {
    let config = with(&[("TAILRACE_ENV", "production")]).expect("valid");
    assert_eq!(config.every(), Duration::from_secs(600));
    assert_eq!(config.schedule.jitter.as_millis(), 30_000);
    assert_eq!(config.database.schema.as_str(), "public");
    assert_eq!(config.database.connect_timeout.as_millis(), 10_000);
    assert!(config.database.migrate_on_start);
    assert_eq!(config.sweep.lock_timeout.as_millis(), 2_000);
    assert_eq!(config.sweep.max_files_per_commit.get(), 8_000);
    assert_eq!(config.sweep.max_files_per_tuple.get(), 20_000);
    assert_eq!(config.sweep.oversize, Oversize::Split);
    assert_eq!(config.sweep.lock_duty.get(), 0.2);
    assert_eq!(config.sweep.max_duration.as_millis(), 600_000);
    assert!(config.sweep.removal_queue_ceiling.is_none());
    assert_eq!(config.sweep.parallel_catalogs.get(), 4);
    assert_eq!(config.drop.row_lock_timeout.as_millis(), 500);
    assert_eq!(config.drop.max_hold.as_millis(), 4_000);
    assert_eq!(config.discovery.count_timeout.as_millis(), 5_000);
    assert_eq!(config.guard.min_keep.as_millis(), 3_600_000);
    assert_eq!(config.shutdown.grace.as_millis(), 15_000);
    assert_eq!(config.drop.lock_timeout.as_millis(), 10_000);
    assert_eq!(config.drop.max_files.get(), 20_000);
    assert_eq!(config.drop.receipt_retention.get(), Duration::from_secs(7 * 86_400));
    assert_eq!(config.http.bind.to_string(), "127.0.0.1:8917");
    assert_eq!(config.health.max_age.as_millis(), 60_000);
    assert_eq!(config.health.file, None);
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.log.filter.as_str(), "info");
    assert_eq!(config.log.command_filter.as_str(), "warn");
}

#[test]
fn later_layers_win() {
    let folder = folder("config/staging.toml", "[sweep]\nlock_timeout = '3s'\nlock_duty = 1\n");
    let staging = ("TAILRACE_ENV", "staging");
    let file = load(folder.path(), None, &[staging]).expect("valid");
    assert_eq!(file.sweep.lock_timeout.as_millis(), 3_000);
    assert_eq!(file.sweep.lock_duty.get(), 1.0);
    let replaced = "the file stands in the place of the built-in one";
    assert_eq!(file.schedule.jitter.as_millis(), 30_000, "{replaced}");

    let variable = ("TAILRACE__SWEEP__LOCK_TIMEOUT", "4s");
    let both = load(folder.path(), None, &[staging, variable]).expect("valid");
    assert_eq!(both.sweep.lock_timeout.as_millis(), 4_000);
    assert_eq!(both.sweep.lock_duty.get(), 1.0);

    let built_in = with(&[staging]).expect("valid");
    assert_eq!(built_in.schedule.jitter.as_millis(), 5_000);
}

#[test]
fn a_file_is_found_where_it_was_said_to_be() {
    let folder = folder("etc/lake.toml", "[guard]\nmin_keep = '2h'\n");
    let min_keep = |config: Config| config.guard.min_keep.as_millis() / 3_600_000;
    let env = [("TAILRACE_ENV", "lake"), ("TAILRACE_CONFIG_DIR", "etc")];
    assert_eq!(min_keep(load(folder.path(), None, &env).expect("valid")), 2);
    assert_eq!(min_keep(load(folder.path(), Some("etc/lake.toml"), &[]).expect("valid")), 2);

    let missing = load(folder.path(), Some("etc/river.toml"), &[]).expect_err("no such file");
    assert!(missing.to_string().starts_with("cannot read the configuration file "), "{missing}");
    let missing = load(folder.path(), None, &env[..1]).expect_err("not in ./config");
    assert!(missing.to_string().starts_with("TAILRACE_ENV = \"lake\" has no file: "), "{missing}");
    assert_eq!(
        refusal(&[("TAILRACE_ENV", "../etc/passwd")]),
        "TAILRACE_ENV = \"../etc/passwd\" cannot name a file; accepted: letters, digits, - and _"
    );
}

#[test]
fn what_was_read_stands_at_the_head() {
    let folder = folder("config/lake.toml", "[guard]\nmin_keep = '2h'\n");
    let head = |file: Option<&str>, env: &[(&str, &str)]| {
        let shown = load(folder.path(), file, env).expect("valid").render_masked().to_string();
        let head: Vec<String> = shown.lines().take(5).map(str::to_owned).collect();
        assert_eq!(head[..2], ["# Read, each over those above it:", "# - the built-in default"]);
        assert_eq!(head[4], "", "{shown}");
        let inside = format!("{}/", folder.path().display());
        [head[2].replace(&inside, ""), head[3].clone()]
    };
    let (none, lake) = ("# - no variable", ("TAILRACE_ENV", "lake"));
    let built_in = "# - the built-in development.toml (TAILRACE_ENV is not set, and there is no \
                    config/development.toml)";
    assert_eq!(head(None, &[]), [built_in, none]);
    assert_eq!(head(None, &[lake]), ["# - config/lake.toml (TAILRACE_ENV is lake)", none]);
    let by_folder = "# - config/lake.toml (TAILRACE_ENV is lake, and TAILRACE_CONFIG_DIR is set)";
    assert_eq!(head(None, &[lake, ("TAILRACE_CONFIG_DIR", "config")]), [by_folder, none]);
    let secret = ("DATABASE_URL", "postgres://u:hunter2@h/db");
    let both = [secret, ("TAILRACE__SWEEP__LOCK_DUTY", "0.1")];
    let given = "# - config/lake.toml (--config)";
    let variables = "# - the variables DATABASE_URL, TAILRACE__SWEEP__LOCK_DUTY";
    assert_eq!(head(Some("config/lake.toml"), &both), [given, variables]);
    assert_eq!(head(Some("config/lake.toml"), &both[..1])[1], "# - the variable DATABASE_URL");
}

#[test]
fn database_url_yields_to_the_longer_name() {
    let short = ("DATABASE_URL", "postgres://short/db");
    let long = ("TAILRACE__DATABASE__URL", "postgres://long/db");
    let url = |env: &[(&str, &str)]| with(env).expect("valid").database.url.unwrap().to_string();
    assert_eq!(url(&[short]), "postgres://short/db");
    assert_eq!(url(&[short, long]), "postgres://long/db");
    let file = folder("a.toml", "[database]\nurl = 'postgres://file/db'\n");
    let config = load(file.path(), Some("a.toml"), &[short]).expect("valid");
    assert_eq!(config.database.url.unwrap().to_string(), "postgres://short/db");
    assert!(with(&[("DATABASE_URL", "")]).expect("valid").database.url.is_none());
}

#[test]
fn secrets_are_never_shown() {
    for url in [
        "postgres://u:hunter2@h:5433/db?sslmode=require",
        "postgres://u@h:5433/db?sslmode=require&password=hunter2",
        "postgres://u@h:5433/db?pass%77ord=hunter2&sslmode=require",
        "postgres://u@h/db?sslkey=-----BEGIN%20PRIVATE%20KEY-----hunter2",
    ] {
        let config = with(&[("DATABASE_URL", url)]).expect("valid");
        let shown = format!("{config:?} {:?} {}", config.database, config.render_masked());
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("***"), "{shown}");
    }
    for url in [
        "mysql://u:hunter2@h/db",
        "postgres://u:12#hunter2@h/db",
        "postgres://u:12?hunter2=1@h/db",
        "postgres://u:hunter2@h:port/db",
        "postgres://u:hunter2@h/db?port=none",
        "host=h password=hunter2",
    ] {
        let message = refusal(&[("DATABASE_URL", url)]);
        let start = "database.url (the variable DATABASE_URL): ";
        assert!(message.starts_with(start) && !message.contains("hunter2"), "{message}");
    }
    let message = refusal(&[("DATABASE_URL", "postgres://h/db?ssl_mode=require")]);
    let known = "it has a parameter \"ssl_mode\" that is not known; known: sslmode, sslrootcert, sslcert, sslkey, \
                 host, hostaddr, port, dbname, user, password, application_name, options, connect_timeout, \
                 target_session_attrs, channel_binding, gssencmode, keepalives, keepalives_idle, \
                 keepalives_interval, keepalives_count, tcp_user_timeout";
    assert!(message.contains(known), "{message}");
}

#[test]
fn each_secret_is_known_as_written_and_as_meant() {
    let folder = folder("password", "of file\n");
    let file = folder.path().join("password").to_string_lossy().into_owned();
    let url = "postgres://u:a%40b+c@h/db?password=d%26e&sslmode=require";
    let config = with(&[("DATABASE_URL", url), ("TAILRACE__DATABASE__PASSWORD_FILE", &file)])
        .expect("valid");
    let mut secrets = config.secrets();
    secrets.retain(|secret| Some(secret) != std::env::var("PGPASSWORD").ok().as_ref());
    assert_eq!(secrets, ["of file", "a%40b+c", "d%26e", "a@b+c", "d&e"]);
}

#[test]
fn parameters_of_libpq_work_or_say_why_not() {
    let url = "postgres://h/db?connect_timeout=3&target_session_attrs=any&channel_binding=prefer\
               &gssencmode=disable&keepalives=1&application_name=a%20b";
    let config = with(&[("DATABASE_URL", url)]).expect("valid");
    assert_eq!(config.connect_timeout().as_secs(), 3);
    assert_eq!(config.connect_options().expect("options").get_application_name(), Some("a b"));
    assert_eq!(
        with(&[("DATABASE_URL", "postgres://h/db")]).expect("valid").connect_timeout().as_secs(),
        10
    );
    for (parameter, why) in [
        ("connect_timeout=0", "connect_timeout cannot be \"0\": whole seconds from 1 to 300"),
        ("connect_timeout=301", "connect_timeout cannot be \"301\": whole seconds from 1 to 300"),
        ("target_session_attrs=read-write", "the driver connects to one host"),
        ("channel_binding=require", "the driver has none: ask for TLS by sslmode=verify-full"),
        ("gssencmode=require", "the driver has no GSSAPI: ask for TLS by sslmode=verify-full"),
        (
            "keepalives_idle=30",
            "keepalives_idle cannot be \"30\": each session has its own: leave it out",
        ),
    ] {
        let message = refusal(&[("DATABASE_URL", &format!("postgres://h/db?{parameter}"))]);
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn what_is_in_force_says_where_it_came_from_and_loads_again() {
    let config = with(&[
        ("DATABASE_URL", "postgres://u:hunter2@h:5433/db?sslmode=verify-full&sslrootcert=ca.pem"),
        ("TAILRACE__SWEEP__LOCK_DUTY", "0.5"),
    ])
    .expect("valid");
    let text = config.render_masked().to_string();
    let url = "url = \"postgres://u:***@h:5433/db?sslmode=verify-full&sslrootcert=ca.pem\"";
    for line in [
        &format!("{url} # the variable DATABASE_URL"),
        "lock_duty = 0.5 # the variable TAILRACE__SWEEP__LOCK_DUTY",
        "jitter = \"0s\" # the built-in development.toml",
        "max_files_per_commit = 8000 # the built-in default",
        "# cron is unset",
    ] {
        assert!(text.lines().any(|got| got == line), "{line} is not in\n{text}");
    }
    let folder = folder("a.toml", &text);
    let again = load(folder.path(), Some("a.toml"), &[]).expect("valid");
    assert_eq!(again.sweep.lock_duty.get(), 0.5);
    assert_eq!(again.every(), config.every());
}

#[test]
fn a_password_file_wins_over_the_url() {
    let folder = folder("password", "s3cret with a space \r\n");
    let file = folder.path().join("password").display().to_string();
    let url = ("DATABASE_URL", "postgres://u:other@h/db?sslmode=require");
    let config = with(&[url, ("TAILRACE__DATABASE__PASSWORD_FILE", &file)]).expect("valid");
    let options = config.connect_options().expect("complete");
    assert_eq!(options.get_username(), "u");
    assert_eq!(options.get_database(), Some("db"));
    assert_eq!(options.get_application_name(), Some("tailrace"));
    assert!(matches!(options.get_ssl_mode(), sqlx::postgres::PgSslMode::Require));
    assert_eq!(options.to_url_lossy().password(), Some("s3cret%20with%20a%20space%20"));

    std::fs::write(&file, "\n").expect("written");
    let message = config.connect_options().expect_err("empty").to_string();
    assert_eq!(message, format!("cannot use database.password_file {file}: it is empty"));
}

#[test]
fn a_cron_waits_as_long_as_its_longest_pause() {
    let now = "2026-09-17T00:00:00Z".parse().expect("a time");
    for (cron, hours) in [("0 0 * * * *", 1), ("0 30 4 * * Mon-Fri", 72)] {
        let cron: Cron = cron.parse().expect("valid");
        let expected = Some(Duration::from_secs(hours * 3600));
        assert_eq!(cron.longest_distance(now), expected, "{cron}");
    }
}
