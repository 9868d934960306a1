//! The command line as data: every subcommand and its arguments.
//!
//! For `main`, and for the man pages and completions, which are made from it. Parses and
//! validates; does nothing.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use punctual_report::Program;

use crate::command::analyse::AnalyseArgs;
use crate::command::baseline::BaselineCommand;
use crate::command::capture::CaptureArgs;
use crate::command::check::CheckArgs;
use crate::command::compare::CompareArgs;
use crate::command::completions::CompletionsArgs;
use crate::command::export::ExportArgs;
use crate::command::facts::FactsArgs;
use crate::command::impact::Impact;
use crate::command::isolate::IsolateArgs;
use crate::command::man::ManArgs;
use crate::command::measure::Measure;
use crate::command::report::ReportPageArgs;
use crate::command::reproduce::ReproduceArgs;
use crate::command::respond::RespondArgs;
use crate::command::run::RunArgs;
use crate::command::sched::SchedCommand;
use crate::command::soak::SoakArgs;
use crate::command::stimulate::StimulateArgs;
use crate::command::task::TaskCommand;
use crate::command::tune::TuneCommand;

/// The version, and the commit where this is a release build of a git clone (`build.rs`).
const VERSION: &str = env!("PUNCTUAL_VERSION");

/// The commit of such a build; empty in others.
const COMMIT: &str = env!("PUNCTUAL_COMMIT");

/// This program, as its results name it.
pub(crate) const PROGRAM: Program = Program {
    version: env!("CARGO_PKG_VERSION"),
    commit: if COMMIT.is_empty() { None } else { Some(COMMIT) },
};

/// How punctual is this machine?
///
/// Measures how late Linux wakes a periodic loop on this machine, idle and under load, and states
/// which applications that is good enough for.
#[derive(Debug, Parser)]
#[command(name = "punctual", version = VERSION, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Exit status: 0 fine; 1 a limit or claim failed; 2 could not run, or unreadable \
                  input; interrupted, with results: 130 by SIGINT, 143 by SIGTERM, 129 by SIGHUP."
)]
pub(crate) struct Cli {
    /// As root, allow writing into DIR and below although another user can change it; may be given
    /// again. Without it, results, pages, plots, baselines and campaigns are refused there. A file
    /// that is named explicitly, as by --json FILE, is always written
    #[arg(long, global = true, value_name = "DIR", display_order = 1000)]
    pub(crate) trust_directory: Vec<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure how punctual this machine is: about one minute, no options needed
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual check\n\
                       \x20 punctual check --for linuxcnc\n\
                       \x20 punctual check --for 1kHz --deadline 100us --miss 1e-4\n\
                       \x20 punctual check --period 1ms,250us -d 10min")]
    Check(CheckArgs),
    /// Run one experiment with all options
    Measure {
        #[command(subcommand)]
        experiment: Measure,
    },
    /// Repeat published measurements on this machine, and compare the results
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual reproduce maruti\n\
                       \x20 punctual reproduce --all --quick --json papers.json")]
    Reproduce(ReproduceArgs),
    /// Send stimuli to another machine, where 'punctual respond' answers, and measure its answers
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual stimulate udp:192.0.2.7:7000\n\
                       \x20 punctual stimulate serial:/dev/ttyS0 --period 10ms")]
    Stimulate(StimulateArgs),
    /// Answer the stimuli of 'punctual stimulate' on another machine
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual respond udp:0.0.0.0:7000\n\
                       \x20 punctual respond serial:/dev/ttyS0")]
    Respond(RespondArgs),
    /// Measure for days, across reboots: a campaign with bounded memory and disk space
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual soak --campaign night -d 8h\n\
                       \x20 punctual soak --show night")]
    Soak(SoakArgs),
    /// Run the tasks of a file, each as a process of its own, on one grid
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual run tasks.toml --duration 10s")]
    Run(RunArgs),
    /// Make a program in Python, shell or any other language a task of 'punctual run'
    Task {
        #[command(subcommand)]
        command: TaskCommand,
    },
    /// Run commands with a real-time policy, show and change that of threads
    Sched {
        #[command(subcommand)]
        command: SchedCommand,
    },
    /// Keep CPUs for a command as long as it runs, without a reboot; all is put back at its end
    ///
    /// Makes a control group with these CPUs (version 2: an isolated partition; version 1: one
    /// cpuset for the command and one for all others), moves interrupts, kernel work, timers and
    /// watchdogs away from them and forbids their deep idle states. What the kernel refuses is
    /// named. The command may take real-time priorities and lock its memory, as any user. Whatever
    /// ends it, the settings are put back; where this program is killed, the command ends with it
    /// and 'punctual tune revert', or the next 'punctual isolate', puts them back. A signal to end
    /// is passed on to the command; a second one kills it. The exit status is that of the command.
    /// Needs root.
    #[command(after_long_help = "Examples:\n\
                       \x20 sudo punctual isolate --cpus 3 --fifo 80 --user $USER -- ./servo\n\
                       \x20 sudo punctual isolate --cpus 2-3 -- punctual check --cpu 2")]
    Isolate(IsolateArgs),
    /// Find settings of this machine that make loops late, or that do nothing; plan better ones
    Tune {
        #[command(subcommand)]
        command: TuneCommand,
    },
    /// Analyse recorded data without measuring
    #[command(visible_alias = "analyze")]
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual analyse night.punctual --limit 'p99.9<50us'\n\
                       \x20 punctual analyse cyclictest.json\n\
                       \x20 punctual analyse scope.csv --column lateness:us")]
    Analyse(AnalyseArgs),
    /// Make one HTML page from one, two or many results
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual report before after -o both.html")]
    Report(ReportPageArgs),
    /// Compare results: which differences are significant, and what it takes to find them
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual compare before after --threshold 50us")]
    Compare(CompareArgs),
    /// The baselines saved by --baseline, for --against
    Baseline {
        #[command(subcommand)]
        command: BaselineCommand,
    },
    /// Show what lateness does to an application
    Impact {
        #[command(subcommand)]
        model: Impact,
    },
    /// Export samples and histograms of a result for pandas, DuckDB, HdrHistogram, Prometheus
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual export RESULT --parquet -o night.parquet")]
    Export(ExportArgs),
    /// Show the facts of this machine, each with its origin
    Facts(FactsArgs),
    /// Copy the facts of this machine as plain files, without identifying data
    Capture(CaptureArgs),
    /// Print the JSON schema of results
    Schema,
    /// Write the man pages into a directory
    Man(ManArgs),
    /// Print shell completions; 'cargo xtask install' installs them
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual completions bash \
                       > ~/.local/share/bash-completion/completions/punctual")]
    Completions(CompletionsArgs),
}
