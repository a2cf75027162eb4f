//! The beginning and the result of attempts to send mails, written for several mails at once.

use std::collections::HashSet;

use serde_json::{Value as Json, json};
use urr_kernel::{Language, Timestamp, Uuid};
use urr_storage::{DbResult, Row, SetWrite, StorageError, Tx, params};

use crate::domain::mail::{MailId, MailStatus};
use crate::domain::retry::DeliveryDecision;
use crate::domain::template_data::TemplateData;
use crate::store::{self, MailLease, shorten};

/// An attempt begins: from now on the mail may have been sent. The answer is `false` if another
/// process has the mail.
#[derive(Clone, Debug)]
pub struct AttemptStart {
    pub id: MailId,
    /// It starts anew, because the mail has waited for the others of its batch.
    pub lease: MailLease,
    pub language: Language,
    /// What the ticket service said, if it was asked: it is not asked again.
    pub data: Option<TemplateData>,
}

impl SetWrite for AttemptStart {
    type Answer = bool;
    type Error = StorageError;

    fn subject(&self) -> Option<String> {
        Some(self.id.to_string())
    }

    fn write(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<DbResult<bool>>> {
        if !tx.is_postgres() {
            let begin = |one: &&Self| store::mail_begin_attempt(tx, one).map(Ok);
            return set.iter().map(begin).collect();
        }
        let row = |one: &&Self| {
            json!({
                "id": one.id.0, "lease": one.lease.id, "language": one.language.as_str(),
                "until": one.lease.until, "data": one.data,
            })
        };
        let rows: Json = set.iter().map(row).collect();
        let begun = tx.query(
            "update mails set attempts = mails.attempts + 1, language = one.language, \
             leased_until = one.until, is_complete = mails.is_complete or one.data is not null, \
             template_data = coalesce(one.data, mails.template_data) \
             from (select sent.*, found.at from jsonb_to_recordset($1) as sent (id uuid, \
             lease uuid, language text, until timestamptz, data jsonb) \
             cross join lateral (select ctid as at from mails where mails.id = sent.id \
             and mails.lease_id = sent.lease and mails.status = 'waiting' limit 1) as found) as one \
             where mails.ctid = one.at returning mails.id as id",
            params![rows],
            read_id,
        )?;
        Ok(found_in(&begun.into_iter().collect(), set.iter().map(|one| one.id.0)))
    }
}

/// How an attempt ended. A mail that was sent is marked so even if its lease is over; other results
/// count only for the owner of the lease. The answer is `false` if nothing was stored.
#[derive(Clone, Debug)]
pub struct AttemptResult {
    pub id: MailId,
    pub lease_id: Uuid,
    pub decision: DeliveryDecision,
    pub now: Timestamp,
}

impl SetWrite for AttemptResult {
    type Answer = bool;
    type Error = StorageError;

    fn subject(&self) -> Option<String> {
        Some(self.id.to_string())
    }

    fn write(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<DbResult<bool>>> {
        let mut stored = HashSet::new();
        if tx.is_postgres() {
            let rows: Json = set.iter().map(|one| one.to_json()).collect();
            stored.extend(tx.query(
                "update mails set status = one.status, last_error = one.error, \
                 ended_at = one.ended_at, due_at = coalesce(one.due_at, mails.due_at), \
                 attempts = mails.attempts - one.uncounted, lease_id = null, \
                 leased_until = null from (select sent.*, found.at \
                 from jsonb_to_recordset($1) as sent (id uuid, lease uuid, status text, \
                 error text, ended_at timestamptz, due_at timestamptz, uncounted integer) \
                 cross join lateral (select ctid as at from mails where mails.id = sent.id \
                 and mails.lease_id = sent.lease and mails.status = 'waiting' limit 1) \
                 as found) as one where mails.ctid = one.at returning mails.id as id",
                params![rows],
                read_id,
            )?);
        }
        for one in set {
            // On PostgreSQL only for a mail that was sent after its lease was over.
            let is_sent = one.decision == DeliveryDecision::Sent;
            let is_left = !stored.contains(&one.id.0) && (is_sent || !tx.is_postgres());
            if is_left && store::mail_record_attempt(tx, one)? {
                stored.insert(one.id.0);
            }
        }
        Ok(found_in(&stored, set.iter().map(|one| one.id.0)))
    }
}

impl AttemptResult {
    fn to_json(&self) -> Json {
        let (status, error, ended_at, due_at) = match &self.decision {
            DeliveryDecision::Sent => (MailStatus::Sent, None, Some(self.now), None),
            DeliveryDecision::Ended { status, error } => {
                (*status, Some(shorten(error)), Some(self.now), None)
            }
            DeliveryDecision::Later { due_at, error } => {
                (MailStatus::Waiting, Some(shorten(error)), None, Some(*due_at))
            }
            DeliveryDecision::Unsent { error } => {
                (MailStatus::Waiting, Some(shorten(error)), None, None)
            }
        };
        let is_uncounted = matches!(self.decision, DeliveryDecision::Unsent { .. });
        json!({
            "id": self.id.0, "lease": self.lease_id, "status": status.as_str(), "error": error,
            "ended_at": ended_at, "due_at": due_at, "uncounted": i32::from(is_uncounted),
        })
    }
}

fn read_id(row: &Row<'_>) -> DbResult<Uuid> {
    row.get("id")
}

/// Whether each id is among those that were found.
fn found_in(found: &HashSet<Uuid>, ids: impl Iterator<Item = Uuid>) -> Vec<DbResult<bool>> {
    ids.map(|id| Ok(found.contains(&id))).collect()
}
