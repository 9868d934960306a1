//! `punctual measure wait`: the ways to wait, held against each other on this machine.
//!
//! One loop; the ways take turns in short blocks, so that a drift of the machine hits all alike.
//! Each is a run of the report, and a row of `strategies`.

use anyhow::{Result, bail};
use punctual::core::time::{Period, Span};
use punctual::core::wait::Spin;
use punctual::os::scheduler::Policy;
use punctual::wait_policy::SPIN_PERIOD_MIN;
use punctual_host::choose::helper_cpu;
use punctual_host::facts::Facts;
use punctual_lab::load::LoadSpec;
use punctual_lab::periodic::{Block, Condition, Plan, Stream, WaitKind, split};

use crate::Exit;
use crate::args::WaitArgs;
use crate::experiment::{COLD_CYCLES, Experiment, PRIORITY, claims, quiet};
use crate::output::Json;
use crate::report::strategies;
use crate::view;

/// The shortest and the longest block of one way.
const BLOCK_MIN: Span = Span::from_ms(500);
const BLOCK_MAX: Span = Span::from_ms(5_000);

/// Runs the subcommand.
pub(crate) fn run(args: &WaitArgs) -> Result<Exit> {
    let root = args.root.root.as_deref();
    let facts = Facts::collect(&super::root(root)?);
    let here = super::here(&facts, root);
    let (cpus, choice) = super::measure::pick(args.cpu.as_deref(), &here)?;
    let mut named = cpus.iter();
    let (Some(cpu), None) = (named.next(), named.next()) else {
        bail!("--cpu: the ways to wait are compared on one CPU");
    };
    let [specs] = &args.load.turns()[..] else {
        bail!("--load: the ways to wait are compared under one load, or several at once");
    };
    if args.period.0 > args.duration.0 {
        bail!("--duration is shorter than one period");
    }
    let period = args.period.period()?;
    let ways = ways(period, args.budget);
    let condition = |way: &WaitKind| Condition { name: way.name().to_owned(), wait: Some(*way) };
    let mut plan = Plan {
        streams: vec![Stream {
            cpu: Some(cpu),
            period,
            phase_ns: args.phase.at_ns(),
            policy: Policy::Fifo(PRIORITY),
            wait: WaitKind::Sleep,
        }],
        conditions: ways.iter().map(condition).collect(),
        blocks: blocks(ways.len(), args.duration.0),
        housekeeping: helper_cpu(&cpus, &here).into_iter().collect(),
        cold: COLD_CYCLES,
    };
    let json = Json::open(args.report.json.as_deref())?;
    let plan_of = |duration| Plan { blocks: blocks(ways.len(), duration), ..plan.clone() };
    let plans = claims::plans(&args.report, &args.plan, args.duration.0, false, &plan_of);
    if args.plan.plan {
        return super::planned("measure wait", plans, args.duration.0, json);
    }
    claims::announce(&plans, args.duration.0);
    let placed = quiet::settle(&mut plan.streams, args.phase)?;
    let specs: Vec<Vec<LoadSpec>> = ways.iter().map(|_| specs.clone()).collect();
    let experiment = Experiment {
        name: "measure wait",
        plan,
        specs,
        merge: false,
        facts,
        here,
        choice,
        asked: args.report.clone(),
        plans,
        samples: None,
        follow: None,
        warnings: super::foreign(root).into_iter().chain(placed).collect(),
    };
    let (mut report, trouble) = experiment.run()?;
    report.strategies = strategies::of(&report.runs);
    json.write(&view::json::of(&report)?, &view::text::measure(&report))?;
    super::exit_after(&report, trouble)
}

/// The ways that are compared: all that a loop of this period can have.
fn ways(period: Period, budget: f64) -> Vec<WaitKind> {
    let all = [
        WaitKind::Sleep,
        WaitKind::Fixed(Spin::FIXED),
        WaitKind::Rearm(None),
        WaitKind::Adaptive(budget),
        WaitKind::Spin,
    ];
    let rests = period.as_ns() >= SPIN_PERIOD_MIN.as_ns().unsigned_abs();
    all.into_iter().filter(|way| rests || *way != WaitKind::Spin).collect()
}

/// Turns of equal length, ten of each way where the time allows.
fn blocks(ways: usize, duration: Span) -> Vec<Block> {
    let count = i64::try_from(ways).unwrap_or(i64::MAX).max(1);
    let tenth = duration.as_ns() / count / 10;
    let length = tenth.clamp(BLOCK_MIN.as_ns(), BLOCK_MAX.as_ns());
    let rounds = (duration.as_ns() / length / count).max(1);
    let once: Vec<usize> = (0..ways).collect();
    split(&once.repeat(usize::try_from(rounds).unwrap_or(1)), duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_too_short_to_rest_in_is_not_spun_through() {
        let spins = |us: u64| {
            let period = Period::from_ns(us * 1_000).expect("positive");
            ways(period, 0.1).contains(&WaitKind::Spin)
        };
        assert_eq!((spins(39), spins(40)), (false, true));
    }

    #[test]
    fn every_way_has_as_many_turns() {
        for (seconds, turns) in [(1, 1), (60, 10), (600, 30)] {
            let blocks = blocks(4, Span::from_ms(seconds * 1_000));
            assert_eq!(blocks.len(), 4 * turns, "{seconds}");
        }
    }
}
