//! The command line as data: arguments in, a report out, a view printed, an exit code. Nothing else
//! of the program knows it, but for the sections of `measure`'s experiments, which views take from
//! their files; what subcommands share is in `subcommand`.
//!
//! One file a subcommand; those of two lines stand with the one they are like (`respond` with
//! `stimulate`, `capture` with `facts`; `completions`, `man` and `schema` in `generated`).

mod analyse;
mod baseline;
mod blame;
mod check;
mod compare;
mod export;
mod facts;
mod generated;
mod impact;
mod isolate;
pub(crate) mod measure;
mod report;
mod reproduce;
mod run;
mod sched;
mod soak;
mod stimulate;
mod task;
mod top;
mod tune;

use std::io::stdout;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use punctual_lab::load::run_child;

use crate::program::{LOAD_WORD, VERSION, launcher};
use crate::subcommand::{Execute, Exit};
use crate::{output, unthrottled, writing};

/// How punctual is this machine?
///
/// Measures how late Linux wakes a periodic loop on this machine, idle and under load, and states
/// which applications that is good enough for.
#[derive(Debug, Parser)]
#[command(name = "punctual", version = VERSION, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Exit status: 0 fine; 1 a limit or claim failed, or the watchdog ended the run; 2 \
                  could not run, or unreadable input; 3 nothing failed, and not everything is \
                  decided (--undecided pass or fail makes that 0 or 1); interrupted, with \
                  results, and nothing failed: 130 by SIGINT, 143 by SIGTERM, 129 by SIGHUP."
)]
pub(crate) struct Cli {
    /// As root, allow writing into DIR and below although another user can change it; may be given
    /// again. Without it, results, pages, plots, baselines and campaigns are refused there. A file
    /// that is named explicitly, as by --json FILE, is always written
    #[arg(long, global = true, value_name = "DIR", display_order = 1000)]
    trust_directory: Vec<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

impl Cli {
    /// Does what the command line says.
    ///
    /// # Errors
    /// The subcommand could not run.
    pub(crate) fn run(&self) -> Result<Exit> {
        output::Trust::set(&self.trust_directory)?;
        self.command.execute()
    }
}

/// The subcommands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Measure how punctual this machine is: some 75 seconds, no options needed
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual check\n\
                       \x20 punctual check --for linuxcnc\n\
                       \x20 punctual check --for 1kHz --deadline 100us --miss 1e-4\n\
                       \x20 punctual check --period 1ms,250us -d 10min")]
    Check(check::CheckArgs),
    /// Run one experiment with all options
    Measure(measure::MeasureArgs),
    /// Why was it late? Each late wake of a loop, or of any program that runs, with its cause
    ///
    /// Records what the kernel does on each CPU (tracepoints, by perf_event_open; nothing is
    /// changed or left behind), and books every nanosecond from a release to the first instruction
    /// after it: to interrupts, other threads, the host, the program's own faults and calls. A
    /// release is the expiry that the thread programmed itself, so that no period is asked for.
    /// Needs root, or CAP_PERFMON and a readable tracefs; without, counters say what coincided with
    /// late wakes of a loop of its own.
    #[command(after_long_help = "Examples:\n\
                       \x20 sudo punctual blame --load cpu\n\
                       \x20 sudo punctual blame --name linuxcncrsh --over 50us -d 60s\n\
                       \x20 sudo punctual blame --stop-over 500us --keep night\n\
                       \x20 punctual blame --from night --perfetto night.pftrace")]
    Blame(blame::BlameArgs),
    /// Show real-time threads as they run: how late each wakes, and what kept it
    ///
    /// Every thread with a real-time policy, of any program, unchanged: its period, its lateness
    /// from the expiry that it programmed to its first instruction, and what ran before late
    /// wakes. Times in the table without a unit are in microseconds. What it costs stands in the
    /// first line. Keys: q quit, s sort, / filter by name, f freeze, r reset, + and - what is late,
    /// arrows and Enter the causes of one thread (all events are recorded meanwhile), Esc back, ?
    /// help. Needs root, or CAP_PERFMON and a readable tracefs.
    #[command(after_long_help = "Examples:\n\
                       \x20 sudo punctual top\n\
                       \x20 sudo punctual top --name jackd --stop-over 500us\n\
                       \x20 sudo punctual top --once 3 > tables.txt")]
    Top(top::TopArgs),
    /// Measure again what papers measured: which of their claims hold on this machine
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual reproduce maruti\n\
                       \x20 punctual reproduce --all --quick --json papers.json")]
    Reproduce(reproduce::ReproduceArgs),
    /// Send stimuli to another machine, where 'punctual respond' answers, and measure its answers
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual stimulate udp:192.0.2.7:7000\n\
                       \x20 punctual stimulate serial:/dev/ttyS0 --period 10ms")]
    Stimulate(stimulate::StimulateArgs),
    /// Answer the stimuli of 'punctual stimulate' on another machine
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual respond udp:0.0.0.0:7000\n\
                       \x20 punctual respond serial:/dev/ttyS0")]
    Respond(stimulate::RespondArgs),
    /// Measure for days, across reboots: a campaign with bounded memory and disk space
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual soak --campaign night -d 8h\n\
                       \x20 punctual soak --show night")]
    Soak(soak::SoakArgs),
    /// Run the tasks of a file, each as a process of its own, on one grid
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual run tasks.toml --duration 10s")]
    Run(run::RunArgs),
    /// Make a program in Python, shell or any other language a task of 'punctual run'
    Task(task::TaskArgs),
    /// Run commands with a real-time policy, show and change that of threads
    Sched(sched::SchedArgs),
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
    Isolate(isolate::IsolateArgs),
    /// Find settings of this machine that make loops late, or that do nothing; plan better ones
    Tune(tune::TuneArgs),
    /// Analyse recorded data without measuring
    #[command(visible_alias = "analyze")]
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual analyse night.punctual --limit 'p99.9<50us'\n\
                       \x20 punctual analyse cyclictest.json\n\
                       \x20 punctual analyse scope.csv --column lateness:us")]
    Analyse(analyse::AnalyseArgs),
    /// Make one HTML page from one, two or many results
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual report before after -o both.html")]
    Report(report::ReportPageArgs),
    /// Compare results: which differences are significant, and what it takes to find them
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual compare before after --threshold 50us")]
    Compare(compare::CompareArgs),
    /// The baselines saved by --baseline, for --against
    Baseline(baseline::BaselinesArgs),
    /// Show what lateness does to an application
    Impact(impact::ImpactArgs),
    /// Export samples and histograms of a result for pandas, DuckDB, HdrHistogram, Prometheus
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual export RESULT --parquet -o night.parquet")]
    Export(export::ExportArgs),
    /// Show the facts of this machine, each with its origin
    Facts(facts::FactsArgs),
    /// Copy the facts of this machine as plain files, without identifying data
    Capture(facts::CaptureArgs),
    /// Print the JSON schema of results
    Schema,
    /// Write the man pages into a directory
    Man(generated::ManArgs),
    /// Print shell completions; 'cargo xtask install' installs them
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual completions bash \
                       > ~/.local/share/bash-completion/completions/punctual")]
    Completions(generated::CompletionsArgs),
}

impl Execute for Command {
    fn execute(&self) -> Result<Exit> {
        match self {
            Self::Check(args) => args.execute(),
            Self::Measure(args) => writing::finish(args.measurement()?),
            Self::Blame(args) => args.execute(),
            Self::Top(args) => args.execute(),
            Self::Reproduce(args) => reproduce::run(args),
            Self::Stimulate(args) => args.execute(),
            Self::Respond(args) => args.execute(),
            Self::Soak(args) => args.execute(),
            Self::Run(args) => args.execute(),
            Self::Task(args) => args.execute(),
            Self::Sched(args) => args.execute(),
            Self::Isolate(args) => args.execute(),
            Self::Tune(args) => args.execute(),
            Self::Analyse(args) => args.execute(),
            Self::Report(args) => args.execute(),
            Self::Compare(args) => args.execute(),
            Self::Baseline(args) => args.execute(),
            Self::Impact(args) => args.execute(),
            Self::Export(args) => args.execute(),
            Self::Facts(args) => args.execute(),
            Self::Capture(args) => args.execute(),
            Self::Schema => generated::schema(),
            Self::Man(args) => args.write(Cli::command()),
            Self::Completions(args) => args.print(Cli::command()),
        }
    }
}

/// Runs what this program starts itself as, by a first argument that is for nobody else: a load, or
/// the process that puts throttling back. `None` where the arguments are a command line.
pub(crate) fn as_helper(words: &[String]) -> Option<ExitCode> {
    let (word, rest) = words.split_first()?;
    if word == LOAD_WORD {
        // Before anything else of the program: a load sets up its own process.
        return Some(ExitCode::from(run_child(rest, &launcher(), &mut stdout().lock())));
    }
    (word == unthrottled::WORD).then(|| unthrottled::run(rest))
}
