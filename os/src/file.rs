//! Files: a lock, so that two processes do not write the same things, and extended attributes.
//!
//! For directories that belong to one process at a time, and for what a service manager notes on a
//! cgroup. The kernel takes a lock away with the process, however it ends. Attributes are read,
//! never written.

use core::ffi::{CStr, c_int};

use crate::Errno;

/// `flock(LOCK_EX | LOCK_NB)`: true where the file behind `descriptor` is now locked by this open
/// file, false where another one has it. The lock goes with the last descriptor of the open
/// file. (`std` has this from Rust 1.89 on.)
///
/// Errors: `EBADF` for no descriptor, `ENOLCK`, and `EOPNOTSUPP` where a file system has no locks.
///
/// # Real-time: setup only
pub fn try_lock(descriptor: c_int) -> Result<bool, Errno> {
    // SAFETY: takes numbers only; a number that is no descriptor gives EBADF.
    let result = unsafe { libc::flock(descriptor, libc::LOCK_EX | libc::LOCK_NB) };
    match Errno::check(result.into()) {
        Ok(_) => Ok(true),
        Err(Errno(libc::EWOULDBLOCK)) => Ok(false),
        Err(why) => Err(why),
    }
}

/// `getxattr(path, name, value, bytes)`: an attribute's value; how many bytes it has.
///
/// Errors: `ENODATA` without such an attribute, `EOPNOTSUPP` where the file system has none,
/// `ENOENT`, `ERANGE` for a value that does not fit.
///
/// # Real-time: setup only
pub fn attribute(path: &CStr, name: &CStr, value: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: both texts end with a zero; `value` is writable for as many bytes as are stated.
    let bytes = unsafe {
        libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len())
    };
    Errno::check(bytes as libc::c_long).map(|bytes| usize::try_from(bytes).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use crate::clock::{ClockId, now_ns, sleep_until_ns};

    #[test]
    fn the_second_is_told_and_the_end_of_the_first_gives_it_free() {
        let path = std::env::temp_dir().join(std::format!("punctual-lock-{}", std::process::id()));
        let first = File::create(&path).expect("writable");
        let second = File::open(&path).expect("readable");
        assert_eq!(try_lock(first.as_raw_fd()), Ok(true));
        assert_eq!(try_lock(second.as_raw_fd()), Ok(false));
        drop(first);
        // A child that another test of this process forked meanwhile has a copy of the descriptor
        // until it ends, or becomes another program.
        let freed = (0..1_000).any(|_| {
            try_lock(second.as_raw_fd()) == Ok(true) || {
                let at_ns = now_ns(ClockId::Monotonic) + 10_000_000;
                let _interrupted = sleep_until_ns(at_ns);
                false
            }
        });
        assert!(freed, "it is locked ten seconds after its last descriptor went");
        std::fs::remove_file(&path).expect("it was made here");
        assert_eq!(try_lock(-1), Err(Errno(libc::EBADF)));
    }

    #[test]
    fn an_attribute_that_is_not_there_is_an_error() {
        let mut value = [0; 8];
        assert!(attribute(c"/proc/self", c"user.punctual", &mut value).is_err());
        assert_eq!(attribute(c"/no/such/file", c"user.x", &mut value), Err(Errno(libc::ENOENT)));
    }
}
