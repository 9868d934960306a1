//! Messages with what the kernel adds to them: descriptors and the process at the other end of a
//! local socket, the stamp of a datagram's arrival.
//!
//! For supervisors, for processes that join one, and for experiments (Linux,
//! Documentation/networking/timestamping.rst, 1.1). Sockets are std's.

use core::ffi::c_int;

use crate::Errno;
use crate::descriptor::Descriptor;

/// The most descriptors in one message.
pub const DESCRIPTORS_MAX: usize = 2;

/// The process at the other end, as of its connect(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its process.
    pub pid: i32,
    /// Its effective user.
    pub uid: u32,
}

/// `getsockopt(SO_PEERCRED)`: the other end of a connected local socket.
///
/// # Real-time: setup only
pub fn peer(socket: c_int) -> Result<Peer, Errno> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `peer` is writable for the length that is stated.
    let result = unsafe {
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    Errno::check(result.into())?;
    Ok(Peer { pid: peer.pid, uid: peer.uid })
}

/// SO_PEERPIDFD in include/uapi/asm-generic/socket.h (Linux 6.5).
const SO_PEERPIDFD: c_int = 77;

/// `getsockopt(SO_PEERPIDFD)` (Linux 6.5): a descriptor of the process at the other end, which
/// names that one for ever.
///
/// Errors: `ENOPROTOOPT` on an older kernel, `ESRCH`.
///
/// # Real-time: setup only
pub fn peer_pidfd(socket: c_int) -> Result<Descriptor, Errno> {
    let mut pidfd: c_int = -1;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: `pidfd` is writable for the length that is stated.
    let result = unsafe {
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut pidfd).cast(),
            &raw mut length,
        )
    };
    Errno::check(result.into())?;
    // SAFETY: takes numbers only; older kernels give it to children too.
    unsafe { libc::fcntl(pidfd, libc::F_SETFD, libc::FD_CLOEXEC) };
    Ok(Descriptor::new(pidfd))
}

// SAFETY: CMSG_SPACE is arithmetic.
const _: () = assert!(unsafe { libc::CMSG_SPACE(BYTES) } as usize <= size_of::<Control>());
const BYTES: u32 = (DESCRIPTORS_MAX * size_of::<c_int>()) as u32;

/// `sendmsg(socket, bytes + SCM_RIGHTS, MSG_NOSIGNAL)`: a message that carries up to
/// [`DESCRIPTORS_MAX`] descriptors, which stay the caller's too; how many bytes went.
///
/// # Real-time: setup only
pub fn send(socket: c_int, bytes: &[u8], descriptors: &[c_int]) -> Result<usize, Errno> {
    if bytes.is_empty() || descriptors.len() > DESCRIPTORS_MAX {
        return Err(Errno::INVAL);
    }
    let mut control = Control { bytes: [0; 64] };
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all-zero is a valid msghdr.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if !descriptors.is_empty() {
        let length = size_of_val(descriptors) as u32;
        message.msg_control = (&raw mut control).cast();
        // SAFETY: CMSG_SPACE is arithmetic.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(length) } as _;
        // SAFETY: the control buffer is aligned, and large enough for a header.
        let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        // SAFETY: CMSG_LEN is arithmetic.
        let whole = unsafe { libc::CMSG_LEN(length) };
        let content = libc::cmsghdr {
            cmsg_len: whole as _,
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SCM_RIGHTS,
        };
        // SAFETY: `header` points into `control`, which is zeroed and large enough.
        unsafe { header.write(content) };
        // SAFETY: CMSG_DATA is arithmetic on that pointer.
        let data = unsafe { libc::CMSG_DATA(header) };
        // SAFETY: `length` bytes follow the header within `control`, as asserted above.
        unsafe { core::ptr::copy_nonoverlapping(descriptors.as_ptr().cast(), data, length as _) };
    }
    // SAFETY: the message points to live buffers of the lengths that it states.
    let sent = unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) };
    Errno::check(sent as libc::c_long).map(|sent| usize::try_from(sent).unwrap_or(0))
}

/// One message that was received.
#[derive(Debug)]
pub struct Received {
    /// Bytes, at the start of the buffer; 0 at the end of the connection.
    pub bytes: usize,
    /// Descriptors, which end with an exec.
    pub descriptors: [Option<Descriptor>; DESCRIPTORS_MAX],
}

/// `recvmsg(socket, buffer + SCM_RIGHTS, MSG_CMSG_CLOEXEC)`: what comes next, with up to
/// [`DESCRIPTORS_MAX`] descriptors; more are closed.
///
/// Errors: `EAGAIN` where the socket does not wait and there is nothing yet.
///
/// # Real-time: setup only
pub fn receive(socket: c_int, buffer: &mut [u8]) -> Result<Received, Errno> {
    let mut descriptors = [const { None }; DESCRIPTORS_MAX];
    let flags = libc::MSG_CMSG_CLOEXEC;
    let bytes = receive_message(socket, buffer, flags, |level, kind, content| {
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            let (numbers, _) = content.as_chunks::<{ size_of::<c_int>() }>();
            for (at, &number) in numbers.iter().enumerate() {
                let descriptor = Descriptor::new(c_int::from_ne_bytes(number));
                // One more than fits is closed here.
                if let Some(place) = descriptors.get_mut(at) {
                    *place = Some(descriptor);
                }
            }
        }
    })?;
    Ok(Received { bytes, descriptors })
}

/// Space for control messages, aligned as their headers.
#[repr(C)]
union Control {
    _header: libc::cmsghdr,
    bytes: [u8; 64],
}

/// `recvmsg(socket, buffer, flags)`: the next message, whose bytes are counted. Each control
/// message goes to `take`, with its level, its kind and its content.
fn receive_message(
    socket: c_int,
    buffer: &mut [u8],
    flags: c_int,
    mut take: impl FnMut(c_int, c_int, &[u8]),
) -> Result<usize, Errno> {
    let mut control = Control { bytes: [0; 64] };
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all-zero is a valid msghdr.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the message points to live buffers of the lengths that it states.
    let got = unsafe { libc::recvmsg(socket, &raw mut message, flags) };
    let bytes = Errno::check(got as libc::c_long)?;
    // SAFETY: the kernel filled the control buffer and stated its length.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: not null, so within `control` and filled by the kernel.
    while let Some(content) = unsafe { header.as_ref() } {
        // SAFETY: CMSG_LEN is arithmetic.
        let empty = unsafe { libc::CMSG_LEN(0) } as usize;
        // SAFETY: CMSG_DATA is arithmetic on that pointer.
        let data = unsafe { libc::CMSG_DATA(header) };
        // SAFETY: the kernel wrote that many bytes behind the header, within `control`.
        let data =
            unsafe { core::slice::from_raw_parts(data, content.cmsg_len.saturating_sub(empty)) };
        take(content.cmsg_level, content.cmsg_type, data);
        // SAFETY: `header` is one of this message's.
        header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
    }
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// `setsockopt(SO_TIMESTAMPNS)`: from now on the kernel stamps datagrams when a network device
/// hands them over.
///
/// Errors: `ENOPROTOOPT` where nothing is stamped, as under an emulator of user mode.
///
/// # Real-time: setup only
pub fn stamp_arrivals(socket: c_int) -> Result<(), Errno> {
    set_number(socket, libc::SO_TIMESTAMPNS, 1)
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
pub fn receive_datagram(socket: c_int, buffer: &mut [u8]) -> Result<Datagram, Errno> {
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

/// `setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, bytes)`: what was sent and not received may take
/// so much memory, beyond net.core.wmem_max. The kernel doubles it.
///
/// Errors: `EPERM` without CAP_NET_ADMIN, `EBADF`, `ENOTSOCK`.
///
/// # Real-time: setup only
pub fn force_send_buffer(socket: c_int, bytes: c_int) -> Result<(), Errno> {
    set_number(socket, libc::SO_SNDBUFFORCE, bytes)
}

/// `setsockopt(socket, SOL_SOCKET, option, value)` of an option that is a number.
fn set_number(socket: c_int, option: c_int, value: c_int) -> Result<(), Errno> {
    // SAFETY: `value` is readable for the length that is stated.
    let result = unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    Errno::check(result.into()).map(drop)
}

/// Steps of a filter that [`slow_arrivals`] sets: net.core.optmem_max of Linux before 6.7 has room
/// for some 2 500 instructions.
const SLOW_STEPS: u16 = 2_000;

/// `setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, …)`: the soft interrupt that hands a datagram
/// to this socket computes for some microseconds first (2 000 instructions of classic BPF, half of
/// them divisions). Each is accepted whole.
///
/// Errors: `ENOMEM` where net.core.optmem_max has no room, `EBADF`, `ENOTSOCK`.
///
/// # Real-time: setup only
pub fn slow_arrivals(socket: c_int) -> Result<(), Errno> {
    let step = |code: u32, k: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap_or(u16::MAX),
        jt: 0,
        jf: 0,
        k,
    };
    let multiply = step(libc::BPF_ALU | libc::BPF_MUL | libc::BPF_K, 0x9e37_79b1);
    let divide = step(libc::BPF_ALU | libc::BPF_DIV | libc::BPF_K, 3);
    let mut steps = [multiply; SLOW_STEPS as usize + 2];
    steps[0] = step(libc::BPF_LD | libc::BPF_IMM, 0xffff_fff1);
    steps.iter_mut().skip(2).step_by(2).for_each(|step| *step = divide);
    steps[SLOW_STEPS as usize + 1] = step(libc::BPF_RET | libc::BPF_K, u32::MAX);
    let program = libc::sock_fprog { len: SLOW_STEPS + 2, filter: steps.as_mut_ptr() };
    // SAFETY: the kernel copies the program, whose steps live until then, and are as many as it
    // says.
    let result = unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    Errno::check(result.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;
    use std::net::{Ipv4Addr, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use crate::clock::{ClockId, now_ns};

    #[test]
    fn a_send_buffer_grows_where_that_is_allowed() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        match force_send_buffer(socket.as_raw_fd(), 1 << 22) {
            Ok(()) | Err(Errno::PERM) => {}
            Err(why) => panic!("{why}"),
        }
        assert_eq!(force_send_buffer(-1, 1), Err(Errno(libc::EBADF)));
    }

    #[test]
    fn a_datagram_that_is_worked_on_first_arrives_whole() {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("one"));
        match slow_arrivals(far.as_raw_fd()) {
            Ok(()) => {}
            // An emulator of user mode.
            Err(Errno(libc::ENOPROTOOPT)) => return,
            Err(why) => panic!("{why}"),
        }
        near.send_to(b"hello", far.local_addr().expect("bound")).expect("sent");
        far.set_read_timeout(Some(std::time::Duration::from_secs(5))).expect("a timeout");
        let mut bytes = [0; 8];
        assert_eq!(far.recv(&mut bytes).expect("received"), 5);
        assert_eq!(slow_arrivals(-1), Err(Errno(libc::EBADF)));
    }

    #[test]
    fn descriptors_go_through_and_the_peer_is_known() {
        let (near, far) = UnixStream::pair().expect("sockets");
        let path = std::env::temp_dir().join(std::format!("punctual-pass-{}", std::process::id()));
        let mut file = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(&path)
            .expect("writable");
        file.write_all(b"passed").expect("writable");
        let fds = [file.as_raw_fd(), file.as_raw_fd()];
        assert_eq!(send(near.as_raw_fd(), b"ok\n", &fds), Ok(3));
        let mut buffer = [0; 16];
        let received = receive(far.as_raw_fd(), &mut buffer).expect("sent");
        assert_eq!(&buffer[..received.bytes], b"ok\n");
        for descriptor in received.descriptors {
            let number = descriptor.as_ref().expect("two were sent").number();
            let same = std::fs::read_to_string(std::format!("/proc/self/fd/{number}"));
            assert_eq!(same.expect("readable"), "passed");
        }
        std::fs::remove_file(&path).expect("it was made here");
        assert_eq!(send(near.as_raw_fd(), b"no", &[]), Ok(2));
        let received = receive(far.as_raw_fd(), &mut buffer).expect("sent");
        assert_eq!((received.bytes, &received.descriptors), (2, &[None, None]));
        let peer = peer(near.as_raw_fd()).expect("a local socket");
        assert_eq!(peer.pid, std::process::id().cast_signed());
        assert_eq!(peer.uid, crate::process::euid());
        if let Ok(pidfd) = peer_pidfd(near.as_raw_fd()) {
            assert_eq!(crate::pidfd::has_ended(&pidfd), Ok(false));
        }
        assert_eq!(send(near.as_raw_fd(), b"", &[]), Err(Errno::INVAL));
        assert_eq!(send(near.as_raw_fd(), b"x", &[0; 3]), Err(Errno::INVAL));
        drop(near);
        assert_eq!(receive(far.as_raw_fd(), &mut buffer).expect("the end").bytes, 0);
    }

    #[test]
    fn a_datagram_is_stamped_between_sending_and_receiving() {
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let to = receiver.local_addr().expect("bound");
        let mut buffer = [0; 16];
        sender.send_to(b"before", to).expect("sent");
        let stamps = stamp_arrivals(receiver.as_raw_fd());
        assert!(matches!(stamps, Ok(()) | Err(Errno(libc::ENOPROTOOPT))), "{stamps:?}");
        let first = receive_datagram(receiver.as_raw_fd(), &mut buffer).expect("sent");
        assert_eq!((first.bytes, &buffer[..6]), (6, &b"before"[..]));
        let before = now_ns(ClockId::Realtime);
        sender.send_to(b"ok", to).expect("sent");
        let second = receive_datagram(receiver.as_raw_fd(), &mut buffer).expect("sent");
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
