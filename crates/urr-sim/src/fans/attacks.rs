//! What nobody may do: releases with an old token, of somebody else's hold, of a pin of another
//! payment, and entries with a slot that has ended.

use urr_kernel::{Uuid, Won};
use urr_storage::params;
use urr_ticket::{PaymentClaim, ReservationId, SlotClaim};

use super::{ActionResult, Done, Fans, SimulatedFan};
use crate::databases::{DatabaseName, SEATED_EVENT};
use crate::sabotage::Sabotage;
use crate::services::{Instance, Role};

const SAME_TOKEN: &str = "2: releasing needs the same hold and token";

impl Fans {
    /// A window that still shows the seats of before.
    pub(super) async fn release_with_old_token(&self, fan: usize) -> ActionResult {
        let SimulatedFan { user_id, reservation, old_fence, .. } = self.fan(fan);
        let (Some(id), Some(old)) = (reservation, old_fence) else { return Done };
        let token = if self.is_sabotaged(Sabotage::ReleaseToken) { None } else { Some(old) };
        if self.release(user_id, id, token).await {
            self.violated(SAME_TOKEN, format!("{id} was released with the old token {old}"));
        }
        Done
    }

    pub(super) async fn release_foreign(&self, fan: usize, other: usize) -> ActionResult {
        let SimulatedFan { user_id, .. } = self.fan(fan);
        let Some(other) = self.find_fan(other).filter(|it| it.user_id != user_id) else {
            return Done;
        };
        // Who has bought a ticket from another owns the reservation.
        let Some(id) = other.reservation.filter(|id| self.owner(*id) != Some(user_id)) else {
            return Done;
        };
        let by = match self.is_sabotaged(Sabotage::HoldOwner) {
            true => other.user_id,
            false => user_id,
        };
        if self.release(by, id, Some(other.fence)).await {
            self.violated(SAME_TOKEN, format!("{id} was released by {user_id}"));
        }
        Done
    }

    async fn release(&self, by: Uuid, id: ReservationId, token: Option<i64>) -> bool {
        let context = self.context();
        let release = self.ask(Role::Ticket, "attack a hold", async move |instance: Instance| {
            instance.ticket().0.release_hold(id, by, token, context).await.is_ok()
        });
        release.await == Some(true)
    }

    /// A payment that has pinned nothing gives up. The oracle sees whether a pin is gone by it.
    pub(super) async fn unpin_foreign(&self, fan: usize, other: usize) -> ActionResult {
        let other = self.find_fan(other).filter(|_| other != fan);
        let Some(id) = other.and_then(|it| it.reservation) else { return Done };
        let stranger = self.ids.next_id();
        let unpin = self.ask(Role::Ticket, "attack a pin", async move |instance: Instance| {
            instance.ticket().0.unpin_hold(id, stranger, 1).await.is_ok()
        });
        unpin.await;
        Done
    }

    /// A copy of a pin was on its way for so long that its attempt is over. If it pins, nothing ever
    /// unpins: the oracle sees a hold that does not end.
    pub(super) async fn repeat_pin(&self, fan: usize) -> ActionResult {
        let SimulatedFan { user_id, reservation, .. } = self.fan(fan);
        let Some(id) = reservation else { return Done };
        let sql = "select id, fencing_token, amount, pin_attempt - 1 as attempt from payments \
                   where payable_id = $1 and pin_attempt > 1 and fencing_token is not null limit 1";
        let over = self.look(DatabaseName::Payment, |tx| {
            tx.query_opt(sql, params![id.0], |row| {
                let claim = PaymentClaim {
                    payment_id: row.get("id")?,
                    fencing_token: row.get("fencing_token")?,
                    amount: Won::new(row.get("amount")?),
                };
                Ok((claim, row.get::<i64>("attempt")?))
            })
        });
        let Some((claim, attempt)) = over else { return Done };
        let pin = self.ask(Role::Ticket, "copy of a pin", async move |instance: Instance| {
            instance.ticket().0.pin_hold(id, user_id, claim, attempt, None).await.is_ok()
        });
        pin.await;
        Done
    }

    /// Two devices of one fan ask at the same moment, while others are admitted and leave.
    pub(super) async fn join_twice(&self, fan: usize) -> ActionResult {
        let again = self.clone();
        tokio::spawn(async move { again.join(fan).await });
        self.join(fan).await
    }

    pub(super) async fn use_ended_slot(&self, fan: usize) -> ActionResult {
        let SimulatedFan { user_id, ended_slot, .. } = self.fan(fan);
        let Some(slot) = ended_slot else { return Done };
        let claim = SlotClaim { event_id: SEATED_EVENT, user_id, slot_id: Some(slot) };
        let context = self.context();
        let passed = self.ask(Role::Ticket, "use an old slot", async move |instance: Instance| {
            instance.ticket().1.check(claim, context).await.is_ok()
        });
        if passed.await == Some(true) {
            let rule = "13: whoever has left is not inside any more";
            self.violated(rule, format!("slot {slot} of {user_id}"));
        }
        Done
    }

    fn is_sabotaged(&self, sabotage: Sabotage) -> bool {
        self.surroundings.sabotage == Some(sabotage)
    }
}
