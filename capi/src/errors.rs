//! Failures in words: the last one of a thread, and the meaning of each errno here.
//!
//! For callers after an entry failed.

use std::ffi::{CStr, c_char, c_int};

use crate::failure;
use crate::ffi;

/// The text of the calling thread's last failure.
#[unsafe(no_mangle)]
extern "C" fn punctual_last_error() -> *const c_char {
    ffi::value(c"".as_ptr(), failure::last_words)
}

/// The meaning of an error here; takes −errno and errno alike.
#[unsafe(no_mangle)]
extern "C" fn punctual_strerror(error: c_int) -> *const c_char {
    ffi::value(c"".as_ptr(), || meaning(error).as_ptr())
}

fn meaning(error: c_int) -> &'static CStr {
    match error.wrapping_abs() {
        0 => c"no error",
        libc::EINVAL => c"an argument that cannot be, or a null pointer",
        libc::E2BIG => {
            c"a struct of a newer version that asks for more, or too many tasks or units"
        }
        libc::EBADF => c"no open descriptor",
        libc::EBUSY => c"in use by another call, or running",
        libc::EPERM => c"a loop is waited for and destroyed by the thread that created it",
        libc::ECANCELED => c"stopped on request",
        libc::EINTR => c"a signal came before the instant did",
        libc::EEXIST => c"two tasks or units have one name",
        libc::ENOENT => c"there is no such task, unit or file",
        libc::ENOSPC => c"budgets ask for more than the whole CPU, or units for one time",
        libc::ENODATA => c"there is no such number yet, or not of this task",
        libc::ERANGE => c"beyond what the result can hold",
        libc::ETIME => c"a task overran, and its policy is to stop everything",
        libc::ETIMEDOUT => c"stopped by the watchdog",
        libc::EAGAIN => c"a thread could not be started",
        libc::EIO => c"a file could not be written to its end",
        libc::ENOTRECOVERABLE => c"a fault of the library's own; destroy the object",
        libc::EACCES => c"refused by the kernel, with strict options; or another user's supervisor",
        libc::ENOTCONN => c"this process was not started by a supervisor",
        libc::ECONNREFUSED => c"the supervisor refused, or does not answer",
        libc::EPROTO => c"the supervisor is of another version",
        libc::EPIPE => c"the supervisor has ended",
        libc::ECHILD => c"of the process that this one was forked of, where it goes on",
        libc::EDEADLK => c"a task cannot change the loop that runs it",
        libc::EMSGSIZE => c"longer than the task's output",
        _ => c"no error of this library",
    }
}

/// The version of this library.
#[unsafe(no_mangle)]
extern "C" fn punctual_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    ffi::value(c"".as_ptr(), || VERSION.as_ptr())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn text(from: *const c_char) -> String {
        // SAFETY: never null, and a text that ends.
        unsafe { CStr::from_ptr(from) }.to_str().expect("UTF-8").to_owned()
    }

    pub(crate) fn last() -> String {
        text(punctual_last_error())
    }

    #[test]
    fn each_thread_has_its_own_last_error() {
        failure::keep("one\0two".to_owned());
        let elsewhere = std::thread::spawn(last).join().expect("no panic");
        assert_eq!((last().as_str(), elsewhere.as_str()), ("one?two", ""));
        failure::keep_fixed(c"three");
        assert_eq!(last(), "three");
        failure::keep_fixed(c"");
        assert_eq!(last(), "", "the last failure had no words");
    }

    #[test]
    fn every_number_means_something() {
        for error in [0, 1, -1, libc::EINVAL, -libc::EINVAL, c_int::MIN, c_int::MAX] {
            assert!(!text(punctual_strerror(error)).is_empty());
        }
        assert_eq!(text(punctual_strerror(-libc::ECANCELED)), "stopped on request");
        assert_eq!(text(punctual_version()), env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn a_panic_inside_leaves_a_text_all_the_same() {
        ffi::tests::panic_next();
        assert_eq!(text(punctual_version()), "");
    }
}
