//! Many periodic tasks in one loop: the builder of an executive's table.
//!
//! For whoever runs more than one period. Everything is checked here and nothing later: a
//! [`Plan`] always makes a table. Periods are exact fractions, phases are balanced so that few
//! releases fall together (AnT, *Sophisticated periodic execution control*, §3.3), and the ranks
//! are those of priority, then of the shorter period. Reads no clock, starts nothing.
//!
//! ```
//! use std::time::Duration;
//!
//! use punctual_engine::periodic::{Periodic, Period, Task};
//!
//! let servo = Task::every("servo", Period::hz(1_000).expect("in range"))
//!     .budget(Duration::from_micros(200));
//! let plan = Periodic::new()
//!     .task(servo)
//!     .task(Task::every("log", Period::hz(3).expect("in range")))
//!     .build()?;
//! assert_eq!(plan.name(0), "servo");
//! // Wherever the log is, one release of the servo falls on each of its own.
//! assert_eq!(plan.peak(), 2);
//! # Ok::<(), punctual_engine::error::BuildError>(())
//! ```

pub(crate) mod balance;
mod plan;
mod response;

use std::collections::HashMap;
use std::time::Duration;

use punctual_core::ready::RANKS_MAX;
use punctual_core::time::gcd;

use crate::budgets::ROUNDING;
use crate::error::{BuildError, Overfull};
use balance::{Class, Group, balance, peak};

pub use crate::task::{Offset, Task};
pub use plan::{Plan, PlanStorage};
pub use punctual_core::table::OnOverrun;
pub use punctual_core::time::Period;
pub use response::{LateTask, Response};

/// Collects tasks; [`Periodic::build`] checks them and lays them out.
#[derive(Clone, Debug, Default)]
pub struct Periodic {
    tasks: Vec<Task>,
    overload: bool,
    tick_ns: Option<u64>,
}

impl Periodic {
    /// No tasks yet.
    ///
    /// # Real-time: setup only
    pub fn new() -> Self {
        Self::default()
    }

    /// One more task.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn task(mut self, task: Task) -> Self {
        self.tasks.push(task);
        self
    }

    /// Lets balanced phases fall on multiples of `tick_ns` (of its greatest common divisor with all
    /// periods, exactly). Without it they fall on those of the periods' common divisor, so that
    /// tasks that all have one period are released together, with one wake.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn tick_ns(mut self, tick_ns: u64) -> Self {
        self.tick_ns = Some(tick_ns);
        self
    }

    /// Lets the budgets ask for more than the whole CPU: releases will be missed.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn allow_overload(mut self) -> Self {
        self.overload = true;
        self
    }

    /// Checks all tasks and lays them out.
    ///
    /// # Errors
    ///
    /// The first setting that cannot be, with the names of its tasks.
    ///
    /// # Real-time: setup only
    pub fn build(&self) -> Result<Plan, BuildError> {
        let names = self.check()?;
        let (phases, peak) = phases(&self.tasks, &names, self.tick_ns)?;
        Ok(Plan::of(&self.tasks, &phases, peak))
    }

    /// Each task on its own, then all together; the index of each name.
    ///
    /// # Real-time: setup only
    pub fn check(&self) -> Result<HashMap<&str, usize>, BuildError> {
        if self.tasks.len() > RANKS_MAX {
            return Err(BuildError::TooMany(self.tasks.len()));
        }
        if self.tick_ns == Some(0) {
            return Err(BuildError::Tick);
        }
        let mut names = HashMap::new();
        let mut load = 0.0;
        for (index, task) in self.tasks.iter().enumerate() {
            check_task(task)?;
            if names.insert(task.name(), index).is_some() {
                return Err(BuildError::SameName(task.name().to_owned()));
            }
            load += task.budget_ns().unwrap_or(0) as f64 / task.period().as_ns_f64();
        }
        let with = self.tasks.iter().find(|task| task.named_priority().is_some());
        let without = self.tasks.iter().find(|task| task.named_priority().is_none());
        if let (Some(with), Some(without)) = (with, without) {
            return Err(BuildError::SomePriorities(
                with.name().to_owned(),
                without.name().to_owned(),
            ));
        }
        if load > 1.0 + ROUNDING && !self.overload {
            return Err(overload(load, &self.tasks));
        }
        Ok(names)
    }
}

/// The error for tasks whose budgets ask for `load`, a share of a CPU above 1.
fn overload<'t>(load: f64, tasks: impl IntoIterator<Item = &'t Task>) -> BuildError {
    let budget = |task: &Task| Some((task.name().to_owned(), task.budget_ns()?, task.period()));
    BuildError::Overload(load, Overfull::One, tasks.into_iter().filter_map(budget).collect())
}

fn check_task(task: &Task) -> Result<(), BuildError> {
    let name = || task.name().to_owned();
    if task.name().is_empty() {
        return Err(BuildError::NoName);
    }
    match task.budget_ns() {
        Some(budget) if budget == 0 || budget > task.period().as_ns() => {
            return Err(BuildError::Budget(name(), budget, task.period()));
        }
        _ => {}
    }
    if task.deadline_ns() == Some(0) {
        return Err(BuildError::Deadline(name()));
    }
    if let (Some(budget), Some(deadline)) = (task.budget_ns(), task.deadline_ns())
        && budget > deadline
    {
        return Err(BuildError::OverDeadline(name(), budget, deadline));
    }
    match *task.offset() {
        Offset::At(phase) if phase >= task.period().as_ns() => {
            Err(BuildError::Phase(name(), phase, task.period()))
        }
        _ if task.overrun_policy() == OnOverrun::Burst(0) => Err(BuildError::Burst(name())),
        _ => Ok(()),
    }
}

/// The most residues that are looked at for one period, and for all of them.
const RESIDUES_MAX: u128 = 1 << 20;
/// The residues of a period where the periods have no useful common divisor.
const COARSE: u64 = 1 << 10;

/// The load of the worst instant; upper bounds where the major frame is long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Peak {
    /// The most releases.
    releases: u64,
    /// The highest sum of budgets, ns; `None` where no task has one.
    load_ns: Option<u64>,
}

/// Each task's phase in ns, below its period, and the peak.
fn phases(
    tasks: &[Task],
    names: &HashMap<&str, usize>,
    tick_ns: Option<u64>,
) -> Result<(Vec<u64>, Peak), BuildError> {
    let heads = heads(tasks, names)?;
    let mut periods: Vec<Period> = tasks.iter().map(|task| task.period()).collect();
    periods.sort_unstable();
    periods.dedup();
    let Some((quantum, exact)) = quantum(&periods, tick_ns) else {
        return Ok((Vec::new(), Peak::default()));
    };
    let groups = Groups { tasks, heads: &heads, periods: &periods, quantum };
    let placed = place(&groups.weighed(weights(tasks)), exact);
    let phases =
        tasks.iter().zip(&heads).zip(groups.places()).map(|((task, at), (class, group))| {
            let (head, distance_ns) = *at;
            let head_ns = match *tasks[head].offset() {
                Offset::At(ns) => ns,
                _ => quantum.ns(placed[class][group]),
            };
            ((u128::from(head_ns) + u128::from(distance_ns)) % u128::from(task.period().as_ns()))
                as u64
        });
    let most = |weight: &dyn Fn(&Task) -> u64| {
        highest(&groups.weighed(tasks.iter().map(weight).collect()), &placed, exact)
    };
    let budgets = tasks.iter().any(|task| task.budget_ns().is_some());
    let load_ns = budgets.then(|| most(&|task| task.budget_ns().unwrap_or(0)));
    Ok((phases.collect(), Peak { releases: most(&|_| 1), load_ns }))
}

/// The weight of a release of each task: its budget, for one without the mean of the others, or 1
/// where none has one. Scaled down where sums could become too large.
fn weights(tasks: &[Task]) -> Vec<u64> {
    let budgets = || tasks.iter().filter_map(|task| task.budget_ns());
    let sum: u128 = budgets().map(u128::from).sum();
    let mean = sum.checked_div(budgets().count() as u128).map_or(1, |mean| mean.max(1) as u64);
    let shift = u128::BITS.saturating_sub(sum.leading_zeros()).saturating_sub(44);
    let weight = |task: &Task| (task.budget_ns().unwrap_or(mean) >> shift).max(1);
    tasks.iter().map(weight).collect()
}

/// Tasks as groups of classes, each group a chain.
struct Groups<'g> {
    tasks: &'g [Task],
    heads: &'g [(usize, u64)],
    periods: &'g [Period],
    quantum: Quantum,
}

impl Groups<'_> {
    /// The class of each task, and the place of its chain in it.
    fn places(&self) -> Vec<(usize, usize)> {
        let class_of: HashMap<Period, usize> =
            self.periods.iter().enumerate().map(|(index, &period)| (period, index)).collect();
        let mut sizes = vec![0; self.periods.len()];
        let mut of_head = vec![None; self.tasks.len()];
        let mut place = |(task, &(head, _)): (&Task, &(usize, u64))| {
            *of_head[head].get_or_insert_with(|| {
                let class = class_of[&task.period()];
                sizes[class] += 1;
                (class, sizes[class] - 1)
            })
        };
        self.tasks.iter().zip(self.heads).map(&mut place).collect()
    }

    /// The classes, each task with its weight.
    fn weighed(&self, weights: Vec<u64>) -> Vec<Class> {
        let class =
            |&period: &Period| Class { period: self.quantum.count(period), groups: Vec::new() };
        let mut classes: Vec<Class> = self.periods.iter().map(class).collect();
        let each = self.places().into_iter().zip(self.heads).zip(weights);
        for (((class, group), &(head, distance_ns)), weight) in each {
            let groups = &mut classes[class].groups;
            let head_ns = match *self.tasks[head].offset() {
                Offset::At(ns) => Some(ns),
                _ => None,
            };
            let fixed = head_ns.map(|ns| self.quantum.round(ns));
            if group == groups.len() {
                groups.push(Group { members: Vec::new(), fixed });
            }
            // Where it is, not where it would be if its head began the quantum.
            let at = self.quantum.round(head_ns.unwrap_or(0).saturating_add(distance_ns));
            groups[group].members.push((at - fixed.unwrap_or(0), weight));
        }
        classes
    }
}

/// For each task: the first of its chain and the distance from that one's release, ns.
fn heads(tasks: &[Task], names: &HashMap<&str, usize>) -> Result<Vec<(usize, u64)>, BuildError> {
    let mut heads = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        let (mut at, mut distance) = (index, 0u128);
        let mut steps = 0;
        while let Offset::After(first, by_ns) = tasks[at].offset() {
            let unknown = || BuildError::Unknown(tasks[at].name().to_owned(), first.clone());
            let before = *names.get(first.as_str()).ok_or_else(unknown)?;
            let moves = |task: &Task| task.overrun_policy() == OnOverrun::Delay;
            let apart = tasks[before].period() != tasks[at].period();
            steps += 1;
            if apart || moves(&tasks[before]) || moves(&tasks[at]) || steps > tasks.len() {
                return Err(BuildError::After(tasks[at].name().to_owned(), first.clone()));
            }
            distance += u128::from(*by_ns);
            at = before;
        }
        heads.push((at, (distance % u128::from(task.period().as_ns())) as u64));
    }
    Ok(heads)
}

/// The phases of all groups. Classes that meet at every distance whatever their phases are are
/// each balanced by itself.
fn place(classes: &[Class], exact: bool) -> Vec<Vec<u64>> {
    if exact {
        return balance(classes);
    }
    classes.iter().flat_map(|class| balance(std::slice::from_ref(class))).collect()
}

/// The highest load of any instant with these phases, or an upper bound of it.
fn highest(classes: &[Class], phases: &[Vec<u64>], exact: bool) -> u64 {
    if exact {
        return peak(classes, phases);
    }
    let alone = |(class, phases): (&Class, &Vec<u64>)| {
        peak(std::slice::from_ref(class), std::slice::from_ref(phases))
    };
    classes.iter().zip(phases).map(alone).fold(0, u64::saturating_add)
}

/// A quantum of time: `num / den` nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Quantum {
    num: u128,
    den: u128,
    /// The most of them in a period.
    most: u64,
}

impl Quantum {
    /// The number of them in a period, at least 1.
    fn count(self, period: Period) -> u64 {
        let count = u128::from(period.num_ns()) * self.den / (u128::from(period.den()) * self.num);
        (count as u64).clamp(1, self.most)
    }

    /// The start of quantum `at`, in ns rounded down.
    fn ns(self, at: u64) -> u64 {
        (u128::from(at) * self.num / self.den) as u64
    }

    /// The quantum in which `ns` lies.
    fn round(self, ns: u64) -> u64 {
        (u128::from(ns) * self.den / self.num) as u64
    }
}

/// The greatest common divisor of all periods and the tick, and true where it is of use: where all
/// periods together have no more than [`RESIDUES_MAX`] of them. Otherwise a part of the shortest
/// period.
fn quantum(periods: &[Period], tick_ns: Option<u64>) -> Option<(Quantum, bool)> {
    let shortest = periods.first()?;
    let tick = (u128::from(tick_ns.unwrap_or(0)), 1u128);
    let divisor = periods.iter().try_fold(tick, |(num, den), period| {
        let added = (u128::from(period.num_ns()), u128::from(period.den()));
        let cross = (num.checked_mul(added.1)?, added.0.checked_mul(den)?);
        let (num, den) = (gcd(cross.0, cross.1), den.checked_mul(added.1)?);
        let by = gcd(num, den);
        Some((num / by, den / by))
    });
    let count = |num: u128, den: u128, period: &Period| {
        Some(
            u128::from(period.num_ns()).checked_mul(den)?
                / u128::from(period.den()).checked_mul(num)?,
        )
    };
    if let Some((num, den)) = divisor {
        let counts = periods.iter().map(|period| count(num, den, period));
        let sum = counts.sum::<Option<u128>>();
        if sum.is_some_and(|sum| sum <= RESIDUES_MAX) {
            return Some((Quantum { num, den, most: u64::MAX }, true));
        }
    }
    let num = u128::from((shortest.as_ns() / COARSE).max(1));
    Some((Quantum { num, den: 1, most: COARSE }, false))
}

/// A plan to follow another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Successor {
    /// The plan.
    pub plan: Plan,
    /// For each of its ranks the rank in the plan before that it goes on from; `None` for a new
    /// task.
    pub ranks: Vec<Option<u32>>,
}

impl Periodic {
    /// Checks all tasks, and lays them out for an executive that runs `before`: a task goes on
    /// where that plan has one of its name, of the same period, whose phase may move as its own
    /// may ([`OnOverrun::Delay`]). Then it keeps the phase that it has, to the nanosecond, whatever
    /// it says here; so it may be after one that is no longer there. The others are new and find
    /// their phases among these.
    ///
    /// # Errors
    ///
    /// As [`Periodic::build`]'s.
    ///
    /// # Real-time: setup only
    pub fn build_after(&self, before: &Plan) -> Result<Successor, BuildError> {
        let running: HashMap<&str, usize> =
            (0..before.tasks()).map(|rank| (before.name(rank), rank)).collect();
        let goes_on = |task: &Task| {
            let rank = *running.get(task.name())?;
            let same = before.period(rank) == task.period()
                && before.moves(rank) == (task.overrun_policy() == OnOverrun::Delay);
            same.then_some(rank)
        };
        let fixed = |task: &Task| match goes_on(task) {
            Some(rank) => task.clone().at(Duration::from_nanos(before.phase_ns(rank))),
            None => task.clone(),
        };
        let tasks: Vec<Task> = self.tasks.iter().map(fixed).collect();
        let from: HashMap<&str, usize> =
            tasks.iter().filter_map(|task| Some((task.name(), goes_on(task)?))).collect();
        let plan = Self { tasks: tasks.clone(), ..self.clone() }.build()?;
        let rank = |rank| Some(*from.get(plan.name(rank))? as u32);
        let ranks = (0..plan.tasks()).map(rank).collect();
        Ok(Successor { plan, ranks })
    }
}

/// The longest period that divides all of these, which are whole numbers of nanoseconds; the
/// shortest of them where they are not. `None` of none.
///
/// # Real-time: setup only
pub fn common_period(periods: &[Period]) -> Option<Period> {
    let whole = periods.iter().all(|period| period.den() == 1);
    let common = periods.iter().fold(0, |sum, period| gcd(sum, period.as_ns().into()));
    match u64::try_from(common).ok().and_then(Period::from_ns) {
        Some(common) if whole => Some(common),
        _ => periods.iter().min().copied(),
    }
}

#[cfg(test)]
mod tests;
