//! Finds a setting in every source, reads it by its rule, and records where it came from.
//!
//! There is no separate table of keys: what the sections read is what exists. Anything else in a file
//! or in the environment is reported as unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use urr_kernel::Secret;

use super::describe::Setting;
use super::rule::{ValueRule, ValueVisibility, mask_address, optional};
use super::source::{
    Environment, FILE_SUFFIX, RawValue, SettingSource, TomlEntries, default_comments,
};

/// Everything that was written down anywhere, in rising priority.
pub struct ConfigSources {
    pub defaults: TomlEntries,
    pub generated: Option<(PathBuf, TomlEntries)>,
    pub file: Option<(PathBuf, TomlEntries)>,
    pub environment: Environment,
    pub command_line: BTreeMap<&'static str, String>,
}

/// Reads settings one by one and collects what is wrong, so that all of it is reported together.
pub struct SettingReader<'a> {
    sources: &'a ConfigSources,
    comments: BTreeMap<String, String>,
    pub settings: Vec<Setting>,
    pub problems: Vec<String>,
    /// Secrets of our own that are not set.
    pub missing_secrets: Vec<String>,
    /// Keys whose value could not be read and was replaced by the default.
    unsound: BTreeSet<String>,
    secrets: Vec<(String, Secret)>,
}

impl<'a> SettingReader<'a> {
    pub fn new(sources: &'a ConfigSources) -> SettingReader<'a> {
        SettingReader {
            sources,
            comments: default_comments(),
            settings: Vec::new(),
            problems: Vec::new(),
            missing_secrets: Vec::new(),
            unsound: BTreeSet::new(),
            secrets: Vec::new(),
        }
    }

    /// The value in force. `aliases` are names of environment variables besides `URR_<KEY>`.
    ///
    /// A wrong value is noted and the default returned, so that reading goes on.
    pub fn value<T>(&mut self, key: &str, aliases: &[&str], rule: ValueRule<T>) -> T {
        let env_names: Vec<String> = std::iter::once(env_name(key))
            .chain(aliases.iter().map(|alias| (*alias).to_owned()))
            .collect();
        let (raw, source) =
            self.resolve(key, &env_names, rule.visibility == ValueVisibility::Hidden);
        self.settings.push(Setting {
            key: key.to_owned(),
            display_value: show(&raw, &source, rule.visibility),
            source,
            env_names,
            comment: self.comments.get(key).cloned().unwrap_or_default(),
        });
        if let Some(value) = rule.read(&raw) {
            return value;
        }
        self.problem(&[key], &format!("not {}; use {}", rule.noun, rule.fix));
        self.unsound.insert(key.to_owned());
        let default = &self.sources.defaults[key].raw;
        rule.read(default).expect("the defaults are valid: a test loads them")
    }

    /// A secret that may be absent, and that no other setting may repeat.
    pub fn secret(
        &mut self,
        key: &str,
        aliases: &[&str],
        rule: ValueRule<Secret>,
    ) -> Option<Secret> {
        let secret = self.value(key, aliases, optional(rule));
        self.secrets.extend(secret.iter().map(|secret| (key.to_owned(), secret.clone())));
        secret
    }

    /// A secret of our own, which `urr up` makes when none is set. Empty until then.
    pub fn own_secret(&mut self, key: &str, aliases: &[&str], rule: ValueRule<Secret>) -> Secret {
        self.secret(key, aliases, rule).unwrap_or_else(|| {
            if !self.unsound.contains(key) {
                self.missing_secrets.push(key.to_owned());
            }
            Secret::new("")
        })
    }

    /// Notes a problem between settings, unless one of them could not even be read.
    pub fn require(&mut self, keys: &[&str], fulfilled: bool, otherwise: &str) {
        if !fulfilled && !keys.iter().any(|key| self.unsound.contains(*key)) {
            self.problem(keys, otherwise);
        }
    }

    /// Two purposes with one secret let a token of one be used for the other.
    pub fn require_distinct_secrets(&mut self) {
        let secrets = std::mem::take(&mut self.secrets);
        for (index, (key, secret)) in secrets.iter().enumerate() {
            for (other, _) in secrets[..index].iter().filter(|(_, s)| s.matches(secret.expose())) {
                let problem = "the same secret for two purposes; give each its own";
                self.problem(&[other, key], problem);
            }
        }
    }

    /// Notes what the file and the environment hold that no setting asked for.
    pub fn refuse_unknown(&mut self) {
        let keys: Vec<&str> = self.settings.iter().map(|setting| setting.key.as_str()).collect();
        let names: Vec<&str> = env_names(&self.settings).collect();
        let mut problems = Vec::new();
        for (path, entries) in self.sources.file.iter() {
            for (key, entry) in entries.iter().filter(|(key, _)| !keys.contains(&key.as_str())) {
                let (line, hint) = (entry.line, suggest(key, &keys));
                problems
                    .push(format!("{key} ({}, line {line}): unknown key{hint}", path.display()));
            }
        }
        for name in self.sources.environment.names() {
            let ours = name.starts_with("URR_") && !name.starts_with("URR_TEST_");
            let value_name = name.strip_suffix(FILE_SUFFIX).unwrap_or(name);
            let is_known = names.contains(&name) || names.contains(&value_name);
            let explained = is_known || self.sources.environment.is_service_link(name);
            if ours && !explained {
                let hint = suggest(name, &names);
                problems.push(format!("environment variable {name}: unknown{hint}"));
            }
        }
        self.problems.extend(problems);
    }

    fn resolve(
        &mut self,
        key: &str,
        env_names: &[String],
        is_hidden: bool,
    ) -> (RawValue, SettingSource) {
        let sources = self.sources;
        if let Some(text) = sources.command_line.get(key) {
            return (RawValue::Text(text.clone()), SettingSource::CommandLine);
        }
        if let Some((name, text)) = self.resolve_environment(key, env_names) {
            return (RawValue::Text(text), SettingSource::Environment(name));
        }
        // `token = ""` in a file must not hide the secret that was generated.
        let given = |raw: &RawValue| !(is_hidden && raw.is_empty());
        if let Some((path, entries)) = &sources.file
            && let Some(entry) = entries.get(key).filter(|entry| given(&entry.raw))
        {
            let source = SettingSource::File { path: path.clone(), line: entry.line };
            return (entry.raw.clone(), source);
        }
        if let Some((path, entries)) = &sources.generated
            && let Some(entry) = entries.get(key)
        {
            return (entry.raw.clone(), SettingSource::Generated(path.clone()));
        }
        let default = sources.defaults.get(key);
        let default = default.unwrap_or_else(|| panic!("config/default.toml has no {key}"));
        (default.raw.clone(), SettingSource::Default)
    }

    fn resolve_environment(&mut self, key: &str, names: &[String]) -> Option<(String, String)> {
        let mut found: Option<(String, String)> = None;
        for name in names {
            match (self.sources.environment.get(name), &found) {
                (None, _) => {}
                (Some(Err(problem)), _) => self.problems.push(problem),
                (Some(Ok(text)), None) => found = Some((name.clone(), text)),
                (Some(Ok(text)), Some((first, first_text))) if text != *first_text => {
                    self.problems.push(format!(
                        "{key}: environment variables {first} and {name} both set it, differently; \
                         keep one"
                    ));
                }
                (Some(Ok(_)), Some(_)) => {}
            }
        }
        found
    }

    fn problem(&mut self, keys: &[&str], problem: &str) {
        let cited: Vec<String> = keys.iter().map(|key| self.cite(key)).collect();
        self.problems.push(format!("{}: {problem}", cited.join(" and ")));
    }

    /// A setting as problems name it: key, value, and where it came from.
    fn cite(&self, key: &str) -> String {
        let setting = self.settings.iter().find(|setting| setting.key == key);
        let Setting { display_value, source, .. } =
            setting.expect("checks name settings that exist");
        match source {
            SettingSource::Default => format!("{key} = {display_value:?} (the default)"),
            source => format!("{key} = {display_value:?} (from {source})"),
        }
    }
}

/// The environment variable of a key.
fn env_name(key: &str) -> String {
    format!("URR_{}", key.replace('.', "_").to_ascii_uppercase())
}

pub fn env_names(settings: &[Setting]) -> impl Iterator<Item = &str> {
    settings.iter().flat_map(|setting| &setting.env_names).map(String::as_str)
}

fn show(raw: &RawValue, source: &SettingSource, visibility: ValueVisibility) -> String {
    let text = raw.to_string();
    match visibility {
        ValueVisibility::Hidden if raw.is_empty() => "[empty]".to_owned(),
        ValueVisibility::Hidden if matches!(source, SettingSource::Generated(_)) => {
            "[generated]".to_owned()
        }
        ValueVisibility::Hidden => "[set]".to_owned(),
        ValueVisibility::Address => mask_address(&text),
        // A password in a place where none belongs is still not printed.
        ValueVisibility::Plain if text.contains("://") => mask_address(&text),
        ValueVisibility::Plain => text,
    }
}

/// `; did you mean …?` when a known name is near.
fn suggest(name: &str, known: &[&str]) -> String {
    let nearest = known.iter().map(|known| (strsim::levenshtein(name, known), known)).min();
    match nearest {
        Some((steps, known)) if steps <= name.len() / 3 => format!("; did you mean {known}?"),
        _ => "; remove it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_near_name_is_suggested() {
        let known = ["server.port", "server.host"];
        assert_eq!(suggest("server.prt", &known), "; did you mean server.port?");
        assert_eq!(suggest("colour", &known), "; remove it");
    }
}
