//! What a new process gives up before its program runs: descriptors, user, groups, capabilities.
//!
//! Runs in the memory of its parent, as [`super::born`] does: system calls alone, and those of the
//! kernel rather than the C library's, which would change all threads of the parent.

use core::ffi::{CStr, c_int, c_long, c_ulong};

use super::check;
use crate::Errno;
use crate::capability::NAMES;

/// What a process is to have of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Confinement<'a> {
    /// Its user.
    pub uid: Option<u32>,
    /// Its group.
    pub gid: Option<u32>,
    /// Its supplementary groups.
    pub groups: Option<&'a [u32]>,
    /// Its capabilities, a bit each, which no program that it runs can exceed; `None`: those of the
    /// caller, or none where `uid` is another user.
    pub capabilities: Option<u64>,
    /// Its working directory, entered as that user.
    pub directory: Option<&'a CStr>,
    /// Its file mode creation mask.
    pub umask: Option<u32>,
}

/// The kernel's `struct __user_cap_header_struct`, version 3.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

/// Its `struct __user_cap_data_struct`: 32 capabilities.
#[repr(C)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// _LINUX_CAPABILITY_VERSION_3
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// Descriptors that are looked at one by one where the kernel cannot take them together.
const DESCRIPTORS_MAX: c_int = 1_024;

/// Every descriptor from 3 on ends with the exec.
pub(super) fn keep_descriptors() {
    // SAFETY: takes numbers only. Linux 5.11; before that it gives EINVAL or ENOSYS.
    let closed = unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    if closed != 0 {
        for descriptor in 3..DESCRIPTORS_MAX {
            // SAFETY: takes numbers only; one that is not open gives EBADF.
            unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Becomes what was requested. The tie to the parent is made after it: the kernel drops that when
/// a process changes its user.
pub(super) fn confine(confinement: &Confinement<'_>) -> Result<(), Errno> {
    let Confinement { uid, gid, groups, capabilities, directory, umask } = *confinement;
    if let Some(umask) = umask {
        // SAFETY: takes a number only, cannot fail.
        unsafe { libc::umask(umask) };
    }
    if let Some(kept) = capabilities {
        drop_bounds(kept)?;
    }
    if let Some(groups) = groups {
        // SAFETY: the pointer is that of a slice of this length.
        call(unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) })?;
    }
    if let Some(gid) = gid {
        // SAFETY: takes numbers only.
        call(unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) })?;
    }
    if let Some(uid) = uid {
        if capabilities.is_some_and(|kept| kept != 0) {
            prctl(libc::PR_SET_KEEPCAPS, 1, 0)?;
        }
        // SAFETY: takes numbers only.
        call(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) })?;
    }
    if let Some(kept) = capabilities {
        set_capabilities(kept)?;
    }
    if let Some(directory) = directory {
        // SAFETY: the path ends with a zero and outlives the call.
        check(unsafe { libc::chdir(directory.as_ptr()) })?;
    }
    Ok(())
}

/// No program that it runs can get others than these.
fn drop_bounds(kept: u64) -> Result<(), Errno> {
    for number in (0..64).filter(|number| kept & 1 << number == 0) {
        match prctl(libc::PR_CAPBSET_DROP, number, 0) {
            Ok(()) => {}
            // The kernel has fewer.
            Err(Errno::INVAL) if number > 0 => break,
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// These, and for the program too (ambient) where the user is not root.
fn set_capabilities(kept: u64) -> Result<(), Errno> {
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let data = [kept as u32, (kept >> 32) as u32].map(|bits| CapabilityData {
        effective: bits,
        permitted: bits,
        inheritable: bits,
    });
    // SAFETY: the kernel reads a header and, in version 3, two of the other.
    call(unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) })?;
    prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as c_ulong, 0)?;
    for number in (0..NAMES.len() as c_ulong).filter(|number| kept & 1 << number != 0) {
        prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE as c_ulong, number)?;
    }
    Ok(())
}

fn prctl(what: c_int, first: c_ulong, second: c_ulong) -> Result<(), Errno> {
    let zero: c_ulong = 0;
    // SAFETY: takes numbers only.
    check(unsafe { libc::prctl(what, first, second, zero, zero) })
}

fn call(result: c_long) -> Result<(), Errno> {
    Errno::check(result).map(drop)
}
