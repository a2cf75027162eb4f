//! Fan memberships: joining, paying, points, the end of a year.
//!
//! A membership is bought year by year. A payment pays its next term, and the number of the term is
//! the fencing token. Every step of a payment can be repeated and has its effect once.

pub(crate) mod admin_http;
pub(crate) mod http;
pub(crate) mod points;
pub(crate) mod rules;
mod settle;
pub(crate) mod store;
pub(crate) mod tiers;

use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_service::Page;
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, StorageError, Tx};

use crate::memberships::points::PointAction;
use crate::memberships::points::store as point_store;
use crate::memberships::points::store::{PointAward, PointEntry, PointRecipients};
use crate::memberships::rules::{
    Membership, MembershipId, MembershipRejection, MembershipStatus, cut_period, decide_confirm,
    decide_pay, decide_pin, decide_refunded, decide_subscribe, decide_unpin, next_period,
};
use crate::memberships::store::{TermChange, TermSelector};
use crate::memberships::tiers::tier_find;
use crate::reservations::rules::{PaymentClaim, Transition};
use crate::reservations::transition::{LockedDecision, PreparedEvents, decide_under_lock};
use crate::{CompletedPayment, TicketService, Tier};
use urr_contracts::events::membership::{MembershipActivated, MembershipExpired};

/// Why a membership did not take a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    #[error(transparent)]
    Rejected(#[from] MembershipRejection),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Decides about a transition under the lock of the membership.
fn check_transition(
    tx: &mut Tx<'_>,
    id: MembershipId,
    which: TermSelector,
    decide: impl Fn(&Membership) -> Result<Transition, MembershipRejection>,
) -> Result<LockedDecision<Membership, ()>, MembershipError> {
    decide_under_lock(
        tx,
        |tx| Ok(store::membership_find(tx, id, which)?.ok_or(MembershipRejection::NotFound)?),
        |_, membership| Ok(decide(membership)?),
        |tx, _| Ok(store::membership_lock(tx, id)?),
    )
}

fn reload(
    tx: &mut Tx<'_>,
    id: MembershipId,
    which: TermSelector,
) -> Result<Membership, MembershipError> {
    Ok(store::membership_find(tx, id, which)?.expect("memberships are never deleted"))
}

fn check_owner(membership: &Membership, user_id: Uuid) -> Result<(), MembershipRejection> {
    match membership.user_id == user_id {
        true => Ok(()),
        false => Err(MembershipRejection::NotFound),
    }
}

impl TicketService {
    /// Begins the purchase of a year. A term that waits for payment is returned as it is.
    pub async fn subscribe(
        &self,
        user_id: Uuid,
        artist_id: Uuid,
    ) -> Result<Membership, MembershipError> {
        let (new_id, now) = (MembershipId(self.ids.next_id()), self.clock.now());
        let subscribed = self.db.write(move |tx| {
            if store::artist_find(tx, artist_id)?.is_none() {
                return Err(MembershipRejection::ArtistNotFound.into());
            }
            let found = store::membership_find_of_fan(tx, user_id, artist_id)?;
            if decide_subscribe(found.as_ref(), now)? == Transition::AlreadyDone {
                return Ok(found.expect("what is for sale is there"));
            }
            let id = store::membership_make(tx, new_id, user_id, artist_id, now)?;
            let membership = reload(tx, id, TermSelector::Last)?;
            if decide_subscribe(Some(&membership), now)? == Transition::AlreadyDone {
                return Ok(membership);
            }
            store::term_offer(tx, &membership, now)?;
            reload(tx, id, TermSelector::Last)
        });
        subscribed.await
    }

    /// One page of a user's memberships, and how many there are.
    pub async fn list_memberships(
        &self,
        user_id: Uuid,
        page: Page,
    ) -> DbResult<(Vec<Membership>, u64)> {
        let list = move |tx: &mut Tx<'_>| {
            let memberships = store::membership_list(tx, user_id, page)?;
            Ok((memberships, store::membership_count(tx, user_id)?))
        };
        self.db.read(list).await
    }

    /// A fan's membership with one page of its points, and how many lines there are.
    pub async fn my_membership(
        &self,
        user_id: Uuid,
        artist_id: Uuid,
        page: Page,
    ) -> DbResult<Option<(Membership, Vec<PointEntry>, u64)>> {
        let find = move |tx: &mut Tx<'_>| {
            let found = store::membership_find_of_fan(tx, user_id, artist_id)?;
            let Some(membership) = found else { return Ok(None) };
            let lines = point_store::point_entry_list(tx, membership.id.0, page)?;
            let count = point_store::point_entry_count(tx, membership.id.0)?;
            Ok(Some((membership, lines, count)))
        };
        self.db.read(find).await
    }

    /// A user's tier with an artist; none is the general public.
    pub async fn tier_with(&self, user_id: Uuid, artist_id: Uuid) -> DbResult<Option<Tier>> {
        let now = self.clock.now();
        self.db.read(move |tx| tier_find(tx, artist_id, user_id, now)).await
    }

    /// A membership of any user with its last term.
    pub async fn find_membership(&self, id: MembershipId) -> Result<Membership, MembershipError> {
        let check_transition =
            move |tx: &mut Tx<'_>| store::membership_find(tx, id, TermSelector::Last);
        let found: DbResult<Option<Membership>> = self.db.read(check_transition).await;
        Ok(found?.ok_or(MembershipRejection::NotFound)?)
    }

    /// A user's membership if it can be paid now.
    pub async fn validate_membership(
        &self,
        id: MembershipId,
        user_id: Uuid,
    ) -> Result<Membership, MembershipError> {
        let membership = self.find_membership(id).await?;
        check_owner(&membership, user_id)?;
        decide_pay(&membership)?;
        Ok(membership)
    }

    /// Fixes the price for a payment that is about to charge.
    pub async fn pin_membership(
        &self,
        id: MembershipId,
        user_id: Uuid,
        claim: PaymentClaim,
        attempt: i64,
    ) -> Result<Membership, MembershipError> {
        let (number, now) = (claim.fencing_token, self.clock.now());
        let pinned = self.db.write(move |tx| {
            let found = check_transition(tx, id, TermSelector::Number(number), |membership| {
                check_owner(membership, user_id)?;
                decide_pin(membership, &claim, attempt)
            })?;
            match found {
                LockedDecision::AlreadyDone(membership) => Ok(membership),
                LockedDecision::Apply(..) => {
                    let step = TermChange { id, number, payment_id: claim.payment_id, now };
                    store::term_pin(tx, step, claim.amount)?;
                    reload(tx, id, TermSelector::Number(number))
                }
            }
        });
        pinned.await
    }

    /// Releases the term: this attempt of the payment has failed.
    pub async fn unpin_membership(
        &self,
        id: MembershipId,
        payment_id: Uuid,
        attempt: i64,
    ) -> Result<Membership, MembershipError> {
        let now = self.clock.now();
        let unpinned = self.db.write(move |tx| {
            let which = TermSelector::OfPayment(payment_id);
            match check_transition(tx, id, which, |membership| {
                decide_unpin(membership, payment_id, attempt)
            })? {
                LockedDecision::AlreadyDone(_) => reload(tx, id, TermSelector::Last),
                LockedDecision::Apply(membership, ()) => {
                    if let Some(term) = membership.term {
                        let number = term.number;
                        store::term_unpin(tx, TermChange { id, number, payment_id, now })?;
                    }
                    let ended = membership.ended_attempts.with(payment_id, attempt);
                    store::membership_set_ended_attempts(tx, id, &ended)?;
                    reload(tx, id, TermSelector::Last)
                }
            }
        });
        unpinned.await
    }

    /// Starts the paid year, or appends it to the current one.
    pub async fn activate_membership(
        &self,
        id: MembershipId,
        payment: CompletedPayment,
        context: CallContext,
    ) -> Result<Membership, MembershipError> {
        let (prepared, now) = (self.prepare_events(2, context), self.clock.now());
        let activated = self.db.write(move |tx| {
            let (ended, activated) = (&prepared.stamp(0), &prepared.stamp(1));
            activate(tx, &MembershipActivation { id, payment: &payment, ended, activated, now })
        });
        activated.await
    }

    /// Ends a refunded term and takes its points back.
    pub async fn mark_membership_refunded(
        &self,
        id: MembershipId,
        payment_id: Uuid,
        amount: Won,
    ) -> Result<Membership, MembershipError> {
        let now = self.clock.now();
        self.db.write(move |tx| mark_refunded(tx, id, payment_id, Some(amount), now)).await
    }

    /// Awards points for an action in the community. Returns in how many memberships.
    pub async fn award_points(
        &self,
        members: PointRecipients,
        action: PointAction,
        reference_id: Uuid,
    ) -> DbResult<u64> {
        let now = self.clock.now();
        let award = PointAward { action, reference_id, now, settles_at: now };
        self.db.write(move |tx| point_store::points_award_limited(tx, members, award)).await
    }

    /// Takes the points back for a post or comment that was deleted.
    pub async fn revoke_points(&self, action: PointAction, reference_id: Uuid) -> DbResult<()> {
        let now = self.clock.now();
        let back =
            move |tx: &mut Tx<'_>| point_store::points_revoke(tx, action, &[reference_id], now);
        self.db.write(back).await
    }

    /// Counts the points of purchases that cannot be cancelled for free any more. Returns how many
    /// purchases it looked at.
    pub async fn settle_points(&self) -> DbResult<u64> {
        let settle =
            |tx: &mut Tx<'_>, _: &PreparedEvents, now, limit| settle::settle_due(tx, now, limit);
        self.end_in_batches(settle).await
    }

    /// Announces the end of memberships, each once (F-12). Returns how many.
    pub async fn end_memberships(&self) -> DbResult<u64> {
        let end = |tx: &mut Tx<'_>, prepared: &PreparedEvents, now, limit| {
            let batch = store::membership_end_overdue(tx, now, limit)?;
            let count = batch.len();
            let events = batch.into_iter().enumerate();
            let events = events.map(|(at, expired)| (prepared.stamp(at), expired));
            outbox::append_all(tx, &events.collect::<Vec<_>>())?;
            Ok(count)
        };
        self.end_in_batches(end).await
    }
}

/// An activation and the metadata of its events.
pub(crate) struct MembershipActivation<'a> {
    pub id: MembershipId,
    pub payment: &'a CompletedPayment,
    pub ended: &'a EventMetadata,
    pub activated: &'a EventMetadata,
    pub now: Timestamp,
}

/// Sells the pinned term, awards its points, announces it. A repeated activation has no effect
/// a rejected one writes nothing.
pub(crate) fn activate(
    tx: &mut Tx<'_>,
    activating: &MembershipActivation<'_>,
) -> Result<Membership, MembershipError> {
    let MembershipActivation { id, payment, ended, activated, now } = *activating;
    let PaymentClaim { payment_id, fencing_token: number, amount } = payment.claim;
    let which = TermSelector::Number(number);
    let found =
        check_transition(tx, id, which, |membership| decide_confirm(membership, &payment.claim))?;
    let before = match found {
        LockedDecision::AlreadyDone(membership) => return Ok(membership),
        LockedDecision::Apply(membership, ()) => membership,
    };
    // The year had ended without having been announced.
    if before.is_live && before.status(now) == MembershipStatus::Expired {
        outbox::append(tx, ended, &expired_event(&before, ended.time))?;
    }
    let period = next_period(&before, now);
    store::term_pay(tx, TermChange { id, number, payment_id, now }, period, &payment.method)?;
    let is_renewal = before.joined_at.is_some();
    let action = if is_renewal { PointAction::Renew } else { PointAction::Join };
    point_store::points_award_member(
        tx,
        id.0,
        PointAward { action, reference_id: payment_id, now, settles_at: now },
    )?;
    let membership = reload(tx, id, which)?;
    let event = MembershipActivated {
        membership_id: id.0,
        user_id: membership.user_id,
        artist_id: membership.artist_id,
        tier: membership.tier,
        expires_at: membership.expires_at,
        payment_id,
        amount,
        is_renewal,
        timestamp: Some(activated.time),
    };
    outbox::append(tx, activated, &event)?;
    Ok(membership)
}

/// Ends a refunded term; no amount means all of it. If the membership ends with it, the next sweep
/// announces that.
pub(crate) fn mark_refunded(
    tx: &mut Tx<'_>,
    id: MembershipId,
    payment_id: Uuid,
    amount: Option<Won>,
    now: Timestamp,
) -> Result<Membership, MembershipError> {
    let which = TermSelector::OfPayment(payment_id);
    let membership =
        match check_transition(tx, id, which, |membership| decide_refunded(membership, amount))? {
            LockedDecision::AlreadyDone(membership) => return Ok(membership),
            LockedDecision::Apply(membership, ()) => membership,
        };
    let term = membership.term.as_ref().expect("it was decided about");
    let (number, period) = (term.number, term.period.expect("what is paid has a span"));
    store::term_refund(tx, TermChange { id, number, payment_id, now })?;
    let (cut, moved) = cut_period(period, &store::period_list_except(tx, id, number)?, now);
    for (number, period) in moved {
        store::term_update_period(tx, id, number, period, now)?;
    }
    store::membership_set_end(tx, id, membership.expires_at - cut)?;
    for action in [PointAction::Join, PointAction::Renew] {
        point_store::points_revoke(tx, action, &[payment_id], now)?;
    }
    reload(tx, id, which)
}

fn expired_event(membership: &Membership, timestamp: Timestamp) -> MembershipExpired {
    MembershipExpired {
        membership_id: membership.id.0,
        user_id: membership.user_id,
        artist_id: membership.artist_id,
        tier: membership.tier,
        expires_at: membership.expires_at,
        timestamp: Some(timestamp),
    }
}
