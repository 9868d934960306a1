//! `punctual_calendar`: the entries of units at fixed places of a frame.
//!
//! One call at a time adds, builds and runs; any thread stops it and reads its tasks' pages.

mod counts;
mod frame;
mod run;
mod unit;

use std::ffi::{c_char, c_int};

use crate::border::{self, Failure};
use crate::options::Options;
use crate::periodic::Executive;
use crate::record::{self, Record};
use crate::stats::{self, Stats};
use crate::wait_info::WaitInfo;
use counts::UnitCounts;
use frame::Calendar;
use unit::UnitRecord;

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_calendar_create(to: *mut *mut Calendar, frame_ns: u64) -> c_int {
    border::enter(|| {
        // SAFETY: null or writable, says the header.
        unsafe { border::put(to, std::ptr::null_mut()) }?;
        let made = Box::into_raw(Box::new(Calendar::new(frame_ns)?));
        // SAFETY: it was writable above.
        unsafe { border::put(to, made) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_calendar_add(
    calendar: *mut Calendar,
    unit: *const UnitRecord,
    to_index: *mut u32,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or a calendar, says the header.
        let calendar = unsafe { border::object(calendar) }?;
        // SAFETY: null or a struct that says its size, says the header.
        let unit = unsafe { record::take(unit) }?;
        // SAFETY: its texts are null or end, says the header.
        let index = calendar.add(unsafe { unit.read() }?)?;
        if to_index.is_null() {
            return Ok(());
        }
        // SAFETY: not null, and then writable, says the header.
        unsafe { border::put(to_index, index) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_calendar_build(calendar: *mut Calendar) -> c_int {
    border::enter(|| {
        // SAFETY: null or a calendar, says the header.
        unsafe { border::object(calendar) }?.build()
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_calendar_place(
    calendar: *const Calendar,
    unit: u32,
    to_from_ns: *mut u64,
    to_to_ns: *mut u64,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or a calendar, says the header.
        let (from_ns, to_ns) = unsafe { border::object(calendar) }?.built()?.place(unit)?;
        // SAFETY: null or writable, says the header.
        unsafe { border::put(to_from_ns, from_ns) }?;
        // SAFETY: as above.
        unsafe { border::put(to_to_ns, to_ns) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_calendar_longest_gap_ns(
    calendar: *const Calendar,
    to_ns: *mut u64,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or a calendar, says the header.
        let gap_ns = unsafe { border::object(calendar) }?.built()?.plan.longest_gap_ns();
        // SAFETY: null or writable, says the header.
        unsafe { border::put(to_ns, gap_ns) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_calendar_run(
    calendar: *mut Calendar,
    beside: *mut Executive,
    options: *const Options,
    duration_ns: u64,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or a calendar, says the header.
        let calendar = unsafe { border::object(calendar) }?;
        // SAFETY: null or an executive, says the header.
        let beside = unsafe { beside.as_ref() };
        let options = if options.is_null() {
            Record::blank()
        } else {
            // SAFETY: not null, and then a struct that says its size, says the header.
            unsafe { record::take(options) }?
        };
        calendar.run(beside, &options, duration_ns)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_calendar_stop(calendar: *mut Calendar) -> c_int {
    border::enter(|| {
        // SAFETY: null or a calendar, says the header.
        unsafe { border::object(calendar) }?.remote.stop();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_calendar_task_stats(
    calendar: *const Calendar,
    unit: u32,
    to: *mut Stats,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or a calendar, says the header.
        let calendar = unsafe { border::object(calendar) }?;
        let view = calendar.built()?.view(unit)?;
        let stats = view.map_or_else(Stats::blank, |view| Stats::of(&view.counts()));
        let stats = stats.with_forced(calendar.remote.forced());
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &stats) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_calendar_task_quantile_ns(
    calendar: *const Calendar,
    unit: u32,
    share: f64,
    to_ns: *mut i64,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or a calendar, says the header.
        let view = unsafe { border::object(calendar) }?.built()?.view(unit)?;
        let view = view.ok_or(Failure::bare(libc::ENODATA))?;
        let quantile_ns = stats::quantile_ns(|share| punctual::quantile::of(&view, share), share)?;
        // SAFETY: null or writable, says the header.
        unsafe { border::put(to_ns, quantile_ns) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_calendar_task_counts(
    calendar: *const Calendar,
    unit: u32,
    to: *mut UnitCounts,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or a calendar, says the header.
        let calendar = unsafe { border::object(calendar) }?;
        let task = calendar.built()?.task(unit)?;
        let counts = calendar.setup.with(|setup| Ok(setup.counts.get(task).copied()))?;
        let counts = counts.ok_or(Failure::bare(libc::ENODATA))?;
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &counts) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_calendar_wait_info(
    calendar: *const Calendar,
    to: *mut WaitInfo,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or a calendar, says the header.
        let info = unsafe { border::object(calendar) }?.setup.with(|setup| Ok(setup.told.info))?;
        let info = info.ok_or(Failure::bare(libc::ENODATA))?;
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &info) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_calendar_refused(
    calendar: *const Calendar,
    to: *mut c_char,
    size: usize,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or a calendar, says the header.
        let setup = &unsafe { border::object(calendar) }?.setup;
        let refused = setup.with(|setup| Ok(setup.told.refused.clone()))?;
        // SAFETY: null or `size` writable bytes, says the header.
        unsafe { border::put_text(to, size, &refused) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_calendar_destroy(calendar: *mut Calendar) -> c_int {
    border::enter(|| {
        if calendar.is_null() {
            return Ok(());
        }
        // SAFETY: not null, and then a calendar, says the header.
        unsafe { border::object(calendar) }?.setup.with(|_| Ok(()))?;
        // SAFETY: from a box, by `punctual_calendar_create`; the caller uses it no more.
        drop(unsafe { Box::from_raw(calendar) });
        Ok(())
    })
}

#[cfg(test)]
mod tests;
