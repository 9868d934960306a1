//! Advice about a cause: a sentence, and the rule of `tune` that would move it.
//!
//! Rules are named by their id, as `host/src/rules` has them; a test holds the two against each
//! other.

use punctual_trace::event::TaskName;

use crate::cause::{CauseKind, LateCause, Who, softirq};
use crate::culprits::{OwnThread, RECORDER};
use crate::machine::{CapturedMachine, KernelFiles, Platform};
use crate::programs::ProgramOwner;
use crate::symbols::SymbolMap;

/// Advice about a cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CauseAdvice {
    /// One or two sentences; empty where too much was lost to advise anything.
    pub text: String,
    /// The rule of `tune` that moves it; `None` where no setting does.
    pub rule: Option<&'static str>,
}

/// The machine that the advice is for, and the place and owner of the cause.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdviceContext<'a> {
    pub(crate) machine: &'a CapturedMachine,
    pub(crate) symbols: &'a SymbolMap,
    /// The CPU that the cause was on, where it was only one.
    pub(crate) cpu: Option<u32>,
    /// The owner of the threads that it names.
    pub(crate) owner: ProgramOwner,
    /// True where the thread that it names released each of these wakes itself.
    pub(crate) is_waker: bool,
    /// The late thread's priority, as the kernel counts; `None` for several threads.
    pub(crate) late_priority: Option<i32>,
}

/// Rules of `tune` that advice names.
pub const ADVISED_RULES: &[&str] = &[
    "frequency.governor",
    "idle.cpu_dma_latency",
    "interrupts.placement",
    "interrupts.threadirqs",
    "interrupts.workqueue",
    "isolation.isolcpus",
    "isolation.nohz_full",
    "memory.compaction",
    "memory.swap",
    "rcu.nocbs",
    "risks.debug_kernel",
    "scheduler.preempt",
    "scheduler.preempt_rt",
    "throttling.fair_server",
    "throttling.rt_runtime",
    "watchdogs.nmi",
];

/// Advice about a cause, by the owner of the threads that it names.
pub(crate) fn advice(cause: &LateCause, context: AdviceContext<'_>) -> CauseAdvice {
    let named = cause.culprit();
    let (text, rule) = match (context.owner, named) {
        (ProgramOwner::Measurement, Some(task)) => (of_measurement(task, context), None),
        (ProgramOwner::Load, Some(_)) => (OWN_LOAD.to_owned(), None),
        _ => of_kind(cause, context),
    };
    CauseAdvice { text, rule }
}

/// Advice about a cause that is neither of the measurement nor of its load.
fn of_kind(cause: &LateCause, context: AdviceContext<'_>) -> Advised {
    let kind = cause.kind();
    let has_it =
        matches!(kind, CauseKind::HigherPriority | CauseKind::EqualPriority | CauseKind::FairShare);
    if let Some(task) = cause.culprit().filter(|_| has_it && context.is_waker) {
        return (of_waker(task), None);
    }
    match kind {
        CauseKind::NormalPath => (NORMAL_PATH.to_owned(), None),
        CauseKind::TimerSlack => (TIMER_SLACK.to_owned(), None),
        CauseKind::IdleExit => idle_exit(context),
        CauseKind::HostOrFirmware => host(context),
        CauseKind::NoEvent => no_event(context),
        CauseKind::HostOrInterruptsOff => (HOST_OR_INTERRUPTS_OFF.to_owned(), None),
        CauseKind::Frequency => (FREQUENCY.to_owned(), Some("frequency.governor")),
        CauseKind::InterruptsOff => interrupts_off(cause, context),
        CauseKind::HardIrq => hard_irq(cause, context),
        CauseKind::Softirq => soft_irq(cause),
        CauseKind::Nmi => (nmi(context), Some("watchdogs.nmi")),
        CauseKind::Ipi => ipi(cause, context),
        CauseKind::Migration => (MIGRATION.to_owned(), None),
        CauseKind::OtherTimers => other_timers(cause, context),
        CauseKind::TimerThread => (timer_thread(cause, context), None),
        CauseKind::HigherPriority => higher(cause, context),
        CauseKind::EqualPriority => (EQUAL_PRIORITY.to_owned(), None),
        CauseKind::FairShare => (FAIR_SHARE.to_owned(), None),
        CauseKind::NotPreempted => not_preempted(cause, context),
        CauseKind::Throttled => (throttled(context), Some("throttling.rt_runtime")),
        CauseKind::FairServer => (fair_server(context), Some("throttling.fair_server")),
        CauseKind::Stopped => stopped(cause),
        CauseKind::OwnCode => (OWN_CODE.to_owned(), None),
        CauseKind::OwnSyscall => (own_syscall(cause, context).to_owned(), None),
        CauseKind::OwnFault => (OWN_FAULT.to_owned(), Some("memory.swap")),
        CauseKind::OwnWait => (OWN_WAIT.to_owned(), None),
        CauseKind::Follows => (FOLLOWS.to_owned(), None),
        CauseKind::NoSingle => (NO_SINGLE.to_owned(), None),
        CauseKind::Unexplained => (UNEXPLAINED.to_owned(), None),
    }
}

/// The system calls by which a loop waits for its next cycle.
const WAITING_CALLS: &[&str] = &[
    "clock_nanosleep",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "futex",
    "futex_wait",
    "nanosleep",
    "pause",
    "poll",
    "ppoll",
    "pselect6",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "select",
];

/// A call that waits does no work that another thread could have.
fn own_syscall(cause: &LateCause, context: AdviceContext<'_>) -> &'static str {
    let LateCause::OwnSyscall { number } = *cause else { return OWN_SYSCALL };
    let name = context.symbols.call(number);
    if name.is_some_and(|name| WAITING_CALLS.contains(&name)) { OWN_SLEEP } else { OWN_SYSCALL }
}

/// Lowering it would make the late thread later still: it is what releases it.
fn of_waker(task: TaskName) -> String {
    format!(
        "{} wakes the late thread and works on first: give one of them another CPU, or let it do \
         less between the waking and its own wait.",
        Who(task)
    )
}

const NORMAL_PATH: &str = "Nothing: wakes on time take it too.";
const TIMER_SLACK: &str =
    "A real-time policy has no timer slack; else prctl(PR_SET_TIMERSLACK, 1).";
const HOST_OR_INTERRUPTS_OFF: &str = "Measure longer: the same address again shows interrupts that \
     are off. `punctual measure noise` shows whether this CPU stands still also where no code has \
     them off.";
const FREQUENCY: &str = "The governor lets the CPU become slower: `performance` keeps it fast, at \
     the price of power.";
const MIGRATION: &str = "Pin the thread to one CPU before its loop (sched_setaffinity, taskset, a \
     cpuset of one), and leave it there; on a CPU of nohz_full kernel.timer_migration = 0 keeps \
     its timers on it.";
const EQUAL_PRIORITY: &str = "SCHED_FIFO does not preempt equals: raise the own priority by one.";
const FAIR_SHARE: &str =
    "Both are ordinary threads: give the late one a real-time policy (SCHED_FIFO).";
const OWN_RECORDING: &str = "It reads what is recorded, and ends with it: that is the price of \
     this recording, and nothing of the machine; less of it where the reader has a CPU that is not \
     measured.";
const OWN_LOAD: &str =
    "It is the load that this measurement runs: --load none, or others, without it.";
const LOWEST_REAL_TIME: &str = "Any real-time thread runs before an ordinary one: give the late \
     one a real-time policy (SCHED_FIFO).";
const OWN_CODE: &str = "The cycle before took longer than its period: give it less work or a \
     longer period; a loop of the measurement itself has no work, so that a longer period is all.";
const OWN_SYSCALL: &str = "Its own system call ran past the release: move it to another thread.";
const OWN_SLEEP: &str = "It was on its way into its own sleep when the release came: what it did \
     before took until then, or its CPU stood still without an event. Give it less work or a \
     longer period; `punctual measure noise` shows whether the CPU stands still.";
const OWN_FAULT: &str = "Lock the memory with mlockall(MCL_CURRENT | MCL_FUTURE) and touch it \
     before the loop; no munmap, free of large blocks or fork within it.";
const OWN_WAIT: &str = "It waited for a lock, a device or another thread before it programmed its \
     timer: use locks with priority inheritance, and leave waiting to another thread.";
const FOLLOWS: &str = "Not a cause of its own: mend the cause of the wake before.";
const NO_SINGLE: &str = "Several small causes together: begin with the first of the table.";
const UNEXPLAINED: &str = "What was recorded does not explain it.";

/// SCHED_FIFO 1, as the kernel counts.
const LEAST_REAL_TIME: i32 = 98;

type Advised = (String, Option<&'static str>);

fn on_cpu(context: AdviceContext<'_>) -> String {
    context.cpu.map_or_else(|| "its CPU".to_owned(), |cpu| format!("CPU {cpu}"))
}

/// A command for this thread, in brackets; empty where several are named as one.
fn of_thread(task: TaskName, command: &str) -> String {
    match task.tid {
        0 => String::new(),
        tid => format!(" (`{command} {tid}`)"),
    }
}

/// Advice about a thread of the measurement itself.
fn of_measurement(task: TaskName, context: AdviceContext<'_>) -> String {
    match OwnThread::named(task.name) {
        OwnThread::Loop => "It is measured as well: give each loop a CPU of its own (--cpu), or \
                            loops on one CPU phases at which they do not meet (--phase)."
            .to_owned(),
        OwnThread::Recorder => OWN_RECORDING.to_owned(),
        OwnThread::Other => format!(
            "It belongs to the measurement and ends with it: measure on another CPU than {} \
             (--cpu), or let the command have one more.",
            on_cpu(context)
        ),
    }
}

fn nmi(context: AdviceContext<'_>) -> String {
    match context.machine.files.find(KernelFiles::NMI_WATCHDOG) {
        Some(path) => format!("Watchdogs and profilers use it: write 0 to {path} and end perf."),
        None => "Watchdogs and profilers use it: end perf.".to_owned(),
    }
}

fn throttled(context: AdviceContext<'_>) -> String {
    let files = [KernelFiles::GROUP_RT_RUNTIME, KernelFiles::RT_RUNTIME]
        .map(|path| context.machine.files.find(path));
    let files: Vec<&str> = files.into_iter().flatten().collect();
    let more = match files[..] {
        [] => ".".to_owned(),
        _ => format!(", or raise {}.", files.join(" or ")),
    };
    "Its group or the machine used up the real-time budget: let the loop sleep in each cycle"
        .to_owned()
        + &more
}

fn fair_server(context: AdviceContext<'_>) -> String {
    let file = context.cpu.map(|cpu| format!("{}/cpu{cpu}/runtime", KernelFiles::FAIR_SERVER_DIR));
    let more = match file.as_ref().and_then(|file| context.machine.files.find(file)) {
        Some(path) => format!(", or write 0 to {path}."),
        None => ".".to_owned(),
    };
    "Since Linux 6.12 ordinary threads that starve get 50 ms of each second: end what starves them"
        .to_owned()
        + &more
}

/// Advice about time in which no event shows who had the CPU.
fn no_event(context: AdviceContext<'_>) -> Advised {
    let guest = "Nothing shows who had the CPU: too short for CPU time to be missing, or the host. \
                 `punctual measure noise` spins on all CPUs and tells whether they stand still \
                 together.";
    let metal = "Nothing shows who had the CPU: `punctual measure noise` spins on all CPUs and \
                 tells whether they stand still together, as they do for the firmware.";
    match context.machine.platform {
        Platform::Metal => (metal.to_owned(), None),
        Platform::VirtualMachine | Platform::Unknown => (guest.to_owned(), None),
    }
}

fn idle_exit(context: AdviceContext<'_>) -> Advised {
    let guest = "The host was slow to run the idle CPU again: pin the vCPU to a CPU of its own, \
                 and raise halt_poll_ns of kvm on the host, or of haltpoll in the guest.";
    let metal = match context.machine.files.find(KernelFiles::DMA_LATENCY) {
        Some(path) => format!("The CPU left a deep idle state: hold 0 in {path} while it counts."),
        None => "The CPU left a deep idle state: switch those off while it counts.".to_owned(),
    };
    match context.machine.platform {
        Platform::VirtualMachine => (guest.to_owned(), None),
        Platform::Metal => (metal, Some("idle.cpu_dma_latency")),
        Platform::Unknown => (format!("In a virtual machine: {guest} Else: {metal}"), None),
    }
}

fn host(context: AdviceContext<'_>) -> Advised {
    let guest = "No setting of the guest changes it: on the host, pin the vCPU to a CPU of its own \
                 that nothing else uses.";
    let metal = "The firmware took the CPU: look in its setup for USB legacy support, power and \
                 thermal management, and ECC logging.";
    match context.machine.platform {
        Platform::VirtualMachine => (guest.to_owned(), None),
        Platform::Metal => (metal.to_owned(), None),
        Platform::Unknown => (format!("In a virtual machine: {guest} Else: {metal}"), None),
    }
}

fn interrupts_off(cause: &LateCause, context: AdviceContext<'_>) -> Advised {
    let LateCause::InterruptsOff { inside, .. } = *cause else { return (String::new(), None) };
    let function = context.symbols.name(inside).unwrap_or_default();
    let holds = |words: &[&str]| words.iter().any(|word| function.contains(word));
    if holds(&["console", "printk", "serial8250", "uart_"]) {
        let text = "A message went to a slow console with interrupts off: `dmesg -n 1`, or no \
                    console= of a serial line.";
        return (text.to_owned(), None);
    }
    if holds(&["compact", "isolate_migratepages", "isolate_freepages"]) {
        let text = "Memory was compacted with interrupts off: switch proactive compaction off.";
        return (text.to_owned(), Some("memory.compaction"));
    }
    if holds(&["lockdep", "kasan", "debug_object"]) {
        let text = "The kernel checks itself: take one without these checks.";
        return (text.to_owned(), Some("risks.debug_kernel"));
    }
    let text = "Keep this thread and what it uses off the CPU; report the function with its call \
                chain to whoever maintains it.";
    (text.to_owned(), Some("isolation.isolcpus"))
}

fn hard_irq(cause: &LateCause, context: AdviceContext<'_>) -> Advised {
    let LateCause::HardIrq { irq, .. } = *cause else { return (String::new(), None) };
    if irq == u32::MAX {
        let text = "Thermal, error and other interrupts of the processor: look into dmesg.";
        return (text.to_owned(), None);
    }
    let cpu = on_cpu(context);
    let text = match context.machine.files.find(format!("/proc/irq/{irq}/smp_affinity_list")) {
        Some(path) => format!("Move it off {cpu}: write other CPUs to {path}."),
        None => format!("Keep it off {cpu}, where its driver allows that."),
    };
    (text, Some("interrupts.placement"))
}

fn soft_irq(cause: &LateCause) -> Advised {
    let LateCause::Softirq { number, .. } = *cause else { return (String::new(), None) };
    let (text, rule) = match number {
        2 | 3 => (
            "Keep the network off this CPU: its interrupts by smp_affinity_list, and its rps_cpus \
             and xps_cpus under /sys/class/net.",
            "interrupts.placement",
        ),
        4 | 5 => (
            "Keep the disk's interrupts off this CPU by smp_affinity_list.",
            "interrupts.placement",
        ),
        1 | 8 => (
            "Timers of the kernel or of threads expire here: isolate the CPU from them.",
            "isolation.nohz_full",
        ),
        7 => ("It balances the load: isolate the CPU.", "isolation.isolcpus"),
        9 => ("Let other CPUs run its callbacks with rcu_nocbs.", "rcu.nocbs"),
        _ => (
            "Drivers ask for it: keep their interrupts off this CPU by smp_affinity_list.",
            "interrupts.placement",
        ),
    };
    let name = softirq(number);
    (format!("{name}: {text}"), Some(rule))
}

fn ipi(cause: &LateCause, context: AdviceContext<'_>) -> Advised {
    let cpu = on_cpu(context);
    let text = match cause.culprit() {
        Some(sender) => format!(
            "Isolate {cpu}, and let {} not share its memory with threads on it: munmap, mprotect \
             and membarrier interrupt every CPU that runs the same process.",
            Who(sender)
        ),
        None => format!(
            "Isolate {cpu}. Who interrupts was not recorded: ipi:ipi_send_cpu names most senders \
             (Linux 6.4 and later)."
        ),
    };
    (text, Some("isolation.isolcpus"))
}

fn other_timers(cause: &LateCause, context: AdviceContext<'_>) -> Advised {
    let LateCause::OtherTimers { function, .. } = *cause else { return (String::new(), None) };
    let name = context.symbols.name(function).unwrap_or_default();
    if name.starts_with("tick_") {
        let text = "The scheduler's tick came first: nohz_full takes it off a CPU with one thread, \
                    skew_tick moves it.";
        return (text.to_owned(), Some("isolation.nohz_full"));
    }
    match cause.culprit() {
        Some(armer) => {
            let text = format!(
                "Timers expire in order: move {} to another CPU, or give it another phase.",
                Who(armer)
            );
            (text, Some("isolation.isolcpus"))
        }
        None => {
            let text = "Timers of the kernel expired first: isolate the CPU.";
            (text.to_owned(), Some("isolation.nohz_full"))
        }
    }
}

fn timer_thread(cause: &LateCause, context: AdviceContext<'_>) -> String {
    let task = cause.culprit().unwrap_or_default();
    // The kernel counts real-time priorities down from 98; nothing is above 99.
    let above = match (99_i32.saturating_sub(task.kernel_priority), context.cpu) {
        (priority @ 1..99, Some(cpu)) => {
            let above = priority + 1;
            let raise = format!("chrt -f -p {above} $(pgrep -x ktimers/{cpu})");
            format!("raise ktimers/{cpu} above it (`{raise}`), ")
        }
        _ => String::new(),
    };
    format!(
        "With PREEMPT_RT the kernel serves timerfds and POSIX timers in a thread, ktimers/N: wait \
         by clock_nanosleep() with a real-time policy, whose timers need none, {above}or lower \
         the other one."
    )
}

fn higher(cause: &LateCause, context: AdviceContext<'_>) -> Advised {
    let Some(task) = cause.culprit() else { return (String::new(), None) };
    if task.name.as_bytes().starts_with(b"irq/") {
        let text = format!(
            "The thread of an interrupt: move that interrupt off {}, or lower its priority{}.",
            on_cpu(context),
            of_thread(task, "chrt -f -p 40")
        );
        return (text, Some("interrupts.threadirqs"));
    }
    if task.name.as_bytes().starts_with(b"migration/") {
        let text = "The kernel moved threads or stopped the CPU: pin threads once, and load no \
                    modules meanwhile.";
        return (text.to_owned(), None);
    }
    // Below the least real-time priority there are only ordinary threads.
    if task.kernel_priority == LEAST_REAL_TIME {
        // Of a capture nobody says whose it is.
        let is_reader = task.name.as_bytes() == RECORDER;
        let text = if is_reader { OWN_RECORDING } else { LOWEST_REAL_TIME };
        return (text.to_owned(), None);
    }
    let others = context.cpu.and_then(|cpu| context.machine.cpus_beside(cpu));
    let away = format!(
        "move it off {}{}",
        on_cpu(context),
        others.map_or_else(String::new, |cpus| of_thread(task, &format!("taskset -pc {cpus}")))
    );
    let text = match context.late_priority {
        // Lowered, it would still run before an ordinary thread.
        Some(priority) if priority > LEAST_REAL_TIME => format!(
            "Any real-time thread runs before an ordinary one: give the late one SCHED_FIFO above \
             it, or {away}."
        ),
        // Nothing with a real-time policy is below this one.
        Some(LEAST_REAL_TIME) => format!("Raise the late one above it, or {away}."),
        _ => format!("Lower it below the loop{}, or {away}.", of_thread(task, "chrt -f -p 1")),
    };
    // An isolated CPU is still open to who is pinned to it, as real-time threads mostly are.
    (text, None)
}

fn not_preempted(cause: &LateCause, context: AdviceContext<'_>) -> Advised {
    let is_worker =
        cause.culprit().is_some_and(|task| task.name.as_bytes().starts_with(b"kworker"));
    if is_worker {
        let text = "A worker of the kernel: keep unbound work off this CPU, or take a kernel that \
                    preempts.";
        return (text.to_owned(), Some("interrupts.workqueue"));
    }
    if context.machine.kernel.is_some_and(|kernel| kernel >= (7, 0)) {
        let text = "The kernel was in a section that it does not leave: take PREEMPT_RT, or move \
                    the thread to another CPU.";
        return (text.to_owned(), Some("scheduler.preempt_rt"));
    }
    let full = match context.machine.files.find(KernelFiles::PREEMPT) {
        Some(path) => format!("`echo full > {path}`, "),
        None => String::new(),
    };
    let text = format!(
        "This kernel does not interrupt a system call for it: {full}PREEMPT_RT, or move the thread \
         to another CPU."
    );
    (text, Some("scheduler.preempt"))
}

fn stopped(cause: &LateCause) -> Advised {
    let text = match cause.culprit() {
        Some(sender) => format!("{} stopped it by a signal: end what it is for.", Who(sender)),
        None => "A signal or a debugger stopped it.".to_owned(),
    };
    (text, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::CallNumbers;
    use crate::cause::Unexplained;
    use crate::symbols::KernelPlace;
    use punctual_trace::event::{ShortName, TaskName};
    use std::collections::BTreeSet;

    const OWNERS: [ProgramOwner; 3] =
        [ProgramOwner::Stranger, ProgramOwner::Measurement, ProgramOwner::Load];

    fn plain<'a>(symbols: &'a SymbolMap, machine: &'a CapturedMachine) -> AdviceContext<'a> {
        AdviceContext {
            machine,
            symbols,
            cpu: None,
            owner: ProgramOwner::Stranger,
            is_waker: false,
            late_priority: None,
        }
    }

    fn metal() -> CapturedMachine {
        CapturedMachine { platform: Platform::Metal, ..CapturedMachine::default() }
    }

    fn every() -> Vec<LateCause> {
        let task = TaskName { tid: 5, name: ShortName::new(b"hog"), kernel_priority: 2 };
        let place = KernelPlace::Unknown;
        let irq = |irq| LateCause::HardIrq { irq, name: ShortName::new(b"eth0") };
        let named = |name: &[u8]| TaskName { name: ShortName::new(name), ..task };
        let mut causes = vec![
            LateCause::NormalPath,
            LateCause::TimerSlack,
            LateCause::IdleExit { state: None },
            LateCause::HostOrFirmware,
            LateCause::NoEvent,
            LateCause::HostOrInterruptsOff { task, at: 1, inside: 1 },
            LateCause::Frequency { usual_khz: 3_200_000, khz: 800_000 },
            LateCause::InterruptsOff { task, inside: 0x100 },
            LateCause::InterruptsOff { task, inside: 0x200 },
            LateCause::InterruptsOff { task, inside: 0x300 },
            LateCause::InterruptsOff { task, inside: 0x10 },
            irq(9),
            irq(u32::MAX),
            LateCause::Nmi,
            LateCause::Ipi { sender: Some(task) },
            LateCause::Ipi { sender: None },
            LateCause::Migration,
            LateCause::OtherTimers { function: 0x400, armer: TaskName::default() },
            LateCause::TimerThread { task },
            LateCause::TimerThread { task: TaskName { kernel_priority: 0, ..task } },
            LateCause::OtherTimers { function: 0x10, armer: task },
            LateCause::OtherTimers { function: 0x10, armer: TaskName::default() },
            LateCause::HigherPriority { task },
            LateCause::HigherPriority { task: named(b"irq/9-eth0") },
            LateCause::HigherPriority { task: named(b"migration/0") },
            LateCause::EqualPriority { task },
            LateCause::FairShare { task },
            LateCause::NotPreempted { task, place },
            LateCause::NotPreempted { task: named(b"kworker/0:1"), place },
            LateCause::Throttled { task },
            LateCause::FairServer { task },
            LateCause::Stopped { sender: Some(task) },
            LateCause::Stopped { sender: None },
            LateCause::OwnCode,
            LateCause::OwnSyscall { number: 3 },
            LateCause::OwnFault,
            LateCause::OwnWait { is_blocked: true, call: None },
            LateCause::Follows { kind: CauseKind::HigherPriority },
            LateCause::NoSingle,
            LateCause::Unexplained(Unexplained::NoRule),
        ];
        causes.extend(
            (0..11).map(|number| LateCause::Softirq { number, device: ShortName::default() }),
        );
        causes
    }

    #[test]
    fn every_cause_has_a_sentence_and_a_rule_that_is_listed() {
        let symbols = SymbolMap::new(
            [(0x100, "console_flush_all"), (0x200, "compact_zone"), (0x300, "lockdep_x")]
                .into_iter()
                .chain([(0x400, "tick_nohz_handler")])
                .map(|(address, name)| (address, name.to_owned())),
        );
        let mut used = BTreeSet::new();
        for platform in [Platform::Unknown, Platform::VirtualMachine, Platform::Metal] {
            for kernel in [None, Some((6, 1)), Some((7, 2))] {
                let machine = CapturedMachine { platform, kernel, ..metal() };
                for (cause, owner) in
                    every().into_iter().flat_map(|cause| OWNERS.map(|o| (cause, o)))
                {
                    let context =
                        AdviceContext { cpu: Some(1), owner, ..plain(&symbols, &machine) };
                    let CauseAdvice { text, rule } = advice(&cause, context);
                    assert!(text.ends_with('.') && text.len() > 20, "{cause:?}: {text}");
                    assert!(!text.contains("  ") && !text.contains('\n'), "{text}");
                    used.extend(rule);
                }
            }
        }
        assert_eq!(used.into_iter().collect::<Vec<_>>(), ADVISED_RULES);
        let kinds: BTreeSet<CauseKind> = every().iter().map(LateCause::kind).collect();
        assert_eq!(kinds.len(), CauseKind::ALL.len());
    }

    #[test]
    fn a_file_of_the_kernel_is_named_only_where_the_machine_has_it() {
        let (symbols, task) = (SymbolMap::default(), TaskName::default());
        let place = KernelPlace::Unknown;
        let fair_server = "/sys/kernel/debug/sched/fair_server/cpu3/runtime";
        let irq = LateCause::HardIrq { irq: 9, name: ShortName::default() };
        for (cause, path) in [
            (LateCause::NotPreempted { task, place }, KernelFiles::PREEMPT),
            (LateCause::FairServer { task }, fair_server),
            (LateCause::IdleExit { state: None }, KernelFiles::DMA_LATENCY),
            (LateCause::Nmi, KernelFiles::NMI_WATCHDOG),
            (LateCause::Throttled { task }, KernelFiles::RT_RUNTIME),
            (LateCause::Throttled { task }, KernelFiles::GROUP_RT_RUNTIME),
            (irq, "/proc/irq/9/smp_affinity_list"),
        ] {
            let text = |files: KernelFiles| {
                let machine = CapturedMachine { files, ..metal() };
                advice(&cause, AdviceContext { cpu: Some(3), ..plain(&symbols, &machine) }).text
            };
            let without = text(KernelFiles::default());
            assert!(!without.contains(path), "{without}");
            let with = text(KernelFiles::new([path.to_owned()]));
            assert!(with.contains(path), "{with}");
        }
    }

    #[test]
    fn no_advice_names_a_file_that_is_not_there() {
        let symbols = SymbolMap::default();
        for cause in every() {
            for kernel in [None, Some((6, 1)), Some((7, 2))] {
                let machine = CapturedMachine { kernel, ..metal() };
                let text = advice(&cause, plain(&symbols, &machine)).text;
                let named = ["/proc/", "/sys/kernel", "/sys/fs", "/dev/"];
                assert!(named.iter().all(|path| !text.contains(path)), "{text}");
            }
        }
    }

    #[test]
    fn threads_of_the_measurement_have_advice_of_their_own() {
        let (symbols, machine) = (SymbolMap::default(), metal());
        let text = |name: &[u8], owner| {
            let task = TaskName { tid: 5, name: ShortName::new(name), kernel_priority: 9 };
            let context = AdviceContext { owner, ..plain(&symbols, &machine) };
            [
                LateCause::HigherPriority { task },
                LateCause::EqualPriority { task },
                LateCause::OtherTimers { function: 0, armer: task },
                LateCause::Ipi { sender: Some(task) },
            ]
            .map(|cause| advice(&cause, context).text)
        };
        for text in text(b"punctual-loop", ProgramOwner::Measurement) {
            assert!(text.contains("--cpu") && text.contains("--phase"), "{text}");
            assert!(!text.contains("chrt"), "{text}");
        }
        let reader = text(b"punctual-trace", ProgramOwner::Measurement);
        assert!(reader.iter().all(|text| text == OWN_RECORDING), "{reader:?}");
        let watchdog = text(b"punctual-watch", ProgramOwner::Measurement);
        assert!(watchdog[0].contains("belongs to the measurement"), "{watchdog:?}");
        assert_eq!(text(b"load-cpu", ProgramOwner::Load)[0], OWN_LOAD);
        // The loop of another measurement is a stranger's.
        assert!(text(b"punctual-loop", ProgramOwner::Stranger)[0].contains("chrt"));
    }

    #[test]
    fn who_is_above_an_ordinary_thread_alone_need_not_be_lowered() {
        let symbols = SymbolMap::default();
        let machine = metal();
        let context = plain(&symbols, &machine);
        let above = |name: &[u8], kernel_priority| {
            let task = TaskName { tid: 5, name: ShortName::new(name), kernel_priority };
            advice(&LateCause::HigherPriority { task }, context).text
        };
        assert!(above(b"hog", 97).contains("`chrt -f -p 1 5`"));
        assert_eq!(above(b"hog", 98), LOWEST_REAL_TIME);
        assert_eq!(above(b"punctual-trace", 98), OWN_RECORDING);
        let late = |priority| {
            let task = TaskName { tid: 5, name: ShortName::new(b"hog"), kernel_priority: 39 };
            let context = AdviceContext { late_priority: Some(priority), ..context };
            advice(&LateCause::HigherPriority { task }, context).text
        };
        assert!(late(97).contains("Lower it below the loop (`chrt -f -p 1 5`)"));
        assert!(late(98).starts_with("Raise the late one above it, or move it off"));
        let ordinary = late(120);
        assert!(ordinary.contains("give the late one SCHED_FIFO above it"), "{ordinary}");
        assert!(!ordinary.contains("chrt"), "{ordinary}");
    }

    #[test]
    fn a_call_that_waits_is_no_work_to_be_moved() {
        let symbols = SymbolMap::default().with_calls(CallNumbers::of_machine("x86_64"));
        let machine = metal();
        let text =
            |number| advice(&LateCause::OwnSyscall { number }, plain(&symbols, &machine)).text;
        assert_eq!([text(230), text(1)], [OWN_SLEEP, OWN_SYSCALL]);
    }

    #[test]
    fn a_command_names_the_thread_and_the_cpus_that_are_known() {
        let symbols = SymbolMap::default();
        let machine = CapturedMachine { cpus: vec![0, 1, 2, 3, 5], ..metal() };
        let above = |tid, name: &[u8], machine: &CapturedMachine, cpu| {
            let task = TaskName { tid, name: ShortName::new(name), kernel_priority: 9 };
            let context = AdviceContext { cpu, ..plain(&symbols, machine) };
            advice(&LateCause::HigherPriority { task }, context).text
        };
        assert_eq!(
            above(8413, b"hog", &machine, Some(1)),
            "Lower it below the loop (`chrt -f -p 1 8413`), or move it off CPU 1 (`taskset -pc \
             0,2-3,5 8413`)."
        );
        // Neither a literal PID nor a command without its CPUs.
        let lower = "Lower it below the loop, or move it off CPU 1.";
        assert_eq!(above(0, b"hog", &machine, Some(1)), lower);
        for (cpus, cpu) in [(vec![1], Some(1)), (Vec::new(), Some(1)), (vec![0, 1], None)] {
            let known = CapturedMachine { cpus, ..metal() };
            let text = above(8413, b"hog", &known, cpu);
            assert!(text.contains("chrt -f -p 1 8413") && !text.contains("taskset"), "{text}");
        }
        assert!(above(9, b"irq/9-eth0", &machine, Some(1)).ends_with("(`chrt -f -p 40 9`)."));
        for cause in every() {
            let text = advice(&cause, plain(&symbols, &machine)).text;
            assert!(!text.contains("PID"), "{text}");
        }
    }

    #[test]
    fn a_console_is_told_apart_from_other_code() {
        let symbols = SymbolMap::new([(0x100, "console_flush_all".to_owned())]);
        let machine = metal();
        let context = plain(&symbols, &machine);
        let task = TaskName::default();
        let text = |inside| advice(&LateCause::InterruptsOff { task, inside }, context).text;
        assert!(text(0x110).contains("dmesg -n 1"));
        assert!(text(0x10).contains("report the function"));
    }
}
