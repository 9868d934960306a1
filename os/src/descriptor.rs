//! Descriptors as numbers: owning, copying and closing them, and which survive an exec; devices
//! opened by name, and how their requests are numbered.
//!
//! For memory and sockets that go from one process to another, and for what is driven by ioctl(2):
//! serial lines, GPIO chips, parallel ports. Never waits.

use core::ffi::{CStr, c_int, c_ulong};

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

/// `fcntl(F_GETFD)`: whether the number names anything (`EBADF` where not). Nothing is opened and
/// closed for it: closing any descriptor of a file gives up all locks that fcntl(2) put on it.
///
/// # Real-time: setup only
pub fn check(descriptor: c_int) -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
    Errno::check(flags.into()).map(drop)
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

/// `open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)`: without waiting for a carrier, and not
/// as the terminal of this process.
///
/// Errors: `EACCES`, `ENOENT`, `EBUSY` where another program has it for itself.
///
/// # Real-time: setup only
pub fn open_device(path: &CStr) -> Result<Descriptor, Errno> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero and outlives the call.
    let made = unsafe { libc::open(path.as_ptr(), flags) };
    Errno::check(made.into()).map(|made| Descriptor::new(made as c_int))
}

/// The number of descriptors that a process may have at once: RLIMIT_NOFILE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The limit in force.
    pub soft: u64,
    /// The most that the soft one may be set to.
    pub hard: u64,
}

/// `getrlimit(RLIMIT_NOFILE)`: that of this process.
///
/// # Real-time: setup only
pub fn limit() -> Result<DescriptorLimit, Errno> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    Errno::check(result.into())
        .map(|_| DescriptorLimit { soft: limit.rlim_cur, hard: limit.rlim_max })
}

/// `setrlimit(RLIMIT_NOFILE)`: for this process, and what it starts from now on.
///
/// Errors: `EINVAL` for a soft limit above the hard one, `EPERM` for a higher hard one.
///
/// # Real-time: setup only
pub fn set_limit(limit: DescriptorLimit) -> Result<(), Errno> {
    let limit = libc::rlimit { rlim_cur: limit.soft, rlim_max: limit.hard };
    // SAFETY: `limit` is initialised and outlives the call.
    let result = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    Errno::check(result.into()).map(drop)
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
    fn there_may_be_more_than_the_three_that_every_process_has() {
        let before = limit().expect("there is one");
        assert!(before.soft > 3 && before.soft <= before.hard);
        set_limit(before).expect("it is what holds");
        assert_eq!(limit(), Ok(before));
        if let Some(hard) = before.hard.checked_sub(1) {
            assert!(set_limit(DescriptorLimit { soft: before.hard, hard }).is_err());
        }
    }

    #[test]
    fn what_is_not_there_is_not_opened() {
        assert!(open_device(c"/dev/null").is_ok());
        assert_eq!(open_device(c"/dev/none/of/these").expect_err("absent"), Errno(libc::ENOENT));
    }
}
