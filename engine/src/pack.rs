//! The CPUs of tasks: harmonic chains whole, heaviest first, each to the CPU that has the least to
//! do.
//!
//! For the builder of several executives. Pure. In a harmonic chain each period divides the next
//! one, so that all its releases fall into one pattern and the budgets may fill the CPU to the last
//! (Liu and Layland's bound is 1 there, and ln 2 in general); splitting one wastes that. A chain is
//! split only where it fits nowhere whole, and tasks that follow one another never are.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

use crate::budgets::ROUNDING;
use crate::calendar::CalendarPlan;
use crate::periodic::{Offset, Period, Plan, Response, Task};

/// The place of a task of an executive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placed {
    /// Its name.
    pub name: String,
    /// The CPU that it is pinned to.
    pub cpu: Option<u32>,
    /// From the epoch to its release 0; `None` for one that a device triggers.
    pub phase: Option<Duration>,
    /// Its place in the order of urgency among the tasks of its loop, 0 the first; `None` in a
    /// thread of its own.
    pub rank: Option<usize>,
    /// From its release to its finish at the longest, by the budgets of the tasks of its loop;
    /// not known beside a calendar, and in a thread or a process of its own.
    pub response: Response,
    /// From its release to the latest finish that is in time: its period where it has none of its
    /// own; `None` for a unit's task and for one that a device triggers.
    pub deadline: Option<Duration>,
}

impl Placed {
    /// The task of this rank of the table of a loop on this CPU, below the tasks of a calendar,
    /// which are so many.
    ///
    /// # Real-time: setup only
    pub fn in_table(plan: &Plan, rank: usize, units: usize, cpu: Option<u32>) -> Self {
        // Units of a calendar keep tasks waiting too.
        let response = if units == 0 { plan.response(rank) } else { Response::Unknown };
        Self {
            name: plan.name(rank).to_owned(),
            cpu,
            phase: Some(Duration::from_nanos(plan.phase_ns(rank))),
            rank: Some(units + rank),
            response,
            deadline: Some(Duration::from_nanos(plan.deadline_ns(rank))),
        }
    }

    /// The task of this number of a calendar, in a loop on this CPU.
    ///
    /// # Real-time: setup only
    pub fn in_calendar(plan: &CalendarPlan, task: usize, cpu: Option<u32>) -> Self {
        Self {
            name: plan.name(task).to_owned(),
            cpu,
            phase: plan.ready_ns(task).map(Duration::from_nanos),
            rank: Some(task),
            response: Response::Unknown,
            deadline: None,
        }
    }

    /// A task in a thread of its own, of this CPU and this phase, ns.
    ///
    /// # Real-time: setup only
    pub fn alone(task: &Task, cpu: Option<u32>, phase_ns: Option<u64>) -> Self {
        let deadline_ns = task.deadline_ns().unwrap_or_else(|| task.period().as_ns());
        Self {
            name: task.name().to_owned(),
            cpu,
            phase: phase_ns.map(Duration::from_nanos),
            rank: None,
            response: Response::Unknown,
            deadline: task.has_period().then_some(Duration::from_nanos(deadline_ns)),
        }
    }

    /// Returns true where it meets its deadline whatever comes together, if every task keeps its
    /// budget; `None` where that is not known. The lateness of the machine comes on top.
    ///
    /// # Real-time: setup only
    pub fn is_guaranteed(&self) -> Option<bool> {
        self.response.is_within(self.deadline?)
    }
}

/// The weight of a set of tasks on a CPU: the share that its budgets ask for, then releases a
/// second, which tell tasks without budgets apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Weight {
    share: f64,
    rate_hz: f64,
}

impl Weight {
    fn of(task: &Task) -> Self {
        let period_ns = task.period().as_ns_f64();
        let share = task.budget_ns().unwrap_or(0) as f64 / period_ns;
        Self { share, rate_hz: 1e9 / period_ns }
    }

    /// Of a share alone.
    fn share(share: f64) -> Self {
        Self { share, rate_hz: 0.0 }
    }

    fn plus(self, other: Self) -> Self {
        Self { share: self.share + other.share, rate_hz: self.rate_hz + other.rate_hz }
    }

    fn order(&self, other: &Self) -> Ordering {
        self.share.total_cmp(&other.share).then(self.rate_hz.total_cmp(&other.rate_hz))
    }
}

/// Tasks that stay together, by index, all of one period.
#[derive(Clone, Debug, Default)]
struct Group {
    tasks: Vec<usize>,
    weight: Weight,
}

/// The CPU, by index in `taken`, of each task, where others have taken this share of each. No CPU
/// is given more than `most` of its time by budgets as long as there is a place; where there is
/// none, the least loaded one gets it.
///
/// # Real-time: setup only
pub fn pack(tasks: &[Task], taken: &[f64], most: f64) -> Vec<usize> {
    let mut place = vec![0; tasks.len()];
    let mut load: Vec<Weight> = taken.iter().copied().map(Weight::share).collect();
    if load.is_empty() {
        return place;
    }
    let mut chains = chains(tasks);
    let weight =
        |chain: &[Group]| chain.iter().fold(Weight::default(), |sum, group| sum.plus(group.weight));
    chains.sort_by(|a, b| weight(b).order(&weight(a)));
    let fits = |load: &Weight, more: &Weight| load.share + more.share <= most + ROUNDING;
    let mut split = Vec::new();
    for chain in chains {
        let whole = weight(&chain);
        let cpu = least(&load);
        if fits(&load[cpu], &whole) {
            load[cpu] = load[cpu].plus(whole);
            chain.iter().flat_map(|group| &group.tasks).for_each(|&task| place[task] = cpu);
        } else {
            split.push(chain);
        }
    }
    for mut chain in split {
        chain.sort_by(|a, b| b.weight.order(&a.weight));
        let mut with: Option<usize> = None;
        for group in chain {
            // Where the chain already is, if it fits there.
            let cpu =
                with.filter(|&cpu| fits(&load[cpu], &group.weight)).unwrap_or_else(|| least(&load));
            load[cpu] = load[cpu].plus(group.weight);
            group.tasks.iter().for_each(|&task| place[task] = cpu);
            with = Some(cpu);
        }
    }
    place
}

/// The tasks that follow one another, by index: of each such group, and of each task that follows
/// none and is followed by none, all.
///
/// # Real-time: setup only
pub fn together(tasks: &[Task]) -> Vec<Vec<usize>> {
    groups(tasks).into_iter().map(|group| group.tasks).collect()
}

/// The CPU, by index, for more tasks than each CPU has already, all of one period, which stay
/// [`together`]: that of the task which one of them follows; or of the first ones, where they
/// fit, with the chain that they go on, of several the one whose last period is the longest; or
/// else the least loaded of these, of which others have `taken` these shares. The CPUs beyond them
/// have the tasks that name them, and no more. Tasks that are released for threads count by what
/// the threads have taken, not as a chain.
///
/// # Real-time: setup only
pub fn place(more: &[Task], on: &[&[Task]], taken: &[f64], most: f64) -> usize {
    let followed = more.iter().filter_map(|task| match task.offset() {
        Offset::After(first, _) => Some(first),
        _ => None,
    });
    let cpu_of =
        |first: &String| on.iter().position(|tasks| tasks.iter().any(|task| task.name() == first));
    if let Some(cpu) = followed.filter_map(cpu_of).next() {
        return cpu;
    }
    let on = &on[..taken.len().min(on.len())];
    let sum =
        |tasks: &[Task]| own_tasks(tasks).map(Weight::of).fold(Weight::default(), Weight::plus);
    let with = |(tasks, taken): (&&[Task], &f64)| sum(tasks).plus(Weight::share(*taken));
    let load: Vec<Weight> = on.iter().zip(taken).map(with).collect();
    let fits = |cpu: &usize| load[*cpu].share + sum(more).share <= most + ROUNDING;
    let divisor = |cpu: usize| {
        let period = more.first()?.period();
        let periods = own_tasks(on[cpu]).map(|task| task.period());
        periods.filter(|before| divides(*before, period)).max()
    };
    let chained = (0..on.len()).filter(fits).filter_map(|cpu| Some((divisor(cpu)?, cpu)));
    let longest = |a: &(Period, usize), b: &(Period, usize)| {
        a.0.cmp(&b.0).then_with(|| load[b.1].order(&load[a.1]))
    };
    chained.max_by(longest).map_or_else(|| least(&load), |(_, cpu)| cpu)
}

/// The tasks whose bodies run on this CPU.
fn own_tasks(tasks: &[Task]) -> impl Iterator<Item = &Task> {
    tasks.iter().filter(|task| !task.is_remote())
}

/// Returns true where the longer period is a whole multiple of the shorter one.
fn divides(shorter: Period, longer: Period) -> bool {
    // num/den over num'/den' is whole.
    let over = u128::from(longer.num_ns()) * u128::from(shorter.den());
    over % (u128::from(shorter.num_ns()) * u128::from(longer.den())) == 0
}

/// The CPU that has the least to do; the first of several.
fn least(load: &[Weight]) -> usize {
    let least = load.iter().enumerate().min_by(|(_, a), (_, b)| a.order(b));
    least.map_or(0, |(cpu, _)| cpu)
}

/// Groups in chains of periods that divide each other, the shortest first.
fn chains(tasks: &[Task]) -> Vec<Vec<Group>> {
    let mut groups = groups(tasks);
    let length = |group: &Group| tasks[group.tasks[0]].period();
    groups.sort_by_key(length);
    let mut chains: Vec<Vec<Group>> = Vec::new();
    for group in groups {
        let period = length(&group);
        let divides = |chain: &&mut Vec<Group>| divides(length(&chain[chain.len() - 1]), period);
        // Of several, the one whose last period is the longest.
        let fit =
            chains.iter_mut().filter(divides).max_by_key(|chain| length(&chain[chain.len() - 1]));
        match fit {
            Some(chain) => chain.push(group),
            None => chains.push(vec![group]),
        }
    }
    chains
}

/// Tasks that follow one another are one group.
fn groups(tasks: &[Task]) -> Vec<Group> {
    let names: HashMap<&str, usize> =
        tasks.iter().enumerate().map(|(index, task)| (task.name(), index)).collect();
    let first = |mut index: usize| {
        // As many steps as there are tasks: a circle is the builder's to refuse.
        for _ in tasks {
            match tasks[index].offset() {
                Offset::After(first, _) => match names.get(first.as_str()) {
                    Some(&before) => index = before,
                    None => break,
                },
                _ => break,
            }
        }
        index
    };
    let mut groups: Vec<Group> = vec![Group::default(); tasks.len()];
    for (index, task) in tasks.iter().enumerate() {
        let group = &mut groups[first(index)];
        group.tasks.push(index);
        group.weight = group.weight.plus(Weight::of(task));
    }
    groups.retain(|group| !group.tasks.is_empty());
    groups
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn task(name: &str, period_us: u64, budget_us: u64) -> Task {
        let task = Task::every(name, Period::ratio(period_us * 1_000, 1).expect("in range"));
        if budget_us == 0 { task } else { task.budget(Duration::from_nanos(budget_us * 1_000)) }
    }

    fn shares(tasks: &[Task], place: &[usize], cpus: usize) -> Vec<f64> {
        let mut shares = vec![0.0; cpus];
        for (task, cpu) in tasks.iter().zip(place) {
            shares[*cpu] += Weight::of(task).share;
        }
        shares
    }

    #[test]
    fn chains_stay_whole_and_the_heavier_goes_first() {
        let tasks = [
            task("1", 1_000, 200),
            task("2", 2_000, 400),
            task("10", 10_000, 1_000),
            task("3", 3_000, 300),
            task("9", 9_000, 900),
        ];
        // 1, 2, 10 and 3, 9: 3 follows 1 as well, but not 2.
        assert_eq!(pack(&tasks, &[0.0; 2], 1.0), [0, 0, 0, 1, 1]);
        assert_eq!(pack(&tasks, &[0.0], 1.0), [0; 5]);
        assert_eq!(pack(&tasks, &[], 1.0), [0; 5], "no CPU is one");
    }

    #[test]
    fn a_chain_that_fits_nowhere_is_split_and_nothing_else() {
        let tasks: Vec<Task> =
            (0..6).map(|n| task(&format!("t{n}"), 1_000 << n, 300 << n)).collect();
        let place = pack(&tasks, &[0.0; 2], 1.0);
        assert!(shares(&tasks, &place, 2).iter().all(|&share| share <= 1.0), "{place:?}");
        let half = pack(&tasks[..2], &[0.0; 2], 0.5);
        assert_ne!(half[0], half[1], "half a CPU each");
    }

    #[test]
    fn tasks_that_follow_one_another_are_never_apart() {
        let after = |name: &str, first: &str| {
            task(name, 1_000, 600).after(first, Duration::from_micros(100))
        };
        let tasks = [task("sense", 1_000, 600), after("think", "sense"), after("act", "think")];
        let place = pack(&tasks, &[0.0; 3], 1.0);
        assert!(place.iter().all(|&cpu| cpu == place[0]), "{place:?}");
        let circle = [after("a", "b"), after("b", "a"), after("c", "nobody")];
        assert_eq!(pack(&circle, &[0.0; 2], 1.0).len(), 3, "refused later, by the builder");
    }

    #[test]
    fn one_more_goes_on_with_its_chain_where_it_fits() {
        let (a, b) = ([task("1", 1_000, 500)], [task("3", 3_000, 300), task("6", 6_000, 300)]);
        let on: [&[Task]; 2] = [&a, &b];
        assert_eq!(
            place(&[task("new", 12_000, 100)], &on, &[0.0; 2], 1.0),
            1,
            "of 1, 3, 6 it goes on 6"
        );
        assert_eq!(
            place(&[task("new", 12_000, 100)], &on, &[0.0], 1.0),
            0,
            "the other is no place"
        );
        assert_eq!(place(&[task("new", 2_000, 100)], &on, &[0.0; 2], 1.0), 0);
        assert_eq!(
            place(&[task("new", 2_000, 1_500)], &on, &[0.0; 2], 1.0),
            1,
            "where there is room"
        );
        assert_eq!(place(&[task("new", 700, 100)], &on, &[0.0; 2], 1.0), 1, "where least is");
        let after = task("new", 1_000, 900).after("1", Duration::from_nanos(5));
        assert_eq!(place(&[after], &on, &[0.0; 2], 1.0), 0, "refused there, by the builder");
        let after = task("new", 1_000, 100).after("3", Duration::from_nanos(5));
        assert_eq!(place(&[after], &on, &[0.0], 1.0), 1, "with whom it follows");
        assert_eq!(place(&[task("new", 1_000, 1)], &[&[], &[]], &[0.0; 2], 1.0), 0);
        // What others have taken counts, and is no chain.
        assert_eq!(place(&[task("new", 1_000, 1)], &[&[], &[]], &[0.5, 0.25], 1.0), 1);
        assert_eq!(place(&[task("new", 12_000, 6_000)], &on, &[0.0, 0.5], 1.0), 0, "no room");
        assert_eq!(pack(&[task("a", 1_000, 300), task("b", 7_000, 700)], &[0.5, 0.0], 1.0), [1, 1]);
        // A task that is released for a thread is neither a chain nor a load of this CPU.
        let released = [task("1", 1_000, 500).remote(0)];
        let on: [&[Task]; 2] = [&released, &[]];
        assert_eq!(place(&[task("new", 1_000, 100)], &on, &[0.5, 0.0], 1.0), 1);
        assert_eq!(place(&[task("new", 1_000, 100)], &on, &[0.5, 0.6], 1.0), 0);
    }

    #[test]
    fn tasks_without_budgets_are_spread_by_their_rates() {
        let tasks = [task("a", 7, 0), task("b", 11, 0), task("c", 13, 0), task("d", 17, 0)];
        let place = pack(&tasks, &[0.0; 2], 1.0);
        assert_eq!(place, [0, 1, 1, 0]);
    }

    #[test]
    fn no_place_is_worse_than_it_must_be() {
        // Longest first is within 4/3 of the best (Graham); here of the mean, as no task is large.
        let mut seed = 11u64;
        for cpus in 1..5 {
            let tasks: Vec<Task> = (0..60)
                .map(|n| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    task(&format!("t{n}"), 1_000 + (seed >> 54), 10 + (seed >> 60))
                })
                .collect();
            let place = pack(&tasks, &vec![0.0; cpus], 1.0);
            let shares = shares(&tasks, &place, cpus);
            let mean = shares.iter().sum::<f64>() / cpus as f64;
            assert!(shares.iter().all(|&share| share <= mean * 4.0 / 3.0), "{shares:?}");
        }
    }
}
