//! What the timer experiment gives: plain data, as results hold it.
//!
//! The doc comments are the descriptions in the schema of results.

use punctual_analysis::summary::SummaryStats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How late timers were, by path and by the work behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimerOutcome {
    /// The CPU of the thread that waits and of the work behind it.
    pub cpu: u32,
    /// The policy that the waiting thread really had: "SCHED_FIFO".
    pub policy: String,
    /// Its priority, as the kernel counts; null for SCHED_OTHER.
    pub priority: Option<u8>,
    /// One for each path, period, background and store.
    pub rows: Vec<TimerRow>,
    /// The kernel's error number where it refused SCHED_DEADLINE: 1 (EPERM) without rights or where
    /// the process may not use all CPUs of a root domain, 16 (EBUSY) where the bandwidth is taken.
    #[serde(default)]
    pub deadline_refused: Option<i32>,
}

/// One way to be started by time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimerRow {
    /// "sleep": clock_nanosleep to an instant; "timerfd"; "posix": a timer that sends a signal;
    /// "mdelay": polling, without any timer; "deadline": a sleep under SCHED_DEADLINE, pinned to no
    /// CPU, for periods of 100 µs and more.
    pub path: String,
    /// From one expiry to the next.
    pub period_ns: u64,
    /// What ran on the CPU meanwhile: "none", "nop", "serialize", "cpuid".
    pub background: String,
    /// Where stamps were stored: "array", 8 MiB that no cache keeps; "hot", 4 KiB that stay in it.
    pub store: String,
    /// Expiries that were stamped.
    pub n: u64,
    /// Expiries that passed while the thread was late.
    pub missed: u64,
    /// From the expiry to the stamp.
    pub lateness_ns: SummaryStats,
    /// CPU time of the waiting thread over wall time, in [0, 1].
    pub cpu_share: Option<f64>,
}
