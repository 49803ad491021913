//! Who may create objects in the schemas that our sessions look into.

use crate::catalog::session::Session;

/// A role that may create in a schema though it owns neither that nor the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Creator {
    pub schema: String,
    /// The role; `None` for PUBLIC, which is every role.
    pub role: Option<String>,
}

/// Every such grant on the catalog's schema and on ours, in this order. Left out are the owner of the
/// schema and that of `hog_catalog`, superusers, and the role of the session.
pub async fn creators(
    connection: &mut Session,
    catalog_schema: &str,
) -> sqlx::Result<Vec<Creator>> {
    sqlx::query_as!(
        Creator,
        r#"select n.nspname::text as "schema!", r.rolname::text as "role?"
           from pg_catalog.pg_namespace n
           cross join lateral pg_catalog.aclexplode(
             coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner))) as a
           left join pg_catalog.pg_roles r on r.oid = a.grantee
           where n.nspname in ($1, 'tailrace') and a.privilege_type = 'CREATE'
             and a.grantee <> n.nspowner
             and (r.oid is null or not r.rolsuper and r.rolname <> current_user)
             and not exists (
               select from pg_catalog.pg_class c
               join pg_catalog.pg_namespace k on k.oid = c.relnamespace
               where k.nspname = $1 and c.relname = 'hog_catalog' and c.relowner = a.grantee)
           group by n.nspname, r.rolname
           order by n.nspname = 'tailrace', r.rolname nulls first"#,
        catalog_schema
    )
    .fetch_all(connection)
    .await
}
