//! Facts beside its events by which a wake is judged; a capture of late wakes keeps them.

use punctual_trace::event::{CodeAddress, TaskName};
use serde::{Deserialize, Serialize};

use crate::cause::{CauseKind, LateCause};
use crate::counters::WakeCounts;
use crate::culprits::Culprit;
use crate::frequency::SlowClock;
use crate::normal::WakeTimes;
use crate::part::WakePart;
use crate::past::ByPiece;
use crate::programs::ThreadPrograms;
use crate::stall::StallEvidence;

/// The latest wake of the same thread before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PreviousWake {
    lateness_ns: u64,
    /// The instant at which it ran, ns on the events' clock; 0 where that was not written.
    #[serde(default)]
    ran_ns: u64,
    kind: CauseKind,
    /// The root of its lateness; `None` where it has no single cause, or that was not written.
    #[serde(default)]
    root: Option<RootCause>,
}

impl PreviousWake {
    /// The kind of its cause, where that explains the thread's own time up to `to_ns` in a cycle
    /// that overran by so much, ns: its lateness alone made it overrun, or it still waited.
    pub(crate) fn explains(&self, overrun_ns: u64, to_ns: u64) -> Option<CauseKind> {
        (self.lateness_ns >= overrun_ns || to_ns <= self.ran_ns).then_some(self.kind)
    }

    /// The instant at which it ran, ns on the events' clock; 0 where that is not known.
    pub(crate) const fn ran_ns(&self) -> u64 {
        self.ran_ns
    }
}

/// The root of a wake's lateness: its main cause, or where it was late by the wake before it, the
/// root of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RootCause {
    /// The cause, as rows have it.
    cause: LateCause,
    /// The thread that it names.
    culprit: Option<Culprit>,
}

/// Facts beside the events by which a wake is judged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WakeFacts {
    /// Times that are usual for its thread, ns; 0 as long as none were learnt.
    pub(crate) usual: WakeTimes,
    /// The judged wake of the same thread before it.
    pub(crate) previous: Option<PreviousWake>,
    /// Evidence on stretches without an event.
    pub(crate) stalls: ByPiece<StallEvidence>,
    /// Stretches in which its CPU was slower than usual.
    #[serde(default)]
    pub(crate) clocks: ByPiece<SlowClock>,
    /// The thread that stopped it by a signal last, where that was seen.
    pub(crate) stop_sender: Option<TaskName>,
    /// True where it has nothing to do in its cycles.
    #[serde(default)]
    pub(crate) is_workless: bool,
    /// Counts of the processor around it.
    #[serde(default)]
    pub(crate) counts: WakeCounts,
    /// The programs of the threads that its causes name.
    #[serde(default)]
    pub(crate) programs: ThreadPrograms,
}

impl WakeFacts {
    /// The facts of a window of so many pieces: what is said of others is left out.
    pub(crate) fn within(mut self, pieces: usize) -> Self {
        self.stalls.truncate(pieces);
        self.clocks.truncate(pieces);
        self
    }

    /// With the addresses of functions that a capture has in place of the kernel's.
    pub(crate) fn renamed(mut self, renamed: impl FnMut(CodeAddress) -> CodeAddress) -> Self {
        let root = self.previous.as_mut().and_then(|previous| previous.root.as_mut());
        if let Some(root) = root {
            root.cause = root.cause.renamed(renamed);
        }
        self
    }

    /// Limits each of its times to this, ns: whoever wrote it, sums hold it.
    pub(crate) fn limit(&mut self, longest_ns: u64) {
        self.usual = self.usual.at_most(longest_ns);
        if let Some(previous) = &mut self.previous {
            previous.lateness_ns = previous.lateness_ns.min(longest_ns);
        }
    }

    /// Returns true where a part counts for the root of the wake before, from which it follows.
    pub(crate) fn has_root(&self, part: &WakePart) -> bool {
        self.root(part).is_some()
    }

    /// The root cause of a part that follows from the wake before; `None` of other parts.
    fn root(&self, part: &WakePart) -> Option<RootCause> {
        let follows = matches!(part.cause, LateCause::Follows { .. });
        self.previous.filter(|_| follows)?.root
    }

    /// The cause that a part counts for in rows: its own, grouped, or the root of the wake before
    /// where it follows from that.
    pub(crate) fn counted(&self, part: &WakePart) -> LateCause {
        self.root(part).map_or_else(|| part.cause.grouped(&self.programs), |root| root.cause)
    }

    /// The thread that a part names, with its program.
    pub(crate) fn culprit(&self, part: &WakePart) -> Option<Culprit> {
        if let Some(root) = self.root(part) {
            return root.culprit;
        }
        let task = part.cause.culprit().filter(|task| task.tid != 0)?;
        Some(Culprit { task, program: self.programs.find(task.tid) })
    }

    /// The facts that the wake behind this one needs of it, which ran then, ns, so late, by this
    /// main cause.
    pub(crate) fn for_next(
        &self,
        ran_ns: u64,
        lateness_ns: u64,
        parts: &[WakePart],
        main: LateCause,
    ) -> PreviousWake {
        // A wake that follows has the kind of its root, and is no root itself.
        let (kind, is_root) = match main {
            LateCause::Follows { kind } => (kind, false),
            _ => (main.kind(), main != LateCause::NoSingle),
        };
        let root = is_root.then(|| {
            let of_main = parts.iter().filter(|part| self.counted(part) == main);
            let culprit = of_main.filter_map(|part| self.culprit(part)).next();
            RootCause { cause: main, culprit }
        });
        PreviousWake { lateness_ns, ran_ns, kind, root }
    }
}
