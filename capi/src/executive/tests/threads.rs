//! Tasks in threads of their own: released, and triggered by a device.

use std::sync::atomic::{AtomicI32, AtomicU64};

use punctual_os::scheduler::{self, SchedPolicy};

use super::*;
use crate::callback::Body;

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
