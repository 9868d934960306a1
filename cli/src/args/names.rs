//! The names of policies and ways to wait.

use clap::ValueEnum;

/// Scheduling policies that a loop can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// SCHED_OTHER
    Other,
    /// SCHED_FIFO
    Fifo,
    /// SCHED_RR
    Rr,
}

/// Ways to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitName {
    /// An absolute sleep: what a plain loop does
    Sleep,
    /// Sleep for a tenth of the period, then spin: the CPU is busy nine tenths of the time
    Spin,
    /// Sleep until --margin before the release, then spin
    Fixed,
    /// NIST's: look every --margin, by default as often as costs least, then spin
    Rearm,
    /// Learn how early to wake and whether to sleep in hops, within --budget
    Adaptive,
}
