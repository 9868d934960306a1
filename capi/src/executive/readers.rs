//! The entries that read an executive: where its tasks are, what they did, how the last run went.
//!
//! For any thread; no loop is disturbed.

use std::ffi::{c_char, c_int};

use super::object::Executive;
use super::outcome::Last;
use crate::errors;
use crate::ffi::{self, Failure};
use crate::layout::Layout;
use crate::record::{self, Record};
use crate::stats::{self, Stats};
use crate::wait_info::WaitInfo;

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn punctual_executive_peak(
    executive: *const Executive,
    to: *mut u64,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        let peak = executive.with_built(|_, built| Ok(built.peak))?;
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, peak) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn punctual_executive_task_layout(
    executive: *const Executive,
    task: u32,
    to: *mut Layout,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        let layout = executive.with_built(|specs, built| {
            let layout = built.layouts.get(specs.get(task)?.task_name()).copied();
            layout.ok_or(Failure::bare(libc::ENODATA))
        })?;
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &layout) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn punctual_executive_task_stats(
    executive: *const Executive,
    task: u32,
    to: *mut Stats,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let ran = unsafe { ffi::object(executive) }?.ran(task)?;
        let stats = match ran {
            None => Stats::blank(),
            Some((handle, id, demoted)) => {
                let counts = handle.counts(id).map_err(|why| errors::failure(&why))?;
                Stats::of(&counts).with_forced(handle.forced()).with_demotions(demoted)
            }
        };
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &stats) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn punctual_executive_task_quantile_ns(
    executive: *const Executive,
    task: u32,
    share: f64,
    to_ns: *mut i64,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let ran = unsafe { ffi::object(executive) }?.ran(task)?;
        let of = |share| ran.and_then(|(handle, id, _)| handle.quantile(id, share).ok().flatten());
        let quantile_ns = stats::quantile_ns(of, share)?;
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to_ns, quantile_ns) }
    })
}

/// Of the last run: EBUSY while there is one, ENODATA where none has ended yet.
fn last<R>(executive: &Executive, read: impl FnOnce(&Last) -> R) -> Result<R, Failure> {
    executive.runs.with(|last| last.as_ref().map(read).ok_or(Failure::bare(libc::ENODATA)))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn punctual_executive_wait_info(
    executive: *const Executive,
    to: *mut WaitInfo,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let info = last(unsafe { ffi::object(executive) }?, |last| last.info)?;
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &info) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn punctual_executive_refused(
    executive: *const Executive,
    to: *mut c_char,
    size: usize,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let refused = last(unsafe { ffi::object(executive) }?, |last| last.refused.clone())?;
        // SAFETY: null or `size` writable bytes, says the header.
        unsafe { ffi::put_text(to, size, &refused) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn punctual_executive_summary(
    executive: *const Executive,
    to: *mut c_char,
    size: usize,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let summary = last(unsafe { ffi::object(executive) }?, |last| last.summary.clone())?;
        // SAFETY: null or `size` writable bytes, says the header.
        unsafe { ffi::put_text(to, size, &summary) }
    })
}
