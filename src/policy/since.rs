//! Since when a policy is in force as it is.

use super::{Policy, Source, store};
use crate::catalog::checks::property::{PropertySince, property_since};
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::rules::instant::UtcInstant;

/// Since when the policy is in force as it is; `None` where nobody can tell.
///
/// A stored one since it was set. A property since the snapshot in which the table got its text, whenever a
/// pass mirrored it, or since a stored policy that won over it was taken away, if that was later.
pub async fn in_force_since(
    connection: &mut Session,
    table: &TableIdentity,
    policy: &Policy,
) -> sqlx::Result<Option<UtcInstant>> {
    let since = match policy.source {
        Source::Stored => store::rows(connection, table).await?.stored.map(|row| row.updated_at),
        Source::Property => {
            let PropertySince { written, took_over } = property_since(connection, table).await?;
            written.map(|written| took_over.map_or(written, |took_over| took_over.max(written)))
        }
    };
    Ok(since.map(UtcInstant::from))
}
