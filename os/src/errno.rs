//! The error numbers of the kernel.
//!
//! For every wrapper here. Touches nothing but errno itself; never a message (`host::explain` has
//! those).

use core::fmt;

/// An errno value, as in errno(3): positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// EPERM: not permitted.
    pub const PERM: Self = Self(libc::EPERM);
    /// ENOENT: there is no such file.
    pub const NOENT: Self = Self(libc::ENOENT);
    /// ESRCH: there is no such thread or process, or it has ended.
    pub const SRCH: Self = Self(libc::ESRCH);
    /// EIO: the device failed.
    pub const IO: Self = Self(libc::EIO);
    /// ENXIO: there is no such device, or no such address in it.
    pub const NXIO: Self = Self(libc::ENXIO);
    /// EROFS: the file system is read-only.
    pub const ROFS: Self = Self(libc::EROFS);
    /// EINTR: a signal was handled meanwhile.
    pub const INTR: Self = Self(libc::EINTR);
    /// EAGAIN: not now, or a limit is reached.
    pub const AGAIN: Self = Self(libc::EAGAIN);
    /// EINVAL: an argument that the kernel does not accept.
    pub const INVAL: Self = Self(libc::EINVAL);
    /// ENOMEM: beyond a limit of memory.
    pub const NOMEM: Self = Self(libc::ENOMEM);
    /// ENODEV: there is no such device, or it was removed.
    pub const NODEV: Self = Self(libc::ENODEV);
    /// ENOTTY: the device does not know this request.
    pub const NOTTY: Self = Self(libc::ENOTTY);
    /// ENOSYS: the kernel has no such call.
    pub const NOSYS: Self = Self(libc::ENOSYS);
    /// EMFILE: this process may have no more descriptors.
    pub const MFILE: Self = Self(libc::EMFILE);
    /// ENFILE: this machine has no more of them.
    pub const NFILE: Self = Self(libc::ENFILE);
    /// EACCES: the rights do not allow it.
    pub const ACCES: Self = Self(libc::EACCES);
    /// EBUSY: it is in use.
    pub const BUSY: Self = Self(libc::EBUSY);
    /// EPIPE: nobody reads at the other end.
    pub const PIPE: Self = Self(libc::EPIPE);
    /// EPROTO: the other end speaks another protocol.
    pub const PROTO: Self = Self(libc::EPROTO);
    /// ENOTCONN: there is no connection.
    pub const NOTCONN: Self = Self(libc::ENOTCONN);
    /// ECONNREFUSED: the other end refused.
    pub const CONNREFUSED: Self = Self(libc::ECONNREFUSED);
    /// ECANCELED: the other end ended it.
    pub const CANCELED: Self = Self(libc::ECANCELED);
    /// ECONNRESET: the other end of a connection was closed.
    pub const CONNRESET: Self = Self(libc::ECONNRESET);
    /// EOPNOTSUPP: the device knows the request and cannot carry it out.
    pub const OPNOTSUPP: Self = Self(libc::EOPNOTSUPP);

    /// The calling thread's errno after a call that failed.
    ///
    /// # Real-time: in loop
    pub(crate) fn last() -> Self {
        // SAFETY: returns a valid pointer to the calling thread's errno.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above; the thread's own, so that nobody else writes it.
        Self(unsafe { *errno })
    }

    /// `Ok` for anything but −1.
    ///
    /// # Real-time: in loop
    pub(crate) fn check(result: libc::c_long) -> Result<libc::c_long, Self> {
        if result == -1 { Err(Self::last()) } else { Ok(result) }
    }
}

impl fmt::Display for Errno {
    /// The symbolic name where it is one that these calls give, else the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            libc::EPERM => "EPERM",
            libc::ENOENT => "ENOENT",
            libc::ESRCH => "ESRCH",
            libc::EINTR => "EINTR",
            libc::EIO => "EIO",
            libc::ENXIO => "ENXIO",
            libc::EROFS => "EROFS",
            libc::EBADF => "EBADF",
            libc::EAGAIN => "EAGAIN",
            libc::ENOMEM => "ENOMEM",
            libc::EACCES => "EACCES",
            libc::EFAULT => "EFAULT",
            libc::EBUSY => "EBUSY",
            libc::EEXIST => "EEXIST",
            libc::EINVAL => "EINVAL",
            libc::E2BIG => "E2BIG",
            libc::ENOEXEC => "ENOEXEC",
            libc::ENOTDIR => "ENOTDIR",
            libc::EISDIR => "EISDIR",
            libc::ENFILE => "ENFILE",
            libc::EMFILE => "EMFILE",
            libc::ETXTBSY => "ETXTBSY",
            libc::EPIPE => "EPIPE",
            libc::ECONNRESET => "ECONNRESET",
            libc::ELOOP => "ELOOP",
            libc::ENAMETOOLONG => "ENAMETOOLONG",
            libc::ERANGE => "ERANGE",
            libc::ENOSPC => "ENOSPC",
            libc::ENOSYS => "ENOSYS",
            libc::ENODEV => "ENODEV",
            libc::ENOTTY => "ENOTTY",
            libc::EOPNOTSUPP => "EOPNOTSUPP",
            number => return write!(f, "errno {number}"),
        };
        f.write_str(name)
    }
}

impl core::error::Error for Errno {}
