//! What happens when a part fails, as a table: the documentation shows it, and a test lets every row
//! happen.

use std::collections::BTreeSet;
use std::fmt;

/// How a part fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Connections are refused.
    Refused,
    /// Every piece of an answer is late, and in time.
    Slow,
    /// Every piece of an answer is later than anybody waits for.
    Late,
    /// Connections are open, and nothing comes.
    Dead,
    /// Answers have other bytes.
    Wrong,
    /// Nothing more can be stored.
    Full,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Refused => "refused",
            Failure::Slow => "slow",
            Failure::Late => "too slow",
            Failure::Dead => "dead",
            Failure::Wrong => "wrong",
            Failure::Full => "full",
        })
    }
}

/// What a fan does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    Page,
    Login,
    Join,
    Place,
    Hold,
    Pay,
    Mine,
}

impl Act {
    pub const ALL: [Act; 7] =
        [Act::Page, Act::Login, Act::Join, Act::Place, Act::Hold, Act::Pay, Act::Mine];

    /// What is answered while all is well.
    pub fn usual(self) -> &'static str {
        if self == Act::Hold { "201" } else { "200" }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Act::Page => "page",
            Act::Login => "login",
            Act::Join => "join",
            Act::Place => "place",
            Act::Hold => "hold",
            Act::Pay => "pay",
            Act::Mine => "own reservations",
        })
    }
}

/// Some failures of a part that have the same effect.
pub struct FailureRow {
    pub part: &'static str,
    /// The lines before it.
    pub lines: &'static [&'static str],
    pub failures: &'static [Failure],
    /// What is answered otherwise than usual: one of the answers.
    pub answers: &'static [(Act, &'static [&'static str])],
    /// What is kept, and what follows when the part is back.
    pub kept: &'static str,
}

impl FailureRow {
    /// What may be answered to an act.
    pub fn expected(&self, act: Act) -> Vec<&'static str> {
        let other = self.answers.iter().find(|(it, _)| *it == act);
        other.map_or_else(|| vec![act.usual()], |(_, answers)| answers.to_vec())
    }

    /// The row of the documentation.
    fn line(&self) -> String {
        let failures: Vec<String> = self.failures.iter().map(Failure::to_string).collect();
        let mut groups: Vec<(Vec<String>, &[&str])> = Vec::new();
        for (act, answers) in self.answers {
            match groups.iter_mut().find(|(_, known)| known == answers) {
                Some((acts, _)) => acts.push(act.to_string()),
                None => groups.push((vec![act.to_string()], answers)),
            }
        }
        let group = |(acts, answers): &(Vec<String>, &[&str])| {
            let statuses: BTreeSet<&str> = answers.iter().map(|answer| &answer[..3]).collect();
            let statuses: Vec<&str> = statuses.into_iter().collect();
            format!("{}: {}", acts.join(", "), statuses.join(" or "))
        };
        let answers: Vec<String> = groups.iter().map(group).collect();
        let answers = if answers.is_empty() { "all works".to_owned() } else { answers.join("; ") };
        format!("| {} | {} | {answers} | {} |", self.part, failures.join(", "), self.kept)
    }
}

/// The table of the documentation.
pub fn table() -> String {
    let rows = ROWS.iter().map(|row| row.line() + "\n");
    let head = "| part | fails | fans are answered | kept |\n|---|---|---|---|\n".to_owned();
    rows.fold(head, |table, row| table + &row)
}

use Act::{Hold, Join, Login, Mine, Page, Pay, Place};
use Failure::{Dead, Full, Late, Refused, Slow, Wrong};

/// Of spans. It is not there in any row.
pub const COLLECTOR: &str = "collector";
pub const PROVIDER: &str = "provider";
pub const KAFKA: &str = "Kafka";
pub const MAIL_SERVER: &str = "mail server";
/// A process says that its storage is away, or the balancer knows already that no process is ready.
const NO_STORAGE: &[&str] = &["503 STORAGE_UNAVAILABLE", "503 SERVICE_UNAVAILABLE"];
/// Nothing came in time, or a part in between noticed that first.
const SILENT: &[&str] = &[
    "504 UPSTREAM_TIMEOUT",
    "504 DEADLINE_EXCEEDED",
    "503 STORAGE_UNAVAILABLE",
    "503 SERVICE_UNAVAILABLE",
];
const GONE: &[&str] = &["503 SERVICE_UNAVAILABLE", "504 UPSTREAM_TIMEOUT", "504 DEADLINE_EXCEEDED"];
const REDIS: &[&str] = &["redis-1", "redis-2", "redis-3"];

pub const ROWS: &[FailureRow] = &[
    FailureRow {
        part: "PostgreSQL",
        lines: &["postgres"],
        failures: &[Refused, Wrong],
        answers: &[(Login, NO_STORAGE), (Hold, NO_STORAGE), (Pay, NO_STORAGE), (Mine, NO_STORAGE)],
        kept: "known pages, lines",
    },
    FailureRow {
        part: "PostgreSQL",
        lines: &["postgres"],
        failures: &[Late, Dead],
        answers: &[(Login, SILENT), (Hold, SILENT), (Pay, SILENT), (Mine, SILENT)],
        kept: "the same",
    },
    FailureRow {
        part: "PostgreSQL",
        lines: &["postgres"],
        failures: &[Full],
        answers: &[
            (Login, NO_STORAGE),
            (Hold, NO_STORAGE),
            (Pay, NO_STORAGE),
            (Mine, &["200", "503 STORAGE_UNAVAILABLE", "503 SERVICE_UNAVAILABLE"]),
        ],
        kept: "the same; it ends, and has to be started again",
    },
    FailureRow {
        part: "Redis",
        lines: REDIS,
        failures: &[Refused, Late, Dead, Wrong],
        answers: &[
            (Join, &["503 QUEUE_UNAVAILABLE"]),
            (Place, &["503 QUEUE_UNAVAILABLE"]),
            (Hold, &["503 QUEUE_UNAVAILABLE"]),
        ],
        kept: "places",
    },
    FailureRow {
        part: "Redis",
        lines: REDIS,
        failures: &[Full],
        answers: &[(Join, &["503 QUEUE_UNAVAILABLE"]), (Hold, &["503 QUEUE_UNAVAILABLE"])],
        kept: "places",
    },
    FailureRow {
        part: KAFKA,
        lines: &["kafka"],
        failures: &[Refused, Dead, Wrong, Full],
        answers: &[],
        kept: "events wait",
    },
    FailureRow {
        part: MAIL_SERVER,
        lines: &["smtp"],
        failures: &[Refused, Dead, Wrong],
        answers: &[],
        kept: "mails wait",
    },
    FailureRow {
        part: "SQS",
        lines: &["sqs"],
        failures: &[Refused, Dead, Wrong],
        answers: &[],
        kept: "notices are dropped",
    },
    FailureRow {
        part: PROVIDER,
        lines: &[],
        failures: &[Slow],
        answers: &[],
        kept: "paying takes as long",
    },
    FailureRow {
        part: PROVIDER,
        lines: &[],
        failures: &[Dead, Wrong],
        answers: &[(Pay, &["202"])],
        kept: "the seat; it follows",
    },
    FailureRow {
        part: COLLECTOR,
        lines: &[],
        failures: &[Refused],
        answers: &[],
        kept: "spans are dropped",
    },
    FailureRow {
        part: "auth",
        lines: &["auth"],
        failures: &[Refused, Dead, Wrong],
        answers: &[(Login, GONE)],
        kept: "sessions",
    },
    FailureRow {
        part: "catalog",
        lines: &["catalog"],
        failures: &[Refused, Dead, Wrong],
        answers: &[(Page, GONE)],
        kept: "sales go on",
    },
    FailureRow {
        part: "queue",
        lines: &["queue"],
        failures: &[Refused, Dead, Wrong],
        answers: &[(Join, GONE), (Place, GONE), (Hold, &["503 QUEUE_UNAVAILABLE"])],
        kept: "places",
    },
    FailureRow {
        part: "ticket",
        lines: &["ticket"],
        failures: &[Refused, Late, Dead, Wrong],
        answers: &[(Hold, GONE), (Pay, GONE), (Mine, GONE)],
        kept: "charges are delivered later",
    },
    FailureRow {
        part: "payment",
        lines: &["payment"],
        failures: &[Refused, Dead, Wrong],
        answers: &[(Pay, GONE)],
        kept: "holds",
    },
    FailureRow {
        part: "mail, statistics, community",
        lines: &["mail", "stats", "community"],
        failures: &[Refused, Dead, Wrong],
        answers: &[],
        kept: "sales go on",
    },
    FailureRow {
        part: "any server or service",
        lines: &[
            "postgres",
            "redis-1",
            "redis-2",
            "redis-3",
            "kafka",
            "smtp",
            "sqs",
            "auth",
            "catalog",
            "queue",
            "ticket",
            "payment",
            "mail",
            "stats",
            "community",
        ],
        failures: &[Slow],
        answers: &[],
        kept: "all, later",
    },
];
