//! The rights of the session's role.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::session::Session;

/// The rights of a role, by itself, through its memberships and through PUBLIC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Privileges {
    pub role: String,
    /// Attributes that give it more than any grant: `superuser`, `createrole`, ...; not `bypassrls`
    /// where one of the relations has row-level security, for then it is needed.
    pub attributes: Vec<String>,
    /// The schemas that there are, of the catalog's and ours.
    pub schemas: BTreeSet<String>,
    /// Those of them that it may use.
    pub usable_schemas: BTreeSet<String>,
    /// A name for another role that no role has: `tailrace`, or that with a number.
    pub free_role: String,
    /// Relations by (schema, name): tables and sequences of the server's and ours.
    pub relations: BTreeMap<(String, String), Held>,
}

/// What is held on a relation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Whether the role is its owner, or a member of it.
    pub is_owned: bool,
    /// Whether row-level security would hide rows of it from the role.
    pub is_filtered: bool,
    /// Privileges on the whole of it.
    pub whole: BTreeSet<String>,
    /// Columns by privilege, where that is not held on the whole.
    pub columns: BTreeMap<String, BTreeSet<String>>,
}

impl Privileges {
    /// Whether nothing is refused to it.
    pub fn is_superuser(&self) -> bool {
        self.attributes.iter().any(|attribute| attribute == "superuser")
    }
}

/// Reads them from `pg_catalog`, which is open to every role.
pub async fn privileges(connection: &mut Session, schema: &str) -> sqlx::Result<Privileges> {
    let role = sqlx::query!(
        r#"select current_user::text as "name!",
                  pg_catalog.array_remove(array[
                    case when rolsuper then 'superuser' end,
                    case when rolcreaterole then 'createrole' end,
                    case when rolcreatedb then 'createdb' end,
                    case when rolreplication then 'replication' end,
                    case when rolbypassrls and not exists (
                      select from pg_catalog.pg_class c
                      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                      where c.relrowsecurity
                        and (n.nspname = $1 and c.relname like 'hog\_%'::text
                             or n.nspname = 'tailrace')) then 'bypassrls' end
                  ], null) as "attributes!: Vec<String>"
           from pg_catalog.pg_roles where rolname = current_user"#,
        schema
    )
    .fetch_one(&mut *connection)
    .await?;
    let schemas = sqlx::query!(
        r#"select nspname::text as "name!",
                  pg_catalog.has_schema_privilege(oid, 'USAGE') as "is_usable!"
           from pg_catalog.pg_namespace where nspname in ($1, 'tailrace')"#,
        schema
    )
    .fetch_all(&mut *connection)
    .await?;
    let taken = sqlx::query_scalar!(
        r#"select rolname::text as "name!" from pg_catalog.pg_roles
           where rolname like 'tailrace%'::text"#
    )
    .fetch_all(&mut *connection)
    .await?;
    // A right on the whole table is one on each of its columns, which need no lines of their own.
    // `case` keeps the planner from asking for a sequence's rights as for a table's, which raises.
    let held = sqlx::query!(
        r#"with relations as materialized (
             select c.oid, n.nspname::text as schema, c.relname::text as name, c.relkind,
                    pg_catalog.pg_has_role(c.relowner, 'USAGE') as is_owned,
                    c.relkind <> 'S' and pg_catalog.row_security_active(c.oid) as is_filtered
             from pg_catalog.pg_class c
             join pg_catalog.pg_namespace n on n.oid = c.relnamespace
             where c.relkind in ('r', 'p', 'S')
               and (n.nspname = $1 and c.relname like 'hog\_%'::text or n.nspname = 'tailrace'))
           select schema as "schema!", name as "name!", is_owned as "is_owned!",
                  is_filtered as "is_filtered!", null::text as privilege,
                  null::text as "column"
           from relations
           union all
           select schema, name, is_owned, is_filtered, p.privilege, null
           from relations r
           cross join pg_catalog.unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE',
                                   'REFERENCES', 'TRIGGER']) as p (privilege)
           where case when r.relkind <> 'S'
                   then pg_catalog.has_table_privilege(r.oid, p.privilege) end
           union all
           select schema, name, is_owned, is_filtered, 'USAGE', null
           from relations r
           where case when r.relkind = 'S'
                   then pg_catalog.has_sequence_privilege(r.oid, 'USAGE') end
           union all
           select schema, name, is_owned, is_filtered, p.privilege, a.attname::text
           from relations r
           join pg_catalog.pg_attribute a
             on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
           cross join pg_catalog.unnest(array['SELECT', 'INSERT', 'UPDATE', 'REFERENCES'])
                        as p (privilege)
           where case when r.relkind <> 'S' then
                   pg_catalog.has_column_privilege(r.oid, a.attnum, p.privilege)
                   and not pg_catalog.has_table_privilege(r.oid, p.privilege) end"#,
        schema
    )
    .fetch_all(connection)
    .await?;
    let mut relations: BTreeMap<(String, String), Held> = BTreeMap::new();
    for row in held {
        let of = relations.entry((row.schema, row.name)).or_default();
        of.is_owned = row.is_owned;
        of.is_filtered = row.is_filtered;
        match (row.privilege, row.column) {
            (Some(privilege), Some(column)) => {
                of.columns.entry(privilege).or_default().insert(column);
            }
            (Some(privilege), None) => {
                of.whole.insert(privilege);
            }
            (None, _) => {}
        }
    }
    Ok(Privileges {
        role: role.name,
        attributes: role.attributes,
        schemas: schemas.iter().map(|schema| schema.name.clone()).collect(),
        usable_schemas: schemas
            .into_iter()
            .filter(|schema| schema.is_usable)
            .map(|schema| schema.name)
            .collect(),
        free_role: free_name(&taken),
        relations,
    })
}

/// The first of `tailrace`, `tailrace_2`, `tailrace_3` ... that is not among these.
fn free_name(taken: &[String]) -> String {
    let mut names = std::iter::once("tailrace".to_owned())
        .chain((2..).map(|number: u64| format!("tailrace_{number}")));
    names.find(|name| !taken.contains(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_name_that_no_role_has() {
        for (taken, free) in [
            (vec![], "tailrace"),
            (vec!["tailrace_2", "tailraces"], "tailrace"),
            (vec!["tailrace"], "tailrace_2"),
            (vec!["tailrace_2", "tailrace", "tailrace_4"], "tailrace_3"),
        ] {
            let taken: Vec<_> = taken.into_iter().map(str::to_owned).collect();
            assert_eq!(super::free_name(&taken), free);
        }
    }
}
