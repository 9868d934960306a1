//! A lock on a file, so that two processes do not write the same things.
//!
//! For directories that belong to one process at a time. The kernel takes the lock away with the
//! process, however it ends.

use core::ffi::c_int;

use crate::Errno;

/// `flock(LOCK_EX | LOCK_NB)`: whether the file behind `descriptor` is now locked by this open
/// file, rather than already by another one. The lock goes with the last descriptor of the open
/// file. (`std` has this from Rust 1.89 on.)
///
/// Errors: `EBADF` for no descriptor, `ENOLCK`, and `EOPNOTSUPP` where a file system has no locks.
///
/// # Real-time: setup only
pub fn try_exclusive(descriptor: c_int) -> Result<bool, Errno> {
    // SAFETY: takes numbers only; a number that is no descriptor gives EBADF.
    let result = unsafe { libc::flock(descriptor, libc::LOCK_EX | libc::LOCK_NB) };
    match Errno::check(result.into()) {
        Ok(_) => Ok(true),
        Err(Errno(libc::EWOULDBLOCK)) => Ok(false),
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::clock::{ClockId, now_ns, sleep_until_ns};

    #[test]
    fn the_second_is_told_and_the_end_of_the_first_gives_it_free() {
        let path = std::env::temp_dir().join(std::format!("punctual-lock-{}", std::process::id()));
        let first = File::create(&path).expect("writable");
        let second = File::open(&path).expect("readable");
        assert_eq!(try_exclusive(first.as_raw_fd()), Ok(true));
        assert_eq!(try_exclusive(second.as_raw_fd()), Ok(false));
        drop(first);
        // A child that another test of this process forked meanwhile has a copy of the descriptor
        // until it ends, or becomes another program.
        let freed = (0..1_000).any(|_| {
            try_exclusive(second.as_raw_fd()) == Ok(true) || {
                let at_ns = now_ns(ClockId::Monotonic) + 10_000_000;
                let _interrupted = sleep_until_ns(at_ns);
                false
            }
        });
        assert!(freed, "it is locked ten seconds after its last descriptor went");
        std::fs::remove_file(&path).expect("it was made here");
        assert_eq!(try_exclusive(-1), Err(Errno(libc::EBADF)));
    }
}
