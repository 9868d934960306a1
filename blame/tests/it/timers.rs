//! Whose timers are: of several that a thread starts, the one that it waits for.

use punctual_blame::blame::Blame;
use punctual_blame::cause::{CauseKind, LateCause};
use punctual_blame::config::{RecordingBegin, RunnableThread};
use punctual_blame::outcome::OpenWakes;
use punctual_trace::event::{TaskName, TraceKind};

use crate::scenario::{
    DEADLINE, MS, PERIOD, Scenario, TICK, TIMER, TIMERFD, US, WAKEUP, cat, config, disturbed, hog,
    idle, ktimers, only_cause, servo,
};

/// The timer of the fair server of CPU 0.
const SERVER: u64 = 0xffff_8880_0005_0000;

fn start(timer: u64, function: u64, expires_ns: u64) -> TraceKind {
    let expires_ns = expires_ns as i64;
    TraceKind::TimerStart { timer, function, expires_ns, soft_expires_ns: expires_ns }
}

/// The CPU's interrupt calls a timer's function that wakes nobody.
fn expire(scenario: &mut Scenario, at_ns: u64, timer: u64) {
    scenario.timer_entry(at_ns, 0).expire(at_ns + 500, 0, timer, DEADLINE);
    scenario.timer_exit(at_ns + 3 * US, 0);
}

#[test]
fn the_timer_of_the_fair_server_releases_nobody_who_started_it() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    for _ in 0..12 {
        // It wakes the first ordinary thread of its CPU.
        let release = scenario.release;
        scenario.event(release - 1_900 * US, 0, start(SERVER, DEADLINE, release - 400 * US));
        scenario.wake(release - 1_899 * US, 0, cat(), 0);
        scenario.sleep(cat());
        expire(&mut scenario, release - 400 * US, SERVER);
        scenario.fire(release + 5 * US).start(release + 6 * US);
    }
    let outcome = scenario.run(config());
    assert_eq!((outcome.table.wakes, outcome.table.late), (52, 0), "{}", outcome.table.sentence);
}

#[test]
fn a_timer_that_the_kernel_starts_while_a_thread_runs_is_not_that_threads() {
    // The tick, which is started again in its own interrupt, and the fair server's timer.
    for (timer, function) in [(0x77_0000, TICK), (SERVER, DEADLINE)] {
        let outcome = disturbed(|scenario| {
            let release = scenario.release;
            let started = release - 1_900 * US;
            scenario.timer_entry(started, 0).event(
                started + US,
                0,
                start(timer, function, release),
            );
            scenario.timer_exit(started + 2 * US, 0);
            scenario.sleep(cat());
            scenario.timer_entry(release + 5 * US, 0);
            scenario.expire(release + 6 * US, 0, timer, function);
            scenario.expire(release + 156 * US, 0, TIMER, WAKEUP);
            scenario.wake(release + 157 * US, 0, servo(), 0).start(release + 157 * US);
        });
        let row = only_cause(&outcome, CauseKind::OtherTimers);
        assert_eq!(row.cause, LateCause::OtherTimers { function, armer: TaskName::default() });
    }
}

#[test]
fn a_thread_that_loses_the_cpu_on_its_way_to_sleep_is_late_by_who_took_it() {
    let outcome = disturbed(|scenario| {
        let release = scenario.release;
        scenario.release += PERIOD;
        scenario.arm(release - 20 * US, 0, release);
        scenario.wake(release - 10 * US, 1, hog(), 0);
        // Preempted, still on the run queue.
        scenario.switch(release - 5 * US, 0, 0x100, hog());
        scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
        scenario.switch(release + 300 * US, 0, 1, servo());
    });
    let row = only_cause(&outcome, CauseKind::HigherPriority);
    assert_eq!(row.cause, LateCause::HigherPriority { task: hog() });
    assert_eq!(outcome.table.wakes, 40 + 24);
    assert_eq!((outcome.worst[0].ran_ns - outcome.worst[0].release_ns), 300 * US);
}

#[test]
fn a_timer_that_its_thread_serves_late_is_late_however_long_that_takes() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    for late in [90 * MS, 150 * MS] {
        let release = scenario.sleep(hog());
        // The thread that serves it read the clock for the timer before, and lost the CPU.
        scenario.switch(release + late, 0, 1, ktimers());
        let now_ns = (release + 5 * US) as i64;
        let expires = TraceKind::TimerExpireEntry { timer: TIMER, function: TIMERFD, now_ns };
        scenario.event(release + late + US, 0, expires).wake(
            release + late + 2 * US,
            0,
            servo(),
            0,
        );
        scenario.event(release + late + 3 * US, 0, TraceKind::TimerExpireExit { timer: TIMER });
        scenario.switch(release + late + 5 * US, 0, 0, servo());
        scenario.release += late;
    }
    let outcome = scenario.run(config());
    assert_eq!((outcome.table.late, outcome.counts.clock_steps), (2, 0));
    assert_eq!(outcome.threads[0].figures.max.least_ns(), 150 * MS + 5 * US);
}

#[test]
fn a_deadline_thread_that_waits_for_its_budget_at_the_begin_is_released_by_that() {
    const BUDGET: u64 = 0xffff_8880_0006_0000;
    let thread = TaskName { kernel_priority: -1, ..servo() };
    // Its timer was started before, and that was not seen.
    let mut scenario = Scenario::on([idle(), idle()]);
    scenario.timer_entry(14 * MS, 0).expire(14 * MS + US, 0, BUDGET, DEADLINE);
    scenario.timer_exit(14 * MS + 3 * US, 0).switch(14 * MS + 10 * US, 0, 0, thread);
    scenario.event(15 * MS, 0, start(BUDGET, DEADLINE, 16 * MS));
    scenario.switch(15 * MS + US, 0, 0, idle());
    scenario.timer_entry(16 * MS, 0).expire(16 * MS + US, 0, BUDGET, DEADLINE);
    scenario.timer_exit(16 * MS + 3 * US, 0).switch(16 * MS + 10 * US, 0, 0, thread);
    scenario.event(17 * MS, 0, start(BUDGET, DEADLINE, 900 * MS));
    scenario.switch(17 * MS + US, 0, 0, idle());
    let mut blame = Blame::new(config());
    let runnable = vec![RunnableThread { task: thread, cpu: 0 }];
    blame.begin(&RecordingBegin { at_ns: 9 * MS, runnable });
    scenario.events.iter().for_each(|event| blame.push(event));
    let outcome = blame.finish();
    let latest_ns = outcome.threads[0].figures.max.least_ns();
    assert_eq!((outcome.table.wakes, latest_ns), (1, 10 * US), "{:#?}", outcome.worst);
    assert_eq!(outcome.threads[0].open, OpenWakes::default());
}

#[test]
fn a_deadline_thread_has_its_own_timer_beside_the_fair_servers() {
    const BUDGET: u64 = 0xffff_8880_0006_0000;
    let thread = TaskName { kernel_priority: -1, ..servo() };
    // Either it yields the rest of its budget, or it sleeps by a timer as others do.
    for is_yielding in [true, false] {
        let mut scenario = Scenario::new();
        scenario.switch(9 * MS, 0, 0, thread);
        for _ in 0..20 {
            let release = scenario.release;
            scenario.release += PERIOD;
            scenario.event(release - 950 * US, 0, start(SERVER, DEADLINE, release - 400 * US));
            let (timer, function, state) =
                if is_yielding { (BUDGET, DEADLINE, 0) } else { (TIMER, WAKEUP, 1) };
            scenario.event(release - 900 * US, 0, start(timer, function, release));
            scenario.switch(release - 899 * US, 0, state, idle());
            expire(&mut scenario, release - 400 * US, SERVER);
            scenario.timer_entry(release + 5 * US, 0);
            scenario.expire(release + 6 * US, 0, timer, function);
            if !is_yielding {
                scenario.wake(release + 7 * US, 0, thread, 0);
            }
            scenario.timer_exit(release + 9 * US, 0).switch(release + 10 * US, 0, 0, thread);
        }
        let outcome = scenario.run(config());
        let latest_ns = outcome.threads[0].figures.max.least_ns();
        assert_eq!((outcome.table.wakes, latest_ns), (20, 10 * US), "{is_yielding}");
    }
}
