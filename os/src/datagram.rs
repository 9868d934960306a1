//! Datagrams with the kernel's own stamp of their arrival.
//!
//! For experiments (Linux, Documentation/networking/timestamping.rst, 1.1). Sockets are std's.

use core::ffi::c_int;

use crate::Errno;
use crate::socket::receive_message;

/// `setsockopt(SO_TIMESTAMPNS)`: from now on the kernel stamps datagrams when a network device
/// hands them over.
///
/// Errors: `ENOPROTOOPT` where nothing is stamped, as under an emulator of user mode.
///
/// # Real-time: setup only
pub fn stamp_arrivals(socket: c_int) -> Result<(), Errno> {
    let on: c_int = 1;
    // SAFETY: `on` is readable for the length that is stated.
    let result = unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    Errno::check(result.into()).map(drop)
}

/// One datagram: its length and the stamp of its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Bytes, at the start of the buffer.
    pub bytes: usize,
    /// When it arrived, on CLOCK_REALTIME, ns; `None` where the kernel took no stamp.
    pub arrived_ns: Option<u64>,
}

/// `recvmsg(socket, buffer + SCM_TIMESTAMPNS)`: the next datagram.
///
/// Errors: `EAGAIN` where the socket's patience is over, `EINTR`.
///
/// # Real-time: in loop, waits
pub fn receive(socket: c_int, buffer: &mut [u8]) -> Result<Datagram, Errno> {
    let mut arrived_ns = None;
    let bytes = receive_message(socket, buffer, 0, |level, kind, content| {
        if (level, kind) == (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) {
            arrived_ns = stamp(content);
        }
    })?;
    Ok(Datagram { bytes, arrived_ns })
}

/// `struct timespec` of 64-bit Linux in nanoseconds.
fn stamp(content: &[u8]) -> Option<u64> {
    let (words, []) = content.as_chunks::<8>() else { return None };
    let &[seconds, ns] = words else { return None };
    let seconds = u64::try_from(i64::from_ne_bytes(seconds)).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(i64::from_ne_bytes(ns)).ok()?)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::clock::{ClockId, now_ns};

    #[test]
    fn a_datagram_is_stamped_between_sending_and_receiving() {
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let to = receiver.local_addr().expect("bound");
        let mut buffer = [0; 16];
        sender.send_to(b"before", to).expect("sent");
        let stamps = stamp_arrivals(receiver.as_raw_fd());
        assert!(matches!(stamps, Ok(()) | Err(Errno(libc::ENOPROTOOPT))), "{stamps:?}");
        let first = receive(receiver.as_raw_fd(), &mut buffer).expect("sent");
        assert_eq!((first.bytes, &buffer[..6]), (6, &b"before"[..]));
        let before = now_ns(ClockId::Realtime);
        sender.send_to(b"ok", to).expect("sent");
        let second = receive(receiver.as_raw_fd(), &mut buffer).expect("sent");
        assert_eq!((second.bytes, second.arrived_ns.is_some()), (2, stamps.is_ok()));
        let stamp = second.arrived_ns.unwrap_or(before);
        assert!((before..=now_ns(ClockId::Realtime)).contains(&stamp), "{before} {stamp}");
    }

    #[test]
    fn what_is_no_stamp_is_none() {
        let content = |seconds: i64, ns: i64| [seconds.to_ne_bytes(), ns.to_ne_bytes()].concat();
        assert_eq!(stamp(&content(1, 2)), Some(1_000_000_002));
        for content in [
            content(-1, 0),
            content(0, -1),
            content(i64::MAX, 0),
            std::vec![0; 8],
            std::vec![0; 17],
        ] {
            assert_eq!(stamp(&content), None, "{content:?}");
        }
    }
}
