//! Which partition a key belongs to.

/// The partition of a key, chosen as Kafka's own clients do: the same on both forms of the bus.
pub(crate) fn partition_of(key: &[u8], partitions: i32) -> i32 {
    assert!(partitions > 0, "a topic has partitions");
    let positive = murmur2(key) & 0x7fff_ffff;
    i32::try_from(positive).expect("31 bits fit") % partitions
}

/// The 32-bit MurmurHash2 with the seed of Kafka's default partitioner.
pub(crate) fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    let length = u32::try_from(data.len()).expect("a key is short");
    let mut hash = SEED ^ length;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_of_kafkas_own_client() {
        // From the tests of Kafka's Java client.
        let cases: [(&str, i32); 6] = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ];
        for (key, expected) in cases {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), expected, "{key}");
        }
    }

    #[test]
    fn keys_spread_over_all_partitions() {
        let mut counts = [0; 3];
        for number in 0..3_000_u32 {
            let partition = partition_of(&number.to_be_bytes(), 3);
            counts[usize::try_from(partition).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| *count > 800), "{counts:?}");
    }
}
