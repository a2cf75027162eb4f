//! Packed seat statuses: two bits each.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use urr_layout::SeatId;
use urr_storage::storable_enum;

const BITS: u32 = 2;
const SEATS_PER_BYTE: u32 = 8 / BITS;
const MASK: u8 = 0b11;

/// The status of a seat, with its number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SeatStatus {
    Available = 0,
    Held = 1,
    Sold = 2,
    /// The organiser keeps it out of the sale.
    Blocked = 3,
}

storable_enum!(SeatStatus {
    Available => "available",
    Held => "held",
    Sold => "sold",
    Blocked => "blocked",
});

impl SeatStatus {
    /// As it is sent.
    pub fn code(self) -> u8 {
        self as u8
    }
}

/// The statuses of an event's seats by their numbers: 50,000 seats are 12,500 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses {
    packed: Vec<u8>,
    count: u32,
}

impl Statuses {
    pub fn all_available(count: u32) -> Statuses {
        let bytes = usize::try_from(count.div_ceil(SEATS_PER_BYTE)).expect("a hall fits memory");
        Statuses { packed: vec![0; bytes], count }
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    /// None: there is no such seat.
    pub fn get(&self, id: SeatId) -> Option<SeatStatus> {
        if id >= self.count {
            return None;
        }
        let (byte, shift) = place(id);
        Some(match (self.packed[byte] >> shift) & MASK {
            0 => SeatStatus::Available,
            1 => SeatStatus::Held,
            2 => SeatStatus::Sold,
            _ => SeatStatus::Blocked,
        })
    }

    pub fn is_available(&self, id: SeatId) -> bool {
        self.get(id) == Some(SeatStatus::Available)
    }

    /// How many are held, and how many are not available.
    pub fn taken(&self) -> (u32, u32) {
        const LOW: u8 = 0b0101_0101;
        let count = |of: fn(u8) -> u8| self.packed.iter().map(|byte| of(*byte).count_ones()).sum();
        (count(|byte| byte & !(byte >> 1) & LOW), count(|byte| (byte | (byte >> 1)) & LOW))
    }

    pub fn set(&mut self, id: SeatId, status: SeatStatus) {
        assert!(id < self.count, "seat {id} of {}", self.count);
        let (byte, shift) = place(id);
        self.packed[byte] = (self.packed[byte] & !(MASK << shift)) | (status.code() << shift);
    }

    /// As it is sent: the bytes in base64; seat `n` is in byte `n / 4`, its lowest bit being bit
    /// `n % 4 * 2`.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(&self.packed)
    }
}

fn place(id: SeatId) -> (usize, u32) {
    let byte = usize::try_from(id / SEATS_PER_BYTE).expect("a hall fits memory");
    (byte, id % SEATS_PER_BYTE * BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_keeps_its_status_whatever_its_neighbours_do() {
        let mut statuses = Statuses::all_available(9);
        let all = [0, 1, 2, 3, 1, 0, 1, 3, 1].map(|code| SeatStatus::ALL[code]);
        for round in 0..3 {
            for (id, status) in (0..9).zip(all.iter().cycle().skip(round)) {
                statuses.set(id, *status);
            }
            let read: Vec<_> = (0..9).map(|id| statuses.get(id).expect("it exists")).collect();
            let expected: Vec<_> = all.iter().cycle().skip(round).take(9).copied().collect();
            assert_eq!(read, expected);
        }
        assert_eq!(statuses.taken(), (4, 7));
        assert_eq!(statuses.get(9), None);
        assert_eq!(statuses.get(u32::MAX), None);
        assert!(!statuses.is_available(9), "what is not there is not free");
    }

    #[test]
    fn the_encoding_is_the_one_that_is_documented() {
        let mut statuses = Statuses::all_available(6);
        statuses.set(1, SeatStatus::Held);
        statuses.set(3, SeatStatus::Sold);
        statuses.set(5, SeatStatus::Sold);
        // 10 00 01 00 and 10 00, from the highest bit to the lowest.
        let bytes = STANDARD.decode(statuses.to_base64()).expect("it is base64");
        assert_eq!(bytes, [0b1000_0100, 0b0000_1000]);
        let status = |id: usize| (bytes[id >> 2] >> ((id & 3) * 2)) & 3;
        assert_eq!((0..6).map(status).collect::<Vec<_>>(), [0, 1, 0, 2, 0, 2]);
    }
}
