//! Waiting for any of several descriptors, until an instant.
//!
//! For supervisors: a process that ended, a connection at a socket. Never reads from any of them.

use core::ffi::c_int;

use crate::Errno;
use crate::clock::{ClockId, now_ns};

/// A descriptor, by its number, that is waited for until it has something to read or has ended.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Interest(libc::pollfd);

impl Interest {
    /// In this descriptor. A number that is none is there at once.
    ///
    /// # Real-time: setup only
    pub const fn new(descriptor: c_int) -> Self {
        Self(libc::pollfd { fd: descriptor, events: libc::POLLIN | libc::POLLRDHUP, revents: 0 })
    }

    /// True where the last wait found something here.
    ///
    /// # Real-time: setup only
    pub const fn is_there(&self) -> bool {
        self.0.revents != 0
    }

    /// True where the last wait found something to read here: what was closed at its other end,
    /// with nothing left to read, is there and not readable.
    ///
    /// # Real-time: setup only
    pub fn is_readable(&self) -> bool {
        let closed = self.0.revents & (libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR) != 0;
        self.0.revents & libc::POLLIN != 0 && !(closed && self.unread() == Some(0))
    }

    /// `ioctl(FIONREAD)`: the bytes that are there to be read, also at the end of a pipe that is
    /// written to; `None` where the descriptor does not say.
    ///
    /// # Real-time: setup only
    pub fn unread(&self) -> Option<c_int> {
        let mut bytes: c_int = 0;
        // SAFETY: FIONREAD writes one int, which outlives the call.
        let answer = unsafe { libc::ioctl(self.0.fd, libc::FIONREAD, &raw mut bytes) };
        (answer == 0).then_some(bytes)
    }
}

/// `ppoll(interests, distance to until, NULL)`: waits until one of them is there, or `until_ns` on
/// CLOCK_MONOTONIC; how many are. The kernel takes a distance here: a thread that is preempted
/// before the call comes back that much later.
///
/// Errors: `EINTR` on a signal, `EINVAL` for more interests than RLIMIT_NOFILE.
///
/// # Real-time: setup only
pub fn wait_until(interests: &mut [Interest], until_ns: u64) -> Result<usize, Errno> {
    let left_ns = until_ns.saturating_sub(now_ns(ClockId::Monotonic));
    let left = libc::timespec {
        tv_sec: libc::time_t::try_from(left_ns / 1_000_000_000).unwrap_or(libc::time_t::MAX),
        tv_nsec: (left_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `Interest` is a pollfd, and the slice has as many; the distance outlives the call.
    let there = unsafe {
        libc::ppoll(
            interests.as_mut_ptr().cast(),
            interests.len() as libc::nfds_t,
            &raw const left,
            core::ptr::null(),
        )
    };
    Errno::check(there.into()).map(|there| usize::try_from(there).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn who_has_something_is_told_from_who_has_nothing() {
        let (silent, _other) = UnixStream::pair().expect("sockets");
        let (mut near, far) = UnixStream::pair().expect("sockets");
        let mut interests = [Interest::new(silent.as_raw_fd()), Interest::new(far.as_raw_fd())];
        assert_eq!(wait_until(&mut interests, 1), Ok(0), "the instant has passed");
        near.write_all(b"x").expect("open");
        assert_eq!(wait_until(&mut interests, u64::MAX), Ok(1));
        assert!(!interests[0].is_there() && interests[1].is_there());
        drop(near);
        assert_eq!(wait_until(&mut interests[1..], u64::MAX), Ok(1), "its end is something too");
        assert!(interests[1].is_readable(), "what was written before the end is still there");
        let mut byte = [0];
        (&far).read_exact(&mut byte).expect("readable");
        assert_eq!(wait_until(&mut interests[1..], u64::MAX), Ok(1));
        assert!(interests[1].is_there() && !interests[1].is_readable(), "only the end is left");
        assert_eq!(wait_until(&mut [Interest::new(1 << 20)], u64::MAX), Ok(1));
    }
}
