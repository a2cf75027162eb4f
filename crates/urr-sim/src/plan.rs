//! What people want in a run, decided before it begins: a script per fan, mixed at random, and the
//! organiser's changes.

use crate::random::Random;

pub const FANS: usize = 6;

/// What somebody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Fan(usize, FanAction),
    PauseRoom,
    ResumeRoom,
    SetThreshold(u32),
    CancelEvent,
}

/// What a fan does. An action that cannot be done yet is tried again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanAction {
    /// Joins the waiting room, or asks how long it takes.
    Join,
    LeaveRoom,
    /// Reserves these seats; `1 << n` is the seat n.
    ReserveSeats(u8),
    ReserveStanding(u32),
    /// The last request once more, with its key.
    ReserveAgain,
    /// With the slot of another fan.
    ReserveWithForeignSlot(usize),
    ChangeSeats(u8),
    ExtendHold,
    ReleaseHold,
    /// With the token that the hold had before its last change.
    ReleaseWithOldToken,
    /// Somebody else's hold, with its token.
    ReleaseForeign(usize),
    /// As a payment that never pinned the hold of another fan.
    UnpinForeign(usize),
    /// A late copy of the pin of an attempt that is over.
    RepeatPin,
    /// Asks from two devices at the same moment.
    JoinTwice,
    /// With a slot that has ended.
    UseEndedSlot,
    Pay(CardChoice),
    /// The same confirmation twice at the same moment.
    PayTwice,
    CancelAll,
    CancelOneTicket,
    /// Somebody else's reservation.
    CancelForeign(usize),
    Sell,
    /// Wants what another fan sells.
    Buy,
    JoinClub,
    /// Closes the browser in the middle of whatever is under way.
    Disconnect,
}

/// The card that a fan pays with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardChoice {
    Good,
    /// One of those with which something goes wrong.
    Odd(u8),
}

/// The actions of a run, in the order in which they are tried.
pub fn actions(random: &mut Random, has_odd_cards: bool, has_disconnects: bool) -> Vec<Action> {
    let fans = 3 + random.below(FANS - 2);
    let mut scripts: Vec<Vec<Action>> = (0..fans)
        .map(|fan| {
            let script = script(random, has_odd_cards, has_disconnects);
            script.into_iter().map(|action| Action::Fan(fan, action)).collect()
        })
        .collect();
    scripts.push(organiser(random));
    let mut mixed = Vec::new();
    let mut ahead: Vec<_> = scripts.into_iter().map(Vec::into_iter).collect();
    while !ahead.is_empty() {
        let index = random.below(ahead.len());
        match ahead[index].next() {
            Some(action) => mixed.push(action),
            None => drop(ahead.remove(index)),
        }
    }
    mixed
}

fn script(random: &mut Random, has_odd_cards: bool, has_disconnects: bool) -> Vec<FanAction> {
    let mut script = Vec::new();
    let is_member = random.chance(300);
    if is_member {
        script.extend([FanAction::JoinClub, FanAction::Pay(CardChoice::Good)]);
    }
    let rounds = 1 + random.below(2);
    for _ in 0..rounds {
        if random.chance(300) {
            script.push(FanAction::ReserveStanding(1 + u32::from(random.chance(500))));
        } else {
            script.push(if random.chance(150) { FanAction::JoinTwice } else { FanAction::Join });
            if random.chance(100) {
                script.push(FanAction::ReserveWithForeignSlot(random.below(FANS)));
            }
            script.push(FanAction::ReserveSeats(seats(random)));
        }
        if random.chance(150) {
            script.push(FanAction::ReserveAgain);
        }
        if random.chance(200) {
            let change = [FanAction::ChangeSeats(seats(random)), FanAction::ExtendHold];
            script.push(random.pick(&change));
        }
        script.extend(attack(random));
        if random.chance(100) {
            script.push(FanAction::ReleaseHold);
        }
        script.extend(payment(random, has_odd_cards));
        if has_disconnects && random.chance(300) {
            script.push(FanAction::Disconnect);
        }
        script.extend(afterwards(random));
    }
    if random.chance(250) {
        script.extend([FanAction::LeaveRoom, FanAction::UseEndedSlot]);
    }
    script
}

/// What nobody may do to a hold: neither its owner with an old token, nor another fan, nor a payment
/// that is not its own.
fn attack(random: &mut Random) -> Vec<FanAction> {
    let other = random.below(FANS);
    match random.below(12) {
        0 => vec![FanAction::ChangeSeats(seats(random)), FanAction::ReleaseWithOldToken],
        1 => vec![FanAction::ReleaseForeign(other)],
        2 | 3 => vec![FanAction::UnpinForeign(other)],
        _ => Vec::new(),
    }
}

/// One or two seats of six.
fn seats(random: &mut Random) -> u8 {
    (1 << random.below(6)) | (1 << random.below(6))
}

fn payment(random: &mut Random, has_odd_cards: bool) -> Vec<FanAction> {
    let mut payment = Vec::new();
    if has_odd_cards && random.chance(500) {
        let card = u8::try_from(random.below(16)).expect("it is below 16");
        payment.push(FanAction::Pay(CardChoice::Odd(card)));
        if random.chance(400) {
            payment.push(FanAction::RepeatPin);
        }
    }
    match random.below(10) {
        0 => {}
        1 | 2 => payment.push(FanAction::PayTwice),
        _ => payment.push(FanAction::Pay(CardChoice::Good)),
    }
    payment
}

fn afterwards(random: &mut Random) -> Vec<FanAction> {
    match random.below(10) {
        0 | 1 => vec![FanAction::CancelAll],
        2 => vec![FanAction::CancelAll, FanAction::CancelAll],
        3 => vec![FanAction::CancelOneTicket],
        4 => vec![FanAction::CancelOneTicket, FanAction::CancelAll],
        5 => vec![FanAction::CancelForeign(random.below(FANS)), FanAction::ReserveAgain],
        6 | 7 => vec![FanAction::Sell],
        8 => vec![FanAction::Buy, FanAction::Pay(CardChoice::Good)],
        _ => Vec::new(),
    }
}

fn organiser(random: &mut Random) -> Vec<Action> {
    let mut script = Vec::new();
    if random.chance(150) {
        script.extend([Action::PauseRoom, Action::ResumeRoom]);
    }
    if random.chance(150) {
        script.push(Action::SetThreshold(1 + u32::from(random.chance(500))));
    }
    if random.chance(80) {
        script.push(Action::CancelEvent);
    }
    script
}
