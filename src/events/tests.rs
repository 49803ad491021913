//! Checks that the events in the code, in `ALL` and in `docs/log-events.md` are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::ALL;

/// A place in the code that tells an event.
struct Site {
    place: String,
    level: String,
    constant: String,
    fields: BTreeSet<String>,
}

#[derive(Default)]
struct Documented {
    level: String,
    fields: BTreeSet<String>,
    queries: Vec<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("src can be read") {
        let path = entry.expect("src can be read").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Every place in src, but in tests, where an event is logged.
fn sites() -> Vec<Site> {
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    let mut sites = Vec::new();
    for file in files {
        let name = file.strip_prefix(root()).expect("it is below").display().to_string();
        if name.contains("tests") {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source file");
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(&text);
        for (at, _) in text.match_indices("event = ") {
            let line = text[..at].lines().count();
            sites.extend(site(text, at, format!("{name}:{line}")));
        }
    }
    sites
}

/// The macro call around the `event = ` at `at`, or nothing in a comment or a doctest.
fn site(text: &str, at: usize, place: String) -> Option<Site> {
    let line = text[..at].rsplit('\n').next().unwrap_or_default().trim_start();
    if line.starts_with("//") {
        return None;
    }
    let open = text[..at].rfind('(').expect("event = is an argument of a macro");
    let level = text[..open].trim_end_matches('!').rsplit([':', ' ', '\n']).next();
    let arguments = arguments(&text[open + 1..]);
    let field = |argument: &str| -> Option<String> {
        let name = argument.split(" = ").next()?.trim_start_matches(['%', '?']).trim();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        (!name.is_empty() && name.chars().all(plain)).then(|| name.to_owned())
    };
    let event = arguments.iter().find_map(|argument| argument.strip_prefix("event = "));
    // What follows the sentence fills its holes.
    let fields = arguments.iter().take_while(|argument| !argument.starts_with('"'));
    Some(Site {
        place,
        level: level.unwrap_or_default().to_owned(),
        constant: event.expect("found by that").to_owned(),
        fields: fields.filter_map(|argument| field(argument)).filter(|f| f != "event").collect(),
    })
}

/// The arguments of a call up to its closing parenthesis, split at the commas between them.
fn arguments(text: &str) -> Vec<String> {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let mut found = vec![String::new()];
    for letter in text.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            ')' if depth == 0 => break,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(String::new());
                continue;
            }
            _ => {}
        }
        found.last_mut().expect("never empty").push(letter);
    }
    found.iter().map(|argument| argument.trim().to_owned()).collect()
}

fn documented() -> BTreeMap<String, Documented> {
    let text = std::fs::read_to_string(root().join("docs/log-events.md")).expect("the page");
    let mut found = BTreeMap::new();
    for section in text.split("\n### `").skip(1) {
        let (name, rest) = section.split_once('`').expect("a heading");
        let mut event = Documented::default();
        for paragraph in rest.split("\n\n") {
            let (level, fields) = paragraph.trim().split_once("\nFields:").unwrap_or_default();
            if let Some(level) = level.strip_prefix("Level: ") {
                event.level = level.trim_end_matches('.').to_owned();
                event.fields = fields.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            }
            if let Some(query) = paragraph.trim().strip_prefix("```logql\n") {
                event.queries.push(query.split("\n```").next().unwrap_or_default().to_owned());
            }
        }
        let twice = found.insert(name.to_owned(), event).is_some();
        assert!(!twice, "{name} has two sections");
    }
    found
}

#[test]
fn names_are_the_constants_in_lower_case_and_unique() {
    let mut seen = BTreeSet::new();
    for (constant, name, _) in ALL {
        assert_eq!(*name, constant.to_lowercase());
        assert!(seen.insert(name), "{name} is there twice");
    }
}

#[test]
fn every_event_is_documented_and_nothing_else_is() {
    let documented = documented();
    let known: BTreeSet<&str> = ALL.iter().map(|(_, name, _)| *name).collect();
    let named: BTreeSet<&str> = documented.keys().map(String::as_str).collect();
    assert_eq!(known, named, "events.rs on the left, docs/log-events.md on the right");
    for (_, name, level) in ALL {
        let event = &documented[*name];
        assert_eq!(event.level, *level, "level of {name}");
        assert_eq!(event.queries.len(), 1, "{name} has one sample query");
        let selector = format!("{{app=\"tailrace\"}} | json | event=\"{name}\"");
        assert!(event.queries[0].contains(&selector), "the query of {name} asks for {selector}");
    }
}

#[test]
fn every_event_in_the_code_is_a_constant_told_as_documented() {
    let documented = documented();
    for site in sites() {
        let Site { place, level, constant, fields } = site;
        let known = ALL.iter().find(|(name, ..)| constant == format!("events::{name}"));
        let (_, name, _) = known.unwrap_or_else(|| {
            panic!("{place}: event = {constant} is not one of the constants of events.rs")
        });
        let event = &documented[*name];
        assert_eq!(level, event.level, "{place}: level of {name}");
        let unknown: Vec<&String> = fields.difference(&event.fields).collect();
        assert!(unknown.is_empty(), "{place}: {name} is documented without {unknown:?}");
    }
}

#[test]
fn everything_documented_is_told_somewhere() {
    let (documented, sites) = (documented(), sites());
    for (constant, name, _) in ALL {
        let told: Vec<&Site> =
            sites.iter().filter(|site| site.constant == format!("events::{constant}")).collect();
        assert!(!told.is_empty(), "nothing tells {name}");
        let fields: BTreeSet<String> =
            told.iter().flat_map(|site| site.fields.iter().cloned()).collect();
        let missing: Vec<&String> = documented[*name].fields.difference(&fields).collect();
        assert!(missing.is_empty(), "{name} is documented with {missing:?}, which nobody tells");
    }
}

#[test]
fn a_site_is_read_with_its_level_and_fields() {
    let text = "    tracing::warn!(\n        event = events::TUPLE_BUSY,\n        %table,\n        \
                partition = shown(&tuple, \", (\"),\n        files_ended,\n        \"It, or {}\",\n        \
                other\n    );\n";
    let at = text.find("event = ").expect("there");
    let site = site(text, at, "here".into()).expect("a site");
    assert_eq!((site.level.as_str(), site.constant.as_str()), ("warn", "events::TUPLE_BUSY"));
    let fields: Vec<&str> = site.fields.iter().map(String::as_str).collect();
    assert_eq!(fields, ["files_ended", "partition", "table"]);
}

/// Each name with its level and the fields of all places that tell it, as alerts and dashboards know them.
/// (What types they have in real runs is in `tests/suite/pins`.)
#[test]
fn names_levels_and_fields_are_pinned() {
    let mut fields: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for site in sites() {
        let name = site.constant.trim_start_matches("events::").to_lowercase();
        fields.entry(name).or_default().extend(site.fields);
    }
    let mut line = |(_, name, level): &(&str, &str, &str)| {
        let fields: Vec<String> = fields.remove(*name).into_iter().flatten().collect();
        format!("{name} {level}: {}\n", fields.join(" "))
    };
    let told: String = ALL.iter().map(&mut line).collect();
    let path = root().join("tests/suite/pins/golden/events.txt");
    if std::env::var_os("TAILRACE_BLESS").is_some() {
        std::fs::write(&path, &told).expect("the file can be written");
    }
    let pinned = std::fs::read_to_string(path).expect("the file is there");
    assert_eq!(told, pinned, "TAILRACE_BLESS=1 cargo test --lib pinned writes it anew");
}
