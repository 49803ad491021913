//! Tests of tuples of specs that are not live, or that only tailrace's copies know.

use anyhow::Result;
use tailrace::catalog::specs::copy_specs;
use tailrace::explicit::problem::Problem;
use tailrace_kit::lake::{Field, NewFile};

use super::{Scene, drop_of, file, item, of_spec, per_partition};

#[tokio::test]
async fn the_same_text_under_another_spec_stays() -> Result<()> {
    let scene = Scene::new().await?;
    let old = scene.table.append(vec![file("8"), file("9")]).await?.file_ids;
    scene.table.evolve_spec(&[Field::identity("kind")]).await?;
    let new = scene.table.append(vec![file("8"), file("9")]).await?.file_ids;

    let defaulted = scene.done(&drop_of(vec![item([Some("8")])])).await?;
    assert_eq!((defaulted.partitions[0].spec_id, defaulted.files_ended), (2, 1));
    assert_eq!(scene.live().await?, [old[0], old[1], new[1]]);
    let named = scene.done(&drop_of(vec![of_spec(1, [Some("8")])])).await?;
    assert_eq!((named.partitions[0].spec_id, named.files_ended), (1, 1));
    assert_eq!(scene.live().await?, [old[1], new[1]]);
    // One text under two specs is two tuples.
    let both = drop_of(vec![of_spec(1, [Some("9")]), item([Some("9")])]);
    assert_eq!(per_partition(&scene.done(&both).await?), [1, 1]);
    Ok(())
}

#[tokio::test]
async fn a_spec_that_only_our_copy_knows_is_known() -> Result<()> {
    let scene = Scene::of(&[Field::bucket("kind", 4)]).await?;
    let old = scene.table.append(vec![NewFile::of(["3"]), NewFile::of(["2"])]).await?.file_ids;
    let mut session = scene.session().await?;
    let vanished = drop_of(vec![of_spec(1, [Some("3")])]);
    scene.table.evolve_spec(&[Field::day("at")]).await?;

    // Nobody has copied it, and expiry deletes it: nothing says what its texts mean.
    let mut uncopied = scene.database.lake.pool().begin().await?;
    sqlx::query("DELETE FROM hog_partition_spec WHERE spec_id = 1").execute(&mut *uncopied).await?;
    uncopied.commit().await?;
    assert_eq!(
        scene.refused(&vanished).await?,
        Problem::Validation(
            r#"partitions[0] ["3"] names spec 1, which the table does not have"#.to_owned()
        )
    );

    // Copied in time, it is checked as if the catalog still had it.
    let second = scene.table.evolve_spec(&[Field::bucket("kind", 8)]).await?;
    scene.table.append(vec![NewFile::of(["7"]), NewFile::of(["6"])]).await?;
    copy_specs(&mut session, scene.catalog.catalog_id, None).await?;
    scene.table.evolve_spec(&[Field::day("at")]).await?;
    assert_eq!(scene.table.delete_vanished_specs().await?, (2, 0));
    let wrong = drop_of(vec![of_spec(second, [Some("8")])]);
    assert!(scene.refused(&wrong).await?.to_string().contains("no bucket of 0 to 7"));
    let right = drop_of(vec![of_spec(second, [Some("7")])]);
    assert_eq!(scene.done(&right).await?.files_ended, 1);
    assert_eq!(scene.live().await?.len(), 3);
    assert_eq!(scene.live().await?[..2], old);
    Ok(())
}
