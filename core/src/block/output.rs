//! The outputs of a task: two buffers, one of them committed, so that a reader never sees half an
//! output and a safe value can take over.
//!
//! The task writes into the buffer that is not committed and then commits it by one store. After
//! the task has ended, and only then, its supervisor commits the safe value in the same way. The
//! commit word holds: in bit 0 the buffer, in bit 1 whether it is the safe value, then a count.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use super::{COMMIT, Words};

/// The longest output: 4 KiB.
pub const OUTPUT_WORDS_MAX: usize = 512;

const SAFE: u64 = 2;
const ONE: u64 = 4;

/// How often a reader tries before it gives up.
const TRIES: u32 = 64;

/// Where the value of an output comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The task committed it.
    Task,
    /// The safe value, from the supervisor.
    Safe,
}

/// The outputs of one task block.
#[derive(Clone, Copy, Debug)]
pub struct Outputs<'a> {
    commit: &'a AtomicU64,
    /// Two of `words` each.
    buffers: &'a [AtomicU64],
    words: usize,
}

impl<'a> Outputs<'a> {
    /// The outputs of `words` words in a task block; `None` where it has no room for them.
    ///
    /// # Real-time: setup only
    pub fn of(block: &'a [AtomicU64], words: usize) -> Option<Self> {
        let of = Words::of(block)?;
        let buffers = of.rest.get(..words.checked_mul(2)?)?;
        Some(Self { commit: &of.fixed[COMMIT], buffers, words })
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
