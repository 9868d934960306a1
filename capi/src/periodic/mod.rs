//! `punctual_periodic`: the entries of an executive of many tasks.
//!
//! One call at a time builds, adds and removes, and one runs; any thread stops it and reads its
//! tasks' pages.

mod book;
mod executive;
mod live;
mod run;

use std::ffi::{c_char, c_int};

use crate::border::{self, Failure};
use crate::options::Options;
use crate::record::{self, Record};
use crate::stats::{self, Stats};
use crate::task::TaskRecord;
use crate::wait_info::WaitInfo;
pub(crate) use book::{Built, failure};
pub(crate) use executive::Executive;

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_periodic_create(to: *mut *mut Executive) -> c_int {
    border::enter(|| {
        // SAFETY: null or writable, says the header.
        unsafe { border::put(to, std::ptr::null_mut()) }?;
        let made = Box::into_raw(Box::default());
        // SAFETY: it was writable above.
        unsafe { border::put(to, made) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_periodic_add(
    executive: *mut Executive,
    task: *const TaskRecord,
    to_index: *mut u32,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { border::object(executive) }?;
        // SAFETY: null or a struct that says its size, says the header.
        let task = unsafe { record::take(task) }?;
        // SAFETY: its texts are null or end, says the header.
        let (name, task, callback) = unsafe { task.read() }?;
        let index = executive.add(name, task, callback)?;
        if to_index.is_null() {
            return Ok(());
        }
        // SAFETY: not null, and then writable, says the header.
        unsafe { border::put(to_index, index) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_periodic_remove(executive: *mut Executive, task: u32) -> c_int {
    border::enter(|| {
        // SAFETY: null or an executive, says the header.
        unsafe { border::object(executive) }?.remove(task)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_periodic_allow_overload(executive: *mut Executive) -> c_int {
    border::enter(|| {
        // SAFETY: null or an executive, says the header.
        unsafe { border::object(executive) }?.allow_overload()
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_periodic_build(executive: *mut Executive) -> c_int {
    border::enter(|| {
        // SAFETY: null or an executive, says the header.
        unsafe { border::object(executive) }?.build()
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_periodic_peak(executive: *const Executive, to: *mut u64) -> c_int {
    border::enter(|| {
        // SAFETY: null or an executive, says the header.
        let peak = unsafe { border::object(executive) }?.book().built()?.plan.peak();
        // SAFETY: null or writable, says the header.
        unsafe { border::put(to, peak) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_periodic_task_rank(
    executive: *const Executive,
    task: u32,
    to: *mut u32,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or an executive, says the header.
        let rank = unsafe { border::object(executive) }?.book().rank(task)?;
        // SAFETY: null or writable, says the header. A rank is below 2³².
        unsafe { border::put(to, rank as u32) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_periodic_task_phase_ns(
    executive: *const Executive,
    task: u32,
    to_ns: *mut u64,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or an executive, says the header.
        let book = unsafe { border::object(executive) }?.book();
        let phase_ns = book.built()?.plan.phase_ns(book.rank(task)?);
        // SAFETY: null or writable, says the header.
        unsafe { border::put(to_ns, phase_ns) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_periodic_run(
    executive: *mut Executive,
    options: *const Options,
    duration_ns: u64,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { border::object(executive) }?;
        let options = if options.is_null() {
            Record::blank()
        } else {
            // SAFETY: not null, and then a struct that says its size, says the header.
            unsafe { record::take(options) }?
        };
        executive.run(&options, duration_ns)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn punctual_periodic_stop(executive: *mut Executive) -> c_int {
    border::enter(|| {
        // SAFETY: null or an executive, says the header.
        unsafe { border::object(executive) }?.remote.stop();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_periodic_task_stats(
    executive: *const Executive,
    task: u32,
    to: *mut Stats,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { border::object(executive) }?;
        let room = executive.room(task)?;
        let stats = room.view().map_or_else(Stats::blank, |view| Stats::of(&view.counts()));
        let stats = stats.with_forced(executive.remote.forced());
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &stats) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_periodic_task_quantile_ns(
    executive: *const Executive,
    task: u32,
    share: f64,
    to_ns: *mut i64,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or an executive, says the header.
        let room = unsafe { border::object(executive) }?.room(task)?;
        let view = room.view().ok_or(Failure::bare(libc::ENODATA))?;
        let quantile_ns = stats::quantile_ns(|share| punctual::quantile::of(&view, share), share)?;
        // SAFETY: null or writable, says the header.
        unsafe { border::put(to_ns, quantile_ns) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_periodic_wait_info(
    executive: *const Executive,
    to: *mut WaitInfo,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or an executive, says the header.
        let info = unsafe { border::object(executive) }?.runs.with(|told| Ok(told.info))?;
        let info = info.ok_or(Failure::bare(libc::ENODATA))?;
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &info) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_periodic_refused(
    executive: *const Executive,
    to: *mut c_char,
    size: usize,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or an executive, says the header.
        let refused =
            unsafe { border::object(executive) }?.runs.with(|told| Ok(told.refused.clone()))?;
        // SAFETY: null or `size` writable bytes, says the header.
        unsafe { border::put_text(to, size, &refused) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_periodic_destroy(executive: *mut Executive) -> c_int {
    border::enter(|| {
        if executive.is_null() {
            return Ok(());
        }
        // SAFETY: not null, and then an executive, says the header.
        unsafe { border::object(executive) }?.idle()?;
        // SAFETY: from a box, by `punctual_periodic_create`; the caller uses it no more.
        drop(unsafe { Box::from_raw(executive) });
        Ok(())
    })
}

#[cfg(test)]
pub(crate) mod tests;
