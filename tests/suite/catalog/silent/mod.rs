//! Tests on a network that falls silent: no connection ends or is reset, and no byte arrives any
//! more.
//!
//! Each test does something once through a network that counts its messages. Then it does the same
//! again and again, each time in a lake of its own, with silence from one of these messages on.
//! Every run ends, nothing is left half done, and once the network carries bytes again everything
//! works. The timeouts of these tests are short. How long this takes with the defaults is computed
//! beside `LINGERS` in `src/sweep/lease.rs`.

mod drops;
mod kept_alive;
mod others;
mod pass;
mod reading;
mod served;
mod session;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, TryStreamExt, stream};
use tailrace::catalog::connect::Database;
use tailrace::catalog::session::Patience;
use tailrace_kit::lake::{Catalog, Field, Table};

use crate::drop::races::{file, whole};
use crate::support::TestDatabase;
use crate::support::proxy::{Comes, Message, Proxy, Silence};
use crate::support::wait::until;

/// Far longer than any run takes, and far shorter than one that hangs.
const BOUND: Duration = Duration::from_secs(150);

/// A slow machine may end a run before its silence begins; it is made again then.
const TRIES: usize = 3;

/// So many runs go on at once. They do little but wait.
const AT_ONCE: usize = 12;

/// A lake with the table `events.raw` by day, which keeps 7 days. Of two days two files each are
/// expired, one of them with a vector; two files are young.
pub struct Lake {
    pub database: TestDatabase,
    pub catalog: Catalog,
    pub table: Table,
    /// Its files, a day after the other, the young ones last.
    pub files: [i64; 6],
}

impl Lake {
    pub async fn new() -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        let files = [9, 9, 8, 8, 0, 0].map(file).to_vec();
        let files = table.append(files).await?.file_ids;
        table.register_vector(files[1], 2, None).await?;
        database.govern(&table, "at", "7d").await?;
        let files = files.try_into().ok().context("six files")?;
        Ok(Lake { database, catalog, table, files })
    }

    /// A network to it, whose silence is borne for a moment only.
    pub async fn network(&self) -> Result<(Proxy, Database)> {
        let (proxy, through) = self.database.through_proxy().await?;
        Ok((proxy, Database { connect_timeout: PATIENCE.statement, patience: PATIENCE, ..through }))
    }

    /// The snapshots that ended files, with their numbers of files: all of each, and in good order. Not
    /// before what was silent has let go of all that it held.
    pub async fn drops(&self) -> Result<Vec<(i64, i64)>> {
        self.let_go().await?;
        let drops = whole::drops(&self.catalog, self.table.table_id).await?;
        let ended = self.table.all_files().await?.into_iter().filter(|f| f.end_snapshot.is_some());
        let ended = i64::try_from(ended.count())?;
        assert_eq!(drops.iter().map(|(_, files)| files).sum::<i64>(), ended);
        let [first, second, third, fourth, ..] = self.ends().await?;
        assert_eq!((first, third), (second, fourth), "a day goes whole");
        Ok(drops)
    }

    /// The snapshot in which each file ended.
    pub async fn ends(&self) -> Result<[Option<i64>; 6]> {
        let rows = self.table.all_files().await?;
        let end = |id: i64| rows.iter().find(|row| row.data_file_id == id)?.end_snapshot;
        Ok(self.files.map(end))
    }

    /// Returns once no session holds an advisory lock, or is in a transaction.
    async fn let_go(&self) -> Result<()> {
        until("nothing is held", async || {
            let held: bool = sqlx::query_scalar(
                "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND database =
                                 (SELECT oid FROM pg_database WHERE datname = current_database()))
                     OR EXISTS (SELECT FROM pg_stat_activity
                                 WHERE datname = current_database() AND backend_type = 'client backend'
                                   AND xact_start IS NOT NULL AND pid <> pg_backend_pid())",
            )
            .fetch_one(&self.database.pool)
            .await?;
            Ok(!held)
        })
        .await
    }
}

/// How long an answer is waited for here.
const PATIENCE: Patience =
    Patience { statement: Duration::from_secs(1), slack: Duration::from_millis(500) };

/// Acts through a network that carries everything, and then again, each time in a lake of its own,
/// through one that falls silent: at every `step`-th of the messages, and at the first one that contains
/// each of these texts. `act` has to end, whatever comes of it; `after` is asked when the network is back.
pub async fn silent_at(
    texts: &[&'static str],
    step: usize,
    act: impl AsyncFn(&Lake, &Database) -> Result<()>,
    after: impl AsyncFn(&Lake) -> Result<()>,
) -> Result<()> {
    let lake = Lake::new().await?;
    let (proxy, through) = lake.network().await?;
    act(&lake, &through).await?;
    let numbers = (1..=proxy.messages()).step_by(step).enumerate();
    let numbered = numbers.map(|(at, number)| {
        // How far the message comes, and whether new connections are carried, goes round.
        silence(Message::Number(number), COMES[at % 3], at / 3 % 2 == 0)
    });
    let silences: Vec<Silence> =
        texts.iter().flat_map(|text| at_text(text)).chain(numbered).collect();
    let (act, after) = (&act, &after);
    let runs = silences.iter().map(|silence| async move {
        for _ in 0..TRIES {
            let lake = Lake::new().await?;
            let (proxy, through) = lake.network().await?;
            proxy.silence(*silence);
            let acted = tokio::time::timeout(BOUND, act(&lake, &through)).await;
            let acted = acted.with_context(|| format!("{silence:?} hangs it"))?;
            acted.with_context(|| format!("{silence:?}"))?;
            let is_silent = proxy.is_silent();
            proxy.plug_in();
            after(&lake).await.with_context(|| format!("after {silence:?}"))?;
            // Dropping a database blocks, and everything here goes on in one thread.
            tokio::task::spawn_blocking(move || drop(lake)).await?;
            if is_silent {
                return Ok(());
            }
        }
        bail!("{silence:?} never came")
    });
    stream::iter(runs).buffer_unordered(AT_ONCE).try_collect().await
}

const COMES: [Comes; 3] = [Comes::Nowhere, Comes::There, Comes::HalfWayBack];

fn at_text(text: &'static str) -> impl Iterator<Item = Silence> {
    COMES.into_iter().flat_map(move |comes| {
        [true, false].map(|lets_in| silence(Message::With(text), comes, lets_in))
    })
}

/// The server does not notice: it has to do without the lost session all the same.
fn silence(from: Message, comes: Comes, lets_in: bool) -> Silence {
    Silence { from, comes, lets_in, noticed_after: None }
}
