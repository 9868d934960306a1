//! `punctual_task`: one task of an executive, and the function of the caller's that is its body.
//!
//! Turns the caller's numbers into `punctual`'s types, and calls the body.

use std::ffi::{c_char, c_int, c_void};

use punctual::core::executive::many::{self, Flow};
use punctual::periodic::{OnOverrun, Phase, Task};

use crate::border::{self, Failure};
use crate::options::period;
use crate::record::{self, Record};
use crate::stats::Cycle;
use crate::turn;

/// The body of a task.
pub(crate) type Body = unsafe extern "C" fn(*mut c_void, *const Cycle) -> c_int;

/// As in the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TaskRecord {
    size: usize,
    name: *const c_char,
    run: Option<Body>,
    data: *mut c_void,
    after: *const c_char,
    period_num_ns: u64,
    period_den: u64,
    phase_ns: u64,
    budget_ns: u64,
    deadline_ns: u64,
    start_ns: u64,
    phase: i32,
    priority: i32,
    policy: i32,
    burst: u32,
}

const _: () = assert!(size_of::<TaskRecord>() == 104);

// SAFETY: `repr(C)`; 11 words and four halves of one make 104 bytes, so that there is no padding;
// any pattern of bits is a pointer, and one that is not null a function's, says the header.
unsafe impl Record for TaskRecord {
    const LEAST: usize = 104;

    fn blank() -> Self {
        Self {
            size: size_of::<Self>(),
            name: std::ptr::null(),
            run: None,
            data: std::ptr::null_mut(),
            after: std::ptr::null(),
            period_num_ns: 0,
            period_den: 1,
            phase_ns: 0,
            budget_ns: 0,
            deadline_ns: 0,
            start_ns: 0,
            phase: PHASE_BALANCED,
            priority: 0,
            policy: POLICY_SKIP,
            burst: 0,
        }
    }
}

const PHASE_BALANCED: i32 = 0;
const PHASE_AT: i32 = 3;
const PHASE_AFTER: i32 = 4;

pub(crate) const POLICY_SKIP: i32 = 0;
const POLICY_BURST: i32 = 1;
const POLICY_DELAY: i32 = 2;
const POLICY_TERMINATE: i32 = 3;
const POLICY_STOP: i32 = 4;

const CONTINUE: c_int = 0;
const BREAK: c_int = 2;

/// The policy of this number.
pub(crate) fn policy(number: i32, burst: u32) -> Result<OnOverrun, Failure> {
    Ok(match number {
        POLICY_SKIP => OnOverrun::Skip,
        POLICY_BURST => OnOverrun::Burst(burst),
        POLICY_DELAY => OnOverrun::Delay,
        POLICY_TERMINATE => OnOverrun::Terminate,
        POLICY_STOP => OnOverrun::Stop,
        other => return Err(Failure::invalid(format!("no policy is numbered {other}"))),
    })
}

/// The caller's function and its argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callback {
    run: Body,
    data: *mut c_void,
}

// SAFETY: the header says that the thread which runs the executive calls the function with that
// pointer, so that the caller knows which thread that is. Nothing here follows the pointer.
unsafe impl Send for Callback {}
// SAFETY: as above; a shared one is read only.
unsafe impl Sync for Callback {}

impl Callback {
    /// A function of the caller's, and what it is called with.
    pub(crate) fn new(run: Body, data: *mut c_void) -> Self {
        Self { run, data }
    }

    /// Whether it is the same one, with the same argument.
    pub(crate) fn is(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.run, other.run) && std::ptr::eq(self.data, other.data)
    }

    /// Calls the body: what follows of what it says.
    pub(crate) fn flow(&self, cycle: &many::Cycle<'_>) -> (Flow, c_int) {
        let ours = Cycle::of(cycle);
        // SAFETY: the header says what the function must take, and that it neither throws nor
        // jumps out.
        let said = turn::during(cycle, || unsafe { (self.run)(self.data, &raw const ours) });
        let flow = match said {
            CONTINUE => Flow::Continue,
            BREAK => Flow::Break,
            _ => Flow::Stop,
        };
        (flow, said)
    }
}

impl TaskRecord {
    /// What its functions are called with.
    pub(crate) fn data(&self) -> *mut c_void {
        self.data
    }

    /// The task and its body.
    ///
    /// # Safety
    /// Its texts are null or end with a zero byte.
    pub(crate) unsafe fn read(&self) -> Result<(String, Task, Callback), Failure> {
        // SAFETY: as the caller says.
        let name = unsafe { border::text(self.name, "a task's name") }?;
        let name = name.ok_or_else(|| Failure::invalid("a task without a name"))?;
        let of_task = |failure: Failure| {
            let text = failure.text.map(|text| format!("task {name:?}: {text}"));
            Failure { text, ..failure }
        };
        let bad = |text: String| of_task(Failure::invalid(text));
        let run = self.run.ok_or_else(|| bad("no function to run".to_owned()))?;
        let period = period(self.period_num_ns, self.period_den).map_err(of_task)?;
        let mut task = Task::new(&name, period);
        task = task.phase(match self.phase {
            PHASE_BALANCED => Phase::Balanced,
            PHASE_AT => Phase::At(self.phase_ns),
            PHASE_AFTER => {
                // SAFETY: as the caller says.
                let after = unsafe { border::text(self.after, "the task that it is after") }
                    .map_err(of_task)?;
                let after = after.ok_or_else(|| bad("after no task".to_owned()))?;
                Phase::After(after, self.phase_ns)
            }
            other => return Err(bad(format!("no phase of a task is numbered {other}"))),
        });
        task = task.policy(policy(self.policy, self.burst).map_err(of_task)?);
        match u8::try_from(self.priority) {
            Ok(0) => {}
            Ok(priority @ 1..=99) => task = task.priority(priority),
            _ => return Err(bad(format!("a priority of {}: from 0 to 99", self.priority))),
        }
        let given = |ns: u64| (ns > 0).then_some(ns);
        if let Some(ns) = given(self.budget_ns) {
            task = task.budget_ns(ns);
        }
        if let Some(ns) = given(self.deadline_ns) {
            task = task.deadline_ns(ns);
        }
        if let Some(ns) = given(self.start_ns) {
            task = task.start_ns(ns);
        }
        Ok((name, task, Callback::new(run, self.data)))
    }
}

/// Writes the defaults.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_task_init(task: *mut TaskRecord, size: usize) -> c_int {
    // SAFETY: null or `size` writable bytes, says the header.
    border::enter(|| unsafe { record::init(task, size) })
}

#[cfg(test)]
impl TaskRecord {
    /// A task of this body and period, with the defaults of all else.
    pub(crate) fn of(
        name: &std::ffi::CStr,
        run: Body,
        data: *mut c_void,
        period_num_ns: u64,
    ) -> Self {
        Self { name: name.as_ptr(), run: Some(run), data, period_num_ns, ..Self::blank() }
    }

    pub(crate) fn budget(self, budget_ns: u64) -> Self {
        Self { budget_ns, ..self }
    }

    pub(crate) fn policy(self, policy: i32) -> Self {
        Self { policy, ..self }
    }

    pub(crate) fn burst(self, burst: u32) -> Self {
        Self { policy: POLICY_BURST, burst, ..self }
    }

    pub(crate) fn after(self, name: Option<&'static std::ffi::CStr>, phase_ns: u64) -> Self {
        let after = name.map_or(std::ptr::null(), std::ffi::CStr::as_ptr);
        Self { phase: PHASE_AFTER, after, phase_ns, ..self }
    }
}
