//! Asks SQL and the judge of the passes the same questions, and compares the answers.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use tailrace::catalog::connect::close;
use tailrace::catalog::session::Session;
use tailrace::catalog::specs::spec_book;
use tailrace::catalog::window_rules::keep_window_rules;
use tailrace::policy::store;
use tailrace::rules::expiry::{Judge, Retention, SpecBook, StoredTuple, Verdict};
use tailrace::rules::instant::UtcInstant;
use tailrace_kit::lake::Table;

use crate::support::TestDatabase;
use crate::support::governed::Values;

pub const DAY: Duration = Duration::from_secs(86_400);

/// One question: is this tuple in the window at that time?
#[derive(Debug, Clone)]
pub struct Question {
    pub spec_id: i64,
    pub values: Values,
    pub at: UtcInstant,
}

/// How the judge of the passes answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers {
    /// In the window.
    pub yes: usize,
    /// Not in it for a doubt alone: by its values the tuple has expired.
    pub ambiguous: usize,
}

/// What the judge of the passes says for a time that is `compaction.lead` later.
fn judged(
    book: &SpecBook,
    column: i64,
    keep: Duration,
    lead: Duration,
    of: &Question,
) -> (Verdict, bool) {
    let retention = Retention { source_field_id: column, keep, now: of.at.plus(lead) };
    let judge = Judge::new(book, retention);
    // Whoever asks SQL gives the values in the order of the keys.
    let keys = match judge.spec(of.spec_id) {
        Some(spec) => spec.keys().to_vec(),
        None => (0..of.values.len() as i32).collect(),
    };
    let tuple = StoredTuple { keys, values: of.values.clone() };
    let verdict = judge.judge(Some(of.spec_id), &tuple);
    let is_in = matches!(&verdict, Verdict::Expired { doubt, .. } if doubt.is_none());
    (verdict, is_in)
}

/// Asks both, first with no rules kept, then with those kept of this time; returns how many of the
/// answers were yes, and how many were no by doubt. All of them must agree.
pub async fn agree(database: &TestDatabase, table: &Table, asked: &[Question]) -> Result<Answers> {
    let identity = database.live(table).await?.identity;
    let mut session = database.tailrace().session().await?;
    let (catalog_id, table_id) = (identity.catalog_id, identity.table_id);
    let book = spec_book(&mut session, catalog_id, table_id).await?;
    let policy = store::rows(&mut session, &identity).await?.stored.context("a policy")?;
    let keep = Duration::from_secs(policy.keep_seconds.unsigned_abs());
    let expected: Vec<_> = asked
        .iter()
        .map(|question| judged(&book, policy.source_field_id, keep, DAY, question))
        .collect();
    sqlx::query("delete from tailrace.window_rule").execute(&mut session).await?;
    for rules in ["worked out", "kept"] {
        let answers = in_drop_window(&mut session, table, asked).await?;
        ensure!(answers.len() == asked.len(), "{} answers", answers.len());
        for ((question, (verdict, is_in)), answer) in asked.iter().zip(&expected).zip(answers) {
            ensure!(answer == Some(*is_in), "{rules}: {question:?}: {answer:?}, {verdict:?}");
        }
        keep_window_rules(&mut session, catalog_id).await?;
    }
    let of_now: i64 = sqlx::query_scalar(
        "select count(*) from tailrace.window_rule r join hog_catalog c using (catalog_id, schema_version)",
    )
    .fetch_one(&mut session)
    .await?;
    close(session).await;
    ensure!(of_now > 0, "no rule was kept");
    let mut answers = Answers::default();
    for (verdict, is_in) in expected {
        answers.yes += usize::from(is_in);
        answers.ambiguous += usize::from(!is_in && matches!(verdict, Verdict::Expired { .. }));
    }
    Ok(answers)
}

/// What SQL answers, by the rules that are kept now.
pub async fn in_drop_window(
    session: &mut Session,
    table: &Table,
    asked: &[Question],
) -> Result<Vec<Option<bool>>> {
    let questions: Vec<_> = asked
        .iter()
        .map(|of| json!({"spec_id": of.spec_id, "values": of.values, "at": of.at.to_string()}))
        .collect();
    let answers = sqlx::query_scalar(
        "select tailrace.in_drop_window($1, $2, (q -> 'spec_id')::bigint,
                  coalesce((select array_agg(e.value order by e.place)
                     from jsonb_array_elements_text(q -> 'values') with ordinality
                          as e (value, place)), '{}'),
                  (q ->> 'at')::timestamptz)
         from jsonb_array_elements($3) with ordinality as a (q, place) order by a.place",
    )
    .bind(table.catalog.catalog_id)
    .bind(table.table_id)
    .bind(serde_json::Value::Array(questions))
    .fetch_all(session)
    .await?;
    Ok(answers)
}

/// The questions about a tuple around the moments at which it may come into the window, where
/// those lie in years of four digits, and at two that are far from all of them.
pub fn around(spec_id: i64, values: &Values, ends: &[UtcInstant], keep: Duration) -> Vec<Question> {
    let year = |at: &UtcInstant| at.civil().0;
    let turns = ends.iter().flat_map(|end| {
        let turn = end.plus(keep).minus(DAY);
        // Postgres counts in microseconds, and so is it asked.
        let turn = UtcInstant::from_nanos(turn.nanos().div_euclid(1_000) * 1_000);
        [-1_000, 0, 1_000, 2_000].map(|nanos| turn.plus_nanos(nanos))
    });
    turns
        .filter(|at| (1..=9999).contains(&year(at)))
        .chain([UtcInstant::from_civil(1, 2, 3), UtcInstant::from_civil(9998, 7, 6)])
        .map(|at| Question { spec_id, values: values.clone(), at })
        .collect()
}
