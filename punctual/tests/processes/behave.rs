//! What the tasks of the tests do, and how a supervisor runs them.
//!
//! This program is its own tasks: started with a seat, the test `a_task` behaves as the task's name
//! says.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual::core::time::Span;
use punctual::core::wait::Sleep;
use punctual::os::mapping::{Access, Mapping};
use punctual::periodic::{Policy, Rate, Task};
use punctual::process::{
    Event, Finished, RegisterError, Registration, SEAT_VARIABLE, Spec, Supervisor, TASK_VARIABLE,
    What,
};

/// Behaves as its name says, where a supervisor started it. Ends without a word of the harness, or
/// its result would be counted with those of the tests.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "this process is a task of the tests, and ends as one"
)]
fn a_task() {
    let Ok(name) = std::env::var(TASK_VARIABLE) else { return };
    let behaved = std::panic::catch_unwind(|| behave(&name));
    std::process::exit(if behaved.is_ok() { 0 } else { 101 });
}

fn behave(name: &str) {
    match name.split('-').next().unwrap_or_default() {
        "good" => obey(name, |_| true),
        "leaves" => obey(name, |n| n < 5),
        "works" => obey(name, |n| n < WORKS),
        "hangs" => obey(name, |n| {
            if n == 3 {
                endless();
            }
            true
        }),
        "crashes" => obey(name, |n| {
            if n == 3 {
                std::process::abort();
            }
            true
        }),
        "silent" => endless(),
        "deaf" => {
            let _never_waits = Registration::from_env(None).expect("a supervisor started it");
            loop {
                std::thread::park();
            }
        }
        "exits" => panic!("on purpose"),
        "rubbish" => rubbish(),
        other => panic!("no behaviour {other:?}"),
    }
}

/// Cycles of a task that works.
pub(crate) const WORKS: u64 = 60;

fn endless() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// Runs cycles, gives out their number, until the end or until `go_on` says so.
fn obey(name: &str, go_on: impl Fn(u64) -> bool) {
    assert!(Registration::from_env(Some("another")).is_err(), "it is not that one");
    let mut task = Registration::from_env(Some(name)).expect("a supervisor started it");
    assert!(matches!(Registration::from_env(None), Err(RegisterError::Taken)));
    let mut ran = 0u64;
    while let Ok(cycle) = task.wait() {
        assert!(cycle.release < cycle.next);
        ran += 1;
        task.commit(&ran.to_ne_bytes());
        if !go_on(ran) {
            return task.unregister();
        }
    }
}

/// Fills its own seat, again and again.
fn rubbish() {
    let number = std::env::var(SEAT_VARIABLE).expect("a seat").parse().expect("a number");
    let memory = Mapping::of(number, None, Access::Write).expect("a seat");
    let mut seed = 7u64;
    loop {
        for word in memory.words() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word.store(seed >> (seed >> 58), Ordering::Relaxed);
        }
    }
}

/// A task of 2 ms that behaves as its name says.
pub(crate) fn spec(name: &str) -> Spec {
    let task = Task::new(name, Rate::new(2_000_000, 1).expect("in range"));
    let own = std::env::current_exe().expect("this program").into_os_string();
    let words = ["--exact", "behave::a_task", "--nocapture", "--test-threads=1"];
    let mut spec = Spec::new(task, std::iter::once(own).chain(words.map(Into::into)).collect());
    spec.register_within = Span::from_ms(60_000);
    spec.safe = vec![0xff; 8];
    spec
}

pub(crate) fn policy(spec: Spec, policy: Policy) -> Spec {
    Spec { task: spec.task.clone().policy(policy), ..spec }
}

/// Runs until `enough` says so of an event, or until it ends by itself.
pub(crate) fn run(
    supervisor: Supervisor,
    enough: impl Fn(&Event, &[Event]) -> bool,
) -> (Finished, Vec<Event>) {
    let stop = AtomicBool::new(false);
    let events = RefCell::new(Vec::new());
    let ready = supervisor.build().expect("fine");
    let finished = ready.run(Sleep, Some(Span::from_ms(120_000)), &stop, &mut |event| {
        let mut events = events.borrow_mut();
        if enough(&event, &events) {
            stop.store(true, Ordering::Relaxed);
        }
        events.push(event);
    });
    (finished, events.into_inner())
}

pub(crate) fn count(events: &[Event], task: &str, what: impl Fn(&What) -> bool) -> usize {
    events.iter().filter(|event| event.task == task && what(&event.what)).count()
}
