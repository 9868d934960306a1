//! Tasks in threads of their own: released, and triggered by a device.

use std::sync::atomic::{AtomicI32, AtomicU64};

use super::*;

/// What a task of these tests does, in whatever thread.
#[derive(Debug, Default)]
struct Shared {
    ran: AtomicU64,
    answer: AtomicI32,
    at: u64,
}

unsafe extern "C" fn shared(data: *mut c_void, cycle: *const Cycle) -> c_int {
    // SAFETY: each task of these tests has a `Shared`, which outlives its run.
    let work = unsafe { &*data.cast::<Shared>() };
    // SAFETY: alive for the call, says the header.
    assert_eq!(unsafe { (*cycle).size }, size_of::<Cycle>());
    let ran = work.ran.fetch_add(1, Ordering::Relaxed) + 1;
    if ran >= work.at { work.answer.load(Ordering::Relaxed) } else { 0 }
}

/// Triggers five cycles.
unsafe extern "C" fn five(data: *mut c_void) -> c_int {
    // SAFETY: as above.
    let work = unsafe { &*data.cast::<Shared>() };
    c_int::from(work.ran.load(Ordering::Relaxed) < 5)
}

/// Fails at once.
unsafe extern "C" fn broken(_: *mut c_void) -> c_int {
    -libc::EIO
}

fn own(name: &CStr, work: &Shared) -> TaskRecord {
    let data = std::ptr::from_ref(work).cast_mut().cast();
    TaskRecord::new(name, shared, data, 2_000_000).in_thread(-1)
}

/// With a priority, which may be refused.
fn options() -> Options {
    let mut options = quick();
    options.prefer(50);
    options
}

const MINUTE_NS: u64 = 60_000_000_000;

#[test]
fn they_run_and_run_again_until_one_says_so() {
    let made = Made::new();
    let steady = Shared::default();
    let ends = Shared { answer: AtomicI32::new(1), at: 10, ..Shared::default() };
    assert_eq!(
        (made.add_task(own(c"steady", &steady)), made.add_task(own(c"ends", &ends))),
        (0, 0)
    );
    assert_eq!((made.build(), made.wait_info(), made.stopped()), (0, -libc::ENODATA, 0));
    assert!(made.layout(1).expect("built").phase_ns < 2_000_000);
    assert_eq!(made.run_with(&options(), MINUTE_NS), 0);
    assert_eq!((ends.ran.load(Ordering::Relaxed), made.ran(1)), (10, 10));
    assert_eq!(made.ran(0), steady.ran.load(Ordering::Relaxed));
    assert_eq!(made.run_with(&options(), MINUTE_NS), 0);
    assert_eq!((ends.ran.load(Ordering::Relaxed), made.ran(1)), (11, 1), "counted anew");
    let stats = format!("{:?}", made.try_stats(1).expect("there"));
    assert!(stats.contains("over_release: 0") && stats.contains("demoted: 0"), "{stats}");
    assert!(made.quantile_ns(1, 0.5).expect("it ran") >= 0);
    assert_eq!((made.wait_info(), made.stopped(), made.stop()), (0, 1, 0));
    assert_eq!(made.run_with(&options(), 0), 0, "stopped for good");
    assert_eq!(ends.ran.load(Ordering::Relaxed), 11);
}

#[test]
fn a_task_or_a_trigger_that_fails_ends_the_run_with_what_it_returns() {
    let made = Made::new();
    let fails = Shared { answer: AtomicI32::new(-libc::EIO), at: 3, ..Shared::default() };
    assert_eq!(made.add_task(own(c"fails", &fails)), 0);
    assert_eq!(made.run_with(&options(), MINUTE_NS), -libc::EIO);
    assert_eq!(fails.ran.load(Ordering::Relaxed), 3);
    let made = Made::new();
    let (steady, paced) = (Shared::default(), Shared::default());
    assert_eq!(made.add_task(own(c"steady", &steady)), 0);
    assert_eq!(made.add_task(own(c"paced", &paced).triggered(broken)), 0);
    assert_eq!(made.run_with(&options(), MINUTE_NS), -libc::EIO);
    assert_eq!(paced.ran.load(Ordering::Relaxed), 0);
}

#[test]
fn a_device_triggers_what_has_no_releases() {
    let made = Made::new();
    let ends = Shared { answer: AtomicI32::new(1), at: 20, ..Shared::default() };
    let (paced, unknown) = (Shared::default(), Shared::default());
    assert_eq!(made.add_task(own(c"ends", &ends)), 0);
    assert_eq!(made.add_task(own(c"paced", &paced).triggered(five)), 0);
    let unknown = own(c"of no period", &unknown).triggered(five).period(0);
    assert_eq!((made.add_task(unknown), made.build()), (0, 0));
    assert_eq!(made.layout(1).expect("built").phase_ns, u64::MAX);
    assert_eq!(made.run_with(&options(), MINUTE_NS), 0);
    // Distances are one less than cycles.
    assert_eq!((paced.ran.load(Ordering::Relaxed), made.ran(1), made.ran(2)), (5, 4, 4));
}

#[test]
fn what_cannot_be_is_refused_and_named() {
    let (work, made) = (Shared::default(), Made::new());
    assert_eq!(made.add_task(own(c"a", &work).budget(1_500_000)), 0);
    assert_eq!(made.add_task(own(c"b", &work).budget(1_500_000)), 0);
    assert_eq!(made.build(), -libc::ENOSPC);
    // SAFETY: an executive.
    assert_eq!(unsafe { punctual_executive_allow_overload(made.0) }, 0);
    assert_eq!(made.build(), 0);
    assert_eq!(made.layout(2), Err(-libc::ENOENT));
    for priority in [99, -1, 256] {
        let mut options = quick();
        options.prefer(priority);
        assert_eq!(made.run_with(&options, 1), -libc::EINVAL);
        assert!(said().contains(&format!("(got {priority})")), "{}", said());
    }
    let above = Made::new();
    assert_eq!(above.add_task(own(c"a", &work).place(2, -1, 50)), 0);
    assert_eq!(above.run_with(&options(), 1), -libc::EINVAL);
    assert!(said().contains("below the executive's 50"), "{}", said());
    let twin = Made::new();
    assert_eq!((twin.add_task(own(c"a", &work)), twin.add_task(own(c"a", &work))), (0, 0));
    assert_eq!(twin.build(), -libc::EEXIST);
    let paced = Made::new();
    assert_eq!(paced.add_task(own(c"a", &work).on_overrun(3).triggered(five)), 0);
    assert_eq!(paced.build(), -libc::EINVAL);
    assert!(said().contains("device"), "{}", said());
    let nowhere = Made::new();
    assert_eq!(nowhere.add_task(own(c"a", &work).in_thread(1023)), 0);
    assert_eq!(nowhere.run_with(&options(), 1_000_000), -libc::EINVAL);
    assert!(said().contains("CPU 1023"), "{}", said());
    assert_eq!(work.ran.load(Ordering::Relaxed), 0);
}
