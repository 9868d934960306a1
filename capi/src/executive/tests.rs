//! The entries of an executive, as C calls them: what is built, run and refused.
#![expect(clippy::multiple_unsafe_ops_per_block, reason = "each is a call of one entry")]

use crate::callback::Body;
use crate::follow;
use punctual_os::scheduler::{self, SchedPolicy};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use punctual::{Phase, RtThread, Task};
use punctual_testkit::skip;

use super::*;
use super::{
    punctual_executive_peak, punctual_executive_refused, punctual_executive_summary,
    punctual_executive_task_layout, punctual_executive_task_quantile_ns,
    punctual_executive_task_stats, punctual_executive_wait_info, punctual_executive_warnings,
};
use crate::errors;
use crate::executive::Layout;
use crate::stats::Cycle;
use crate::stats::Stats;
use crate::wait_info::WaitInfo;

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
    assert!(said().starts_with("the watchdog stopped the loop: "), "{:?}", said());
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
        assert_eq!(punctual_executive_remove_counted(executive, 0, null_mut()), fault);
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
        assert_eq!(punctual_executive_warnings(executive, null_mut(), 0), fault);
        panics();
        assert_eq!(punctual_executive_destroy(executive), fault);
    }
}

// Arguments that cannot be are named, and the kernel's refusals listed.

#[test]
fn what_cannot_be_built_is_named() {
    let made = Made::new();
    let mut task = Work::default();
    assert_eq!(made.add_task(TaskRecord::blank()), -libc::EINVAL);
    assert!(said().contains("without a name"));
    assert_eq!(made.add(c"zero", 0, &mut task), -libc::EINVAL);
    assert_eq!(
        said(),
        "task \"zero\": a period of 0/1 ns (period_num_ns / period_den): from 1 ns to 2^62 ns \
         (146 years)"
    );
    assert_eq!(made.add(c"long", (1 << 62) + 1, &mut task), -libc::EINVAL);
    assert_eq!((made.build(), made.run(1)), (-libc::EINVAL, -libc::EINVAL));
    assert!(said().contains("without tasks"));
    assert_eq!(made.add(c"twin", 1_000_000, &mut task), 0);
    assert_eq!(made.add(c"twin", 2_000_000, &mut task), 0);
    assert_eq!((made.build(), made.run(1)), (-libc::EEXIST, -libc::EEXIST));
    assert!(said().contains("\"twin\""));
    assert_eq!(made.layout(0), Err(-libc::EINVAL));
    // SAFETY: an executive that was not built, and no result.
    assert_eq!(unsafe { punctual_executive_peak(made.0, null_mut()) }, -libc::EINVAL);
}

#[test]
fn what_asks_for_more_than_the_cpu_is_refused_unless_allowed() {
    let made = Made::new();
    let mut work = Work::default();
    for name in [c"a", c"b"] {
        assert_eq!(made.add_task(task(name, 1_000_000, &mut work).budget(600_000)), 0);
    }
    assert_eq!(made.build(), -libc::ENOSPC);
    assert!(said().contains("1.200"), "{}", said());
    // SAFETY: an executive.
    assert_eq!(unsafe { punctual_executive_allow_overload(made.0) }, 0);
    assert_eq!((made.build(), made.build()), (0, 0));
    assert_eq!(made.add(c"b", 1_000_000, &mut work), -libc::EEXIST);
    assert_eq!(made.add(c"c", 1_000_000, &mut work), 0, "built anew");
    assert!(made.layout(2).is_ok());
    assert_eq!(made.try_stats(3).expect_err("no such task"), -libc::ENOENT);
    assert_eq!((made.ran(1), made.quantile_ns(1, 0.5)), (0, Err(-libc::ENODATA)));
    assert_eq!(made.quantile_ns(1, 1.5), Err(-libc::EINVAL));
    assert_eq!(made.wait_info(), -libc::ENODATA);
}

#[test]
fn each_overrun_phase_and_place_is_what_it_says() {
    let task = |name| TaskRecord::new(name, work, null_mut(), 1_000_000);
    let built = |task: TaskRecord| {
        let made = Made::new();
        match made.add_task(task) {
            0 => made.build(),
            answer => answer,
        }
    };
    for on_overrun in 0..=4 {
        let burst = if on_overrun == 1 { 2 } else { 0 };
        assert_eq!(built(task(c"a").burst(burst).on_overrun(on_overrun)), 0, "{on_overrun}");
    }
    assert_eq!(built(task(c"a").burst(0)), -libc::EINVAL);
    assert!(said().contains("burst"));
    assert_eq!(built(task(c"a").on_overrun(5)), -libc::EINVAL);
    assert_eq!(built(task(c"a").after(None, 5)), -libc::EINVAL);
    assert!(said().contains("after no task"));
    assert_eq!(built(task(c"a").after(Some(c"b"), 5)), -libc::ENOENT);
    assert_eq!(built(task(c"a").after(Some(c"a"), 5)), -libc::EINVAL);
    for (place, cpu, priority) in
        [(0, 0, 0), (0, -1, 5), (1, -1, 0), (1, 0, 5), (2, -2, 0), (3, -1, 0)]
    {
        assert_eq!(built(task(c"a").place(place, cpu, priority)), -libc::EINVAL, "{place}");
    }
    let made = Made::new();
    assert_eq!(made.add_task(task(c"b").after(Some(c"a"), 300_000)), 0);
    assert_eq!(made.add_task(task(c"a")), 0);
    assert_eq!(made.build(), 0);
    let phase_ns = |index| made.layout(index).expect("built").phase_ns;
    assert_eq!(phase_ns(0), (phase_ns(1) + 300_000) % 1_000_000);
}

#[test]
fn a_cpu_that_is_not_there_is_an_error_that_names_it() {
    let (made, mut work) = (Made::new(), Work::default());
    assert_eq!(made.add(c"a", 1_000_000, &mut work), 0);
    let mut options = quick();
    // No machine has it.
    options.pin(1023);
    assert_eq!(made.run_with(&options, 1_000_000), -libc::EINVAL);
    assert!(said().contains("CPU 1023"), "{}", said());
    assert_eq!(work.ran, 0);
}

#[test]
fn what_the_kernel_refuses_is_listed_or_strictly_an_error() {
    let (made, mut work) = (Made::new(), Work::default());
    assert_eq!(made.add(c"a", 1_000_000, &mut work), 0);
    let mut options = quick();
    options.greedy();
    assert_eq!(made.run_with(&options, 1_000_000), 0);
    let refused = made.text(punctual_executive_refused);
    options.strict = 1;
    let before = work.ran;
    match (made.run_with(&options, 1_000_000), refused.is_empty()) {
        (0, true) => {}
        (error, false) => {
            assert_eq!((error, work.ran), (-libc::EACCES, before));
            let first = refused.split(':').next().expect("a word");
            assert!(said().contains(first), "{} {refused}", said());
        }
        (error, true) => panic!("{error}: {}", said()),
    }
}

// Background work, sample files and followed clocks.

/// Goes on until it has run as often as it is to.
unsafe extern "C" fn background(data: *mut c_void) -> c_int {
    // SAFETY: the work of the test.
    let work = unsafe { &mut *data.cast::<Work>() };
    work.ran += 1;
    if work.ran == work.at { work.answer } else { 0 }
}

#[test]
fn background_work_runs_beside_the_tasks_and_may_end_the_run() {
    let (made, mut task) = (Made::new(), Work::default());
    let mut idle = Work { at: 20, answer: -libc::EIO, ..Work::default() };
    assert_eq!(made.add(c"a", 10_000_000, &mut task), 0);
    let data = std::ptr::from_mut(&mut idle).cast();
    // SAFETY: an executive.
    unsafe {
        assert_eq!(punctual_executive_idle(made.0, 0, Some(background), data), -libc::EINVAL);
        assert_eq!(punctual_executive_idle(made.0, 1_000, None, data), -libc::EINVAL);
        assert_eq!(punctual_executive_idle(made.0, 1_000, Some(background), data), 0);
    }
    assert_eq!((made.run(0), idle.ran), (-libc::EIO, 20));
}

#[test]
fn samples_are_in_the_file_and_a_file_that_cannot_be_is_an_error() {
    let (made, mut work) = (Made::new(), Work::default());
    assert_eq!(made.add(c"a", 1_000_000, &mut work), 0);
    let file = std::env::temp_dir().join(format!("capi-samples-{}", std::process::id()));
    let name = std::ffi::CString::new(file.to_str().expect("UTF-8")).expect("no zero");
    let mut options = quick();
    options.record(&name);
    assert_eq!(made.run_with(&options, 30_000_000), 0);
    assert!(std::fs::metadata(&file).expect("written").len() > 0);
    let summary = made.text(punctual_executive_summary);
    assert!(summary.contains(" samples in "), "{summary}");
    std::fs::remove_file(&file).expect("there");
    options.record(c"/nowhere/samples");
    assert_eq!(made.run_with(&options, 1_000_000), -libc::ENOENT);
    assert!(said().contains("/nowhere/samples"), "{}", said());
}

/// Of TAI.
unsafe extern "C" fn since_1970(data: *mut c_void, cycle: *const Cycle) -> c_int {
    // SAFETY: alive for the call, says the header; the word of the test.
    let (cycle, ran) = unsafe { (&*cycle, &mut *data.cast::<u64>()) };
    *ran += 1;
    if cycle.release_ns > 1_000_000_000_000_000_000 { 1 } else { -libc::EIO }
}

#[test]
fn on_a_followed_clock_instants_are_its_own() {
    let (made, mut ran) = (Made::new(), 0_u64);
    let data = std::ptr::from_mut(&mut ran).cast();
    assert_eq!(made.add_task(TaskRecord::new(c"a", since_1970, data, 1_000_000)), 0);
    let follow = follow::tests::tai();
    let mut options = quick();
    options.on(follow);
    assert_eq!((made.run_with(&options, 0), ran), (0, 1));
    follow::tests::destroy(follow);
}

// Tasks that are added and removed: before a build, between runs, and while one is under way.

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

// Tasks in threads of their own: released, and triggered by a device.

/// The work of a task of these tests, in whatever thread.
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
fn a_descriptor_triggers_as_often_as_it_is_readable() {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    /// Reads a byte.
    unsafe extern "C" fn reads(data: *mut c_void, _: *const Cycle) -> c_int {
        // SAFETY: the stream of the test, which outlives the run.
        let mut stream = unsafe { &*data.cast::<UnixStream>() };
        i32::from(stream.read_exact(&mut [0]).is_err()) * -libc::EIO
    }

    let (mut device, stream) = UnixStream::pair().expect("a pair");
    let made = Made::new();
    let data = std::ptr::from_ref(&stream).cast_mut().cast();
    let triggered = TaskRecord::new(c"sensor", reads, data, 0).readable(stream.as_raw_fd());
    assert_eq!(made.add_task(triggered), 0);
    let handle = made.0 as usize;
    std::thread::scope(|scope| {
        let running = scope.spawn(move || {
            // SAFETY: an executive until the join, and local options.
            unsafe { punctual_executive_run(handle as *mut Executive, &options(), 0) }
        });
        device.write_all(&[0; 5]).expect("written");
        // Distances are one less than cycles.
        while made.ran(0) < 4 {}
        assert_eq!(made.stop(), 0);
        assert_eq!(running.join().expect("no panic"), 0);
    });
    assert_eq!(made.ran(0), 4);
}

/// Goes on after it was cancelled until its thread has lost its real-time policy, where it had
/// one.
unsafe extern "C" fn runs_on(data: *mut c_void, _: *const Cycle) -> c_int {
    let real_time = || !matches!(scheduler::get(0), Ok(SchedPolicy::Other));
    // SAFETY: the flag of the test, which outlives the run.
    unsafe { &*data.cast::<AtomicBool>() }.store(real_time(), Ordering::Relaxed);
    while real_time() {
        std::hint::spin_loop();
    }
    1
}

#[test]
fn one_that_goes_on_after_its_grace_is_demoted_where_it_had_a_priority() {
    let (made, was_real_time) = (Made::new(), AtomicBool::new(false));
    let data = std::ptr::from_ref(&was_real_time).cast_mut().cast();
    let task = TaskRecord::new(c"runs on", runs_on, data, 2_000_000);
    assert_eq!(made.add_task(task.in_thread(-1).on_overrun(3)), 0);
    let mut options = options();
    options.grant(1_000_000);
    assert_eq!(made.run_with(&options, 0), 0);
    let stats = format!("{:?}", made.try_stats(0).expect("there"));
    let demoted = u64::from(was_real_time.into_inner());
    assert!(stats.contains(&format!("demoted: {demoted}")), "{stats}");
}

/// Where two tasks run.
static SEEN: [AtomicU64; 2] = [const { AtomicU64::new(u64::MAX) }; 2];

unsafe extern "C" fn here<const AT: usize>(_: *mut c_void, _: *const Cycle) -> c_int {
    SEEN[AT].store(punctual_os::affinity::current_cpu().into(), Ordering::Relaxed);
    c_int::from(SEEN.iter().all(|cpu| cpu.load(Ordering::Relaxed) != u64::MAX))
}

#[test]
fn tasks_run_on_the_cpu_that_they_were_laid_out_for() {
    let allowed = punctual_os::affinity::get(0).expect("own");
    let cpus: Vec<i32> = allowed.iter().take(2).map(|cpu| cpu as i32).collect();
    let last = *cpus.last().expect("one at least");
    let made = Made::new();
    let [packed, placed] = [(c"packed", here::<0> as Body), (c"placed", here::<1>)]
        .map(|(name, run)| TaskRecord::new(name, run, null_mut(), 1_000_000));
    assert_eq!((made.add_task(packed), made.add_task(placed.place(1, last, 0))), (0, 0));
    let mut options = quick();
    options.on_cpus(&cpus);
    assert_eq!(made.run_with(&options, 0), 0);
    let laid_out = [0, 1].map(|index| made.layout(index).expect("built").cpu);
    assert!(cpus.contains(&laid_out[0]) && laid_out[1] == last);
    assert_eq!([0, 1].map(|at| SEEN[at].load(Ordering::Relaxed) as i32), laid_out);
}

#[test]
fn what_cannot_be_is_refused_and_named() {
    let (work, made) = (Shared::default(), Made::new());
    let cpu = punctual_os::affinity::get(0).expect("own").iter().next().expect("one at least");
    let on_cpu = |name| own(name, &work).budget(1_500_000).place(2, cpu.cast_signed(), 0);
    assert_eq!(made.add_task(on_cpu(c"a")), 0);
    assert_eq!(made.add_task(on_cpu(c"b")), 0);
    assert_eq!(made.build(), -libc::ENOSPC);
    assert!(said().contains(&format!("1.500 of CPU {cpu}: at most 1")), "{}", said());
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

// Units at fixed places of a frame, and tasks between them.

impl Made {
    fn with_frame() -> Self {
        let made = Self::new();
        assert_eq!(made.frame(2_000_000, 1), 0);
        made
    }
}

fn unit(name: &CStr, work_of: &mut Work, place: (u64, u64)) -> UnitRecord {
    UnitRecord::new(name, Some(work), std::ptr::from_mut(work_of).cast(), place)
}

/// A unit whose body is never called.
fn unused(name: &CStr, place: (u64, u64)) -> UnitRecord {
    UnitRecord::new(name, Some(work), null_mut(), place)
}

/// Runs for 60 ms and, where others keep the CPU, on until each has run to its last part.
fn run_until(made: &Made, works: &[&Work]) {
    for ns in [60_000_000, 1_000_000_000, 20_000_000_000] {
        assert_eq!(made.run(ns), 0);
        if works.iter().all(|work| work.ran > work.parts) {
            return;
        }
    }
    panic!("a body never ran in 21 s");
}

#[test]
fn units_keep_their_places_and_a_filter_goes_on_where_it_was() {
    let made = Made::with_frame();
    let (mut read, mut filter) = (Work::default(), Work { parts: 2, ..Work::default() });
    assert_eq!(made.add_unit(unit(c"read", &mut read, (0, 100_000)).deadline(2_000_000)), 0);
    let first = unit(c"one", &mut filter, (50_000, 100_000)).after(c"read").of(c"filter");
    assert_eq!(made.add_unit(first.deadline(1_900_000)), 0);
    let second = UnitRecord::new(c"two", None, null_mut(), (1_000_000, 100_000));
    assert_eq!(made.add_unit(second.of(c"filter").deadline(1_900_000)), 0);
    assert_eq!(made.build(), 0);
    let place = |index| made.layout(index).expect("built").phase_ns;
    assert_eq!([0, 1, 2].map(place), [0, 150_000, 150_000]);
    run_until(&made, &[&read, &filter]);
    assert_eq!(made.ran(1), made.ran(2), "one task");
    // A cycle of the filter is three parts; the last may not have come to its end.
    assert!((filter.ran / 3..=filter.ran.div_ceil(3)).contains(&made.ran(1)), "{}", filter.ran);
    assert_eq!(made.ran(0), read.ran);
    assert_eq!((filter.most_part, read.most_part), (2, 0));
    assert!(made.quantile_ns(0, 0.5).expect("it ran") >= 0 && made.wait_info() == 0);
}

#[test]
fn tasks_run_between_the_units() {
    let made = Made::with_frame();
    let (mut units, mut beside) = (Work::default(), Work::default());
    assert_eq!(made.add_unit(unit(c"unit", &mut units, (0, 200_000)).deadline(2_000_000)), 0);
    assert_eq!(made.add_task(task(c"task", 5_000_000, &mut beside).budget(50_000)), 0);
    run_until(&made, &[&units, &beside]);
    assert_eq!((made.ran(0), made.ran(1)), (units.ran, beside.ran));
    assert_eq!(made.stop(), 0);
    let ran = units.ran;
    assert_eq!((made.run(0), units.ran), (0, ran), "stopped for good");
}

#[test]
fn what_does_not_go_together_is_named() {
    let mut work = Work::default();
    for (name, budget_ns, answer, says) in [
        (c"none", 0, -libc::EINVAL, "no budget"),
        (c"large", 200_000, -libc::ENOSPC, "fits nowhere"),
        (c"unit", 50_000, -libc::EEXIST, "both named"),
    ] {
        let made = Made::with_frame();
        assert_eq!(made.add_unit(unused(c"unit", (0, 1_900_000))), 0);
        assert_eq!(made.add_task(task(name, 5_000_000, &mut work).budget(budget_ns)), 0);
        assert_eq!((made.build(), made.run(1)), (answer, answer), "{name:?}");
        assert!(said().contains(says), "{}", said());
    }
}

#[test]
fn units_that_cannot_be_built_are_named() {
    let refused = |units: &[UnitRecord]| {
        let made = Made::with_frame();
        let added = units.iter().map(|unit| made.add_unit(*unit)).find(|answer| *answer != 0);
        let answer = added.unwrap_or_else(|| made.build());
        (answer, said())
    };
    let first = unused(c"one", (0, 100_000));
    let (answer, says) = refused(&[first, unused(c"two", (99_999, 100_000))]);
    assert_eq!(answer, -libc::ENOSPC);
    assert!(says.contains("\"one\" at 0 to 100000 ns and unit \"two\" at 99999"), "{says}");
    let second = UnitRecord::new(c"two", Some(overrun), null_mut(), (500_000, 100_000));
    for (units, answer, says) in [
        (&[][..], -libc::EINVAL, "without tasks"),
        (&[unused(c"far", (1_950_000, 100_000))], -libc::ENOSPC, "must lie within the frame"),
        (&[first, first], -libc::EEXIST, "two units are named"),
        (&[first.after(c"none")], -libc::ENOENT, "no unit has that name"),
        (&[first.after(c"one")], -libc::EINVAL, "after itself"),
        (&[unused(c"empty", (0, 0))], -libc::EINVAL, "budget"),
        (&[first.deadline(1)], -libc::EINVAL, "(got 1 ns)"),
        (&[first.on_overrun(2)], -libc::EINVAL, "would move its place"),
        (&[first.on_overrun(9)], -libc::EINVAL, "unit \"one\": no answer"),
        (&[first.reserved(1)], -libc::E2BIG, ""),
        (&[UnitRecord::blank()], -libc::EINVAL, "a unit without a name"),
        (
            &[UnitRecord::new(c"x", None, null_mut(), (0, 1))],
            -libc::EINVAL,
            "a body for task \"x\"",
        ),
        (&[first.of(c"t"), second.of(c"t")], -libc::EINVAL, "different functions"),
    ] {
        let (got, words) = refused(units);
        assert!(got == answer && words.contains(says), "{got} {words}");
    }
    let made = Made::new();
    assert_eq!((made.add_unit(first), made.build()), (0, -libc::EINVAL));
    assert!(said().contains("\"one\" needs a frame"), "{}", said());
    for (num_ns, den) in [(0, 1), ((1 << 62) + 1, 1), (u64::MAX, 1), (1, 0)] {
        assert_eq!(made.frame(num_ns, den), -libc::EINVAL);
        assert!(said().contains("frame: a period of"), "{}", said());
    }
    assert_eq!((made.frame(1_000_000_000, 3), made.build()), (0, -libc::EINVAL));
}

#[test]
fn a_time_out_that_stops_everything_names_its_task() {
    let made = Made::with_frame();
    let stops = UnitRecord::new(c"arm", Some(overrun), null_mut(), (0, 10_000));
    assert_eq!(made.add_unit(stops.deadline(2_000_000).on_overrun(4)), 0);
    assert_eq!(made.run(60_000_000_000), -libc::ETIME);
    assert!(said().contains("\"arm\""));
}

// Stops, for good and of one run.

fn executive() -> punctual::Executive<'static> {
    let task = Task::every("a", Period::hz(1_000).expect("in range"));
    let thread = RtThread::any().other().wait(WaitPolicy::sleep());
    let builder =
        punctual::Executive::builder().task(task.budget(Duration::from_micros(1)), |_| ());
    let (executive, _) = builder.thread(thread).phase(Phase::Zero).build().expect("fine");
    executive
}

#[test]
fn a_run_ends_once_and_a_stop_holds() {
    let stop = Stop::default();
    assert!(!stop.is_stopped());
    for _ in 0..2 {
        let executive = executive();
        let run = executive.stop_handle();
        stop.during(&run, || assert!(!stop.is_stopped() && !run.stopped()));
        assert!(stop.is_stopped() && !run.stopped());
    }
    let executive = executive();
    let run = executive.stop_handle();
    stop.during(&run, || {
        stop.request();
        assert!(stop.is_stopped() && run.stopped());
    });
    let next = executive.stop_handle();
    stop.during(&next, || assert!(next.stopped()));
}

#[test]
fn who_stops_may_come_at_any_time() {
    let (stop, done) = (Stop::default(), AtomicBool::new(false));
    let run = executive().stop_handle();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(SeqCst) {
                stop.is_stopped();
            }
        });
        for _ in 0..1_000 {
            stop.during(&run, || ());
        }
        done.store(true, SeqCst);
    });
    assert_eq!(stop.callers.load(SeqCst), 0);
}
