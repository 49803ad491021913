//! Tests that a tuple is checked with all of its files, whichever of them was found first.

use anyhow::Result;
use tailrace::sweep::Settings;
use tailrace_kit::lake::{Field, NewFile};

use super::{NOW, Scene, file};
use crate::support::program::settings;

/// Every file is a piece of its own, and is dropped before the next one is read.
fn in_pieces() -> Settings {
    let mut settings = settings();
    settings.scan_limits.small_table = 1;
    settings.scan_limits.piece = 1;
    settings.scan_limits.files_at_hand = 1;
    settings.scan_limits.tuples_at_hand = 1;
    settings.scan_limits.values_at_once = 1;
    settings
}

/// Day 20820 is 2027-01-02. The first two files have no statistics, the third has newer rows.
fn delayed() -> Vec<NewFile> {
    vec![NewFile::of(["20820"]), NewFile::of(["20820"]), file(&["20820"], "2027-01-05T00:00:00Z")]
}

#[tokio::test]
async fn by_a_full_pass_in_pieces() -> Result<()> {
    for has_index in [true, false] {
        let scene = Scene::new(&[&[Field::day("at")]]).await?;
        if !has_index {
            scene.database.sql("DROP INDEX hog_file_partition_value_lookup").await?;
        }
        let files = scene.append(delayed()).await?;
        scene.append(vec![NewFile::of(["20819"]); 3]).await?;
        let report = scene.sweep_with(NOW, in_pieces()).await?;
        assert_eq!(report.counts().files, 3, "{has_index} {report:?}");
        assert_eq!(scene.live().await?, files, "{has_index}");
    }
    Ok(())
}

/// Late files are read by id where they are too many.
#[tokio::test]
async fn by_an_incremental_pass_in_pieces() -> Result<()> {
    let scene = Scene::new(&[&[Field::day("at")]]).await?;
    // Late files that are more than half of those that were there would be a full pass.
    scene.append(vec![NewFile::of(["20900"]); 20]).await?;
    scene.sweep_with(NOW, in_pieces()).await?;
    let files = scene.append(delayed()).await?;
    scene.append(vec![NewFile::of(["20819"]); 3]).await?;
    let report = scene.sweep_with("2027-01-10T01:00:00Z", in_pieces()).await?;
    assert_eq!((report.full, report.counts().files), (Some(false), 3), "{report:?}");
    assert_eq!(scene.live().await?[20..], files);
    // And once more, when the tuple is among those that were skipped.
    let report = scene.sweep_with("2027-01-10T02:00:00Z", in_pieces()).await?;
    assert_eq!((report.full, report.snapshots.len()), (Some(false), 0));
    assert_eq!(scene.live().await?[20..], files);
    Ok(())
}
