//! What was known when wakes were judged and does not lie in the events around them: with it, those
//! events alone give the same answer again.
//!
//! A capture that was cut down to the windows of late wakes no longer shows what is usual, how
//! often a CPU is silent by chance, or at which addresses other wakes had their gaps. These are
//! inputs of the rules, not their results: whoever reads such a capture judges anew.

use std::collections::BTreeMap;

use punctual_trace::event::{CodeAddress, Tid};
use serde::{Deserialize, Serialize};

use crate::account::WakeFacts;
use crate::addresses::RepeatedAddress;
use crate::advice::{KernelFiles, Platform};
use crate::calls::CallNumbers;
use crate::config::RecordingBegin;
use crate::normal::WakeTimes;
use crate::unseen::UnseenWakes;

/// Longer times than these are taken for these, ns: 13 days.
const LONGEST_NS: u64 = 1 << 50;
/// Later instants than this are taken for this, ns: 36 years.
const LAST_NS: u64 = 1 << 60;
/// More wakes than these are taken for these.
const WAKES_MAX: u64 = 1 << 50;

/// A wake of the capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecalledWake {
    pub(crate) tid: Tid,
    pub(crate) release_ns: u64,
    pub(crate) facts: WakeFacts,
}

/// The figures of a thread over all of its wakes, of which the capture has the late ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecalledThread {
    pub(crate) tid: Tid,
    pub(crate) threshold_ns: u64,
    pub(crate) wakes: u64,
    pub(crate) period_ns: Option<u64>,
    pub(crate) margin_ns: u64,
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) max_ns: u64,
    /// What these three are at most; missing where that is not known to be more.
    #[serde(default)]
    pub(crate) most_ns: Option<[u64; 3]>,
    /// Wakes that are none of these.
    #[serde(default)]
    pub(crate) unseen: UnseenWakes,
}

/// Everything of a capture that was cut down to its late wakes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recall {
    pub(crate) platform: Platform,
    pub(crate) kernel: Option<(u32, u32)>,
    #[serde(default)]
    pub(crate) smi_count: Option<u64>,
    /// The numbers that system calls had; `None` where that was not written.
    #[serde(default)]
    pub(crate) calls: Option<CallNumbers>,
    /// Whether more than chance shows that CPUs did not run; `None` where that was not written.
    #[serde(default)]
    pub(crate) shows_stops: Option<bool>,
    #[serde(default)]
    pub(crate) kernel_files: KernelFiles,
    pub(crate) clock_offsets_ns: Vec<i64>,
    /// Who ran or waited when it was begun; `None` where nobody looked.
    #[serde(default)]
    pub(crate) beginning: Option<RecordingBegin>,
    /// When it ended: up to then waits that no event ends count; `None` where that was not written.
    #[serde(default)]
    pub(crate) ended_ns: Option<u64>,
    pub(crate) duration_ns: u64,
    pub(crate) threads: Vec<RecalledThread>,
    pub(crate) addresses: Vec<RepeatedAddress>,
    pub(crate) wakes: Vec<RecalledWake>,
}

impl Recall {
    /// In the order that [`Self::facts`] relies on and within bounds that sums hold, whoever wrote
    /// it.
    pub(crate) fn sorted(mut self) -> Self {
        let bound = |ns: &mut u64| *ns = (*ns).min(LONGEST_NS);
        bound(&mut self.duration_ns);
        self.ended_ns = self.ended_ns.map(|ended_ns| ended_ns.min(LAST_NS));
        for thread in &mut self.threads {
            bound(&mut thread.threshold_ns);
            thread.wakes = thread.wakes.min(WAKES_MAX);
            thread.unseen = thread.unseen.bounded();
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

    pub(crate) const fn shows_stops(&self) -> Option<bool> {
        self.shows_stops
    }

    pub(crate) const fn ended_ns(&self) -> Option<u64> {
        self.ended_ns
    }

    pub(crate) const fn duration_ns(&self) -> u64 {
        self.duration_ns
    }

    pub(crate) fn addresses(&self) -> BTreeMap<CodeAddress, u64> {
        self.addresses.iter().map(|repeated| (repeated.at, repeated.times)).collect()
    }
}
