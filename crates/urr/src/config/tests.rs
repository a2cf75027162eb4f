//! The configuration as a whole: sources, origins, errors, secrets.

mod defaults;
mod errors;
mod precedence;
mod secrets;
mod variables;

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A folder of one test, removed at its end. It does not exist until something creates it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("urr-config-test-{}-{count}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }

    fn with_file(text: &str) -> Folder {
        let folder = Folder::new();
        fs::create_dir(&folder.0).unwrap();
        fs::write(folder.0.join("urr.toml"), text).unwrap();
        folder
    }

    fn secrets(&self) -> PathBuf {
        self.0.join("secrets.toml")
    }

    fn load(&self, mode: LoadMode, env: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
        let env = env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        load(self.args(mode), env)
    }

    fn args(&self, mode: LoadMode) -> LoadOptions {
        let overrides = CommandLineOverrides {
            data_dir: Some(self.0.clone()),
            ..CommandLineOverrides::default()
        };
        LoadOptions { mode, config_file: None, overrides }
    }

    /// The problems, with the folder's own path shortened to `DATA`.
    fn problems(&self, mode: LoadMode, env: &[(&str, &str)]) -> Vec<String> {
        let problems = self.load(mode, env).expect_err("the configuration is wrong").problems;
        let path = self.0.display().to_string();
        problems.iter().map(|problem| problem.replace(&path, "DATA")).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.0.exists() {
            fs::remove_dir_all(&self.0).expect("a test's own folder can be removed");
        }
    }
}

/// What is in force with only these variables set.
fn inspect(env: &[(&str, &str)]) -> Config {
    Folder::new().load(LoadMode::Inspect, env).unwrap()
}

fn problems_of(env: &[(&str, &str)]) -> Vec<String> {
    Folder::new().problems(LoadMode::Inspect, env)
}

fn setting<'a>(config: &'a Config, key: &str) -> &'a Setting {
    config.describe().iter().find(|setting| setting.key == key).expect("a known key")
}

/// Notices are not sent without it.
const SQS_KEY: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "key")];
