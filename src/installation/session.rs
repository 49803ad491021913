//! Sessions that are checked when they are opened. A session is refused where the database's ledger
//! of migrations or its server is unknown to this program, or where the rows of tailrace are about
//! the catalog in another schema.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex, PoisonError};

use sqlx::postgres::PgRow;
use sqlx::{Column, Row};

use super::migrator;
use crate::catalog::connect::{Access, Database, close};
use crate::catalog::errors::Failure;
use crate::catalog::pooler::{SharedSession, ask};
use crate::catalog::server::{self, Misfit, ServerTables};
use crate::catalog::session::Session;
use crate::events;

/// Why this program cannot work with a database: its schema `tailrace` is not this program's, it has
/// unsuitable server tables, or the session is shared with other clients.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A migration that this program needs was not applied.
    #[error(
        "the database's schema tailrace is not there or older than this program: run `tailrace migrate`"
    )]
    Older,
    /// A migration was applied that this program does not know.
    #[error(
        "the database's schema tailrace is newer than this program (migration {0}): \
         upgrade tailrace here too"
    )]
    Newer(i64),
    /// A migration of this number was applied, and it was another one.
    #[error(
        "migration {0} was applied by another build of tailrace and differs from this one's: \
         use a released version"
    )]
    OtherBuild(i64),
    /// The tables of tailrace exist, and record no schema of a catalog.
    #[error("the database's schema tailrace was never set up: run `tailrace migrate`")]
    NeverSetUp,
    /// The session is shared with other clients.
    #[error(transparent)]
    Shared(#[from] SharedSession),
    /// The server is too old, or newer in a way that matters.
    #[error(transparent)]
    Server(#[from] Misfit),
    /// The rows of tailrace are about the catalog in another schema.
    #[error(
        "tailrace was set up in this database for the catalog in schema {recorded:?}, and \
         database.schema says {configured:?}: set it back, for policies and history belong to \
         that catalog"
    )]
    OtherSchema {
        /// The schema that the rows of tailrace are about.
        recorded: String,
        /// The schema that the configuration names.
        configured: String,
    },
}

impl Database {
    /// Opens a session for work on the catalog's schema. Checks that this program can work with the
    /// server's tables, and that the schema `tailrace` is there, has this program's migrations, and is
    /// about that catalog. [`Database::unchecked`] says how a session is set up. The check needs no extra
    /// round trip.
    ///
    /// # Errors
    /// [`Unfit`], or as the driver reports it ([`sqlx::Error`]; see [`Failure`]).
    pub async fn session(&self) -> anyhow::Result<Session> {
        self.checked(Access::ReadWrite).await
    }

    /// As [`Self::session`], but unable to write anything.
    ///
    /// # Errors
    /// As there.
    pub async fn read_only_session(&self) -> anyhow::Result<Session> {
        self.checked(Access::ReadOnly).await
    }

    /// Runs work in a session of its own, opened as [`Self::session`] or [`Self::read_only_session`] does,
    /// and closes the session in an orderly way, however the work ended.
    ///
    /// # Errors
    /// As there, or the work's own.
    pub async fn in_session<T>(
        &self,
        access: Access,
        work: impl AsyncFnOnce(&mut Session) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut session = self.checked(access).await?;
        let done = work(&mut session).await;
        close(session).await;
        done
    }

    async fn checked(&self, access: Access) -> anyhow::Result<Session> {
        let (connection, rows) = match self.open(access, &QUESTION).await.map_err(unanswered) {
            Ok(opened) => opened,
            // On a server that is refused nobody can migrate: that comes first.
            Err(error) if matches!(error.downcast_ref(), Some(Unfit::Older)) => {
                return Err(self.refused_server().await.map_or(error, Into::into));
            }
            Err(error) => return Err(error),
        };
        let installed = Installed::read(&rows)?;
        if let Err(unfit) = installed.fits(&self.schema) {
            close(connection).await;
            return Err(unfit.into());
        }
        log_unknown(&installed.server);
        Ok(connection)
    }

    /// Why this program cannot work with the server's tables, whether or not tailrace is installed.
    /// `None` where it can, or where the database cannot be asked.
    pub async fn refused_server(&self) -> Option<Unfit> {
        let (connection, rows) = self.open(Access::ReadOnly, &server::QUESTION).await.ok()?;
        close(connection).await;
        Installed::read(&rows).ok()?.server.fits().err().map(Unfit::Server)
    }
}

/// Warns of columns of the server that tailrace does not know, once in the life of the process for the
/// same ones.
fn log_unknown(server: &ServerTables) {
    static TOLD: Mutex<BTreeSet<Vec<String>>> = Mutex::new(BTreeSet::new());
    let unknown = server.unknown();
    if unknown.is_empty() {
        return;
    }
    let columns = unknown.join(", ");
    if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(unknown) {
        tracing::warn!(
            event = events::SERVER_UNKNOWN,
            columns,
            "The hoglake server has columns that this tailrace does not know; what it needs is there"
        );
    }
}

/// Checks an open session as [`Database::session`] does. Only reads; one round trip.
///
/// # Errors
/// As there.
pub async fn check(connection: &mut Session, schema: &str) -> anyhow::Result<()> {
    let rows = ask(connection, &QUESTION).await.map_err(unanswered)?;
    Ok(Installed::read(&rows)?.fits(schema)?)
}

/// As [`check`], but only of the schema `tailrace`.
///
/// # Errors
/// As there.
pub async fn check_ours(connection: &mut Session, schema: &str) -> anyhow::Result<()> {
    let rows = ask(connection, OURS).await.map_err(unanswered)?;
    Ok(Installed::read(&rows)?.ours_fits(schema)?)
}

/// What was applied, and for which schema: a row for each migration, and one for the schema.
const OURS: &str = "select m.version, m.checksum, null::pg_catalog.text as catalog_schema \
    from tailrace.schema_migration m where m.success \
    union all \
    select null, null, i.catalog_schema from tailrace.installation i";

/// What the server's tables are, and what is installed of ours.
static QUESTION: LazyLock<String> = LazyLock::new(|| format!("{}; {OURS}", *server::QUESTION));

/// An error of [`QUESTION`]: without our tables nothing is installed.
fn unanswered(error: anyhow::Error) -> anyhow::Error {
    if let Some(shared) = error.downcast_ref::<SharedSession>() {
        return Unfit::Shared(*shared).into();
    }
    match error.downcast_ref::<sqlx::Error>().map(Failure::of) {
        Some(Failure::MissingObject) => Unfit::Older.into(),
        _ => error,
    }
}

/// What is installed in a database.
#[derive(Debug, Default)]
struct Installed {
    server: ServerTables,
    /// The checksums of the migrations, by version.
    applied: BTreeMap<i64, Vec<u8>>,
    /// The schema of the catalog that our rows are about.
    catalog_schema: Option<String>,
}

impl Installed {
    fn read(rows: &[PgRow]) -> sqlx::Result<Self> {
        let mut installed = Installed::default();
        for row in rows {
            if row.columns().first().is_some_and(|first| first.name() == server::FIRST_COLUMN) {
                installed.server.add(row)?;
                continue;
            }
            if let (Some(version), Some(checksum)) = (row.try_get(0)?, row.try_get(1)?) {
                installed.applied.insert(version, checksum);
            }
            if let Some(schema) = row.try_get(2)? {
                installed.catalog_schema = Some(schema);
            }
        }
        Ok(installed)
    }

    fn fits(&self, schema: &str) -> Result<(), Unfit> {
        self.server.fits()?;
        self.ours_fits(schema)
    }

    fn ours_fits(&self, schema: &str) -> Result<(), Unfit> {
        let migrator = migrator();
        for migration in migrator.iter() {
            match self.applied.get(&migration.version) {
                None => return Err(Unfit::Older),
                Some(checksum) if *checksum != *migration.checksum => {
                    return Err(Unfit::OtherBuild(migration.version));
                }
                Some(_) => {}
            }
        }
        let newer = self.applied.keys().find(|version| !migrator.version_exists(**version));
        if let Some(newer) = newer {
            return Err(Unfit::Newer(*newer));
        }
        same_schema(self.catalog_schema.as_deref(), schema)
    }
}

/// Whether our rows are about the catalog in this schema.
pub(super) fn same_schema(recorded: Option<&str>, configured: &str) -> Result<(), Unfit> {
    match recorded {
        None => Err(Unfit::NeverSetUp),
        Some(recorded) if recorded == configured => Ok(()),
        Some(recorded) => Err(Unfit::OtherSchema {
            recorded: recorded.to_owned(),
            configured: configured.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn installed() -> Installed {
        let applied = migrator().iter().map(|one| (one.version, one.checksum.to_vec())).collect();
        Installed { applied, catalog_schema: Some("hog".to_owned()), ..Installed::default() }
    }

    /// Where the code opens a session by itself, or one that is not checked.
    fn unchecked_in(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("src can be read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                unchecked_in(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let opens = [".unchecked(", ".open(Access::", ".connect()", "connect_with("];
            if opens.iter().any(|words| text.contains(words)) {
                let root = concat!(env!("CARGO_MANIFEST_DIR"), "/src/");
                let name = path.to_string_lossy();
                found.insert(name.strip_prefix(root).unwrap_or(&name).to_owned());
            }
        }
    }

    /// What works on a catalog goes through the check: whoever does not is listed here.
    #[test]
    fn nobody_else_opens_a_session_that_is_not_checked() {
        let mut found = BTreeSet::new();
        unchecked_in(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut found);
        let known = [
            "catalog/pooler.rs",
            "doctor/examine.rs",
            "doctor/versions.rs",
            "http/sessions.rs",
            // Migrates.
            "installation.rs",
            "installation/first.rs",
            // This test's words.
            "installation/session.rs",
        ];
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), known);
    }

    #[test]
    fn what_fits_and_what_does_not() {
        let newest = crate::installation::version();
        let with = |change: &dyn Fn(&mut Installed)| {
            let mut installed = installed();
            change(&mut installed);
            installed.fits("hog")
        };
        assert_eq!(with(&|_| {}), Ok(()));
        assert_eq!(Installed::default().fits("hog"), Err(Unfit::Older));
        let last_is_missing = |of: &mut Installed| drop(of.applied.remove(&newest));
        assert_eq!(with(&last_is_missing), Err(Unfit::Older));
        let one_more = |of: &mut Installed| drop(of.applied.insert(newest + 1, vec![1]));
        assert_eq!(with(&one_more), Err(Unfit::Newer(newest + 1)));
        let another = |of: &mut Installed| drop(of.applied.insert(2, vec![1]));
        assert_eq!(with(&another), Err(Unfit::OtherBuild(2)));
        assert_eq!(with(&|of| of.catalog_schema = None), Err(Unfit::NeverSetUp));
        let elsewhere =
            Err(Unfit::OtherSchema { recorded: "public".to_owned(), configured: "hog".to_owned() });
        assert_eq!(with(&|of| of.catalog_schema = Some("public".to_owned())), elsewhere);
        // Names are compared as they are: no folding of case.
        assert!(with(&|of| of.catalog_schema = Some("Hog".to_owned())).is_err());
    }
}
