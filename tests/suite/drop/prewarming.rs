//! Tests of prewarming: the pages that a commit writes to are read before the commit.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;
use sqlx::PgPool;
use tailrace::catalog::connect::{Access, Database};
use tailrace::catalog::prewarm::{FILES, VECTORS, explain_pages, leaf_indexes};
use tailrace::catalog::session::{Patience, Session};
use tailrace::catalog::vectors::live_vectors;
use tailrace::drop::prewarm::{Prewarmed, prewarm};
use tailrace_kit::lake::{CatalogOptions, Column, Field, Lake, Table};
use tailrace_kit::server::{PrivateServer, ServerOptions, StopMode};

use super::{Scene, file};
use crate::explicit::wire::Wire;

const FILE_INDEXES: [&str; 5] = [
    "hog_data_file_changefeed",
    "hog_data_file_maintenance_scan",
    "hog_data_file_maintenance_size_scan",
    "hog_data_file_path",
    "hog_data_file_pkey",
];

const VECTOR_INDEXES: [&str; 4] = [
    "hog_delete_file_changefeed",
    "hog_delete_file_data_lookup",
    "hog_delete_file_path",
    "hog_delete_file_pkey",
];

/// What a plan reads its rows by: names of indexes, and of tables that it scans.
pub fn read_by(plan: &Value, names: &mut BTreeSet<String>) {
    match plan {
        Value::Object(node) => {
            let name = node.get("Index Name").or_else(|| {
                let is_scan = node.get("Node Type").is_some_and(|kind| kind == "Seq Scan");
                if is_scan { node.get("Relation Name") } else { None }
            });
            names.extend(name.and_then(Value::as_str).map(str::to_owned));
            node.values().for_each(|part| read_by(part, names));
        }
        Value::Array(parts) => parts.iter().for_each(|part| read_by(part, names)),
        _ => {}
    }
}

/// Two thousand files, each with a vector.
async fn many(scene: &Scene) -> Result<(Vec<i64>, Vec<i64>)> {
    let files = scene.table.append((0..2000).map(|_| file("1")).collect()).await?.file_ids;
    scene
        .database
        .sql(
            "INSERT INTO hog_delete_file (catalog_id, delete_file_id, table_id, data_file_id,
                 begin_snapshot, path, delete_count, file_size_bytes)
               SELECT catalog_id, data_file_id + 10000, table_id, data_file_id, begin_snapshot,
                      path || '.puffin', 1, 1 FROM hog_data_file;
             ANALYZE",
        )
        .await?;
    let vectors = files.iter().map(|id| id + 10_000).collect();
    Ok((files, vectors))
}

/// Each index that ending a row writes to is read by its own order, also where all rows share one
/// size and one snapshot, and no table is scanned.
#[tokio::test]
async fn each_index_is_read_by_itself() -> Result<()> {
    let scene = Scene::new().await?;
    let (files, vectors) = many(&scene).await?;
    let mut session = scene.database.tailrace().session().await?;
    let indexes = leaf_indexes(&mut session).await?;
    for (rows, ids, expected) in
        [(&FILES, &files, &FILE_INDEXES[..]), (&VECTORS, &vectors, &VECTOR_INDEXES[..])]
    {
        let catalog_id = scene.catalog.catalog_id;
        let plan = explain_pages(&mut session, catalog_id, rows, &indexes, ids).await?;
        let mut names = BTreeSet::new();
        read_by(&plan, &mut names);
        assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        let text = plan.to_string();
        assert!(!text.contains("\"Sort\""), "a leaf is found by order, not by sorting: {text}");
    }
    Ok(())
}

async fn explained(
    session: &mut Session,
    wire: &Wire,
    scene: &Scene,
    files: &[i64],
) -> Result<(Prewarmed, usize, usize)> {
    let files: Vec<_> = files.iter().map(|id| (*id, 0)).collect();
    wire.forget();
    let prewarmed = prewarm(session, scene.catalog.catalog_id, &files, &[]).await?;
    let asked: BTreeSet<_> = wire.asked().into_iter().collect();
    let samples = asked.iter().filter(|sql| sql.starts_with("explain")).count();
    let scans = asked.iter().filter(|sql| sql.starts_with("with rows_read")).count();
    Ok((prewarmed, samples, scans))
}

/// Where nothing is cold one sample is looked at, and a few files are not even sampled; files that
/// are gone by then are no error.
#[tokio::test]
async fn what_is_warm_costs_one_sample() -> Result<()> {
    let scene = Scene::new().await?;
    let (files, _) = many(&scene).await?;
    let (wire, through) = Wire::to(&scene.database).await?;
    let mut session = through.session().await?;
    let nothing = Prewarmed { rows: 0, sample_blocks: 0 };
    assert_eq!(explained(&mut session, &wire, &scene, &files).await?, (nothing, 1, 0));
    assert_eq!(explained(&mut session, &wire, &scene, &files[..64]).await?, (nothing, 0, 1));
    assert_eq!(explained(&mut session, &wire, &scene, &[]).await?, (nothing, 0, 0));
    let gone: Vec<i64> = (0..200).map(|id| files[0] + 100_000 + id).collect();
    assert_eq!(explained(&mut session, &wire, &scene, &gone).await?, (nothing, 1, 0));
    Ok(())
}

#[tokio::test]
async fn an_older_server_is_prewarmed_by_the_indexes_that_it_has() -> Result<()> {
    let scene = Scene::new().await?;
    let (files, _) = many(&scene).await?;
    scene.database.lake.downgrade(9).await?;
    let mut session = scene.database.tailrace().session().await?;
    let indexes = leaf_indexes(&mut session).await?;
    let plan =
        explain_pages(&mut session, scene.catalog.catalog_id, &FILES, &indexes, &files).await?;
    let mut names = BTreeSet::new();
    read_by(&plan, &mut names);
    let expected =
        ["hog_data_file_changefeed", "hog_data_file_maintenance_scan", "hog_data_file_pkey"];
    assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    Ok(())
}

async fn table_of(server: &PrivateServer) -> Result<(PgPool, Table)> {
    let pool = PgPool::connect(&server.admin_url()).await?;
    let lake = Lake::install(&pool, "public").await?;
    let catalog = lake.catalog("lake", CatalogOptions::default()).await?;
    let namespace = catalog.namespace("events").await?;
    let columns = [Column::new("at", "timestamptz")];
    let table = catalog.create_table(&namespace, "raw", &columns, &[Field::day("at")]).await?;
    Ok((pool, table))
}

/// After a restart nothing is in the server's memory: all of the batch is read, files and vectors,
/// and the next look finds nothing missing.
#[tokio::test]
async fn what_is_cold_is_read() -> Result<()> {
    let mut server = PrivateServer::start(ServerOptions::for_tests()).await?;
    let (pool, table) = table_of(&server).await?;
    let files = table.append((0..1500).map(|_| file("1")).collect()).await?.file_ids;
    table.register_vector(files[3], 1, None).await?;
    let files: Vec<_> = files.into_iter().map(|id| (id, 0)).collect();
    pool.close().await;
    server.restart(StopMode::Fast).await?;
    let options = server.admin_url().parse()?;
    let connect_timeout = std::time::Duration::from_secs(10);
    let database = Database {
        options,
        schema: "public".to_owned(),
        connect_timeout,
        patience: Patience::default(),
    };
    let mut session = database.unchecked(Access::ReadWrite).await?;
    let catalog_id = table.catalog.catalog_id;
    let vectors = live_vectors(&mut session, catalog_id, &files).await?;
    assert_eq!(vectors.first().context("one")?.data_file_id, files[3].0);
    let prewarmed = prewarm(&mut session, catalog_id, &files, &vectors).await?;
    assert_eq!(prewarmed.rows, 1500, "{prewarmed:?}");
    assert!(prewarmed.sample_blocks > 4, "{prewarmed:?}");
    let again = prewarm(&mut session, catalog_id, &files, &vectors).await?;
    assert_eq!(again, Prewarmed { rows: 0, sample_blocks: 0 });
    Ok(())
}
