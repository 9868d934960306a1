//! The budgets of tasks by the CPUs that they run on: whether they fit there.
//!
//! For the builders of executives and of supervisors. What is certain not to fit is refused, and no
//! more: a CPU may be too full although it is not asked for more than all of it. Pure.

use std::collections::BTreeMap;

use punctual_os::affinity;

use crate::calendar::CalendarPlan;
use crate::error::{BuildError, Overfull};
use crate::periodic::{Period, Task};

/// A sum of quotients may be off by a few parts in 10¹⁶.
const ROUNDING: f64 = 1e-9;

/// Budgets, each with its CPU, or none where it may run on any.
#[derive(Clone, Debug)]
pub struct Budgets {
    /// The CPUs that there are for all.
    cpus: usize,
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
    /// None yet, on so many CPUs.
    ///
    /// # Real-time: setup only
    pub fn on(cpus: usize) -> Self {
        Self { cpus, budgets: Vec::new() }
    }

    /// None yet, on the CPUs that the calling thread may run on.
    ///
    /// # Real-time: setup only
    pub fn here() -> Self {
        // Where that is not known nothing is certain of them all.
        Self::on(affinity::get(0).map_or(usize::MAX, |mask| mask.count() as usize))
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

    /// Checks that no CPU is asked for more than all of it, nor all CPUs together.
    ///
    /// # Errors
    ///
    /// [`BuildError::Overload`], with the tasks of the first CPU of which too much is asked.
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
            let there = self.budgets.iter().filter(|budget| budget.cpu == Some(cpu));
            return Err(overload(load, Overfull::Cpu(cpu), there));
        }
        let load: f64 = self.budgets.iter().map(Budget::load).sum();
        match load > self.cpus as f64 + ROUNDING {
            true => Err(overload(load, Overfull::All(self.cpus), &self.budgets)),
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
        let check = |cpus: usize, tasks: &[(&str, u64, Option<u32>)]| {
            let mut budgets = Budgets::on(cpus);
            tasks.iter().for_each(|&(name, us, cpu)| budgets.add(&task(name, us), cpu));
            budgets.check().map_err(|why| why.to_string())
        };
        assert_eq!(check(2, &[("a", 900, Some(1)), ("b", 900, Some(2))]), Ok(()));
        let full = check(2, &[("a", 900, Some(1)), ("b", 900, Some(2)), ("c", 200, Some(2))]);
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
        let mut budgets = Budgets::on(1);
        budgets.add(&no_budget, Some(0));
        assert_eq!(budgets.check(), Ok(()));
    }
}
