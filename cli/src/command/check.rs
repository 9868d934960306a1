//! `punctual check`: how punctual is this machine?
//!
//! Collects facts, picks a CPU, runs the periodic experiment idle and under each load in turn,
//! interleaved in blocks so that a drift of the machine hits all alike, and judges. Writes
//! `result.json` and `samples.punctual` into a directory of its own.

use std::slice;

use anyhow::{Context, Result, bail};
use punctual::core::time::{Period, Span};
use punctual::os::scheduler::Policy;
use punctual_host::choose::{check_cpus, choose, helper_cpu, parse_cpus};
use punctual_host::cpulist::CpuList;
use punctual_host::facts::Facts;
use punctual_lab::load::LoadSpec;
use punctual_lab::periodic::{Condition, Plan, Stream, WaitKind, interleave};

use crate::Exit;
use crate::args::CheckArgs;
use crate::comparison::gate::Gate;
use crate::experiment::{COLD_CYCLES, Experiment, PRIORITY, bounds, claims, quiet, startable};
use crate::output::{self, Json};
use crate::report::{Choice, PlannedRun};
use crate::stored::{RESULT, SAMPLES};
use crate::view;

/// Shorter than this, all loads run at once: each alone would have too few cycles to say anything.
const LOADS_IN_TURN_FROM: Span = Span::from_ms(20_000);

/// A round visits idle and each load; with one every half minute, drift is spread over all.
const ROUND: Span = Span::from_ms(30_000);

/// Runs the subcommand.
pub(crate) fn run(args: &CheckArgs) -> Result<Exit> {
    let root = args.root.root.as_deref();
    let facts = Facts::collect(&super::root(root)?);
    let here = super::here(&facts, root);
    let (cpu, choice) = pick(args.cpu.as_deref(), &here)?;
    let mut stream = stream(args, cpu)?;
    let gate = Gate::open(&args.baseline, &facts, root.is_some())?;
    gate.spare(args.report.json.as_deref())?;
    let json = Json::open(args.report.json.as_deref())?;
    if args.plan.plan {
        let plans = claims_take(args, &stream, &here, &LoadSpec::ALL);
        return super::planned("check", plans, args.duration.0, json);
    }
    let placed = quiet::settle(slice::from_mut(&mut stream), args.phase)?;
    let results = output::results_dir(&args.results, jiff::Timestamp::now())?;
    let samples = results.opened(SAMPLES)?;

    let (loads, left_out) = startable(LoadSpec::ALL.to_vec(), &bounds(&here));
    let plans = claims_take(args, &stream, &here, &loads);
    claims::announce(&plans, args.duration.0);
    let (plan, specs) = plan(&stream, &here, &loads, args.duration.0);
    let merge = specs.len() > 1;
    let experiment = Experiment {
        name: "check",
        plan,
        specs,
        merge,
        facts,
        here,
        choice,
        asked: args.report.clone(),
        plans,
        samples: Some(samples),
        follow: None,
        warnings: super::foreign(root).into_iter().chain(left_out).chain(placed).collect(),
    };
    let (mut report, trouble) = experiment.run().inspect_err(|_| {
        // Nothing was measured: an empty directory would only be in the way.
        let _left = results.clone().remove_empty();
    })?;
    gate.judge(&mut report)?;
    report.results = Some(results.path().display().to_string());
    let text = view::json::of(&report)?;
    let page = view::text::check(&report);
    // Each of them is tried: what one disk has no room for another has.
    let shown = json.write(&text, &page);
    let kept = results.replace(RESULT, &text);
    let drawn = super::report::beside(&results, &report);
    shown.and(kept).and(drawn)?;
    gate.keep(&report)?;
    super::exit_after(&report, trouble)
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
        policy: Policy::Fifo(PRIORITY),
        wait: WaitKind::Sleep,
    })
}

/// The experiment with these loads, and the loads of each of its conditions.
fn plan(
    stream: &Stream,
    here: &Facts,
    loads: &[LoadSpec],
    duration: Span,
) -> (Plan, Vec<Vec<LoadSpec>>) {
    let (conditions, specs) = conditions(loads.to_vec(), duration);
    let blocks = interleave(specs.len() - 1, rounds(duration, stream.period), duration);
    let cpus: CpuList = stream.cpu.into_iter().collect();
    let housekeeping = helper_cpu(&cpus, here).into_iter().collect();
    let streams = vec![stream.clone()];
    (Plan { streams, conditions, blocks, housekeeping, cold: COLD_CYCLES }, specs)
}

/// What each claim takes, with these loads.
fn claims_take(
    args: &CheckArgs,
    stream: &Stream,
    here: &Facts,
    loads: &[LoadSpec],
) -> Vec<PlannedRun> {
    let plan_of = |duration| plan(stream, here, loads, duration).0;
    claims::plans(&args.report, &args.plan, args.duration.0, !loads.is_empty(), &plan_of)
}

/// The CPU to measure: as asked, else as the facts say.
fn pick(asked: Option<&str>, facts: &Facts) -> Result<(u32, Choice)> {
    let Some(text) = asked else {
        let choice = choose(facts);
        check_cpus(&CpuList::single(choice.cpu), facts)?;
        return Ok((choice.cpu, Choice { cpus: choice.cpu.to_string(), why: choice.why }));
    };
    let cpus = parse_cpus(text, facts).context("--cpu")?;
    let (Some(cpu), 1) = (cpus.first(), cpus.len()) else {
        bail!("--cpu {text}: check measures one CPU; 'punctual measure periodic' takes several");
    };
    Ok((cpu, Choice { cpus: cpu.to_string(), why: "as asked".to_owned() }))
}

/// Idle, then each load; all loads at once when there is little time.
fn conditions(loads: Vec<LoadSpec>, duration: Span) -> (Vec<Condition>, Vec<Vec<LoadSpec>>) {
    let mut specs = vec![Vec::new()];
    if duration >= LOADS_IN_TURN_FROM {
        specs.extend(loads.into_iter().map(|spec| vec![spec]));
    } else if !loads.is_empty() {
        specs.push(loads);
    }
    let name = |specs: &Vec<LoadSpec>| match specs.as_slice() {
        [] => "idle".to_owned(),
        [one] => one.to_string(),
        _ => "all loads".to_owned(),
    };
    (specs.iter().map(|specs| Condition { name: name(specs), wait: None }).collect(), specs)
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
        let all = || LoadSpec::ALL.to_vec();
        let (named, specs) = conditions(all(), Span::from_ms(60_000));
        assert_eq!((named.len(), specs.len()), (LoadSpec::ALL.len() + 1, LoadSpec::ALL.len() + 1));
        assert!(specs.iter().skip(1).all(|specs| specs.len() == 1));
        let (named, specs) = conditions(all(), Span::from_ms(5_000));
        assert_eq!(named[1].name, "all loads");
        assert_eq!(specs[1].len(), LoadSpec::ALL.len());
        assert_eq!(conditions(Vec::new(), Span::from_ms(5_000)).1, [Vec::new()]);
    }
}
