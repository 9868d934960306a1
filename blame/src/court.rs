//! Judges finished wakes: learns what is normal from those on time, books the others, keeps sums
//! and the latest.
//!
//! The first wakes of a thread wait until there is something normal to compare them with.

use std::collections::VecDeque;

use punctual_trace::event::{CodeAddress, Tid};

use crate::account::{account, account_until};
use crate::addresses::{AddressBook, FirstWake, RepeatedAddress, repeated_certainty};
use crate::begin::WakeBegin;
use crate::cause::{CauseKind, Certainty, LateCause, RuleId};
use crate::config::BlameConfig;
use crate::keep::{Keep, LateWake};
use crate::ledger::Ledger;
use crate::part::WakePart;
use crate::passed::PassedCycle;
use crate::programs::ThreadPrograms;
use crate::recall::Recall;
use crate::rules::Kernel;
use crate::stall::STALL_NS;
use crate::tasks::TaskTable;
use crate::thread::Thread;
use crate::wake::Wake;

/// Wakes of all threads that wait for a baseline.
const PENDING: usize = 1_024;
/// Pieces of them together: 7 MB.
const PENDING_PIECES: usize = 1 << 16;

/// The configuration, and the names of threads, beside the wakes that are judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) config: &'a BlameConfig,
    pub(crate) tasks: &'a TaskTable,
}

impl Known<'_> {
    /// The kernel and its machine, as rules look at them.
    const fn kernel(&self) -> Kernel<'_> {
        Kernel { symbols: &self.config.symbols, machine: &self.config.machine }
    }

    /// The programs of the threads that these parts name.
    fn programs(&self, parts: &[WakePart]) -> ThreadPrograms {
        let culprits = parts.iter().filter_map(|part| part.cause.culprit());
        ThreadPrograms::of(culprits.map(|task| task.tid), |tid| self.tasks.program(tid))
    }
}

/// The state of judging: wakes that wait for a baseline, kept late wakes, addresses of gaps.
#[derive(Debug, Clone)]
pub(crate) struct Court {
    pending: VecDeque<Wake>,
    pending_pieces: usize,
    keep: Keep,
    /// Cycles that let releases pass.
    passed: Keep,
    addresses: AddressBook,
}

impl Court {
    pub(crate) fn new(config: &BlameConfig) -> Self {
        let addresses = config.recall.as_ref().map(Recall::addresses);
        Self {
            pending: VecDeque::new(),
            pending_pieces: 0,
            keep: Keep::new(config.bounds.worst, config.bounds.reservoir),
            passed: Keep::new(config.bounds.worst, 0),
            addresses: AddressBook::recalled(addresses),
        }
    }

    /// Takes a finished wake; returns true where it is late as far as is known yet.
    pub(crate) fn accept(&mut self, wake: Wake, threads: &mut [Thread], known: Known<'_>) -> bool {
        let config = known.config;
        if let Some(recall) = &config.recall {
            return self.recall(wake, recall, threads, known);
        }
        let number = wake.thread;
        let thread = &mut threads[number];
        thread.learn(&wake, config);
        let is_late = thread.is_late(config, wake.least_ns());
        let pieces = self.pending_pieces + wake.window.pieces.len();
        if thread.is_new() && self.pending.len() < PENDING && pieces <= PENDING_PIECES {
            self.pending_pieces = pieces;
            self.pending.push_back(wake);
            return is_late;
        }
        self.settle(number, threads, known);
        self.judge(wake, threads, known);
        is_late
    }

    /// Takes a finished wake of a capture that has only late ones, by the facts that it has;
    /// returns false where there are none of this wake.
    fn recall(
        &mut self,
        mut wake: Wake,
        recall: &Recall,
        threads: &mut [Thread],
        known: Known<'_>,
    ) -> bool {
        let release_ns = wake.activation.release_ns;
        let facts = recall.facts(wake.task.tid, release_ns, wake.least_ns());
        let Some(facts) = facts.cloned() else { return false };
        // Whoever wrote them: those of pieces that are there.
        wake.facts = facts.within(wake.window.pieces.len());
        self.accept_judged(wake, threads, known);
        true
    }

    /// Takes a late wake that has the facts by which it was judged.
    pub(crate) fn accept_judged(&mut self, wake: Wake, threads: &mut [Thread], known: Known<'_>) {
        threads[wake.thread].ledger.note(&wake, known.config.late.absolute_ns());
        self.book(wake, true, threads, known);
    }

    /// The begin of a wait that goes on, with what of its window ends by then: that is judged now.
    pub(crate) fn begin(
        mut wake: Wake,
        thread: &Thread,
        known: Known<'_>,
        to_ns: u64,
    ) -> WakeBegin {
        let release_ns = wake.activation.release_ns;
        match &known.config.recall {
            Some(recall) => {
                let facts = recall.facts(wake.task.tid, release_ns, u64::MAX);
                let past = facts.map(|facts| (facts.usual, facts.previous));
                (wake.facts.usual, wake.facts.previous) = past.unwrap_or_default();
                wake.facts.is_workless = facts.is_some_and(|facts| facts.is_workless);
            }
            None => thread.inform(&mut wake, known.config),
        }
        let begin = wake.begin.clone();
        let mut begin = begin.unwrap_or_else(|| WakeBegin::new(release_ns, wake.facts.usual));
        let mut left = begin.left();
        let parts = account_until(&wake, to_ns, known.kernel(), &mut left);
        begin.add(&parts, left);
        begin
    }

    /// What made a cycle so long that it went on past its next release, at `next_ns`; `None` where
    /// it did not.
    pub(crate) fn passed(
        mut cycle: Wake,
        thread: &Thread,
        known: Known<'_>,
        next_ns: u64,
    ) -> Option<PassedCycle> {
        thread.inform(&mut cycle, known.config);
        PassedCycle::new(cycle, next_ns, known.kernel())
    }

    /// Books a cycle of a thread that let releases pass.
    pub(crate) fn book_passed(
        &mut self,
        cycle: PassedCycle,
        threads: &mut [Thread],
        known: Known<'_>,
    ) {
        let (mut wake, parts) = cycle.into_parts();
        wake.facts.programs = known.programs(&parts);
        let main = threads[wake.thread].passed.add(&wake, &parts, 0);
        self.passed.offer(LateWake::new(wake, parts, None, main));
    }

    /// Books one of a capture of late wakes, as it was judged.
    pub(crate) fn recall_passed(&mut self, wake: Wake, threads: &mut [Thread], known: Known<'_>) {
        let parts = account(&wake, known.kernel());
        threads[wake.thread].passed.add(&wake, &parts, 0);
    }

    /// Judges what still waits of a thread.
    fn settle(&mut self, number: usize, threads: &mut [Thread], known: Known<'_>) {
        if self.pending.is_empty() {
            return;
        }
        let (due, rest): (VecDeque<Wake>, _) =
            self.pending.drain(..).partition(|wake| wake.thread == number);
        self.pending = rest;
        self.pending_pieces = self.pending.iter().map(|wake| wake.window.pieces.len()).sum();
        due.into_iter().for_each(|wake| self.judge(wake, threads, known));
    }

    /// Judges all that still waits.
    pub(crate) fn settle_all(&mut self, threads: &mut [Thread], known: Known<'_>) {
        threads.iter_mut().for_each(Thread::learn_early);
        while let Some(wake) = self.pending.pop_front() {
            self.judge(wake, threads, known);
        }
    }

    fn judge(&mut self, mut wake: Wake, threads: &mut [Thread], known: Known<'_>) {
        let thread = &threads[wake.thread];
        let is_late = thread.is_late(known.config, wake.least_ns());
        thread.inform(&mut wake, known.config);
        self.book(wake, is_late, threads, known);
    }

    /// Books a wake by its facts, `is_late` as far as is known yet.
    fn book(&mut self, mut wake: Wake, is_late: bool, threads: &mut [Thread], known: Known<'_>) {
        let config = known.config;
        let number = wake.thread;
        let mut parts = account(&wake, known.kernel());
        debug_assert_eq!(
            parts.iter().map(WakePart::length_ns).sum::<u64>(),
            wake.lateness_ns(),
            "the parts of a wake are its lateness"
        );
        if config.recall.is_none() {
            wake.facts.programs = known.programs(&parts);
        }
        // What is kept has its addresses still: how often each came is known in the end.
        let has_address = is_late && parts.iter().any(|part| address(part).is_some());
        let unsettled = has_address.then(|| parts.clone());
        let programs = &wake.facts.programs;
        let counted = match is_late {
            true => self.addresses_of(&mut parts, threads, programs),
            false => Vec::new(),
        };
        let threshold_ns = config.late.absolute_ns();
        let thread = &mut threads[number];
        let main = thread.ledger.add(&wake, &parts, threshold_ns);
        for Counted { at, times, cause } in counted {
            if repeated_certainty(times).is_some() {
                thread.ledger.note_repeats(cause, times);
            } else if let Some(part) = parts.iter().find(|part| address(part) == Some(at)) {
                let booking = Ledger::booking(&wake, &parts, part, threshold_ns);
                let mut again = *part;
                rewrite(&mut again, part.certainty);
                again.cause = again.cause.grouped(&wake.facts.programs);
                self.addresses.set_first(at, FirstWake { thread: number, booking, again });
            }
        }
        thread.remember(&wake, &parts, main);
        if is_late {
            thread.count_late(&wake, &parts, main);
            self.keep.offer(LateWake::new(wake, parts, unsettled, main));
        }
    }

    /// Counts the addresses of gaps in a late wake, each once, and rewrites the parts of those that
    /// came before, also of their first wake.
    fn addresses_of(
        &mut self,
        parts: &mut [WakePart],
        threads: &mut [Thread],
        programs: &ThreadPrograms,
    ) -> Vec<Counted> {
        let mut counted: Vec<Counted> = Vec::new();
        for part in parts {
            let Some(at) = address(part).filter(|_| part.length_ns() >= STALL_NS) else {
                continue;
            };
            let known = counted.iter().find(|known| known.at == at).map(|known| known.times);
            let times = known.unwrap_or_else(|| self.addresses.count(at));
            if let Some(certainty) = repeated_certainty(times) {
                rewrite(part, certainty);
                if let Some(FirstWake { thread, booking, again }) = self.addresses.take_first(at) {
                    let ledger = &mut threads[thread].ledger;
                    ledger.rebook(&booking, &WakePart { certainty, ..again });
                    ledger.note_repeats(again.cause, times);
                }
            }
            if known.is_none() {
                counted.push(Counted { at, times, cause: part.cause.grouped(programs) });
            }
        }
        counted
    }

    /// Rewrites a kept wake by what is known of addresses in the end.
    pub(crate) fn resolve(&self, wake: &mut LateWake) {
        let mut longest: Option<WakePart> = None;
        for part in &mut wake.parts {
            let times = address(part).map_or(0, |at| self.addresses.times(at));
            let Some(certainty) = repeated_certainty(times) else { continue };
            if part.length_ns() < STALL_NS {
                continue;
            }
            rewrite(part, certainty);
            if longest.is_none_or(|longest| longest.length_ns() < part.length_ns()) {
                longest = Some(*part);
            }
        }
        let is_open = wake.main.kind() == CauseKind::HostOrInterruptsOff;
        if let Some(part) = longest.filter(|_| is_open) {
            wake.main = part.cause.grouped(&wake.facts.programs);
        }
    }

    /// Threads and releases of the wakes that are kept now, or may be.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (Tid, u64)> + '_ {
        let pending = self.pending.iter().map(|wake| (wake.task.tid, wake.activation.release_ns));
        self.keep.keys().chain(pending)
    }

    /// Addresses at which several late wakes had a gap.
    pub(crate) fn repeated(&self) -> Vec<RepeatedAddress> {
        self.addresses.repeated().collect()
    }

    /// The kept wakes, which are the worst and the sample.
    pub(crate) fn keep(&self) -> Keep {
        self.keep.clone()
    }

    /// The kept cycles that let releases pass, longest first.
    pub(crate) fn kept_cycles(&self) -> Vec<LateWake> {
        self.passed.clone().into_parts().0
    }
}

/// An address in a late wake: how often it came so far, and what its gap is booked to.
#[derive(Debug, Clone, Copy)]
struct Counted {
    at: CodeAddress,
    times: u64,
    cause: LateCause,
}

/// The address of a gap in kernel code.
fn address(part: &WakePart) -> Option<CodeAddress> {
    match part.cause {
        LateCause::HostOrInterruptsOff { at, .. } if at != 0 => Some(at),
        _ => None,
    }
}

/// A gap at an address that came often is one with interrupts off.
fn rewrite(part: &mut WakePart, certainty: Certainty) {
    if let LateCause::HostOrInterruptsOff { task, inside, .. } = part.cause {
        part.cause = LateCause::InterruptsOff { task, inside };
        part.rule = RuleId::RepeatedAddress;
        part.certainty = certainty;
    }
}
