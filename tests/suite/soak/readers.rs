//! Consumers of tailrace's feed. Each applies the changes to its own copy, and checks that the copy
//! is the table as a reader of that snapshot sees it.

use std::sync::Arc;

use anyhow::{Result, bail};
use fastrand::Rng;
use tailrace::explicit::problem::Problem;
use tailrace_kit::simulated_loops::Consumer;

use crate::feed::with_ends;
use crate::support::contents::Follower;

use super::{Left, Soak};

/// A consumer.
pub struct Reader {
    soak: Arc<Soak>,
    copy: Follower,
    /// What holds the floor back for it. Without one the floor passes it, and it begins anew.
    offset: Option<Consumer>,
}

impl Reader {
    /// One whose offset the catalog knows.
    pub async fn registered(soak: &Arc<Soak>, name: &str) -> Result<Self> {
        let offset = Consumer::register(&soak.scene.table, name).await?;
        let at = offset.committed().await?;
        let rows = soak.history.lock().await.rows_at(at).await?;
        let copy = Follower { at, rows };
        Ok(Reader { soak: soak.clone(), copy, offset: Some(offset) })
    }

    /// One that the catalog does not know.
    pub async fn unregistered(soak: &Arc<Soak>) -> Result<Self> {
        let mut reader = Reader { soak: soak.clone(), copy: Follower::default(), offset: None };
        reader.begin_anew().await?;
        Ok(reader)
    }

    /// Reads the table.
    async fn begin_anew(&mut self) -> Result<()> {
        let mut history = self.soak.history.lock().await;
        history.read().await?;
        self.copy = Follower { at: history.seen, rows: history.rows().clone() };
        Ok(())
    }

    /// Goes on to a snapshot, by pages or in one go, and compares.
    async fn go_on(&mut self, to: i64, limit: Option<i64>) -> Result<()> {
        let (scene, query) = (&self.soak.scene, with_ends(self.copy.at, to));
        let told = match limit {
            Some(limit) => scene.paged(&query, limit).await,
            None => scene.told(&query).await,
        };
        let told = match told {
            Ok(told) => told,
            Err(error) => match error.downcast_ref::<Problem>() {
                Some(Problem::Expired(_)) if self.offset.is_none() => {
                    self.soak.count("readers that began anew", 1);
                    return self.begin_anew().await;
                }
                _ => bail!(error),
            },
        };
        let mut history = self.soak.history.lock().await;
        let rows = history.rows_at(to).await?;
        let from = self.copy.at;
        self.copy.apply(&told, &history.objects)?;
        assert_eq!(self.copy.at, to);
        assert_eq!(self.copy.rows, rows, "({from}, {to}], {told}");
        if let Some(offset) = &self.offset {
            // The floor is held back: the table itself can be asked.
            let files = scene.table.files_at(to).await?;
            assert_eq!(self.copy.rows, history.objects.seen(&files), "({from}, {to}], {told}");
            offset.advance(to).await?;
        }
        self.soak.count("comparisons of a copy with the table", 1);
        Ok(())
    }

    /// Goes on to the head, where nobody writes any more.
    pub async fn finish(&mut self) -> Result<()> {
        let head = self.soak.scene.catalog.head().await?;
        while self.copy.at < head {
            self.go_on(head, None).await?;
        }
        assert_eq!(self.copy.rows, self.soak.history.lock().await.rows_at(head).await?);
        Ok(())
    }
}

/// Reads on and on, and lags behind up to so many milliseconds.
pub async fn follow(mut reader: Reader, mut random: Rng, longest_pause: u64) -> Result<Left> {
    let soak = reader.soak.clone();
    while soak.goes_on(&mut random, longest_pause).await {
        let head = soak.scene.catalog.head().await?;
        let to = if random.u8(0..4) == 0 { random.i64(reader.copy.at..=head) } else { head };
        let limit = random.bool().then(|| random.i64(1..30));
        reader.go_on(to, limit).await?;
    }
    Ok(Left::Reader(reader))
}
