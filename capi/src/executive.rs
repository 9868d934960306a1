//! `punctual_executive`: the entries of many tasks, whatever runs them and wherever they run.
//!
//! One call at a time changes it, and one runs it; any thread stops it and reads what its tasks do
//! (`readers.rs`).

mod changes;
mod object;
mod outcome;
mod readers;
mod specs;
mod stop;

use std::ffi::{c_int, c_void};
use std::time::Duration;

use crate::callback::{Callback, Plain};
use crate::ffi::{self, Failure};
use crate::options::{Config, Options, period};
use crate::record::{self, Record};
use crate::task::TaskRecord;
use crate::unit::UnitRecord;
pub(crate) use object::Executive;
use specs::Spec;

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_create(to: *mut *mut Executive) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, std::ptr::null_mut()) }?;
        let made = Box::into_raw(Box::default());
        // SAFETY: it was writable above.
        unsafe { ffi::put(to, made) }
    })
}

/// Adds a task or a unit, and gives its index.
///
/// # Safety
/// `to_index` is null or writable.
unsafe fn add(executive: &Executive, spec: &Spec, to_index: *mut u32) -> Result<(), Failure> {
    let index = executive.add(spec)?;
    if to_index.is_null() {
        return Ok(());
    }
    // SAFETY: not null, and then writable, says the caller.
    unsafe { ffi::put(to_index, index) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_add(
    executive: *mut Executive,
    task: *const TaskRecord,
    to_index: *mut u32,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        // SAFETY: null or a struct that says its size, says the header.
        let task = unsafe { record::take(task) }?;
        // SAFETY: its texts are null or end, says the header.
        let spec = Spec::Task(unsafe { task.read() }?);
        // SAFETY: as the header says.
        unsafe { add(executive, &spec, to_index) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_add_unit(
    executive: *mut Executive,
    unit: *const UnitRecord,
    to_index: *mut u32,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        // SAFETY: null or a struct that says its size, says the header.
        let unit = unsafe { record::take(unit) }?;
        // SAFETY: its texts are null or end, says the header.
        let spec = Spec::Unit(unsafe { unit.read() }?);
        // SAFETY: as the header says.
        unsafe { add(executive, &spec, to_index) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_remove(executive: *mut Executive, task: u32) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        unsafe { ffi::object(executive) }?.remove(task)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_frame(
    executive: *mut Executive,
    num_ns: u64,
    den: u64,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        let frame = period(num_ns, den).map_err(|failure| {
            let text = failure.text.map(|text| format!("frame: {text}"));
            Failure { text, ..failure }
        })?;
        executive.change(|specs| {
            specs.frame = Some(frame);
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_idle(
    executive: *mut Executive,
    slice_ns: u64,
    run: Option<Plain>,
    data: *mut c_void,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        let run = run.ok_or_else(|| Failure::invalid("no function to run"))?;
        if slice_ns == 0 {
            return Err(Failure::invalid("slice_ns must be above 0 (got 0)"));
        }
        executive.change(|specs| {
            specs.idle = Some((Duration::from_nanos(slice_ns), Callback::new(run, data)));
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_allow_overload(executive: *mut Executive) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        unsafe { ffi::object(executive) }?.change(|specs| {
            specs.overload = true;
            Ok(())
        })
    })
}

/// The options of the caller's, or the defaults for null.
///
/// # Safety
/// As the header says of `punctual_options`.
unsafe fn config(options: *const Options) -> Result<Config, Failure> {
    let options = if options.is_null() {
        Record::blank()
    } else {
        // SAFETY: not null, and then a struct that says its size, says the caller.
        unsafe { record::take(options) }?
    };
    // SAFETY: its pointers are what the header says, says the caller.
    unsafe { options.of_executive() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_build(
    executive: *mut Executive,
    options: *const Options,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        // SAFETY: as the header says.
        executive.build(unsafe { config(options) }?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_run(
    executive: *mut Executive,
    options: *const Options,
    duration_ns: u64,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        // SAFETY: as the header says.
        executive.run(unsafe { config(options) }?, duration_ns)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_stop(executive: *mut Executive) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        unsafe { ffi::object(executive) }?.stop.request();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_stopped(
    executive: *const Executive,
    to: *mut c_int,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let stopped = unsafe { ffi::object(executive) }?.stop.is_stopped();
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, c_int::from(stopped)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_destroy(executive: *mut Executive) -> c_int {
    ffi::enter(|| {
        if executive.is_null() {
            return Ok(());
        }
        // SAFETY: not null, and then an executive, says the header.
        unsafe { ffi::object(executive) }?.unused()?;
        // SAFETY: from a box, by `punctual_executive_create`; the caller uses it no more.
        drop(unsafe { Box::from_raw(executive) });
        Ok(())
    })
}

#[cfg(test)]
mod tests;
