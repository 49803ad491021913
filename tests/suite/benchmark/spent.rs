//! Tests the sum of the time in the database by the server's log.

use super::parts::spent::Spent;

#[test]
fn only_durations_of_the_database_count() {
    let lines = [
        "lake LOG:  duration: 0.500 ms  parse s1: select 1",
        "lake LOG:  duration: 0.250 ms  bind s1: select 1",
        "lake LOG:  duration: 1.250 ms  execute s1: select 1",
        "lake LOG:  duration: 2.000 ms  statement: COMMIT",
        // The rest of a statement, another database, one whose name begins alike, and other lines.
        "\tfrom lake LOG:  duration: 9.000 ms  statement: x",
        "other LOG:  duration: 9.000 ms  statement: x",
        "lake_2 LOG:  duration: 9.000 ms  statement: x",
        "lake ERROR:  duration: 9.000 ms  statement: x",
        "lake LOG:  checkpoint complete",
        "",
    ];
    let mut spent = Spent::default();
    lines.iter().for_each(|line| spent.add_line(line, "lake"));
    assert_eq!(spent, Spent { ms: 4.0, statements: 2 });
}
