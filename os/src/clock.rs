//! The kernel's clocks: read one, sleep on one until an instant.
//!
//! For the clocks of crate `punctual-engine`. Never sleeps for a length of time.

use crate::Errno;

/// A clock of the kernel, see clock_gettime(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum ClockId {
    /// Time of day: can step, is slewed.
    Realtime = libc::CLOCK_REALTIME,
    /// Time of day without leap seconds: steps when the time of day is set.
    Tai = libc::CLOCK_TAI,
    /// Never steps, is slewed by NTP, stands still in suspend.
    Monotonic = libc::CLOCK_MONOTONIC,
    /// Never steps, never slewed; cannot be slept on.
    MonotonicRaw = libc::CLOCK_MONOTONIC_RAW,
    /// As `Monotonic`, and goes on in suspend.
    Boottime = libc::CLOCK_BOOTTIME,
    /// CPU time of the calling thread.
    ThreadCpu = libc::CLOCK_THREAD_CPUTIME_ID,
}

/// `clock_gettime(id, &ts)`: nanoseconds since the clock's zero.
///
/// Cannot fail for these clocks; the vDSO answers without a system call where it can.
///
/// # Real-time: in loop
#[inline]
pub fn now_ns(id: ClockId) -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid timespec for the call to fill.
    unsafe { libc::clock_gettime(id as libc::clockid_t, &raw mut ts) };
    ts.tv_sec.cast_unsigned() * 1_000_000_000 + ts.tv_nsec.cast_unsigned()
}

/// `clock_gettime(CPU clock of thread tid, &ts)`: CPU time of a thread of this process, in ns;
/// `None` when it is gone.
///
/// # Real-time: reader side
pub fn thread_cpu_ns(tid: i32) -> Option<u64> {
    // include/linux/posix-timers_types.h: inverted id, CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED.
    cpu_ns((!tid << 3) | 6)
}

/// `clock_gettime(CPU clock of process pid, &ts)`: CPU time of all threads of any process, in ns;
/// `None` when it is gone.
///
/// # Real-time: reader side
pub fn process_cpu_ns(pid: i32) -> Option<u64> {
    // include/linux/posix-timers_types.h: inverted id, CPUCLOCK_SCHED.
    cpu_ns((!pid << 3) | 2)
}

fn cpu_ns(id: libc::clockid_t) -> Option<u64> {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid timespec for the call to fill.
    let result = unsafe { libc::clock_gettime(id, &raw mut ts) };
    (result == 0).then(|| ts.tv_sec.cast_unsigned() * 1_000_000_000 + ts.tv_nsec.cast_unsigned())
}

/// `clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, at, NULL)`: until `at_ns` on that clock.
///
/// The raw system call: the C library's is a cancellation point. Returns at once when the instant
/// has passed, and `EINTR` when a signal was handled.
///
/// # Real-time: in loop, waits
#[inline]
pub fn sleep_until_ns(at_ns: u64) -> Result<(), Errno> {
    let at = libc::timespec {
        tv_sec: i64::try_from(at_ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `at` is a valid timespec; the fourth argument may be null for an absolute sleep.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clock_nanosleep,
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const at,
            core::ptr::null_mut::<libc::timespec>(),
        )
    };
    Errno::check(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_never_returns_before_its_instant() {
        for ahead_ns in [0, 1, 1_000, 200_000] {
            let at = now_ns(ClockId::Monotonic) + ahead_ns;
            sleep_until_ns(at).expect("no signal");
            assert!(now_ns(ClockId::Monotonic) >= at);
        }
        sleep_until_ns(0).expect("the past is no error");
    }

    #[test]
    fn a_threads_cpu_time_is_read_from_outside() {
        let own = crate::process::tid();
        let before = thread_cpu_ns(own).expect("alive");
        while now_ns(ClockId::ThreadCpu) < before + 1_000_000 {
            core::hint::spin_loop();
        }
        assert!(thread_cpu_ns(own).expect("alive") >= before + 1_000_000);
        assert_eq!(thread_cpu_ns(i32::MAX - 1), None);
    }

    #[test]
    fn the_cpu_time_of_another_process_is_read() {
        let mut child = std::process::Command::new("sh");
        child.args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; echo; read x"]);
        let piped = std::process::Stdio::piped;
        let mut child = child.stdin(piped()).stdout(piped()).spawn().expect("a shell");
        let pid = child.id().cast_signed();
        let out = child.stdout.as_mut().expect("piped");
        std::io::Read::read_exact(out, &mut [0]).expect("it says that it has worked");
        assert!(process_cpu_ns(pid).expect("alive") > 1_000_000);
        drop(child.stdin.take());
        child.wait().expect("ours");
        assert_eq!(process_cpu_ns(pid), None);
    }

    #[test]
    fn boottime_is_not_behind_monotonic() {
        let monotonic = now_ns(ClockId::Monotonic);
        assert!(now_ns(ClockId::Boottime) >= monotonic);
    }
}
