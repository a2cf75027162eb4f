//! What is in force, for people (`urr config`) and programs (`urr config --json`).

use serde_json::json;

use super::Config;
use super::source::SettingSource;
use crate::text_table::align;

/// One setting in force. Its value is already fit to be shown: secrets are not in it.
#[derive(Debug, Clone)]
pub struct Setting {
    pub key: String,
    pub display_value: String,
    pub source: SettingSource,
    /// The environment variables that set it; the first is `URR_<KEY>`.
    pub env_names: Vec<String>,
    pub comment: String,
}

impl Config {
    /// Every setting in force, in the order of `config/default.toml`.
    pub fn describe(&self) -> &[Setting] {
        &self.settings
    }

    /// A table of what is in force.
    pub fn render_text(&self) -> String {
        let head = ["key", "value", "from", "environment"].map(str::to_owned);
        let rows = self.settings.iter().map(|setting| {
            let Setting { key, display_value, source, env_names, .. } = setting;
            [key.clone(), display_value.clone(), source.to_string(), env_names.join(" ")]
        });
        align(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
    }

    /// The same as JSON, with the comments.
    pub fn render_json(&self) -> String {
        let setting = |setting: &Setting| {
            json!({
                "key": setting.key,
                "value": setting.display_value,
                "origin": setting.source.to_string(),
                "environment": setting.env_names,
                "comment": setting.comment,
            })
        };
        let settings: Vec<_> = self.settings.iter().map(setting).collect();
        format!("{:#}", json!({ "settings": settings }))
    }
}
