//! The builder as a user meets it: what it refuses, what it lays out, how big that is.

use std::time::Duration;

use punctual_core::cycle::Decision;
use punctual_core::dispatch::{TableState, finish, step};
use punctual_core::time::{Instant, Period};

use super::*;

fn ms(ms: u64) -> Period {
    Period::ratio(ms * 1_000_000, 1).expect("in range")
}

fn task(name: &str, period_ms: u64) -> Task {
    Task::every(name, ms(period_ms))
}

fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

fn many(periods_ms: &[u64], n: usize) -> Periodic {
    (0..n).fold(Periodic::new(), |made, at| {
        made.task(task(&format!("t{at}"), periods_ms[at % periods_ms.len()]))
    })
}

/// Runs a plan until `end`, each task taking no time; how many ran at each instant.
fn releases(plan: &Plan, end_ns: u64) -> Vec<(u64, usize)> {
    let table = plan.table(Instant::from_ns(0));
    let mut storage = plan.storage();
    let mut now = Instant::from_ns(0);
    let mut state = TableState::begin(&table, storage.lend(), now).expect("its own storage");
    let mut seen: Vec<(u64, usize)> = Vec::new();
    while now.as_ns() < end_ns {
        match step(&table, &mut state, now) {
            Decision::Idle(until) => now = until,
            Decision::Run(job) => {
                assert_eq!((job.release, job.missed), (now, 0));
                let _fine = finish(&table, &mut state, &job, now, now);
                match seen.last_mut() {
                    Some((at, n)) if *at == now.as_ns() => *n += 1,
                    _ => seen.push((now.as_ns(), 1)),
                }
            }
        }
    }
    seen
}

#[test]
fn periods_have_a_divisor_where_they_are_whole() {
    let period = |ns| Period::from_ns(ns).expect("positive");
    assert_eq!(common_period(&[period(4_000), period(6_000), period(10_000)]), Some(period(2_000)));
    assert_eq!(common_period(&[period(4_000)]), Some(period(4_000)));
    let third = Period::hz(3).expect("in range");
    assert_eq!(common_period(&[third, period(4_000)]), Some(period(4_000)));
    assert_eq!(common_period(&[]), None);
}

#[test]
fn a_hundred_tasks_of_100_ms_are_released_one_a_millisecond() {
    // AnT §4.5, whose Fig. 11 has 3 or 4.
    let plan = many(&[100], 100).tick_ns(1_000_000).build().expect("a plan");
    assert_eq!(plan.peak(), 1);
    let seen = releases(&plan, 1_000_000_000);
    assert_eq!(seen.len(), 1000);
    assert!(seen.iter().all(|(_, n)| *n == 1));
    // Without a tick there is one place for all.
    assert_eq!(many(&[100], 100).build().map(|plan| plan.peak()), Ok(100));
}

#[test]
fn awkward_periods_make_small_tables() {
    for periods in [&[3, 7, 11, 13, 17, 19, 23][..], &[10, 33, 100, 167, 200, 250, 1000]] {
        let plan = many(periods, 100).build().expect("a plan");
        assert!(plan.table_bytes() < 64 << 10, "{}", plan.table_bytes());
        let most = releases(&plan, 5_000_000_000).iter().map(|(_, n)| *n as u64).max();
        assert!(most <= Some(plan.peak()), "{most:?} of {}", plan.peak());
    }
}

#[test]
fn automotive_periods_peak_at_the_bound_or_one_above() {
    // Shares of periods as in engine control (Kramer et al., WATERS 2015), 100 tasks.
    let shares =
        [(1, 4), (2, 2), (5, 2), (10, 29), (20, 29), (50, 3), (100, 24), (200, 1), (1000, 6)];
    let mut tasks = Periodic::new();
    let mut bound = 0.0;
    for (period, n) in shares {
        bound += f64::from(n) / period as f64;
        for at in 0..n {
            tasks = tasks.task(task(&format!("{period}-{at}"), period));
        }
    }
    let plan = tasks.build().expect("a plan");
    assert_eq!(plan.tasks(), 100);
    assert!(plan.peak() <= 11, "{} with a bound of {bound}", plan.peak());
    let most = releases(&plan, 2_000_000_000).iter().map(|(_, n)| *n as u64).max();
    assert_eq!(most, Some(plan.peak()));
}

#[test]
fn phases_are_balanced_by_budget_where_there_is_one() {
    // Two heavy tasks and eight light ones: by number five and five, by weight apart.
    let heavy = |at| task(&format!("heavy{at}"), 2).budget(Duration::from_micros(300));
    let light = |at| task(&format!("light{at}"), 2).budget(Duration::from_micros(50));
    let ticks = || Periodic::new().tick_ns(1_000_000);
    let tasks = (0..2).map(heavy).chain((0..8).map(light));
    let plan = tasks.fold(ticks(), Periodic::task).build().expect("a plan");
    assert_eq!(plan.peak_load_ns(), Some(500_000));
    let phase = |name: &str| (0..10).find(|&r| plan.name(r) == name).map(|r| plan.phase_ns(r));
    assert_ne!(phase("heavy0"), phase("heavy1"));
    assert_eq!(plan.peak(), 5);
    // One so heavy that all others are better off together.
    let giant = task("giant", 2).budget(Duration::from_micros(1_500));
    let tasks = (0..8).map(light).chain([giant]);
    let plan = tasks.fold(ticks(), Periodic::task).build().expect("a plan");
    assert_eq!((plan.peak(), plan.peak_load_ns()), (8, Some(1_500_000)));
    assert_eq!(many(&[10], 3).build().map(|plan| plan.peak_load_ns()), Ok(None));
}

#[test]
fn ranks_follow_priority_or_else_the_shorter_period() {
    let plan = Periodic::new().task(task("slow", 10)).task(task("fast", 1)).build().expect("fine");
    assert_eq!((plan.name(0), plan.name(1)), ("fast", "slow"));
    let plan = Periodic::new()
        .task(task("fast", 1).priority(3))
        .task(task("slow", 10).priority(9))
        .build()
        .expect("fine");
    assert_eq!((plan.name(0), plan.name(1)), ("slow", "fast"));
}

#[test]
fn chains_and_fixed_phases_are_kept_to_the_nanosecond() {
    let plan = Periodic::new()
        .task(task("sense", 10).at(Duration::from_nanos(1_234_567)))
        .task(task("think", 10).after("sense", ns(2_000_001)))
        .task(task("act", 10).after("think", ns(7_000_000)))
        .task(task("other", 1))
        .build()
        .expect("a plan");
    let phase = |name| (0..4).find(|&rank| plan.name(rank) == name).map(|r| plan.phase_ns(r));
    assert_eq!(phase("sense"), Some(1_234_567));
    assert_eq!(phase("think"), Some(3_234_568));
    assert_eq!(phase("act"), Some(234_568));
}

#[test]
fn periods_without_a_common_measure_are_laid_out_all_the_same() {
    let odd = Task::every("odd", Period::ratio(333_333_333, 1_000).expect("in range"));
    let third = Task::every("third", Period::hz(3).expect("in range"));
    let plan = Periodic::new().task(odd).task(third).task(task("ms", 1)).build().expect("a plan");
    assert_eq!(plan.peak(), 3);
    let cycles = releases(&plan, 10_000_000_000).iter().map(|(_, n)| n).sum::<usize>();
    assert_eq!(cycles, 30_001 + 30 + 10_000);
}

#[test]
fn what_cannot_be_is_refused_with_the_names() {
    let refused = |tasks: Periodic, words: &[&str]| {
        let why = tasks.build().expect_err("refused").to_string();
        words.iter().for_each(|word| assert!(why.contains(word), "{word:?} in {why:?}"));
    };
    let with = |task: Task| Periodic::new().task(task);
    refused(with(task("a", 1)).tick_ns(0), &["tick"]);
    refused(with(task("", 1)), &["name must not be empty"]);
    let crowd = (0..=RANKS_MAX).map(|at| task(&at.to_string(), 1));
    refused(crowd.fold(Periodic::new(), Periodic::task), &["262145", "262144"]);
    refused(with(task("a", 1)).task(task("a", 2)), &["\"a\""]);
    refused(
        with(task("a", 1).budget(Duration::from_nanos(1_000_001))),
        &["\"a\"", "1000001 ns", "1000000 ns"],
    );
    refused(with(task("a", 1).budget(Duration::ZERO)), &["\"a\"", "greater than 0"]);
    refused(with(task("a", 1).deadline(Duration::ZERO)), &["\"a\"", "deadline"]);
    refused(with(task("a", 1).on_overrun(OnOverrun::Burst(0))), &["\"a\"", "burst"]);
    refused(with(task("a", 1).at(Duration::from_micros(1_000))), &["\"a\"", "1000000 ns"]);
    let after = |task: Task, name: &str| task.after(name, ns(5));
    refused(with(after(task("a", 1), "b")), &["\"a\"", "\"b\""]);
    refused(with(after(task("a", 1), "a")), &["after itself"]);
    refused(with(after(task("a", 1), "b")).task(task("b", 2)), &["one period"]);
    refused(with(task("a", 1).priority(1)).task(task("b", 1)), &["\"a\"", "\"b\""]);
    let half = |name: &str| task(name, 1).budget(Duration::from_micros(600));
    refused(with(half("a")).task(half("b")), &["1.200"]);
    assert!(with(half("a")).task(half("b")).allow_overload().build().is_ok());
    assert_eq!(Periodic::new().build().map(|plan| plan.tasks()), Ok(0));
}

/// A plan that follows one which runs.
mod successor {
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
        let kept = [
            task("third", 1_000_000, 3).at(Duration::from_nanos(77_777)),
            task("sense", 1_000_000, 1).at(Duration::from_micros(100)),
            task("act", 1_000_000, 1).after("sense", ns(250_001)),
            task("moves", 2_000_000, 1).on_overrun(OnOverrun::Delay).at(Duration::from_nanos(5)),
            task("odd", 10_000_000, 7),
        ];
        let before = all(&kept).build().expect("a plan");
        // Without the one that another is after, and with new ones of which one is after that.
        let mut next: Vec<Task> = kept[2..].to_vec();
        next.push(task("new", 1_000_000, 1).after("act", ns(250_001)));
        next.push(task("fast", 500_000, 1).priority(3));
        next.iter_mut().for_each(|task| *task = task.clone().priority(7));
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
        let half = |name: &str| task(name, 1_000_000, 1).budget(Duration::from_micros(600));
        let before = all(&[half("a")]).build().expect("a plan");
        let refused = |tasks: &[Task]| all(tasks).build_after(&before).err();
        let both = [half("a"), half("b")];
        assert_eq!(refused(&both), Some(overload(1.2, &both)));
        assert_eq!(refused(&[half("a"), half("a")]), Some(BuildError::SameName("a".to_owned())));
        let lost = task("b", 5, 1).after("c", Duration::ZERO);
        let unknown = BuildError::Unknown("b".to_owned(), "c".to_owned());
        assert_eq!(refused(&[half("a"), lost]), Some(unknown));
    }
}
