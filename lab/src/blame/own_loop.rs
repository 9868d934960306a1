//! The measurement's own loop: it wakes by a sleep, and notes its lateness with and without a
//! recording, which is its price.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use punctual::{Loop, Phase, RtThread, WaitPolicy};
use punctual_core::time::Period;
use punctual_engine::session::Refusal;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::process;
use punctual_os::scheduler::SchedPolicy;

use super::coincidence::{LateLog, SeenWake};
use crate::experiment::ExperimentEnd;

/// Wakes whose lateness is kept for the price, of each part.
const PRICE_WAKES: usize = 200_000;

/// The loop's thread at its end.
pub(crate) struct LoopEnd {
    /// Lateness before it was recorded, ns; `recorded_ns` is that while it was.
    pub(crate) unrecorded_ns: Vec<u64>,
    pub(crate) recorded_ns: Vec<u64>,
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
    let (mut unrecorded_ns, mut recorded_ns): (Vec<u64>, Vec<u64>) =
        (Vec::with_capacity(PRICE_WAKES), Vec::with_capacity(PRICE_WAKES));
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
            continue;
        }
        let is_recorded = orders.is_recorded.load(Ordering::Relaxed);
        let lateness_ns = cycle.lateness.as_ns().max(0).unsigned_abs();
        if is_recorded && orders.late.wants(lateness_ns) {
            orders.late.note(SeenWake { ran_ns: now_ns(ClockId::Monotonic), lateness_ns });
        }
        let lateness = if is_recorded { &mut recorded_ns } else { &mut unrecorded_ns };
        // Never grows: the loop does not allocate.
        if lateness.len() < lateness.capacity() {
            lateness.push(lateness_ns);
        }
    }
    let took_ns = now_ns(ClockId::Monotonic) - begun_ns;
    let used_ns = now_ns(ClockId::ThreadCpu) - cpu_ns;
    orders.stop.store(true, Ordering::Release);
    let forced = control_loop.handle().forced();
    let summary = control_loop.finish();
    Ok(LoopEnd {
        unrecorded_ns,
        recorded_ns,
        policy: summary.policy,
        refused: summary.refused,
        cpu_share: (took_ns > 0).then(|| used_ns as f64 / took_ns as f64),
        end: forced.map(ExperimentEnd::Watchdog),
    })
}
