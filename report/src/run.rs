//! One run in a report: how it was set up and what it gave.
//!
//! Plain data; the numbers themselves are `punctual_analysis::recording::RunFigures`.

use std::fmt::Display;

use punctual_analysis::campaign::OtherTime;
use punctual_analysis::recording::{RunFigures, WorstRelease};
use punctual_analysis::summary::SummaryStats;
use punctual_host::threads::name_of_another;
use punctual_lab::blame::{
    BlamedCause, BlamedLoss, BlamedRun, BlamedWake, CaptureEvidence, RecordingPrice,
};
use punctual_lab::load::{LIMIT, LoadReport};
use punctual_lab::others::{NamedOthers, OthersOnCpu, RealTimePolicy};
use punctual_lab::periodic::{BlamedCycle, RecordedWhere, RunOutcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format;

/// One loop under one condition.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// "idle", "under load", "cpu", "CPU 1, 25.0 µs".
    pub name: String,
    /// The condition that it ran under: "idle", "under load"; not there where that is its name, and
    /// in results of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The loop and its settings: CPU, period, policy, wait, loads.
    pub setup: Setup,
    /// Cycles, lateness, interval, grid, histogram, claims.
    #[serde(flatten)]
    pub outcome: RunFigures,
    /// Gaps inside spins longer than 1 µs; null for a wait that does not spin.
    pub stalled: Option<u64>,
    /// The longest of them.
    pub stall_max_ns: Option<f64>,
    /// CPU time of the loop's thread over wall time, in [0, 1]; null if the data do not record it.
    pub cpu_load: Option<f64>,
    /// Page faults of the loop's thread in the loop.
    pub page_faults: Option<u64>,
    /// Times that the loop's thread was preempted.
    pub preempted: Option<u64>,
    /// Time that the host took from the loop's CPU while it ran, as the kernel counts it in steps
    /// of 10 ms (steal); null if the data do not record it. Releases that it delayed are counted
    /// like all others.
    #[serde(default)]
    pub steal_ns: Option<u64>,
    /// Other threads that ran on the loop's CPU while it was to be idle; not there under a load,
    /// and where the data do not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OtherThreads>,
    /// Threads that had the loop's CPU while the loop was seen waiting for it, by looks at its
    /// thread each 20 ms: stalls of 50 ms and more; not there where none was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_waiting: Option<KeptWaiting>,
    /// Cost of a timestamp: the resolution of all numbers here.
    pub floor_ns: Option<f64>,
    /// The approach of the wait to its releases at the end; null for a wait that does not spin.
    #[serde(default)]
    pub approach: Option<Approach>,
    /// Each load's rate, and its processes that ended before the run.
    pub loads: Vec<Load>,
    /// Times that a process of its loads ended before the run did, or stood still. Unless it is 0,
    /// no limit and no claim of the run is shown, for a part of it was not under load.
    #[serde(default)]
    pub load_deaths: u64,
    /// Causes of its late wakes, the one with most of them first; not there where they were not
    /// recorded, and for a wait that spins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<BlamedCause>,
    /// The wakes that `causes` are of; not there where nothing was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<RunBlame>,
}

/// The other threads that ran on a CPU: those whose last CPU it was at the end of a block. What
/// ended within a block is not among them, so that they are the least that ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherThreads {
    /// Their CPU time over the time of the blocks, in [0, 1].
    pub share: f64,
    /// By name and real-time policy, most first; at most 8, of a campaign 32.
    pub threads: Vec<OtherThread>,
}

/// Other threads of one name and real-time policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherThread {
    /// The name of the threads, as the kernel has it.
    pub name: String,
    /// Their CPU time over the time of the blocks.
    pub share: f64,
    /// The process that they are of; where there are several, the one that ran longest. Null for
    /// threads of the kernel, in results of before, and of campaigns, which keep names alone.
    #[serde(default)]
    pub pid: Option<i32>,
    /// Processes that they are of; 0 where `pid` is null.
    #[serde(default)]
    pub processes: u64,
    /// Their real-time policy: "SCHED_FIFO", "SCHED_RR" or "SCHED_DEADLINE". Not there where they
    /// have none, for threads of the kernel, in results of before, and of campaigns; of
    /// `kept_waiting` the name has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Its priority, 1 to 99; not there without a policy, and of SCHED_DEADLINE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
}

impl OtherThread {
    fn of(named: &NamedOthers, wall_ns: u64) -> Self {
        Self {
            name: named.name().to_owned(),
            share: named.ran_ns() as f64 / wall_ns as f64,
            pid: named.busiest_process(),
            processes: named.process_count() as u64,
            policy: named.real_time().map(|policy| policy.name().to_owned()),
            priority: named.real_time().and_then(RealTimePolicy::priority),
        }
    }

    /// Its name, and the process by its number: "rustc (pid 301)", "rustc (3 processes, most pid
    /// 301)", "hog (SCHED_FIFO 95, pid 12)"; behind what the name has in brackets already. One that
    /// is called like a thread of this program is set apart.
    pub(crate) fn who(&self) -> String {
        let Some(pid) = self.pid else { return name_of_another(&self.name) };
        let which = match self.processes {
            ..2 => format!("pid {pid}"),
            several => format!("{several} processes, most pid {pid}"),
        };
        let policy = self.policy.as_ref().map(|policy| policy_words(policy, self.priority) + ", ");
        let which = policy.unwrap_or_default() + &which;
        let in_brackets = self.name.strip_suffix(')').and_then(|open| open.rsplit_once(" ("));
        match in_brackets {
            Some((name, policy)) => format!("{} ({policy}, {which})", name_of_another(name)),
            None => format!("{} ({which})", name_of_another(&self.name)),
        }
    }
}

/// Threads of others that used so much of a CPU may have made the latest releases so late: a stall
/// of a millisecond in each second.
const MAY_DELAY: f64 = 0.001;

/// The share from which on a CPU is not called idle: the kernel's own work takes 1 to 2 %.
const NOT_IDLE: f64 = 0.05;

/// So many names of a campaign are in its result.
const CAMPAIGN_NAMES: usize = 32;

/// So many names are shown.
const NAMES_SHOWN: usize = 3;

impl OtherThreads {
    /// The threads seen on a CPU, by their share; `None` where no time passed.
    pub fn of(others: &OthersOnCpu) -> Option<Self> {
        let share = others.share()?;
        let threads = others.threads.iter().map(|named| OtherThread::of(named, others.wall_ns));
        Some(Self { share, threads: threads.collect() })
    }

    /// The threads seen over the batches of a campaign, of whatever process; `None` where no time
    /// passed.
    pub fn over_batches(others: &OtherTime) -> Option<Self> {
        let share = |ran_ns: u64| ran_ns as f64 / others.wall_ns as f64;
        let most = others.threads.iter().take(CAMPAIGN_NAMES);
        let threads = most.map(|(name, ran_ns)| OtherThread {
            name: name.clone(),
            share: share(*ran_ns),
            ..OtherThread::default()
        });
        (others.wall_ns > 0)
            .then(|| Self { share: share(others.run_ns), threads: threads.collect() })
    }

    /// The sentence that the CPU was not idle; `None` where it was.
    pub(crate) fn not_idle(&self, cpu: u32) -> Option<String> {
        self.used(cpu).map(|used| format!("Not idle: {used}."))
    }

    /// The CPU time that they used, and who they are, as a clause; `None` where the CPU was idle.
    pub fn used(&self, cpu: u32) -> Option<String> {
        if self.share < NOT_IDLE {
            return None;
        }
        let most = self.threads.iter().take(NAMES_SHOWN);
        let most = most.filter(|thread| thread.share >= self.share / 20.0);
        let named = most.map(|thread| format!("{} {}", thread.who(), format::share(thread.share)));
        let names: Vec<String> = named.collect();
        let names =
            if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        Some(format!("others used at least {} of CPU {cpu}{names}", format::share(self.share)))
    }

    /// The real-time threads that used most of the CPU of those that a loop of this priority does
    /// not preempt; `None` where none of them used enough of it to be named.
    pub(crate) fn in_the_way(&self, priority: Option<u8>) -> Option<&OtherThread> {
        self.not_preempted(priority).filter(|thread| thread.share >= NOT_IDLE)
    }

    /// The real-time threads that used most of the CPU of those that a loop of this priority does
    /// not preempt.
    fn not_preempted(&self, priority: Option<u8>) -> Option<&OtherThread> {
        let loops = priority.map_or(0, u32::from);
        let is_kept = |thread: &&OtherThread| {
            thread.policy.is_some() && thread.priority.is_none_or(|own| own >= loops)
        };
        self.threads.iter().find(is_kept)
    }

    /// The sentence that the latest releases of a loop may be the doing of real-time threads that
    /// it does not preempt: they ran on its CPU, and nothing here saw them keep it waiting. `None`
    /// where none ran for long enough.
    pub(crate) fn may_have_delayed(&self, setup: &Setup) -> Option<String> {
        let cpu = setup.cpu?;
        let thread = self.not_preempted(setup.priority)?;
        let (who, share) = (thread.who(), format::share(thread.share));
        let policy = setup.policy_words().map(|policy| format!(" ({policy})")).unwrap_or_default();
        (thread.share >= MAY_DELAY).then(|| {
            format!(
                "The loop{policy} does not preempt {who}, which used at least {share} of CPU \
                 {cpu}: the latest releases may be its doing."
            )
        })
    }

    /// Returns true where they used so much more than those of another run that a difference may be
    /// theirs.
    pub fn outweigh(&self, other: Option<&Self>) -> bool {
        self.share - other.map_or(0.0, |other| other.share) >= NOT_IDLE
    }
}

/// Waits of a loop for its CPU, and the threads of others that had it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptWaiting {
    /// Time that it was seen waiting, in ns.
    pub waited_ns: u64,
    /// Threads that ran there meanwhile, name and policy, most first; at most 8.
    pub threads: Vec<OtherThread>,
}

impl KeptWaiting {
    /// Whoever ran for less of that time does not explain it.
    const SHARE_MIN: f64 = 0.5;

    /// The waits seen and the threads that ran meanwhile; `None` where no time passed.
    pub fn of(seen: &OthersOnCpu) -> Option<Self> {
        let threads = OtherThreads::of(seen)?.threads;
        Some(Self { waited_ns: seen.wall_ns, threads })
    }

    /// The thread that had the CPU for most of that time, in words; `None` where no other had.
    pub(crate) fn sentence(&self, cpu: u32) -> Option<String> {
        let first = self.threads.first().filter(|first| first.share >= Self::SHARE_MIN)?;
        Some(format!(
            "{} had CPU {cpu} for {} of the {} for which the loop was seen waiting for it",
            first.who(),
            format::share(first.share),
            format::long(self.waited_ns as f64),
        ))
    }
}

/// Recording of the kernel's events while loops ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlameRecording {
    /// True where events were recorded.
    pub is_recorded: bool,
    /// The reason why they were not recorded, such as what forbids it; null where they were.
    pub why_not: Option<String>,
    /// True where it was requested; else it is done where it is allowed.
    pub is_asked: bool,
    /// The place: "within" the blocks that were measured, whose figures contain the price, or
    /// "behind" them, in blocks of their own that no figure contains. In results of before, within.
    #[serde(default)]
    pub place: RecordedWhere,
    /// The price for a loop like the first one, which slept and was recorded and not in turns
    /// before the blocks that are recorded; null where that was not measured.
    pub price: Option<RecordingPrice>,
    /// The events that the kernel gave, and those lost; null where nothing was recorded.
    pub evidence: Option<CaptureEvidence>,
}

impl BlameRecording {
    /// Returns true where the figures of the runs contain its price.
    pub fn is_in_figures(&self) -> bool {
        self.is_recorded && self.place == RecordedWhere::Within
    }
}

/// The late wakes of a run, as the kernel recorded them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunBlame {
    /// The causes of the late wakes in a sentence; null for a wait that spins, which wakes before
    /// its releases: then `worst` alone has causes.
    pub sentence: Option<String>,
    /// Time recorded behind the measurement, in ns, where it was not recorded within it: then no
    /// cycle of the run was recorded, `cycles` and `worst` are empty, and late is what is later
    /// than 99 of 100 wakes of the run and the price together. Not there where it was recorded
    /// within.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_ns: Option<u64>,
    /// Wakes with a release.
    pub wakes: u64,
    /// Lateness above which a wake is late, in ns; null where no threshold applies.
    pub threshold_ns: Option<u64>,
    /// Wakes later than the threshold.
    pub late: u64,
    /// Wakes whose begin is only bounded: the kernel does not show when they ran.
    pub censored: u64,
    /// Wakes of which something is missing, though no events were lost.
    pub broken: u64,
    /// Events lost, and the wakes across them, which are in no other count; null where nothing was
    /// lost.
    #[serde(default)]
    pub unseen: Option<BlamedLoss>,
    /// Late wakes that shares still need; null where there are enough.
    pub wanted: Option<u64>,
    /// The latest wakes as cycles of the run, the latest first; at most 200.
    pub cycles: Vec<BlamedCycle>,
    /// The wakes that the worst releases waited for, where their cause is known, with all their
    /// parts, the latest release first. One that several releases waited for stands there once.
    pub worst: Vec<WorstWake>,
    /// The latest wakes that were recorded behind the measurement, with all their parts, the latest
    /// first; at most 5. Not there where it was recorded within.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latest: Vec<BlamedWake>,
}

/// The wake that a release waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstWake {
    /// The first of the releases that waited for it: the cycle that ran.
    pub cycle: u64,
    /// The wake, with the parts of its lateness and their causes.
    #[serde(flatten)]
    pub wake: BlamedWake,
}

/// The wakes and causes that were recorded of a run.
#[derive(Clone, Debug)]
pub struct RunEvidence {
    /// Its wakes and their causes.
    pub blamed: BlamedRun,
    /// True where its wakes are those of its cycles, so that late ones and their causes are shown.
    pub are_cycles: bool,
    /// Its late cycles.
    pub cycles: Vec<BlamedCycle>,
    /// The recording, where it was made behind the measurement.
    pub behind: Option<RecordedBehind>,
}

/// A recording behind the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedBehind {
    /// The latest wakes in it, the latest first.
    pub latest: Vec<BlamedWake>,
    /// Length of the recording, in ns.
    pub length_ns: u64,
    /// Time by which the recording made the median wake later, in ns; `None` where that is not
    /// known.
    pub price_ns: Option<f64>,
}

impl RecordedBehind {
    /// The sentence of its causes, with where they were seen before it.
    fn sentence(&self, causes: &str) -> String {
        let length = format::ns(Some(self.length_ns as f64));
        let price = match self.price_ns.filter(|&ns| ns >= 0.0) {
            Some(ns) => format!("where each wake costs {} more", format::ns(Some(ns))),
            None => "at a price that is not known".to_owned(),
        };
        format!("recorded in {length} behind the measurement, {price}: {causes}")
    }
}

impl Run {
    /// A run of recorded data, which does not say what only the measuring process could see.
    pub fn recorded(name: String, setup: Setup, outcome: RunFigures) -> Self {
        Self {
            name,
            condition: None,
            setup,
            outcome,
            stalled: None,
            stall_max_ns: None,
            cpu_load: None,
            page_faults: None,
            preempted: None,
            steal_ns: None,
            others: None,
            kept_waiting: None,
            floor_ns: None,
            approach: None,
            loads: Vec::new(),
            load_deaths: 0,
            causes: Vec::new(),
            blame: None,
        }
    }

    /// The number of its cycles; `None` where its data have values without it: a value was seen, so
    /// that 0 is no count.
    pub fn known_cycles(&self) -> Option<u64> {
        let imported = self.outcome.imported.as_ref();
        let is_unknown = imported.is_some_and(|data| data.values_ns.max.is_some());
        Some(self.outcome.cycles).filter(|cycles| *cycles > 0 || !is_unknown)
    }

    /// Returns true where nothing was measured: it has no cycle that counts, whatever it missed.
    /// Another program's file without a stall is a good one, and has no cycles.
    pub fn is_empty(&self) -> bool {
        self.outcome.lateness_ns.max.is_none() && self.outcome.imported.is_none()
    }

    /// The same run with its causes. `wake_at` gives the wake that one of its worst releases waited
    /// for.
    pub fn blamed(
        mut self,
        evidence: RunEvidence,
        wake_at: impl Fn(&WorstRelease) -> Option<WorstWake>,
    ) -> Self {
        let RunEvidence { blamed, are_cycles, cycles, behind } = evidence;
        let sentence = match &behind {
            Some(behind) => behind.sentence(&blamed.sentence),
            None => blamed.sentence,
        };
        let mut worst: Vec<WorstWake> = Vec::new();
        for release in &mut self.outcome.worst {
            let Some(late) = wake_at(release) else { continue };
            release.cause = Some(late.wake.cause.clone());
            if worst.iter().all(|known| known.cycle != late.cycle) {
                worst.push(late);
            }
        }
        self.blame = Some(RunBlame {
            sentence: are_cycles.then_some(sentence),
            behind_ns: behind.as_ref().map(|behind| behind.length_ns),
            wakes: blamed.wakes,
            threshold_ns: blamed.threshold_ns.filter(|_| are_cycles),
            late: if are_cycles { blamed.late } else { 0 },
            censored: blamed.censored,
            broken: blamed.broken,
            unseen: blamed.unseen,
            wanted: blamed.wanted.filter(|_| are_cycles),
            cycles,
            worst,
            latest: behind.filter(|_| are_cycles).map_or_else(Vec::new, |behind| behind.latest),
        });
        self.causes = if are_cycles { blamed.causes } else { Vec::new() };
        self
    }

    /// The cause of a cycle's lateness; `None` where it is not known: only a wake that waited for
    /// at least half of that lateness has it.
    pub fn cause_of(&self, cycle: u64, lateness_ns: i64) -> Option<&str> {
        let worst = self.outcome.worst.iter().find(|late| late.cycle == cycle);
        let half_ns = lateness_ns.max(0).unsigned_abs() / 2;
        let is_it = |late: &&BlamedCycle| late.cycle == cycle && late.waited_ns >= half_ns;
        let cycles = self.blame.iter().flat_map(|blame| &blame.cycles);
        let named = || cycles.filter(is_it).map(|late| &late.cause).next();
        worst.and_then(|late| late.cause.as_ref()).or_else(named).map(String::as_str)
    }

    /// The cause of its worst release; `None` where it is not known.
    pub(crate) fn worst_cause(&self) -> Option<&str> {
        let largest = self.outcome.lateness_ns.max?;
        let worst = self.outcome.worst.iter().find(|release| release.lateness_ns == largest)?;
        worst.cause.as_deref()
    }

    /// The first of its causes that is one: neither what wakes on time take too, nor what is not
    /// explained.
    pub fn first_cause(&self) -> Option<&BlamedCause> {
        self.causes.iter().find(|cause| cause.wakes > 0 && cause.is_named())
    }

    /// With its condition, which is kept where it is not the whole name.
    pub fn under(self, condition: &str) -> Self {
        let condition = Some(condition).filter(|condition| *condition != self.name);
        Self { condition: condition.map(str::to_owned), ..self }
    }

    /// The condition that it ran under, where that is known; else its name.
    pub fn condition(&self) -> &str {
        self.condition.as_deref().unwrap_or(&self.name)
    }

    /// The reason why nothing is shown of the machine under load: a load died on the way.
    pub fn load_died(&self) -> Option<String> {
        if self.load_deaths == 0 {
            return None;
        }
        let first = self.loads.iter().find_map(|load| Some((load, load.deaths.first()?)));
        Some(match first {
            Some((load, death)) => format!("load {} {}", load.name, death.event()),
            None => format!("its loads died or stood still {} times", self.load_deaths),
        })
    }
}

/// The settings of a run; null where the data do not record one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Setup {
    /// The CPU that the loop was pinned to.
    pub cpu: Option<u32>,
    /// The nominal period, in ns.
    pub period_ns: Option<u64>,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC, or on the clock that it
    /// follows.
    pub phase_ns: Option<u64>,
    /// The clock that the grid follows, "tai", "realtime" or a device: releases are on its time.
    /// Null: on CLOCK_MONOTONIC.
    #[serde(default)]
    pub follows: Option<String>,
    /// The policy that the thread really had: "SCHED_FIFO".
    pub policy: Option<String>,
    /// Its priority, as the kernel counts; null for SCHED_OTHER.
    pub priority: Option<u8>,
    /// "sleep" or "spin".
    pub wait: Option<String>,
    /// Names of the loads; none means idle.
    pub load: Vec<String>,
    /// Time that it was to run once its loads were up, in ns.
    pub duration_ns: Option<u64>,
}

impl Setup {
    /// The policy and its priority: "SCHED_FIFO 90"; `None` where it is not known.
    pub fn policy_words(&self) -> Option<String> {
        Some(policy_words(self.policy.as_ref()?, self.priority))
    }
}

/// A policy and its priority: "SCHED_FIFO 90"; the policy alone where it has none.
fn policy_words(policy: &str, priority: Option<impl Display>) -> String {
    priority.map_or_else(|| policy.to_owned(), |priority| format!("{policy} {priority}"))
}

/// A load's rate, and its processes that ended before the run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Its name.
    pub name: String,
    /// Its own rate; null if it reported none, and then it may not have run.
    pub rate: Option<f64>,
    /// The unit of the rate: "polygons/s".
    pub unit: String,
    /// All notes that it reported, in one text; null where it reported none.
    note: Option<String>,
    /// Notes that it reported, each once; at most 8. In results of before they are in `note` alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// Its processes that ended before the run did, or stood still, the first 16.
    #[serde(default)]
    pub deaths: Vec<LoadDeath>,
}

impl Load {
    /// The notes that it reported; of a result of before all in one.
    pub fn notes(&self) -> &[String] {
        if self.notes.is_empty() { self.note.as_slice() } else { &self.notes }
    }
}

/// A load's process that ended before its run did, or stood still for a time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LoadDeath {
    /// The instant, in ns on CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Time that it had worked, in ns; null when it had not begun.
    pub worked_ns: Option<u64>,
    /// The reason why it ended or stood still, in words.
    pub why: String,
    /// True where it was started again.
    pub restarted: bool,
    /// It did not end, but stood still for so long; null of one that ended.
    #[serde(default)]
    pub stood_still_ns: Option<u64>,
}

impl LoadDeath {
    /// "died 1.20 s after its start". One that came to its limit of time did not die: the machine
    /// took so much longer than planned.
    fn event(&self) -> String {
        let when = match self.worked_ns {
            Some(ns) => format!("{} after its start", format::ns(Some(ns as f64))),
            None => "before it began".to_owned(),
        };
        if let Some(ns) = self.stood_still_ns {
            format!("stood still {when}, for {}", format::ns(Some(ns as f64)))
        } else if self.is_at_limit() {
            format!("reached its time limit {when}, before the run was over")
        } else {
            format!("died {when}")
        }
    }

    fn is_at_limit(&self) -> bool {
        self.why == LIMIT
    }
}

/// Warnings about loads that died, a sentence for each.
pub fn deaths(reports: &[LoadReport]) -> Vec<String> {
    let dead = loads(reports).into_iter().filter_map(|load| {
        let first = load.deaths.first()?;
        let more = match load.deaths.len() {
            1 => String::new(),
            n => format!(", the first of {n} times"),
        };
        let event = first.event();
        let then = match first {
            death if death.stood_still_ns.is_some() => format!(" ({}){more}", death.why),
            death if death.is_at_limit() => " (the machine was too slow for the plan)".to_owned(),
            death if death.restarted => format!(" ({}){more} and was started again", death.why),
            death => format!(" ({}){more} and was not started again", death.why),
        };
        Some(format!("load {} {event}{then}: a part of its run was not under load", load.name))
    });
    dead.collect()
}

/// One load's share of the run "under load".
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LoadRow {
    /// The period of the loop; null in results of before.
    #[serde(default)]
    pub period_ns: Option<u64>,
    /// The name of the load.
    pub load: String,
    /// Cycles under it.
    pub cycles: u64,
    /// Releases that never ran.
    pub missed: u64,
    /// Missed releases of which only a lower bound of lateness is known: a period at least.
    #[serde(default)]
    pub censored: u64,
    /// Cycles that ran but did not fit in the recorder.
    #[serde(default)]
    pub unrecorded: u64,
    /// Lateness of all releases, as in `runs`.
    pub lateness_ns: SummaryStats,
    /// Time that the host took from the loop's CPU meanwhile, as in `runs`.
    #[serde(default)]
    pub steal_ns: Option<u64>,
    /// Its rate, and its processes that ended before the run.
    pub loads: Vec<Load>,
}

impl LoadRow {
    /// The largest lateness, with a sign where it is a lower bound.
    pub fn worst(&self) -> String {
        let unknown = self.censored.saturating_add(self.unrecorded);
        format::largest(self.lateness_ns.max, unknown)
    }
}

/// Reports of loads in the shape of a result.
pub fn loads(reports: &[LoadReport]) -> Vec<Load> {
    let death = |death: &punctual_lab::load::LoadDeath| LoadDeath {
        at_ns: death.at_ns,
        worked_ns: death.worked_ns,
        why: death.why.clone(),
        restarted: death.restarted,
        stood_still_ns: death.stood_still_ns,
    };
    let load = |report: &LoadReport| Load {
        name: report.name.clone(),
        rate: report.rate,
        unit: report.unit.clone(),
        note: (!report.notes.is_empty()).then(|| report.notes.join("; ")),
        notes: report.notes.clone(),
        deaths: report.deaths.iter().map(death).collect(),
    };
    reports.iter().map(load).collect()
}

/// The approach of a wait that spins to its releases.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Approach {
    /// The length of a short sleep; null for a single sleep of any length.
    pub hop_ns: Option<u64>,
    /// Short sleeps that end the wait, after a long one; null where all are short.
    #[serde(default)]
    pub hops: Option<u32>,
    /// Time from the end of the last sleep to the release, in ns.
    pub margin_ns: u64,
    /// Of an adaptive wait: the share of late wakes since its last calibration.
    pub late_share: Option<f64>,
    /// Of an adaptive wait: late wakes of those while it tried another approach than it follows.
    #[serde(default)]
    pub trials_late: Option<u64>,
    /// Of an adaptive wait: true where its target is within its budget on this machine.
    pub reachable: Option<bool>,
    /// Of an adaptive wait: true where too few sleeps were seen for the aim; the margin is then as
    /// wide as a fixed one, or as the budget pays.
    pub extrapolated: Option<bool>,
    /// Of an adaptive wait: true where it began with what an earlier run learned.
    #[serde(default)]
    pub resumed: Option<bool>,
    /// The share of its spins in which the processor paused by a timed pause, in [0, 1]; null where
    /// it used none.
    #[serde(default)]
    pub paused_share: Option<f64>,
}

impl Approach {
    /// The approach of a run of the lab at its end.
    pub fn of(run: &RunOutcome) -> Self {
        let learned = run.learned.as_ref();
        Self {
            hop_ns: Some(run.approach.hop_ns).filter(|&ns| ns > 0),
            hops: Some(run.approach.hops).filter(|&hops| hops > 0 && hops < u32::MAX),
            margin_ns: run.approach.margin_ns,
            late_share: learned.map(|learned| learned.late),
            trials_late: learned.map(|learned| learned.trials_late),
            reachable: learned.map(|learned| learned.reachable),
            extrapolated: learned.map(|learned| learned.extrapolated),
            resumed: learned.map(|_| run.resumed),
            paused_share: run.paused.share(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_a_load_are_a_list_and_one_text_in_results_of_before() {
        let report = LoadReport {
            name: "net".to_owned(),
            rate: Some(1.0),
            unit: "MB/s".to_owned(),
            notes: ["a; b", "c"].map(str::to_owned).to_vec(),
            deaths: Vec::new(),
        };
        let load = loads(&[report]).remove(0);
        assert_eq!(load.notes(), ["a; b", "c"]);
        let mut stored = serde_json::to_value(&load).expect("plain data");
        assert_eq!(stored["note"], "a; b; c");
        stored.as_object_mut().and_then(|fields| fields.remove("notes"));
        let before: Load = serde_json::from_value(stored).expect("a result of before");
        assert_eq!(before.notes(), ["a; b; c"]);
    }

    #[test]
    fn releases_that_were_missed_are_no_cycle_that_counts() {
        use punctual_analysis::recording::{Recording, RecordingConfig};
        use punctual_core::sample::Sample;
        let empty = |samples: &[Sample]| {
            let mut recording = Recording::new(RecordingConfig::default());
            recording.extend(samples);
            let figures = recording.finish_with(5, 0);
            assert!(figures.releases() >= 5, "all of them count as releases");
            let run = Run::recorded("idle".to_owned(), Setup::default(), figures);
            let mut verdict = crate::judge(&[], &[], false, crate::UndecidedAs::Itself);
            verdict.judge_measured(std::slice::from_ref(&run));
            assert_eq!(verdict.is_undecided(), run.is_empty(), "the verdict knows it too");
            run.is_empty()
        };
        assert!(empty(&[]));
        assert!(!empty(&[Sample::default()]));
    }

    #[test]
    fn what_a_loop_does_not_preempt_may_have_made_it_late_however_little_it_ran() {
        let ran = |policy: Option<&str>, priority, share| OtherThreads {
            share,
            threads: vec![OtherThread {
                name: "punctual-loop".to_owned(),
                share,
                pid: Some(77),
                processes: 1,
                policy: policy.map(str::to_owned),
                priority,
            }],
        };
        let policy = Some("SCHED_FIFO".to_owned());
        let setup = Setup { cpu: Some(1), policy, priority: Some(90), ..Setup::default() };
        let words = |others: OtherThreads| {
            others.may_have_delayed(&setup).map(|text| text.replace('\u{a0}', " "))
        };
        let fifo = |priority, share| words(ran(Some("SCHED_FIFO"), Some(priority), share));
        assert_eq!(
            fifo(90, 0.02).as_deref(),
            Some(
                "The loop (SCHED_FIFO 90) does not preempt punctual-loop of another process \
                 (SCHED_FIFO 90, pid 77), which used at least 2.0 % of CPU 1: the latest releases \
                 may be its doing."
            )
        );
        assert!(words(ran(Some("SCHED_DEADLINE"), None, 0.02)).is_some());
        assert_eq!(
            (fifo(89, 0.9), fifo(90, 0.0005), words(ran(None, None, 0.9))),
            Default::default()
        );
    }

    #[test]
    fn strangers_are_named_with_their_process_or_how_many_and_the_largest() {
        let thread = |name: &str, share, pid, processes| OtherThread {
            name: name.to_owned(),
            share,
            pid,
            processes,
            ..OtherThread::default()
        };
        let others = OtherThreads {
            share: 0.6,
            threads: vec![
                thread("rustc", 0.3, Some(301), 3),
                thread("sh", 0.2, Some(12), 1),
                thread("kworker/1:2", 0.1, None, 0),
            ],
        };
        let expected = "Not idle: others used at least 60 % of CPU 1: rustc (3 processes, most \
                        pid 301) 30 %, sh (pid 12) 20 %, kworker/1:2 10 %.";
        let sentence = others.not_idle(1).map(|text| text.replace('\u{a0}', " "));
        assert_eq!(sentence.as_deref(), Some(expected));
        let hog = thread("hog (SCHED_FIFO 97)", 0.9, Some(77), 1);
        let waited = KeptWaiting { waited_ns: 1_000_000_000, threads: vec![hog] };
        let sentence = waited.sentence(1).expect("it had the CPU");
        assert!(sentence.starts_with("hog (SCHED_FIFO 97, pid 77) had CPU 1 for "), "{sentence}");
        let loops_of_others = thread("punctual-loop (SCHED_FIFO 90)", 0.9, Some(78), 1).who();
        assert_eq!(loops_of_others, "punctual-loop of another process (SCHED_FIFO 90, pid 78)");
        // Results of before have neither.
        let old: OtherThread = serde_json::from_str(r#"{"name":"sh","share":0.5}"#).expect("valid");
        assert_eq!((old.who(), old.pid), ("sh".to_owned(), None));
    }
}
