//! `urr queue`: shows and changes the waiting rooms of a running system, and verifies draws.

mod render;

use std::fs::File;
use std::io::{self, BufReader, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use urr_contracts::clients::QueueClient;
use urr_contracts::internal::queue::{ChangeRoom, ClearRoom, GetRoom, ListRooms};
use urr_kernel::Uuid;

use super::operator::{Operator, OperatorTarget};
use super::{block_on, print_line};
use crate::config::Config;
use crate::role::ProcessRole;

const ROOMS: OperatorTarget = OperatorTarget {
    role: ProcessRole::Queue,
    noun: "the waiting rooms",
    variable: "QUEUE_SERVICE_URL",
};

/// The longest page that the service gives.
const PAGE_LIMIT: i64 = 100;

#[derive(Debug, Args)]
pub struct QueueArgs {
    /// Where the waiting rooms answer [default: QUEUE_SERVICE_URL, or else the running `urr up` of
    /// the data folder]
    #[arg(long, global = true)]
    url: Option<String>,
    /// As JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: QueueCommand,
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    /// List the rooms with people in them, open or open soon; or show one of them
    Status {
        /// The event's id
        event: Option<Uuid>,
    },
    /// Change the settings of a room at once; `default` is the value of the installation
    Set {
        /// The event's id
        event: Uuid,
        #[command(flatten)]
        settings: RoomSettingArgs,
    },
    /// Admit nobody until the room is resumed; slots and positions stay
    Pause {
        /// The event's id
        event: Uuid,
    },
    /// Admit people again
    Resume {
        /// The event's id
        event: Uuid,
    },
    /// End every position and every slot, for good: everybody has to line up again
    Clear {
        /// The event's id
        event: Uuid,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Show a line of text to those who wait, or remove it
    Message {
        /// The event's id
        event: Uuid,
        /// At most 500 characters
        #[arg(required_unless_present = "remove")]
        text: Option<String>,
        /// Remove it
        #[arg(long, conflicts_with = "text")]
        remove: bool,
    },
    /// Verify a draw from its public file; nothing needs to run
    VerifyDraw {
        /// From /api/queue/draw/EVENT/file
        file: PathBuf,
        /// Also print the position of this user
        #[arg(long, value_name = "ID")]
        user: Option<Uuid>,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct RoomSettingArgs {
    /// How many may have a slot at the same time
    #[arg(long, value_name = "N", value_parser = number_or_default)]
    threshold: Option<Value>,
    /// How many are admitted within a second at most
    #[arg(long, value_name = "N", value_parser = number_or_default)]
    rate: Option<Value>,
    /// How long before the sale people may line up
    #[arg(long, value_name = "SECONDS", value_parser = number_or_default)]
    gathering: Option<Value>,
    /// The order of those who came before the sale: by arrival or by a draw
    #[arg(long, value_parser = ["fifo", "lottery"])]
    opening: Option<String>,
    /// Whether the rate follows the health of booking
    #[arg(long, value_parser = ["on", "off"])]
    autopilot: Option<String>,
}

/// A number, or null for the value of the installation.
fn number_or_default(text: &str) -> Result<Value, &'static str> {
    match text {
        "default" => Ok(Value::Null),
        number => {
            number.parse::<i64>().map(Value::from).map_err(|_| "expected a number or `default`")
        }
    }
}

impl RoomSettingArgs {
    /// The body of the request: a field that is not named stays, null is the default.
    fn to_body(&self) -> Value {
        let fields = [
            ("threshold", self.threshold.clone()),
            ("admittedPerSecondMax", self.rate.clone()),
            ("gatheringSeconds", self.gathering.clone()),
            ("opening", self.opening.clone().map(Value::from)),
            ("autopilot", self.autopilot.as_ref().map(|choice| Value::from(choice == "on"))),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

pub fn run(config: &Config, args: QueueArgs) -> Result<()> {
    let QueueArgs { url, json, command } = args;
    if let QueueCommand::VerifyDraw { file, user } = command {
        return verify_draw(&file, user, json);
    }
    let operator = Operator::find(config, ROOMS, url)?;
    block_on(run_command(&operator, command, json))
}

async fn run_command(operator: &Operator, command: QueueCommand, json: bool) -> Result<()> {
    let (client, context) = (QueueClient::new(operator.upstream()), operator.context());
    let (event, body) = match command {
        QueueCommand::Status { event: None } => return show_all(operator, json).await,
        QueueCommand::Status { event: Some(event) } => {
            return show_room(&get_room(operator, event).await?, json);
        }
        QueueCommand::Clear { event, yes } => return clear(operator, event, yes, json).await,
        QueueCommand::VerifyDraw { .. } => unreachable!("it needs no running system"),
        QueueCommand::Set { event, settings } => (event, settings.to_body()),
        QueueCommand::Pause { event } => (event, json!({ "paused": true })),
        QueueCommand::Resume { event } => (event, json!({ "paused": false })),
        QueueCommand::Message { event, text, .. } => (event, json!({ "message": text })),
    };
    let change = serde_json::from_value(body)?;
    let changed = client.call(ChangeRoom { event_id: event, change }, context).await;
    show_room(&changed.map_err(|error| operator.explain(error))?, json)
}

async fn show_all(operator: &Operator, json: bool) -> Result<()> {
    let rooms = list_rooms(operator).await?;
    if json {
        return print_line(&serde_json::to_string_pretty(&json!({ "rooms": rooms }))?);
    }
    if rooms.is_empty() {
        return print_line("Nobody waits, and no sale is open or opens soon.");
    }
    print_line(&render::table(&rooms)?)
}

/// The rooms with people in them, and those of sales that are open or open soon.
async fn list_rooms(operator: &Operator) -> Result<Vec<Value>> {
    let client = QueueClient::new(operator.upstream());
    let mut rooms = Vec::new();
    for number in 1.. {
        let request = ListRooms { page: Some(i64::from(number)), limit: Some(PAGE_LIMIT) };
        let page = client.call(request, operator.context()).await;
        let page = page.map_err(|error| operator.explain(error))?;
        rooms.extend(page.rooms);
        if number >= page.pagination.total_pages {
            break;
        }
    }
    Ok(rooms)
}

async fn get_room(operator: &Operator, event: Uuid) -> Result<Value> {
    let client = QueueClient::new(operator.upstream());
    let room = client.call(GetRoom { event_id: event }, operator.context()).await;
    room.map_err(|error| operator.explain(error))
}

fn show_room(answer: &Value, json: bool) -> Result<()> {
    let text = if json { serde_json::to_string_pretty(answer)? } else { render::room(answer)? };
    print_line(&text)
}

async fn clear(operator: &Operator, event: Uuid, is_confirmed: bool, json: bool) -> Result<()> {
    if !is_confirmed {
        confirm(&get_room(operator, event).await?)?;
    }
    let client = QueueClient::new(operator.upstream());
    let request = ClearRoom { event_id: event, confirm: Some(event) };
    let cleared = client.call(request, operator.context()).await;
    let cleared = cleared.map_err(|error| operator.explain(error))?;
    if json {
        return print_line(&serde_json::to_string_pretty(&cleared)?);
    }
    print_line(&render::cleared(&cleared)?)
}

/// Asks for confirmation on a terminal; a script has to pass `--yes`.
fn confirm(answer: &Value) -> Result<()> {
    let warning = render::clear_warning(answer)?;
    ensure!(io::stdin().is_terminal(), "{warning}; add --yes to do it");
    print_line(&format!("{warning}. Type yes to do it:"))?;
    let mut line = String::new();
    io::stdin().read_line(&mut line).context("standard input")?;
    ensure!(line.trim() == "yes", "nothing was done");
    Ok(())
}

fn verify_draw(file: &Path, user: Option<Uuid>, json: bool) -> Result<()> {
    let name = file.display();
    let opened = File::open(file).with_context(|| format!("{name}"))?;
    let report = urr_queue::verify_draw(BufReader::new(opened))
        .with_context(|| format!("{name} does not show a fair draw"))?;
    let rank = user.map(|user| report.rank_of(user));
    if json {
        let verified = json!({
            "verified": true,
            "eventId": report.header.event_id,
            "count": report.header.count,
            "beacon": report.header.beacon.to_string(),
            "rank": rank.flatten(),
        });
        return print_line(&serde_json::to_string_pretty(&verified)?);
    }
    print_line(&report.to_string())?;
    match (user, rank.flatten()) {
        (None, _) => Ok(()),
        (Some(user), Some(rank)) => print_line(&format!("User {user} was drawn as number {rank}.")),
        (Some(user), None) => bail!("user {user} did not take part in this draw"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        queue: QueueArgs,
    }

    const EVENT: &str = "0193e4c5-7a2b-7c3d-8e4f-5a6b7c8d9e0f";

    fn body_of(options: &str) -> Result<Value, String> {
        let words = format!("queue set {EVENT} {options}");
        let cli =
            Cli::try_parse_from(words.split_whitespace()).map_err(|error| error.to_string())?;
        match cli.queue.command {
            QueueCommand::Set { settings, .. } => Ok(settings.to_body()),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn only_what_was_named_is_changed_and_default_is_null() {
        assert_eq!(body_of("--threshold 500"), Ok(json!({ "threshold": 500 })));
        assert_eq!(
            body_of("--threshold default --rate 5 --gathering 0 --opening lottery --autopilot off"),
            Ok(json!({ "threshold": null, "admittedPerSecondMax": 5, "gatheringSeconds": 0,
                       "opening": "lottery", "autopilot": false }))
        );
        for wrong in ["", "--threshold many", "--opening first", "--autopilot 1"] {
            assert!(body_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_message_is_given_or_taken_away_but_not_both() {
        let parse = |words: &[&str]| {
            Cli::try_parse_from([&["queue", "message", EVENT], words].concat()).is_ok()
        };
        assert!(parse(&["잠시 후 입장합니다"]) && parse(&["--remove"]));
        assert!(!parse(&[]) && !parse(&["잠시", "--remove"]));
    }
}
