//! Tests the names of the rows.

use super::parts::names::ALL;

#[test]
fn the_page_names_every_row_in_order() {
    let page = include_str!("../../../docs/architecture.md");
    let line = page.lines().find(|line| line.contains("# some rows:"));
    let named = line.and_then(|line| line.split_once("# some rows: ")).map(|(_, rows)| rows);
    assert_eq!(named, Some(ALL.join(" ").as_str()));
}
