//! `punctual check`: how punctual is this machine?
//!
//! Collects facts, picks a CPU, runs the periodic experiment idle and under each load in turn,
//! interleaved in blocks so that a drift of the machine hits all alike, and judges. Writes
//! `result.json` and `samples.punctual` into a directory of its own.

mod plan;
mod uses;

use std::path::{Path, PathBuf};

use anyhow::{Error, Result, anyhow, bail};
use clap::Args;
use punctual_analysis::verdict::{Deadline, Requirement};
use punctual_core::time::Span;
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_lab::experiment::{bounds, startable};
use punctual_lab::load::{LoadSpec, Loads};
use punctual_lab::periodic::{Stream, WaitKind};

use super::measure::LoopChoices;
use crate::args::{BaselineArgs, LearnArgs, PlanArgs, PolicyName, ReportArgs, RootArgs};
use crate::comparison::baseline::BaselineUse;
use crate::exit::Exit;
use crate::experiment::launcher;
use crate::experiment::{self, LoopExperiment, Machine, MeasuredLoops, PRIORITY};
use crate::output::{self, Dir, Outputs};
use crate::parse::{self, Phase};
use crate::report::{CheckBody, Choice, LoopsBody, PlannedRun, Question, Report};
use crate::stored::{RESULT, SAMPLES};
use crate::view;
use crate::view::text::Detail;
use plan::{Plan, Turns};
use uses::Purpose;

/// The experiment's name in results.
const NAME: &str = "check";

/// `punctual check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// How long to measure, in all [default: about a minute; longer where the question takes more]
    #[arg(long, short, allow_hyphen_values = true, value_parser = parse::duration)]
    pub(crate) duration: Option<parse::Duration>,
    /// The CPU to measure [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    pub(crate) cpu: Option<String>,
    /// The loop's period; several, separated by commas, run at once, shorter periods with higher
    /// priority
    #[arg(
        long,
        short,
        default_value = "1ms",
        value_delimiter = ',',
        allow_hyphen_values = true,
        value_parser = parse::period
    )]
    pub(crate) period: Vec<parse::Duration>,
    #[arg(long = "for", value_name = "USE", conflicts_with = "period", value_parser = uses::parse)]
    #[arg(help = uses::help(), long_help = uses::long_help())]
    pub(crate) purpose: Option<Purpose>,
    /// How late a loop may be [default: a tenth of its period]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse::duration)]
    pub(crate) deadline: Option<parse::Duration>,
    /// The share of releases that may be later than the deadline [default: 1e-3]
    #[arg(long, value_name = "SHARE", value_parser = parse::share)]
    pub(crate) miss: Option<f64>,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC: zero, quiet (away from
    /// the kernel's tick) or a duration
    #[arg(long, default_value = "zero", allow_hyphen_values = true, value_parser = parse::phase)]
    pub(crate) phase: Phase,
    /// Directory in which each run creates its own directory
    #[arg(long, default_value = "punctual-results", value_name = "DIR")]
    pub(crate) results: PathBuf,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) learn: LearnArgs,
    #[command(flatten)]
    pub(crate) root: RootArgs,
    #[command(flatten)]
    pub(crate) baseline: BaselineArgs,
}

/// Runs the subcommand.
pub(crate) fn run(args: &CheckArgs) -> Result<Exit> {
    let machine = Machine::of(args.root.root.as_deref())?;
    let (cpu, choice) = pick(args.cpu.as_deref(), &machine.here)?;
    let (turns, left_out) = turns(args, &machine.here);
    let findings = machine.findings(cpu);
    let question = Question { findings: Some(&findings), ..question(args) };
    let mut plan = Plan { streams: Vec::new(), turns, here: &machine.here };
    plan.streams = streams(args, cpu)?;
    let duration = args.duration.map_or_else(|| plan.budget(&question.requirement), |d| d.0);
    if plan.streams.iter().any(|stream| stream.period.as_ns() > duration.as_ns().unsigned_abs()) {
        bail!("--duration is shorter than one period");
    }
    let gate = BaselineUse::open(&args.baseline, &machine.facts, machine.is_foreign())?;
    gate.spare(&args.report.output)?;
    let periodic = plan.of(duration);
    let merge = periodic.counts_as_one(1);
    gate.refuse_others(&experiment::planned(&periodic, merge, args.report.keep_cold, None))?;
    let outputs = args.report.output.open()?;
    let plans = claims_take(args, &plan, duration);
    if args.plan.plan {
        let loops = LoopsBody { plans, ..LoopsBody::default() };
        let report = Report::new(NAME, CheckBody { loops, ..CheckBody::default() });
        return super::planned(&report, duration, outputs);
    }
    let placed = experiment::settle(&mut plan.streams, args.phase)?;
    let results = output::results_dir(&args.results, jiff::Timestamp::now())
        .map_err(|why| elsewhere(why, &args.results))?;
    let samples = results.opened(SAMPLES)?;
    experiment::announce(&plans, duration);
    let periodic = plan.of(duration);
    let loops = LoopExperiment {
        name: NAME,
        merge,
        plan: periodic,
        machine: &machine,
        choice,
        args: &args.report,
        learn: args.learn,
        plans,
        samples: Some(samples),
        follow: None,
        changes: None,
        question: Some(question),
        notes: machine.foreign.iter().cloned().chain(left_out).chain(placed).collect(),
    };
    let measured = loops.run().inspect_err(|_| {
        // Nothing was measured: an empty directory would only be in the way.
        let _left = results.clone().remove_empty();
    })?;
    let MeasuredLoops { envelope, loops, rows, recorded, trouble } = measured;
    let mut report = Report { envelope, body: CheckBody { loops, rows, compare: None }.into() };
    let uncompared = gate.judge(&mut report, &recorded);
    write(&report, &results, outputs, args.report.detail(Detail::Short))?;
    gate.keep(&report, &recorded)?;
    Exit::after(&report, trouble.or(uncompared))
}

/// Writes the page, and JSON and the HTML page into the directory of the run.
fn write(report: &Report, results: &Dir, outputs: Outputs, detail: Detail) -> Result<()> {
    let text = view::json::of(report)?;
    let shown = results.path().display().to_string();
    let page = view::text::page(report, Some(&shown), detail);
    // Each of them is tried: what one disk has no room for another has.
    let shown = outputs.write(&text, || view::markdown::page(report), page);
    super::name_failures(report, detail);
    let kept = results.replace(RESULT, &text);
    let drawn = super::report::write_to(results, report);
    shown.and(kept).and(drawn.map(drop))
}

/// A directory that an earlier run as root left is the usual reason: there is another.
fn elsewhere(why: Error, results: &Path) -> Error {
    let denied = |cause: &(dyn std::error::Error + 'static)| {
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        kind == Some(std::io::ErrorKind::PermissionDenied)
    };
    if why.chain().any(denied) {
        let results = results.display();
        return anyhow!("{why:#}; use another directory than {results} with --results DIR");
    }
    why
}

/// What is requested of the runs.
fn question(args: &CheckArgs) -> Question<'_> {
    let requested = args.purpose.as_ref().and_then(Purpose::of_use);
    let mut requirement = requested.map_or_else(Requirement::default, |of| of.requirement);
    if let Some(deadline) = args.deadline {
        requirement.deadline = Deadline::Ns(deadline.0.as_ns());
    }
    requirement.p = args.miss.unwrap_or(requirement.p);
    Question {
        requirement,
        measured_alone: requested.is_some(),
        stepping: requested.is_some_and(|of| of.stepping),
        labels: requested.map_or(&[], |of| of.labels),
        purpose: requested.map(|of| of.purpose),
        command: Some(("punctual check", requested.map_or("", |of| of.option))),
        incomplete: false,
        findings: None,
    }
}

/// The loads that start on this machine, and notes about the others.
fn turns(args: &CheckArgs, here: &MachineFacts) -> (Turns, Vec<String>) {
    let own = args.purpose.as_ref().and_then(Purpose::of_use).and_then(|of| of.load);
    let all = match own {
        // A row of the table, as its test says.
        Some(name) => LoadSpec::parse_list(name).unwrap_or_default(),
        None => LoadSpec::all(),
    };
    let (loads, left_out) = startable(all, &launcher(), &bounds(here));
    let notes = left_out.iter().map(|why| format!("left out: {why}")).collect();
    (if own.is_some() { Turns::Together(loads) } else { Turns::Each(loads) }, notes)
}

/// The loops that are measured, on one CPU.
fn streams(args: &CheckArgs, cpu: u32) -> Result<Vec<Stream>> {
    let requested = args.purpose.as_ref().map(Purpose::periods);
    let choices = LoopChoices {
        cpu: None,
        period: requested.as_deref().unwrap_or(&args.period),
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

/// What each claim takes.
fn claims_take(args: &CheckArgs, plan: &Plan<'_>, duration: Span) -> Vec<PlannedRun> {
    let plan_of = |duration| plan.of(duration);
    let merge = !plan.turns.are_none();
    experiment::plans(&args.report, &args.plan, duration, merge, &plan_of)
}

/// The CPU to measure: as requested, else as the facts say.
fn pick(requested: Option<&str>, here: &MachineFacts) -> Result<(u32, Choice)> {
    let (cpus, choice) = experiment::pick(requested, here)?;
    match (cpus.first(), cpus.len(), requested) {
        (Some(cpu), 1, _) => Ok((cpu, choice)),
        (_, _, text) => bail!(
            "--cpu {}: check measures one CPU; 'punctual measure periodic' takes several",
            text.unwrap_or_default()
        ),
    }
}
