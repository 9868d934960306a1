//! Structs that may grow: the first field says how large the caller's is.
//!
//! For every struct that crosses the border. As the kernel does (`copy_struct_from_user`, Linux
//! 5.4): an older caller's is shorter, and the rest has its defaults; a newer one's is longer, and
//! what this library does not know must be zero. Results are cut or filled up with zeros.

use std::ffi::{CStr, c_int};

use crate::failure::Failure;

/// No struct of any version is larger; what says so was never set.
const MOST_BYTES: usize = 4096;

/// A struct that says its size.
///
/// # Safety
/// It is `repr(C)`, without padding, begins with its size as a `usize`, and every pattern of bits
/// is a value of it.
pub(crate) unsafe trait Record: Copy {
    /// The size of its first version: no caller has less.
    const LEAST: usize;
    /// Its name in the header; this and the next two by [`named!`].
    const NAME: &'static str;
    /// The words for a record whose size was never set; they allocate nothing.
    const UNSET: &'static CStr;
    /// The words for a record that is null; they allocate nothing.
    const NULL: &'static CStr;

    /// All fields with their defaults, for the size of this version.
    fn blank() -> Self;
}

/// The name of a record, without `punctual_`, the one that it has as an argument where that is
/// another, and the words for one without a size and for none.
macro_rules! named {
    ($name:literal) => {
        named!($name, $name);
    };
    ($name:literal, $argument:literal) => {
        const NULL: &'static std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
            concat!(
                $argument,
                " is null, or not aligned: it must point to a punctual_",
                $name,
                " that punctual_",
                $name,
                "_init() filled in\0"
            )
            .as_bytes(),
        ) {
            Ok(text) => text,
            Err(_) => panic!("one zero byte, at its end"),
        };
        const NAME: &'static str = concat!("punctual_", $name);
        const UNSET: &'static std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
            concat!(
                "a punctual_",
                $name,
                " of a size that no version has: call punctual_",
                $name,
                "_init(&",
                $name,
                ", sizeof ",
                $name,
                ") before anything else\0"
            )
            .as_bytes(),
        ) {
            Ok(text) => text,
            Err(_) => panic!("one zero byte, at its end"),
        };
    };
}
pub(crate) use named;

/// The errno of a size that no version has.
fn size_errno<T: Record>(size: usize) -> Option<c_int> {
    match size {
        size if size < T::LEAST => Some(libc::EINVAL),
        size if size > MOST_BYTES => Some(libc::E2BIG),
        _ => None,
    }
}

/// The size that the struct at `from` says it has, whatever it is.
///
/// # Safety
/// `from` is null or points to a struct that begins with its size.
unsafe fn stated<T: Record>(from: *const T) -> Result<usize, Failure> {
    if from.is_null() || !from.is_aligned() {
        return Err(Failure::fixed(libc::EINVAL, T::NULL));
    }
    // SAFETY: not null, aligned, and begins with it, says the caller.
    Ok(unsafe { from.cast::<usize>().read() })
}

/// The size of the struct at `from`, where it can be one; allocates nothing.
///
/// # Safety
/// `from` is null or points to a struct that begins with its size.
unsafe fn size_of_theirs<T: Record>(from: *const T) -> Result<usize, Failure> {
    // SAFETY: as the caller says.
    let size = unsafe { stated(from) }?;
    size_errno::<T>(size).map_or(Ok(size), |errno| Err(Failure::fixed(errno, T::UNSET)))
}

/// Checks that the struct at `from` states a size that can be.
///
/// # Safety
/// `from` is null or points to a struct that begins with its size.
pub(crate) unsafe fn fits<T: Record>(from: *const T) -> Result<(), Failure> {
    // SAFETY: as the caller says.
    unsafe { size_of_theirs(from) }.map(drop)
}

/// Reads the caller's struct.
///
/// # Safety
/// `from` is null or points to as many bytes as its first field says.
pub(crate) unsafe fn take<T: Record>(from: *const T) -> Result<T, Failure> {
    // SAFETY: as the caller says.
    let size = unsafe { stated(from) }?;
    if let Some(errno) = size_errno::<T>(size) {
        let (text, least) = (T::UNSET.to_string_lossy(), T::LEAST);
        let text = format!("{text} (its size is {size}, and at least {least} when it is)");
        return Err(Failure::new(errno, text));
    }
    // SAFETY: as many bytes are there, says the caller, and any byte is a `u8`.
    let theirs = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), size) };
    let known = size.min(size_of::<T>());
    if theirs[known..].iter().any(|&byte| byte != 0) {
        let (name, ours) = (T::NAME, size_of::<T>());
        return Err(Failure::new(
            libc::E2BIG,
            format!(
                "a {name} of {size} bytes sets what this library does not know, whose own has \
                 {ours}: set nothing that is newer than {}, or use a newer library",
                env!("CARGO_PKG_VERSION")
            ),
        ));
    }
    let mut ours = T::blank();
    // SAFETY: `known` is within both, and every pattern of bits is a value.
    unsafe { (&raw mut ours).cast::<u8>().copy_from_nonoverlapping(theirs.as_ptr(), known) };
    Ok(ours)
}

/// Writes `value` into the caller's struct, all but the size that it says; allocates nothing.
///
/// # Safety
/// `to` is null or points to as many writable bytes as its first field says.
pub(crate) unsafe fn give<T: Record>(to: *mut T, value: &T) -> Result<(), Failure> {
    // SAFETY: as the caller says.
    let size = unsafe { size_of_theirs(to) }?;
    // SAFETY: the struct is at least as long as its first version, and begins with its size.
    unsafe { write(to, size, value) };
    Ok(())
}

/// Writes the defaults into memory that says nothing yet.
///
/// # Safety
/// `size` bytes from `to` on are writable, when it is not null.
pub(crate) unsafe fn init<T: Record>(to: *mut T, size: usize) -> Result<(), Failure> {
    if to.is_null() || !to.is_aligned() {
        return Err(Failure::fixed(libc::EINVAL, T::NULL));
    }
    if let Some(errno) = size_errno::<T>(size) {
        return Err(Failure::fixed(errno, T::UNSET));
    }
    // SAFETY: as many bytes are there, says the caller.
    unsafe { write(to, size, &T::blank()) };
    // SAFETY: it begins with its size.
    unsafe { to.cast::<usize>().write(size) };
    Ok(())
}

/// All of `value` but its size that fits into `size` bytes, and zeros after it.
///
/// # Safety
/// `size` bytes from `to` on are writable; `size` is at least that of a `usize`.
unsafe fn write<T: Record>(to: *mut T, size: usize, value: &T) {
    let (first, known) = (size_of::<usize>(), size.min(size_of::<T>()));
    let from = std::ptr::from_ref(value).cast::<u8>().wrapping_add(first);
    let to = to.cast::<u8>();
    // SAFETY: both begin with a size, which is left out, and have `known` bytes; `value` is ours.
    unsafe { to.wrapping_add(first).copy_from_nonoverlapping(from, known - first) };
    // SAFETY: what is left of the caller's bytes.
    unsafe { to.wrapping_add(known).write_bytes(0, size - known) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Words;

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Two {
        size: usize,
        first: u64,
        second: u64,
    }

    // SAFETY: `repr(C)` of three words, without padding, the size first.
    unsafe impl Record for Two {
        const LEAST: usize = 16;
        named!("two");

        fn blank() -> Self {
            Self { size: size_of::<Self>(), first: 11, second: 22 }
        }
    }

    fn taken(words: &[u64]) -> Result<Two, i32> {
        // SAFETY: tests say no more bytes than they have.
        unsafe { take(words.as_ptr().cast::<Two>()) }.map_err(|failure| failure.errno)
    }

    #[test]
    fn an_older_struct_has_defaults_and_a_newer_one_zeros() {
        assert_eq!(taken(&[16, 5]), Ok(Two { size: 16, first: 5, second: 22 }));
        assert_eq!(taken(&[24, 5, 6]), Ok(Two { size: 24, first: 5, second: 6 }));
        assert_eq!(taken(&[32, 5, 6, 0]), Ok(Two { size: 32, first: 5, second: 6 }));
        assert_eq!(taken(&[32, 5, 6, 7]), Err(libc::E2BIG));
    }

    #[test]
    fn a_size_that_cannot_be_is_refused() {
        assert_eq!(taken(&[0, 5, 6]), Err(libc::EINVAL));
        assert_eq!(taken(&[15, 5, 6]), Err(libc::EINVAL));
        assert_eq!(taken(&[u64::MAX, 5, 6]), Err(libc::E2BIG));
        // SAFETY: null is allowed.
        let null = unsafe { take(std::ptr::null::<Two>()) }.expect_err("null");
        assert_eq!(null.errno, libc::EINVAL);
        let Words::Fixed(text) = null.words else { panic!("{null:?} allocates") };
        assert!(text.to_string_lossy().starts_with("two is null"), "{text:?}");
    }

    #[test]
    fn what_says_no_size_that_can_be_is_said_how_to_fill_in() {
        let way_out = "call punctual_two_init(&two, sizeof two) before anything else";
        for words in [[0, 5, 6], [u64::MAX, 5, 6]] {
            // SAFETY: nothing is read behind the size that it says.
            let failure = unsafe { fits(words.as_ptr().cast::<Two>()) }.expect_err("no size");
            let Words::Fixed(text) = failure.words else { panic!("{failure:?} allocates") };
            assert!(text.to_string_lossy().ends_with(way_out), "{text:?}");
        }
        // SAFETY: as many bytes are there.
        let newer = unsafe { take([32_u64, 5, 6, 7].as_ptr().cast::<Two>()) };
        let Words::Made(text) = newer.expect_err("newer").words else { panic!("no words") };
        assert!(
            text.starts_with("a punctual_two of 32 bytes") && text.contains("has 24"),
            "{text}"
        );
    }

    #[test]
    fn results_are_cut_or_filled_up() {
        let given = |mut words: [u64; 4]| {
            let value = Two { size: 24, first: 1, second: 2 };
            // SAFETY: tests say no more bytes than they have.
            let written = unsafe { give((&raw mut words).cast::<Two>(), &value) };
            assert!(written.is_ok());
            words
        };
        assert_eq!(given([16, 9, 9, 9]), [16, 1, 9, 9]);
        assert_eq!(given([24, 9, 9, 9]), [24, 1, 2, 9]);
        assert_eq!(given([32, 9, 9, 9]), [32, 1, 2, 0]);
    }

    #[test]
    fn defaults_go_into_memory_that_says_nothing() {
        let mut words = [99u64; 4];
        // SAFETY: 32 bytes are there.
        assert!(unsafe { init((&raw mut words).cast::<Two>(), 32) }.is_ok());
        assert_eq!(words, [32, 11, 22, 0]);
        // SAFETY: nothing is written into too little room.
        assert!(unsafe { init((&raw mut words).cast::<Two>(), 8) }.is_err());
    }
}
