//! Tasks with threads of their own that come and go while an executive runs.
#![expect(clippy::disallowed_types, reason = "what a test hands to a body may make it wait")]

use std::cell::Cell;
use std::sync::OnceLock;
use std::thread::ThreadId;

use punctual_core::clock::Clock;
use punctual_core::time::Instant;

use super::super::shared::ADDED_MAX;
use super::*;

/// One that is quick to start.
fn own(name: &str, period_us: u64) -> Task {
    let thread = RtThread::any().wait(WaitPolicy::sleep());
    task(name, period_us).placed(Placement::thread(thread))
}

fn until(is: impl Fn() -> bool) {
    while !is() {
        std::thread::yield_now();
    }
}

/// Says which thread drops it.
struct Dropped<'d>(&'d OnceLock<ThreadId>);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        let _first = self.0.set(std::thread::current().id());
    }
}

#[test]
fn one_runs_in_a_thread_of_its_own_until_it_is_removed_and_is_dropped_by_who_removes_it() {
    let (steady, lost) = (AtomicU64::new(0), AtomicU64::new(0));
    let dropped: Vec<OnceLock<ThreadId>> = (0..40).map(|_| OnceLock::new()).collect();
    let mut next = None;
    let (plan, _) = quick()
        .task(task("steady", 1_000), |cycle| {
            let first = cycle.n - cycle.missed;
            if next.is_some_and(|next| next != first) {
                lost.fetch_add(1, Ordering::Relaxed);
            }
            next = Some(cycle.n + 1);
            steady.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .expect("fine");
    let ((), summary) = plan
        .run_with(ms(60_000), |handle| {
            for turn in &dropped {
                let (own_turn, ran_in) = (Dropped(turn), Arc::new(OnceLock::new()));
                let seen = Arc::clone(&ran_in);
                let guest = own("guest", 1_000).at(Duration::from_micros(300));
                let id = handle
                    .add(guest, move |cycle| {
                        let _own = &own_turn;
                        assert_eq!(cycle.release.as_ns() % 1_000_000, 300_000);
                        let _first = seen.set(std::thread::current().id());
                    })
                    .expect("it fits");
                let twice = handle.add(task("guest", 500), |_| ()).expect_err("refused");
                assert!(twice.to_string().contains("two tasks are named \"guest\""), "{twice}");
                let placed = handle.placed(id).expect("there").expect("it runs");
                assert_eq!((placed.rank, placed.phase), (None, Some(Duration::from_micros(300))));
                until(|| handle.counts(id).expect("there").ran > 2);
                let before = steady.load(Ordering::Relaxed);
                until(|| steady.load(Ordering::Relaxed) > before);
                let counts = handle.remove(id).expect("there").counts;
                assert_eq!(handle.counts(id).expect("still known"), counts, "it runs no more");
                assert!(handle.remove(id).is_err() && handle.placed(id).expect("known").is_none());
                assert_eq!(turn.get(), Some(&std::thread::current().id()), "dropped here");
                assert_ne!(ran_in.get(), Some(&std::thread::current().id()));
            }
            handle.stop();
        })
        .expect("it starts");
    assert_eq!((summary.end, lost.into_inner()), (End::Stopped, 0));
    assert_eq!(summary.tasks.len(), 41);
}

#[test]
fn there_may_be_so_many_and_what_cannot_be_is_refused() {
    let cpu = cpus()[0];
    let pinned = quick().thread(sleeping().pinned(Some(cpu)));
    let (plan, _) = pinned.task(task("main", 1_000), |_| ()).build().expect("fine");
    let ((), summary) = plan
        .run_with(ms(60_000), |handle| {
            let added: Vec<_> = (0..ADDED_MAX)
                .map(|n| handle.add(own(&format!("task {n}"), 100_000), |_| ()).expect("it fits"))
                .collect();
            let message = handle.add(own("one more", 1_000), |_| ()).expect_err("full");
            assert_eq!(message.kind(), crate::ErrorKind::TooMany);
            assert!(message.to_string().contains("\"one more\" cannot be added"), "{message}");
            assert!(handle.remove(added[7]).is_ok());
            let above = RtThread::any().fifo(90).wait(WaitPolicy::sleep());
            let above = task("above", 1_000).placed(Placement::thread(above));
            let message = handle.add(above, |_| ()).expect_err("above the main loop").to_string();
            assert!(message.contains("must be below the executive's 80 (got 90)"), "{message}");
            let nowhere = Placement::thread(RtThread::cpu(100_000));
            assert!(handle.add(task("nowhere", 1_000).placed(nowhere), |_| ()).is_err());
            let beside = Placement::thread(RtThread::cpu(cpu).wait(WaitPolicy::sleep()));
            let whole = task("whole", 1_000).placed(beside).budget(Duration::from_micros(1_000));
            let half = task("half", 1_000).budget(Duration::from_micros(500));
            let half = handle.add(half, |_| ()).expect("it fits");
            assert!(handle.add(whole, |_| ()).is_err(), "no time is left for it");
            assert!(handle.remove(half).is_ok());
            assert!(handle.add(own("one more", 1_000), |_| ()).is_ok(), "after all that");
            handle.stop();
        })
        .expect("it starts");
    assert_eq!((summary.end, summary.tasks.len()), (End::Stopped, ADDED_MAX + 3));
}

#[test]
fn one_that_panics_or_overran_or_says_stop_ends_all() {
    let end = |late: Task, body: fn(&mut Cycle<'_>) -> Flow| {
        let (plan, _) = quick().task(task("main", 1_000), |_| ()).build().expect("fine");
        let ((), summary) = plan
            .run_with(ms(60_000), |handle| {
                handle.add(late, body).expect("it fits");
                until(|| handle.stopped());
            })
            .expect("it starts");
        summary.end
    };
    let (task, text) = ("broken".to_owned(), "on purpose".to_owned());
    assert_eq!(end(own("broken", 1_000), |_| panic!("on purpose")), End::Panicked { task, text });
    assert_eq!(end(own("stops", 1_000), |_| Flow::Stop), End::Stopped);
    let long = own("long", 1_000).on_overrun(OnOverrun::Stop);
    let overran = end(long, |cycle| {
        sleep_until_ns(cycle.release.as_ns() + 5_000_000).expect("no signal");
        Flow::Continue
    });
    assert_eq!(overran, End::Overran("long".to_owned()));
    let cancelled = end(own("long", 2_000).on_overrun(OnOverrun::Terminate), |cycle| {
        until(|| cycle.cancelled());
        Flow::Stop
    });
    assert_eq!(cancelled, End::Stopped);
}

#[test]
fn one_that_does_not_return_is_forced_and_so_the_end_of_all() {
    let (plan, _) = quick()
        .thread(sleeping().watchdog(ms(300)))
        .task(task("main", 1_000), |_| ())
        .build()
        .expect("fine");
    let stop = plan.stop_handle();
    let ((), summary) = plan
        .run_with(ms(60_000), |handle| {
            let stuck = move |_: &mut Cycle<'_>| until(|| stop.stopped());
            handle.add(own("stuck", 1_000), stuck).expect("it fits");
            until(|| handle.stopped());
        })
        .expect("it starts");
    assert!(matches!(summary.end, End::Forced | End::Starved), "{summary}");
}

#[test]
fn one_ends_with_the_executive_and_its_own_body_cannot_remove_it() {
    let message = Arc::new(OnceLock::new());
    let plan = Executive::builder().thread(sleeping()).task(task("steady", 10_000), |_| ());
    let (plan, _) = plan.build().expect("fine");
    let running = plan.start().expect("a thread");
    let (handle, say) = (running.handle(), Arc::clone(&message));
    let id = Arc::new(OnceLock::new());
    let own_id = Arc::clone(&id);
    let added = running.add(own("late", 1_000), move |_| {
        if let Some(id) = own_id.get() {
            let _first = say.set(handle.remove(*id).expect_err("refused").to_string());
        }
    });
    assert!(id.set(added.expect("it fits")).is_ok());
    until(|| message.get().is_some());
    assert!(message.get().is_some_and(|message| message.contains("another thread")), "{message:?}");
    let handle = running.handle();
    let summary = running.finish().expect("it ran");
    assert_eq!(summary.end, End::Stopped);
    assert!(stats(&summary, "late").counts.ran > 0);
    let late = handle.add(own("later", 1_000), |_| ()).expect_err("over").to_string();
    assert_eq!(late, "the executive does not run");
}

thread_local! {
    /// Sleeps of this thread on its clock.
    static SLEEPS: Cell<u64> = const { Cell::new(0) };
}

/// The machine's clock, whose sleeps are counted.
#[derive(Clone)]
struct Counted(MachineClock);

impl Clock for Counted {
    fn now(&mut self) -> Instant {
        self.0.now()
    }
    fn poll(&mut self) -> Instant {
        self.0.poll()
    }
    fn sleep_until(&mut self, at: Instant) {
        SLEEPS.set(SLEEPS.get() + 1);
        self.0.sleep_until(at);
    }
    fn wake(&mut self) -> Instant {
        self.0.wake()
    }
    fn relax(&mut self) {
        self.0.relax();
    }
}

#[test]
fn one_runs_before_its_wait_has_learned() {
    let sleeps = Arc::new(OnceLock::new());
    let seen = Arc::clone(&sleeps);
    let builder = quick().clock(Counted(MachineClock::best()));
    let (plan, _) = builder.task(task("steady", 10_000), |_| ()).build().expect("fine");
    let ((), summary) = plan
        .run_with(ms(60_000), |handle| {
            // Its wait measures what a wake costs in some 200 sleeps, and learns in thousands.
            let learns = RtThread::any().wait(WaitPolicy::adaptive());
            let guest = task("guest", 1_000).placed(Placement::thread(learns));
            let body = move |_: &mut Cycle<'_>| {
                let _first = seen.set(SLEEPS.get());
            };
            handle.add(guest, body).expect("it fits");
            until(|| sleeps.get().is_some());
            handle.stop();
        })
        .expect("it starts");
    assert_eq!(summary.end, End::Stopped);
    assert!(sleeps.get().is_some_and(|&sleeps| sleeps < 1_000), "{sleeps:?}");
}
