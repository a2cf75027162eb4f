//! `urr credentials`: what the services that a role calls must accept from it.

use anyhow::{Result, ensure};
use urr_service::Caller;

use super::print_line;
use crate::call_graph::callers_of;
use crate::config::Config;
use crate::role::ProcessRole;

#[derive(Debug, clap::Args)]
pub struct CredentialsArgs {
    /// Who calls: a role, or operator
    #[arg(value_parser = parse_caller)]
    caller: Caller,
    /// Only for this service, in the form that internal.accepted has
    #[arg(long, value_name = "ROLE", value_parser = ProcessRole::parse)]
    to: Option<ProcessRole>,
}

fn parse_caller(text: &str) -> Result<Caller, String> {
    text.parse().map_err(|_| {
        let known = Caller::ALL.map(Caller::as_str).join(", ");
        format!("{text:?} does not call; the callers are {known}")
    })
}

/// The secret is that of the caller's processes: `internal.token` of this configuration.
pub fn run(config: &Config, args: &CredentialsArgs) -> Result<()> {
    ensure!(
        !config.internal.token.expose().is_empty(),
        "there is no secret to make credentials from; set URR_INTERNAL_TOKEN to that of {}",
        args.caller
    );
    let caller = args.caller;
    let called =
        ProcessRole::SERVICES.into_iter().filter(|role| callers_of(*role).contains(&caller));
    let called: Vec<ProcessRole> =
        called.filter(|role| args.to.is_none_or(|to| to == *role)).collect();
    ensure!(!called.is_empty(), "{caller} does not call it, so nothing has to be accepted");
    for role in called {
        let credential = config.internal.credentials().for_call(caller, role.name());
        let entry = format!("{caller}={}", credential.expose());
        match args.to {
            Some(_) => print_line(&entry)?,
            None => print_line(&format!("{role} {entry}"))?,
        }
    }
    Ok(())
}
