//! A plan that is saved, to be approved later.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::catalog::tables::TableIdentity;
use crate::explicit::problem::Problem;
use crate::rules::hold::HeldPartition;
use crate::rules::instant::UtcInstant;
use crate::sweep::plan::TablePlan;
use crate::sweep::planning::Plans;
use crate::sweep::radius::KeptBack;

/// The form of a saved plan.
const FORM: u32 = 1;

/// A plan as `tailrace plan --save` writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SavedPlan {
    /// The form of this JSON: 1.
    pub tailrace_plan: u32,
    /// The time of the plan.
    pub as_of: UtcInstant,
    /// Who saved it.
    pub saved_by: String,
    /// Tables of which anything is held for its number.
    pub tables: Vec<SavedTable>,
    /// Of all tables.
    pub digest: String,
    /// Of all that stands above, so that a file which was edited is known.
    pub checksum: String,
}

/// A table of a saved plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SavedTable {
    /// The catalog's name.
    pub catalog: String,
    /// The namespace's name.
    pub namespace: String,
    /// The table's name.
    pub table: String,
    /// Its UUID.
    pub table_uuid: Uuid,
    /// The policy's revision.
    pub policy_revision: i64,
    /// The rule: a digest of the column, the keep and the specs.
    pub rule: String,
    /// `as_of - keep`.
    pub cutoff: UtcInstant,
    /// How many partitions are dropped without an approval.
    pub others: i64,
    /// What is held.
    pub held: Vec<SavedPartition>,
    /// Of what is held.
    pub digest: String,
}

/// A partition that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SavedPartition {
    /// The spec of its files.
    pub spec_id: i64,
    /// The partition values by key index.
    pub partition_values: Vec<Option<String>>,
    /// As a person reads them.
    pub display: String,
    /// How many files it has.
    pub files: i64,
}

impl SavedPlan {
    /// The plans of tables of which anything is held.
    pub fn of(plans: &Plans, saved_by: &str) -> Self {
        let saved = plans.tables.iter().filter_map(|(table, plan)| {
            let plan = plan.as_ref().ok()?;
            Some(SavedTable::of(table, plan, plan.kept_back.as_ref()?))
        });
        let tables: Vec<_> = saved.collect();
        let digest = digest_of(tables.iter().map(|table| table.digest.as_str()));
        let (saved_by, checksum) = (saved_by.to_owned(), String::new());
        let plan = SavedPlan {
            tailrace_plan: FORM,
            as_of: plans.as_of,
            saved_by,
            tables,
            digest,
            checksum,
        };
        SavedPlan { checksum: plan.sum(), ..plan }
    }
}

impl SavedPlan {
    /// The SHA-256 of all but the checksum itself.
    fn sum(&self) -> String {
        let of = (self.tailrace_plan, self.as_of, &self.saved_by, &self.tables, &self.digest);
        // Texts, numbers and lists of them always serialise.
        hex::encode(Sha256::digest(serde_json::to_vec(&of).unwrap_or_default()))
    }
}

impl SavedTable {
    fn of(table: &TableIdentity, plan: &TablePlan, held: &KeptBack) -> Self {
        let partition =
            |(partition, display, files): &(HeldPartition, String, i64)| SavedPartition {
                spec_id: partition.spec_id,
                partition_values: partition.values.clone(),
                display: display.clone(),
                files: *files,
            };
        SavedTable {
            catalog: table.catalog.clone(),
            namespace: table.namespace.clone(),
            table: table.table.clone(),
            table_uuid: table.table_uuid,
            policy_revision: held.change.policy_revision,
            rule: held.change.rule.clone(),
            cutoff: plan.cutoff,
            others: plan.expired.len() as i64,
            held: held.partitions.iter().map(partition).collect(),
            digest: held.digest.clone(),
        }
    }
}

/// The digest of the tables of a plan: of a single one its own.
fn digest_of<'a>(tables: impl Iterator<Item = &'a str>) -> String {
    match tables.collect::<Vec<_>>().as_slice() {
        [one] => (*one).to_owned(),
        several => hex::encode(&Sha256::digest(several.join("\n"))[..16]),
    }
}

/// A file that somebody has changed is not what was seen.
pub fn unspoiled(plan: &SavedPlan) -> Result<(), Problem> {
    if plan.tailrace_plan != FORM {
        return Err(Problem::Validation(format!(
            "the plan has form {}, and this program reads form {FORM}: save it again",
            plan.tailrace_plan
        )));
    }
    match plan.checksum == plan.sum() {
        true => Ok(()),
        false => Err(Problem::Validation(
            "the plan is not as it was saved: save it again, and do not edit the file".to_owned(),
        )),
    }
}

impl SavedPartition {
    /// Which it is.
    pub fn partition(&self) -> HeldPartition {
        HeldPartition { spec_id: self.spec_id, values: self.partition_values.clone() }
    }
}
