//! The test cards: what the sandbox does with a payment.

/// A test card. Its name is part of the payment key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Card {
    /// `approve`: charged and told so.
    Approve,
    /// `decline`: the bank says no, for good.
    Decline,
    /// `insufficient`: there is not enough money on it, for good.
    Insufficient,
    /// `slow`: charged, and told after a while.
    Slow,
    /// `timeout`: never charged, and nobody ever answers.
    TimeOut,
    /// `stumble`: the first attempt is lost before it is charged, the next one is charged.
    Stumble,
    /// `charge-timeout`: charged, and the answer is lost.
    ChargeThenTimeOut,
    /// `charge-500`: charged, and the answer is a failure of the provider.
    ChargeThenFail,
    /// `duplicate`: charged, and the answer says that it had been charged before.
    Duplicate,
    /// `wrong-amount`: one won less is charged than was agreed to.
    WrongAmount,
    /// `unknown-code`: never charged, and refused with a code that nobody has heard of.
    UnknownCode,
    /// `refund-timeout`: charged; what is given back is given back, and the answer is lost.
    RefundTimesOut,
    /// `refund-decline`: charged; nothing is ever given back.
    RefundDeclined,
    /// `refund-whole`: charged; it is given back as a whole or not at all.
    PartDeclined,
}

impl Card {
    pub const ALL: [Card; 14] = [
        Card::Approve,
        Card::Decline,
        Card::Insufficient,
        Card::Slow,
        Card::TimeOut,
        Card::Stumble,
        Card::ChargeThenTimeOut,
        Card::ChargeThenFail,
        Card::Duplicate,
        Card::WrongAmount,
        Card::UnknownCode,
        Card::RefundTimesOut,
        Card::RefundDeclined,
        Card::PartDeclined,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Card::Approve => "approve",
            Card::Decline => "decline",
            Card::Insufficient => "insufficient",
            Card::Slow => "slow",
            Card::TimeOut => "timeout",
            Card::Stumble => "stumble",
            Card::ChargeThenTimeOut => "charge-timeout",
            Card::ChargeThenFail => "charge-500",
            Card::Duplicate => "duplicate",
            Card::WrongAmount => "wrong-amount",
            Card::UnknownCode => "unknown-code",
            Card::RefundTimesOut => "refund-timeout",
            Card::RefundDeclined => "refund-decline",
            Card::PartDeclined => "refund-whole",
        }
    }

    pub fn parse(name: &str) -> Option<Card> {
        Card::ALL.into_iter().find(|card| card.name() == name)
    }

    /// The card within a payment key: `sandbox_<card>_<id>`.
    pub(super) fn of_key(payment_key: &str) -> Option<Card> {
        let (card, _) = payment_key.strip_prefix("sandbox_")?.split_once('_')?;
        Card::parse(card)
    }
}
