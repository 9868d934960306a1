//! A process by descriptor: see whether it has ended, and end it, without ever signalling another
//! one that got its number.
//!
//! For supervisors. Never waits.

use core::ffi::{c_int, c_uint};

use crate::Errno;
use crate::descriptor::Descriptor;
use crate::process::EndSignal;

/// `pidfd_open(pid, 0)` (Linux 5.3): a descriptor of the process.
///
/// Errors: `ESRCH` when there is none, `EINVAL` for a pid below 1 or a thread that leads no
/// process, `EMFILE`, `ENOSYS`.
///
/// # Real-time: setup only
pub fn open(pid: i32) -> Result<Descriptor, Errno> {
    // SAFETY: takes numbers only.
    let made = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0 as c_uint) };
    Errno::check(made).map(|made| Descriptor::new(made as c_int))
}

/// `poll({pidfd, POLLIN}, 1, 0)`: whether the process has ended.
///
/// # Real-time: reader side
pub fn has_ended(pidfd: &Descriptor) -> Result<bool, Errno> {
    let mut poll = libc::pollfd { fd: pidfd.number(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one writable entry; a time-out of 0 never waits.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    Errno::check(ready.into()).map(|_| poll.revents & libc::POLLIN != 0)
}

/// `pidfd_send_signal(pidfd, signal, NULL, 0)` (Linux 5.1): `ESRCH` when it has ended.
///
/// # Real-time: reader side
pub fn end(pidfd: &Descriptor, how: EndSignal) -> Result<(), Errno> {
    // SAFETY: takes numbers, and a null siginfo, which is allowed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.number(),
            how as c_int,
            core::ptr::null::<libc::siginfo_t>(),
            0 as c_uint,
        )
    };
    Errno::check(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_seen_and_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("coreutils");
        let pidfd = open(child.id().cast_signed()).expect("it lives");
        assert_eq!(has_ended(&pidfd), Ok(false));
        end(&pidfd, EndSignal::Kill).expect("ours");
        child.wait().expect("ours");
        assert_eq!(has_ended(&pidfd), Ok(true));
        assert_eq!(end(&pidfd, EndSignal::Kill), Err(Errno::SRCH));
        assert!(open(-1).is_err());
    }
}
