//! The README: its grants are those of the program's own list, and its first policy drops nothing.

use std::collections::BTreeSet;

use tailrace::installation::rights::{Purpose, needed};

/// Each single right of the README's SQL, as (privilege with columns, object).
fn of_readme() -> BTreeSet<(String, String)> {
    let readme = include_str!("../../../README.md");
    let words = readme.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', "");
    let mut rights = BTreeSet::new();
    for statement in words.split("grant ").skip(1) {
        let Some((grant, _)) = statement.split_once(" to tailrace") else { continue };
        let Some((privileges, objects)) = grant.split_once(" on ") else { continue };
        let (kind, objects) = match objects.split_once(' ') {
            Some((kind @ ("schema" | "sequence"), names)) => (format!("{kind} "), names),
            _ => (String::new(), objects),
        };
        let mut split: Vec<String> = Vec::new();
        for part in privileges.split(", ") {
            match split.last_mut() {
                Some(last) if is_open(last) => *last = format!("{last}, {part}"),
                _ => split.push(part.to_owned()),
            }
        }
        for object in objects.split(", ") {
            for privilege in &split {
                rights.insert((privilege.clone(), format!("{kind}{object}")));
            }
        }
    }
    rights
}

fn is_open(privilege: &str) -> bool {
    privilege.contains('(') && !privilege.contains(')')
}

#[test]
fn the_readme_lists_them_all_and_no_other() {
    let ours = needed().into_iter().map(|right| {
        let object = right.object.in_sql("public").replace("public.", "");
        (right.privilege_in_sql(), object)
    });
    assert_eq!(of_readme(), ours.collect());
    let passes = needed().iter().filter(|right| right.purpose == Purpose::Passes).count();
    assert_eq!((passes, needed().len()), (65, 83));
}

/// A table that an older server lacks takes its statement with it, and no other.
#[test]
fn the_grants_for_claims_are_one_statement_a_table() {
    let readme = include_str!("../../../README.md");
    let (_, claims) =
        readme.split_once("(`compaction.claims`), a daemon needs").expect("the grants");
    let (claims, _) = claims.split_once("The explicit drop needs").expect("their end");
    let statements: Vec<_> = claims.lines().filter(|line| line.starts_with("grant ")).collect();
    assert_eq!(statements.len(), 4, "{statements:?}");
    for statement in statements {
        let (_, objects) = statement.split_once(" on ").expect("an object");
        assert!(!objects.contains(',') && objects.ends_with(" to tailrace;"), "{statement}");
    }
}

/// Whoever copies the first lines loses nothing: data goes when somebody has said so.
#[test]
fn each_first_policy_observes() {
    let readme = include_str!("../../../README.md");
    let of_block = |block: &str| -> Vec<String> {
        let lines = block.lines().filter(|line| line.starts_with("tailrace policy set "));
        lines.map(str::to_owned).collect()
    };
    let blocks: Vec<_> = readme.split("```sh").skip(1).map(of_block).collect();
    let setting: Vec<_> = blocks.iter().filter(|lines| !lines.is_empty()).collect();
    assert_eq!(setting.len(), 2, "{setting:?}");
    for lines in setting {
        assert!(lines[0].contains("--mode observe"), "{}", lines[0]);
    }
}
