//! Delivery of due mails: lease, find recipients, send, record the result.
//!
//! No transaction is open meanwhile. A process owns a mail for the time of its lease; a mail whose
//! lease has ended is sent again.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::{self, StreamExt};
use tokio_util::sync::CancellationToken;
use urr_contracts::clients::ClientError;
use urr_contracts::internal::auth::{AccountLanguage, GetAccountLink};
use urr_contracts::internal::ticket::{
    GetReservationSummary, GetTicketDocument, TicketDocumentAnswer,
};
use urr_kernel::{CallContext, Language, Timestamp, Uuid};
use urr_storage::{BatchKey, DbResult, SetWrite, Tx};

use crate::MailService;
use crate::attempts::{AttemptResult, AttemptStart};
use crate::domain::mail::{Mail, MailId, MailStatus};
use crate::domain::retry::{
    ATTEMPTS_MAX, DeliveryDecision, DeliveryOutcome, decide_delivery, failed,
};
use crate::domain::template::render;
use crate::domain::template_data::{LinkToken, TemplateData};
use crate::recipients::{Recipient, Recipients};
use crate::store::{self, LEASE_TTL, MailLease};
use crate::transport::{MailAttachment, MailTransport, OutgoingMail};

const BATCH_MAX: u32 = 32;
const CONCURRENT_MAX: usize = 8;
/// Waiting for our own services is not an attempt; they are back soon.
const PEER_RETRY_PAUSE: Duration = Duration::from_secs(30);

/// How long a mail waits for tickets to attach.
const TICKETS_WAIT_MAX: Duration = Duration::from_mins(10);

/// A guest has no page with the tickets, so that a mail without them is of little use.
const GUEST_TICKETS_WAIT_MAX: Duration = Duration::from_hours(24);

/// What becomes of several mails at the same moment shares a commit.
const RESULTS: BatchKey = BatchKey::named("mails");

/// The tickets cannot be had at the moment.
struct TicketsLater;

/// How long a mail waits for its recipient to verify the address.
const UNVERIFIED_TTL: Duration = Duration::from_hours(24);
const UNVERIFIED_PAUSE_MIN: Duration = Duration::from_secs(60);

// Reasons for dropping or postponing a mail, as administrators read them.
const NO_ACCOUNT: &str = "NO_ACCOUNT";
const NO_ADDRESS: &str = "NO_ADDRESS";
const TOO_LATE: &str = "TOO_LATE";
const NOT_VERIFIED: &str = "ADDRESS_NOT_VERIFIED";
/// The link was used, or another state of the account made it void.
const LINK_VOID: &str = "LINK_VOID";
/// Every attempt began, and none came to its end.
const NEVER_FINISHED: &str = "NEVER_FINISHED";
const AUTH_UNAVAILABLE: &str = "AUTH_UNAVAILABLE";
const TICKET_UNAVAILABLE: &str = "TICKET_UNAVAILABLE";
const SERVER_AWAY: &str = "SERVER_AWAY";

impl MailService {
    /// Sends due mails until there are none or `stop` is cancelled. Returns how many were leased.
    pub async fn send_due(&self, stop: &CancellationToken) -> DbResult<usize> {
        let mut leased = 0;
        if !self.parts.transport.is_reachable().await {
            return Ok(leased);
        }
        loop {
            let (lease, mails) = match stop.is_cancelled() || self.parts.transport.is_away() {
                true => return Ok(leased),
                false => self.lease_due().await?,
            };
            if mails.is_empty() {
                self.parts.transport.close_idle();
                return Ok(leased);
            }
            leased += mails.len();
            self.send_batch(lease, mails).await?;
        }
    }

    async fn lease_due(&self) -> DbResult<(MailLease, Vec<Mail>)> {
        let now = self.parts.clock.now();
        let lease = MailLease { id: self.parts.ids.next_id(), until: now + LEASE_TTL };
        let lease_mails = move |tx: &mut Tx<'_>| store::mails_lease(tx, lease, now, BATCH_MAX);
        Ok((lease, self.parts.db.write(lease_mails).await?))
    }

    async fn send_batch(&self, lease: MailLease, mails: Vec<Mail>) -> DbResult<()> {
        let user_ids: BTreeSet<Uuid> = mails.iter().map(|mail| mail.user_id).collect();
        let context = CallContext::root(self.parts.ids.next_id());
        let recipients = match self.find_recipients(user_ids.into_iter().collect(), &context).await
        {
            Ok(recipients) => recipients,
            Err(error) => {
                let waiting = mails.len();
                tracing::warn!(%error, waiting, "mails wait: their recipients are not known");
                return self.postpone_all(lease, &mails, AUTH_UNAVAILABLE).await;
            }
        };
        let each = mails.into_iter().map(|mail| self.send_one(lease, mail, &recipients, &context));
        // The others go on when one fails: a mail that is cut off would be sent again.
        let sent: Vec<_> = stream::iter(each).buffer_unordered(CONCURRENT_MAX).collect().await;
        sent.into_iter().collect()
    }

    async fn send_one(
        &self,
        lease: MailLease,
        mut mail: Mail,
        recipients: &Recipients,
        context: &CallContext,
    ) -> DbResult<()> {
        let now = self.parts.clock.now();
        let guest = match self.find_guest(&mail, recipients, context).await {
            Ok(guest) => guest,
            Err(error) => {
                tracing::warn!(%error, "a mail waits: its guest is not known");
                return self.postpone_all(lease, &[mail], TICKET_UNAVAILABLE).await;
            }
        };
        mail.template_data.is_guest = guest.is_some();
        let recipient = match find_recipient(&mail, guest.as_ref(), recipients, now) {
            Ok(recipient) => recipient,
            Err(decision) => return self.record(lease, &mail, decision).await,
        };
        if mail.attempts >= ATTEMPTS_MAX {
            return self.record(lease, &mail, failed(NEVER_FINISHED.to_owned())).await;
        }
        if !mail.is_complete && !self.complete_data(&mut mail, context).await {
            return self.postpone_all(lease, &[mail], TICKET_UNAVAILABLE).await;
        }
        let completed = (!mail.is_complete).then(|| mail.template_data.clone());
        if let Some(decision) = decide_unverified(&mail, recipient, now) {
            self.store_data(mail.id, completed).await?;
            return self.record(lease, &mail, decision).await;
        }
        if mail.kind.is_link() {
            match self.find_link_token(&mail, context).await {
                Ok(Some(token)) => mail.template_data.link_token = Some(token),
                Ok(None) => return self.record(lease, &mail, dropped(LINK_VOID)).await,
                Err(_) => return self.postpone_all(lease, &[mail], AUTH_UNAVAILABLE).await,
            }
        }
        let attachment = match self.find_tickets(&mail, recipient.language, context).await {
            Ok(attachment) => attachment,
            Err(TicketsLater) => {
                self.store_data(mail.id, completed).await?;
                return self.postpone_all(lease, &[mail], TICKET_UNAVAILABLE).await;
            }
        };
        mail.template_data.has_attached_tickets = Some(attachment.is_some());
        if self.parts.transport.is_away() {
            // Another mail of the batch has found that out.
            let (due_at, error) = (mail.due_at, SERVER_AWAY.to_owned());
            return self.record(lease, &mail, DeliveryDecision::Later { due_at, error }).await;
        }
        let renewed = MailLease { until: self.parts.clock.now() + LEASE_TTL, ..lease };
        let (id, language) = (mail.id, recipient.language);
        let start = AttemptStart { id, lease: renewed, language, data: completed };
        match self.parts.db.write_in_set(RESULTS, start).await? {
            true => self.attempt(lease, mail, recipient, attachment).await,
            false => Ok(()),
        }
    }

    /// Sends a mail whose attempt has begun, and records the result.
    async fn attempt(
        &self,
        lease: MailLease,
        mut mail: Mail,
        recipient: &Recipient,
        attachment: Option<MailAttachment>,
    ) -> DbResult<()> {
        mail.attempts += 1;
        let (id, language) = (mail.id, recipient.language);
        let public_url = &self.parts.settings.public_url;
        let outgoing = OutgoingMail {
            id,
            kind: mail.kind,
            language,
            address: recipient.address.clone(),
            rendered: render(mail.kind, language, &mail.template_data, public_url),
            created_at: mail.created_at,
            attachment,
        };
        let outcome = self.parts.transport.send(&outgoing).await;
        match &outcome {
            DeliveryOutcome::Sent => {}
            DeliveryOutcome::NotReached { code } => {
                tracing::warn!(code, "mails wait: their server cannot be reached");
            }
            DeliveryOutcome::Unclear { code } | DeliveryOutcome::Refused { code } => {
                let attempt = mail.attempts;
                tracing::warn!(mail = %id, attempt, code, "a mail was not accepted");
            }
        }
        let decision = decide_delivery(outcome, mail.attempts, self.parts.clock.now());
        self.record(lease, &mail, decision).await
    }

    /// The guest of complimentary tickets, who has no account. The organiser vouches for the address.
    /// It is asked for at every attempt, and never stored here.
    async fn find_guest(
        &self,
        mail: &Mail,
        recipients: &Recipients,
        context: &CallContext,
    ) -> Result<Option<Recipient>, ClientError> {
        let reservation_id = mail.template_data.reservation_id;
        let Some(id) = reservation_id.filter(|_| !recipients.contains_key(&mail.user_id)) else {
            return Ok(None);
        };
        let summary = self.parts.ticket.find(GetReservationSummary { id }, context).await?;
        let address = summary.and_then(|summary| summary.guest_email);
        // Nobody knows which language the guest reads.
        let guest = |address| Recipient { address, is_verified: true, language: Language::Korean };
        Ok(address.map(guest))
    }

    /// Asks the ticket service for what the event did not say. Returns `false` without an answer.
    async fn complete_data(&self, mail: &mut Mail, context: &CallContext) -> bool {
        let Some(id) = mail.template_data.reservation_id else { return true };
        match self.parts.ticket.find(GetReservationSummary { id }, context).await {
            Ok(Some(summary)) => mail.template_data.complete(summary.reservation),
            // The mail then says less.
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "a mail waits: its reservation is not known");
                return false;
            }
        }
        true
    }

    /// Stores what the ticket service said about a mail that has to wait: it is not asked again, and
    /// the recipient may read the mail in their notifications.
    async fn store_data(&self, id: MailId, completed: Option<TemplateData>) -> DbResult<()> {
        let Some(data) = completed else { return Ok(()) };
        let complete = move |tx: &mut Tx<'_>| store::mail_complete(tx, id, &data);
        self.parts.db.write_batched(RESULTS, complete).await
    }

    /// The tickets of a purchase, asked for at every attempt: they are valid as they are now, for
    /// their present owner, and are never stored. Without an answer the mail waits for a while, and
    /// then goes without them.
    async fn find_tickets(
        &self,
        mail: &Mail,
        language: Language,
        context: &CallContext,
    ) -> Result<Option<MailAttachment>, TicketsLater> {
        let reservation_id = mail.template_data.reservation_id;
        let Some(id) = reservation_id.filter(|_| mail.kind.has_tickets()) else { return Ok(None) };
        if matches!(self.parts.transport, MailTransport::Log) {
            return Ok(None);
        }
        let language = match language {
            Language::Korean => AccountLanguage::Korean,
            Language::English => AccountLanguage::English,
        };
        let asked = GetTicketDocument { id, user_id: mail.user_id, language };
        match self.parts.ticket.call(asked, context).await {
            Ok(TicketDocumentAnswer { file_name, pdf }) => match STANDARD.decode(pdf) {
                Ok(pdf) => Ok(Some(MailAttachment { file_name, pdf })),
                Err(error) => {
                    tracing::warn!(mail = %mail.id, %error, "tickets cannot be read");
                    Ok(None)
                }
            },
            // They were cancelled or sold on meanwhile.
            Err(error) if error.code().is_some() => {
                tracing::info!(mail = %mail.id, %error, "a mail goes without tickets");
                Ok(None)
            }
            Err(error) => {
                tracing::warn!(mail = %mail.id, %error, "tickets could not be attached");
                let waited = self.parts.clock.now().duration_since(mail.created_at);
                let waited = Duration::try_from(waited).unwrap_or_default();
                let wait_max = match mail.template_data.is_guest {
                    true => GUEST_TICKETS_WAIT_MAX,
                    false => TICKETS_WAIT_MAX,
                };
                if waited < wait_max { Err(TicketsLater) } else { Ok(None) }
            }
        }
    }

    /// The secret of the link that a mail carries; none if the link is void.
    async fn find_link_token(
        &self,
        mail: &Mail,
        context: &CallContext,
    ) -> Result<Option<LinkToken>, ClientError> {
        let asked = GetAccountLink { id: mail.subject_id };
        let answer = self.parts.auth.find(asked, context).await;
        let answer = answer
            .inspect_err(|error| tracing::warn!(%error, "a mail waits: its link is not known"))?;
        Ok(answer.map(|link| LinkToken(link.token)))
    }

    async fn record(
        &self,
        lease: MailLease,
        mail: &Mail,
        decision: DeliveryDecision,
    ) -> DbResult<()> {
        let (id, now) = (mail.id, self.parts.clock.now());
        let result = AttemptResult { id, lease_id: lease.id, decision: decision.clone(), now };
        if !self.parts.db.write_in_set(RESULTS, result).await? {
            return Ok(());
        }
        let (metrics, kind, attempts) = (&self.metrics, mail.kind.as_str(), mail.attempts);
        match decision {
            DeliveryDecision::Sent => metrics.count(MailStatus::Sent, kind),
            DeliveryDecision::Ended { status, error } => {
                metrics.count(status, kind);
                if status == MailStatus::Dropped {
                    tracing::info!(mail = %id, kind, reason = error, "a mail was dropped");
                } else {
                    tracing::error!(mail = %id, kind, attempts, error, "a mail could not be sent");
                }
            }
            DeliveryDecision::Later { .. } | DeliveryDecision::Unsent { .. } => {}
        }
        Ok(())
    }

    /// Does not count as an attempt: it is not the fault of the mail.
    async fn postpone_all(
        &self,
        lease: MailLease,
        mails: &[Mail],
        reason: &'static str,
    ) -> DbResult<()> {
        let ids: Vec<MailId> = mails.iter().map(|mail| mail.id).collect();
        let now = self.parts.clock.now();
        let later =
            DeliveryDecision::Later { due_at: now + PEER_RETRY_PAUSE, error: reason.to_owned() };
        let result = |id: &MailId| AttemptResult {
            id: *id,
            lease_id: lease.id,
            decision: later.clone(),
            now,
        };
        let results: Vec<AttemptResult> = ids.iter().map(result).collect();
        let postpone = move |tx: &mut Tx<'_>| {
            AttemptResult::write(tx, &results.iter().collect::<Vec<_>>()).map(drop)
        };
        self.parts.db.write(postpone).await
    }
}

fn dropped(reason: &str) -> DeliveryDecision {
    DeliveryDecision::Ended { status: MailStatus::Dropped, error: reason.to_owned() }
}

/// The recipient, or what becomes of the mail without one.
fn find_recipient<'a>(
    mail: &Mail,
    guest: Option<&'a Recipient>,
    recipients: &'a Recipients,
    now: Timestamp,
) -> Result<&'a Recipient, DeliveryDecision> {
    if mail.useful_until.is_some_and(|end| end <= now) {
        return Err(dropped(TOO_LATE));
    }
    let recipient = guest.or_else(|| recipients.get(&mail.user_id));
    let recipient = recipient.ok_or_else(|| dropped(NO_ACCOUNT))?;
    if recipient.address.trim().is_empty() {
        return Err(dropped(NO_ADDRESS));
    }
    Ok(recipient)
}

/// What becomes of a mail to an address that nobody has verified; none if it is sent.
///
/// Such an address may be a stranger's, so it gets links only. Other mails wait for a day, at growing
/// intervals, and are sent if the address is verified by then.
fn decide_unverified(
    mail: &Mail,
    recipient: &Recipient,
    now: Timestamp,
) -> Option<DeliveryDecision> {
    if recipient.is_verified || mail.kind.is_link() {
        return None;
    }
    let age = Duration::try_from(now.duration_since(mail.created_at)).unwrap_or_default();
    if age >= UNVERIFIED_TTL {
        return Some(dropped(NOT_VERIFIED));
    }
    let due_at = now + age.max(UNVERIFIED_PAUSE_MIN);
    Some(DeliveryDecision::Later { due_at, error: NOT_VERIFIED.to_owned() })
}
