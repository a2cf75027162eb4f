//! The test cards: what the sandbox does with a payment.

/// A test card. Its name is part of the payment key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestCard {
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

impl TestCard {
    pub const ALL: [TestCard; 14] = [
        TestCard::Approve,
        TestCard::Decline,
        TestCard::Insufficient,
        TestCard::Slow,
        TestCard::TimeOut,
        TestCard::Stumble,
        TestCard::ChargeThenTimeOut,
        TestCard::ChargeThenFail,
        TestCard::Duplicate,
        TestCard::WrongAmount,
        TestCard::UnknownCode,
        TestCard::RefundTimesOut,
        TestCard::RefundDeclined,
        TestCard::PartDeclined,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            TestCard::Approve => "approve",
            TestCard::Decline => "decline",
            TestCard::Insufficient => "insufficient",
            TestCard::Slow => "slow",
            TestCard::TimeOut => "timeout",
            TestCard::Stumble => "stumble",
            TestCard::ChargeThenTimeOut => "charge-timeout",
            TestCard::ChargeThenFail => "charge-500",
            TestCard::Duplicate => "duplicate",
            TestCard::WrongAmount => "wrong-amount",
            TestCard::UnknownCode => "unknown-code",
            TestCard::RefundTimesOut => "refund-timeout",
            TestCard::RefundDeclined => "refund-decline",
            TestCard::PartDeclined => "refund-whole",
        }
    }

    pub fn parse(name: &str) -> Option<TestCard> {
        TestCard::ALL.into_iter().find(|card| card.name() == name)
    }

    /// The card within a payment key: `sandbox_<card>_<id>`.
    pub(super) fn of_key(payment_key: &str) -> Option<TestCard> {
        let (card, _) = payment_key.strip_prefix("sandbox_")?.split_once('_')?;
        TestCard::parse(card)
    }
}
