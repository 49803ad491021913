//! Describes the machine on which the figures were measured.

use std::process::Command;

/// A name and what there is of it, line by line.
pub fn describe(postgres: &str) -> Vec<(&'static str, String)> {
    vec![
        ("processor", processor()),
        ("cores", std::thread::available_parallelism().map_or(0, usize::from).to_string()),
        ("memory", memory()),
        ("kernel", file("/proc/sys/kernel/osrelease")),
        ("load before the run", load()),
        ("Postgres", postgres.to_owned()),
        ("Rust", first_line(Command::new("rustc").arg("--version"))),
        ("tailrace", format!("{}, {}", env!("CARGO_PKG_VERSION"), revision())),
        ("date", chrono::Utc::now().format("%Y-%m-%d %H:%M UTC").to_string()),
    ]
}

/// Other work on the machine, as the mean number of runnable tasks of the last minute.
pub fn load() -> String {
    file("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned()
}

fn revision() -> String {
    let revision = first_line(Command::new("git").args(["rev-parse", "--short=10", "HEAD"]));
    let changed = first_line(Command::new("git").args(["status", "--porcelain", "--", "src"]));
    let changed = if changed == UNKNOWN { "" } else { " with changes" };
    format!("revision {revision}{changed}")
}

const UNKNOWN: &str = "unknown";

fn processor() -> String {
    named_line("/proc/cpuinfo", "model name")
}

fn memory() -> String {
    let kib = named_line("/proc/meminfo", "MemTotal");
    let kib = kib.split(' ').next().and_then(|number| number.parse::<f64>().ok());
    kib.map_or(UNKNOWN.to_owned(), |kib| format!("{:.1} GiB", kib / 1024.0 / 1024.0))
}

/// What follows a name and a colon in a file of the kernel's.
fn named_line(path: &str, name: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .find(|(found, _)| found.trim() == name)
        .map_or(UNKNOWN.to_owned(), |(_, value)| value.trim().to_owned())
}

fn file(path: &str) -> String {
    std::fs::read_to_string(path).map_or(UNKNOWN.to_owned(), |text| text.trim().to_owned())
}

fn first_line(command: &mut Command) -> String {
    let output = command.output().ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.as_deref().and_then(|text| text.lines().next()).unwrap_or(UNKNOWN).to_owned()
}
