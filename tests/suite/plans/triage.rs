//! What a pass asks before it works on anything.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::NewFile;

use super::crowd::Crowd;
use super::passes::pass;
use super::pins::{assert_keeps_to, by};
use super::watch::Watch;
use super::{ALL, LIVE};
use crate::support::program::{days_ago, settings};
use crate::triage::settle;

/// One descent of the live files for each governed table, however many files anybody has.
#[tokio::test]
async fn new_files_are_asked_of_the_live_ones() -> Result<()> {
    for (statistics, planned) in ALL {
        println!("{statistics:?}, {planned:?}");
        let crowd = Crowd::new(statistics).await?;
        let watch = Watch::begin();
        let database = watch.over(&crowd.database, planned);
        pass(&database, &settings()).await?;
        settle(&crowd.database).await?;
        let noisy = crowd.catalog.open_table("events", "noisy").await?;
        noisy.append(vec![NewFile::of([days_ago(0)])]).await?;
        watch.take()?;
        let reports = pass(&database, &settings()).await?;
        assert_eq!(reports.map(|report| report.outcome), [Outcome::NothingToDo; 2]);
        assert_keeps_to("triage", &watch.take()?, &[by("new files", &[(LIVE, 2)])]);
    }
    Ok(())
}
