//! Checks the settings in `deploy/` and in the image: each must exist, and they must fit each
//! other.

use super::*;

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(path).expect("a file of this repository")
}

/// The value behind `key` in a file of `key<separator>value` lines.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let found = text.lines().find_map(|line| line.trim().strip_prefix(key));
    found.unwrap_or_else(|| panic!("no {key}")).trim()
}

/// The file that the ConfigMap carries.
fn config_map() -> Config {
    let manifest = text("deploy/kubernetes/tailrace.yaml");
    let (_, rest) = manifest.split_once("production.toml: |\n").expect("it carries one");
    let block: Vec<&str> =
        rest.lines().take_while(|line| line.is_empty() || line.starts_with("    ")).collect();
    let folder = folder("production.toml", &block.join("\n"));
    load(folder.path(), Some("production.toml"), &[]).expect("it is valid")
}

#[test]
fn every_variable_that_they_set_exists() {
    let known: Vec<String> = KEYS.iter().map(Key::variable).collect();
    for file in ["Dockerfile", "deploy/systemd/tailrace.service", "deploy/kubernetes/tailrace.yaml"]
    {
        let text = text(file);
        let names = text.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        let ours: Vec<&str> = names.filter(|name| name.starts_with("TAILRACE__")).collect();
        assert!(ours.contains(&"TAILRACE__HEALTH__FILE"), "{file}");
        for name in ours {
            assert!(known.iter().any(|known| known == name), "{file} sets {name}");
        }
    }
}

/// In release builds too, an arithmetic overflow ends the task instead of giving a wrong number.
#[test]
fn release_builds_check_overflow() {
    let manifest: toml::Table = text("Cargo.toml").parse().expect("TOML");
    let release = manifest.get("profile").and_then(|profiles| profiles.get("release"));
    let checks = release.and_then(|release| release.get("overflow-checks"));
    assert_eq!(checks.and_then(toml::Value::as_bool), Some(true));
}

/// Without `ExecReload=`, `systemctl reload` would fail, and operators would have to send the signal themselves.
#[test]
fn the_unit_is_reloaded_by_the_signal_that_the_daemon_heeds() {
    let unit = text("deploy/systemd/tailrace.service");
    assert_eq!(value(&unit, "ExecReload="), "/bin/kill -HUP $MAINPID");
}

#[test]
fn supervisors_wait_longer_than_the_grace() {
    let unit = text("deploy/systemd/tailrace.service");
    let manifest = text("deploy/kubernetes/tailrace.yaml");
    let wait = humantime::parse_duration(value(&unit, "TimeoutStopSec=")).expect("a length");
    assert!(wait > with(&[]).expect("valid").shutdown.grace.get());
    let wait: u64 = value(&manifest, "terminationGracePeriodSeconds:").parse().expect("a number");
    assert!(Duration::from_secs(wait) > config_map().shutdown.grace.get());
}

#[test]
fn the_config_map_is_a_configuration_and_holds_no_password() {
    let config = config_map();
    let url = config.database.url.expect("it says where the database is");
    assert!(!url.to_string().contains("***"), "{url}");
    let file = config.database.password_file.expect("from the secret");
    let mount = text("deploy/kubernetes/tailrace.yaml");
    let folder = file.parent().expect("a folder").display().to_string();
    assert!(mount.contains(&format!("mountPath: {folder}\n")), "{folder} is mounted");
}
