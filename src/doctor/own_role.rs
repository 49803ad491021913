//! Advice for a role that has more rights than tailrace needs and that somebody else may use too: statements
//! that make a role for tailrace alone and revoke nothing from anybody.

use super::{Finding, Level};
use crate::catalog::inventory::privileges::Privileges;
use crate::installation::rights::{Object, Whose, as_identifier, needed};

/// The family of these findings, and of those of the rights that are missing.
pub(super) const CHECK: &str = "rights";

/// What a role may more than tailrace needs, and why that matters.
pub struct TooMuch {
    /// What it may do, in words.
    pub what: String,
    /// Why that is too much.
    pub why: &'static str,
}

/// The names of hoglake's tables that the role owns.
pub fn owned(held: &Privileges, schema: &str) -> Vec<String> {
    let of_hoglake = held.relations.iter().filter(|((of, _), held)| of == schema && held.is_owned);
    of_hoglake.map(|((_, name), _)| name.clone()).collect()
}

/// Whether somebody else may need the role as it is: an administrator's, an owner's, or one that
/// may add data files, which whoever commits for hoglake's clients needs and tailrace never does.
pub fn is_somebody_elses(held: &Privileges, schema: &str) -> bool {
    let files = (schema.to_owned(), "hog_data_file".to_owned());
    let adds_files = held.relations.get(&files).is_some_and(|files| {
        files.whole.contains("INSERT") || files.columns.contains_key("INSERT")
    });
    adds_files || !held.attributes.is_empty() || !owned(held, schema).is_empty()
}

/// A warning for each; the first has the statements that make another role.
pub fn advised(held: &Privileges, schema: &str, too_much: Vec<TooMuch>) -> Vec<Finding> {
    let role = &held.role;
    let mut to_do = format!(
        "let tailrace log in as a role of its own, and leave {role} as it is: run these as the \
         owner of the objects who may create roles, give the new role a password, and name it in \
         database.url"
    );
    if !held.schemas.contains("tailrace") {
        to_do
            .push_str("; after `tailrace migrate`, see here for its grants in the schema tailrace");
    }
    let mut statements = statements(held, schema);
    let warning = |(at, TooMuch { what, why }): (usize, TooMuch)| {
        let (to_do, statements) = match at {
            0 => (to_do.as_str(), std::mem::take(&mut statements)),
            _ => ("as above: a role of its own", Vec::new()),
        };
        Finding::new(Level::Warning, CHECK, what, why, to_do).with(statements)
    };
    too_much.into_iter().enumerate().map(warning).collect()
}

/// Makes a role under a name that is free and gives it what tailrace needs, as far as it is there.
fn statements(held: &Privileges, schema: &str) -> Vec<String> {
    let role = &held.free_role;
    let is_there = |object: Object| match object {
        Object::Schema(whose) => held.schemas.contains(name(whose, schema)),
        Object::Table(whose, of) | Object::Sequence(whose, of) => {
            held.relations.contains_key(&(name(whose, schema).to_owned(), of.to_owned()))
        }
    };
    let grants = needed()
        .into_iter()
        .filter(|right| is_there(right.object))
        .map(|right| right.grant(schema, role));
    std::iter::once(format!("create role {} login;", as_identifier(role))).chain(grants).collect()
}

fn name(whose: Whose, schema: &str) -> &str {
    match whose {
        Whose::Hoglake => schema,
        Whose::Ours => "tailrace",
    }
}
