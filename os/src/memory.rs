//! Memory that stays where it is, locked and touched before the loop; and cache lines sent away.
//!
//! For sessions, and for measurements of what a first touch costs. Never maps memory of its own,
//! changes no data.

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

/// `clflush`, then `mfence` / `dc civac`, then `dsb`: every cache line of `part` goes back to
/// memory, out of all caches of the machine (Intel SDM vol. 2 CLFLUSH; Arm ARM DC CIVAC, which
/// Linux lets user mode use).
///
/// # Real-time: setup only
pub fn flush<T>(part: &[T]) {
    // What holds no byte lies nowhere.
    if size_of_val(part) == 0 {
        return;
    }
    let range = part.as_ptr_range();
    flush_between(range.start as usize, range.end as usize);
}

/// As [`flush`]; from `start` to `end` is data or code of this program.
pub(crate) fn flush_between(start: usize, end: usize) {
    let line = line_bytes();
    let mut at = start / line * line;
    while at < end {
        flush_line(at);
        at += line;
    }
    barrier();
}

#[cfg(target_arch = "x86_64")]
fn line_bytes() -> usize {
    64
}

#[cfg(target_arch = "aarch64")]
fn line_bytes() -> usize {
    let ctr: u64;
    // SAFETY: reads a register that Linux lets user mode read, or reads for it; touches no memory.
    unsafe { core::arch::asm!("mrs {}, ctr_el0", out(reg) ctr, options(nomem, nostack)) };
    // DminLine: the logarithm of the words of 4 bytes in the smallest line.
    4 << (ctr >> 16 & 15)
}

/// `at` lies in a line that holds a part of a live slice, or of this program's code.
fn flush_line(at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the line overlaps live data or code, so its page is mapped; CLFLUSH is SSE2,
        // and changes no data.
        unsafe { core::arch::x86_64::_mm_clflush(at as *const u8) };
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: the line overlaps live data or code, so its page is mapped; writes the line
        // back and drops it, which changes no data.
        unsafe { core::arch::asm!("dc civac, {}", in(reg) at, options(nostack)) };
    }
}

fn barrier() {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: MFENCE is SSE2; orders memory only.
        unsafe { core::arch::x86_64::_mm_mfence() };
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: orders memory only.
        unsafe { core::arch::asm!("dsb ish", options(nostack)) };
    }
}

/// MEMBARRIER_CMD_PRIVATE_EXPEDITED and its registration, of <linux/membarrier.h>.
const BARRIER: i32 = 1 << 3;
const REGISTER_BARRIER: i32 = 1 << 4;

/// `membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0)`: this process may use
/// [`barrier_everywhere`] from now on.
///
/// Errors: `ENOSYS`, `EINVAL` where the kernel has none of it.
///
/// # Real-time: setup only
pub fn register_barrier() -> Result<(), Errno> {
    membarrier(REGISTER_BARRIER)
}

/// `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0)`: interrupts every other CPU that runs a
/// thread of this process.
///
/// Errors: `EPERM` before [`register_barrier`].
///
/// # Real-time: in loop
pub fn barrier_everywhere() -> Result<(), Errno> {
    membarrier(BARRIER)
}

fn membarrier(command: i32) -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    Errno::check(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_page_can_be_locked_and_the_stack_touched() {
        // 4 KiB are within every default limit.
        lock(&[0u8; 4096]).expect("within RLIMIT_MEMLOCK");
        unlock_all().expect("never fails");
        prefault_stack();
    }

    #[test]
    fn what_is_flushed_is_still_there() {
        let data: Vec<u32> = (0..10_000).collect();
        flush(&data);
        flush(&data[1..2]);
        flush::<u8>(&[]);
        flush(&[(), ()]);
        assert!(data.iter().copied().eq(0..10_000));
    }

    #[test]
    fn a_barrier_needs_to_be_registered() {
        match register_barrier() {
            Ok(()) => assert_eq!(barrier_everywhere(), Ok(())),
            Err(why) => assert!(matches!(why, Errno::INVAL | Errno(libc::ENOSYS)), "{why}"),
        }
    }
}
