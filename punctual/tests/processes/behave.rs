//! The behaviour of the tests' tasks, and a supervisor that runs them.
//!
//! This program is its own tasks: started with a task block, `a_task` behaves as the task's name
//! says.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual::ErrorKind;
use punctual_core::time::Span;
use punctual_core::wait::{Sleep, Strategy};
use punctual_engine::periodic::{OnOverrun, Period, Task};
use punctual_engine::process::{
    BLOCK_VARIABLE, Event, EventKind, Finished, Registration, Spec, Stop, Supervisor,
};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::mapping::{Access, Mapping};
use punctual_os::{process, scheduler, threads};
use punctual_testkit::task;

/// Behaves as its name says, where a supervisor started it.
#[test]
fn a_task() {
    task::behave_if_started(behave);
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
        "endless" => hang_after_a_while(name),
        "forks" => starts_programs(name),
        "spins" => starts_spinners(name),
        "behind" => is_always_behind(name),
        "stubborn" => {
            obey(name, |_| true);
            endless();
        }
        "exits" => panic!("on purpose"),
        "rubbish" => rubbish(),
        "scribbles" => obey(name, |n| {
            if n == 3 {
                scribble();
                std::process::abort();
            }
            true
        }),
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
    let again = Registration::from_env(None).expect_err("once");
    assert_eq!(again.kind(), ErrorKind::Busy);
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

/// Sleeps for so long.
pub(crate) fn pause_ms(ms: u64) {
    let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + ms * 1_000_000);
}

/// The file in which a process says which processes its test is to look for.
pub(crate) fn notes(supervisor: u32, task: &str) -> PathBuf {
    std::env::temp_dir().join(format!("punctual-processes-{supervisor}-{task}"))
}

fn note(task: &str, pids: &[u32]) {
    let path = notes(process::parent().unsigned_abs(), task);
    let words: Vec<String> = pids.iter().map(u32::to_string).collect();
    // In one step: who reads it finds all or nothing.
    let new = path.with_extension("new");
    std::fs::write(&new, words.join(" ")).expect("writable");
    std::fs::rename(&new, &path).expect("there");
}

/// Runs a few cycles, and then one without end.
fn hang_after_a_while(name: &str) {
    obey(name, |n| {
        if n == 3 {
            note(name, &[std::process::id()]);
            endless();
        }
        true
    });
}

/// Starts two programs that would outlive it, one of them in a session of its own, and goes on as
/// the rest of its name says.
fn starts_programs(name: &str) {
    obey(name, |n| {
        if n == 2 {
            let start = |words: &[&str]| {
                Command::new(words[0]).args(&words[1..]).spawn().expect("it is there").id()
            };
            let both = [start(&["sleep", "60"]), start(&["setsid", "sleep", "60"])];
            for pid in both {
                let policy = scheduler::get(pid.cast_signed());
                assert_eq!(policy, Ok(scheduler::SchedPolicy::Other), "not the task's own");
            }
            note(name, &both);
            if name == "forks-hangs" {
                endless();
            }
        }
        n < 5
    });
}

/// Starts threads that spin: as they are, under a real-time policy that they take themselves, and
/// with a wait now and then.
fn starts_spinners(name: &str) {
    obey(name, |n| {
        if n == 1 {
            let inherited = std::thread::spawn(|| scheduler::get(0)).join().expect("no panic");
            assert_eq!(inherited, Ok(scheduler::SchedPolicy::Other), "not the task's own");
            for waits in [false, true] {
                std::thread::spawn(move || {
                    scheduler::set(0, scheduler::SchedPolicy::Fifo(1)).expect("the test made sure");
                    loop {
                        if waits {
                            pause_ms(1);
                        }
                        std::hint::spin_loop();
                    }
                });
            }
            note(name, &[std::process::id()]);
        }
        true
    });
}

/// Works longer than its period, again and again, until it has blocked all the same.
fn is_always_behind(name: &str) {
    let (pid, thread) = (std::process::id().cast_signed(), process::tid());
    let waits = || threads::account(pid, thread).expect("its own").waits;
    let first = Cell::new(0);
    obey(name, |n| {
        let until_ns = now_ns(ClockId::Monotonic) + 2 * PERIOD_NS;
        while now_ns(ClockId::Monotonic) < until_ns {
            std::hint::spin_loop();
        }
        if n == 1 {
            first.set(waits());
        }
        waits() == first.get() || n == 1
    });
}

/// Fills its own block, again and again.
fn rubbish() {
    let number = std::env::var(BLOCK_VARIABLE).expect("a task block").parse().expect("a number");
    let memory = Mapping::of(number, None, Access::Write).expect("a task block");
    let mut seed = 7u64;
    loop {
        for word in memory.words() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word.store(seed >> (seed >> 58), Ordering::Relaxed);
        }
    }
}

/// Overwrites the header of the block and the word that says which output counts.
fn scribble() {
    let number = std::env::var(BLOCK_VARIABLE).expect("a task block").parse().expect("a number");
    let memory = Mapping::of(number, None, Access::Write).expect("a task block");
    memory.words()[..64].iter().for_each(|word| word.store(3, Ordering::Relaxed));
}

/// The period of the tasks.
pub(crate) const PERIOD_NS: u64 = 2_000_000;

/// A task of 2 ms that behaves as its name says.
pub(crate) fn spec(name: &str) -> Spec {
    let task = Task::every(name, Period::ratio(PERIOD_NS, 1).expect("in range"));
    let own = std::env::current_exe().expect("this program").into_os_string();
    let words = ["--exact", "behave::a_task", "--nocapture", "--test-threads=1"];
    let mut spec = Spec::new(task, std::iter::once(own).chain(words.map(Into::into)).collect());
    spec.register_within = Span::from_ms(60_000);
    spec.safe = vec![0xff; 8];
    spec
}

pub(crate) fn policy(spec: Spec, policy: OnOverrun) -> Spec {
    Spec { task: spec.task.clone().on_overrun(policy), ..spec }
}

/// Runs until `enough` says so of an event, or until it ends by itself.
pub(crate) fn run(
    supervisor: Supervisor,
    enough: impl Fn(&Event, &[Event]) -> bool,
) -> (Finished, Vec<Event>) {
    let stop = AtomicBool::new(false);
    let events = RefCell::new(Vec::new());
    let ready = supervisor.build().expect("fine");
    let finished = ready.run(
        Strategy::Sleep(Sleep),
        Some(Span::from_ms(120_000)),
        Stop::new(&stop),
        &mut |event| {
            let mut events = events.borrow_mut();
            if enough(&event, &events) {
                stop.store(true, Ordering::Relaxed);
            }
            events.push(event);
        },
    );
    (finished.expect("threads"), events.into_inner())
}

pub(crate) fn count(
    events: &[Event],
    task: &str,
    is_counted: impl Fn(&EventKind) -> bool,
) -> usize {
    events.iter().filter(|event| event.task == task && is_counted(&event.kind)).count()
}
