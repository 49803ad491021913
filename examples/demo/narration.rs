//! The words of each page, with what was found.

use tailrace::cli;
use tailrace::cli::text::{columns, count, counted};
use tailrace::policy::Policy;
use tailrace::rules::transform::TimeTransform;
use tailrace::sweep::plan_report::PlanReport;
use tailrace::sweep::planning::Plans;
use tailrace_kit::server::PrivateServer;

use super::checks::Checks;
use super::findings::Findings;
use super::lake::{
    CATALOG, DAYS, EVENTS, NAMESPACE, ORDERS, POLICIES, SPEC_CHANGE, TEAM_DAYS, TEAMS, UNGOVERNED,
    UNGOVERNED_DAYS,
};
use super::pages::Page;
use super::picture::LEGEND;
use super::removal;

/// The lake and its policies.
pub fn lake(server: &PrivateServer, seen: &Findings<'_>, policies: &[Policy]) -> Page {
    let contents = [
        format!("{DAYS} days, by day; deletion vectors"),
        format!("by month, since {SPEC_CHANGE} days ago by day"),
        format!("{TEAM_DAYS} days, by team and day"),
        format!("{UNGOVERNED_DAYS} days, by day"),
    ];
    let policies = policies.iter().map(|policy| format!("{} keep {}", policy.field, policy.keep));
    let policies = policies.chain(["none".to_owned()]);
    let mut rows = vec![["TABLE", "PARTITIONS", "POLICY"].map(str::to_owned).to_vec()];
    let names = POLICIES.iter().map(|governed| governed.table).chain([UNGOVERNED]);
    for ((name, contents), policy) in names.zip(contents).zip(policies) {
        rows.push(vec![format!("{NAMESPACE}.{name}"), contents, policy]);
    }
    let body = format!(
        "This demo has started a Postgres {} of its own in\n\
         {}\n\
         It is reached through a socket only, and is removed at the end.\n\
         \n\
         In it is a hoglake catalog, {CATALOG:?}, with four tables. They were written day\n\
         by day, in real commits whose times were then set back. {} objects lie on\n\
         disk, with placeholder bytes.\n\
         \n\
         {}\n\
         A policy names a field of time, and how long to keep: a partition expires\n\
         when its last instant is that old. Policies are stored beside the catalog, as\n\
         `tailrace policy set --mode enforce` does: each pass drops what has expired.\n\
         \n\
         What the next pages show was done on this lake by the code of the daemon.",
        server.version(),
        server.folder().display(),
        seen.at_start.objects.len(),
        columns(&rows, &[], ""),
    );
    Page::new("A lake of its own", &body)
}

/// The plan of one table, and the sums of the others.
pub fn plan(plans: &Plans, seen: &Findings<'_>) -> Page {
    let mut report = PlanReport::of(plans);
    report.tables.retain(|table| table.table == POLICIES[ORDERS].table);
    let sum = |place: usize| {
        let partitions = seen.before.governed(place);
        let (expired, _) = partitions.expired(plans.as_of);
        format!("{}: {expired} of {} files", POLICIES[place].table, partitions.files())
    };
    let body = format!(
        "{}\n\
         cutoff       the time of the plan minus `keep`\n\
         expired      what a pass drops now: files with their deletion vectors\n\
         kept         not old enough, or undatable: of an unknown or ambiguous time\n\
         next expiry  when the next partition of the table expires\n\
         \n\
         The plan has the other tables too. Expired there:\n\
         {}; {}.",
        cli::plan_text(&report),
        sum(EVENTS),
        sum(TEAMS),
    );
    Page::new("The plan: what `tailrace plan` shows of web.orders", &body)
}

/// What the pass did.
pub fn pass(seen: &Findings<'_>) -> Page {
    let body = format!(
        "{}\n\
         snapshot  each commit is one: a reader sees all of a drop, or nothing of it\n\
         files     each is ended: its row gets an end_snapshot; no object is deleted\n\
         vectors   deletion vectors, lists of deleted rows: they end with their files\n\
         records   rows in these files\n\
         waited    how long the pass waited for the commit lock of the catalog\n\
         held      how long the pass held it: other writers wait for that time",
        cli::sweep_text(seen.report, false)
    );
    Page::new("A pass, as the daemon runs it", &body)
}

/// The table with a column for each day.
pub fn events(seen: &Findings<'_>) -> Page {
    let (before, after) = (seen.before, seen.after);
    let body = format!(
        "{} keep {}. A column is a day, as high as it has files.\n\
         {LEGEND}\n\
         before the pass\n\
         {}\
         after it\n\
         {}\n\
         {NAMESPACE}.{UNGOVERNED}, without a policy: {} before, {} after.",
        POLICIES[EVENTS].field,
        POLICIES[EVENTS].keep,
        before.columns(EVENTS),
        before.columns_after(EVENTS, after),
        counted(before.ungoverned.files(), "file"),
        after.ungoverned.files(),
    );
    Page::new("Before and after: web.events_raw", &body)
}

/// The table whose spec was changed.
pub fn orders(seen: &Findings<'_>) -> Page {
    let stray = &seen.lake.stray;
    let [month, day] =
        [TimeTransform::Month, TimeTransform::Day].map(|transform| transform.display(Some(stray)));
    let body = format!(
        "{} keep {}. Partitioned by month, since {SPEC_CHANGE} days ago by day.\n\
         {LEGEND}\n\
         \n\
         {}\n\
         The file of {day} is kept, because it is undatable. After the change\n\
         from month to day a stale writer stored {month} as a month: {stray}. Read as\n\
         a day, that is {day}. It expires when both interpretations have.",
        POLICIES[ORDERS].field,
        POLICIES[ORDERS].keep,
        seen.before.rows(ORDERS, seen.after),
    );
    Page::new("Before and after: web.orders", &body)
}

/// The table with two partition fields.
pub fn teams(seen: &Findings<'_>) -> Page {
    let body = format!(
        "{} keep {}. Partitioned by team and day.\n\
         {LEGEND}\n\
         \n\
         {}\n\
         The file of 42 / null is kept, because it is undatable: its rows have no\n\
         time. Rows without a team have one, and are dropped like others.",
        POLICIES[TEAMS].field,
        POLICIES[TEAMS].keep,
        seen.before.rows(TEAMS, seen.after),
    );
    Page::new("Before and after: web.team_events", &body)
}

/// The objects and the expiry floor.
pub fn objects(seen: &Findings<'_>) -> Page {
    let (first, last) = (seen.head + 1, seen.head + seen.snapshots());
    let body = format!(
        "Expiry of the hoglake server raises the floor, and its cleanup then deletes\n\
         what only snapshots below the floor have. Both are simulated here, written\n\
         from the server's contract. This catalog keeps snapshots readable for an\n\
         hour; the last two lines are as if two hours had passed.\n\
         \n\
         {}\n\
         FLOOR    expiry floor: the oldest snapshot that can still be read. The drop\n\
         \x20        is in snapshots {first} to {last}: a reader of {before} needs its objects, so\n\
         \x20        they stay until the floor is {last}.\n\
         OBJECTS  files of data and deletion vectors on disk, of all four tables.\n\
         ROWS     what a reader of snapshot {before} counts in events_raw, orders and\n\
         \x20        team_events. It is the last one before the drop, and below the floor\n\
         \x20        it is refused.",
        removal::text(&seen.observations(), seen.head),
        before = seen.head,
    );
    Page::new("The objects on disk, which tailrace never touches", &body)
}

/// What all of it comes to, and what to do next where the lake is not left running.
pub fn verdict(seen: &Findings<'_>, checks: &Checks, keep: bool) -> Page {
    let outcome = if checks.failed() == 0 { outcome(seen, checks) } else { failure(checks) };
    let commands = "\nNext:\n\
        $ make demo DEMO=--keep     leaves such a lake running, with commands to try\n\
        $ make demo DEMO=--checks   lists each check, with the values that were found\n";
    let body = format!(
        "{outcome}{}\n\
         On your own catalog, `tailrace plan` shows what would be dropped, and writes\n\
         nothing. docs/install.md has each step until then, and from there on.",
        if keep { "" } else { commands },
    );
    Page::new("The verdict", &body)
}

fn failure(checks: &Checks) -> String {
    let (failed, count) = (checks.failed(), checks.count());
    format!("{failed} of {count} checks FAILED: the page before this one shows which.\n")
}

fn outcome(seen: &Findings<'_>, checks: &Checks) -> String {
    let counts = seen.report.counts();
    let removed = seen.removal.below.objects.len() - seen.removal.cleaned.objects.len();
    let kept: i64 = (0..POLICIES.len()).map(|place| seen.after.governed(place).files()).sum();
    format!(
        "Dropped  {} with {} and {}, in {}\n\
         Kept     {} that are not old enough, and {} that are undatable\n\
         Readers  of snapshot {} saw the same rows before and after the drop\n\
         Objects  {removed} of {} were deleted, only after the floor had passed the drop\n\
         Checks   {} of {} hold\n",
        counted(seen.partitions(), "partition"),
        counted(counts.files, "file"),
        counted(counts.delete_files, "vector"),
        counted(seen.snapshots(), "snapshot"),
        counted(kept - seen.undatable(), "file"),
        count(seen.undatable()),
        seen.head,
        seen.at_start.objects.len(),
        checks.count() - checks.failed(),
        checks.count(),
    )
}
