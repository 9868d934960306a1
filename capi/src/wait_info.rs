//! `punctual_wait_info`: where releases lie, how they are approached, and what was learned.
//!
//! For callers that want to know whether the machine reaches what was aimed at, and at what price.

use std::ffi::c_int;

use punctual_core::wait::WaitStatus;
use punctual_core::wait::adaptive::LearnPhase;
use punctual_engine::quiet::Quiet;
use punctual_os::scheduler::SchedPolicy;

use crate::ffi;
use crate::record::{self, Record, named};

/// As in the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct WaitInfo {
    size: usize,
    phase_ns: u64,
    tick_ns: u64,
    clear_ns: u64,
    hop_ns: u64,
    margin_ns: u64,
    learned_cycles: u64,
    late_share: f64,
    cpu_share: f64,
    priority: i32,
    hops: u32,
    trials_late: u32,
    quiet: u32,
    learns: u32,
    calibrating: u32,
    reachable: u32,
    extrapolated: u32,
    moves: u64,
}

const _: () = assert!(size_of::<WaitInfo>() == 112);

// SAFETY: `repr(C)`; 10 words and eight halves of one make 112 bytes, so that there is no padding.
unsafe impl Record for WaitInfo {
    const LEAST: usize = 104;
    named!("wait_info", "info");

    fn blank() -> Self {
        Self {
            size: size_of::<Self>(),
            phase_ns: 0,
            tick_ns: 0,
            clear_ns: 0,
            hop_ns: 0,
            margin_ns: 0,
            learned_cycles: 0,
            late_share: 0.0,
            cpu_share: 0.0,
            priority: 0,
            hops: 0,
            trials_late: 0,
            quiet: 0,
            learns: 0,
            calibrating: 0,
            reachable: 0,
            extrapolated: 0,
            moves: 0,
        }
    }
}

impl WaitInfo {
    /// Of a wait on releases of this phase, by a thread of this policy.
    pub(crate) fn of(
        phase_ns: u64,
        quiet: Option<Quiet>,
        policy: SchedPolicy,
        WaitStatus { plan, learned, .. }: WaitStatus,
    ) -> Self {
        let mut info = Self {
            phase_ns,
            hop_ns: plan.hop_ns,
            margin_ns: plan.margin_ns,
            hops: plan.hops,
            priority: match policy {
                SchedPolicy::Fifo(priority) | SchedPolicy::RoundRobin(priority) => {
                    i32::from(priority)
                }
                _ => 0,
            },
            ..Self::blank()
        };
        if let Some(quiet) = quiet {
            (info.quiet, info.tick_ns, info.clear_ns) = (1, quiet.tick_ns, quiet.clear_ns);
        }
        if let Some(learned) = learned {
            info.learns = 1;
            info.learned_cycles = learned.cycles;
            info.trials_late = u32::try_from(learned.trials_late).unwrap_or(u32::MAX);
            (info.late_share, info.cpu_share) = (learned.late, learned.cpu);
            info.calibrating = u32::from(learned.phase == LearnPhase::Calibrating);
            info.reachable = u32::from(learned.reachable);
            info.extrapolated = u32::from(learned.extrapolated);
        }
        info
    }

    /// This, with the times that its releases were moved.
    pub(crate) fn moved(self, moves: u64) -> Self {
        Self { moves, ..self }
    }
}

/// Writes an empty one.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_wait_info_init(info: *mut WaitInfo, size: usize) -> c_int {
    // SAFETY: null or `size` writable bytes, says the header.
    ffi::enter(|| unsafe { record::init(info, size) })
}
