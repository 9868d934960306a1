//! The outcome of attribution: plain data for a report, a command and a live view.

use punctual_trace::event::{CodeAddress, Tid};

use crate::addresses::RepeatedAddress;
use crate::cause::LateCause;
use crate::config::BlameConfig;
use crate::court::Court;
use crate::culprits::who;
use crate::keep::LateWake;
use crate::ledger::Selection;
use crate::machine::RecordingBegin;
use crate::recall::{JudgedWake, Recall, RecalledThread, RecalledWake};
use crate::senders::{SenderCount, Senders};
use crate::stall::StallSums;
use crate::table::{CauseTable, TableInput, name, name_by, table};
use crate::thread::Thread;
use crate::timeline::TimelineCounts;
use crate::unseen::UnseenWakes;

pub use crate::figures::{ThreadSnapshot, WaitingNow};
pub use crate::ledger::OpenWakes;
pub use crate::passed::PassedReleases;
pub use crate::spread::LatenessBounds;

/// Counts of events, and of what was not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlameCounts {
    /// Events that came in.
    pub events: u64,
    /// Events and gaps with instants that cannot be.
    pub refused: u64,
    /// Events that came after a later one: they count as of then.
    pub disordered: u64,
    /// Events of CPUs beyond the bound.
    pub beyond_cpus: u64,
    /// Times that a thread should have been followed and there was no room.
    pub unfollowed: u64,
    /// Wakes by a timer that was programmed before the begin, or lost: without a release.
    pub unknown_releases: u64,
    /// Wakes before their release: the offset of a clock is not exact.
    pub early: u64,
    /// Timers that made way for others.
    pub displaced_timers: u64,
    /// Expiries on clocks beyond those that are kept apart: steps.
    pub clock_steps: u64,
    /// Waits longer than the memory, of which only sums are left.
    pub condensed: u64,
    /// Sums that did not fit.
    pub uncounted: u64,
    /// The counts of the timelines of all CPUs together.
    pub timeline: TimelineCounts,
}

/// Something in a recording that is not as it should be. Lost records, holes and releases that are
/// not known have figures of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingFlaw {
    /// The number of times that it was met, above 0.
    pub count: u64,
    /// What there were so many of, and what that costs, in words.
    pub words: &'static str,
}

impl BlameCounts {
    /// What was not as it should be; nothing of a recording without a flaw.
    pub fn flaws(&self) -> impl Iterator<Item = RecordingFlaw> {
        let flaws = [
            (self.refused, "events with instants that cannot be, left out"),
            (self.disordered, "events behind a later one, which count as of then"),
            (self.beyond_cpus, "events of CPUs with too high a number, left out"),
            (self.timeline.unclosed, "interrupts without a recorded end"),
            (self.timeline.unopened, "interrupts without a recorded beginning"),
            (self.timeline.too_deep, "interrupts nested too deep, which count as the one outside"),
            (self.unfollowed, "times that a thread was met without room to be followed"),
            (self.displaced_timers, "timers without room, whose wakes may have no release"),
            (self.clock_steps, "expiries on a clock that was set meanwhile"),
            (self.early, "wakes before their release, by an inexact offset of a clock"),
            (self.condensed, "waits longer than what is kept, of whose beginning sums are left"),
            (self.uncounted, "sums without room, so that the shares of small causes are too low"),
        ];
        let is_met = |&(count, _): &(u64, &str)| count > 0;
        flaws.into_iter().filter(is_met).map(|(count, words)| RecordingFlaw { count, words })
    }
}

/// All followed threads, as a live view shows them.
#[derive(Debug, Clone, PartialEq)]
pub struct TopSnapshot {
    /// The instant of the last event, ns.
    pub at_ns: u64,
    /// CPUs with events.
    pub cpus: usize,
    /// Counts of events, and of what was not as it should be.
    pub counts: BlameCounts,
    /// The threads, in the order in which they were seen.
    pub threads: Vec<ThreadSnapshot>,
}

/// One followed thread at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadOutcome {
    /// Its figures.
    pub figures: ThreadSnapshot,
    /// Wakes whose begin is bounded only, and not by CPU time: a switch was not recorded.
    pub censored: u64,
    /// Wakes of which something is missing.
    pub broken: u64,
    /// Wakes across which events were lost: they are left out.
    pub unseen: UnseenWakes,
    /// Wakes that are later than they count, for they reach out of the recording.
    pub open: OpenWakes,
    /// Its releases that passed before it waited for them.
    pub busy: PassedReleases,
    /// Its causes.
    pub table: CauseTable,
}

/// Parts of wakes that come as they were judged, the latest first: some 6 MB of text.
const JUDGED_PARTS: usize = 1 << 15;

/// The outcome of attribution: causes, threads, kept wakes.
#[derive(Debug, Clone, PartialEq)]
pub struct BlameOutcome {
    /// From the first event to the last, without what was not recorded on purpose, ns.
    pub duration_ns: u64,
    /// Causes of all followed threads together.
    pub table: CauseTable,
    /// Each thread that had a wake with a release, most wakes first.
    pub threads: Vec<ThreadOutcome>,
    /// The worst wakes, latest first.
    pub worst: Vec<LateWake>,
    /// An even sample of the other late wakes, in the order of time.
    pub sample: Vec<LateWake>,
    /// Threads that interrupted other CPUs, most sends first.
    pub senders: Vec<SenderCount>,
    /// Counts of events, and of what was not as it should be.
    pub counts: BlameCounts,
    repeated: Vec<RepeatedAddress>,
    /// True where more than chance shows that CPUs did not run.
    shows_stops: bool,
    /// True where as many of the firmware's interrupts were counted as wakes could be theirs.
    counts_firmware: bool,
    /// The cycles that let releases pass, longest first.
    passed: Vec<LateWake>,
    beginning: Option<RecordingBegin>,
    /// The end of the recording, ns on the events' clock.
    ended_ns: u64,
    config: BlameConfig,
}

impl BlameOutcome {
    /// The outcome of a recording that began so, and ended at that instant, ns on the events'
    /// clock.
    pub(crate) fn between(self, beginning: Option<RecordingBegin>, ended_ns: u64) -> Self {
        Self { beginning, ended_ns, ..self }
    }

    /// The name of a cause, with those of this machine.
    #[must_use]
    pub fn name(&self, cause: &LateCause) -> String {
        name(cause, &self.config)
    }

    /// The name of the main cause of a kept wake.
    #[must_use]
    pub fn main_name(&self, wake: &LateWake) -> String {
        let culprits = wake.culprits();
        name_by(&wake.main, &self.config, |task| culprits.words(task))
    }

    /// The name of the cause of a part of a kept wake.
    #[must_use]
    pub fn part_name(&self, wake: &LateWake, cause: &LateCause) -> String {
        name_by(cause, &self.config, |task| who(task, wake.owner(task.tid)))
    }

    /// The function that an address belongs to.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<&str> {
        self.config.symbols.name(address)
    }

    /// The facts that reading the events of its kept wakes alone takes. `has` accepts those whose
    /// events are all there: the others come as they are judged here, and are not whole; `renamed`
    /// gives the address that the capture has in place of the kernel's.
    pub fn recall(
        &self,
        has: impl Fn(Tid, u64) -> bool,
        mut renamed: impl FnMut(CodeAddress) -> CodeAddress,
    ) -> Recall {
        let (mut wakes, mut judged) = (Vec::new(), Vec::new());
        let mut parts_left = JUDGED_PARTS;
        for wake in self.worst.iter().chain(&self.sample) {
            let (tid, release_ns) = (wake.task.tid, wake.release_ns);
            let is_there = has(tid, release_ns);
            let facts = wake.facts.clone().renamed(&mut renamed);
            if is_there && !wake.is_condensed {
                wakes.push(RecalledWake { tid, release_ns, facts });
            } else if let Some(left) = parts_left.checked_sub(wake.parts.len()) {
                parts_left = left;
                judged.push(JudgedWake::new(wake, is_there, facts, &mut renamed));
            }
        }
        let threads = self.threads.iter().map(|thread| {
            let threshold_ns = thread.table.threshold_ns.unwrap_or(0);
            RecalledThread::new(&thread.figures, threshold_ns, thread.unseen, thread.busy)
        });
        let passed = self.passed.iter().map(|cycle| {
            let facts = cycle.facts.clone().renamed(&mut renamed);
            JudgedWake::new(cycle, true, facts, &mut renamed)
        });
        let passed = passed.collect();
        let addresses = self.repeated.iter();
        let addresses = addresses
            .map(|&RepeatedAddress { at, times }| RepeatedAddress { at: renamed(at), times });
        let recall = Recall {
            machine: self.config.machine.clone(),
            calls: self.config.symbols.calls(),
            shows_stops: Some(self.shows_stops),
            counts_firmware: self.counts_firmware,
            beginning: self.beginning.clone(),
            ended_ns: Some(self.ended_ns),
            duration_ns: self.duration_ns,
            threads: threads.collect(),
            addresses: addresses.collect(),
            wakes,
            judged,
            passed,
        };
        recall.sorted()
    }
}

/// Makes the outcome of the sums of all threads; `duration_ns` is the time that was recorded.
pub(crate) fn outcome(
    config: &BlameConfig,
    threads: &[Thread],
    court: &Court,
    senders: &Senders,
    counts: BlameCounts,
    duration_ns: u64,
) -> BlameOutcome {
    let senders = senders.counts();
    let recall = config.recall.as_ref();
    let duration_ns = recall.map_or(duration_ns, |recall| recall.duration_ns);
    let mut inputs = Vec::new();
    let mut thresholds = Vec::new();
    let mut stalls = StallSums::default();
    let recalled = |tid| recall.and_then(|recall| recall.thread(tid));
    let is_seen = |thread: &&Thread| {
        thread.ledger.spread().total() > 0
            || thread.unseen().wakes > 0
            || recalled(thread.task.tid).is_some_and(RecalledThread::has_woken)
    };
    for thread in threads.iter().filter(is_seen) {
        let (selection, threshold_ns) = thread.late_beyond(config);
        thresholds.push((thread.task.tid, threshold_ns));
        let mut figures = thread.snapshot();
        let mut busy = thread.busy();
        let mut unseen = UnseenWakes {
            of_ns: duration_ns,
            events: counts.timeline.lost_events,
            seen_events: counts.events,
            ..thread.unseen()
        };
        if recall.is_some() {
            let recalled = recalled(thread.task.tid);
            unseen = recalled.map_or_else(UnseenWakes::default, |recalled| recalled.unseen);
            busy = recalled.map_or_else(PassedReleases::default, |recalled| recalled.busy);
            if let Some(recalled) = recalled {
                recalled.restore(&mut figures);
            }
        }
        let input = TableInput {
            unseen,
            threshold_ns: Some(threshold_ns),
            wakes: figures.wakes,
            worst: figures.max,
            late: thread.ledger.late(selection),
            open: thread.ledger.open(),
            busy,
            passed: thread.passed.late(Selection::Over),
            duration_ns,
            kernel_priority: Some(thread.task.kernel_priority),
        };
        stalls.merge(&input.late.stalls());
        inputs.push((thread, figures, input));
    }
    // One of these interrupts takes a wake of each thread at most. A capture that was cut down to
    // some wakes has fewer than there were.
    let stopped = inputs.iter().map(|(_, _, input)| input.late.stopped_wakes()).max().unwrap_or(0);
    let counts_firmware = recall.map_or_else(
        || stalls.may_be_of_all_cpus() && config.machine.counts_firmware(stopped),
        |recall| recall.counts_firmware,
    );
    // Of a few wakes alone it cannot be judged anew.
    let shows_stops =
        recall.and_then(|recall| recall.shows_stops).unwrap_or_else(|| stalls.show_stops());
    let mut together: Option<TableInput> = None;
    let mut outcomes = Vec::new();
    for (thread, figures, mut input) in inputs {
        if !shows_stops {
            input.late.take_back_stops();
            input.passed.take_back_stops();
        }
        if counts_firmware {
            input.late.give_to_firmware();
            input.passed.give_to_firmware();
        }
        match &mut together {
            Some(sum) => sum.merge(&input),
            None => together = Some(input.clone()),
        }
        outcomes.push(ThreadOutcome {
            figures,
            censored: thread.ledger.censored(),
            broken: thread.ledger.broken(),
            unseen: input.unseen,
            open: thread.ledger.open(),
            busy: input.busy,
            table: table(&input, config, &senders),
        });
    }
    outcomes.sort_by_key(|thread| std::cmp::Reverse(thread.figures.wakes));
    let together = together.unwrap_or_default();
    let is_late = |wake: &LateWake| {
        let found = thresholds.iter().find(|(tid, _)| *tid == wake.task.tid);
        found.is_some_and(|(_, threshold_ns)| wake.least_ns() > *threshold_ns)
    };
    let shown = |wakes: Vec<LateWake>| -> Vec<LateWake> {
        let mut late: Vec<LateWake> = wakes.into_iter().filter(is_late).collect();
        for wake in &mut late {
            court.resolve(wake);
            if !shows_stops {
                wake.take_back_stops();
            }
            if counts_firmware {
                wake.give_to_firmware();
            }
        }
        late
    };
    let (worst, sample) = court.keep().into_parts();
    BlameOutcome {
        duration_ns,
        table: table(&together, config, &senders),
        threads: outcomes,
        worst: shown(worst),
        sample: shown(sample),
        senders,
        counts,
        repeated: court.repeated(),
        shows_stops,
        counts_firmware,
        passed: court.kept_cycles(),
        beginning: None,
        ended_ns: 0,
        config: config.clone(),
    }
}
