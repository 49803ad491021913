//! Tests that a pass reads nothing for files that are kept, neither of the table nor of its
//! neighbours, and little for a late file.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::NewFile;

use super::crowd::{Crowd, EXPIRED, Statistics};
use super::passes::pass;
use super::pins::looked_at;
use super::watch::{Planned, Watch};
use crate::support::program::{days_ago, settings};

/// What a pass with nothing to do looks at, and one for which a file has come late.
async fn costs(crowd: &Crowd, watch: &Watch) -> Result<[i64; 2]> {
    let database = watch.over(&crowd.database, Planned::EachTime);
    // Whatever there is to do before.
    pass(&database, &settings()).await?;
    watch.take()?;
    let [raw, small] = pass(&database, &settings()).await?;
    assert_eq!([raw.outcome, small.outcome], [Outcome::NothingToDo; 2]);
    let idle = looked_at(&watch.take()?);
    let late = NewFile::of([days_ago(*EXPIRED.start()), "kind 0".to_owned()]);
    crowd.raw.append(vec![late]).await?;
    let [raw, small] = pass(&database, &settings()).await?;
    assert_eq!((raw.counts().files, small.outcome), (1, Outcome::NothingToDo));
    Ok([idle, looked_at(&watch.take()?)])
}

#[tokio::test]
async fn what_is_kept_costs_nothing() -> Result<()> {
    for statistics in [Statistics::None, Statistics::Gathered] {
        let crowd = Crowd::new(statistics).await?;
        let watch = Watch::begin();
        let [idle, late] = costs(&crowd, &watch).await?;
        assert_eq!(idle, 0, "not one file, value or vector of anybody");
        // Its partition is looked up whole: 272 entries of its day, and the file of each.
        assert!(late <= 700, "{late} for one file");
        crowd.double().await?;
        // What is kept has doubled, too, and is met once.
        let database = watch.over(&crowd.database, Planned::EachTime);
        for _ in 0..3 {
            pass(&database, &settings()).await?;
        }
        watch.take()?;
        let [idle, late] = costs(&crowd, &watch).await?;
        assert_eq!(idle, 0, "not one file, value or vector of anybody");
        assert!(late <= 1_400, "{late} for one file");
    }
    Ok(())
}
