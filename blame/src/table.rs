//! The table of causes, and the sentence that stands before it.

use std::fmt;

use punctual_analysis::plain::{concise, grouped};
use punctual_trace::event::TaskName;

use crate::addresses::repeated_certainty;
use crate::advice::{AdviceContext, CauseAdvice, advice};
use crate::cause::{CauseKind, Certainty, LateCause, RuleId, Who};
use crate::config::{BlameConfig, LateThreshold};
use crate::culprits::{Culprits, who};
use crate::frequency::SlowClock;
use crate::ledger::{BookedCause, LatePart, OpenWakes};
use crate::machine::Platform;
use crate::passed::PassedReleases;
use crate::senders::SenderCount;
use crate::share::{per_cent, share, wilson};
use crate::spread::LatenessBounds;
use crate::unseen::UnseenWakes;

/// Shares of fewer late wakes than this are not shown as such.
const NEEDED: u64 = 10;
/// Causes in a sentence.
const NAMED: usize = 3;
/// Share of the time below which the normal path, or what is unexplained, is one of the other
/// causes.
const OPEN_SHARE: f64 = 0.01;
/// A share of the time below this is not named in a sentence.
const NAMED_SHARE: f64 = 0.03;

/// One cause among the late wakes.
#[derive(Debug, Clone, PartialEq)]
pub struct CauseRow {
    /// The cause; of several threads of one program without a number.
    pub cause: LateCause,
    /// Its name, with those of this machine.
    pub name: String,
    /// The same without numbers of threads: its name in every recording.
    pub family: String,
    /// The cause that it is counted by, as [`LateCause::grouped`] gives it.
    pub group: LateCause,
    /// The threads that it names.
    pub culprits: Culprits,
    /// The only CPU that it was on; `None` for several.
    pub cpu: Option<u32>,
    /// Late wakes of which it is the main cause.
    pub wakes: u64,
    /// Their share of all late wakes, 0..1.
    pub share_of_late: f64,
    /// The lower end of the interval of that share at 95 %, by Wilson's formula (1927); wide where
    /// wakes are few.
    pub share_low: f64,
    /// The upper end of that interval.
    pub share_high: f64,
    /// Late wakes that have it at all.
    pub touched: u64,
    /// Its time in all late wakes, ns.
    pub time_ns: u64,
    /// Its share of the lateness of all late wakes, 0..1; those of all rows make 1.
    pub share_of_time: f64,
    /// The most that it took of one wake, ns.
    pub worst_ns: u64,
    /// Its confidence, 0..1: the certainty of its rules; of wakes with missing records half, times
    /// the share of each that is explained.
    pub confidence: f64,
    /// The rule that booked it first.
    pub rule: RuleId,
    /// The evidence for it, in words.
    pub evidence: String,
    /// Advice against it; empty where too much was lost to advise anything.
    pub advice: CauseAdvice,
}

impl CauseRow {
    /// Returns true where it is time that the recording itself took, and none of the machine's
    /// doing.
    #[must_use]
    pub fn is_of_recording(&self) -> bool {
        self.culprits.are_the_recorder()
    }
}

/// Late wakes that are too few for shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFewLate {
    /// Late wakes so far.
    pub late: u64,
    /// Late wakes that shares need.
    pub needed: u64,
    /// The time until there are as many at the rate so far, ns; `None` where none was late, and of
    /// a capture that was cut down to late wakes.
    pub more_ns: Option<u64>,
}

/// The causes of late wakes, of one thread or of several.
#[derive(Debug, Clone, PartialEq)]
pub struct CauseTable {
    /// The lateness beyond which a wake is late, ns; of several threads `None` where they differ.
    pub threshold_ns: Option<u64>,
    /// Wakes, late or not.
    pub wakes: u64,
    /// Late wakes.
    pub late: u64,
    /// Their lateness together, ns.
    pub lateness_ns: u64,
    /// The lateness of the latest of all wakes, between its bounds.
    pub worst: LatenessBounds,
    /// Causes: those that took most time first, the normal path and what is unexplained last.
    pub rows: Vec<CauseRow>,
    /// The cause of the latest wake; `None` where none was late.
    pub worst_cause: Option<WorstCause>,
    /// The late wakes, where they are too few for shares; else `None`.
    pub undecided: Option<TooFewLate>,
    /// Wakes across which events were lost: they are in no row. Where these are too many, nothing
    /// is decided.
    pub unseen: UnseenWakes,
    /// What made cycles so long that releases passed before their threads waited again, which no
    /// wake shows, in the same order: of each cycle the time by which it went on past its next
    /// release.
    pub passed: Vec<CauseRow>,
    /// The table in a few sentences, for the user.
    pub sentence: String,
}

/// The cause that most of the latest wake is booked to, beside the normal path.
#[derive(Debug, Clone, PartialEq)]
pub struct WorstCause {
    /// The lateness of that wake, ns.
    pub lateness_ns: u64,
    /// Its cause, as [`CauseRow::group`] has it.
    pub group: LateCause,
    /// The name of that.
    pub name: String,
    /// The time of that, ns.
    pub time_ns: u64,
}

/// The sums that a table is made of.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableInput {
    pub(crate) threshold_ns: Option<u64>,
    pub(crate) wakes: u64,
    pub(crate) worst: LatenessBounds,
    pub(crate) late: LatePart,
    pub(crate) open: OpenWakes,
    pub(crate) busy: PassedReleases,
    /// The cycles that let those pass.
    pub(crate) passed: LatePart,
    pub(crate) unseen: UnseenWakes,
    pub(crate) duration_ns: u64,
    /// The thread's priority, as the kernel counts; `None` for threads of several.
    pub(crate) kernel_priority: Option<i32>,
}

impl TableInput {
    /// Adds the late wakes of another thread.
    pub(crate) fn merge(&mut self, with: &Self) {
        self.threshold_ns = self.threshold_ns.filter(|_| self.threshold_ns == with.threshold_ns);
        self.kernel_priority =
            self.kernel_priority.filter(|_| self.kernel_priority == with.kernel_priority);
        self.wakes += with.wakes;
        self.worst = self.worst.max(with.worst);
        self.open.merge(with.open);
        self.busy.merge(with.busy);
        self.unseen.merge(with.unseen);
        self.late.merge(&with.late);
        self.passed.merge(&with.passed);
    }
}

/// Makes the table; `senders` are those of the whole recording.
pub(crate) fn table(
    input: &TableInput,
    config: &BlameConfig,
    senders: &[SenderCount],
) -> CauseTable {
    let LatePart { late, worst, .. } = input.late;
    let rows = rows(&input.late, Counted::Wakes, input, config, senders);
    let passed = self::rows(&input.passed, Counted::Cycles, input, config, senders);
    let lateness_ns = time_ns(&rows);
    let undecided = (late < NEEDED && input.wakes > 0).then(|| TooFewLate {
        late,
        needed: NEEDED,
        more_ns: input
            .duration_ns
            .checked_div(late)
            .filter(|_| !config.is_cut)
            .map(|each| each.saturating_mul(NEEDED - late)),
    });
    let worst_cause = worst.map(|worst| {
        let row = rows.iter().find(|row| row.group == worst.cause);
        WorstCause {
            lateness_ns: worst.lateness_ns,
            group: worst.cause,
            name: row.map_or_else(|| name(&worst.cause, config), |row| row.name.clone()),
            time_ns: worst.time_ns,
        }
    });
    let mut table = CauseTable {
        threshold_ns: input.threshold_ns,
        wakes: input.wakes,
        late,
        lateness_ns,
        worst: input.worst,
        rows,
        worst_cause,
        undecided,
        unseen: input.unseen,
        passed,
        sentence: String::new(),
    };
    let busy = passed_before_a_wait(&table, input.busy, config).unwrap_or_default();
    let seen = busy + &sentence(&table, input, config);
    table.sentence = with_unseen(&table.unseen, seen);
    if table.unseen.is_too_much() {
        // What is left is no fair sample: nothing is to be changed for it.
        for row in table.rows.iter_mut().chain(&mut table.passed) {
            row.advice = CauseAdvice { text: String::new(), rule: None };
        }
    }
    table
}

/// The answer about the wakes that were seen, with how much was not: before it where that is so
/// much that nothing is decided.
fn with_unseen(unseen: &UnseenWakes, seen: String) -> String {
    match unseen.words() {
        None => seen,
        Some(words) if unseen.is_too_much() => format!(
            "Undecided: {words}. A longer period, or an idle CPU for the reader, loses less. Of \
             what was seen: {seen}"
        ),
        Some(words) => format!("{seen} Not seen: {words}."),
    }
}

/// What the sums of a row count.
#[derive(Debug, Clone, Copy)]
enum Counted {
    Wakes,
    /// Cycles that let releases pass.
    Cycles,
}

impl Counted {
    /// `12 wakes`.
    fn words(self, count: u64) -> String {
        let noun = match (self, count) {
            (Self::Wakes, 1) => "wake",
            (Self::Wakes, _) => "wakes",
            (Self::Cycles, 1) => "cycle",
            (Self::Cycles, _) => "cycles",
        };
        format!("{} {noun}", grouped(count))
    }
}

/// The sums that a row is a part of.
#[derive(Debug, Clone, Copy)]
struct LateSums {
    counted: Counted,
    late: u64,
    lateness_ns: u64,
    /// The late thread's priority, as the kernel counts; `None` for several threads.
    kernel_priority: Option<i32>,
}

/// The causes of a part of a ledger: those that took most time first, the normal path and what is
/// unexplained last.
fn rows(
    late_part: &LatePart,
    counted: Counted,
    input: &TableInput,
    config: &BlameConfig,
    senders: &[SenderCount],
) -> Vec<CauseRow> {
    let LatePart { late, no_single, .. } = *late_part;
    let mut causes = late_part.causes.clone();
    causes.extend((no_single > 0).then(|| BookedCause::no_single(no_single)));
    let lateness_ns: u64 = causes.iter().map(|booked| booked.sum.time_ns).sum();
    let late_sums = LateSums { counted, late, lateness_ns, kernel_priority: input.kernel_priority };
    let rows = causes.iter().map(|booked| row(booked, late_sums, config, senders));
    let mut rows: Vec<CauseRow> = rows.collect();
    rows.sort_by(|a, b| {
        let rank = |row: &CauseRow| match row.cause.kind() {
            CauseKind::NormalPath => 3,
            CauseKind::Unexplained => 2,
            CauseKind::NoSingle => 1,
            _ => 0,
        };
        let by_time = b.time_ns.cmp(&a.time_ns).then(b.wakes.cmp(&a.wakes));
        rank(a).cmp(&rank(b)).then(by_time)
    });
    rows
}

/// The time of all causes together, ns.
fn time_ns(rows: &[CauseRow]) -> u64 {
    rows.iter().map(|row| row.time_ns).sum()
}

fn row(
    booked: &BookedCause,
    late_sums: LateSums,
    config: &BlameConfig,
    senders: &[SenderCount],
) -> CauseRow {
    let BookedCause { cause: group, sum, culprits, cpu, rule, .. } = booked;
    let (group, cpu) = (*group, *cpu);
    let only = culprits.only().map_or(0, |only| only.task.tid);
    let cause = group.with_tid(only);
    let (share_low, share_high) = wilson(sum.main, late_sums.late);
    let context = AdviceContext {
        machine: &config.machine,
        symbols: &config.symbols,
        cpu,
        owner: culprits.owner(),
        is_waker: sum.touched > 0 && sum.by_waker == sum.touched,
        late_priority: late_sums.kernel_priority,
    };
    CauseRow {
        cause,
        name: name_by(&group, config, |task| culprits.words(task)),
        family: name_by(&group, config, |task| who(TaskName { tid: 0, ..task }, culprits.owner())),
        group,
        culprits: culprits.clone(),
        cpu,
        wakes: sum.main,
        share_of_late: share(sum.main, late_sums.late),
        share_low,
        share_high,
        touched: sum.touched,
        time_ns: sum.time_ns,
        share_of_time: share(sum.time_ns, late_sums.lateness_ns),
        worst_ns: sum.worst_ns,
        confidence: confidence(booked).min(most_confident(&cause, config)),
        rule: *rule,
        evidence: evidence(booked, late_sums.counted, config, senders),
        advice: advice(&cause, context),
    }
}

/// The confidence in a cause by its rules, 0..1. That an address came often holds for its first
/// wakes too.
fn confidence(booked: &BookedCause) -> f64 {
    let BookedCause { sum, repeats, .. } = booked;
    if sum.time_ns == 0 {
        return 0.0;
    }
    let time_ns = sum.time_ns as f64;
    let often = repeated_certainty(*repeats).map_or(0.0, Certainty::confidence);
    sum.trust_ns.max(time_ns * often) / time_ns
}

/// On the machine itself only a count of system management interrupts can confirm the firmware; one
/// that stayed at 0 speaks against it.
fn most_confident(cause: &LateCause, config: &BlameConfig) -> f64 {
    match (cause, config.machine.platform, config.machine.smi_count) {
        (LateCause::HostOrFirmware, Platform::VirtualMachine, _) => 1.0,
        (LateCause::HostOrFirmware, _, None) => Certainty::Fair.confidence(),
        (LateCause::HostOrFirmware, Platform::Metal, Some(0)) => Certainty::Weak.confidence(),
        _ => 1.0,
    }
}

/// The name of a cause where the platform is known.
pub(crate) fn name(cause: &LateCause, config: &BlameConfig) -> String {
    name_by(cause, config, |task| Who(task).to_string())
}

/// As [`name`], where `who` has the words for a thread.
pub(crate) fn name_by(
    cause: &LateCause,
    config: &BlameConfig,
    who: impl Fn(TaskName) -> String,
) -> String {
    match (cause, config.machine.platform) {
        (LateCause::HostOrFirmware, Platform::VirtualMachine) => "host took the CPU".to_owned(),
        (LateCause::HostOrFirmware, Platform::Metal) => match config.machine.smi_count {
            Some(0) => "CPU stood still, without an SMI".to_owned(),
            _ => "firmware took the CPU".to_owned(),
        },
        (LateCause::IdleExit { .. }, Platform::VirtualMachine) => {
            "host woke the idle CPU late".to_owned()
        }
        _ => cause.name_by(&config.symbols, who),
    }
}

fn evidence(
    booked: &BookedCause,
    counted: Counted,
    config: &BlameConfig,
    senders: &[SenderCount],
) -> String {
    let BookedCause { cause, sum, culprits, .. } = booked;
    let touched = counted.words(sum.touched);
    let mut text = match cause.kind() {
        CauseKind::NoSingle => return format!("{touched} without a cause of a fifth"),
        CauseKind::HigherPriority | CauseKind::EqualPriority | CauseKind::FairShare => {
            format!("sched_switch: it ran in {touched} while the thread was ready")
        }
        CauseKind::TimerThread => {
            format!("it ran between its timer's interrupt and its timer's function in {touched}")
        }
        CauseKind::NotPreempted => {
            format!("it ran in {touched} although a switch was wanted")
        }
        CauseKind::Throttled | CauseKind::FairServer => {
            format!("the scheduler chose a lower thread in {touched}")
        }
        CauseKind::InterruptsOff => {
            format!("the timer found the end of the section in {touched}")
        }
        CauseKind::Migration => {
            format!("its timer was on another CPU, or it waited there, in {touched}")
        }
        CauseKind::Frequency => slow_clock(cause, &touched),
        CauseKind::HostOrFirmware if booked.rule == RuleId::OwnStall => {
            format!("its own code ran, but more than half of its CPU time is missing, in {touched}")
        }
        CauseKind::NoEvent if booked.rule == RuleId::OwnGap => {
            format!("it ran, has nothing to do in its cycles, and no event came, in {touched}")
        }
        CauseKind::NoEvent if booked.rule == RuleId::SleepCallGap => {
            format!("it was in a call that only sleeps, and no event came, in {touched}")
        }
        CauseKind::HostOrFirmware
        | CauseKind::NoEvent
        | CauseKind::HostOrInterruptsOff
        | CauseKind::IdleExit => {
            format!("no event while its interrupt was due, in {touched}")
        }
        CauseKind::Unexplained => format!("in {touched}"),
        _ => format!("events on both sides, in {touched}"),
    };
    // Of other causes the CPU is known to have run.
    let is_still = matches!(
        cause.kind(),
        CauseKind::HostOrFirmware
            | CauseKind::NoEvent
            | CauseKind::HostOrInterruptsOff
            | CauseKind::InterruptsOff
            | CauseKind::IdleExit
    );
    if is_still && !sum.stalls.is_empty() {
        text.push_str(&format!("; {}", sum.stalls));
    }
    if let Some(count) = config.machine.smi_count.filter(|_| cause.is_without_events()) {
        text.push_str(&format!("; {} SMIs counted", grouped(count)));
    }
    if sum.followed > 0 {
        let wakes = counted.words(sum.followed);
        text.push_str(&format!("; in {wakes} by the wake before, which it made late"));
    }
    if sum.inferred > 0 {
        let wakes = counted.words(sum.inferred);
        text.push_str(&format!(
            "; in {wakes} a later event of its CPU shows who ran: its first one, or the CPU time \
             booked"
        ));
    }
    if sum.broken > 0 {
        let wakes = counted.words(sum.broken);
        text.push_str(&format!("; records are missing of {wakes}, which count half for that"));
    }
    if let LateCause::Ipi { sender: Some(_) } = cause {
        let is_it = |count: &&SenderCount| culprits.have(count.sender);
        let sent: Vec<&SenderCount> = senders.iter().filter(is_it).collect();
        let sends: u64 = sent.iter().map(|count| count.sends).sum();
        if let Some(first) = sent.first() {
            text.push_str(&format!("; {} sends recorded", grouped(sends)));
            if let Some(function) = config.symbols.name(first.function) {
                text.push_str(&format!(", the last for {function}"));
            }
        }
    }
    text
}

/// Evidence that a lower frequency made the kernel's own part of the way longer, in words.
fn slow_clock(cause: &LateCause, touched: &str) -> String {
    let LateCause::Frequency { usual_khz, khz } = *cause else { return String::new() };
    format!(
        "cpu_frequency: {usual_khz} → {khz} kHz, {:.1} times slower, and the kernel's part of the \
         way took no more times as long, in {touched}",
        SlowClock { usual_khz, khz }.ratio(),
    )
}

/// A duration with three figures, in the unit that suits it, without zeros that say nothing.
fn shown_duration(duration_ns: u64) -> String {
    let (unit_ns, unit) = match duration_ns {
        0..1_000 => (1.0, "ns"),
        1_000..1_000_000 => (1e3, "µs"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", concise(duration_ns as f64 / unit_ns))
}

/// The sentence of a recording in which no followed thread woke.
const NO_WAKE: &str = "No wake was seen: record for longer, or follow a thread that wakes.";

fn sentence(table: &CauseTable, input: &TableInput, config: &BlameConfig) -> String {
    let outside = input.open;
    let CauseTable { wakes, late, worst, .. } = *table;
    if wakes == 0 {
        return NO_WAKE.to_owned();
    }
    let bar = match (config.late, table.threshold_ns) {
        (_, Some(threshold_ns)) => shown_duration(threshold_ns),
        (LateThreshold::Quantile(share), None) => format!("p{} of their thread", share * 100.0),
        (LateThreshold::Above(threshold_ns), None) => {
            format!("{} beyond their margin", shown_duration(threshold_ns))
        }
    };
    if late == 0 {
        let worst = match worst.known_ns() {
            Some(worst_ns) => shown_duration(worst_ns),
            None => format!(
                "between {} and {}, for its begin is not recorded",
                shown_duration(worst.least_ns()),
                shown_duration(worst.most_ns())
            ),
        };
        let wakes = grouped(wakes);
        return format!("None of the {wakes} wakes was later than {bar}; the latest was {worst}.");
    }
    let own_ns: u64 = of_recording(&table.rows).map(|row| row.time_ns).sum();
    let lost_ns = table.lateness_ns.saturating_sub(own_ns);
    let lost = shown_duration(lost_ns);
    // Releases that wait at the same time, as of a loop that catches up, each count.
    let together = if lost_ns > input.duration_ns { " (several waited at once)" } else { "" };
    let [wakes, late] = [wakes, late].map(grouped);
    let mut parts = named(&table.rows, Counted::Wakes, config).into_iter();
    let answer = match table.undecided {
        None if own_ns > 0 && own_ns >= table.lateness_ns => {
            format!("Nothing but this recording made the {late} wakes later than {bar}.")
        }
        None => {
            let first = parts.next().map_or_else(String::new, |part| {
                let share = part.share;
                let of_what = format!("{share} of the {lost} lost by the {late} wakes");
                format!("{of_what} later than {bar}{together}: {}", part.name)
            });
            let rest: String = parts.map(|part| format!("; {part}")).collect();
            format!("{first}{rest}.")
        }
        Some(TooFewLate { needed, more_ns, .. }) => {
            let needed = grouped(needed);
            let more = more_ns.map_or_else(String::new, |more_ns| {
                format!(" (at this rate {} more)", shown_duration(more_ns))
            });
            format!(
                "Undecided: {late} of {wakes} wakes later than {bar}, shares need {needed}{more}. \
                 So far, of the {lost} lost: {}.",
                parts.map(|part| part.to_string()).collect::<Vec<_>>().join("; ")
            )
        }
    };
    let open = table.rows.iter().find(|row| row.cause == LateCause::NoSingle);
    let open = open.map(|row| match row.wakes {
        1 => " One of them has no single cause.".to_owned(),
        wakes => format!(" {} of them have no single cause.", grouped(wakes)),
    });
    let worst = table.worst_cause.as_ref().map(|worst| {
        let [late, time] = [worst.lateness_ns, worst.time_ns].map(shown_duration);
        let least = if table.worst.known_ns().is_some() { "" } else { "at least " };
        format!(" The worst was {least}{late} late, {time} of it: {}.", worst.name)
    });
    // Less than 1 % is nothing to say.
    let own = (own_ns > 0 && own_ns >= table.lateness_ns / 100).then(|| {
        let share = per_cent(share(own_ns, table.lateness_ns));
        let own = shown_duration(own_ns);
        format!(
            " Beside that, the recording itself took {own} ({share} of all), which is its price."
        )
    });
    [Some(answer), open, worst, own, reaching_out(outside)].into_iter().flatten().collect()
}

/// The rows of what the recording itself took.
fn of_recording(rows: &[CauseRow]) -> impl Iterator<Item = &CauseRow> {
    rows.iter().filter(|row| row.is_of_recording())
}

/// A sentence on releases that passed before it waited for them, which no wake shows; `None` where
/// none did.
fn passed_before_a_wait(
    table: &CauseTable,
    busy: PassedReleases,
    config: &BlameConfig,
) -> Option<String> {
    let PassedReleases { count, longest_ns, over_ns } = busy;
    (count > 0).then(|| {
        let releases = grouped(table.wakes.saturating_add(count));
        let (count, longest) = (grouped(count), shown_duration(longest_ns));
        let named_ns = time_ns(&table.passed);
        let [over, part] = [over_ns, named_ns].map(shown_duration);
        // A capture of late wakes has the longest of those cycles.
        let part = if named_ns < over_ns { format!("{part} of the ") } else { "the ".to_owned() };
        let causes = named(&table.passed, Counted::Cycles, config);
        let causes: Vec<String> = causes.iter().map(NamedShare::to_string).collect();
        let causes = match causes.is_empty() {
            true => String::new(),
            false => {
                format!(
                    "Of {part}{over} by which its cycles went on too long: {}. ",
                    causes.join("; ")
                )
            }
        };
        format!(
            "{count} of {releases} releases passed while it waited for its CPU or worked, up to \
             {longest} from a release to its next wait: it skipped them or made up for them at \
             once, and no wake shows them. {causes}"
        )
    })
}

/// A sentence on wakes that are later than they count; `None` where none are.
fn reaching_out(outside: OpenWakes) -> Option<String> {
    let OpenWakes { begun, waiting } = outside;
    let wakes =
        |count: u64, ending: &str| (count > 0).then(|| Counted::Wakes.words(count) + ending);
    let begun = wakes(begun, " waited before it began");
    let waiting = wakes(waiting, " still waited at its end");
    let both: Vec<String> = [begun, waiting].into_iter().flatten().collect();
    let are = if both.is_empty() { return None } else { both.join(", ") };
    Some(format!(" What is outside of the recording does not count: {are}."))
}

/// A share of the time with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedShare {
    share: String,
    name: String,
    is_cause: bool,
}

impl fmt::Display for NamedShare {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.is_cause { ":" } else { "" };
        write!(out, "{}{colon} {}", self.share, self.name)
    }
}

/// Shares of the time with names: the first few causes with their wakes, what is unexplained (first
/// where that is more than any of them), what wakes on time take too, and the rest. What the
/// recording itself took is no part of it.
fn named(rows: &[CauseRow], counted: Counted, config: &BlameConfig) -> Vec<NamedShare> {
    let own_ns: u64 = of_recording(rows).map(|row| row.time_ns).sum();
    let whole_ns = time_ns(rows).saturating_sub(own_ns);
    let per_cent = |time_ns: u64| per_cent(share(time_ns, whole_ns));
    let is_open = |row: &&CauseRow| {
        let kind = row.cause.kind();
        matches!(kind, CauseKind::Unexplained | CauseKind::NoSingle | CauseKind::NormalPath)
    };
    let is_named = |row: &&CauseRow| {
        share(row.time_ns, whole_ns) >= NAMED_SHARE && !is_open(row) && !row.is_of_recording()
    };
    let (mut parts, mut largest_ns) = (Vec::new(), 0);
    let mut rest = whole_ns;
    for row in rows.iter().filter(is_named).take(NAMED) {
        largest_ns = largest_ns.max(row.time_ns);
        let on_cpu = row.cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
        let who = |task: TaskName| row.culprits.headline(task, row.time_ns);
        let cause = name_by(&row.group, config, who);
        let name = format!("{cause}{on_cpu} (in {})", counted.words(row.touched));
        parts.push(NamedShare { share: per_cent(row.time_ns), name, is_cause: true });
        rest = rest.saturating_sub(row.time_ns);
    }
    for (kind, name) in
        [(CauseKind::Unexplained, "unexplained"), (CauseKind::NormalPath, "the normal path")]
    {
        let of_kind = rows.iter().filter(|row| row.cause.kind() == kind);
        let time_ns: u64 = of_kind.map(|row| row.time_ns).sum();
        if time_ns as f64 >= OPEN_SHARE * whole_ns as f64 && time_ns > 0 {
            let name = name.to_owned();
            let part = NamedShare { share: per_cent(time_ns), name, is_cause: false };
            // What is not known does not hide behind what is.
            let is_first = kind == CauseKind::Unexplained && time_ns > largest_ns;
            parts.insert(if is_first { 0 } else { parts.len() }, part);
            rest = rest.saturating_sub(time_ns);
        }
    }
    if rest > 0 {
        let name = "other causes".to_owned();
        parts.push(NamedShare { share: per_cent(rest), name, is_cause: false });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_their_unit() {
        let shown =
            [0, 999, 1_500, 50_000, 1_024_000, 12_000_000, 3_000_000_000].map(shown_duration);
        assert_eq!(shown, ["0 ns", "999 ns", "1.5 µs", "50 µs", "1.02 ms", "12 ms", "3 s"]);
    }
}
