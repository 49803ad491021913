//! Tests of a request that is retried until it is answered, with faults meanwhile: the drop is made
//! exactly once, and the answer is always the same.

use anyhow::{Context, Result};
use tailrace::catalog::connect::Database;
use tailrace::explicit::call::{DropAnswer, DropBody, TableRef, TruncateBody};
use tailrace::explicit::problem::Problem;
use tailrace::explicit::{drop_partitions, truncate};
use tailrace_kit::lake::{Field, NewFile, Table};
use uuid::Uuid;

use crate::support::TestDatabase;
use crate::support::proxy::Cut;

use super::wire::{Fault, Wire};
use super::{Scene, days, drop_of, file, first, item, ledger, patient, raw};

const FAULTS: [Fault; 3] = [Fault::Before, Fault::After, Fault::Killed];

/// One try in a fresh session; `None` where it was cut off.
async fn attempt(through: &Database, table: &TableRef, body: &DropBody) -> Option<DropAnswer> {
    let mut session = through.session().await.ok()?;
    match drop_partitions(&mut session, table, body, "me", &patient()).await {
        Ok(answer) => Some(answer),
        // The one thing that a broken session is told as.
        Err(problem) => {
            assert_eq!(problem.status(), 503, "{problem:?}");
            None
        }
    }
}

/// The fault at each single request of a call in turn, from the session's first to its last.
#[tokio::test]
async fn a_cut_at_any_request_leaves_a_whole_drop_or_none() -> Result<()> {
    let scene = Scene::new().await?;
    let (wire, through) = Wire::to(&scene.database).await?;
    for fault in FAULTS {
        for at in 0.. {
            scene.table.append(vec![file("1"), file("1"), file("2")]).await?;
            let head = scene.catalog.head().await?;
            let body = days(["1", "7"]);
            wire.fault(at, fault);
            let cut_off = attempt(&through, &raw(), &body).await;
            if wire.spare() {
                let answer = cut_off.context("nothing was cut")?;
                assert_eq!((answer.files_ended, answer.replayed), (2, false));
                assert!(at > 15, "a call is many requests: {at}");
                break;
            }
            let committed = scene.catalog.head().await? == head + 1;
            let answer = attempt(&through, &raw(), &body).await.context("nothing is cut")?;
            assert_eq!(answer.replayed, committed, "{fault:?} at {at}");
            assert_eq!(
                (answer.snapshot_id, answer.files_ended),
                (head + 1, 2),
                "{fault:?} at {at}"
            );
            if let Some(answered) = cut_off {
                assert_eq!(answered, first(answer));
            }
            assert_eq!(scene.catalog.head().await?, head + 1);
        }
    }
    ledger::agrees(&scene.catalog).await
}

/// A list, a table, and what the list has to end.
struct Case {
    table: Table,
    name: TableRef,
    body: DropBody,
    expected: Vec<i64>,
}

async fn case(database: &TestDatabase, number: u64, random: &mut fastrand::Rng) -> Result<Case> {
    let catalog = database.lake.open_catalog("lake").await?;
    let spec = [Field::day("at"), Field::identity("kind")];
    let table = database.table(&catalog, &format!("t{number}"), &spec).await?;
    let value = |random: &mut fastrand::Rng, texts: [&'static str; 3]| match random.u8(0..4) {
        3 => None,
        at => Some(texts[usize::from(at)]),
    };
    let tuple = |random: &mut fastrand::Rng| {
        [value(random, ["1", "2", "-3"]), value(random, ["a", "", "null"])]
    };
    let new = |values: [Option<&str>; 2]| {
        NewFile::new(values.map(|value| value.map(str::to_owned)).to_vec()).records(10).bytes(100)
    };
    let tuples: Vec<_> = (0..random.usize(1..25)).map(|_| tuple(random)).collect();
    let files = tuples.iter().map(|values| new(*values)).collect();
    let ids = table.append(files).await?.file_ids;
    if random.bool() {
        table.register_vector(ids[random.usize(0..ids.len())], 3, None).await?;
    }
    let mut list: Vec<_> = (0..random.usize(1..8)).map(|_| tuple(random)).collect();
    list.sort_unstable();
    list.dedup();
    random.shuffle(&mut list);
    let ended = tuples.iter().zip(&ids).filter(|(tuple, _)| list.contains(*tuple));
    let expected = ended.map(|(_, id)| *id).collect();
    let read_snapshot = if random.bool() { Some(catalog.head().await?) } else { None };
    let items = list.into_iter().map(item).collect();
    let body = DropBody { read_snapshot, fence: random.u8(0..4) == 0, ..drop_of(items) };
    Ok(Case { table, name: TableRef { table: format!("t{number}"), ..raw() }, body, expected })
}

#[tokio::test]
async fn any_list_however_often_retried_is_done_once() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let (wire, through) = Wire::to(&database).await?;
    let mut random = fastrand::Rng::with_seed(20_713);
    let (mut lost, mut undone, mut empty) = (0, 0, 0);
    for number in 0..60 {
        let case = case(&database, number, &mut random).await?;
        let head = catalog.head().await?;
        let mut answers: Vec<DropAnswer> = Vec::new();
        let tries = random.usize(2..7);
        for _ in 0..tries {
            let committed = || async { anyhow::Ok(catalog.head().await? > head) };
            let before = committed().await?;
            wire.fault(random.usize(0..60), FAULTS[random.usize(0..FAULTS.len())]);
            let answer = attempt(&through, &case.name, &case.body).await;
            if !wire.spare() && answer.is_none() && !before {
                *if committed().await? { &mut lost } else { &mut undone } += 1;
            }
            answers.extend(answer);
        }
        answers.push(attempt(&through, &case.name, &case.body).await.context("nothing is cut")?);
        answers.push(attempt(&through, &case.name, &case.body).await.context("nothing is cut")?);
        let told = first(answers[0].clone());
        assert!(answers.iter().all(|answer| first(answer.clone()) == told), "{answers:#?}");
        assert!(answers[1..].iter().all(|answer| answer.replayed), "{answers:#?}");

        let commits = i64::from(!case.expected.is_empty());
        empty += 1 - commits;
        assert_eq!(catalog.head().await?, head + commits);
        assert_eq!((told.snapshot_id, told.committed), (head + commits, commits == 1));
        assert_eq!(told.files_ended, case.expected.len() as i64);
        for row in case.table.all_files().await? {
            let gone = case.expected.contains(&row.data_file_id);
            assert_eq!(row.end_snapshot, gone.then_some(told.snapshot_id));
        }
    }
    assert!(lost > 0 && undone > 5 && empty > 0, "{lost} {undone} {empty}");
    ledger::agrees(&catalog).await
}

#[tokio::test]
async fn a_truncate_with_a_key_is_as_safe() -> Result<()> {
    let scene = Scene::new().await?;
    let (wire, through) = Wire::to(&scene.database).await?;
    let mut lost = 0;
    for fault in [Fault::Before, Fault::After] {
        for at in 5.. {
            scene.table.append(vec![file("1"), file("2")]).await?;
            let head = scene.catalog.head().await?;
            let key = Some(Uuid::new_v4());
            let body = TruncateBody { idempotency_key: key, ..TruncateBody::default() };
            let call = async || {
                let mut session = through.session().await.ok()?;
                let uuid = Some(scene.table.table_uuid);
                truncate(&mut session, &raw(), uuid, &body, "me", &patient()).await.ok()
            };
            wire.fault(at, fault);
            let cut_off = call().await;
            let spared = wire.spare();
            if cut_off.is_none() && scene.catalog.head().await? == head + 1 {
                lost += 1;
            }
            let answer = call().await.context("nothing is cut")?;
            assert_eq!(answer.snapshot_id, head + 1);
            assert!(cut_off.is_none_or(|answered| answered == answer));
            assert_eq!(scene.catalog.head().await?, head + 1);
            if spared {
                break;
            }
        }
    }
    assert!(lost > 0);
    ledger::agrees(&scene.catalog).await
}

/// What a receipt does not tell, the history does: without a key the answer says where to look.
#[tokio::test]
async fn an_answer_that_is_lost_at_commit_says_where_to_look() -> Result<()> {
    for key in [None, Some(Uuid::new_v4())] {
        for cut in [Cut::BeforeCommit, Cut::AfterCommit] {
            let scene = Scene::new().await?;
            scene.table.append(vec![file("1")]).await?;
            let (proxy, through) = scene.database.through_proxy().await?;
            let mut session = through.session().await?;
            let body = TruncateBody { idempotency_key: key, ..TruncateBody::default() };
            proxy.cut_next(cut);
            let uuid = Some(scene.table.table_uuid);
            let lost = truncate(&mut session, &raw(), uuid, &body, "me", &patient()).await;
            assert!(proxy.has_cut());
            let expected = match key {
                None => Problem::OutcomeUnknown { table: "events.raw".to_owned() },
                Some(_) => Problem::Unavailable,
            };
            assert_eq!((expected.status(), expected.code()), (503, "unavailable"));
            assert_eq!(lost, Err(expected), "{cut:?}");
            let history = scene.database.rows("SELECT 1 FROM tailrace.drop_history").await?;
            let drops = usize::from(cut == Cut::AfterCommit);
            assert_eq!((history.len(), scene.live().await?.len()), (drops, 1 - drops), "{cut:?}");
        }
    }
    Ok(())
}

/// Whatever SQLSTATE a deferred trigger may raise with: the server has answered, and has written nothing.
#[tokio::test]
async fn a_commit_that_the_server_refuses_is_no_lost_answer() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1")]).await?;
    scene
        .database
        .sql(
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE 'no' USING ERRCODE = 'ZZ001'; END $$;
             CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON hog_snapshot_change
               DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.refuse()",
        )
        .await?;
    let before = scene.everything().await?;
    assert_eq!(scene.call(&days(["1"])).await?, Err(Problem::Internal));
    assert_eq!(scene.truncate(&TruncateBody::default()).await?, Err(Problem::Internal));
    assert_eq!(scene.everything().await?, before);
    Ok(())
}
