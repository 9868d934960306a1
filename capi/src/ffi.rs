//! The frame of all entries: no panic leaves, no bad pointer is followed, every answer is 0
//! or −errno.
//!
//! For every entry. What C promises of its pointers stands in the header: each is null or points to
//! what its type says, for the time of the call. Null is found here, and so is an object that is
//! used in two places at once.

use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_os::fork::Origin;

use crate::failure::{self, Failure, Words};

/// Runs an entry: 0, or what failed as a negative errno. A panic inside is −ENOTRECOVERABLE.
pub(crate) fn enter(entry: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match caught(entry) {
        Some(Ok(())) => 0,
        Some(Err(failure)) => {
            match failure.words {
                Words::None => failure::keep_fixed(c""),
                Words::Fixed(text) => failure::keep_fixed(text),
                Words::Made(text) => failure::keep(text),
            }
            -failure.errno
        }
        None => -libc::ENOTRECOVERABLE,
    }
}

/// Runs an entry that gives a value; `otherwise` after a panic.
pub(crate) fn value<T>(otherwise: T, entry: impl FnOnce() -> T) -> T {
    caught(entry).unwrap_or(otherwise)
}

fn caught<T>(entry: impl FnOnce() -> T) -> Option<T> {
    let entry = || {
        #[cfg(test)]
        tests::perhaps_panic();
        entry()
    };
    // What a broken object is good for afterwards, the header says: to be destroyed.
    match catch_unwind(AssertUnwindSafe(entry)) {
        Ok(value) => Some(value),
        Err(payload) => {
            failure::keep(message(&*payload));
            // A payload whose destructor panics would leave this function.
            std::mem::forget(payload);
            None
        }
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("a fault of libpunctual's own: {}", text.unwrap_or("a panic"))
}

/// The value that a pointer points to, or EINVAL in these words for null.
///
/// # Safety
/// A pointer that is not null points to what its type says.
pub(crate) unsafe fn pointee<'a, T>(from: *const T, null: &'static CStr) -> Result<&'a T, Failure> {
    // SAFETY: null or as its type, says the caller.
    unsafe { from.as_ref() }.ok_or(Failure::fixed(libc::EINVAL, null))
}

/// An object behind a handle.
pub(crate) trait Object {
    /// The words for a handle that is null, by [`null!`](crate::failure::null).
    const NULL: &'static CStr;

    /// The process that it belongs to.
    fn origin(&self) -> Origin;
}

/// The object behind a handle; EINVAL for null, ECHILD in a child that fork(2) made: threads,
/// priorities and files stayed with the parent, and so does what would put them back.
///
/// # Safety
/// A handle that is not null is one that this library gave and that was not destroyed since.
pub(crate) unsafe fn object<'a, T: Object>(handle: *const T) -> Result<&'a T, Failure> {
    // SAFETY: null or alive, says the caller.
    let object = unsafe { pointee(handle, T::NULL) }?;
    if object.origin().is_here() { Ok(object) } else { Err(Failure::bare(libc::ECHILD)) }
}

/// Ends the object behind a handle; null is no error. The handle stays where `may` refuses, or in a
/// child of the process that has the object; it is gone on every other way out, a panic's too.
///
/// # Safety
/// A handle that is not null is one that this library made of a box and that was not destroyed
/// since; no other call uses it.
pub(crate) unsafe fn destroy<T: Object>(
    handle: *mut T,
    may: impl FnOnce(&T) -> Result<(), Failure>,
    end: impl FnOnce(T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if handle.is_null() {
        return Ok(());
    }
    // SAFETY: not null, and then as the caller says.
    may(unsafe { object(handle) }?)?;
    // SAFETY: from a box, says the caller, who uses it no more.
    let own = unsafe { Box::from_raw(handle) };
    #[cfg(test)]
    tests::perhaps_panic_at_the_end();
    end(*own)
}

/// The end of an object that has nothing to say at it.
pub(crate) fn dropped<T>(own: T) -> Result<(), Failure> {
    drop(own);
    Ok(())
}

/// Writes a value where the caller wants it; EINVAL in these words for null.
///
/// # Safety
/// A pointer that is not null may be written to.
pub(crate) unsafe fn put<T>(to: *mut T, null: &'static CStr, value: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::fixed(libc::EINVAL, null));
    }
    // SAFETY: not null, and then writable, says the caller; C's alignment is the type's.
    unsafe { to.write(value) };
    Ok(())
}

/// A text of the caller's as our own; `None` for null.
///
/// # Safety
/// A pointer that is not null points to a text that ends with a zero byte.
pub(crate) unsafe fn text(from: *const c_char, name: &str) -> Result<Option<String>, Failure> {
    if from.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and then a text that ends, says the caller.
    let text = unsafe { CStr::from_ptr(from) };
    let text = text.to_str().map_err(|_| Failure::invalid(format!("{name} is no UTF-8")))?;
    Ok(Some(text.to_owned()))
}

/// A path of the caller's as our own; `None` for null.
///
/// # Safety
/// A pointer that is not null points to a text that ends with a zero byte.
pub(crate) unsafe fn path(from: *const c_char) -> Option<PathBuf> {
    // SAFETY: not null, and then a text that ends, says the caller.
    let text = (!from.is_null()).then(|| unsafe { CStr::from_ptr(from) })?;
    Some(PathBuf::from(OsStr::from_bytes(text.to_bytes())))
}

/// Copies a text out, cut to what fits with its zero byte; ERANGE when it was cut.
///
/// # Safety
/// `size` bytes from `to` on may be written to, when it is not null.
pub(crate) unsafe fn put_text(to: *mut c_char, size: usize, text: &str) -> Result<(), Failure> {
    let Some(most) = size.checked_sub(1).filter(|_| !to.is_null()) else {
        let text = c"text must be room for size bytes, the closing zero included: it is null, or \
                     size is 0";
        return Err(Failure::fixed(libc::EINVAL, text));
    };
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // SAFETY: `end` is at most `size` − 1 and the text's length; the two do not overlap, as the
    // text is ours.
    unsafe { to.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), end) };
    // SAFETY: as above: `end` is below `size`.
    unsafe { to.wrapping_add(end).write(0) };
    if end < text.len() { Err(Failure::bare(libc::ERANGE)) } else { Ok(()) }
}

/// A value that one caller at a time may touch: a second one is refused, never made to wait.
#[derive(Debug, Default)]
pub(crate) struct Exclusive<T> {
    taken: AtomicBool,
    inside: UnsafeCell<T>,
}

// SAFETY: `with` lets one thread in at a time, so that this is as sendable as what is inside.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    /// Runs `inner` on the inside; EBUSY while another call does.
    pub(crate) fn with<R>(
        &self,
        inner: impl FnOnce(&mut T) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        /// Gives it back on every way out, a panic's too.
        struct Taken<'a>(&'a AtomicBool);
        impl Drop for Taken<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        if self.taken.swap(true, Ordering::Acquire) {
            return Err(Failure::bare(libc::EBUSY));
        }
        let _taken = Taken(&self.taken);
        // SAFETY: whoever found it not taken is alone until it is given back.
        inner(unsafe { &mut *self.inside.get() })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::errors;
    use crate::failure::null;

    thread_local! {
        static PANICS: Cell<bool> = const { Cell::new(false) };
        static PANICS_AT_THE_END: Cell<bool> = const { Cell::new(false) };
    }

    /// Makes the next entry of this thread panic inside.
    pub(crate) fn panic_next() {
        PANICS.set(true);
    }

    pub(super) fn perhaps_panic() {
        assert!(!PANICS.take(), "as the test wants");
    }

    /// Makes the next end of an object by this thread panic.
    pub(crate) fn panic_at_the_end() {
        PANICS_AT_THE_END.set(true);
    }

    pub(super) fn perhaps_panic_at_the_end() {
        assert!(!PANICS_AT_THE_END.take(), "as the test wants");
    }

    #[test]
    fn a_panic_becomes_an_error_with_its_words() {
        panic_next();
        assert_eq!(enter(|| Ok(())), -libc::ENOTRECOVERABLE);
        let words = errors::tests::last();
        assert!(words.ends_with("as the test wants"), "{words}");
        assert_eq!(enter(|| panic!("number {}", 7)), -libc::ENOTRECOVERABLE);
        assert!(errors::tests::last().ends_with("number 7"));
        assert_eq!(value(5, || std::panic::panic_any(3.0)), 5);
        assert!(errors::tests::last().ends_with("a panic"));
    }

    /// An object that counts its ends.
    struct Counted<'a>(&'a Cell<u32>);

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.update(|ended| ended + 1);
        }
    }

    impl Object for Counted<'_> {
        const NULL: &'static CStr = null!("counted", "a counted object");

        fn origin(&self) -> Origin {
            Origin::here()
        }
    }

    #[test]
    fn a_handle_is_gone_unless_its_end_was_refused() {
        type End<'a> = fn(Counted<'a>) -> Result<(), Failure>;
        let bare = |errno| Err(Failure::bare(errno));
        let ended = Cell::new(0);
        let fails: End<'_> = |_| Err(Failure::bare(libc::EIO));
        let panics: End<'_> = |_| panic!("as the test wants");
        for (end, answer) in
            [(dropped as End<'_>, 0), (fails, -libc::EIO), (panics, -libc::ENOTRECOVERABLE)]
        {
            ended.set(0);
            let handle = Box::into_raw(Box::new(Counted(&ended)));
            // SAFETY: from a box.
            let refused = unsafe { destroy(handle, |_| bare(libc::EPERM), end) };
            assert_eq!(refused.expect_err("refused").errno, libc::EPERM);
            assert_eq!(ended.get(), 0, "it stays");
            // SAFETY: from a box, used no more.
            assert_eq!(enter(|| unsafe { destroy(handle, |_| Ok(()), end) }), answer);
            assert_eq!(ended.get(), 1, "it is gone, with {answer}");
        }
        // SAFETY: null is allowed.
        let null = unsafe { destroy(std::ptr::null_mut(), |_: &Counted<'_>| bare(1), dropped) };
        assert!(null.is_ok());
    }

    #[test]
    fn a_text_is_cut_between_characters_and_always_ends() {
        let mut text: [c_char; 4] = [1; 4];
        // SAFETY: as many bytes as are stated.
        let cut = unsafe { put_text(text.as_mut_ptr(), 4, "aµµ") };
        assert_eq!(cut.expect_err("cut").errno, libc::ERANGE);
        assert_eq!(text.map(|byte| byte as u8), [b'a', 0xc2, 0xb5, 0]);
        // SAFETY: as above.
        assert!(unsafe { put_text(text.as_mut_ptr(), 4, "") }.is_ok());
        assert_eq!(text[0], 0);
        // SAFETY: null is allowed.
        assert!(unsafe { put_text(std::ptr::null_mut(), 4, "") }.is_err());
        // SAFETY: nothing is written into no bytes.
        assert!(unsafe { put_text(text.as_mut_ptr(), 0, "") }.is_err());
    }

    #[test]
    fn what_is_taken_is_refused_and_comes_back_after_a_panic() {
        let cell = Exclusive::<i32>::default();
        let busy = cell.with(|_| cell.with(|_| Ok(())));
        assert_eq!(busy.expect_err("taken").errno, libc::EBUSY);
        let _panicked = catch_unwind(AssertUnwindSafe(|| {
            cell.with(|_| -> Result<(), Failure> { panic!("inside") })
        }));
        assert_eq!(cell.with(|inside| Ok(*inside)).expect("free"), 0);
    }
}
