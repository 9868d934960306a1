//! `punctual run`: starts the tasks that a file names, each a process of its own, and supervises
//! them.
//!
//! Reads the file, finds the programs, lets `punctual::process` do the rest, prints events to
//! standard error and a report at the end. Exit 1 when a task was given up, or stopped all.

mod cpus;
mod messages;
mod printer;
mod program;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use punctual::clocks::{MachineClock, wake_cost};
use punctual::process::{Event, Stop};
use punctual_core::time::Period;
use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;
use punctual_lab::quiet;
use punctual_lab::tasks::{FILE_MAX, GridPhase, TaskFile};
use punctual_os::signal;

use crate::args::RunArgs;
use crate::exit::Exit;
use crate::experiment::words;
use crate::output;
use crate::report::{Report, RunBody, supervised};
use printer::Printer;

/// Runs the subcommand.
pub(crate) fn run(args: &RunArgs) -> Result<Exit> {
    args.output.spare([args.file.as_path()])?;
    let shown = args.file.display();
    let tasks = TaskFile::parse(&read(&args.file)?).map_err(|why| anyhow!("{shown}: {why}"))?;
    program::check(&tasks).map_err(|why| anyhow!("{shown}: {why}"))?;
    cpus::check(&tasks).map_err(|why| anyhow!("{shown}: {why}"))?;
    let Some(shortest) = tasks.shortest() else { bail!("{shown}: no tasks") };
    let outputs = args.output.open()?;
    let (phase_ns, unquiet) = phase(&tasks, shortest)?;
    // From the socket's first moment until no task has a priority any more and all outputs are
    // safe; a second signal shortens that.
    let hold = signal::Hold::begin();
    signal::catch_stop().context("cannot catch SIGINT")?;
    // So that a loop which sleeps sees it at once.
    signal::catch_interrupt().context("cannot catch SIGURG")?;
    let ready = tasks.supervisor(phase_ns).build().map_err(|why| {
        let line = why.task().and_then(|task| tasks.line(task));
        let place = line.map_or(String::new(), |line| format!("line {line}: "));
        anyhow!("{shown}: {place}{why}")
    })?;
    let mut warnings = ready.warnings().to_vec();
    warnings.extend(unquiet);
    warnings.extend(group_budget());
    let waits = tasks.thread.wait_kind();
    let wait = waits.strategy(shortest, || wake_cost(&mut MachineClock::best()));
    let started = jiff::Timestamp::now();
    let mut refused = messages::Refusals::default();
    let mut registered = messages::Registrations::default();
    let mut printer = Printer::start()?;
    let finished = ready.run(
        wait,
        args.duration.map(|duration| duration.0),
        Stop::new(signal::stop_flag()).hurry(signal::hurry_flag()),
        &mut |event: Event| {
            refused.note(&event);
            registered.note(&event);
            printer.print(messages::line(&event));
        },
    )?;
    drop(hold);
    warnings.extend(registered.warnings());
    warnings.extend(refused.warnings(&finished));
    warnings.extend(finished.throttled.as_ref().map(words::throttled));
    warnings.extend(messages::left_out(printer.end()));
    let supervised = supervised::of(&finished, waits.name(), phase_ns);
    let mut report = Report::new("run", RunBody { supervised });
    report.envelope.started_at = Some(started.to_string());
    report.envelope.ended_by = messages::cut_short_by(&finished, args.duration.is_some());
    report.envelope.incomplete = report.envelope.ended_by.is_some();
    report.envelope.warnings = warnings;
    report.envelope.verdict.reasons = messages::reasons(&finished, &registered);
    report.envelope.verdict.ok = report.envelope.verdict.reasons.is_empty();
    super::write(&report, outputs)?;
    Ok(Exit::of(&report))
}

/// What a control group's real-time budget does, said before the run and with its result.
fn group_budget() -> Option<String> {
    let budget = words::group_budget(&MachineFacts::collect(&Root::live()))?;
    output::message(&budget);
    Some(budget)
}

/// A file, as long as one may be.
fn read(path: &Path) -> Result<Vec<u8>> {
    let cannot = || format!("cannot read {}", path.display());
    // Opening one without a writer would wait for ever. A pipe without a name (`<(…)`, a shell's
    // `|` into /dev/stdin) has a writer, and no path of its own.
    let is_pipe = fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo());
    if is_pipe && fs::canonicalize(path).is_ok() {
        bail!("cannot read {}: it is a named pipe; give a file", path.display());
    }
    let file = File::open(path).with_context(cannot)?;
    let mut bytes = Vec::new();
    file.take(FILE_MAX as u64 + 1).read_to_end(&mut bytes).with_context(cannot)?;
    Ok(bytes)
}

/// Where the grid lies, and what to say of it.
fn phase(tasks: &TaskFile, shortest: Period) -> Result<(u64, Vec<String>)> {
    let at = match tasks.phase {
        GridPhase::At(ns) => return Ok((ns, Vec::new())),
        GridPhase::Quiet => {
            let thread = &tasks.thread;
            quiet::find(thread.pinned_to(), thread.policy(), shortest)?
        }
    };
    Ok(match at {
        Some(quiet) => (quiet.phase_ns, Vec::new()),
        None => {
            let why = "no quiet phase: no tick was observed that the shortest period can be kept \
                       away from, so the grid stays at phase zero";
            (0, vec![why.to_owned()])
        }
    })
}
