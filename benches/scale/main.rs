//! The benchmark: `make bench`, or `cargo bench --bench scale -- [ROW ...]`. Everything is measured
//! in one run on a private Postgres. A full run writes `docs/performance.md`. `BENCH=quick` runs
//! everything at a twentieth of the size, to show that the benchmark works.
//!
//! | module | what it does |
//! |---|---|
//! | [`scale`] | the sizes of the fixtures |
//! | [`fixture`] | builds the fixtures |
//! | [`bench`] | the server and its databases |
//! | [`rows`] | the measurements, one module for each family |
//! | [`page`] | writes the results |

mod bare;
mod bench;
mod calendar;
mod database_time;
mod filling;
mod finding;
mod fixture;
mod machine;
mod many;
mod page;
mod program;
mod rows;
mod scale;
mod spent;
mod statistics;

use std::process::ExitCode;

use anyhow::{Result, bail};

use bench::Bench;
use page::Page;
use scale::Scale;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Only `cargo bench` says so; `cargo test --all-targets` runs this program without.
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("the benchmark runs by `make bench` only");
        return ExitCode::SUCCESS;
    }
    let rows: Vec<String> =
        arguments.into_iter().filter(|argument| !argument.starts_with("--")).collect();
    let done = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(&rows)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(chosen: &[String]) -> Result<()> {
    if let Some(unknown) = chosen.iter().find(|row| !rows::ALL.contains(&row.as_str())) {
        bail!("no row is called {unknown:?}; there are: {}", rows::ALL.join(", "));
    }
    let is_quick = std::env::var("BENCH").is_ok_and(|how| how == "quick");
    let today = chrono::Utc::now().timestamp().div_euclid(86_400);
    let mut bench = Bench::start(Scale { is_quick, today }).await?;
    let mut page = Page::new(machine::describe(bench.server.version()), is_quick);
    for row in rows::ALL {
        if !chosen.is_empty() && !chosen.iter().any(|chosen| chosen == row) {
            continue;
        }
        eprintln!("{row} (load {})", machine::load());
        let clock = std::time::Instant::now();
        match rows::measure(row, &mut bench).await {
            Ok(measured) => page.add(measured),
            Err(error) => page.fail(row, &error),
        }
        eprintln!("  took {:.0} s", clock.elapsed().as_secs_f64());
    }
    page.on("load after the run", machine::load());
    println!("{}", page.table());
    if is_quick || !chosen.is_empty() {
        println!("Not written to docs/performance.md: this was no full run.");
    } else {
        page.write(std::path::Path::new("docs/performance.md"))?;
    }
    if page.has_failed() {
        bail!("some rows could not be measured");
    }
    Ok(())
}
