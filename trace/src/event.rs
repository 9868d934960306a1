//! An event of a kernel's trace, of any recorder.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A thread's number: what the kernel calls pid. 0 is the idle task of a CPU.
pub type Tid = u32;

/// A name as the kernel keeps it (`comm`, a device's): its first 15 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ShortName([u8; 16]);

impl ShortName {
    /// No name.
    pub const EMPTY: Self = Self([0; 16]);

    /// The first 15 bytes of a name, up to its first NUL.
    #[must_use]
    pub fn new(name: &[u8]) -> Self {
        let mut bytes = [0; 16];
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len()).min(15);
        bytes[..end].copy_from_slice(&name[..end]);
        Self(bytes)
    }

    /// Its bytes, without the NULs behind them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        &self.0[..end]
    }
}

impl fmt::Display for ShortName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl fmt::Debug for ShortName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

/// As text; bytes that are no UTF-8 are replaced.
impl Serialize for ShortName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ShortName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::new(String::deserialize(deserializer)?.as_bytes()))
    }
}

/// Addresses as text, `0xffff888627c1c6f8`: as numbers, many readers of JSON would round them.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(number: &u64, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(&format_args!("{number:#x}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
        let text = String::deserialize(input)?;
        let digits = text.strip_prefix("0x").unwrap_or_default();
        u64::from_str_radix(digits, 16)
            .map_err(|_| de::Error::custom("an address that is no 0x and hexadecimal digits"))
    }
}

/// A thread as an event names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskName {
    /// Its number.
    pub tid: Tid,
    /// Its name.
    pub name: ShortName,
    /// Its priority as the kernel counts: 0–98 real-time (FIFO 99 is 0, FIFO 1 is 98), −1 deadline
    /// and stop class, 100–139 fair (120 is nice 0).
    #[serde(
        rename = "prio",
        default = "TaskName::unknown_priority",
        skip_serializing_if = "TaskName::is_unknown_priority"
    )]
    pub kernel_priority: i32,
}

impl TaskName {
    /// The priority of a thread that an event names without one (a signal's, a rename's).
    pub const UNKNOWN_PRIORITY: i32 = i32::MIN;

    /// Returns true where it has the priority of SCHED_DEADLINE.
    #[must_use]
    pub const fn is_deadline(&self) -> bool {
        self.kernel_priority == -1
    }

    const fn unknown_priority() -> i32 {
        Self::UNKNOWN_PRIORITY
    }

    // serde asks by reference.
    const fn is_unknown_priority(priority: &i32) -> bool {
        *priority == Self::UNKNOWN_PRIORITY
    }
}

/// The context in which an event was recorded: `common_flags`, and the low nibble of
/// `preempt_count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ContextFlags {
    /// 0x01 interrupts off, 0x02 lazy reschedule wanted (from 6.13 on), 0x04 reschedule wanted,
    /// 0x08 hard interrupt, 0x10 soft interrupt, 0x20 preemption wanted.
    pub flags: u8,
    /// The depth to which preemption is off.
    pub preempt_depth: u8,
}

impl ContextFlags {
    /// Returns true where a hard or a soft interrupt is served.
    #[must_use]
    pub const fn is_interrupt(self) -> bool {
        self.flags & (0x08 | 0x10) != 0
    }

    /// Returns true where a soft interrupt is served, and no hard one in it.
    #[must_use]
    pub const fn is_soft_interrupt(self) -> bool {
        self.flags & (0x08 | 0x10) == 0x10
    }

    /// Returns true where interrupts are off.
    #[must_use]
    pub const fn are_interrupts_off(self) -> bool {
        self.flags & 0x01 != 0
    }

    /// Returns true where a reschedule is wanted, at once or at the next tick.
    #[must_use]
    pub const fn is_reschedule_wanted(self) -> bool {
        self.flags & (0x04 | 0x02) != 0
    }
}

/// An address of kernel code, or a number that a reader of text gave to a function's name.
pub type CodeAddress = u64;

/// An event of one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEvent {
    /// The instant, ns of CLOCK_MONOTONIC (of a foreign capture: of its own clock).
    pub at_ns: u64,
    /// The CPU that it happened on.
    pub cpu: u32,
    /// The thread that the kernel says ran (`common_pid`).
    pub tid: Tid,
    /// The context in which it was recorded.
    pub context: ContextFlags,
    /// The kind of event, with its fields.
    pub kind: TraceKind,
    /// The kernel's call chain, innermost first; empty where none was recorded.
    pub chain: Box<[CodeAddress]>,
}

/// The vector of an interrupt that another processor or the local timer raises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vector {
    /// The CPU's own timer (`irq_vectors:local_timer`; arm64: `arch_timer`).
    LocalTimer,
    /// Another CPU asks to reschedule.
    Reschedule,
    /// Another CPU asks to call a function.
    CallFunction,
    /// Another CPU asks this one alone to call a function.
    CallFunctionSingle,
    /// Work that the kernel gives itself (`irq_work`).
    IrqWork,
    /// Thermal, error, spurious and the other vectors of the processor.
    Platform,
    /// Another CPU, or the CPU itself, asks for something that was not recorded.
    OtherCpu,
}

impl Vector {
    /// Its name, as the kernel's events have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LocalTimer => "local_timer",
            Self::Reschedule => "reschedule",
            Self::CallFunction => "call_function",
            Self::CallFunctionSingle => "call_function_single",
            Self::IrqWork => "irq_work",
            Self::Platform => "platform",
            Self::OtherCpu => "other_cpu",
        }
    }
}

/// A reading of a processor's counters, each since its own begin: the difference of two readings of
/// one CPU is the count between them. `None` of a counter that was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessorCounts {
    /// Cycles in which it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u64>,
    /// Instructions that it retired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// Accesses that its last cache did not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_misses: Option<u64>,
    /// Cycles in which a resource was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_cycles: Option<u64>,
    /// Time for which they have been open, ns; `None` where that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_ns: Option<u64>,
    /// Time of that for which they counted, ns: less where others wanted the same counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_ns: Option<u64>,
}

impl ProcessorCounts {
    /// Returns true where one of the counters was recorded.
    #[must_use]
    pub const fn is_some(&self) -> bool {
        self.cycles.is_some()
            || self.instructions.is_some()
            || self.cache_misses.is_some()
            || self.stalled_cycles.is_some()
    }
}

/// The kind of an event, with the fields that attribution uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TraceKind {
    /// `timer:hrtimer_start`: a timer was programmed. `timer` is its address, which names it until
    /// it expires.
    TimerStart {
        /// Its address.
        #[serde(with = "hex")]
        timer: u64,
        /// The function that it calls.
        #[serde(with = "hex")]
        function: CodeAddress,
        /// The latest expiry, ns of the timer's own clock.
        expires_ns: i64,
        /// The earliest expiry, the requested one, ns of the timer's own clock; the rest is timer
        /// slack.
        soft_expires_ns: i64,
    },
    /// `timer:hrtimer_start_expired` (7.1 on): the timer just started had expired before; its
    /// thread goes on without an interrupt, and its function is not called.
    TimerStartExpired {
        /// Its address.
        #[serde(with = "hex")]
        timer: u64,
    },
    /// `timer:hrtimer_rearm` (7.1 on): the CPU's timer is programmed anew.
    TimerRearm {
        /// Its next expiry, ns of CLOCK_MONOTONIC.
        next_event_ns: i64,
        /// True where that was put off until the interrupt's end.
        is_deferred: bool,
    },
    /// `timer:hrtimer_cancel`.
    TimerCancel {
        /// Its address.
        #[serde(with = "hex")]
        timer: u64,
    },
    /// `timer:hrtimer_expire_entry`: its function is called. `now_ns` is the timer's own clock.
    TimerExpireEntry {
        /// Its address.
        #[serde(with = "hex")]
        timer: u64,
        /// The function that it calls; 0 where the record does not have it.
        #[serde(with = "hex")]
        function: CodeAddress,
        /// The timer's clock as the interrupt read it, ns.
        now_ns: i64,
    },
    /// `timer:hrtimer_expire_exit`.
    TimerExpireExit {
        /// Its address.
        #[serde(with = "hex")]
        timer: u64,
    },
    /// `sched:sched_waking`: this thread wakes another.
    Waking {
        /// The thread that is woken.
        task: TaskName,
        /// The CPU that it shall run on; `UNKNOWN_CPU` where the capture does not have it.
        target_cpu: u32,
    },
    /// `sched:sched_switch`.
    Switch {
        /// The thread that ran.
        previous: TaskName,
        /// Its state: 0 and [`Self::PREEMPTED`] preempted ([`Self::stays_runnable`]), 4 and 8
        /// stopped, others asleep.
        previous_state: u64,
        /// The thread that runs from now on.
        next: TaskName,
    },
    /// `sched:sched_migrate_task`.
    Migrate {
        /// The thread.
        task: TaskName,
        /// The CPU that it leaves.
        from_cpu: u32,
        /// The CPU that it moves to.
        to_cpu: u32,
    },
    /// `irq_vectors:*_entry`; on AArch64 `ipi:ipi_entry`.
    VectorEntry(Vector),
    /// `irq_vectors:*_exit`; on AArch64 `ipi:ipi_exit`.
    VectorExit(Vector),
    /// `irq:irq_handler_entry`.
    IrqEntry {
        /// The interrupt's number.
        irq: u32,
        /// Its handler's name.
        name: ShortName,
    },
    /// `irq:irq_handler_exit`.
    IrqExit {
        /// The interrupt's number.
        irq: u32,
        /// True where the handler had something to do; `None` where the record does not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_handled: Option<bool>,
    },
    /// `irq:softirq_entry`; 0 HI, 1 TIMER, 2 NET_TX, 3 NET_RX, 4 BLOCK, 5 IRQ_POLL, 6 TASKLET,
    /// 7 SCHED, 8 HRTIMER, 9 RCU.
    SoftirqEntry(u8),
    /// `irq:softirq_exit`.
    SoftirqExit(u8),
    /// `ipi:ipi_send_cpu`, `ipi:ipi_send_cpumask`: this thread interrupts other CPUs.
    IpiSend {
        /// The CPUs, 64 a word, lowest first.
        targets: Box<[u64]>,
        /// The function that they shall call; 0 where the record does not have it.
        #[serde(with = "hex")]
        callback: CodeAddress,
    },
    /// `csd:csd_queue_cpu`: a call is queued for another CPU.
    CallQueued {
        /// The CPU that shall call.
        target_cpu: u32,
        /// The address of the request, which pairs it with its call.
        #[serde(with = "hex")]
        request: u64,
        /// The function that is called.
        #[serde(with = "hex")]
        function: CodeAddress,
    },
    /// `csd:csd_function_entry`.
    CallEntry {
        /// The address of the request.
        #[serde(with = "hex")]
        request: u64,
        /// The function that is called.
        #[serde(with = "hex")]
        function: CodeAddress,
    },
    /// `csd:csd_function_exit`.
    CallExit {
        /// The address of the request.
        #[serde(with = "hex")]
        request: u64,
    },
    /// `nmi:nmi_handler`, recorded at its end.
    Nmi {
        /// The time that it took, ns.
        took_ns: u64,
    },
    /// `signal:signal_generate`.
    Signal {
        /// Its number.
        number: u8,
        /// The thread that it is sent to.
        task: TaskName,
    },
    /// `exceptions:page_fault_user`: this thread faults.
    PageFaultEntry,
    /// The kernel's software counter of page faults: the fault was served.
    PageFaultExit,
    /// `raw_syscalls:sys_enter`.
    SyscallEntry {
        /// Its number.
        number: u32,
    },
    /// `raw_syscalls:sys_exit`.
    SyscallExit {
        /// Its number.
        number: u32,
    },
    /// `sched:sched_stat_runtime`: CPU time that the kernel books to this thread.
    RunTime {
        /// The thread that the time is booked to.
        tid: Tid,
        /// CPU time that it got since it was booked last, ns.
        took_ns: u64,
    },
    /// `sched:sched_pi_setprio`.
    PriorityLent {
        /// The thread whose priority changes.
        task: TaskName,
        /// Its kernel priority from now on.
        to_kernel_priority: i32,
    },
    /// `task:task_rename`, or a COMM record.
    Renamed {
        /// The thread, by its new name.
        task: TaskName,
    },
    /// `workqueue:workqueue_execute_start`: this kworker runs a function.
    WorkStart {
        /// The function that it runs.
        #[serde(with = "hex")]
        function: CodeAddress,
    },
    /// `power:cpu_idle`: a state, or 0xffff_ffff for the end of one.
    CpuIdle {
        /// The number of the state, or 0xffff_ffff.
        state: u32,
    },
    /// `power:cpu_frequency`.
    Frequency {
        /// The CPU, which may be another than the one that recorded it; that one where it is
        /// [`Self::UNKNOWN_CPU`].
        #[serde(default = "unknown_cpu")]
        cpu: u32,
        /// The new frequency, kHz.
        khz: u32,
    },
    /// A reading of the counters of this CPU's processor at this instant.
    Counters(ProcessorCounts),
    /// The recorder lost events of this CPU before this instant.
    Lost {
        /// Events that were lost; 0 where they were not counted.
        count: u64,
    },
}

impl TraceKind {
    /// The CPU of an event that does not say one: a waking of wprof's.
    pub const UNKNOWN_CPU: u32 = u32::MAX;
    /// The bit of the state of a thread that is preempted (`TASK_REPORT_MAX`, Linux 4.14 on).
    pub const PREEMPTED: u64 = 0x100;

    /// Returns true where a thread that leaves its CPU in this state of [`Self::Switch`] could go
    /// on: it was preempted, or made way.
    #[must_use]
    pub const fn stays_runnable(previous_state: u64) -> bool {
        previous_state == 0 || previous_state & Self::PREEMPTED != 0
    }

    /// Returns true where a thread that leaves its CPU in this state of [`Self::Switch`] was
    /// stopped by a signal or a tracer (`__TASK_STOPPED` 4, `__TASK_TRACED` 8 of
    /// include/linux/sched.h).
    #[must_use]
    pub const fn is_stopped(previous_state: u64) -> bool {
        !Self::stays_runnable(previous_state) && previous_state & 0xc != 0
    }

    /// Returns true for a signal that stops a process: SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
    #[must_use]
    pub const fn stops(signal: u8) -> bool {
        matches!(signal, 19..=22)
    }
}

const fn unknown_cpu() -> u32 {
    TraceKind::UNKNOWN_CPU
}

#[cfg(test)]
mod tests {
    use super::TraceKind;

    #[test]
    fn a_thread_that_is_preempted_or_made_way_stays_runnable() {
        // `R`, `R+`, and `S+` of text, of a thread that is preempted on its way to sleep.
        for state in [0, TraceKind::PREEMPTED, TraceKind::PREEMPTED | 1] {
            assert!(TraceKind::stays_runnable(state), "{state:#x}");
        }
        for state in [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80] {
            assert!(!TraceKind::stays_runnable(state), "{state:#x}");
        }
    }
}
