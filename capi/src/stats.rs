//! `punctual_stats` and `punctual_cycle`: what a loop did, and what a cycle is.
//!
//! For readers on any thread, who look at a page and never disturb its writer; and for the loop,
//! which fills in a cycle without allocating.

use std::ffi::c_int;

use punctual_core::stats::Counts;
use punctual_core::time::Span;
use punctual_core::wait::Stalls;
use punctual_engine::monitor::Force;

use crate::failure::Failure;
use crate::ffi;
use crate::record::{self, Record, named};

/// As in the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Cycle {
    pub(crate) size: usize,
    pub(crate) n: u64,
    pub(crate) release_ns: u64,
    pub(crate) lateness_ns: i64,
    pub(crate) missed: u64,
    pub(crate) dt_ns: u64,
    pub(crate) next_ns: u64,
    pub(crate) part: u64,
}

const _: () = assert!(size_of::<Cycle>() == 64);

// SAFETY: `repr(C)` of eight words, without padding, the size first.
unsafe impl Record for Cycle {
    const LEAST: usize = 64;
    named!("cycle");

    fn blank() -> Self {
        Self {
            size: size_of::<Self>(),
            n: 0,
            release_ns: 0,
            lateness_ns: 0,
            missed: 0,
            dt_ns: 0,
            next_ns: 0,
            part: 0,
        }
    }
}

impl Cycle {
    /// A cycle of an executive's task.
    pub(crate) fn of(cycle: &punctual_core::cycle::Cycle<'_>) -> Self {
        Self {
            size: size_of::<Self>(),
            n: cycle.n,
            release_ns: cycle.release.as_ns(),
            lateness_ns: cycle.lateness.as_ns(),
            missed: cycle.missed,
            dt_ns: ns(cycle.dt),
            next_ns: cycle.next.as_ns(),
            part: cycle.part.into(),
        }
    }
}

/// As in the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Stats {
    size: usize,
    ran: u64,
    missed: u64,
    started_late: u64,
    over_budget: u64,
    over_release: u64,
    over_deadline: u64,
    last_release_ns: u64,
    last_cycle: u64,
    min_ns: i64,
    max_ns: i64,
    mean_ns: f64,
    stalls: u64,
    longest_stall_ns: u64,
    stalled_ns: u64,
    demoted: u64,
    consistent: u32,
    forced: u32,
    censored: u64,
}

const _: () = assert!(size_of::<Stats>() == 144);

// SAFETY: `repr(C)`; 17 words and two halves of one make 144 bytes, so that there is no padding.
unsafe impl Record for Stats {
    const LEAST: usize = 136;
    named!("stats");

    fn blank() -> Self {
        Self {
            size: size_of::<Self>(),
            ran: 0,
            missed: 0,
            started_late: 0,
            over_budget: 0,
            over_release: 0,
            over_deadline: 0,
            last_release_ns: 0,
            last_cycle: 0,
            min_ns: 0,
            max_ns: 0,
            mean_ns: 0.0,
            stalls: 0,
            longest_stall_ns: 0,
            stalled_ns: 0,
            demoted: 0,
            consistent: 1,
            forced: 0,
            censored: 0,
        }
    }
}

/// A span that is not negative, as a number.
pub(crate) fn ns(span: Span) -> u64 {
    span.as_ns().max(0).unsigned_abs()
}

impl Stats {
    /// The counts of a page as C has them.
    pub(crate) fn of(counts: &Counts) -> Self {
        let releases = counts.ran.saturating_add(counts.missed);
        Self {
            ran: counts.ran,
            missed: counts.missed,
            started_late: counts.started_late,
            over_budget: counts.over_budget,
            over_release: counts.over_release,
            over_deadline: counts.over_deadline,
            last_release_ns: counts.release.as_ns(),
            last_cycle: counts.cycle,
            min_ns: counts.min.unwrap_or_default().as_ns(),
            max_ns: counts.max.unwrap_or_default().as_ns(),
            mean_ns: counts.sum_ns as f64 / releases.max(1) as f64,
            consistent: u32::from(counts.consistent),
            censored: counts.censored,
            ..Self::blank()
        }
    }

    /// These, with the way in which the watchdog ended the loop.
    pub(crate) fn with_forced(self, forced: Option<Force>) -> Self {
        let forced = match forced {
            None => 0,
            Some(Force::Demoted) => 1,
            Some(Force::NotDemoted) => 2,
            Some(Force::Starved) => 3,
            Some(Force::Blocked) => 4,
            // Stuck, and whatever has no number of its own.
            Some(_) => 5,
        };
        Self { forced, ..self }
    }

    /// These, with how often the monitor took the real-time policy of a task's thread.
    pub(crate) fn with_demotions(self, demoted: u64) -> Self {
        Self { demoted, ..self }
    }

    /// These, with the gaps in the spins of a loop.
    pub(crate) fn with_stalls(self, stalls: Stalls) -> Self {
        Self {
            stalls: stalls.count,
            longest_stall_ns: ns(stalls.longest),
            stalled_ns: ns(stalls.sum),
            ..self
        }
    }
}

#[cfg(test)]
impl Stats {
    /// Cycles.
    pub(crate) fn ran(&self) -> u64 {
        self.ran
    }
}

/// A quantile of a page: EINVAL for a share that is none, ENODATA before the first cycle.
pub(crate) fn quantile_ns(
    quantile: impl FnOnce(f64) -> Option<Span>,
    share: f64,
) -> Result<i64, Failure> {
    if !(0.0..=1.0).contains(&share) {
        return Err(Failure::invalid(format!("share must be from 0 to 1 (got {share})")));
    }
    let lateness = quantile(share).ok_or(Failure::bare(libc::ENODATA))?;
    Ok(lateness.as_ns())
}

/// Writes an empty cycle.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_cycle_init(cycle: *mut Cycle, size: usize) -> c_int {
    // SAFETY: null or `size` writable bytes, says the header.
    ffi::enter(|| unsafe { record::init(cycle, size) })
}

/// Writes empty counts.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_stats_init(stats: *mut Stats, size: usize) -> c_int {
    // SAFETY: null or `size` writable bytes, says the header.
    ffi::enter(|| unsafe { record::init(stats, size) })
}
