//! What is in force, for people (`urr config`) and programs (`urr config --json`).

use serde_json::json;

use super::source::Origin;
use super::{Config, IgnoredVariable};

/// One setting in force. Its value is already fit to be shown: secrets are not in it.
#[derive(Debug, Clone)]
pub struct Setting {
    pub key: String,
    pub value_shown: String,
    pub origin: Origin,
    /// The environment variables that set it; the first is `URR_<KEY>`.
    pub env_names: Vec<String>,
    pub comment: String,
}

impl Config {
    /// Every setting in force, in the order of `config/default.toml`.
    pub fn describe(&self) -> &[Setting] {
        &self.settings
    }

    /// A table of what is in force, and the variables that are set but have no effect.
    pub fn render_text(&self) -> String {
        let head = ["key", "value", "from", "environment"].map(str::to_owned);
        let rows = self.settings.iter().map(|setting| {
            let Setting { key, value_shown, origin, env_names, .. } = setting;
            [key.clone(), value_shown.clone(), origin.to_string(), env_names.join(" ")]
        });
        let mut text = align(std::iter::once(head).chain(rows).collect());
        if !self.ignored.is_empty() {
            text.push_str("\nset, but without effect:\n");
        }
        for variable in &self.ignored {
            text.push_str(&format!("{}: {}\n", variable.name, variable.reason));
        }
        text
    }

    /// The same as JSON, with the comments.
    pub fn render_json(&self) -> String {
        let setting = |setting: &Setting| {
            json!({
                "key": setting.key,
                "value": setting.value_shown,
                "origin": setting.origin.to_string(),
                "environment": setting.env_names,
                "comment": setting.comment,
            })
        };
        let settings: Vec<_> = self.settings.iter().map(setting).collect();
        let ignored = |IgnoredVariable { name, reason }: &IgnoredVariable| {
            let (name, reason) = (name.as_str(), *reason);
            json!({ "name": name, "reason": reason })
        };
        let ignored: Vec<_> = self.ignored.iter().map(ignored).collect();
        format!("{:#}\n", json!({ "settings": settings, "ignored": ignored }))
    }
}

/// Columns as wide as their widest cell; the last one is ragged.
fn align<const N: usize>(rows: Vec<[String; N]>) -> String {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}
