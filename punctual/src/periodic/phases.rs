//! The phase of every task: fixed, after another, or balanced.
//!
//! For the builder. Turns periods into quanta that divide them all, and chains into groups.

use std::collections::HashMap;

use punctual_core::table::OnOverrun;
use punctual_core::time::Period;

use super::balance::{Class, Group, balance, peak};
use super::error::BuildError;
use crate::gcd::gcd;
use crate::task::{Offset, Task};

/// The most residues that are looked at for one period, and for all of them.
const RESIDUES_MAX: u128 = 1 << 20;
/// The residues of a period where the periods have no useful common divisor.
const COARSE: u64 = 1 << 10;

/// What comes together at the worst instant; upper bounds where the major frame is long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Peak {
    /// The most releases.
    pub(super) releases: u64,
    /// The highest sum of budgets, ns; `None` where no task has one.
    pub(super) load_ns: Option<u64>,
}

/// Each task's phase in ns, below its period, and the peak.
pub(super) fn of(
    tasks: &[Task],
    names: &HashMap<&str, usize>,
    tick_ns: Option<u64>,
) -> Result<(Vec<u64>, Peak), BuildError> {
    let heads = heads(tasks, names)?;
    let mut periods: Vec<Period> = tasks.iter().map(|task| task.period).collect();
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
            let head_ns = match tasks[head].phase {
                Offset::At(ns) => ns,
                _ => quantum.ns(placed[class][group]),
            };
            ((u128::from(head_ns) + u128::from(distance_ns)) % u128::from(task.period.as_ns()))
                as u64
        });
    let most = |weight: &dyn Fn(&Task) -> u64| {
        highest(&groups.weighed(tasks.iter().map(weight).collect()), &placed, exact)
    };
    let budgets = tasks.iter().any(|task| task.budget_ns.is_some());
    let load_ns = budgets.then(|| most(&|task| task.budget_ns.unwrap_or(0)));
    Ok((phases.collect(), Peak { releases: most(&|_| 1), load_ns }))
}

/// What a release of each task weighs: its budget, for one without the mean of the others, or 1
/// where none has one. Scaled down where sums could become too large.
fn weights(tasks: &[Task]) -> Vec<u64> {
    let budgets = || tasks.iter().filter_map(|task| task.budget_ns);
    let sum: u128 = budgets().map(u128::from).sum();
    let mean = sum.checked_div(budgets().count() as u128).map_or(1, |mean| mean.max(1) as u64);
    let shift = u128::BITS.saturating_sub(sum.leading_zeros()).saturating_sub(44);
    let weight = |task: &Task| (task.budget_ns.unwrap_or(mean) >> shift).max(1);
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
    /// Of each task: its class, and the place of its chain in it.
    fn places(&self) -> Vec<(usize, usize)> {
        let class_of: HashMap<Period, usize> =
            self.periods.iter().enumerate().map(|(index, &period)| (period, index)).collect();
        let mut sizes = vec![0; self.periods.len()];
        let mut of_head = vec![None; self.tasks.len()];
        let mut place = |(task, &(head, _)): (&Task, &(usize, u64))| {
            *of_head[head].get_or_insert_with(|| {
                let class = class_of[&task.period];
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
            if group == groups.len() {
                let fixed = match self.tasks[head].phase {
                    Offset::At(ns) => Some(self.quantum.round(ns)),
                    _ => None,
                };
                groups.push(Group { members: Vec::new(), fixed });
            }
            groups[group].members.push((self.quantum.round(distance_ns), weight));
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
        while let Offset::After(of, by_ns) = &tasks[at].phase {
            let unknown = || BuildError::Unknown(tasks[at].name.clone(), of.clone());
            let before = *names.get(of.as_str()).ok_or_else(unknown)?;
            let moves = |task: &Task| task.policy == OnOverrun::Delay;
            let apart = tasks[before].period != tasks[at].period;
            steps += 1;
            if apart || moves(&tasks[before]) || moves(&tasks[at]) || steps > tasks.len() {
                return Err(BuildError::After(tasks[at].name.clone(), of.clone()));
            }
            distance += u128::from(*by_ns);
            at = before;
        }
        heads.push((at, (distance % u128::from(task.period.as_ns())) as u64));
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
    /// How many are in a period.
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

/// The greatest common divisor of all periods and the tick, and whether it is of use: whether all
/// periods together have no more than [`RESIDUES_MAX`] of them. Otherwise a part of the shortest
/// period.
fn quantum(periods: &[Period], tick_ns: Option<u64>) -> Option<(Quantum, bool)> {
    let shortest = periods.first()?;
    let tick = (u128::from(tick_ns.unwrap_or(0)), 1u128);
    let divisor = periods.iter().try_fold(tick, |(num, den), period| {
        let other = (u128::from(period.num_ns()), u128::from(period.den()));
        let cross = (num.checked_mul(other.1)?, other.0.checked_mul(den)?);
        let (num, den) = (gcd(cross.0, cross.1), den.checked_mul(other.1)?);
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
