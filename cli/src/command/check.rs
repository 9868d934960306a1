//! `punctual check`: how punctual is this machine?
//!
//! Collects facts, picks a CPU, runs the periodic experiment idle and under each load in turn (in a
//! short run under all at once), interleaved in blocks so that a drift of the machine hits all
//! alike, and judges. Writes `result.json`, a page and, unless refused, `samples.punctual` into a
//! directory of its own.

use anyhow::{Context, Error, Result, bail};
use clap::{Args, ValueEnum};
use punctual_analysis::verdict::Requirement;
use punctual_core::time::{Period, Span};
use punctual_core::wait::Adaptive;
use punctual_engine::wait_policy::WARM_UP_MAX;
use punctual_host::choose::helper_cpu;
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_lab::experiment::{bounds, startable};
use punctual_lab::load::{LoadSpec, Loads};
use punctual_lab::periodic::{
    Condition, LibraryLoop, PeriodicPlan, Stream, WaitKind, round, split,
};
use punctual_os::signal;
use punctual_report::{CheckBody, Choice, LoopsBody, PlannedRun, Question, Report, longer};

use crate::args::{
    BlameWord, CausesArgs, Detail, LearnArgs, LiveArgs, PRIORITY, PeriodsArgs, PlanArgs,
    PolicyName, ReportArgs, RootArgs, StopArgs,
};
use crate::comparison::baseline::{BaselineArgs, BaselineUse};
use crate::experiment::choices::LoopChoices;
use crate::experiment::claims::{self, PlannedReport};
use crate::experiment::loops::{
    CauseRecording, Judging, LoopContext, LoopExperiment, MeasuredLoops,
};
use crate::experiment::{self, COLD_CYCLES, Machine};
use crate::output::{self, Opened};
use crate::parse::{self, Duration, Phase};
use crate::program::{PROGRAM, launcher};
use crate::question::{self, QuestionArgs};
use crate::stored::SAMPLES;
use crate::subcommand::{Execute, Exit, ResultsArgs};
use crate::writing;

/// The experiment's name in results.
const NAME: &str = "check";

/// `punctual check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// How long to measure, in all [default: 71s; longer where the question takes more, which is
    /// said before it begins]
    #[arg(long, short, allow_hyphen_values = true, value_parser = parse::duration)]
    duration: Option<Duration>,
    /// The CPU to measure [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    #[command(flatten)]
    periods: PeriodsArgs,
    #[command(flatten)]
    question: QuestionArgs,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC: zero, quiet (away from
    /// the kernel's tick) or a duration
    #[arg(long, default_value = "zero", allow_hyphen_values = true)]
    phase: Phase,
    #[command(flatten)]
    results: ResultsArgs,
    /// What becomes of the samples: 1 MB for some 55 000 cycles
    #[arg(long, value_enum, default_value = "all")]
    samples: KeptSamples,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    stop: StopArgs,
    #[command(flatten)]
    live: LiveArgs,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    learn: LearnArgs,
    #[command(flatten)]
    causes: CausesArgs,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    baseline: BaselineArgs,
}

impl Execute for CheckArgs {
    fn execute(&self) -> Result<Exit> {
        let machine = Machine::of(self.root.path())?;
        let (cpu, choice) = pick(self.cpu.as_deref(), &machine.measuring)?;
        let (turns, left_out) = turns(self, &machine.measuring);
        let findings = machine.findings(cpu, self.question.purpose_name());
        let spec = self.question.spec();
        let periods = self.question.periods_to_run(&self.periods.period).map_err(Error::msg)?;
        let options = self.question.options(&self.periods.period);
        let refuted = self.question.refuted(self.results.path());
        let question = Question {
            command: Some(("punctual check", options.as_str())),
            refuted: refuted.as_deref(),
            findings: Some(&findings),
            ..question::question(spec.as_ref())
        };
        let library = LibraryLoop { phase_ns: 0 };
        let mut plan = Plan { streams: Vec::new(), turns, facts: &machine.measuring, library };
        plan.streams = streams(self, &periods, cpu)?;
        let duration = self.duration.map_or_else(|| plan.budget(&question.requirement), |d| d.0);
        if plan.streams.iter().any(|stream| stream.period.as_ns() > duration.as_ns().unsigned_abs())
        {
            bail!("--duration is shorter than one period");
        }
        let gate = BaselineUse::open(&self.baseline, &machine.facts, machine.foreign.is_some())?;
        gate.spare(&self.report.output())?;
        let periodic = plan.of(duration);
        let merge = periodic.counts_as_one(1);
        gate.refuse_others(&experiment::loops::planned(
            &periodic,
            merge,
            self.report.keep_cold,
            None,
        ))?;
        let outputs = self.report.output().open()?;
        let plans = claims_take(self, &plan, duration);
        if self.plan.plan {
            let loops = LoopsBody { plans, ..LoopsBody::default() };
            let report = Report::new(PROGRAM, NAME, CheckBody { loops, ..CheckBody::default() });
            let announced = announced(&periodic, duration);
            return writing::planned(PlannedReport { report, duration, announced, outputs });
        }
        let mut placed = experiment::settle(&mut plan.streams, self.phase)?;
        if let Some(stream) = plan.library_stream(duration) {
            let (library, note) = experiment::library(LIBRARY, stream, self.phase)?;
            plan.library = library;
            placed.push(note);
        }
        // From here on an interruption ends it with what there is, not with an empty directory.
        signal::catch_stop().context("cannot catch SIGINT")?;
        let results = self.results.begin()?;
        let samples = Opened::chosen(&results, SAMPLES)?;
        claims::announce(&plans, duration);
        let periodic = plan.of(duration);
        if !self.report.quiet {
            output::message(&announced(&periodic, duration));
        }
        let causes = self.causes.when(BlameWord::Auto, gate.is_used());
        let context = LoopContext { name: NAME, machine: &machine, choice, args: &self.report };
        let loops = LoopExperiment {
            merge,
            learn: self.learn,
            live: self.live.live,
            causes: causes.map(CauseRecording::usual),
            plans,
            samples: Some(samples),
            stop_over: self.stop.over(),
            judging: Some(Judging { question, gate: self.question.is_gate() }),
            notes: machine.foreign.iter().cloned().chain(left_out).chain(placed).collect(),
            ..LoopExperiment::new(context, periodic)
        };
        let measured = loops.run().inspect_err(|_| {
            // Nothing was measured: an empty directory would only be in the way.
            let _left = results.clone().remove_empty();
        })?;
        let MeasuredLoops { envelope, loops, rows, recorded, trouble, first: _ } = measured;
        let mut report = Report { envelope, body: CheckBody { loops, rows, compare: None }.into() };
        let uncompared = gate.judge(&mut report, &recorded);
        let detail = self.report.detail(Detail::Short);
        writing::write_kept(&report, &results, outputs, detail)?;
        // Where nothing was recorded there are none.
        if self.samples == KeptSamples::None && results.has(SAMPLES) {
            // The page has its time series from them.
            results.remove(SAMPLES).with_context(|| format!("cannot remove {SAMPLES}"))?;
        }
        gate.keep(&report, &recorded)?;
        Exit::after(&report, trouble.or(uncompared))
    }
}

/// The samples of a run that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeptSamples {
    /// Every sample stays beside the result: 'analyse' and 'compare' read them
    All,
    /// They are removed once the page is drawn; the result keeps histograms and counts
    None,
}

/// Time that the measurement takes, in words, before it begins.
fn announced(plan: &PeriodicPlan, duration: Span) -> String {
    let loaded = plan.conditions.iter().filter(|condition| !condition.loads.is_empty()).count();
    let under = match loaded {
        0 => "without load",
        1 => "idle and under load in turn",
        _ => "idle and under one load after the other",
    };
    let measuring = claims::measuring(duration);
    format!("{measuring}, {under}, and some seconds for the loads to start")
}

/// The loads that start on this machine, and notes about the others.
fn turns(args: &CheckArgs, facts: &MachineFacts) -> (Turns, Vec<String>) {
    let own = args.question.load();
    let requested = match own {
        // A row of the table, as its test says.
        Some(name) => LoadSpec::parse_list(name).unwrap_or_default(),
        None => LoadSpec::all(),
    };
    let (loads, left_out) = startable(requested, &launcher(), &bounds(facts));
    let notes = left_out.iter().map(|why| format!("left out: {why}")).collect();
    (if own.is_some() { Turns::Together(loads) } else { Turns::Each(loads) }, notes)
}

/// The loops that are measured, on one CPU.
fn streams(args: &CheckArgs, period: &[Duration], cpu: u32) -> Result<Vec<Stream>> {
    let choices = LoopChoices {
        cpu: None,
        period,
        // Looked at where it is known.
        duration: Span::from_ns(i64::MAX),
        policy: PolicyName::Fifo,
        priority: PRIORITY,
        wait: WaitKind::Sleep,
        phase: args.phase,
        load: &Loads::AtOnce(Vec::new()),
    };
    choices.streams(&CpuList::single(cpu))
}

/// The cycles and the time that each claim takes.
fn claims_take(args: &CheckArgs, plan: &Plan<'_>, duration: Span) -> Vec<PlannedRun> {
    let plan_of = |duration| plan.of(duration);
    let merge = !plan.turns.are_none();
    claims::plans(&args.report, &args.plan, duration, merge, &plan_of)
}

/// The CPU to measure: as requested, else as the facts say.
fn pick(requested: Option<&str>, facts: &MachineFacts) -> Result<(u32, Choice)> {
    let (cpus, choice) = experiment::pick(requested, facts)?;
    match (cpus.first(), cpus.len(), requested) {
        (Some(cpu), 1, _) => Ok((cpu, choice)),
        (_, _, text) => bail!(
            "--cpu {}: check measures one CPU; 'punctual measure periodic' takes several",
            text.unwrap_or_default()
        ),
    }
}

/// Shorter than this, all loads run at once: each alone would have too few cycles to say anything.
const LOADS_IN_TURN_FROM: Span = Span::from_ms(20_000);

/// A round visits idle and each load; with one every half minute, drift is spread over all.
const ROUND: Span = Span::from_ms(30_000);

/// The shortest time that is measured unless another is requested: a minute and a little, so that
/// the loads leave the 40 000 cycles that extreme value models need, with a loop of this library.
const BUDGET_MIN: Span = Span::from_ms(71_000);

/// The longest time that is measured unless another is requested.
const BUDGET_MAX: Span = Span::from_ms(3_600_000);

/// Answers to a loop of one period: idle and under load, its own and those of longer periods.
const ANSWERS: usize = 8;

/// The row of a loop of this library, as it makes one by default.
const LIBRARY: &str = "library loop, idle";

/// The plan of a measurement, as far as it is known without the time that it takes.
struct Plan<'a> {
    /// The loops.
    streams: Vec<Stream>,
    /// The sets of loads that take turns.
    turns: Turns,
    /// The machine that runs it.
    facts: &'a MachineFacts,
    /// The loop of this library that has a turn where there is time for it.
    library: LibraryLoop,
}

/// The loads that run, and whether in turn.
enum Turns {
    /// Each of these in turn; all at once when there is little time.
    Each(Vec<LoadSpec>),
    /// These at once.
    Together(Vec<LoadSpec>),
}

impl Plan<'_> {
    /// The experiment of this length.
    fn of(&self, duration: Span) -> PeriodicPlan {
        let mut conditions = self.turns.conditions(duration);
        let longest = self.streams.iter().map(|stream| stream.period).max();
        let (mut order, mut length) = (round(conditions.len() - 1), duration);
        let rounds = longest.map_or(1, |period| rounds(duration, period, order.len()));
        if let Some((library, learns)) = self.library_row(duration, &conditions) {
            order.push(conditions.len());
            conditions.push(library);
            length = Span::from_ns(duration.as_ns() - learns.as_ns());
        }
        let rounds = usize::try_from(rounds).unwrap_or(1);
        let blocks = split(&order.repeat(rounds), length);
        let cpus: CpuList =
            self.streams.iter().filter_map(|stream| stream.thread.pinned_to()).collect();
        let housekeeping = helper_cpu(&cpus, self.facts).into_iter().collect();
        let streams = self.streams.clone();
        PeriodicPlan { streams, conditions, blocks, housekeeping, cold: COLD_CYCLES }
    }

    /// The shortest time, a minute at least, in which every run has the cycles that show the
    /// requirement when none is late.
    fn budget(&self, requirement: &Requirement) -> Span {
        let longest = self.streams.iter().map(|stream| stream.period.as_ns()).max().unwrap_or(1);
        let needed = requirement.cycles_needed(self.streams.len() * ANSWERS) as f64 * longer::SPARE;
        let mut length = BUDGET_MIN;
        while length < BUDGET_MAX {
            let plan = self.of(length);
            let cycles = |condition| plan.length_of(condition).as_ns() as f64 / longest as f64;
            let idle = cycles(0);
            let loads = || (0..plan.conditions.len()).filter(|&at| plan.counts_as_one(at));
            let loaded: f64 = loads().map(cycles).sum();
            let least = if loads().next().is_some() { idle.min(loaded) } else { idle };
            if least >= needed {
                break;
            }
            let longer = length.as_ns() as f64 * (needed / least.max(1.0)).clamp(1.1, 10.0);
            length = Span::from_ms((longer / 10e9).ceil() as i64 * 10_000);
        }
        length.min(BUDGET_MAX)
    }
}

impl Plan<'_> {
    /// The stream that a loop of this library has turns with, in an experiment of this length.
    fn library_stream(&self, duration: Span) -> Option<&Stream> {
        let plan = self.of(duration);
        let has_one = plan.conditions.iter().any(|condition| condition.library.is_some());
        self.streams.first().filter(|_| has_one)
    }

    /// A loop of this library beside the plain sleepers, without load, and how long its wait learns
    /// before the first block; `None` where there is little time, or several loops share the CPU.
    fn library_row(&self, duration: Span, conditions: &[Condition]) -> Option<(Condition, Span)> {
        let [stream] = self.streams.as_slice() else { return None };
        if duration < LOADS_IN_TURN_FROM || conditions.len() < 2 {
            return None;
        }
        let (name, library) = (LIBRARY.to_owned(), Some(self.library));
        // What it has not learned by then, it learns in its loop.
        let learns = Adaptive::calibration(stream.period).min(WARM_UP_MAX);
        Some((Condition { name, wait: None, library, loads: Vec::new() }, learns))
    }
}

impl Turns {
    /// Idle, then each load; all loads at once when there is little time.
    fn conditions(&self, duration: Span) -> Vec<Condition> {
        let mut turns = vec![Vec::new()];
        match self {
            Self::Each(loads) if duration >= LOADS_IN_TURN_FROM => {
                turns.extend(loads.iter().map(|spec| vec![spec.clone()]));
            }
            Self::Each(loads) | Self::Together(loads) => {
                turns.extend((!loads.is_empty()).then(|| loads.clone()));
            }
        }
        let name = |loads: &[LoadSpec]| match loads {
            [] => "idle".to_owned(),
            [load] => load.to_string(),
            _ => "all loads".to_owned(),
        };
        let condition = |loads: Vec<LoadSpec>| Condition {
            name: name(&loads),
            wait: None,
            library: None,
            loads,
        };
        turns.into_iter().map(condition).collect()
    }

    /// Returns true where no load runs.
    fn are_none(&self) -> bool {
        let (Self::Each(loads) | Self::Together(loads)) = self;
        loads.is_empty()
    }
}

/// Rounds of so many blocks that leave each block at least fifty cycles, one every half minute at
/// most.
fn rounds(duration: Span, period: Period, blocks: usize) -> u32 {
    let by_time = duration.as_ns() / ROUND.as_ns();
    let cycles = duration.as_ns().unsigned_abs() / period.as_ns();
    let by_cycles = i64::try_from(cycles / (blocks as u64 * 50)).unwrap_or(i64::MAX);
    u32::try_from(by_time.min(by_cycles).clamp(1, 1_000)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use punctual::WaitPolicy;

    use super::*;
    use punctual_lab::load::LoadSpec;

    #[test]
    fn a_minute_visits_every_load_twice_and_a_moment_all_at_once() {
        let period = Period::from_ns(1_000_000).expect("positive");
        assert_eq!(rounds(Span::from_ms(60_000), period, 12), 2);
        assert_eq!(rounds(Span::from_ms(1_000), period, 12), 1);
        let every_load = || LoadSpec::all();
        let conditions = |loads, ms| Turns::Each(loads).conditions(Span::from_ms(ms));
        let turns = conditions(every_load(), 60_000);
        assert_eq!(turns.len(), LoadSpec::all().len() + 1);
        assert!(turns.iter().skip(1).all(|turn| turn.loads.len() == 1));
        let turns = conditions(every_load(), 5_000);
        assert_eq!(turns[1].name, "all loads");
        assert_eq!(turns[1].loads.len(), LoadSpec::all().len());
        let idle = conditions(Vec::new(), 5_000);
        assert!(idle.len() == 1 && idle[0].loads.is_empty(), "{idle:?}");
    }

    #[test]
    fn a_loop_of_this_library_has_a_turn_within_the_time_that_was_requested() {
        let facts = MachineFacts::collect(&punctual_host::root::Root::live());
        let period = Period::from_ns(1_000_000).expect("positive");
        let stream = Stream {
            thread: punctual::RtThread::cpu(0).wait(WaitKind::Sleep),
            period,
            phase_ns: 0,
        };
        let (streams, turns) = (vec![stream], Turns::Each(LoadSpec::all()));
        let library = LibraryLoop { phase_ns: 7 };
        let mut plan = Plan { streams, turns, facts: &facts, library };
        let long = plan.of(Span::from_ms(60_000));
        let last = long.conditions.len() - 1;
        assert_eq!(long.conditions[last].library, Some(library));
        let waits = |condition| long.wait(&plan.streams[0], condition);
        assert_eq!((waits(0), waits(last)), (WaitKind::Sleep, WaitPolicy::adaptive().kind()));
        let phase_ns = |condition| long.phase_ns(&plan.streams[0], condition);
        assert_eq!((phase_ns(0), phase_ns(last)), (0, 7));
        assert!(!long.counts_as_one(last) && long.counts_as_one(last - 1));
        let learns = Adaptive::calibration(period);
        assert_eq!(long.length().as_ns() + learns.as_ns(), 60_000_000_000);
        assert!(long.length_of(last) >= long.length_of(1), "as long as a load");
        let has_one = |plan: &Plan<'_>, ms| {
            plan.of(Span::from_ms(ms))
                .conditions
                .iter()
                .any(|condition| condition.library.is_some())
        };
        assert!(has_one(&plan, 20_000) && !has_one(&plan, 19_999));
        plan.streams.push(Stream { phase_ns: 1, ..plan.streams[0].clone() });
        assert!(!has_one(&plan, 60_000), "two loops share the CPU");
    }
}
