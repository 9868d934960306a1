//! Tasks that are added and removed: before a build, between runs, and while one is under way.

use super::*;

/// A number of cycles of a task, read while it runs.
fn ran(handle: usize, task: u32) -> u64 {
    let mut stats = Stats::blank();
    // SAFETY: an executive for as long as these tests have threads, and a local result.
    let answer =
        unsafe { punctual_periodic_task_stats(handle as *const Executive, task, &raw mut stats) };
    assert_eq!(answer, 0);
    let text = format!("{stats:?}");
    let ran = text.split("ran: ").nth(1).and_then(|rest| rest.split(',').next());
    ran.and_then(|ran| ran.parse().ok()).expect("a number")
}

/// Changes its own executive, which it must not.
unsafe extern "C" fn changes_itself(data: *mut c_void, _: *const Cycle) -> c_int {
    // SAFETY: the executive that runs this.
    unsafe { punctual_periodic_remove(data.cast(), 0) }
}

#[test]
fn tasks_come_and_go_while_it_runs() {
    let held = Held::new();
    let (mut first, mut second, mut third) = (Work::default(), Work::default(), Work::default());
    assert_eq!(held.add(c"gone", 1_000_000, &mut third), 0);
    // SAFETY: an executive.
    unsafe {
        assert_eq!(punctual_periodic_remove(held.0, 0), 0);
        assert_eq!(punctual_periodic_remove(held.0, 0), -libc::ENOENT);
        assert_eq!(punctual_periodic_remove(held.0, 9), -libc::ENOENT);
    }
    assert_eq!(held.build(), -libc::EINVAL, "no task is left");
    assert_eq!((held.add(c"first", 1_000_000, &mut first), held.build()), (0, 0));
    let handle = held.0 as usize;
    std::thread::scope(|scope| {
        let running = scope.spawn(move || {
            // SAFETY: an executive until the join, and local options.
            unsafe { punctual_periodic_run(handle as *mut Executive, &quick(), 0) }
        });
        while ran(handle, 1) < 5 {}
        // A shorter period: another rank for who goes on, whose counts stay its own.
        assert_eq!(held.add(c"second", 500_000, &mut second), 0);
        let before = ran(handle, 1);
        while ran(handle, 2) < 5 || ran(handle, 1) < before + 5 {}
        assert_eq!(held.add(c"second", 500_000, &mut third), -libc::EEXIST);
        let itself = TaskRecord::of(c"itself", changes_itself, held.0.cast(), 300_000_000);
        let mut rank = 9;
        // SAFETY: an executive, and a local result.
        unsafe {
            assert_eq!(punctual_periodic_task_rank(held.0, 1, &raw mut rank), 0);
            assert_eq!(rank, 1, "the shorter period first");
            assert_eq!(punctual_periodic_remove(held.0, 1), 0);
            assert_eq!(punctual_periodic_remove(held.0, 1), -libc::ENOENT);
            assert_eq!(punctual_periodic_task_rank(held.0, 1, &raw mut rank), -libc::ENOENT);
            assert_eq!(punctual_periodic_task_rank(held.0, 2, &raw mut rank), 0);
        }
        assert_eq!(rank, 0);
        let before = ran(handle, 2);
        while ran(handle, 2) < before + 5 {}
        // It ends the run with what it is told.
        assert_eq!(held.add_task(itself), 0);
        assert_eq!(running.join().expect("no panic"), -libc::EDEADLK);
    });
    assert!(first.ran >= 10 && second.ran == ran(handle, 2) && third.ran == 0);
}

#[test]
fn what_does_not_go_with_the_run_is_refused() {
    let held = Held::new();
    let (mut first, mut second) = (Work::default(), Work::default());
    assert_eq!((held.add(c"first", 2_000_000, &mut first), held.build()), (0, 0));
    let handle = held.0 as usize;
    let mut options = quick();
    options.watched(1_000_000_000);
    std::thread::scope(|scope| {
        let running = scope.spawn(move || {
            // SAFETY: an executive until the join, and local options.
            unsafe { punctual_periodic_run(handle as *mut Executive, &options, 0) }
        });
        while ran(handle, 0) < 5 {}
        // SAFETY: an executive.
        assert_eq!(unsafe { punctual_periodic_remove(held.0, 0) }, -libc::EINVAL);
        assert!(errors::tests::last().contains("watchdog"), "{}", errors::tests::last());
        assert_eq!(held.add(c"second", 2_000_000, &mut second), 0);
        // SAFETY: an executive.
        unsafe {
            assert_eq!(punctual_periodic_remove(held.0, 0), 0);
            assert_eq!(punctual_periodic_stop(held.0), 0);
        }
        assert_eq!(running.join().expect("no panic"), 0);
    });
    // Between two runs it is built anew at once.
    // SAFETY: an executive.
    assert_eq!(unsafe { punctual_periodic_remove(held.0, 1) }, 0);
    assert_eq!(held.run(1), -libc::EINVAL);
    assert!(errors::tests::last().contains("without tasks"));
}

#[test]
fn changes_hold_whatever_run_begins_or_ends_meanwhile() {
    let held = Held::new();
    let (mut first, mut second) = (Work::default(), Work::default());
    assert_eq!((held.add(c"first", 1_000_000, &mut first), held.build()), (0, 0));
    let (handle, done) = (held.0 as usize, AtomicBool::new(false));
    let (runs, changes) = std::thread::scope(|scope| {
        let done = &done;
        let running = scope.spawn(move || {
            let mut answers = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let executive = handle as *mut Executive;
                // SAFETY: an executive until the join, and local options.
                answers.push(unsafe { punctual_periodic_run(executive, &quick(), 2_000_000) });
            }
            answers
        });
        let mut changes = Vec::new();
        for index in 1..30 {
            changes.push((held.add(c"second", 700_000, &mut second), errors::tests::last()));
            // SAFETY: an executive.
            let removed = unsafe { punctual_periodic_remove(held.0, index) };
            changes.push((removed, errors::tests::last()));
        }
        done.store(true, Ordering::Relaxed);
        (running.join().expect("no panic"), changes)
    });
    assert!(runs.iter().all(|answer| *answer == 0), "{runs:?}");
    assert!(changes.iter().all(|(answer, _)| *answer == 0), "{changes:?}");
}
