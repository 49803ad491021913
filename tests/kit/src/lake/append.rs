//! Appends new files, many of them cheaply in one commit.

use std::path::PathBuf;

use uuid::Uuid;

use super::commit::{Commit, kind};
use super::error::{LakeError, Result};
use super::table::Table;
use super::write_object;

/// How many rows one INSERT brings.
const ROWS_PER_STATEMENT: usize = 20_000;

/// Whether a file's statistics are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatsState {
    /// The writer brought them.
    #[default]
    Provided,
    /// The hydrator has yet to read them from the footer.
    Pending,
    /// The hydrator could not.
    Failed,
}

impl StatsState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Provided => "provided",
            Self::Pending => "pending",
            Self::Failed => "failed",
        }
    }
}

/// A file to append.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// Its partition values by key index, as the writer computed them.
    pub values: Vec<Option<String>>,
    /// How many rows it has.
    pub records: i64,
    /// Its size.
    pub bytes: i64,
    /// The spec that it is bound to; none for the live one. With a spec named here the number
    /// of values is not checked, which is a way to a lake that no honest writer makes.
    pub spec_id: Option<i64>,
    /// The key indexes whose value gets no row, as damage.
    pub missing_keys: Vec<i32>,
    /// Whether its statistics are there.
    pub stats_state: StatsState,
    /// Its path; none for a new one below the catalog's `data_path`.
    pub path: Option<String>,
    /// Its column statistics; none unless given.
    pub stats: Vec<NewStats>,
}

/// What the statistics of a file say of one column.
#[derive(Clone, Debug)]
pub struct NewStats {
    /// The column's path.
    pub column: String,
    /// How many of its values are null.
    pub null_count: i64,
    /// The upper bound, as it is stored; none where it is not known.
    pub upper: Option<Vec<u8>>,
}

impl NewFile {
    /// A file of 100 records and 1,000 bytes with these partition values, none for null.
    pub fn new(values: Vec<Option<String>>) -> Self {
        Self {
            values,
            records: 100,
            bytes: 1000,
            spec_id: None,
            missing_keys: Vec::new(),
            stats_state: StatsState::Provided,
            path: None,
            stats: Vec::new(),
        }
    }

    /// As [`new`](Self::new), for values none of which is null.
    pub fn of<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        Self::new(values.into_iter().map(|value| Some(value.into())).collect())
    }

    /// With this number of rows.
    #[must_use]
    pub fn records(mut self, records: i64) -> Self {
        self.records = records;
        self
    }

    /// With this size.
    #[must_use]
    pub fn bytes(mut self, bytes: i64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Bound to this spec.
    #[must_use]
    pub fn spec(mut self, spec_id: i64) -> Self {
        self.spec_id = Some(spec_id);
        self
    }

    /// Without a row for the value at this key index.
    #[must_use]
    pub fn missing(mut self, key_index: i32) -> Self {
        self.missing_keys.push(key_index);
        self
    }

    /// With statistics still to be read.
    #[must_use]
    pub fn pending(mut self) -> Self {
        self.stats_state = StatsState::Pending;
        self
    }

    /// With statistics of a column: no nulls, and this upper bound as it is stored.
    #[must_use]
    pub fn upper(self, column: &str, bytes: &[u8]) -> Self {
        self.stats(column, 0, Some(bytes))
    }

    /// With statistics of a column.
    #[must_use]
    pub fn stats(mut self, column: &str, null_count: i64, upper: Option<&[u8]>) -> Self {
        let upper = upper.map(<[u8]>::to_vec);
        self.stats.push(NewStats { column: column.to_owned(), null_count, upper });
        self
    }

    /// At this path.
    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }
}

/// A commit that brought files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its snapshot.
    pub snapshot_id: i64,
    /// The files, in the order in which they were given.
    pub file_ids: Vec<i64>,
}

impl Table {
    /// Appends files blindly, as a writer does by default: whatever happened to the table
    /// since the writer looked, the files get the live spec's id.
    pub async fn append(&self, files: Vec<NewFile>) -> Result<Committed> {
        self.append_since(None, files).await
    }

    /// Appends files unless the table was altered or dropped after `read_snapshot`.
    pub async fn append_at(&self, read_snapshot: i64, files: Vec<NewFile>) -> Result<Committed> {
        self.append_since(Some(read_snapshot), files).await
    }

    async fn append_since(
        &self,
        read_snapshot: Option<i64>,
        files: Vec<NewFile>,
    ) -> Result<Committed> {
        if files.is_empty() {
            return Err(LakeError::Validation("an append without files".into()));
        }
        let files = self.write_objects(files).await?;
        let mut commit = Commit::begin(&self.catalog).await?;
        if let Some(read_snapshot) = read_snapshot {
            commit.check_readable(read_snapshot).await?;
            commit.check_no_ddl(self.table_id, read_snapshot).await?;
        }
        commit.check_table_live(self.table_id).await?;
        let snapshot_id = commit.snapshot("append").await?;
        let file_ids = self.insert_files(&mut commit, snapshot_id, &files).await?;
        commit.change(snapshot_id, kind::INSERTED, self.table_id).await?;
        commit.finish().await?;
        Ok(Committed { snapshot_id, file_ids })
    }

    /// A path that nothing else has.
    pub(crate) fn new_path(&self, extension: &str) -> String {
        format!("{}/{}/{}.{extension}", self.catalog.data_path, self.table_uuid, Uuid::new_v4())
    }

    /// Gives each file a path, and writes its object if the lake has any. Before the commit,
    /// as writers do: a commit that is refused leaves them behind, named by no row.
    pub(super) async fn write_objects(&self, mut files: Vec<NewFile>) -> Result<Vec<NewFile>> {
        let mut objects = Vec::new();
        for file in &mut files {
            let path = file.path.get_or_insert_with(|| self.new_path("parquet"));
            objects.push((PathBuf::from(path.as_str()), file.bytes));
        }
        if self.catalog.objects().is_some() {
            write_all(objects).await?;
        }
        Ok(files)
    }

    /// Adds the rows of files: ids from the catalog's counter, row ids and gross totals from
    /// the table's, partition values as they are given.
    pub(super) async fn insert_files(
        &self,
        commit: &mut Commit,
        snapshot_id: i64,
        files: &[NewFile],
    ) -> Result<Vec<i64>> {
        let catalog_id = self.catalog.catalog_id;
        let (live_spec, arity) = self.live_spec_and_arity(commit).await?;
        if let Some(odd) =
            files.iter().find(|file| file.spec_id.is_none() && file.values.len() != arity)
        {
            return Err(LakeError::Validation(format!(
                "{} partition values for a spec of {arity} fields",
                odd.values.len()
            )));
        }
        let first_id = commit.take_file_ids(files.len()).await?;
        let mut row_id: i64 = sqlx::query_scalar(
            "UPDATE hog_table_stats
                SET next_row_id = next_row_id + $3, record_count = record_count + $3,
                    file_size_bytes = file_size_bytes + $4
              WHERE catalog_id = $1 AND table_id = $2 RETURNING next_row_id - $3",
        )
        .bind(catalog_id)
        .bind(self.table_id)
        .bind(files.iter().map(|file| file.records).sum::<i64>())
        .bind(files.iter().map(|file| file.bytes).sum::<i64>())
        .fetch_one(&mut *commit.tx)
        .await?;

        let mut file_ids: Vec<i64> = Vec::with_capacity(files.len());
        let mut next_id = first_id;
        for chunk in files.chunks(ROWS_PER_STATEMENT) {
            let (mut ids, mut row_ids) = (Vec::new(), Vec::new());
            let (mut owners, mut keys, mut values) = (Vec::new(), Vec::new(), Vec::new());
            for file in chunk {
                for (key_index, value) in (0_i32..).zip(&file.values) {
                    if !file.missing_keys.contains(&key_index) {
                        owners.push(next_id);
                        keys.push(key_index);
                        values.push(value.as_deref());
                    }
                }
                ids.push(next_id);
                row_ids.push(row_id);
                next_id += 1;
                row_id += file.records;
            }
            sqlx::query(
                "INSERT INTO hog_data_file (catalog_id, table_id, begin_snapshot, data_file_id,
                        path, record_count, file_size_bytes, row_id_start, stats_state, spec_id)
                 SELECT $1, $2, $3, f.* FROM unnest($4::bigint[], $5::text[], $6::bigint[],
                        $7::bigint[], $8::bigint[], $9::text[], $10::bigint[]) AS f",
            )
            .bind(catalog_id)
            .bind(self.table_id)
            .bind(snapshot_id)
            .bind(&ids)
            .bind(chunk.iter().map(|file| file.path.as_deref()).collect::<Vec<_>>())
            .bind(chunk.iter().map(|file| file.records).collect::<Vec<_>>())
            .bind(chunk.iter().map(|file| file.bytes).collect::<Vec<_>>())
            .bind(&row_ids)
            .bind(chunk.iter().map(|file| file.stats_state.as_str()).collect::<Vec<_>>())
            .bind(chunk.iter().map(|file| file.spec_id.or(live_spec)).collect::<Vec<_>>())
            .execute(&mut *commit.tx)
            .await?;
            sqlx::query(
                "INSERT INTO hog_file_partition_value (catalog_id, data_file_id, key_index, value)
                 SELECT $1, v.* FROM unnest($2::bigint[], $3::int[], $4::text[]) AS v",
            )
            .bind(catalog_id)
            .bind(&owners)
            .bind(&keys)
            .bind(&values)
            .execute(&mut *commit.tx)
            .await?;
            self.insert_stats(commit, &ids, chunk).await?;
            file_ids.extend(ids);
        }
        Ok(file_ids)
    }
}

impl Table {
    async fn insert_stats(
        &self,
        commit: &mut Commit,
        ids: &[i64],
        files: &[NewFile],
    ) -> Result<()> {
        for (id, file) in ids.iter().zip(files) {
            for stats in &file.stats {
                sqlx::query(
                    "INSERT INTO hog_file_column_stats (catalog_id, data_file_id, field_id,
                            value_count, null_count, upper_bound)
                     VALUES ($1, $2, $3, $4, $5, $6)",
                )
                .bind(self.catalog.catalog_id)
                .bind(id)
                .bind(self.field_id(&stats.column)?)
                .bind(file.records)
                .bind(stats.null_count)
                .bind(&stats.upper)
                .execute(&mut *commit.tx)
                .await?;
            }
        }
        Ok(())
    }
}

/// Writes objects off the runtime's threads.
pub(super) async fn write_all(objects: Vec<(PathBuf, i64)>) -> Result<()> {
    let written = tokio::task::spawn_blocking(move || {
        objects.iter().try_for_each(|(path, bytes)| {
            write_object(path, u64::try_from(*bytes).unwrap_or_default())
        })
    });
    Ok(written.await.map_err(std::io::Error::other)??)
}
