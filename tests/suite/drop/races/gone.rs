//! Tests of a table that was dropped, replaced or renamed before the commit.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Catalog, Column, Field, Namespace};

use crate::support::gate::in_order;

use super::{Scene, whole};

/// Every DDL that makes the planned table go.
#[derive(Debug, Clone, Copy)]
enum Ddl {
    Drop,
    Replace,
    Rename,
    Move,
    DropNamespace,
}

async fn namespace(catalog: &Catalog, name: &str) -> Result<Namespace> {
    Ok(catalog.namespace(name).await?)
}

#[tokio::test]
async fn a_table_that_went_in_between_is_gone_and_nothing_is_written() -> Result<()> {
    for ddl in [Ddl::Drop, Ddl::Replace, Ddl::Rename, Ddl::Move, Ddl::DropNamespace] {
        let scene = Scene::new(&[0, 8, 9]).await?;
        let (here, other) =
            (namespace(&scene.catalog, "events").await?, namespace(&scene.catalog, "x").await?);
        let columns = [Column::new("at", "timestamptz")];
        let change = async {
            match ddl {
                Ddl::Drop => scene.table.drop_table().await.map(drop),
                Ddl::Replace => {
                    scene.table.replace_table(&columns, &[Field::day("at")]).await.map(drop)
                }
                Ddl::Rename => scene.table.rename("raw_2").await.map(drop),
                Ddl::Move => scene.table.move_to(&other).await.map(drop),
                Ddl::DropNamespace => here.drop_namespace().await.map(drop),
            }
        };
        let head = scene.catalog.head().await?;
        let (_, report) = in_order(&scene.catalog, change, scene.sweep()).await?;
        assert_eq!((report.outcome, report.error), (Outcome::Gone, None), "{ddl:?}");
        assert!(report.snapshots.is_empty(), "{ddl:?}");
        assert_eq!(scene.catalog.head().await?, head + 1, "{ddl:?}: the DDL's own");
        for file in &scene.files {
            assert_eq!(scene.end_of(*file).await?, None, "{ddl:?}");
        }
        assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, [], "{ddl:?}");
    }
    Ok(())
}

/// A policy is of one table, by its UUID: the table that took the name has none.
#[tokio::test]
async fn the_one_that_took_its_place_is_not_governed() -> Result<()> {
    let scene = Scene::new(&[8]).await?;
    let columns = [Column::new("at", "timestamptz"), Column::new("kind", "string")];
    let successor = scene.table.replace_table(&columns, &[Field::day("at")]).await?;
    successor.append(vec![super::file(8)]).await?;
    assert_eq!(scene.database.sweep().await?.tables, []);
    assert_eq!(successor.live_files().await?.len(), 1);
    Ok(())
}

/// A renamed table is the same one: the next pass finds it by its new name.
#[tokio::test]
async fn a_renamed_table_is_dropped_from_by_the_next_pass() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    scene.table.rename("raw_2").await?;
    let report = scene.sweep().await?;
    assert_eq!((report.outcome, report.table.as_str()), (Outcome::Dropped, "raw_2"));
    assert_eq!(scene.live().await?, [scene.files[0]]);
    Ok(())
}
