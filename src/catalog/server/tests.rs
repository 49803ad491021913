//! What fits and what does not, column by column.

use std::collections::BTreeMap;

use super::tables::{TABLES, Table};
use super::*;

/// The tables with all that is needed and known of them.
fn known() -> ServerTables {
    let columns = |table: &Table| {
        let all = table.needed.split_whitespace().chain(table.others.split_whitespace());
        all.map(|column| (column.to_owned(), true)).collect()
    };
    ServerTables(TABLES.iter().map(|t| (t.name.to_owned(), columns(t))).collect())
}

fn with(change: impl FnOnce(&mut BTreeMap<String, BTreeMap<String, bool>>)) -> ServerTables {
    let mut tables = known();
    change(&mut tables.0);
    tables
}

fn column(tables: &mut BTreeMap<String, BTreeMap<String, bool>>, table: &str, must: bool) {
    tables.entry(table.to_owned()).or_default().insert("re\u{1b}gion".to_owned(), must);
}

#[test]
fn what_is_needed_has_to_be_there() {
    assert_eq!(known().fits(), Ok(()));
    assert_eq!(ServerTables::default().fits(), Ok(()), "nothing can be said");
    for Table { name, needed, .. } in TABLES {
        let without = with(|tables| drop(tables.remove(name)));
        let missing = Misfit::Missing(format!("table {name}"));
        assert_eq!(without.fits().err(), (!needed.is_empty()).then_some(missing), "{name}");
        for one in needed.split_whitespace() {
            let refused = with(|tables| {
                tables.get_mut(name).expect("the table").remove(one);
            });
            let expected = match one {
                "parent_field_id" => Misfit::BeforeV9,
                one => Misfit::Missing(format!("column {name}.{one}")),
            };
            assert_eq!(refused.fits(), Err(expected), "{name}.{one}");
        }
    }
}

#[test]
fn what_must_be_filled_is_refused_only_where_a_commit_adds_rows() {
    for Table { name, .. } in TABLES {
        let known_of = format!("{name}.re\\u{{1b}}gion");
        for must in [false, true] {
            let tables = with(|tables| column(tables, name, must));
            assert_eq!(tables.unknown(), [known_of.as_str()], "{name}");
            let refused = must && FILLED.contains(&name);
            let expected = refused.then(|| Misfit::MustFill(vec![known_of.clone()]));
            assert_eq!(tables.fits().err(), expected, "{name}");
            assert_eq!(tables.must_fill(name).len(), usize::from(must), "{name}");
        }
    }
    assert_eq!(known().unknown(), Vec::<String>::new());
}
