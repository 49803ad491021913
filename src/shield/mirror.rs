//! A renewal mirrors the properties of a catalog's tables, as passes do: the window in SQL has a property for
//! as long as its text is the mirrored one.

use anyhow::Context;

use super::Settings;
use super::renew::{Failed, Renewed};
use crate::catalog::failure::is_away;
use crate::catalog::restore::{is_whole, restored};
use crate::catalog::session::Session;
use crate::catalog::tables::{Catalog, live_tables};
use crate::sweep::effective::mirror_news;

/// Brings the mirrors of a catalog up to date. As for a pass, nothing is read of a catalog that is not whole;
/// and nothing of one that was restored, for the pass that settles that forgets which column a field of a
/// mirror of after the restore was bound to.
///
/// It takes no lease. Of two that mirror at once the later one may write the older text: no drop and no
/// window goes by a text that is not the table's, and the next look writes the present one.
///
/// # Errors
/// The database's; of one table they are only noted.
pub async fn mirror_properties(
    connection: &mut Session,
    catalog: &Catalog,
    settings: &Settings,
    renewed: &mut Renewed,
) -> anyhow::Result<()> {
    let catalog_id = catalog.catalog_id;
    if !is_whole(connection, catalog_id).await? || restored(connection, catalog_id).await?.is_some()
    {
        return Ok(());
    }
    for table in live_tables(connection, catalog, true).await? {
        let mirrored = mirror_news(connection, &table, settings.min_keep).await;
        match mirrored.context("its property was not mirrored") {
            Ok(()) => {}
            Err(error) if is_away(&error) => return Err(error),
            Err(error) => {
                renewed.failed.push(Failed::of_table(&table.identity, &error));
            }
        }
    }
    Ok(())
}
