//! Catalogs and their namespaces.

use std::path::PathBuf;
use std::time::Duration;

use sqlx::PgPool;

use super::commit::{Commit, kind};
use super::error::{LakeError, Result};
use super::{Lake, local_folder};

/// What a catalog is made with.
#[derive(Clone, Debug)]
pub struct CatalogOptions {
    /// How long an old snapshot stays readable, in whole seconds; none for ever.
    pub retention: Option<Duration>,
    /// Whether consumers that lag behind hold the floor back.
    pub consumer_floor: bool,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        Self { retention: None, consumer_floor: true }
    }
}

/// A catalog of the lake.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// The lake that it is in.
    pub lake: Lake,
    /// Its number.
    pub catalog_id: i64,
    /// Its name.
    pub name: String,
    /// Where its objects are: an absolute folder if the lake writes objects, else a made-up
    /// address in a bucket.
    pub data_path: String,
}

/// A namespace of a catalog.
#[derive(Clone, Debug)]
pub struct Namespace {
    /// The catalog that it is in.
    pub catalog: Catalog,
    /// Its number in the catalog.
    pub namespace_id: i64,
    /// Its name.
    pub name: String,
}

impl Lake {
    /// Makes a catalog. That is no commit: its first snapshot is that of its first namespace.
    pub async fn catalog(&self, name: &str, options: CatalogOptions) -> Result<Catalog> {
        let data_path = match &self.objects {
            Some(folder) => folder.join(name).to_string_lossy().into_owned(),
            None => format!("s3://lake/{name}"),
        };
        if let Some(folder) = local_folder(&data_path) {
            tokio::fs::create_dir_all(folder).await?;
        }
        let retention = options
            .retention
            .map(|kept| i64::try_from(kept.as_secs()))
            .transpose()
            .map_err(|_| LakeError::Validation("the retention is too long".into()))?;
        let catalog_id = sqlx::query_scalar(
            "INSERT INTO hog_catalog (name, data_path, snapshot_retention_seconds, consumer_floor)
             VALUES ($1, $2, $3, $4) RETURNING catalog_id",
        )
        .bind(name)
        .bind(&data_path)
        .bind(retention)
        .bind(options.consumer_floor)
        .fetch_one(&self.pool)
        .await?;
        Ok(Catalog { lake: self.clone(), catalog_id, name: name.to_owned(), data_path })
    }

    /// A catalog that is there already.
    pub async fn open_catalog(&self, name: &str) -> Result<Catalog> {
        let found: Option<(i64, String)> =
            sqlx::query_as("SELECT catalog_id, data_path FROM hog_catalog WHERE name = $1")
                .bind(name)
                .fetch_optional(&self.pool)
                .await?;
        let (catalog_id, data_path) =
            found.ok_or_else(|| LakeError::NotFound(format!("the catalog {name}")))?;
        Ok(Catalog { lake: self.clone(), catalog_id, name: name.to_owned(), data_path })
    }
}

impl Catalog {
    /// The lake's pool.
    pub fn pool(&self) -> &PgPool {
        &self.lake.pool
    }

    /// The folder of the objects, if there are any on disk.
    pub fn objects(&self) -> Option<PathBuf> {
        local_folder(&self.data_path)
    }

    /// The live namespace of this name, made in a commit of its own if it is not there.
    pub async fn namespace(&self, name: &str) -> Result<Namespace> {
        let mut commit = Commit::begin(self).await?;
        let found: Option<i64> = sqlx::query_scalar(
            "SELECT namespace_id FROM hog_namespace
              WHERE catalog_id = $1 AND name = $2 AND NOT dropped",
        )
        .bind(self.catalog_id)
        .bind(name)
        .fetch_optional(&mut *commit.tx)
        .await?;
        let namespace_id = match found {
            Some(namespace_id) => namespace_id,
            None => {
                let namespace_id = self.make_namespace(&mut commit, name).await?;
                commit.finish().await?;
                namespace_id
            }
        };
        Ok(Namespace { catalog: self.clone(), namespace_id, name: name.to_owned() })
    }

    async fn make_namespace(&self, commit: &mut Commit, name: &str) -> Result<i64> {
        let namespace_id: i64 = sqlx::query_scalar(
            "UPDATE hog_catalog SET next_namespace_id = next_namespace_id + 1
              WHERE catalog_id = $1 RETURNING next_namespace_id - 1",
        )
        .bind(self.catalog_id)
        .fetch_one(&mut *commit.tx)
        .await?;
        let snapshot_id = commit.ddl_snapshot("create namespace").await?;
        sqlx::query(
            "INSERT INTO hog_namespace (catalog_id, namespace_id, name) VALUES ($1, $2, $3)",
        )
        .bind(self.catalog_id)
        .bind(namespace_id)
        .bind(name)
        .execute(&mut *commit.tx)
        .await?;
        commit.change(snapshot_id, kind::NAMESPACE_CREATED, namespace_id).await?;
        Ok(namespace_id)
    }

    /// The last snapshot.
    pub async fn head(&self) -> Result<i64> {
        self.counter("last_snapshot_id").await
    }

    /// The oldest snapshot that can still be read.
    pub async fn floor(&self) -> Result<i64> {
        self.counter("earliest_snapshot_id").await
    }

    /// The id that the next file will get.
    pub async fn next_file_id(&self) -> Result<i64> {
        self.counter("next_file_id").await
    }

    /// Moves with every DDL commit.
    pub async fn schema_version(&self) -> Result<i64> {
        self.counter("schema_version").await
    }

    async fn counter(&self, column: &'static str) -> Result<i64> {
        let statement = format!("SELECT {column} FROM hog_catalog WHERE catalog_id = $1");
        Ok(sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
            .bind(self.catalog_id)
            .fetch_one(self.pool())
            .await?)
    }
}

impl Namespace {
    /// Drops the namespace in a commit of its own and returns its snapshot. It need not be
    /// empty: the tables in it are dead from then on, though their own rows do not say so.
    pub async fn drop_namespace(&self) -> Result<i64> {
        let mut commit = Commit::begin(&self.catalog).await?;
        let dropped = sqlx::query(
            "UPDATE hog_namespace SET dropped = true
              WHERE catalog_id = $1 AND namespace_id = $2 AND NOT dropped",
        )
        .bind(self.catalog.catalog_id)
        .bind(self.namespace_id)
        .execute(&mut *commit.tx)
        .await?;
        if dropped.rows_affected() == 0 {
            return Err(LakeError::NotFound(format!("the namespace {}", self.name)));
        }
        let snapshot_id = commit.ddl_snapshot("drop namespace").await?;
        commit.change(snapshot_id, kind::NAMESPACE_DROPPED, self.namespace_id).await?;
        commit.finish().await?;
        Ok(snapshot_id)
    }
}
