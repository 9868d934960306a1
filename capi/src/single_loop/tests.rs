//! The entries of a loop, as C calls them: bad arguments, other threads, panics, a few cycles.
#![expect(clippy::multiple_unsafe_ops_per_block, reason = "each is a call of one entry")]

use std::ptr::{null, null_mut};

use punctual_testkit::skip;

use super::*;
use crate::errors;
use crate::record::Record;

/// Quick to create, and needs no rights.
fn quick() -> Options {
    let mut options = Options::blank();
    options.plain(1_000_000);
    options
}

fn create(options: &Options) -> (c_int, *mut SingleLoop) {
    let mut single = null_mut();
    // SAFETY: both are local.
    let answer = unsafe { punctual_loop_create(&raw mut single, options) };
    (answer, single)
}

/// The answer of an entry for a loop.
fn wait(single: *mut SingleLoop) -> c_int {
    // SAFETY: null or a loop; null is allowed for the cycle.
    unsafe { punctual_loop_wait(single, null_mut()) }
}

#[test]
fn a_loop_runs_is_read_and_stops() {
    let (answer, single) = create(&quick());
    assert_eq!((answer, single.is_null()), (0, false));
    let mut cycle = Cycle::blank();
    let mut next = 0;
    for _ in 0..20 {
        // SAFETY: a loop, and a local cycle.
        assert_eq!(unsafe { punctual_loop_wait(single, &raw mut cycle) }, 0);
        assert_eq!(cycle.n, next + cycle.missed);
        assert!(cycle.lateness_ns >= 0 && cycle.dt_ns >= 1_000_000);
        let to_next_ns = cycle.next_ns - cycle.release_ns;
        assert_eq!((cycle.release_ns % 1_000_000, to_next_ns % 1_000_000), (0, 0));
        assert!(to_next_ns > 0);
        next = cycle.n + 1;
    }
    let mut stats = Stats::blank();
    let mut half_ns = 0;
    // SAFETY: a loop, and local results.
    unsafe {
        assert_eq!(punctual_loop_stats(single, &raw mut stats), 0);
        assert_eq!(punctual_loop_quantile_ns(single, 0.5, &raw mut half_ns), 0);
        assert_eq!(punctual_loop_quantile_ns(single, 1.5, &raw mut half_ns), -libc::EINVAL);
        let mut stopped = -1;
        assert_eq!((punctual_loop_stopped(single, &raw mut stopped), stopped), (0, 0));
        assert_eq!(punctual_loop_stop(single), 0);
        assert_eq!(punctual_loop_stopped(single, &raw mut stopped), 0);
        assert_eq!(stopped, 1);
    }
    assert!(half_ns >= 0);
    assert!(format!("{stats:?}").contains("ran: 20"), "{stats:?}");
    assert_eq!(wait(single), -libc::ECANCELED);
    // SAFETY: a loop, used no more.
    assert_eq!(unsafe { punctual_loop_destroy(single) }, 0);
}

/// The answer and the text of its summary in a buffer of this size.
fn summary(single: *mut SingleLoop, size: usize) -> (c_int, String) {
    let mut text: Vec<c_char> = vec![1; size];
    // SAFETY: a loop, and as much memory as is said.
    let answer = unsafe { punctual_loop_summary(single, text.as_mut_ptr(), size) };
    let bytes: Vec<u8> = text.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    (answer, String::from_utf8_lossy(&bytes).into_owned())
}

#[test]
fn its_summary_ends_it_and_it_can_be_read_as_before() {
    let folder = std::env::temp_dir().join(format!("punctual-c-summary-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("writable");
    let file = folder.join("run.punctual");
    let path = std::ffi::CString::new(file.as_os_str().as_encoded_bytes()).expect("no zero byte");
    let mut options = quick();
    options.record(&path);
    let (_, single) = create(&options);
    for _ in 0..3 {
        assert_eq!(wait(single), 0);
    }
    let (mut before, mut after) = (WaitInfo::blank(), WaitInfo::blank());
    // SAFETY: a loop, and a local result.
    assert_eq!(unsafe { punctual_loop_wait_info(single, &raw mut before) }, 0);
    let (answer, cut) = summary(single, 8);
    assert_eq!((answer, cut.as_str()), (-libc::ERANGE, "loop: 3"));
    let (answer, text) = summary(single, 4_096);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((answer, lines.len()), (0, 3), "{text}");
    assert!(lines[0].starts_with("loop: 3 ran, ") && lines[0].contains("max "), "{text}");
    assert_eq!(lines[1], "stopped");
    assert_eq!(lines[2], format!("3 samples in {}", file.display()));
    assert_eq!((wait(single), summary(single, 4_096).1), (-libc::ECANCELED, text));
    let mut stats = Stats::blank();
    // SAFETY: a loop, and local results.
    unsafe {
        assert_eq!(punctual_loop_wait_info(single, &raw mut after), 0);
        assert_eq!(punctual_loop_stats(single, &raw mut stats), 0);
        assert_eq!(punctual_loop_destroy(single), 0);
    }
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
    assert!(format!("{stats:?}").contains("ran: 3"), "{stats:?}");
    std::fs::remove_dir_all(&folder).expect("it was made here");
}

#[test]
fn nothing_of_it_is_another_threads() {
    let (_, single) = create(&quick());
    let handle = single as usize;
    std::thread::spawn(move || {
        let single = handle as *mut SingleLoop;
        let mut info = WaitInfo::blank();
        assert_eq!(wait(single), -libc::EPERM);
        // SAFETY: a loop, and a local result.
        unsafe {
            assert_eq!(punctual_loop_wait_info(single, &raw mut info), -libc::EPERM);
            assert_eq!(summary(single, 64), (-libc::EPERM, String::new()));
            assert_eq!(punctual_loop_destroy(single), -libc::EPERM);
            // But these are.
            assert_eq!(punctual_loop_stop(single), 0);
            assert_eq!(punctual_loop_stats(single, &mut Stats::blank()), 0);
        }
    })
    .join()
    .expect("no panic");
    // SAFETY: a loop, used no more.
    assert_eq!(unsafe { punctual_loop_destroy(single) }, 0);
}

#[test]
fn bad_arguments_are_refused_in_words() {
    // SAFETY: null is allowed everywhere, and answered.
    unsafe {
        assert_eq!(punctual_loop_create(null_mut(), &quick()), -libc::EINVAL);
        assert_eq!(punctual_loop_create(&mut null_mut(), null()), -libc::EINVAL);
        assert_eq!(punctual_loop_stop(null_mut()), -libc::EINVAL);
        assert_eq!(punctual_loop_stopped(null(), null_mut()), -libc::EINVAL);
        assert_eq!(punctual_loop_stats(null(), &mut Stats::blank()), -libc::EINVAL);
        assert_eq!(punctual_loop_quantile_ns(null(), 0.5, null_mut()), -libc::EINVAL);
        assert_eq!(punctual_loop_wait_info(null_mut(), null_mut()), -libc::EINVAL);
        assert_eq!(punctual_loop_refused(null(), null_mut(), 0), -libc::EINVAL);
        assert_eq!(punctual_loop_destroy(null_mut()), 0, "as free(3)");
    }
    assert_eq!(wait(null_mut()), -libc::EINVAL);
    for period_ns in [0, (1 << 62) + 1, u64::MAX] {
        let mut options = quick();
        options.plain(period_ns);
        let (answer, single) = create(&options);
        assert_eq!((answer, single.is_null()), (-libc::EINVAL, true));
        assert!(errors::tests::last().contains("a period of"), "{}", errors::tests::last());
    }
}

#[test]
fn a_cycle_of_no_size_is_refused_before_anything_is_waited_for() {
    let (_, single) = create(&quick());
    let mut cycle = Cycle { size: 1, ..Cycle::blank() };
    // SAFETY: a loop, and a local cycle that says less than it has.
    assert_eq!(unsafe { punctual_loop_wait(single, &raw mut cycle) }, -libc::EINVAL);
    let mut stats = Stats::blank();
    // SAFETY: a loop, and a local result.
    assert_eq!(unsafe { punctual_loop_stats(single, &raw mut stats) }, 0);
    assert!(format!("{stats:?}").contains("ran: 0"), "{stats:?}");
    // SAFETY: a loop, and a local result.
    let no_data = unsafe { punctual_loop_quantile_ns(single, 0.5, &mut 0) };
    assert_eq!(no_data, -libc::ENODATA);
    // SAFETY: a loop, used no more.
    assert_eq!(unsafe { punctual_loop_destroy(single) }, 0);
}

fn refused(single: *const SingleLoop) -> String {
    let mut text: [c_char; 256] = [1; 256];
    // SAFETY: a loop, and as much memory as is said.
    assert_eq!(unsafe { punctual_loop_refused(single, text.as_mut_ptr(), text.len()) }, 0);
    let bytes: Vec<u8> = text.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn what_is_refused_is_listed_or_strictly_an_error() {
    let mut options = quick();
    options.greedy();
    let (answer, single) = create(&options);
    assert_eq!(answer, 0);
    let refused = refused(single);
    // SAFETY: a loop, used no more.
    assert_eq!(unsafe { punctual_loop_destroy(single) }, 0);
    options.strict = 1;
    let (answer, single) = create(&options);
    assert_eq!(answer, if refused.is_empty() { 0 } else { -libc::EACCES });
    let first = refused.split(':').next().expect("a word");
    assert!(answer == 0 || errors::tests::last().contains(first), "{}", errors::tests::last());
    // SAFETY: null, or a loop, used no more.
    assert_eq!(unsafe { punctual_loop_destroy(single) }, 0);
}

#[test]
fn a_cpu_that_is_not_there_is_an_error_that_names_it() {
    let mut options = quick();
    // No machine has it.
    options.pin(1023);
    let (answer, single) = create(&options);
    assert_eq!((answer, single.is_null()), (-libc::EINVAL, true));
    assert!(errors::tests::last().contains("CPU 1023"), "{}", errors::tests::last());
}

#[test]
fn samples_are_in_the_file_once_it_is_destroyed() {
    let file = std::env::temp_dir().join(format!("capi-loop-{}", std::process::id()));
    let name = std::ffi::CString::new(file.to_str().expect("UTF-8")).expect("no zero");
    let mut options = quick();
    options.record(&name);
    let (answer, single) = create(&options);
    assert_eq!(answer, 0);
    let answers = [(); 20].map(|()| wait(single));
    assert_eq!(answers, [0; 20]);
    // SAFETY: a loop, used no more.
    assert_eq!(unsafe { punctual_loop_destroy(single) }, 0);
    assert!(std::fs::metadata(&file).expect("written").len() > 0);
    std::fs::remove_file(&file).expect("there");
    options.record(c"/nowhere/samples");
    assert_eq!(create(&options).0, -libc::ENOENT);
    assert!(errors::tests::last().contains("/nowhere/samples"), "{}", errors::tests::last());
}

#[test]
fn on_a_followed_clock_its_releases_are_that_clocks() {
    let follow = crate::follow::tests::tai();
    let mut options = quick();
    options.on(follow);
    let (answer, single) = create(&options);
    assert_eq!(answer, 0);
    // The loop holds a share of its own.
    crate::follow::tests::destroy(follow);
    let mut cycle = Cycle::blank();
    // SAFETY: a loop, and a local cycle.
    assert_eq!(unsafe { punctual_loop_wait(single, &raw mut cycle) }, 0);
    assert!(cycle.release_ns > 1_000_000_000_000_000_000, "since 1970");
    assert_eq!(cycle.release_ns % 1_000_000, 0);
    // SAFETY: a loop, used no more.
    assert_eq!(unsafe { punctual_loop_destroy(single) }, 0);
}

#[test]
fn a_watchdog_that_bit_is_told() {
    if !skip::need_native("real timing") {
        return;
    }
    let mut options = quick();
    options.watched(100_000_000);
    let (answer, single) = create(&options);
    assert_eq!((answer, wait(single)), (0, 0));
    let mut stats = Stats::blank();
    // Gets nowhere until that is seen.
    while format!("{stats:?}").contains("forced: 0") {
        // SAFETY: a loop, and a local result.
        assert_eq!(unsafe { punctual_loop_stats(single, &raw mut stats) }, 0);
    }
    assert_eq!(wait(single), -libc::ETIMEDOUT);
    let why = errors::tests::last();
    assert!(why.starts_with("the watchdog stopped the loop: "), "{why:?}");
    // SAFETY: a loop, used no more.
    assert_eq!(unsafe { punctual_loop_destroy(single) }, 0);
}

#[test]
fn a_panic_inside_any_entry_is_an_error_outside() {
    let (_, single) = create(&quick());
    let fault = -libc::ENOTRECOVERABLE;
    let panics = ffi::tests::panic_next;
    panics();
    assert_eq!(create(&quick()).0, fault);
    panics();
    assert_eq!(wait(single), fault);
    // SAFETY: a loop, and null where nothing is reached.
    unsafe {
        panics();
        assert_eq!(punctual_loop_stop(single), fault);
        panics();
        assert_eq!(punctual_loop_stopped(single, null_mut()), fault);
        panics();
        assert_eq!(punctual_loop_stats(single, null_mut()), fault);
        panics();
        assert_eq!(punctual_loop_quantile_ns(single, 0.5, null_mut()), fault);
        panics();
        assert_eq!(punctual_loop_wait_info(single, null_mut()), fault);
        panics();
        assert_eq!(punctual_loop_refused(single, null_mut(), 0), fault);
        panics();
        assert_eq!(punctual_loop_summary(single, null_mut(), 0), fault);
        panics();
        assert_eq!(punctual_loop_destroy(null_mut()), fault);
        assert_eq!(punctual_loop_destroy(single), 0);
    }
}

#[test]
fn each_answer_of_destroying_says_whether_the_loop_is_gone() {
    let (_, single) = create(&quick());
    // SAFETY: a loop.
    let own = unsafe { ffi::object(single) }.expect("ours");
    let handle = own.handle.clone();
    // SAFETY: a loop; from within its own call, as a signal handler is.
    let busy = own.own.with(|_| Ok(unsafe { punctual_loop_destroy(single) }));
    assert_eq!(busy.expect("free before"), -libc::EBUSY);
    assert_eq!((handle.stopped(), wait(single)), (false, 0), "it goes on");
    ffi::tests::panic_at_the_end();
    // SAFETY: a loop, used no more.
    assert_eq!(unsafe { punctual_loop_destroy(single) }, -libc::ENOTRECOVERABLE);
    assert!(handle.stopped(), "it has ended all the same");

    let file = std::env::temp_dir().join(format!("capi-loop-gone-{}", std::process::id()));
    let name = std::ffi::CString::new(file.to_str().expect("UTF-8")).expect("no zero");
    let mut options = quick();
    options.record(&name);
    let (_, single) = create(&options);
    // SAFETY: a loop.
    let handle = unsafe { ffi::object(single) }.expect("ours").handle.clone();
    assert_eq!(wait(single), 0);
    let written = || std::fs::remove_file(&file).is_ok();
    // The samples of a cycle are written within a second.
    while !written() {
        assert_eq!(wait(single), 0);
    }
    // SAFETY: a loop, used no more.
    assert_eq!(unsafe { punctual_loop_destroy(single) }, -libc::EIO);
    assert!(errors::tests::last().contains("is not whole"), "{}", errors::tests::last());
    assert!(handle.stopped(), "it has ended all the same");
}
