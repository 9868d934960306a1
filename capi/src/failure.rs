//! The failure of an entry, and the words of each thread's last one.
//!
//! For every entry. Allocates where a failure has words, which none has that a loop meets.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int};

use punctual::ErrorKind;

/// The failure of an entry.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The errno, positive.
    pub(crate) errno: c_int,
    /// In words, for [`errors::punctual_last_error`](crate::errors); `None` where the loop must not
    /// allocate.
    pub(crate) text: Option<String>,
}

impl Failure {
    /// With words.
    pub(crate) fn new(errno: c_int, text: impl Into<String>) -> Self {
        Self { errno, text: Some(text.into()) }
    }

    /// Without words, for what a loop calls.
    pub(crate) const fn bare(errno: c_int) -> Self {
        Self { errno, text: None }
    }

    /// An argument that cannot be.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(libc::EINVAL, text)
    }

    /// An error of `punctual`'s as C has it.
    pub(crate) fn of(why: &punctual::Error) -> Self {
        let errno = match why.kind() {
            ErrorKind::SameName => libc::EEXIST,
            ErrorKind::Unknown => libc::ENOENT,
            ErrorKind::TooMany => libc::E2BIG,
            ErrorKind::NoTime => libc::ENOSPC,
            ErrorKind::Busy => libc::EBUSY,
            ErrorKind::FromLoop => libc::EDEADLK,
            ErrorKind::NotRunning => libc::ECANCELED,
            ErrorKind::Thread => libc::EAGAIN,
            ErrorKind::Samples => why.errno().unwrap_or(libc::EIO),
            ErrorKind::Unreadable => libc::EIO,
            ErrorKind::Device => why.errno().unwrap_or(libc::EINVAL),
            ErrorKind::Refused => libc::EACCES,
            ErrorKind::Forced => libc::ETIMEDOUT,
            ErrorKind::Overran => libc::ETIME,
            ErrorKind::Panicked => libc::ENOTRECOVERABLE,
            ErrorKind::Forked => libc::ECHILD,
            _ => libc::EINVAL,
        };
        Self::new(errno, why.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
    static WORDLESS: Cell<bool> = const { Cell::new(true) };
}

/// Takes note of a failure without words; allocates nothing.
pub(crate) fn wordless() {
    // A thread that is about to end has no words any more.
    let _ended = WORDLESS.try_with(|wordless| wordless.set(true));
}

/// Keeps the words of a failure for the calling thread.
pub(crate) fn keep(text: String) {
    // A zero byte inside, of a name say, would end the text there.
    let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
    // A thread that is about to end has no words any more.
    let _ended = LAST.try_with(|last| last.replace(text));
    let _ended = WORDLESS.try_with(|wordless| wordless.set(false));
}

/// The words of the calling thread's last failure; valid until its next one.
pub(crate) fn last_words() -> *const c_char {
    let none: &CStr = c"";
    if WORDLESS.try_with(Cell::get).unwrap_or(true) {
        return none.as_ptr();
    }
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(none.as_ptr())
}
