//! `urr admin`: administrators' accounts and the keys of personal data.

use std::io::{self, BufRead, IsTerminal};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use urr_auth::{AuthService, Email, NewAdmin, Password, PersonName};
use urr_service::data_keys::KeyRotationProgress;
use urr_ticket::TicketService;

use super::{block_on, print_line, with_storage};
use crate::compose::{ClockAndIds, auth_parts, ticket_service_alone};
use crate::config::Config;
use crate::engines;
use crate::role::ProcessRole;

#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Open an administrator's account; the password is read from standard input
    Create {
        #[arg(long)]
        email: String,
        #[arg(long, default_value = "Administrator")]
        name: String,
    },
    /// Seal all personal data with the current data key; URR may go on running meanwhile
    RotateKeys,
}

/// Works beside a running URR as well as without one.
pub fn run(config: &Config, command: AdminCommand) -> Result<()> {
    if config.auth.data_key.expose().is_empty() {
        bail!("there are no secrets in {}; has `urr up` run there?", config.data.dir.display());
    }
    match command {
        AdminCommand::Create { email, name } => {
            let admin = read_admin(&email, &name)?;
            with_accounts(config, async move |auth| {
                let user = auth.create_admin(admin).await?;
                print_line(&format!("{} is an administrator now.", user.person.email.as_str()))
            })
        }
        AdminCommand::RotateKeys => {
            with_accounts(config, rotate_accounts)?;
            match engines::has_tables(config, ProcessRole::Ticket) {
                true => with_tickets(config, rotate_guests),
                false => Ok(()),
            }
        }
    }
}

fn with_accounts(config: &Config, work: impl AsyncFnOnce(AuthService) -> Result<()>) -> Result<()> {
    block_on(with_storage(config, ProcessRole::Auth, async |db| {
        work(AuthService::new(auth_parts(config, db, &ClockAndIds::system())?)).await
    }))
}

fn with_tickets(
    config: &Config,
    work: impl AsyncFnOnce(TicketService) -> Result<()>,
) -> Result<()> {
    block_on(with_storage(config, ProcessRole::Ticket, async |db| {
        work(ticket_service_alone(config, db, &ClockAndIds::system())?).await
    }))
}

/// Rows per transaction: few, because the sale goes on in between.
const ROTATION_BATCH: u32 = 500;

async fn rotate_accounts(auth: AuthService) -> Result<()> {
    rotate("accounts", async || Ok(auth.rotate_personal_data(ROTATION_BATCH).await?)).await
}

async fn rotate_guests(ticket: TicketService) -> Result<()> {
    let mended = ticket.reseal_guests_of_empty_key(ROTATION_BATCH).await?;
    if mended > 0 {
        print_line(&format!("{mended} guests sealed that 0.1.0 had sealed with an empty key"))?;
    }
    rotate("guests", async || Ok(ticket.rotate_guest_keys(ROTATION_BATCH).await?)).await
}

async fn rotate(whose: &str, batch: impl AsyncFn() -> Result<KeyRotationProgress>) -> Result<()> {
    let mut done = 0;
    loop {
        let rotation = batch().await?;
        done += rotation.rotated;
        print_line(&format!("{done} {whose} sealed anew, {} to go", rotation.remaining))?;
        if rotation.remaining == 0 {
            return Ok(());
        }
    }
}

fn read_admin(email: &str, name: &str) -> Result<NewAdmin> {
    let email = Email::parse(email).context("--email")?;
    let name = PersonName::parse(name).context("--name")?;
    let password = Password::parse(&read_password()?, &email)?;
    Ok(NewAdmin { email, name, password })
}

/// On a terminal the password is not echoed.
fn read_password() -> Result<String> {
    let is_typed = io::stdin().is_terminal();
    if is_typed {
        print_line("Password:")?;
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

/// Without `stty` the password is visible while it is typed; that is accepted.
fn set_echo(on: bool) {
    let echo = if on { "echo" } else { "-echo" };
    drop(Command::new("stty").arg(echo).stdin(Stdio::inherit()).status());
}
