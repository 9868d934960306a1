//! Arguments of `punctual sched` and `punctual isolate`. Parses and validates; does nothing.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::StateArgs;
use crate::parse;

/// `punctual sched`.
#[derive(Debug, Subcommand)]
pub(crate) enum SchedCommand {
    /// Run a command with a scheduling policy, on CPUs, as a user
    ///
    /// The policy and the CPUs are those of the command and of what it starts. Where the kernel
    /// refuses one of them, the command is not run, and the reason is printed with the way out. As
    /// another user, the environment stays as it is. The exit status is that of the command.
    #[command(after_long_help = "Examples:\n\
                       \x20 sudo punctual sched run --fifo 80 --cpu 3 --user $USER -- ./servo\n\
                       \x20 sudo punctual sched run --deadline 200us:1ms:1ms -- ./loop")]
    Run(SchedRunArgs),
    /// Change the policy and the CPUs of threads that run
    #[command(after_long_help = "Examples:\n\
                       \x20 sudo punctual sched set --fifo 80 --cpu 3 --threads 1234\n\
                       \x20 sudo punctual sched set --other --children 1234")]
    Set(SchedSetArgs),
    /// Show policy, priority and CPUs of a process's threads [default: of all real-time threads]
    Show(SchedShowArgs),
}

/// A scheduling policy; at most one.
#[derive(Clone, Copy, Debug, Default, Args)]
#[group(multiple = false)]
pub(crate) struct PolicyArgs {
    /// SCHED_FIFO with this priority, 1 to 99: runs until it waits
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) fifo: Option<u8>,
    /// SCHED_RR with this priority, 1 to 99: as FIFO, in turns with equals
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) rr: Option<u8>,
    /// SCHED_DEADLINE: RUNTIME of each PERIOD, had by DEADLINE; RUNTIME:PERIOD where both are one
    #[arg(long, value_name = "RUNTIME:DEADLINE:PERIOD", value_parser = deadline)]
    pub(crate) deadline: Option<DeadlineArg>,
    /// SCHED_OTHER, the usual one
    #[arg(long)]
    pub(crate) other: bool,
}

/// What SCHED_DEADLINE takes, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeadlineArg {
    pub(crate) runtime_ns: u64,
    pub(crate) deadline_ns: u64,
    pub(crate) period_ns: u64,
}

fn deadline(text: &str) -> Result<DeadlineArg, String> {
    let parts: Result<Vec<u64>, String> = text
        .split(':')
        .map(|part| parse::duration(part).map(|of| of.0.as_ns().unsigned_abs()))
        .collect();
    let (runtime_ns, deadline_ns, period_ns) = match parts?.as_slice() {
        [runtime, period] => (*runtime, *period, *period),
        [runtime, deadline, period] => (*runtime, *deadline, *period),
        _ => return Err("write RUNTIME:PERIOD or RUNTIME:DEADLINE:PERIOD".to_owned()),
    };
    if runtime_ns > deadline_ns || deadline_ns > period_ns {
        return Err("runtime, deadline and period must not get smaller in that order".to_owned());
    }
    Ok(DeadlineArg { runtime_ns, deadline_ns, period_ns })
}

/// What is to be set.
#[derive(Clone, Debug, Args)]
pub(crate) struct SchedArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// The nice value of SCHED_OTHER, -20 to 19; the lower, the larger its share
    #[arg(
        long,
        value_name = "NICE",
        requires = "other",
        default_value = "0",
        allow_hyphen_values = true,
        value_parser = clap::value_parser!(i8).range(-20..=19)
    )]
    pub(crate) nice: i8,
    /// What it starts begins as SCHED_OTHER
    #[arg(long)]
    pub(crate) reset_on_fork: bool,
    /// Run on these CPUs only, as the kernel lists them: 3, 0-1
    #[arg(long, value_name = "LIST")]
    pub(crate) cpu: Option<String>,
}

/// `punctual sched run`.
#[derive(Debug, Args)]
pub(crate) struct SchedRunArgs {
    #[command(flatten)]
    pub(crate) sched: SchedArgs,
    /// Run the command as this user, with the groups of that user; needs root
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The file of a control group's members, and the process that has to live as long: what
    /// 'punctual isolate' says
    #[arg(long, hide = true, num_args = 2, value_names = ["FILE", "PID"])]
    pub(crate) isolated: Option<Vec<String>>,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// `punctual isolate`.
#[derive(Debug, Args)]
pub(crate) struct IsolateArgs {
    /// The CPUs to keep for the command, as the kernel lists them: 3, 2-3,7
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: String,
    /// SCHED_FIFO with this priority, 1 to 99: runs until it waits
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) fifo: Option<u8>,
    /// Run the command as this user, with the groups of that user
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) state: StateArgs,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// `punctual sched set`.
#[derive(Debug, Args)]
pub(crate) struct SchedSetArgs {
    #[command(flatten)]
    pub(crate) sched: SchedArgs,
    /// Change all threads of each process
    #[arg(long, short)]
    pub(crate) threads: bool,
    /// Change also the processes that it started, and those that they started
    #[arg(long)]
    pub(crate) children: bool,
    /// Processes or threads, by number
    #[arg(required = true, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pids: Vec<u32>,
}

/// `punctual sched show`.
#[derive(Debug, Args)]
pub(crate) struct SchedShowArgs {
    /// A process, by number
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,
}
