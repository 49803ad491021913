//! What a renewal notes of a catalog, as passes do. It copies partition specs, because the server may delete
//! a spec between two passes before any pass has seen it. And it mirrors the properties of tables: the drop
//! window in SQL uses a property only while its text is the mirrored one.

use anyhow::Context;

use super::Settings;
use super::intake::CatalogIntake;
use super::renewed::{Failed, Renewed};
use crate::catalog::errors::is_connection_error;
use crate::catalog::restore::{is_whole, note_head, restored};
use crate::catalog::session::Session;
use crate::catalog::specs::copy_specs;
use crate::catalog::tables::live_tables_among;
use crate::catalog::triage::catalogs::note_copied;
use crate::policy::effective::mirror_news;
use crate::rules::instant::UtcInstant;

/// Copies the specs of a catalog where some may be new. A copy is dated by the next pass (see [`copy_specs`],
/// also for why this needs no lease). Notes the catalog's head first where anything is learned of it at all, at
/// `now`: should it be restored to a time before, what was learned is told to be of after it.
///
/// # Errors
/// The database's.
pub async fn copy_new_specs(
    connection: &mut Session,
    intake: &CatalogIntake,
    now: UtcInstant,
) -> anyhow::Result<()> {
    let catalog_id = intake.catalog.catalog_id;
    if !intake.copies_specs && intake.mirrors.is_empty() {
        return Ok(());
    }
    note_head(connection, catalog_id, now).await?;
    if intake.copies_specs {
        let copied = copy_specs(connection, catalog_id, None).await;
        copied.context("partition specs were not copied")?;
        if intake.is_whole {
            note_copied(connection, catalog_id, intake.schema_version).await?;
        }
    }
    Ok(())
}

/// Brings the mirrors of tables with news up to date. As for a pass, nothing is read of a catalog that is not
/// whole by now; and nothing of one that was restored, for the pass that settles that forgets which column a
/// field of a mirror of after the restore was bound to.
///
/// It takes no lease. Of two that mirror at once the later one may write the older text: no drop and no
/// window goes by a text that is not the table's, and the next look writes the present one.
///
/// # Errors
/// The database's; of one table they are only noted.
pub async fn mirror_properties(
    connection: &mut Session,
    intake: &CatalogIntake,
    settings: &Settings,
    renewed: &mut Renewed,
) -> anyhow::Result<()> {
    let CatalogIntake { catalog, mirrors, .. } = intake;
    let catalog_id = catalog.catalog_id;
    if !is_whole(connection, catalog_id).await? || restored(connection, catalog_id).await?.is_some()
    {
        return Ok(());
    }
    for table in live_tables_among(connection, catalog, true, Some(mirrors)).await? {
        let mirrored = mirror_news(connection, &table, settings.policy_limits).await;
        match mirrored.context("its property was not mirrored") {
            Ok(()) => {}
            Err(error) if is_connection_error(&error) => return Err(error),
            Err(error) => {
                renewed.failed.push(Failed::of_table(&table.identity, &error));
            }
        }
    }
    Ok(())
}
