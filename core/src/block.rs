//! The task block: the memory that an executive and a task share when the task runs in a thread or
//! a process of its own.
//!
//! The executive's thread posts cycles ([`TaskServer`]); the task takes them, stamps its start and
//! finish, and writes its outputs ([`TaskClient`], [`Outputs`]); any other thread may read
//! ([`look`]). Atomic words only, in the caller's memory: a vector for threads, shared memory for
//! processes. The server checks everything that it reads here: a broken or hostile task can spoil
//! its own figures, within what its releases allow, and nothing else. Reads no clock and makes no
//! system call: results say whether the caller has to sleep or to wake, and on which word.
//!
//! Words of 64 bits, native order; the four blocks have one writer each and lie on cache lines of
//! their own:
//!
//! | word | holds | writer |
//! |---|---|---|
//! | 0, 1, 2 | [`MAGIC`], [`VERSION`], the size of all | server, before the task starts |
//! | 3, 4, 5 | the instant of cycle 0, ns; numerator and denominator of the period, ns | |
//! | 6, 7, 8 | the longest burst, 0 for none; words of one output; places in a frame, or 0 | |
//! | 16 | cycles posted: the last one's number + 1; all ones for the end; *futex word* | server |
//! | 17 | the cycle to be cancelled, + 1; all ones for whichever runs | |
//! | 18, 19 | the first cycle that was posted; results taken | |
//! | 32, 33, 34 | state; the cycle that runs or ran last, + 1; its start, ns | task |
//! | 35, 36, 37 | results left; results that did not fit; the thread's number | |
//! | 48 | which output is committed: see [`Outputs`] | task, then server |
//! | 64 … | 32 results: cycle, start, finish | task |
//! | 160 … | the places, ns after the first of them | server, before the task starts |
//! | 224 … | two outputs | task, then server |

mod client;
mod places;
mod server;

use core::fmt;
use core::sync::atomic::{Ordering, fence};

use crate::atomic::AtomicU64;
use crate::releases::Releases;
use crate::time::Instant;

pub use client::{ClientStep, TaskClient};
pub use places::{PLACES_MAX, Places};
pub use server::{Admission, Done, Entered, Posted, TaskServer, end_task};

/// The first word of a task block: "punctsea".
pub const MAGIC: u64 = u64::from_le_bytes(*b"punctsea");
/// The layout above.
pub const VERSION: u64 = 2;

const FIRST_NS: usize = 3;
const NUM_NS: usize = 4;
const DEN: usize = 5;
const BURST: usize = 6;
const OUTPUT_WORDS: usize = 7;
const PLACE_COUNT: usize = 8;

const POSTED: usize = 16;
const CANCEL: usize = 17;
const FIRST: usize = 18;
const TAIL: usize = 19;

const STATE: usize = 32;
const TAKEN: usize = 33;
const START: usize = 34;
const HEAD: usize = 35;
const DROPPED: usize = 36;
const THREAD: usize = 37;

const COMMIT: usize = 48;

const RING: usize = 64;
/// Results that a task block holds: more than a task can finish from one release to the next,
/// unless its burst is longer.
const RESULTS: usize = 32;
const PLACES: usize = RING + 3 * RESULTS;
const OUTPUT: usize = PLACES + PLACES_MAX;

/// The word of [`POSTED`] that ends the task's loop.
const END: u64 = u64::MAX;

/// The terms on which a task is released, fixed before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terms {
    /// The releases of its cycles, where they come evenly; otherwise the even releases of as many
    /// cycles that begin with the first place of frame 0 ([`Terms::release`]).
    pub releases: Releases,
    /// The places of the releases in a frame; [`Places::EVEN`] where they come evenly.
    pub places: Places,
    /// The most releases that run one after the other when the task fell behind; 0: those that
    /// passed are missed.
    pub burst: u32,
    /// Words of its output, at most [`OUTPUT_WORDS_MAX`].
    pub output_words: usize,
}

impl Terms {
    /// Of a task that is released evenly, without output; `burst` as [`Terms::burst`].
    ///
    /// # Real-time: setup only
    pub const fn even(releases: Releases, burst: u32) -> Self {
        Self { releases, places: Places::EVEN, burst, output_words: 0 }
    }

    /// The instant at which cycle `k` is due.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn release(&self, k: u64) -> Instant {
        self.places.release(&self.releases, k)
    }

    /// The count of releases up to `now`, one at `now` included.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn released(&self, now: Instant) -> u64 {
        self.places.released(&self.releases, now)
    }

    /// The cycle to run after `k`, which was still running at `now`: the next one, or, when that
    /// one's release has passed too, the first whose release is still to come.
    #[inline]
    fn next(&self, k: u64, now: Instant) -> u64 {
        let following = k.saturating_add(1);
        if now < self.release(following) { following } else { self.released(now).max(following) }
    }
}

/// The words that a task block with this output needs.
///
/// # Real-time: setup only
pub const fn words(output_words: usize) -> usize {
    OUTPUT + 2 * output_words
}

/// Makes an empty task block of `whole`, for the next child: neither a task nor a loop may use it
/// meanwhile (see [`Admission::is_left`]). The outputs stay as they were committed.
///
/// # Real-time: setup only
pub fn clear(whole: &[AtomicU64], terms: &Terms) {
    let Some(block) = Words::of(whole) else { return };
    let put = |at: usize, value: u64| block.fixed[at].store(value, Ordering::Relaxed);
    for at in [POSTED, CANCEL, FIRST, TAIL, STATE, TAKEN, START, HEAD, DROPPED, THREAD] {
        put(at, 0);
    }
    (RING..RING + 3 * RESULTS).for_each(|at| put(at, 0));
    restate(whole, terms);
}

/// States the terms of a task block again, which its task may have overwritten, so that readers
/// find its outputs. Changes nothing else.
///
/// # Real-time: setup only
pub fn restate(whole: &[AtomicU64], terms: &Terms) {
    let Some(block) = Words::of(whole) else { return };
    let put = |at: usize, value: u64| block.fixed[at].store(value, Ordering::Relaxed);
    put(1, VERSION);
    put(2, words(terms.output_words) as u64);
    put(FIRST_NS, terms.releases.first().as_ns());
    put(NUM_NS, terms.releases.period().num_ns());
    put(DEN, terms.releases.period().den());
    put(BURST, u64::from(terms.burst));
    put(OUTPUT_WORDS, terms.output_words as u64);
    put(PLACE_COUNT, terms.places.offsets_ns().len() as u64);
    for (at, offset_ns) in (PLACES..).zip(terms.places.offsets_ns()) {
        put(at, *offset_ns);
    }
    block.fixed[0].store(MAGIC, Ordering::Release);
}

/// The reason for which words are no task block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskBlockError {
    /// They do not begin as a task block does.
    NoBlock,
    /// A task block of another version: this one.
    Version(u64),
    /// It states this size, in words, and has another.
    Size(u64),
    /// A period out of range.
    Period,
    /// So many places of a frame, or places in no order.
    Places(u64),
}

impl fmt::Display for TaskBlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBlock => f.write_str("this memory is not a task block of a supervisor"),
            Self::Version(version) => {
                write!(f, "task block version {version} is not supported, only {VERSION}")
            }
            Self::Size(words) => {
                write!(f, "the size of the task block is wrong: it states {words} words")
            }
            Self::Period => f.write_str("the period in the task block is out of range"),
            Self::Places(count) => write!(
                f,
                "the places in the task block are out of order, or more than {PLACES_MAX} (it has \
                 {count})"
            ),
        }
    }
}

impl core::error::Error for TaskBlockError {}

/// The words of a task block; the fixed part is complete.
#[derive(Clone, Copy, Debug)]
struct Words<'a> {
    fixed: &'a [AtomicU64; OUTPUT],
    rest: &'a [AtomicU64],
}

impl<'a> Words<'a> {
    fn of(words: &'a [AtomicU64]) -> Option<Self> {
        let (fixed, rest) = words.split_first_chunk()?;
        Some(Self { fixed, rest })
    }
}

/// The state of a task, as it wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskState {
    /// No task has opened the block.
    #[default]
    Empty,
    /// A task requests releases.
    Asking,
    /// Waits for a release.
    Idle,
    /// Runs a cycle.
    Running,
    /// The task has ended.
    Gone,
    /// None of these: an invalid value.
    Unknown,
}

impl TaskState {
    const fn code(self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Asking => 1,
            Self::Idle => 2,
            Self::Running => 3,
            Self::Gone => 4,
            Self::Unknown => u64::MAX,
        }
    }

    fn of(code: u64) -> Self {
        let known = [Self::Empty, Self::Asking, Self::Idle, Self::Running, Self::Gone];
        usize::try_from(code).ok().and_then(|at| known.get(at)).copied().unwrap_or(Self::Unknown)
    }
}

/// The state of a task, read from its task block by another thread: a watchdog or a supervisor. The
/// task's own words are not checked: one that runs wild can write anything there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Its state.
    pub state: TaskState,
    /// The cycle that it runs or ran last; `None` before the first.
    pub cycle: Option<u64>,
    /// The instant at which it started that one.
    pub start: Instant,
    /// Results that did not fit in the task block.
    pub dropped: u64,
    /// The number of its thread, not checked here.
    pub thread: u64,
}

/// Reads a task block; `None` when the words are too few for one.
///
/// # Real-time: reader side
pub fn look(words: &[AtomicU64]) -> Option<Look> {
    let block = Words::of(words)?;
    let get = |at: usize| block.fixed[at].load(Ordering::Acquire);
    Some(Look {
        state: TaskState::of(get(STATE)),
        cycle: get(TAKEN).checked_sub(1),
        start: Instant::from_ns(get(START)),
        dropped: get(DROPPED),
        thread: get(THREAD),
    })
}

/// The longest output: 4 KiB.
pub const OUTPUT_WORDS_MAX: usize = 512;

const SAFE: u64 = 2;
const ONE: u64 = 4;

/// Attempts of a reader before it gives up.
const TRIES: u32 = 64;

/// The source of an output's value. These two are all: whoever acts on an output must know each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A value that the task committed.
    Task,
    /// The safe value, from the supervisor.
    Safe,
}

/// The outputs of one task block: two buffers, one of them committed, so that a reader never sees
/// half an output and a safe value can take over.
///
/// The task writes into the buffer that is not committed and then commits it by one store. After
/// the task has ended, and only then, its supervisor commits the safe value in the same way. The
/// commit word holds: in bit 0 the buffer, in bit 1 whether it is the safe value, then a count.
#[derive(Clone, Copy, Debug)]
pub struct Outputs<'a> {
    commit: &'a AtomicU64,
    /// Two buffers of `words` words each.
    buffers: &'a [AtomicU64],
    words: usize,
}

impl<'a> Outputs<'a> {
    /// The outputs of `words` words in a task block; `None` where it is too small for them.
    ///
    /// # Real-time: setup only
    pub fn of(block: &'a [AtomicU64], words: usize) -> Option<Self> {
        let block_words = Words::of(block)?;
        let buffers = block_words.rest.get(..words.checked_mul(2)?)?;
        Some(Self { commit: &block_words.fixed[COMMIT], buffers, words })
    }

    /// Words of one output.
    ///
    /// # Real-time: in loop
    pub fn words(&self) -> usize {
        self.words
    }

    fn buffer(&self, commit: u64) -> &'a [AtomicU64] {
        let (first, second) = self.buffers.split_at(self.words);
        if commit & 1 == 0 { first } else { second }
    }

    /// Commits `value`, of which as many words count as an output has; the rest of a shorter one
    /// stays as it was two commits ago. One writer at a time: the task, or who has seen its end.
    ///
    /// # Real-time: in loop
    pub fn commit(&self, value: &[u64], source: Source) {
        let last = self.commit.load(Ordering::Relaxed);
        // The commit before this is there before anything that is written now.
        fence(Ordering::Release);
        for (to, from) in self.buffer(last ^ 1).iter().zip(value) {
            to.store(*from, Ordering::Relaxed);
        }
        let safe = if source == Source::Safe { SAFE } else { 0 };
        let next = ((last & !(ONE - 1)).wrapping_add(ONE)) | safe | (last & 1 ^ 1);
        self.commit.store(next, Ordering::Release);
    }

    /// The committed output into `value`, and whose it is; `None` when the task committed faster
    /// than this could read, 64 times.
    ///
    /// # Real-time: reader side
    pub fn read(&self, value: &mut [u64]) -> Option<Source> {
        for _ in 0..TRIES {
            let before = self.commit.load(Ordering::Acquire);
            for (to, from) in value.iter_mut().zip(self.buffer(before)) {
                *to = from.load(Ordering::Relaxed);
            }
            // What was read is read before the word is again.
            fence(Ordering::Acquire);
            if self.commit.load(Ordering::Relaxed) == before {
                return Some(if before & SAFE == 0 { Source::Task } else { Source::Safe });
            }
            core::hint::spin_loop();
        }
        None
    }
}

#[cfg(test)]
mod tests;
