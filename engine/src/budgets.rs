//! The budgets of tasks by the CPUs that they run on: whether they fit there.
//!
//! For the builders of executives and of supervisors. What is certain not to fit is refused, and no
//! more: deadlines may be missed on a CPU whose budgets take less than all of it.

use std::collections::{BTreeMap, BTreeSet};

use punctual_os::affinity;

use crate::calendar::CalendarPlan;
use crate::error::{BuildError, Overfull};
use crate::periodic::{Period, Task};

/// The most by which a sum of shares of a CPU may be too large: quotients are off by parts in 10¹⁶.
pub(crate) const ROUNDING: f64 = 1e-9;

/// Budgets, each with its CPU, or none where it may run on any.
#[derive(Clone, Debug)]
pub struct Budgets {
    /// The CPUs that threads may run on which name none; `None` where that is not known.
    cpus: Option<BTreeSet<u32>>,
    budgets: Vec<Budget>,
}

#[derive(Clone, Debug)]
struct Budget {
    name: String,
    ns: u64,
    period: Period,
    cpu: Option<u32>,
}

impl Budgets {
    /// None yet; those that name no CPU are for these.
    ///
    /// # Real-time: setup only
    pub fn on(cpus: impl IntoIterator<Item = u32>) -> Self {
        Self { cpus: Some(cpus.into_iter().collect()), budgets: Vec::new() }
    }

    /// None yet; those that name no CPU are for the CPUs of this process: those of its first thread
    /// and of the calling one, which may be pinned.
    ///
    /// # Real-time: setup only
    pub fn here() -> Self {
        let masks = [affinity::get(0).ok(), affinity::get(std::process::id().cast_signed()).ok()];
        let cpus = masks.iter().flatten().flat_map(|mask| mask.iter()).collect();
        Self {
            cpus: Some(cpus).filter(|cpus: &BTreeSet<u32>| !cpus.is_empty()),
            budgets: Vec::new(),
        }
    }

    /// Adds that of a task, where it has one, on this CPU.
    ///
    /// # Real-time: setup only
    pub fn add(&mut self, task: &Task, cpu: Option<u32>) {
        let (name, period) = (task.name().to_owned(), task.period());
        self.budgets.extend(task.budget_ns().map(|ns| Budget { name, ns, period, cpu }));
    }

    /// Adds that of all units of this task of a calendar.
    ///
    /// # Real-time: setup only
    pub fn add_unit(&mut self, plan: &CalendarPlan, task: usize, cpu: Option<u32>) {
        let (name, period) = (plan.name(task).to_owned(), plan.frame());
        self.budgets.push(Budget { name, ns: plan.budgets_ns(task), period, cpu });
    }

    /// The share of this CPU that they take; 0 of one that is not named.
    ///
    /// # Real-time: setup only
    pub fn load_on(&self, cpu: Option<u32>) -> f64 {
        let pinned = self.budgets.iter().filter(|budget| cpu.is_some() && budget.cpu == cpu);
        pinned.map(Budget::load).sum()
    }

    /// Checks that the budgets of each CPU take no more than all of it, nor those of all CPUs more
    /// than these.
    ///
    /// # Errors
    ///
    /// [`BuildError::Overload`], with the tasks of the first CPU that is overfull.
    ///
    /// # Real-time: setup only
    pub fn check(&self) -> Result<(), BuildError> {
        let mut loads: BTreeMap<u32, f64> = BTreeMap::new();
        for budget in &self.budgets {
            if let Some(cpu) = budget.cpu {
                *loads.entry(cpu).or_default() += budget.load();
            }
        }
        if let Some((cpu, load)) = loads.into_iter().find(|(_, load)| *load > 1.0 + ROUNDING) {
            let pinned = self.budgets.iter().filter(|budget| budget.cpu == Some(cpu));
            return Err(overload(load, Overfull::Cpu(cpu), pinned));
        }
        // One that is named may lie beyond those for all others, as isolated ones do.
        let named = self.budgets.iter().filter_map(|budget| budget.cpu);
        let Some(cpus) = &self.cpus else { return Ok(()) };
        let cpus = cpus.iter().copied().chain(named).collect::<BTreeSet<u32>>().len();
        let load: f64 = self.budgets.iter().map(Budget::load).sum();
        match load > cpus as f64 + ROUNDING {
            true => Err(overload(load, Overfull::All(cpus), &self.budgets)),
            false => Ok(()),
        }
    }
}

impl Budget {
    fn load(&self) -> f64 {
        self.ns as f64 / self.period.as_ns_f64()
    }
}

fn overload<'b>(
    load: f64,
    overfull: Overfull,
    budgets: impl IntoIterator<Item = &'b Budget>,
) -> BuildError {
    let budget = |budget: &Budget| (budget.name.clone(), budget.ns, budget.period);
    BuildError::Overload(load, overfull, budgets.into_iter().map(budget).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn task(name: &str, budget_us: u64) -> Task {
        let period = Period::hz(1_000).expect("in range");
        Task::every(name, period).budget(Duration::from_micros(budget_us))
    }

    #[test]
    fn each_cpu_holds_its_own_and_all_hold_those_that_may_run_anywhere() {
        let check = |cpus: u32, tasks: &[(&str, u64, Option<u32>)]| {
            let mut budgets = Budgets::on(0..cpus);
            tasks.iter().for_each(|&(name, us, cpu)| budgets.add(&task(name, us), cpu));
            budgets.check().map_err(|why| why.to_string())
        };
        // Isolated CPUs are none of those that threads run on by default.
        assert_eq!(check(1, &[("a", 600, Some(1)), ("b", 600, Some(2))]), Ok(()));
        let full = check(3, &[("a", 900, Some(1)), ("b", 900, Some(2)), ("c", 200, Some(2))]);
        let text = "the budgets add up to 1.100 of CPU 2: at most 1 is possible (\"b\" 900 µs of \
                    1.00 ms, \"c\" 200 µs of 1.00 ms); shorten budgets or name more CPUs";
        assert_eq!(full, Err(text.to_owned()));
        let floating = [("a", 900, Some(1)), ("b", 800, None), ("c", 400, None)];
        assert_eq!(check(3, &floating), Ok(()));
        let full = check(2, &floating).expect_err("more than two CPUs");
        assert!(full.contains("2.100 of the 2 CPUs that are allowed: at most 2 is"), "{full}");
        let full = check(1, &[("b", 800, None), ("c", 400, None)]).expect_err("more than one");
        assert!(full.contains("1.200 of the only CPU that is allowed: at most 1 is"), "{full}");
        let no_budget = Task::every("d", Period::hz(10).expect("in range"));
        let mut budgets = Budgets::on([0]);
        budgets.add(&no_budget, Some(0));
        assert_eq!((budgets.check(), budgets.load_on(Some(0))), (Ok(()), 0.0));
        budgets.add(&task("e", 250), Some(0));
        budgets.add(&task("f", 250), None);
        assert_eq!([Some(0), Some(1), None].map(|cpu| budgets.load_on(cpu)), [0.25, 0.0, 0.0]);
    }
}
