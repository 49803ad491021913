//! Collects the output of many runs or requests, and combines it into one shape for each command,
//! route or event.

use std::collections::BTreeMap;

use serde_json::Value;

use super::shape::Shape;

/// What one of them told.
#[derive(Default)]
struct Section {
    /// In the order in which it came.
    lines: Vec<String>,
    shape: Shape,
}

/// All that was logged.
#[derive(Default)]
pub struct Told(BTreeMap<String, Section>);

impl Told {
    /// Notes a line of words.
    pub fn line(&mut self, heading: &str, line: String) {
        self.0.entry(heading.to_owned()).or_default().lines.push(line);
    }

    /// Takes in a value.
    pub fn value(&mut self, heading: &str, value: &Value) {
        self.0.entry(heading.to_owned()).or_default().shape.add(value);
    }

    /// Takes in a line of the log, by its event. One without an event is a library's.
    pub fn log(&mut self, line: &Value) {
        if let Some(event) = line["event"].as_str() {
            self.value(event, line);
        }
    }

    /// As a golden file has it.
    pub fn text(&self) -> String {
        let section = |(heading, Section { lines, shape }): (&String, &Section)| {
            let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
            format!("# {heading}\n{lines}{shape}")
        };
        self.0.iter().map(section).collect::<Vec<_>>().join("\n")
    }
}
