//! A seat: what a task and its releaser share when the task runs in a thread or a process of its
//! own.
//!
//! The executive's thread posts cycles ([`Releaser`]); the task takes them, says when it started
//! and finished, and leaves its outputs ([`Sitter`], [`Outputs`]); anybody may look ([`look`]).
//! Atomic words alone, in the caller's memory: a vector for threads, shared memory for processes.
//! The releaser believes nothing that it reads here: a broken or hostile task can harm its own
//! figures, within what its releases allow, and nothing else. Reads no clock, makes no call: who
//! waits and who wakes is told whether to, and on which word.
//!
//! Words of 64 bits, native order; the four blocks have one writer each and lie on cache lines of
//! their own:
//!
//! | word | holds | writer |
//! |---|---|---|
//! | 0, 1, 2 | [`MAGIC`], [`VERSION`], the size of all | releaser, before the task comes |
//! | 3, 4, 5 | the instant of cycle 0, ns; numerator and denominator of the period, ns | |
//! | 6, 7 | the longest burst, 0 for none; words of one output | |
//! | 16 | cycles posted: the last one's number + 1; all ones for the end; *futex word* | releaser |
//! | 17 | the cycle to be cancelled, + 1; all ones for whichever runs | |
//! | 18, 19 | the first cycle that was posted; results taken | |
//! | 32, 33, 34 | state; the cycle that runs or ran last, + 1; its start, ns | task |
//! | 35, 36, 37 | results left; results that did not fit; the thread's number | |
//! | 48 | which output is committed: see [`Outputs`] | task, then releaser |
//! | 64 … | 32 results: cycle, start, finish | task |
//! | 160 … | two outputs | task, then releaser |

mod look;
mod output;
mod releaser;
mod sitter;

use core::fmt;
use core::sync::atomic::AtomicU64;

use crate::releases::Releases;

pub use look::{Look, State, look};
pub use output::{OUTPUT_WORDS_MAX, Outputs, Source};
pub use releaser::{Done, Door, Entered, Posted, Releaser, clear};
pub use sitter::{Sitter, Turn};

/// The first word of a seat: "punctsea".
pub const MAGIC: u64 = u64::from_le_bytes(*b"punctsea");
/// The layout above.
pub const VERSION: u64 = 1;

const FIRST_NS: usize = 3;
const NUM_NS: usize = 4;
const DEN: usize = 5;
const BURST: usize = 6;
const OUTPUT_WORDS: usize = 7;

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
/// Results that a seat holds: more than a task can finish from one of its releases to the next,
/// unless its burst is longer.
const RESULTS: usize = 32;
const OUTPUT: usize = RING + 3 * RESULTS;

/// The word of [`POSTED`] that ends the task's loop.
const END: u64 = u64::MAX;

/// What is agreed before a task sits down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// When which cycle is.
    pub releases: Releases,
    /// The most releases that run one after the other when the task fell behind; 0: those that
    /// passed are missed.
    pub burst: u32,
    /// Words of its output, at most [`OUTPUT_WORDS_MAX`].
    pub output_words: usize,
}

/// The words that a seat with this output needs.
///
/// # Real-time: setup only
pub const fn words(output_words: usize) -> usize {
    OUTPUT + 2 * output_words
}

/// Why words are no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatError {
    /// They do not begin as a seat does.
    NoSeat,
    /// A seat of another version: this one.
    Version(u64),
    /// It says that it is this many words, which it is not.
    Size(u64),
    /// A period out of range.
    Period,
}

impl fmt::Display for SeatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSeat => f.write_str("no seat of a supervisor"),
            Self::Version(version) => {
                write!(f, "a seat of version {version}; this one sits on {VERSION}")
            }
            Self::Size(words) => write!(f, "a seat that says {words} words and is not"),
            Self::Period => f.write_str("a seat whose period is out of range"),
        }
    }
}

impl core::error::Error for SeatError {}

/// A seat's words, of which the fixed part is there.
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

#[cfg(test)]
mod tests;
