//! Causes: what a stretch of a late wake is booked to, by which rule and how surely, as data.

use std::fmt;

use punctual_trace::event::{CodeAddress, ShortName, TaskName};
use serde::{Deserialize, Serialize};

use crate::programs::{ProgramOwner, ThreadPrograms};
use crate::symbols::{KernelPlace, SymbolMap};
use crate::timeline::TaskMode;

/// The kinds of causes, which name themselves in results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CauseKind {
    /// The way that every wake of this machine takes.
    NormalPath,
    /// The kernel may delay timers of ordinary threads.
    TimerSlack,
    /// The CPU was slow to leave its idle state, or the host to run it again.
    IdleExit,
    /// The CPU did not run: CPU time is missing, or another CPU was silent at the same time.
    HostOrFirmware,
    /// Nothing was recorded in between, with interrupts on, and no more shows it.
    NoEvent,
    /// Interrupts were off, or the CPU stood still: the evidence does not decide.
    HostOrInterruptsOff,
    /// The CPU ran at a lower frequency than usual.
    Frequency,
    /// Kernel code ran with interrupts off.
    InterruptsOff,
    /// A device's interrupt.
    HardIrq,
    /// A soft interrupt.
    Softirq,
    /// An interrupt that cannot be masked.
    Nmi,
    /// Another CPU interrupted.
    Ipi,
    /// It was woken on, or migrated to, another CPU than the one of its timer.
    Migration,
    /// Timers of others expired first.
    OtherTimers,
    /// The kernel's thread that serves its timer waited for another one.
    TimerThread,
    /// A thread above ran.
    HigherPriority,
    /// A thread of the same priority ran.
    EqualPriority,
    /// Both are ordinary threads, and it was the other's turn.
    FairShare,
    /// A thread below could not be preempted.
    NotPreempted,
    /// Its real-time budget was used up.
    Throttled,
    /// The kernel's reservation for ordinary threads (from 6.12 on).
    FairServer,
    /// It was stopped by a signal.
    Stopped,
    /// Its own code ran past the release.
    OwnCode,
    /// Its own system call did.
    OwnSyscall,
    /// Its own page faults did.
    OwnFault,
    /// It waited for something else.
    OwnWait,
    /// The wake before was late.
    Follows,
    /// None of the causes has a fifth of it.
    NoSingle,
    /// Nothing recorded explains it.
    Unexplained,
}

impl CauseKind {
    /// Every kind.
    pub const ALL: [Self; 29] = [
        Self::NormalPath,
        Self::TimerSlack,
        Self::IdleExit,
        Self::HostOrFirmware,
        Self::NoEvent,
        Self::HostOrInterruptsOff,
        Self::Frequency,
        Self::InterruptsOff,
        Self::HardIrq,
        Self::Softirq,
        Self::Nmi,
        Self::Ipi,
        Self::Migration,
        Self::OtherTimers,
        Self::TimerThread,
        Self::HigherPriority,
        Self::EqualPriority,
        Self::FairShare,
        Self::NotPreempted,
        Self::Throttled,
        Self::FairServer,
        Self::Stopped,
        Self::OwnCode,
        Self::OwnSyscall,
        Self::OwnFault,
        Self::OwnWait,
        Self::Follows,
        Self::NoSingle,
        Self::Unexplained,
    ];

    /// Its word in results; stable.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::NormalPath => "normal-path",
            Self::TimerSlack => "timer-slack",
            Self::IdleExit => "idle-exit",
            Self::HostOrFirmware => "host-or-firmware",
            Self::NoEvent => "no-event",
            Self::HostOrInterruptsOff => "host-or-interrupts-off",
            Self::Frequency => "frequency",
            Self::InterruptsOff => "interrupts-off",
            Self::HardIrq => "hard-irq",
            Self::Softirq => "softirq",
            Self::Nmi => "nmi",
            Self::Ipi => "ipi",
            Self::Migration => "migration",
            Self::OtherTimers => "other-timers",
            Self::TimerThread => "timer-thread",
            Self::HigherPriority => "higher-priority",
            Self::EqualPriority => "equal-priority",
            Self::FairShare => "fair-share",
            Self::NotPreempted => "not-preempted",
            Self::Throttled => "throttled",
            Self::FairServer => "fair-server",
            Self::Stopped => "stopped",
            Self::OwnCode => "own-code",
            Self::OwnSyscall => "own-syscall",
            Self::OwnFault => "own-fault",
            Self::OwnWait => "own-wait",
            Self::Follows => "follows",
            Self::NoSingle => "no-single-cause",
            Self::Unexplained => "unexplained",
        }
    }
}

/// The reason for which a stretch has no explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unexplained {
    /// Events of it were lost.
    Lost,
    /// A switch was not recorded: what ran at the end is not known.
    Hole,
    /// It lies before the first event, or was pushed out of the memory.
    Unrecorded,
    /// No rule fits.
    NoRule,
    /// There are more causes than room to tell them apart.
    TooMany,
}

/// Frequencies that differ by less than this are one in rows, kHz.
const STEP_KHZ: u32 = 100_000;

/// A cause, with the thread, function or device that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LateCause {
    /// The way that every wake of this machine takes.
    NormalPath,
    /// The part between the requested expiry and the latest one that its slack allows.
    TimerSlack,
    /// Idle until the timer's interrupt came late.
    IdleExit {
        /// The idle state, where it was recorded.
        state: Option<u32>,
    },
    /// Time without events, in which the CPU did not run.
    HostOrFirmware,
    /// Time without events, with interrupts on.
    NoEvent,
    /// Time without events, in kernel code.
    HostOrInterruptsOff {
        /// The thread that ran.
        task: TaskName,
        /// The address that the interrupt found; 0 where there is no chain.
        at: CodeAddress,
        /// The start of the function in question; 0 where there is no chain.
        inside: CodeAddress,
    },
    /// The kernel's own part of the way took longer since the CPU was slower.
    Frequency {
        /// The frequency at which that CPU ran longest, kHz.
        usual_khz: u32,
        /// The one at which it ran, kHz.
        khz: u32,
    },
    /// Kernel code with interrupts off.
    InterruptsOff {
        /// The thread that ran.
        task: TaskName,
        /// The start of the function.
        inside: CodeAddress,
    },
    /// A device's interrupt.
    HardIrq {
        /// Its number.
        irq: u32,
        /// Its name.
        name: ShortName,
    },
    /// A soft interrupt.
    Softirq {
        /// 0 HI … 9 RCU.
        number: u8,
        /// The device that raised it, where its interrupt came just before; else empty.
        device: ShortName,
    },
    /// An interrupt that cannot be masked.
    Nmi,
    /// Another CPU interrupted.
    Ipi {
        /// The thread that sent it, where that was recorded.
        sender: Option<TaskName>,
    },
    /// The way to another CPU than the one of its timer: an interrupt there, and the exit of that
    /// CPU from its idle state.
    Migration,
    /// Timers of others expired first.
    OtherTimers {
        /// The start of the function that they call; 0 where it is not known.
        function: CodeAddress,
        /// The thread that programmed them; empty where they are the kernel's own.
        armer: TaskName,
    },
    /// Its timer is served by a thread of the kernel (PREEMPT_RT), and another one, not above the
    /// late one, ran before that.
    TimerThread {
        /// The one that ran.
        task: TaskName,
    },
    /// A thread above ran.
    HigherPriority {
        /// That thread.
        task: TaskName,
    },
    /// A thread of the same priority ran.
    EqualPriority {
        /// That thread.
        task: TaskName,
    },
    /// Another ordinary thread had its turn.
    FairShare {
        /// That thread.
        task: TaskName,
    },
    /// A thread below could not be preempted.
    NotPreempted {
        /// That thread.
        task: TaskName,
        /// The kernel code that it was in.
        place: KernelPlace,
    },
    /// Its real-time budget was used up.
    Throttled {
        /// The thread that ran instead: one below, or the idle one (tid 0).
        task: TaskName,
    },
    /// The reservation for ordinary threads.
    FairServer {
        /// The one of them that ran.
        task: TaskName,
    },
    /// A signal stopped it.
    Stopped {
        /// The thread that sent it, where that was recorded.
        sender: Option<TaskName>,
    },
    /// Its own code.
    OwnCode,
    /// Its own system call.
    OwnSyscall {
        /// Its number.
        number: u32,
    },
    /// Its own page faults.
    OwnFault,
    /// It slept before it programmed its timer.
    OwnWait {
        /// True in a sleep that no signal ends: a device or a lock of the kernel.
        is_blocked: bool,
        /// The number of the system call that it slept in, where that was recorded.
        #[serde(default)]
        call: Option<u32>,
    },
    /// The wake before was late, for a cause of this kind.
    Follows {
        /// The kind of that cause.
        kind: CauseKind,
    },
    /// Of a whole wake: none of its causes has a fifth of it.
    NoSingle,
    /// Nothing recorded explains it.
    Unexplained(Unexplained),
}

impl LateCause {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> CauseKind {
        match self {
            Self::NormalPath => CauseKind::NormalPath,
            Self::TimerSlack => CauseKind::TimerSlack,
            Self::IdleExit { .. } => CauseKind::IdleExit,
            Self::HostOrFirmware => CauseKind::HostOrFirmware,
            Self::NoEvent => CauseKind::NoEvent,
            Self::HostOrInterruptsOff { .. } => CauseKind::HostOrInterruptsOff,
            Self::Frequency { .. } => CauseKind::Frequency,
            Self::InterruptsOff { .. } => CauseKind::InterruptsOff,
            Self::HardIrq { .. } => CauseKind::HardIrq,
            Self::Softirq { .. } => CauseKind::Softirq,
            Self::Nmi => CauseKind::Nmi,
            Self::Ipi { .. } => CauseKind::Ipi,
            Self::Migration => CauseKind::Migration,
            Self::OtherTimers { .. } => CauseKind::OtherTimers,
            Self::TimerThread { .. } => CauseKind::TimerThread,
            Self::HigherPriority { .. } => CauseKind::HigherPriority,
            Self::EqualPriority { .. } => CauseKind::EqualPriority,
            Self::FairShare { .. } => CauseKind::FairShare,
            Self::NotPreempted { .. } => CauseKind::NotPreempted,
            Self::Throttled { .. } => CauseKind::Throttled,
            Self::FairServer { .. } => CauseKind::FairServer,
            Self::Stopped { .. } => CauseKind::Stopped,
            Self::OwnCode => CauseKind::OwnCode,
            Self::OwnSyscall { .. } => CauseKind::OwnSyscall,
            Self::OwnFault => CauseKind::OwnFault,
            Self::OwnWait { .. } => CauseKind::OwnWait,
            Self::Follows { .. } => CauseKind::Follows,
            Self::NoSingle => CauseKind::NoSingle,
            Self::Unexplained(_) => CauseKind::Unexplained,
        }
    }

    /// The thread that it names, where it names one.
    #[must_use]
    pub fn culprit(&self) -> Option<TaskName> {
        match *self {
            Self::HostOrInterruptsOff { task, .. } => (task != TaskName::default()).then_some(task),
            Self::InterruptsOff { task, .. }
            | Self::TimerThread { task }
            | Self::HigherPriority { task }
            | Self::EqualPriority { task }
            | Self::FairShare { task }
            | Self::NotPreempted { task, .. }
            | Self::Throttled { task }
            | Self::FairServer { task } => Some(task),
            Self::OtherTimers { armer, .. } => (armer != TaskName::default()).then_some(armer),
            Self::Ipi { sender } | Self::Stopped { sender } => sender,
            _ => None,
        }
    }

    fn culprit_mut(&mut self) -> Option<&mut TaskName> {
        match self {
            Self::HostOrInterruptsOff { task, .. }
            | Self::InterruptsOff { task, .. }
            | Self::TimerThread { task }
            | Self::HigherPriority { task }
            | Self::EqualPriority { task }
            | Self::FairShare { task }
            | Self::NotPreempted { task, .. }
            | Self::Throttled { task }
            | Self::FairServer { task } => Some(task),
            Self::OtherTimers { armer, .. } => Some(armer),
            Self::Ipi { sender } | Self::Stopped { sender } => sender.as_mut(),
            _ => None,
        }
    }

    /// As rows of the table have it: threads of one program and priority are one, where their
    /// programs are not known those of one name, and so are the workers of the kernel. Those of the
    /// measurement itself are few and stay apart. The number comes back with [`Self::with_tid`].
    #[must_use]
    pub fn grouped(mut self, programs: &ThreadPrograms) -> Self {
        if let Self::HostOrInterruptsOff { task, at, inside } = &mut self {
            // Whether an address means something shows when it comes again; until then who ran is
            // who happened to run.
            (*task, *at, *inside) = (TaskName::default(), 0, 0);
        }
        if let Self::Frequency { usual_khz, khz } = &mut self {
            // Some drivers change it by steps too small to be causes of their own.
            for khz in [usual_khz, khz] {
                *khz = (*khz).max(1).div_ceil(STEP_KHZ).saturating_mul(STEP_KHZ);
            }
        }
        let Some(task) = self.culprit_mut().filter(|task| task.tid != 0) else { return self };
        let program = programs.find(task.tid);
        match program.map(|program| (program.owner, program.pid)) {
            Some((ProgramOwner::Measurement, _)) => return self,
            Some((ProgramOwner::Stranger, pid)) if pid != task.tid => {
                task.name = program.map_or(task.name, |program| program.name);
            }
            _ if task.name.as_bytes().starts_with(b"kworker/") => {
                task.name = ShortName::new(b"kworker");
            }
            _ => {}
        }
        task.tid = 0;
        self
    }

    /// With the number of the only thread that a row stands for.
    #[must_use]
    pub fn with_tid(mut self, tid: u32) -> Self {
        if let Some(task) = self.culprit_mut().filter(|task| !task.name.as_bytes().is_empty()) {
            task.tid = tid;
        }
        self
    }

    /// With the addresses of functions that a capture has in place of the kernel's.
    pub(crate) fn renamed(mut self, mut renamed: impl FnMut(CodeAddress) -> CodeAddress) -> Self {
        let address = match &mut self {
            Self::HostOrInterruptsOff { at, inside, .. } => {
                // Whether it comes again is decided.
                *at = 0;
                Some(inside)
            }
            Self::InterruptsOff { inside, .. } => Some(inside),
            Self::OtherTimers { function, .. } => Some(function),
            Self::NotPreempted { place, .. } => place.address_mut(),
            _ => None,
        };
        if let Some(address) = address.filter(|address| **address != 0) {
            *address = renamed(*address);
        }
        self
    }

    /// The cause of a thread that was passed over, where that was throttling.
    pub(crate) fn throttled(self) -> Self {
        match self {
            Self::FairServer { task } => Self::Throttled { task },
            other => other,
        }
    }

    /// The cause that is left where no more than chance shows that the CPU did not run.
    pub(crate) const fn unconfirmed(self) -> Self {
        match self {
            Self::HostOrFirmware => Self::NoEvent,
            other => other,
        }
    }

    /// The cause that is left where other evidence shows that the CPU did not run.
    pub(crate) const fn confirmed(self) -> Self {
        match self {
            Self::NoEvent => Self::HostOrFirmware,
            other => other,
        }
    }

    /// Returns true where no event shows who had the CPU, or that it ran.
    pub(crate) const fn is_without_events(&self) -> bool {
        matches!(self, Self::HostOrFirmware | Self::NoEvent)
    }

    /// The work of a late thread itself, in this mode.
    pub(crate) const fn own(mode: TaskMode) -> Self {
        match mode {
            TaskMode::Code => Self::OwnCode,
            TaskMode::Fault => Self::OwnFault,
            TaskMode::Syscall(number) => Self::OwnSyscall { number },
        }
    }

    /// Returns true where it can be the main cause of a wake.
    pub(crate) const fn is_nameable(&self) -> bool {
        !matches!(self, Self::NormalPath | Self::NoSingle)
    }

    /// One line that names it, with the words of the machine.
    #[must_use]
    pub fn name(&self, symbols: &SymbolMap) -> String {
        self.name_by(symbols, |task| Who(task).to_string())
    }

    /// As [`Self::name`], where `who` has the words for a thread.
    pub(crate) fn name_by(&self, symbols: &SymbolMap, who: impl Fn(TaskName) -> String) -> String {
        let function = |address: CodeAddress| match symbols.name(address) {
            Some(name) => name.to_owned(),
            None if address == 0 => "an unnamed function".to_owned(),
            None => format!("{address:#x}"),
        };
        match *self {
            Self::NormalPath => "normal path of this machine".to_owned(),
            Self::TimerSlack => "timer slack".to_owned(),
            Self::IdleExit { state: None } => "exit from idle".to_owned(),
            Self::IdleExit { state: Some(state) } => format!("exit from idle state {state}"),
            Self::HostOrFirmware => "host or firmware took the CPU".to_owned(),
            Self::NoEvent => "no event in between".to_owned(),
            Self::HostOrInterruptsOff { task, inside, .. } if inside != 0 => {
                format!("host, or interrupts off in {} of {}", function(inside), who(task))
            }
            Self::HostOrInterruptsOff { task, .. } if task == TaskName::default() => {
                "host, or interrupts off".to_owned()
            }
            Self::HostOrInterruptsOff { task, .. } => {
                format!("host, or interrupts off under {}", who(task))
            }
            Self::Frequency { usual_khz, khz } => {
                let (usual, now) = (usual_khz / 1_000, khz / 1_000);
                format!("the CPU ran at {now} MHz, where {usual} MHz are usual")
            }
            Self::InterruptsOff { task, inside } => {
                format!("interrupts off in {} of {}", function(inside), who(task))
            }
            Self::HardIrq { name, irq } => format!("interrupt {irq} {name}"),
            Self::Softirq { number, device } if device.as_bytes().is_empty() => {
                format!("{} softirq", softirq(number))
            }
            Self::Softirq { number, device } => format!("{} softirq for {device}", softirq(number)),
            Self::Nmi => "NMI".to_owned(),
            Self::Ipi { sender: Some(sender) } => format!("interrupts sent by {}", who(sender)),
            Self::Ipi { sender: None } => "interrupts sent by an unrecorded CPU".to_owned(),
            Self::Migration => "migrated to another CPU than its timer's".to_owned(),
            Self::OtherTimers { function: called, armer } if armer == TaskName::default() => {
                format!("timers of the kernel: {}", function(called))
            }
            Self::OtherTimers { armer, .. } => format!("timers of {}", who(armer)),
            Self::TimerThread { task } => {
                format!("{} ran before the thread that serves its timer", who(task))
            }
            Self::HigherPriority { task } => format!("{} ran above", who(task)),
            Self::EqualPriority { task } => format!("{} ran at the same priority", who(task)),
            Self::FairShare { task } => format!("{} had its turn", who(task)),
            Self::NotPreempted { task, place } => {
                let inside = match place {
                    KernelPlace::Unknown => String::new(),
                    KernelPlace::Syscall(address) => format!(" in {}()", call(&function(address))),
                    KernelPlace::Exception(address) => format!(" in {}", function(address)),
                    KernelPlace::KernelThread(address) | KernelPlace::Work(address) => {
                        format!(" in {}", function(address))
                    }
                };
                format!("{} was not preempted{inside}", who(task))
            }
            Self::Throttled { task } if task.tid == 0 && task.name.as_bytes().is_empty() => {
                "real-time throttling, the CPU idled".to_owned()
            }
            Self::Throttled { task } => format!("real-time throttling, {} ran", who(task)),
            Self::FairServer { task } => format!("fair server ran {}", who(task)),
            Self::Stopped { sender: Some(sender) } => format!("stopped by {}", who(sender)),
            Self::Stopped { sender: None } => "stopped by a signal".to_owned(),
            Self::OwnCode => "its own code".to_owned(),
            Self::OwnSyscall { number } => match symbols.call(number) {
                Some(name) => format!("its own {name}()"),
                None => format!("its own system call {number}"),
            },
            Self::OwnFault => "its own page faults".to_owned(),
            Self::OwnWait { is_blocked, call } => {
                let inside = call.map(|number| match symbols.call(number) {
                    Some(name) => format!(" in {name}()"),
                    None => format!(" in system call {number}"),
                });
                let awaited = if is_blocked { "a device or lock" } else { "something else" };
                format!("its own wait for {awaited}{}", inside.unwrap_or_default())
            }
            Self::Follows { kind } => {
                format!("consequence of the late wake before ({})", kind.word())
            }
            Self::NoSingle => "no single cause".to_owned(),
            Self::Unexplained(Unexplained::Lost) => "unexplained: events were lost".to_owned(),
            Self::Unexplained(Unexplained::Hole) => {
                "unexplained: a switch was not recorded".to_owned()
            }
            Self::Unexplained(Unexplained::Unrecorded) => "unexplained: not recorded".to_owned(),
            Self::Unexplained(_) => "unexplained".to_owned(),
        }
    }
}

/// The certainty of a rule, which is that of its kind of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// No cause was found, so that none is certain.
    Open,
    /// Other causes fit nearly as well.
    Weak,
    /// The evidence points there; its opposite was seen too.
    Fair,
    /// Two kinds of evidence agree.
    Strong,
    /// Events on both sides show it.
    Certain,
}

impl Certainty {
    /// As a number, 0..1.
    #[must_use]
    pub const fn confidence(self) -> f64 {
        match self {
            Self::Open => 0.0,
            Self::Weak => 0.4,
            Self::Fair => 0.7,
            Self::Strong => 0.9,
            Self::Certain => 0.99,
        }
    }
}

/// The name of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleId {
    /// Time that wakes on time take too.
    Normal,
    /// Nothing is known of it.
    Unseen,
    /// A signal stopped it.
    Stopped,
    /// Before the latest expiry that was allowed.
    Slack,
    /// The interrupt that brings its waking to its CPU.
    OwnIpi,
    /// The way to another CPU than the one of its timer.
    Migration,
    /// The same, where a switch on that CPU was not recorded.
    MigrationUnseen,
    /// An interrupt with a name.
    Interrupt,
    /// The kernel's own part of the way, longer in proportion to a lower frequency.
    SlowClock,
    /// Its own timer's function stood still, and the CPU did not run.
    CallbackStallConfirmed,
    /// Its own timer's function stood still.
    CallbackStall,
    /// Its own timer's function.
    OwnCallback,
    /// Another timer's function.
    OtherTimer,
    /// Between two functions of timers.
    BetweenTimers,
    /// The timer interrupt stood still, and the CPU did not run.
    TimerStallConfirmed,
    /// The timer interrupt stood still.
    TimerStall,
    /// The timer interrupt.
    TimerInterrupt,
    /// Another thread ran before the kernel's that serves the timer.
    TimerThread,
    /// A short gap beside an interrupt from another CPU.
    IpiGap,
    /// Idle for longer than leaving its state takes, and the CPU did not run.
    IdleStallConfirmed,
    /// Idle for longer than leaving its state takes.
    IdleStall,
    /// Idle until the timer came.
    IdleExit,
    /// The timer found a program's own code, and a second kind of evidence agrees.
    UserStallConfirmed,
    /// The timer found a program's own code.
    UserStall,
    /// The timer found the kernel, and the CPU did not run.
    KernelStallConfirmed,
    /// The timer found the end of a section with interrupts off.
    Enabling,
    /// The timer found kernel code; decided by whether the address comes again.
    KernelGap,
    /// Nothing shows what the timer found.
    UnknownGap,
    /// The switch to it.
    Switch,
    /// The thread that ran is above.
    Higher,
    /// The thread that ran is its equal.
    Equal,
    /// The thread that ran is an ordinary one as it is.
    Fair,
    /// The scheduler chose a lower one, and the timer that ends throttling let it run.
    Unthrottled,
    /// The scheduler chose an ordinary thread, on a kernel that reserves time for those.
    FairServer,
    /// The scheduler chose a lower one.
    PassedOver,
    /// The thread that ran is below, and the scheduler did not choose anew.
    NotPreempted,
    /// The wake before was late by more than this one's own delay.
    Follows,
    /// Its own doing.
    Own,
    /// None fits.
    NoRule,
    /// The address of a gap came at least twice, which a host does not do.
    RepeatedAddress,
    /// No event shows it, but of the firmware's interrupts at least as many were counted as wakes
    /// that it made late.
    CountedInterrupts,
    /// Its own code ran, but of its CPU time more than half is missing.
    OwnStall,
    /// It ran, has nothing to do in its cycles, and no event came.
    OwnGap,
    /// It was in a call that only sleeps, ran there for longer than that takes, and no event came.
    SleepCallGap,
}

impl RuleId {
    /// The rule that is left where its second kind of evidence is no more than chance.
    pub(crate) const fn unconfirmed(self) -> Self {
        match self {
            Self::CallbackStallConfirmed => Self::CallbackStall,
            Self::TimerStallConfirmed => Self::TimerStall,
            Self::IdleStallConfirmed => Self::IdleStall,
            Self::UserStallConfirmed => Self::UserStall,
            Self::KernelStallConfirmed => Self::UnknownGap,
            other => other,
        }
    }

    /// Its name in results; stable.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Unseen => "unseen",
            Self::Stopped => "stopped",
            Self::Slack => "slack",
            Self::OwnIpi => "own-ipi",
            Self::Migration => "migration",
            Self::MigrationUnseen => "migration-unseen",
            Self::Interrupt => "interrupt",
            Self::SlowClock => "slow-clock",
            Self::CallbackStallConfirmed => "callback-stall-confirmed",
            Self::CallbackStall => "callback-stall",
            Self::OwnCallback => "own-callback",
            Self::OtherTimer => "other-timer",
            Self::BetweenTimers => "between-timers",
            Self::TimerStallConfirmed => "timer-stall-confirmed",
            Self::TimerStall => "timer-stall",
            Self::TimerInterrupt => "timer-interrupt",
            Self::TimerThread => "timer-thread",
            Self::IpiGap => "ipi-gap",
            Self::IdleStallConfirmed => "idle-stall-confirmed",
            Self::IdleStall => "idle-stall",
            Self::IdleExit => "idle-exit",
            Self::UserStallConfirmed => "user-stall-confirmed",
            Self::UserStall => "user-stall",
            Self::KernelStallConfirmed => "kernel-stall-confirmed",
            Self::Enabling => "enabling",
            Self::KernelGap => "kernel-gap",
            Self::UnknownGap => "unknown-gap",
            Self::Switch => "switch",
            Self::Higher => "higher",
            Self::Equal => "equal",
            Self::Fair => "fair",
            Self::Unthrottled => "unthrottled",
            Self::FairServer => "fair-server",
            Self::PassedOver => "passed-over",
            Self::NotPreempted => "not-preempted",
            Self::Follows => "follows",
            Self::Own => "own",
            Self::NoRule => "no-rule",
            Self::RepeatedAddress => "repeated-address",
            Self::CountedInterrupts => "counted-interrupts",
            Self::OwnStall => "own-stall",
            Self::OwnGap => "own-gap",
            Self::SleepCallGap => "sleep-call-gap",
        }
    }
}

/// The name of a system call's function without the prefix of its architecture.
fn call(function: &str) -> &str {
    let short = function.rsplit_once("_sys_").map_or(function, |(_, name)| name);
    short.strip_prefix("ksys_").unwrap_or(short)
}

/// The kernel's name of a soft interrupt (`softirq_to_name`, kernel/softirq.c).
#[must_use]
pub const fn softirq(number: u8) -> &'static str {
    match number {
        0 => "HI",
        1 => "TIMER",
        2 => "NET_TX",
        3 => "NET_RX",
        4 => "BLOCK",
        5 => "IRQ_POLL",
        6 => "TASKLET",
        7 => "SCHED",
        8 => "HRTIMER",
        9 => "RCU",
        _ => "unknown",
    }
}

/// A thread in a sentence: name, policy's class with its priority, number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who(pub TaskName);

impl fmt::Display for Who {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(task) = self;
        if task.name.as_bytes().is_empty() {
            write!(out, "thread {}", task.tid)?;
            return Ok(());
        }
        write!(out, "{} ({}", task.name, Priority(task.kernel_priority))?;
        if task.tid == 0 { out.write_str(")") } else { write!(out, ", {})", task.tid) }
    }
}

/// A priority as the kernel counts, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Priority(pub(crate) i32);

impl fmt::Display for Priority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            i32::MIN..0 => write!(out, "deadline or stop class"),
            0..100 => write!(out, "priority {}", 99 - self.0),
            _ => write!(out, "nice {}", self.0.saturating_sub(120)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::ThreadProgram;
    use std::collections::BTreeSet;

    fn task(name: &[u8], tid: u32, kernel_priority: i32) -> TaskName {
        TaskName { tid, name: ShortName::new(name), kernel_priority }
    }

    #[test]
    fn every_kind_has_its_own_word() {
        let words: BTreeSet<&str> = CauseKind::ALL.iter().map(|kind| kind.word()).collect();
        assert_eq!(words.len(), CauseKind::ALL.len());
        let kinds: BTreeSet<CauseKind> = CauseKind::ALL.into_iter().collect();
        assert_eq!(kinds.len(), CauseKind::ALL.len());
    }

    #[test]
    fn certainties_are_those_of_the_design() {
        let numbers = [Certainty::Certain, Certainty::Strong, Certainty::Fair, Certainty::Weak]
            .map(Certainty::confidence);
        assert_eq!(numbers, [0.99, 0.9, 0.7, 0.4]);
        assert_eq!(Certainty::Open.confidence(), 0.0);
        assert!(Certainty::Open < Certainty::Weak && Certainty::Strong < Certainty::Certain);
    }

    #[test]
    fn rows_are_by_name_and_priority() {
        let none = &ThreadPrograms::default();
        let first = LateCause::HigherPriority { task: task(b"kworker/0:1", 5, 9) };
        let second = LateCause::HigherPriority { task: task(b"kworker/1:2", 6, 9) };
        assert_eq!(first.grouped(none), second.grouped(none));
        let other = LateCause::HigherPriority { task: task(b"hog", 6, 9) };
        assert_ne!(first.grouped(none), other.grouped(none));
        assert_eq!(other.grouped(none).with_tid(6), other);
    }

    #[test]
    fn threads_of_one_program_are_one_row_whatever_their_names() {
        let program = |pid, name: &[u8], owner| {
            Some(ThreadProgram { pid, name: ShortName::new(name), owner })
        };
        let programs = ThreadPrograms::of([5, 6, 7, 8, 9, 10].into_iter(), |tid| match tid {
            // The first thread has renamed itself since its program was read.
            5..8 => program(5, b"rustc", ProgramOwner::Stranger),
            8 | 9 => program(8, b"punctual", ProgramOwner::Measurement),
            10 => program(3, b"punctual", ProgramOwner::Load),
            _ => None,
        });
        let row = |tid, name: &[u8]| {
            let task = task(name, tid, 120);
            LateCause::NotPreempted { task, place: KernelPlace::Unknown }.grouped(&programs)
        };
        assert_eq!(row(5, b"rustc"), row(6, b"opt cgu.3"));
        assert_eq!(row(7, b"coordinator").culprit(), Some(task(b"rustc", 0, 120)));
        assert_ne!(row(5, b"rustc"), row(11, b"rust-analyzer"), "not by how the name begins");
        let own = row(9, b"punctual-loop").culprit();
        assert_eq!(own, Some(task(b"punctual-loop", 9, 120)), "the measurement's own stay apart");
        let load = row(10, b"load-cpu").culprit();
        assert_eq!(load, Some(task(b"load-cpu", 0, 120)), "a load has its name");
    }

    #[test]
    fn threads_are_shown_with_priority_and_number() {
        assert_eq!(Who(task(b"hog", 7, 2)).to_string(), "hog (priority 97, 7)");
        assert_eq!(Who(task(b"cc1", 0, 125)).to_string(), "cc1 (nice 5)");
        assert_eq!(Who(task(b"", 12, 120)).to_string(), "thread 12");
        assert_eq!(Who(task(b"dl", 1, -1)).to_string(), "dl (deadline or stop class, 1)");
        let _ = Who(task(b"x", 1, i32::MAX)).to_string();
    }

    #[test]
    fn a_call_is_named_without_its_prefix() {
        let symbols = SymbolMap::new([(0x300, "__x64_sys_close".to_owned())]);
        let place = KernelPlace::Syscall(0x300);
        let cause = LateCause::NotPreempted { task: task(b"cat", 8, 120), place };
        assert_eq!(cause.name(&symbols), "cat (nice 0, 8) was not preempted in close()");
        assert_eq!((call("ksys_write"), call("do_sys_openat2")), ("write", "openat2"));
    }
}
