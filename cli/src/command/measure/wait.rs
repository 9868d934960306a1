//! `punctual measure wait`: the ways to wait, compared with each other on this machine.
//!
//! One loop; the ways take turns in short blocks, so that a drift of the machine hits all alike.
//! Each is a run of the report, and a row of `strategies`.

use anyhow::{Result, bail};
use punctual::RtThread;
use punctual_analysis::plain::shell_word;
use punctual_analysis::verdict::{Deadline, Requirement};
use punctual_core::time::{Period, Span};
use punctual_core::wait::adaptive::Target;
use punctual_engine::wait_policy::SPIN_PERIOD_MIN;
use punctual_host::choose::helper_cpu;
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_lab::load::{LoadSpec, Loads};
use punctual_lab::periodic::{Condition, ConditionBlock, PeriodicPlan, Stream, WaitKind, split};
use punctual_lab::waits::{WAITS, sweep};
use punctual_report::strategies::{
    FrontComparison, HeldDeadline, StrategyRow, Swept, WaitAdvice, advice, cheapest_that_holds,
    compared, rows as strategies,
};
use punctual_report::{LoopsBody, Report, WaitBody, longer};

use crate::args::{
    BlameWord, CausesArgs, Detail, LearnArgs, PRIORITY, PlanArgs, ReportArgs, RootArgs,
};
use crate::comparison::RecordedRun;
use crate::experiment::claims::{self, PlannedReport};
use crate::experiment::loops::{CauseRecording, LoopContext, LoopExperiment, MeasuredLoops};
use crate::experiment::{self, COLD_CYCLES, Machine};
use crate::format;
use crate::measuring::{FinishedMeasuring, Measurement};
use crate::parse::{self, Phase};
use crate::program::PROGRAM;

/// The experiment's name in results.
const NAME: &str = "measure wait";

/// The shortest and the longest block of one way.
const BLOCK_MIN: Span = Span::from_ms(500);
const BLOCK_MAX: Span = Span::from_ms(5_000);

/// `punctual measure wait`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The CPU to measure [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    /// The loop's period
    #[arg(
        long,
        short,
        default_value = "1ms",
        allow_hyphen_values = true,
        value_parser = parse::period
    )]
    period: parse::Duration,
    /// How long to measure, in all; the waits take turns, with equal shares of the time
    #[arg(
        long,
        short,
        default_value = "60s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC: quiet (away from the
    /// kernel's tick), zero or a duration
    #[arg(long, default_value = "quiet", allow_hyphen_values = true)]
    phase: Phase,
    /// The share of the CPU that the adaptive wait may take
    #[arg(
        long,
        value_name = "SHARE",
        default_value = parse::BUDGET,
        value_parser = parse::share
    )]
    budget: f64,
    /// Sweep margins and short sleeps, and mark the front: the ways that no cheaper one beats
    #[arg(long)]
    front: bool,
    /// How late a release may be: each way is judged by it, and the cheapest that holds it is
    /// recommended; fails (exit 1) where none does, and where that is not known --undecided says
    /// what it counts as
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse::duration)]
    deadline: Option<parse::Duration>,
    /// The share of releases that may be later than the deadline [default: 1e-3]
    #[arg(long, value_name = "SHARE", requires = "deadline", value_parser = parse::share)]
    miss: Option<f64>,
    /// Loads to run during the measurement, as for 'measure periodic', all at once
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    load: Loads,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    learn: LearnArgs,
    #[command(flatten)]
    causes: CausesArgs,
    #[command(flatten)]
    root: RootArgs,
}

impl Args {
    /// The reason why nothing is recommended, with the command of a run that may tell.
    fn undecided(&self, why: &str, times: f64) -> String {
        let length_ns = self.duration.0.as_ns() as f64 * times * longer::SPARE;
        let duration = format::argument(length_ns);
        let Some(duration) = duration else { return format!("{why}, nor would it be from more") };
        let mut command = format::command("punctual measure wait");
        if let Some(cpu) = &self.cpu {
            command += &format!(" --cpu {}", shell_word(cpu));
        }
        let period = format::period_argument(self.period.0.as_ns().unsigned_abs());
        command += &format!(" --period {period} --duration {duration}");
        match self.phase {
            Phase::Quiet => {}
            Phase::At(0) => command += " --phase zero",
            Phase::At(ns) => command += &format!(" --phase {ns}ns"),
        }
        if self.budget.total_cmp(&Target::BUDGET).is_ne() {
            command += &format!(" --budget {}", self.budget);
        }
        if self.load.turns().iter().any(|loads| !loads.is_empty()) {
            command += &format!(" --load {}", shell_word(&self.load.to_string()));
        }
        if self.front {
            command += " --front";
        }
        if let Some((deadline, requirement)) = self.deadline.zip(self.requirement()) {
            let time = format::period_argument(deadline.0.as_ns().unsigned_abs());
            command += &format!(" --deadline {time} --miss {:e}", requirement.p);
        }
        format!("{why}; {}: {command}", longer::words(length_ns))
    }
}

impl Args {
    /// The requirement by which the ways are judged; `None` without a deadline.
    fn requirement(&self) -> Option<Requirement> {
        let deadline = Deadline::Ns(self.deadline?.0.as_ns());
        Some(Requirement { deadline, p: self.miss.unwrap_or(Requirement::default().p) })
    }

    /// Measures, unless `--plan` asks for what the claims take alone.
    pub(super) fn measurement(&self) -> Result<Measurement> {
        let machine = Machine::of(self.root.path())?;
        let (cpu, choice) = experiment::one_cpu(
            self.cpu.as_deref(),
            &machine.measuring,
            "the ways to wait are compared",
        )?;
        let [loads] = &self.load.turns()[..] else {
            bail!("--load: measure wait takes one load or several at once, not in turn");
        };
        if self.period.0 > self.duration.0 {
            bail!("--duration is shorter than one period");
        }
        let ways = ways(self.period.period()?, self.budget, self.front);
        let turns = Turns::of(&ways, self.front);
        let mut plan = plan(self, (cpu, &machine.measuring), (&ways, &turns), loads)?;
        let outputs = self.report.output().open()?;
        let plan_of = |duration| PeriodicPlan { blocks: turns.blocks(duration), ..plan.clone() };
        let plans = claims::plans(&self.report, &self.plan, self.duration.0, false, &plan_of);
        if self.plan.plan {
            let loops = LoopsBody { plans, ..LoopsBody::default() };
            let report = Report::new(PROGRAM, NAME, WaitBody { loops, ..WaitBody::default() });
            let (duration, announced) = (self.duration.0, claims::measuring(self.duration.0));
            let planned = PlannedReport { report, duration, announced, outputs };
            return Ok(Measurement::Planned(Box::new(planned)));
        }
        claims::announce(&plans, self.duration.0);
        let placed = experiment::settle(&mut plan.streams, self.phase)?;
        // The ways are held against each other.
        let causes = self.causes.when(BlameWord::Off, true);
        let context = LoopContext { name: NAME, machine: &machine, choice, args: &self.report };
        let loops = LoopExperiment {
            learn: self.learn,
            causes: causes.map(CauseRecording::usual),
            plans,
            threshold_ns: self.deadline.map(|deadline| deadline.0.as_ns()),
            notes: machine.foreign.iter().cloned().chain(placed).collect(),
            ..LoopExperiment::new(context, plan)
        };
        let turns_each = turns.rounds(&loops.plan);
        let MeasuredLoops { mut envelope, loops, recorded, trouble, .. } = loops.run()?;
        let mut strategies = strategies(&loops.judged.runs, &turns.beside);
        let series: Vec<_> = recorded.iter().map(|run| run.series().first()).collect();
        let advice = match self.requirement() {
            None => advice(&strategies, &series),
            Some(requirement) => {
                let (runs, incomplete) = (&loops.judged.runs, envelope.incomplete);
                HeldDeadline::judge(&mut strategies, runs, &requirement, incomplete);
                cheapest_that_holds(&strategies)
            }
        };
        let advice = if envelope.incomplete { advice.of_early_end() } else { advice };
        let (mut no_way, mut recommendation, mut undecided) = (None, None, None);
        match advice {
            WaitAdvice::Use(words) => recommendation = Some(words),
            WaitAdvice::Undecided { why, longer } => undecided = Some(self.undecided(&why, longer)),
            WaitAdvice::NoWay(why) => no_way = Some(why),
            WaitAdvice::None => {}
        }
        let front = if self.front && !envelope.incomplete {
            turns.compared(&strategies, &recorded, turns_each)
        } else {
            Vec::new()
        };
        let body = WaitBody { loops, strategies, front, recommendation, undecided, no_way };
        if self.deadline.is_some() {
            body.judge_answer(&mut envelope.verdict);
        }
        let report = Report { envelope, body: body.into() };
        Ok(Measurement::Finished(Box::new(FinishedMeasuring {
            report,
            outputs,
            detail: self.report.detail(Detail::Short),
            baseline: None,
            trouble,
        })))
    }
}

/// One loop that waits in each of the ways in turns.
fn plan(
    args: &Args,
    (cpu, facts): (u32, &MachineFacts),
    (ways, turns): (&[WaitKind], &Turns),
    loads: &[LoadSpec],
) -> Result<PeriodicPlan> {
    let condition = |(name, wait): (String, WaitKind)| Condition {
        name,
        wait: Some(wait),
        library: None,
        loads: loads.to_vec(),
    };
    let named = |way: &WaitKind| if args.front { label(*way) } else { way.name().to_owned() };
    let spins = (1..=turns.spins).map(|group| (format!("spin beside {group}"), WaitKind::Spin));
    let conditions = ways.iter().map(|way| (named(way), *way)).chain(spins);
    Ok(PeriodicPlan {
        streams: vec![Stream {
            thread: RtThread::cpu(cpu).fifo(PRIORITY).wait(WaitKind::Sleep),
            period: args.period.period()?,
            phase_ns: args.phase.at_ns(),
        }],
        conditions: conditions.map(condition).collect(),
        blocks: turns.blocks(args.duration.0),
        housekeeping: helper_cpu(&CpuList::single(cpu), facts).into_iter().collect(),
        cold: COLD_CYCLES,
    })
}

/// The ways that are compared: all that a loop of this period can have.
fn ways(period: Period, budget: f64, front: bool) -> Vec<WaitKind> {
    let ways = match front {
        true => sweep(period.as_ns(), budget),
        false => WAITS.iter().map(|row| row.kind(None, budget)).collect(),
    };
    let rests = period.as_ns() >= SPIN_PERIOD_MIN.as_ns().unsigned_abs();
    ways.into_iter().filter(|way| rests || *way != WaitKind::Spin).collect()
}

/// A way and its parameters: one run each.
fn label(way: WaitKind) -> String {
    let shown = |span: Span| format::period(span.as_ns().unsigned_abs());
    match way {
        WaitKind::Fixed(margin) => format!("fixed {}", shown(margin)),
        WaitKind::Hop(hop, margin) => format!("hop {} {}", shown(hop), shown(margin)),
        other => other.name().to_owned(),
    }
}

/// Which way has its turn when. In a sweep a pure spin comes before every few ways, so that each
/// row can say how quiet the machine was: a round of all ways takes long.
struct Turns {
    /// One round, by condition: the ways, then the spins beside them.
    round: Vec<usize>,
    /// The condition of the spin next to each way.
    beside: Vec<Option<usize>>,
    /// The number of spins beside the ways.
    spins: usize,
}

/// Ways that share a spin beside them.
const GROUP: usize = 4;

impl Turns {
    fn of(ways: &[WaitKind], front: bool) -> Self {
        let own = ways.iter().position(|way| *way == WaitKind::Spin);
        if !front || own.is_none() {
            let beside = vec![own; ways.len()];
            return Self { round: (0..ways.len()).collect(), beside, spins: 0 };
        }
        let group = |way: usize| ways.len() + way / GROUP;
        let mut round = Vec::new();
        for way in 0..ways.len() {
            if way.is_multiple_of(GROUP) {
                round.push(group(way));
            }
            round.push(way);
        }
        let beside = (0..ways.len()).map(|way| Some(group(way))).collect();
        Self { round, beside, spins: ways.len().div_ceil(GROUP) }
    }

    /// The turns of each way in a plan.
    fn rounds(&self, plan: &PeriodicPlan) -> u64 {
        (plan.blocks.len() / self.round.len().max(1)) as u64
    }

    /// The learned wait against others of these rows, which are the first of the runs.
    fn compared(
        &self,
        rows: &[StrategyRow],
        runs: &[RecordedRun],
        turns: u64,
    ) -> Vec<FrontComparison> {
        let series = |run: usize| runs.get(run)?.series().first();
        let swept = |(at, row)| {
            let spin = self.beside.get(at).copied().flatten()?;
            Some(Swept { row, series: series(at)?, spin: series(spin)? })
        };
        let ways: Vec<Swept<'_>> = rows.iter().enumerate().filter_map(swept).collect();
        compared(&ways, turns)
    }

    /// Turns of equal length, ten of each way where the time allows.
    fn blocks(&self, duration: Span) -> Vec<ConditionBlock> {
        let count = i64::try_from(self.round.len()).unwrap_or(i64::MAX).max(1);
        let tenth = duration.as_ns() / count / 10;
        let length = tenth.clamp(BLOCK_MIN.as_ns(), BLOCK_MAX.as_ns());
        let rounds = (duration.as_ns() / length / count).max(1);
        split(&self.round.repeat(usize::try_from(rounds).unwrap_or(1)), duration)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches};

    use super::*;

    #[test]
    fn a_longer_run_measures_the_same_by_a_command_that_a_shell_takes() {
        let longer = |words: &str| {
            let command = Args::augment_args(clap::Command::new("wait"));
            let words = words.split('|').filter(|word| !word.is_empty());
            let parsed = command.try_get_matches_from(["wait"].into_iter().chain(words));
            let args = Args::from_arg_matches(&parsed.expect("valid")).expect("valid");
            let text = args.undecided("open", 2.0);
            text.split_once(" --duration ").expect("a command").1.to_owned()
        };
        let rest = |words: &str| {
            let longer = longer(words);
            longer.split_once(' ').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
        };
        assert_eq!(rest(""), "");
        assert_eq!(rest("--phase|quiet|--budget|10%"), "");
        assert_eq!(rest("--phase|zero|--budget|5%"), "--phase zero --budget 0.05");
        assert_eq!(rest("--phase|50us|--front"), "--phase 50000ns --front");
        let load = rest("--load|cpu,stress-ng:\"--vm 1\"");
        assert_eq!(load, "--load 'cpu,stress-ng:\"--vm 1\"'");
    }

    #[test]
    fn a_period_too_short_to_rest_in_is_not_spun_through() {
        let spins = |us: u64| {
            let period = Period::from_ns(us * 1_000).expect("positive");
            ways(period, 0.1, false).contains(&WaitKind::Spin)
        };
        assert_eq!((spins(39), spins(40)), (false, true));
    }

    #[test]
    fn in_a_sweep_a_spin_is_next_to_each_way() {
        let period = Period::from_ns(1_000_000).expect("positive");
        let ways = ways(period, 0.1, true);
        let turns = Turns::of(&ways, true);
        for (way, beside) in turns.beside.iter().enumerate() {
            let at = |turn| turns.round.iter().position(|way| *way == turn).expect("a turn");
            let beside = beside.expect("a spin fits in a millisecond");
            assert!((1..=GROUP).contains(&(at(way) - at(beside))), "{way}");
        }
        assert_eq!(turns.round.len(), ways.len() + turns.spins);
        // Without one that can spin there is none beside.
        assert_eq!(Turns::of(&[WaitKind::Sleep], true).beside, [None]);
        let own = Turns::of(&[WaitKind::Sleep, WaitKind::Spin], false);
        assert_eq!((own.beside, own.spins), (vec![Some(1); 2], 0));
    }

    #[test]
    fn every_way_has_as_many_turns() {
        for (seconds, turns) in [(1, 1), (60, 10), (600, 30)] {
            let (adaptive, rearm) = (WaitKind::Adaptive(0.1), WaitKind::Rearm(None));
            let ways = [WaitKind::Sleep, WaitKind::Spin, adaptive, rearm];
            let blocks = Turns::of(&ways, false).blocks(Span::from_ms(seconds * 1_000));
            assert_eq!(blocks.len(), 4 * turns, "{seconds}");
        }
    }
}
