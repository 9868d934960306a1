//! From a timer to a task: how far after its instant the first task runs where each design keeps
//! them (AnT, §2.2.2 and problem 4), and the intervals of a task beside one that overruns (problem
//! 3, figure 4).
//!
//! The paper measured ART-Linux alone, and drew the third problem without a measurement. Never
//! prints.

use std::hint::spin_loop;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use punctual::{Executive, Instant, OnOverrun, Phase, Placement, RtThread, Task, WaitKind};
use punctual_analysis::scatter::Scatter;
use punctual_core::clock::Clock;
use punctual_core::time::{Period, Span};
use punctual_engine::clocks::{MachineClock, StampCost};
use punctual_lab::baseline::{BaselineTask, Design, Punctual, plan};
use punctual_lab::executive::DesignName;
use punctual_lab::experiment::{
    ClockFacts, Context, Demand, Experiment, ExperimentError, ExperimentOutcome, demand,
    on_measuring_thread, on_one_thread,
};
use punctual_lab::load::LoadSpec;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

use super::registration::{balanced, registered};
use super::{Ant, ArtLinux};

/// The timer's period, ns.
const TICK_NS: u64 = 1_000_000;
/// Ticks of a turn, of which the first do not count.
const TICKS: usize = 100;
const COLD: usize = 5;
/// The share of the time that each loop may take, at most: for the judgement of what it risks.
const BUSY: f64 = 0.5;

/// Tasks that a timer releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskSet {
    /// One task, released at each tick, as in the paper.
    One,
    /// A hundred of a period of a hundred ticks, which registered at irregular times.
    Irregular,
    /// A hundred, all released at each tick.
    Together,
}

impl TaskSet {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::One, Self::Irregular, Self::Together];

    /// In identifiers of rows.
    pub const fn id(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Irregular => "irregular",
            Self::Together => "together",
        }
    }

    /// In words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::One => "one task each tick",
            Self::Irregular => "100 tasks of 100 ticks, registered at irregular times",
            Self::Together => "100 tasks each tick",
        }
    }

    fn tasks(self) -> Vec<BaselineTask> {
        let each = BaselineTask { period: 1, phase: 0, level: 0 };
        match self {
            Self::One => vec![each],
            Self::Irregular => registered(1),
            Self::Together => vec![each; 100],
        }
    }
}

/// Each design on the kernel's timer.
#[derive(Clone, Debug)]
pub struct ProcessExperiment {
    /// The thread: its CPU, and the policy to request.
    pub thread: RtThread,
    /// Time of all rows together, about; each has three turns at least, however short it is.
    pub duration: Span,
}

/// One design with some tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessRow {
    /// ART-Linux's, AnT's or the library's own.
    pub design: DesignName,
    /// Its tasks.
    pub set: TaskSet,
    /// From the instant of a tick until its first task runs, ns, in the order of time.
    pub times_ns: Vec<i64>,
}

impl ProcessRow {
    /// Scatter of the times, ns.
    pub fn scatter(&self) -> Option<Scatter> {
        Scatter::of_series(self.times_ns.iter().copied())
    }
}

impl Experiment for ProcessExperiment {
    type Outcome = Vec<ProcessRow>;

    fn demands(&self) -> Vec<Demand> {
        Period::from_ns(TICK_NS).map(|tick| demand(&self.thread, tick, BUSY)).into_iter().collect()
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        Vec::new()
    }

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<Self::Outcome>, ExperimentError> {
        let stop = context.stop;
        on_measuring_thread(&self.thread, stop, |clock| self.measure(clock, stop))
    }
}

/// Turns of each design at least.
const TURNS_MIN: usize = 3;

impl ProcessExperiment {
    /// All designs in turns; what there was until `stop`.
    fn measure(&self, clock: &mut MachineClock, stop: &AtomicBool) -> Vec<ProcessRow> {
        let tasks = TaskSet::ALL.map(|set| (set, set.tasks()));
        // The library's builder balances what registers: no tick has two.
        let kept = |(set, tasks): &(TaskSet, Vec<BaselineTask>)| match set {
            TaskSet::Irregular => balanced(),
            _ => plan(tasks).ok(),
        };
        let plans: Vec<_> = tasks.iter().map(kept).collect();
        let mut storages: Vec<_> =
            plans.iter().map(|plan| plan.as_ref().map(|plan| plan.storage())).collect();
        let mut on_timer: Vec<(ProcessRow, Box<dyn OnTicks + '_>)> = Vec::new();
        for (((set, tasks), plan), storage) in tasks.iter().zip(&plans).zip(&mut storages) {
            let row = |design| ProcessRow { design, set: *set, times_ns: Vec::new() };
            on_timer.push((row(DesignName::ArtLinux), Box::new(ArtLinux::new(tasks))));
            if let Some(kept) = Ant::new(tasks) {
                on_timer.push((row(DesignName::Ant), Box::new(kept)));
            }
            if let (Some(plan), Some(storage)) = (plan, storage) {
                let kept = Box::new(Punctual::new(plan, storage));
                on_timer.push((row(DesignName::Punctual), kept));
            }
        }
        let end_ns = now_ns(ClockId::Monotonic) + self.duration.as_ns().max(0).unsigned_abs();
        let mut turns = 0;
        let is_stopped = || stop.load(Ordering::Relaxed);
        while !is_stopped() && (turns < TURNS_MIN || now_ns(ClockId::Monotonic) < end_ns) {
            for (row, design) in on_timer.iter_mut().take_while(|_| !is_stopped()) {
                row.times_ns.reserve(TICKS);
                design.turn(clock, &mut row.times_ns);
            }
            turns += 1;
        }
        let rows = on_timer.into_iter().map(|(row, _)| row);
        rows.filter(|row| !row.times_ns.is_empty()).collect()
    }
}

/// A design whose tasks a timer releases.
trait OnTicks {
    /// Runs [`TICKS`] ticks, of which each first task's time counts but for the cold ones.
    fn turn(&mut self, clock: &mut MachineClock, times_ns: &mut Vec<i64>);
}

impl<D: Design> OnTicks for D {
    fn turn(&mut self, clock: &mut MachineClock, times_ns: &mut Vec<i64>) {
        let first = now_ns(ClockId::Monotonic) / TICK_NS + 2;
        for (at, tick) in (first..).take(TICKS).enumerate() {
            let release_ns = tick * TICK_NS;
            let _interrupted = sleep_until_ns(release_ns);
            self.release();
            let Some(mut job) = self.dispatch() else { continue };
            let began = clock.now();
            if at >= COLD {
                times_ns.push((began - Instant::from_ns(release_ns)).as_ns());
            }
            loop {
                self.wait(job);
                let Some(next) = self.dispatch() else { break };
                job = next;
            }
        }
    }
}

/// The fate of a task that is not done at its next release, in [`OverrunExperiment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overrunning {
    /// It never is: it takes no longer than usual.
    None,
    /// It goes on, and what it passes is left out: ART-Linux's (figure 4).
    GoesOn,
    /// It is ended at its next release, and for good: AnT's (§3.1).
    Ended,
    /// It has a thread of its own, below the other: neither design of the paper.
    Below,
}

impl Overrunning {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::GoesOn, Self::Ended, Self::Below];

    /// In identifiers of rows.
    pub const fn id(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::GoesOn => "goes-on",
            Self::Ended => "ended",
            Self::Below => "below",
        }
    }

    /// In words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::None => "B never overruns",
            Self::GoesOn => "B goes on, as in ART-Linux",
            Self::Ended => "B is ended for good at its next release, as in AnT",
            Self::Below => "B in a thread below A",
        }
    }
}

/// A task A beside a task B that overruns each fifth time: figure 4.
#[derive(Clone, Debug)]
pub struct OverrunExperiment {
    /// The thread of both: its CPU, and the policy to request.
    pub thread: RtThread,
    /// Time of all rows together, about.
    pub duration: Span,
}

/// Intervals of A under one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct OverrunRow {
    /// The fate of B when it overruns.
    pub overrunning: Overrunning,
    /// Each interval between two starts of A less its period, ns, signed, in the order of time.
    pub errors: Vec<i64>,
}

impl OverrunRow {
    /// Scatter of the errors without their sign, ns.
    pub fn scatter(&self) -> Option<Scatter> {
        Scatter::of_series(self.errors.iter().map(|error| error.abs()))
    }
}

/// The period of both tasks; A is released half of it after B.
const PAIR: Duration = Duration::from_millis(5);
const PERIOD: Period = match Period::from_ns(PAIR.as_nanos() as u64) {
    Some(period) => period,
    None => panic!("5 ms is a period"),
};
/// The same in ms.
pub(super) const PAIR_MS: f64 = 5.0;
/// Execution time of B, and that of a cycle in which it overruns.
const USUAL: Duration = Duration::from_micros(100);
const OVERRUN: Duration = Duration::from_millis(8);
/// One of so many cycles of B overruns.
const EACH: u64 = 5;

impl Experiment for OverrunExperiment {
    type Outcome = Vec<OverrunRow>;

    fn demands(&self) -> Vec<Demand> {
        vec![demand(&self.thread, PERIOD, BUSY)]
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        Vec::new()
    }

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<Self::Outcome>, ExperimentError> {
        let stop = context.stop;
        let ExperimentOutcome { outcome, end, clock, refused, disturbances, taken } =
            on_one_thread(stop, || {
                let mut clock = MachineClock::best();
                let cost = StampCost::measure(&mut clock);
                let facts = ClockFacts::of(&clock, cost, None);
                ExperimentOutcome::of_thread(self.measure(stop), facts, Vec::new())
            })?;
        // It has no thread that could run.
        let outcome = outcome.map_err(|why| ExperimentError::Thread(io::Error::other(why)))?;
        Ok(ExperimentOutcome { outcome, end, clock, refused, disturbances, taken })
    }
}

impl OverrunExperiment {
    /// Each in turns; what there was until `stop`.
    fn measure(&self, stop: &AtomicBool) -> Result<Vec<OverrunRow>, punctual::Error> {
        let row = |overrunning| OverrunRow { overrunning, errors: Vec::new() };
        let mut rows = Overrunning::ALL.map(row);
        let turns = TURNS_MIN as u32;
        let each = self.duration.as_ns().max(0).unsigned_abs() / u64::from(turns * 4);
        let length = Duration::from_nanos(each).max(PAIR * 50);
        for _ in 0..turns {
            for row in &mut rows {
                if !stop.load(Ordering::Relaxed) {
                    self.pair(row, length)?;
                }
            }
        }
        Ok(rows.into_iter().filter(|row| !row.errors.is_empty()).collect())
    }

    /// Runs both tasks for so long.
    fn pair(&self, row: &mut OverrunRow, length: Duration) -> Result<(), punctual::Error> {
        let is_below = row.overrunning == Overrunning::Below;
        let on_overrun = match row.overrunning {
            Overrunning::Ended => OnOverrun::Terminate,
            _ => OnOverrun::Skip,
        };
        let placement = if is_below {
            // A thread of a task's own has a priority below the executive's.
            let own = self.thread.pinned_to().map_or_else(RtThread::any, RtThread::cpu);
            Placement::thread(own.wait(WaitKind::Sleep))
        } else {
            Placement::inline()
        };
        let a = Task::every("a", PERIOD).at(PAIR / 2);
        let b =
            Task::every("b", PERIOD).at(Duration::ZERO).on_overrun(on_overrun).placed(placement);
        let overruns = row.overrunning != Overrunning::None;
        let is_ended_for_good = row.overrunning == Overrunning::Ended;
        let mut has_ended = false;
        let mut starts = Vec::with_capacity((length.as_nanos() / PAIR.as_nanos()) as usize + 2);
        let executive = Executive::builder()
            .task(b, |cycle| {
                // Its releases go on, for the executive keeps the task: nothing of it runs.
                if has_ended {
                    return;
                }
                let length = if overruns && cycle.n % EACH == EACH - 1 { OVERRUN } else { USUAL };
                let end_ns = now_ns(ClockId::Monotonic) + length.as_nanos() as u64;
                while now_ns(ClockId::Monotonic) < end_ns && !cycle.cancelled() {
                    spin_loop();
                }
                has_ended = is_ended_for_good && cycle.cancelled();
            })
            .task(a, |cycle| {
                if starts.len() < starts.capacity() {
                    starts.push(cycle.release + cycle.lateness);
                }
            })
            .thread(self.thread.clone().wait(WaitKind::Sleep))
            .phase(Phase::At(0))
            .allow_overload();
        let (executive, _) = executive.build()?;
        // How B ended is what is tried, and no fault.
        let _summary = executive.run_for(length)?;
        let error = |pair: &[Instant]| (pair[1] - pair[0]).as_ns() - PAIR.as_nanos() as i64;
        row.errors.extend(starts.windows(2).map(error));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_design_runs_its_first_task_after_each_tick_that_has_one() {
        let experiment =
            ProcessExperiment { thread: RtThread::any().other(), duration: Span::from_ns(0) };
        let mut clock = MachineClock::best();
        let rows = experiment.measure(&mut clock, &AtomicBool::new(false));
        assert_eq!(rows.len(), 3 * TaskSet::ALL.len(), "{rows:?}");
        for row in &rows {
            let most = TURNS_MIN * (TICKS - COLD);
            match row.set {
                // Ticks without a task have no first one; balanced designs have none such.
                TaskSet::Irregular if row.design == DesignName::ArtLinux => {
                    assert!(
                        (most / 2..most).contains(&row.times_ns.len()),
                        "{}",
                        row.times_ns.len()
                    );
                }
                _ => assert_eq!(row.times_ns.len(), most, "{:?} {:?}", row.design, row.set),
            }
            assert!(row.times_ns.iter().all(|&ns| ns > 0), "no task runs before its tick: {row:?}");
        }
        assert!(experiment.measure(&mut clock, &AtomicBool::new(true)).is_empty());
    }

    #[test]
    fn a_task_that_overruns_moves_the_other_by_what_it_takes_and_none_from_below() {
        let thread = RtThread::any().other();
        let experiment = OverrunExperiment { thread, duration: Span::from_ns(0) };
        let rows = experiment.measure(&AtomicBool::new(false)).expect("it runs");
        assert_eq!(rows.len(), Overrunning::ALL.len());
        let largest = |overrunning: Overrunning| {
            let row = rows.iter().find(|row| row.overrunning == overrunning).expect("measured");
            row.errors.iter().copied().max().expect("intervals")
        };
        // B takes 8 ms from the release 2.5 ms before A's: A begins 5.5 ms late.
        assert!(largest(Overrunning::GoesOn) >= 5_000_000, "{rows:?}");
        // Whatever else runs here, what ends at the next release costs 2.5 ms at least.
        assert!(largest(Overrunning::Ended) >= 2_400_000, "{rows:?}");
        // B overruns once a turn, where it would ten times: two intervals of A are not the period.
        // What else runs here moves some of both: in one of five trials it does little.
        let is_rarer = |rows: &[OverrunRow]| {
            let moved = |overrunning: Overrunning| {
                let row = rows.iter().find(|row| row.overrunning == overrunning).expect("measured");
                row.errors.iter().filter(|error| error.abs() >= 2_400_000).count()
            };
            let (ended, goes_on) = (moved(Overrunning::Ended), moved(Overrunning::GoesOn));
            goes_on >= 3 * TURNS_MIN && ended < 2 * goes_on / 3
        };
        let measure = || experiment.measure(&AtomicBool::new(false)).expect("it runs");
        assert!(is_rarer(&rows) || (0..4).any(|_| is_rarer(&measure())), "{rows:?}");
        assert!(experiment.measure(&AtomicBool::new(true)).expect("nothing runs").is_empty());
    }
}
