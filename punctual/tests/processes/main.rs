//! Tasks as real processes under a real supervisor: who ran, who was ended, who was disturbed.
//!
//! This program is its own tasks ([`behave`]). Nothing here asserts a time; a run is over when what
//! is to be seen was seen.

mod behave;
mod left;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use punctual::{Error, ErrorKind, Period, RtThread, Task, WaitPolicy};
use punctual_core::block::Source;
use punctual_core::cycle::Cycle;
use punctual_core::time::Span;
use punctual_core::wait::{Sleep, Strategy};
use punctual_engine::periodic::OnOverrun;
use punctual_engine::process::{
    Cause, Event, EventKind, Over, ProcessEnd, Registration, Restart, Spec, Stop, Supervisor, Watch,
};
use punctual_os::Errno;
use punctual_testkit::skip;

use behave::{WORKS, count, policy, run, spec};
use left::SUPERVISE;

#[test]
fn good_tasks_run_beside_broken_ones_and_hear_of_the_end() {
    let (broken, supervisor) = (["crashes", "exits", "rubbish"], name("broken"));
    let made = Supervisor::new().name(&supervisor).task(spec("good"));
    let made = broken.iter().fold(made, |tasks, name| tasks.task(spec(name)));
    let made = made.build().expect("fine");
    let (stop, over) = (AtomicBool::new(false), AtomicU32::new(0));
    let mut events = Vec::new();
    let finished = std::thread::scope(|scope| {
        // Once the broken ones are given up and the good one ran, whichever comes last.
        scope.spawn(|| {
            let watch = Watch::open(&supervisor, "good").expect("it runs");
            let ran = || watch.page().map_or(0, |page| page.counts().ran);
            while over.load(Ordering::Relaxed) < 3 || ran() == 0 {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        made.run(Strategy::Sleep(Sleep), None, Stop::new(&stop), &mut |event| {
            over.fetch_add(u32::from(event.kind == EventKind::GivenUp), Ordering::Relaxed);
            events.push(event);
        })
    });
    let finished = finished.expect("threads");
    let task = |name: &str| finished.tasks.iter().find(|task| task.name == name).expect("one");
    assert_eq!(finished.over, Over::Stopped);
    let good = task("good");
    assert!(good.figures.counts.ran > 0 && good.invalid == 0, "{events:?}");
    assert_eq!((good.exit, good.failed, good.starts), (Some(ProcessEnd::Status(0)), false, 1));
    assert_eq!(
        good.figures.buckets.iter().sum::<u64>()
            + good.figures.counts.below
            + good.figures.counts.above,
        good.figures.counts.ran + good.figures.counts.missed
    );
    assert_eq!(task("crashes").exit, Some(ProcessEnd::Signal(6)));
    assert_eq!(task("crashes").figures.counts.ran, 3, "the third began, as far as it came");
    assert_eq!(task("exits").exit, Some(ProcessEnd::Status(101)));
    assert_eq!(task("rubbish").exit, Some(ProcessEnd::Signal(9)));
    // What it writes there may be a task that asks, of a thread that is not its own.
    let for_rubbish =
        |w: &EventKind| matches!(w, EventKind::Killed(Cause::Invalid | Cause::ForeignThread));
    assert_eq!(count(&events, "rubbish", for_rubbish), 1);
    assert!(broken.iter().all(|name| task(name).failed));
}

#[test]
fn an_overrun_is_terminated_started_again_and_given_up() {
    let mut hangs = policy(spec("hangs"), OnOverrun::Terminate);
    hangs.restart = Restart::ON_FAILURE.most(2).pause(Duration::from_millis(1));
    let (finished, events) = run(Supervisor::new().task(hangs), |_, _| false);
    let [task] = &finished.tasks[..] else { panic!("one task") };
    assert_eq!(finished.over, Over::AllGone);
    assert!(task.failed && task.restarts == 2 && task.starts == 3, "{task:?} {events:?}");
    // A machine that stood still may have ended one before it hung.
    assert!(task.terminated >= 1 && task.overran >= 1, "{task:?}");
    assert_eq!(count(&events, "hangs", |event| matches!(event, EventKind::StartsAgain(_))), 2);
    assert_eq!(count(&events, "hangs", |event| *event == EventKind::GivenUp), 1);
}

#[test]
fn who_takes_no_releases_is_ended_or_ends_all_where_that_is_its_policy() {
    let deaf = |overruns| policy(spec("deaf"), overruns);
    let (finished, events) = run(Supervisor::new().task(deaf(OnOverrun::Terminate)), |_, _| false);
    assert_eq!(finished.over, Over::AllGone);
    assert_eq!(count(&events, "deaf", |w| *w == EventKind::Killed(Cause::Silent)), 1, "{events:?}");
    assert_eq!(
        (finished.tasks[0].terminated, finished.tasks[0].exit),
        (1, Some(ProcessEnd::Signal(9)))
    );
    let (finished, _) = run(Supervisor::new().task(deaf(OnOverrun::Stop)), |_, _| false);
    assert_eq!(finished.over, Over::Overran("deaf".to_owned()));
    let is_silent = |event: &Event, _: &[Event]| event.kind == EventKind::Silent;
    let (finished, events) = run(Supervisor::new().task(deaf(OnOverrun::Skip)), is_silent);
    assert_eq!((finished.over, finished.tasks[0].terminated), (Over::Stopped, 0), "{events:?}");
}

#[test]
fn who_leaves_in_good_order_has_not_failed_and_who_never_comes_has() {
    let mut silent = spec("silent");
    silent.register_within = Span::from_ms(50);
    let supervisor = Supervisor::new().task(spec("leaves")).task(silent);
    let (finished, events) = run(supervisor, |_, _| false);
    assert_eq!(finished.over, Over::AllGone);
    let task = |name: &str| finished.tasks.iter().find(|task| task.name == name).expect("one");
    assert!(!task("leaves").failed && task("leaves").figures.counts.ran == 5, "{events:?}");
    // Its end may be seen together with its leave.
    assert!(count(&events, "leaves", |event| *event == EventKind::Unregistered) <= 1);
    assert_eq!(count(&events, "silent", |w| *w == EventKind::Killed(Cause::NeverRegistered)), 1);
    assert!(task("silent").failed && task("silent").figures.counts.ran == 0);
}

#[test]
fn a_program_that_is_not_there_is_an_end_and_a_stop_policy_stops_all() {
    let mut missing = spec("missing");
    missing.command = vec!["/nowhere/at/all".into()];
    let stops = policy(spec("hangs-stop"), OnOverrun::Stop);
    let (finished, events) = run(Supervisor::new().task(missing).task(stops), |_, _| false);
    assert_eq!(count(&events, "missing", |event| matches!(event, EventKind::Ended(_))), 1);
    assert_eq!(finished.over, Over::Overran("hangs-stop".to_owned()));
    let missing = finished.tasks.iter().find(|task| task.name == "missing").expect("one");
    assert!(missing.failed && missing.exit.is_some(), "{missing:?}");
    // An emulator of user space copies where the kernel shares, so that a failed exec is an exit.
    if skip::need_native("errors of exec") {
        assert_eq!(missing.exit, Some(ProcessEnd::NotStarted(2)));
    }
    let hung = finished.tasks.iter().find(|task| task.name == "hangs-stop").expect("one");
    assert_eq!(hung.exit, Some(ProcessEnd::Signal(9)), "it does not hear, so it is ended");
}

/// Returns true where this is the end of a task's loop, for this reason.
pub(crate) fn ended_by(waited: Result<Cycle<'_>, Error>, why: Errno) -> bool {
    waited.is_err_and(|error| error.errno() == Some(why.0))
}

/// A supervisor's name that no other test has.
fn name(role: &str) -> String {
    format!("test-{role}-{}", std::process::id())
}

#[test]
fn others_join_by_name_and_read_what_is_given_out() {
    let supervisor = name("join");
    let mut open = spec("open");
    open.command.clear();
    let ready = || Supervisor::new().name(&supervisor).task(open.clone()).task(spec("good"));
    let stop = AtomicBool::new(false);
    let made = ready().build().expect("fine");
    assert!(ready().build().expect_err("refused").to_string().contains("runs already"));
    let (finished, seen) = std::thread::scope(|scope| {
        let (stop, supervisor) = (&stop, &supervisor);
        let guest = scope.spawn(move || {
            let refused =
                |task: &str| Registration::join(supervisor, task).err().map(|w| w.to_string());
            let message = refused("nobody").expect("no such task");
            assert!(message.contains("no task of this name"), "{message}");
            assert!(refused("good").expect("a program").contains("program of its own"));
            let watch = Watch::open(supervisor, "open").expect("it runs");
            let mut bytes = [0; 8];
            assert_eq!((watch.output(&mut bytes), bytes), (Some(Source::Safe), [0xff; 8]));
            let mut task = Registration::join(supervisor, "open").expect("free");
            assert!(refused("open").expect("one at a time").contains("taken"));
            for n in 1..=5u64 {
                assert!(task.wait().is_ok());
                assert!(task.commit(&n.to_ne_bytes()) && !task.commit(&[0; 9]));
            }
            assert_eq!(watch.output(&mut bytes), Some(Source::Task));
            assert_eq!(u64::from_ne_bytes(bytes), 5);
            task.unregister();
            // The safe value takes over, and the block is free again.
            while watch.output(&mut bytes) != Some(Source::Safe) {
                std::thread::yield_now();
            }
            let mut again = loop {
                match Registration::join(supervisor, "open") {
                    Ok(task) => break task,
                    Err(why) if why.kind() == ErrorKind::Refused => std::thread::yield_now(),
                    Err(why) => panic!("{why}"),
                }
            };
            assert!(again.wait().is_ok());
            let ran = watch.page().expect("a page").counts().ran;
            stop.store(true, Ordering::Relaxed);
            while !ended_by(again.wait(), Errno::CANCELED) {}
            ran
        });
        let finished = made.run(Strategy::Sleep(Sleep), None, Stop::new(stop), &mut |_| {});
        (finished.expect("threads"), guest.join().expect("no panic"))
    });
    assert!(seen >= 4, "the fifth may not have been taken up yet");
    let open = finished.tasks.iter().find(|task| task.name == "open").expect("one");
    assert!(open.registered == 2 && open.starts == 2 && !open.failed, "{open:?}");
    let gone = Registration::join(&supervisor, "open").expect_err("it has ended");
    assert!(gone.to_string().starts_with("supervisor \"test-join"), "{gone}");
    assert_eq!(gone.kind(), ErrorKind::NotRunning);
    // What a killed one leaves behind is in nobody's way.
    let path = punctual_engine::process::socket(&supervisor).expect("a name");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("free"));
    drop(ready().build().expect("a stale socket is no supervisor"));
    assert!(!path.exists() && !path.with_extension("lock").exists(), "nothing is left");
}

#[test]
fn the_safe_value_of_a_task_that_scribbled_is_read() {
    let supervisor = name("scribbles");
    let made = Supervisor::new().name(&supervisor).task(spec("scribbles")).task(spec("good"));
    let made = made.build().expect("fine");
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let finished = std::thread::scope(|scope| {
        let (stop, over, supervisor) = (&stop, &over, &supervisor);
        let reader = scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let watch = Watch::open(supervisor, "scribbles");
            let mut bytes = [0; 8];
            let read = watch.map(|watch| watch.output(&mut bytes));
            stop.store(true, Ordering::Relaxed);
            assert_eq!((read.expect("a task block"), bytes), (Some(Source::Safe), [0xff; 8]));
        });
        let finished =
            made.run(Strategy::Sleep(Sleep), None, Stop::new(stop), &mut |event: Event| {
                let given_up = event.task == "scribbles" && event.kind == EventKind::GivenUp;
                over.fetch_or(given_up, Ordering::Relaxed);
            });
        reader.join().expect("no panic");
        finished.expect("threads")
    });
    let task = finished.tasks.iter().find(|task| task.name == "scribbles").expect("one");
    assert_eq!(task.exit, Some(ProcessEnd::Signal(6)), "{task:?}");
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |supervisor: Supervisor| supervisor.build().expect_err("refused").to_string();
    let with = |spec: Spec| Supervisor::new().task(spec);
    assert!(refused(Supervisor::new()).contains("no task"));
    assert!(refused(with(spec("a/b"))).contains("invalid name"));
    assert!(refused(with(spec("a")).task(spec("a"))).contains("\"a\""));
    assert!(refused(with(policy(spec("a"), OnOverrun::Delay))).contains("phase"));
    assert!(refused(with(policy(spec("a"), OnOverrun::Burst(17)))).contains("16"));
    let spinning = |period_us: u64| {
        let period = Period::from_ns(period_us * 1_000).expect("in range");
        let spec = Spec { task: Task::every("a", period), ..spec("a") };
        Supervisor::new().thread(RtThread::any().fifo(80).wait(WaitPolicy::spin())).task(spec)
    };
    assert!(refused(spinning(39)).contains("at least 40.0 µs (got 39000 ns)"));
    assert!(spinning(40).build().is_ok());
    let fifo = Cell::new(0);
    let high = || Spec { thread: RtThread::any().fifo(fifo.get()), ..spec("a") };
    for priority in [0, 80, 99] {
        fifo.set(priority);
        assert!(refused(with(high())).contains("[1, 79]"));
    }
    for priority in [0, 1, 99] {
        let message = refused(with(spec("a")).thread(RtThread::any().fifo(priority)));
        assert_eq!(
            message,
            format!("an executive's priority must be from 2 to 98 (got {priority})")
        );
    }
    assert!(refused(with(Spec { safe: vec![0; 12], ..spec("a") })).contains("multiple of 8"));
    let never = Spec { register_within: Span::ZERO, ..spec("a") };
    assert!(refused(with(never)).contains("register"));
    let mut back = Restart::default();
    back.pause = Span::from_ns(-1);
    assert!(refused(with(Spec { restart: back, ..spec("a") })).contains("must not be negative"));
    let allowed = punctual_os::affinity::get(0).expect("own");
    let cpus: Vec<u32> = allowed.iter().take(2).collect();
    let half = |name: &str, cpu| {
        let task = spec(name).task.budget(Duration::from_micros(1_200));
        Spec { task, thread: RtThread::cpu(cpu), ..spec(name) }
    };
    let both = |other| with(half("a", cpus[0])).task(half("b", other));
    let full = format!("1.200 of CPU {}: at most 1", cpus[0]);
    assert!(refused(both(cpus[0])).contains(&full), "the sum on one CPU");
    assert!(both(cpus[0]).allow_overload().build().is_ok());
    assert!(cpus.len() < 2 || both(cpus[1]).build().is_ok(), "each has a CPU");
    assert!(refused(with(Spec { safe: vec![0; 4_097], ..spec("a") })).contains("4096"));
    assert!(refused(with(spec("a")).name("../x")).contains("invalid name"));
    let alone = Registration::from_env(None).expect_err("no supervisor");
    assert_eq!(alone.errno(), Some(Errno::NOTCONN.0), "{alone}");
}

#[test]
fn in_its_loop_a_task_says_futex_and_nothing_else() {
    if !skip::need_program("strace") || !skip::need_native("strace") {
        return;
    }
    let log = std::env::temp_dir().join(format!("punctual-processes-{}", std::process::id()));
    let traced = std::process::Command::new("strace")
        .args(["-f", "-o"])
        .arg(&log)
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "left::a_supervisor", "--nocapture", "--test-threads=1"])
        .env(SUPERVISE, "works")
        .output()
        .expect("strace starts");
    let text = std::fs::read_to_string(&log).expect("it was written");
    std::fs::remove_file(&log).expect("it was made here");
    assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stdout));
    // The thread that registered: the one that waits with a time-out, as no other does so often.
    let waits = |line: &&str| line.contains("futex(") && line.contains("FUTEX_WAIT_BITSET");
    let thread = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let mut counts = std::collections::HashMap::new();
    for line in text.lines().filter(waits) {
        *counts.entry(thread(line)).or_insert(0u64) += 1;
    }
    let (task, waited) = counts.into_iter().max_by_key(|(_, n)| *n).expect("one");
    assert!(waited >= WORKS / 2, "{waited} of {WORKS}");
    let waiting: Vec<&str> = text.lines().filter(|line| thread(line) == task).collect();
    let at = |n: usize| waiting.iter().enumerate().filter(|(_, line)| waits(line)).nth(n);
    let (first, _) = at(2).expect("many");
    let (last, _) = at(usize::try_from(waited).expect("few") - 1).expect("the last");
    for line in &waiting[first..last] {
        assert!(line.contains("futex"), "{line}");
    }
}
