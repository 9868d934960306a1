//! The library of Rust in a child of fork(2): it gives an error or does nothing, and the parent
//! goes on.
//!
//! A child does nothing but calls of the library, and says by its status which check failed.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use punctual::follow::{Follow, Reference, ServoStatus};
use punctual::{
    End, Error, ErrorKind, Executive, Flow, Loop, LoopBuilder, Period, Phase, RtThread, Task,
    Trigger, WaitPolicy,
};
use punctual_testkit::skip;

const EACH_MS: Period = match Period::hz(1_000) {
    Some(period) => period,
    None => panic!("1000 Hz is a period"),
};

/// Set up at once.
fn plain() -> RtThread {
    RtThread::any().wait(WaitPolicy::sleep()).lock_memory(false).hold_idle_states(false)
}

fn each_ms() -> LoopBuilder {
    Loop::builder(EACH_MS).phase(Phase::Zero).thread(plain())
}

/// The status of a child, which is 0 where all of these hold there, and otherwise the place of the
/// first that does not, from 1.
fn in_child(checks: impl FnOnce() -> Vec<bool>) -> i32 {
    // SAFETY: the child calls what is tested, allocates (the C library's allocator is whole after
    // a fork), and ends without unwinding.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "no child");
    if pid == 0 {
        let checks = std::panic::catch_unwind(std::panic::AssertUnwindSafe(checks));
        let failed = |checks: Vec<bool>| checks.iter().position(|holds| !holds).map(|at| at + 1);
        let status = checks.map_or(99, |checks| failed(checks).unwrap_or(0));
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::try_from(status).unwrap_or(98)) };
    }
    ended(pid)
}

fn ended(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is writable.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "{status}");
    libc::WEXITSTATUS(status)
}

fn is_forked<T>(answer: Result<T, Error>) -> bool {
    answer.err().is_some_and(|why| why.kind() == ErrorKind::Forked)
}

#[test]
fn a_loop_ends_in_the_child_and_goes_on_in_its_parent() {
    let path = std::env::temp_dir().join(format!("punctual-forked-{}", std::process::id()));
    let mut own = each_ms().record(&path).start().expect("a thread");
    let handle = own.handle();
    assert!(own.wait().is_some() && own.wait().is_some());
    let mut loops = Some(own);
    // By an end, and by a drop.
    for finishes in [true, false] {
        let status = in_child(|| {
            let mut own = loops.take().expect("the parent's");
            let waited = own.wait().is_none() && own.wait().is_none();
            let policy = punctual_os::scheduler::get(0).is_ok_and(|policy| policy == own.policy());
            let mut checks = vec![waited, policy, handle.stopped()];
            if finishes {
                let summary = own.finish();
                checks.extend([summary.end == End::Forked, summary.samples.is_none()]);
                checks.push(is_forked(summary.ok().map_err(Error::from)));
            } else {
                drop(own);
            }
            let mut another = each_ms().start().expect("a thread");
            checks.extend([another.wait().is_some(), another.wait().is_some()]);
            checks.push(another.finish().end == End::Stopped);
            checks
        });
        assert_eq!(status, 0, "the check of this number, finishes: {finishes}");
    }
    let mut own = loops.take().expect("the parent's");
    assert!(!handle.stopped() && own.wait().is_some());
    let summary = own.finish().ok().expect("all went well");
    assert!(summary.samples.is_some_and(|samples| samples.written >= 2));
    assert!(std::fs::remove_file(path).is_ok(), "its samples");
}

#[test]
fn an_executive_is_an_error_in_the_child() {
    let build = || {
        let task = Task::every("a", EACH_MS);
        let builder = Executive::builder().phase(Phase::Zero).thread(plain());
        builder.task(task, |_| ()).build().expect("fine").0
    };
    let (mut not_run, mut running) =
        (Some([build(), build()]), Some(build().start().expect("a thread")));
    let handle = running.as_ref().expect("it runs").handle();
    let mut follower = Some(Follow::new(Reference::Tai).start().expect("a thread"));
    let status = in_child(|| {
        let [first, second] = not_run.take().expect("the parent's");
        let add = handle.add(Task::every("b", EACH_MS), |_| ());
        let follower = follower.take().expect("the parent's");
        let clock = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| follower.clock()));
        vec![
            follower.status() == ServoStatus::default() && clock.is_err(),
            is_forked(first.run_for(Duration::from_millis(1))),
            is_forked(second.start()),
            handle.stopped(),
            is_forked(add),
            is_forked(running.take().expect("the parent's").finish()),
        ]
    });
    assert_eq!(status, 0, "the check of this number");
    assert!(running.take().expect("the parent's").finish().is_ok());
    let [first, _] = not_run.take().expect("the parent's");
    assert!(first.run_for(Duration::from_millis(5)).is_ok());
}

/// Of a process: what makes one child, which returns as its parent does.
struct ForksOnce(AtomicI32, i32);

impl ForksOnce {
    fn new() -> Self {
        // SAFETY: no preconditions.
        Self(AtomicI32::new(0), unsafe { libc::getpid() })
    }

    fn fork(&self) {
        self.go_on();
        if self.0.load(Ordering::Relaxed) == 0 {
            // SAFETY: the child returns from here, which ends it; else the alarm does.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                // SAFETY: no preconditions.
                unsafe { libc::alarm(60) };
            }
            self.0.store(pid, Ordering::Relaxed);
        }
    }

    /// A child that comes by here has come back from where it was made.
    fn go_on(&self) {
        // SAFETY: no preconditions.
        if unsafe { libc::getpid() } != self.1 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(97) };
        }
    }

    /// The status with which its child ended.
    fn status(&self) -> i32 {
        let pid = self.0.load(Ordering::Relaxed);
        assert!(pid > 0, "no child");
        ended(pid)
    }
}

#[test]
fn a_child_that_comes_back_from_a_callback_is_ended_before_anything_else_runs() {
    if !skip::need_native("fork in a thread") {
        return;
    }
    let (body, idle, trigger, beside, panics) =
        (ForksOnce::new(), ForksOnce::new(), ForksOnce::new(), ForksOnce::new(), ForksOnce::new());
    let triggers = Trigger::wait(|| {
        trigger.fork();
        false
    });
    let builder = Executive::builder()
        .phase(Phase::Zero)
        .thread(plain())
        .task(Task::every("forks", EACH_MS), |_| {
            [&idle, &trigger, &beside, &panics].into_iter().for_each(ForksOnce::go_on);
            body.fork();
        })
        .triggered(triggers, Task::named("triggered"), |_| trigger.go_on())
        .idle(Duration::from_micros(10), || {
            if idle.0.load(Ordering::Relaxed) == 0 {
                idle.fork();
            } else {
                panics.fork();
                // SAFETY: no preconditions.
                if unsafe { libc::getpid() } != panics.1 {
                    // Without the hook, whose locks other threads may hold.
                    std::panic::resume_unwind(Box::new(()));
                }
            }
            Flow::Break
        });
    let (executive, _) = builder.build().expect("fine");
    let run = executive.run_with(Duration::from_millis(20), |_| beside.fork());
    let ((), summary) = run.expect("threads");
    assert_eq!(summary.end, End::Finished);
    for (callback, child) in [("body", &body), ("idle", &idle), ("trigger", &trigger)] {
        assert_eq!(child.status(), 70, "{callback}");
    }
    assert_eq!((beside.status(), panics.status()), (70, 70));
}
