//! Refuses objects of other roles in the schemas where tailrace creates objects or looks them up.

use anyhow::bail;

use super::rights::as_identifier;
use crate::catalog::inventory::owners::{self, Foreign};
use crate::catalog::session::Session;

/// The newest migration that calls functions by bare names, under a path on which the catalog's
/// schema is the first.
const BARE_NAMES_THROUGH: i64 = 4;

/// The object as ALTER and DROP take it.
pub fn in_sql(foreign: &Foreign) -> String {
    let within = foreign.schema.iter().map(|schema| as_identifier(schema) + ".");
    let arguments = foreign.arguments.iter().cloned();
    let name = within.chain([as_identifier(&foreign.name)]).chain(arguments).collect::<String>();
    format!("{} {name}", foreign.kind)
}

/// Checks that the schema `tailrace` and all tables and functions in it belong to a trusted role: the
/// session's role, a role that it is a member of, a superuser, or the owner of the catalog or of its
/// schema. Another role may have created tables, triggers and functions there that tailrace would then
/// use.
///
/// A role that can create nothing is not refused, because it only reads what another role has
/// migrated; `tailrace doctor` reports this. Nothing in the schema is touched here.
///
/// # Errors
/// In words, with the owner and what to do.
pub async fn refuse_foreign_owner(
    connection: &mut Session,
    catalog_schema: &str,
) -> anyhow::Result<()> {
    let role = sqlx::query!(
        r#"select current_user::text as "name!",
                  pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')
                  or pg_catalog.has_schema_privilege(n.oid, 'CREATE') as "may_create!"
           from pg_catalog.pg_namespace n where n.nspname = 'tailrace'"#
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(role) = role else { return Ok(()) };
    if !role.may_create {
        return Ok(());
    }
    let foreign = owners::foreign(connection, catalog_schema).await?;
    let Some(first) = foreign.iter().find(|foreign| foreign.is_ours()) else { return Ok(()) };
    let (object, owner) = (in_sql(first), as_identifier(&first.owner));
    bail!(
        "the {object} belongs to the role {owner}, and tailrace would work with whatever that role \
         puts there: drop it (`drop {object} cascade;`) if tailrace did not make it; else give it to \
         the role that migrates, as a superuser (`alter {object} owner to {};`), or migrate as \
         {owner} or as a member of it",
        as_identifier(&role.name)
    )
}

/// Checks that the SQL of the migrations from `first` on calls no function in the catalog's schema.
///
/// These migrations cannot be changed any more. Of their calls by a bare name only
/// `quote_ident(current_schema())` is at risk: its argument is of type `name`, and `pg_catalog` has
/// no function with exactly this argument type.
///
/// # Errors
/// In words, with the function and its owner.
pub async fn refuse_overloads(
    connection: &mut Session,
    catalog_schema: &str,
    first: i64,
) -> anyhow::Result<()> {
    if first > BARE_NAMES_THROUGH {
        return Ok(());
    }
    let found = sqlx::query!(
        r#"select p.oid::regprocedure::text as "function!", r.rolname::text as "owner!",
                  case p.prokind when 'a' then 'aggregate' when 'p' then 'procedure'
                                 else 'function' end as "kind!"
           from pg_catalog.pg_proc p
           join pg_catalog.pg_namespace n on n.oid = p.pronamespace
           join pg_catalog.pg_roles r on r.oid = p.proowner
           where n.nspname = $1 and p.proname = 'quote_ident'
             and p.proargtypes[0] in ('name'::regtype::oid, 'name[]'::regtype::oid)
           order by 1 limit 1"#,
        catalog_schema
    )
    .fetch_optional(connection)
    .await?;
    let Some(found) = found else { return Ok(()) };
    bail!(
        "the {} {} of the role {} in the catalog's schema would be called by the migrations of \
         tailrace in place of Postgres' own: drop it, or rename it until tailrace is migrated",
        found.kind,
        found.function,
        as_identifier(&found.owner)
    )
}
