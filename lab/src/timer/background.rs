//! What runs on the CPU while the timer is waited for.
//!
//! A thread of SCHED_OTHER that looks at its order now and then; without one it sleeps.

use std::sync::atomic::{AtomicU64, Ordering};

use punctual::session::ThreadSession;
use punctual_os::cycles::{self, Serialise};
use punctual_os::futex::{self, Scope};
use punctual_os::scheduler::SchedPolicy;

/// The work behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Nothing: the CPU is idle, or does what others want.
    None,
    /// A loop of NOPs.
    Nop,
    /// A loop of SERIALIZE (AArch64: ISB), which waits for all before it.
    Serialize,
    /// A loop of CPUID (AArch64: ISB and DSB), which in a virtual machine goes to the host.
    Cpuid,
}

/// All of them.
pub(super) const ALL: [Background; 4] =
    [Background::None, Background::Nop, Background::Serialize, Background::Cpuid];

impl Background {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Nop => "nop",
            Self::Serialize => "serialize",
            Self::Cpuid => "cpuid",
        }
    }

    /// Whether the processor has its instruction.
    pub fn is_supported(self) -> bool {
        self != Self::Serialize || Serialise::detect().is_some()
    }
}

/// The order for the thread: which work, from 0 on; one beyond all of them ends it.
#[derive(Debug, Default)]
pub(super) struct Order(AtomicU64);

impl Order {
    /// Gives another one.
    pub(super) fn give(&self, background: Option<Background>) {
        let at = ALL.iter().position(|of| Some(*of) == background).unwrap_or(ALL.len());
        self.0.store(at as u64, Ordering::Release);
        let _woken = futex::wake(&self.0, 1, Scope::Process);
    }

    /// Works on `cpu` until it is to end.
    pub(super) fn obey(&self, cpu: u32) {
        let _session = ThreadSession::enter(Some(cpu), SchedPolicy::Other);
        let serialise = Serialise::detect();
        loop {
            let order = self.0.load(Ordering::Acquire);
            let Some(background) = usize::try_from(order).ok().and_then(|at| ALL.get(at)) else {
                return;
            };
            match (background, serialise) {
                (Background::Nop, _) => cycles::idle_work(),
                (Background::Serialize, Some(serialise)) => serialise.run(),
                (Background::Cpuid, _) => cycles::serialise_heavily(),
                _ => futex::wait(&self.0, order as u32, Scope::Process),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_takes_every_order_and_ends_by_the_last() {
        let order = Order::default();
        std::thread::scope(|scope| {
            let working = scope.spawn(|| order.obey(punctual_os::affinity::current_cpu()));
            for background in ALL.into_iter().filter(|of| of.is_supported()) {
                order.give(Some(background));
                std::thread::yield_now();
            }
            order.give(None);
            working.join().expect("no panic");
        });
    }
}
