//! `punctual measure periodic`: the periodic experiment with every choice open.
//!
//! One loop for each CPU and period, all at once; the shortest period has the highest priority
//! (rate-monotonic, as LinuxCNC's base and servo threads).

use anyhow::{Context, Result, bail};
use punctual::core::time::Span;
use punctual::os::scheduler::Policy;
use punctual_host::choose::{check_cpus, choose, helper_cpu, parse_cpus};
use punctual_host::cpulist::CpuList;
use punctual_host::facts::Facts;
use punctual_lab::load::LoadSpec;
use punctual_lab::periodic::{Block, Condition, Plan, Stream, WaitKind, split};

use crate::Exit;
use crate::args::{PeriodicArgs, PolicyName, WaitName};
use crate::experiment::{COLD_CYCLES, Experiment, claims};
use crate::output::{self, Json};
use crate::report::Choice;
use crate::view;

/// The most loops at once: more threads than any machine's loops, few enough to hold in memory.
const STREAMS_MAX: usize = 256;

/// With loads in turn, each is visited about so often, as long as its blocks are not shorter.
const VISITS: i64 = 3;
const BLOCK_MIN: Span = Span::from_ms(1_000);

/// Runs the subcommand.
pub(crate) fn run(args: &PeriodicArgs) -> Result<Exit> {
    let root = args.root.root.as_deref();
    let facts = Facts::collect(&super::root(root)?);
    let here = super::here(&facts, root);
    let (cpus, choice) = pick(args.cpu.as_deref(), &here)?;
    let streams = streams(args, &cpus)?;
    let (conditions, specs) = conditions(args);
    let housekeeping = helper_cpu(&cpus, &here).into_iter().collect();
    let blocks = blocks(specs.len(), args.duration.0);
    let plan = Plan { streams, conditions, blocks, housekeeping, cold: COLD_CYCLES };
    output::distinct(args.report.json.as_deref(), args.samples.as_deref())?;
    let json = Json::open(args.report.json.as_deref())?;
    let plan_of = |duration| Plan { blocks: self::blocks(specs.len(), duration), ..plan.clone() };
    let plans = claims::plans(&args.report, &args.plan, args.duration.0, false, &plan_of);
    if args.plan.plan {
        return super::planned("measure periodic", plans, args.duration.0, json);
    }
    claims::announce(&plans, args.duration.0);
    let samples = match &args.samples {
        Some(path) => Some((output::create(path)?, path.clone())),
        None => None,
    };
    let experiment = Experiment {
        name: "measure periodic",
        plan,
        specs,
        merge: false,
        facts,
        here,
        choice,
        limits: args.report.limits.clone(),
        claims: args.report.claims.clone(),
        plans,
        keep_cold: args.report.keep_cold,
        samples,
        warnings: super::foreign(root),
    };
    let (report, trouble) = experiment.run()?;
    json.write(&view::json::of(&report)?, &view::text::measure(&report))?;
    super::exit_after(&report, trouble)
}

fn pick(asked: Option<&str>, facts: &Facts) -> Result<(CpuList, Choice)> {
    let chosen = choose(facts);
    match asked {
        None => {
            let cpus = CpuList::single(chosen.cpu);
            check_cpus(&cpus, facts)?;
            let choice = Choice { cpus: cpus.to_string(), why: chosen.why };
            Ok((cpus, choice))
        }
        Some(text) => {
            let cpus = parse_cpus(text, facts).context("--cpu")?;
            let choice = Choice { cpus: cpus.to_string(), why: "as asked".to_owned() };
            Ok((cpus, choice))
        }
    }
}

/// One stream for each CPU and period; the shortest period first in priority.
fn streams(args: &PeriodicArgs, cpus: &CpuList) -> Result<Vec<Stream>> {
    let mut periods = args.period.iter().map(|p| p.period()).collect::<Result<Vec<_>>>()?;
    periods.sort();
    periods.dedup();
    if cpus.len().saturating_mul(periods.len()) > STREAMS_MAX {
        bail!("--cpu and --period ask for more than {STREAMS_MAX} loops at once");
    }
    if let Some(long) = periods.last()
        && long.as_ns() > args.duration.0.as_ns().unsigned_abs()
    {
        bail!("--duration is shorter than one period");
    }
    let mut streams = Vec::new();
    for cpu in cpus.iter() {
        for (rank, &period) in periods.iter().enumerate() {
            let step = u8::try_from(rank).unwrap_or(u8::MAX);
            let Some(priority) = args.priority.checked_sub(step).filter(|&p| p > 0) else {
                bail!("--priority {}: too low for {} periods", args.priority, periods.len());
            };
            streams.push(Stream {
                cpu: Some(cpu),
                period,
                phase_ns: args.phase.0,
                policy: match args.policy {
                    PolicyName::Other => Policy::Other,
                    PolicyName::Fifo => Policy::Fifo(priority),
                    PolicyName::Rr => Policy::RoundRobin(priority),
                },
                wait: match args.wait {
                    WaitName::Sleep => WaitKind::Sleep,
                    WaitName::Spin => WaitKind::Spin,
                },
            });
        }
    }
    Ok(streams)
}

fn conditions(args: &PeriodicArgs) -> (Vec<Condition>, Vec<Vec<LoadSpec>>) {
    let specs = args.load.turns();
    let name = |specs: &Vec<LoadSpec>| {
        let names: Vec<String> = specs.iter().map(ToString::to_string).collect();
        if names.is_empty() { "idle".to_owned() } else { names.join(",") }
    };
    (specs.iter().map(|specs| Condition { name: name(specs) }).collect(), specs)
}

fn blocks(conditions: usize, duration: Span) -> Vec<Block> {
    let once: Vec<usize> = (0..conditions).collect();
    if conditions == 1 {
        return split(&once, duration);
    }
    let shortest = BLOCK_MIN.as_ns() * i64::try_from(conditions).unwrap_or(i64::MAX);
    let visits = (duration.as_ns() / shortest).clamp(1, VISITS);
    split(&once.repeat(usize::try_from(visits).unwrap_or(1)), duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_in_turn_come_around_when_there_is_time() {
        assert_eq!(blocks(1, Span::from_ms(10_000)).len(), 1);
        assert_eq!(blocks(8, Span::from_ms(10_000)).len(), 8);
        assert_eq!(blocks(8, Span::from_ms(60_000)).len(), 24);
        assert_eq!(blocks(8, Span::from_ms(100)).len(), 8);
    }
}
