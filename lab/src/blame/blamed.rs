//! Blamed: what results have of a recording: its sentence, its causes, each thread, the latest
//! wakes, the price and the evidence.
//!
//! Plain data, made of the outcome of attribution; decides nothing.

use punctual_analysis::summary::{Distribution, SummaryStats};
use punctual_blame::cause::CauseKind;
use punctual_blame::counters::{CountedStretch, WakeCounts};
use punctual_blame::keep::LateWake;
use punctual_blame::outcome::{
    BlameOutcome, LatenessBounds, RecordingFlaw, ThreadOutcome, ThreadSnapshot,
};
use punctual_blame::programs::ProgramOwner;
use punctual_blame::table::{CauseRow, CauseTable};
use punctual_blame::unseen::UnseenWakes;
use punctual_blame::wake::FinishedWake;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::coincidence::BlamedCounters;
use super::kept::KeptCounts;
use super::own_loop::PricedWakes;
use crate::capture::{CaptureTally, MissingEvidence};

/// The share of the releases by which recording may make more of them missed, and the same as a
/// share of those missed before: whichever is more. Below it no answer about a period changes, and
/// the median has the second bound too.
const MISSED_BOUND: f64 = 0.01;
const MISSED_BOUND_SHARE: f64 = 0.1;
/// Standard errors by which that has to be more than chance: one in a thousand on this side.
const MISSED_SIGMAS: f64 = 3.0;
/// Late wakes that results have with all their parts.
pub(super) const SHOWN_WAKES: usize = 20;
/// Most threads that results have.
const SHOWN_THREADS: usize = 64;

/// The causes of late wakes, as results have them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Blamed {
    /// The answer in a sentence.
    pub sentence: String,
    /// The time that was recorded, ns.
    pub duration_ns: u64,
    /// Causes of all threads together; of one thread the same as its own.
    pub causes: Vec<BlamedCause>,
    /// Causes of releases that passed while a thread waited for its CPU or worked (`runs[].busy`),
    /// of all threads together: they count cycles that let releases pass, and the time by which
    /// these went on past their next release. Of a capture of late wakes those of the longest ones.
    #[serde(default)]
    pub busy_causes: Vec<BlamedCause>,
    /// Each thread that woke at a release, the one with most wakes first; at most 64.
    pub runs: Vec<BlamedRun>,
    /// Threads beyond those.
    pub more_runs: u64,
    /// The latest wakes, with all their parts; at most 20.
    pub worst: Vec<BlamedWake>,
    /// Threads that interrupted other CPUs, most sends first; at most 10.
    pub senders: Vec<BlamedSender>,
    /// The cost of recording for the loop; null for threads of others, and for a capture.
    pub price: Option<RecordingPrice>,
    /// The recording of the kernel's events; null for a capture.
    pub evidence: Option<CaptureEvidence>,
    /// Records that the recorder dropped; wakes that they touch are not whole.
    pub lost: u64,
    /// Switches that were not recorded: the begin of the wake after is only bounded.
    pub holes: u64,
    /// Timers that were programmed before the beginning, so that their wakes have no release.
    pub unknown_releases: u64,
    /// What else was not as it should be in the recording; empty where nothing was.
    #[serde(default)]
    pub flaws: Vec<BlamedFlaw>,
    /// The wake that ended the recording, as `--stop-over` asks; null where none did.
    pub stopped_by: Option<BlamedStop>,
    /// The part of the recording that was kept; null where nothing was to be.
    pub kept: Option<KeptCounts>,
    /// The reason for which no events were recorded, and what was used instead; null where events
    /// were.
    pub fallback: Option<String>,
}

/// Something in a recording that was not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedFlaw {
    /// The number of times that it was met.
    pub count: u64,
    /// What there were so many of, and what that costs, in words.
    pub words: String,
}

/// The wake that ended a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedStop {
    /// The thread's name.
    pub name: String,
    /// Its number.
    pub tid: u32,
    /// Its release, ns on CLOCK_MONOTONIC.
    pub release_ns: u64,
    /// The lower bound of its lateness, ns.
    pub lateness_ns: u64,
}

impl BlamedStop {
    pub(super) fn of(wake: &FinishedWake) -> Self {
        Self {
            name: wake.task.name.to_string(),
            tid: wake.task.tid,
            release_ns: wake.release_ns,
            lateness_ns: wake.least_ns,
        }
    }
}

/// The wakes of one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedRun {
    /// The thread's name.
    pub name: String,
    /// Its number.
    pub tid: u32,
    /// The CPU that it was on last.
    pub cpu: u32,
    /// Its priority as the kernel counts: 0 to 98 real-time (9 is SCHED_FIFO 90), from 100 on fair.
    pub kernel_priority: i32,
    /// The median time between its releases, ns; null where it has had too few.
    pub period_ns: Option<u64>,
    /// Its margin: the time before its goal at which it wakes in order to spin, ns; 0 where it does
    /// not.
    pub margin_ns: u64,
    /// Wakes with a release.
    pub wakes: u64,
    /// The lateness that half of them do not exceed, ns; null where that is only bounded, by
    /// `bounds`.
    pub p50_ns: Option<u64>,
    /// The lateness that 99 of 100 do not exceed, ns; null likewise.
    pub p99_ns: Option<u64>,
    /// The largest lateness, ns; null likewise.
    pub max_ns: Option<u64>,
    /// The bounds of these three, where the begin of wakes is not recorded; null where all three
    /// are known.
    #[serde(default)]
    pub bounds: Option<FigureBounds>,
    /// The lateness beyond which a wake is late, ns; null where there is none.
    pub threshold_ns: Option<u64>,
    /// Late wakes.
    pub late: u64,
    /// Wakes whose begin is bounded only, and not by CPU time.
    pub censored: u64,
    /// Wakes of which something is missing, though no events were lost.
    pub broken: u64,
    /// The events that were lost, and the wakes across that: they are none of `wakes` and `late`;
    /// null where nothing was lost.
    #[serde(default)]
    pub unseen: Option<BlamedLoss>,
    /// Late wakes of threads that waited already when the recording began, or whose timer was
    /// programmed before: later than they count.
    #[serde(default)]
    pub begun: u64,
    /// Late wakes of threads that still waited for a CPU when it ended: likewise.
    #[serde(default)]
    pub waiting: u64,
    /// Releases that passed while it waited for its CPU after an earlier one, or worked, by its
    /// usual period: no wake shows them, and they are none of `late`.
    #[serde(default)]
    pub busy: u64,
    /// The longest time from the release before such ones to its next wait, ns; 0 where there were
    /// none.
    #[serde(default)]
    pub busy_longest_ns: u64,
    /// True where it ended before the recording did.
    pub has_ended: bool,
    /// The answer for this thread in a sentence.
    pub sentence: String,
    /// Late wakes that shares still need; null where there are enough.
    pub wanted: Option<u64>,
    /// Its causes, the one that took most time first.
    pub causes: Vec<BlamedCause>,
    /// Causes of the releases in `busy`, likewise.
    #[serde(default)]
    pub busy_causes: Vec<BlamedCause>,
}

/// Wakes that were not seen, since events were lost: they are in no figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedLoss {
    /// Wakes that began before a loss and ended behind it.
    pub wakes: u64,
    /// The time that was lost on their CPUs, ns: of several threads that of the one with most.
    pub time_ns: u64,
    /// Its share of the time that was recorded, in [0, 1].
    pub share_of_time: f64,
    /// The share of the events of all CPUs that was lost, in [0, 1].
    pub share_of_events: f64,
    /// True where that is too much to show causes: then nothing is decided, and nothing advised.
    pub is_too_much: bool,
}

impl BlamedLoss {
    fn of(unseen: &UnseenWakes) -> Option<Self> {
        let UnseenWakes { wakes, time_ns, .. } = *unseen;
        (wakes > 0 || time_ns > 0).then(|| Self {
            wakes,
            time_ns,
            share_of_time: unseen.share_of_time(),
            share_of_events: unseen.share_of_events(),
            is_too_much: unseen.is_too_much(),
        })
    }
}

/// The bounds of figures of lateness, ns: of each the lower and the upper one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FigureBounds {
    /// Of the median.
    pub p50_ns: (u64, u64),
    /// Of the lateness that 99 of 100 do not exceed.
    pub p99_ns: (u64, u64),
    /// Of the largest.
    pub max_ns: (u64, u64),
}

impl FigureBounds {
    /// The bounds of these figures; `None` where all are known.
    fn of(figures: &ThreadSnapshot) -> Option<Self> {
        let ThreadSnapshot { p50, p99, max, .. } = *figures;
        let is_open = [p50, p99, max].iter().any(|figure| figure.known_ns().is_none());
        let between = |figure: LatenessBounds| (figure.least_ns(), figure.most_ns());
        is_open.then(|| Self { p50_ns: between(p50), p99_ns: between(p99), max_ns: between(max) })
    }
}

/// A cause of late wakes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedCause {
    /// Its kind, in a word: "higher-priority", "host-or-firmware", "softirq"; by counters "thread",
    /// "host", "softirq", "interrupt"; "unexplained" where none is known.
    pub cause: String,
    /// The cause in words, with the number of a thread, or the count of those of one program: "hog
    /// (priority 97, 311) ran above", "rustc (nice 0, 12 threads) was not preempted".
    pub name: String,
    /// The same without numbers of threads: equal in several results.
    #[serde(default)]
    pub family: String,
    /// The name of the program whose threads it names; null where it names none, or that is not
    /// known.
    #[serde(default)]
    pub program: Option<String>,
    /// The threads that it names, each once; 64 where there are more.
    #[serde(default)]
    pub threads: u64,
    /// The processes that these belong to, as far as that is known.
    #[serde(default)]
    pub processes: u64,
    /// Of several threads the one that took most of its time; null of one alone, or where that is
    /// not known.
    #[serde(default)]
    pub largest: Option<BlamedLargest>,
    /// The owner of these: the measurement itself, a load that it runs, or somebody else.
    #[serde(default)]
    pub owner: CulpritOwner,
    /// The CPU that it was on; null where they were several.
    pub cpu: Option<u32>,
    /// Late wakes of which it is the main cause.
    pub wakes: u64,
    /// Late wakes that have it at all.
    #[serde(default)]
    pub touched: u64,
    /// Their share of all late wakes, in [0, 1].
    pub share_of_late: f64,
    /// The interval of that share at 95 %, its lower and its upper end.
    pub share_between: (f64, f64),
    /// The time by which it made late wakes late, ns, also where it is not the main cause; causes
    /// stand in the order of this.
    #[serde(default)]
    pub time_ns: u64,
    /// Its share of the time by which late wakes were late, in [0, 1].
    pub share_of_time: f64,
    /// The most that it took of one wake, ns.
    pub worst_ns: u64,
    /// True where it took most of the latest wake, the normal path left out.
    #[serde(default)]
    pub is_of_latest: bool,
    /// The condition under which the latest of the wakes passed whose main cause it is, such as the
    /// load: in a run of several conditions; not there otherwise, and where none of those wakes was
    /// kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_under: Option<String>,
    /// The confidence in it, in [0, 1]: 0.99 where events on both sides show it, 0.4 where others
    /// fit nearly as well.
    pub confidence: f64,
    /// The rule that found it.
    pub rule: String,
    /// The evidence for it, in words.
    pub evidence: String,
    /// The advice against it, in words; empty where nothing is decided.
    pub advice: String,
    /// The rule of `punctual tune` that would move it; null where no setting does.
    pub tune_rule: Option<String>,
}

/// The one of several threads that took most of the time of their cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedLargest {
    /// The thread's name.
    pub name: String,
    /// Its number.
    pub tid: u32,
    /// Its share of the time of that cause, in (0, 1].
    pub share: f64,
}

/// The owner of the threads that a cause names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CulpritOwner {
    /// Somebody else's, or it names none, or that is not known.
    #[default]
    Stranger,
    /// The measurement's own.
    Measurement,
    /// Those of a load that the measurement runs.
    Load,
    /// The recording itself: what it takes is its price, and in no share of a sentence.
    Recording,
}

impl From<ProgramOwner> for CulpritOwner {
    fn from(owner: ProgramOwner) -> Self {
        match owner {
            ProgramOwner::Stranger => Self::Stranger,
            ProgramOwner::Measurement => Self::Measurement,
            ProgramOwner::Load => Self::Load,
        }
    }
}

/// One late wake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedWake {
    /// The thread's name.
    pub name: String,
    /// Its number.
    pub tid: u32,
    /// The CPU that it ran on.
    pub cpu: u32,
    /// Its release, ns on CLOCK_MONOTONIC; of a capture, on the capture's clock.
    pub release_ns: u64,
    /// Its lateness, ns.
    pub lateness_ns: u64,
    /// Its main cause.
    pub cause: String,
    /// True where all records of it are there.
    pub is_whole: bool,
    /// Its parts, from the release to its first instruction, without gaps.
    pub parts: Vec<BlamedPart>,
    /// Functions of the kernel that the main cause was in, innermost first.
    pub chain: Vec<String>,
    /// The rises of counters around it, where events were not recorded; else null.
    pub counters: Option<BlamedCounters>,
    /// The counts of the processor around it; null where it, or the kernel, gives no such counters.
    #[serde(default)]
    pub processor: Option<CountedWake>,
}

/// The counts of the processor around a late wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountedWake {
    /// On its CPU, from the last switch before its release to its own; null where that was not
    /// counted.
    pub wait: Option<CountedWork>,
    /// While its thread ran in the cycle before, preemptions left out; null likewise.
    pub cycle: Option<CountedWork>,
}

/// Counts of the processor; null of a counter that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountedWork {
    /// Cycles.
    pub cycles: Option<u64>,
    /// Instructions.
    pub instructions: Option<u64>,
    /// Accesses that its last cache did not hold.
    pub cache_misses: Option<u64>,
    /// Cycles in which a resource was waited for.
    pub stalled_cycles: Option<u64>,
}

impl CountedWake {
    /// The counts around a wake; `None` where nothing was counted.
    fn of(counts: WakeCounts) -> Option<Self> {
        let work = |stretch: CountedStretch| {
            let CountedStretch { cycles, instructions, cache_misses, stalled_cycles } = stretch;
            CountedWork { cycles, instructions, cache_misses, stalled_cycles }
        };
        let WakeCounts { wait, cycle } = counts;
        let is_counted = wait.is_some() || cycle.is_some();
        is_counted.then(|| Self { wait: wait.map(work), cycle: cycle.map(work) })
    }
}

/// A part of a late wake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedPart {
    /// The time from the release to its begin, ns.
    pub after_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
    /// The CPU on which it passed; 0 where it passed on none.
    pub cpu: u32,
    /// The cause that it is booked to, in words.
    pub cause: String,
    /// The rule that booked it.
    pub rule: String,
    /// The confidence in that rule, in [0, 1].
    pub confidence: f64,
    /// True of several stretches of a long wait that were added up: the length is right, the place
    /// among the others is not.
    #[serde(default)]
    pub is_sum: bool,
}

/// Parts of a late wake that follow each other and have the same cause.
#[derive(Clone, Debug, PartialEq)]
pub struct WakeStretch {
    /// The time from the release to its begin, ns.
    pub after_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
    /// The CPU on which it passed; 0 where it passed on none.
    pub cpu: u32,
    /// The cause that it is booked to, in words.
    pub cause: String,
    /// The rules that booked it, each once.
    pub rules: Vec<String>,
    /// As [`BlamedPart::is_sum`].
    pub is_sum: bool,
}

impl WakeStretch {
    /// Its cause, with a mark where its place among the others is not known.
    pub fn marked_cause(&self) -> String {
        let mark = if self.is_sum { " (added up)" } else { "" };
        format!("{}{mark}", self.cause)
    }
}

/// A thread that interrupted other CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedSender {
    /// The thread's name.
    pub name: String,
    /// Its number; of several of that name, the first's.
    pub tid: u32,
    /// Interrupts that it sent.
    pub sends: u64,
    /// The function that others were to call last; null where none was recorded.
    pub function: Option<String>,
}

/// The cost of recording for the loop that it watched: the same loop before and while it was
/// recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingPrice {
    /// Lateness before, ns.
    pub unrecorded_ns: SummaryStats,
    /// Lateness meanwhile, ns.
    pub recorded_ns: SummaryStats,
    /// Wakes before.
    pub unrecorded: u64,
    /// Wakes meanwhile.
    pub recorded: u64,
    /// Releases missed before; null in results of before.
    #[serde(default)]
    pub unrecorded_missed: Option<MissedReleases>,
    /// Releases missed meanwhile; null in results of before.
    #[serde(default)]
    pub recorded_missed: Option<MissedReleases>,
}

/// Releases of a loop that passed while it still waited for one before, or was still at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissedReleases {
    /// How many.
    pub releases: u64,
    /// Wakes that came behind them: of one stall that many releases passed in, one.
    pub gaps: u64,
}

impl RecordingPrice {
    pub(crate) fn of(unrecorded: &PricedWakes, recorded: &PricedWakes) -> Self {
        let stats = |lateness_ns: &[u64]| {
            let mut distribution = Distribution::default();
            lateness_ns.iter().for_each(|&ns| {
                distribution.push(i64::try_from(ns).unwrap_or(i64::MAX));
            });
            distribution.stats()
        };
        Self {
            unrecorded_ns: stats(&unrecorded.lateness_ns),
            recorded_ns: stats(&recorded.lateness_ns),
            unrecorded: unrecorded.lateness_ns.len() as u64,
            recorded: recorded.lateness_ns.len() as u64,
            unrecorded_missed: Some(unrecorded.missed),
            recorded_missed: Some(recorded.missed),
        }
    }

    /// The median lateness while it was recorded less that before, ns; `None` where one part is
    /// empty.
    pub fn median_ns(&self) -> Option<f64> {
        Some(self.recorded_ns.p50? - self.unrecorded_ns.p50?)
    }

    /// The shares of the releases that were missed before and while it was recorded, in [0, 1];
    /// `None` where they are not known.
    pub fn missed_shares(&self) -> Option<(f64, f64)> {
        let share = |wakes: u64, missed: MissedReleases| {
            let releases = wakes + missed.releases;
            (releases > 0).then(|| missed.releases as f64 / releases as f64)
        };
        let before = share(self.unrecorded, self.unrecorded_missed?)?;
        Some((before, share(self.recorded, self.recorded_missed?)?))
    }

    /// Returns true where recording makes so many more releases missed that figures without it say
    /// something else: more than one in a hundred, or than a tenth of the share before where that
    /// is more, and not by a few stalls of the machine.
    pub fn makes_missed(&self) -> bool {
        let Some((before, meanwhile)) = self.missed_shares() else { return false };
        let is_much = meanwhile - before > (before * MISSED_BOUND_SHARE).max(MISSED_BOUND);
        is_much && self.gaps_sigmas().is_some_and(|sigmas| sigmas > MISSED_SIGMAS)
    }

    /// The share of the wakes behind missed releases while it was recorded less that before, in
    /// standard errors of that difference. Stalls and not releases are counted, for these are
    /// missed together.
    fn gaps_sigmas(&self) -> Option<f64> {
        let (gaps, gaps_recorded) = (self.unrecorded_missed?.gaps, self.recorded_missed?.gaps);
        let (wakes, wakes_recorded) = (self.unrecorded as f64, self.recorded as f64);
        let both = (gaps + gaps_recorded) as f64 / (wakes + wakes_recorded);
        let error = (both * (1.0 - both) * (1.0 / wakes + 1.0 / wakes_recorded)).sqrt();
        let more = gaps_recorded as f64 / wakes_recorded - gaps as f64 / wakes;
        Some(more / error).filter(|sigmas| sigmas.is_finite())
    }
}

/// The recording of the kernel's events: its size, and what it lacks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureEvidence {
    /// Events that were read.
    pub events: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Records that the kernel dropped, for a ring was full.
    pub lost: u64,
    /// Records that were not understood.
    pub damaged: u64,
    /// The most bytes that were unread in one ring.
    pub fullest_bytes: u64,
    /// Bytes of each ring.
    pub ring_bytes: u64,
    /// CPU time of the reader over time, in [0, 1].
    pub reader_cpu_share: Option<f64>,
    /// CPUs that were offline or not recorded.
    pub unseen_cpus: u32,
    /// True where the reader had to run on a measured CPU.
    pub shares_cpu: bool,
    /// The kernel's answer where it refused real-time priority to the reader, which a busy machine
    /// can then keep from reading; null where it has it.
    #[serde(default)]
    pub reader_refused: Option<String>,
    /// Events that this kernel does not have, with the evidence that is missing without them.
    pub missing: Vec<MissingEvent>,
}

/// An event that is not recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissingEvent {
    /// "sched:sched_switch".
    pub event: String,
    /// The evidence that is missing without it, in words.
    pub lost: String,
}

impl MissingEvent {
    pub(crate) fn of(missing: &MissingEvidence) -> Self {
        Self { event: format!("{}:{}", missing.system, missing.name), lost: missing.lost.into() }
    }
}

impl BlamedFlaw {
    fn of(flaw: RecordingFlaw) -> Self {
        Self { count: flaw.count, words: flaw.words.to_owned() }
    }
}

impl CaptureEvidence {
    pub(crate) fn of(tally: &CaptureTally, missing: Vec<MissingEvent>, begun_ns: u64) -> Self {
        let took_ns = tally.ended_ns.saturating_sub(tally.began_ns.min(begun_ns));
        Self {
            events: tally.events,
            bytes: tally.bytes,
            lost: tally.lost,
            damaged: tally.damaged,
            fullest_bytes: tally.fullest_bytes,
            ring_bytes: tally.ring_bytes as u64,
            reader_cpu_share: (took_ns > 0).then(|| tally.reader_cpu_ns as f64 / took_ns as f64),
            unseen_cpus: tally.unseen_cpus + tally.offline_cpus,
            shares_cpu: tally.shares_cpu,
            reader_refused: tally.policy_refused.map(|why| why.to_string()),
            missing,
        }
    }
}

impl Blamed {
    /// As results have it.
    pub(super) fn new(
        outcome: &BlameOutcome,
        price: Option<RecordingPrice>,
        evidence: Option<CaptureEvidence>,
    ) -> Self {
        let worst = outcome.worst.iter().take(SHOWN_WAKES);
        let senders = outcome.senders.iter().take(10).map(|sender| BlamedSender {
            name: sender.sender.name.to_string(),
            tid: sender.sender.tid,
            sends: sender.sends,
            function: outcome.function(sender.function).map(str::to_owned),
        });
        let shown = outcome.threads.len().min(SHOWN_THREADS);
        Self {
            sentence: outcome.table.sentence.clone(),
            duration_ns: outcome.duration_ns,
            causes: causes(&outcome.table),
            busy_causes: outcome.table.passed.iter().map(BlamedCause::of).collect(),
            runs: outcome.threads[..shown].iter().map(BlamedRun::of).collect(),
            more_runs: (outcome.threads.len() - shown) as u64,
            worst: worst.map(|wake| BlamedWake::of(wake, outcome)).collect(),
            senders: senders.collect(),
            price,
            evidence,
            lost: outcome.counts.timeline.lost_events,
            holes: outcome.counts.timeline.holes,
            unknown_releases: outcome.counts.unknown_releases,
            flaws: outcome.counts.flaws().map(BlamedFlaw::of).collect(),
            stopped_by: None,
            kept: None,
            fallback: None,
        }
    }
}

fn causes(table: &CauseTable) -> Vec<BlamedCause> {
    let latest = table.worst_cause.as_ref().map(|worst| worst.group);
    let cause = |row: &CauseRow| {
        let is_of_latest = latest == Some(row.group);
        BlamedCause { is_of_latest, ..BlamedCause::of(row) }
    };
    table.rows.iter().map(cause).collect()
}

impl BlamedCause {
    /// Returns true where it is one of the machine: neither what wakes on time take too, nor what
    /// is not explained, nor the recording itself.
    pub fn is_named(&self) -> bool {
        let open = [
            CauseKind::NormalPath,
            CauseKind::NoEvent,
            CauseKind::NoSingle,
            CauseKind::Unexplained,
        ];
        self.owner != CulpritOwner::Recording && open.iter().all(|kind| kind.word() != self.cause)
    }

    /// Returns true where it is no cause: nothing explains these wakes.
    pub fn is_unexplained(&self) -> bool {
        self.cause == CauseKind::Unexplained.word()
    }

    /// Returns true where it is no cause: no single one took a fifth of these wakes' lateness.
    pub fn is_of_several(&self) -> bool {
        self.cause == CauseKind::NoSingle.word()
    }

    /// Returns true where it is one of the machine, or time without an event: neither the normal
    /// path, nor what is not explained.
    pub fn is_known(&self) -> bool {
        self.is_named() || self.cause == CauseKind::NoEvent.word()
    }

    fn of(row: &CauseRow) -> Self {
        Self {
            cause: row.cause.kind().word().to_owned(),
            name: row.name.clone(),
            family: row.family.clone(),
            program: row.culprits.program().map(|program| program.to_string()),
            threads: row.culprits.count() as u64,
            processes: row.culprits.processes().len() as u64,
            largest: row.culprits.largest(row.time_ns).map(|largest| BlamedLargest {
                name: largest.task.name.to_string(),
                tid: largest.task.tid,
                share: largest.share,
            }),
            owner: match row.is_of_recording() {
                true => CulpritOwner::Recording,
                false => row.culprits.owner().into(),
            },
            cpu: row.cpu,
            wakes: row.wakes,
            touched: row.touched,
            share_of_late: row.share_of_late,
            share_between: (row.share_low, row.share_high),
            time_ns: row.time_ns,
            share_of_time: row.share_of_time,
            worst_ns: row.worst_ns,
            is_of_latest: false,
            latest_under: None,
            confidence: row.confidence,
            rule: row.rule.word().to_owned(),
            evidence: row.evidence.clone(),
            advice: row.advice.text.clone(),
            tune_rule: row.advice.rule.map(str::to_owned),
        }
    }
}

impl BlamedRun {
    /// As results have it.
    pub(crate) fn of(thread: &ThreadOutcome) -> Self {
        let (figures, table) = (&thread.figures, &thread.table);
        Self {
            name: figures.task.name.to_string(),
            tid: figures.task.tid,
            cpu: figures.cpu,
            kernel_priority: figures.task.kernel_priority,
            period_ns: figures.period_ns,
            margin_ns: figures.margin_ns,
            wakes: figures.wakes,
            p50_ns: figures.p50.known_ns(),
            p99_ns: figures.p99.known_ns(),
            max_ns: figures.max.known_ns(),
            bounds: FigureBounds::of(figures),
            threshold_ns: table.threshold_ns,
            late: table.late,
            censored: thread.censored,
            broken: thread.broken,
            unseen: BlamedLoss::of(&thread.unseen),
            begun: thread.open.begun,
            waiting: thread.open.waiting,
            busy: thread.busy.count,
            busy_longest_ns: thread.busy.longest_ns,
            has_ended: figures.has_ended,
            sentence: table.sentence.clone(),
            wanted: table.undecided.as_ref().map(|few| few.needed.saturating_sub(few.late)),
            causes: causes(table),
            busy_causes: table.passed.iter().map(BlamedCause::of).collect(),
        }
    }

    /// Gives each cause the condition of its latest wake: `condition` returns that in which the
    /// thread ran at an instant, ns on the events' clock.
    pub(crate) fn set_latest_under(
        &mut self,
        thread: &ThreadOutcome,
        outcome: &BlameOutcome,
        condition: impl Fn(u64) -> Option<String>,
    ) {
        let tid = thread.figures.task.tid;
        for (cause, row) in self.causes.iter_mut().zip(&thread.table.rows) {
            let kept = outcome.worst.iter().chain(&outcome.sample);
            let own = kept.filter(|wake| wake.task.tid == tid && wake.main == row.group);
            let latest = own.max_by_key(|wake| wake.lateness_ns());
            cause.latest_under = latest.and_then(|wake| condition(wake.ran_from_ns));
        }
    }
}

impl BlamedWake {
    /// Its parts, those with one cause together.
    pub fn stretches(&self) -> Vec<WakeStretch> {
        let mut stretches: Vec<WakeStretch> = Vec::new();
        for part in &self.parts {
            match stretches.last_mut() {
                Some(last)
                    if (last.cpu, last.is_sum, &last.cause)
                        == (part.cpu, part.is_sum, &part.cause) =>
                {
                    last.length_ns += part.length_ns;
                    if !last.rules.contains(&part.rule) {
                        last.rules.push(part.rule.clone());
                    }
                }
                _ => stretches.push(WakeStretch {
                    after_ns: part.after_ns,
                    length_ns: part.length_ns,
                    cpu: part.cpu,
                    cause: part.cause.clone(),
                    rules: vec![part.rule.clone()],
                    is_sum: part.is_sum,
                }),
            }
        }
        stretches
    }

    pub(crate) fn of(wake: &LateWake, outcome: &BlameOutcome) -> Self {
        let parts = wake.parts.iter().map(|part| BlamedPart {
            after_ns: part.from_ns.saturating_sub(wake.release_ns),
            length_ns: part.length_ns(),
            cpu: part.cpu,
            cause: outcome.part_name(wake, &part.cause),
            rule: part.rule.word().to_owned(),
            confidence: part.certainty.confidence(),
            is_sum: part.is_sum,
        });
        let parts = parts.collect();
        let function = |&address: &u64| outcome.function(address).map(str::to_owned);
        Self {
            name: wake.task.name.to_string(),
            tid: wake.task.tid,
            cpu: wake.cpu,
            release_ns: wake.release_ns,
            lateness_ns: wake.lateness_ns(),
            cause: outcome.main_name(wake),
            is_whole: wake.is_whole,
            parts,
            chain: wake.chain.iter().filter_map(function).collect(),
            counters: None,
            processor: CountedWake::of(wake.counts()),
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_trace::event::TaskName;

    use super::*;

    #[test]
    fn bounds_stand_beside_figures_that_are_not_known() {
        let exact = LatenessBounds::exact(7_000);
        let figures = ThreadSnapshot {
            task: TaskName::default(),
            cpu: 0,
            period_ns: None,
            margin_ns: 0,
            wakes: 90,
            p50: LatenessBounds::new(0, 250_000),
            p99: exact,
            max: exact,
            late: 0,
            delivery_ns: 0,
            ready_ns: 0,
            first_cause: None,
            ran_before: None,
            has_ended: false,
            unmatched: 0,
            waiting: None,
        };
        let bounds = FigureBounds::of(&figures).expect("the median is open");
        assert_eq!(bounds.p50_ns, (0, 250_000));
        assert_eq!(bounds.max_ns, (7_000, 7_000));
        assert_eq!(FigureBounds::of(&ThreadSnapshot { p50: exact, ..figures }), None);
    }
}
