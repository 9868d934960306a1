//! Tasks that are added and removed: before a build, between runs, and while one is under way.

use super::*;

/// A number of cycles of a task, read while it runs.
fn ran(handle: usize, task: u32) -> u64 {
    let mut stats = Stats::blank();
    // SAFETY: an executive for as long as these tests have threads, and a local result.
    let answer =
        unsafe { punctual_executive_task_stats(handle as *const Executive, task, &raw mut stats) };
    assert_eq!(answer, 0);
    stats.ran()
}

#[test]
fn a_task_with_a_thread_of_its_own_comes_and_goes_while_it_runs() {
    let made = Made::new();
    let (mut first, mut late) = (Work::default(), Work::default());
    assert_eq!((made.add(c"first", 1_000_000, &mut first), made.build()), (0, 0));
    let handle = made.0 as usize;
    std::thread::scope(|scope| {
        let running = scope.spawn(move || {
            // SAFETY: an executive until the join, and local options.
            unsafe { punctual_executive_run(handle as *mut Executive, &quick(), 0) }
        });
        while ran(handle, 0) < 5 {}
        assert_eq!(made.add_task(task(c"late", 2_000_000, &mut late).in_thread(-1)), 0);
        while ran(handle, 1) < 5 {}
        assert_eq!(made.layout(1).expect("there").rank, u32::MAX);
        assert_eq!((made.remove(1), made.remove(1)), (0, -libc::ENOENT));
        assert_eq!((made.remove(0), made.stop()), (0, 0));
        assert_eq!(running.join().expect("no panic"), 0);
    });
    assert!(late.ran >= 5);
}

/// Changes its own executive, which it must not; in its next cycle where the call that added it has
/// not returned yet.
unsafe extern "C" fn changes_itself(data: *mut c_void, _: *const Cycle) -> c_int {
    // SAFETY: the executive that runs this.
    let answer = unsafe { punctual_executive_remove(data.cast(), 2) };
    if answer == -libc::EBUSY { 0 } else { answer }
}

#[test]
fn tasks_come_and_go_while_it_runs() {
    let made = Made::new();
    let (mut first, mut second, mut third) = (Work::default(), Work::default(), Work::default());
    assert_eq!(made.add(c"gone", 1_000_000, &mut third), 0);
    let removed = [0, 0, 9].map(|index| made.remove(index));
    assert_eq!(removed, [0, -libc::ENOENT, -libc::ENOENT]);
    assert_eq!(made.build(), -libc::EINVAL, "no task is left");
    assert_eq!((made.add(c"first", 1_000_000, &mut first), made.build()), (0, 0));
    let handle = made.0 as usize;
    std::thread::scope(|scope| {
        let running = scope.spawn(move || {
            // SAFETY: an executive until the join, and local options.
            unsafe { punctual_executive_run(handle as *mut Executive, &quick(), 0) }
        });
        while ran(handle, 1) < 5 {}
        // A shorter period: another rank for who goes on, whose counts stay its own.
        assert_eq!(made.add(c"second", 500_000, &mut second), 0);
        let before = ran(handle, 1);
        while ran(handle, 2) < 5 || ran(handle, 1) < before + 5 {}
        assert_eq!(made.add(c"second", 500_000, &mut third), -libc::EEXIST);
        assert_eq!(made.layout(1).expect("there").rank, 1, "the shorter period first");
        assert_eq!((made.remove(1), made.remove(1)), (0, -libc::ENOENT));
        assert_eq!(made.try_stats(1).expect_err("gone"), -libc::ENOENT);
        assert_eq!(made.layout(1), Err(-libc::ENOENT));
        assert_eq!(made.layout(2).expect("there").rank, 0);
        let before = ran(handle, 2);
        while ran(handle, 2) < before + 5 {}
        // It ends the run with what it is answered.
        let itself = TaskRecord::new(c"itself", changes_itself, made.0.cast(), 300_000_000);
        assert_eq!(made.add_task(itself), 0);
        assert_eq!(running.join().expect("no panic"), -libc::EDEADLK);
    });
    assert!(first.ran >= 10 && second.ran == ran(handle, 2) && third.ran == 0);
}

#[test]
fn what_cannot_change_while_it_runs_is_refused() {
    let made = Made::new();
    let (mut first, mut second) = (Work::default(), Work::default());
    assert_eq!((made.add(c"first", 2_000_000, &mut first), made.build()), (0, 0));
    let handle = made.0 as usize;
    std::thread::scope(|scope| {
        let running = scope.spawn(move || {
            let mut options = quick();
            options.watched(1_000_000_000);
            // SAFETY: an executive until the join, and local options.
            unsafe { punctual_executive_run(handle as *mut Executive, &options, 0) }
        });
        while ran(handle, 0) < 5 {}
        assert_eq!((made.frame(1_000_000, 1), made.build()), (-libc::EBUSY, -libc::EBUSY));
        assert_eq!(made.add(c"second", 2_000_000, &mut second), 0);
        // The last one may go as well, and the watchdog bears with that.
        assert_eq!((made.remove(0), made.remove(1), made.stopped()), (0, 0, 0));
        assert_eq!(made.stop(), 0);
        assert_eq!(running.join().expect("no panic"), 0);
    });
    assert_eq!(made.run(1), -libc::EINVAL);
    assert!(said().contains("without tasks"));
}

#[test]
fn changes_hold_whatever_run_begins_or_ends_meanwhile() {
    let made = Made::new();
    let (mut first, mut second) = (Work::default(), Work::default());
    assert_eq!((made.add(c"first", 1_000_000, &mut first), made.build()), (0, 0));
    let (handle, done) = (made.0 as usize, AtomicBool::new(false));
    let (runs, changes) = std::thread::scope(|scope| {
        let done = &done;
        let running = scope.spawn(move || {
            let mut answers = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let executive = handle as *mut Executive;
                // SAFETY: an executive until the join, and local options.
                answers.push(unsafe { punctual_executive_run(executive, &quick(), 2_000_000) });
            }
            answers
        });
        let mut changes = Vec::new();
        for index in 1..30 {
            changes.push((made.add(c"second", 700_000, &mut second), said()));
            changes.push((made.remove(index), said()));
        }
        done.store(true, Ordering::Relaxed);
        (running.join().expect("no panic"), changes)
    });
    assert!(runs.iter().all(|answer| *answer == 0), "{runs:?}");
    assert!(changes.iter().all(|(answer, _)| *answer == 0), "{changes:?}");
}
