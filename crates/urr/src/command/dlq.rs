//! `urr dlq`: dead letters, the messages that could not be handled.

use anyhow::{Result, bail};
use clap::Subcommand;
use urr_bus::dead_letters::{self, DeadLetterScope, RepeatedReplay};
use urr_bus::{Bus, DeadLetter, DeadLetterError, MessagePosition};
use urr_kernel::Clock;

use super::{block_on, print_line};
use crate::config::Config;
use crate::engines;

#[derive(Debug, Subcommand)]
pub enum DlqCommand {
    /// The dead letters that were not sent again yet
    List {
        /// Only those of this topic, for example reservation-events
        #[arg(long)]
        topic: Option<String>,
        /// Also those that were sent again
        #[arg(long)]
        all: bool,
        /// How many at most
        #[arg(long, default_value_t = 1_000)]
        limit: usize,
    },
    /// One dead letter with its content
    Show {
        /// As `list` prints it: topic/partition/offset
        id: MessagePosition,
    },
    /// Send dead letters to their topic again; consumers that had handled them skip them
    Replay {
        /// As `list` prints it: topic/partition/offset
        #[arg(required_unless_present = "all")]
        id: Option<MessagePosition>,
        /// All that were not sent again yet
        #[arg(long, conflicts_with = "id")]
        all: bool,
        /// Also if it was sent again before
        #[arg(long)]
        force: bool,
    },
}

/// The embedded bus is a file: this works beside a running `urr up`.
pub fn run(config: &Config, command: DlqCommand) -> Result<()> {
    if !engines::has_bus(config) {
        bail!("there is no bus in {}; has `urr up` run there?", config.data.dir.display());
    }
    block_on(async {
        let bus = engines::connect_bus(config, &Clock::System)?;
        let outcome = run_on(&bus, command).await;
        bus.close().await;
        outcome
    })
}

async fn run_on(bus: &Bus, command: DlqCommand) -> Result<()> {
    match command {
        DlqCommand::List { topic, all, limit } => {
            let which = if all { DeadLetterScope::OpenAndReplayed } else { DeadLetterScope::Open };
            let listing = dead_letters::list(bus, topic.as_deref(), which, limit).await?;
            if listing.letters.is_empty() && !listing.is_cut {
                return print_line("There are no dead letters.");
            }
            listing.letters.iter().try_for_each(|letter| print_line(&line(letter)))?;
            if listing.is_cut {
                print_line("There are more; raise --limit to see them.")
            } else {
                Ok(())
            }
        }
        DlqCommand::Show { id } => {
            let letter = dead_letters::show(bus, &id).await?;
            print_line(&format!("{}\n{}", line(&letter), String::from_utf8_lossy(&letter.body)))
        }
        DlqCommand::Replay { id: Some(id), force, .. } => {
            let again = if force { RepeatedReplay::Allow } else { RepeatedReplay::Refuse };
            match dead_letters::replay(bus, &id, again, Clock::System.now()).await {
                Err(DeadLetterError::AlreadyReplayed(id)) => {
                    bail!("{id} was sent again before; add --force to send it once more")
                }
                replayed => print_line(&format!("{id} was sent again as {}.", replayed?)),
            }
        }
        DlqCommand::Replay { .. } => {
            let sent = dead_letters::replay_open(bus, None, Clock::System.now()).await?;
            print_line(&format!("{sent} dead letters were sent again."))
        }
    }
}

/// Id, time, consumer group, event type and reason in one line.
fn line(letter: &DeadLetter) -> String {
    let when = letter.failed_at.map_or_else(|| "-".to_owned(), |time| time.to_string());
    let what = letter.event_type.as_deref().unwrap_or("not an event");
    let replayed = if letter.is_replayed { "  (sent again)" } else { "" };
    let (id, group, reason) = (&letter.id, &letter.group, &letter.reason);
    format!("{id}  {when}  {group}  {what}  {reason}{replayed}")
}
