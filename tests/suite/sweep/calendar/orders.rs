//! Tests of a file that is appended while a pass looks up its value and removes the value's row. In
//! every order the file is dropped, with the next pass at the latest. Where the file came too late
//! for the look-up, its value returns to the calendar as that of a late file.

use anyhow::Result;
use tailrace::sweep::report::{Outcome, TableReport};
use tailrace::sweep::{Scope, Settings, run_pass};
use tailrace_kit::lake::{Committed, Field, NewFile};
use tokio_util::sync::CancellationToken;

use super::{DAY, Scene};
use crate::support::gate::is_free;
use crate::support::proxy::{Message, Proxy};

/// The statement that removes rows, and no other.
pub const REMOVAL: &str = "using unnest($3::bigint[], $4::boolean[], $5::text[]) as k";

/// A pass has far fewer statements.
const MOST: usize = 400;

/// A table by day in which two days have rows: the files of one are there, the file of the other is gone.
pub struct Days {
    pub scene: Scene,
}

impl Days {
    /// Full passes would find what the others overlooked, and none is due.
    pub async fn new(is_large: bool) -> Result<Self> {
        let fields = [Field::day("at")];
        let mut scene = match is_large {
            true => Scene::large(&fields).await?,
            false => Scene::new(&fields).await?,
        };
        scene.settings = Settings { full_pass_every: DAY * 10_000, ..scene.settings };
        // So many files stay that late ones are few beside them.
        let stay = vec![NewFile::new(vec![None]); 40];
        scene.table.append([stay, vec![scene.file(0)]].concat()).await?;
        assert_eq!(scene.sweep().await?.full, Some(true));
        Ok(Days { scene })
    }

    /// Two days of which rows are due, the older one without a file; eight days go by for it.
    pub async fn next(&mut self) -> Result<()> {
        let scene = &mut self.scene;
        let ids = scene.table.append(vec![scene.file(1), scene.file(0)]).await?.file_ids;
        assert_eq!(scene.sweep().await?.full, Some(false));
        let head = scene.catalog.head().await?;
        scene.table.overwrite(head, &ids[..1], Vec::new()).await?;
        scene.now = scene.now.plus(DAY * 8);
        Ok(())
    }

    /// Late files of both days.
    async fn append(&self) -> Result<Committed> {
        Ok(self.scene.table.append(vec![self.scene.file(9), self.scene.file(8)]).await?)
    }

    /// The live files of both days, and the rows of either.
    pub async fn left(&self) -> Result<(usize, Vec<String>)> {
        let days = [self.scene.day(9), self.scene.day(8)];
        let files = self.scene.table.live_files().await?;
        let of_both = |value: &Option<String>| value.as_ref().is_some_and(|day| days.contains(day));
        let files = files.iter().filter(|file| of_both(&file.values[0])).count();
        let mut rows = self.scene.rows().await?;
        rows.retain(|row| days.iter().any(|day| row.split(' ').nth(1) == Some(day)));
        Ok((files, rows))
    }

    /// A pass that is held up before a statement, and goes on when files of both days have been appended. `None`
    /// where it has no such statement.
    async fn appended_at(&self, message: Message) -> Result<Option<TableReport>> {
        let (proxy, through) = self.scene.database.through_proxy().await?;
        let settings = Settings { as_of: Some(self.scene.now), ..self.scene.settings };
        let (scope, stop) = (Scope::default(), CancellationToken::new());
        proxy.hold(message);
        let pass = async { run_pass(&through, &settings, &scope, &stop, &|_| {}).await };
        tokio::pin!(pass);
        tokio::select! {
            report = &mut pass => {
                report?;
                return Ok(None);
            }
            () = proxy.is_held() => {}
        }
        let (report, appended) = tokio::join!(pass, self.append_and_go_on(&proxy));
        appended?;
        Ok(report?.tables.pop())
    }

    /// Where the pass has the commit lock, the append comes right after its commit.
    async fn append_and_go_on(&self, proxy: &Proxy) -> Result<()> {
        if is_free(&self.scene.catalog).await? {
            self.append().await?;
            proxy.go_on();
            return Ok(());
        }
        let (appended, ()) = tokio::join!(self.append(), async { proxy.go_on() });
        appended.map(drop)
    }
}

/// Between any two statements of a pass.
async fn at_every_statement(is_large: bool, usual: usize) -> Result<()> {
    let step = super::step(usual);
    let mut days = Days::new(is_large).await?;
    let (mut with_this, mut with_the_next) = (0, 0);
    for number in (1..MOST).step_by(step) {
        days.next().await?;
        let Some(report) = days.appended_at(Message::Statement(number)).await? else {
            assert!(
                with_this > 20 / step && with_the_next > 5 / step,
                "{with_this} {with_the_next}"
            );
            return Ok(());
        };
        assert_eq!(report.full, Some(false), "{number}: {report:?}");
        match days.left().await? {
            (0, _) => with_this += 1,
            _ => with_the_next += 1,
        }
        let next = days.scene.sweep().await?;
        assert_eq!(next.full, Some(false), "{number}: {next:?}");
        assert_eq!(days.left().await?, (0, Vec::new()), "{number}: {report:?}, then {next:?}");
    }
    anyhow::bail!("a pass of more than {MOST} statements")
}

#[tokio::test]
async fn files_landing_between_any_statements_go_with_the_next_pass() -> Result<()> {
    at_every_statement(false, 3).await
}

#[tokio::test]
async fn so_they_do_in_a_large_table() -> Result<()> {
    at_every_statement(true, 5).await
}

/// The orders by their names: where the file lands, how many of the two are left by the pass with how many
/// rows of their days, and what the next pass does.
#[tokio::test]
async fn the_orders_of_append_look_and_removal() -> Result<()> {
    let orders = [
        // Before the watermark is read: it is late, and looked up by this pass.
        ("from hog_table_version", 0, Outcome::NothingToDo),
        // Between that and the look, which finds it.
        ("reading, census,", 0, Outcome::NothingToDo),
        // Between the look and the removal of the row.
        (REMOVAL, 2, Outcome::Dropped),
        // After it.
        ("set outcome = $3, error", 2, Outcome::Dropped),
    ];
    for is_large in [false, true] {
        let mut days = Days::new(is_large).await?;
        for (statement, files, next) in orders {
            days.next().await?;
            let report = days.appended_at(Message::With(statement)).await?;
            let report = report.unwrap_or_else(|| panic!("no {statement}"));
            assert_eq!(report.outcome, Outcome::Dropped, "{statement}: {report:?}");
            // The row goes by what the look saw, although there is a file by then.
            assert_eq!(days.left().await?, (files, Vec::new()), "{statement}");
            let after = days.scene.sweep().await?;
            assert_eq!((after.outcome, after.full), (next, Some(false)), "{statement}");
            assert_eq!(after.counts().files, files as i64, "{statement}");
            assert_eq!(days.left().await?, (0, Vec::new()), "{statement}");
        }
    }
    Ok(())
}
