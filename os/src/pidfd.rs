//! A process by descriptor: seen to end, and ended, without ever meeting another one that got its
//! number.
//!
//! For supervisors. Never waits.

use core::ffi::{c_int, c_uint};

use crate::Errno;
use crate::process::Ending;

/// `pidfd_open(pid, 0)` (Linux 5.3): a descriptor of the process, which the caller owns.
///
/// Errors: `ESRCH` when there is none, `EINVAL` for a pid below 1 or a thread that leads no
/// process, `EMFILE`, `ENOSYS`.
///
/// # Real-time: setup only
pub fn open(pid: i32) -> Result<c_int, Errno> {
    // SAFETY: takes numbers only.
    let made = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0 as c_uint) };
    Errno::check(made).map(|made| made as c_int)
}

/// `poll({pidfd, POLLIN}, 1, 0)`: whether the process has ended.
///
/// # Real-time: reader side
pub fn has_ended(pidfd: c_int) -> Result<bool, Errno> {
    let mut poll = libc::pollfd { fd: pidfd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one writable entry; a time-out of 0 never waits.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    if poll.revents & libc::POLLNVAL != 0 {
        return Err(Errno(libc::EBADF));
    }
    Errno::check(ready.into()).map(|_| poll.revents & libc::POLLIN != 0)
}

/// `pidfd_send_signal(pidfd, signal, NULL, 0)` (Linux 5.1): `ESRCH` when it has ended.
///
/// # Real-time: reader side
pub fn end(pidfd: c_int, how: Ending) -> Result<(), Errno> {
    // SAFETY: takes numbers, and a null siginfo, which is allowed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd,
            how as c_int,
            core::ptr::null::<libc::siginfo_t>(),
            0 as c_uint,
        )
    };
    Errno::check(result).map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    use super::*;

    #[test]
    fn a_process_is_seen_and_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("coreutils");
        let made = open(child.id().cast_signed()).expect("it lives");
        // SAFETY: new, and nobody else's.
        let pidfd = unsafe { OwnedFd::from_raw_fd(made) };
        assert_eq!(has_ended(pidfd.as_raw_fd()), Ok(false));
        end(pidfd.as_raw_fd(), Ending::Kill).expect("ours");
        child.wait().expect("ours");
        assert_eq!(has_ended(pidfd.as_raw_fd()), Ok(true));
        assert_eq!(end(pidfd.as_raw_fd(), Ending::Kill), Err(Errno(libc::ESRCH)));
        assert!(open(-1).is_err() && has_ended(-2).is_ok());
    }
}
