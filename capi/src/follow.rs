//! `punctual_follow`: a clock whose time loops and executives keep to.
//!
//! The entries over `punctual::follow`. Whoever runs on it holds a share, so that it may be
//! destroyed first.

use std::ffi::{CStr, c_char, c_int};

use punctual::Span;
use punctual::follow::{self, Follower, Reference, Settings};
use punctual_os::fork::Origin;

use crate::failure::{Failure, null};
use crate::ffi::{self, Object};
use crate::record::{self, Record, named};

/// The lead of a clock that is followed, unless its loops need more: the library's own default.
const LEAD: Span = Span::from_ms(100);
/// For longer periods a reading comes once in so many, as by default once in so many leads.
const READING_PERIODS: i64 = 5;

const REFERENCE_TAI: c_int = 0;
const REFERENCE_PTP: c_int = 1;

/// The object behind a `punctual_follow`.
pub(crate) struct Follow(Follower, Origin);

impl Object for Follow {
    const NULL: &'static CStr = null!("follow", "what punctual_follow_create() gave");

    fn origin(&self) -> Origin {
        self.1
    }
}

impl Follow {
    /// A share in the follower.
    pub(crate) fn share(&self) -> Follower {
        self.0.clone()
    }

    /// Follows a clock.
    ///
    /// # Safety
    /// `device` is null or a text that ends.
    unsafe fn start(
        reference: c_int,
        device: *const c_char,
        period_ns: u64,
    ) -> Result<Self, Failure> {
        let reference = match reference {
            REFERENCE_TAI => Reference::Tai,
            REFERENCE_PTP => {
                // SAFETY: as the caller says.
                let device = unsafe { ffi::path(device) };
                let device = device
                    .ok_or_else(|| Failure::invalid("device must be a path as /dev/ptp0 (null)"))?;
                Reference::ptp(device).map_err(|why| Failure::of(&why))?
            }
            other => return Err(Failure::invalid(format!("no reference is numbered {other}"))),
        };
        let period_ns = (period_ns > 0).then_some(period_ns);
        let settings = Settings::default().with_period_ns(period_ns);
        let mut follow = follow::Follow::new(reference).settings(settings);
        let period =
            period_ns.map_or(Span::ZERO, |ns| Span::from_ns(ns.try_into().unwrap_or(i64::MAX)));
        if period > LEAD {
            let every = Span::from_ns(period.as_ns().saturating_mul(READING_PERIODS));
            follow = follow.every(every, period);
        }
        let follower = follow.start();
        Ok(Self(follower.map_err(|why| Failure::of(&why))?, Origin::here()))
    }
}

/// As in the header.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct FollowInfo {
    size: usize,
    drift_ppb: f64,
    phase_ns: i64,
    phase_rms_ns: f64,
    phase_max_ns: u64,
    readings: u64,
    steps: u64,
    stepped_ns: i64,
    stops: u64,
    limited: u64,
    unread: u64,
    late: u64,
}

const _: () = assert!(size_of::<FollowInfo>() == 96);

// SAFETY: `repr(C)` of twelve words, without padding, the size first.
unsafe impl Record for FollowInfo {
    const LEAST: usize = 96;
    named!("follow_info", "info");

    fn blank() -> Self {
        Self { size: size_of::<Self>(), ..Self::default() }
    }
}

impl FollowInfo {
    fn of(follower: &Follower) -> Self {
        let status = follower.status();
        Self {
            drift_ppb: status.drift_ppb,
            phase_ns: status.phase_ns,
            phase_rms_ns: status.phase_rms_ns,
            phase_max_ns: status.phase_max_ns,
            readings: status.readings,
            steps: status.steps,
            stepped_ns: status.stepped_ns,
            stops: status.stops,
            limited: status.limited,
            unread: follower.unread(),
            late: follower.late(),
            ..Self::blank()
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_follow_create(
    to: *mut *mut Follow,
    reference: c_int,
    device: *const c_char,
    period_ns: u64,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, null!("follow", "where the handle goes"), std::ptr::null_mut()) }?;
        // SAFETY: null or a text that ends, says the header.
        let follow = unsafe { Follow::start(reference, device, period_ns) }?;
        // SAFETY: it was writable above.
        unsafe {
            ffi::put(to, null!("follow", "where the handle goes"), Box::into_raw(Box::new(follow)))
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_follow_status(follow: *const Follow, to: *mut FollowInfo) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or one that was created, says the header.
        let status = FollowInfo::of(&unsafe { ffi::object(follow) }?.0);
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &status) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_follow_destroy(follow: *mut Follow) -> c_int {
    // SAFETY: null or one from the box of `punctual_follow_create`, says the header.
    ffi::enter(|| unsafe { ffi::destroy(follow, |_| Ok(()), ffi::dropped) })
}

/// Writes an empty one.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_follow_info_init(to: *mut FollowInfo, size: usize) -> c_int {
    // SAFETY: null or `size` writable bytes, says the header.
    ffi::enter(|| unsafe { record::init(to, size) })
}

#[cfg(test)]
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "each is a call of one entry")]
pub(crate) mod tests {
    use std::ptr::{null, null_mut};

    use super::*;
    use crate::errors;

    /// TAI, followed.
    pub(crate) fn tai() -> *mut Follow {
        let mut follow = null_mut();
        // SAFETY: it is local, and TAI has no device.
        assert_eq!(unsafe { punctual_follow_create(&raw mut follow, 0, null(), 0) }, 0);
        follow
    }

    pub(crate) fn destroy(follow: *mut Follow) {
        // SAFETY: one that was created, used no more.
        assert_eq!(unsafe { punctual_follow_destroy(follow) }, 0);
    }

    #[test]
    fn tai_is_followed_and_says_how_well() {
        let follow = tai();
        let mut status = FollowInfo::blank();
        while status.readings == 0 {
            // SAFETY: one that was created, and a local result.
            assert_eq!(unsafe { punctual_follow_status(follow, &raw mut status) }, 0);
        }
        assert_eq!(status.unread, 0, "{status:?}");
        destroy(follow);
    }

    #[test]
    fn what_cannot_be_followed_is_named() {
        let create = |reference, device: Option<&CStr>| {
            let mut follow = std::ptr::dangling_mut();
            let device = device.map_or(null(), CStr::as_ptr);
            // SAFETY: all is local or null.
            let answer = unsafe { punctual_follow_create(&raw mut follow, reference, device, 0) };
            assert!(follow.is_null());
            (answer, errors::tests::last())
        };
        let (answer, words) = create(2, None);
        assert!(answer == -libc::EINVAL && words.contains("no reference is numbered 2"), "{words}");
        let (answer, words) = create(REFERENCE_PTP, None);
        assert!(answer == -libc::EINVAL && words.contains("/dev/ptp0"), "{words}");
        assert_eq!(create(REFERENCE_PTP, Some(c"/nowhere/ptp0")).0, -libc::ENOENT);
        let (answer, words) = create(REFERENCE_PTP, Some(c"/dev/null"));
        assert!(answer == -libc::EINVAL && words.contains("/dev/null"), "{words}");
        // SAFETY: null is allowed, and answered.
        unsafe {
            assert_eq!(punctual_follow_create(null_mut(), 0, null(), 0), -libc::EINVAL);
            assert_eq!(punctual_follow_status(null(), null_mut()), -libc::EINVAL);
            assert_eq!(punctual_follow_destroy(null_mut()), 0);
        }
    }

    #[test]
    fn a_panic_inside_any_entry_is_an_error_outside() {
        let fault = -libc::ENOTRECOVERABLE;
        let panics = ffi::tests::panic_next;
        // SAFETY: null where nothing is reached.
        unsafe {
            panics();
            assert_eq!(punctual_follow_create(null_mut(), 0, null(), 0), fault);
            panics();
            assert_eq!(punctual_follow_status(null(), null_mut()), fault);
            panics();
            assert_eq!(punctual_follow_destroy(null_mut()), fault);
            panics();
            assert_eq!(punctual_follow_info_init(null_mut(), 0), fault);
        }
    }
}
