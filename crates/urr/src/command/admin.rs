//! `urr admin`: what only whoever runs the installation may do.

use std::io::{self, BufRead, IsTerminal};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use urr_auth::{Auth, Email, Name, NewAdmin, Password};

use super::{block_on, say};
use crate::compose::{World, auth_parts};
use crate::config::Config;
use crate::engines;
use crate::role::Role;

#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Open an administrator's account; the password is read from standard input
    Create {
        #[arg(long)]
        email: String,
        #[arg(long, default_value = "Administrator")]
        name: String,
    },
}

/// Works beside a running URR as well as without one.
pub fn run(config: &Config, command: AdminCommand) -> Result<()> {
    let AdminCommand::Create { email, name } = command;
    let password = read_password()?;
    let email = Email::parse(&email).context("--email")?;
    let password = Password::parse(&password, &email)?;
    let admin = NewAdmin { email, name: Name::parse(&name).context("--name")?, password };
    if config.auth.data_key.expose().is_empty() {
        bail!("there are no secrets in {}; has `urr up` run there?", config.data.dir.display());
    }
    block_on(async {
        let world = World::real();
        let db = engines::open_storage(config, Role::Auth, &world.clock).await?;
        let db = db.context("accounts are stored")?;
        let created = Auth::new(auth_parts(config, db.clone(), &world)).create_admin(admin).await;
        tokio::task::spawn_blocking(move || db.close()).await?;
        let user = created?;
        say(&format!("{} is an administrator now.", user.person.email.as_str()))
    })
}

/// Without an echo if somebody types it, so that nobody reads it over their shoulder.
fn read_password() -> Result<String> {
    let is_typed = io::stdin().is_terminal();
    if is_typed {
        say("Password:")?;
        set_echo(false);
    }
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    if is_typed {
        set_echo(true);
    }
    read.context("standard input")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Where `stty` is missing, the password is seen while it is typed, and no worse.
fn set_echo(on: bool) {
    let echo = if on { "echo" } else { "-echo" };
    drop(Command::new("stty").arg(echo).stdin(Stdio::inherit()).status());
}
