//! Users and groups by their names, as the C library's name service knows them.
//!
//! For supervisors, before anything runs. Reads the user and group databases; changes nothing.

use core::ffi::{CStr, c_char, c_int};

use crate::Errno;

/// Room for the texts of one entry: a longer one is refused with `ERANGE`.
const ENTRY_BYTES: usize = 16 * 1024;

/// The most supplementary groups of a user (Linux: NGROUPS_MAX is 65 536; more than this is odd).
pub const GROUPS_MAX: usize = 256;

/// A user and the group that it logs in with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// Its login group's number.
    pub gid: u32,
}

/// `getpwnam_r(name)`: the user of this name; `None` where there is none.
///
/// # Real-time: setup only
pub fn by_name(name: &CStr) -> Result<Option<User>, Errno> {
    let call = |entry, buffer, found| {
        // SAFETY: `name` ends with a zero; the others are writable for the lengths stated.
        unsafe { libc::getpwnam_r(name.as_ptr(), entry, buffer, ENTRY_BYTES, found) }
    };
    look_up(call, User::of)
}

/// `getpwuid_r(uid)`: the user of this number; `None` where there is none.
///
/// # Real-time: setup only
pub fn by_number(uid: u32) -> Result<Option<User>, Errno> {
    look_up(|entry, buffer, found| number(uid, entry, buffer, found), User::of)
}

/// `getpwuid_r(uid)`: the home directory of the user of this number, into `path`: how many bytes it
/// has; `None` where there is no such user, or it has no home.
///
/// Errors: `ERANGE` for a path longer than `path`.
///
/// # Real-time: setup only
pub fn home(uid: u32, path: &mut [u8]) -> Result<Option<usize>, Errno> {
    let copied = look_up(
        |entry, buffer, found| number(uid, entry, buffer, found),
        |entry| {
            if entry.pw_dir.is_null() {
                return Ok(0);
            }
            // SAFETY: not null, and getpwuid_r ends it with a zero in a buffer that still lives.
            let home = unsafe { CStr::from_ptr(entry.pw_dir) }.to_bytes();
            path.get_mut(..home.len()).ok_or(Errno(libc::ERANGE))?.copy_from_slice(home);
            Ok(home.len())
        },
    )?;
    Ok(copied.transpose()?.filter(|length| *length > 0))
}

fn number(
    uid: u32,
    entry: *mut libc::passwd,
    buffer: *mut c_char,
    found: *mut *mut libc::passwd,
) -> c_int {
    // SAFETY: `look_up` gives pointers that are writable for the lengths stated.
    unsafe { libc::getpwuid_r(uid, entry, buffer, ENTRY_BYTES, found) }
}

impl User {
    fn of(entry: &libc::passwd) -> Self {
        Self { uid: entry.pw_uid, gid: entry.pw_gid }
    }
}

fn look_up<T>(
    call: impl FnOnce(*mut libc::passwd, *mut c_char, *mut *mut libc::passwd) -> c_int,
    read: impl FnOnce(&libc::passwd) -> T,
) -> Result<Option<T>, Errno> {
    // SAFETY: all-zero is a valid passwd: null pointers and numbers.
    let mut entry: libc::passwd = unsafe { core::mem::zeroed() };
    let mut buffer: [c_char; ENTRY_BYTES] = [0; ENTRY_BYTES];
    let mut found = core::ptr::null_mut();
    match call(&raw mut entry, buffer.as_mut_ptr(), &raw mut found) {
        0 if found.is_null() => Ok(None),
        0 => Ok(Some(read(&entry))),
        errno => Err(Errno(errno)),
    }
}

/// `getgrnam_r(name)`: the number of the group of this name; `None` where there is none.
///
/// # Real-time: setup only
pub fn group(name: &CStr) -> Result<Option<u32>, Errno> {
    // SAFETY: all-zero is a valid group: null pointers and numbers.
    let mut entry: libc::group = unsafe { core::mem::zeroed() };
    let mut buffer: [c_char; ENTRY_BYTES] = [0; ENTRY_BYTES];
    let mut found = core::ptr::null_mut();
    // SAFETY: `name` ends with a zero; the others are writable for the lengths stated.
    let result = unsafe {
        libc::getgrnam_r(
            name.as_ptr(),
            &raw mut entry,
            buffer.as_mut_ptr(),
            ENTRY_BYTES,
            &raw mut found,
        )
    };
    match result {
        0 if found.is_null() => Ok(None),
        0 => Ok(Some(entry.gr_gid)),
        errno => Err(Errno(errno)),
    }
}

/// `getgrouplist(name, gid)`: the supplementary groups of a user, `gid` among them, into `groups`;
/// how many there are.
///
/// Errors: `ERANGE` for more than [`GROUPS_MAX`].
///
/// # Real-time: setup only
pub fn groups(name: &CStr, gid: u32, groups: &mut [u32; GROUPS_MAX]) -> Result<usize, Errno> {
    let mut count = GROUPS_MAX as c_int;
    // SAFETY: `name` ends with a zero; `groups` is writable for `count` numbers.
    let result =
        unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
    match usize::try_from(count) {
        Ok(count) if result >= 0 && count <= GROUPS_MAX => Ok(count),
        _ => Err(Errno(libc::ERANGE)),
    }
}

/// `setgroups(groups)`, `setresgid(gid, gid, gid)`, `setresuid(uid, uid, uid)`: this process is
/// that user from now on and cannot go back: for a process that is about to become another program.
///
/// Errors: `EPERM` without CAP_SETUID and CAP_SETGID. Where one of the later calls fails, the
/// earlier ones have been done: the caller must end.
///
/// # Real-time: setup only
pub fn become_user(uid: u32, gid: u32, groups: &[u32]) -> Result<(), Errno> {
    // SAFETY: the pointer and the length are those of a slice.
    let result = unsafe { libc::setgroups(groups.len(), groups.as_ptr()) };
    Errno::check(result.into())?;
    // SAFETY: takes numbers only.
    let result = unsafe { libc::setresgid(gid, gid, gid) };
    Errno::check(result.into())?;
    // SAFETY: takes numbers only.
    let result = unsafe { libc::setresuid(uid, uid, uid) };
    Errno::check(result.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_and_nobody_else_is_made_up() {
        let root = User { uid: 0, gid: 0 };
        assert_eq!((by_name(c"root"), by_number(0)), (Ok(Some(root)), Ok(Some(root))));
        assert_eq!(group(c"root"), Ok(Some(0)));
        assert_eq!(by_name(c"no such user of this machine"), Ok(None));
        assert_eq!(group(c"no such group of this machine"), Ok(None));
        let mut list = [7; GROUPS_MAX];
        let count = groups(c"root", 0, &mut list).expect("few");
        assert!(list[..count].contains(&0));
    }
}
