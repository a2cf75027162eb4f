//! Mails in SQL.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_service::Page;
use urr_storage::{Row, StorageError, ToValue, Tx, Value, params};

use crate::domain::facts::Facts;
use crate::domain::mail::{Kind, Language, Mail, MailId, Status};
use crate::domain::retry::Verdict;

const COLUMNS: &str = "id, kind, subject_id, user_id, facts, is_complete, language, status, \
    last_error, attempts, due_at, useful_until, created_at, ended_at";

/// Of all kinds, in their order.
const PRIORITIES: [u16; 2] = [0, 1];
const ERROR_CHARS_MAX: usize = 200;

/// A mail that an event calls for.
#[derive(Clone, Debug)]
pub struct NewMail {
    pub id: MailId,
    pub kind: Kind,
    pub subject_id: Uuid,
    pub user_id: Uuid,
    pub facts: Facts,
    pub useful_until: Option<Timestamp>,
    pub now: Timestamp,
}

/// Which mails are wanted. What is not named does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailFilter {
    pub user_id: Option<Uuid>,
    pub status: Option<Status>,
    pub kind: Option<Kind>,
}

/// The right to send mails, for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub id: Uuid,
    pub until: Timestamp,
}

fn read(row: &Row<'_>) -> Result<Mail, StorageError> {
    let (kind, status): (String, String) = (row.get("kind")?, row.get("status")?);
    let language: Option<String> = row.get("language")?;
    let facts: serde_json::Value = row.get("facts")?;
    let known = "only known names are stored";
    Ok(Mail {
        id: MailId(row.get("id")?),
        kind: Kind::parse(&kind).expect(known),
        subject_id: row.get("subject_id")?,
        user_id: row.get("user_id")?,
        facts: serde_json::from_value(facts).expect("facts are stored as they are read"),
        is_complete: row.get("is_complete")?,
        language: language.map(|code| Language::parse(&code).expect(known)),
        status: Status::parse(&status).expect(known),
        last_error: row.get("last_error")?,
        attempts: row.get("attempts")?,
        due_at: row.get("due_at")?,
        useful_until: row.get("useful_until")?,
        created_at: row.get("created_at")?,
        ended_at: row.get("ended_at")?,
    })
}

fn to_json(facts: &Facts) -> serde_json::Value {
    serde_json::to_value(facts).expect("facts can be written as JSON")
}

/// `false`: there is a mail about it already.
pub fn mail_insert(tx: &mut Tx<'_>, mail: &NewMail) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "insert into mails (id, kind, subject_id, user_id, facts, is_complete, status, attempts, \
         due_at, useful_until, created_at, priority) \
         values ($1, $2, $3, $4, $5, $6, 'waiting', 0, $7, $8, $7, $9) \
         on conflict (kind, subject_id) do nothing",
        params![
            mail.id.0,
            mail.kind.name(),
            mail.subject_id,
            mail.user_id,
            to_json(&mail.facts),
            mail.facts.reservation_id.is_none(),
            mail.now,
            mail.useful_until,
            mail.kind.priority(),
        ],
    )?;
    Ok(rows == 1)
}

pub fn mail_find(tx: &mut Tx<'_>, id: MailId) -> Result<Option<Mail>, StorageError> {
    tx.query_opt(&format!("select {COLUMNS} from mails where id = $1"), params![id.0], read)
}

/// Takes due mails that nobody has in hand: the urgent ones first, then the longest due.
pub fn mails_lease(
    tx: &mut Tx<'_>,
    lease: Lease,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Mail>, StorageError> {
    let mut due: Vec<Uuid> = Vec::new();
    for priority in PRIORITIES {
        // One after the other, so that each is a range of the index.
        let room = i64::from(limit) - i64::try_from(due.len()).expect("a batch is small");
        due.extend(tx.query(
            "select id from mails where status = 'waiting' and priority = $3 and due_at <= $1 \
             and (leased_until is null or leased_until <= $1) order by due_at, id limit $2",
            params![now, room, priority],
            |row| row.get::<Uuid>("id"),
        )?);
    }
    let mut leased = Vec::with_capacity(due.len());
    for id in due {
        // Another process may have been faster.
        let rows = tx.execute(
            "update mails set lease_id = $2, leased_until = $3 where id = $1 \
             and status = 'waiting' and due_at <= $4 \
             and (leased_until is null or leased_until <= $4)",
            params![id, lease.id, lease.until, now],
        )?;
        if rows == 1 {
            leased.extend(mail_find(tx, MailId(id))?);
        }
    }
    Ok(leased)
}

/// Notes what the ticket office has told, so that it is not asked again.
pub fn mail_complete(tx: &mut Tx<'_>, id: MailId, facts: &Facts) -> Result<(), StorageError> {
    let sql = "update mails set facts = $2, is_complete = true where id = $1";
    tx.execute(sql, params![id.0, to_json(facts)]).map(drop)
}

/// An attempt begins: from now on the mail may have been sent. The lease is that of the attempt,
/// however long the mail has waited for its neighbours. `false`: somebody else has it.
pub fn mail_attempt(
    tx: &mut Tx<'_>,
    id: MailId,
    lease: Lease,
    language: Language,
) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "update mails set attempts = attempts + 1, language = $3, leased_until = $4 \
         where id = $1 and lease_id = $2 and status = 'waiting'",
        params![id.0, lease.id, language.code(), lease.until],
    )?;
    Ok(rows == 1)
}

/// Notes how an attempt ended. That it was sent is true whoever has it in hand now; everything else
/// is for whoever has. `false`: it was not noted.
pub fn mail_note(
    tx: &mut Tx<'_>,
    id: MailId,
    lease_id: Uuid,
    verdict: &Verdict,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let rows = match verdict {
        Verdict::Sent => tx.execute(
            "update mails set status = 'sent', ended_at = $2, last_error = null, \
             lease_id = null, leased_until = null where id = $1 and status <> 'sent'",
            params![id.0, now],
        )?,
        Verdict::Failed { error } => end(tx, id, lease_id, Status::Failed, error, now)?,
        Verdict::Later { due_at, error } => tx.execute(
            "update mails set due_at = $3, last_error = $4, lease_id = null, leased_until = null \
             where id = $1 and lease_id = $2 and status = 'waiting'",
            params![id.0, lease_id, due_at, shorten(error)],
        )?,
    };
    Ok(rows == 1)
}

/// There is nobody to tell, or it is too late. `false`: somebody else has it.
pub fn mail_drop(
    tx: &mut Tx<'_>,
    id: MailId,
    lease_id: Uuid,
    reason: &str,
    now: Timestamp,
) -> Result<bool, StorageError> {
    Ok(end(tx, id, lease_id, Status::Dropped, reason, now)? == 1)
}

fn end(
    tx: &mut Tx<'_>,
    id: MailId,
    lease_id: Uuid,
    status: Status,
    error: &str,
    now: Timestamp,
) -> Result<u64, StorageError> {
    tx.execute(
        "update mails set status = $3, last_error = $4, ended_at = $5, lease_id = null, \
         leased_until = null where id = $1 and lease_id = $2 and status = 'waiting'",
        params![id.0, lease_id, status.name(), shorten(error), now],
    )
}

fn shorten(error: &str) -> String {
    error.chars().take(ERROR_CHARS_MAX).collect()
}

/// A mail that has failed is tried again, from the beginning. `false`: it has not failed.
pub fn mail_retry(tx: &mut Tx<'_>, id: MailId, now: Timestamp) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "update mails set status = 'waiting', ended_at = null, attempts = 0, due_at = $2 \
         where id = $1 and status = 'failed'",
        params![id.0, now],
    )?;
    Ok(rows == 1)
}

/// Forgets mails that have ended long ago, a bounded number at a time.
pub fn mails_purge(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> Result<u64, StorageError> {
    tx.execute(
        "delete from mails where id in (select id from mails where status <> 'waiting' \
         and created_at < $1 order by created_at, id limit $2)",
        params![before, limit],
    )
}

pub fn mails_waiting(tx: &mut Tx<'_>) -> Result<i64, StorageError> {
    let sql = "select count(*) as total from mails where status = 'waiting'";
    tx.query_one(sql, &[], |row| row.get("total"))
}

impl MailFilter {
    /// Only what is named is asked for, so that the database sees which index to take.
    fn conditions(&self) -> (String, Vec<Value<'_>>) {
        let mut values = Vec::new();
        let mut conditions = vec!["true".to_owned()];
        let mut ask = |column: &str, value: Value<'static>| {
            values.push(value);
            conditions.push(format!("{column} = ${}", values.len()));
        };
        if let Some(user_id) = self.user_id {
            ask("user_id", Value::Uuid(user_id));
        }
        if let Some(status) = self.status {
            ask("status", Value::Text(status.name()));
        }
        if let Some(kind) = self.kind {
            ask("kind", Value::Text(kind.name()));
        }
        (conditions.join(" and "), values)
    }
}

/// One page, the newest first, and how many there are.
pub fn mail_list(
    tx: &mut Tx<'_>,
    filter: MailFilter,
    page: Page,
) -> Result<(Vec<Mail>, u64), StorageError> {
    let (conditions, mut values) = filter.conditions();
    let sql = format!("select count(*) as total from mails where {conditions}");
    let total = tx.query_one(&sql, &values, |row| row.get("total"))?;
    let (limit, offset) = (page.limit(), page.offset());
    values.extend([limit.to_value(), offset.to_value()]);
    let (at_limit, at_offset) = (values.len() - 1, values.len());
    let sql = format!(
        "select {COLUMNS} from mails where {conditions} \
         order by created_at desc, id desc limit ${at_limit} offset ${at_offset}"
    );
    Ok((tx.query(&sql, &values, read)?, total))
}

/// How long a mail is in one's hands: longer than everything that is done with it can take.
pub const LEASE: Duration = Duration::from_secs(180);
