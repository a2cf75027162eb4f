//! Rules of seat changes: which seats a hold gives back and which it takes.

use urr_kernel::Timestamp;
use urr_layout::SeatId;

use crate::inventory::rules::{SalePolicy, Tier};
use crate::reserve::rules::HoldRejection;

/// The input of a decision. All seats are in order.
#[derive(Clone, Copy, Debug)]
pub struct SeatSwapRequest<'a> {
    pub held: &'a [SeatId],
    pub wanted: &'a [SeatId],
    /// The wanted seats that are not available, one's own included.
    pub taken: &'a [SeatId],
    /// What the user has of the event beside this hold.
    pub other_quantity: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatSwap {
    pub drop: Vec<SeatId>,
    pub take: Vec<SeatId>,
}

/// Decides a change of seats. None: these are the seats it has.
///
/// The user was let into the sale when they made the hold, so their tier is not asked for again;
/// whether the sale goes on is.
pub fn decide_swap(
    request: &SeatSwapRequest<'_>,
    policy: &SalePolicy,
    now: Timestamp,
) -> Result<Option<SeatSwap>, HoldRejection> {
    policy.check_open(Some(Tier::Diamond), now)?;
    let SeatSwapRequest { held, wanted, taken, other_quantity } = *request;
    let missing_in = |seats: &[SeatId], from: &[SeatId]| -> Vec<SeatId> {
        from.iter().filter(|seat_id| !seats.contains(seat_id)).copied().collect()
    };
    let swap = SeatSwap { drop: missing_in(wanted, held), take: missing_in(held, wanted) };
    if swap.drop.is_empty() && swap.take.is_empty() {
        return Ok(None);
    }
    let quantity = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
    let seats_per_user_max = policy.seats_per_user_max;
    if other_quantity.saturating_add(quantity) > seats_per_user_max {
        return Err(HoldRejection::SeatLimit { seats_per_user_max, live_quantity: other_quantity });
    }
    let seat_ids = missing_in(held, taken);
    match seat_ids.is_empty() {
        true => Ok(Some(swap)),
        false => Err(HoldRejection::SeatsTaken { seat_ids }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NotOnSale;
    use crate::SaleStatus;

    fn policy() -> SalePolicy {
        let at = |text: &str| text.parse().expect("a time");
        SalePolicy {
            status: SaleStatus::Open,
            is_complete: true,
            artist_id: None,
            starts_at: at("2026-12-24T10:00:00Z"),
            sale_starts_at: at("2026-12-01T00:00:00Z"),
            sale_ends_at: at("2026-12-10T00:00:00Z"),
            has_presale: true,
            seats_per_user_max: 3,
            requires_identity: false,
            cancel_policy: None,
        }
    }

    fn swap(
        held: &[u32],
        wanted: &[u32],
        taken: &[u32],
    ) -> Result<Option<SeatSwap>, HoldRejection> {
        let request = SeatSwapRequest { held, wanted, taken, other_quantity: 1 };
        decide_swap(&request, &policy(), "2026-12-01T00:00:00Z".parse().expect("a time"))
    }

    #[test]
    fn only_what_differs_is_given_back_and_taken() {
        let found = swap(&[1, 2], &[2, 3], &[2]);
        assert_eq!(found, Ok(Some(SeatSwap { drop: vec![1], take: vec![3] })));
        assert_eq!(swap(&[1, 2], &[1], &[1]), Ok(Some(SeatSwap { drop: vec![2], take: vec![] })));
        assert_eq!(swap(&[1, 2], &[1, 2], &[1, 2]), Ok(None));
    }

    #[test]
    fn m_14_ones_own_seats_are_not_taken_by_someone_else() {
        assert_eq!(
            swap(&[1], &[1, 7], &[1, 7]),
            Err(HoldRejection::SeatsTaken { seat_ids: vec![7] }),
            "only the stranger's seat is named"
        );
    }

    #[test]
    fn the_limit_counts_what_the_user_has_elsewhere() {
        let limit = HoldRejection::SeatLimit { seats_per_user_max: 3, live_quantity: 1 };
        assert_eq!(swap(&[1], &[4, 5, 6], &[]), Err(limit));
        assert!(swap(&[1], &[4, 5], &[]).is_ok());
    }

    #[test]
    fn nothing_is_changed_when_the_sale_is_over() {
        let request = SeatSwapRequest { held: &[1], wanted: &[2], taken: &[], other_quantity: 0 };
        let over = decide_swap(&request, &policy(), policy().sale_ends_at);
        assert_eq!(over, Err(HoldRejection::NotOnSale(NotOnSale::Ended)));
    }
}
