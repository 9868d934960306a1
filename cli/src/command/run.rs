//! `punctual run`: starts the tasks that a file names, each a process of its own, and supervises
//! them.
//!
//! Reads the file, finds the programs, lets `punctual_engine::process` do the rest, prints events
//! to standard error and a report at the end. Exit 1 when a task was given up, or stopped all.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{self, File};
use std::io;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, bail};
use punctual_core::time::Period;
use punctual_engine::calendar::CalendarPlan;
use punctual_engine::clocks::{MachineClock, wake_cost};
use punctual_engine::monitor::Force;
use punctual_engine::process::{
    self, Cause, Event, EventKind, Finished, Over, Spec, Stop, Supervisor,
};
use punctual_engine::session::{Attempt, Refusal};
use punctual_engine::spawn;
use punctual_engine::wait_policy::strategy_of;
use punctual_host::choose::check_cpus;
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;
use punctual_lab::quiet;
use punctual_lab::tasks::{FILE_MAX, FileCalendar, GridPhase, TaskFile};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::{Errno, signal};
use punctual_report::{EndedBy, Report, RunBody, supervised};

use crate::experiment::words;
use crate::output::{self, OutputArgs};
use crate::program::PROGRAM;
use crate::subcommand::{Execute, Exit};
use crate::view::kinds::schedule::{self, Schedule};
use crate::{format, parse, writing};

/// `punctual run`.
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// The file that names the tasks (TOML, docs/running.md)
    file: PathBuf,
    /// Start nothing: show when each unit and task would be released, or what cannot be met
    #[arg(long, conflicts_with_all = ["duration", "json", "markdown"])]
    check: bool,
    /// How long to run, from the first release of all on: a task of 1 ms has 1000 releases in 1s
    /// [default: until Ctrl-C, or until no task is left]
    #[arg(long, short, allow_hyphen_values = true, value_parser = parse::duration)]
    duration: Option<parse::Duration>,
    #[command(flatten)]
    output: OutputArgs,
}

impl Execute for RunArgs {
    fn execute(&self) -> Result<Exit> {
        self.output.spare([self.file.as_path()])?;
        let shown = self.file.display();
        let tasks = TaskFile::parse(&read(&self.file)?).map_err(|why| anyhow!("{shown}: {why}"))?;
        programs_exist(&tasks).map_err(|why| anyhow!("{shown}: {why}"))?;
        cpus_exist(&tasks).map_err(|why| anyhow!("{shown}: {why}"))?;
        let Some(shortest) = tasks.shortest() else { bail!("{shown}: no tasks") };
        let plan = tasks.calendar.as_ref().map(FileCalendar::plan).transpose();
        let plan = plan.map_err(|why| anyhow!("{shown}: {why}"))?;
        if self.check {
            return self.show_schedule(&tasks, plan);
        }
        let outputs = self.output.open()?;
        let (phase_ns, unquiet) = phase(&tasks, shortest)?;
        // From the socket's first moment until no task has a priority any more and all outputs are
        // safe; a second signal shortens that.
        let hold = signal::Hold::begin();
        signal::catch_stop().context("cannot catch SIGINT")?;
        // So that a loop which sleeps sees it at once.
        signal::catch_interrupt().context("cannot catch SIGURG")?;
        let supervisor = supervisor(&tasks, phase_ns, plan);
        let ready = supervisor.build().map_err(|why| self.refused(&tasks, why.task(), &why))?;
        let mut warnings = ready.warnings().to_vec();
        warnings.extend(unquiet);
        warnings.extend(group_budget());
        let waits = tasks.thread.wait_kind();
        let wait = strategy_of(waits, shortest, || wake_cost(&mut MachineClock::best()));
        let started = jiff::Timestamp::now();
        let mut refused = Refusals::default();
        let mut registered = Registrations::default();
        let mut printer = Printer::start()?;
        let finished = ready.run(
            wait,
            self.duration.map(|duration| duration.0),
            Stop::new(signal::stop_flag()).hurry(signal::hurry_flag()),
            &mut |event: Event| {
                refused.note(&event);
                registered.note(&event);
                printer.print(line(&event));
            },
        )?;
        drop(hold);
        warnings.extend(registered.warnings());
        warnings.extend(refused.warnings(&finished));
        warnings.extend(finished.taken.as_ref().and_then(words::taken));
        warnings.extend(left_out(printer.end()));
        let supervised = supervised::of(&finished, waits.name(), phase_ns);
        let mut report = Report::new(PROGRAM, "run", RunBody { supervised });
        report.envelope.started_at = Some(started.to_string());
        report.envelope.ended_by = cut_short_by(&finished, self.duration.is_some());
        report.envelope.incomplete = report.envelope.ended_by.is_some();
        report.envelope.warn_of(warnings);
        let failures = reasons(&finished, &registered).into_iter();
        failures.for_each(|why| report.envelope.verdict.fail(why));
        writing::write(&report, outputs)?;
        Ok(Exit::of(&report))
    }
}

impl RunArgs {
    /// Shows what would be released when, and starts nothing.
    fn show_schedule(&self, tasks: &TaskFile, plan: Option<CalendarPlan>) -> Result<Exit> {
        let phase_ns = match tasks.phase {
            GridPhase::At(ns) => Some(ns),
            GridPhase::Quiet => None,
        };
        let supervisor = supervisor(tasks, phase_ns.unwrap_or(0), plan.clone());
        let layout = supervisor.layout().map_err(|why| self.refused(tasks, why.task(), &why))?;
        let cautions =
            supervisor.check_here().map_err(|why| self.refused(tasks, why.task(), &why))?;
        let is_made = tasks.calendar.as_ref().is_some_and(FileCalendar::is_scheduled);
        let schedule = Schedule { phase_ns, calendar: plan.as_ref(), is_made, tasks: &layout };
        let blocks = schedule::document(&schedule, &cautions);
        output::page(punctual_document::text::rendered(&blocks))?;
        Ok(Exit::Fine)
    }

    /// A refusal of the supervisor, with the line of the task that it is about.
    fn refused(&self, tasks: &TaskFile, task: Option<&str>, why: &dyn Display) -> anyhow::Error {
        let line = task.and_then(|task| tasks.line(task));
        let place = line.map_or(String::new(), |line| format!("line {line}: "));
        anyhow!("{}: {place}{why}", self.file.display())
    }
}

/// The supervisor that a file describes, with its calendar.
fn supervisor(tasks: &TaskFile, phase_ns: u64, plan: Option<CalendarPlan>) -> Supervisor {
    let supervisor = tasks.supervisor(phase_ns);
    match plan {
        Some(plan) => supervisor.calendar(plan),
        None => supervisor,
    }
}

/// The caution about a control group's real-time budget, before the run and with its result.
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
        GridPhase::Quiet => quiet::find(&tasks.thread, shortest)?,
    };
    Ok(match at {
        Some(quiet) => (quiet.phase_ns, Vec::new()),
        None => {
            let why = "no quiet phase: the shortest period meets the tick at any phase, so the \
                       grid stays at phase zero";
            (0, vec![why.to_owned()])
        }
    })
}

/// Refuses a task whose program cannot be found, with its line.
fn programs_exist(file: &TaskFile) -> Result<(), String> {
    file.tasks.iter().try_for_each(|named| {
        of_task(&named.spec).map_err(|why| format!("line {}: {why}", named.program_line))
    })
}

fn of_task(spec: &Spec) -> Result<(), String> {
    let Some(program) = spec.command.first() else { return Ok(()) };
    if process::program(program).is_some() {
        return Ok(());
    }
    let program = format::plain(&program.to_string_lossy());
    // A path is looked for where the command was given, which may not be where the file is.
    let at = if program.contains('/') && !program.starts_with('/') {
        " from this directory"
    } else {
        ""
    };
    Err(format!("task {:?}: cannot find program {program}{at}", spec.task.name()))
}

/// Refuses the first CPU that cannot be used, with the place in the file that names it.
fn cpus_exist(file: &TaskFile) -> Result<(), String> {
    let named =
        file.tasks.iter().filter_map(|task| Some((task.spec.thread.pinned_to()?, Some(task.line))));
    let cpus: Vec<(u32, Option<usize>)> =
        file.thread.pinned_to().map(|cpu| (cpu, None)).into_iter().chain(named).collect();
    let refused = refused(cpus.iter().map(|(cpu, _)| *cpu)).map_err(|why| why.to_string())?;
    let Some((cpu, line)) = cpus.iter().find(|(cpu, _)| refused.contains_key(cpu)) else {
        return Ok(());
    };
    let place = line.map_or("[supervisor]".to_owned(), |line| format!("line {line}"));
    // As `--cpu` says it, where the facts tell more than the kernel's number.
    let facts = MachineFacts::collect(&Root::live());
    let why = check_cpus(&CpuList::single(*cpu), &facts)
        .err()
        .map_or_else(|| refused[cpu].to_string(), |why| why.to_string());
    Err(format!("{place}: cannot run on CPU {cpu}: {why}"))
}

/// The CPUs that the kernel refuses, and why.
fn refused(cpus: impl Iterator<Item = u32> + Send) -> io::Result<BTreeMap<u32, Errno>> {
    let go = |cpu| Some((cpu, affinity::set(0, &CpuMask::one(cpu)).err()?));
    // Its own affinity is gone with the thread.
    std::thread::scope(|scope| {
        let tried = spawn::scoped(scope, "punctual-cpu", || cpus.filter_map(go).collect())?;
        Ok(tried.join().unwrap_or_default())
    })
}

/// An event in a line.
fn line(event: &Event) -> String {
    let task = &event.task;
    match &event.kind {
        EventKind::Started(pid) => format!("{task}: started, process {pid}"),
        EventKind::Joined(pid) => format!("{task}: process {pid} joined"),
        EventKind::TurnedAway(why) => format!("{task}: rejected a registration: {why}"),
        EventKind::Registered => format!("{task}: registered, its releases begin"),
        EventKind::Refused(attempt, errno) => format!("{task}: {attempt} was refused: {errno}"),
        EventKind::Demoted => format!(
            "{task}: it ran on without waiting for a release: its thread was set to SCHED_OTHER"
        ),
        EventKind::ThreadsDemoted(threads) => format!(
            "{task}: {threads} more of its threads ran under a real-time policy without waiting: \
             they were set to SCHED_OTHER"
        ),
        EventKind::Silent => format!("{task}: ran none of its releases for a second"),
        EventKind::Unregistered => format!("{task}: unregistered"),
        EventKind::Dismissed(cause) => {
            format!("{task}: unregistered by the supervisor: {}", cause_of(*cause))
        }
        EventKind::Killed(cause) => format!("{task}: ended by SIGKILL: {}", cause_of(*cause)),
        EventKind::Ended(exit) => format!("{task}: {exit}"),
        EventKind::StartsAgain(pause) => {
            format!("{task}: restarts in {}", format::long(pause.as_ns().max(0) as f64))
        }
        EventKind::GivenUp => format!("{task}: will not be restarted"),
    }
}

fn cause_of(cause: Cause) -> &'static str {
    match cause {
        Cause::NeverRegistered => "it did not register in time",
        Cause::Overran => "it was still running at its next release",
        Cause::Silent => "it ran none of its releases for a second",
        Cause::Invalid => "it wrote invalid results to its shared memory",
        Cause::ForeignThread => "it registered a thread that is not its own",
        Cause::Over => "it did not exit at the end of the run",
    }
}

/// The refusals of the kernel, each with its tasks.
#[derive(Debug, Default)]
struct Refusals(BTreeMap<String, Vec<String>>);

impl Refusals {
    /// Adds a refusal.
    fn note(&mut self, event: &Event) {
        if let EventKind::Refused(attempt, errno) = &event.kind {
            let refused = match attempt {
                // Each task asks for a priority of its own.
                Attempt::Scheduler(SchedPolicy::Fifo(_)) => format!("SCHED_FIFO ({errno})"),
                attempt => format!("{attempt} ({errno})"),
            };
            let tasks = self.0.entry(refused).or_default();
            if !tasks.contains(&event.task) {
                tasks.push(event.task.clone());
            }
        }
    }

    /// The warnings of a report.
    fn warnings(self, finished: &Finished) -> Vec<String> {
        let mut warnings: Vec<String> = self
            .0
            .into_iter()
            .map(|(refused, tasks)| format!("refused: {refused} for {}", tasks.join(", ")))
            .collect();
        // Of the policy more is said below.
        let others = finished
            .refused
            .iter()
            .filter(|refusal| !matches!(refusal.attempt, Attempt::Scheduler(_)));
        warnings.extend(others.map(|Refusal { attempt, errno, .. }| {
            format!("refused: {attempt} ({errno}) for the releasing thread")
        }));
        if finished.policy == SchedPolicy::Other {
            warnings.push(
                "the releasing thread ran as SCHED_OTHER: any other process can delay the \
                 releases; root, CAP_SYS_NICE or RLIMIT_RTPRIO allows SCHED_FIFO"
                    .to_owned(),
            );
        }
        warnings
    }
}

/// Which tasks had a process, and which of them registered.
#[derive(Debug, Default)]
struct Registrations(BTreeMap<String, bool>);

impl Registrations {
    /// Adds an event.
    fn note(&mut self, event: &Event) {
        match event.kind {
            EventKind::Started(_) => {
                self.0.entry(event.task.clone()).or_insert(false);
            }
            EventKind::Registered => {
                self.0.insert(event.task.clone(), true);
            }
            _ => {}
        }
    }

    fn is_missing(&self, task: &str) -> bool {
        self.0.get(task) == Some(&false)
    }

    /// The advice about tasks that never registered.
    fn warnings(&self) -> Vec<String> {
        let missing = self.0.iter().filter(|(_, registered)| !**registered);
        let warning = |(task, _): (&String, _)| {
            format!(
                "{task} never registered, so it had no releases: a task registers by \
                 punctual::Registration in Rust, punctual_register() in C, 'punctual task exec' in \
                 other languages (docs/running.md)"
            )
        };
        missing.map(warning).collect()
    }
}

/// A note about lines that were dropped because standard error was blocked.
fn left_out(lines: u64) -> Option<String> {
    (lines > 0).then(|| format!("standard error was blocked: {lines} lines were dropped"))
}

/// The cause that ended a run of a given length before its time.
fn cut_short_by(finished: &Finished, timed: bool) -> Option<EndedBy> {
    let cause = match finished.over {
        Over::Finished => return None,
        Over::Stopped if finished.forced.is_some() => EndedBy::Watchdog,
        Over::Stopped => EndedBy::of_signal(signal::stop_signal()),
        Over::AllGone | Over::Overran(_) => EndedBy::Task,
    };
    timed.then_some(cause)
}

/// The reasons why the run has failed; empty where it has not.
fn reasons(finished: &Finished, registered: &Registrations) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Over::Overran(task) = &finished.over {
        reasons.push(format!("{task} overran or ran none of its releases, and its policy is stop"));
    }
    reasons.extend(finished.forced.map(|force| {
        let how = match force {
            Force::Demoted | Force::NotDemoted => "it did not yield",
            Force::Starved => "it did not get the CPU",
            Force::Blocked => "it waited for something else than a release",
            Force::Stuck => "it made no progress",
            _ => "it did not run as planned",
        };
        format!("the watchdog ended the releases: {how}")
    }));
    let failed = finished.tasks.iter().filter(|task| task.failed);
    reasons.extend(failed.map(|task| {
        // What ended it says nothing of it: it waited for nothing, and the run was over.
        if registered.is_missing(&task.name) {
            return format!("{} never registered", task.name);
        }
        let exit = task.exit.map_or_else(|| "never ran".to_owned(), |exit| exit.to_string());
        let restarts = task.restarts;
        let after = match restarts {
            0 => "failed".to_owned(),
            1 => "failed after a restart".to_owned(),
            restarts => format!("failed after {restarts} restarts"),
        };
        format!("{} {after}; its last process: {exit}", task.name)
    }));
    reasons
}

/// The most lines that wait to be printed.
const WAITING_MAX: usize = 4_096;

/// Prints lines.
#[derive(Debug)]
struct Printer {
    lines: SyncSender<String>,
    thread: JoinHandle<()>,
    dropped: u64,
}

impl Printer {
    /// Starts the thread.
    fn start() -> io::Result<Self> {
        let (lines, received) = sync_channel::<String>(WAITING_MAX);
        let print = move || received.iter().for_each(|line| output::message(&line));
        let thread = spawn::plain("punctual-print", print)?;
        Ok(Self { lines, thread, dropped: 0 })
    }

    /// Queues a line; drops it where the queue is full.
    fn print(&mut self, line: String) {
        match self.lines.try_send(line) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.dropped += 1,
        }
    }

    /// Waits until all of them are printed; gives the number of dropped lines.
    fn end(self) -> u64 {
        drop(self.lines);
        let _its_panic_is_its_own = self.thread.join();
        self.dropped
    }
}
