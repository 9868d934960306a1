//! Names of kernel addresses, and what a call chain shows of the code that an interrupt found.
//!
//! Whoever reads a capture brings the names (`/proc/kallsyms`, or the numbers that a reader of text
//! gave to functions); without them chains are kept but say only where, not what.

use std::sync::Arc;

use punctual_trace::event::{CodeAddress, TaskName};
use serde::{Deserialize, Serialize};

use crate::calls::CallNumbers;

/// The class of a function of the kernel, as attribution takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SymbolClass {
    /// The entry of an interrupt: frames that the interrupt itself made.
    Vector,
    /// Code that ends a section with interrupts off: a pending interrupt comes right there.
    Enabling,
    /// A system call.
    Syscall,
    /// A page fault or another exception.
    Exception,
    /// Where system calls come in: what lies inside is the call, or what it was inlined into.
    SyscallRoot,
    /// Work before a system call, as recording it, or behind it: part of no call.
    AroundSyscall,
    /// Where kernel threads begin.
    ThreadRoot,
    /// A timer's function that wakes a thread.
    WakingTimer,
    /// The timer of SCHED_DEADLINE that gives a thread its next budget.
    DeadlineTimer,
    /// The timer that gives throttled real-time threads their next budget.
    ThrottleTimer,
    /// Everything else.
    Plain,
}

impl SymbolClass {
    fn of(name: &str) -> Self {
        let begins = |heads: &[&str]| heads.iter().any(|head| name.starts_with(head));
        if begins(&["asm_sysvec_", "sysvec_", "__sysvec_", "asm_common_interrupt"])
            || begins(&["common_interrupt", "el1h_64_irq", "el0t_64_irq", "el1_interrupt"])
            || begins(&["el0_interrupt", "gic_handle_irq", "do_interrupt_handler"])
            || begins(&["call_on_irq_stack", "irq_enter", "handle_arch_irq"])
        {
            return Self::Vector;
        }
        if name.contains("_unlock_irq")
            || begins(&["finish_task_switch", "handle_softirqs", "__do_softirq", "do_softirq"])
            || begins(&["arch_local_irq_enable", "__local_bh_enable_ip"])
            // The way back from an interrupt that came right behind the section.
            || begins(&["preempt_schedule_irq", "raw_irqentry_exit", "irqentry_exit"])
        {
            return Self::Enabling;
        }
        if begins(&["__x64_sys_", "__ia32_sys_", "__arm64_sys_", "__riscv_sys_"]) {
            return Self::Syscall;
        }
        if begins(&["asm_exc_", "exc_page_fault", "do_page_fault", "el0_da", "el0_ia"]) {
            return Self::Exception;
        }
        if begins(&["syscall_trace_", "syscall_enter_from_", "syscall_exit_", "trace_sys_"])
            || begins(&[
                "exit_to_user_mode",
                "perf_trace_sys_",
                "perf_syscall_",
                "__audit_syscall_",
            ])
        {
            return Self::AroundSyscall;
        }
        match name {
            "do_syscall_64" | "x64_sys_call" | "do_syscall_x64" | "invoke_syscall"
            | "el0_svc_common" | "do_el0_svc" | "el0_svc" | "do_int80_emulation" => {
                Self::SyscallRoot
            }
            "kthread" | "ret_from_fork" | "ret_from_fork_asm" => Self::ThreadRoot,
            "hrtimer_wakeup" | "timerfd_tmrproc" | "posix_timer_fn" | "it_real_fn"
            | "timerlat_irq" => Self::WakingTimer,
            "dl_task_timer" => Self::DeadlineTimer,
            "sched_rt_period_timer" => Self::ThrottleTimer,
            _ => Self::Plain,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Symbol {
    address: CodeAddress,
    name: Box<str>,
    class: SymbolClass,
}

/// The functions of the kernel by their addresses. Copies share them: a kernel has some hundred
/// thousand.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SymbolMap {
    symbols: Arc<[Symbol]>,
    calls: Option<CallNumbers>,
}

/// The code that an interrupt found, as its call chain shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupted {
    /// There is no chain, or no name for it.
    Unknown,
    /// A program's own code: interrupts were on.
    User,
    /// The kernel.
    Kernel(InterruptedCode),
}

/// The kernel code that an interrupt found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InterruptedCode {
    /// The very address, which a section with interrupts off returns again and again.
    pub(crate) at: CodeAddress,
    /// The start of the first function that is more than the end of such a section.
    pub(crate) inside: CodeAddress,
    /// True where `at` lies in a function that ends such a section.
    pub(crate) is_enabling: bool,
}

/// The kernel code that a thread was in when it could not be preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelPlace {
    /// No chain shows it.
    Unknown,
    /// A system call, by the start of its function.
    Syscall(CodeAddress),
    /// An exception such as a page fault.
    Exception(CodeAddress),
    /// The function of a kernel thread.
    KernelThread(CodeAddress),
    /// The function that a worker runs (`workqueue_execute_start`).
    Work(CodeAddress),
}

impl KernelPlace {
    pub(crate) const fn address_mut(&mut self) -> Option<&mut CodeAddress> {
        match self {
            Self::Unknown => None,
            Self::Syscall(address)
            | Self::Exception(address)
            | Self::KernelThread(address)
            | Self::Work(address) => Some(address),
        }
    }

    /// The function's start; `None` where no chain shows it.
    #[must_use]
    pub const fn address(mut self) -> Option<CodeAddress> {
        match self.address_mut() {
            Some(address) => Some(*address),
            None => None,
        }
    }
}

/// Markers between the parts of a chain (PERF_CONTEXT_*, perf_event.h): no addresses.
const FIRST_MARKER: u64 = u64::MAX - 4094;
/// Marker of the program's own frames, which follow it (PERF_CONTEXT_USER).
const USER_MARKER: u64 = u64::MAX - 511;
/// The bit that addresses of the kernel have, where they are addresses and no numbers of names.
const KERNEL_BIT: u64 = 1 << 63;

impl SymbolMap {
    /// From addresses and names, in any order. Of one address the first name counts.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = (CodeAddress, String)>) -> Self {
        let mut symbols: Vec<Symbol> = names
            .into_iter()
            .map(|(address, name)| {
                let class = SymbolClass::of(&name);
                Symbol { address, name: name.into_boxed_str(), class }
            })
            .collect();
        symbols.sort_by_key(|symbol| symbol.address);
        symbols.dedup_by_key(|symbol| symbol.address);
        Self { symbols: symbols.into(), calls: None }
    }

    /// With the numbers that system calls have on the machine, where they are known.
    #[must_use]
    pub fn with_calls(self, calls: Option<CallNumbers>) -> Self {
        Self { calls: calls.or(self.calls), ..self }
    }

    /// The numbers that system calls have on the machine.
    pub(crate) const fn calls(&self) -> Option<CallNumbers> {
        self.calls
    }

    /// The name of a system call; `None` where no numbering is known, or none has it.
    pub(crate) fn call(&self, number: u32) -> Option<&'static str> {
        self.calls?.name(number)
    }

    /// Returns true where it has no name at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The function that holds an address: the last that begins at or before it.
    #[must_use]
    pub fn name(&self, address: CodeAddress) -> Option<&str> {
        self.find(address).map(|symbol| &*symbol.name)
    }

    /// The start of that function, or the address itself where it has no name.
    #[must_use]
    pub fn start(&self, address: CodeAddress) -> CodeAddress {
        self.find(address).map_or(address, |symbol| symbol.address)
    }

    fn find(&self, address: CodeAddress) -> Option<&Symbol> {
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        self.symbols[..behind].last()
    }

    fn class(&self, address: CodeAddress) -> SymbolClass {
        self.find(address).map_or(SymbolClass::Plain, |symbol| symbol.class)
    }

    /// True where a timer's function wakes the thread that programmed it; `None` where it has no
    /// name.
    pub(crate) fn wakes(&self, function: CodeAddress) -> Option<bool> {
        let class = self.find(function)?.class;
        Some(matches!(class, SymbolClass::WakingTimer | SymbolClass::DeadlineTimer))
    }

    /// Returns true for the function of SCHED_DEADLINE's timer.
    pub(crate) fn is_deadline_timer(&self, function: CodeAddress) -> bool {
        self.class(function) == SymbolClass::DeadlineTimer
    }

    /// Returns true for the timer of a CPU's fair server: that of SCHED_DEADLINE, programmed while
    /// a thread of another policy ran.
    pub(crate) fn is_fair_server_timer(&self, function: CodeAddress, armer: TaskName) -> bool {
        self.is_deadline_timer(function) && !armer.is_deadline()
    }

    /// Returns true for the function of a timer by which a thread itself sleeps (`hrtimer_wakeup`),
    /// or for one without a name.
    pub(crate) fn may_end_sleep(&self, function: CodeAddress) -> bool {
        self.name(function).is_none_or(|name| name == "hrtimer_wakeup")
    }

    /// Returns true for the function of the timer that ends throttling.
    pub(crate) fn is_throttle_timer(&self, function: CodeAddress) -> bool {
        self.class(function) == SymbolClass::ThrottleTimer
    }

    /// The code below the interrupt itself, by its chain, innermost first.
    pub(crate) fn interrupted(&self, chain: &[CodeAddress]) -> Interrupted {
        if chain.is_empty() || self.is_empty() {
            return Interrupted::Unknown;
        }
        let below = self.below_vector(chain);
        let Some(&at) = below.first() else { return Interrupted::User };
        let inside = below
            .iter()
            .find(|&&address| {
                !matches!(self.class(address), SymbolClass::Enabling | SymbolClass::Vector)
            })
            .map_or(at, |&address| address);
        let is_enabling = self.class(at) == SymbolClass::Enabling;
        Interrupted::Kernel(InterruptedCode { at, inside: self.start(inside), is_enabling })
    }

    /// The system call, exception or kernel thread that a chain was in.
    pub(crate) fn place(&self, chain: &[CodeAddress]) -> KernelPlace {
        let below = self.below_vector(chain);
        for (index, &address) in below.iter().enumerate() {
            let start = self.start(address);
            match self.class(address) {
                SymbolClass::Syscall => return KernelPlace::Syscall(start),
                SymbolClass::Exception => return KernelPlace::Exception(start),
                SymbolClass::SyscallRoot if index > 0 => {
                    let inside = below[index - 1];
                    return match self.class(inside) {
                        SymbolClass::AroundSyscall => KernelPlace::Unknown,
                        _ => KernelPlace::Syscall(self.start(inside)),
                    };
                }
                SymbolClass::ThreadRoot if index > 0 => {
                    return KernelPlace::KernelThread(self.start(below[index - 1]));
                }
                _ => {}
            }
        }
        KernelPlace::Unknown
    }

    /// The part of a chain that the interrupt found: all of it where no frame is an interrupt's.
    fn below_vector<'a>(&self, chain: &'a [CodeAddress]) -> &'a [CodeAddress] {
        let is_vector = |address: &CodeAddress| {
            *address >= FIRST_MARKER || self.class(*address) == SymbolClass::Vector
        };
        // A recorder may have taken the program's own frames too.
        let is_address = chain.iter().any(|&at| (KERNEL_BIT..FIRST_MARKER).contains(&at));
        let is_user = |&at: &CodeAddress| at == USER_MARKER || is_address && at < KERNEL_BIT;
        let end = chain.iter().position(is_user).unwrap_or(chain.len());
        let chain = &chain[..end];
        let Some(first) = chain.iter().position(is_vector) else { return chain };
        let count = chain[first..].iter().take_while(|address| is_vector(address)).count();
        let is_plain = |&at: &CodeAddress| {
            matches!(self.class(at), SymbolClass::Plain | SymbolClass::AroundSyscall)
        };
        if !chain[..first].iter().all(is_plain) {
            // Something else lies inside: these are not the frames of the event's own interrupt.
            return chain;
        }
        &chain[first + count..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> SymbolMap {
        let names = [
            (0x100, "_raw_spin_unlock_irqrestore"),
            (0x200, "console_flush_all"),
            (0x300, "__x64_sys_close"),
            (0x400, "asm_sysvec_apic_timer_interrupt"),
            (0x500, "sysvec_apic_timer_interrupt"),
            (0x600, "kthread"),
            (0x700, "kcompactd"),
            (0x800, "asm_exc_page_fault"),
            (0x900, "hrtimer_wakeup"),
            (0xa00, "tick_nohz_handler"),
            (0xb00, "sched_rt_period_timer"),
            (0xc00, "preempt_schedule_irq"),
            (0xd00, "irqentry_exit"),
            (0xe00, "asm_sysvec_reschedule_ipi"),
        ];
        SymbolMap::new(names.map(|(address, name)| (address, name.to_owned())))
    }

    #[test]
    fn an_address_belongs_to_the_function_before_it() {
        let map = map();
        assert_eq!(map.name(0x2ff), Some("console_flush_all"));
        assert_eq!(map.start(0x2ff), 0x200);
        assert_eq!(map.name(0xff), None);
        assert_eq!(map.start(0xff), 0xff);
        assert_eq!(map.wakes(0x900), Some(true));
        assert_eq!(map.wakes(0xa00), Some(false));
        assert_eq!(map.wakes(0x1), None);
        assert!(map.is_throttle_timer(0xb00) && !map.is_throttle_timer(0xa00));
    }

    #[test]
    fn a_chain_with_only_the_interrupt_is_a_programs_own_code() {
        let map = map();
        assert_eq!(map.interrupted(&[0x510, 0x410]), Interrupted::User);
        assert_eq!(map.interrupted(&[u64::MAX - 127, 0x510, 0x410]), Interrupted::User);
        assert_eq!(map.interrupted(&[]), Interrupted::Unknown);
        assert_eq!(SymbolMap::default().interrupted(&[0x510]), Interrupted::Unknown);
    }

    #[test]
    fn the_end_of_a_section_is_named_by_its_caller() {
        let code = InterruptedCode { at: 0x110, inside: 0x200, is_enabling: true };
        let chain = [0x510, 0x410, 0x110, 0x259, 0x310];
        assert_eq!(map().interrupted(&chain), Interrupted::Kernel(code));
        assert_eq!(map().place(&chain), KernelPlace::Syscall(0x300));
        let plain = InterruptedCode { at: 0x259, inside: 0x200, is_enabling: false };
        assert_eq!(map().interrupted(&[0x510, 0x410, 0x259]), Interrupted::Kernel(plain));
        // Another interrupt came first, and the CPU was about to switch behind it.
        let behind = InterruptedCode { at: 0xc20, inside: 0x200, is_enabling: true };
        let chain = [0x510, 0x410, 0xc20, 0xd30, 0xe10, 0x259, 0x310];
        assert_eq!(map().interrupted(&chain), Interrupted::Kernel(behind));
    }

    #[test]
    fn frames_of_the_program_are_no_kernel_code() {
        let kernel = KERNEL_BIT + 0x100_0000;
        let names = [(0, "__per_cpu_start"), (kernel, "asm_sysvec_apic_timer_interrupt")];
        let later = [(kernel + 0x100, "vfs_write"), (kernel + 0x200, "ksys_write")];
        let root = [(kernel + 0x300, "do_syscall_64")];
        let map = SymbolMap::new(
            names.into_iter().chain(later).chain(root).map(|(at, name)| (at, name.to_owned())),
        );
        assert_eq!(map.interrupted(&[kernel + 6, 0x8d2_9048, 0x7fd9]), Interrupted::User);
        assert_eq!(map.interrupted(&[kernel + 6, USER_MARKER, kernel + 0x107]), Interrupted::User);
        let call = [kernel + 6, kernel + 0x107, kernel + 0x207, kernel + 0x307, 0x7fd9];
        let found =
            InterruptedCode { at: kernel + 0x107, inside: kernel + 0x100, is_enabling: false };
        assert_eq!(map.interrupted(&call), Interrupted::Kernel(found));
        // `__x64_sys_write` was inlined: the call is what lies inside the entry of calls.
        assert_eq!(map.place(&call), KernelPlace::Syscall(kernel + 0x200));
    }

    #[test]
    fn what_is_done_around_a_system_call_is_none() {
        let names = [
            (0x100, "asm_sysvec_apic_timer_interrupt"),
            (0x200, "perf_tp_event"),
            (0x300, "syscall_trace_enter"),
            (0x400, "do_syscall_64"),
            (0x500, "ksys_write"),
        ];
        let map = SymbolMap::new(names.map(|(address, name)| (address, name.to_owned())));
        // Recording took that long, and the call had not begun.
        assert_eq!(map.place(&[0x110, 0x210, 0x310, 0x410]), KernelPlace::Unknown);
        assert_eq!(map.place(&[0x110, 0x310, 0x410]), KernelPlace::Unknown);
        assert_eq!(map.place(&[0x110, 0x210, 0x510, 0x410]), KernelPlace::Syscall(0x500));
    }

    #[test]
    fn places_are_calls_exceptions_and_kernel_threads() {
        let map = map();
        assert_eq!(map.place(&[0x410, 0x210, 0x810]), KernelPlace::Exception(0x800));
        assert_eq!(map.place(&[0x410, 0x210, 0x720, 0x610]), KernelPlace::KernelThread(0x700));
        assert_eq!(map.place(&[0x410, 0x210]), KernelPlace::Unknown);
        assert_eq!(map.place(&[]), KernelPlace::Unknown);
        assert_eq!(KernelPlace::Work(3).address(), Some(3));
    }
}
