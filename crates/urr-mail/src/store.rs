//! The table of mails.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_service::Page;
use urr_storage::{DbResult, Row, ToValue, Tx, Value, from_row, params};

use crate::attempts::{AttemptResult, AttemptStart};
use crate::domain::mail::{Mail, MailId, MailKind, MailStatus};
use crate::domain::retry::DeliveryDecision;
use crate::domain::template_data::TemplateData;

const COLUMNS: &str = "id, kind, subject_id, user_id, template_data, is_complete, language, status, \
    last_error, attempts, due_at, useful_until, created_at, ended_at";

/// The priorities of all kinds, in their order.
const PRIORITIES: [u16; 2] = [0, 1];
const ERROR_CHARS_MAX: usize = 200;

/// A mail that an event calls for.
#[derive(Clone, Debug)]
pub struct NewMail {
    pub kind: MailKind,
    pub subject_id: Uuid,
    pub user_id: Uuid,
    pub template_data: TemplateData,
    pub useful_until: Option<Timestamp>,
}

/// Which mails are listed. `None` in a field means all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailFilter {
    pub user_id: Option<Uuid>,
    pub status: Option<MailStatus>,
    pub kind: Option<MailKind>,
    /// Leaves out links, which are of no use but in their mail.
    pub without_links: bool,
}

/// The right of one process to send some mails until a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailLease {
    pub id: Uuid,
    pub until: Timestamp,
}

fn mail_read(row: &Row<'_>) -> DbResult<Mail> {
    Ok(from_row!(row => Mail {
        id, kind, subject_id, user_id, is_complete, language, status, last_error, attempts, due_at,
        useful_until, created_at, ended_at;
        template_data: row.get_json("template_data")?,
    }))
}

fn to_json(data: &TemplateData) -> serde_json::Value {
    serde_json::to_value(data).expect("template data is a plain struct")
}

/// Changes nothing if there is a mail about it already.
pub fn mail_insert(tx: &mut Tx<'_>, id: MailId, mail: &NewMail, now: Timestamp) -> DbResult<()> {
    tx.execute_later(
        "insert into mails (id, kind, subject_id, user_id, template_data, is_complete, status, attempts, \
         due_at, useful_until, created_at, priority, reservation_id) \
         values ($1, $2, $3, $4, $5, $6, 'waiting', 0, $7, $8, $7, $9, $10) \
         on conflict (kind, subject_id) do nothing",
        params![
            id,
            mail.kind,
            mail.subject_id,
            mail.user_id,
            to_json(&mail.template_data),
            mail.template_data.reservation_id.is_none(),
            now,
            mail.useful_until,
            mail.kind.priority(),
            mail.template_data.reservation_id,
        ],
    )
}

pub fn mail_find(tx: &mut Tx<'_>, id: MailId) -> DbResult<Option<Mail>> {
    tx.query_opt(&format!("select {COLUMNS} from mails where id = $1"), params![id], mail_read)
}

/// The mails about a reservation, the oldest first; a hundred at most.
pub fn mail_list_of_reservation(tx: &mut Tx<'_>, reservation_id: Uuid) -> DbResult<Vec<Mail>> {
    let sql = format!(
        "select {COLUMNS} from mails where reservation_id = $1 order by created_at, id limit 100"
    );
    tx.query(&sql, params![reservation_id], mail_read)
}

pub fn mail_find_by_subject(
    tx: &mut Tx<'_>,
    kind: MailKind,
    subject_id: Uuid,
) -> DbResult<Option<Mail>> {
    let sql = format!("select {COLUMNS} from mails where kind = $1 and subject_id = $2");
    tx.query_opt(&sql, params![kind, subject_id], mail_read)
}

/// Leases due mails: the urgent ones first, then the longest due.
pub fn mails_lease(
    tx: &mut Tx<'_>,
    lease: MailLease,
    now: Timestamp,
    limit: u32,
) -> DbResult<Vec<Mail>> {
    let mut leased: Vec<Mail> = Vec::new();
    for priority in PRIORITIES {
        // One statement per priority, so that each is a range of the index. Another process may be
        // at the same mails.
        let room = i64::from(limit) - i64::try_from(leased.len()).expect("a batch is small");
        let due = "select id from mails where status = 'waiting' and priority = $3 \
             and due_at <= $1 and (leased_until is null or leased_until <= $1) \
             order by due_at, id limit $2 for update skip locked";
        // In a list of its own, PostgreSQL might look for them once per row, and find others.
        let chosen = match tx.is_postgres() {
            true => format!("= any(array({due}))"),
            false => format!("in ({due})"),
        };
        let sql = format!(
            "update mails set lease_id = $4, leased_until = $5 where id {chosen} \
             returning {COLUMNS}"
        );
        let mut mails =
            tx.query(&sql, params![now, room, priority, lease.id, lease.until], mail_read)?;
        mails.sort_by_key(|mail| (mail.due_at, mail.id.0));
        leased.extend(mails);
    }
    Ok(leased)
}

/// Stores what the ticket service said, so that it is not asked again.
pub fn mail_complete(tx: &mut Tx<'_>, id: MailId, data: &TemplateData) -> DbResult<()> {
    let sql = "update mails set template_data = $2, is_complete = true where id = $1";
    tx.execute(sql, params![id, to_json(data)]).map(drop)
}

/// Begins an attempt; see [`AttemptStart`].
pub fn mail_begin_attempt(tx: &mut Tx<'_>, start: &AttemptStart) -> DbResult<bool> {
    let rows = tx.execute(
        "update mails set attempts = attempts + 1, language = $3, leased_until = $4, \
         is_complete = is_complete or $5 is not null, template_data = coalesce($5, template_data) \
         where id = $1 and lease_id = $2 and status = 'waiting'",
        params![
            start.id,
            start.lease.id,
            start.language,
            start.lease.until,
            start.data.as_ref().map(to_json),
        ],
    )?;
    Ok(rows == 1)
}

/// Stores how an attempt ended; see [`AttemptResult`].
pub fn mail_record_attempt(tx: &mut Tx<'_>, result: &AttemptResult) -> DbResult<bool> {
    let AttemptResult { id, lease_id, decision, now } = result;
    let rows = match decision {
        DeliveryDecision::Sent => tx.execute(
            "update mails set status = 'sent', ended_at = $2, last_error = null, \
             lease_id = null, leased_until = null where id = $1 and status <> 'sent'",
            params![*id, *now],
        )?,
        DeliveryDecision::Ended { status, error } => tx.execute(
            "update mails set status = $3, last_error = $4, ended_at = $5, lease_id = null, \
             leased_until = null where id = $1 and lease_id = $2 and status = 'waiting'",
            params![*id, *lease_id, *status, shorten(error), *now],
        )?,
        DeliveryDecision::Later { due_at, error } => tx.execute(
            "update mails set due_at = $3, last_error = $4, lease_id = null, leased_until = null \
             where id = $1 and lease_id = $2 and status = 'waiting'",
            params![*id, *lease_id, *due_at, shorten(error)],
        )?,
        DeliveryDecision::Unsent { error } => tx.execute(
            "update mails set attempts = attempts - 1, last_error = $3, lease_id = null, \
             leased_until = null where id = $1 and lease_id = $2 and status = 'waiting'",
            params![*id, *lease_id, shorten(error)],
        )?,
    };
    Ok(rows == 1)
}

pub(crate) fn shorten(error: &str) -> String {
    error.chars().take(ERROR_CHARS_MAX).collect()
}

/// Makes a failed mail due again. Returns `false` if it has not failed.
pub fn mail_retry(tx: &mut Tx<'_>, id: MailId, now: Timestamp) -> DbResult<bool> {
    let rows = tx.execute(
        "update mails set status = 'waiting', ended_at = null, attempts = 0, due_at = $2 \
         where id = $1 and status = 'failed'",
        params![id, now],
    )?;
    Ok(rows == 1)
}

/// Deletes mails that ended before a time, a bounded number at once.
pub fn mails_delete(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> DbResult<u64> {
    tx.execute(
        "delete from mails where id in (select id from mails where status <> 'waiting' \
         and created_at < $1 order by created_at, id limit $2)",
        params![before, limit],
    )
}

pub fn mails_count_waiting(tx: &mut Tx<'_>) -> DbResult<i64> {
    let sql = "select count(*) as total from mails where status = 'waiting'";
    tx.query_one(sql, &[], |row| row.get("total"))
}

impl MailFilter {
    /// A text per combination, so that each can use its index.
    fn conditions(&self) -> (String, Vec<Value<'_>>) {
        let mut values = Vec::new();
        let mut conditions = vec!["true".to_owned()];
        let mut add = |column: &str, value: Value<'static>| {
            values.push(value);
            conditions.push(format!("{column} = ${}", values.len()));
        };
        if let Some(user_id) = self.user_id {
            add("user_id", Value::Uuid(user_id));
        }
        if let Some(status) = self.status {
            add("status", Value::Text(status.as_str()));
        }
        if let Some(kind) = self.kind {
            add("kind", Value::Text(kind.as_str()));
        }
        if self.without_links {
            let is_link = |kind: &MailKind| kind.is_link();
            let links = MailKind::ALL.into_iter().filter(is_link);
            let links: Vec<String> = links.map(|kind| format!("'{kind}'")).collect();
            conditions.push(format!("kind not in ({})", links.join(", ")));
        }
        (conditions.join(" and "), values)
    }
}

/// One page, the newest first, and how many there are.
pub fn mail_list(tx: &mut Tx<'_>, filter: MailFilter, page: Page) -> DbResult<(Vec<Mail>, u64)> {
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
    Ok((tx.query(&sql, &values, mail_read)?, total))
}

/// Longer than one attempt can take.
pub const LEASE_TTL: Duration = Duration::from_secs(180);
