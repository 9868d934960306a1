//! What `punctual measure periodic` takes, and the names of policies and ways to wait.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use punctual_lab::load::Loads;

use super::{BaselineArgs, PlanArgs, ReportArgs, RootArgs};
use crate::parse::{self, FollowName, Phase};

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

/// `punctual measure periodic`.
#[derive(Debug, Args)]
pub(crate) struct PeriodicArgs {
    /// The CPUs to measure, as the kernel lists them: 1, 0-3,5 or all [default: as check chooses]
    #[arg(long, value_name = "LIST")]
    pub(crate) cpu: Option<String>,
    /// The period; several, separated by commas, run at once on each CPU, the shortest first in
    /// priority (rate-monotonic)
    #[arg(
        long,
        default_value = "1ms",
        value_delimiter = ',',
        allow_hyphen_values = true,
        value_parser = parse::period
    )]
    pub(crate) period: Vec<parse::Duration>,
    /// How long to measure, in all
    #[arg(long, default_value = "10s", allow_hyphen_values = true, value_parser = parse::duration)]
    pub(crate) duration: parse::Duration,
    /// The scheduling policy to ask for
    #[arg(long, value_enum, default_value = "fifo")]
    pub(crate) policy: PolicyName,
    /// The priority to ask for, as the kernel counts: 98 is first; 99 is for the watchdog
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u8).range(1..=98))]
    pub(crate) priority: u8,
    /// How to wait for a release
    #[arg(long, value_enum, default_value = "sleep")]
    pub(crate) wait: WaitName,
    /// For --wait fixed: how long before the release the sleep ends [default: 125us]; for --wait
    /// rearm: the distance of the early calls
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse::duration)]
    pub(crate) margin: Option<parse::Duration>,
    /// For --wait adaptive: the share of the CPU that waiting may take
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = parse::share)]
    pub(crate) budget: f64,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC: zero, quiet (away from
    /// the kernel's tick) or a duration
    #[arg(long, default_value = "zero", allow_hyphen_values = true, value_parser = parse::phase)]
    pub(crate) phase: Phase,
    /// Lay the grid on the time of another clock than CLOCK_MONOTONIC and follow it: tai, realtime
    /// or a PTP device, /dev/ptp0; --phase is then the offset on that one
    #[arg(long, value_name = "CLOCK", value_parser = parse::follow)]
    pub(crate) follow: Option<FollowName>,
    /// What to load the machine with meanwhile, separated by commas: none, cpu, cache, memory,
    /// fork, disk, net, timer, syscall, linuxcnc, stress-ng:"ARGS"; or all, one after the other
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    pub(crate) load: Loads,
    /// Write every sample to FILE, for 'punctual analyse'
    #[arg(long, value_name = "FILE")]
    pub(crate) samples: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) root: RootArgs,
    #[command(flatten)]
    pub(crate) baseline: BaselineArgs,
}
