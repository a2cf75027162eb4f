//! A Fenwick tree: prefix sums of counts in logarithmic time.

#[derive(Default)]
pub struct FenwickTree {
    /// At `i`: the sum of the counts from `i & (i + 1)` up to `i`.
    tree: Vec<u32>,
}

impl FenwickTree {
    pub fn push(&mut self, count: u32) {
        let index = self.tree.len();
        let mut sum = count;
        // The ranges that end right before this one and lie in its own.
        let first = index & (index + 1);
        let mut end = index;
        while end > first {
            sum += self.tree[end - 1];
            end = (end - 1) & end;
        }
        self.tree.push(sum);
    }

    pub fn add(&mut self, index: usize, count: u32) {
        self.change(index, |sum| *sum += count);
    }

    pub fn subtract(&mut self, index: usize, count: u32) {
        self.change(index, |sum| *sum -= count);
    }

    fn change(&mut self, mut index: usize, change: impl Fn(&mut u32)) {
        while index < self.tree.len() {
            change(&mut self.tree[index]);
            index |= index + 1;
        }
    }

    /// The sum of all counts before `index`.
    pub fn before(&self, index: usize) -> u32 {
        let (mut end, mut sum) = (index, 0);
        while end > 0 {
            sum += self.tree[end - 1];
            end &= end - 1;
        }
        sum
    }

    /// Finds the element with this rank, counted from zero: the index, and its rank there.
    pub fn find(&self, rank: u32) -> Option<(usize, u32)> {
        let (mut index, mut rest) = (0, rank);
        let mut step = self.tree.len().checked_ilog2().map_or(0, |digits| 1 << digits);
        while step > 0 {
            let next = index + step;
            if next <= self.tree.len() && self.tree[next - 1] <= rest {
                index = next;
                rest -= self.tree[next - 1];
            }
            step /= 2;
        }
        (index < self.tree.len()).then_some((index, rest))
    }

    /// Replaces the counts from `index` on.
    pub fn replace_from(&mut self, index: usize, counts: impl Iterator<Item = u32>) {
        self.tree.truncate(index);
        counts.for_each(|count| self.push(count));
    }

    pub fn bytes(&self) -> usize {
        self.tree.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sums_agree_with_adding_up(
            mut counts in prop::collection::vec(0_u32..5, 0..70),
            changes in prop::collection::vec((any::<prop::sample::Index>(), 0_u32..5), 0..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut fenwick = FenwickTree::default();
            counts.iter().for_each(|count| fenwick.push(*count));
            for (index, count) in &changes {
                if counts.is_empty() {
                    break;
                }
                let index = index.index(counts.len());
                counts[index] += count;
                fenwick.add(index, *count);
                if counts[index] > 3 {
                    counts[index] -= 3;
                    fenwick.subtract(index, 3);
                }
            }
            if !counts.is_empty() {
                let index = cut.index(counts.len());
                counts.remove(index);
                fenwick.replace_from(index, counts[index..].iter().copied());
            }
            for index in 0..=counts.len() {
                prop_assert_eq!(fenwick.before(index), counts[..index].iter().sum::<u32>());
            }
            let all = counts.iter().enumerate();
            let ranks: Vec<_> =
                all.flat_map(|(index, count)| (0..*count).map(move |rest| (index, rest))).collect();
            for rank in 0..=ranks.len() {
                let found = fenwick.find(u32::try_from(rank).unwrap());
                prop_assert_eq!(found, ranks.get(rank).copied());
            }
        }
    }
}
