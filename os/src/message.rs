//! Messages of sockets with what the kernel adds to them: descriptors, stamps.
//!
//! For [`crate::local`] and [`crate::datagram`]. Reads control messages; sends nothing.

use core::ffi::c_int;

use crate::Errno;

/// Room for control messages, aligned as their headers.
#[repr(C)]
pub(crate) union Control {
    _header: libc::cmsghdr,
    pub(crate) bytes: [u8; 64],
}

/// `recvmsg(socket, buffer, flags)`: the next message, whose bytes are counted. Each control
/// message goes to `take`, with its level, its kind and its content.
pub(crate) fn receive(
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
