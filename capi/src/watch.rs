//! `punctual_watch`: a task of a running supervisor, read from another process.
//!
//! The entries over `punctual::Watch`. Any thread reads, several at a time; the memory is mapped
//! for reading alone.

use std::ffi::{CStr, c_char, c_int, c_void};

use punctual_core::block::Source;
use punctual_core::stats::View;
use punctual_engine::outcome;
use punctual_engine::process::Watch;
use punctual_os::fork::Origin;

use crate::failure::{Failure, null};
use crate::ffi::{self, Object};
use crate::process;
use crate::record;
use crate::stats::{self, Stats};

/// Whose an output is, as in the header.
const OUTPUT_TASK: c_int = 0;
const OUTPUT_SAFE: c_int = 1;

/// It reads shared memory, of which a child has its share: a watch works there too.
impl Object for Watch {
    const NULL: &'static CStr = null!("watch", "what punctual_watch_open() gave");

    fn origin(&self) -> Origin {
        Origin::here()
    }
}

/// Compiles only for a type that threads may share.
const fn is_shared<T: Sync>() {}
const _: () = is_shared::<Watch>();

/// The size of a task's output, in bytes.
fn output_bytes(watch: &Watch) -> usize {
    watch.terms().output_words.saturating_mul(8)
}

/// Its page.
fn page(watch: &Watch) -> Result<View<'_>, Failure> {
    watch.page().ok_or_else(|| Failure::new(libc::EPROTO, "its counts are there no more"))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_watch_open(
    to: *mut *mut Watch,
    supervisor: *const c_char,
    task: *const c_char,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, null!("watch", "where the handle goes"), std::ptr::null_mut()) }?;
        // SAFETY: null or a text that ends, says the header.
        let supervisor = unsafe { ffi::text(supervisor, "the supervisor's name") }?;
        // SAFETY: as above.
        let task = unsafe { ffi::text(task, "the task's name") }?;
        let (Some(supervisor), Some(task)) = (supervisor, task) else {
            return Err(Failure::invalid(
                "supervisor and task must not be null: a task is watched by their names",
            ));
        };
        let watch = Watch::open(&supervisor, &task)
            .map_err(|why| Failure::new(process::errno(&why), why.to_string()))?;
        // SAFETY: it was writable above.
        unsafe {
            ffi::put(to, null!("watch", "where the handle goes"), Box::into_raw(Box::new(watch)))
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_watch_period(
    watch: *const Watch,
    to_num_ns: *mut u64,
    to_den: *mut u64,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a watch, says the header.
        let releases = unsafe { ffi::object(watch) }?.terms().releases;
        // SAFETY: null or writable, says the header.
        unsafe {
            ffi::put(
                to_num_ns,
                null!("to_num_ns", "where the answer goes"),
                releases.period().num_ns(),
            )
        }?;
        // SAFETY: as above.
        unsafe {
            ffi::put(to_den, null!("to_den", "where the answer goes"), releases.period().den())
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_watch_stats(watch: *const Watch, to: *mut Stats) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a watch, says the header.
        let view = page(unsafe { ffi::object(watch) }?)?;
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &Stats::of(&view.counts())) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_watch_quantile_ns(
    watch: *const Watch,
    share: f64,
    to_ns: *mut i64,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a watch, says the header.
        let view = page(unsafe { ffi::object(watch) }?)?;
        let quantile_ns = stats::quantile_ns(|share| outcome::quantile(&view, share), share)?;
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to_ns, null!("to_ns", "where the answer goes"), quantile_ns) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_watch_output_size(watch: *const Watch, to: *mut usize) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a watch, says the header.
        let bytes = output_bytes(unsafe { ffi::object(watch) }?);
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, null!("to", "where the answer goes"), bytes) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_watch_output(
    watch: *const Watch,
    to: *mut c_void,
    size: usize,
    to_whose: *mut c_int,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a watch, says the header.
        let watch = unsafe { ffi::object(watch) }?;
        if to.is_null() {
            return Err(Failure::fixed(libc::EINVAL, null!("to", "where the output goes")));
        }
        if size > output_bytes(watch) {
            return Err(Failure::bare(libc::EMSGSIZE));
        }
        // SAFETY: not null, and then `size` bytes that are the caller's alone, says the header;
        // they may hold anything, so they are filled before they are bytes.
        unsafe { to.cast::<u8>().write_bytes(0, size) };
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), size) };
        let whose = match watch.output(bytes).ok_or(Failure::bare(libc::EAGAIN))? {
            Source::Task => OUTPUT_TASK,
            Source::Safe => OUTPUT_SAFE,
        };
        if to_whose.is_null() {
            return Ok(());
        }
        // SAFETY: not null, and then writable, says the header.
        unsafe { ffi::put(to_whose, null!("whose", "where the answer goes"), whose) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_watch_supervised(watch: *const Watch, to: *mut c_int) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a watch, says the header.
        let watch = unsafe { ffi::object(watch) }?;
        // SAFETY: null or writable, says the header.
        unsafe {
            ffi::put(to, null!("to", "where the answer goes"), c_int::from(watch.is_supervised()))
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_watch_close(watch: *mut Watch) -> c_int {
    // SAFETY: null or a watch, from the box of `punctual_watch_open`, says the header.
    ffi::enter(|| unsafe { ffi::destroy(watch, |_| Ok(()), ffi::dropped) })
}

#[cfg(test)]
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "each is a call of one entry")]
mod tests {
    use std::ptr::{null, null_mut};

    use super::*;
    use crate::errors;

    #[test]
    fn what_is_not_there_cannot_be_watched() {
        let mut watch = std::ptr::dangling_mut();
        // SAFETY: all is local or null.
        unsafe {
            let task = c"task".as_ptr();
            assert_eq!(punctual_watch_open(&raw mut watch, c"../x".as_ptr(), task), -libc::EINVAL);
            assert!(watch.is_null() && errors::tests::last().contains("invalid name"));
            assert_eq!(punctual_watch_open(&raw mut watch, null(), task), -libc::EINVAL);
            assert!(errors::tests::last().contains("by their names"));
            assert_eq!(punctual_watch_open(null_mut(), task, task), -libc::EINVAL);
            assert_eq!(punctual_watch_period(null(), null_mut(), null_mut()), -libc::EINVAL);
            assert_eq!(punctual_watch_stats(null(), null_mut()), -libc::EINVAL);
            assert_eq!(punctual_watch_quantile_ns(null(), 0.5, null_mut()), -libc::EINVAL);
            assert_eq!(punctual_watch_output_size(null(), null_mut()), -libc::EINVAL);
            assert_eq!(punctual_watch_output(null(), null_mut(), 0, null_mut()), -libc::EINVAL);
            assert_eq!(punctual_watch_supervised(null(), null_mut()), -libc::EINVAL);
            assert_eq!(punctual_watch_close(null_mut()), 0);
        }
    }

    #[test]
    fn a_panic_inside_any_entry_is_an_error_outside() {
        let fault = -libc::ENOTRECOVERABLE;
        let panics = ffi::tests::panic_next;
        // SAFETY: null where nothing is reached.
        unsafe {
            panics();
            assert_eq!(punctual_watch_open(null_mut(), null(), null()), fault);
            panics();
            assert_eq!(punctual_watch_period(null(), null_mut(), null_mut()), fault);
            panics();
            assert_eq!(punctual_watch_stats(null(), null_mut()), fault);
            panics();
            assert_eq!(punctual_watch_quantile_ns(null(), 0.5, null_mut()), fault);
            panics();
            assert_eq!(punctual_watch_output_size(null(), null_mut()), fault);
            panics();
            assert_eq!(punctual_watch_output(null(), null_mut(), 0, null_mut()), fault);
            panics();
            assert_eq!(punctual_watch_supervised(null(), null_mut()), fault);
            panics();
            assert_eq!(punctual_watch_close(null_mut()), fault);
        }
    }
}
