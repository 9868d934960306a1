//! What the process of a load has reported so far.
//!
//! Shared between its reader, the supervisor and whoever wants a report; nothing here waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::progress::Progress;
use super::protocol::Line;
use super::report::LoadDeath;

/// One count, the last of its unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counted {
    pub(super) unit: String,
    pub(super) count: u64,
    pub(super) at_ns: u64,
}

/// What a load has reported so far.
#[derive(Default)]
pub(super) struct Observed {
    pub(super) counts: Vec<Counted>,
    pub(super) notes: Vec<String>,
    pub(super) deaths: Vec<LoadDeath>,
    /// Whether it worked all the time; of no use for one that reports at its end only.
    pub(super) progress: Progress,
    /// The counts of a process that died before.
    carried: Vec<Counted>,
    pub(super) failed: Option<String>,
}

/// Shared between a reader, the supervisor and whoever wants a report.
pub(super) type Shared = Arc<Mutex<Observed>>;

/// What was observed, also from a thread that panicked: each line is taken in whole.
pub(super) fn lock(observed: &Shared) -> MutexGuard<'_, Observed> {
    observed.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observed {
    /// The next process adds to the counts of the one that died.
    pub(super) fn carry(&mut self) {
        self.carried = self.counts.clone();
        self.progress.pause();
    }

    /// Takes in one line.
    pub(super) fn take_in(&mut self, line: Line) {
        match line {
            Line::Ready => self.progress.begin(),
            Line::Note(note) => {
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
            Line::Failed(why) => self.failed = Some(why),
            Line::Count { count, at_ns, unit } => {
                let carried = self.carried.iter().find(|before| before.unit == unit);
                let (more, more_ns) = carried.map_or((0, 0), |before| (before.count, before.at_ns));
                let (count, at_ns) = (count.saturating_add(more), at_ns.saturating_add(more_ns));
                self.progress.report((count, at_ns));
                let counted = Counted { unit, count, at_ns };
                match self.counts.iter_mut().find(|before| before.unit == counted.unit) {
                    Some(before) => *before = counted,
                    None => self.counts.push(counted),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_count_of_each_unit_stays() {
        let mut observed = Observed::default();
        let count = |count, unit: &str| Line::Count { count, at_ns: 5, unit: unit.to_owned() };
        let lines = [count(1, "a"), count(2, "b"), count(3, "a")];
        lines.into_iter().for_each(|line| observed.take_in(line));
        observed.take_in(Line::Note("x".into()));
        observed.take_in(Line::Note("x".into()));
        let counts: Vec<_> = observed.counts.iter().map(|c| (c.count, c.unit.as_str())).collect();
        assert_eq!(counts, [(3, "a"), (2, "b")]);
        assert_eq!(observed.notes, ["x"]);
    }

    #[test]
    fn counts_of_a_second_process_are_added() {
        let mut observed = Observed::default();
        let count = |count, at_ns| Line::Count { count, at_ns, unit: "a".to_owned() };
        observed.take_in(count(3, 5));
        observed.carry();
        observed.take_in(count(1, 2));
        observed.take_in(count(2, 4));
        assert_eq!((observed.counts[0].count, observed.counts[0].at_ns), (5, 9));
    }
}
