//! Extended attributes of files.
//!
//! For what a service manager notes on a cgroup. Reads, never writes.

use core::ffi::CStr;

use crate::Errno;

/// `getxattr(path, name, value, bytes)`: an attribute's value; how many bytes it has.
///
/// Errors: `ENODATA` without such an attribute, `EOPNOTSUPP` where the file system has none,
/// `ENOENT`, `ERANGE` for a value that does not fit.
///
/// # Real-time: setup only
pub fn get(path: &CStr, name: &CStr, value: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: both texts end with a zero; `value` is writable for as many bytes as are stated.
    let bytes = unsafe {
        libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len())
    };
    Errno::check(bytes as libc::c_long).map(|bytes| usize::try_from(bytes).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_an_error() {
        let mut value = [0; 8];
        assert!(get(c"/proc/self", c"user.punctual", &mut value).is_err());
        assert_eq!(get(c"/no/such/file", c"user.x", &mut value), Err(Errno(libc::ENOENT)));
    }
}
