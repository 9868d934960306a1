//! Changes in a simulated clock: thousands of random ones, published by the tasks themselves.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64};

use proptest::prelude::*;
use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Ended, Flow};
use punctual_core::executive::{Dispatch, Many};
use punctual_core::wait::Sleep;

use super::*;
use crate::periodic::{OnOverrun, Period, Periodic, Task};

/// A clock that stands still but for sleeps and tasks.
struct Now<'c>(&'c Cell<u64>);

impl Clock for Now<'_> {
    fn now(&mut self) -> Instant {
        Instant::from_ns(self.0.get())
    }
    fn poll(&mut self) -> Instant {
        self.now()
    }
    fn sleep_until(&mut self, at: Instant) {
        self.0.set(self.0.get().max(at.as_ns()));
    }
    fn wake(&mut self) -> Instant {
        self.now()
    }
    fn relax(&mut self) {}
}

/// A random change: removes each task with one in four chances, adds some of these.
#[derive(Clone, Debug)]
struct Step {
    /// Cycles before it is requested.
    after: u32,
    remove: u64,
    add: Vec<(usize, usize)>,
}

/// Periods, ns, as fractions; none divides all others.
const PERIODS: [(u64, u64); 6] = [
    (1_000_000, 1),
    (2_000_000, 1),
    (10_000_000, 3),
    (5_000_000, 7),
    (300_000_000, 1),
    (3_333_333, 1),
];
const POLICIES: [OnOverrun; 5] =
    [OnOverrun::Skip, OnOverrun::Burst(3), OnOverrun::Delay, OnOverrun::Terminate, OnOverrun::Stop];

fn steps(policies: usize) -> impl Strategy<Value = Vec<Step>> {
    let add = prop::collection::vec((0..PERIODS.len(), 0..policies), 0..4);
    let step = (0u32..40, any::<u64>(), add);
    prop::collection::vec(step.prop_map(|(after, remove, add)| Step { after, remove, add }), 1..60)
}

/// A cycle as its task saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    n: u64,
    release_ns: u64,
    missed: u64,
}

/// The history of one task from its registration to its removal.
#[derive(Clone, Debug)]
struct Life {
    task: Task,
    phase_ns: u64,
    from_ns: u64,
    until_ns: u64,
    seen: Vec<Seen>,
    counters: Option<Counters>,
}

type Lives = RefCell<HashMap<usize, Life>>;

impl Life {
    fn of(task: &Task, plan: &Plan, from_ns: u64) -> Self {
        let rank = (0..plan.tasks()).find(|&rank| plan.name(rank) == task.name());
        let phase_ns = plan.phase_ns(rank.expect("it has a place"));
        let (task, seen) = (task.clone(), Vec::new());
        Self { task, phase_ns, from_ns, until_ns: END_NS, seen, counters: None }
    }

    /// The instant at which its cycle `n` is due if its phase never moved, ns.
    fn release_ns(&self, n: u64) -> u64 {
        let period = self.task.period();
        let exact = u128::from(n) * u128::from(period.num_ns()) / u128::from(period.den());
        EPOCH.as_ns() + exact as u64 + self.phase_ns
    }

    /// Its first cycle.
    fn first(&self) -> u64 {
        (0..).find(|&n| self.release_ns(n) >= self.from_ns).expect("there is one")
    }

    /// The cycles that it must have seen if nothing ever was late: each release from the first one
    /// on.
    fn punctual(&self) -> Vec<Seen> {
        let releases = (self.first()..).map(|n| (n, self.release_ns(n)));
        releases
            .take_while(|at| at.1 <= self.until_ns)
            .map(|(n, release_ns)| Seen { n, release_ns, missed: 0 })
            .collect()
    }
}

/// The bodies, and the thread that publishes: one in a simulation.
struct World<'w> {
    now: &'w Cell<u64>,
    handover: &'w Handover<Ids<'w>>,
    lives: &'w Lives,
    /// By rank.
    ids: Vec<usize>,
    tasks: Vec<(usize, Task)>,
    plan: Plan,
    requested: Option<(Vec<(usize, Task)>, Plan)>,
    steps: std::vec::IntoIter<Step>,
    wait: u32,
    next: Option<Step>,
    /// The time that each cycle takes, ns.
    long: Box<dyn FnMut() -> u64 + 'w>,
}

/// The identities of the next ranks.
struct Ids<'w> {
    ids: Vec<usize>,
    now: &'w Cell<u64>,
    at_ns: u64,
}

impl<'w> Exchange<World<'w>, ()> for Ids<'w> {
    fn exchange(&mut self, world: &mut World<'w>, (): &mut (), ranks: &[Option<u32>]) {
        for (rank, from) in ranks.iter().enumerate() {
            let kept = from.map(|from| world.ids[from as usize]);
            assert!(kept.is_none_or(|id| id == self.ids[rank]), "{kept:?}");
        }
        std::mem::swap(&mut self.ids, &mut world.ids);
        self.at_ns = self.now.get();
    }
}

fn periodic(tasks: &[(usize, Task)]) -> Periodic {
    let tasks_alone = tasks.iter().map(|(_, task)| task.clone());
    tasks_alone.fold(Periodic::new(), Periodic::task)
}

fn ids(plan: &Plan) -> Vec<usize> {
    (0..plan.tasks()).map(|rank| plan.name(rank).parse().expect("a number")).collect()
}

impl World<'_> {
    /// Takes an answer; `ended` is one where the loop has ended.
    fn hear(&mut self, ended: bool) {
        if let Some(answer) = self.handover.answer() {
            let mut done = match answer {
                Ok(done) => done,
                Err((ChangeRefused::Ended, _)) if ended => return,
                Err((why, _)) => panic!("{why}"),
            };
            let (tasks, plan) = self.requested.take().expect("requested");
            assert_eq!(done.before().plan(), &self.plan);
            let mut lives = self.lives.borrow_mut();
            for (rank, id) in ids(&self.plan).into_iter().enumerate() {
                if tasks.iter().all(|task| task.0 != id) {
                    let life = lives.get_mut(&id).expect("known");
                    life.until_ns = done.parts.at_ns;
                    life.counters = done.before().counters(rank);
                }
            }
            for (id, _) in &tasks {
                let life = lives.get_mut(id).expect("known");
                life.from_ns = life.from_ns.min(FROM_NS.max(done.parts.at_ns + 1));
            }
            (self.tasks, self.plan) = (tasks, plan);
        }
    }

    /// Asks for the next change when it is time.
    fn publish(&mut self) {
        self.hear(false);
        if self.requested.is_some() {
            return;
        }
        if self.wait > 0 {
            self.wait -= 1;
            return;
        }
        let Some(step) = self.next.take() else {
            self.next = self.steps.next();
            self.wait = self.next.as_ref().map_or(0, |step| step.after);
            return;
        };
        let mut tasks = self.tasks.clone();
        // One stays, so that there is somebody to publish.
        let mut at = 0;
        tasks.retain(|_| {
            at += 1;
            at == 1 || step.remove >> (2 * (at % 32)) & 3 != 0
        });
        let first = self.lives.borrow().keys().max().map_or(0, |id| id + 1);
        for (at, (period, policy)) in step.add.into_iter().enumerate() {
            let (num_ns, den) = PERIODS[period];
            let period = Period::ratio(num_ns, den).expect("in range");
            let id = first + at;
            if tasks.len() < 30 {
                let task = Task::every(id.to_string(), period).on_overrun(POLICIES[policy]);
                tasks.push((id, task));
            }
        }
        let next = periodic(&tasks).build_after(&self.plan).expect("it can be");
        for (id, task) in tasks.iter().filter(|(id, _)| *id >= first) {
            self.lives.borrow_mut().insert(*id, Life::of(task, &next.plan, u64::MAX));
        }
        let beside = Ids { ids: ids(&next.plan), now: self.now, at_ns: 0 };
        let plan = next.plan.clone();
        self.handover.offer(Change::new(next, EPOCH, beside)).expect("none under way");
        self.requested = Some((tasks, plan));
    }
}

impl Dispatch for World<'_> {
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        let seen = Seen { n: cycle.n, release_ns: cycle.release.as_ns(), missed: cycle.missed };
        let mut lives = self.lives.borrow_mut();
        lives.get_mut(&self.ids[rank]).expect("known").seen.push(seen);
        drop(lives);
        self.now.set(self.now.get() + (self.long)());
        self.publish();
        // One that is overloaded all the time is never idle, which is how it would end.
        if self.now.get() > 2 * END_NS { Flow::Stop } else { Flow::Continue }
    }
}

const EPOCH: Instant = Instant::from_ns(12_345);
const FROM_NS: u64 = 9_000_000;
const END_NS: u64 = 400_000_000;

/// Runs all changes, each cycle as long as `long` says; returns the history of each task.
fn run(steps: Vec<Step>, long: Box<dyn FnMut() -> u64 + '_>) -> (HashMap<usize, Life>, Ended) {
    let now = Cell::new(FROM_NS - 700_000);
    let handover = Handover::new();
    let from = Instant::from_ns(FROM_NS);
    let tasks = vec![(0, Task::every("0", Period::ratio(1_000_000, 1).expect("in range")))];
    let plan = periodic(&tasks).build().expect("a plan");
    let lives = RefCell::new(HashMap::from([(0, Life::of(&tasks[0].1, &plan, FROM_NS))]));
    let mut running = RunningPlan::new(plan.clone(), EPOCH, from);
    let world = World {
        now: &now,
        handover: &handover,
        lives: &lives,
        ids: ids(&plan),
        tasks,
        plan,
        requested: None,
        steps: steps.into_iter(),
        wait: 0,
        next: None,
        long,
    };
    let mut many = Many { clock: Now(&now), wait: Sleep, tasks: world, observe: () };
    // Some before the first release.
    (0..10).for_each(|_| many.tasks.publish());
    let (stop, turns) = (AtomicBool::new(false), AtomicU64::new(0));
    let run = LoopRun { from, end: Instant::from_ns(END_NS), stop: &stop, turns: &turns };
    let ended = handover.run(&mut many, &mut running, &run);
    many.tasks.hear(true);
    for (rank, id) in ids(running.plan()).into_iter().enumerate() {
        let counters = running.counters(rank);
        lives.borrow_mut().get_mut(&id).expect("known").counters = counters;
    }
    drop(many);
    (lives.into_inner(), ended)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn whoever_goes_on_never_hears_of_a_change(steps in steps(POLICIES.len())) {
        let (lives, ended) = run(steps, Box::new(|| 100));
        prop_assert_eq!(ended, Ended::Finished);
        for (id, life) in &lives {
            let Some(counters) = life.counters else {
                prop_assert_eq!(life.from_ns, u64::MAX, "requested at the end: {} {:?}", id, life);
                continue;
            };
            prop_assert_eq!(&life.seen, &life.punctual(), "{}: {:?}", id, life.task);
            prop_assert_eq!((counters.ran, counters.missed), (life.seen.len() as u64, 0));
        }
    }

    #[test]
    fn in_overload_no_release_is_lost_or_doubled(
        steps in steps(POLICIES.len() - 1),
        seed in any::<u64>(),
    ) {
        let mut seed = seed;
        let long = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if seed >> 60 == 0 { 20_000_000 } else { seed >> 45 }
        };
        let (lives, _) = run(steps, Box::new(long));
        for (id, life) in &lives {
            let Some(counters) = life.counters else { continue };
            let mut next = life.first();
            let moves = life.task.overrun_policy() == OnOverrun::Delay;
            for seen in &life.seen {
                prop_assert_eq!(seen.n - seen.missed, next, "{}: {:?}", id, life.task);
                // A loop that is late at its end runs what is due by then.
                prop_assert!(seen.release_ns <= life.until_ns || life.until_ns == END_NS);
                prop_assert!(moves || seen.release_ns == life.release_ns(seen.n));
                next = seen.n + 1;
            }
            let counted: u64 = life.seen.iter().map(|seen| seen.missed).sum();
            prop_assert_eq!(counters.ran, life.seen.len() as u64);
            // Some may be missed that no cycle has counted yet.
            prop_assert!(counters.missed >= counted && (!moves || counted == 0));
        }
    }
}

#[test]
fn a_loop_that_is_over_refuses_and_so_does_a_change_that_does_not_fit() {
    let handover = Handover::<()>::new();
    let task = Task::every("0", Period::ratio(1_000_000, 1).expect("in range"));
    let plan = Periodic::new().task(task).build().expect("a plan");
    let change = |epoch_ns: u64| {
        let next = Successor { plan: plan.clone(), ranks: vec![Some(0)] };
        Change::new(next, Instant::from_ns(epoch_ns), ())
    };
    assert!(handover.answer().is_none());
    handover.offer(change(9)).expect("the first one");
    let (why, _) = handover.offer(change(9)).expect_err("refused");
    assert_eq!(why, ChangeRefused::Busy);
    assert!(handover.answer().is_none(), "no loop yet");
    let now = Cell::new(0);
    let mut running = RunningPlan::new(plan.clone(), EPOCH, EPOCH);
    let mut many = Many { clock: Now(&now), wait: Sleep, tasks: Never, observe: () };
    let (stop, turns) = (AtomicBool::new(false), AtomicU64::new(0));
    let run = LoopRun { from: EPOCH, end: EPOCH, stop: &stop, turns: &turns };
    assert_eq!(handover.run(&mut many, &mut running, &run), Ended::Finished);
    let answer = handover.answer().map(|answer| answer.map_err(|(why, _)| why));
    assert_eq!(answer.map(Result::err), Some(Some(ChangeRefused::Mismatch(Mismatch::Epoch))));
    let (why, _) = handover.publish(change(EPOCH.as_ns())).expect_err("it is over");
    assert_eq!(why, ChangeRefused::Ended);
    assert!(why.to_string().contains("ended"));
    let handover = Handover::<()>::new();
    handover.finish();
    let (why, _) = handover.publish(change(EPOCH.as_ns())).expect_err("none any more");
    assert_eq!(why, ChangeRefused::Ended);
}

/// Nothing is ever due.
struct Never;

impl Dispatch for Never {
    fn run(&mut self, _: usize, _: &mut Cycle<'_>) -> Flow {
        panic!("nothing is due")
    }
}
