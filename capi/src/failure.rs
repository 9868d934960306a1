//! The failure of an entry, and the words of each thread's last one.
//!
//! For every entry. Allocates where a failure has words, which none has that a loop meets.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int};

use punctual::{ErrorKind, Force};

/// The failure of an entry.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The errno, positive.
    pub(crate) errno: c_int,
    /// In words, for [`errors::punctual_last_error`](crate::errors).
    pub(crate) words: Words,
}

/// The words of an argument that is null, by the name that it has in the header, and what it is to
/// point to; they allocate nothing.
macro_rules! null {
    ($name:literal, $what:literal) => {
        const {
            let text = concat!($name, " is null: it must point to ", $what, "\0");
            match std::ffi::CStr::from_bytes_with_nul(text.as_bytes()) {
                Ok(text) => text,
                Err(_) => panic!("one zero byte, at its end"),
            }
        }
    };
}
pub(crate) use null;

/// The words of a failure.
#[derive(Debug)]
pub(crate) enum Words {
    /// None but those of its errno.
    None,
    /// The same each time: for what a loop calls, which must not allocate.
    Fixed(&'static CStr),
    /// With the names and numbers that it is about.
    Made(String),
}

impl Failure {
    /// With words.
    pub(crate) fn new(errno: c_int, text: impl Into<String>) -> Self {
        Self { errno, words: Words::Made(text.into()) }
    }

    /// Without words, for what a loop calls.
    pub(crate) const fn bare(errno: c_int) -> Self {
        Self { errno, words: Words::None }
    }

    /// With words that allocate nothing, for what a loop calls. Of a null pointer [`null!`].
    pub(crate) const fn fixed(errno: c_int, text: &'static CStr) -> Self {
        Self { errno, words: Words::Fixed(text) }
    }

    /// Of a loop that the watchdog ended, in the words of [`End`](punctual::End); they allocate
    /// nothing.
    pub(crate) const fn forced(force: Force) -> Self {
        let text = match force {
            Force::Starved => c"the watchdog stopped the loop: it did not get the CPU",
            Force::Blocked => c"the watchdog stopped the loop: a body blocked",
            Force::Stuck => c"the watchdog stopped the loop: it made no progress",
            Force::Demoted | Force::NotDemoted => {
                c"the watchdog stopped the loop: it did not yield"
            }
            _ => c"the watchdog stopped the loop",
        };
        Self::fixed(libc::ETIMEDOUT, text)
    }

    /// This one, with what it is about in front of its words.
    pub(crate) fn about(self, subject: &str) -> Self {
        match self.words {
            Words::Made(text) => Self::new(self.errno, format!("{subject}: {text}")),
            Words::None | Words::Fixed(_) => self,
        }
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
    static MADE: RefCell<CString> = RefCell::default();
    /// The words of the last failure; `None` where they are those of `MADE`.
    static FIXED: Cell<Option<&'static CStr>> = const { Cell::new(Some(c"")) };
}

/// Keeps words that are the same each time; allocates nothing.
pub(crate) fn keep_fixed(text: &'static CStr) {
    // A thread that is about to end has no words any more.
    let _ended = FIXED.try_with(|fixed| fixed.set(Some(text)));
}

/// Keeps the words of a failure for the calling thread.
pub(crate) fn keep(text: String) {
    // A zero byte inside, of a name say, would end the text there.
    let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
    // A thread that is about to end has no words any more.
    let _ended = MADE.try_with(|made| made.replace(text));
    let _ended = FIXED.try_with(|fixed| fixed.set(None));
}

/// The words of the calling thread's last failure; valid until its next one.
pub(crate) fn last_words() -> *const c_char {
    match FIXED.try_with(Cell::get).unwrap_or(Some(c"")) {
        Some(fixed) => fixed.as_ptr(),
        None => MADE.try_with(|made| made.borrow().as_ptr()).unwrap_or(c"".as_ptr()),
    }
}

#[cfg(test)]
mod tests {
    use punctual::End;

    use super::*;

    #[test]
    fn what_the_watchdog_did_is_said_in_the_words_of_rust() {
        let forces =
            [Force::Demoted, Force::NotDemoted, Force::Starved, Force::Blocked, Force::Stuck];
        for force in forces {
            let rust = Failure::of(&End::from(force).ok().expect_err("not as planned"));
            let (Words::Made(text), errno) = (rust.words, rust.errno) else {
                panic!("{force:?} has no words")
            };
            let Failure { errno: ours, words: Words::Fixed(fixed) } = Failure::forced(force) else {
                panic!("{force:?} allocates")
            };
            assert_eq!((fixed.to_str(), ours), (Ok(text.as_str()), errno), "{force:?}");
        }
    }
}
