//! The recorder: every sample of a loop in fixed memory, with a live reader.
//!
//! What is promised: memory is the caller's, fixed before the loop; a push allocates nothing, locks
//! nothing, fails never and takes a few nanoseconds; count, sum, minimum and maximum are exact; a
//! sample that finds the ring full is counted as unrecorded and stays in the histogram and in the
//! exact numbers; the reader may look at any time without disturbing the writer.
//!
//! What cannot be done: there is one writer and one drain; the ring never overwrites what was not
//! drained; a live reader sees each number whole, yet two numbers may be one push apart.
//!
//! Split it with [`split`]: the [`Recorder`] goes to the loop, the [`Drain`] to the thread that
//! writes samples away, and any number of [`View`]s to whoever watches.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::bucket;
use crate::sample::Sample;
use crate::time::Span;

/// Words of the counters that the loop writes: two cache lines that no other thread writes.
const WRITER_WORDS: usize = 16;
/// Words of the counter that the drain writes: a cache line of its own, padded to two.
const DRAIN_WORDS: usize = 16;

const COUNT: usize = 0;
const SUM: usize = 1;
const MIN: usize = 2;
const MAX: usize = 3;
const MAX_CYCLE: usize = 4;
const MISSED: usize = 5;
const UNRECORDED: usize = 6;
const EARLY: usize = 7;
const OVERFLOW: usize = 8;
const HEAD: usize = 9;
const TAIL: usize = WRITER_WORDS;
const BUCKETS: usize = WRITER_WORDS + DRAIN_WORDS;
const RING: usize = BUCKETS + bucket::COUNT;

/// The words that a recorder with a ring of `samples` needs.
///
/// # Real-time: setup only
pub const fn words(samples: usize) -> usize {
    RING + 2 * samples
}

/// The three ends of a recorder over `words`, which is cleared. The ring takes the largest power of
/// two of samples that fits; `None` when not even two do.
///
/// # Real-time: setup only
pub fn split(words: &[AtomicU64]) -> Option<(Recorder<'_>, Drain<'_>, View<'_>)> {
    let samples = words.len().checked_sub(RING)? / 2;
    let capacity = match samples.checked_ilog2() {
        Some(bits) if bits > 0 => 1u64 << bits,
        _ => return None,
    };
    for word in words {
        word.store(0, Ordering::Relaxed);
    }
    words[MIN].store(i64::MAX.cast_unsigned(), Ordering::Relaxed);
    words[MAX].store(i64::MIN.cast_unsigned(), Ordering::Relaxed);
    let (counters, rest) = words.split_first_chunk()?;
    let (drained, rest) = rest.split_first_chunk::<DRAIN_WORDS>()?;
    let (buckets, rest) = rest.split_first_chunk()?;
    let recorder = Recorder {
        counters,
        drained: &drained[0],
        buckets,
        ring: rest.as_chunks().0,
        mask: capacity - 1,
        head: 0,
        tail: 0,
        count: 0,
        sum: 0,
        min: i64::MAX,
        max: i64::MIN,
    };
    Some((recorder, Drain { words, mask: capacity - 1, tail: 0 }, View { words }))
}

/// The readers' ends of a recorder that was made over `words`.
///
/// # Real-time: setup only
pub fn readers(words: &[AtomicU64]) -> Option<(Drain<'_>, View<'_>)> {
    let samples = words.len().checked_sub(RING)? / 2;
    let mask = (1u64 << samples.checked_ilog2()?) - 1;
    let tail = words[TAIL].load(Ordering::Acquire);
    Some((Drain { words, mask, tail }, View { words }))
}

/// The loop's end: the one writer.
#[derive(Debug)]
pub struct Recorder<'a> {
    // Arrays of known length, so that an index costs no check.
    counters: &'a [AtomicU64; WRITER_WORDS],
    drained: &'a AtomicU64,
    buckets: &'a [AtomicU64; bucket::COUNT],
    ring: &'a [[AtomicU64; 2]],
    /// Samples of the ring − 1: a power of two − 1.
    mask: u64,
    /// Samples put into the ring, ever.
    head: u64,
    /// Samples taken from the ring, as last seen.
    tail: u64,
    count: u64,
    sum: i64,
    min: i64,
    max: i64,
}

/// One more: a plain load and store, for there is one writer.
#[inline]
fn bump(word: &AtomicU64, by: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

impl<'a> Recorder<'a> {
    /// The loop's end as it was left in `words`, over which a recorder was made: for who cannot
    /// keep one. There must be no other.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn resume(words: &'a [AtomicU64]) -> Option<Self> {
        let samples = words.len().checked_sub(RING)? / 2;
        let mask = (1u64 << samples.checked_ilog2()?) - 1;
        let (counters, rest) = words.split_first_chunk()?;
        let (drained, rest) = rest.split_first_chunk::<DRAIN_WORDS>()?;
        let (buckets, rest) = rest.split_first_chunk()?;
        let get = |at: usize| words[at].load(Ordering::Relaxed);
        Some(Self {
            counters,
            drained: &drained[0],
            buckets,
            ring: rest.as_chunks().0,
            mask,
            head: get(HEAD),
            // Acquire: the drain has read what it gave back before this writes there.
            tail: words[TAIL].load(Ordering::Acquire),
            count: get(COUNT),
            sum: get(SUM).cast_signed(),
            min: get(MIN).cast_signed(),
            max: get(MAX).cast_signed(),
        })
    }
}

impl Recorder<'_> {
    #[inline]
    fn put(&self, at: usize, value: u64) {
        self.counters[at].store(value, Ordering::Relaxed);
    }

    #[inline]
    fn enqueue(&mut self, sample: Sample) {
        if self.head - self.tail > self.mask {
            // Acquire: the drain has read what it gave back before this writes there.
            self.tail = self.drained.load(Ordering::Acquire);
            if self.head - self.tail > self.mask {
                bump(&self.counters[UNRECORDED], 1);
                return;
            }
        }
        // Always there: the ring has `mask + 1` places.
        if let Some(place) = self.ring.get((self.head & self.mask) as usize) {
            let [first, second] = sample.to_words();
            place[0].store(first, Ordering::Relaxed);
            place[1].store(second, Ordering::Relaxed);
        }
        self.head += 1;
        // Release: the drain sees the sample's words before it sees the new head.
        self.counters[HEAD].store(self.head, Ordering::Release);
    }
}

impl Recorder<'_> {
    /// Keeps one cycle.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn push(&mut self, sample: Sample) {
        let lateness_ns = sample.lateness.as_ns();
        self.count += 1;
        self.sum = self.sum.wrapping_add(lateness_ns);
        self.put(COUNT, self.count);
        self.put(SUM, self.sum.cast_unsigned());
        if lateness_ns < self.min {
            self.min = lateness_ns;
            self.put(MIN, lateness_ns.cast_unsigned());
        }
        if lateness_ns > self.max {
            self.max = lateness_ns;
            self.put(MAX, lateness_ns.cast_unsigned());
            self.put(MAX_CYCLE, sample.cycle);
        }
        match bucket::index(lateness_ns) {
            bucket::Place::In(at) => {
                if let Some(bucket) = self.buckets.get(at) {
                    bump(bucket, 1);
                }
            }
            bucket::Place::Below => bump(&self.counters[EARLY], 1),
            bucket::Place::Above => bump(&self.counters[OVERFLOW], 1),
        }
        self.enqueue(sample);
    }

    /// Counts `releases` that never ran.
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
        // Acquire: pairs with the release of the head in `enqueue`.
        if self.tail == self.words[HEAD].load(Ordering::Acquire) {
            return None;
        }
        let at = RING + 2 * (self.tail & self.mask) as usize;
        let word = |at: usize| self.words[at].load(Ordering::Relaxed);
        let sample = Sample::from_words([word(at), word(at + 1)]);
        self.tail += 1;
        // Release: the words are read before the writer may reuse them.
        self.words[TAIL].store(self.tail, Ordering::Release);
        Some(sample)
    }
}

/// A watcher's end: looks at the exact numbers and the histogram, at any time, from any thread.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    words: &'a [AtomicU64],
}

impl View<'_> {
    fn get(&self, at: usize) -> u64 {
        self.words[at].load(Ordering::Relaxed)
    }

    /// Samples pushed, whether they fit in the ring or not.
    ///
    /// # Real-time: reader side
    pub fn count(&self) -> u64 {
        self.get(COUNT)
    }

    /// Sum of all lateness, in ns; wraps after 292 years of lateness.
    ///
    /// # Real-time: reader side
    pub fn sum_ns(&self) -> i64 {
        self.get(SUM).cast_signed()
    }

    /// The exact smallest lateness; `None` before the first sample.
    ///
    /// # Real-time: reader side
    pub fn min(&self) -> Option<Span> {
        (self.count() > 0).then(|| Span::from_ns(self.get(MIN).cast_signed()))
    }

    /// The exact largest lateness; `None` before the first sample.
    ///
    /// # Real-time: reader side
    pub fn max(&self) -> Option<Span> {
        (self.count() > 0).then(|| Span::from_ns(self.get(MAX).cast_signed()))
    }

    /// The cycle of the largest lateness.
    ///
    /// # Real-time: reader side
    pub fn max_cycle(&self) -> u64 {
        self.get(MAX_CYCLE)
    }

    /// Releases that never ran.
    ///
    /// # Real-time: reader side
    pub fn missed(&self) -> u64 {
        self.get(MISSED)
    }

    /// Samples that did not fit in the ring.
    ///
    /// # Real-time: reader side
    pub fn unrecorded(&self) -> u64 {
        self.get(UNRECORDED)
    }

    /// Samples with a negative lateness, which the histogram has no bucket for.
    ///
    /// # Real-time: reader side
    pub fn early(&self) -> u64 {
        self.get(EARLY)
    }

    /// Samples beyond the last bucket of the histogram.
    ///
    /// # Real-time: reader side
    pub fn overflow(&self) -> u64 {
        self.get(OVERFLOW)
    }

    /// The count of bucket `index`, in [0, `bucket::COUNT`); its bounds are `bucket::bounds`.
    ///
    /// # Real-time: reader side
    pub fn bucket(&self, index: usize) -> u64 {
        if index < bucket::COUNT { self.get(BUCKETS + index) } else { 0 }
    }
}

#[cfg(test)]
mod tests;
