//! Facts by which wakes were judged that do not lie in the events around them: with these, those
//! events alone give the same answer again.
//!
//! A capture that was cut down to the windows of late wakes no longer shows what is usual, how
//! often a CPU is silent by chance, or at which addresses other wakes had their gaps. These are
//! inputs of the rules, not their results: whoever reads such a capture judges anew. Only a wait
//! that is too long for that, or whose events are not all there, comes with its result.

use std::collections::BTreeMap;

use punctual_trace::event::{CodeAddress, TaskName, Tid};
use serde::{Deserialize, Serialize};

use crate::addresses::RepeatedAddress;
use crate::begin::WakeBegin;
use crate::calls::CallNumbers;
use crate::cause::{Certainty, LateCause, RuleId};
use crate::facts::WakeFacts;
use crate::figures::ThreadSnapshot;
use crate::keep::LateWake;
use crate::machine::{CapturedMachine, RecordingBegin};
use crate::part::WakePart;
use crate::passed::PassedReleases;
use crate::past::WakePhase;
use crate::release::{Activation, ReleaseAnchor};
use crate::spread::LatenessBounds;
use crate::timeline::Activity;
use crate::unseen::UnseenWakes;
use crate::wake::{Run, Wake};

/// Longer times than these are taken for these, ns: 13 days.
const LONGEST_NS: u64 = 1 << 50;
/// Later instants than this are taken for this, ns: 36 years.
const LAST_NS: u64 = 1 << 60;
/// More wakes than these are taken for these.
const WAKES_MAX: u64 = 1 << 50;

/// A wake whose events the capture has, with the facts by which it is judged anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecalledWake {
    pub(crate) tid: Tid,
    pub(crate) release_ns: u64,
    pub(crate) facts: WakeFacts,
}

/// A part of a wake that is not judged anew.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgedPart {
    length_ns: u64,
    phase: WakePhase,
    cpu: u32,
    cause: LateCause,
    rule: RuleId,
    certainty: Certainty,
    #[serde(default)]
    is_inferred: bool,
    #[serde(default)]
    is_sum: bool,
}

impl JudgedPart {
    /// A part as it was judged.
    fn of(part: &WakePart, renamed: impl FnMut(CodeAddress) -> CodeAddress) -> Self {
        Self {
            length_ns: part.length_ns(),
            phase: part.phase,
            cpu: part.cpu,
            cause: part.cause.renamed(renamed),
            rule: part.rule,
            certainty: part.certainty,
            is_inferred: part.is_inferred,
            is_sum: part.is_sum,
        }
    }

    /// The part from an instant on, ns: the activity in it was not kept.
    const fn from(&self, from_ns: u64) -> WakePart {
        let Self { length_ns, phase, cpu, cause, rule, certainty, is_inferred, is_sum } = *self;
        let (to_ns, activity) = (from_ns + length_ns, Activity::Unseen);
        WakePart {
            from_ns,
            to_ns,
            phase,
            activity,
            cpu,
            cause,
            rule,
            certainty,
            is_inferred,
            is_sum,
        }
    }
}

/// A wake whose events the capture does not have, or that is too long to be judged in one piece: as
/// it was judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JudgedWake {
    task: TaskName,
    anchor: ReleaseAnchor,
    release_ns: u64,
    ran_from_ns: u64,
    ran_ns: u64,
    cpu: u32,
    before: TaskName,
    is_waiting: bool,
    #[serde(default)]
    is_inferred: bool,
    is_whole: bool,
    parts: Vec<JudgedPart>,
    /// The call chain that shows its main cause, innermost first.
    #[serde(default)]
    chain: Box<[CodeAddress]>,
    facts: WakeFacts,
}

impl JudgedWake {
    /// A kept wake as it was judged; `is_whole` where the capture has all of its events.
    pub(crate) fn new(
        wake: &LateWake,
        is_whole: bool,
        facts: WakeFacts,
        mut renamed: impl FnMut(CodeAddress) -> CodeAddress,
    ) -> Self {
        let parts = wake.parts.iter().map(|part| JudgedPart::of(part, &mut renamed));
        Self {
            task: wake.task,
            anchor: match wake.anchor {
                // Its address is the kernel's.
                ReleaseAnchor::Timer { .. } => ReleaseAnchor::Timer { timer: 0, function: 0 },
                other => other,
            },
            release_ns: wake.release_ns,
            ran_from_ns: wake.ran_from_ns,
            ran_ns: wake.ran_ns,
            cpu: wake.cpu,
            before: wake.before,
            is_waiting: wake.is_waiting,
            is_inferred: wake.is_inferred,
            is_whole: wake.is_whole && is_whole,
            parts: parts.collect(),
            chain: wake.chain.iter().copied().map(renamed).collect(),
            // Of pieces that are no longer there.
            facts: facts.within(0),
        }
    }

    /// Returns true where its parts add up to its lateness and its instants are in order and in
    /// range, whoever wrote it.
    fn is_sound(&self) -> bool {
        let lengths = self.parts.iter().map(|part| part.length_ns);
        let sum_ns = lengths.fold(0, u64::saturating_add);
        self.ran_ns <= LAST_NS
            && (self.release_ns..=self.ran_ns).contains(&self.ran_from_ns)
            && self.release_ns.checked_add(sum_ns) == Some(self.ran_ns)
            && self.parts.iter().all(|part| part.length_ns > 0)
    }

    pub(crate) const fn task(&self) -> TaskName {
        self.task
    }

    /// The finished wake of the thread at this place, with the facts by which it was judged.
    pub(crate) fn finished(&self, thread: usize) -> Wake {
        let mut from_ns = self.release_ns;
        let parts = self.parts.iter().map(|judged| {
            let part = judged.from(from_ns);
            from_ns = part.to_ns;
            part
        });
        let parts: Vec<WakePart> = parts.collect();
        let activation = Activation {
            anchor: self.anchor,
            release_ns: self.release_ns,
            latest_ns: self.release_ns,
            armed_ns: None,
            is_whole: self.is_whole,
        };
        let run = Run {
            cpu: self.cpu,
            from_ns: self.ran_from_ns,
            at_ns: self.ran_ns,
            before: self.before,
            is_waiting: self.is_waiting,
            is_inferred: self.is_inferred,
        };
        Wake {
            begin: Some(WakeBegin::judged(self.release_ns, parts)),
            judged_chain: self.chain.clone(),
            facts: self.facts.clone().within(0),
            ..Wake::new(thread, self.task, activation, run)
        }
    }
}

/// The figures of a thread over all of its wakes, of which the capture has the late ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecalledThread {
    tid: Tid,
    pub(crate) threshold_ns: u64,
    wakes: u64,
    period_ns: Option<u64>,
    margin_ns: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    /// Upper bounds of these three, ns; `None` where they are not known to be larger.
    #[serde(default)]
    most_ns: Option<[u64; 3]>,
    /// Wakes across which events were lost, which are none of `wakes`.
    #[serde(default)]
    pub(crate) unseen: UnseenWakes,
    /// Releases that passed before it waited for them.
    #[serde(default)]
    pub(crate) busy: PassedReleases,
}

impl RecalledThread {
    /// Figures with the lateness beyond which wakes were late, ns.
    pub(crate) const fn new(
        figures: &ThreadSnapshot,
        threshold_ns: u64,
        unseen: UnseenWakes,
        busy: PassedReleases,
    ) -> Self {
        let ThreadSnapshot { task, wakes, period_ns, margin_ns, p50, p99, max, .. } = figures;
        Self {
            tid: task.tid,
            threshold_ns,
            wakes: *wakes,
            period_ns: *period_ns,
            margin_ns: *margin_ns,
            p50_ns: p50.least_ns(),
            p99_ns: p99.least_ns(),
            max_ns: max.least_ns(),
            most_ns: Some([p50.most_ns(), p99.most_ns(), max.most_ns()]),
            unseen,
            busy,
        }
    }

    /// Returns true where the recording had wakes of it.
    pub(crate) const fn has_woken(&self) -> bool {
        self.wakes > 0
    }

    /// Gives figures of the late wakes alone those that the recording had.
    pub(crate) fn restore(&self, figures: &mut ThreadSnapshot) {
        (figures.wakes, figures.period_ns) = (self.wakes, self.period_ns);
        figures.margin_ns = self.margin_ns;
        let least_ns = [self.p50_ns, self.p99_ns, self.max_ns];
        let most_ns = self.most_ns.unwrap_or(least_ns);
        figures.p50 = LatenessBounds::new(least_ns[0], most_ns[0]);
        figures.p99 = LatenessBounds::new(least_ns[1], most_ns[1]);
        figures.max = LatenessBounds::new(least_ns[2], most_ns[2]);
    }
}

/// The facts that a capture has beside its events, where it was cut down to its late wakes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recall {
    #[serde(flatten)]
    pub(crate) machine: CapturedMachine,
    /// The numbers that system calls had; `None` where that was not written.
    #[serde(default)]
    pub(crate) calls: Option<CallNumbers>,
    /// True where more than chance shows that CPUs did not run; `None` where that was not written.
    #[serde(default)]
    pub(crate) shows_stops: Option<bool>,
    /// True where at least as many of the firmware's interrupts were counted as wakes could be
    /// theirs.
    #[serde(default)]
    pub(crate) counts_firmware: bool,
    /// The threads that ran or waited when it was begun; `None` where that was not looked at.
    #[serde(default)]
    pub(crate) beginning: Option<RecordingBegin>,
    /// Its end, ns on the events' clock: up to there waits that no event ends count; `None` where
    /// that was not written.
    #[serde(default)]
    pub(crate) ended_ns: Option<u64>,
    pub(crate) duration_ns: u64,
    pub(crate) threads: Vec<RecalledThread>,
    pub(crate) addresses: Vec<RepeatedAddress>,
    pub(crate) wakes: Vec<RecalledWake>,
    /// Wakes that are not judged anew.
    #[serde(default)]
    pub(crate) judged: Vec<JudgedWake>,
    /// Cycles that let releases pass, the longest ones: as wakes from the first such release on.
    #[serde(default)]
    pub(crate) passed: Vec<JudgedWake>,
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
            thread.busy = thread.busy.at_most(WAKES_MAX, LONGEST_NS);
        }
        self.judged.retain(JudgedWake::is_sound);
        self.passed.retain(JudgedWake::is_sound);
        let facts = self.wakes.iter_mut().map(|wake| &mut wake.facts);
        let judged = self.judged.iter_mut().chain(&mut self.passed);
        for facts in facts.chain(judged.map(|wake| &mut wake.facts)) {
            facts.limit(LONGEST_NS);
        }
        self.wakes.sort_by_key(|wake| (wake.tid, wake.release_ns));
        self
    }

    /// The threads whose wakes it has, each with the lateness beyond which it has them, ns.
    pub fn thresholds(&self) -> impl Iterator<Item = (Tid, u64)> + '_ {
        self.threads.iter().map(|thread| (thread.tid, thread.threshold_ns))
    }

    /// Number of wakes that it has.
    #[must_use]
    pub const fn wakes(&self) -> usize {
        self.wakes.len() + self.judged.len()
    }

    /// Wakes that are not judged anew, later than what is late of their thread.
    pub(crate) fn judged(&self) -> impl Iterator<Item = &JudgedWake> {
        self.judged.iter().filter(|wake| {
            let least_ns = wake.ran_from_ns - wake.release_ns;
            self.thread(wake.task.tid).is_some_and(|thread| least_ns > thread.threshold_ns)
        })
    }

    /// Raises the lateness beyond which wakes of all threads are late, ns. It is never lowered, for
    /// the capture does not have the wakes below.
    #[must_use]
    pub fn over(mut self, threshold_ns: u64) -> Self {
        for thread in &mut self.threads {
            thread.threshold_ns = thread.threshold_ns.max(threshold_ns);
        }
        self
    }

    /// The facts by which a late wake is judged; `None` where the capture does not have it whole,
    /// or where it is on time.
    pub(crate) fn facts(&self, tid: Tid, release_ns: u64, least_ns: u64) -> Option<&WakeFacts> {
        let wanted = (tid, release_ns);
        let found = self.wakes.binary_search_by_key(&wanted, |wake| (wake.tid, wake.release_ns));
        let is_late = self.thread(tid).is_some_and(|thread| least_ns > thread.threshold_ns);
        Some(&self.wakes[found.ok().filter(|_| is_late)?].facts)
    }

    pub(crate) fn thread(&self, tid: Tid) -> Option<&RecalledThread> {
        self.threads.iter().find(|thread| thread.tid == tid)
    }

    pub(crate) fn addresses(&self) -> BTreeMap<CodeAddress, u64> {
        self.addresses.iter().map(|repeated| (repeated.at, repeated.times)).collect()
    }
}
