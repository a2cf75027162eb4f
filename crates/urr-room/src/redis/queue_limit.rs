//! Bounds the number of events for which one user waits.
//!
//! On a Cluster the count is on another node than the rooms, so no script can change both. A user
//! first reserves the event and then joins; a user who leaves releases it, as far as that succeeds.
//! When a user is at the limit, the reservations are compared with the lines, and those of broken
//! calls are released. Such a reservation becomes void in its room first, so that a late call
//! cannot join with it.
//!
//! A reservation is identified by its time. A user who leaves loses the reservations up to then,
//! because a newer one belongs to a new position. On a Cluster these are the clocks of two nodes:
//! as far as they differ, a reservation is released too late, or that of a user who joins again at
//! once.
//!
//! The reservations of a large cleared room are released after the answer. Until then its users may
//! be rejected elsewhere as waiting for too many events.

use futures_util::{StreamExt, stream};
use urr_kernel::Uuid;

use super::keys::{RoomKeys, user_hash, void_mark};
use super::scripts::{READ_RESERVATIONS, RELEASE, RESERVE, VERIFY};
use super::{RedisRooms, RoomError, RoomRequest};

/// Concurrent calls when many reservations are released.
const RELEASES_AT_ONCE: usize = 64;

/// The microsecond in which a reservation was made identifies it.
pub(super) type QueueReservation = i64;

/// An event id and the reservation.
const RESERVATION_BYTES: usize = 23;

impl RedisRooms {
    /// Reserves one more line. An existing reservation is renewed.
    pub(super) async fn reserve(
        &self,
        request: &RoomRequest,
        queues_max: u32,
    ) -> Result<QueueReservation, RoomError> {
        let settled = match self.try_reserve(request, queues_max).await? {
            Ok(reservation) => return Ok(reservation),
            Err(settled) => settled,
        };
        let mut is_room = false;
        for place in settled.as_chunks::<RESERVATION_BYTES>().0 {
            is_room |= self.release_unless_waiting(request.user_id, place).await?;
        }
        if !is_room {
            return Err(RoomError::TooManyQueues);
        }
        let reserved = self.try_reserve(request, queues_max).await?;
        reserved.map_err(|_| RoomError::TooManyQueues)
    }

    /// The reservation, or the settled ones that use up the limit.
    async fn try_reserve(
        &self,
        request: &RoomRequest,
        queues_max: u32,
    ) -> Result<Result<QueueReservation, Vec<u8>>, RoomError> {
        let arguments = (request.user_id.as_bytes(), request.event_id.as_bytes(), queues_max);
        let key = user_hash(request.user_id);
        let (is_reserved, bytes): (bool, Vec<u8>) = self.run(&RESERVE, &[&key], arguments).await?;
        match is_reserved {
            true => Ok(Ok(reservation(&bytes))),
            false => Ok(Err(bytes)),
        }
    }

    /// Releases a reservation if its owner does not wait. Returns whether it was released.
    async fn release_unless_waiting(
        &self,
        user_id: Uuid,
        place: &[u8; RESERVATION_BYTES],
    ) -> Result<bool, RoomError> {
        let (event_id, reservation) = place.split_first_chunk().expect("a place has an event");
        let event_id = Uuid::from_bytes(*event_id);
        let reservation = self::reservation(reservation);
        let keys = RoomKeys::of(event_id);
        let mark = void_mark(event_id, user_id);
        let keys = [keys.queue(), &mark];
        if self.run(&VERIFY, &keys, (user_id.as_bytes(), reservation)).await? {
            return Ok(false);
        }
        let arguments = (user_id.as_bytes(), event_id.as_bytes(), reservation, true);
        let () = self.run(&RELEASE, &[&user_hash(user_id)], arguments).await?;
        Ok(true)
    }

    /// Releases a user's reservation of an event, unless the user waits by it.
    pub(super) async fn give_back(&self, event_id: Uuid, user_id: Uuid) {
        let places = self.run(&READ_RESERVATIONS, &[&user_hash(user_id)], user_id.as_bytes()).await;
        let places: Vec<u8> = places.unwrap_or_default();
        for place in places.as_chunks::<RESERVATION_BYTES>().0 {
            if place.starts_with(event_id.as_bytes()) {
                self.release_unless_waiting(user_id, place).await.ok();
            }
        }
    }

    /// Releases the reservations of users who left the line at this time of Redis. A failed release
    /// is found when the user is at the limit.
    pub(super) async fn release(&self, event_id: Uuid, users: &[Uuid], gone_at: i64) {
        let release = |user_id: Uuid| async move {
            let arguments = (user_id.as_bytes(), event_id.as_bytes(), gone_at, false);
            let key = user_hash(user_id);
            self.run::<()>(&RELEASE, &[&key], arguments).await.ok();
        };
        let releases = stream::iter(users.iter().copied().map(release));
        releases.buffer_unordered(RELEASES_AT_ONCE).collect::<()>().await;
    }
}

fn reservation(bytes: &[u8]) -> QueueReservation {
    bytes.iter().fold(0, |micros, byte| micros << 8 | i64::from(*byte))
}
