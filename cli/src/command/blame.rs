//! `punctual blame`: why wakes were late, of a loop of its own or of any program.

use std::cell::OnceCell;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use punctual::RtThread;
use punctual_blame::config::LateThreshold;
use punctual_core::time::Span;
use punctual_host::root::Root;
use punctual_lab::blame::{
    BlameExperiment, BlameResult, BlameSubject, EventForm, KeptCapture, LATE, ReadCapture,
};
use punctual_lab::capture::{FollowedThread, ThreadTarget, find_threads};
use punctual_lab::load::Loads;
use punctual_report::measured::BlameBody;
use punctual_report::{Body, Choice, Envelope, Report, format};
use punctual_trace::write::perf_data::Addresses;

use crate::args::{Detail, RequestedPolicyArgs};
use crate::experiment::{Machine, condition_name};
use crate::measuring::{CpuArgs, MeasuredBody, Measuring, Outcome, Planned, measured};
use crate::output::{self, Dir, Opened, OutputArgs, distinct, spare};
use crate::program::PROGRAM;
use crate::stored::RESULT;
use crate::subcommand::{Execute, Exit};
use crate::{parse, view, writing};

/// The name of the capture in the directory of `--keep`.
const CAPTURE: &str = "perf.data";

/// `punctual blame`.
#[derive(Debug, clap::Args)]
pub(super) struct BlameArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Record nothing: read what --keep kept, or what perf record, perf script, ftrace, trace-cmd
    /// or wprof recorded, and follow those of --pid, --tid or --name, or all real-time threads
    #[arg(
        long,
        value_name = "CAPTURE",
        conflicts_with_all = [
            "all", "cpu", "period", "policy", "priority", "duration", "load", "stop_over", "keep"
        ]
    )]
    from: Option<PathBuf>,
    #[command(flatten)]
    cpu: CpuArgs,
    /// The period of the loop of its own
    #[arg(
        long,
        short,
        default_value = "1ms",
        allow_hyphen_values = true,
        value_parser = parse::period
    )]
    period: parse::Duration,
    /// How long to record
    #[arg(
        long,
        short,
        default_value = "10s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    /// Which wakes are late: those later than a duration, 20us, or than a share of the thread's own
    /// wakes, p99.9, or than its own period if that is less [default: p99, with --stop-over its
    /// duration, of a kept capture what was late then]
    #[arg(long, value_name = "TIME|pQ", value_parser = threshold)]
    over: Option<LateThreshold>,
    /// End at the first wake that is later than this, and fail (exit 1): the result is kept, and
    /// says which wake it was
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    stop_over: Option<parse::Duration>,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    policy: RequestedPolicyArgs,
    /// Loads to run meanwhile, as for 'measure periodic', all at once
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    load: Loads,
    #[command(flatten)]
    output: OutputArgs,
    /// In the place of a program's name or command
    #[arg(hide = true, trailing_var_arg = true, value_parser = no_program)]
    _program: Vec<Infallible>,
    /// Print more: further causes, the latest wakes as they passed, who interrupted other CPUs;
    /// --json has all
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
    /// Print one line a thread: how late it was, and its first cause
    #[arg(long, short)]
    quiet: bool,
}

/// Whose wakes: without one of these, those of a loop that this program runs, to which the other
/// options of a loop belong.
#[derive(Debug, clap::Args)]
#[group(multiple = false, conflicts_with_all = ["cpu", "period", "policy", "priority"])]
struct SubjectArgs {
    /// Follow the real-time threads of this process; all its threads where it has none
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// Follow this thread
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
    tid: Option<i32>,
    /// Follow each thread, and all threads of each process, of this name: the real-time ones, or
    /// all where there are none
    #[arg(long)]
    name: Option<String>,
    /// Follow each thread of the machine that has a real-time policy
    #[arg(long)]
    all: bool,
}

impl SubjectArgs {
    /// The threads of a program that runs.
    fn target(&self) -> Option<ThreadTarget> {
        ThreadTarget::given(self.pid, self.tid, self.name.as_deref())
    }
}

/// Where the events go.
#[derive(Debug, clap::Args)]
struct FileArgs {
    /// Keep the result and the events around the late wakes, of which --from gives the same answer
    /// again: DIR/result.json and DIR/perf.data, which perf opens too
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Leave the kernel's addresses in what --keep keeps: without it, its functions have their
    /// names alone
    #[arg(long, requires = "keep")]
    raw: bool,
    /// Write the events around the late wakes, or those of --from, with each late wake and its
    /// parts as slices, for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// Write these events as NDJSON, one JSON object a line
    #[arg(long, value_name = "FILE")]
    ndjson: Option<PathBuf>,
    /// Write these events as text, as ftrace prints them
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
}

impl FileArgs {
    /// Each form with its option.
    fn forms(&self) -> [(&'static str, EventForm, Option<&Path>); 3] {
        [
            ("--perfetto", EventForm::Perfetto, self.perfetto.as_deref()),
            ("--ndjson", EventForm::Ndjson, self.ndjson.as_deref()),
            ("--text", EventForm::Text, self.text.as_deref()),
        ]
    }

    /// Returns true where one of them is named.
    fn are_some(&self) -> bool {
        self.keep.is_some() || self.forms().iter().any(|(.., path)| path.is_some())
    }

    /// Opens what they name; `from` is the capture that is read.
    fn open(&self, results: &OutputArgs, from: Option<&Path>) -> Result<BlameFiles> {
        let mut used: Vec<&Path> = Vec::new();
        let mut forms = Vec::new();
        for (option, form, path) in self.forms() {
            let Some(path) = path else { continue };
            results.distinct(Some(path))?;
            spare(option, Some(path), from)?;
            used.iter().try_for_each(|used| distinct(option, Some(path), Some(used)))?;
            used.push(path);
            forms.push((form, Opened::at(path)?));
        }
        results.spare(from)?;
        let kept = match &self.keep {
            None => None,
            Some(path) => {
                let dir = Dir::make(path)?;
                if path.join(CAPTURE).exists() {
                    output::message(&format!(
                        "{}: windows of an earlier recording are there, which these replace",
                        path.display()
                    ));
                }
                Some(KeptFiles {
                    capture: Opened::chosen(&dir, CAPTURE)?,
                    result: Opened::chosen(&dir, RESULT)?,
                })
            }
        };
        let addresses = if self.raw { Addresses::Kept } else { Addresses::Numbered };
        Ok(BlameFiles { kept, forms, addresses })
    }
}

/// The files of `--keep`.
#[derive(Debug)]
struct KeptFiles {
    capture: Opened,
    result: Opened,
}

/// Where the events go, opened.
#[derive(Debug)]
struct BlameFiles {
    kept: Option<KeptFiles>,
    forms: Vec<(EventForm, Opened)>,
    addresses: Addresses,
}

impl BlameFiles {
    /// Writes a file, a piece at a time.
    fn fill(
        opened: &Opened,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> Result<()> {
        opened.write(|file| {
            let mut out = BufWriter::new(*file);
            write(&mut out)?;
            Ok(out.flush()?)
        })
    }

    /// Writes events, and names those that their form has no place for.
    fn fill_form(
        opened: &Opened,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<u64>,
    ) -> Result<()> {
        let mut left_out = 0;
        Self::fill(opened, |out| {
            left_out = write(out)?;
            Ok(())
        })?;
        if left_out > 0 {
            output::message(&format!(
                "{}: without {} events that its form has no place for",
                opened.path().display(),
                format::count(left_out)
            ));
        }
        Ok(())
    }

    /// Writes what was kept; each is tried.
    fn write(&self, kept: &KeptCapture) -> Result<()> {
        let capture = self.kept.as_ref().map_or(Ok(()), |files| {
            Self::fill(&files.capture, |out| kept.write_perf_data(out, self.addresses))
        });
        self.forms.iter().fold(capture, |written, (form, opened)| {
            written.and(Self::fill_form(opened, |out| kept.write(*form, out)))
        })
    }
}

/// No word stands alone: the way to name a program.
fn no_program(text: &str) -> Result<Infallible, String> {
    Err(format!(
        "a program is named by --name {text}, --pid or --tid once it runs; blame starts none"
    ))
}

/// From where on a wake is late: `20us` or `p99.9`.
fn threshold(text: &str) -> Result<LateThreshold, String> {
    let Some(percent) = text.strip_prefix('p') else {
        let above = parse::duration(text)
            .map_err(|why| format!("{why}; or a share of the wakes, as p99.9"))?;
        return Ok(LateThreshold::Above(above.0.as_ns().unsigned_abs()));
    };
    let share: f64 =
        percent.parse().map_err(|_| format!("'{text}' is no share of the wakes: write p99.9"))?;
    LateThreshold::quantile(share / 100.0)
        .map_err(|_| format!("'{text}' is no share of the wakes: it is above p0 and below p100"))
}

impl Execute for BlameArgs {
    fn execute(&self) -> Result<Exit> {
        match &self.from {
            Some(capture) => self.read(capture),
            None => {
                let blaming = Blaming { args: self, files: OnceCell::new() };
                writing::finish(measured(&blaming)?)
            }
        }
    }
}

impl BlameArgs {
    /// Reads a capture, or what is in a directory of `--keep`.
    fn read(&self, path: &Path) -> Result<Exit> {
        let path = if path.is_dir() { path.join(CAPTURE) } else { path.to_owned() };
        let unread = || format!("cannot read {}", path.display());
        let mut file = File::open(&path).with_context(unread)?;
        let files = self.files.open(&self.output, Some(&path))?;
        let outputs = self.output.open()?;
        let target = self.subject.target();
        let read = ReadCapture::read(&mut file, target.as_ref(), self.over);
        let read = read.with_context(|| path.display().to_string())?;
        let mut written = Ok(());
        for (form, opened) in &files.forms {
            let form = BlameFiles::fill_form(opened, |out| read.write(&mut file, *form, out));
            written = written.and(form);
        }
        let mut envelope = Envelope::of(PROGRAM, Blaming::NAME);
        let ReadCapture { blamed, untold, .. } = read;
        envelope.warn_of(untold);
        let body = Body::Measured(BlameBody { blame: blamed, loads: Vec::new() }.into());
        writing::write_in(&Report { envelope, body }, outputs, self.detail())?;
        written?;
        Ok(Exit::Fine)
    }

    /// The part of the result that is shown.
    const fn detail(&self) -> Detail {
        Detail::of(self.quiet, self.verbose, Detail::Short)
    }

    /// The threshold of late wakes, and the lateness at which the recording ends; `None` where none
    /// ends it.
    fn late(&self) -> Result<(LateThreshold, Option<Span>)> {
        let Some(parse::Duration(stop_over)) = self.stop_over else {
            return Ok((self.over.unwrap_or(LATE), None));
        };
        let over_ns = stop_over.as_ns().unsigned_abs();
        match self.over {
            None => Ok((LateThreshold::Above(over_ns), Some(stop_over))),
            Some(late @ LateThreshold::Above(late_ns)) if late_ns <= over_ns => {
                Ok((late, Some(stop_over)))
            }
            Some(_) => bail!(
                "--over: with --stop-over, what is late is a duration of at most that, so that the \
                 wake that ends it is late"
            ),
        }
    }

    /// Whose wakes, and on which CPUs.
    fn choose(&self, machine: &Machine) -> Result<(BlameSubject, Choice)> {
        if let Some(target) = self.subject.target() {
            let threads = others(find_threads(&Root::live(), &target)?, std::process::id());
            if threads.is_empty() {
                bail!(
                    "nothing is found but this program itself: it does not follow its own threads"
                );
            }
            let threads = those_that_count(threads);
            let choice = Choice { cpus: cpus_of(&threads), why: "those of its threads".to_owned() };
            return Ok((BlameSubject::Threads(threads), choice));
        }
        if self.subject.all {
            let cpus = machine.measuring.cpu.online_cpus.value().map(ToString::to_string);
            let choice = Choice { cpus: cpus.unwrap_or_default(), why: "all of them".to_owned() };
            return Ok((BlameSubject::RealTime, choice));
        }
        let (cpu, choice) = self.cpu.choose(machine, "a loop runs")?;
        let thread = RtThread::cpu(cpu).with_policy(self.policy.policy());
        Ok((BlameSubject::Loop { thread, period: self.period.period()? }, choice))
    }
}

/// The threads of other processes: with the name of this program, itself is found too.
fn others(threads: Vec<FollowedThread>, own_pid: u32) -> Vec<FollowedThread> {
    let is_own = |thread: &FollowedThread| u32::try_from(thread.pid) == Ok(own_pid);
    threads.into_iter().filter(|thread| !is_own(thread)).collect()
}

/// The real-time threads, or all where there are none: beside a real-time thread those that start
/// it or print for it are late as a matter of course, and would be most of the answer.
fn those_that_count(threads: Vec<FollowedThread>) -> Vec<FollowedThread> {
    let has_real_time = threads.iter().any(FollowedThread::is_real_time);
    threads.into_iter().filter(|thread| !has_real_time || thread.is_real_time()).collect()
}

/// The CPUs that threads may run on, as a list.
fn cpus_of(threads: &[FollowedThread]) -> String {
    let cpus = threads.iter().flat_map(|thread| thread.cpus.iter().copied());
    cpus.collect::<punctual_host::cpulist::CpuList>().to_string()
}

/// A recording that is asked for, and its files once they are open.
struct Blaming<'a> {
    args: &'a BlameArgs,
    files: OnceCell<BlameFiles>,
}

impl Measuring for Blaming<'_> {
    const NAME: &'static str = "blame";
    const HAS_PROGRESS: bool = false;
    type Experiment = BlameExperiment;

    fn output(&self) -> &OutputArgs {
        &self.args.output
    }

    fn detail(&self) -> Detail {
        self.args.detail()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<BlameExperiment>> {
        let args = self.args;
        let (late, stop_over) = args.late()?;
        let (subject, choice) = args.choose(machine)?;
        let [loads] = &args.load.turns()[..] else {
            bail!("--load: blame takes one load or several at once, not in turn");
        };
        let experiment = BlameExperiment {
            subject,
            duration: args.duration.0,
            late,
            loads: (condition_name(loads), loads.clone()),
            machine: machine.recorded(),
            stop_over,
            keeps: args.files.are_some(),
        };
        // Before anything is measured.
        let files = args.files.open(&args.output, None)?;
        let _first = self.files.set(files);
        Ok(Planned { experiment, choice })
    }

    fn keep(&self, report: &Report) -> Result<()> {
        let Some(kept) = self.files.get().and_then(|files| files.kept.as_ref()) else {
            return Ok(());
        };
        let json = view::json(report)?;
        BlameFiles::fill(&kept.result, |out| out.write_all(json.as_bytes()))
    }

    fn body(&self, outcome: Outcome<'_, BlameExperiment>) -> MeasuredBody {
        let loads = outcome.load_rows();
        let BlameResult { blamed, kept } = outcome.figures;
        let written = self.files.get().zip(kept.as_ref()).map(|(files, kept)| files.write(kept));
        let trouble = written.and_then(Result::err);
        let warnings = blamed.fallback.iter().cloned().collect();
        let late = blamed.stopped_by.as_ref().map(view::kinds::stop_words);
        MeasuredBody::of(BlameBody { blame: blamed, loads }).with(trouble, warnings).ended_by(late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_os::scheduler::{FIFO, OTHER, SchedAttributes};

    fn thread(tid: i32, policy: Option<u32>) -> FollowedThread {
        let policy = policy.map(|policy| SchedAttributes {
            policy,
            size: 0,
            flags: 0,
            nice: 0,
            priority: 0,
            runtime_ns: 0,
            deadline_ns: 0,
            period_ns: 0,
        });
        FollowedThread { tid, pid: 1, name: "servo".to_owned(), policy, cpus: Vec::new() }
    }

    fn followed(threads: &[FollowedThread]) -> Vec<i32> {
        those_that_count(threads.to_vec()).iter().map(|thread| thread.tid).collect()
    }

    #[test]
    fn the_program_itself_is_not_followed() {
        let of_other = FollowedThread { pid: 2, ..thread(4, None) };
        assert_eq!(others(vec![thread(3, None), of_other.clone()], 1), [of_other]);
        assert!(others(vec![thread(3, None)], 1).is_empty());
    }

    #[test]
    fn real_time_threads_are_followed_alone_and_others_where_there_are_none() {
        let (ordinary, unknown) = (thread(1, Some(OTHER)), thread(2, None));
        let real_time = thread(3, Some(FIFO));
        assert_eq!(followed(&[ordinary.clone(), unknown.clone(), real_time]), [3]);
        assert_eq!(followed(&[ordinary, unknown]), [1, 2]);
        assert!(followed(&[]).is_empty());
    }
}
