//! Tests that all pages together are the whole window.

use anyhow::Result;
use tailrace::feed::ChangesQuery;

use super::{NOTHING, Scene, with_ends};

#[tokio::test]
async fn every_limit_gives_the_same_whole() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.catalog.head().await?;
    scene.append(&["1", "2", "3"]).await?;
    scene.append(&["1"]).await?;
    scene.table.register_vector(2, 1, None).await?;
    scene.table.register_vector(4, 1, None).await?;
    scene.drop_day("1").await?;
    scene.append(&["1", "2"]).await?;
    scene.drop_day("2").await?;
    let head = scene.catalog.head().await?;
    let query = with_ends(start, head);
    let whole = scene.told(&query).await?;
    assert_eq!(super::all_ids(&whole).map(|list| list.len()), [6, 2, 4]);
    for limit in 1..=14 {
        assert_eq!(scene.paged(&query, limit).await?, whole, "{limit}");
    }
    // Full to the last entry is not known to be the end; short of it is.
    let full = scene.page(&ChangesQuery { limit: Some(12), ..query.clone() }).await?;
    let last = ChangesQuery { limit: Some(12), cursor: full.next_cursor.clone(), ..query.clone() };
    assert!(full.next_cursor.is_some());
    let last = serde_json::to_value(scene.page(&last).await?)?;
    assert_eq!(super::all_ids(&last), NOTHING);
    assert_eq!(last.get("next_cursor"), None);
    let roomy = scene.page(&ChangesQuery { limit: Some(13), ..query }).await?;
    assert_eq!(roomy.next_cursor, None);
    Ok(())
}
