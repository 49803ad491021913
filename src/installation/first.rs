//! Sets up a first installation, as the owner of hoglake's tables: the role that tailrace connects
//! as, the schema `tailrace`, and the role's rights.

use anyhow::{Context, ensure};
use serde::Serialize;
use sqlx::AssertSqlSafe;

use super::rights::{Purpose, as_identifier, statements};
use super::{Migrated, ensure_catalog, migrate, version};
use crate::catalog::connect::{Access, Database, close};
use crate::catalog::errors::Failure;
use crate::catalog::session::Session;

/// What is there before anything is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// The version of Postgres.
    pub postgres: String,
    /// Whether the role exists.
    pub has_role: bool,
    /// Whether the role may log in, if it exists.
    pub can_log_in: bool,
}

/// What [`set_up`] did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetUp {
    /// Whether the role was created; it has no password then.
    pub role_created: bool,
    /// The migrations that were applied.
    pub migrated: Migrated,
    /// How many statements gave rights.
    pub grants: usize,
    /// The statements that were left out, because this server does not have their tables.
    pub left_out: Vec<String>,
}

/// Looks at what is there. Writes nothing.
///
/// # Errors
/// No hoglake catalog in the configured schema; the session's role does not own its tables; or as those of
/// [`Database::unchecked`].
pub async fn look(database: &Database, role: &str) -> anyhow::Result<Before> {
    let mut session = database.unchecked(Access::ReadOnly).await?;
    let found = look_in(&mut session, &database.schema, role).await;
    close(session).await;
    found
}

async fn look_in(session: &mut Session, schema: &str, role: &str) -> anyhow::Result<Before> {
    ensure_catalog(session, schema).await?;
    let found = sqlx::query!(
        r#"select pg_catalog.current_setting('server_version') as "postgres!",
                  r.rolname is not null as "has_role!",
                  coalesce(r.rolcanlogin, false) as "can_log_in!",
                  current_user::text as "user!", o.rolname::text as "owner!",
                  pg_catalog.pg_has_role(t.relowner, 'USAGE') as "owns!"
             from pg_catalog.pg_class t
             join pg_catalog.pg_namespace n on n.oid = t.relnamespace
             join pg_catalog.pg_roles o on o.oid = t.relowner
             left join pg_catalog.pg_roles r on r.rolname = $1
            where n.nspname = $2 and t.relname = 'hog_catalog'"#,
        role,
        schema
    )
    .fetch_one(session)
    .await?;
    ensure!(
        found.owns,
        "the role {} does not own hoglake's tables: name their owner, {}, in --owner-url, or a member of it",
        found.user,
        found.owner
    );
    let (has_role, can_log_in) = (found.has_role, found.can_log_in);
    Ok(Before { postgres: found.postgres, has_role, can_log_in })
}

/// What [`set_up`] runs, for whoever is asked before or runs it by hand.
pub fn described(before: &Before, schema: &str, role: &str) -> Vec<String> {
    let migrations =
        format!("-- tailrace migrate: the schema tailrace, up to version {}", version());
    let grants = Purpose::ALL.iter().flat_map(|purpose| statements(*purpose, schema, role));
    set_role(before, role).into_iter().chain([migrations]).chain(grants).collect()
}

/// The statement that lets tailrace log in as the role; `None` if it can already.
fn set_role(before: &Before, role: &str) -> Option<String> {
    let role = as_identifier(role);
    match (before.has_role, before.can_log_in) {
        (false, _) => Some(format!("create role {role} login;")),
        (true, false) => Some(format!("alter role {role} login;")),
        (true, true) => None,
    }
}

/// Creates the role where there is none, migrates the schema `tailrace`, and gives the role its rights.
/// Each is committed separately: a step that fails leaves the earlier ones in place, and all of them can
/// be run again.
///
/// # Errors
/// As those of [`migrate`]; or the owner may not create the role, or give the rights.
pub async fn set_up(database: &Database, before: &Before, role: &str) -> anyhow::Result<SetUp> {
    let mut session = database.unchecked(Access::ReadWrite).await?;
    let set_up = async {
        let role_statement = set_role(before, role);
        if let Some(statement) = &role_statement {
            run(&mut session, statement.clone()).await.with_context(|| {
                format!(
                    "the role {role} could not be set up: as a role that has CREATEROLE run \
                     {statement:?}, then run this again"
                )
            })?;
        }
        // Of what was committed only the role is not obvious from the error of a later step.
        let after_role = |error: anyhow::Error| match &role_statement {
            Some(statement) => error.context(format!(
                "{statement:?} was run, and a later step failed: repair it, then run this again"
            )),
            None => error,
        };
        let migrated = migrate(database).await.map_err(after_role)?;
        let (mut grants, mut left_out) = (0, Vec::new());
        for purpose in Purpose::ALL {
            for statement in statements(purpose, &database.schema, role) {
                match run(&mut session, statement.clone()).await {
                    Ok(()) => grants += 1,
                    // An older server lacks some tables.
                    Err(error) if Failure::of(&error) == Failure::MissingObject => {
                        left_out.push(statement);
                    }
                    Err(error) => {
                        let failed = format!("a right could not be given by {statement:?}");
                        return Err(after_role(anyhow::Error::new(error).context(failed)));
                    }
                }
            }
        }
        Ok(SetUp { role_created: !before.has_role, migrated, grants, left_out })
    };
    let set_up = set_up.await;
    close(session).await;
    set_up
}

/// Runs a statement of ours, in which names are quoted.
async fn run(session: &mut Session, statement: String) -> sqlx::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(session).await.map(|_| ())
}
