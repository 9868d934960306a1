//! The kernel's log, as dmesg(1) prints it.
//!
//! Reads what is in the ring buffer now; never clears it and never changes a console.

use core::ffi::c_int;

use crate::Errno;

/// `SYSLOG_ACTION_READ_ALL` of syslog(2).
const READ_ALL: c_int = 3;
/// `SYSLOG_ACTION_SIZE_BUFFER` of syslog(2).
const SIZE_BUFFER: c_int = 10;

/// `syslog(SYSLOG_ACTION_SIZE_BUFFER)`: the size of the kernel's ring buffer in bytes.
///
/// Errors: `EPERM` where kernel.dmesg_restrict asks for CAP_SYSLOG, `ENOSYS` without a log.
///
/// # Real-time: setup only
pub fn size() -> Result<usize, Errno> {
    // SAFETY: this action takes no buffer.
    let size = unsafe { libc::klogctl(SIZE_BUFFER, core::ptr::null_mut(), 0) };
    Errno::check(size.into()).map(|size| usize::try_from(size).unwrap_or(0))
}

/// `syslog(SYSLOG_ACTION_READ_ALL)`: the last part of the log that fits into `buffer`; how many
/// bytes it has. What is read stays in the ring.
///
/// Errors: `EPERM` as for [`size`].
///
/// # Real-time: setup only
pub fn read_all(buffer: &mut [u8]) -> Result<usize, Errno> {
    let length = c_int::try_from(buffer.len()).unwrap_or(c_int::MAX);
    // SAFETY: the pointer and the length are those of a slice that outlives the call.
    let read = unsafe { libc::klogctl(READ_ALL, buffer.as_mut_ptr().cast(), length) };
    Errno::check(read.into()).map(|read| usize::try_from(read).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_no_longer_than_its_buffer() {
        // A container may refuse both: then both are refused alike.
        match size() {
            Ok(size) => {
                let mut buffer = std::vec![0; size.min(1 << 16)];
                assert!(read_all(&mut buffer).is_ok_and(|read| read <= buffer.len()));
            }
            Err(why) => assert!(matches!(why, Errno::PERM | Errno(libc::ENOSYS)), "{why:?}"),
        }
    }
}
