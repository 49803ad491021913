//! Tests every shared vector of `tests/partition-vectors.json` with real rows.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Deserialize;
use tailrace::rules::instant::UtcInstant;
use tailrace_kit::lake::{Column, Field, NewFile};

use crate::support::TestDatabase;
use crate::support::governed::expired;

#[derive(Deserialize)]
struct Vector {
    transform: String,
    #[serde(rename = "type")]
    column_type: Option<String>,
    text: Option<String>,
    start: Option<String>,
    end: Option<String>,
    undatable: Option<String>,
}

#[derive(Deserialize)]
struct Vectors {
    vectors: Vec<Vector>,
}

/// Each dated text expires an hour after the end of its range and not a nanosecond earlier;
/// each undatable one is kept at the end of time, counted as what it is.
#[tokio::test]
async fn every_text_leaves_when_the_vectors_say_or_never() -> Result<()> {
    let all: Vectors = serde_json::from_str(include_str!("../../../partition-vectors.json"))?;
    assert_eq!(all.vectors.len(), 90);
    let mut tables: BTreeMap<(String, String), Vec<Vector>> = BTreeMap::new();
    for vector in all.vectors {
        let col_type = vector.column_type.clone().unwrap_or_else(|| "timestamptz".to_owned());
        tables.entry((vector.transform.clone(), col_type)).or_default().push(vector);
    }
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    for ((transform, col_type), vectors) in tables {
        let name = format!("{transform}_{col_type}");
        let columns = [Column::new("at", &col_type)];
        let field = Field::new("at", &transform, None);
        let table = database.table_of(&catalog, &name, &columns, &[field]).await?;
        let files = vectors.iter().map(|vector| NewFile::new(vec![vector.text.clone()]));
        table.append(files.collect()).await?;
        database.govern(&table, "at", "1h").await?;

        let mut never: BTreeMap<&str, i64> = BTreeMap::new();
        for vector in &vectors {
            let said = format!("{name} {:?}", vector.text);
            let (Some(start), Some(end)) = (&vector.start, &vector.end) else {
                *never.entry(vector.undatable.as_deref().unwrap_or("?")).or_default() += 1;
                continue;
            };
            let (start, end): (UtcInstant, UtcInstant) = (start.parse()?, end.parse()?);
            assert!(start <= end, "{said}");
            let leaves = end.plus(std::time::Duration::from_secs(3_600));
            for (at, goes) in [(leaves.plus_nanos(-1), false), (leaves, true)] {
                let plan = database.plan(&name, &at.to_string()).await?;
                let found = plan
                    .expired
                    .iter()
                    .find(|tuple| tuple.tuple.tuple.values == [vector.text.clone()]);
                assert_eq!(found.map(|tuple| tuple.range_end), goes.then_some(end), "{said} {at}");
            }
        }
        let plan = database.plan(&name, "9999-12-31T23:59:59Z").await?;
        let kept_counts = plan.kept_counts.clone().unwrap_or_default();
        let kept: BTreeMap<&str, i64> = kept_counts
            .kept
            .iter()
            .filter(|(reason, _)| !reason.is_datable())
            .map(|(reason, group)| (reason.name(), group.files))
            .collect();
        assert_eq!(kept, never, "{name}");
        let gone: i64 = expired(&plan).iter().map(|(_, _, files)| files).sum();
        assert_eq!(gone + kept_counts.kept_files(), vectors.len() as i64, "{name}");
    }
    Ok(())
}
