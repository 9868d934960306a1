//! `punctual check`: how punctual is this machine?
//!
//! Collects facts, picks a CPU, runs the periodic experiment idle and under each load in turn,
//! interleaved in blocks so that a drift of the machine hits all alike, and judges. Writes
//! `result.json` and `samples.punctual` into a directory of its own.

use std::path::PathBuf;
use std::slice;

use anyhow::{Result, bail};
use clap::Args;
use punctual_core::time::{Period, Span};
use punctual_host::choose::helper_cpu;
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_lab::experiment::{bounds, startable};
use punctual_lab::load::LoadSpec;
use punctual_lab::periodic::{Condition, PeriodicPlan, Stream, WaitKind, interleave};
use punctual_os::scheduler::SchedPolicy;

use crate::args::{BaselineArgs, PlanArgs, ReportArgs, RootArgs};
use crate::comparison::gate::Gate;
use crate::exit::Exit;
use crate::experiment::launcher::launcher;
use crate::experiment::{self, COLD_CYCLES, LoopExperiment, Machine, MeasuredLoops, PRIORITY};
use crate::output::{self, Json};
use crate::parse::{self, Phase};
use crate::report::{CheckBody, Choice, LoopsBody, PlannedRun, Report};
use crate::stored::{RESULT, SAMPLES};
use crate::view;

/// The experiment's name in results.
const NAME: &str = "check";

/// Shorter than this, all loads run at once: each alone would have too few cycles to say anything.
const LOADS_IN_TURN_FROM: Span = Span::from_ms(20_000);

/// A round visits idle and each load; with one every half minute, drift is spread over all.
const ROUND: Span = Span::from_ms(30_000);

/// `punctual check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// How long to measure, in all
    #[arg(long, default_value = "60s", allow_hyphen_values = true, value_parser = parse::duration)]
    pub(crate) duration: parse::Duration,
    /// The CPU to measure [default: an isolated one, else the last that is allowed]
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<String>,
    /// The loop's period
    #[arg(long, default_value = "1ms", allow_hyphen_values = true, value_parser = parse::period)]
    pub(crate) period: parse::Duration,
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
    pub(crate) root: RootArgs,
    #[command(flatten)]
    pub(crate) baseline: BaselineArgs,
}

/// Runs the subcommand.
pub(crate) fn run(args: &CheckArgs) -> Result<Exit> {
    let machine = Machine::of(args.root.root.as_deref())?;
    let (cpu, choice) = pick(args.cpu.as_deref(), &machine.here)?;
    let mut stream = stream(args, cpu)?;
    let gate = Gate::open(&args.baseline, &machine.facts, machine.is_foreign())?;
    gate.spare(args.report.json.as_deref())?;
    let json = Json::open(args.report.json.as_deref())?;
    if args.plan.plan {
        let plans = claims_take(args, &stream, &machine.here, &LoadSpec::all());
        let loops = LoopsBody { plans, ..LoopsBody::default() };
        let report = Report::new(NAME, CheckBody { loops, ..CheckBody::default() });
        return super::planned(&report, args.duration.0, json);
    }
    let placed = experiment::settle(slice::from_mut(&mut stream), args.phase)?;
    let results = output::results_dir(&args.results, jiff::Timestamp::now())?;
    let samples = results.opened(SAMPLES)?;

    let (loads, left_out) = loads(&machine.here);
    let plans = claims_take(args, &stream, &machine.here, &loads);
    experiment::announce(&plans, args.duration.0);
    let plan = plan(&stream, &machine.here, &loads, args.duration.0);
    let loops = LoopExperiment {
        name: NAME,
        merge: plan.conditions.len() > 1,
        plan,
        machine: &machine,
        choice,
        args: &args.report,
        plans,
        samples: Some(samples),
        follow: None,
        notes: machine.foreign.iter().cloned().chain(left_out).chain(placed).collect(),
    };
    let measured = loops.run().inspect_err(|_| {
        // Nothing was measured: an empty directory would only be in the way.
        let _left = results.clone().remove_empty();
    })?;
    let MeasuredLoops { envelope, loops, rows, recorded, trouble } = measured;
    let mut report = Report { envelope, body: CheckBody { loops, rows, compare: None }.into() };
    gate.judge(&mut report, &recorded)?;
    let text = view::json::of(&report)?;
    let page = view::text::page(&report, Some(&results.path().display().to_string()));
    // Each of them is tried: what one disk has no room for another has.
    let shown = json.write(&text, &page);
    let kept = results.replace(RESULT, &text);
    let drawn = super::report::write_to(&results, &report);
    shown.and(kept).and(drawn)?;
    gate.keep(&report, &recorded)?;
    Exit::after(&report, trouble)
}

/// The loads that start on this machine, and notes about the others.
fn loads(here: &MachineFacts) -> (Vec<LoadSpec>, Vec<String>) {
    let (loads, left_out) = startable(LoadSpec::all(), &launcher(), &bounds(here));
    (loads, left_out.iter().map(|why| format!("left out: {why}")).collect())
}

/// The loop that is measured.
fn stream(args: &CheckArgs, cpu: u32) -> Result<Stream> {
    if args.period.0 > args.duration.0 {
        bail!("--duration is shorter than one period");
    }
    Ok(Stream {
        cpu: Some(cpu),
        period: args.period.period()?,
        // A quiet one is settled once it is sure that something is measured.
        phase_ns: args.phase.at_ns(),
        policy: SchedPolicy::Fifo(PRIORITY),
        wait: WaitKind::Sleep,
    })
}

/// The experiment with these loads.
fn plan(stream: &Stream, here: &MachineFacts, loads: &[LoadSpec], duration: Span) -> PeriodicPlan {
    let conditions = conditions(loads.to_vec(), duration);
    let blocks = interleave(conditions.len() - 1, rounds(duration, stream.period), duration);
    let cpus: CpuList = stream.cpu.into_iter().collect();
    let housekeeping = helper_cpu(&cpus, here).into_iter().collect();
    let streams = vec![stream.clone()];
    PeriodicPlan { streams, conditions, blocks, housekeeping, cold: COLD_CYCLES }
}

/// What each claim takes, with these loads.
fn claims_take(
    args: &CheckArgs,
    stream: &Stream,
    here: &MachineFacts,
    loads: &[LoadSpec],
) -> Vec<PlannedRun> {
    let plan_of = |duration| plan(stream, here, loads, duration);
    experiment::plans(&args.report, &args.plan, args.duration.0, !loads.is_empty(), &plan_of)
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

/// Idle, then each load; all loads at once when there is little time.
fn conditions(loads: Vec<LoadSpec>, duration: Span) -> Vec<Condition> {
    let mut turns = vec![Vec::new()];
    if duration >= LOADS_IN_TURN_FROM {
        turns.extend(loads.into_iter().map(|spec| vec![spec]));
    } else if !loads.is_empty() {
        turns.push(loads);
    }
    let name = |loads: &[LoadSpec]| match loads {
        [] => "idle".to_owned(),
        [one] => one.to_string(),
        _ => "all loads".to_owned(),
    };
    let condition = |loads: Vec<LoadSpec>| Condition { name: name(&loads), wait: None, loads };
    turns.into_iter().map(condition).collect()
}

/// As many rounds as leave each block at least fifty cycles, one every half minute at most.
fn rounds(duration: Span, period: Period) -> u32 {
    let by_time = duration.as_ns() / ROUND.as_ns();
    let cycles = duration.as_ns().unsigned_abs() / period.as_ns();
    let by_cycles = i64::try_from(cycles / (12 * 50)).unwrap_or(i64::MAX);
    u32::try_from(by_time.min(by_cycles).clamp(1, 1_000)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_visits_every_load_twice_and_a_moment_all_at_once() {
        let period = Period::from_ns(1_000_000).expect("positive");
        assert_eq!(rounds(Span::from_ms(60_000), period), 2);
        assert_eq!(rounds(Span::from_ms(1_000), period), 1);
        let all = || LoadSpec::all();
        let turns = conditions(all(), Span::from_ms(60_000));
        assert_eq!(turns.len(), LoadSpec::all().len() + 1);
        assert!(turns.iter().skip(1).all(|turn| turn.loads.len() == 1));
        let turns = conditions(all(), Span::from_ms(5_000));
        assert_eq!(turns[1].name, "all loads");
        assert_eq!(turns[1].loads.len(), LoadSpec::all().len());
        let idle = conditions(Vec::new(), Span::from_ms(5_000));
        assert!(idle.len() == 1 && idle[0].loads.is_empty(), "{idle:?}");
    }
}
