//! Descriptors as numbers: owning, copying and closing them, and which survive an exec.
//!
//! For memory and sockets that go from one process to another. Never opens anything by a path.

use core::ffi::c_int;

use crate::Errno;

/// A descriptor that is closed when dropped.
#[derive(Debug, PartialEq, Eq)]
pub struct Descriptor(c_int);

impl Descriptor {
    /// Takes over a new descriptor, which no other owner closes.
    pub(crate) const fn new(made: c_int) -> Self {
        Self(made)
    }

    /// Its number, for calls; it stays this one's.
    ///
    /// # Real-time: in loop
    pub const fn number(&self) -> c_int {
        self.0
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: takes a number only; it is this one's own, and closed once.
        unsafe { libc::close(self.0) };
    }
}

/// `fcntl(F_DUPFD_CLOEXEC, 3)`: another descriptor of what `descriptor` names, which ends with an
/// exec. For a number that was inherited: it may name nothing (`EBADF`).
///
/// # Real-time: setup only
pub fn duplicate(descriptor: c_int) -> Result<Descriptor, Errno> {
    // SAFETY: takes numbers only.
    let made = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
    Errno::check(made.into()).map(|made| Descriptor::new(made as c_int))
}

/// `fcntl(F_SETFD, FD_CLOEXEC)`: programs that are started from now on do not inherit it.
///
/// # Real-time: setup only
pub fn keep_from_children(descriptor: c_int) -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    let result = unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    Errno::check(result.into()).map(drop)
}

/// `open("/proc/self/fd/N", O_RDONLY | O_CLOEXEC)`: memory of [`crate::mapping::create`]'s kind
/// once more, for who may only read it: rights go with the opening.
///
/// # Real-time: setup only
pub fn read_only(descriptor: &Descriptor) -> Result<Descriptor, Errno> {
    let mut path = *b"/proc/self/fd/0000000000\0";
    let mut rest = descriptor.number().unsigned_abs();
    for digit in path[14..24].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    // The kernel takes no zeros before the number.
    let digits = path[14..23].iter().take_while(|&&digit| digit == b'0').count();
    path.copy_within(14 + digits.., 14);
    // SAFETY: the path ends with a zero, which was copied with the digits, and outlives the call.
    let made = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
    Errno::check(made.into()).map(|made| Descriptor::new(made as c_int))
}
