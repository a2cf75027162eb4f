//! The line of one room, ordered, with fast positions.
//!
//! Users are in chunks; a user who leaves makes a hole. A position is the number of users in the
//! chunks before, which a [`FenwickTree`] counts, plus the users before in the chunk. A hash table
//! finds users by id and holds only their index: the id is in the chunk.
//!
//! No operation takes long, however many wait: sparse chunks are merged one at a time, and the
//! table is split into parts that grow on their own.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use urr_kernel::Uuid;

use super::fenwick::FenwickTree;
use crate::MARKS_MAX;

const CHUNK: usize = 256;
/// Neighbours with at most this many users together are merged. The free quarter prevents repeated
/// merges of a line that grows and shrinks by one.
const MERGED_MAX: u32 = 192;
const TABLES: usize = 64;

/// A user who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineEntry {
    pub user_id: Uuid,
    /// Orders the line, with the user's id among equals.
    pub number: i64,
    /// The number of the arrival.
    pub arrival: i64,
    pub seen_at_us: i64,
}

impl LineEntry {
    pub fn key(&self) -> LineKey {
        (self.number, self.user_id)
    }
}

/// The order of the line.
pub type LineKey = (i64, Uuid);

/// The index of an entry, valid until the line changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryIndex(u32);

impl EntryIndex {
    fn new(chunk: usize, offset: usize) -> EntryIndex {
        EntryIndex(u32::try_from(chunk * CHUNK + offset).expect("fewer than 2^32 people wait"))
    }

    fn chunk(self) -> usize {
        self.0 as usize / CHUNK
    }

    fn offset(self) -> usize {
        self.0 as usize % CHUNK
    }
}

pub struct WaitingLine {
    chunks: Vec<Chunk>,
    /// Empty chunks.
    spare: Vec<u32>,
    /// The chunks in use, front first.
    order: Vec<u32>,
    /// The counts of the chunks in `order`.
    fenwick: FenwickTree,
    tables: Box<[HashTable<EntryIndex>]>,
    hasher: DefaultHashBuilder,
    count: u32,
}

#[derive(Default)]
struct Chunk {
    entries: Vec<LineEntry>,
    /// A bit for each entry: whether the user is still there.
    present: [u64; CHUNK / 64],
    count: u32,
    /// Its index in `order`.
    rank: u32,
}

impl WaitingLine {
    pub fn new(hasher: DefaultHashBuilder) -> WaitingLine {
        WaitingLine {
            chunks: Vec::new(),
            spare: Vec::new(),
            order: Vec::new(),
            fenwick: FenwickTree::default(),
            tables: (0..TABLES).map(|_| HashTable::new()).collect(),
            hasher,
            count: 0,
        }
    }

    /// A line of these entries, which are in order.
    pub fn of(entries: Vec<LineEntry>, hasher: DefaultHashBuilder) -> WaitingLine {
        let mut line = WaitingLine::new(hasher);
        let per_table = entries.len() / TABLES;
        for table in &mut line.tables {
            table.reserve(per_table, |_| unreachable!("nobody is in it yet"));
        }
        entries.into_iter().for_each(|entry| line.push(entry));
        line
    }

    pub fn len(&self) -> u32 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends a user who does not wait yet.
    pub fn push(&mut self, entry: LineEntry) {
        let tail = self.order.last().map(|chunk| *chunk as usize);
        let chunk = match tail {
            Some(chunk) if self.chunks[chunk].entries.len() < CHUNK => chunk,
            _ => self.add_chunk(),
        };
        debug_assert!(self.last().is_none_or(|last| last.key() < entry.key()), "in order");
        let at = self.chunks[chunk].push(chunk, entry);
        self.fenwick.add(self.chunks[chunk].rank as usize, 1);
        self.count += 1;
        let (hash, chunks, hasher) = (self.hash(entry.user_id), &self.chunks, &self.hasher);
        let table = &mut self.tables[table_of(hash)];
        table.insert_unique(hash, at, |at| hasher.hash_one(entry_at(chunks, *at).user_id));
    }

    pub fn find(&self, user_id: Uuid) -> Option<EntryIndex> {
        let hash = self.hash(user_id);
        let is_same = |at: &EntryIndex| entry_at(&self.chunks, *at).user_id == user_id;
        self.tables[table_of(hash)].find(hash, is_same).copied()
    }

    pub fn entry(&self, at: EntryIndex) -> &LineEntry {
        entry_at(&self.chunks, at)
    }

    pub fn mark_seen(&mut self, at: EntryIndex, now_us: i64) {
        self.chunks[at.chunk()].entries[at.offset()].seen_at_us = now_us;
    }

    /// The first in line has 1.
    pub fn position(&self, at: EntryIndex) -> u32 {
        let chunk = &self.chunks[at.chunk()];
        self.fenwick.before(chunk.rank as usize) + chunk.present_before(at.offset()) + 1
    }

    /// The entry at a position.
    pub fn nth(&self, position: u32) -> Option<&LineEntry> {
        let (rank, rest) = self.fenwick.find(position.checked_sub(1)?)?;
        let chunk = &self.chunks[self.order[rank] as usize];
        Some(&chunk.entries[chunk.nth(rest)])
    }

    pub fn remove(&mut self, user_id: Uuid) -> Option<LineEntry> {
        let hash = self.hash(user_id);
        let (chunks, hasher) = (&self.chunks, &self.hasher);
        let table = &mut self.tables[table_of(hash)];
        let is_same = |at: &EntryIndex| entry_at(chunks, *at).user_id == user_id;
        let (at, _) = table.find_entry(hash, is_same).ok()?.remove();
        if table.len() < table.capacity() / 8 {
            let room = 2 * table.len();
            table.shrink_to(room, |at| hasher.hash_one(entry_at(chunks, *at).user_id));
        }
        let entry = *self.entry(at);
        let chunk = &mut self.chunks[at.chunk()];
        chunk.remove(at.offset());
        let rank = chunk.rank as usize;
        self.fenwick.subtract(rank, 1);
        self.count -= 1;
        self.tidy(rank);
        Some(entry)
    }

    pub fn pop_front(&mut self) -> Option<LineEntry> {
        let first = self.nth(1)?.user_id;
        self.remove(first)
    }

    /// The entries behind this key, front first.
    pub fn behind(&self, key: Option<LineKey>) -> impl Iterator<Item = &LineEntry> {
        let is_before = move |entry: &LineEntry| key.is_some_and(|key| entry.key() <= key);
        // The last chunk that begins before it: holes keep their keys.
        let begins_before = |chunk: &u32| is_before(&self.chunks[*chunk as usize].entries[0]);
        let rank = self.order.partition_point(begins_before).saturating_sub(1);
        let chunks = self.order[rank..].iter().map(|chunk| &self.chunks[*chunk as usize]);
        chunks.flat_map(Chunk::iter).skip_while(move |entry| is_before(entry))
    }

    pub fn bytes(&self) -> usize {
        let entries: usize = self.chunks.iter().map(|chunk| chunk.entries.capacity()).sum();
        let tables: usize = self.tables.iter().map(HashTable::allocation_size).sum();
        entries * size_of::<LineEntry>()
            + self.chunks.capacity() * size_of::<Chunk>()
            + (self.spare.capacity() + self.order.capacity()) * size_of::<u32>()
            + self.fenwick.bytes()
            + tables
            + TABLES * size_of::<HashTable<EntryIndex>>()
    }

    fn last(&self) -> Option<&LineEntry> {
        self.nth(self.count)
    }

    fn hash(&self, user_id: Uuid) -> u64 {
        self.hasher.hash_one(user_id)
    }

    fn add_chunk(&mut self) -> usize {
        let chunk = self.spare.pop().map_or(self.chunks.len(), |chunk| chunk as usize);
        if chunk == self.chunks.len() {
            self.chunks.push(Chunk::default());
        }
        self.chunks[chunk].rank = small(self.order.len());
        self.order.push(small(chunk));
        self.fenwick.push(0);
        chunk
    }

    /// Called after a user left the chunk of this rank.
    fn tidy(&mut self, rank: usize) {
        if self.count_in(rank) == 0 {
            return self.drop_chunk(rank);
        }
        let with_next = |rank: usize| self.count_in(rank) + self.count_in(rank + 1);
        let is_few = |rank: &usize| rank + 1 < self.order.len() && with_next(*rank) <= MERGED_MAX;
        let pair = [Some(rank), rank.checked_sub(1)].into_iter().flatten().find(is_few);
        if let Some(rank) = pair {
            self.merge_with_next(rank);
        }
    }

    fn count_in(&self, rank: usize) -> u32 {
        self.chunks[self.order[rank] as usize].count
    }

    /// Moves the users of two neighbours into the first chunk, without holes.
    fn merge_with_next(&mut self, rank: usize) {
        let (first, second) = (self.order[rank] as usize, self.order[rank + 1] as usize);
        let mut merged = Chunk { rank: small(rank), ..Chunk::default() };
        let mut moved = Vec::with_capacity(MERGED_MAX as usize);
        for chunk in [first, second] {
            for offset in self.chunks[chunk].offsets() {
                let to = merged.push(first, self.chunks[chunk].entries[offset]);
                moved.push((EntryIndex::new(chunk, offset), to));
            }
        }
        // All buckets are found before the first is changed, because a new index may equal the old
        // index of another user.
        let buckets: Vec<(usize, usize, EntryIndex)> = moved
            .into_iter()
            .map(|(from, to)| {
                let hash = self.hash(self.entry(from).user_id);
                let table = table_of(hash);
                let bucket = self.tables[table].find_bucket_index(hash, |at| *at == from);
                (table, bucket.expect("who waits is in the table"), to)
            })
            .collect();
        for (table, bucket, to) in buckets {
            *self.tables[table].get_bucket_mut(bucket).expect("it was just found") = to;
        }
        self.chunks[first] = merged;
        self.chunks[second].count = 0;
        self.drop_chunk(rank + 1);
    }

    fn drop_chunk(&mut self, rank: usize) {
        let chunk = self.order.remove(rank);
        self.chunks[chunk as usize] = Chunk::default();
        self.spare.push(chunk);
        for (rank, chunk) in self.order.iter().enumerate().skip(rank) {
            self.chunks[*chunk as usize].rank = small(rank);
        }
        let first = rank.saturating_sub(1);
        let (order, chunks) = (&self.order, &self.chunks);
        let counts = order[first..].iter().map(|chunk| chunks[*chunk as usize].count);
        self.fenwick.replace_from(first, counts);
    }
}

impl Chunk {
    fn push(&mut self, chunk: usize, entry: LineEntry) -> EntryIndex {
        let offset = self.entries.len();
        self.entries.push(entry);
        self.present[offset / 64] |= 1 << (offset % 64);
        self.count += 1;
        EntryIndex::new(chunk, offset)
    }

    fn remove(&mut self, offset: usize) {
        self.present[offset / 64] &= !(1 << (offset % 64));
        self.count -= 1;
    }

    fn present_before(&self, offset: usize) -> u32 {
        let whole: u32 = self.present[..offset / 64].iter().map(|word| word.count_ones()).sum();
        let below = (1_u64 << (offset % 64)) - 1;
        whole + (self.present[offset / 64] & below).count_ones()
    }

    /// The offset of the user with this rank, counted from zero.
    fn nth(&self, rank: u32) -> usize {
        let mut rest = rank;
        for (index, word) in self.present.iter().enumerate() {
            let count = word.count_ones();
            if rest < count {
                let word = (0..rest).fold(*word, |word, _| word & (word - 1));
                return index * 64 + word.trailing_zeros() as usize;
            }
            rest -= count;
        }
        unreachable!("the sums and the chunks agree")
    }

    fn offsets(&self) -> impl Iterator<Item = usize> {
        let is_present = |offset: &usize| self.present[offset / 64] >> (offset % 64) & 1 == 1;
        (0..self.entries.len()).filter(is_present)
    }

    fn iter(&self) -> impl Iterator<Item = &LineEntry> {
        self.offsets().map(|offset| &self.entries[offset])
    }
}

fn entry_at(chunks: &[Chunk], at: EntryIndex) -> &LineEntry {
    &chunks[at.chunk()].entries[at.offset()]
}

/// Other bits than those that the table itself uses.
fn table_of(hash: u64) -> usize {
    (hash >> 40) as usize % TABLES
}

fn small(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 chunks")
}

/// The marks of a line of this length: every position at the front, then in growing steps, and the last one. The steps are as small as
/// the number of marks allows: an eleventh of the position for a million users.
pub fn mark_positions(waiting: u32) -> Vec<u32> {
    let with_steps = |part: u32| {
        let next = move |position: &u32| position.checked_add(1 + position / part);
        let all = std::iter::successors(Some(1), next);
        all.take_while(|position| *position < waiting).take(MARKS_MAX).collect::<Vec<u32>>()
    };
    let parts = [32, 24, 20, 16, 14, 12, 11, 10, 8, 6];
    let few = parts.into_iter().map(with_steps).find(|positions| positions.len() < MARKS_MAX);
    let mut positions = few.expect("a sixth is enough for any number of people");
    positions.extend((waiting > 0).then_some(waiting));
    positions
}

#[cfg(test)]
mod tests;
