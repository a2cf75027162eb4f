//! `urr return-charges`: after a restore, refunds what was charged for orders that are lost.

use anyhow::{Result, bail};
use urr_contracts::clients::PaymentClient;
use urr_contracts::internal::payment::{AuditFinding, ReturnUnknownCharges};
use urr_kernel::Timestamp;

use super::operator::Operator;
use super::{CommandNotRun, audit, block_on, print_line};
use crate::config::Config;

#[derive(Debug, clap::Args)]
pub struct ReturnChargesArgs {
    /// The time of the backup, as `urr restore` says it
    #[arg(long, value_name = "TIME")]
    since: Timestamp,
    /// Where the payments answer [default: PAYMENT_SERVICE_URL, or else the running `urr up` of the
    /// data folder]
    #[arg(long)]
    url: Option<String>,
}

pub fn run(config: &Config, args: ReturnChargesArgs) -> Result<()> {
    let operator = Operator::find(config, audit::PAYMENTS, args.url);
    let operator = operator.map_err(CommandNotRun::wrap)?;
    let client = PaymentClient::new(operator.upstream());
    let mut not_done = Vec::new();
    let mut count = 0;
    block_on(async {
        loop {
            let call = ReturnUnknownCharges { since: args.since };
            let answer = client.call(call, operator.context()).await;
            let answer = answer.map_err(|error| operator.explain(error))?;
            count += answer.returned.len();
            for AuditFinding { sentence, .. } in &answer.returned {
                print_line(sentence)?;
            }
            if !answer.has_more {
                not_done.extend(answer.kept.into_iter().map(|kept| kept.sentence));
                not_done.extend(answer.silent.iter().map(|name| format!("{name} does not answer")));
                return Ok(());
            }
        }
    })
    .map_err(CommandNotRun::wrap)?;
    print_line(&format!("{count} charges were returned"))?;
    match not_done.is_empty() {
        true => Ok(()),
        false => bail!("not everything was returned: {}", not_done.join("; ")),
    }
}
