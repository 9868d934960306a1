//! The entries of workers, as C calls them: what is built, run and refused.
#![expect(clippy::multiple_unsafe_ops_per_block, reason = "each is a call of one entry")]

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use super::*;
use crate::errors;
use crate::periodic::tests::quick;
use crate::stats::Cycle;

/// What a task of these tests does: counts, and says what it is told to at a cycle.
#[derive(Debug, Default)]
struct Work {
    ran: AtomicU64,
    says: AtomicI32,
    at: u64,
}

unsafe extern "C" fn work(data: *mut c_void, cycle: *const Cycle) -> c_int {
    // SAFETY: each task of these tests has a `Work`, which outlives its run.
    let work = unsafe { &*data.cast::<Work>() };
    // SAFETY: alive for the call, says the header.
    assert_eq!(unsafe { (*cycle).size }, size_of::<Cycle>());
    let ran = work.ran.fetch_add(1, Ordering::Relaxed) + 1;
    if ran >= work.at { work.says.load(Ordering::Relaxed) } else { 0 }
}

/// Paces five cycles.
unsafe extern "C" fn five(data: *mut c_void) -> c_int {
    // SAFETY: as above.
    let work = unsafe { &*data.cast::<Work>() };
    c_int::from(work.ran.load(Ordering::Relaxed) < 5)
}

/// Fails at once.
unsafe extern "C" fn broken(_: *mut c_void) -> c_int {
    -libc::EIO
}

struct Held(*mut Crew);

impl Held {
    fn new() -> Self {
        let mut crew = null_mut();
        // SAFETY: it is local.
        assert_eq!(unsafe { punctual_workers_create(&raw mut crew) }, 0);
        Self(crew)
    }

    fn add(&self, task: TaskRecord) -> c_int {
        // SAFETY: workers, a local task, no index.
        unsafe { punctual_workers_add(self.0, &raw const task, null_mut()) }
    }

    fn add_external(&self, task: TaskRecord, source: Option<Blocks>) -> c_int {
        // SAFETY: workers, a local task, no index.
        unsafe { punctual_workers_add_external(self.0, &raw const task, source, null_mut()) }
    }

    fn build(&self) -> c_int {
        // SAFETY: workers.
        unsafe { punctual_workers_build(self.0) }
    }

    fn run(&self, options: &Options, duration_ns: u64) -> c_int {
        // SAFETY: workers, and local options.
        unsafe { punctual_workers_run(self.0, options, duration_ns) }
    }

    fn ran(&self, task: u32) -> String {
        let mut stats = Stats::blank();
        // SAFETY: workers, and a local result.
        assert_eq!(unsafe { punctual_workers_task_stats(self.0, task, &raw mut stats) }, 0);
        format!("{stats:?}").split(", ").nth(1).expect("fields").to_owned()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: workers, used no more.
        assert_eq!(unsafe { punctual_workers_destroy(self.0) }, 0);
    }
}

fn task(name: &CStr, work_of: &Work) -> TaskRecord {
    TaskRecord::of(name, work, std::ptr::from_ref(work_of).cast_mut().cast(), 2_000_000)
}

/// As workers take them: with a priority, which may be refused.
fn options() -> Options {
    let mut options = quick();
    options.prefer(50);
    options
}

const MINUTE_NS: u64 = 60_000_000_000;

#[test]
fn they_run_and_run_again_until_one_says_so() {
    let held = Held::new();
    let steady = Work::default();
    let ends = Work { says: AtomicI32::new(1), at: 10, ..Work::default() };
    assert_eq!((held.add(task(c"steady", &steady)), held.add(task(c"ends", &ends))), (0, 0));
    assert_eq!(held.build(), 0);
    let (mut phase_ns, mut ending, mut info) = (u64::MAX, 7, WaitInfo::blank());
    // SAFETY: workers, and local results.
    unsafe {
        assert_eq!(punctual_workers_task_phase_ns(held.0, 1, &raw mut phase_ns), 0);
        assert_eq!(punctual_workers_wait_info(held.0, &raw mut info), -libc::ENODATA);
        assert_eq!(punctual_workers_ending(held.0, &raw mut ending), 0);
    }
    assert!(phase_ns < 2_000_000 && ending == 0);
    assert_eq!(held.run(&options(), MINUTE_NS), 0);
    assert_eq!((ends.ran.load(Ordering::Relaxed), held.ran(1)), (10, "ran: 10".to_owned()));
    let before = steady.ran.load(Ordering::Relaxed);
    assert_eq!(held.ran(0), format!("ran: {before}"));
    // Counted anew, on the page where it was read before.
    assert_eq!(held.run(&options(), MINUTE_NS), 0);
    assert_eq!((ends.ran.load(Ordering::Relaxed), held.ran(1)), (11, "ran: 1".to_owned()));
    let (mut outcome, mut half_ns) = (Outcome::blank(), -1);
    // SAFETY: workers, and local results.
    unsafe {
        assert_eq!(punctual_workers_task_outcome(held.0, 1, &raw mut outcome), 0);
        assert_eq!(punctual_workers_task_quantile_ns(held.0, 1, 0.5, &raw mut half_ns), 0);
        assert_eq!(punctual_workers_wait_info(held.0, &raw mut info), 0);
        assert_eq!(punctual_workers_ending(held.0, &raw mut ending), 0);
        assert_eq!(punctual_workers_stop(held.0), 0);
    }
    assert!(half_ns >= 0 && ending == 1 && format!("{outcome:?}").contains("overran: 0"));
    assert_eq!(held.run(&options(), 0), 0, "stopped for good");
    assert_eq!(ends.ran.load(Ordering::Relaxed), 11);
}

#[test]
fn a_task_or_a_source_that_fails_ends_the_run_with_what_it_says() {
    let held = Held::new();
    let fails = Work { says: AtomicI32::new(-libc::EIO), at: 3, ..Work::default() };
    assert_eq!((held.add(task(c"fails", &fails)), held.build()), (0, 0));
    assert_eq!(held.run(&options(), MINUTE_NS), -libc::EIO);
    assert_eq!(fails.ran.load(Ordering::Relaxed), 3);
    let held = Held::new();
    let (steady, paced) = (Work::default(), Work::default());
    assert_eq!(held.add(task(c"steady", &steady)), 0);
    assert_eq!((held.add_external(task(c"paced", &paced), Some(broken)), held.build()), (0, 0));
    assert_eq!(held.run(&options(), MINUTE_NS), -libc::EIO);
    assert_eq!(paced.ran.load(Ordering::Relaxed), 0);
}

#[test]
fn a_device_paces_what_has_no_releases() {
    let held = Held::new();
    let ends = Work { says: AtomicI32::new(1), at: 20, ..Work::default() };
    let paced = Work::default();
    assert_eq!(held.add(task(c"ends", &ends)), 0);
    assert_eq!(held.add_external(task(c"paced", &paced), Some(five)), 0);
    assert_eq!(held.build(), 0);
    // SAFETY: workers, and a local result.
    let phase = unsafe { punctual_workers_task_phase_ns(held.0, 1, &mut 0) };
    assert_eq!(phase, -libc::ENODATA);
    assert_eq!(held.run(&options(), MINUTE_NS), 0);
    // Distances are one less than cycles.
    assert_eq!((paced.ran.load(Ordering::Relaxed), held.ran(1)), (5, "ran: 4".to_owned()));
}

#[test]
fn what_cannot_be_is_refused_and_named() {
    let (work, held) = (Work::default(), Held::new());
    assert_eq!(held.build(), -libc::EINVAL);
    assert!(errors::tests::last().contains("without tasks"));
    assert_eq!(held.run(&options(), 1), -libc::EINVAL);
    assert!(errors::tests::last().contains("not built"));
    assert_eq!(held.add(TaskRecord::blank()), -libc::EINVAL);
    assert_eq!(held.add_external(task(c"a", &work), None), -libc::EINVAL);
    assert!(errors::tests::last().contains("paces"));
    for cpu in [-2, i32::MIN] {
        // SAFETY: workers.
        assert_eq!(unsafe { punctual_workers_pin(held.0, cpu) }, -libc::EINVAL);
    }
    assert_eq!(held.add(task(c"a", &work).budget(1_500_000)), 0);
    assert_eq!(held.add(task(c"b", &work).budget(1_500_000)), 0);
    assert_eq!(held.build(), -libc::ENOSPC);
    // SAFETY: workers.
    unsafe {
        assert_eq!(punctual_workers_allow_overload(held.0), 0);
        assert_eq!(punctual_workers_pin(held.0, -1), 0);
        assert_eq!(punctual_workers_grace_ns(held.0, u64::MAX), 0);
        assert_eq!(held.build(), 0);
        assert_eq!(punctual_workers_pin(held.0, 0), -libc::EBUSY);
        assert_eq!(punctual_workers_grace_ns(held.0, 1), -libc::EBUSY);
        let none = punctual_workers_task_outcome(held.0, 0, &mut Outcome::blank());
        assert_eq!(none, -libc::ENODATA);
        assert_eq!(punctual_workers_task_stats(held.0, 2, &mut Stats::blank()), -libc::ENOENT);
        assert_eq!(punctual_workers_task_phase_ns(held.0, 2, &mut 0), -libc::ENOENT);
    }
    let mut options = quick();
    assert_eq!(held.run(&options, 1), -libc::EINVAL);
    assert!(errors::tests::last().contains("from 2 to 98"));
    options.prefer(99);
    assert_eq!(held.run(&options, 1), -libc::EINVAL);
    assert!(errors::tests::last().contains("(got 99)"), "{}", errors::tests::last());
    options.prefer(1);
    assert_eq!(held.run(&options, 1), -libc::EINVAL);
    assert!(errors::tests::last().contains("1 is not in [2, 98]"), "{}", errors::tests::last());
    options.prefer(50);
    options.watched(1_000_000_000);
    assert_eq!(held.run(&options, 1), -libc::EINVAL);
    assert!(errors::tests::last().contains("watchdog of their own"));
    let twin = Held::new();
    assert_eq!((twin.add(task(c"a", &work)), twin.add(task(c"a", &work))), (0, 0));
    assert_eq!(twin.build(), -libc::EEXIST);
    let paced = Held::new();
    assert_eq!(paced.add_external(task(c"a", &work).policy(3), Some(five)), 0);
    assert_eq!(paced.build(), -libc::EINVAL);
    assert!(errors::tests::last().contains("device"), "{}", errors::tests::last());
}

#[test]
fn a_cpu_that_is_not_there_is_told_and_strictly_refused() {
    let (work, held) = (Work::default(), Held::new());
    assert_eq!(held.add(task(c"a", &work)), 0);
    // SAFETY: workers.
    assert_eq!(unsafe { punctual_workers_pin(held.0, 1023) }, 0);
    assert_eq!(held.build(), 0);
    let mut strict = options();
    strict.strict = 1;
    assert_eq!(held.run(&strict, 1_000_000), -libc::EACCES);
    assert!(errors::tests::last().contains("pin to CPU 1023"), "{}", errors::tests::last());
    assert_eq!(work.ran.load(Ordering::Relaxed), 0);
    assert_eq!(held.run(&options(), 1_000_000), 0);
    let mut room: [c_char; 64] = [0; 64];
    // SAFETY: workers, and as much room as is said.
    assert_eq!(unsafe { punctual_workers_refused(held.0, room.as_mut_ptr(), 64) }, 0);
    // SAFETY: a text that ends.
    let said = unsafe { CStr::from_ptr(room.as_ptr()) }.to_str().expect("UTF-8");
    assert!(said.starts_with("pin to CPU 1023: E"), "{said}");
}

#[test]
fn a_panic_inside_any_entry_is_an_error_outside() {
    let held = Held::new();
    let fault = -libc::ENOTRECOVERABLE;
    let panics = border::tests::panic_next;
    let (of, none) = (held.0, null_mut());
    // SAFETY: workers, and null where nothing is reached.
    unsafe {
        panics();
        assert_eq!(punctual_workers_create(&mut null_mut()), fault);
        panics();
        assert_eq!(punctual_workers_add(of, null(), null_mut()), fault);
        panics();
        assert_eq!(punctual_workers_add_external(of, null(), None, null_mut()), fault);
        panics();
        assert_eq!(punctual_workers_allow_overload(of), fault);
        panics();
        assert_eq!(punctual_workers_pin(of, 0), fault);
        panics();
        assert_eq!(punctual_workers_grace_ns(of, 0), fault);
        panics();
        assert_eq!(punctual_workers_build(of), fault);
        panics();
        assert_eq!(punctual_workers_task_phase_ns(of, 0, none), fault);
        panics();
        assert_eq!(punctual_workers_run(of, null(), 0), fault);
        panics();
        assert_eq!(punctual_workers_stop(of), fault);
        panics();
        assert_eq!(punctual_workers_ending(of, null_mut()), fault);
        panics();
        assert_eq!(punctual_workers_task_stats(of, 0, null_mut()), fault);
        panics();
        assert_eq!(punctual_workers_task_quantile_ns(of, 0, 0.5, null_mut()), fault);
        panics();
        assert_eq!(punctual_workers_task_outcome(of, 0, null_mut()), fault);
        panics();
        assert_eq!(punctual_workers_wait_info(of, null_mut()), fault);
        panics();
        assert_eq!(punctual_workers_refused(of, null_mut(), 0), fault);
        panics();
        assert_eq!(punctual_workers_destroy(of), fault);
    }
}
