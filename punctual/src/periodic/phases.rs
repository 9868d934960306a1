//! The phase of every task: fixed, after another, or balanced.
//!
//! For the builder. Turns periods into quanta that divide them all, and chains into groups.

use std::collections::HashMap;

use punctual_core::table::Policy;

use super::balance::{Class, Group, balance};
use super::error::BuildError;
use super::rate::{Rate, gcd};
use super::task::{Phase, Task};

/// The most residues that are looked at for one period, and for all of them.
const RESIDUES_MAX: u128 = 1 << 20;
/// The residues of a period where the periods have no useful common divisor.
const COARSE: u64 = 1 << 10;

/// Each task's phase in ns, below its period, and the peak: the most releases of any instant.
pub(super) fn of(
    tasks: &[Task],
    names: &HashMap<&str, usize>,
) -> Result<(Vec<u64>, u64), BuildError> {
    let heads = heads(tasks, names)?;
    let mut rates: Vec<Rate> = tasks.iter().map(|task| task.rate).collect();
    rates.sort_unstable();
    rates.dedup();
    let Some((quantum, exact)) = quantum(&rates) else { return Ok((Vec::new(), 0)) };
    let mut classes: Vec<Class> = rates
        .iter()
        .map(|&rate| Class { period: quantum.count(rate), groups: Vec::new() })
        .collect();
    let class_of: HashMap<Rate, usize> =
        rates.iter().enumerate().map(|(index, &rate)| (rate, index)).collect();
    // Where each head's group is: its class and its place in it.
    let mut group_of: HashMap<usize, (usize, usize)> = HashMap::new();
    for (index, task) in tasks.iter().enumerate() {
        let (head, distance_ns) = heads[index];
        let class = class_of[&task.rate];
        let groups = &mut classes[class].groups;
        let &mut (_, group) = group_of.entry(head).or_insert_with(|| {
            let fixed = match tasks[head].phase {
                Phase::At(ns) => Some(quantum.round(ns)),
                _ => None,
            };
            groups.push(Group { members: Vec::new(), fixed });
            (class, groups.len() - 1)
        });
        groups[group].members.push((quantum.round(distance_ns), 1));
    }
    let (placed, peak) = if exact { balance(&classes) } else { apart(&classes) };
    let phases = tasks.iter().enumerate().map(|(index, task)| {
        let (head, distance_ns) = heads[index];
        let (class, group) = group_of[&head];
        let head_ns = match tasks[head].phase {
            Phase::At(ns) => ns,
            _ => quantum.ns(placed[class][group]),
        };
        ((u128::from(head_ns) + u128::from(distance_ns)) % u128::from(task.rate.whole_ns())) as u64
    });
    Ok((phases.collect(), peak))
}

/// For each task: the first of its chain and the distance from that one's release, ns.
fn heads(tasks: &[Task], names: &HashMap<&str, usize>) -> Result<Vec<(usize, u64)>, BuildError> {
    let mut heads = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        let (mut at, mut distance) = (index, 0u128);
        let mut steps = 0;
        while let Phase::After(of, by_ns) = &tasks[at].phase {
            let unknown = || BuildError::Unknown(tasks[at].name.clone(), of.clone());
            let before = *names.get(of.as_str()).ok_or_else(unknown)?;
            let moves = |task: &Task| task.policy == Policy::Delay;
            let apart = tasks[before].rate != tasks[at].rate;
            steps += 1;
            if apart || moves(&tasks[before]) || moves(&tasks[at]) || steps > tasks.len() {
                return Err(BuildError::After(tasks[at].name.clone(), of.clone()));
            }
            distance += u128::from(*by_ns);
            at = before;
        }
        heads.push((at, (distance % u128::from(task.rate.whole_ns())) as u64));
    }
    Ok(heads)
}

/// Classes that meet at every distance whatever their phases are: each is balanced by itself.
fn apart(classes: &[Class]) -> (Vec<Vec<u64>>, u64) {
    let (mut phases, mut sum) = (Vec::new(), 0);
    for class in classes {
        let (mut of, peak) = balance(std::slice::from_ref(class));
        phases.append(&mut of);
        sum += peak;
    }
    (phases, sum)
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
    fn count(self, rate: Rate) -> u64 {
        let count = u128::from(rate.num_ns()) * self.den / (u128::from(rate.den()) * self.num);
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

/// The greatest common divisor of all periods, and whether it is of use: whether all periods
/// together have no more than [`RESIDUES_MAX`] of them. Otherwise a part of the shortest period.
fn quantum(rates: &[Rate]) -> Option<(Quantum, bool)> {
    let shortest = rates.first()?;
    let divisor = rates.iter().try_fold((0u128, 1u128), |(num, den), rate| {
        let other = (u128::from(rate.num_ns()), u128::from(rate.den()));
        let cross = (num.checked_mul(other.1)?, other.0.checked_mul(den)?);
        let (num, den) = (gcd(cross.0, cross.1), den.checked_mul(other.1)?);
        let by = gcd(num, den);
        Some((num / by, den / by))
    });
    let count = |num: u128, den: u128, rate: &Rate| {
        Some(
            u128::from(rate.num_ns()).checked_mul(den)?
                / u128::from(rate.den()).checked_mul(num)?,
        )
    };
    if let Some((num, den)) = divisor {
        let counts = rates.iter().map(|rate| count(num, den, rate));
        let sum = counts.sum::<Option<u128>>();
        if sum.is_some_and(|sum| sum <= RESIDUES_MAX) {
            return Some((Quantum { num, den, most: u64::MAX }, true));
        }
    }
    let num = u128::from((shortest.whole_ns() / COARSE).max(1));
    Some((Quantum { num, den: 1, most: COARSE }, false))
}
