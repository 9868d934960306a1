//! `punctual_task`: one task of an executive, its body, where it runs and what triggers it.
//!
//! Turns the caller's numbers into `punctual`'s types; what tasks cannot be together, the builder
//! says.

use std::ffi::{c_char, c_int, c_void};
use std::os::fd::RawFd;
use std::time::Duration;

use punctual::{OnOverrun, Placement, RtThread, Task, WaitPolicy};
use punctual_os::descriptor;

use crate::callback::{Body, Callback, Plain};
use crate::failure::Failure;
use crate::ffi;
use crate::options::{PERIOD_FIELDS, fifo, number, period};
use crate::record::{self, Record, named};

/// As in the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TaskRecord {
    size: usize,
    name: *const c_char,
    run: Option<Body>,
    data: *mut c_void,
    after: *const c_char,
    wait: Option<Plain>,
    trigger_data: *mut c_void,
    period_num_ns: u64,
    period_den: u64,
    phase_ns: u64,
    budget_ns: u64,
    deadline_ns: u64,
    start_ns: u64,
    phase: i32,
    priority: i32,
    on_overrun: i32,
    burst: u32,
    place: i32,
    place_cpu: i32,
    place_priority: i32,
    trigger_fd: i32,
}

const _: () = assert!(size_of::<TaskRecord>() == 136);

// SAFETY: `repr(C)`; 13 words and eight halves of one make 136 bytes, so that there is no padding;
// any pattern of bits is a pointer, and one that is not null a function's, says the header.
unsafe impl Record for TaskRecord {
    const LEAST: usize = 136;
    named!("task");

    fn blank() -> Self {
        Self {
            size: size_of::<Self>(),
            name: std::ptr::null(),
            run: None,
            data: std::ptr::null_mut(),
            after: std::ptr::null(),
            wait: None,
            trigger_data: std::ptr::null_mut(),
            period_num_ns: 0,
            period_den: 1,
            phase_ns: 0,
            budget_ns: 0,
            deadline_ns: 0,
            start_ns: 0,
            phase: PHASE_BALANCED,
            priority: 0,
            on_overrun: OVERRUN_SKIP,
            burst: 0,
            place: PLACE_INLINE,
            place_cpu: -1,
            place_priority: 0,
            trigger_fd: -1,
        }
    }
}

const PHASE_BALANCED: i32 = 0;
const PHASE_AT: i32 = 2;
const PHASE_AFTER: i32 = 3;

pub(crate) const OVERRUN_SKIP: i32 = 0;
const OVERRUN_BURST: i32 = 1;
const OVERRUN_DELAY: i32 = 2;
const OVERRUN_TERMINATE: i32 = 3;
const OVERRUN_STOP: i32 = 4;

const PLACE_INLINE: i32 = 0;
const PLACE_CPU: i32 = 1;
const PLACE_THREAD: i32 = 2;

/// The answer to an overrun, by its number.
pub(crate) fn on_overrun(number: i32, burst: u32) -> Result<OnOverrun, Failure> {
    Ok(match number {
        OVERRUN_SKIP => OnOverrun::Skip,
        OVERRUN_BURST => OnOverrun::Burst(burst),
        OVERRUN_DELAY => OnOverrun::Delay,
        OVERRUN_TERMINATE => OnOverrun::Terminate,
        OVERRUN_STOP => OnOverrun::Stop,
        number => {
            return Err(Failure::invalid(format!("no answer to an overrun is numbered {number}")));
        }
    })
}

/// This failure, with the name of its task or unit.
pub(crate) fn named(kind: &str, name: &str, failure: Failure) -> Failure {
    failure.about(&format!("{kind} {name:?}"))
}

/// Where a task runs, but for how its thread waits, which is as its executive's does.
#[derive(Clone, Copy, Debug)]
enum Place {
    Inline,
    Cpu(u32),
    Thread(Option<u32>, Option<u8>),
}

/// The trigger of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Release {
    /// A function: each of its returns releases a cycle.
    Wait(Callback<Plain>),
    /// A descriptor: a cycle is released while it is readable.
    Readable(RawFd),
}

/// A task, its body, and what triggers it where it has no releases.
#[derive(Clone, Debug)]
pub(crate) struct TaskSpec {
    task: Task,
    place: Place,
    pub(crate) body: Callback<Body>,
    pub(crate) trigger: Option<Release>,
}

impl TaskSpec {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.task.name()
    }

    /// The task in an executive whose wait policy is this.
    pub(crate) fn task(&self, wait: WaitPolicy) -> Task {
        let placement = match self.place {
            Place::Inline => Placement::inline(),
            Place::Cpu(cpu) => Placement::cpu(cpu),
            Place::Thread(cpu, priority) => {
                let thread = cpu.map_or(RtThread::any(), RtThread::cpu).wait(wait);
                Placement::thread(match priority {
                    Some(priority) => thread.fifo(priority),
                    None => thread,
                })
            }
        };
        self.task.clone().placed(placement)
    }
}

impl TaskRecord {
    /// The task as the builder takes it.
    ///
    /// # Safety
    /// Its texts are null or end with a zero byte.
    pub(crate) unsafe fn read(&self) -> Result<TaskSpec, Failure> {
        // SAFETY: as the caller says.
        let name = unsafe { ffi::text(self.name, "a task's name") }?;
        let name = name.ok_or_else(|| Failure::invalid("a task without a name"))?;
        // SAFETY: as the caller says.
        unsafe { self.read_named(&name) }.map_err(|failure| named("task", &name, failure))
    }

    /// Reads the task, which has this name.
    ///
    /// # Safety
    /// Its texts are null or end with a zero byte.
    unsafe fn read_named(&self, name: &str) -> Result<TaskSpec, Failure> {
        let run = self.run.ok_or_else(|| Failure::invalid("no function to run"))?;
        let trigger = self.trigger()?;
        // One that is triggered needs no period.
        let mut task = match (&trigger, self.period_num_ns) {
            (Some(_), 0) => Task::named(name),
            _ => Task::every(name, period(PERIOD_FIELDS, self.period_num_ns, self.period_den)?),
        };
        let phase = Duration::from_nanos(self.phase_ns);
        task = match self.phase {
            PHASE_BALANCED => task,
            PHASE_AT => task.at(phase),
            PHASE_AFTER => {
                // SAFETY: as the caller says.
                let after = unsafe { ffi::text(self.after, "the task that it is after") }?;
                let after = after.ok_or_else(|| Failure::invalid("after no task"))?;
                task.after(after, phase)
            }
            number => {
                return Err(Failure::invalid(format!("no phase of a task is numbered {number}")));
            }
        };
        task = task.on_overrun(on_overrun(self.on_overrun, self.burst)?);
        match u8::try_from(self.priority) {
            Ok(0) => {}
            Ok(priority @ 1..=99) => task = task.priority(priority),
            _ => {
                let text = format!("priority must be from 0 to 99 (got {})", self.priority);
                return Err(Failure::invalid(text));
            }
        }
        let given = |ns: u64| (ns > 0).then_some(ns);
        if let Some(ns) = given(self.budget_ns) {
            task = task.budget(Duration::from_nanos(ns));
        }
        if let Some(ns) = given(self.deadline_ns) {
            task = task.deadline(Duration::from_nanos(ns));
        }
        if let Some(ns) = given(self.start_ns) {
            task = task.start_within(Duration::from_nanos(ns));
        }
        let body = Callback::new(run, self.data);
        Ok(TaskSpec { task, place: self.placed()?, body, trigger })
    }

    /// Its trigger; `None` for one that the executive releases.
    fn trigger(&self) -> Result<Option<Release>, Failure> {
        match (self.wait, self.trigger_fd) {
            (None, -1) => Ok(None),
            (None, number @ 0..) => match descriptor::check(number) {
                Ok(()) => Ok(Some(Release::Readable(number))),
                Err(errno) => {
                    let text = format!("trigger_fd {number} is no open descriptor: {errno}");
                    Err(Failure::new(errno.0, text))
                }
            },
            (Some(wait), -1) => Ok(Some(Release::Wait(Callback::new(wait, self.trigger_data)))),
            (None, got) => Err(Failure::invalid(format!(
                "trigger_fd must be a descriptor, or -1 for none (got {got})"
            ))),
            (Some(_), _) => Err(Failure::invalid("both wait and trigger_fd trigger it")),
        }
    }

    /// Where it runs.
    fn placed(&self) -> Result<Place, Failure> {
        let cpu = match self.place_cpu {
            -1 => None,
            cpu => Some(number(cpu)?),
        };
        let priority = match self.place_priority {
            0 => None,
            priority => Some(fifo(priority)?),
        };
        match (self.place, cpu, priority) {
            (PLACE_INLINE, None, None) => Ok(Place::Inline),
            (PLACE_CPU, Some(cpu), None) => Ok(Place::Cpu(cpu)),
            (PLACE_THREAD, cpu, priority) => Ok(Place::Thread(cpu, priority)),
            (PLACE_INLINE | PLACE_CPU, _, _) => Err(Failure::invalid(format!(
                "place_cpu must be set for PUNCTUAL_PLACE_CPU, and place_priority for \
                 PUNCTUAL_PLACE_THREAD alone (got place_cpu {} and place_priority {})",
                self.place_cpu, self.place_priority
            ))),
            (number, ..) => Err(Failure::invalid(format!("no place is numbered {number}"))),
        }
    }
}

/// Writes the defaults.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_task_init(task: *mut TaskRecord, size: usize) -> c_int {
    // SAFETY: null or `size` writable bytes, says the header.
    ffi::enter(|| unsafe { record::init(task, size) })
}

#[cfg(test)]
impl TaskRecord {
    /// A task of this body and period, with the defaults of all else.
    pub(crate) fn new(
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

    pub(crate) fn on_overrun(self, on_overrun: i32) -> Self {
        Self { on_overrun, ..self }
    }

    pub(crate) fn in_thread(self, place_cpu: i32) -> Self {
        Self { place: PLACE_THREAD, place_cpu, ..self }
    }

    pub(crate) fn place(self, place: i32, place_cpu: i32, place_priority: i32) -> Self {
        Self { place, place_cpu, place_priority, ..self }
    }

    pub(crate) fn period(self, period_num_ns: u64) -> Self {
        Self { period_num_ns, ..self }
    }

    pub(crate) fn readable(self, trigger_fd: RawFd) -> Self {
        Self { trigger_fd, ..self }
    }

    pub(crate) fn triggered(self, wait: Plain) -> Self {
        Self { wait: Some(wait), trigger_data: self.data, ..self }
    }

    pub(crate) fn burst(self, burst: u32) -> Self {
        Self { on_overrun: OVERRUN_BURST, burst, ..self }
    }

    pub(crate) fn after(self, name: Option<&'static std::ffi::CStr>, phase_ns: u64) -> Self {
        let after = name.map_or(std::ptr::null(), std::ffi::CStr::as_ptr);
        Self { phase: PHASE_AFTER, after, phase_ns, ..self }
    }
}
