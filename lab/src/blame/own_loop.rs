//! The measurement's own loop: it wakes by a sleep, and notes its lateness with and without a
//! recording, which is its price.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use punctual::{Loop, Phase, RtThread, WaitPolicy};
use punctual_core::time::Period;
use punctual_engine::session::Refusal;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::process;
use punctual_os::scheduler::SchedPolicy;

use super::blamed::MissedReleases;
use super::coincidence::{LateLog, SeenWake};
use crate::experiment::ExperimentEnd;

/// Wakes whose lateness is kept for the price, of each part.
const PRICE_WAKES: usize = 200_000;

/// Wakes of the loop, either those before it was recorded or those meanwhile.
#[derive(Default)]
pub(crate) struct PricedWakes {
    /// Lateness of each, ns.
    pub(crate) lateness_ns: Vec<u64>,
    /// Releases that were missed between them.
    pub(crate) missed: MissedReleases,
}

impl PricedWakes {
    fn with_capacity(wakes: usize) -> Self {
        Self { lateness_ns: Vec::with_capacity(wakes), missed: MissedReleases::default() }
    }

    /// A wake, and the releases that were missed since the one before it; never grows, for the loop
    /// does not allocate.
    fn push(&mut self, lateness_ns: u64, missed: u64) {
        if self.lateness_ns.len() < self.lateness_ns.capacity() {
            self.lateness_ns.push(lateness_ns);
            self.missed.releases += missed;
            self.missed.gaps += u64::from(missed > 0);
        }
    }
}

/// The loop's thread at its end.
pub(crate) struct LoopEnd {
    /// The wakes before it was recorded; `recorded` are those while it was.
    pub(crate) unrecorded: PricedWakes,
    pub(crate) recorded: PricedWakes,
    pub(super) refused: Vec<Refusal>,
    pub(super) policy: SchedPolicy,
    pub(super) cpu_share: Option<f64>,
    pub(super) end: Option<ExperimentEnd>,
}

/// The orders to the loop's thread, and its answer.
#[derive(Default)]
pub(crate) struct Orders {
    /// Its number, once it waits for its first release.
    pub(crate) tid: AtomicI32,
    /// True where its wakes are recorded now, and count.
    pub(crate) is_recorded: AtomicBool,
    /// True where its wakes do not count: events are being opened or closed.
    pub(crate) is_settling: AtomicBool,
    pub(crate) stop: AtomicBool,
    /// Late wakes, where counters are all there is.
    pub(super) late: LateLog,
}

/// A loop that wakes by a sleep and notes its lateness; on the thread that it is to have.
pub(crate) fn run_loop(
    thread: RtThread,
    period: Period,
    orders: &Orders,
) -> Result<LoopEnd, punctual::Error> {
    let [mut unrecorded, mut recorded] = [(); 2].map(|()| PricedWakes::with_capacity(PRICE_WAKES));
    // Whether the wake before this one counted as recorded, or at all.
    let mut before = None;
    let control_loop =
        Loop::builder(period).phase(Phase::Zero).thread(thread.wait(WaitPolicy::sleep())).start();
    let mut control_loop = match control_loop {
        Ok(control_loop) => control_loop,
        Err(why) => {
            orders.stop.store(true, Ordering::Release);
            return Err(why);
        }
    };
    orders.tid.store(process::tid(), Ordering::Release);
    let (cpu_ns, begun_ns) = (now_ns(ClockId::ThreadCpu), now_ns(ClockId::Monotonic));
    while let Some(cycle) = control_loop.wait() {
        if orders.stop.load(Ordering::Relaxed) {
            break;
        }
        if orders.is_settling.load(Ordering::Relaxed) {
            before = None;
            continue;
        }
        let is_recorded = orders.is_recorded.load(Ordering::Relaxed);
        let lateness_ns = cycle.lateness.as_ns().max(0).unsigned_abs();
        if is_recorded && orders.late.wants(lateness_ns) {
            orders.late.note(SeenWake { ran_ns: now_ns(ClockId::Monotonic), lateness_ns });
        }
        // Those before the first wake of a turn may have been missed in the turn before.
        let is_first = before.replace(is_recorded) != Some(is_recorded);
        let wakes = if is_recorded { &mut recorded } else { &mut unrecorded };
        wakes.push(lateness_ns, if is_first { 0 } else { cycle.missed });
    }
    let took_ns = now_ns(ClockId::Monotonic) - begun_ns;
    let used_ns = now_ns(ClockId::ThreadCpu) - cpu_ns;
    orders.stop.store(true, Ordering::Release);
    let forced = control_loop.handle().forced();
    let summary = control_loop.finish();
    Ok(LoopEnd {
        unrecorded,
        recorded,
        policy: summary.policy,
        refused: summary.refused,
        cpu_share: (took_ns > 0).then(|| used_ns as f64 / took_ns as f64),
        end: forced.map(ExperimentEnd::Watchdog),
    })
}
