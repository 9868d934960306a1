//! A finished wait of a followed thread, cut out and ready to be judged.

use punctual_trace::event::{CodeAddress, TaskName};

use crate::begin::WakeBegin;
use crate::cause::{CauseKind, Unexplained};
use crate::counters::CountedStretch;
use crate::facts::WakeFacts;
use crate::part::WakePart;
use crate::past::{ByPiece, Piece, Window};
use crate::release::{Activation, ReleaseAnchor};
use crate::stall::StallEvidence;
use crate::symbols::{Interrupted, KernelPlace, SymbolMap};
use crate::timeline::{Activity, ChainRecord, Moment};

/// A call chain of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WindowChain {
    cpu: u32,
    /// The thread that it was taken of.
    tid: u32,
    pub(crate) addresses: Box<[CodeAddress]>,
    pub(crate) interrupted: Interrupted,
    pub(crate) place: KernelPlace,
}

impl WindowChain {
    /// The chain that was taken on a CPU; `work` is the function that its thread runs as a worker
    /// of the kernel.
    pub(crate) fn new(
        record: &ChainRecord,
        cpu: u32,
        work: Option<CodeAddress>,
        symbols: &SymbolMap,
    ) -> Self {
        let addresses = record.addresses();
        Self {
            cpu,
            tid: record.tid,
            addresses: addresses.into(),
            interrupted: symbols.interrupted(addresses),
            place: match work {
                Some(function) => KernelPlace::Work(symbols.start(function)),
                None => symbols.place(addresses),
            },
        }
    }
}

/// A run that ends a wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) cpu: u32,
    /// The earliest instant at which it can have begun: before `at_ns` where a switch was not
    /// recorded.
    pub(crate) from_ns: u64,
    pub(crate) at_ns: u64,
    /// The thread that ran before it; all empty where no switch shows that.
    pub(crate) before: TaskName,
    /// True where the thread still waits, and the end of the recording stands for its run.
    pub(crate) is_waiting: bool,
    /// True where the CPU time that the kernel booked later shows when it began.
    pub(crate) is_inferred: bool,
}

/// The kernel books a thread's CPU time from the waking that chose it on: it runs 7 to 13 µs behind
/// that (Linux 6.18, recorded, n 3 297), and within this, ns.
const CHOSEN_NS: u64 = 50_000;

impl Run {
    /// A run that begins at this moment.
    pub(crate) const fn new(now: Moment, before: TaskName) -> Self {
        let Moment { cpu, at_ns } = now;
        Self { cpu, from_ns: at_ns, at_ns, before, is_waiting: false, is_inferred: false }
    }

    /// The same, which by its CPU time began at `began_ns`, or a moment behind that.
    pub(crate) fn chosen_at(self, began_ns: u64) -> Self {
        let from_ns = began_ns.clamp(self.from_ns, self.at_ns);
        let at_ns = self.at_ns.min(from_ns + CHOSEN_NS);
        Self { from_ns, at_ns, is_inferred: true, ..self }
    }
}

/// A release that its thread has answered, and that is not judged yet.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) activation: Activation,
    pub(crate) run: Run,
    /// The judged part of the wait for it.
    pub(crate) begin: Option<WakeBegin>,
    /// The counts of the cycle before.
    pub(crate) cycle: Option<CountedStretch>,
    /// True where CPU time that is booked later may show when the run began.
    pub(crate) awaits_cpu_time: bool,
    /// True where its thread may still be on its way to its own code.
    pub(crate) awaits_own_code: bool,
}

impl Answer {
    /// Returns true where nothing more is to come that says when its thread ran.
    pub(crate) const fn is_settled(&self) -> bool {
        !self.awaits_cpu_time && !self.awaits_own_code
    }

    /// The same, whose run began no earlier than at `began_ns`.
    pub(crate) fn not_before(self, began_ns: u64) -> Self {
        let from_ns = began_ns.clamp(self.run.from_ns, self.run.at_ns);
        Self { run: Run { from_ns, ..self.run }, awaits_cpu_time: false, ..self }
    }

    /// The same, whose run began by its CPU time at `began_ns`.
    pub(crate) fn chosen_at(self, began_ns: u64) -> Self {
        let activation = Activation { is_whole: true, ..self.activation };
        let waited_ns = self.begin.as_ref().map_or(0, WakeBegin::to_ns);
        let run = self.run.chosen_at(began_ns.max(waited_ns));
        Self { activation, run, awaits_cpu_time: false, ..self }
    }
}

/// A wait, from the release to the first instruction.
#[derive(Debug, Clone)]
pub(crate) struct Wake {
    pub(crate) thread: usize,
    /// The thread, as it was then.
    pub(crate) task: TaskName,
    /// Its release, no later than its run.
    pub(crate) activation: Activation,
    pub(crate) run: Run,
    /// The judged part of the wait before its window, where the wait is longer than the memory.
    pub(crate) begin: Option<WakeBegin>,
    pub(crate) window: Window,
    pub(crate) chains: ByPiece<WindowChain>,
    /// Of one that is not judged anew, the call chain that shows its main cause.
    pub(crate) judged_chain: Box<[CodeAddress]>,
    pub(crate) facts: WakeFacts,
    /// True where the timer that ends throttling expired just before it ran.
    pub(crate) is_unthrottled: bool,
}

impl Wake {
    /// The wake of the thread at this place by a release, up to a run: without a window.
    pub(crate) fn new(thread: usize, task: TaskName, activation: Activation, run: Run) -> Self {
        let release_ns = activation.release_ns.min(run.at_ns);
        let latest_ns = activation.latest_ns.max(release_ns);
        let from_ns = run.from_ns.clamp(release_ns, run.at_ns);
        Self {
            thread,
            task,
            activation: Activation { release_ns, latest_ns, ..activation },
            run: Run { from_ns, ..run },
            begin: None,
            window: Window::default(),
            chains: ByPiece::default(),
            judged_chain: Box::default(),
            facts: WakeFacts::default(),
            is_unthrottled: false,
        }
    }

    /// From the release to the first event that shows it running, ns.
    pub(crate) const fn lateness_ns(&self) -> u64 {
        self.run.at_ns - self.activation.release_ns
    }

    /// Lower bound of its lateness, ns.
    pub(crate) const fn least_ns(&self) -> u64 {
        self.run.from_ns - self.activation.release_ns
    }

    /// Returns true where the instant at which it ran is only bounded.
    pub(crate) const fn is_censored(&self) -> bool {
        self.run.from_ns < self.run.at_ns
    }

    /// Returns true where it is later than what counts as its lateness: its release or its run lies
    /// outside of the recording.
    pub(crate) fn is_open(&self) -> bool {
        self.run.is_waiting || self.activation.anchor == ReleaseAnchor::Unseen
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

    /// The kind of the cause that made the wake before late, where that explains this thread's own
    /// time up to `to_ns`: before it programmed the timer of this wake.
    pub(crate) fn followed(&self, to_ns: u64) -> Option<CauseKind> {
        let armed_ns = self.activation.armed_ns.filter(|&armed_ns| to_ns <= armed_ns)?;
        let overrun_ns = armed_ns.checked_sub(self.activation.release_ns)?;
        self.facts.previous?.explains(overrun_ns, to_ns)
    }

    /// The evidence on a piece without events; empty where there is none.
    pub(crate) fn stall(&self, index: usize) -> StallEvidence {
        self.facts.stalls.get(index).copied().unwrap_or_default()
    }

    /// The evidence on the stretch without events that a part lies in.
    pub(crate) fn stall_around(&self, part: &WakePart) -> Option<&StallEvidence> {
        let holds = |piece: &Piece| piece.from_ns <= part.from_ns && part.to_ns <= piece.to_ns;
        let mut stalls = self.facts.stalls.iter();
        stalls.find(|(index, _)| holds(&self.window.pieces[*index])).map(|(_, stall)| stall)
    }

    /// The chain of the first timer interrupt at or behind a piece that shows this thread: where an
    /// interrupt of another CPU came first, the timer's still shows what it found.
    pub(crate) fn chain_behind(&self, index: usize, tid: u32, cpu: u32) -> Option<&WindowChain> {
        let mut chains = self.chains.iter().filter(|(piece, _)| *piece >= index);
        chains.find(|(_, chain)| chain.tid == tid && chain.cpu == cpu).map(|(_, chain)| chain)
    }

    /// The chain nearest to a piece that shows this thread.
    pub(crate) fn chain_near(&self, index: usize, tid: u32, cpu: u32) -> Option<&WindowChain> {
        let chains = self.chains.iter().filter(|(_, chain)| chain.tid == tid && chain.cpu == cpu);
        chains.min_by_key(|(piece, _)| piece.abs_diff(index)).map(|(_, chain)| chain)
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
    /// The instant by which it ran, ns on the events' clock.
    pub ran_ns: u64,
    /// The event that shows this, ns on the events' clock.
    pub seen_ns: u64,
    /// Lower bound of its lateness, ns.
    pub least_ns: u64,
    /// Its margin: the time before its goal at which it wakes in order to spin, ns, as far as is
    /// known yet.
    pub margin_ns: u64,
    /// True where it is late as far as is known yet; of a quantile, where it may be.
    pub is_late: bool,
}

impl FinishedWake {
    /// One that the event at `seen_ns` finished.
    pub(crate) const fn new(wake: &Wake, seen_ns: u64) -> Self {
        Self {
            seen_ns,
            task: wake.task,
            release_ns: wake.activation.release_ns,
            armed_ns: wake.activation.armed_ns,
            ran_ns: wake.run.at_ns,
            least_ns: wake.least_ns(),
            margin_ns: 0,
            is_late: false,
        }
    }
}
