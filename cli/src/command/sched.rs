//! `punctual sched`: policy, priority and CPUs of commands and threads, with what was refused
//! explained.

use std::ffi::{CString, OsString};
use std::fs::OpenOptions;
use std::io::{Error as IoError, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow, bail};
use punctual_document::{Block, Table, numbers, words};
use punctual_host::facts::MachineFacts;
use punctual_host::program::{ProgramSurroundings, RunningProgram};
use punctual_host::root::Read;
use punctual_host::settings::KernelSettings;
use punctual_host::threads::{self, RunningThread, processes, with_children};
use punctual_host::{CpuList, RefusedCall, Root, explain, parse_cpus};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::scheduler::{self, RESET_ON_FORK, SchedAttributes};
use punctual_os::user::{self, GROUPS_MAX, become_user};
use punctual_os::{Errno, process};
use punctual_report::{Envelope, JudgedProgram, TuneBody};

use crate::output::MarkdownArgs;
use crate::program::PROGRAM;
use crate::settings::VerdictArgs;
use crate::subcommand::{Execute, Exit};
use crate::{format, output, parse};

/// `punctual sched`.
#[derive(Debug, clap::Args)]
pub(super) struct SchedArgs {
    #[command(subcommand)]
    command: SchedCommand,
}

/// Subcommands about scheduling policies.
#[derive(Debug, clap::Subcommand)]
enum SchedCommand {
    /// Run a command with a scheduling policy, on CPUs, as a user
    ///
    /// The policy and the CPUs are those of the command and of what it starts. Where the kernel
    /// refuses one of them, the command is not run, and the reason is printed with the way out. As
    /// another user, the environment stays as it is. The exit status is that of the command.
    #[command(after_long_help = "Examples:\n\
                       \x20 sudo punctual sched run --fifo 80 --cpu 3 --user $USER -- ./servo\n\
                       \x20 sudo punctual sched run --deadline 200us:1ms:1ms -- ./loop\n\
                       \x20 punctual sched run --idle -- make -j8")]
    Run(SchedRunArgs),
    /// Change the policy and the CPUs of threads that run
    #[command(after_long_help = "Examples:\n\
                       \x20 sudo punctual sched set --fifo 80 --cpu 3 --threads 1234\n\
                       \x20 sudo punctual sched set --other --children 1234")]
    Set(SchedSetArgs),
    /// Show policy, priority and CPUs of a process's threads [default: of all real-time threads]
    Show(SchedShowArgs),
    /// Judge a program as it runs: what its threads were given, and what is in their way; changes
    /// nothing
    ///
    /// Policies that were inherited, priorities against threads of interrupts and of others, CPUs
    /// against isolated ones and the other half of a core, memory that is not locked, page faults,
    /// interrupts on its CPU, limits that stop it. It is watched for a second. Each verdict has
    /// what was found, why it matters, and the command that changes it.
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual sched check linuxcncsvr\n\
                       \x20 sudo punctual sched check 1234 -v")]
    Check(SchedCheckArgs),
}

/// A scheduling policy; at most one.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(multiple = false)]
struct PolicyArgs {
    /// SCHED_FIFO with this priority, 1 to 99: runs until it waits
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    fifo: Option<u8>,
    /// SCHED_RR with this priority, 1 to 99: as FIFO, in turns with equals
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    rr: Option<u8>,
    /// SCHED_DEADLINE: RUNTIME of each PERIOD, had by DEADLINE; RUNTIME:PERIOD where both are one
    #[arg(long, value_name = "RUNTIME:DEADLINE:PERIOD", value_parser = deadline)]
    deadline: Option<DeadlineArg>,
    /// SCHED_OTHER, the usual one
    #[arg(long)]
    other: bool,
    /// SCHED_BATCH: as OTHER, but a thread that it wakes does not take the CPU from the one that
    /// runs
    #[arg(long)]
    batch: bool,
    /// SCHED_IDLE: runs where nothing else wants the CPU, or next to nothing. What leaves it again
    /// needs root, or a limit of the nice value (RLIMIT_NICE) of 20 and more
    #[arg(long)]
    idle: bool,
}

impl PolicyArgs {
    /// The attributes of the policy, without a nice value; `None` where none is given.
    fn attributes(&self) -> Option<SchedAttributes> {
        if let Some(deadline) = self.deadline {
            return Some(SchedAttributes {
                runtime_ns: deadline.runtime_ns,
                deadline_ns: deadline.deadline_ns,
                period_ns: deadline.period_ns,
                ..SchedAttributes::of(scheduler::DEADLINE)
            });
        }
        let ordinary = |is_given: bool, policy| is_given.then(|| SchedAttributes::of(policy));
        self.fifo
            .map(|priority| real_time(scheduler::FIFO, priority))
            .or_else(|| self.rr.map(|priority| real_time(scheduler::ROUND_ROBIN, priority)))
            .or_else(|| ordinary(self.other, scheduler::OTHER))
            .or_else(|| ordinary(self.batch, scheduler::BATCH))
            .or_else(|| ordinary(self.idle, scheduler::IDLE))
    }
}

/// The three times of SCHED_DEADLINE, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DeadlineArg {
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

fn deadline(text: &str) -> Result<DeadlineArg, String> {
    let parts: Result<Vec<u64>, String> = text
        .split(':')
        .map(|part| parse::duration(part).map(|duration| duration.0.as_ns().unsigned_abs()))
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

/// Policy, nice value and CPUs to set.
#[derive(Clone, Debug, clap::Args)]
struct AttributeArgs {
    #[command(flatten)]
    policy: PolicyArgs,
    /// The nice value of SCHED_OTHER and SCHED_BATCH, -20 to 19; the lower, the larger its share
    /// [default: 0]
    #[arg(
        long,
        value_name = "NICE",
        allow_hyphen_values = true,
        value_parser = clap::value_parser!(i8).range(-20..=19)
    )]
    nice: Option<i8>,
    /// What it starts begins as SCHED_OTHER; not for --batch and --idle, which the kernel hands on
    /// all the same
    #[arg(long)]
    reset_on_fork: bool,
    /// Run on these CPUs only, as the kernel lists them: 3, 0-1
    #[arg(long, value_name = "LIST")]
    cpu: Option<String>,
}

/// `punctual sched run`.
#[derive(Debug, clap::Args)]
struct SchedRunArgs {
    #[command(flatten)]
    sched: AttributeArgs,
    /// Run the command as this user, with the groups of that user; needs root
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// The file of a control group's members, and the process that has to live as long: what
    /// 'punctual isolate' says
    #[arg(long, hide = true, num_args = 2, value_names = ["FILE", "PID"])]
    isolated: Option<Vec<String>>,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// `punctual sched set`.
#[derive(Debug, clap::Args)]
struct SchedSetArgs {
    #[command(flatten)]
    sched: AttributeArgs,
    /// Change all threads of each process
    #[arg(long, short)]
    threads: bool,
    /// Change also the processes that it started, and those that they started
    #[arg(long)]
    children: bool,
    /// Processes or threads, by number
    #[arg(required = true, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pids: Vec<i32>,
}

/// `punctual sched show`.
#[derive(Debug, clap::Args)]
struct SchedShowArgs {
    /// A process, by number
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    #[command(flatten)]
    output: MarkdownArgs,
}

/// `punctual sched check`.
#[derive(Debug, clap::Args)]
struct SchedCheckArgs {
    /// The process, by number, or by the name of it or of its program
    #[arg(value_name = "PID|NAME")]
    program: String,
    #[command(flatten)]
    verdicts: VerdictArgs,
}

impl Execute for SchedArgs {
    fn execute(&self) -> Result<Exit> {
        match &self.command {
            SchedCommand::Run(args) => run_command(args),
            SchedCommand::Set(args) => set(args),
            SchedCommand::Show(args) => show(args),
            SchedCommand::Check(args) => check(args),
        }
    }
}

/// A policy and CPUs for threads.
struct Request {
    attributes: Option<SchedAttributes>,
    reset_on_fork: bool,
    cpus: Option<CpuList>,
    facts: MachineFacts,
}

impl Request {
    /// # Errors
    /// Where nothing is to be set, or a CPU that is not there.
    fn of(args: &AttributeArgs) -> Result<Self> {
        let facts = MachineFacts::collect(&Root::live());
        let cpus = args.cpu.as_deref().map(|text| {
            parse_cpus(text, &facts).with_context(|| format!("--cpu {}", text.escape_debug()))
        });
        let cpus = cpus.transpose()?;
        let attributes = args.policy.attributes();
        let number = attributes.map(|attributes| attributes.policy);
        if number.is_none() && cpus.is_none() {
            bail!("nothing to set: give a policy ({POLICIES}) or --cpu");
        }
        if number.is_none() && args.reset_on_fork {
            bail!("--reset-on-fork needs a policy: {POLICIES}");
        }
        if args.reset_on_fork && matches!(number, Some(scheduler::BATCH | scheduler::IDLE)) {
            bail!(
                "--reset-on-fork: the kernel resets real-time policies only, what a thread of \
                 SCHED_BATCH or SCHED_IDLE starts has its policy; leave the option out"
            );
        }
        if let Some(nice) = args.nice
            && !matches!(number, Some(scheduler::OTHER | scheduler::BATCH))
        {
            bail!("--nice {nice}: only SCHED_OTHER and SCHED_BATCH go by it: --other or --batch");
        }
        let nice = args.nice.unwrap_or(0).into();
        let attributes = attributes.map(|attributes| SchedAttributes { nice, ..attributes });
        Ok(Self { attributes, reset_on_fork: args.reset_on_fork, cpus, facts })
    }

    /// Gives a thread, 0 for the calling one, what was requested: CPUs first, since a thread of
    /// SCHED_DEADLINE cannot be moved.
    ///
    /// # Errors
    /// The refusal of the kernel, why, and the way out.
    fn give(&self, tid: i32) -> Result<()> {
        if let Some(cpus) = &self.cpus {
            let mut mask = CpuMask::EMPTY;
            cpus.iter().for_each(|cpu| mask.insert(cpu));
            let call = || RefusedCall::SetAffinity { cpus: cpus.clone() };
            affinity::set(tid, &mask)
                .map_err(|errno| self.refused(&format!("CPU {cpus}"), &call(), errno))?;
        }
        let Some(attributes) = self.attributes else { return Ok(()) };
        let flags = if self.reset_on_fork { RESET_ON_FORK } else { 0 };
        let call = match attributes.policy {
            scheduler::DEADLINE => RefusedCall::SetDeadline,
            _ => RefusedCall::SetScheduler { priority: attributes.priority },
        };
        // Whether rights are missing to leave it is seen before.
        let was_idle = SchedAttributes::get(tid).is_ok_and(|now| now.policy == scheduler::IDLE);
        SchedAttributes { flags, ..attributes }.give(tid).map_err(|errno| {
            let request = policy_words(&attributes);
            if was_idle && attributes.priority == 0 && errno == Errno::PERM {
                let limit = NICE_LIMIT - attributes.nice;
                return anyhow!(
                    "{request} refused: to leave SCHED_IDLE it needs CAP_SYS_NICE, or a limit of \
                     the nice value (RLIMIT_NICE) of {limit} or more: 'prlimit --nice={limit}'"
                );
            }
            self.refused(&request, &call, errno)
        })
    }

    fn refused(&self, request: &str, call: &RefusedCall, errno: Errno) -> Error {
        if errno == Errno(NO_SUCH_THREAD) {
            return anyhow!("{request} refused: there is no such thread any more");
        }
        // SCHED_DEADLINE is another call: a nice value below the own one.
        if matches!(call, RefusedCall::SetScheduler { priority: 0 }) {
            return anyhow!("{request} refused: it needs CAP_SYS_NICE, or the rights of its user");
        }
        let reason = explain(call, errno, &self.facts);
        anyhow!("{request} refused: {}. {}", reason.why, reason.remedy)
    }
}

/// The options of [`PolicyArgs`], as messages name them.
const POLICIES: &str = "--fifo, --rr, --deadline, --other, --batch or --idle";
/// RLIMIT_NICE counts downwards from here (getrlimit(2)): 20 allows a nice value of 0.
const NICE_LIMIT: i32 = 20;
/// ESRCH of errno(3).
const NO_SUCH_THREAD: i32 = 3;

fn real_time(policy: u32, priority: u8) -> SchedAttributes {
    SchedAttributes { priority: priority.into(), ..SchedAttributes::of(policy) }
}

/// A policy as people write it: `SCHED_FIFO 80`.
fn policy_words(attributes: &SchedAttributes) -> String {
    use crate::format::period;
    let words = threads::policy_words(attributes.policy, attributes.priority);
    match attributes.policy {
        scheduler::OTHER | scheduler::BATCH if attributes.nice != 0 => {
            format!("{words}, nice {}", attributes.nice)
        }
        scheduler::DEADLINE => format!(
            "{words} {}:{}:{}",
            period(attributes.runtime_ns),
            period(attributes.deadline_ns),
            period(attributes.period_ns)
        ),
        _ => words,
    }
}

fn run_command(args: &SchedRunArgs) -> Result<Exit> {
    let (program, rest) = args.command.split_first().context("no command")?;
    let isolated = args.isolated.as_deref().map(Membership::of).transpose()?;
    if let Some(membership) = &isolated {
        // First: it decides which CPUs there are.
        membership.join()?;
        if let Err(errno) = process::allow_real_time() {
            let why = IoError::from_raw_os_error(errno.0);
            output::message(&format!("the limits of real-time threads stay as they are: {why}"));
        }
    }
    let request = Request::of(&args.sched)?;
    // Looked up before anything else changes.
    let user = args.user.as_deref().map(Account::of).transpose()?;
    request.give(0)?;
    if let Some(Account { uid, gid, groups }) = user {
        become_user(uid, gid, &groups).map_err(|errno| {
            let why = IoError::from_raw_os_error(errno.0);
            anyhow!("cannot become the user {}: {why}", args.user.as_deref().unwrap_or_default())
        })?;
    }
    if let Some(Membership { parent, .. }) = isolated {
        // Last: a change of the user drops the tie.
        process::end_with_parent().map_err(|errno| IoError::from_raw_os_error(errno.0))?;
        if process::parent() != parent {
            bail!("'punctual isolate' has ended");
        }
    }
    let why = Command::new(program).args(rest).exec();
    bail!("cannot run {}: {why}", format::plain(&program.to_string_lossy()))
}

/// The group that the command is to be in, and who made it: with that process it ends.
struct Membership {
    members: String,
    parent: i32,
}

impl Membership {
    fn of(words: &[String]) -> Result<Self> {
        let [members, parent] = words else { bail!("--isolated takes FILE PID") };
        Ok(Self { members: members.clone(), parent: parent.parse().context("--isolated")? })
    }

    /// Joins the group. Only for 'punctual isolate', and only a group: another file keeps what is
    /// in it.
    fn join(&self) -> Result<()> {
        let Self { members, parent } = self;
        if process::parent() != *parent {
            bail!("--isolated is for 'punctual isolate': process {parent} did not start this one");
        }
        if !Path::new(members).ends_with("cgroup.procs") {
            bail!("--isolated: {members} is not the members of a control group (cgroup.procs)");
        }
        let file = OpenOptions::new().write(true).open(members);
        file.and_then(|mut file| file.write_all(b"0"))
            .with_context(|| format!("cannot join {members}"))
    }
}

/// A user with all groups.
struct Account {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl Account {
    fn of(name: &str) -> Result<Self> {
        let shown = name.escape_debug();
        let c_name = CString::new(name).with_context(|| format!("--user {shown}"))?;
        let error = |errno: Errno| IoError::from_raw_os_error(errno.0);
        let found = user::by_name(&c_name).map_err(error);
        let Some(found) = found.with_context(|| format!("--user {shown}"))? else {
            bail!("--user {shown}: there is no such user");
        };
        let mut groups = [0; GROUPS_MAX];
        let count = user::groups(&c_name, found.gid, &mut groups).map_err(error);
        let count = count.with_context(|| format!("--user {shown}: its groups"))?;
        Ok(Self { uid: found.uid, gid: found.gid, groups: groups[..count].to_vec() })
    }
}

/// Runs the subcommand. Each thread is tried; the first refusal is the error.
fn set(args: &SchedSetArgs) -> Result<Exit> {
    let request = Request::of(&args.sched)?;
    let root = Root::live();
    let processes: Vec<i32> = match args.children {
        true => args.pids.iter().flat_map(|pid| with_children(&root, *pid)).collect(),
        false => args.pids.clone(),
    };
    let of_process = |pid: &i32| RunningThread::of_process(&root, *pid);
    let tids: Vec<i32> = match args.threads || args.children {
        true => processes.iter().flat_map(of_process).map(|thread| thread.tid).collect(),
        false => processes,
    };
    if tids.is_empty() {
        bail!(
            "no process {} runs",
            args.pids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")
        );
    }
    let mut refused = None;
    let mut changed = 0;
    for tid in &tids {
        match request.give(*tid) {
            Ok(()) => changed += 1,
            Err(why) => drop(refused.get_or_insert_with(|| anyhow!("thread {tid}: {why}"))),
        }
    }
    let shown = output::page(format!("{changed} of {} threads changed\n", tids.len()));
    refused.map_or(Ok(()), Err)?;
    shown?;
    Ok(Exit::Fine)
}

/// `punctual sched show`.
fn show(args: &SchedShowArgs) -> Result<Exit> {
    let output = args.output.open(None)?;
    let root = Root::live();
    let threads = match args.pid {
        Some(pid) => RunningThread::of_process(&root, pid),
        None => RunningThread::all(&root),
    };
    let mut rows = Vec::new();
    for thread in threads {
        let Ok(attributes) = SchedAttributes::get(thread.tid) else { continue };
        if args.pid.is_some() || is_real_time(&attributes) {
            rows.push(row(&root, &thread, &attributes));
        }
    }
    let shown = match args.pid {
        Some(pid) if rows.is_empty() => bail!("no process {pid} runs"),
        None if rows.is_empty() => Block::words("no real-time threads"),
        _ => {
            let ids = ["PID", "TID"].map(|head| numbers(head).at_least(7));
            let named = [("POLICY", 28), ("NAME", 16), ("CPUS", 0)];
            let named = named.map(|(head, width)| words(head).at_least(width));
            let columns: Vec<_> = ids.into_iter().chain(named).collect();
            Table::new("", columns, rows).lined().into()
        }
    };
    output.write("punctual sched show", &[shown])?;
    Ok(Exit::Fine)
}

fn is_real_time(attributes: &SchedAttributes) -> bool {
    matches!(attributes.policy, scheduler::FIFO | scheduler::ROUND_ROBIN | scheduler::DEADLINE)
}

/// A thread that ends meanwhile has no CPUs.
fn row(root: &Root, thread: &RunningThread, attributes: &SchedAttributes) -> Vec<String> {
    let cpus = thread.status(root, "Cpus_allowed_list").unwrap_or_else(|| "-".to_owned());
    let reset = if attributes.flags & RESET_ON_FORK == 0 { "" } else { ", reset" };
    let policy = policy_words(attributes) + reset;
    vec![thread.pid.to_string(), thread.tid.to_string(), policy, thread.name.clone(), cpus]
}

/// The time that a program is watched.
const WATCH: Duration = Duration::from_secs(1);

/// `punctual sched check`.
fn check(args: &SchedCheckArgs) -> Result<Exit> {
    let outputs = args.verdicts.output.open()?;
    let root = Root::live();
    let pid = named(&root, &args.program)?;
    let ended = || anyhow!("process {pid} has ended");
    let mut envelope = Envelope::of(PROGRAM, "sched check");
    envelope.started_at = Some(jiff::Timestamp::now().to_string());
    let facts = MachineFacts::collect(&root);
    let mut settings = KernelSettings::collect(&root);
    let program = RunningProgram::watch(&root, pid, WATCH).ok_or_else(ended)?;
    let watched = program.watched.unwrap_or_default();
    settings.watch(&root, &facts);
    let others = RunningThread::real_time_beside(&root, pid);
    let around = ProgramSurroundings { facts: &facts, settings: &settings, others: &others };
    let verdicts = program.judge(&around);
    envelope.machine = Some(facts);
    let body = TuneBody {
        cpus: program.cpus(),
        why: "where its loops may run".to_owned(),
        workload: None,
        program: Some(JudgedProgram {
            pid,
            name: program.name.clone(),
            threads: program.threads.len() as u64,
            watched_ns: u64::try_from(watched.as_nanos()).unwrap_or(u64::MAX),
        }),
        verdicts,
    };
    args.verdicts.write(outputs, envelope, body)
}

/// The process of this number, or the only one of this name: as the kernel knows it, or as the last
/// part of the path or the script that it was started by.
fn named(root: &Root, text: &str) -> Result<i32> {
    if let Ok(pid) = text.parse::<i32>() {
        let runs = !RunningThread::of_process(root, pid).is_empty();
        return runs.then_some(pid).ok_or_else(|| anyhow!("no process {pid} runs"));
    }
    // Threads of the kernel have no command line, whose last part would be this.
    if text.is_empty() {
        bail!("an empty name is no process: give its number, or its name as 'ps -e' has it");
    }
    let own = std::process::id().cast_signed();
    let is_last = |word: &str| word.rsplit('/').next() == Some(text);
    let is_named = |pid: &i32| {
        let status = RunningThread::of_process(root, *pid).into_iter().next();
        let command = root.read(&format!("/proc/{pid}/cmdline"));
        // The program, or the script that an interpreter runs.
        let words = |line: &str| line.split('\0').take(2).any(is_last);
        status.is_some_and(|thread| thread.name == text)
            || matches!(command, Read::Text(line) if words(&line))
    };
    let pids: Vec<i32> =
        processes(root).into_iter().filter(|pid| *pid != own).filter(is_named).collect();
    match pids.as_slice() {
        [] => bail!("no process named {text:?} runs; a number is accepted too"),
        [pid] => Ok(*pid),
        several => {
            let list: Vec<String> = several.iter().map(i32::to_string).collect();
            bail!(
                "{} processes are named {text:?}: {}; give one of them",
                list.len(),
                list.join(", ")
            )
        }
    }
}
