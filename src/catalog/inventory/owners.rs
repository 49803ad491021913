//! The owners of the objects that tailrace works with.

use crate::catalog::session::Session;

/// An object of a role that has no business there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// As `alter` and `drop` name it: `schema`, `table`, `view`, `function`, ...
    pub kind: String,
    /// The schema that it is in; `None` for one itself.
    pub schema: Option<String>,
    pub name: String,
    /// The arguments of a function, in brackets.
    pub arguments: Option<String>,
    /// The role that owns it.
    pub owner: String,
}

impl Foreign {
    /// Whether it is the schema `tailrace`, or in it.
    pub fn is_ours(&self) -> bool {
        self.schema.as_deref().unwrap_or(&self.name) == "tailrace"
    }
}

/// The objects that belong to others than those whom we have to trust: first the schema `tailrace`
/// and the tables and functions in it, then what has the name of a table of the server's in the
/// catalog's schema.
///
/// Trusted are superusers and whoever is, or is a member of, the owner of `hog_catalog` or of its
/// schema: they may destroy the catalog's data anyhow. With ours also the role of the session and
/// the roles that it is a member of. These are read from the list of memberships: to a superuser
/// the server says that it is a member of every role.
pub async fn foreign(connection: &mut Session, catalog_schema: &str) -> sqlx::Result<Vec<Foreign>> {
    sqlx::query_as!(
        Foreign,
        r#"with recursive own (oid) as (
             select r.oid from pg_catalog.pg_roles r where r.rolname = current_user
             union
             select m.roleid from pg_catalog.pg_auth_members m join own o on o.oid = m.member
           ),
           catalog as materialized (
             select c.oid, c.relowner, n.oid as schema_oid, n.nspowner
             from pg_catalog.pg_class c
             join pg_catalog.pg_namespace n on n.oid = c.relnamespace
             where n.nspname = $1 and c.relname = 'hog_catalog'
           ),
           object as (
             select 1 as place, 'schema' as kind, null::text as schema, n.nspname::text as name,
                    null::text as arguments, n.nspowner as owner
             from pg_catalog.pg_namespace n where n.nspname = 'tailrace'
             union all
             select case n.nspname when 'tailrace' then 2 else 4 end,
                    case c.relkind when 'v' then 'view' when 'm' then 'materialized view'
                                   when 'S' then 'sequence' when 'f' then 'foreign table'
                                   else 'table' end,
                    n.nspname::text, c.relname::text, null, c.relowner
             from pg_catalog.pg_class c
             join pg_catalog.pg_namespace n on n.oid = c.relnamespace
             where c.relkind in ('r', 'p', 'v', 'm', 'S', 'f')
               and (n.nspname = 'tailrace' or n.nspname = $1 and c.relname like 'hog\_%'::text)
             union all
             select 3, case p.prokind when 'a' then 'aggregate' when 'p' then 'procedure'
                                      else 'function' end,
                    n.nspname::text, p.proname::text,
                    '('::text || pg_catalog.pg_get_function_identity_arguments(p.oid) || ')'::text,
                    p.proowner
             from pg_catalog.pg_proc p
             join pg_catalog.pg_namespace n on n.oid = p.pronamespace
             where n.nspname = 'tailrace'
           )
           select o.kind as "kind!", o.schema, o.name as "name!", o.arguments,
                  r.rolname::text as "owner!"
           from object o
           join pg_catalog.pg_roles r on r.oid = o.owner
           cross join catalog c
           where not pg_catalog.pg_has_role(o.owner, c.relowner, 'MEMBER')
             and not pg_catalog.pg_has_role(o.owner, c.nspowner, 'MEMBER')
             and (o.place = 4 or not exists (select from own where own.oid = o.owner))
           order by o.place, o.name, o.arguments"#,
        catalog_schema
    )
    .fetch_all(connection)
    .await
}

/// Whether the server has this table: one of the catalog's schema that belongs to whom `hog_catalog`
/// belongs, or to a member of that role. A table of that name which somebody else made there is none
/// of the server's, and must not be touched: what is written into it runs its owner's triggers.
pub async fn server_has_table(connection: &mut Session, name: &str) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (
             select from pg_catalog.pg_class t
             join pg_catalog.pg_class c
               on c.relnamespace = t.relnamespace
              and c.oid = pg_catalog.to_regclass('hog_catalog')::oid
             join pg_catalog.pg_namespace n on n.oid = t.relnamespace
             where t.oid = pg_catalog.to_regclass($1)::oid and t.relkind in ('r', 'p')
               and (pg_catalog.pg_has_role(t.relowner, c.relowner, 'MEMBER')
                    or pg_catalog.pg_has_role(t.relowner, n.nspowner, 'MEMBER'))
           ) as "there!""#,
        name
    )
    .fetch_one(connection)
    .await
}

/// Whether this index is there and can be read, on this table of the server's. One that somebody
/// else made by that name, on a table of their own, is another.
pub async fn server_has_index(
    connection: &mut Session,
    table: &str,
    name: &str,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (
             select from pg_catalog.pg_index i
             where i.indexrelid = pg_catalog.to_regclass($2)::oid
               and i.indrelid = pg_catalog.to_regclass($1)::oid and i.indisvalid) as "there!""#,
        table,
        name
    )
    .fetch_one(connection)
    .await
}
