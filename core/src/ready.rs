//! The ready set: one bit a rank, found in three steps however many there are.
//!
//! For the dispatcher. Lives in storage that the caller gives, fixed before the loop; never grows,
//! never walks. Rank 0 is the most urgent one. The bitmap over priorities is AnT's (*Sophisticated
//! periodic execution control*, §3); here it is over ranks, so that one word holds 64 tasks, and
//! the tasks of one release are set by one OR a word.

/// The most ranks: three levels of 64.
pub const RANKS_MAX: usize = 64 * 64 * 64;

/// Words of storage for `ranks` ranks: the bits, and two levels of summary.
///
/// # Real-time: setup only
pub const fn words(ranks: usize) -> usize {
    let bits = ranks.div_ceil(64);
    bits + bits.div_ceil(64)
}

/// Receives the memory that a table or a state lies in, slice by slice: for callers that bring it
/// into the caches before a release, lock it, or flush it before a measurement. Read only.
pub trait Visit {
    /// Takes one slice.
    ///
    /// # Real-time: in loop
    fn part<T>(&mut self, part: &[T]);
}

/// A set of ranks.
#[derive(Debug)]
pub struct ReadySet<'s> {
    /// A bit a rank.
    bits: &'s mut [u64],
    /// A bit a word of `bits` that is not zero.
    summary: &'s mut [u64],
    /// A bit a word of `summary` that is not zero.
    top: u64,
    /// The most urgent word while ranks are taken out of it; it is zero in `bits` then.
    held: u64,
    /// The first rank of that word.
    base: usize,
}

impl<'s> ReadySet<'s> {
    /// An empty set over `storage`, or `None` when that is too small for `ranks` ranks, or there
    /// are more than [`RANKS_MAX`].
    ///
    /// # Real-time: setup only
    pub fn new(storage: &'s mut [u64], ranks: usize) -> Option<Self> {
        if ranks > RANKS_MAX || storage.len() < words(ranks) {
            return None;
        }
        let used = &mut storage[..words(ranks)];
        used.fill(0);
        let (bits, summary) = used.split_at_mut(ranks.div_ceil(64));
        Some(Self { bits, summary, top: 0, held: 0, base: 0 })
    }

    /// The set that `storage` holds, as an earlier one left it there when it was dropped; `None`
    /// when that is too small for `ranks` ranks, or one above them is in.
    ///
    /// # Real-time: in loop
    pub fn resume(storage: &'s mut [u64], ranks: usize) -> Option<Self> {
        if ranks > RANKS_MAX || storage.len() < words(ranks) {
            return None;
        }
        let (bits, summary) = storage[..words(ranks)].split_at_mut(ranks.div_ceil(64));
        let above = match ranks % 64 {
            0 => 0,
            some => bits.last().map_or(0, |word| word >> some),
        };
        if above != 0 {
            return None;
        }
        let mut top = 0;
        for (group, (words, summary)) in bits.chunks(64).zip(summary.iter_mut()).enumerate() {
            let some = |(at, word): (usize, &u64)| u64::from(*word != 0) << at;
            *summary = words.iter().enumerate().map(some).sum();
            top |= u64::from(*summary != 0) << group;
        }
        Some(Self { bits, summary, top, held: 0, base: 0 })
    }

    /// Adds the ranks of `mask` in word `word`, and returns those that were in already.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn add(&mut self, word: usize, mask: u64) -> u64 {
        self.put_back();
        let before = self.bits[word];
        self.insert(word, mask);
        before & mask
    }

    /// Adds ranks while no word is held.
    #[inline]
    pub(crate) fn insert(&mut self, word: usize, mask: u64) {
        self.bits[word] |= mask;
        self.summary[word / 64] |= 1 << (word % 64);
        self.top |= 1 << (word / 64);
    }

    /// Takes a rank out.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn remove(&mut self, rank: usize) {
        self.put_back();
        let word = rank / 64;
        self.bits[word] &= !(1 << (rank % 64));
        if self.bits[word] == 0 {
            self.emptied(word);
        }
    }

    /// Takes the most urgent rank out.
    ///
    /// # Real-time: in loop
    #[inline(always)]
    pub fn pop(&mut self) -> Option<usize> {
        if self.held == 0 {
            if self.top == 0 {
                return None;
            }
            self.hold();
        }
        let rank = self.base + self.held.trailing_zeros() as usize;
        self.held &= self.held - 1;
        Some(rank)
    }

    /// Does what the next [`ReadySet::pop`] would do before it has a rank.
    #[inline]
    pub(crate) fn prepare(&mut self) {
        if self.held == 0 && self.top != 0 {
            self.hold();
        }
    }

    /// Holds the most urgent word, of which there is one.
    #[cold]
    #[inline(never)]
    fn hold(&mut self) {
        let group = self.top.trailing_zeros() as usize;
        let word = group * 64 + self.summary[group].trailing_zeros() as usize;
        self.base = word * 64;
        self.held = core::mem::take(&mut self.bits[word]);
        self.emptied(word);
    }

    /// Puts the held word back, so that all ranks are in one place.
    #[inline]
    pub(crate) fn put_back(&mut self) {
        if self.held != 0 {
            let held = core::mem::take(&mut self.held);
            self.insert(self.base / 64, held);
        }
    }

    /// A word has no rank any more.
    #[inline]
    fn emptied(&mut self, word: usize) {
        let group = word / 64;
        self.summary[group] &= !(1 << (word % 64));
        if self.summary[group] == 0 {
            self.top &= !(1 << group);
        }
    }

    /// True where a rank is in.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn has(&self, rank: usize) -> bool {
        let held = if self.base / 64 == rank / 64 { self.held } else { 0 };
        (self.bits[rank / 64] | held) >> (rank % 64) & 1 == 1
    }

    /// Passes the memory that it lies in to `visit`.
    ///
    /// # Real-time: in loop
    pub fn visit(&self, visit: &mut impl Visit) {
        visit.part(self.bits);
        visit.part(self.summary);
    }

    /// The most urgent rank.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn first(&self) -> Option<usize> {
        if self.held != 0 {
            return Some(self.base + self.held.trailing_zeros() as usize);
        }
        if self.top == 0 {
            return None;
        }
        let group = self.top.trailing_zeros() as usize;
        let word = group * 64 + self.summary[group].trailing_zeros() as usize;
        Some(word * 64 + self.bits[word].trailing_zeros() as usize)
    }
}

impl Drop for ReadySet<'_> {
    /// Leaves the whole set in its storage.
    fn drop(&mut self) {
        self.put_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::vec;

    #[test]
    fn agrees_with_a_sorted_set_at_every_size() {
        for ranks in [1, 63, 64, 65, 4_096, 4_097, RANKS_MAX] {
            let mut storage = vec![u64::MAX; words(ranks)];
            let mut ready = ReadySet::new(&mut storage, ranks).expect("it fits");
            let mut model = BTreeSet::new();
            let mut seed = 7u64;
            for _ in 0..3_000 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let rank = (seed >> 33) as usize % ranks;
                if seed & 2 == 0 {
                    let was = ready.add(rank / 64, 1 << (rank % 64)) != 0;
                    assert_eq!(was, !model.insert(rank));
                } else {
                    let first = ready.first();
                    assert_eq!(first, model.first().copied());
                    if seed & 8 == 0 {
                        ready.prepare();
                    }
                    let gone = first.unwrap_or(rank);
                    if seed & 4 == 0 {
                        assert_eq!(ready.pop(), first);
                    } else {
                        ready.remove(gone);
                    }
                    model.remove(&gone);
                }
                assert_eq!(ready.has(rank), model.contains(&rank));
            }
            // Another goes on with what this one leaves, a word that it holds included.
            assert_eq!(ready.pop(), model.pop_first());
            drop(ready);
            let mut ready = ReadySet::resume(&mut storage, ranks).expect("it fits");
            while let Some(rank) = model.pop_first() {
                assert_eq!(ready.pop(), Some(rank));
            }
            assert_eq!(ready.pop(), None);
        }
    }

    #[test]
    fn too_little_storage_and_too_many_ranks_are_refused() {
        assert!(ReadySet::new(&mut [0; 2], 65).is_none());
        assert!(ReadySet::new(&mut [], 1).is_none());
        let mut storage = vec![0; words(RANKS_MAX + 1)];
        assert!(ReadySet::new(&mut storage, RANKS_MAX + 1).is_none());
        assert!(ReadySet::resume(&mut [0; 2], 65).is_none());
        assert!(ReadySet::resume(&mut [0b1000, 0], 3).is_none(), "one that is not there");
        assert!(ReadySet::resume(&mut [0b100, 0], 3).is_some_and(|set| set.first() == Some(2)));
        assert!(ReadySet::new(&mut [], 0).is_some_and(|none| none.first().is_none()));
    }
}
