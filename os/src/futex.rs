//! Sleep until a word changes, and wake the threads that sleep on it.
//!
//! For task blocks: a server posts, a client waits. The word is the low half of a 64-bit one, so
//! that all words of a task block have one size. Never loops: the caller reads the word again.

use core::ffi::c_long;
use core::sync::atomic::AtomicU64;

use crate::Errno;

/// Which threads sleep on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Threads of this process alone: quicker.
    Process,
    /// Threads of every process that has mapped the same memory.
    Machine,
}

impl Scope {
    fn flag(self) -> c_long {
        match self {
            Self::Process => libc::FUTEX_PRIVATE_FLAG.into(),
            Self::Machine => 0,
        }
    }
}

/// The address of the word's low half.
fn low(word: &AtomicU64) -> *const u32 {
    const { assert!(cfg!(target_endian = "little"), "the low half stands first") };
    word.as_ptr().cast_const().cast()
}

/// `futex(FUTEX_WAIT, word, expected, NULL)`: sleeps until woken, unless the low half of `word` is
/// not `expected` any more. Comes back early on a signal, and now and then without a reason: look
/// at the word again.
///
/// # Real-time: in loop, waits
#[inline]
pub fn wait(word: &AtomicU64, expected: u32, scope: Scope) {
    // SAFETY: the word is a live one, aligned to 8; no time-out.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            low(word),
            c_long::from(libc::FUTEX_WAIT) | scope.flag(),
            expected,
            core::ptr::null::<libc::timespec>(),
        )
    };
}

/// `futex(FUTEX_WAIT_BITSET, word, expected, until, FUTEX_BITSET_MATCH_ANY)`: as [`wait`], until
/// `until_ns` on CLOCK_MONOTONIC at the latest.
///
/// # Real-time: in loop, waits
#[inline]
pub fn wait_until(word: &AtomicU64, expected: u32, scope: Scope, until_ns: u64) {
    let until = libc::timespec {
        tv_sec: i64::try_from(until_ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (until_ns % 1_000_000_000) as c_long,
    };
    // SAFETY: the word is a live one, aligned to 8; `until` outlives the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            low(word),
            c_long::from(libc::FUTEX_WAIT_BITSET) | scope.flag(),
            expected,
            &raw const until,
            core::ptr::null::<u32>(),
            u32::MAX,
        )
    };
}

/// `futex(FUTEX_WAKE, word, most)`: wakes up to `most` of those that sleep on the word; how many.
///
/// # Real-time: in loop
#[inline]
pub fn wake(word: &AtomicU64, most: u32, scope: Scope) -> Result<u32, Errno> {
    // SAFETY: the word is a live one, aligned to 8.
    let woken = unsafe {
        libc::syscall(
            libc::SYS_futex,
            low(word),
            c_long::from(libc::FUTEX_WAKE) | scope.flag(),
            most & i32::MAX.cast_unsigned(),
        )
    };
    Errno::check(woken).map(|woken| u32::try_from(woken).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn a_word_that_changed_is_not_waited_for() {
        let word = AtomicU64::new((9 << 32) | 5);
        wait(&word, 4, Scope::Process);
        wait_until(&word, 4, Scope::Machine, u64::MAX / 2);
        wait_until(&word, 5, Scope::Machine, 1);
        assert_eq!(wake(&word, 1, Scope::Process), Ok(0));
    }

    #[test]
    fn a_sleeper_is_woken() {
        for scope in [Scope::Process, Scope::Machine] {
            let word = AtomicU64::new(0);
            std::thread::scope(|threads| {
                let sleeper = threads.spawn(|| {
                    while word.load(Ordering::Acquire) == 0 {
                        wait(&word, 0, scope);
                    }
                });
                while wake(&word, 1, scope) == Ok(0) && !sleeper.is_finished() {
                    std::thread::yield_now();
                }
                word.store(1, Ordering::Release);
                while !sleeper.is_finished() {
                    wake(&word, u32::MAX, scope).expect("a live word");
                }
            });
        }
    }
}
