//! `punctual blame`: why wakes were late, of a loop of its own or of any program.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use punctual::RtThread;
use punctual_blame::config::{FollowedThreads, LateThreshold, Platform};
use punctual_host::root::Root;
use punctual_host::settings::KernelSettings;
use punctual_lab::blame::{BlameExperiment, BlameSubject, Blamed};
use punctual_lab::capture::{FollowedThread, ThreadTarget, find_threads};
use punctual_lab::load::Loads;
use punctual_report::measured::BlameBody;
use punctual_report::{Body, Choice, Envelope, Report};
use punctual_trace::event::ShortName;

use crate::args::RequestedPolicyArgs;
use crate::command::measure::measure;
use crate::experiment::Machine;
use crate::measuring::{CpuArgs, Measuring, Outcome, Planned, Shown, condition_name};
use crate::output::OutputArgs;
use crate::parse;
use crate::program::PROGRAM;
use crate::subcommand::{self, Execute, Exit};

/// `punctual blame`.
#[derive(Debug, clap::Args)]
pub(super) struct BlameArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Record nothing: read what perf record, perf script, ftrace, trace-cmd or wprof recorded, and
    /// follow the thread of --tid, those of --name, or all real-time threads
    #[arg(long, value_name = "CAPTURE", conflicts_with_all = ["pid", "all", "cpu", "load"])]
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
    /// wakes, p99.9
    #[arg(long, value_name = "TIME|pQ", default_value = "p99", value_parser = threshold)]
    over: LateThreshold,
    #[command(flatten)]
    policy: RequestedPolicyArgs,
    /// Loads to run meanwhile, as for 'measure periodic', all at once
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    load: Loads,
    #[command(flatten)]
    output: OutputArgs,
}

/// Whose wakes: without one of these, those of a loop that this program runs.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
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
        let pid = self.pid.map(ThreadTarget::Process);
        let tid = self.tid.map(ThreadTarget::Thread);
        pid.or(tid).or_else(|| self.name.clone().map(ThreadTarget::Name))
    }
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
            None => measure(self),
        }
    }
}

impl BlameArgs {
    /// Reads a capture.
    fn read(&self, path: &Path) -> Result<Exit> {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let outputs = self.output.open()?;
        let tid = self.subject.tid.map(|tid| FollowedThreads::Threads(vec![tid.unsigned_abs()]));
        let name = self.subject.name.as_ref();
        let name = name.map(|name| FollowedThreads::Named(ShortName::new(name.as_bytes())));
        let follow = tid.or(name).unwrap_or(FollowedThreads::RealTime);
        let read = Blamed::read(file, follow, self.over);
        let (blame, untold) = read.with_context(|| path.display().to_string())?;
        let mut envelope = Envelope::of(PROGRAM, <Self as Measuring>::NAME);
        envelope.warn_of(untold);
        let body = Body::Measured(BlameBody { blame, loads: Vec::new() }.into());
        subcommand::write(&Report { envelope, body }, outputs)?;
        Ok(Exit::Fine)
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
            let cpus = machine.here.cpu.online_cpus.value().map(ToString::to_string);
            let choice = Choice { cpus: cpus.unwrap_or_default(), why: "all of them".to_owned() };
            return Ok((BlameSubject::RealTime, choice));
        }
        let (cpu, choice) = self.cpu.choose(machine, "a loop runs")?;
        let thread = RtThread::cpu(cpu).with_policy(self.policy.policy());
        Ok((BlameSubject::Loop { thread, period: self.period.period()? }, choice))
    }
}

/// Those of other processes: with the name of this program, itself is found too.
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

impl Measuring for BlameArgs {
    const NAME: &'static str = "blame";
    const HAS_PROGRESS: bool = false;
    type Experiment = BlameExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<BlameExperiment>> {
        let here = &machine.here;
        let (subject, choice) = self.choose(machine)?;
        let [loads] = &self.load.turns()[..] else {
            bail!("--load: blame takes one load or several at once, not in turn");
        };
        let platform = match here.virtualization.virtualization.value() {
            None => Platform::Unknown,
            Some(_) if here.virtualization.is_guest() => Platform::VirtualMachine,
            Some(_) => Platform::Metal,
        };
        let experiment = BlameExperiment {
            subject,
            duration: self.duration.0,
            late: self.over,
            loads: (condition_name(loads), loads.clone()),
            platform,
            kernel: KernelSettings::collect(&machine.root).release,
        };
        Ok(Planned { experiment, choice })
    }

    fn shown(&self, outcome: Outcome<'_, BlameExperiment>) -> Shown {
        let loads = outcome.load_rows();
        Shown::body(BlameBody { blame: outcome.figures, loads })
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
