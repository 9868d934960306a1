//! Nothing is left of tasks, and no priority, however they and their supervisor end.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::block::Source;
use punctual_core::time::Span;
use punctual_core::wait::{Sleep, Strategy};
use punctual_engine::periodic::{OnOverrun, Period, Task};
use punctual_engine::process::{
    Cause, EventKind, Over, ProcessEnd, Registration, Spec, Stop, Supervisor, TASK_VARIABLE, Watch,
};
use punctual_os::child::{self, Confinement, Program, Status, Text};
use punctual_os::scheduler::{self, SchedPolicy as Scheduling};
use punctual_os::{Errno, process, signal, threads};
use punctual_testkit::skip;

use crate::behave::{PERIOD_NS, WORKS, count, notes, pause_ms, policy, run, spec};
use crate::{ended_by, name};

/// Says to this program, run once more, that it is to supervise the task of this name.
pub(crate) const SUPERVISE: &str = "PUNCTUAL_TEST_SUPERVISE";
/// The name of that supervisor.
const CALLED: &str = "PUNCTUAL_TEST_CALLED";
/// Says to this program, run once more, that it is to run on and on under SCHED_FIFO.
const SPIN: &str = "PUNCTUAL_TEST_SPIN";

/// Supervises one task until that leaves, where a test runs it; a task named "open" is for who
/// joins.
#[test]
fn a_supervisor() {
    let Ok(task) = std::env::var(SUPERVISE) else { return };
    if std::env::var_os(TASK_VARIABLE).is_some() {
        return;
    }
    let mut spec = spec(&task);
    if task == "open" {
        spec.command.clear();
    }
    let called = std::env::var(CALLED).ok();
    let supervisor = called.map_or(Supervisor::new(), |name| Supervisor::new().name(name));
    let (finished, _) = run(supervisor.task(spec), |_, _| false);
    assert_eq!(finished.tasks[0].figures.counts.ran, WORKS);
}

/// Starts this program as a supervisor of that task.
fn supervise(task: &str, called: Option<&str>) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "left::a_supervisor", "--nocapture", "--test-threads=1"]);
    command.env(SUPERVISE, task).stdout(Stdio::null()).stderr(Stdio::null());
    command.envs(called.map(|name| (CALLED, name)));
    command.spawn().expect("it starts")
}

/// Waits, a minute at most, until there is something.
fn until<T>(awaited: &str, mut found: impl FnMut() -> Option<T>) -> T {
    for _ in 0..6_000 {
        if let Some(found) = found() {
            return found;
        }
        pause_ms(10);
    }
    panic!("waited for {awaited}");
}

/// The processes that a task named.
fn noted(supervisor: u32, task: &str) -> Vec<i32> {
    let path = notes(supervisor, task);
    let text = until("a note", || fs::read_to_string(&path).ok());
    fs::remove_file(&path).expect("it was made for this");
    text.split(' ').map(|pid| pid.parse().expect("a number")).collect()
}

/// Returns true where a process has ended, whether or not somebody has waited for it.
fn is_gone(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn after_kill_9_of_the_supervisor_no_task_is_left() {
    for task in ["endless", "silent-forever"] {
        let mut supervisor = supervise(task, None);
        let tasks = match task {
            // It never says anything: its supervisor has no other child.
            "silent-forever" => until("its process", || {
                let found = children(supervisor.id());
                // Once it runs its own program.
                let program = |pid| fs::read_to_string(format!("/proc/{pid}/cmdline"));
                let runs = |pid| program(pid).is_ok_and(|words| words.contains("a_task"));
                (!found.is_empty() && found.iter().all(runs)).then_some(found)
            }),
            _ => noted(supervisor.id(), task),
        };
        supervisor.kill().expect("ours");
        supervisor.wait().expect("ours");
        until("the task's end", || tasks.iter().all(|&pid| is_gone(pid)).then_some(()));
    }
}

/// The processes that any thread of a process started.
fn children(pid: u32) -> Vec<i32> {
    let mut children = Vec::new();
    // One that is gone has none.
    let _gone = threads::of(pid.cast_signed(), |thread| {
        let path = format!("/proc/{pid}/task/{thread}/children");
        let text = fs::read_to_string(path).unwrap_or_default();
        children.extend(text.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    });
    children
}

#[test]
fn what_a_task_started_ends_with_it() {
    // One leaves by itself; one overruns, which ends everything, and has to be ended.
    let leaves = (spec("forks-leaves"), ProcessEnd::Status(0));
    let hangs = (policy(spec("forks-hangs"), OnOverrun::Stop), ProcessEnd::Signal(9));
    for (spec, exit) in [leaves, hangs] {
        let task = spec.task.name().to_owned();
        let (finished, events) = run(Supervisor::new().task(spec), |_, _| false);
        let [first, second] = noted(std::process::id(), &task)[..] else { panic!("two") };
        assert_eq!(finished.tasks[0].exit, Some(exit), "{events:?}");
        assert!(is_gone(first), "in its process group");
        // One that left the group is found by the cgroup alone.
        let group = fs::read_to_string(format!("/proc/{second}/cgroup")).unwrap_or_default();
        let own = group.lines().any(|line| line.starts_with("0::") && line.contains("/punctual-"));
        if !is_gone(second) {
            process::end(second, process::EndSignal::Kill).expect("it was started here");
            assert!(!own, "its cgroup ended without it");
            let _counted = skip::need_device("a cgroup that processes may divide", false);
        }
    }
}

#[test]
fn threads_that_take_a_priority_and_never_wait_lose_it() {
    if !skip::need_fifo() {
        return;
    }
    let task = "spins";
    let (finished, events) = run(Supervisor::new().task(spec(task)), |event, _| {
        matches!(event.kind, EventKind::ThreadsDemoted(_))
    });
    let [pid] = noted(std::process::id(), task)[..] else { panic!("one") };
    assert_eq!(
        count(&events, task, |event| *event == EventKind::ThreadsDemoted(1)),
        1,
        "{events:?}"
    );
    let row = &finished.tasks[0];
    // The registered thread, and the one that waits, kept theirs.
    assert_eq!((row.threads_demoted, row.failed), (1, false), "{events:?}");
    assert!(matches!(row.policy, Some(Scheduling::Fifo(_))) && is_gone(pid));
}

#[test]
fn who_is_in_a_hurry_ends_tasks_at_once_and_outputs_are_safe() {
    let (supervisor, stop) = (name("hurry"), AtomicBool::new(false));
    let made = Supervisor::new().name(&supervisor).task(spec("stubborn")).build().expect("fine");
    let socket = punctual_engine::process::socket(&supervisor).expect("a name");
    let (watch, events) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let watch = Watch::open(&supervisor, "stubborn").expect("it runs");
            let mut bytes = [0; 8];
            until("an output", || (watch.output(&mut bytes) == Some(Source::Task)).then_some(()));
            stop.store(true, Ordering::Relaxed);
            watch
        });
        let mut events = Vec::new();
        let stop = Stop::new(&stop).hurry(&stop);
        let run =
            made.run(Strategy::Sleep(Sleep), Some(Span::from_ms(120_000)), stop, &mut |event| {
                events.push(event);
            });
        run.expect("threads");
        (watching.join().expect("no panic"), events)
    });
    assert_eq!(
        count(&events, "stubborn", |w| *w == EventKind::Killed(Cause::Over)),
        1,
        "{events:?}"
    );
    let mut bytes = [0; 8];
    assert_eq!((watch.output(&mut bytes), bytes), (Some(Source::Safe), [0xff; 8]));
    assert!(!socket.exists() && watch.is_supervised(), "this process runs on");
}

#[test]
fn a_supervisor_that_panics_leaves_no_task() {
    let ready = Supervisor::new().task(spec("good")).build().expect("fine");
    let started = std::cell::Cell::new(0);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let stop = AtomicBool::new(false);
        ready.run(Strategy::Sleep(Sleep), None, Stop::new(&stop), &mut |event| match event.kind {
            EventKind::Started(pid) => started.set(pid.cast_signed()),
            EventKind::Registered => panic!("on purpose"),
            _ => {}
        })
    }));
    assert!(panicked.is_err());
    until("the task's end", || is_gone(started.get()).then_some(()));
}

#[test]
fn a_loop_that_sleeps_for_an_hour_ends_when_it_is_to() {
    signal::catch_interrupt().expect("SIGURG can be caught");
    let hour = Task::every("seldom", Period::ratio(3_600_000_000_000, 1).expect("in range"));
    let made = Supervisor::new().task(Spec::new(hour, Vec::new())).build().expect("fine");
    let stop = AtomicBool::new(false);
    let over = std::thread::scope(|scope| {
        let run =
            scope.spawn(|| made.run(Strategy::Sleep(Sleep), None, Stop::new(&stop), &mut |_| {}));
        // So that the loop sleeps already.
        pause_ms(300);
        stop.store(true, Ordering::Relaxed);
        run.join().expect("no panic").expect("threads").over
    });
    assert_eq!(over, Over::Stopped);
}

#[test]
fn who_joined_loses_its_priority_with_the_supervisor() {
    let supervisor = name("gone");
    let mut process = supervise("open", Some(&supervisor));
    let own = || scheduler::get(0).expect("own");
    let mut task = until("the supervisor", || Registration::join(&supervisor, "open").ok());
    let watch = Watch::open(&supervisor, "open").expect("it runs");
    assert!(task.wait().is_ok() && task.commit(&[1; 8]) && watch.is_supervised());
    let granted = own();
    process.kill().expect("ours");
    process.wait().expect("ours");
    while !ended_by(task.wait(), Errno::PIPE) {}
    assert_eq!(own(), Scheduling::Other, "it had {granted:?}");
    // What a reader can tell: the output is the task's for ever, and nobody is there.
    assert_eq!(watch.output(&mut [0; 8]), Some(Source::Task));
    assert!(!watch.is_supervised());
    // One that ends otherwise takes the priority back itself.
    let mut open = spec("open");
    open.command.clear();
    let made = Supervisor::new().name(&supervisor).task(open).build().expect("the name is free");
    let stop = AtomicBool::new(false);
    let (after, ended) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (supervisor, stop) = (&supervisor, &stop);
        let guest = scope.spawn(move || {
            let mut task = Registration::join(supervisor, "open").expect("free");
            assert!(task.wait().is_ok());
            stop.store(true, Ordering::Relaxed);
            while !ended_by(task.wait(), Errno::CANCELED) {}
            ended.recv().expect("it says so");
            own()
        });
        made.run(Strategy::Sleep(Sleep), None, Stop::new(stop), &mut |_| {}).expect("threads");
        after.send(()).expect("it waits");
        assert_eq!(guest.join().expect("no panic"), Scheduling::Other);
    });
}

#[test]
fn a_task_that_is_always_behind_blocks_now_and_then() {
    // It runs the releases that passed, so that the next one is always there already.
    let behind = policy(spec("behind"), OnOverrun::Burst(4));
    let (finished, events) = run(Supervisor::new().task(behind), |_, _| false);
    assert_eq!(finished.over, Over::AllGone);
    assert!(!finished.tasks[0].failed, "{events:?}");
}

#[test]
fn only_tasks_get_a_limit_of_real_time() {
    let limit = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("Max realtime timeout"));
        line.map(|line| line.split_whitespace().nth(3).unwrap_or_default().to_owned())
    };
    let own = limit(std::process::id());
    let seen = std::cell::RefCell::new(None);
    run(Supervisor::new().task(spec("good")), |event, before| {
        // Under an emulator of user space a process is started before it has its limit.
        let registered = event.kind == EventKind::Registered;
        if registered {
            let pid = before.iter().find_map(|event| match event.kind {
                EventKind::Started(pid) => Some(pid),
                _ => None,
            });
            *seen.borrow_mut() = pid.and_then(limit);
        }
        registered
    });
    // Ten times what the guard allows, a second here, and one cycle.
    let expected_us = 10 * (1_000_000 + PERIOD_NS / 1_000);
    assert_eq!(seen.into_inner(), Some(expected_us.to_string()));
    assert_eq!(limit(std::process::id()), own);
}

/// Runs on and on under SCHED_FIFO, where the test below starts it.
#[test]
fn a_spinner() {
    if std::env::var_os(SPIN).is_none() {
        return;
    }
    process::alarm_s(60);
    scheduler::set(0, Scheduling::Fifo(1)).expect("the test made sure");
    loop {
        std::hint::spin_loop();
    }
}

#[test]
fn without_any_guard_the_kernel_ends_what_runs_on() {
    if !skip::need_fifo() || !skip::need_native("limits of the kernel") {
        return;
    }
    let text = |words: &str| std::ffi::CString::new(words).expect("no zero");
    let own = std::env::current_exe().expect("this program");
    let path = text(own.to_str().expect("UTF-8"));
    let words = ["processes", "--exact", "left::a_spinner", "--nocapture"].map(text);
    let null = fs::File::options().read(true).write(true).open("/dev/null").expect("there");
    let null = std::os::fd::AsRawFd::as_raw_fd(&null);
    let pid = child::start(&Program {
        path: &path,
        arguments: &words
            .each_ref()
            .map(|word| Text::of(word))
            .into_iter()
            .chain([Text::END])
            .collect::<Vec<_>>(),
        environment: &[Text::of(c"PUNCTUAL_TEST_SPIN=1"), Text::END],
        input: null,
        output: null,
        inherited: &[],
        realtime_us: 200_000,
        cgroup: None,
        confinement: Confinement::default(),
    })
    .expect("it starts");
    let status = until("its end", || child::status(pid).expect("ours"));
    assert_eq!(status, Status::Killed(9), "not by its alarm");
    child::reap(pid).expect("ours");
}
