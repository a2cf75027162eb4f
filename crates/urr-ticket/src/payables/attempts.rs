//! The attempts to pay that are over. A message can be late: a pin that arrives after the unpin of
//! its own attempt would keep a payable for ever, because nobody would release it.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use urr_kernel::Uuid;
use urr_storage::{DbResult, Row};

/// So many are remembered per payable. A message is not late by more attempts than that.
const REMEMBERED_MAX: usize = 100;

/// The attempts of payments that have released a payable, the last one at the end. Each payment
/// counts its attempts upwards, so its last one stands for those before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedAttempts(Vec<(Uuid, i64)>);

impl EndedAttempts {
    /// Whether this attempt of a payment is over.
    pub fn contains(&self, payment_id: Uuid, attempt: i64) -> bool {
        self.0.iter().any(|(id, ended)| *id == payment_id && *ended >= attempt)
    }

    /// The same, and this attempt is over.
    pub fn with(&self, payment_id: Uuid, attempt: i64) -> EndedAttempts {
        let others = self.0.iter().filter(|(id, _)| *id != payment_id);
        let mut all: Vec<(Uuid, i64)> = others.copied().collect();
        all.push((payment_id, attempt));
        let forgotten = all.len().saturating_sub(REMEMBERED_MAX);
        EndedAttempts(all.split_off(forgotten))
    }

    /// From a column that is null as long as no attempt has ended.
    pub(crate) fn read(row: &Row<'_>) -> DbResult<EndedAttempts> {
        Ok(row.get_json::<Option<EndedAttempts>>("ended_attempts")?.unwrap_or_default())
    }

    pub(crate) fn to_json(&self) -> Json {
        serde_json::to_value(self).expect("ids and numbers are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Uuid = Uuid::from_u128(1);
    const THEIRS: Uuid = Uuid::from_u128(2);

    #[test]
    fn an_attempt_ends_those_before_it_and_no_others() {
        let ended = EndedAttempts::default().with(OURS, 1).with(THEIRS, 1).with(OURS, 3);
        let is_over = [1, 2, 3, 4].map(|attempt| ended.contains(OURS, attempt));
        assert_eq!(is_over, [true, true, true, false]);
        assert!(ended.contains(THEIRS, 1), "another payment does not push it out");
        assert!(!ended.contains(THEIRS, 2));
    }

    #[test]
    fn only_the_last_ones_are_remembered() {
        let payment = |number: usize| Uuid::from_u128(number as u128 + 1);
        let all = (0..=REMEMBERED_MAX).map(payment);
        let ended = all.fold(EndedAttempts::default(), |ended, id| ended.with(id, 1));
        assert_eq!(ended.0.len(), REMEMBERED_MAX);
        assert!(!ended.contains(payment(0), 1));
        assert!(ended.contains(payment(1), 1) && ended.contains(payment(REMEMBERED_MAX), 1));
    }
}
