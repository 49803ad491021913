//! Creates an overload of every function and operator that the SQL of tailrace names, by a role
//! that may only create in the catalog's schema. An overload that is called records the call and
//! fails.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use sqlx::{AssertSqlSafe, Connection};

use super::Mallory;
use super::sql::texts;
use crate::support::TestDatabase;

/// The types of which a call or an operator may take one that `pg_catalog` has only for another, or
/// for any.
const TYPES: [&str; 26] = [
    "text",
    "name",
    "\"char\"",
    "boolean",
    "smallint",
    "integer",
    "bigint",
    "numeric",
    "double precision",
    "oid",
    "regclass",
    "timestamptz",
    "timestamp",
    "date",
    "interval",
    "uuid",
    "bytea",
    "json",
    "jsonb",
    "text[]",
    "integer[]",
    "bigint[]",
    "boolean[]",
    "uuid[]",
    "jsonb[]",
    "name[]",
];

/// Those that calls with two and with three arguments take.
const PAIRS: [&str; 14] = [
    "text",
    "name",
    "\"char\"",
    "boolean",
    "integer",
    "bigint",
    "numeric",
    "oid",
    "regclass",
    "jsonb",
    "timestamptz",
    "text[]",
    "integer[]",
    "bigint[]",
];
const TRIPLES: [&str; 6] = ["text", "name", "boolean", "integer", "bigint", "oid"];

/// Columns that some servers lack: `alias.column` is a call of such a function there.
const MISSING: [&str; 5] =
    ["file_format", "properties", "replaced_table_id", "measures_generation", "record_count"];

/// What our SQL names, and what `pg_catalog` has by these names.
struct Named {
    /// Name, whether it is an aggregate or a window function, and with how many arguments it can be
    /// called.
    functions: Vec<(String, bool, Vec<i32>)>,
    operators: Vec<String>,
    /// Every row type of the server's tables and of ours.
    rows: Vec<String>,
}

async fn named(database: &TestDatabase) -> Result<Named> {
    let functions = sqlx::query_as(
        r"WITH called AS (
            SELECT DISTINCT m[1] AS name
            FROM unnest($1::text[]) AS t (text),
                 regexp_matches(t.text, '([a-z_][a-z0-9_]*)\s*\(', 'g') AS m
          ),
          had AS (
            SELECT p.proname::text AS name, p.prokind IN ('a', 'w') AS is_aggregate, a.n
            FROM called c JOIN pg_proc p ON p.proname = c.name
              AND p.pronamespace = 'pg_catalog'::regnamespace,
                 generate_series(p.pronargs - p.pronargdefaults,
                                 CASE WHEN p.provariadic <> 0 THEN 3 ELSE p.pronargs END) AS a (n)
          )
          SELECT name, bool_or(is_aggregate), array_agg(DISTINCT n ORDER BY n)
          FROM had GROUP BY name ORDER BY name",
    )
    .bind(texts()?)
    .fetch_all(&database.pool)
    .await?;
    // IN, BETWEEN, LIKE and USING name operators, too.
    let operators = sqlx::query_scalar(
        r#"WITH bare AS (
            SELECT regexp_replace(regexp_replace(regexp_replace(
                     t.text, '--[^\n]*', '', 'g'), '''[^'']*''', '''''', 'g'), '"[^"]*"', 'x', 'g')
                   AS text
            FROM unnest($1::text[]) AS t (text)
          ),
          used AS (
            SELECT DISTINCT m[1] AS name
            FROM bare b, regexp_matches(b.text, '([-+*/<>=~!@#%^&|`?]+)', 'g') AS m
            UNION SELECT unnest(array['=', '<>', '<', '>', '<=', '>=', '~~', '!~~', '~', '||'])
          )
          SELECT name FROM used
          WHERE EXISTS (SELECT FROM pg_operator o WHERE o.oprname = used.name AND o.oprkind = 'b')
          ORDER BY name"#,
    )
    .bind(texts()?)
    .fetch_all(&database.pool)
    .await?;
    let rows = sqlx::query_scalar(
        "SELECT format('%I.%I', n.nspname, c.relname)
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'v')
           AND (n.nspname = 'tailrace' OR n.nspname = 'public' AND c.relname LIKE 'hog\\_%')
         ORDER BY 1",
    )
    .fetch_all(&database.pool)
    .await?;
    Ok(Named { functions, operators, rows })
}

/// Every list of so many of the types.
fn lists(types: &[&str], length: usize) -> Vec<Vec<String>> {
    let mut all = vec![vec![]];
    for _ in 0..length {
        all = all
            .into_iter()
            .flat_map(|list: Vec<String>| {
                types.iter().map(move |one| [list.clone(), vec![(*one).to_owned()]].concat())
            })
            .collect();
    }
    all
}

/// The argument types of the overloads of a function.
fn arguments(name: &str, counts: &[i32], rows: &[String]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for count in counts {
        match count {
            0 => all.push(vec![]),
            1 => {
                all.extend(lists(&TYPES, 1));
                all.extend(rows.iter().map(|row| vec![row.clone()]));
            }
            2 => all.extend(lists(&PAIRS, 2)),
            3 => all.extend(lists(&TRIPLES, 3)),
            _ => {}
        }
    }
    // Any number of arguments of any types: pairs of a name and a value.
    if name.starts_with("jsonb_build") || name == "concat" || name == "format" {
        for count in [2, 4, 6, 8, 12] {
            for value in ["text", "integer", "bigint", "jsonb"] {
                let pairs = (0..count).map(|at| if at % 2 == 0 { "text" } else { value });
                all.push(pairs.map(str::to_owned).collect());
            }
        }
        all.retain(|types| types != &["text[]"]);
        all.push(vec!["VARIADIC text[]".to_owned()]);
    }
    all.sort();
    all.dedup();
    all
}

/// The statements that plant them.
fn planted(named: &Named) -> Vec<String> {
    let says = |what: &str| {
        format!(
            "plpgsql AS $f$ BEGIN PERFORM pg_catalog.nextval('public.called'::pg_catalog.regclass);
             RAISE EXCEPTION 'somebody else''s {what} was called'; END $f$"
        )
    };
    let mut statements = vec![
        "CREATE SEQUENCE public.called; GRANT USAGE, SELECT ON SEQUENCE public.called TO PUBLIC"
            .to_owned(),
    ];
    for one in TYPES.iter().map(|one| (*one).to_owned()).chain(named.rows.iter().cloned()) {
        let body = says("aggregate");
        statements.push(format!(
            "CREATE FUNCTION public.gathered(boolean, {one}) RETURNS boolean LANGUAGE {body}"
        ));
    }
    for pair in lists(&PAIRS, 2) {
        let body = says("aggregate");
        statements.push(format!(
            "CREATE FUNCTION public.gathered(boolean, {}) RETURNS boolean LANGUAGE {body}",
            pair.join(", ")
        ));
    }
    for (name, is_aggregate, counts) in &named.functions {
        for list in arguments(name, counts, &named.rows) {
            let types = list.join(", ");
            statements.push(match (is_aggregate, list.len()) {
                (true, 1 | 2) => format!(
                    "CREATE AGGREGATE public.\"{name}\"({types}) \
                     (SFUNC = public.gathered, STYPE = boolean)"
                ),
                (true, _) => continue,
                (false, _) => {
                    // By its name the argument of one, as calls with names have them.
                    let names = match (name.as_str(), types.as_str()) {
                        ("make_interval", "integer") => "months ",
                        ("make_interval", _) if list.len() == 1 => "secs ",
                        _ => "",
                    };
                    format!(
                        "CREATE FUNCTION public.\"{name}\"({names}{types}) RETURNS boolean \
                         LANGUAGE {}",
                        says(name)
                    )
                }
            });
        }
    }
    for column in MISSING {
        for row in named.rows.iter().filter(|row| row.starts_with("public.")) {
            statements.push(format!(
                "CREATE FUNCTION public.{column}({row}) RETURNS text LANGUAGE {}",
                says(column)
            ));
        }
    }
    for pair in lists(&TYPES, 2) {
        let (left, right) = (&pair[0], &pair[1]);
        let mut statement = format!(
            "CREATE FUNCTION public.compared({left}, {right}) RETURNS boolean LANGUAGE {}",
            says("operator")
        );
        for operator in &named.operators {
            // Writing to a String does not fail.
            let _ = write!(
                statement,
                "; CREATE OPERATOR public.{operator} \
                 (LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = public.compared)"
            );
        }
        statements.push(statement);
    }
    statements
}

/// Plants them all. What the lake itself does must be done by then: its sessions are the server's.
pub async fn plant<'a>(database: &'a TestDatabase) -> Result<Mallory<'a>> {
    let named = named(database).await?;
    let count = (named.functions.len(), named.operators.len());
    anyhow::ensure!(count.0 > 50 && count.1 > 15, "what our SQL names was not found: {count:?}");
    let mallory = Mallory::new(database).await?;
    if named.rows.iter().any(|row| row.starts_with("tailrace.")) {
        database.sql(&format!("GRANT USAGE ON SCHEMA tailrace TO {}", mallory.name)).await?;
    }
    let mut session = mallory.session().await?;
    sqlx::raw_sql("SET check_function_bodies = off").execute(&mut session).await?;
    let statements = planted(&named);
    for some in statements.chunks(500) {
        // Only names from our own texts are put in.
        let some = AssertSqlSafe(some.join(";\n"));
        sqlx::raw_sql(some).execute(&mut session).await.context("planting")?;
    }
    session.close().await?;
    Ok(mallory)
}

impl Mallory<'_> {
    /// Whether any of them was ever called. Sequences forget nothing when a transaction fails.
    pub async fn was_called(&self) -> Result<bool> {
        let called = "SELECT is_called FROM public.called";
        Ok(sqlx::query_scalar(called).fetch_one(&self.database.pool).await?)
    }
}
