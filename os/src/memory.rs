//! Memory that stays where it is: locked, and touched before the loop.
//!
//! For sessions. Never maps memory of its own.

use crate::Errno;

/// `mlockall(MCL_CURRENT | MCL_FUTURE)`: all pages of the process, now and later.
///
/// Errors: `ENOMEM` beyond RLIMIT_MEMLOCK, `EPERM` when that limit is 0, both without CAP_IPC_LOCK.
///
/// # Real-time: setup only
pub fn lock_all() -> Result<(), Errno> {
    // SAFETY: takes flags only; changes no contents.
    let result = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };
    Errno::check(result.into()).map(drop)
}

/// `getrlimit(RLIMIT_MEMLOCK)`: bytes that the process may lock without CAP_IPC_LOCK; `None` for
/// no limit.
///
/// # Real-time: setup only
pub fn lock_limit_bytes() -> Result<Option<u64>, Errno> {
    limit_of(libc::RLIMIT_MEMLOCK)
}

/// `getrlimit(RLIMIT_STACK)`: bytes that the stack of the first thread may have; `None` for no
/// limit.
///
/// # Real-time: setup only
pub fn stack_limit_bytes() -> Result<Option<u64>, Errno> {
    limit_of(libc::RLIMIT_STACK)
}

fn limit_of(resource: libc::__rlimit_resource_t) -> Result<Option<u64>, Errno> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit for the call to fill.
    let result = unsafe { libc::getrlimit(resource, &raw mut limit) };
    Errno::check(result.into())?;
    Ok((limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur))
}

/// `munlockall()`.
///
/// # Real-time: setup only
pub fn unlock_all() -> Result<(), Errno> {
    // SAFETY: takes no argument; changes no contents.
    let result = unsafe { libc::munlockall() };
    Errno::check(result.into()).map(drop)
}

/// `mlock(slice, bytes)`: the pages under `slice` alone, and brings them in. They stay locked until
/// they are unmapped or `munlockall`.
///
/// # Real-time: setup only
pub fn lock<T>(slice: &[T]) -> Result<(), Errno> {
    // SAFETY: the range is that of a live slice; changes no contents.
    let result = unsafe { libc::mlock(slice.as_ptr().cast(), size_of_val(slice)) };
    Errno::check(result.into()).map(drop)
}

/// Bytes of stack that [`prefault_stack`] touches: more than a loop of this library uses, less than
/// the smallest thread stack.
pub const STACK_BYTES: usize = 64 * 1024;

/// Touches every page of the next [`STACK_BYTES`] of the calling thread's stack.
///
/// # Real-time: setup only
#[inline(never)]
pub fn prefault_stack() {
    let mut pages = [0u8; STACK_BYTES];
    for byte in pages.iter_mut().step_by(4096) {
        *byte = 1;
    }
    core::hint::black_box(&pages);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_can_be_locked_and_the_stack_touched() {
        // 4 KiB are within every default limit.
        lock(&[0u8; 4096]).expect("within RLIMIT_MEMLOCK");
        unlock_all().expect("never fails");
        prefault_stack();
    }
}
