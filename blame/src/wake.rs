//! A finished wait of a followed thread, cut out and ready to be judged.

use punctual_trace::event::{CodeAddress, TaskName};

use crate::begin::WakeBegin;
use crate::cause::Unexplained;
use crate::counters::WakeCounts;
use crate::frequency::SlowClock;
use crate::past::{Piece, Window};
use crate::release::ReleaseAnchor;
use crate::stall::StallEvidence;
use crate::symbols::{Interrupted, KernelPlace};
use crate::timeline::Activity;

/// A call chain of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WindowChain {
    /// The index of the piece that it came with.
    pub(crate) index: usize,
    pub(crate) cpu: u32,
    /// The thread that it was taken of.
    pub(crate) tid: u32,
    pub(crate) addresses: Box<[CodeAddress]>,
    pub(crate) interrupted: Interrupted,
    pub(crate) place: KernelPlace,
}

/// A wait, from the release to the first instruction.
#[derive(Debug, Clone)]
pub(crate) struct Wake {
    pub(crate) thread: usize,
    /// The thread, as it was then.
    pub(crate) task: TaskName,
    pub(crate) anchor: ReleaseAnchor,
    pub(crate) release_ns: u64,
    /// The latest expiry that its timer slack allows, ns on the events' clock.
    pub(crate) latest_ns: u64,
    /// The instant at which the timer was programmed, ns; `None` where none released it.
    pub(crate) armed_ns: Option<u64>,
    pub(crate) ran_ns: u64,
    /// The earliest instant at which it can have run: before `ran_ns` where a switch was not
    /// recorded.
    pub(crate) ran_from_ns: u64,
    pub(crate) cpu: u32,
    /// The thread that ran before it; all empty where no switch shows that.
    pub(crate) before: TaskName,
    /// The thread that stopped it by a signal last, where that was seen.
    pub(crate) stop_sender: Option<TaskName>,
    /// The judged part of the wait before its window, where the wait is longer than the memory.
    pub(crate) begin: Option<WakeBegin>,
    pub(crate) window: Window,
    pub(crate) chains: Vec<WindowChain>,
    /// Evidence on stretches without an event, each with the index of its piece.
    pub(crate) stalls: Vec<(usize, StallEvidence)>,
    /// Stretches in which its CPU was slower than usual, each with the index of its piece.
    pub(crate) clocks: Vec<(usize, SlowClock)>,
    /// Counts of the processor around it.
    pub(crate) counts: WakeCounts,
    /// True where the timer that ends throttling expired just before it ran.
    pub(crate) is_unthrottled: bool,
    /// True where it still waited when the recording ended, which counts as its run.
    pub(crate) is_waiting: bool,
    pub(crate) is_whole: bool,
}

impl Wake {
    /// From the release to the first event that shows it running, ns.
    pub(crate) const fn lateness_ns(&self) -> u64 {
        self.ran_ns - self.release_ns
    }

    /// Lower bound of its lateness, ns.
    pub(crate) const fn least_ns(&self) -> u64 {
        self.ran_from_ns.saturating_sub(self.release_ns)
    }

    /// Returns true where the instant at which it ran is only bounded.
    pub(crate) const fn is_censored(&self) -> bool {
        self.ran_from_ns < self.ran_ns
    }

    /// Returns true where it is later than what counts as its lateness: its release or its run lies
    /// outside of the recording.
    pub(crate) fn is_open(&self) -> bool {
        self.is_waiting || self.anchor == ReleaseAnchor::Unseen
    }

    /// Returns true where something of it is missing, for this reason.
    pub(crate) fn lacks(&self, reason: Unexplained) -> bool {
        let is_it = |piece: &Piece| match reason {
            Unexplained::Lost => piece.activity == Activity::Lost,
            Unexplained::Hole => piece.is_hole,
            Unexplained::Unrecorded => piece.activity == Activity::Unseen,
            Unexplained::NoRule | Unexplained::TooMany => false,
        };
        self.window.pieces.iter().any(is_it)
            || self.begin.as_ref().is_some_and(|begin| begin.lacks(reason))
    }

    /// Returns true where an interrupt or a thread released it, and no timer.
    pub(crate) const fn is_event_driven(&self) -> bool {
        self.anchor.is_event_driven()
    }

    /// The evidence on a piece without events; empty where there is none.
    pub(crate) fn stall(&self, index: usize) -> StallEvidence {
        self.stalls
            .iter()
            .find(|(piece, _)| *piece == index)
            .map_or_else(StallEvidence::default, |(_, evidence)| *evidence)
    }

    /// The frequencies of a piece's CPU, where it was slower than usual.
    pub(crate) fn slow_clock(&self, index: usize) -> Option<SlowClock> {
        self.clocks.iter().find(|(piece, _)| *piece == index).map(|(_, clock)| *clock)
    }

    /// The chain of the first timer interrupt at or behind a piece that shows this thread: where an
    /// interrupt of another CPU came first, the timer's still shows what it found.
    pub(crate) fn chain_behind(&self, index: usize, tid: u32, cpu: u32) -> Option<&WindowChain> {
        self.chains
            .iter()
            .find(|chain| chain.index >= index && chain.tid == tid && chain.cpu == cpu)
    }

    /// The chain nearest to a piece that shows this thread.
    pub(crate) fn chain_near(&self, index: usize, tid: u32, cpu: u32) -> Option<&WindowChain> {
        self.chains
            .iter()
            .filter(|chain| chain.tid == tid && chain.cpu == cpu)
            .min_by_key(|chain| chain.index.abs_diff(index))
    }
}

/// A wake that was just finished, before it is known how late others will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedWake {
    /// The thread, as it was then.
    pub task: TaskName,
    /// Its release, ns on the events' clock.
    pub release_ns: u64,
    /// The instant at which its timer was programmed, ns on the events' clock; `None` where an
    /// interrupt or a thread released it.
    pub armed_ns: Option<u64>,
    /// The first event that shows it running, ns on the events' clock.
    pub ran_ns: u64,
    /// Lower bound of its lateness, ns.
    pub least_ns: u64,
    /// Its margin: the time before its goal at which it wakes in order to spin, ns, as far as is
    /// known yet.
    pub margin_ns: u64,
    /// True where it is late as far as is known yet; of a quantile, where it may be.
    pub is_late: bool,
}

impl FinishedWake {
    pub(crate) const fn new(wake: &Wake) -> Self {
        Self {
            task: wake.task,
            release_ns: wake.release_ns,
            armed_ns: wake.armed_ns,
            ran_ns: wake.ran_ns,
            least_ns: wake.least_ns(),
            margin_ns: 0,
            is_late: false,
        }
    }
}
