//! `punctual_unit`: one unit of a calendar, and the body of its task.
//!
//! Turns the caller's numbers into `punctual`'s types; what units cannot be together, the builder
//! says.

use std::ffi::{c_char, c_int, c_void};

use punctual::calendar::Unit;

use crate::border::{self, Failure};
use crate::record::{self, Record};
use crate::task::{Body, Callback, POLICY_SKIP, policy};

/// As in the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct UnitRecord {
    size: usize,
    name: *const c_char,
    task: *const c_char,
    run: Option<Body>,
    data: *mut c_void,
    after: *const c_char,
    ready_ns: u64,
    budget_ns: u64,
    deadline_ns: u64,
    start_ns: u64,
    policy: i32,
    reserved: u32,
}

const _: () = assert!(size_of::<UnitRecord>() == 88);

// SAFETY: `repr(C)`; 10 words and two halves of one make 88 bytes, so that there is no padding;
// any pattern of bits is a pointer, and one that is not null a function's, says the header.
unsafe impl Record for UnitRecord {
    const LEAST: usize = 88;

    fn blank() -> Self {
        Self {
            size: size_of::<Self>(),
            name: std::ptr::null(),
            task: std::ptr::null(),
            run: None,
            data: std::ptr::null_mut(),
            after: std::ptr::null(),
            ready_ns: 0,
            budget_ns: 0,
            deadline_ns: 0,
            start_ns: 0,
            policy: POLICY_SKIP,
            reserved: 0,
        }
    }
}

/// A unit, whose it is, and what that task does, where this unit says so.
pub(crate) struct Added {
    pub(super) name: String,
    pub(super) task: String,
    pub(super) unit: Unit,
    pub(super) callback: Option<Callback>,
    pub(super) terminates: bool,
}

impl UnitRecord {
    /// The unit as the builder takes it.
    ///
    /// # Safety
    /// Its texts are null or end with a zero byte.
    pub(crate) unsafe fn read(&self) -> Result<Added, Failure> {
        // SAFETY: as the caller says.
        let name = unsafe { border::text(self.name, "a unit's name") }?;
        let name = name.ok_or_else(|| Failure::invalid("a unit without a name"))?;
        let of_unit = |failure: Failure| {
            let text = failure.text.map(|text| format!("unit {name:?}: {text}"));
            Failure { text, ..failure }
        };
        if self.reserved != 0 {
            return Err(Failure::bare(libc::E2BIG));
        }
        // SAFETY: as the caller says.
        let task = unsafe { border::text(self.task, "the task's name") }.map_err(of_unit)?;
        // SAFETY: as the caller says.
        let after = unsafe { border::text(self.after, "the unit that it is after") };
        let mut unit = Unit::new(&name, self.budget_ns);
        unit = match after.map_err(of_unit)? {
            Some(after) => unit.after(after, self.ready_ns),
            None => unit.ready_ns(self.ready_ns),
        };
        if let Some(task) = &task {
            unit = unit.of(task);
        }
        if self.deadline_ns > 0 {
            unit = unit.deadline_ns(self.deadline_ns);
        }
        if self.start_ns > 0 {
            unit = unit.start_ns(self.start_ns);
        }
        // No policy said is skip, whatever the task's other units say.
        let said = policy(self.policy, 1).map_err(of_unit)?;
        if self.policy != POLICY_SKIP {
            unit = unit.policy(said);
        }
        let callback = self.run.map(|run| Callback::new(run, self.data));
        let terminates = said == punctual::periodic::OnOverrun::Terminate;
        Ok(Added { task: task.unwrap_or_else(|| name.clone()), name, unit, callback, terminates })
    }
}

/// Writes the defaults.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_unit_init(unit: *mut UnitRecord, size: usize) -> c_int {
    // SAFETY: null or `size` writable bytes, says the header.
    border::enter(|| unsafe { record::init(unit, size) })
}

#[cfg(test)]
impl UnitRecord {
    /// A unit of this body, place and budget, with the defaults of all else.
    pub(crate) fn of(
        name: &std::ffi::CStr,
        run: Option<Body>,
        data: *mut c_void,
        (ready_ns, budget_ns): (u64, u64),
    ) -> Self {
        Self { name: name.as_ptr(), run, data, ready_ns, budget_ns, ..Self::blank() }
    }

    pub(crate) fn of_task(self, task: &'static std::ffi::CStr) -> Self {
        Self { task: task.as_ptr(), ..self }
    }

    pub(crate) fn after(self, unit: &'static std::ffi::CStr) -> Self {
        Self { after: unit.as_ptr(), ..self }
    }

    pub(crate) fn deadline(self, deadline_ns: u64) -> Self {
        Self { deadline_ns, ..self }
    }

    pub(crate) fn policy(self, policy: i32) -> Self {
        Self { policy, ..self }
    }

    pub(crate) fn reserved(self, reserved: u32) -> Self {
        Self { reserved, ..self }
    }
}
