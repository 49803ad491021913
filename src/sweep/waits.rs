//! What waited until now ends at the beginning of a pass: changes of policies come into force, pauses that were resumed
//! and holds end.

use std::collections::BTreeSet;
use std::time::Duration;

use super::commits::AUTHOR;
use super::report::Waits;
use crate::catalog::session::Session;
use crate::events;
use crate::guards::release::release;
use crate::guards::resume::take_ended;
use crate::policy::coming::bring_into_force;
use crate::rules::instant::UtcInstant;

/// Ends what waited until now, before tables are looked at, but in catalogs that are in doubt: changes of policies come
/// into force, and pauses end. What could not be ended keeps what it keeps, so a failure does not stop the pass.
pub async fn end_waits(control: &mut Session, now: UtcInstant, untouched: &BTreeSet<i64>) {
    let but: Vec<i64> = untouched.iter().copied().collect();
    let ended = async {
        bring_into_force(control, now, &but).await?;
        take_ended(control, now, &but, AUTHOR).await
    };
    if let Err(error) = ended.await {
        tracing::warn!(event = events::PURGE_FAILED, %error, "What waited for guard.policy_grace could not come into force");
    }
}

/// Counts what waits.
pub async fn count_waits(control: &mut Session) -> sqlx::Result<Waits> {
    sqlx::query_as!(
        Waits,
        r#"select (select count(*) from tailrace.policy
                   where pending_until is not null and pending_revision = revision)
                    as "pending_policies!",
                  (select coalesce(sum(files), 0)::bigint from tailrace.waiting
                   where reason = 'blast_radius') as "blast_radius_files!""#
    )
    .fetch_one(control)
    .await
}

/// Releases holds whose time is over. They keep nothing any more, so a failure does not stop the pass.
pub async fn release_ended(control: &mut Session, ended: &[i64]) {
    for hold_id in ended {
        if let Err(error) = release(control, *hold_id, AUTHOR, Duration::ZERO).await {
            tracing::warn!(event = events::PURGE_FAILED, %error, "A hold whose time is over could not be released");
        }
    }
}
