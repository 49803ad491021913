//! A Python environment with the published client, created once and kept in the build's folder.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::process::Command;

/// What the newest client asks for.
const OLDEST_PYTHON: (u32, u32) = (3, 12);

/// The longest that downloading may take, and that the checks may.
const PATIENCE: Duration = Duration::from_secs(300);

/// Where this is set, a client that cannot be had is a failure: for machines that must have it.
const REQUIRED: &str = "TAILRACE_TEST_PYTHON_REQUIRED";

/// A virtual environment with the newest client, and an older one beside it.
pub struct Environment {
    folder: PathBuf,
    newest: String,
}

/// Whether there is one.
pub enum Found {
    There(Environment),
    /// And why not.
    CannotBeHad(String),
}

impl Environment {
    /// Finds the environment, or makes it: that takes an interpreter and a package registry, as
    /// pip finds it by its own configuration.
    pub async fn find(newest: &str, older: &str) -> Result<Found> {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pyhoglake-{newest}-and-{older}"));
        let mut lock = folder.clone().into_os_string();
        lock.push(".lock");
        let lock = File::create(lock)?;
        // Held by one test, or one run of the tests, at a time; it goes with the file.
        let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await??;
        let environment = Environment { folder, newest: newest.to_owned() };
        let made = environment.make(older).await;
        drop(lock);
        match made {
            Ok(()) => Ok(Found::There(environment)),
            Err(reason) if std::env::var_os(REQUIRED).is_some() => Err(reason),
            Err(reason) => Ok(Found::CannotBeHad(format!("{reason:#}"))),
        }
    }

    async fn make(&self, older: &str) -> Result<()> {
        let complete = self.folder.join("complete");
        if complete.exists() {
            return Ok(());
        }
        let python = interpreter().await?;
        if self.folder.exists() {
            std::fs::remove_dir_all(&self.folder)?;
        }
        ran(Command::new(python).args(["-m", "venv"]).arg(&self.folder)).await?;
        let newest = format!("pyhoglake=={}", self.newest);
        ran(self.pip().arg(newest)).await?;
        let beside = self.older(older);
        let older = format!("pyhoglake=={older}");
        ran(self.pip().arg("--no-deps").arg("--target").arg(beside).arg(older)).await?;
        Ok(File::create(complete).map(drop)?)
    }

    /// Runs the checks through this version of the client, and returns what they told.
    pub async fn run(&self, version: &str, scenario: &Path) -> Result<String> {
        let checks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/client_test.py");
        let mut command = Command::new(self.python());
        // -B: nothing is written beside the sources.
        command.arg("-B").arg(checks).arg(scenario);
        if version != self.newest {
            command.env("PYTHONPATH", self.older(version));
        }
        let output = output(&mut command).await?;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{told}");
        Ok(told)
    }

    fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    fn older(&self, version: &str) -> PathBuf {
        self.folder.join(format!("pyhoglake-{version}"))
    }

    fn pip(&self) -> Command {
        let mut command = Command::new(self.python());
        command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        // What has to be compiled first is not to be had here; nor is a registry that is far away.
        command.args(["--only-binary", ":all:", "--retries", "1", "--timeout", "20"]);
        command
    }
}

/// Says that the checks did not run, where everybody sees it: the standard library's macros would
/// be heard of a test that fails only.
pub fn note_not_run(reason: &str) -> Result<()> {
    let text = format!("NOT RUN: the checks of tests/python, through pyhoglake: {reason}\n");
    Ok(std::io::stderr().write_all(text.as_bytes())?)
}

/// An interpreter that is new enough, by the names that it usually has.
async fn interpreter() -> Result<PathBuf> {
    let mut candidates: Vec<PathBuf> =
        ["python3.12", "python3.13", "python3.14", "python3"].map(PathBuf::from).into();
    candidates.extend(of_pyenv());
    for candidate in candidates {
        if version(&candidate).await.is_some_and(|version| version >= OLDEST_PYTHON) {
            return Ok(candidate);
        }
    }
    let (major, minor) = OLDEST_PYTHON;
    bail!("no Python of {major}.{minor} or newer was found")
}

/// Those that pyenv keeps, which are not on the path unless they are chosen.
fn of_pyenv() -> Vec<PathBuf> {
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME").filter(|home: &OsString| !home.is_empty())?;
        Some(PathBuf::from(home).join(".pyenv"))
    });
    let versions = root.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    let mut found: Vec<PathBuf> = versions
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin/python3"))
        .collect();
    found.sort();
    found
}

/// The version of an interpreter that can make virtual environments.
async fn version(python: &Path) -> Option<(u32, u32)> {
    let ask = "import ensurepip, sys, venv; print(*sys.version_info[:2])";
    let output = output(Command::new(python).args(["-c", ask])).await.ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

async fn ran(command: &mut Command) -> Result<()> {
    let output = output(command).await?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", told.trim());
    Ok(())
}

async fn output(command: &mut Command) -> Result<Output> {
    let running = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    let ended = tokio::time::timeout(PATIENCE, running).await;
    ended
        .with_context(|| format!("{name} takes more than {PATIENCE:?}"))?
        .with_context(|| format!("{name} cannot be run"))
}
