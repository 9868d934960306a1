//! A plan that follows one which runs: what goes on keeps its phase, what is new is balanced among
//! that.
//!
//! For the builder, beside a loop. All checks are those of a first build; starts nothing.

use std::collections::HashMap;

use punctual_core::table::OnOverrun;

use super::error::BuildError;
use super::plan::Plan;
use super::{Period, Periodic};
use crate::task::{Offset, Task};

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
            let same = before.period(rank) == task.period
                && before.moves(rank) == (task.policy == OnOverrun::Delay);
            same.then_some(rank)
        };
        let fixed = |task: &Task| match goes_on(task) {
            Some(rank) => task.clone().phase(Offset::At(before.phase_ns(rank))),
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

impl Plan {
    /// The period of the task of this rank.
    pub(crate) fn period(&self, rank: usize) -> Period {
        self.class(rank).period
    }

    fn moves(&self, rank: usize) -> bool {
        self.class(rank).moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(name: &str, num_ns: u64, den: u64) -> Task {
        Task::every(name, Period::ratio(num_ns, den).expect("in range"))
    }

    fn phase_ns(plan: &Plan, name: &str) -> u64 {
        let rank = (0..plan.tasks()).find(|&rank| plan.name(rank) == name).expect("there");
        plan.phase_ns(rank)
    }

    fn all(tasks: &[Task]) -> Periodic {
        tasks.iter().cloned().fold(Periodic::new(), Periodic::task)
    }

    #[test]
    fn what_goes_on_keeps_its_phase_and_what_is_new_goes_where_least_is() {
        let after = |of: &str| Offset::After(of.to_owned(), 250_001);
        let kept = [
            task("third", 1_000_000, 3).phase(Offset::At(77_777)),
            task("sense", 1_000_000, 1).phase(Offset::At(100_000)),
            task("act", 1_000_000, 1).phase(after("sense")),
            task("moves", 2_000_000, 1).on_overrun(OnOverrun::Delay).phase(Offset::At(5)),
            task("odd", 10_000_000, 7),
        ];
        let before = all(&kept).build().expect("a plan");
        // Without the one that another is after, and with new ones of which one is after that.
        let mut next: Vec<Task> = kept[2..].to_vec();
        next.push(task("new", 1_000_000, 1).phase(after("act")));
        next.push(task("fast", 500_000, 1).priority(3));
        next.iter_mut().for_each(|task| task.priority = Some(7));
        next.push(kept[0].clone().priority(9));
        let Successor { plan, ranks } = all(&next).build_after(&before).expect("a plan");
        for name in ["third", "act", "moves", "odd"] {
            assert_eq!(phase_ns(&plan, name), phase_ns(&before, name), "{name}");
        }
        assert_eq!(phase_ns(&plan, "new"), 100_000 + 2 * 250_001);
        for (rank, from) in ranks.iter().enumerate() {
            let name = from.map(|from| before.name(from as usize));
            let new = ["new", "fast"].contains(&plan.name(rank));
            assert_eq!(name, (!new).then_some(plan.name(rank)));
        }
        assert_eq!(plan.name(0), "third");
        // Ten on a tick of a tenth of their period: the eleventh goes where one was.
        let ms = |at: u32| task(&format!("t{at}"), 1_000_000, 1);
        let ticked = |tasks: &[Task]| all(tasks).tick_ns(100_000);
        let ten: Vec<Task> = (0..10).map(ms).collect();
        let before = ticked(&ten).build().expect("a plan");
        let mut next = ten;
        let gone = next.remove(3);
        next.push(ms(10));
        let after = ticked(&next).build_after(&before).expect("a plan").plan;
        assert_eq!(phase_ns(&after, "t10"), phase_ns(&before, gone.name()));
        assert_eq!(after.peak(), 1);
    }

    #[test]
    fn another_period_or_a_phase_that_may_move_is_a_new_task() {
        let before = all(&[task("a", 100, 1), task("b", 100, 1)]).build().expect("a plan");
        let next = all(&[task("a", 200, 1), task("b", 100, 1).on_overrun(OnOverrun::Delay)]);
        let after = next.build_after(&before).expect("a plan");
        assert_eq!(after.ranks, [None, None]);
        let none = Periodic::new().build_after(&before).expect("a plan");
        assert_eq!((none.plan.tasks(), none.ranks), (0, Vec::new()));
    }

    #[test]
    fn what_cannot_be_is_refused_as_at_first() {
        let half = |name: &str| task(name, 1_000_000, 1).budget_ns(600_000);
        let before = all(&[half("a")]).build().expect("a plan");
        let refused = |tasks: &[Task]| all(tasks).build_after(&before).err();
        assert_eq!(refused(&[half("a"), half("b")]), Some(BuildError::Overload(1.2)));
        assert_eq!(refused(&[half("a"), half("a")]), Some(BuildError::SameName("a".to_owned())));
        let lost = task("b", 5, 1).phase(Offset::After("c".to_owned(), 0));
        let unknown = BuildError::Unknown("b".to_owned(), "c".to_owned());
        assert_eq!(refused(&[half("a"), lost]), Some(unknown));
    }
}
