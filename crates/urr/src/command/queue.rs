//! `urr queue`: the waiting rooms of a running system, for whoever runs it.

mod desk;
mod text;

use std::fs::File;
use std::io::{self, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use urr_kernel::Uuid;

use self::desk::Desk;
use super::{block_on, say};
use crate::config::Config;

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
    /// The rooms with people in them, open or open soon; or all about one of them
    Status {
        /// The event's id
        event: Option<Uuid>,
    },
    /// Change how a room is run; it counts at once. `default` is what the installation says
    Set {
        /// The event's id
        event: Uuid,
        #[command(flatten)]
        wishes: WishArgs,
    },
    /// Let nobody in until it is resumed; who is in stays in, who waits keeps their place
    Pause {
        /// The event's id
        event: Uuid,
    },
    /// Let people in again
    Resume {
        /// The event's id
        event: Uuid,
    },
    /// End every place and every slot, for good: everybody has to line up again
    Clear {
        /// The event's id
        event: Uuid,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Show those who wait a line of text, or take it away
    Message {
        /// The event's id
        event: Uuid,
        /// At most 500 characters
        #[arg(required_unless_present = "remove")]
        text: Option<String>,
        /// Take it away
        #[arg(long, conflicts_with = "text")]
        remove: bool,
    },
    /// Check a lottery from its file, as anybody can have it; nothing needs to run
    VerifyDraw {
        /// From /api/queue/draw/EVENT/file
        file: PathBuf,
        /// Also say where this user was drawn
        #[arg(long, value_name = "ID")]
        user: Option<Uuid>,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct WishArgs {
    /// So many may be in at once
    #[arg(long, value_name = "N")]
    threshold: Option<NumberOrDefault>,
    /// So many are let in within a second at most
    #[arg(long, value_name = "N")]
    rate: Option<NumberOrDefault>,
    /// So long before the sale people may come
    #[arg(long, value_name = "SECONDS")]
    gathering: Option<NumberOrDefault>,
    /// How those are let in who came before the sale: by arrival or by lot
    #[arg(long)]
    opening: Option<OpeningName>,
    /// Whether the rate follows the health of booking
    #[arg(long)]
    autopilot: Option<Switch>,
}

/// A number, or what the installation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NumberOrDefault(Option<i64>);

impl FromStr for NumberOrDefault {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<NumberOrDefault, &'static str> {
        match text {
            "default" => Ok(NumberOrDefault(None)),
            number => match number.parse() {
                Ok(number) => Ok(NumberOrDefault(Some(number))),
                Err(_) => Err("expected a number or `default`"),
            },
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OpeningName {
    Fifo,
    Lottery,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Switch {
    On,
    Off,
}

impl WishArgs {
    /// As the waiting rooms take it: what is not named stays, null is the default.
    fn to_body(&self) -> Value {
        let mut body = serde_json::Map::new();
        let numbers = [
            ("threshold", self.threshold),
            ("admittedPerSecondMax", self.rate),
            ("gatheringSeconds", self.gathering),
        ];
        for (field, wish) in numbers {
            if let Some(NumberOrDefault(number)) = wish {
                body.insert(field.to_owned(), json!(number));
            }
        }
        if let Some(opening) = self.opening {
            let name = match opening {
                OpeningName::Fifo => "fifo",
                OpeningName::Lottery => "lottery",
            };
            body.insert("opening".to_owned(), json!(name));
        }
        if let Some(switch) = self.autopilot {
            body.insert("autopilot".to_owned(), json!(matches!(switch, Switch::On)));
        }
        Value::Object(body)
    }
}

pub fn run(config: &Config, args: QueueArgs) -> Result<()> {
    let QueueArgs { url, json, command } = args;
    if let QueueCommand::VerifyDraw { file, user } = command {
        return verify_draw(&file, user, json);
    }
    let desk = Desk::find(config, url)?;
    block_on(run_at(&desk, command, json))
}

async fn run_at(desk: &Desk, command: QueueCommand, json: bool) -> Result<()> {
    let change = match command {
        QueueCommand::Status { event: None } => return show_all(desk, json).await,
        QueueCommand::Status { event: Some(event) } => {
            return show_room(&desk.room(event).await?, json);
        }
        QueueCommand::Clear { event, yes } => return clear(desk, event, yes, json).await,
        QueueCommand::VerifyDraw { .. } => unreachable!("it needs no desk"),
        QueueCommand::Set { event, wishes } => (event, wishes.to_body()),
        QueueCommand::Pause { event } => (event, json!({ "paused": true })),
        QueueCommand::Resume { event } => (event, json!({ "paused": false })),
        QueueCommand::Message { event, text, .. } => (event, json!({ "message": text })),
    };
    let (event, body) = change;
    show_room(&desk.change(event, &body).await?, json)
}

async fn show_all(desk: &Desk, json: bool) -> Result<()> {
    let rooms = desk.rooms().await?;
    if json {
        return say(&serde_json::to_string_pretty(&json!({ "rooms": rooms }))?);
    }
    if rooms.is_empty() {
        return say("Nobody waits, and no sale is open or opens soon.");
    }
    say(&text::table(&rooms)?)
}

fn show_room(answer: &Value, json: bool) -> Result<()> {
    let text = if json { serde_json::to_string_pretty(answer)? } else { text::room(answer)? };
    say(&text)
}

async fn clear(desk: &Desk, event: Uuid, is_confirmed: bool, json: bool) -> Result<()> {
    if !is_confirmed {
        confirm(&desk.room(event).await?)?;
    }
    let cleared = desk.clear(event).await?;
    if json {
        return say(&serde_json::to_string_pretty(&cleared)?);
    }
    say(&text::cleared(&cleared)?)
}

/// Asks whoever types; a script has to say `--yes`.
fn confirm(answer: &Value) -> Result<()> {
    let harm = text::harm(answer)?;
    ensure!(io::stdin().is_terminal(), "{harm}; add --yes to do it");
    say(&format!("{harm}. Type yes to do it:"))?;
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
            "rank": rank.flatten(),
        });
        return say(&serde_json::to_string_pretty(&verified)?);
    }
    say(&report.to_string())?;
    match (user, rank.flatten()) {
        (None, _) => Ok(()),
        (Some(user), Some(rank)) => say(&format!("User {user} was drawn as number {rank}.")),
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
            QueueCommand::Set { wishes, .. } => Ok(wishes.to_body()),
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
