//! Descriptors as numbers: which outlive an exec, and their end.
//!
//! For memory and sockets that go from one process to another. Never opens anything by a path.

use core::ffi::c_int;

use crate::Errno;

/// `close(descriptor)`, of one that this crate made and did not give away.
pub(crate) fn close(descriptor: c_int) {
    // SAFETY: takes a number only; the callers own it.
    unsafe { libc::close(descriptor) };
}

/// `fcntl(F_DUPFD_CLOEXEC, 3)`: another descriptor of what `descriptor` names, which ends with an
/// exec. For a number that was inherited: it may name nothing (`EBADF`). The caller owns the new
/// one.
///
/// # Real-time: setup only
pub fn duplicate(descriptor: c_int) -> Result<c_int, Errno> {
    // SAFETY: takes numbers only.
    let made = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
    Errno::check(made.into()).map(|made| made as c_int)
}

/// `fcntl(F_DUPFD, 3)`: another descriptor of what `descriptor` names, which programs that are
/// started inherit. The caller owns it, and closes it once they are started.
///
/// # Real-time: setup only
pub fn inheritable(descriptor: c_int) -> Result<c_int, Errno> {
    // SAFETY: takes numbers only.
    let made = unsafe { libc::fcntl(descriptor, libc::F_DUPFD, 3) };
    Errno::check(made.into()).map(|made| made as c_int)
}

/// `fcntl(F_SETFD, FD_CLOEXEC)`: programs that are started from now on do not inherit it.
///
/// # Real-time: setup only
pub fn keep_from_children(descriptor: c_int) -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    let result = unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    Errno::check(result.into()).map(drop)
}
