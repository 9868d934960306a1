//! Programs in C as tasks of a supervisor: they register, wait, give out and leave.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::time::Span;
use punctual_core::wait::{Sleep, Strategy};
use punctual_engine::periodic::{OnOverrun, Period, Task};
use punctual_engine::process::{EventKind, ProcessEnd, Spec, Stop, Supervisor, Watch};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

use crate::built::{compile, need, program};
use crate::programs::source;

/// A task of 2 ms that is the program in that mode, with an output of 8 bytes.
fn spec(mode: &str, policy: OnOverrun) -> Spec {
    let name = format!("process-{mode}");
    let built = compile(&name, &program("gcc"), &source("process.c"), &["-std=c11"]);
    let task = Task::every(mode, Period::ratio(2_000_000, 1).expect("in range")).on_overrun(policy);
    let mut spec = Spec::new(task, vec![built.into_os_string(), mode.into()]);
    spec.register_within = Span::from_ms(60_000);
    spec.safe = vec![0xff; 8];
    spec
}

#[test]
fn a_task_is_watched_from_another_process() {
    if !need(&["g++"]) {
        return;
    }
    let name = format!("capi-watch-{}", std::process::id());
    let mut empty = spec("empty", OnOverrun::Skip);
    empty.command.clear();
    let ready =
        Supervisor::new().name(&name).task(spec("good", OnOverrun::Skip)).task(empty).build();
    let (ready, stop) = (ready.expect("fine"), AtomicBool::new(false));
    // Before the supervisor starts: a busy machine takes as long for a compiler as it runs.
    let built = |flags: &[&str], compiler: &str| {
        compile(&format!("watch-{compiler}"), &program(compiler), &source("watch.c"), flags)
    };
    let programs = [built(&["-std=c11"], "gcc"), built(&["-std=c++17", "-x", "c++"], "g++")];
    let [c, cpp] = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let outputs =
                programs.map(|built| Command::new(built).arg(&name).output().expect("it starts"));
            stop.store(true, Ordering::Relaxed);
            outputs
        });
        let run = ready.run(
            Strategy::Sleep(Sleep),
            Some(Span::from_ms(120_000)),
            Stop::new(&stop),
            &mut |_| {},
        );
        run.expect("threads");
        watching.join().expect("no panic")
    });
    for seen in [c, cpp] {
        let printed = String::from_utf8_lossy(&seen.stderr).into_owned();
        assert!(seen.status.success(), "{printed}");
    }
}

#[test]
fn a_task_in_c_stays_where_it_cannot_be_unregistered() {
    if !need(&[]) {
        return;
    }
    let ready = Supervisor::new().task(spec("stays", OnOverrun::Skip)).build().expect("fine");
    let stop = AtomicBool::new(false);
    let finished = ready.run(
        Strategy::Sleep(Sleep),
        Some(Span::from_ms(60_000)),
        Stop::new(&stop),
        &mut |event| {
            if matches!(event.kind, EventKind::Ended(_)) {
                stop.store(true, Ordering::Relaxed);
            }
        },
    );
    let task = &finished.expect("threads").tasks[0];
    assert_eq!((task.exit, task.failed), (Some(ProcessEnd::Status(0)), false));
}

#[test]
fn a_task_in_c_runs_until_it_is_ended_or_leaves() {
    if !need(&[]) {
        return;
    }
    let name = format!("capi-runs-{}", std::process::id());
    let both =
        Supervisor::new().task(spec("good", OnOverrun::Skip)).task(spec("leaves", OnOverrun::Skip));
    let ready = both.name(&name).build().expect("fine");
    let (left, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let ran = || {
        let watch = Watch::open(&name, "good").ok()?;
        watch.page().map(|page| page.counts().ran)
    };
    // One may leave before the other has begun.
    let enough = || left.load(Ordering::Relaxed) && ran().is_some_and(|ran| ran > 0);
    let finished = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) && !enough() {
                // An interruption costs an extra look.
                let _woken = sleep_until_ns(now_ns(ClockId::Monotonic) + 5_000_000);
            }
            stop.store(true, Ordering::Relaxed);
        });
        ready.run(
            Strategy::Sleep(Sleep),
            Some(Span::from_ms(60_000)),
            Stop::new(&stop),
            &mut |event| {
                if event.task == "leaves"
                    && matches!(event.kind, EventKind::Ended(_) | EventKind::Unregistered)
                {
                    left.store(true, Ordering::Relaxed);
                }
            },
        )
    });
    let finished = finished.expect("threads");
    let task = |name: &str| finished.tasks.iter().find(|task| task.name == name).expect("one");
    let outcome = |name: &str| {
        let task = task(name);
        let counts = (task.figures.counts, task.starts, task.unattended, task.invalid);
        format!("{name}: {:?} {counts:?}, the run {:?}", task.exit, finished.over)
    };
    assert_eq!(task("leaves").figures.counts.ran, 5, "{}", outcome("leaves"));
    assert!(task("good").figures.counts.ran > 0, "{}", outcome("good"));
    for name in ["good", "leaves"] {
        assert_eq!(
            (task(name).exit, task(name).failed),
            (Some(ProcessEnd::Status(0)), false),
            "{name}"
        );
    }
}
