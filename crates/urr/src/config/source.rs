//! Where values come from: TOML files with their line numbers, and the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

/// The defaults, and the only list of what can be set together with its explanation.
pub const DEFAULT_TOML: &str = include_str!("../../../../config/default.toml");

/// A variable `URR_X_FILE` names a file that holds the value of `URR_X`, as containers get secrets.
pub const FILE_SUFFIX: &str = "_FILE";

/// Values are short: this one is no setting.
const VALUE_BYTES_MAX: u64 = 64 * 1024;

/// Where a value in force came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingSource {
    Default,
    /// The file in which `urr up` keeps the secrets it made.
    Generated(PathBuf),
    File {
        path: PathBuf,
        line: usize,
    },
    Environment(String),
    CommandLine,
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingSource::Default => f.write_str("default"),
            SettingSource::Generated(path) => write!(f, "{}", path.display()),
            SettingSource::File { path, line } => write!(f, "{}, line {line}", path.display()),
            SettingSource::Environment(name) => write!(f, "environment variable {name}"),
            SettingSource::CommandLine => f.write_str("command line"),
        }
    }
}

/// A value as it was written, before a rule has read it.
#[derive(Clone, PartialEq, Eq)]
pub enum RawValue {
    Text(String),
    List(Vec<String>),
}

impl RawValue {
    pub fn is_empty(&self) -> bool {
        match self {
            RawValue::Text(text) => text.trim().is_empty(),
            RawValue::List(items) => items.is_empty(),
        }
    }
}

impl fmt::Display for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RawValue::Text(text) => f.write_str(text.trim()),
            RawValue::List(items) => f.write_str(&items.join(",")),
        }
    }
}

/// One `key = value` of a TOML file.
pub struct TomlEntry {
    pub raw: RawValue,
    pub line: usize,
}

/// A TOML file with its tables flattened: `[server] port = 1` is the entry `server.port`.
pub type TomlEntries = BTreeMap<String, TomlEntry>;

/// Reads TOML, or says where it is wrong. The text of a wrong line is not repeated: it may hold a
/// secret.
pub fn parse_toml(text: &str, path: &Path) -> Result<TomlEntries, Vec<String>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let describe = |error: &toml::de::Error| {
            let (line, column) = position(text, error.span().map_or(0, |span| span.start));
            let message = error.message();
            format!("{}, line {line}, column {column}: not valid TOML: {message}", path.display())
        };
        let mut problems: Vec<String> = errors.iter().map(describe).collect();
        problems.dedup();
        return Err(problems);
    }
    let (mut entries, mut problems) = (TomlEntries::new(), Vec::new());
    flatten(table.get_ref(), "", text, &mut entries, &mut |line, key, problem| {
        problems.push(format!("{key} ({}, line {line}): {problem}", path.display()));
    });
    if problems.is_empty() { Ok(entries) } else { Err(problems) }
}

fn flatten(
    table: &DeTable<'_>,
    prefix: &str,
    text: &str,
    entries: &mut TomlEntries,
    refuse: &mut impl FnMut(usize, &str, &str),
) {
    for (name, value) in table {
        let key = format!("{prefix}{}", name.get_ref());
        let (line, _) = position(text, name.span().start);
        let raw = match value.get_ref() {
            DeValue::Table(inner) => {
                flatten(inner, &format!("{key}."), text, entries, refuse);
                continue;
            }
            DeValue::Array(items) => items
                .iter()
                .map(|item| scalar(item.get_ref()))
                .collect::<Option<_>>()
                .map(RawValue::List),
            value => scalar(value).map(RawValue::Text),
        };
        match raw {
            Some(raw) => drop(entries.insert(key, TomlEntry { raw, line })),
            None => refuse(line, &key, "a list here holds plain values; write [\"a\", \"b\"]"),
        }
    }
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(|number| number.to_string()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        DeValue::Datetime(time) => Some(time.to_string()),
        DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// Line and column, from 1, of a byte of `text`.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

/// The comment above each key of `default.toml`, without the line that names its variables.
pub fn default_comments() -> BTreeMap<String, String> {
    let (mut comments, mut section, mut comment) = (BTreeMap::new(), "", Vec::new());
    for line in DEFAULT_TOML.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
        } else if let Some((name, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            comments.insert(format!("{section}.{name}"), comment.join(" "));
        } else if let Some(sentence) = line.strip_prefix("# ") {
            if !sentence.starts_with("env: ") {
                comment.push(sentence);
            }
            continue;
        }
        comment.clear();
    }
    comments
}

/// The environment, handed in as data so that tests have their own.
pub struct Environment {
    variables: BTreeMap<String, OsString>,
}

impl Environment {
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Environment {
        // A name that is not UTF-8 cannot be one of ours.
        let utf8_name =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
        Environment { variables: variables.into_iter().filter_map(utf8_name).collect() }
    }

    /// The value of a variable, or of the file that `<NAME>_FILE` names. An empty variable counts as
    /// not set: container files pass `NAME=` on.
    pub fn get(&self, name: &str) -> Option<Result<String, String>> {
        let file_name = format!("{name}{FILE_SUFFIX}");
        match (self.text(name), self.text(&file_name)) {
            (own, None) => own,
            (None, Some(Ok(path))) => Some(read_value(&file_name, Path::new(&path))),
            (None, Some(Err(problem))) => Some(Err(problem)),
            (Some(_), Some(_)) => {
                Some(Err(format!("environment variables {name} and {file_name}: keep one of them")))
            }
        }
    }

    fn text(&self, name: &str) -> Option<Result<String, String>> {
        let value = self.variables.get(name)?;
        match value.to_str() {
            Some(text) if text.trim().is_empty() || self.is_service_link(name) => None,
            Some(text) => Some(Ok(text.trim().to_owned())),
            None => Some(Err(format!(
                "environment variable {name}: its value is not UTF-8; set it to plain text"
            ))),
        }
    }

    pub fn is_service_link(&self, name: &str) -> bool {
        let value = self.variables.get(name).and_then(|value| value.to_str());
        value.is_some_and(|value| is_service_link(name, value))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }
}

/// The value that a file holds, without the spaces and line breaks around it. The value is not
/// repeated in a problem: it may be a secret.
fn read_value(variable: &str, path: &Path) -> Result<String, String> {
    let problem = |what: &str| {
        Err(format!("environment variable {variable}: the file {} {what}", path.display()))
    };
    let mut text = String::new();
    let read =
        File::open(path).and_then(|file| file.take(VALUE_BYTES_MAX + 1).read_to_string(&mut text));
    match read {
        Err(error) => problem(&format!("cannot be read: {error}")),
        Ok(bytes) if bytes as u64 > VALUE_BYTES_MAX => problem("is too long for a setting"),
        Ok(_) if text.trim().is_empty() => problem("is empty"),
        Ok(_) => Ok(text.trim().to_owned()),
    }
}

/// Whether Kubernetes sets such a variable to tell every container of a Service.
///
/// A Service called `redis` makes `REDIS_PORT=tcp://10.0.0.7:6379`, and one called `urr-gateway`
/// makes half a dozen names that begin with `URR_`.
fn is_service_link(name: &str, value: &str) -> bool {
    let is_address = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme));
    let describes_port = name
        .split_once("_PORT_")
        .is_some_and(|(_, rest)| rest.starts_with(|first: char| first.is_ascii_digit()));
    is_address
        || describes_port
        || name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<TomlEntries, Vec<String>> {
        parse_toml(text, Path::new("urr.toml"))
    }

    #[test]
    fn tables_become_dotted_keys_with_the_line_they_are_on() {
        let entries =
            parse("[a]\nx = 1_000\n\n[a.b]\ny = [\"p\", \"q\"]\nz = 0x10\n").ok().unwrap();
        let found: Vec<_> = entries
            .iter()
            .map(|(key, entry)| format!("{key}={}@{}", entry.raw, entry.line))
            .collect();
        assert_eq!(found, ["a.b.y=p,q@5", "a.b.z=16@6", "a.x=1000@2"]);
    }

    #[test]
    fn wrong_toml_is_reported_with_line_and_column_and_without_its_text() {
        let problems = parse("[a]\nsecret = \"hunter2\nx = 1\n").err().unwrap();
        assert!(problems[0].starts_with("urr.toml, line 2, column "), "{problems:?}");
        assert!(!problems.concat().contains("hunter2"), "{problems:?}");
    }

    #[test]
    fn a_list_of_tables_is_refused() {
        let problems = parse("[[a]]\nx = 1\n").err().unwrap();
        assert_eq!(
            problems,
            ["a (urr.toml, line 1): a list here holds plain values; write [\"a\", \"b\"]"]
        );
    }

    #[test]
    fn the_comment_above_a_key_is_found_without_the_names_of_its_variables() {
        assert_eq!(
            default_comments()["server.port"],
            "Port of the public listener: the pages and the API."
        );
    }

    #[test]
    fn variables_that_kubernetes_makes_are_recognised() {
        for (name, value) in [
            ("REDIS_PORT", "tcp://10.0.0.7:6379"),
            ("URR_GATEWAY_SERVICE_HOST", "10.0.0.8"),
            ("URR_GATEWAY_SERVICE_PORT", "3001"),
            ("URR_GATEWAY_SERVICE_PORT_HTTP", "3001"),
            ("URR_GATEWAY_PORT_3001_TCP_ADDR", "10.0.0.8"),
        ] {
            assert!(is_service_link(name, value), "{name}");
        }
        for (name, value) in [
            ("REDIS_PORT", "6379"),
            ("URR_SERVER_MANAGEMENT_PORT", "3002"),
            ("URR_SERVICES_AUTH_URL", "http://auth"),
        ] {
            assert!(!is_service_link(name, value), "{name}");
        }
    }
}
