//! `punctual measure periodic`: the periodic experiment with every choice open.
//!
//! One loop for each CPU and period, all at once; the shortest period has the highest priority
//! (rate-monotonic, as LinuxCNC's base and servo threads).

use anyhow::{Context, Result, bail};
use punctual::core::time::Span;
use punctual::core::wait::Spin;
use punctual::os::scheduler::Policy;
use punctual_host::choose::{check_cpus, choose, helper_cpu, parse_cpus};
use punctual_host::cpulist::CpuList;
use punctual_host::facts::Facts;
use punctual_lab::load::{LoadSpec, Loads};
use punctual_lab::periodic::{Block, Condition, Plan, Stream, WaitKind, split};

use crate::Exit;
use crate::args::{PeriodicArgs, PolicyName, WaitName};
use crate::comparison::gate::Gate;
use crate::experiment::follow::Target;
use crate::experiment::{COLD_CYCLES, Experiment, claims, quiet};
use crate::output::{self, Json, Opened};
use crate::parse;
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
    let loops = Loops {
        cpu: args.cpu.as_deref(),
        period: &args.period,
        duration: args.duration.0,
        policy: args.policy,
        priority: args.priority,
        wait: wait(args.wait, args.margin, args.budget)?,
        phase: args.phase,
        load: &args.load,
    };
    let Planned { mut plan, specs, choice } = loops.plan(&here)?;
    let target = args.follow.as_ref().map(|clock| Target::open(clock, args.phase)).transpose()?;
    output::distinct(args.report.json.as_deref(), args.samples.as_deref())?;
    let gate = Gate::open(&args.baseline, &facts, root.is_some())?;
    gate.spare(args.report.json.as_deref())?;
    let json = Json::open(args.report.json.as_deref())?;
    let plan_of = |duration| Plan { blocks: blocks(specs.len(), duration), ..plan.clone() };
    let plans = claims::plans(&args.report, &args.plan, args.duration.0, false, &plan_of);
    if args.plan.plan {
        return super::planned("measure periodic", plans, args.duration.0, json);
    }
    claims::announce(&plans, args.duration.0);
    let placed = quiet::settle(&mut plan.streams, args.phase)?;
    let samples = args.samples.as_deref().map(Opened::at).transpose()?;
    let experiment = Experiment {
        name: "measure periodic",
        plan,
        specs,
        merge: false,
        facts,
        here,
        choice,
        asked: args.report.clone(),
        plans,
        samples,
        follow: target,
        warnings: super::foreign(root).into_iter().chain(placed).collect(),
    };
    let (mut report, trouble) = experiment.run()?;
    gate.judge(&mut report)?;
    json.write(&view::json::of(&report)?, &view::text::measure(&report))?;
    gate.keep(&report)?;
    super::exit_after(&report, trouble)
}

/// The choices of a periodic experiment.
pub(crate) struct Loops<'a> {
    /// The CPUs, as asked.
    pub(crate) cpu: Option<&'a str>,
    /// One or more periods.
    pub(crate) period: &'a [parse::Duration],
    /// How long in all.
    pub(crate) duration: Span,
    /// The policy to ask for.
    pub(crate) policy: PolicyName,
    /// The priority of the shortest period.
    pub(crate) priority: u8,
    /// How to wait.
    pub(crate) wait: WaitKind,
    /// The grid's offset.
    pub(crate) phase: parse::Phase,
    /// What to load the machine with.
    pub(crate) load: &'a Loads,
}

/// A periodic experiment that is chosen.
pub(crate) struct Planned {
    /// What to run.
    pub(crate) plan: Plan,
    /// The loads of each condition.
    pub(crate) specs: Vec<Vec<LoadSpec>>,
    /// The CPUs, and why those.
    pub(crate) choice: Choice,
}

impl Loops<'_> {
    /// What to run on the machine of which this is known.
    ///
    /// # Errors
    /// In one line, which option asks for what cannot be.
    pub(crate) fn plan(&self, here: &Facts) -> Result<Planned> {
        let (cpus, choice) = pick(self.cpu, here)?;
        let streams = streams(self, &cpus)?;
        let (conditions, specs) = conditions(self.load);
        let housekeeping = helper_cpu(&cpus, here).into_iter().collect();
        let blocks = blocks(specs.len(), self.duration);
        let plan = Plan { streams, conditions, blocks, housekeeping, cold: COLD_CYCLES };
        Ok(Planned { plan, specs, choice })
    }
}

pub(super) fn pick(asked: Option<&str>, facts: &Facts) -> Result<(CpuList, Choice)> {
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
fn streams(args: &Loops<'_>, cpus: &CpuList) -> Result<Vec<Stream>> {
    let mut periods = args.period.iter().map(|p| p.period()).collect::<Result<Vec<_>>>()?;
    periods.sort();
    periods.dedup();
    if cpus.len().saturating_mul(periods.len()) > STREAMS_MAX {
        bail!("--cpu and --period ask for more than {STREAMS_MAX} loops at once");
    }
    if let Some(long) = periods.last()
        && long.as_ns() > args.duration.as_ns().unsigned_abs()
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
                // A quiet one is settled once it is sure that something is measured.
                phase_ns: args.phase.at_ns(),
                policy: match args.policy {
                    PolicyName::Other => Policy::Other,
                    PolicyName::Fifo => Policy::Fifo(priority),
                    PolicyName::Rr => Policy::RoundRobin(priority),
                },
                wait: args.wait,
            });
        }
    }
    Ok(streams)
}

/// The way to wait of this name; what only some ways have is refused for the others.
pub(crate) fn wait(
    name: WaitName,
    margin: Option<parse::Duration>,
    budget: f64,
) -> Result<WaitKind> {
    Ok(match (name, margin) {
        (WaitName::Fixed, margin) => WaitKind::Fixed(margin.map_or(Spin::FIXED, |m| m.0)),
        (WaitName::Rearm, Some(margin)) => WaitKind::Rearm(Some(margin.period()?)),
        (WaitName::Rearm, None) => WaitKind::Rearm(None),
        (_, Some(_)) => bail!("--margin: only --wait fixed and --wait rearm have one"),
        (WaitName::Sleep, None) => WaitKind::Sleep,
        (WaitName::Spin, None) => WaitKind::Spin,
        (WaitName::Adaptive, None) => WaitKind::Adaptive(budget),
    })
}

fn conditions(load: &Loads) -> (Vec<Condition>, Vec<Vec<LoadSpec>>) {
    let specs = load.turns();
    let name = |specs: &Vec<LoadSpec>| {
        let names: Vec<String> = specs.iter().map(ToString::to_string).collect();
        if names.is_empty() { "idle".to_owned() } else { names.join(",") }
    };
    (specs.iter().map(|specs| Condition { name: name(specs), wait: None }).collect(), specs)
}

/// Blocks that visit each condition in turn, `duration` in all.
pub(crate) fn blocks(conditions: usize, duration: Span) -> Vec<Block> {
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
