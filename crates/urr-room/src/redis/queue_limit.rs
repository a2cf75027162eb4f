//! For how many events one person may wait.
//!
//! That is kept beside the rooms, on a Cluster on another node, so no script can decide both. Who is
//! to be lined up first reserves the event there; who went from a line is taken out of it as well as
//! that can be done. When someone has as many as they may, what is reserved there is compared with
//! the lines, and what is left of broken calls is given back. Such a reservation becomes void in its
//! room first, so that someone who comes late with it is not lined up after all.
//!
//! A reservation is known by its time. Who went from a line loses those up to then: they may have
//! lined up again meanwhile, with a newer one. On a Cluster these are the clocks of two nodes. As far
//! as they differ, a place is given back too late, or that of someone who comes again at once.
//!
//! Those of a large room that was cleared are taken out after the answer. Whoever of them comes to
//! another event in that moment may be told that they wait for too many; it ends by itself.

use futures_util::{StreamExt, stream};
use urr_kernel::Uuid;

use super::keys::{RoomKeys, user_hash, void_mark};
use super::scripts::{READ_RESERVATIONS, RELEASE, RESERVE, VERIFY};
use super::{RedisRooms, RoomError, RoomRequest};

/// Calls under way at once when many are taken out.
const RELEASES_AT_ONCE: usize = 64;

/// Names a reservation: in which microsecond it was made.
pub(super) type QueueReservation = i64;

/// An event's id and the reservation.
const RESERVATION_BYTES: usize = 23;

impl RedisRooms {
    /// Reserves a place in one more line; one that is reserved already is renewed.
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

    /// The reservation, or those that are in its way and not quite new.
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

    /// Gives a reservation back if its owner does not wait. Whether that was so.
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

    /// Gives back what someone has reserved, unless they have lined up with it meanwhile.
    pub(super) async fn give_back(&self, event_id: Uuid, user_id: Uuid) {
        let places = self.run(&READ_RESERVATIONS, &[&user_hash(user_id)], user_id.as_bytes()).await;
        let places: Vec<u8> = places.unwrap_or_default();
        for place in places.as_chunks::<RESERVATION_BYTES>().0 {
            if place.starts_with(event_id.as_bytes()) {
                self.release_unless_waiting(user_id, place).await.ok();
            }
        }
    }

    /// Takes users out who went from the line of this event at this time of Redis. What fails is
    /// found when they have as many as they may.
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
