//! The entries of an executive, as C calls them: what is built, run and refused.
#![expect(clippy::multiple_unsafe_ops_per_block, reason = "each is a call of one entry")]

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_testkit::skip;

use super::*;
use crate::errors;
use crate::stats::Cycle;

mod changes;

/// What a task of these tests does: counts, and says what it is told to at a cycle.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) ran: u64,
    says: c_int,
    at: u64,
    last: u64,
}

unsafe extern "C" fn work(data: *mut c_void, cycle: *const Cycle) -> c_int {
    // SAFETY: each task of these tests has a `Work` of its own.
    let work = unsafe { &mut *data.cast::<Work>() };
    // SAFETY: alive for the call, says the header.
    let cycle = unsafe { &*cycle };
    assert!(cycle.size == size_of::<Cycle>() && cycle.next_ns > cycle.release_ns);
    (work.ran, work.last) = (work.ran + 1, cycle.n);
    if work.ran == work.at { work.says } else { 0 }
}

/// Set up at once, and without rights.
pub(crate) fn quick() -> Options {
    let mut options = Options::blank();
    options.plain(0);
    options
}

/// An executive that is destroyed at its end.
pub(crate) struct Held(pub(crate) *mut Executive);

impl Held {
    pub(crate) fn new() -> Self {
        let mut executive = null_mut();
        // SAFETY: it is local.
        assert_eq!(unsafe { punctual_periodic_create(&raw mut executive) }, 0);
        Self(executive)
    }

    fn add(&self, name: &CStr, period_ns: u64, work_of: &mut Work) -> c_int {
        self.add_task(TaskRecord::of(name, work, std::ptr::from_mut(work_of).cast(), period_ns))
    }

    pub(crate) fn add_with_budget(
        &self,
        name: &CStr,
        period_ns: u64,
        budget_ns: u64,
        work_of: &mut Work,
    ) -> c_int {
        let data = std::ptr::from_mut(work_of).cast();
        self.add_task(TaskRecord::of(name, work, data, period_ns).budget(budget_ns))
    }

    fn add_task(&self, task: TaskRecord) -> c_int {
        // SAFETY: an executive, a local task, no index.
        unsafe { punctual_periodic_add(self.0, &raw const task, null_mut()) }
    }

    pub(crate) fn build(&self) -> c_int {
        // SAFETY: an executive.
        unsafe { punctual_periodic_build(self.0) }
    }

    fn run(&self, duration_ns: u64) -> c_int {
        // SAFETY: an executive, and local options.
        unsafe { punctual_periodic_run(self.0, &quick(), duration_ns) }
    }

    pub(crate) fn stats(&self, task: u32) -> String {
        let mut stats = Stats::blank();
        // SAFETY: an executive, and a local result.
        assert_eq!(unsafe { punctual_periodic_task_stats(self.0, task, &raw mut stats) }, 0);
        format!("{stats:?}")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: an executive, used no more.
        assert_eq!(unsafe { punctual_periodic_destroy(self.0) }, 0);
    }
}

#[test]
fn two_tasks_run_for_a_while_and_are_counted() {
    let held = Held::new();
    let (mut slow, mut quick) = (Work::default(), Work::default());
    assert_eq!(held.add(c"slow", 5_000_000, &mut slow), 0);
    assert_eq!(held.add(c"quick", 1_000_000, &mut quick), 0);
    assert_eq!(held.build(), 0);
    let (mut rank, mut peak, mut phase_ns) = (9, 0, u64::MAX);
    // SAFETY: an executive, and local results.
    unsafe {
        assert_eq!(punctual_periodic_task_rank(held.0, 0, &raw mut rank), 0);
        assert_eq!(punctual_periodic_peak(held.0, &raw mut peak), 0);
        assert_eq!(punctual_periodic_task_phase_ns(held.0, 1, &raw mut phase_ns), 0);
    }
    assert_eq!((rank, peak), (1, 2), "the shorter period first");
    assert!(phase_ns < 1_000_000);
    assert_eq!(held.run(40_000_000), 0);
    assert!(quick.ran >= 1 && slow.ran >= 1);
    assert!(held.stats(0).contains(&format!("ran: {},", slow.ran)));
    assert!(held.stats(1).contains(&format!("ran: {},", quick.ran)));
    let (mut half_ns, mut info) = (-1, WaitInfo::blank());
    // SAFETY: an executive, and local results.
    unsafe {
        assert_eq!(punctual_periodic_task_quantile_ns(held.0, 1, 0.5, &raw mut half_ns), 0);
        assert_eq!(punctual_periodic_wait_info(held.0, &raw mut info), 0);
    }
    assert!(half_ns >= 0);
    // A second run counts anew.
    let before = quick.ran;
    assert_eq!(held.run(5_000_000), 0);
    assert!(held.stats(1).contains(&format!("ran: {},", quick.ran - before)));
}

#[test]
fn a_reader_is_not_disturbed_by_runs_that_begin() {
    let held = Held::new();
    let mut task = Work::default();
    held.add(c"a", 1_000_000, &mut task);
    assert_eq!(held.build(), 0);
    let (handle, done) = (held.0 as usize, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stats = Stats::blank();
            while !done.load(Ordering::Relaxed) {
                let executive = handle as *const Executive;
                // SAFETY: an executive until the join, and a local result.
                let answer = unsafe { punctual_periodic_task_stats(executive, 0, &raw mut stats) };
                assert_eq!(answer, 0);
            }
        });
        for _ in 0..10 {
            assert_eq!(held.run(1), 0);
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_task_ends_the_run_with_what_it_says() {
    for (says, answer) in [(1, 0), (-libc::EIO, -libc::EIO), (c_int::MIN, -c_int::MAX)] {
        let held = Held::new();
        let mut task = Work { says, at: 3, ..Work::default() };
        assert_eq!(held.add(c"a", 1_000_000, &mut task), 0);
        assert_eq!(held.build(), 0);
        assert_eq!(held.run(0), answer);
        assert_eq!(task.ran, 3);
    }
}

#[test]
fn a_stop_holds_for_good_and_comes_from_any_thread() {
    let held = Held::new();
    let mut task = Work::default();
    held.add(c"a", 1_000_000, &mut task);
    assert_eq!(held.build(), 0);
    let handle = held.0 as usize;
    let other = std::thread::spawn(move || {
        // SAFETY: an executive until the join.
        unsafe { punctual_periodic_stop(handle as *mut Executive) }
    });
    assert_eq!(held.run(0), 0);
    assert_eq!(other.join().expect("no panic"), 0);
    let ran = task.ran;
    assert_eq!((held.run(0), task.ran), (0, ran));
}

#[test]
fn what_cannot_be_built_is_named() {
    let held = Held::new();
    let mut task = Work::default();
    let none = TaskRecord::blank();
    assert_eq!(held.add_task(none), -libc::EINVAL);
    assert!(errors::tests::last().contains("without a name"));
    assert_eq!(held.add(c"zero", 0, &mut task), -libc::EINVAL);
    assert_eq!(
        errors::tests::last(),
        "task \"zero\": a period of 0/1 ns: from 1 ns to 2^62 ns \
                                       (146 years)"
    );
    assert_eq!(held.add(c"long", (1 << 62) + 1, &mut task), -libc::EINVAL);
    assert_eq!(held.build(), -libc::EINVAL);
    assert!(errors::tests::last().contains("without tasks"));
    assert_eq!(held.run(1), -libc::EINVAL);
    assert!(errors::tests::last().contains("not built"));
    assert_eq!(held.add(c"twin", 1_000_000, &mut task), 0);
    assert_eq!(held.add(c"twin", 2_000_000, &mut task), 0);
    assert_eq!(held.build(), -libc::EEXIST);
    assert!(errors::tests::last().contains("\"twin\""));
    // SAFETY: an executive; there is no such task yet, and no result.
    unsafe {
        assert_eq!(punctual_periodic_task_rank(held.0, 0, null_mut()), -libc::EINVAL);
        assert_eq!(punctual_periodic_peak(held.0, null_mut()), -libc::EINVAL);
    }
}

#[test]
fn what_asks_for_more_than_the_cpu_is_refused_unless_asked() {
    let held = Held::new();
    let mut task = Work::default();
    let data = std::ptr::from_mut(&mut task).cast();
    for name in [c"a", c"b"] {
        let heavy = TaskRecord::of(name, work, data, 1_000_000).budget(600_000);
        assert_eq!(held.add_task(heavy), 0);
    }
    assert_eq!(held.build(), -libc::ENOSPC);
    assert!(errors::tests::last().contains("1.200"), "{}", errors::tests::last());
    // SAFETY: an executive.
    assert_eq!(unsafe { punctual_periodic_allow_overload(held.0) }, 0);
    assert_eq!(held.build(), 0);
    assert_eq!(held.build(), -libc::EBUSY);
    assert_eq!(held.add(c"b", 1_000_000, &mut task), -libc::EEXIST);
    assert_eq!(held.add(c"c", 1_000_000, &mut task), 0, "built anew");
    // SAFETY: an executive without a fourth task, which has not run yet.
    unsafe {
        assert_eq!(punctual_periodic_task_stats(held.0, 3, &mut Stats::blank()), -libc::ENOENT);
        let no_data = punctual_periodic_task_quantile_ns(held.0, 1, 0.5, &mut 0);
        assert_eq!(no_data, -libc::ENODATA);
        let no_data = punctual_periodic_wait_info(held.0, &mut WaitInfo::blank());
        assert_eq!(no_data, -libc::ENODATA);
    }
}

/// Uses the CPU until its next release has passed.
unsafe extern "C" fn overrun(_: *mut c_void, cycle: *const Cycle) -> c_int {
    // SAFETY: alive for the call, says the header.
    let next_ns = unsafe { (*cycle).next_ns };
    // The clock of the loop may be a few ns behind.
    while crate::clock::punctual_now_ns() < next_ns + 100_000 {
        std::hint::spin_loop();
    }
    0
}

#[test]
fn an_overrun_that_stops_everything_names_its_task() {
    let held = Held::new();
    let stops = TaskRecord::of(c"arm", overrun, null_mut(), 1_000_000).policy(4);
    assert_eq!(held.add_task(stops), 0);
    assert_eq!(held.build(), 0);
    assert_eq!(held.run(0), -libc::ETIME);
    assert!(errors::tests::last().contains("\"arm\""));
}

#[test]
fn each_policy_and_phase_is_what_it_says() {
    let task = |name| TaskRecord::of(name, work, null_mut(), 1_000_000);
    let built = |task: TaskRecord| {
        let held = Held::new();
        match held.add_task(task) {
            0 => held.build(),
            answer => answer,
        }
    };
    for policy in 0..=4 {
        let burst = if policy == 1 { 2 } else { 0 };
        assert_eq!(built(task(c"a").burst(burst).policy(policy)), 0, "{policy}");
    }
    assert_eq!(built(task(c"a").burst(0)), -libc::EINVAL);
    assert!(errors::tests::last().contains("burst"));
    assert_eq!(built(task(c"a").policy(5)), -libc::EINVAL);
    assert_eq!(built(task(c"a").after(None, 5)), -libc::EINVAL);
    assert!(errors::tests::last().contains("after no task"));
    assert_eq!(built(task(c"a").after(Some(c"b"), 5)), -libc::ENOENT);
    assert_eq!(built(task(c"a").after(Some(c"a"), 5)), -libc::EINVAL);
    let held = Held::new();
    assert_eq!(held.add_task(task(c"b").after(Some(c"a"), 300_000)), 0);
    assert_eq!(held.add_task(task(c"a")), 0);
    assert_eq!(held.build(), 0);
    let phase_ns = |index| {
        let mut phase_ns = 0;
        // SAFETY: an executive, and a local result.
        let answer = unsafe { punctual_periodic_task_phase_ns(held.0, index, &raw mut phase_ns) };
        assert_eq!(answer, 0);
        phase_ns
    };
    assert_eq!(phase_ns(0), (phase_ns(1) + 300_000) % 1_000_000);
}

/// Does nothing until the watchdog has had enough of it.
unsafe extern "C" fn stuck(data: *mut c_void, _: *const Cycle) -> c_int {
    let mut stats = Stats::blank();
    while format!("{stats:?}").contains("forced: 0") {
        // SAFETY: the executive that runs this, and a local result.
        unsafe { punctual_periodic_task_stats(data.cast(), 0, &raw mut stats) };
    }
    0
}

#[test]
fn a_watchdog_and_strictness_end_a_run_with_an_error() {
    if !skip::need_native("real timing") {
        return;
    }
    let held = Held::new();
    let task = TaskRecord::of(c"stuck", stuck, held.0.cast(), 1_000_000);
    assert_eq!(held.add_task(task), 0);
    assert_eq!(held.build(), 0);
    let mut options = quick();
    options.pin(1023);
    options.strict = 1;
    // SAFETY: an executive, and local options.
    assert_eq!(unsafe { punctual_periodic_run(held.0, &options, 0) }, -libc::EACCES);
    let mut room: [c_char; 64] = [0; 64];
    // SAFETY: an executive, and as much room as is said.
    assert_eq!(unsafe { punctual_periodic_refused(held.0, room.as_mut_ptr(), 64) }, 0);
    // SAFETY: a text that ends.
    let said = unsafe { CStr::from_ptr(room.as_ptr()) }.to_str().expect("UTF-8");
    assert!(said.starts_with("pin to CPU 1023: E"), "{said}");
    let mut options = quick();
    options.watched(100_000_000);
    // SAFETY: an executive, and local options.
    assert_eq!(unsafe { punctual_periodic_run(held.0, &options, 0) }, -libc::ETIMEDOUT);
}

#[test]
fn a_panic_inside_any_entry_is_an_error_outside() {
    let held = Held::new();
    let fault = -libc::ENOTRECOVERABLE;
    let panics = border::tests::panic_next;
    let (of, none) = (held.0, null_mut());
    // SAFETY: an executive, and null where nothing is reached.
    unsafe {
        panics();
        assert_eq!(punctual_periodic_create(&mut null_mut()), fault);
        panics();
        assert_eq!(punctual_periodic_add(of, null(), null_mut()), fault);
        panics();
        assert_eq!(punctual_periodic_remove(of, 0), fault);
        panics();
        assert_eq!(punctual_periodic_allow_overload(of), fault);
        panics();
        assert_eq!(punctual_periodic_build(of), fault);
        panics();
        assert_eq!(punctual_periodic_peak(of, none), fault);
        panics();
        assert_eq!(punctual_periodic_task_rank(of, 0, null_mut()), fault);
        panics();
        assert_eq!(punctual_periodic_task_phase_ns(of, 0, none), fault);
        panics();
        assert_eq!(punctual_periodic_run(of, null(), 0), fault);
        panics();
        assert_eq!(punctual_periodic_stop(of), fault);
        panics();
        assert_eq!(punctual_periodic_task_stats(of, 0, null_mut()), fault);
        panics();
        assert_eq!(punctual_periodic_task_quantile_ns(of, 0, 0.5, null_mut()), fault);
        panics();
        assert_eq!(punctual_periodic_wait_info(of, null_mut()), fault);
        panics();
        assert_eq!(punctual_periodic_refused(of, null_mut(), 0), fault);
        panics();
        assert_eq!(punctual_periodic_destroy(of), fault);
    }
}
