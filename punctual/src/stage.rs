//! What executives of several threads have in common: where the guard stands, and how patient the
//! watchdog is.
//!
//! For workers, executives on several CPUs, and supervisors. Decides; starts nothing.

use punctual_core::time::Span;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::scheduler::SchedPolicy;

use crate::periodic::{BuildError, Plan};

/// The guard's priority: above every loop.
pub(crate) const GUARD: SchedPolicy = SchedPolicy::Fifo(99);

/// The SCHED_FIFO priorities that an executive may have: below the guard's.
pub(crate) struct Priorities {
    pub(crate) least: u8,
    pub(crate) most: u8,
}

impl Priorities {
    /// Of an executive with tasks in threads or processes below it.
    pub(crate) const ABOVE_TASKS: Self = Self { least: 2, most: 98 };

    /// Refuses others, with the range.
    pub(crate) fn check(&self, priority: u8) -> Result<(), BuildError> {
        let Self { least, most } = *self;
        if (least..=most).contains(&priority) {
            return Ok(());
        }
        Err(BuildError::Priority(priority, least, most))
    }
}

/// How long the executive may post nothing; `None` where it has nothing to post.
pub(crate) fn watchdog_bound(plan: &Plan) -> Option<Span> {
    let shortest_ns = (0..plan.tasks()).map(|rank| plan.period_ns(rank)).min()?;
    let ns = shortest_ns.saturating_mul(2).saturating_add(1_000_000_000);
    Some(Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX)))
}

/// The CPUs on which none of the loops is; all that are allowed where there are no others.
pub(crate) fn aside(cpus: &[u32]) -> CpuMask {
    let allowed = affinity::get(0).unwrap_or(CpuMask::EMPTY);
    let mut aside = allowed;
    cpus.iter().for_each(|&cpu| aside.remove(cpu));
    if aside.count() == 0 { allowed } else { aside }
}
