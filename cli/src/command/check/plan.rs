//! What `check` runs: loops on one CPU, idle and under loads in turn, for as long as its question
//! takes.
//!
//! Pure arithmetic over a plan; starts nothing.

use punctual_analysis::verdict::Requirement;
use punctual_core::time::{Period, Span};
use punctual_core::wait::Adaptive;
use punctual_host::choose::helper_cpu;
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_lab::load::LoadSpec;
use punctual_lab::periodic::{Condition, PeriodicPlan, Stream, WaitKind, round, split};

use crate::experiment::COLD_CYCLES;

/// Shorter than this, all loads run at once: each alone would have too few cycles to say anything.
const LOADS_IN_TURN_FROM: Span = Span::from_ms(20_000);

/// A round visits idle and each load; with one every half minute, drift is spread over all.
const ROUND: Span = Span::from_ms(30_000);

/// The shortest time that is measured unless asked for: a minute and a little, so that the loads
/// leave the 40 000 cycles that extreme value models need, beside a loop of this library.
const BUDGET_MIN: Span = Span::from_ms(71_000);

/// And the longest.
const BUDGET_MAX: Span = Span::from_ms(3_600_000);

/// Answers to a loop of one period: idle and under load, its own and those of longer periods.
const ANSWERS: usize = 8;

/// The row of a loop of this library: its wait learns, for this share of the CPU at most.
const LIBRARY: &str = "library loop, idle";
const LIBRARY_BUDGET: f64 = 0.1;

/// For cold cycles and blocks that do not come out even, as a factor.
const SPARE: f64 = 1.1;

/// What is measured, as far as it is known without the time that it takes.
pub(super) struct Plan<'a> {
    /// The loops.
    pub(super) streams: Vec<Stream>,
    /// The sets of loads that take turns.
    pub(super) turns: Turns,
    /// The machine that runs it.
    pub(super) here: &'a MachineFacts,
}

/// What loads run.
pub(super) enum Turns {
    /// Each of these in turn; all at once when there is little time.
    Each(Vec<LoadSpec>),
    /// These at once.
    Together(Vec<LoadSpec>),
}

impl Plan<'_> {
    /// The experiment of this length.
    pub(super) fn of(&self, duration: Span) -> PeriodicPlan {
        let mut conditions = self.turns.conditions(duration);
        let longest = self.streams.iter().map(|stream| stream.period).max();
        let rounds = longest.map_or(1, |period| rounds(duration, period));
        let (mut order, mut length) = (round(conditions.len() - 1), duration);
        if let Some((library, learns)) = self.library(duration, &conditions) {
            order.push(conditions.len());
            conditions.push(library);
            length = Span::from_ns(duration.as_ns() - learns.as_ns());
        }
        let rounds = usize::try_from(rounds).unwrap_or(1);
        let blocks = split(&order.repeat(rounds), length);
        let cpus: CpuList =
            self.streams.iter().filter_map(|stream| stream.thread.pinned_to()).collect();
        let housekeeping = helper_cpu(&cpus, self.here).into_iter().collect();
        let streams = self.streams.clone();
        PeriodicPlan { streams, conditions, blocks, housekeeping, cold: COLD_CYCLES }
    }

    /// The shortest time, a minute at least, in which every run has the cycles that show the
    /// requirement when none is late.
    pub(super) fn budget(&self, requirement: &Requirement) -> Span {
        let longest = self.streams.iter().map(|stream| stream.period.as_ns()).max().unwrap_or(1);
        let needed = requirement.cycles_needed(self.streams.len() * ANSWERS) as f64 * SPARE;
        let mut length = BUDGET_MIN;
        while length < BUDGET_MAX {
            let plan = self.of(length);
            let of = |condition| plan.length_of(condition).as_ns() as f64 / longest as f64;
            let idle = of(0);
            let loads = || (0..plan.conditions.len()).filter(|&at| plan.counts_as_one(at));
            let loaded: f64 = loads().map(of).sum();
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
    /// A loop of this library beside the plain sleepers, without load, and how long its wait learns
    /// before the first block; `None` where there is little time, or several loops share the CPU.
    fn library(&self, duration: Span, others: &[Condition]) -> Option<(Condition, Span)> {
        let [stream] = self.streams.as_slice() else { return None };
        if duration < LOADS_IN_TURN_FROM || others.len() < 2 {
            return None;
        }
        let wait = Some(WaitKind::Adaptive(LIBRARY_BUDGET));
        let condition = Condition { name: LIBRARY.to_owned(), wait, loads: Vec::new() };
        Some((condition, Adaptive::calibration(stream.period)))
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
            [one] => one.to_string(),
            _ => "all loads".to_owned(),
        };
        let condition = |loads: Vec<LoadSpec>| Condition { name: name(&loads), wait: None, loads };
        turns.into_iter().map(condition).collect()
    }

    /// Whether no load runs.
    pub(super) fn are_none(&self) -> bool {
        let (Self::Each(loads) | Self::Together(loads)) = self;
        loads.is_empty()
    }
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
        let conditions = |loads, ms| Turns::Each(loads).conditions(Span::from_ms(ms));
        let turns = conditions(all(), 60_000);
        assert_eq!(turns.len(), LoadSpec::all().len() + 1);
        assert!(turns.iter().skip(1).all(|turn| turn.loads.len() == 1));
        let turns = conditions(all(), 5_000);
        assert_eq!(turns[1].name, "all loads");
        assert_eq!(turns[1].loads.len(), LoadSpec::all().len());
        let idle = conditions(Vec::new(), 5_000);
        assert!(idle.len() == 1 && idle[0].loads.is_empty(), "{idle:?}");
    }

    #[test]
    fn a_loop_of_this_library_has_a_turn_within_the_time_that_was_requested() {
        let here = MachineFacts::collect(&punctual_host::root::Root::live());
        let period = Period::from_ns(1_000_000).expect("positive");
        let stream = Stream {
            thread: punctual::RtThread::cpu(0).with_wait(WaitKind::Sleep),
            period,
            phase_ns: 0,
        };
        let (streams, turns) = (vec![stream], Turns::Each(LoadSpec::all()));
        let mut plan = Plan { streams, turns, here: &here };
        let long = plan.of(Span::from_ms(60_000));
        let last = long.conditions.len() - 1;
        assert_eq!(long.conditions[last].wait, Some(WaitKind::Adaptive(LIBRARY_BUDGET)));
        assert!(!long.counts_as_one(last) && long.counts_as_one(last - 1));
        let learns = Adaptive::calibration(period);
        assert_eq!(long.length().as_ns() + learns.as_ns(), 60_000_000_000);
        assert!(long.length_of(last) >= long.length_of(1), "as long as a load");
        let has_one = |plan: &Plan<'_>, ms| {
            plan.of(Span::from_ms(ms)).conditions.iter().any(|of| of.wait.is_some())
        };
        assert!(has_one(&plan, 20_000) && !has_one(&plan, 19_999));
        plan.streams.push(Stream { phase_ns: 1, ..plan.streams[0].clone() });
        assert!(!has_one(&plan, 60_000), "two loops share the CPU");
    }
}
