//! Becoming another user, for good.
//!
//! For a program that is about to be replaced by another one.

use crate::Errno;

/// `setgroups(groups)`, `setresgid(gid, gid, gid)`, `setresuid(uid, uid, uid)`: this process is
/// that user from now on and cannot go back.
///
/// Errors: `EPERM` without CAP_SETUID and CAP_SETGID. Where one of the later calls fails, the
/// earlier ones have been done: the caller must end.
///
/// # Real-time: setup only
pub fn become_user(uid: u32, gid: u32, groups: &[u32]) -> Result<(), Errno> {
    // SAFETY: the pointer and the length are those of a slice.
    let result = unsafe { libc::setgroups(groups.len(), groups.as_ptr()) };
    Errno::check(result.into())?;
    // SAFETY: takes numbers only.
    let result = unsafe { libc::setresgid(gid, gid, gid) };
    Errno::check(result.into())?;
    // SAFETY: takes numbers only.
    let result = unsafe { libc::setresuid(uid, uid, uid) };
    Errno::check(result.into()).map(drop)
}
