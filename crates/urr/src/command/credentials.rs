//! `urr credentials`: what the services that a role calls must accept from it, and with which password
//! a role logs in to PostgreSQL.

use anyhow::{Context, Result, ensure};
use urr_service::Caller;

use super::print_line;
use crate::call_graph::callers_of;
use crate::config::Config;
use crate::engines;
use crate::role::ProcessRole;

#[derive(Debug, clap::Args)]
pub struct CredentialsArgs {
    /// Who calls: a role, or operator
    #[arg(value_parser = parse_caller, required_unless_present = "database")]
    caller: Option<Caller>,
    /// Only for this service, in the form that internal.accepted has
    #[arg(long, value_name = "ROLE", value_parser = ProcessRole::parse)]
    to: Option<ProcessRole>,
    /// Instead, the password of this role: its database.<role>.password. Its processes do not need
    /// database.role_secret, from which all passwords follow
    #[arg(long, value_name = "ROLE", value_parser = parse_service, conflicts_with_all = ["caller", "to"])]
    database: Option<ProcessRole>,
}

fn parse_caller(text: &str) -> Result<Caller, String> {
    text.parse().map_err(|_| {
        let known = Caller::ALL.map(Caller::as_str).join(", ");
        format!("{text:?} does not call; the callers are {known}")
    })
}

fn parse_service(text: &str) -> Result<ProcessRole, String> {
    let role = ProcessRole::parse(text).map_err(|unknown| unknown.to_string())?;
    let is_service = ProcessRole::SERVICES.contains(&role);
    is_service.then_some(role).ok_or_else(|| format!("the {role} has no database"))
}

pub fn run(config: &Config, args: &CredentialsArgs) -> Result<()> {
    if let Some(role) = args.database {
        return print_line(engines::database_password(config, role)?.expose());
    }
    let caller = args.caller.context("the command line demands one")?;
    print_credentials(config, caller, args.to)
}

/// The secret is that of the caller's processes: `internal.token` of this configuration.
fn print_credentials(config: &Config, caller: Caller, to: Option<ProcessRole>) -> Result<()> {
    ensure!(
        !config.internal.token.expose().is_empty(),
        "there is no secret to make credentials from; set URR_INTERNAL_TOKEN to that of {caller}"
    );
    let called =
        ProcessRole::SERVICES.into_iter().filter(|role| callers_of(*role).contains(&caller));
    let called: Vec<ProcessRole> = called.filter(|role| to.is_none_or(|to| to == *role)).collect();
    ensure!(!called.is_empty(), "{caller} does not call it, so nothing has to be accepted");
    for role in called {
        let credential = config.internal.credentials().for_call(caller, role.name());
        let entry = format!("{caller}={}", credential.expose());
        match to {
            Some(_) => print_line(&entry)?,
            None => print_line(&format!("{role} {entry}"))?,
        }
    }
    Ok(())
}
