//! The work: a number of steps, the same in every cycle.
//!
//! Allocates at the beginning only.

use std::hint::black_box;

use punctual_os::clock::{ClockId, now_ns};

/// Words of the memory that is walked through: 4 MiB, more than a core's own cache.
const WORDS: usize = 1 << 19;
/// From one word to the next, in words: no line twice in a row, and no page that a prefetcher would
/// guess. Odd, so that all words are met.
const STRIDE: usize = 4_099;
/// Steps that are measured at first.
const STEPS_FIRST: u64 = 64;
/// Measurements that the shortest is taken of.
const TRIES: usize = 9;

/// What kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Multiplications of which each waits for the one before.
    Integer,
    /// Loads and stores all over 4 MiB.
    Memory,
    /// Both in turn.
    Mixed,
}

impl WorkKind {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Memory => "memory",
            Self::Mixed => "mixed",
        }
    }
}

/// A piece of work of this kind.
#[derive(Debug)]
pub(super) struct Piece {
    kind: WorkKind,
    words: Vec<u64>,
    at: usize,
    value: u64,
    steps: u64,
}

impl Piece {
    /// One that takes about `target_ns` on this CPU when nothing disturbs it: the steps are counted
    /// anew until the shortest of some measurements is long enough.
    pub(super) fn calibrate(kind: WorkKind, target_ns: u64) -> Self {
        let words = if kind == WorkKind::Integer { 0 } else { WORDS };
        let mut piece = Self { kind, words: vec![1; words], at: 0, value: 1, steps: STEPS_FIRST };
        loop {
            let took_ns = piece.shortest_ns().max(1);
            if took_ns >= target_ns / 2 {
                let steps = u128::from(piece.steps) * u128::from(target_ns) / u128::from(took_ns);
                piece.steps = u64::try_from(steps).unwrap_or(u64::MAX).max(1);
                return piece;
            }
            piece.steps *= 2;
        }
    }

    fn shortest_ns(&mut self) -> u64 {
        let measure = |piece: &mut Self| {
            let before_ns = now_ns(ClockId::Monotonic);
            piece.run();
            now_ns(ClockId::Monotonic) - before_ns
        };
        (0..TRIES).map(|_| measure(self)).min().unwrap_or(0)
    }

    /// How many steps it has.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Does it once.
    #[inline(never)]
    pub(super) fn run(&mut self) {
        for step in 0..self.steps {
            let memory = match self.kind {
                WorkKind::Integer => false,
                WorkKind::Memory => true,
                WorkKind::Mixed => step % 16 == 0,
            };
            if memory {
                self.at = (self.at + STRIDE) % WORDS;
                self.value = self.value.wrapping_add(self.words[self.at]);
                self.words[self.at] = self.value;
            } else {
                self.value = self.value.wrapping_mul(self.value) | 1;
            }
        }
        black_box(self.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_has_steps_and_longer_ones_have_more() {
        for kind in [WorkKind::Integer, WorkKind::Memory, WorkKind::Mixed] {
            let (short, long) = (Piece::calibrate(kind, 20_000), Piece::calibrate(kind, 2_000_000));
            assert!(short.steps() > 0, "{kind:?}");
            // A hundred times the time: ten times the steps leave room for a busy machine.
            assert!(long.steps() > 10 * short.steps(), "{kind:?}: {short:?}");
        }
    }

    #[test]
    fn all_memory_is_met() {
        let mut piece = Piece { steps: WORDS as u64, ..Piece::calibrate(WorkKind::Memory, 1_000) };
        piece.words.fill(0);
        (piece.at, piece.value) = (0, 1);
        piece.run();
        assert!(piece.words.iter().all(|word| *word > 0));
    }
}
