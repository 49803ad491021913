//! The layers of the configuration: defaults, then a file, then the environment. A later layer
//! overrides an earlier one. The keys of every layer are checked, also those that a later layer
//! overrides.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use config::{FileFormat, Format, Map, Source, Value, ValueKind};

use super::error::ConfigError;
use super::keys::{KEYS, Key, Preset, SECTIONS};

/// The environments whose files are built into the program. The built-in file is used where no folder has it.
const BUILT_IN: [(&str, &str); 3] = [
    ("development", include_str!("../../config/development.toml")),
    ("staging", include_str!("../../config/staging.toml")),
    ("production", include_str!("../../config/production.toml")),
];

const DEFAULTS: &str = include_str!("../../config/default.toml");

/// The places from which the configuration is loaded.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// `--config FILE`: this file is read instead of the environment's file.
    pub file: Option<PathBuf>,
    /// The environment variables.
    pub env: BTreeMap<String, String>,
    /// Where `config/` is looked for; relative paths of files start here. Empty: the working
    /// directory.
    pub folder: PathBuf,
}

impl LoadOptions {
    /// The variables and the working directory of this process.
    pub fn from_process(file: Option<PathBuf>) -> Self {
        // A variable whose name is not Unicode is ignored. A value that is not Unicode is converted: its key
        // refuses the result, or a message about a missing file shows it.
        let env = std::env::vars_os()
            .filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
            })
            .collect();
        Self { file, env, folder: PathBuf::new() }
    }

    /// A variable that is set and not empty.
    fn variable(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// The values from one place, by their whole keys. Each of these keys exists.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer(pub(super) Map<String, Value>);

impl Layer {
    fn set(&mut self, key: &Key, mut value: Value) {
        // An empty text unsets a key that may be unset and that an earlier layer has set.
        let blank = matches!(&value.kind, ValueKind::String(text) if text.is_empty());
        if blank && matches!(key.preset, Preset::Unset(_)) {
            value.kind = ValueKind::Nil;
        }
        self.0.insert(key.path(), value);
    }
}

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, config::ConfigError> {
        Ok(self.0.clone())
    }
}

/// One place that settings come from.
pub(super) struct Place {
    /// What it is, and why it was read, in a line.
    pub(super) told: String,
    pub(super) layer: Layer,
}

/// The places; each overrides those before it.
pub(super) fn places(options: &LoadOptions) -> Result<Vec<Place>, ConfigError> {
    let (told, file) = environment_file(options)?;
    let (variables, environment) = from_variables(options)?;
    let defaults = from_toml("the built-in default", DEFAULTS)?;
    Ok(vec![
        Place { told: "the built-in default".into(), layer: defaults },
        Place { told, layer: file },
        Place { told: variables, layer: environment },
    ])
}

/// The file of the environment, or the file that is read instead, and its values.
fn environment_file(options: &LoadOptions) -> Result<(String, Layer), ConfigError> {
    let told = |path: &Path, why: &str| format!("{} ({why})", path.display());
    if let Some(file) = &options.file {
        let path = options.folder.join(file);
        return Ok((told(&path, "--config"), from_file(&path)?));
    }
    let set = options.variable("TAILRACE_ENV");
    let name = set.unwrap_or("development");
    let asked = match set {
        Some(name) => format!("TAILRACE_ENV is {name}"),
        None => "TAILRACE_ENV is not set".to_owned(),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.chars().all(plain) {
        return Err(ConfigError::EnvironmentName { name: name.into() });
    }
    let file = format!("{name}.toml");
    if let Some(folder) = options.variable("TAILRACE_CONFIG_DIR") {
        let path = options.folder.join(folder).join(file);
        let why = format!("{asked}, and TAILRACE_CONFIG_DIR is set");
        return Ok((told(&path, &why), from_file(&path)?));
    }
    let beside = options.folder.join("config").join(file);
    if beside.is_file() {
        return Ok((told(&beside, &asked), from_file(&beside)?));
    }
    match BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
        Some((_, text)) => {
            let origin = format!("the built-in {name}.toml");
            let layer = from_toml(&origin, text)?;
            Ok((format!("{origin} ({asked}, and there is no {})", beside.display()), layer))
        }
        None => Err(ConfigError::NoEnvironment { name: name.into(), looked_at: beside }),
    }
}

fn from_file(path: &Path) -> Result<Layer, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Unreadable { path: path.into(), source })?;
    from_toml(&path.display().to_string(), &text)
}

/// Parses and checks the text of one file; `origin` is how messages call it.
fn from_toml(origin: &str, text: &str) -> Result<Layer, ConfigError> {
    let table = FileFormat::Toml.parse(Some(&origin.to_owned()), text).map_err(|_| {
        // The library's own message quotes the line, which may hold a password.
        let why = toml::from_str::<toml::Table>(text).err();
        let at = why.as_ref().and_then(toml::de::Error::span).map_or(0, |span| span.start);
        ConfigError::NotToml {
            origin: origin.into(),
            line: text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1,
            why: why.map_or_else(|| "it is not TOML".into(), |why| why.message().into()),
        }
    })?;
    let mut layer = Layer::default();
    for (section, value) in table {
        if !SECTIONS.iter().any(|(known, _)| *known == section) {
            return Err(ConfigError::unknown(&section, origin));
        }
        let ValueKind::Table(values) = value.kind else {
            return Err(ConfigError::NotASection { section, origin: origin.into() });
        };
        for (name, value) in values {
            let path = format!("{section}.{name}");
            let key = KEYS.iter().find(|key| key.path() == path);
            layer.set(key.ok_or_else(|| ConfigError::unknown(&path, origin))?, value);
        }
    }
    Ok(layer)
}

/// The variable of tailrace that is probably meant by one that is none: it differs in underscores and case, and
/// besides in one letter at most. A letter that is wrong behind `TAILRACE__` is named as an unknown key.
fn mistyped(variable: &str) -> Option<String> {
    let letters = |name: &str| name.replace('_', "").to_ascii_uppercase();
    let others = ["TAILRACE_ENV", "TAILRACE_CONFIG_DIR"].map(str::to_owned);
    let known: Vec<String> = KEYS.iter().map(Key::variable).chain(others).collect();
    if known.iter().any(|known| known == variable) {
        return None;
    }
    let given = letters(variable);
    let most = usize::from(!variable.starts_with("TAILRACE__"));
    let distance = |known: &String| strsim::osa_distance(&letters(known), &given);
    known.into_iter().min_by_key(distance).filter(|known| distance(known) <= most)
}

/// The variables that set a key, by name, and what is in them.
fn from_variables(options: &LoadOptions) -> Result<(String, Layer), ConfigError> {
    let mut layer = Layer::default();
    let mut names = Vec::new();
    let mut set = |key: &Key, variable: &str, text: &str| {
        if !names.iter().any(|name| name == variable) {
            names.push(variable.to_owned());
        }
        let origin = format!("the variable {variable}");
        layer.set(key, Value::new(Some(&origin), ValueKind::String(text.into())));
    };
    // Variables that other programs use too come first, so that those of tailrace override them.
    for key in KEYS {
        let shared = match key.path().as_str() {
            "database.url" => "DATABASE_URL",
            "log.filter" | "log.command_filter" => "RUST_LOG",
            _ => continue,
        };
        if let Some(text) = options.variable(shared) {
            set(key, shared, text);
        }
    }
    for (variable, text) in &options.env {
        if let Some(meant) = mistyped(variable) {
            return Err(ConfigError::Mistyped { variable: variable.clone(), meant });
        }
        if variable.starts_with("TAILRACE__") {
            let key = KEYS.iter().find(|key| key.variable() == *variable);
            set(key.ok_or_else(|| ConfigError::unknown_variable(variable))?, variable, text);
        }
    }
    let told = match &*names {
        [] => "no variable".to_owned(),
        [one] => format!("the variable {one}"),
        several => format!("the variables {}", several.join(", ")),
    };
    Ok((told, layer))
}
