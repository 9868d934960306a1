//! Coincidences with late wakes, where the kernel's events may not be recorded: rises of counters
//! around each, against their usual ones.
//!
//! A counter that rose around a late wake as it hardly ever does coincided with it; that it was the
//! cause is not shown, and never said. Pure but for [`LateLog`], which the loop writes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use punctual_blame::config::LateThreshold;
use punctual_blame::share::wilson;
use punctual_host::counts::RisenCount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blamed::SHOWN_WAKES;
use super::{Blamed, BlamedCause, BlamedPart, BlamedRun, BlamedWake, CulpritOwner};
use crate::capture::CaptureRefused;
use crate::capture::counters::{CounterDelta, CounterFallback};

/// Late wakes that are noted.
const NOTED: usize = 1 << 16;
/// Late wakes whose counters are kept: the latest.
const WORST: usize = 200;
/// Wakes whose second read is still to come.
const WAITING: usize = 1_024;
/// Times in which nothing was late that are remembered.
const USUAL: usize = 1_000;
/// Counters that are told apart.
const SUSPECTS: usize = 1_024;
/// Probability of a rise by chance beyond which it proves nothing.
const RARE: f64 = 0.05;
/// The confidence of a coincidence that never came by chance.
const CONFIDENCE: f64 = 0.4;
/// The length that rises of longer times are brought to, ns.
const USUAL_NS: u64 = 10_000_000;
/// Lengths of [`USUAL_NS`] back from now at which usual times are looked for.
const LOOKED_BACK: std::ops::Range<u64> = 3..8;
/// Rises of each kind that results have.
const SHOWN_RISES: usize = 5;
/// The kind of wakes with which nothing coincided.
const UNEXPLAINED: &str = "unexplained";
/// The rule, in results.
const RULE: &str = "coincided";

/// A late wake as its loop saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenWake {
    /// The instant at which it ran, ns on CLOCK_MONOTONIC.
    pub(super) ran_ns: u64,
    pub(super) lateness_ns: u64,
}

impl SeenWake {
    pub(super) const fn release_ns(self) -> u64 {
        self.ran_ns.saturating_sub(self.lateness_ns)
    }
}

/// Wakes that a loop notes, of which another thread reads; of fixed size.
#[derive(Debug)]
pub(super) struct LateLog {
    wakes: Box<[[AtomicU64; 2]]>,
    count: AtomicUsize,
    /// The lateness beyond which wakes are noted, ns.
    over_ns: AtomicU64,
}

impl Default for LateLog {
    fn default() -> Self {
        Self {
            wakes: (0..NOTED).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect(),
            count: AtomicUsize::new(0),
            over_ns: AtomicU64::new(u64::MAX),
        }
    }
}

impl LateLog {
    /// Notes wakes that are later than this, ns, from now on.
    pub(super) fn note_over(&self, over_ns: u64) {
        self.over_ns.store(over_ns, Ordering::Relaxed);
    }

    /// Returns true where a wake so late, ns, is to be noted; in the loop.
    pub(super) fn wants(&self, lateness_ns: u64) -> bool {
        lateness_ns > self.over_ns.load(Ordering::Relaxed)
    }

    /// Notes a wake, in the loop: it alone does that. Without room it is left out.
    pub(super) fn note(&self, wake: SeenWake) {
        let at = self.count.load(Ordering::Relaxed);
        let Some([ran_ns, lateness_ns]) = self.wakes.get(at) else { return };
        ran_ns.store(wake.ran_ns, Ordering::Relaxed);
        lateness_ns.store(wake.lateness_ns, Ordering::Relaxed);
        self.count.store(at + 1, Ordering::Release);
    }

    /// The noted wakes behind the first so many.
    pub(super) fn since(&self, taken: usize) -> impl Iterator<Item = SeenWake> + '_ {
        let count = self.count.load(Ordering::Acquire);
        self.wakes.get(taken..count).unwrap_or_default().iter().map(|[ran_ns, lateness_ns]| {
            SeenWake {
                ran_ns: ran_ns.load(Ordering::Relaxed),
                lateness_ns: lateness_ns.load(Ordering::Relaxed),
            }
        })
    }
}

/// A counter that may have coincided with a late wake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Suspect {
    /// The host took the CPU.
    Steal,
    /// Another thread ran; `is_own` where it is one of this process.
    Thread { tid: i32, name: String, is_own: bool },
    /// A soft interrupt.
    Softirq(String),
    /// An interrupt.
    Interrupt(String),
}

impl Suspect {
    /// Its kind, in a word.
    const fn word(&self) -> &'static str {
        match self {
            Self::Steal => "host",
            Self::Thread { .. } => "thread",
            Self::Softirq(_) => "softirq",
            Self::Interrupt(_) => "interrupt",
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Steal => "coincided with steal: the host took the CPU".to_owned(),
            Self::Thread { tid, name, is_own: false } => {
                format!("coincided with a run of {name} ({tid})")
            }
            Self::Thread { tid, name, is_own: true } => {
                format!("coincided with a run of a thread of this measurement ({name}, {tid})")
            }
            Self::Softirq(name) => format!("coincided with softirq {name}"),
            Self::Interrupt(name) => format!("coincided with interrupt {name}"),
        }
    }
}

impl Suspect {
    /// Its name without numbers, as other results have it.
    fn family(&self) -> String {
        match self {
            Self::Thread { name, .. } => format!("coincided with a run of {name}"),
            _ => self.name(),
        }
    }

    /// Advice about it: without events no more is known than that it came at the same time.
    fn advice(&self) -> &'static str {
        match self {
            Self::Thread { is_own: true, .. } => OWN_THREAD,
            _ => RUN_AS_ROOT,
        }
    }
}

/// Advice about any coincidence.
const RUN_AS_ROOT: &str =
    "Where the kernel's events may be recorded, each part of a wake has its cause: run as root.";
/// Advice about a thread of the measurement.
const OWN_THREAD: &str = "It belongs to the measurement and ends with it: leave it a CPU beside \
                          the measured one.";

/// The counters that rose between two reads, with their rise in 10 ms; of threads in ns.
fn rises(delta: &CounterDelta) -> Vec<(Suspect, u64)> {
    let took_ns = delta.to_ns.saturating_sub(delta.from_ns).max(USUAL_NS);
    let usual = |rise: u64| {
        u64::try_from(u128::from(rise) * u128::from(USUAL_NS) / u128::from(took_ns))
            .unwrap_or(u64::MAX)
    };
    let own = std::process::id().cast_signed();
    let steal = delta.steal_ticks.filter(|&ticks| ticks > 0);
    let threads = delta.others.iter().map(|thread| {
        let is_own = thread.pid == own;
        let suspect = Suspect::Thread { tid: thread.tid, name: thread.name.clone(), is_own };
        (suspect, usual(thread.times.run_ns))
    });
    let softirqs = delta.softirqs.iter().flatten();
    let softirqs = softirqs.map(|rise| (Suspect::Softirq(rise.name.clone()), usual(rise.count)));
    let interrupts = delta.interrupts.iter().flatten();
    let interrupts =
        interrupts.map(|rise| (Suspect::Interrupt(rise.name.clone()), usual(rise.count)));
    // A tick of 10 ms is one whatever the time between the reads.
    let steal = steal.map(|ticks| (Suspect::Steal, ticks));
    steal.into_iter().chain(threads).chain(softirqs).chain(interrupts).collect()
}

/// The rises of counters in times in which nothing was late.
#[derive(Debug, Default)]
struct Usual {
    times: u64,
    rises: BTreeMap<Suspect, Vec<u64>>,
}

impl Usual {
    fn learn(&mut self, delta: &CounterDelta) {
        if self.times >= USUAL as u64 {
            return;
        }
        self.times += 1;
        for (suspect, rise) in rises(delta) {
            if self.rises.len() < SUSPECTS || self.rises.contains_key(&suspect) {
                self.rises.entry(suspect).or_default().push(rise);
            }
        }
    }

    /// The probability that a counter rises by so much anyway, in (0, 1].
    fn chance(&self, suspect: &Suspect, rise: u64) -> f64 {
        let seen = self
            .rises
            .get(suspect)
            .map_or(0, |rises| rises.iter().filter(|&&usual| usual >= rise).count() as u64);
        (seen + 1) as f64 / (self.times + 1) as f64
    }
}

/// A counter that coincided with a wake, and the probability of that by chance, in (0, 1].
#[derive(Clone, Debug, PartialEq)]
struct Coincidence {
    suspect: Suspect,
    chance: f64,
}

/// A late wake with the rises of counters around it.
#[derive(Debug, Clone)]
struct Examined {
    wake: SeenWake,
    delta: CounterDelta,
}

/// Late wakes with the rises of counters around them, and the usual rises.
#[derive(Debug, Default)]
pub(super) struct CoincidenceBook {
    taken: usize,
    waiting: Vec<SeenWake>,
    /// Latest first.
    examined: Vec<Examined>,
    usual: Usual,
}

impl CoincidenceBook {
    /// Takes in the wakes that were noted since, with the rises that `around` gives between two
    /// instants, once it does.
    pub(super) fn look(
        &mut self,
        log: &LateLog,
        around: impl Fn(u64, u64) -> Option<CounterDelta>,
        now_ns: u64,
    ) {
        for wake in log.since(self.taken) {
            self.taken += 1;
            if self.waiting.len() < WAITING {
                self.waiting.push(wake);
            }
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|&wake| match around(wake.release_ns(), wake.ran_ns) {
            Some(delta) => {
                self.examine(Examined { wake, delta });
                false
            }
            // What is not there a second later never is.
            None => now_ns.saturating_sub(wake.ran_ns) < 1_000_000_000,
        });
        self.waiting = waiting;
        if self.examined.len() == WORST
            && let Some(last) = self.examined.last()
        {
            log.note_over(last.wake.lateness_ns);
        }
        // Of what is read by now, the times since the last look.
        for back in LOOKED_BACK {
            let usual_ns = now_ns.saturating_sub(back * USUAL_NS);
            if let Some(delta) = around(usual_ns, usual_ns + 1).filter(|delta| self.is_usual(delta))
            {
                self.usual.learn(&delta);
            }
        }
    }

    /// Returns true where no wake that counts as late lies in a time.
    fn is_usual(&self, delta: &CounterDelta) -> bool {
        let examined = self.examined.iter().map(|examined| &examined.wake);
        let mut late = examined.chain(&self.waiting);
        !late.any(|wake| wake.release_ns() < delta.to_ns && wake.ran_ns > delta.from_ns)
    }

    fn examine(&mut self, examined: Examined) {
        let lateness_ns = examined.wake.lateness_ns;
        let at = self.examined.partition_point(|known| known.wake.lateness_ns >= lateness_ns);
        self.examined.insert(at, examined);
        self.examined.truncate(WORST);
    }

    /// The rarest coincidence with a wake; `None` where none is rare.
    fn coincidence(&self, examined: &Examined) -> Option<Coincidence> {
        let lateness_ns = examined.wake.lateness_ns;
        let explains = |(suspect, rise): &(Suspect, u64)| match suspect {
            // A thread that ran for less cannot have kept it so long.
            Suspect::Thread { .. } => *rise >= lateness_ns.min(USUAL_NS) / 2,
            _ => *rise > 0,
        };
        let found = rises(&examined.delta).into_iter().filter(explains).map(|(suspect, rise)| {
            let chance = self.usual.chance(&suspect, rise);
            Coincidence { suspect, chance }
        });
        let rare = found.filter(|found| found.chance <= RARE);
        rare.min_by(|a, b| a.chance.total_cmp(&b.chance).then(a.suspect.cmp(&b.suspect)))
    }

    /// The result for a loop: its wakes, and the coincidences as causes.
    pub(super) fn blamed(&self, control_loop: CountedLoop, fallback: &CounterFallback) -> Blamed {
        let CountedLoop { name, tid, cpu, kernel_priority, period_ns, duration_ns, late, .. } =
            control_loop;
        let mut sorted_ns = control_loop.lateness_ns;
        sorted_ns.sort_unstable();
        let quantile_ns = |share: f64| {
            let at = (share * sorted_ns.len() as f64).ceil() as usize;
            sorted_ns.get(at.saturating_sub(1)).copied().unwrap_or(0)
        };
        let threshold_ns = match late {
            LateThreshold::Above(threshold_ns) => threshold_ns,
            LateThreshold::Quantile(share) => quantile_ns(share),
        };
        let late = (sorted_ns.len() - sorted_ns.partition_point(|&ns| ns <= threshold_ns)) as u64;
        let is_late = |examined: &&Examined| examined.wake.lateness_ns > threshold_ns;
        let found: Vec<(&Examined, Option<Coincidence>)> = self
            .examined
            .iter()
            .filter(is_late)
            .map(|examined| (examined, self.coincidence(examined)))
            .collect();
        let causes = self.causes(&found, cpu);
        let sentence = sentence(&causes, (late, found.len() as u64), &fallback.why);
        let worst = found.iter().take(SHOWN_WAKES).map(|(examined, coincidence)| {
            blamed_wake(examined, coincidence.as_ref(), (&name, tid, cpu))
        });
        let run = BlamedRun {
            name: name.clone(),
            tid,
            cpu,
            kernel_priority,
            period_ns: Some(period_ns),
            margin_ns: 0,
            wakes: sorted_ns.len() as u64,
            p50_ns: Some(quantile_ns(0.5)),
            p99_ns: Some(quantile_ns(0.99)),
            max_ns: Some(sorted_ns.last().copied().unwrap_or(0)),
            bounds: None,
            threshold_ns: Some(threshold_ns),
            late,
            censored: 0,
            broken: 0,
            unseen: None,
            begun: 0,
            busy: 0,
            busy_longest_ns: 0,
            waiting: 0,
            has_ended: false,
            sentence: sentence.clone(),
            wanted: None,
            causes: causes.clone(),
            busy_causes: Vec::new(),
        };
        Blamed {
            sentence,
            duration_ns,
            causes,
            busy_causes: Vec::new(),
            worst: worst.collect(),
            runs: vec![run],
            more_runs: 0,
            senders: Vec::new(),
            price: None,
            evidence: None,
            lost: 0,
            holes: 0,
            unknown_releases: 0,
            flaws: Vec::new(),
            stopped_by: None,
            kept: None,
            fallback: Some(fallback.to_string()),
        }
    }

    /// The coincidences as causes, that of the most lateness first, and what is unexplained last.
    fn causes(&self, found: &[(&Examined, Option<Coincidence>)], cpu: u32) -> Vec<BlamedCause> {
        let late = found.len() as u64;
        let all_ns: u64 = found.iter().map(|(examined, _)| examined.wake.lateness_ns).sum();
        let lateness_ns = |(examined, _): &(&Examined, _)| examined.wake.lateness_ns;
        let latest_ns = found.iter().map(lateness_ns).max().unwrap_or(0);
        let mut groups: BTreeMap<Option<&Suspect>, Vec<(u64, f64)>> = BTreeMap::new();
        for (examined, coincidence) in found {
            let suspect = coincidence.as_ref().map(|found| &found.suspect);
            let chance = coincidence.as_ref().map_or(1.0, |found| found.chance);
            groups.entry(suspect).or_default().push((examined.wake.lateness_ns, chance));
        }
        let row = |(suspect, wakes): (Option<&Suspect>, Vec<(u64, f64)>)| {
            let count = wakes.len() as u64;
            let time_ns: u64 = wakes.iter().map(|(lateness_ns, _)| lateness_ns).sum();
            let worst_ns = wakes.iter().map(|(lateness_ns, _)| *lateness_ns).max().unwrap_or(0);
            let chance = wakes.iter().map(|(_, chance)| chance).sum::<f64>() / count as f64;
            let evidence = match suspect {
                None => "no counter rose as it rarely does".to_owned(),
                Some(_) => format!(
                    "rose as much in {:.1} % of {} other times of 10 ms: no proof that it was the \
                     cause",
                    100.0 * chance,
                    self.usual.times,
                ),
            };
            BlamedCause {
                cause: suspect.map_or(UNEXPLAINED, Suspect::word).to_owned(),
                name: suspect.map_or_else(|| "nothing coincided".to_owned(), Suspect::name),
                family: suspect.map_or_else(|| "nothing coincided".to_owned(), Suspect::family),
                program: None,
                threads: u64::from(matches!(suspect, Some(Suspect::Thread { .. }))),
                processes: 0,
                largest: None,
                owner: match suspect {
                    Some(Suspect::Thread { is_own: true, .. }) => CulpritOwner::Measurement,
                    _ => CulpritOwner::Stranger,
                },
                cpu: Some(cpu),
                wakes: count,
                touched: count,
                share_of_late: count as f64 / late.max(1) as f64,
                share_between: wilson(count, late),
                time_ns,
                share_of_time: time_ns as f64 / all_ns.max(1) as f64,
                worst_ns,
                is_of_latest: worst_ns == latest_ns,
                latest_under: None,
                confidence: suspect.map_or(0.0, |_| CONFIDENCE * (1.0 - chance)),
                rule: RULE.to_owned(),
                evidence,
                advice: suspect.map_or(RUN_AS_ROOT, Suspect::advice).to_owned(),
                tune_rule: None,
            }
        };
        let mut rows: Vec<BlamedCause> = groups.into_iter().map(row).collect();
        rows.sort_by_key(|row| (row.cause == UNEXPLAINED, std::cmp::Reverse(row.time_ns)));
        rows
    }
}

/// The loop that was counted.
#[derive(Debug)]
pub(super) struct CountedLoop {
    pub(super) name: String,
    pub(super) tid: u32,
    pub(super) cpu: u32,
    pub(super) kernel_priority: i32,
    pub(super) period_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) late: LateThreshold,
    /// The lateness of each wake, ns.
    pub(super) lateness_ns: Vec<u64>,
}

/// The answer in a few sentences: first what is missing for a cause, and what would give it.
fn sentence(causes: &[BlamedCause], (late, examined): (u64, u64), why: &CaptureRefused) -> String {
    if late == 0 {
        return "No wake was late.".to_owned();
    }
    let missing = "for the kernel's events may not be recorded";
    let around = format!("around the latest {examined} of {late} late wakes");
    let found: Vec<String> = causes
        .iter()
        .filter(|cause| cause.cause != UNEXPLAINED)
        .take(3)
        .map(|cause| format!("{:.0} % of the time {}", 100.0 * cause.share_of_time, cause.name))
        .collect();
    if found.is_empty() {
        return format!(
            "No cause can be named, {missing}: {why}. Counters are what is left, and none rose \
             {around} as it rarely does."
        );
    }
    format!(
        "No cause can be shown, {missing}: {why}. Counters {around} say what came at the same \
         time, which need not be the cause: {}.",
        found.join("; ")
    )
}

fn blamed_wake(
    examined: &Examined,
    coincidence: Option<&Coincidence>,
    (name, tid, cpu): (&str, u32, u32),
) -> BlamedWake {
    let Examined { wake, delta } = examined;
    let cause = coincidence.map_or_else(|| "nothing coincided".to_owned(), |f| f.suspect.name());
    let confidence = coincidence.map_or(0.0, |found| CONFIDENCE * (1.0 - found.chance));
    let part = BlamedPart {
        after_ns: 0,
        length_ns: wake.lateness_ns,
        cpu,
        cause: cause.clone(),
        rule: RULE.to_owned(),
        confidence,
        is_sum: false,
    };
    BlamedWake {
        name: name.to_owned(),
        tid,
        cpu,
        release_ns: wake.release_ns(),
        lateness_ns: wake.lateness_ns,
        cause,
        is_whole: true,
        parts: vec![part],
        chain: Vec::new(),
        counters: Some(BlamedCounters::of(delta)),
        processor: None,
    }
}

/// The rises of counters around a late wake: from the read before it to the one behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedCounters {
    /// The time between the reads, ns.
    pub length_ns: u64,
    /// Interrupts of the CPU, those that came most often first, at most 5; null where they cannot
    /// be read.
    pub interrupts: Option<Vec<CountedRise>>,
    /// Its soft interrupts, likewise.
    pub softirqs: Option<Vec<CountedRise>>,
    /// Time that the host took of the CPU, in steps of 10 ms; null where it cannot be read.
    pub steal_ticks: Option<u64>,
    /// CPU time of the loop, ns; null where it cannot be read.
    pub own_run_ns: Option<u64>,
    /// Time that the loop was ready and had no CPU, ns: a lower bound, mostly 0 for real-time
    /// threads.
    pub own_wait_ns: Option<u64>,
    /// CPU time of other threads that were on the CPU last, longest first, at most 5.
    pub others: Vec<CountedThread>,
}

/// A counter that rose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountedRise {
    /// As the kernel's file has it: `LOC Local timer interrupts`, `NET_RX`.
    pub name: String,
    /// Its rise.
    pub count: u64,
}

/// Another thread that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountedThread {
    /// The thread's name.
    pub name: String,
    /// Its number.
    pub tid: i32,
    /// Its CPU time, ns, on any CPU.
    pub run_ns: u64,
}

impl BlamedCounters {
    fn of(delta: &CounterDelta) -> Self {
        let shown = |rises: &Option<Vec<RisenCount>>| {
            let rises = rises.as_ref()?.iter().take(SHOWN_RISES);
            let rise =
                |rise: &RisenCount| CountedRise { name: rise.name.clone(), count: rise.count };
            Some(rises.map(rise).collect())
        };
        let others = delta.others.iter().take(SHOWN_RISES).map(|thread| CountedThread {
            name: thread.name.clone(),
            tid: thread.tid,
            run_ns: thread.times.run_ns,
        });
        Self {
            length_ns: delta.to_ns.saturating_sub(delta.from_ns),
            interrupts: shown(&delta.interrupts),
            softirqs: shown(&delta.softirqs),
            steal_ticks: delta.steal_ticks,
            own_run_ns: delta.own.map(|own| own.run_ns),
            own_wait_ns: delta.own.map(|own| own.wait_ns),
            others: others.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::threads::ThreadTimes;

    use crate::capture::counters::ThreadRise;

    const MS: u64 = 1_000_000;

    fn rise(name: &str, count: u64) -> RisenCount {
        RisenCount { name: name.to_owned(), count }
    }

    fn thread(tid: i32, run_ns: u64) -> ThreadRise {
        let times = ThreadTimes { run_ns, wait_ns: 0, slices: 1 };
        ThreadRise { pid: 1, tid, name: format!("t{tid}"), times }
    }

    /// Ten milliseconds of a machine whose timer ticks.
    fn quiet(from_ns: u64) -> CounterDelta {
        CounterDelta {
            from_ns,
            to_ns: from_ns + 10 * MS,
            interrupts: Some(vec![rise("LOC", 3)]),
            softirqs: Some(vec![rise("TIMER", 2)]),
            steal_ticks: Some(0),
            own: Some(ThreadTimes::default()),
            others: vec![thread(5, MS)],
        }
    }

    fn book(deltas: &[(u64, CounterDelta)]) -> CoincidenceBook {
        let mut book = CoincidenceBook::default();
        (0..100).for_each(|time| book.usual.learn(&quiet(time)));
        for &(lateness_ns, ref delta) in deltas {
            let wake = SeenWake { ran_ns: 1_000 * MS + lateness_ns, lateness_ns };
            book.examine(Examined { wake, delta: delta.clone() });
        }
        book
    }

    fn counted(lateness_ns: Vec<u64>, late: LateThreshold) -> CountedLoop {
        CountedLoop {
            name: "loop".to_owned(),
            tid: 9,
            cpu: 1,
            kernel_priority: 9,
            period_ns: MS,
            duration_ns: 1_000 * MS,
            late,
            lateness_ns,
        }
    }

    #[test]
    fn what_is_rare_coincided_and_what_is_usual_did_not() {
        let hog = CounterDelta { others: vec![thread(7, 2 * MS), thread(5, MS)], ..quiet(0) };
        let steal = CounterDelta { steal_ticks: Some(1), ..quiet(0) };
        let net = CounterDelta { softirqs: Some(vec![rise("NET_RX", 50)]), ..quiet(0) };
        let storm = CounterDelta { interrupts: Some(vec![rise("LOC", 300)]), ..quiet(0) };
        // Too short a run to keep anybody for 2 ms.
        let brief = CounterDelta { others: vec![thread(8, 100_000)], ..quiet(0) };
        let late = [
            (2 * MS, hog),
            (1_900_000, steal),
            (1_800_000, net),
            (1_700_000, storm),
            (1_600_000, brief),
            (1_500_000, quiet(0)),
        ];
        let book = book(&late);
        let words: Vec<Option<String>> = book
            .examined
            .iter()
            .map(|examined| book.coincidence(examined).map(|found| found.suspect.name()))
            .collect();
        let named = |text: &str| Some(format!("coincided with {text}"));
        assert_eq!(
            words,
            [
                named("a run of t7 (7)"),
                named("steal: the host took the CPU"),
                named("softirq NET_RX"),
                named("interrupt LOC"),
                None,
                None,
            ]
        );
        let lateness_ns = late.iter().map(|(lateness_ns, _)| *lateness_ns);
        let lateness_ns = lateness_ns.chain((0..94).map(|_| 10_000)).collect();
        let late = LateThreshold::Above(MS);
        let blamed = book.blamed(counted(lateness_ns, late), &refused());
        assert_eq!(blamed.runs[0].late, 6);
        assert_eq!(blamed.causes.iter().map(|cause| cause.wakes).sum::<u64>(), 6);
        let shares: f64 = blamed.causes.iter().map(|cause| cause.share_of_late).sum();
        assert!((shares - 1.0).abs() < 1e-9);
        assert!(blamed.causes.iter().all(|cause| cause.confidence <= 0.4));
        let last = blamed.causes.last().expect("rows");
        assert_eq!((last.cause.as_str(), last.wakes, last.confidence), ("unexplained", 2, 0.0));
        assert!(blamed.sentence.contains("coincided"), "{}", blamed.sentence);
        assert!(blamed.sentence.starts_with("No cause can be shown, "), "{}", blamed.sentence);
        assert!(blamed.sentence.contains(" is 2: needs root, CAP_PERFMON,"), "{}", blamed.sentence);
        let time_ns: Vec<u64> = blamed.causes.iter().map(|cause| cause.time_ns).collect();
        assert_eq!(time_ns, [2 * MS, 1_900_000, 1_800_000, 1_700_000, 3_100_000]);
        let latest = blamed.causes.iter().position(|cause| cause.is_of_latest);
        assert_eq!(latest, Some(0));
        for wake in &blamed.worst {
            assert_eq!(wake.parts[0].length_ns, wake.lateness_ns);
            let counters = wake.counters.as_ref().expect("read");
            assert_eq!(counters.length_ns, 10 * MS);
        }
    }

    fn refused() -> CounterFallback {
        CounterFallback { why: CaptureRefused::Paranoid { level: Some(2) } }
    }

    #[test]
    fn where_nothing_coincided_the_answer_says_what_is_missing_and_what_gives_it() {
        let book = book(&[(2 * MS, quiet(0))]);
        let late = LateThreshold::Above(MS);
        let blamed = book.blamed(counted(vec![2 * MS], late), &refused());
        let expected = "No cause can be named, for the kernel's events may not be recorded: \
                        kernel.perf_event_paranoid is 2: needs root, CAP_PERFMON, or the value -1. \
                        Counters are what is left, and none rose around the latest 1 of 1 late \
                        wakes as it rarely does.";
        assert_eq!(blamed.sentence, expected);
    }

    #[test]
    fn a_thread_of_the_measurement_is_no_stranger() {
        let own = std::process::id().cast_signed();
        let watch = ThreadRise { pid: own, ..thread(7, 2 * MS) };
        let delta = CounterDelta { others: vec![watch, thread(5, MS)], ..quiet(0) };
        let book = book(&[(2 * MS, delta)]);
        let late = LateThreshold::Above(MS);
        let blamed = book.blamed(counted(vec![2 * MS], late), &refused());
        let cause = &blamed.causes[0];
        assert_eq!(cause.name, "coincided with a run of a thread of this measurement (t7, 7)");
        assert_eq!(cause.owner, CulpritOwner::Measurement);
        assert_eq!(cause.advice, OWN_THREAD);
    }

    #[test]
    fn a_longer_time_is_brought_to_the_usual_length() {
        let long = CounterDelta {
            to_ns: 100 * MS,
            interrupts: Some(vec![rise("LOC", 30)]),
            softirqs: Some(vec![rise("TIMER", 20)]),
            others: vec![thread(5, 10 * MS)],
            ..quiet(0)
        };
        let book = book(&[(95 * MS, long)]);
        assert_eq!(book.coincidence(&book.examined[0]), None);
    }

    #[test]
    fn what_is_unknown_is_no_evidence() {
        let unknown = CounterDelta { from_ns: 0, to_ns: 10 * MS, ..CounterDelta::default() };
        let book = book(&[(2 * MS, unknown)]);
        assert_eq!(book.coincidence(&book.examined[0]), None);
        let none = CoincidenceBook::default();
        let early = counted(Vec::new(), LateThreshold::Quantile(0.99));
        let blamed = none.blamed(early, &refused());
        assert_eq!(blamed.sentence, "No wake was late.");
        assert!(blamed.causes.is_empty() && blamed.worst.is_empty());
    }

    #[test]
    fn without_what_is_usual_nothing_is_rare() {
        let mut book = CoincidenceBook::default();
        let wake = SeenWake { ran_ns: 9, lateness_ns: 5 };
        let delta = CounterDelta { steal_ticks: Some(9), ..quiet(0) };
        book.examine(Examined { wake, delta });
        assert_eq!(book.coincidence(&book.examined[0]), None);
    }

    #[test]
    fn the_latest_wakes_are_examined_once_their_counters_are_read() {
        let log = LateLog::default();
        assert!(!log.wants(u64::MAX), "nothing is asked for yet");
        log.note_over(10);
        assert!(log.wants(11) && !log.wants(10));
        let mut book = CoincidenceBook::default();
        for number in 0..500 {
            let (ran_ns, lateness_ns) = (1_000 * MS + number, 100 + number * 7_919 % 500);
            log.note(SeenWake { ran_ns, lateness_ns });
        }
        book.look(&log, |_, _| None, 1_001 * MS);
        assert_eq!((book.examined.len(), book.waiting.len(), book.usual.times), (0, 500, 0));
        book.look(&log, |from_ns, _| Some(quiet(from_ns)), 1_002 * MS);
        assert_eq!((book.examined.len(), book.waiting.len()), (WORST, 0));
        let lateness: Vec<u64> =
            book.examined.iter().map(|examined| examined.wake.lateness_ns).collect();
        assert_eq!(lateness, (400..600).rev().collect::<Vec<u64>>());
        assert!(!log.wants(400) && log.wants(401), "only later ones are of interest");
        assert_eq!(book.usual.times, 5, "times before the first of them");
        book.look(&log, |from_ns, _| Some(quiet(from_ns)), 1_035 * MS);
        assert_eq!(book.usual.times, 9, "one has late wakes in it");
    }

    #[test]
    fn a_wake_whose_counters_never_come_is_given_up() {
        let log = LateLog::default();
        log.note(SeenWake { ran_ns: MS, lateness_ns: 5 });
        let mut book = CoincidenceBook::default();
        book.look(&log, |_, _| None, 2 * MS);
        assert_eq!(book.waiting.len(), 1);
        book.look(&log, |_, _| None, 1_001 * MS);
        assert!(book.waiting.is_empty() && book.examined.is_empty());
    }

    #[test]
    fn a_full_log_leaves_out_what_comes_then() {
        let log = LateLog::default();
        for number in 0..NOTED as u64 + 10 {
            log.note(SeenWake { ran_ns: number, lateness_ns: 1 });
        }
        assert_eq!(log.since(0).count(), NOTED);
        assert_eq!(log.since(NOTED + 5).count(), 0);
    }
}
