//! The configuration of attribution: the threads that are followed, what counts as late, and the
//! bounds of memory.

use punctual_trace::event::{ShortName, TaskName, Tid};

use crate::recall::Recall;

pub use crate::machine::{CapturedMachine, KernelFiles, Platform, RecordingBegin, RunnableThread};
use crate::symbols::SymbolMap;

/// The threads that are followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowedThreads {
    /// Those of these numbers.
    Threads(Vec<Tid>),
    /// All that are seen at a real-time priority, or at that of SCHED_DEADLINE, but for the
    /// kernel's own `migration/N`.
    RealTime,
    /// All of this name: its first 15 bytes.
    Named(ShortName),
}

impl FollowedThreads {
    /// Returns true where a thread that is seen now is one of them.
    pub(crate) fn includes(&self, task: TaskName) -> bool {
        match self {
            Self::Threads(tids) => tids.contains(&task.tid),
            Self::RealTime => {
                task.tid != 0
                    && task.kernel_priority < 100
                    && !task.name.as_bytes().is_empty()
                    && !task.name.as_bytes().starts_with(b"migration/")
            }
            Self::Named(name) => task.tid != 0 && task.name == *name,
        }
    }
}

/// The lateness beyond which a wake is late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LateThreshold {
    /// Later than this, ns.
    Above(u64),
    /// Later than this share of all wakes of its thread, 0..1: .999 for p99.9.
    Quantile(f64),
}

/// A quantile that can be no threshold, with its value.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("quantile {0} is not accepted: it must be greater than 0 and less than 1")]
pub struct ThresholdError(f64);

impl LateThreshold {
    /// The lateness beyond which wakes are late whatever the others are, ns; of a quantile, none.
    pub(crate) const fn absolute_ns(self) -> u64 {
        match self {
            Self::Above(threshold_ns) => threshold_ns,
            Self::Quantile(_) => u64::MAX,
        }
    }

    /// A threshold at a quantile of all wakes of a thread, within 0 and 1.
    ///
    /// # Errors
    /// Where it is not within 0 and 1, both excluded.
    pub fn quantile(share: f64) -> Result<Self, ThresholdError> {
        if share > 0.0 && share < 1.0 {
            Ok(Self::Quantile(share))
        } else {
            Err(ThresholdError(share))
        }
    }
}

/// Bounds of memory, fixed from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlameBounds {
    /// CPUs; events of others are counted and left out.
    pub cpus: usize,
    /// Segments a CPU, 88 bytes each.
    pub segments: usize,
    /// Call chains a CPU, 136 bytes each.
    pub chains: usize,
    /// Threads that are followed; further ones are counted.
    pub threads: usize,
    /// Pieces of a thread's own past, 104 bytes each.
    pub pieces: usize,
    /// Causes a thread that are kept apart.
    pub causes: usize,
    /// Late wakes kept whole: the latest.
    pub worst: usize,
    /// Late wakes kept whole: an even sample of the others.
    pub reservoir: usize,
}

impl Default for BlameBounds {
    fn default() -> Self {
        Self {
            cpus: 1_024,
            segments: 16_384,
            chains: 1_024,
            threads: 64,
            pieces: 2_048,
            causes: 128,
            worst: 200,
            reservoir: 800,
        }
    }
}

/// The configuration of attribution, fixed before the first event.
#[derive(Debug, Clone, PartialEq)]
pub struct BlameConfig {
    /// The threads that are followed.
    pub follow: FollowedThreads,
    /// The lateness beyond which a wake is late.
    pub late: LateThreshold,
    /// The facts of the machine that was recorded.
    pub machine: CapturedMachine,
    /// True where the events have another clock than CLOCK_MONOTONIC, which sleeps expire on. Then
    /// the offset of that one is learnt from expiries too.
    pub is_clock_foreign: bool,
    /// Names of kernel addresses.
    pub symbols: SymbolMap,
    /// True where threads without a timer of their own get a release: the entry of the interrupt
    /// that wakes them, or their waking by another thread.
    pub event_driven: bool,
    /// Those of the threads that are known to have nothing to do in their cycles: a stretch of
    /// their own code is none.
    pub workless: Vec<Tid>,
    /// True for a capture that was cut down to late wakes and has nothing beside their events. It
    /// is not learnt there which threads wake early and spin, for that takes cycles on time, and
    /// its length says nothing of how often a wake is late.
    pub is_cut: bool,
    /// The facts of the late wakes, where the capture has only those: then no others count.
    pub recall: Option<Recall>,
    /// The bounds of memory.
    pub bounds: BlameBounds,
}

impl BlameConfig {
    /// For a capture that was cut down to its late wakes: with what was known of the machine when
    /// it was recorded.
    #[must_use]
    pub fn recalling(self, recall: Recall) -> Self {
        let recall = recall.sorted();
        Self {
            machine: recall.machine.clone(),
            symbols: self.symbols.clone().with_calls(recall.calls),
            recall: Some(recall),
            ..self
        }
    }
}

impl Default for BlameConfig {
    fn default() -> Self {
        Self {
            follow: FollowedThreads::RealTime,
            late: LateThreshold::Above(50_000),
            machine: CapturedMachine::default(),
            is_clock_foreign: false,
            symbols: SymbolMap::default(),
            event_driven: true,
            workless: Vec::new(),
            is_cut: false,
            recall: None,
            bounds: BlameBounds::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_none_and_every_wake() {
        assert_eq!(LateThreshold::quantile(0.999), Ok(LateThreshold::Quantile(0.999)));
        for wrong in [0.0, 1.0, -1.0, f64::NAN, 99.9] {
            let error = LateThreshold::quantile(wrong).unwrap_err().to_string();
            assert!(error.contains("greater than 0") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn real_time_leaves_the_kernels_own_movers_out() {
        let task = |name: &[u8], kernel_priority| TaskName {
            tid: 5,
            name: ShortName::new(name),
            kernel_priority,
        };
        assert!(FollowedThreads::RealTime.includes(task(b"servo", 9)));
        assert!(FollowedThreads::RealTime.includes(task(b"deadline", -1)));
        assert!(!FollowedThreads::RealTime.includes(task(b"migration/1", -1)));
        assert!(!FollowedThreads::RealTime.includes(task(b"bash", 120)));
        assert!(!FollowedThreads::RealTime.includes(TaskName { tid: 0, ..task(b"swapper/0", 9) }));
        assert!(FollowedThreads::Named(ShortName::new(b"bash")).includes(task(b"bash", 120)));
        assert!(FollowedThreads::Threads(vec![5]).includes(task(b"bash", 120)));
        assert!(!FollowedThreads::Threads(vec![6]).includes(task(b"bash", 120)));
    }
}
