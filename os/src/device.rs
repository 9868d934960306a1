//! Devices by name, and how their requests are numbered.
//!
//! For what is driven by ioctl(2): serial lines, GPIO chips, parallel ports. Never waits, and sets
//! nothing.

use core::ffi::{CStr, c_int, c_ulong};

use crate::Errno;
use crate::descriptor::Descriptor;

/// `open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)`: without waiting for a carrier, and not
/// as the terminal of this process.
///
/// Errors: `EACCES`, `ENOENT`, `EBUSY` where another program has it for itself.
///
/// # Real-time: setup only
pub fn open(path: &CStr) -> Result<Descriptor, Errno> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero and outlives the call.
    let made = unsafe { libc::open(path.as_ptr(), flags) };
    Errno::check(made.into()).map(|made| Descriptor::new(made as c_int))
}

/// The directions of a request: nothing is passed, the kernel reads it, writes it, or does both.
pub(crate) const NONE: c_ulong = 0;
pub(crate) const WRITE: c_ulong = 1;
pub(crate) const READ: c_ulong = 2;
pub(crate) const READ_WRITE: c_ulong = 3;

/// `_IOC(direction, kind, number, size)` as all but PowerPC, MIPS and SPARC lay it out.
pub(crate) const fn request(direction: c_ulong, kind: u8, number: c_ulong, size: usize) -> c_ulong {
    direction << 30 | (size as c_ulong) << 16 | (kind as c_ulong) << 8 | number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_opened() {
        assert!(open(c"/dev/null").is_ok());
        assert_eq!(open(c"/dev/none/of/these").expect_err("absent"), Errno(libc::ENOENT));
    }
}
