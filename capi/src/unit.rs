//! `punctual_unit`: one unit of an executive's calendar, and the body of its task.
//!
//! Turns the caller's numbers into `punctual`'s types; what units cannot be together, the builder
//! says.

use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

use punctual::Unit;

use crate::callback::{Body, Callback};
use crate::failure::Failure;
use crate::ffi;
use crate::record::{self, Record, named};
use crate::task::{OVERRUN_SKIP, named, on_overrun};

/// As in the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct UnitRecord {
    size: usize,
    name: *const c_char,
    of: *const c_char,
    run: Option<Body>,
    data: *mut c_void,
    after: *const c_char,
    at_ns: u64,
    gap_ns: u64,
    budget_ns: u64,
    deadline_ns: u64,
    start_ns: u64,
    on_overrun: i32,
    reserved: u32,
    every_ns: u64,
    excludes: *const c_char,
}

const _: () = assert!(size_of::<UnitRecord>() == 112);

// SAFETY: `repr(C)`; 13 words and two halves of one make 112 bytes, so that there is no padding;
// any pattern of bits is a pointer, and one that is not null a function's, says the header.
unsafe impl Record for UnitRecord {
    const LEAST: usize = 96;
    named!("unit");

    fn blank() -> Self {
        Self {
            size: size_of::<Self>(),
            name: std::ptr::null(),
            of: std::ptr::null(),
            run: None,
            data: std::ptr::null_mut(),
            after: std::ptr::null(),
            at_ns: 0,
            gap_ns: 0,
            budget_ns: 0,
            deadline_ns: 0,
            start_ns: 0,
            on_overrun: OVERRUN_SKIP,
            reserved: 0,
            every_ns: 0,
            excludes: std::ptr::null(),
        }
    }
}

/// A unit, the task that it belongs to, and that task's body, where this unit has it.
#[derive(Clone, Debug)]
pub(crate) struct UnitSpec {
    pub(crate) name: String,
    pub(crate) task: String,
    pub(crate) unit: Unit,
    pub(crate) body: Option<Callback<Body>>,
}

impl UnitRecord {
    /// The unit as the builder takes it.
    ///
    /// # Safety
    /// Its texts are null or end with a zero byte.
    pub(crate) unsafe fn read(&self) -> Result<UnitSpec, Failure> {
        // SAFETY: as the caller says.
        let name = unsafe { ffi::text(self.name, "a unit's name") }?;
        let name = name.ok_or_else(|| Failure::invalid("a unit without a name"))?;
        let of_unit = |failure| named("unit", &name, failure);
        if self.reserved != 0 {
            return Err(Failure::bare(libc::E2BIG));
        }
        // SAFETY: as the caller says.
        let task = unsafe { ffi::text(self.of, "the task's name") }.map_err(of_unit)?;
        // SAFETY: as the caller says.
        let after = unsafe { ffi::text(self.after, "the unit that it is after") };
        let ns = Duration::from_nanos;
        let mut unit = Unit::new(&name, ns(self.budget_ns));
        unit = match after.map_err(of_unit)? {
            Some(_) if self.at_ns != 0 => {
                let text = "it is after another unit, by gap_ns: at_ns must be 0";
                return Err(of_unit(Failure::invalid(text)));
            }
            Some(after) => unit.after(after, ns(self.gap_ns)),
            None => unit.at(ns(self.at_ns)),
        };
        if let Some(task) = &task {
            unit = unit.of(task);
        }
        if self.deadline_ns > 0 {
            unit = unit.deadline(ns(self.deadline_ns));
        }
        if self.every_ns > 0 {
            unit = unit.every(ns(self.every_ns));
        }
        // SAFETY: as the caller says.
        let excludes = unsafe { ffi::text(self.excludes, "the task that it excludes") };
        if let Some(other) = excludes.map_err(of_unit)? {
            unit = unit.excludes(other);
        }
        if self.start_ns > 0 {
            unit = unit.start_within(ns(self.start_ns));
        }
        // Nothing said is skip, whatever the task's other units say.
        let then = on_overrun(self.on_overrun, 1).map_err(of_unit)?;
        if self.on_overrun != OVERRUN_SKIP {
            unit = unit.on_overrun(then);
        }
        let body = self.run.map(|run| Callback::new(run, self.data));
        Ok(UnitSpec { task: task.unwrap_or_else(|| name.clone()), name, unit, body })
    }
}

/// Writes the defaults.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_unit_init(unit: *mut UnitRecord, size: usize) -> c_int {
    // SAFETY: null or `size` writable bytes, says the header.
    ffi::enter(|| unsafe { record::init(unit, size) })
}

#[cfg(test)]
impl UnitRecord {
    /// A unit of this body, place and budget, with the defaults of all else.
    pub(crate) fn new(
        name: &std::ffi::CStr,
        run: Option<Body>,
        data: *mut c_void,
        (at_ns, budget_ns): (u64, u64),
    ) -> Self {
        Self { name: name.as_ptr(), run, data, at_ns, budget_ns, ..Self::blank() }
    }

    pub(crate) fn of(self, task: &'static std::ffi::CStr) -> Self {
        Self { of: task.as_ptr(), ..self }
    }

    pub(crate) fn after(self, unit: &'static std::ffi::CStr) -> Self {
        Self { after: unit.as_ptr(), at_ns: 0, gap_ns: self.at_ns, ..self }
    }

    pub(crate) fn deadline(self, deadline_ns: u64) -> Self {
        Self { deadline_ns, ..self }
    }

    pub(crate) fn on_overrun(self, on_overrun: i32) -> Self {
        Self { on_overrun, ..self }
    }

    pub(crate) fn reserved(self, reserved: u32) -> Self {
        Self { reserved, ..self }
    }
}
