//! A Lua script and the two commands that run it.

use redis::{Cmd, ToRedisArgs};

/// A Lua script with its hash. Make each once and keep it, as in a `LazyLock`.
pub struct Script(redis::Script, String);

impl Script {
    pub fn new(text: &str) -> Script {
        Script(redis::Script::new(text), text.to_owned())
    }

    /// `EVALSHA`: short, but the server must know the script.
    pub(crate) fn by_hash(&self, keys: &[&str], arguments: &impl ToRedisArgs) -> Cmd {
        command("EVALSHA", self.0.get_hash(), keys, arguments)
    }

    /// `EVAL`: with the text, which the server then knows.
    pub(crate) fn by_text(&self, keys: &[&str], arguments: &impl ToRedisArgs) -> Cmd {
        command("EVAL", &self.1, keys, arguments)
    }
}

fn command(name: &str, script: &str, keys: &[&str], arguments: &impl ToRedisArgs) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
    command
}
