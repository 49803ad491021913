//! Other roles that may create objects, or have created some, in the schemas on the search path of tailrace's
//! sessions.

use super::{Finding, Level, listed};
use crate::catalog::inventory::creators::Creator;
use crate::catalog::inventory::owners::Foreign;
use crate::installation::foreign::in_sql;
use crate::installation::rights::as_identifier;

const CHECK: &str = "creators";

/// One finding for each schema in which others may create, with the REVOKE for each of them, and one
/// for what others own: of ours, and of what the server's tables are named like.
pub fn findings(creators: &[Creator], foreign: &[Foreign], schema: &str) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        [schema, "tailrace"].iter().filter_map(|schema| may_create(creators, schema)).collect();
    findings.extend(of_server(foreign));
    findings.extend(of_ours(foreign));
    if findings.is_empty() {
        let what = format!("nobody else may create in the schemas {schema} and tailrace");
        findings.push(Finding::ok(CHECK, what));
    }
    findings
}

fn may_create(creators: &[Creator], schema: &str) -> Option<Finding> {
    let roles: Vec<String> = creators
        .iter()
        .filter(|creator| creator.schema == schema)
        .map(|creator| creator.role.as_deref().map_or("PUBLIC".to_owned(), as_identifier))
        .collect();
    if roles.is_empty() {
        return None;
    }
    let of = as_identifier(schema);
    let revoke = |role: &String| format!("revoke create on schema {of} from {role};");
    Some(
        Finding::new(
            Level::Warning,
            CHECK,
            format!("{} may create in the schema {of}", listed(&roles)),
            "whoever creates there can put tables, functions and operators where the server's \
             sessions, and those of others who use this schema, look for theirs",
            "as the owner of the schema, unless the server itself works as that role:",
        )
        .with(roles.iter().map(revoke).collect()),
    )
}

fn of_server(foreign: &[Foreign]) -> Option<Finding> {
    let names = named(foreign, false);
    (!names.is_empty()).then(|| {
        Finding::new(
            Level::Warning,
            CHECK,
            format!("not the owner of hog_catalog, but another role owns the {}", listed(&names)),
            "tailrace works as if what it can do without were not there, for triggers and rules of \
             somebody else's table would run with its rights",
            "drop what is not the server's; give its owner what is",
        )
    })
}

fn of_ours(foreign: &[Foreign]) -> Option<Finding> {
    let names = named(foreign, true);
    (!names.is_empty()).then(|| {
        Finding::new(
            Level::Note,
            CHECK,
            format!("another role owns the {}", listed(&names)),
            "its owner decides what tailrace takes for its policies and history",
            "nothing, if that is the role that migrates; else see what it put there",
        )
    })
}

fn named(foreign: &[Foreign], is_ours: bool) -> Vec<String> {
    let of = foreign.iter().filter(|foreign| foreign.is_ours() == is_ours);
    of.map(|one| format!("{} ({})", in_sql(one), as_identifier(&one.owner))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_schema_and_each_owner_is_reported() {
        let creator = |schema: &str, role: Option<&str>| Creator {
            schema: schema.to_owned(),
            role: role.map(str::to_owned),
        };
        let table = |schema: &str, name: &str| Foreign {
            kind: "table".to_owned(),
            schema: Some(schema.to_owned()),
            name: name.to_owned(),
            arguments: None,
            owner: "Mallory".to_owned(),
        };
        let creators = [
            creator("Lake", None),
            creator("Lake", Some("it's")),
            creator("tailrace", Some("deploy")),
        ];
        let foreign = [table("tailrace", "policy"), table("Lake", "hog_upload")];
        let told = findings(&creators, &foreign, "Lake");
        let told: Vec<_> = told
            .iter()
            .map(|finding| (finding.level, finding.what.as_str(), finding.statements.as_slice()))
            .collect();
        let revoked = |statements: &[&str]| -> Vec<String> {
            statements.iter().map(|statement| (*statement).to_owned()).collect()
        };
        assert_eq!(
            told,
            [
                (
                    Level::Warning,
                    r#"PUBLIC, "it's" may create in the schema "Lake""#,
                    &revoked(&[
                        r#"revoke create on schema "Lake" from PUBLIC;"#,
                        r#"revoke create on schema "Lake" from "it's";"#,
                    ])[..]
                ),
                (
                    Level::Warning,
                    "deploy may create in the schema tailrace",
                    &revoked(&["revoke create on schema tailrace from deploy;"])[..]
                ),
                (
                    Level::Warning,
                    "not the owner of hog_catalog, but another role owns the \
                     table \"Lake\".hog_upload (\"Mallory\")",
                    &[]
                ),
                (Level::Note, r#"another role owns the table tailrace.policy ("Mallory")"#, &[]),
            ]
        );
        let told = findings(&[], &[], "public");
        assert_eq!((told.len(), told[0].level), (1, Level::Ok));
        assert_eq!(told[0].what, "nobody else may create in the schemas public and tailrace");
    }
}
