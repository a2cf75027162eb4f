//! Sending: take due mails, ask who they are for, give them to the sender, note what became of it.
//!
//! No transaction is open meanwhile. A mail is in one's hands as long as its lease, and whoever
//! finds it with a lease that has ended sends it again.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use tokio_util::sync::CancellationToken;
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_storage::{StorageError, Tx};

use crate::Mails;
use crate::accounts::Reader;
use crate::domain::mail::{Mail, MailId};
use crate::domain::retry::{ATTEMPTS_MAX, Outcome, Verdict, decide};
use crate::domain::template::render;
use crate::sender::Letter;
use crate::store::{self, LEASE, Lease};

/// So many are in memory at a time.
const BATCH: u32 = 32;
const AT_ONCE: usize = 8;
/// Our own services are back soon. Waiting for them is no attempt.
const SERVICE_PAUSE: Duration = Duration::from_secs(30);

/// Why a mail is dropped, as administrators read it.
const NO_ACCOUNT: &str = "NO_ACCOUNT";
const NO_ADDRESS: &str = "NO_ADDRESS";
const TOO_LATE: &str = "TOO_LATE";
/// It was begun as often as it may be, and nobody came to the end.
const NEVER_FINISHED: &str = "NEVER_FINISHED";

type Readers = HashMap<Uuid, Reader>;

impl Mails {
    /// Sends every mail that is due, until it is told to stop. Returns how many were taken in hand.
    pub async fn send_due(&self, stop: &CancellationToken) -> Result<usize, StorageError> {
        let mut taken = 0;
        loop {
            let (lease, mails) = match stop.is_cancelled() {
                true => return Ok(taken),
                false => self.lease().await?,
            };
            if mails.is_empty() {
                self.0.sender.rest();
                return Ok(taken);
            }
            taken += mails.len();
            self.send_batch(lease, mails).await?;
        }
    }

    async fn lease(&self) -> Result<(Lease, Vec<Mail>), StorageError> {
        let now = self.0.clock.now();
        let lease = Lease { id: self.0.ids.next_id(), until: now + LEASE };
        let take = move |tx: &mut Tx<'_>| store::mails_lease(tx, lease, now, BATCH);
        Ok((lease, self.0.db.write(take).await?))
    }

    async fn send_batch(&self, lease: Lease, mails: Vec<Mail>) -> Result<(), StorageError> {
        let user_ids: BTreeSet<Uuid> = mails.iter().map(|mail| mail.user_id).collect();
        let user_ids: Vec<Uuid> = user_ids.into_iter().collect();
        let context = CallContext::root(self.0.ids.next_id());
        let readers = match self.0.accounts.find(&user_ids, &context).await {
            Ok(readers) => readers,
            Err(error) => {
                let waiting = mails.len();
                tracing::warn!(%error, waiting, "nobody says where mails go; they wait");
                return self.postpone_all(lease, &mails, "ACCOUNTS_SILENT").await;
            }
        };
        let each = mails.into_iter().map(|mail| self.send_one(lease, mail, &readers, &context));
        // All of them, whatever becomes of one: what is broken off has to be sent again.
        let sent: Vec<_> = stream::iter(each).buffer_unordered(AT_ONCE).collect().await;
        sent.into_iter().collect()
    }

    async fn send_one(
        &self,
        lease: Lease,
        mut mail: Mail,
        readers: &Readers,
        context: &CallContext,
    ) -> Result<(), StorageError> {
        let now = self.0.clock.now();
        let reader = match find_reader(&mail, readers, now) {
            Ok(reader) => reader,
            Err(reason) => return self.drop_mail(lease, &mail, reason).await,
        };
        if mail.attempts >= ATTEMPTS_MAX {
            let failed = Verdict::Failed { error: NEVER_FINISHED.to_owned() };
            return self.note(lease, &mail, failed).await;
        }
        if !mail.is_complete && !self.complete(&mut mail, context).await? {
            return self.postpone_all(lease, &[mail], "OFFICE_SILENT").await;
        }
        let (id, language) = (mail.id, reader.language);
        let renewed = Lease { until: self.0.clock.now() + LEASE, ..lease };
        let begin = move |tx: &mut Tx<'_>| store::mail_attempt(tx, id, renewed, language);
        if !self.0.db.write(begin).await? {
            return Ok(());
        }
        mail.attempts += 1;
        let letter = Letter {
            mail_id: id,
            kind: mail.kind,
            language,
            address: reader.address.clone(),
            rendered: render(mail.kind, language, &mail.facts, &self.0.settings.public_url),
            written_at: mail.created_at,
        };
        let outcome = self.0.sender.send(&letter).await;
        if let Outcome::Unclear { code } | Outcome::Refused { code } = &outcome {
            tracing::warn!(mail = %id, attempt = mail.attempts, code, "a mail was not taken");
        }
        let verdict = decide(outcome, mail.attempts, self.0.clock.now());
        self.note(lease, &mail, verdict).await
    }

    /// Asks for what the event did not say. `false`: nobody answers.
    async fn complete(&self, mail: &mut Mail, context: &CallContext) -> Result<bool, StorageError> {
        let Some(reservation_id) = mail.facts.reservation_id else { return Ok(true) };
        match self.0.office.summary(reservation_id, context).await {
            Ok(Some(summary)) => mail.facts.complete(summary),
            // The mail says less then.
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "nobody says what a mail is about; it waits");
                return Ok(false);
            }
        }
        let (id, facts) = (mail.id, mail.facts.clone());
        self.0.db.write(move |tx| store::mail_complete(tx, id, &facts)).await?;
        Ok(true)
    }

    async fn note(&self, lease: Lease, mail: &Mail, verdict: Verdict) -> Result<(), StorageError> {
        let (id, now, noted) = (mail.id, self.0.clock.now(), verdict.clone());
        let note = move |tx: &mut Tx<'_>| store::mail_note(tx, id, lease.id, &noted, now);
        if !self.0.db.write(note).await? {
            return Ok(());
        }
        match verdict {
            Verdict::Sent => self.0.figures.count_sent(mail.kind),
            Verdict::Failed { error } => {
                self.0.figures.count_failed(mail.kind);
                let (kind, attempts) = (mail.kind.name(), mail.attempts);
                tracing::error!(mail = %id, kind, attempts, error, "a mail could not be sent");
            }
            Verdict::Later { .. } => {}
        }
        Ok(())
    }

    async fn drop_mail(
        &self,
        lease: Lease,
        mail: &Mail,
        reason: &'static str,
    ) -> Result<(), StorageError> {
        let (id, now) = (mail.id, self.0.clock.now());
        let drop = move |tx: &mut Tx<'_>| store::mail_drop(tx, id, lease.id, reason, now);
        if self.0.db.write(drop).await? {
            self.0.figures.count_dropped(mail.kind);
            tracing::info!(mail = %id, kind = mail.kind.name(), reason, "a mail was dropped");
        }
        Ok(())
    }

    /// Without an attempt: it is not the mail's fault.
    async fn postpone_all(
        &self,
        lease: Lease,
        mails: &[Mail],
        reason: &'static str,
    ) -> Result<(), StorageError> {
        let ids: Vec<MailId> = mails.iter().map(|mail| mail.id).collect();
        let now = self.0.clock.now();
        let later = Verdict::Later { due_at: now + SERVICE_PAUSE, error: reason.to_owned() };
        let postpone = move |tx: &mut Tx<'_>| {
            ids.iter().try_for_each(|id| store::mail_note(tx, *id, lease.id, &later, now).map(drop))
        };
        self.0.db.write(postpone).await
    }
}

/// Who is to have it, or why nobody is.
fn find_reader<'a>(
    mail: &Mail,
    readers: &'a Readers,
    now: Timestamp,
) -> Result<&'a Reader, &'static str> {
    if mail.useful_until.is_some_and(|end| end <= now) {
        return Err(TOO_LATE);
    }
    let reader = readers.get(&mail.user_id).ok_or(NO_ACCOUNT)?;
    match reader.address.trim().is_empty() {
        true => Err(NO_ADDRESS),
        false => Ok(reader),
    }
}
