//! The definition of a table: its columns, and the fields that it is partitioned by.

/// A column to make, with the columns inside it if it is a struct.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name, without the names of the structs around it.
    pub name: String,
    /// One of the catalog's types.
    pub col_type: String,
    /// Whether null is admitted; the default.
    pub nullable: bool,
    /// The columns of a struct.
    pub children: Vec<Column>,
}

impl Column {
    /// A leaf column.
    pub fn new(name: &str, col_type: &str) -> Self {
        Self {
            name: name.to_owned(),
            col_type: col_type.to_owned(),
            nullable: true,
            children: Vec::new(),
        }
    }

    /// A struct of columns.
    pub fn structure(name: &str, children: Vec<Column>) -> Self {
        Self { children, ..Self::new(name, "struct") }
    }
}

/// One field of a partition spec: a transform of a leaf column.
#[derive(Clone, Debug)]
pub struct Field {
    /// The column's path, its names joined by dots: `event.at`.
    pub column: String,
    /// `identity`, `bucket`, `year`, `month`, `day` or `hour`.
    pub transform: String,
    /// The number of buckets; nothing for the others.
    pub param: Option<i32>,
}

impl Field {
    /// A field by the name of its transform.
    pub fn new(column: &str, transform: &str, param: Option<i32>) -> Self {
        Self { column: column.to_owned(), transform: transform.to_owned(), param }
    }

    /// The value itself.
    pub fn identity(column: &str) -> Self {
        Self::new(column, "identity", None)
    }

    /// One of `count` buckets.
    pub fn bucket(column: &str, count: i32) -> Self {
        Self::new(column, "bucket", Some(count))
    }

    /// Years since 1970.
    pub fn year(column: &str) -> Self {
        Self::new(column, "year", None)
    }

    /// Months since 1970-01.
    pub fn month(column: &str) -> Self {
        Self::new(column, "month", None)
    }

    /// Days since 1970-01-01.
    pub fn day(column: &str) -> Self {
        Self::new(column, "day", None)
    }

    /// Hours since 1970-01-01T00.
    pub fn hour(column: &str) -> Self {
        Self::new(column, "hour", None)
    }
}
