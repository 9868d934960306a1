//! `punctual_process`: this process as a task of a supervisor's. The paper's three calls.
//!
//! The entries over `punctual::Registration`. All of it is the registering thread's.

use std::ffi::{CStr, c_char, c_int, c_void};

use punctual::Error;
use punctual_engine::process::Registration;
use punctual_os::fork::Origin;

use crate::failure::{Failure, null};
use crate::ffi::{self, Object};
use crate::record;
use crate::stats::Cycle;
use crate::thread_bound::ThreadBound;

/// The object behind a `punctual_process`.
struct Process {
    origin: Origin,
    own: ThreadBound<Registration>,
}

impl Object for Process {
    const NULL: &'static CStr =
        null!("process", "what punctual_register() or punctual_join() gave");

    fn origin(&self) -> Origin {
        self.origin
    }
}

impl Process {
    fn of(registered: Result<Registration, Error>) -> Result<*mut Self, Failure> {
        let registration = registered.map_err(|why| Failure::new(errno(&why), why.to_string()))?;
        let own = ThreadBound::new(registration);
        Ok(Box::into_raw(Box::new(Self { origin: Origin::here(), own })))
    }
}

/// The errno of what cannot be registered or watched.
pub(crate) fn errno(why: &Error) -> c_int {
    why.errno().unwrap_or(libc::EPROTO)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_register(to: *mut *mut Process, task: *const c_char) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, null!("process", "where the handle goes"), std::ptr::null_mut()) }?;
        // SAFETY: null or a text that ends, says the header.
        let task = unsafe { ffi::text(task, "the task's name") }?;
        let made = Process::of(Registration::from_env(task.as_deref()))?;
        // SAFETY: it was writable above.
        unsafe { ffi::put(to, null!("process", "where the handle goes"), made) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_join(
    to: *mut *mut Process,
    supervisor: *const c_char,
    task: *const c_char,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, null!("process", "where the handle goes"), std::ptr::null_mut()) }?;
        // SAFETY: null or a text that ends, says the header.
        let supervisor = unsafe { ffi::text(supervisor, "the supervisor's name") }?;
        // SAFETY: as above.
        let task = unsafe { ffi::text(task, "the task's name") }?;
        let (Some(supervisor), Some(task)) = (supervisor, task) else {
            return Err(Failure::invalid(
                "supervisor and task must not be null: a task joins by their names",
            ));
        };
        let made = Process::of(Registration::join(&supervisor, &task))?;
        // SAFETY: it was writable above.
        unsafe { ffi::put(to, null!("process", "where the handle goes"), made) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_wait(process: *mut Process, cycle: *mut Cycle) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or registered, says the header.
        let process = unsafe { ffi::object(process) }?;
        if !cycle.is_null() {
            // SAFETY: not null, and then a struct that says its size, says the header.
            unsafe { record::fits(cycle) }?;
        }
        let ours = process.own.with(|registration| match registration.wait() {
            Ok(ran) => Ok(Cycle::of(&ran)),
            Err(why) => Err(Failure::bare(errno(&why))),
        })?;
        if cycle.is_null() {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { record::give(cycle, &ours) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_cancelled(process: *mut Process, to: *mut c_int) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or registered, says the header.
        let process = unsafe { ffi::object(process) }?;
        let cancelled = process.own.with(|registration| Ok(registration.cancelled()))?;
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, null!("to", "where the answer goes"), c_int::from(cancelled)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_commit(
    process: *mut Process,
    bytes: *const c_void,
    size: usize,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or registered, says the header.
        let process = unsafe { ffi::object(process) }?;
        if bytes.is_null() {
            return Err(Failure::fixed(libc::EINVAL, null!("bytes", "what is to be given out")));
        }
        if isize::try_from(size).is_err() {
            return Err(Failure::fixed(libc::EINVAL, c"size is beyond any memory"));
        }
        process.own.with(|registration| {
            let most = registration.terms().output_words.saturating_mul(8);
            if size > most {
                return Err(Failure::bare(libc::EMSGSIZE));
            }
            // SAFETY: not null, and then as many bytes, says the header; any byte is a `u8`.
            let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), size) };
            match registration.commit(bytes) {
                true => Ok(()),
                false => Err(Failure::bare(libc::EMSGSIZE)),
            }
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_unregister(process: *mut Process) -> c_int {
    // Its thread is the one that is released; and not from within itself.
    let may = |process: &Process| process.own.with(|_| Ok(()));
    // SAFETY: null or registered, from the box of `Process::of`, says the header.
    ffi::enter(|| unsafe { ffi::destroy(process, may, ffi::dropped) })
}

#[cfg(test)]
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "each is a call of one entry")]
mod tests {
    use std::ptr::{null, null_mut};

    use super::*;
    use crate::errors;

    #[test]
    fn without_a_supervisor_there_is_nothing_to_register_with() {
        let mut process = null_mut();
        // SAFETY: all is local or null.
        unsafe {
            assert_eq!(punctual_register(&raw mut process, null()), -libc::ENOTCONN);
            assert!(process.is_null() && errors::tests::last().contains("start it by"));
            assert_eq!(
                punctual_join(&raw mut process, c"../x".as_ptr(), c"a".as_ptr()),
                -libc::EINVAL
            );
            assert!(errors::tests::last().contains("invalid name"), "{}", errors::tests::last());
            assert_eq!(punctual_join(&raw mut process, null(), c"a".as_ptr()), -libc::EINVAL);
            assert_eq!(punctual_register(null_mut(), null()), -libc::EINVAL);
            assert_eq!(punctual_wait(null_mut(), null_mut()), -libc::EINVAL);
            assert_eq!(punctual_cancelled(null_mut(), null_mut()), -libc::EINVAL);
            assert_eq!(punctual_commit(null_mut(), null(), 0), -libc::EINVAL);
            assert_eq!(punctual_unregister(null_mut()), 0);
        }
    }

    #[test]
    fn a_panic_inside_any_entry_is_an_error_outside() {
        let fault = -libc::ENOTRECOVERABLE;
        let panics = ffi::tests::panic_next;
        // SAFETY: null where nothing is reached.
        unsafe {
            panics();
            assert_eq!(punctual_register(null_mut(), null()), fault);
            panics();
            assert_eq!(punctual_join(null_mut(), null(), null()), fault);
            panics();
            assert_eq!(punctual_wait(null_mut(), null_mut()), fault);
            panics();
            assert_eq!(punctual_cancelled(null_mut(), null_mut()), fault);
            panics();
            assert_eq!(punctual_commit(null_mut(), null(), 0), fault);
            panics();
            assert_eq!(punctual_unregister(null_mut()), fault);
        }
    }
}
