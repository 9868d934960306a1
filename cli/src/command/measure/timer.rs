//! `punctual measure timer`: how late timers reach a thread, with work of several kinds behind it.
//! Its arguments, and what is shown of a result.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};
use clap::ValueEnum;
use punctual::RtThread;
use punctual_analysis::plain::significant;
use punctual_core::time::Period;
use punctual_document::{Block, Figure, Section, Table, numbers, words};
use punctual_host::facts::MachineFacts;
use punctual_lab::processor::ProcessorCount;
use punctual_lab::timer::{
    Background, PERIOD_MIN_NS, StampStore, TimerExperiment, TimerOutcome, TimerPath, TimerRow,
};
use punctual_report::measured::TimerBody;

use crate::args::{RequestedPolicyArgs, RootArgs};
use crate::experiment::Machine;
use crate::measuring::{CpuArgs, MeasuredBody, Measuring, Outcome, Planned};
use crate::output::OutputArgs;
use crate::view::plots::boxes::{self, BoxSeries, Boxes};
use crate::{format, parse};

/// Periods of one run at most.
const PERIODS_MAX: usize = 8;

/// `punctual measure timer`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    cpu: CpuArgs,
    /// From one expiry to the next, 15us or more; several, separated by commas, take turns
    #[arg(
        long,
        short,
        value_delimiter = ',',
        default_value = "100us",
        allow_hyphen_values = true,
        value_parser = parse::period
    )]
    period: Vec<parse::Duration>,
    /// What runs on the same CPU, as SCHED_OTHER; several, separated by commas, take turns
    /// [default: all that the processor has]
    #[arg(long, value_enum, value_delimiter = ',')]
    background: Vec<BackgroundName>,
    /// How long to measure, in all; each combination has at least one block of 20 ms
    #[arg(
        long,
        short,
        default_value = "10s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    #[command(flatten)]
    policy: RequestedPolicyArgs,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The kinds of work that can run behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BackgroundName {
    /// Nothing
    None,
    /// A loop of NOPs
    Nop,
    /// A loop of SERIALIZE, which waits for all before it
    Serialize,
    /// A loop of CPUID, which also serialises, and exits to the host in a virtual machine
    Cpuid,
}

impl BackgroundName {
    fn kind(self) -> Background {
        match self {
            Self::None => Background::None,
            Self::Nop => Background::Nop,
            Self::Serialize => Background::Serialize,
            Self::Cpuid => Background::Cpuid,
        }
    }
}

impl Measuring for Args {
    const NAME: &'static str = "measure timer";
    const HAS_PROGRESS: bool = false;
    type Experiment = TimerExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn captured(&self) -> Option<&Path> {
        self.root.path()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<TimerExperiment>> {
        let (cpu, choice) = self.cpu.choose(machine, "timers are measured")?;
        let periods = self.period.iter().map(|period| period.period());
        let mut periods = periods.collect::<Result<Vec<Period>>>()?;
        periods.sort();
        periods.dedup();
        if periods.len() > PERIODS_MAX {
            bail!("--period: {} periods; at most {PERIODS_MAX} are measured", periods.len());
        }
        if let Some(short) = periods.first().filter(|period| period.as_ns() < PERIOD_MIN_NS) {
            let got = format::period(short.as_ns());
            bail!("--period {got}: it must be at least {}", format::period(PERIOD_MIN_NS));
        }
        let experiment = TimerExperiment {
            thread: RtThread::cpu(cpu).with_policy(self.policy.policy()),
            periods,
            backgrounds: backgrounds(&self.background)?,
            duration: self.duration.0,
            in_a_row: 0,
            loads: Vec::new(),
        };
        Ok(Planned { experiment, choice })
    }

    fn body(&self, outcome: Outcome<'_, TimerExperiment>) -> MeasuredBody {
        let warnings = preempt_rt(outcome.facts).map(str::to_owned).into_iter().collect();
        let mut timer = outcome.figures;
        timer.rows.iter_mut().for_each(|row| row.keep_first(IN_RESULTS));
        MeasuredBody { warnings, ..MeasuredBody::of(TimerBody { timer }) }
    }
}

/// The kinds of work that were requested; without a request all that the processor has.
fn backgrounds(requested: &[BackgroundName]) -> Result<Vec<Background>> {
    let known = BackgroundName::value_variants();
    let names = if requested.is_empty() { known } else { requested };
    let kinds = names.iter().map(|name| name.kind());
    let mut chosen = Vec::new();
    for kind in kinds {
        if !kind.is_supported() {
            if !requested.is_empty() {
                bail!("--background {}: this processor has no such instruction", kind.name());
            }
        } else if !chosen.contains(&kind) {
            chosen.push(kind);
        }
    }
    Ok(chosen)
}

/// On PREEMPT_RT some timers expire in a thread of their own.
fn preempt_rt(facts: &MachineFacts) -> Option<&'static str> {
    let real_time =
        facts.preemption.preemption.value().is_some_and(|name| name.contains("PREEMPT_RT"));
    real_time.then_some(
        "PREEMPT_RT: timerfd and POSIX timers expire in a kernel thread of low priority \
         (ktimers), and wait for it; clock_nanosleep of a real-time thread does not",
    )
}

/// Consecutive latenesses that results have of each row: two pages of stamps, in which a period of
/// 512 of them is seen.
const IN_RESULTS: usize = 1_024;

/// The columns that fit a terminal.
const FITTED: usize = 9;

/// Lateness of each path by what runs behind it, and how it was measured.
pub(super) fn shown(body: &TimerBody) -> Section {
    let outcome = &body.timer;
    let heads = [
        words("path"),
        words("behind"),
        numbers("period"),
        numbers("min"),
        numbers("median"),
        numbers("1 in 100"),
        numbers("worst"),
        numbers("missed"),
        numbers("CPU"),
        words("store"),
        numbers("mean"),
        numbers("1 in 1000"),
        numbers("n"),
        numbers("interrupts"),
    ];
    let caption = "From the expiry to the time stamp that the waiting thread takes";
    let rows = outcome.rows.iter().map(cells).collect();
    let table = Table::new(caption, heads, rows).fitted(FITTED, telling(outcome));
    let mut parts = charts(outcome);
    parts.extend([table.into(), Block::words(about(outcome))]);
    Section { id: "timer", heading: "Lateness of timers", blocks: parts }
}

/// The latenesses of each period: the paths below each other, a box for each work behind.
fn charts(outcome: &TimerOutcome) -> Vec<Block> {
    let mut periods: Vec<u64> = outcome.rows.iter().map(|row| row.period_ns).collect();
    periods.sort_unstable();
    periods.dedup();
    let chart = |period_ns: u64| {
        let rows: Vec<&TimerRow> =
            outcome.rows.iter().filter(|row| row.period_ns == period_ns).collect();
        let mut names: Vec<String> = Vec::new();
        for row in &rows {
            if !names.contains(&path(row)) {
                names.push(path(row));
            }
        }
        let series = |behind: Background| {
            let own = rows.iter().filter(|row| row.background == behind);
            let place = |row: &TimerRow| names.iter().position(|name| *name == path(row));
            let own = own.filter_map(|row| Some((place(row)?, boxes::of_times(&row.lateness_ns)?)));
            BoxSeries { name: works(behind).to_owned(), boxes: own.collect() }
        };
        let series = Background::ALL.map(series).into_iter();
        let series = series.filter(|series| !series.boxes.is_empty()).collect();
        let title = format!("Lateness of each path, every {}", format::period(period_ns));
        let description = described(&rows);
        let times = Boxes::of_times(&title, "lateness (log)", names);
        Boxes { description, series, ..times }.chart()
    };
    let charts = periods.into_iter().filter_map(chart).enumerate();
    charts.map(|(at, chart)| Figure::still(format!("timer-{}", at + 1), chart)).collect()
}

/// The path that is the least late and the one that is the most, by 1 in 100.
fn described(rows: &[&TimerRow]) -> String {
    let known = || rows.iter().filter_map(|row| Some((row, row.lateness_ns.p99?)));
    let n: u64 = rows.iter().map(|row| row.n).sum();
    let sentence = |(row, ns): (&&TimerRow, f64)| {
        format!("{} ({}, {})", format::ns(Some(ns)), path(row), works(row.background))
    };
    let least = known().min_by(|a, b| a.1.total_cmp(&b.1)).map(sentence);
    let most = known().max_by(|a, b| a.1.total_cmp(&b.1)).map(sentence);
    let (count, n) = (rows.len(), format::count(n));
    match least.zip(most) {
        Some((least, most)) => {
            format!("{n} expiries in {count} boxes: 1 in 100 is later than {least} to {most}.")
        }
        None => format!("{n} expiries in {count} boxes, too few for 1 in 100."),
    }
}

/// The work that runs behind, in words.
fn works(background: Background) -> &'static str {
    match background {
        Background::None => "nothing behind",
        Background::Nop => "NOP behind",
        Background::Serialize => "SERIALIZE behind",
        Background::Cpuid => "CPUID behind",
    }
}

/// The path, and where its stamps went if that is not the large array.
fn path(row: &TimerRow) -> String {
    match row.store {
        StampStore::Hot | StampStore::Cold => {
            format!("{} {}", row.path.name(), row.store.name())
        }
        StampStore::Array => row.path.name().to_owned(),
    }
}

fn cells(row: &TimerRow) -> Vec<String> {
    let ns = &row.lateness_ns;
    vec![
        path(row),
        row.background.name().to_owned(),
        format::period(row.period_ns),
        format::ns(ns.min),
        format::ns(ns.p50),
        format::ns(ns.p99),
        format::ns(ns.max),
        format::count(row.missed),
        row.cpu_share.map_or_else(|| "-".to_owned(), format::share),
        row.store.name().to_owned(),
        format::ns(ns.mean),
        format::ns(ns.p99_9),
        format::count(row.n),
        format::count_or_dash(row.interrupts),
    ]
}

/// All rows, the most telling first: each path with nothing behind it, then with the work that
/// delays it most, and so on.
fn telling(outcome: &TimerOutcome) -> Vec<usize> {
    let late = |row: &TimerRow| row.lateness_ns.p99.or(row.lateness_ns.max).unwrap_or(0.0);
    let before = |rival: &TimerRow, row: &TimerRow| match row.background {
        Background::None => false,
        _ => rival.background == Background::None || late(rival) > late(row),
    };
    let rank = |&at: &usize| {
        let row = &outcome.rows[at];
        let same = |rival: &&TimerRow| {
            (rival.path, rival.store, rival.period_ns) == (row.path, row.store, row.period_ns)
        };
        outcome.rows.iter().filter(same).filter(|rival| before(rival, row)).count()
    };
    let mut rows: Vec<usize> = (0..outcome.rows.len()).collect();
    rows.sort_by_key(rank);
    rows
}

fn about(outcome: &TimerOutcome) -> String {
    let policy = outcome
        .priority
        .map_or_else(|| outcome.policy.clone(), |at| format!("{} {at}", outcome.policy));
    let n: u64 = outcome.rows.iter().map(|row| row.n).sum();
    let deadline = match outcome.deadline_refused {
        Some(errno) => format!("; SCHED_DEADLINE was refused (errno {errno})"),
        None if outcome.rows.iter().any(|row| row.path == TimerPath::Deadline) => {
            "; deadline sleeps under SCHED_DEADLINE, pinned to no CPU".to_owned()
        }
        None => String::new(),
    };
    let counters = match &outcome.no_counters {
        Some(why) => format!("; {why}"),
        None => counted(outcome),
    };
    format!(
        "{} expiries, {policy} on CPU {}; behind: SCHED_OTHER on the same CPU; stamps go into an \
         array of 8 MiB, for \"hot\" into 4 KiB that stay in the cache; before waits of \"cold\" \
         2 MiB are read; mdelay polls and uses no \
         timer, so that nothing behind it runs{deadline}{counters}",
        format::count(n),
        outcome.cpu
    )
}

/// The processor's counts for each wake by a sleep, over all of them; empty where it counts
/// nothing.
fn counted(outcome: &TimerOutcome) -> String {
    let rows = outcome.rows.iter().filter(|row| row.path == TimerPath::Sleep);
    match for_each(rows.map(|row| (row.n, &row.counters[..]))) {
        Some(each) => format!("; of the CPU for each wake by a sleep: {each}"),
        None => String::new(),
    }
}

/// The processor's counts for one of these, of which there are so many each, in words; `None` where
/// it counted nothing.
pub(super) fn for_each<'c>(
    rows: impl Iterator<Item = (u64, &'c [ProcessorCount])>,
) -> Option<String> {
    let (mut n, mut sums) = (0, BTreeMap::<&str, f64>::new());
    for (count, counters) in rows.filter(|(_, counters)| !counters.is_empty()) {
        n += count;
        for counter in counters {
            *sums.entry(&counter.event).or_default() += counter.count;
        }
    }
    let each = |(name, sum): (&str, f64)| format!("{} {name}", significant(sum / n.max(1) as f64));
    let each: Vec<String> = sums.into_iter().map(each).collect();
    (!each.is_empty()).then(|| each.join(", "))
}

#[cfg(test)]
mod tests {
    use punctual_report::measured::Measured;
    use punctual_report::{Body, Report};

    use super::*;

    #[test]
    fn what_the_processor_counted_is_said_for_each_wake_or_why_it_was_not() {
        let text = include_str!("../../../tests/results/kinds/timer.json");
        let report = Report::parse(text).expect("a result");
        let Body::Measured(Measured::Timer(mut body)) = report.body else { panic!("of timers") };
        body.timer.no_counters = Some("none here".to_owned());
        assert!(about(&body.timer).ends_with("; none here"));
        body.timer.no_counters = None;
        assert_eq!(counted(&body.timer), "");
        let slept = body.timer.rows.iter_mut().find(|row| row.path == TimerPath::Sleep);
        let row = slept.expect("a sleep");
        let count = |event: &str, times: f64| ProcessorCount {
            event: event.to_owned(),
            count: row.n as f64 * times,
        };
        row.counters = vec![count("cache-misses", 31.0), count("branch-misses", 2.0)];
        let said = "; of the CPU for each wake by a sleep: 2.00 branch-misses, 31.0 cache-misses";
        assert!(about(&body.timer).ends_with(said), "{}", about(&body.timer));
    }

    #[test]
    fn a_result_names_what_the_terminal_shows() {
        let json = |value: serde_json::Result<serde_json::Value>| value.expect("a name");
        for path in TimerPath::ALL {
            assert_eq!(json(serde_json::to_value(path)), path.name());
        }
        for background in Background::ALL {
            assert_eq!(json(serde_json::to_value(background)), background.name());
        }
        for store in [StampStore::Array, StampStore::Hot, StampStore::Cold] {
            assert_eq!(json(serde_json::to_value(store)), store.name());
        }
    }
}
