//! Test cards: each makes the sandbox behave in one way.

use urr_kernel::named_enum;

/// A test card. Its name is part of the payment key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestCard {
    /// `approve`: charged, with the answer at once.
    Approve,
    /// `decline`: the bank says no, for good.
    Decline,
    /// `insufficient`: there is not enough money on it, for good.
    Insufficient,
    /// `slow`: charged, with the answer after a while.
    Slow,
    /// `timeout`: never charged, and there is no answer.
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
    /// `test-channel`: charged by a channel for tests, which moves no money.
    TestChannel,
    /// `unknown-code`: never charged, and refused with an unknown code.
    UnknownCode,
    /// `refund-timeout`: charged; a refund is made, and the answer is lost.
    RefundTimesOut,
    /// `refund-decline`: charged; every refund is declined.
    RefundDeclined,
    /// `refund-whole`: charged; only a full refund is possible.
    PartDeclined,
}

named_enum!(TestCard {
    Approve => "approve",
    Decline => "decline",
    Insufficient => "insufficient",
    Slow => "slow",
    TimeOut => "timeout",
    Stumble => "stumble",
    ChargeThenTimeOut => "charge-timeout",
    ChargeThenFail => "charge-500",
    Duplicate => "duplicate",
    WrongAmount => "wrong-amount",
    TestChannel => "test-channel",
    UnknownCode => "unknown-code",
    RefundTimesOut => "refund-timeout",
    RefundDeclined => "refund-decline",
    PartDeclined => "refund-whole",
});

impl TestCard {
    /// The card in a payment key: `sandbox_<card>_<id>`.
    pub(super) fn of_key(payment_key: &str) -> Option<TestCard> {
        let (card, _) = payment_key.strip_prefix("sandbox_")?.split_once('_')?;
        card.parse().ok()
    }
}
