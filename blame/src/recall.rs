//! What was known when wakes were judged and does not lie in the events around them: with it, those
//! events alone give the same answer again.
//!
//! A capture that was cut down to the windows of late wakes no longer shows what is usual, how
//! often a CPU is silent by chance, or at which addresses other wakes had their gaps. These are
//! inputs of the rules, not their results: whoever reads such a capture judges anew.

use std::collections::BTreeMap;

use punctual_trace::event::{CodeAddress, TaskName, Tid};
use serde::{Deserialize, Serialize};

use crate::config::{BlameConfig, Platform};
use crate::normal::WakeTimes;
use crate::outcome::{BlameOutcome, ThreadSnapshot};
use crate::rules::PreviousWake;
use crate::stall::StallEvidence;

/// Longer times than these are taken for these, ns: 13 days.
const LONGEST_NS: u64 = 1 << 50;
/// More wakes than these are taken for these.
const WAKES_MAX: u64 = 1 << 50;

/// What was known beside the events when a wake was judged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WakeFacts {
    /// What was usual for its thread.
    pub(crate) usual: WakeTimes,
    /// The wake before.
    pub(crate) previous: Option<PreviousWake>,
    /// Of stretches without an event, by piece.
    pub(crate) stalls: Vec<(usize, StallEvidence)>,
    /// Who stopped it by a signal last.
    pub(crate) stop_sender: Option<TaskName>,
}

/// A wake of the capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecalledWake {
    tid: Tid,
    release_ns: u64,
    facts: WakeFacts,
}

/// The figures of a thread over all of its wakes, of which the capture has the late ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecalledThread {
    tid: Tid,
    pub(crate) threshold_ns: u64,
    pub(crate) wakes: u64,
    period_ns: Option<u64>,
    margin_ns: u64,
    p50_ns: u64,
    p99_ns: u64,
    pub(crate) max_ns: u64,
}

impl RecalledThread {
    fn of(figures: &ThreadSnapshot, threshold_ns: u64) -> Self {
        Self {
            tid: figures.task.tid,
            threshold_ns,
            wakes: figures.wakes,
            period_ns: figures.period_ns,
            margin_ns: figures.margin_ns,
            p50_ns: figures.p50_ns,
            p99_ns: figures.p99_ns,
            max_ns: figures.max_ns,
        }
    }

    /// The figures that the recording had.
    pub(crate) fn restore(&self, figures: &mut ThreadSnapshot) {
        figures.wakes = self.wakes;
        figures.period_ns = self.period_ns;
        figures.margin_ns = self.margin_ns;
        figures.p50_ns = self.p50_ns;
        figures.p99_ns = self.p99_ns;
        figures.max_ns = self.max_ns;
    }
}

/// An address at which so many late wakes had a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepeatedAddress {
    pub(crate) at: CodeAddress,
    pub(crate) times: u64,
}

/// Everything of a capture that was cut down to its late wakes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recall {
    platform: Platform,
    kernel: Option<(u32, u32)>,
    clock_offsets_ns: Vec<i64>,
    duration_ns: u64,
    threads: Vec<RecalledThread>,
    addresses: Vec<RepeatedAddress>,
    wakes: Vec<RecalledWake>,
}

impl Recall {
    /// Of an outcome, for the kept wakes that `has` accepts; `renamed` gives the address that the
    /// capture has in place of the kernel's.
    pub fn new(
        outcome: &BlameOutcome,
        has: impl Fn(Tid, u64) -> bool,
        mut renamed: impl FnMut(CodeAddress) -> CodeAddress,
    ) -> Self {
        let config = outcome.config();
        let wakes = outcome.worst.iter().chain(&outcome.sample);
        let wakes = wakes.filter(|wake| has(wake.task.tid, wake.release_ns));
        let wakes = wakes.map(|wake| {
            let (tid, release_ns) = (wake.task.tid, wake.release_ns);
            RecalledWake { tid, release_ns, facts: wake.facts.clone() }
        });
        let threads = outcome.threads.iter().map(|thread| {
            RecalledThread::of(&thread.figures, thread.table.threshold_ns.unwrap_or(0))
        });
        let repeated = outcome.repeated().iter();
        let recall = Self {
            platform: config.platform,
            kernel: config.kernel,
            clock_offsets_ns: config.clock_offsets_ns.clone(),
            duration_ns: outcome.duration_ns,
            threads: threads.collect(),
            addresses: repeated
                .map(|&RepeatedAddress { at, times }| RepeatedAddress { at: renamed(at), times })
                .collect(),
            wakes: wakes.collect(),
        };
        recall.sorted()
    }

    /// In the order that [`Self::facts`] relies on and within bounds that sums hold, whoever wrote
    /// it.
    fn sorted(mut self) -> Self {
        let bound = |ns: &mut u64| *ns = (*ns).min(LONGEST_NS);
        bound(&mut self.duration_ns);
        for thread in &mut self.threads {
            bound(&mut thread.threshold_ns);
            thread.wakes = thread.wakes.min(WAKES_MAX);
        }
        for wake in &mut self.wakes {
            let WakeTimes { delivery_ns, timer_ns, callback_ns, idle_ready_ns, own_interrupt_ns } =
                &mut wake.facts.usual;
            [delivery_ns, timer_ns, callback_ns, idle_ready_ns, own_interrupt_ns]
                .into_iter()
                .for_each(bound);
            wake.facts.previous.iter_mut().for_each(|previous| bound(&mut previous.lateness_ns));
        }
        self.wakes.sort_by_key(|wake| (wake.tid, wake.release_ns));
        self
    }

    /// The threads whose wakes it has.
    #[must_use]
    pub fn tids(&self) -> Vec<Tid> {
        self.threads.iter().map(|thread| thread.tid).collect()
    }

    /// How many wakes it has.
    #[must_use]
    pub const fn wakes(&self) -> usize {
        self.wakes.len()
    }

    /// From where on a wake is late, of all threads: those between are not in the capture.
    #[must_use]
    pub fn over(mut self, threshold_ns: u64) -> Self {
        for thread in &mut self.threads {
            thread.threshold_ns = thread.threshold_ns.max(threshold_ns);
        }
        self
    }

    /// Makes it part of what attribution is told, with what was known of the machine then.
    #[must_use]
    pub fn into_config(self, config: BlameConfig) -> BlameConfig {
        BlameConfig {
            platform: self.platform,
            kernel: self.kernel,
            clock_offsets_ns: self.clock_offsets_ns.clone(),
            recall: Some(self.sorted()),
            ..config
        }
    }

    /// What was known of a late wake; `None` where the capture does not have it whole.
    pub(crate) fn facts(&self, tid: Tid, release_ns: u64, least_ns: u64) -> Option<&WakeFacts> {
        let wanted = (tid, release_ns);
        let found = self.wakes.binary_search_by_key(&wanted, |wake| (wake.tid, wake.release_ns));
        let is_late = self.thread(tid).is_some_and(|thread| least_ns > thread.threshold_ns);
        Some(&self.wakes[found.ok().filter(|_| is_late)?].facts)
    }

    pub(crate) fn thread(&self, tid: Tid) -> Option<&RecalledThread> {
        self.threads.iter().find(|thread| thread.tid == tid)
    }

    pub(crate) const fn duration_ns(&self) -> u64 {
        self.duration_ns
    }

    pub(crate) fn addresses(&self) -> BTreeMap<CodeAddress, u64> {
        self.addresses.iter().map(|repeated| (repeated.at, repeated.times)).collect()
    }
}
