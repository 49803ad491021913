//! Whether the database role has the rights that it needs, and no more.

use super::own_role::CHECK;
use super::own_role::{self, TooMuch};
use super::{Finding, Level, listed};
use crate::catalog::inventory::privileges::{Held, Privileges};
use crate::installation::rights::{Object, Purpose, Right, Whose, as_identifier, needed};

/// What is missing, with the GRANT for each, and what is too much, with a REVOKE where that harms
/// nobody.
///
/// Nothing is taken from a role that is or may be somebody else's too (a superuser, an owner, the
/// server's own): there the statements make another role, once.
///
/// An object that is not there needs no right. Whoever owns our own tables has every right on
/// them, which is as it should be for a role that migrates.
pub fn findings(held: &Privileges, schema: &str) -> Vec<Finding> {
    let role = &held.role;
    let mut findings = Vec::new();
    let mut too_much = Vec::new();
    if !held.attributes.is_empty() {
        too_much.push(TooMuch {
            what: format!("the role {role} is {}", held.attributes.join(", ")),
            why: "it has far more rights than tailrace needs, so a mistake or a lost password costs more",
        });
    }
    // To a superuser nothing is refused, and nothing can be revoked.
    if !held.is_superuser() {
        for purpose in Purpose::ALL {
            findings.extend(missing(held, schema, purpose));
        }
        let owned = own_role::owned(held, schema);
        if !owned.is_empty() {
            too_much.push(TooMuch {
                what: format!("the role {role} owns {}", listed(&owned)),
                why: "an owner may alter and drop hoglake's tables",
            });
        }
        let (names, statements) = beyond(held, schema);
        let more = TooMuch {
            what: format!("the role {role} has more rights than it needs: {}", listed(&names)),
            why: "a right that is not needed can only be misused",
        };
        if !names.is_empty() && own_role::is_somebody_elses(held, schema) {
            too_much.push(more);
        } else if !names.is_empty() {
            let to_do = "if nothing but tailrace uses the role, revoke it, from the role or from \
                         what it is a member of; else let tailrace log in as a role of its own:";
            let finding = Finding::new(Level::Warning, CHECK, more.what, more.why, to_do);
            findings.push(finding.with(statements));
        }
    }
    findings.extend(own_role::advised(held, schema, too_much));
    findings.extend(filtered(held));
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, format!("the role {role} has what it needs and no more")));
    }
    findings
}

/// The tables of which row-level security would hide rows.
fn filtered(held: &Privileges) -> Option<Finding> {
    let names: Vec<_> = held
        .relations
        .iter()
        .filter(|(_, held)| held.is_filtered)
        .map(|((schema, name), _)| format!("{}.{name}", as_identifier(schema)))
        .collect();
    (!names.is_empty()).then(|| {
        let what =
            format!("row-level security hides rows of {} from {}", listed(&names), held.role);
        let why = "what is hidden would never be dropped, and nobody would notice: so each statement \
                   that asks these tables fails";
        let to_do = "as a superuser, or else disable it on the tables:";
        let role = as_identifier(&held.role);
        Finding::new(Level::Problem, CHECK, what, why, to_do)
            .with(vec![format!("alter role {role} bypassrls;")])
    })
}

fn missing(held: &Privileges, schema: &str, purpose: Purpose) -> Option<Finding> {
    let grants: Vec<_> = needed()
        .into_iter()
        .filter(|right| right.purpose == purpose && !has(held, schema, right))
        .map(|right| right.grant(schema, &held.role))
        .collect();
    if grants.is_empty() {
        return None;
    }
    let (level, why) = match purpose {
        Purpose::Passes => (Level::Problem, "passes or changes of policies fail without them"),
        Purpose::Evidence => (
            Level::Problem,
            "without them partitions are dropped by their values alone, and those whose value is \
             ambiguous are kept",
        ),
        _ => (Level::Note, "nothing else needs them"),
    };
    let what = format!(
        "the role {} lacks {} of the rights for {}",
        held.role,
        grants.len(),
        purpose.describe()
    );
    Some(Finding::new(level, CHECK, what, why, "as the owner of the objects:").with(grants))
}

fn key(schema: &str, object: Object) -> Option<(String, String)> {
    let of = |whose: Whose, name: &str| {
        let schema = if whose == Whose::Hoglake { schema } else { "tailrace" };
        Some((schema.to_owned(), name.to_owned()))
    };
    match object {
        Object::Schema(_) => None,
        Object::Table(whose, name) | Object::Sequence(whose, name) => of(whose, name),
    }
}

fn has(held: &Privileges, schema: &str, right: &Right) -> bool {
    if let Object::Schema(whose) = right.object {
        let name = if whose == Whose::Hoglake { schema } else { "tailrace" };
        return held.usable_schemas.contains(name);
    }
    // What is not there needs no right: an older server, or a schema that is yet to be made.
    let of = key(schema, right.object).and_then(|key| held.relations.get(&key));
    of.is_none_or(|of| holds(of, right))
}

fn holds(held: &Held, right: &Right) -> bool {
    let some = held.columns.get(right.privilege);
    held.whole.contains(right.privilege)
        || !right.columns.is_empty()
            && right.columns.iter().all(|column| some.is_some_and(|some| some.contains(*column)))
}

/// Rights on tables and sequences beyond the list, by name, and the statements that take them away
/// and leave what is on it.
fn beyond(held: &Privileges, schema: &str) -> (Vec<String>, Vec<String>) {
    let all = needed();
    let role_name = &held.role;
    let role = as_identifier(role_name);
    let mut names = Vec::new();
    let mut statements = Vec::new();
    for ((of, name), held) in &held.relations {
        if held.is_owned {
            continue;
        }
        let rights: Vec<&Right> = all
            .iter()
            .filter(|right| key(schema, right.object) == Some((of.clone(), name.clone())))
            .collect();
        let object = format!("{}.{name}", as_identifier(of));
        let mut say = |privilege: String, left: Option<&Right>| {
            statements.push(format!("revoke {privilege} on {object} from {role};"));
            statements.extend(left.map(|right| right.grant(schema, role_name)));
            names.push(format!("{privilege} on {name}"));
        };
        for privilege in &held.whole {
            let right = rights.iter().copied().find(|right| right.privilege == privilege);
            // An UPDATE of the whole where some columns would do is too much as well; to revoke it
            // revokes that of the columns too.
            if right.is_none_or(|right| !right.columns.is_empty()) {
                say(privilege.to_lowercase(), right);
            }
        }
        for (privilege, columns) in &held.columns {
            let right = rights.iter().find(|right| right.privilege == privilege);
            let allowed = right.map(|right| right.columns);
            let beyond: Vec<_> = columns
                .iter()
                .filter(|column| {
                    allowed.is_none_or(|allowed| {
                        !allowed.is_empty() && !allowed.contains(&column.as_str())
                    })
                })
                .map(String::as_str)
                .collect();
            if !beyond.is_empty() {
                say(format!("{} ({})", privilege.to_lowercase(), beyond.join(", ")), None);
            }
        }
    }
    (names, statements)
}
