//! The entries of an executive, as C calls them: what is built, run and refused.
#![expect(clippy::multiple_unsafe_ops_per_block, reason = "each is a call of one entry")]

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_testkit::skip;

use super::*;
use super::{
    punctual_executive_peak, punctual_executive_refused, punctual_executive_summary,
    punctual_executive_task_layout, punctual_executive_task_quantile_ns,
    punctual_executive_task_stats, punctual_executive_wait_info,
};
use crate::errors;
use crate::executive::Layout;
use crate::stats::Cycle;
use crate::stats::Stats;
use crate::wait_info::WaitInfo;

mod changes;
mod options;
mod refused;
mod threads;
mod units;

/// The work of a task of these tests: it counts, and returns a given answer at a given cycle.
#[derive(Debug, Default)]
struct Work {
    ran: u64,
    answer: c_int,
    at: u64,
    last: u64,
    most_part: u64,
    /// Done after so many.
    parts: u64,
}

unsafe extern "C" fn work(data: *mut c_void, cycle: *const Cycle) -> c_int {
    // SAFETY: each task of these tests has a `Work` of its own.
    let work = unsafe { &mut *data.cast::<Work>() };
    // SAFETY: alive for the call, says the header.
    let cycle = unsafe { &*cycle };
    assert!(cycle.size == size_of::<Cycle>() && cycle.next_ns > cycle.release_ns);
    (work.ran, work.last) = (work.ran + 1, cycle.n);
    work.most_part = work.most_part.max(cycle.part);
    match work {
        work if work.ran == work.at => work.answer,
        work if cycle.part < work.parts => 2,
        _ => 0,
    }
}

/// Set up at once, and without rights.
fn quick() -> Options {
    let mut options = Options::blank();
    options.plain(0);
    options
}

/// An executive that is destroyed at its end.
struct Made(*mut Executive);

impl Made {
    fn new() -> Self {
        let mut executive = null_mut();
        // SAFETY: it is local.
        assert_eq!(unsafe { punctual_executive_create(&raw mut executive) }, 0);
        Self(executive)
    }

    fn add(&self, name: &CStr, period_ns: u64, work_of: &mut Work) -> c_int {
        self.add_task(task(name, period_ns, work_of))
    }

    fn add_task(&self, task: TaskRecord) -> c_int {
        // SAFETY: an executive, a local task, no index.
        unsafe { punctual_executive_add(self.0, &raw const task, null_mut()) }
    }

    fn add_unit(&self, unit: UnitRecord) -> c_int {
        // SAFETY: an executive, a local unit, no index.
        unsafe { punctual_executive_add_unit(self.0, &raw const unit, null_mut()) }
    }

    fn frame(&self, num_ns: u64, den: u64) -> c_int {
        // SAFETY: an executive.
        unsafe { punctual_executive_frame(self.0, num_ns, den) }
    }

    fn remove(&self, index: u32) -> c_int {
        // SAFETY: an executive.
        unsafe { punctual_executive_remove(self.0, index) }
    }

    fn build(&self) -> c_int {
        // SAFETY: an executive, and local options.
        unsafe { punctual_executive_build(self.0, &quick()) }
    }

    fn run(&self, duration_ns: u64) -> c_int {
        self.run_with(&quick(), duration_ns)
    }

    fn run_with(&self, options: &Options, duration_ns: u64) -> c_int {
        // SAFETY: an executive, and local options.
        unsafe { punctual_executive_run(self.0, options, duration_ns) }
    }

    fn stop(&self) -> c_int {
        // SAFETY: an executive.
        unsafe { punctual_executive_stop(self.0) }
    }

    fn stopped(&self) -> c_int {
        let mut stopped = 7;
        // SAFETY: an executive, and a local result.
        assert_eq!(unsafe { punctual_executive_stopped(self.0, &raw mut stopped) }, 0);
        stopped
    }

    fn layout(&self, index: u32) -> Result<Layout, c_int> {
        let mut layout = Layout::blank();
        // SAFETY: an executive, and a local result.
        match unsafe { punctual_executive_task_layout(self.0, index, &raw mut layout) } {
            0 => Ok(layout),
            error => Err(error),
        }
    }

    fn try_stats(&self, index: u32) -> Result<Stats, c_int> {
        let mut stats = Stats::blank();
        // SAFETY: an executive, and a local result.
        match unsafe { punctual_executive_task_stats(self.0, index, &raw mut stats) } {
            0 => Ok(stats),
            error => Err(error),
        }
    }

    fn ran(&self, index: u32) -> u64 {
        self.try_stats(index).expect("there").ran()
    }

    fn quantile_ns(&self, index: u32, share: f64) -> Result<i64, c_int> {
        let mut ns = -1;
        // SAFETY: an executive, and a local result.
        match unsafe { punctual_executive_task_quantile_ns(self.0, index, share, &raw mut ns) } {
            0 => Ok(ns),
            error => Err(error),
        }
    }

    fn wait_info(&self) -> c_int {
        // SAFETY: an executive, and a local result.
        unsafe { punctual_executive_wait_info(self.0, &mut WaitInfo::blank()) }
    }

    fn text(
        &self,
        entry: unsafe extern "C" fn(*const Executive, *mut c_char, usize) -> c_int,
    ) -> String {
        let mut text: [c_char; 1024] = [0; 1024];
        // SAFETY: an executive, and as much memory as is said.
        assert_eq!(unsafe { entry(self.0, text.as_mut_ptr(), text.len()) }, 0);
        // SAFETY: a text that ends.
        unsafe { CStr::from_ptr(text.as_ptr()) }.to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // SAFETY: an executive, used no more.
        assert_eq!(unsafe { punctual_executive_destroy(self.0) }, 0);
    }
}

fn task(name: &CStr, period_ns: u64, work_of: &mut Work) -> TaskRecord {
    TaskRecord::new(name, work, std::ptr::from_mut(work_of).cast(), period_ns)
}

/// The words of the last failure.
fn said() -> String {
    errors::tests::last()
}

#[test]
fn two_tasks_run_for_a_while_and_are_counted() {
    let made = Made::new();
    let (mut slow, mut quick) = (Work::default(), Work::default());
    assert_eq!(made.add(c"slow", 5_000_000, &mut slow), 0);
    assert_eq!(made.add(c"quick", 1_000_000, &mut quick), 0);
    assert_eq!(made.build(), 0);
    let mut peak = 0;
    // SAFETY: an executive, and a local result.
    assert_eq!(unsafe { punctual_executive_peak(made.0, &raw mut peak) }, 0);
    let [first, second] = [0, 1].map(|index| made.layout(index).expect("built"));
    assert_eq!((first.rank, peak), (1, 2), "the shorter period first");
    assert!(second.phase_ns < 1_000_000 && second.cpu == -1);
    assert_eq!(made.run(40_000_000), 0);
    assert!(quick.ran >= 1 && slow.ran >= 1);
    assert_eq!((made.ran(0), made.ran(1)), (slow.ran, quick.ran));
    assert!(made.quantile_ns(1, 0.5).expect("it ran") >= 0);
    assert_eq!(made.wait_info(), 0);
    let summary = made.text(punctual_executive_summary);
    assert!(summary.contains(&format!("quick: {} ran", quick.ran)), "{summary}");
    assert!(summary.contains("finished"), "{summary}");
    // A second run counts anew.
    let before = quick.ran;
    assert_eq!(made.run(5_000_000), 0);
    assert_eq!(made.ran(1), quick.ran - before);
}

#[test]
fn a_run_without_build_builds_and_lays_out() {
    let made = Made::new();
    let mut work = Work::default();
    assert_eq!(made.add(c"a", 1_000_000, &mut work), 0);
    assert_eq!(made.layout(0), Err(-libc::EINVAL));
    assert!(said().contains("not built"), "{}", said());
    assert_eq!(made.run(5_000_000), 0);
    assert_eq!(made.layout(0).expect("built").rank, 0);
    assert!(work.ran > 0);
}

#[test]
fn a_reader_is_not_disturbed_by_runs_that_begin() {
    let made = Made::new();
    let mut task = Work::default();
    made.add(c"a", 1_000_000, &mut task);
    assert_eq!(made.build(), 0);
    let (handle, done) = (made.0 as usize, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stats = Stats::blank();
            while !done.load(Ordering::Relaxed) {
                let executive = handle as *const Executive;
                // SAFETY: an executive until the join, and a local result.
                let answer = unsafe { punctual_executive_task_stats(executive, 0, &raw mut stats) };
                assert_eq!(answer, 0);
            }
        });
        for _ in 0..10 {
            assert_eq!(made.run(1), 0);
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_task_ends_the_run_with_what_it_returns() {
    for (answer, of_run) in [(1, 0), (-libc::EIO, -libc::EIO), (c_int::MIN, -c_int::MAX)] {
        let made = Made::new();
        let mut task = Work { answer, at: 3, ..Work::default() };
        assert_eq!(made.add(c"a", 1_000_000, &mut task), 0);
        assert_eq!(made.run(0), of_run);
        assert_eq!((task.ran, made.stopped()), (3, 1));
    }
}

#[test]
fn a_stop_holds_for_good_and_comes_from_any_thread() {
    let made = Made::new();
    let mut task = Work::default();
    made.add(c"a", 1_000_000, &mut task);
    assert_eq!((made.build(), made.stopped()), (0, 0));
    let handle = made.0 as usize;
    let stopper = std::thread::spawn(move || {
        // SAFETY: an executive until the join.
        unsafe { punctual_executive_stop(handle as *mut Executive) }
    });
    assert_eq!(made.run(0), 0);
    assert_eq!(stopper.join().expect("no panic"), 0);
    let ran = task.ran;
    assert_eq!((made.run(0), task.ran), (0, ran));
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
    let made = Made::new();
    let stops = TaskRecord::new(c"arm", overrun, null_mut(), 1_000_000).on_overrun(4);
    assert_eq!(made.add_task(stops), 0);
    assert_eq!(made.run(0), -libc::ETIME);
    assert!(said().contains("\"arm\""));
}

/// Does nothing until the watchdog has had enough of it.
unsafe extern "C" fn stuck(data: *mut c_void, _: *const Cycle) -> c_int {
    let mut stats = Stats::blank();
    while format!("{stats:?}").contains("forced: 0") {
        // SAFETY: the executive that runs this, and a local result.
        unsafe { punctual_executive_task_stats(data.cast(), 0, &raw mut stats) };
    }
    0
}

#[test]
fn a_watchdog_ends_a_run_with_an_error() {
    if !skip::need_native("real timing") {
        return;
    }
    let made = Made::new();
    assert_eq!(made.add_task(TaskRecord::new(c"stuck", stuck, made.0.cast(), 1_000_000)), 0);
    let mut options = quick();
    options.watched(100_000_000);
    assert_eq!(made.run_with(&options, 0), -libc::ETIMEDOUT);
}

#[test]
fn a_panic_inside_any_entry_is_an_error_outside() {
    let made = Made::new();
    let fault = -libc::ENOTRECOVERABLE;
    let panics = ffi::tests::panic_next;
    let (executive, none) = (made.0, null_mut());
    // SAFETY: an executive, and null where nothing is reached.
    unsafe {
        panics();
        assert_eq!(punctual_executive_create(&mut null_mut()), fault);
        panics();
        assert_eq!(punctual_executive_add(executive, null(), null_mut()), fault);
        panics();
        assert_eq!(punctual_executive_add_unit(executive, null(), null_mut()), fault);
        panics();
        assert_eq!(punctual_executive_remove(executive, 0), fault);
        panics();
        assert_eq!(punctual_executive_frame(executive, 1, 1), fault);
        panics();
        assert_eq!(punctual_executive_idle(executive, 1, None, null_mut()), fault);
        panics();
        assert_eq!(punctual_executive_allow_overload(executive), fault);
        panics();
        assert_eq!(punctual_executive_build(executive, null()), fault);
        panics();
        assert_eq!(punctual_executive_peak(executive, none), fault);
        panics();
        assert_eq!(punctual_executive_task_layout(executive, 0, null_mut()), fault);
        panics();
        assert_eq!(punctual_executive_run(executive, null(), 0), fault);
        panics();
        assert_eq!(punctual_executive_stop(executive), fault);
        panics();
        assert_eq!(punctual_executive_stopped(executive, null_mut()), fault);
        panics();
        assert_eq!(punctual_executive_task_stats(executive, 0, null_mut()), fault);
        panics();
        assert_eq!(punctual_executive_task_quantile_ns(executive, 0, 0.5, null_mut()), fault);
        panics();
        assert_eq!(punctual_executive_wait_info(executive, null_mut()), fault);
        panics();
        assert_eq!(punctual_executive_refused(executive, null_mut(), 0), fault);
        panics();
        assert_eq!(punctual_executive_summary(executive, null_mut(), 0), fault);
        panics();
        assert_eq!(punctual_executive_destroy(executive), fault);
    }
}
