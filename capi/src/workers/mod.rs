//! `punctual_workers`: the entries of tasks that have a thread each.
//!
//! One call at a time adds, builds and runs; any thread stops it and reads its tasks' pages.

mod crew;
mod outcome;
mod run;
mod source;
mod stop;

use std::ffi::{c_char, c_int};

use crate::border::{self, Failure};
use crate::options::Options;
use crate::record::{self, Record};
use crate::stats::{self, Stats};
use crate::task::TaskRecord;
use crate::wait_info::WaitInfo;
use crew::{Added, Crew};
use outcome::Outcome;
use source::{Blocks, Source};

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_create(to: *mut *mut Crew) -> c_int {
    border::enter(|| {
        // SAFETY: null or writable, says the header.
        unsafe { border::put(to, std::ptr::null_mut()) }?;
        let made = Box::into_raw(Box::default());
        // SAFETY: it was writable above.
        unsafe { border::put(to, made) }
    })
}

/// Adds a task, which `source` paces where it has one.
///
/// # Safety
/// As the header says of both entries.
unsafe fn add(
    crew: *mut Crew,
    task: *const TaskRecord,
    source: Option<Blocks>,
    to_index: *mut u32,
) -> Result<(), Failure> {
    // SAFETY: null or workers, says the header.
    let crew = unsafe { border::object(crew) }?;
    // SAFETY: null or a struct that says its size, says the header.
    let record = unsafe { record::take(task) }?;
    // SAFETY: its texts are null or end, says the header.
    let (_, task, callback) = unsafe { record.read() }?;
    let source = source.map(|blocks| Source::new(blocks, record.data()));
    let index = crew.add(Added { task, callback, source })?;
    if to_index.is_null() {
        return Ok(());
    }
    // SAFETY: not null, and then writable, says the header.
    unsafe { border::put(to_index, index) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_add(
    crew: *mut Crew,
    task: *const TaskRecord,
    to_index: *mut u32,
) -> c_int {
    // SAFETY: as the header says.
    border::enter(|| unsafe { add(crew, task, None, to_index) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_add_external(
    crew: *mut Crew,
    task: *const TaskRecord,
    source: Option<Blocks>,
    to_index: *mut u32,
) -> c_int {
    border::enter(|| {
        let source = source.ok_or_else(|| Failure::invalid("no function that paces the task"))?;
        // SAFETY: as the header says.
        unsafe { add(crew, task, Some(source), to_index) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_allow_overload(crew: *mut Crew) -> c_int {
    border::enter(|| {
        // SAFETY: null or workers, says the header.
        unsafe { border::object(crew) }?.allow_overload()
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_pin(crew: *mut Crew, cpu: i32) -> c_int {
    border::enter(|| {
        // SAFETY: null or workers, says the header.
        unsafe { border::object(crew) }?.pin(cpu)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_grace_ns(crew: *mut Crew, ns: u64) -> c_int {
    border::enter(|| {
        // SAFETY: null or workers, says the header.
        unsafe { border::object(crew) }?.grace_ns(ns)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_build(crew: *mut Crew) -> c_int {
    border::enter(|| {
        // SAFETY: null or workers, says the header.
        unsafe { border::object(crew) }?.build()
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_task_phase_ns(
    crew: *const Crew,
    task: u32,
    to_ns: *mut u64,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or workers, says the header.
        let phase_ns = unsafe { border::object(crew) }?.built()?.phase_ns(task)?;
        // SAFETY: null or writable, says the header.
        unsafe { border::put(to_ns, phase_ns) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_run(
    crew: *mut Crew,
    options: *const Options,
    duration_ns: u64,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or workers, says the header.
        let crew = unsafe { border::object(crew) }?;
        let options = if options.is_null() {
            Record::blank()
        } else {
            // SAFETY: not null, and then a struct that says its size, says the header.
            unsafe { record::take(options) }?
        };
        crew.run(&options, duration_ns)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_stop(crew: *mut Crew) -> c_int {
    border::enter(|| {
        // SAFETY: null or workers, says the header.
        unsafe { border::object(crew) }?.stop.ask();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_ending(crew: *const Crew, to: *mut c_int) -> c_int {
    border::enter(|| {
        // SAFETY: null or workers, says the header.
        let ending = unsafe { border::object(crew) }?.stop.is_ending();
        // SAFETY: null or writable, says the header.
        unsafe { border::put(to, c_int::from(ending)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_task_stats(
    crew: *const Crew,
    task: u32,
    to: *mut Stats,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or workers, says the header.
        let view = unsafe { border::object(crew) }?.built()?.view(task)?;
        let stats = view.map_or_else(Stats::blank, |view| Stats::of(&view.counts()));
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &stats) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_task_quantile_ns(
    crew: *const Crew,
    task: u32,
    share: f64,
    to_ns: *mut i64,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or workers, says the header.
        let view = unsafe { border::object(crew) }?.built()?.view(task)?;
        let view = view.ok_or(Failure::bare(libc::ENODATA))?;
        let quantile_ns = stats::quantile_ns(|share| punctual::quantile::of(&view, share), share)?;
        // SAFETY: null or writable, says the header.
        unsafe { border::put(to_ns, quantile_ns) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_task_outcome(
    crew: *const Crew,
    task: u32,
    to: *mut Outcome,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or workers, says the header.
        let outcome = unsafe { border::object(crew) }?.outcome(task)?;
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &outcome) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_wait_info(crew: *const Crew, to: *mut WaitInfo) -> c_int {
    border::enter(|| {
        // SAFETY: null or workers, says the header.
        let info = unsafe { border::object(crew) }?.setup.with(|setup| Ok(setup.told.info))?;
        let info = info.ok_or(Failure::bare(libc::ENODATA))?;
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &info) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_refused(
    crew: *const Crew,
    to: *mut c_char,
    size: usize,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or workers, says the header.
        let setup = &unsafe { border::object(crew) }?.setup;
        let refused = setup.with(|setup| Ok(setup.told.refused.clone()))?;
        // SAFETY: null or `size` writable bytes, says the header.
        unsafe { border::put_text(to, size, &refused) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_workers_destroy(crew: *mut Crew) -> c_int {
    border::enter(|| {
        if crew.is_null() {
            return Ok(());
        }
        // SAFETY: not null, and then workers, says the header.
        unsafe { border::object(crew) }?.setup.with(|_| Ok(()))?;
        // SAFETY: from a box, by `punctual_workers_create`; the caller uses it no more.
        drop(unsafe { Box::from_raw(crew) });
        Ok(())
    })
}

#[cfg(test)]
mod tests;
