//! The longest times of a table's tasks from release to finish, by their budgets alone.
//!
//! Response-time analysis of fixed priorities without preemption, for any phases (George, Rivierre,
//! Spuri 1996; Davis, Burns, Bril, Lukkien, *Controller Area Network schedulability analysis:
//! refuted, revisited and revised*, 2007): a task waits for the longest of those below it that has
//! begun, for its own earlier releases, and for all above it that are released before it starts.
//! A bound, not a forecast: phases may keep tasks apart that it lets meet. What the machine adds
//! (the lateness of the loop, the time of its turns) comes on top. Pure.

use std::fmt;
use std::time::Duration;

use punctual_core::time::Period;

use super::Plan;
use crate::duration::{ns, span};
use crate::error::BuildError;
use crate::remote::POST;

/// Steps after which an analysis of one task is given up.
const STEPS: u64 = 100_000;

/// The longest from a release of a task to its finish, where every task keeps its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Response {
    /// At most this long.
    AtMost(Duration),
    /// Those of its urgency and above ask for the whole CPU or more: it has no bound.
    Unbounded,
    /// Not known: it or a task that it may wait for has no budget, it runs elsewhere, or the
    /// periods are too many and too close to the whole CPU for an analysis.
    Unknown,
}

impl Response {
    /// Returns true where it ends by this deadline whatever comes together; `None` where that is
    /// not known.
    ///
    /// # Real-time: setup only
    pub fn is_within(self, deadline: Duration) -> Option<bool> {
        match self {
            Self::AtMost(longest) => Some(longest <= deadline),
            Self::Unbounded => Some(false),
            Self::Unknown => None,
        }
    }
}

/// A task that may end after its deadline although every task keeps its budget, at some phases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateTask {
    name: String,
    period: Period,
    deadline_ns: u64,
    reason: LateReason,
}

/// The reason why a task is late.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LateReason {
    /// One less urgent task has begun, and is not preempted.
    Blocked {
        /// Its name.
        behind: String,
        budget_ns: u64,
        /// True where no phases help.
        is_certain: bool,
    },
    /// All that may come together.
    Together(Duration),
}

impl LateTask {
    /// Its name.
    ///
    /// # Real-time: setup only
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The one less urgent task that is enough to make it late.
    ///
    /// # Real-time: setup only
    pub fn behind(&self) -> Option<&str> {
        match &self.reason {
            LateReason::Blocked { behind, .. } => Some(behind),
            LateReason::Together(_) => None,
        }
    }

    /// Returns true where no phases help: in each cycle of the task that it waits for, the time in
    /// which a release comes too late is longer than its period, so that one comes due then.
    ///
    /// # Real-time: setup only
    pub fn is_certain(&self) -> bool {
        matches!(self.reason, LateReason::Blocked { is_certain: true, .. })
    }
}

impl From<&LateTask> for BuildError {
    fn from(late: &LateTask) -> Self {
        Self::Late(late.name.clone(), late.to_string())
    }
}

impl fmt::Display for LateTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, period, deadline_ns, reason } = self;
        let period = period.as_span();
        match reason {
            LateReason::Blocked { behind, budget_ns, .. } => {
                let budget = span(Duration::from_nanos(*budget_ns));
                let releases =
                    Demand { period: self.period, budgets_ns: 1 }.before_ns(u128::from(*budget_ns));
                write!(
                    f,
                    "task {name:?} ({period}) may wait {budget} for {behind:?}, which runs inline \
                     with a budget of {budget} and cannot be preempted: up to {releases} of its \
                     releases come due meanwhile; give {behind:?} a thread of its own or a \
                     shorter budget"
                )?;
                match self.is_certain() {
                    true => Ok(()),
                    false => f.write_str(", or keep them apart by their phases"),
                }
            }
            LateReason::Together(longest) => write!(
                f,
                "task {name:?} ({period}) may end {} after its release, where its deadline is {}, \
                 if all that shares its loop comes together: shorten budgets, give a task a thread \
                 of its own, or keep them apart by their phases",
                span(*longest),
                span(Duration::from_nanos(*deadline_ns)),
            ),
        }
    }
}

/// Budgets of one period.
#[derive(Clone, Copy, Debug)]
struct Demand {
    period: Period,
    budgets_ns: u128,
}

impl Demand {
    /// The time that releases in `[0, within]` take, ns.
    fn up_to_ns(&self, within_ns: u128) -> u128 {
        (self.count(within_ns) + 1) * self.budgets_ns
    }

    /// The time that releases in `[0, within)` take, ns.
    fn before_ns(&self, within_ns: u128) -> u128 {
        let (num, den) = self.terms();
        (within_ns * den).div_ceil(num) * self.budgets_ns
    }

    /// The most periods in a time: releases are at whole nanoseconds, so that two may be up to one
    /// closer than their periods are long.
    fn count(&self, within_ns: u128) -> u128 {
        let (num, den) = self.terms();
        ((within_ns + 1) * den - 1) / num
    }

    fn terms(&self) -> (u128, u128) {
        (self.period.num_ns().into(), self.period.den().into())
    }

    fn share(&self) -> f64 {
        self.budgets_ns as f64 / self.period.as_ns_f64()
    }
}

impl Plan {
    /// The response of each task by rank. Of tasks that run elsewhere this loop posts the releases
    /// ([`POST`] each), and nothing is known of theirs.
    ///
    /// # Real-time: setup only
    pub fn responses(&self) -> Vec<Response> {
        // From the least urgent up: the longest of those below each.
        let mut blocked = vec![Some(0); self.tasks()];
        let mut longest = Some(0);
        for rank in (0..self.tasks()).rev() {
            blocked[rank] = longest;
            longest = longest.and_then(|longest_ns| self.longer_ns(longest_ns, rank));
        }
        let mut above = Above::default();
        let response = |(rank, blocked_ns)| {
            let response = above.response(self, rank, blocked_ns);
            above.add(self, rank);
            response
        };
        blocked.into_iter().enumerate().map(response).collect()
    }

    /// The response of the task of this rank.
    ///
    /// # Real-time: setup only
    pub fn response(&self, rank: usize) -> Response {
        let mut above = Above::default();
        (0..rank).for_each(|rank| above.add(self, rank));
        above.response(self, rank, self.blocked_ns(rank))
    }

    /// The tasks that may end after their deadlines, by rank, as far as budgets tell: one without a
    /// budget is taken for short. Those without any bound are left out.
    ///
    /// # Real-time: setup only
    pub fn late_tasks(&self) -> Vec<LateTask> {
        let responses = self.responses();
        let mut late = Vec::new();
        // From the least urgent up: that of those below with the longest budget.
        let mut longest: Option<(usize, u64)> = None;
        for rank in (0..self.tasks()).rev().filter(|&rank| !self.is_remote(rank)) {
            let (own_ns, deadline_ns) = (self.budget_ns(rank), self.deadline_ns(rank));
            let blocked = longest.filter(|(_, longest_ns)| {
                longest_ns.saturating_add(own_ns.unwrap_or(0)) > deadline_ns
            });
            let reason = match (blocked, responses[rank]) {
                (Some((behind, budget_ns)), _) => {
                    // In this time of each of its cycles no release is in time.
                    let late_ns = budget_ns.saturating_add(own_ns.unwrap_or(0)) - deadline_ns;
                    let is_certain = late_ns > self.period(rank).as_ns();
                    let behind = self.name(behind).to_owned();
                    Some(LateReason::Blocked { behind, budget_ns, is_certain })
                }
                (None, Response::AtMost(longest))
                    if longest > Duration::from_nanos(deadline_ns) =>
                {
                    Some(LateReason::Together(longest))
                }
                _ => None,
            };
            late.extend(reason.map(|reason| LateTask {
                name: self.name(rank).to_owned(),
                period: self.period(rank),
                deadline_ns,
                reason,
            }));
            longest = match (longest, own_ns) {
                (Some((_, longest_ns)), Some(own_ns)) if own_ns <= longest_ns => longest,
                (_, Some(own_ns)) => Some((rank, own_ns)),
                (_, None) => longest,
            };
        }
        late.reverse();
        late
    }

    /// The longest budget of those below this one, ns; `None` where one has none.
    fn blocked_ns(&self, rank: usize) -> Option<u64> {
        (rank + 1..self.tasks()).try_fold(0, |longest, rank| self.longer_ns(longest, rank))
    }

    /// This or the budget of the task of this rank, ns; `None` where that has none.
    fn longer_ns(&self, longest_ns: u64, rank: usize) -> Option<u64> {
        Some(longest_ns.max(self.takes_ns(rank)?))
    }

    /// The time that a cycle of the task of this rank takes of the loop, ns; `None` where that is
    /// not known. One that runs elsewhere is posted.
    fn takes_ns(&self, rank: usize) -> Option<u64> {
        if self.is_remote(rank) { Some(ns(POST)) } else { self.budget_ns(rank) }
    }
}

/// The demands of the tasks above another.
#[derive(Default)]
struct Above {
    demands: Vec<Demand>,
    /// True where one of them has no budget.
    is_open: bool,
}

impl Above {
    fn add(&mut self, plan: &Plan, rank: usize) {
        let (period, Some(budget_ns)) = (plan.period(rank), plan.takes_ns(rank)) else {
            self.is_open = true;
            return;
        };
        match self.demands.iter_mut().find(|demand| demand.period == period) {
            Some(demand) => demand.budgets_ns += u128::from(budget_ns),
            None => self.demands.push(Demand { period, budgets_ns: budget_ns.into() }),
        }
    }

    /// The response of the task of this rank below them.
    fn response(&self, plan: &Plan, rank: usize, blocked_ns: Option<u64>) -> Response {
        match (plan.budget_ns(rank), blocked_ns) {
            (Some(budget_ns), Some(blocked_ns)) if !self.is_open && !plan.is_remote(rank) => {
                response(&self.demands, plan.period(rank), budget_ns.into(), blocked_ns.into())
            }
            _ => Response::Unknown,
        }
    }
}

/// The response of a task of this period and budget, ns, below these.
fn response(above: &[Demand], period: Period, budget_ns: u128, blocked_ns: u128) -> Response {
    let own = Demand { period, budgets_ns: budget_ns };
    let share: f64 = above.iter().chain([&own]).map(Demand::share).sum();
    // A sum of quotients may be off by a few parts in 10¹⁶. At exactly the whole CPU a time in
    // which it is busy never ends where something below may have begun before it.
    if share > 1.0 + 1e-12 || share > 1.0 - 1e-12 && blocked_ns > 0 {
        return Response::Unbounded;
    }
    let mut steps = 0;
    let mut settle = |mut from_ns: u128, next: &dyn Fn(u128) -> u128| loop {
        steps += 1;
        let next_ns = next(from_ns);
        if next_ns == from_ns {
            return Some(from_ns);
        }
        if steps > STEPS {
            return None;
        }
        from_ns = next_ns;
    };
    // How long the CPU is busy with it, with those above, and with the one that had begun.
    let busy = |within_ns: u128| {
        let demands = above.iter().chain([&own]).map(|demand| demand.before_ns(within_ns));
        blocked_ns + demands.sum::<u128>()
    };
    let Some(busy_ns) = settle(blocked_ns + budget_ns, &busy) else { return Response::Unknown };
    let releases = own.before_ns(busy_ns) / budget_ns;
    let (mut longest_ns, mut start_ns) = (0, blocked_ns);
    for release in 0..releases {
        let before_ns = blocked_ns + release * budget_ns;
        let start = |within_ns: u128| {
            before_ns + above.iter().map(|demand| demand.up_to_ns(within_ns)).sum::<u128>()
        };
        let Some(settled_ns) = settle(start_ns.max(before_ns), &start) else {
            return Response::Unknown;
        };
        start_ns = settled_ns;
        let (num, den) = own.terms();
        longest_ns = longest_ns.max(start_ns + budget_ns - (release * num / den).min(start_ns));
    }
    Response::AtMost(Duration::from_nanos(u64::try_from(longest_ns).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::periodic::{Periodic, Task};
    use proptest::prelude::*;

    fn task(name: &str, period_ns: u64, budget_ns: u64) -> Task {
        Task::every(name, Period::from_ns(period_ns).expect("positive"))
            .budget(Duration::from_nanos(budget_ns))
    }

    fn responses(tasks: impl IntoIterator<Item = Task>) -> Vec<Response> {
        let table = tasks.into_iter().fold(Periodic::new().allow_overload(), Periodic::task);
        table.build().expect("a plan").responses()
    }

    const fn at_most(ns: u64) -> Response {
        Response::AtMost(Duration::from_nanos(ns))
    }

    #[test]
    fn the_published_example_is_refuted_as_in_the_paper() {
        // Davis et al. 2007, table 1 (ms): the third message's second instance is the late one.
        let set = [("a", 250, 100), ("b", 350, 100), ("c", 350, 100)];
        let set = set.map(|(name, period, budget)| task(name, period, budget));
        assert_eq!(responses(set), [at_most(200), at_most(300), at_most(350)]);
    }

    #[test]
    fn what_is_below_blocks_and_what_has_no_budget_leaves_it_unknown() {
        let fast = task("fast", 100, 10);
        assert_eq!(responses([fast.clone()]), [at_most(10)]);
        assert_eq!(responses([fast.clone(), task("slow", 1_000, 60)]), [at_most(70), at_most(70)]);
        let open = Task::every("open", Period::from_ns(500).expect("positive"));
        let below = responses([fast.clone(), open.clone(), task("slow", 1_000, 60)]);
        assert_eq!(below, [Response::Unknown; 3]);
        // The release of one elsewhere takes 5 µs.
        let [long, longer] = [task("long", 100_000, 10_000), task("longer", 200_000, 10_000)];
        let elsewhere = task("elsewhere", 150_000, 90_000).remote(0);
        let bounds = responses([long, elsewhere, longer]);
        assert_eq!(bounds, [at_most(20_000), Response::Unknown, at_most(25_000)]);
    }

    #[test]
    fn releases_at_whole_nanoseconds_may_be_closer_than_their_period() {
        // Of 3 kHz the second comes 333 333 ns after the first, when the third task would begin.
        let hz = |name: &str, hz: u64, budget_ns: u64| {
            let period = Period::ratio(1_000_000_000, hz).expect("in range");
            Task::every(name, period).budget(Duration::from_nanos(budget_ns))
        };
        let set = [hz("a", 3_000, 100_000), hz("b", 100, 233_333), hz("c", 100, 50_000)];
        assert_eq!(responses(set)[2], at_most(483_333));
    }

    #[test]
    fn the_whole_cpu_has_a_bound_only_where_nothing_is_below() {
        let half = |name| task(name, 100, 50);
        assert_eq!(responses([half("a"), half("b")])[1], at_most(100));
        let more = responses([half("a"), half("b"), task("c", 200, 1)]);
        assert_eq!(more[1..], [Response::Unbounded; 2]);
        assert_eq!(more[0].is_within(Duration::from_nanos(100)), Some(true));
        assert_eq!(more[1].is_within(Duration::from_nanos(100)), Some(false));
        assert_eq!(Response::Unknown.is_within(Duration::MAX), None);
    }

    #[test]
    fn the_longest_known_budget_below_makes_a_task_late() {
        let late = |tasks: &[Task]| -> Vec<(String, Option<String>, bool)> {
            let table =
                tasks.iter().cloned().fold(Periodic::new().allow_overload(), Periodic::task);
            let late = table.build().expect("a plan").late_tasks();
            let row = |late: &LateTask| {
                (late.name().to_owned(), late.behind().map(str::to_owned), late.is_certain())
            };
            late.iter().map(row).collect()
        };
        let blocked =
            |behind: &str, certain| vec![("fast".to_owned(), Some(behind.to_owned()), certain)];
        let fast = Task::every("fast", Period::from_ns(100).expect("positive"));
        let budget = |ns| fast.clone().budget(Duration::from_nanos(ns));
        let slow = |ns| task("slow", 10_000, ns);
        // One without a budget counts as short, above and below.
        let open = Task::every("open", Period::from_ns(500).expect("positive"));
        assert_eq!(late(&[fast.clone(), open.clone(), slow(101)]), blocked("slow", false));
        assert_eq!(late(&[fast.clone(), open, slow(100)]), []);
        // A release comes due in any 100 ns.
        assert_eq!(late(&[fast.clone(), slow(200)]), blocked("slow", false));
        assert_eq!(late(&[fast.clone(), slow(201)]), blocked("slow", true));
        assert_eq!(late(&[budget(10), slow(191)]), blocked("slow", true));
        let patient = fast.clone().deadline(Duration::from_nanos(500));
        assert_eq!(late(&[patient, slow(590)]), blocked("slow", false));
        // Periods that drift past each other do not show it where a third may shift a start.
        assert_eq!(late(&[budget(10), task("beside", 110, 101)]), blocked("beside", false));
        // Its own budget has to fit behind.
        assert_eq!(late(&[budget(10), slow(90)]), []);
        assert_eq!(late(&[budget(10), slow(91)]), blocked("slow", false));
        let near = budget(10).deadline(Duration::from_nanos(50));
        assert_eq!(late(&[near.clone(), slow(30), task("mid", 5_000, 60)]), blocked("mid", false));
        // What runs elsewhere keeps nobody waiting but for its post of 5 µs; nor do those above
        // alone.
        assert_eq!(late(&[near, slow(80).remote(0)]), [("fast".to_owned(), None, false)]);
        let far = task("far", 100_000, 10).deadline(Duration::from_nanos(6_000));
        assert_eq!(late(&[far, task("slow", 1_000_000, 80_000).remote(0)]), []);
        // None is enough alone.
        let third = |name| task(name, 100, 40);
        let together = [("c".to_owned(), None, false)];
        assert_eq!(
            late(&[third("a"), third("b"), task("c", 110, 20).deadline(Duration::from_nanos(90))]),
            together
        );
        let shown = Periodic::new().task(fast).task(task("slow", 10_000, 2_000)).build();
        let shown = shown.expect("a plan").late_tasks()[0].to_string();
        assert!(shown.contains("may wait 2.00 µs for \"slow\"") && shown.contains("up to 20 of"));
    }

    /// The longest response of each task over 4 000 ns, told by running them: phases as given, the
    /// most urgent first, none interrupted.
    fn simulated(plan: &Plan) -> Vec<u64> {
        let mut longest = vec![0; plan.tasks()];
        let mut next: Vec<u64> = (0..plan.tasks()).map(|rank| plan.phase_ns(rank)).collect();
        let mut now = 0;
        while now < 4_000 {
            let due = (0..plan.tasks()).find(|&rank| next[rank] <= now);
            let Some(rank) = due else {
                now = next.iter().copied().min().expect("tasks");
                continue;
            };
            now += plan.budget_ns(rank).expect("given");
            longest[rank] = longest[rank].max(now - next[rank]);
            next[rank] += plan.period_ns(rank);
        }
        longest
    }

    proptest! {
        #[test]
        fn no_run_takes_longer_than_its_bound(
            drawn in prop::collection::vec((0..7_usize, 1..40_u64, 0..400_u64), 1..7)
        ) {
            const PERIODS: [u64; 7] = [40, 50, 80, 100, 160, 200, 400];
            let tasks = drawn.into_iter().enumerate().map(|(number, (period, budget, phase))| {
                let period_ns = PERIODS[period];
                let plain = task(&number.to_string(), period_ns, budget.min(period_ns));
                plain.at(Duration::from_nanos(phase % period_ns))
            });
            let table = tasks.fold(Periodic::new().allow_overload(), Periodic::task);
            let plan = table.build().expect("a plan");
            let bounds = plan.responses();
            let each: Vec<Response> = (0..plan.tasks()).map(|rank| plan.response(rank)).collect();
            prop_assert_eq!(&each, &bounds);
            for (rank, longest) in simulated(&plan).into_iter().enumerate() {
                if let Response::AtMost(bound) = bounds[rank] {
                    let holds = u128::from(longest) <= bound.as_nanos();
                    prop_assert!(holds, "{rank}: {longest} {bounds:?}");
                }
                prop_assert!(bounds[rank] != Response::Unknown);
            }
        }
    }
}
