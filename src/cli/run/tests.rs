use super::*;
use crate::sweep::report::Waits;

fn report(failed: &[(&str, bool)]) -> anyhow::Result<PassReport> {
    let failed = failed.iter().map(|(catalog, away)| CatalogFailure {
        catalog: (*catalog).to_owned(),
        error: "no".to_owned(),
        away: *away,
    });
    Ok(PassReport {
        as_of: "2026-09-17T00:00:00Z".parse()?,
        tables: Vec::new(),
        pauses: Vec::new(),
        holds: 0,
        waits: Waits::default(),
        skipped_catalogs: Vec::new(),
        failed_catalogs: failed.collect(),
        gave_way: false,
    })
}

fn end(result: anyhow::Result<PassReport>) -> String {
    match end_of(result) {
        PassEnd::Done { .. } => "done".to_owned(),
        PassEnd::DatabaseAway { error, answered } => format!("away, {answered}: {error:#}"),
        PassEnd::Failed { error, .. } => format!("failed: {error:#}"),
    }
}

#[test]
fn a_database_is_away_by_what_it_said_and_when() {
    let refused = || anyhow::Error::new(sqlx::Error::WorkerCrashed);
    let words = refused().to_string();
    assert_eq!(end(report(&[])), "done");
    assert_eq!(end(report(&[("lake", false)])), "failed: catalog lake: no");
    let away = report(&[("lake", false), ("pond", true)]);
    assert_eq!(end(away), "away, true: catalog pond: no");
    assert_eq!(end(Err(refused())), format!("away, false: {words}"));
    let on_the_way = refused().context(LostOnTheWay);
    assert_eq!(end(Err(on_the_way)), format!("away, true: {LostOnTheWay}: {words}"));
    assert_eq!(end(Err(anyhow::anyhow!("no"))), "failed: no");
}
