//! The ring: samples of a loop in fixed memory, on their way to a drain.
//!
//! Guarantees: memory is the caller's, fixed before the loop; a push allocates nothing, locks
//! nothing, fails never and takes a few nanoseconds; a sample that finds the ring full is counted
//! as unrecorded; a reader may look at any time without disturbing the writer.
//!
//! Limits: there is one writer and one drain; the ring never overwrites what was not drained; a
//! reader sees each number whole, yet two numbers may be one push apart. Counters of cycles and
//! their histogram are those of a [`crate::stats`].
//!
//! Split it with [`split`]: the [`Ring`] goes to the loop, the [`Drain`] to the thread that writes
//! samples away, and any number of [`RingView`]s to other readers.

use core::sync::atomic::Ordering;

use crate::atomic::AtomicU64;
use crate::sample::Sample;

/// Words of the counters that the loop writes: two cache lines that no other thread writes.
const WRITER_WORDS: usize = 16;
/// Words of the counter that the drain writes: a cache line of its own, padded to two.
const DRAIN_WORDS: usize = 16;

const HEAD: usize = 0;
const UNRECORDED: usize = 1;
const MISSED: usize = 2;
const TAIL: usize = WRITER_WORDS;
const SAMPLES: usize = WRITER_WORDS + DRAIN_WORDS;

/// The words that a ring of `samples` needs.
///
/// # Real-time: setup only
pub const fn words(samples: usize) -> usize {
    SAMPLES + 2 * samples
}

/// The three ends of a ring.
#[derive(Debug)]
pub struct SplitRing<'a> {
    /// The loop's, which writes.
    pub ring: Ring<'a>,
    /// The one that takes samples out.
    pub drain: Drain<'a>,
    /// A reader's, of which there may be more.
    pub view: RingView<'a>,
}

/// Makes a ring over `words`, which is cleared. It takes the largest power of two of samples that
/// fits; `None` when not even two do.
///
/// # Real-time: setup only
pub fn split(words: &[AtomicU64]) -> Option<SplitRing<'_>> {
    if words.len() < self::words(2) {
        return None;
    }
    for word in words {
        word.store(0, Ordering::Relaxed);
    }
    let (drain, view) = readers(words)?;
    Some(SplitRing { ring: Ring::resume(words)?, drain, view })
}

/// The readers' ends of a ring that was made over `words`.
///
/// # Real-time: setup only
pub fn readers(words: &[AtomicU64]) -> Option<(Drain<'_>, RingView<'_>)> {
    let tail = words.get(TAIL)?.load(Ordering::Acquire);
    Some((Drain { words, mask: mask(words)?, tail }, RingView { words }))
}

/// Samples that fit − 1: a power of two − 1.
#[inline]
fn mask(words: &[AtomicU64]) -> Option<u64> {
    let samples = words.len().checked_sub(SAMPLES)? / 2;
    Some((1u64 << samples.checked_ilog2()?) - 1)
}

/// The loop's end: the one writer.
#[derive(Debug)]
pub struct Ring<'a> {
    // An array of known length, so that an index costs no check.
    counters: &'a [AtomicU64; WRITER_WORDS],
    drained: &'a AtomicU64,
    samples: &'a [[AtomicU64; 2]],
    mask: u64,
    /// Samples put into the ring, ever.
    head: u64,
    /// Samples taken from the ring, as last seen.
    tail: u64,
}

/// One more: a plain load and store, for there is one writer.
#[inline]
fn bump(word: &AtomicU64, by: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

impl<'a> Ring<'a> {
    /// The loop's end as it was left in `words`, over which a ring was made: for an owner that
    /// cannot keep a borrow. There must be no other.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn resume(words: &'a [AtomicU64]) -> Option<Self> {
        let mask = mask(words)?;
        let (counters, rest): (&[AtomicU64; WRITER_WORDS], _) = words.split_first_chunk()?;
        let (drained, rest) = rest.split_first_chunk::<DRAIN_WORDS>()?;
        Some(Self {
            counters,
            drained: &drained[0],
            samples: rest.as_chunks().0,
            mask,
            head: counters[HEAD].load(Ordering::Relaxed),
            // Acquire: the drain has read what it gave back before this writes there.
            tail: drained[0].load(Ordering::Acquire),
        })
    }
}

impl Ring<'_> {
    /// Keeps one cycle.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn push(&mut self, sample: Sample) {
        if self.head - self.tail > self.mask {
            // Acquire: the drain has read what it gave back before this writes there.
            self.tail = self.drained.load(Ordering::Acquire);
            if self.head - self.tail > self.mask {
                bump(&self.counters[UNRECORDED], 1);
                return;
            }
        }
        // Always there: the ring has `mask + 1` places.
        if let Some(place) = self.samples.get((self.head & self.mask) as usize) {
            let [first, second] = sample.to_words();
            place[0].store(first, Ordering::Relaxed);
            place[1].store(second, Ordering::Relaxed);
        }
        self.head += 1;
        // Release: the drain sees the sample's words before it sees the new head.
        self.counters[HEAD].store(self.head, Ordering::Release);
    }

    /// Counts `releases` that never ran and so have no sample: a file states their number.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn miss(&mut self, releases: u64) {
        bump(&self.counters[MISSED], releases);
    }
}

/// The drain's end: takes samples out in order.
#[derive(Debug)]
pub struct Drain<'a> {
    words: &'a [AtomicU64],
    mask: u64,
    tail: u64,
}

impl Drain<'_> {
    /// Takes the oldest sample; `None` when there is none.
    ///
    /// # Real-time: reader side
    pub fn pop(&mut self) -> Option<Sample> {
        // Acquire: pairs with the release of the head in `push`.
        if self.tail == self.words[HEAD].load(Ordering::Acquire) {
            return None;
        }
        let at = SAMPLES + 2 * (self.tail & self.mask) as usize;
        let word = |at: usize| self.words[at].load(Ordering::Relaxed);
        let sample = Sample::from_words([word(at), word(at + 1)]);
        self.tail += 1;
        // Release: the words are read before the writer may reuse them.
        self.words[TAIL].store(self.tail, Ordering::Release);
        Some(sample)
    }
}

/// A reader's end: looks at the counters, at any time, from any thread.
#[derive(Clone, Copy, Debug)]
pub struct RingView<'a> {
    words: &'a [AtomicU64],
}

impl RingView<'_> {
    fn get(&self, at: usize) -> u64 {
        self.words[at].load(Ordering::Relaxed)
    }

    /// Samples pushed, whether they fit in the ring or not.
    ///
    /// # Real-time: reader side
    pub fn count(&self) -> u64 {
        self.get(HEAD) + self.unrecorded()
    }

    /// Samples that did not fit in the ring.
    ///
    /// # Real-time: reader side
    pub fn unrecorded(&self) -> u64 {
        self.get(UNRECORDED)
    }

    /// Releases that never ran.
    ///
    /// # Real-time: reader side
    pub fn missed(&self) -> u64 {
        self.get(MISSED)
    }
}

#[cfg(test)]
mod tests {
    //! The ring against lists.

    use core::sync::atomic::AtomicBool;
    use std::vec::Vec;

    use super::*;
    use crate::sample::Flags;
    use crate::time::Span;

    fn storage(samples: usize) -> Vec<AtomicU64> {
        (0..words(samples)).map(|_| AtomicU64::new(99)).collect()
    }

    fn sample(cycle: u64, lateness_ns: i64) -> Sample {
        Sample { cycle, lateness: Span::from_ns(lateness_ns), flags: Flags::NONE }
    }

    #[test]
    fn counters_and_samples_agree_with_a_list() {
        let storage = storage(8);
        let SplitRing { mut ring, mut drain, view } = split(&storage).expect("fits");
        assert_eq!((view.count(), view.missed(), view.unrecorded()), (0, 0, 0));
        let lateness = [5, -3, 70_000, 255, 256, i64::MAX, 12];
        for (cycle, &ns) in (0..).zip(&lateness) {
            ring.push(sample(cycle, ns));
        }
        ring.miss(4);
        assert_eq!((view.count(), view.missed()), (7, 4));
        let drained: Vec<_> = core::iter::from_fn(|| drain.pop()).collect();
        let pushed: Vec<_> = (0..).zip(&lateness).map(|(k, &ns)| sample(k, ns)).collect();
        assert_eq!(drained, pushed);
        assert_eq!(view.unrecorded(), 0);
    }

    #[test]
    fn a_full_ring_counts_and_keeps_what_it_has() {
        let storage = storage(4);
        let SplitRing { mut ring, mut drain, view } = split(&storage).expect("fits");
        for cycle in 0..7 {
            ring.push(sample(cycle, 1));
        }
        assert_eq!((view.count(), view.unrecorded()), (7, 3));
        assert_eq!(drain.pop(), Some(sample(0, 1)));
        ring.push(sample(7, 1));
        let rest: Vec<_> = core::iter::from_fn(|| drain.pop()).map(|s| s.cycle).collect();
        assert_eq!(rest, [1, 2, 3, 7]);
    }

    #[test]
    fn too_small_storage_is_refused_and_odd_sizes_round_down() {
        assert!(split(&storage(1)).is_none());
        assert!(split(&[]).is_none());
        let storage = storage(7);
        let SplitRing { mut ring, view, .. } = split(&storage).expect("fits");
        for cycle in 0..5 {
            ring.push(sample(cycle, 1));
        }
        assert_eq!(view.unrecorded(), 1);
    }

    #[test]
    fn a_drain_in_another_thread_sees_every_sample_once_and_whole() {
        let storage = storage(64);
        let SplitRing { mut ring, mut drain, view } = split(&storage).expect("fits");
        let done = AtomicBool::new(false);
        let drained = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut seen = Vec::new();
                loop {
                    // Read before the last look: what was pushed before it is then seen.
                    let last = done.load(Ordering::Acquire);
                    seen.extend(core::iter::from_fn(|| drain.pop()));
                    if last {
                        return seen;
                    }
                    std::thread::yield_now();
                }
            });
            (0..200_000).for_each(|cycle| ring.push(sample(cycle, cycle.cast_signed() * 3)));
            done.store(true, Ordering::Release);
            reader.join().expect("the reader does not panic")
        });
        assert!(!drained.is_empty());
        assert!(drained.windows(2).all(|pair| pair[0].cycle < pair[1].cycle));
        assert!(drained.iter().all(|s| s.lateness.as_ns() == s.cycle.cast_signed() * 3));
        assert_eq!(drained.len() as u64 + view.unrecorded(), view.count());
    }
}
