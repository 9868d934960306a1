//! Every design against one slow model, which writes down each release of each task.

use punctual_lab::baseline::{BaselineTask, Design, Heap, Punctual, Wheel, plan};
use punctual_papers::ant::{Ant, ArtLinux};

/// At each tick: the tasks that are due, the most urgent first.
fn model(tasks: &[BaselineTask], ticks: u64) -> Vec<Vec<usize>> {
    let mut due = vec![Vec::new(); ticks as usize];
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&number| (tasks[number].level, number));
    for number in order {
        let task = tasks[number];
        let releases = (task.phase as usize..due.len()).step_by(task.period as usize);
        releases.for_each(|tick| due[tick].push(number));
    }
    due
}

/// The releases that a design ran, by tick, each task finishing within its tick.
fn ran<D: Design>(mut design: D, ticks: u64) -> Vec<Vec<usize>> {
    let mut at = |_| {
        design.release();
        let mut ran = Vec::new();
        while let Some(job) = design.dispatch() {
            ran.push(D::number(&job));
            design.wait(job);
        }
        ran
    };
    (0..ticks).map(&mut at).collect()
}

/// The executive's, with the numbers that the tasks have outside.
fn ran_in_executive(tasks: &[BaselineTask], ticks: u64) -> Vec<Vec<usize>> {
    let plan = plan(tasks).expect("a plan");
    let mut storage = plan.storage();
    let number = |rank: &usize| plan.name(*rank).parse::<usize>().expect("a number");
    let ran = ran(Punctual::new(&plan, &mut storage), ticks);
    ran.iter().map(|ranks| ranks.iter().map(number).collect()).collect()
}

fn random(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
    (*seed >> 33) % below
}

/// Tasks of these periods with random phases, each with a level of its own.
fn some(seed: &mut u64, periods: &[u32], n: u8) -> Vec<BaselineTask> {
    let task = |level| {
        let period = periods[random(seed, periods.len() as u64) as usize];
        BaselineTask { period, phase: random(seed, u64::from(period)) as u32, level }
    };
    (0..n).map(task).collect()
}

#[test]
fn each_releases_the_same_tasks_in_the_same_order() {
    let mut seed = 5;
    for (periods, ticks) in [
        (&[1, 2, 5, 10][..], 500),
        (&[1, 63, 64, 65, 70], 5_000),
        (&[3, 7, 11, 13], 10_000),
        (&[64, 4_096, 4_097, 5_000, 300_000], 700_000),
    ] {
        for n in [1, 2, 7, 20] {
            let tasks = some(&mut seed, periods, n);
            let slow = model(&tasks, ticks);
            assert_eq!(ran(ArtLinux::new(&tasks), ticks), slow, "{tasks:?}");
            assert_eq!(ran(Heap::new(&tasks), ticks), slow, "{tasks:?}");
            assert_eq!(ran(Wheel::new(&tasks), ticks), slow, "{tasks:?}");
            assert_eq!(ran_in_executive(&tasks, ticks), slow, "{tasks:?}");
        }
    }
}

#[test]
fn ant_releases_by_the_phases_that_registration_found() {
    let mut seed = 9;
    for (periods, ticks) in [(&[1, 2, 5, 10][..], 500), (&[1, 64, 96], 2_000), (&[3, 7, 11], 5_000)]
    {
        for n in [1, 2, 7, 40] {
            let mut tasks = some(&mut seed, periods, n);
            let ant = Ant::new(&tasks).expect("a short table");
            for (number, task) in (0..).zip(&mut tasks) {
                task.phase = ant.phase(number).expect("registered");
            }
            let slow = model(&tasks, ticks);
            assert_eq!(ran(ant, ticks), slow, "{tasks:?}");
            assert_eq!(ran_in_executive(&tasks, ticks), slow, "{tasks:?}");
        }
    }
}

#[test]
fn many_tasks_due_at_once_run_in_order_of_level_and_number() {
    let n = 1_000;
    let tasks: Vec<BaselineTask> =
        (0..n).map(|at| BaselineTask { period: 1, phase: 0, level: (at * 64 / n) as u8 }).collect();
    let slow = model(&tasks, 5);
    assert_eq!(ran(ArtLinux::new(&tasks), 5), slow);
    assert_eq!(ran(Ant::new(&tasks).expect("one entry"), 5), slow);
    assert_eq!(ran(Heap::new(&tasks), 5), slow);
    assert_eq!(ran(Wheel::new(&tasks), 5), slow);
    assert_eq!(ran_in_executive(&tasks, 5), slow);
}

#[test]
fn ant_spreads_what_it_registers() {
    // §4.5: 100 tasks of a period of 100 in a table of 100 entries; one each, not "3 or 4".
    let tasks = [BaselineTask { period: 100, phase: 0, level: 0 }; 100];
    let ran = ran(Ant::new(&tasks).expect("100 entries"), 300);
    assert!(ran.iter().all(|tick| tick.len() == 1));
    // And has no table for periods whose common multiple is long.
    let long = [1_009, 1_013, 1_019].map(|period| BaselineTask { period, phase: 0, level: 0 });
    assert!(Ant::new(&long).is_none());
}

#[test]
fn ant_terminates_what_is_still_ready_at_its_next_release() {
    let tasks =
        [(1, 0), (3, 1), (1, 2)].map(|(period, level)| BaselineTask { period, phase: 0, level });
    let mut ant = Ant::new(&tasks).expect("a table of 3");
    ant.release();
    let job = ant.dispatch().expect("ready");
    ant.wait(job);
    // BaselineTask 2 never came to run.
    ant.release();
    assert_eq!(ant.terminated(), [2]);
    while let Some(job) = ant.dispatch() {
        ant.wait(job);
    }
    let rest = ran(ant, 9).concat();
    let count = |task: usize| rest.iter().filter(|&&number| number == task).count();
    assert_eq!([0, 1, 2].map(count), [9, 3, 0]);
}

#[test]
fn art_linux_lets_a_late_task_wait_for_the_release_after_the_one_it_missed() {
    // §2.3, problem 3: waits until t₂, not t₁.
    let tasks = [BaselineTask { period: 2, phase: 0, level: 0 }];
    let mut art = ArtLinux::new(&tasks);
    art.release();
    let job = art.dispatch().expect("ready");
    (0..3).for_each(|_| art.release());
    art.wait(job);
    assert_eq!(ran(art, 3), [vec![0], vec![], vec![0]]);
}
