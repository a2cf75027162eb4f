//! Fan memberships: joining, paying, points, the end of a year.
//!
//! A membership is bought year by year; what a payment pays for is its next term, and the number of
//! the term is the fencing token. Every step of a payment can be repeated and has its effect once.

pub(crate) mod http;
pub(crate) mod points;
pub(crate) mod rules;
pub(crate) mod store;
pub(crate) mod tiers;

use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_service::Page;
use urr_storage::outbox::{self, Stamp};
use urr_storage::{StorageError, Tx};

use crate::memberships::points::PointAction;
use crate::memberships::points::store as point_store;
use crate::memberships::points::store::{PointAward, PointEntry, PointRecipients};
use crate::memberships::rules::{
    Membership, MembershipId, MembershipRejection, MembershipStatus, cut_period, decide_confirm,
    decide_pay, decide_pin, decide_refunded, decide_subscribe, decide_unpin, next_period,
};
use crate::memberships::store::{EndedMembership, TermChange, TermSelector};
use crate::memberships::tiers::{Fan, tier_list};
use crate::reservations::rules::{PaymentClaim, Transition};
use crate::{CompletedPayment, TicketService, Tier};
use urr_contracts::events::membership::{MembershipActivated, MembershipExpired};

/// Few enough that nobody waits for it.
const ENDED_AT_ONCE: u32 = 250;

/// Why a membership did not take a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    #[error(transparent)]
    Rejected(#[from] MembershipRejection),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// What a step found under the lock.
enum MembershipCheck {
    AlreadyDone(Membership),
    Apply(Membership),
}

/// Decides about a step under the lock of the membership. What is refused or was done before takes
/// no lock and writes nothing.
fn check_transition(
    tx: &mut Tx<'_>,
    id: MembershipId,
    which: TermSelector,
    decide: impl Fn(&Membership) -> Result<Transition, MembershipRejection>,
) -> Result<MembershipCheck, MembershipError> {
    let membership = store::membership_find(tx, id, which)?.ok_or(MembershipRejection::NotFound)?;
    if decide(&membership)? == Transition::AlreadyDone {
        return Ok(MembershipCheck::AlreadyDone(membership));
    }
    store::membership_lock(tx, id)?;
    let membership = reload(tx, id, which)?;
    Ok(match decide(&membership)? {
        Transition::AlreadyDone => MembershipCheck::AlreadyDone(membership),
        Transition::Apply => MembershipCheck::Apply(membership),
    })
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
    /// Begins to buy a year. One that waits to be paid is returned as it is.
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
    ) -> Result<(Vec<Membership>, u64), StorageError> {
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
    ) -> Result<Option<(Membership, Vec<PointEntry>, u64)>, StorageError> {
        let check_transition = move |tx: &mut Tx<'_>| {
            let found = store::membership_find_of_fan(tx, user_id, artist_id)?;
            let Some(membership) = found else { return Ok(None) };
            let lines = point_store::point_entry_list(tx, membership.id.0, page)?;
            let count = point_store::point_entry_count(tx, membership.id.0)?;
            Ok(Some((membership, lines, count)))
        };
        self.db.read(check_transition).await
    }

    /// A fan's standing with an artist; none is the general public.
    pub async fn tier_with(
        &self,
        user_id: Uuid,
        artist_id: Uuid,
    ) -> Result<Option<Tier>, StorageError> {
        let (fan, now) = (Fan { user_id, artist_id }, self.clock.now());
        let check_transition =
            move |tx: &mut Tx<'_>| Ok(tier_list(tx, &[fan], now)?.get(&fan).copied());
        self.db.read(check_transition).await
    }

    /// A membership with its last term, whoever's it is.
    pub async fn find_membership(&self, id: MembershipId) -> Result<Membership, MembershipError> {
        let check_transition =
            move |tx: &mut Tx<'_>| store::membership_find(tx, id, TermSelector::Last);
        let found: Result<Option<Membership>, StorageError> = self.db.read(check_transition).await;
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
    ) -> Result<Membership, MembershipError> {
        let (number, now) = (claim.fencing_token, self.clock.now());
        let pinned = self.db.write(move |tx| {
            let found = check_transition(tx, id, TermSelector::Number(number), |membership| {
                check_owner(membership, user_id)?;
                decide_pin(membership, &claim)
            })?;
            match found {
                MembershipCheck::AlreadyDone(membership) => Ok(membership),
                MembershipCheck::Apply(_) => {
                    let step = TermChange { id, number, payment_id: claim.payment_id, now };
                    store::term_pin(tx, step, claim.amount)?;
                    reload(tx, id, TermSelector::Number(number))
                }
            }
        });
        pinned.await
    }

    /// The payment has come to nothing.
    pub async fn unpin_membership(
        &self,
        id: MembershipId,
        payment_id: Uuid,
    ) -> Result<Membership, MembershipError> {
        let now = self.clock.now();
        let unpinned = self.db.write(move |tx| {
            let which = TermSelector::OfPayment(payment_id);
            match check_transition(tx, id, which, |membership| {
                decide_unpin(membership, payment_id)
            })? {
                MembershipCheck::AlreadyDone(_) => reload(tx, id, TermSelector::Last),
                MembershipCheck::Apply(membership) => {
                    let number = membership.term.expect("a pin is that of a term").number;
                    store::term_unpin(tx, TermChange { id, number, payment_id, now })?;
                    reload(tx, id, TermSelector::Last)
                }
            }
        });
        unpinned.await
    }

    /// The payment was payment: the year begins, or comes behind the present one.
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

    /// The money of a term is back: it counts no more, and its points are taken back.
    pub async fn mark_membership_refunded(
        &self,
        id: MembershipId,
        payment_id: Uuid,
        amount: Won,
    ) -> Result<Membership, MembershipError> {
        let now = self.clock.now();
        self.db.write(move |tx| mark_refunded(tx, id, payment_id, Some(amount), now)).await
    }

    /// Rewards what was done in the community. Returns in how many memberships.
    pub async fn award_points(
        &self,
        members: PointRecipients,
        action: PointAction,
        reference_id: Uuid,
    ) -> Result<u64, StorageError> {
        let award = PointAward { action, reference_id, now: self.clock.now() };
        self.db.write(move |tx| point_store::points_award_limited(tx, members, award)).await
    }

    /// What was rewarded is not there any more.
    pub async fn revoke_points(
        &self,
        action: PointAction,
        reference_id: Uuid,
    ) -> Result<(), StorageError> {
        let now = self.clock.now();
        let back =
            move |tx: &mut Tx<'_>| point_store::points_revoke(tx, action, &[reference_id], now);
        self.db.write(back).await
    }

    /// Announces memberships that are over, each once (F-12). Returns how many.
    pub async fn end_memberships(&self) -> Result<u64, StorageError> {
        let mut ended = 0;
        loop {
            let context = CallContext::root(self.ids.next_id());
            let (prepared, now) =
                (self.prepare_events(ENDED_AT_ONCE as usize, context), self.clock.now());
            let batch = self.db.write(move |tx| {
                let batch = store::membership_end_overdue(tx, now, ENDED_AT_ONCE)?;
                let facts = batch.iter().enumerate();
                let facts =
                    facts.map(|(at, over)| (prepared.stamp(at), MembershipExpired::from(over)));
                outbox::append_all(tx, &facts.collect::<Vec<_>>())?;
                Ok::<_, StorageError>(u64::try_from(batch.len()).expect("a batch is small"))
            });
            let batch: u64 = batch.await?;
            ended += batch;
            if batch < u64::from(ENDED_AT_ONCE) {
                return Ok(ended);
            }
        }
    }
}

/// An activation with what its events are payment of.
pub(crate) struct MembershipActivation<'a> {
    pub id: MembershipId,
    pub payment: &'a CompletedPayment,
    pub ended: &'a Stamp,
    pub activated: &'a Stamp,
    pub now: Timestamp,
}

/// Sells the pinned term, gives its points, announces it. If that was done before, nothing happens
/// if it is refused, nothing was written.
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
        MembershipCheck::AlreadyDone(membership) => return Ok(membership),
        MembershipCheck::Apply(membership) => membership,
    };
    // A year that was over before its end was told.
    if before.is_live && before.status(now) == MembershipStatus::Expired {
        outbox::append(tx, ended, &MembershipExpired::from(&before))?;
    }
    let period = next_period(&before, now);
    store::term_pay(tx, TermChange { id, number, payment_id, now }, period, &payment.method)?;
    let is_renewal = before.joined_at.is_some();
    let action = if is_renewal { PointAction::Renew } else { PointAction::Join };
    point_store::points_award_member(
        tx,
        id.0,
        PointAward { action, reference_id: payment_id, now },
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
    };
    outbox::append(tx, activated, &event)?;
    Ok(membership)
}

/// Ends a term whose money is back; none: all of it. The end of the membership, if it is one, is
/// announced by the next sweep.
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
            MembershipCheck::AlreadyDone(membership) => return Ok(membership),
            MembershipCheck::Apply(membership) => membership,
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

impl From<&Membership> for MembershipExpired {
    fn from(membership: &Membership) -> MembershipExpired {
        MembershipExpired {
            membership_id: membership.id.0,
            user_id: membership.user_id,
            artist_id: membership.artist_id,
            tier: membership.tier,
            expires_at: membership.expires_at,
        }
    }
}

impl From<&EndedMembership> for MembershipExpired {
    fn from(over: &EndedMembership) -> MembershipExpired {
        MembershipExpired {
            membership_id: over.id,
            user_id: over.user_id,
            artist_id: over.artist_id,
            tier: over.tier,
            expires_at: over.expires_at,
        }
    }
}
