//! What support asks for, in one value: the configuration, versions, doctor's report, the plan, what verify
//! finds, and the newest drops of each catalog. Each part is bounded in time, and one that fails is there with
//! its error: a bundle is needed most where something does not work.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::masks::Masks;
use super::versions::{Program, Versions, versions};
use super::{Doctor, Report, examine};
use crate::catalog::clock::host;
use crate::catalog::connect::{Access, Database};
use crate::catalog::errors::describe;
use crate::catalog::session::within;
use crate::catalog::tables::catalogs;
use crate::config::Config;
use crate::rules::instant::UtcInstant;
use crate::sweep::Scope;
use crate::sweep::plan_report::PlanReport;
use crate::sweep::planning::plan_all;
use crate::trace::{Asked, Drops, trace};
use crate::verify::report::Report as Verified;
use crate::verify::{Settings, verify};

/// The longest that a part may take.
pub const LONGEST: Duration = Duration::from_secs(60);

/// How many drops of a catalog are in it, the newest first.
const DROPS: i64 = 30;

/// A part, or why it could not be made.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Part<T> {
    /// It is there.
    Made(T),
    /// It is not.
    Failed {
        /// Why, in words.
        error: String,
    },
}

impl<T> Part<T> {
    /// The part, if it is there.
    pub fn made(&self) -> Result<&T, &str> {
        match self {
            Self::Made(part) => Ok(part),
            Self::Failed { error } => Err(error),
        }
    }

    async fn of(work: impl Future<Output = anyhow::Result<T>>) -> Self {
        match within(LONGEST, work).await {
            Ok(part) => Self::Made(part),
            Err(error) => Self::Failed { error: describe(&error) },
        }
    }
}

/// The whole of it.
#[derive(Debug, Serialize)]
pub struct Bundle {
    /// When it was begun, by this host's clock.
    pub as_of: UtcInstant,
    /// This program.
    pub program: Program,
    /// The versions of what it works with.
    pub database: Part<Versions>,
    /// As `tailrace config` prints it, line by line.
    pub config: Vec<String>,
    /// As `tailrace doctor --output json` has it.
    pub doctor: Part<Report>,
    /// As `tailrace plan --output json` has it.
    pub plan: Part<PlanReport>,
    /// As `tailrace verify --output json` has it.
    pub verify: Part<Verified>,
    /// As `tailrace trace --output json` has it.
    pub trace: Part<Drops>,
}

impl Bundle {
    /// Asks for all of it, part by part; `next` is told what comes. Writes nothing to the database.
    pub async fn gather(config: &Config, doctor: &Doctor<'_>, next: impl Fn(&'static str)) -> Self {
        let Doctor { database, settings, catalog } = *doctor;
        let scope = Scope { catalog: catalog.map(str::to_owned), ..Scope::default() };
        let plan = async { Ok(PlanReport::of(&plan_all(database, settings, &scope, None).await?)) };
        let verification = Settings::from_config(config);
        Bundle {
            as_of: host().time,
            program: Program::of_this(),
            config: config.render_masked().to_string().lines().map(str::to_owned).collect(),
            database: {
                next("versions");
                Part::of(versions(database)).await
            },
            doctor: {
                next("doctor");
                Part::of(examine(doctor)).await
            },
            plan: {
                next("plan");
                Part::of(plan).await
            },
            verify: {
                next("verify");
                Part::of(verify(database, &verification, &scope)).await
            },
            trace: {
                next("trace");
                Part::of(newest_drops(database, &scope)).await
            },
        }
    }

    /// As JSON without secrets, for people and programs.
    ///
    /// # Errors
    /// What is to be masked is too long for that.
    pub fn masked(&self, masks: &Masks) -> serde_json::Result<String> {
        let masked: Value = masks.value(serde_json::to_value(self)?);
        serde_json::to_string_pretty(&masked)
    }
}

async fn newest_drops(database: &Database, scope: &Scope) -> anyhow::Result<Drops> {
    let read = async |session: &mut _| {
        let mut reports = Vec::new();
        for catalog in catalogs(session).await? {
            if scope.has_catalog(&catalog.name) {
                let asked = Asked { table: None, before: i64::MAX, limit: DROPS };
                reports.push(trace(session, &catalog, asked).await?);
            }
        }
        Ok(Drops { catalogs: reports })
    };
    database.in_session(Access::ReadOnly, read).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_part_that_takes_too_long_is_a_failed_one() {
        let part = Part::<()>::of(std::future::pending()).await;
        assert_eq!(part.made(), Err("error communicating with database: no answer within 60s"));
        let quick = Part::of(async { Ok(1) }).await;
        assert_eq!(quick.made(), Ok(&1));
    }
}
