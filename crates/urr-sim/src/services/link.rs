//! Calls between services: each message waits for the schedule, and can be lost or repeated.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use urr_contracts::internal::queue::{CheckSlots, CheckSlotsAnswer, FinishSlot};
use urr_contracts::internal::ticket::{
    Acknowledged, CancelReservation, ConfirmPayable, GetPayable, ListPaidReservations,
    MarkPayableRefunded, PinPayable, ReleaseHold, UnpinPayable, ValidatePayable,
};
use urr_kernel::{CallContext, Uuid};
use urr_service::{ApiError, Caller, InternalCall, InternalCalls, Service, ServiceKit, Upstream};
use utoipa_axum::router::OpenApiRouter;

use super::{LiveProcess, Registry, Role};
use crate::network::{MessageFate, Network};
use crate::sabotage::Sabotage;

const COPY_HOPS_MAX: usize = 5;

/// The way from one service to another.
#[derive(Clone)]
pub(super) struct Link {
    pub caller: Caller,
    pub to: Role,
    pub network: Network,
    pub registry: Registry,
    pub sabotage: Option<Sabotage>,
    pub caller_died: CancellationToken,
    /// Slots that were live once, for a sabotage that believes in them for ever.
    pub live_once: Arc<Mutex<BTreeSet<Uuid>>>,
}

impl Link {
    /// What the caller believes to be the other service.
    pub fn service(self, kit: &ServiceKit) -> Upstream {
        let (caller, to) = (self.caller, self.to);
        let calls = InternalCalls::new(self)
            .serve(forward::<GetPayable>)
            .serve(forward::<ValidatePayable>)
            .serve(pin)
            .serve(forward::<UnpinPayable>)
            .serve(forward::<ConfirmPayable>)
            .serve(forward::<MarkPayableRefunded>)
            .serve(forward::<ListPaidReservations>)
            .serve(forward::<CancelReservation>)
            .serve(forward::<ReleaseHold>)
            .serve(check_slots)
            .serve(forward::<FinishSlot>);
        let service = Service::new(to.name(), OpenApiRouter::new(), kit).with_calls(calls);
        Upstream::local(caller, to.name(), &service, kit)
    }

    /// A live process that answers, and the way to it.
    fn target(&self) -> Option<(LiveProcess, Upstream)> {
        let target = self.registry.find(self.to)?;
        let mut upstreams = target.upstreams.iter();
        let (_, upstream) = upstreams.find(|(caller, _)| *caller == self.caller)?.clone();
        Some((target, upstream))
    }

    async fn send(&self, what: &str, is_repeatable: bool) -> Result<MessageFate, ApiError> {
        if self.caller_died.is_cancelled() {
            // A dead process sends nothing.
            std::future::pending::<()>().await;
        }
        let label = format!("{} → {}: {what}", self.caller.as_str(), self.to.name());
        match self.network.send(label, is_repeatable).await {
            MessageFate::Lost => Err(unavailable()),
            fate => Ok(fate),
        }
    }
}

fn unavailable() -> ApiError {
    let retry_after = Duration::from_secs(1);
    ApiError::unavailable("SERVICE_UNAVAILABLE", "The message was lost.", retry_after)
}

async fn forward<C: InternalCall>(
    link: Link,
    request: C,
    context: CallContext,
) -> Result<C::Answer, ApiError> {
    let name = C::SPEC.name;
    let fate = link.send(name, true).await?;
    if fate == MessageFate::Repeated {
        tokio::spawn(repeat(link.clone(), request.clone(), context));
    }
    let Some((target, upstream)) = link.target() else { return Err(unavailable()) };
    let answer = tokio::select! {
        biased;
        () = target.died.cancelled() => return Err(unavailable()),
        answer = upstream.ask(&request, &context) => answer?,
    };
    link.send(&format!("answer to {name}"), false).await?;
    Ok(answer)
}

/// The copy of a message. It has its own way through the network, some copies a long one, so that
/// it arrives at once or when everybody has forgotten it.
async fn repeat<C: InternalCall>(link: Link, request: C, context: CallContext) {
    let label = format!("{} → {}: copy of {}", link.caller.as_str(), link.to.name(), C::SPEC.name);
    for _ in 0..=link.network.count() % COPY_HOPS_MAX {
        if link.network.send(label.clone(), false).await == MessageFate::Lost {
            return;
        }
    }
    if let Some((_, upstream)) = link.target() {
        drop(upstream.ask(&request, &context).await);
    }
}

async fn check_slots(
    link: Link,
    request: CheckSlots,
    context: CallContext,
) -> Result<CheckSlotsAnswer, ApiError> {
    let slots: Vec<Uuid> = request.checks.iter().map(|check| check.slot_id).collect();
    let (live_once, is_sabotaged) =
        (Arc::clone(&link.live_once), link.sabotage == Some(Sabotage::SlotAnswer));
    let mut answer = forward(link, request, context).await?;
    if is_sabotaged {
        let mut known = live_once.lock().unwrap_or_else(PoisonError::into_inner);
        for (slot, is_live) in slots.into_iter().zip(&mut answer.live) {
            if *is_live {
                known.insert(slot);
            }
            *is_live = known.contains(&slot);
        }
    }
    Ok(answer)
}

async fn pin(
    link: Link,
    request: PinPayable,
    context: CallContext,
) -> Result<Acknowledged, ApiError> {
    match link.sabotage == Some(Sabotage::Pin) {
        true => Ok(Acknowledged {}),
        false => forward(link, request, context).await,
    }
}
