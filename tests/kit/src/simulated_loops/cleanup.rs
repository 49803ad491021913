//! Simulates the server's cleanup, the only loop that deletes objects.

use std::path::PathBuf;

use crate::lake::{Catalog, LakeError, Result, contains, remove_object};

/// A cleanup loop.
#[derive(Clone, Debug)]
pub struct Cleanup {
    catalog: Catalog,
}

/// What a run of cleanup did with the paths in its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Objects deleted.
    pub deleted: u64,
    /// Paths without an object.
    pub absent: u64,
    /// Paths that a row still names: each is a damage of the catalog. Nothing was deleted.
    pub violations: u64,
}

impl Cleanup {
    /// A loop over a catalog's queue.
    pub fn new(catalog: &Catalog) -> Self {
        Self { catalog: catalog.clone() }
    }

    /// Takes up to `limit` undrained paths, the oldest first. An object goes if no row of a
    /// file or vector, live or ended, names its path; in a catalog without objects on disk
    /// every path is absent. Uploads are not modelled. Takes no lock.
    ///
    /// # Errors
    /// If an object cannot be removed, or a path leads out of the catalog's folder; the paths
    /// before it stay drained.
    pub async fn run(&self, limit: i64) -> Result<Cleaned> {
        let queue: Vec<(i64, String, bool)> = sqlx::query_as(
            "SELECT r.removal_id, r.path,
                    EXISTS (SELECT FROM hog_data_file f
                             WHERE f.catalog_id = r.catalog_id AND f.path = r.path)
                    OR EXISTS (SELECT FROM hog_delete_file d
                                WHERE d.catalog_id = r.catalog_id AND d.path = r.path)
               FROM hog_file_removal r
              WHERE r.catalog_id = $1 AND r.drained_at IS NULL
              ORDER BY r.removal_id LIMIT $2",
        )
        .bind(self.catalog.catalog_id)
        .bind(limit)
        .fetch_all(self.catalog.pool())
        .await?;
        let mut cleaned = Cleaned::default();
        for (removal_id, path, named) in queue {
            if named {
                cleaned.violations += 1;
                self.attempted(removal_id).await?;
                continue;
            }
            let deleted = self.remove(path).await?;
            let outcome = if deleted { "deleted" } else { "absent" };
            self.drained(removal_id, outcome).await?;
            cleaned.deleted += u64::from(deleted);
            cleaned.absent += u64::from(!deleted);
        }
        Ok(cleaned)
    }

    async fn remove(&self, path: String) -> Result<bool> {
        let Some(folder) = self.catalog.objects() else {
            return Ok(false);
        };
        let path = PathBuf::from(path);
        if !contains(&folder, &path) {
            return Err(LakeError::Validation(format!(
                "{} is not below {}",
                path.display(),
                folder.display()
            )));
        }
        let removed = tokio::task::spawn_blocking(move || remove_object(&path));
        Ok(removed.await.map_err(std::io::Error::other)??)
    }

    async fn attempted(&self, removal_id: i64) -> Result<()> {
        sqlx::query(
            "UPDATE hog_file_removal
                SET attempts = attempts + 1, last_attempt_at = clock_timestamp()
              WHERE removal_id = $1",
        )
        .bind(removal_id)
        .execute(self.catalog.pool())
        .await?;
        Ok(())
    }

    async fn drained(&self, removal_id: i64, outcome: &str) -> Result<()> {
        sqlx::query(
            "UPDATE hog_file_removal
                SET attempts = attempts + 1, last_attempt_at = clock_timestamp(),
                    drained_at = clock_timestamp(), drained_outcome = $2
              WHERE removal_id = $1",
        )
        .bind(removal_id)
        .bind(outcome)
        .execute(self.catalog.pool())
        .await?;
        Ok(())
    }
}
