//! Background work, sample files and followed clocks.

use super::*;
use crate::follow;

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
