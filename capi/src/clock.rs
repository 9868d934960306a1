//! The clock, and a wait for one instant: Maruti's `readtsc` and `mdelay`.
//!
//! Stamps are CLOCK_MONOTONIC's, by the vDSO, so that they need no setup and agree with every
//! other program's.

use std::ffi::c_int;

use punctual_core::time::{Instant, Span};
use punctual_engine::clocks::{monotonic_now, wait_until};

use crate::failure::{Failure, null};
use crate::ffi;

const NS_PER_S: u64 = 1_000_000_000;

/// Now, ns on CLOCK_MONOTONIC.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn punctual_now_ns() -> u64 {
    ffi::value(0, || monotonic_now().as_ns())
}

/// Sleeps until `margin_ns` before `at_ns`, then spins until it.
#[unsafe(no_mangle)]
extern "C" fn punctual_wait_until_ns(at_ns: u64, margin_ns: u64) -> c_int {
    ffi::enter(|| {
        let margin = Span::from_ns(i64::try_from(margin_ns).unwrap_or(i64::MAX));
        wait_until(Instant::from_ns(at_ns), margin).map_err(|errno| Failure::bare(errno.0))
    })
}

/// An instant of the kernel's as nanoseconds.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_ns_from_timespec(
    from: *const libc::timespec,
    to_ns: *mut u64,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a timespec, says the header.
        let from = unsafe { ffi::pointee(from, null!("from", "a timespec")) }?;
        let in_second = u64::try_from(from.tv_nsec).ok().filter(|&ns| ns < NS_PER_S);
        let seconds = u64::try_from(from.tv_sec).ok();
        let (Some(in_second), Some(seconds)) = (in_second, seconds) else {
            return Err(Failure::bare(libc::EINVAL));
        };
        let ns = seconds.checked_mul(NS_PER_S).and_then(|ns| ns.checked_add(in_second));
        // SAFETY: null or writable, says the header.
        unsafe {
            ffi::put(
                to_ns,
                null!("to_ns", "where the answer goes"),
                ns.ok_or(Failure::bare(libc::ERANGE))?,
            )
        }
    })
}

/// Nanoseconds as an instant of the kernel's.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_timespec_from_ns(from_ns: u64, to: *mut libc::timespec) -> c_int {
    ffi::enter(|| {
        let timespec = libc::timespec {
            // At most 2⁶⁴ / 10⁹, and below 10⁹: both fit.
            tv_sec: (from_ns / NS_PER_S) as libc::time_t,
            tv_nsec: (from_ns % NS_PER_S) as libc::c_long,
        };
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, null!("to", "a timespec"), timespec) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_never_ends_before_its_instant() {
        for (ahead_ns, margin_ns) in [(300_000, 0), (300_000, 100_000), (50_000, u64::MAX), (0, 5)]
        {
            let at_ns = punctual_now_ns() + ahead_ns;
            assert_eq!(punctual_wait_until_ns(at_ns, margin_ns), 0);
            assert!(punctual_now_ns() >= at_ns);
        }
        assert_eq!(punctual_wait_until_ns(0, 0), 0, "the past is no error");
    }

    #[test]
    fn timespecs_go_there_and_back_and_bad_ones_are_refused() {
        let convert = |tv_sec, tv_nsec| {
            let (from, mut ns) = (libc::timespec { tv_sec, tv_nsec }, 0);
            // SAFETY: both are local.
            let answer = unsafe { punctual_ns_from_timespec(&raw const from, &raw mut ns) };
            (answer, ns)
        };
        assert_eq!(convert(3, 7), (0, 3_000_000_007));
        assert_eq!(convert(-1, 0).0, -libc::EINVAL);
        assert_eq!(convert(0, 1_000_000_000).0, -libc::EINVAL);
        assert_eq!(convert(i64::MAX, 0).0, -libc::ERANGE);
        for ns in [0, 999_999_999, 3_000_000_007, u64::MAX] {
            let mut timespec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: it is local.
            assert_eq!(unsafe { punctual_timespec_from_ns(ns, &raw mut timespec) }, 0);
            assert_eq!(convert(timespec.tv_sec, timespec.tv_nsec), (0, ns));
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { punctual_timespec_from_ns(1, std::ptr::null_mut()) }, -libc::EINVAL);
    }

    #[test]
    fn a_panic_inside_is_an_error_outside() {
        ffi::tests::panic_next();
        assert_eq!(punctual_wait_until_ns(0, 0), -libc::ENOTRECOVERABLE);
        ffi::tests::panic_next();
        assert_eq!(punctual_now_ns(), 0);
        let mut ns = 0;
        let from = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        ffi::tests::panic_next();
        // SAFETY: both are local.
        let answer = unsafe { punctual_ns_from_timespec(&raw const from, &raw mut ns) };
        assert_eq!(answer, -libc::ENOTRECOVERABLE);
    }
}
