//! `punctual isolate -- CMD…`: CPUs kept for a command as long as it runs.
//!
//! Changes what the plan of `tune` changes for these CPUs, and makes a control group, journal
//! first; `sched run` starts the command in it. Waits for the command, then puts all back.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, bail};
use punctual_engine::spawn;
use punctual_host::plan::{CpuPartition, TuningPlan};
use punctual_host::{CpuList, Root};
use punctual_lab::tuning::{
    self, KnobFiles as _, MachineFiles, StepOutcome, WantedValue, move_threads,
};
use punctual_os::affinity::CpuMask;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::events::{self, Interest};
use punctual_os::process::{self, EndSignal};
use punctual_os::{pidfd, signal};

use crate::args::StateArgs;
use crate::format;
use crate::output::{self, JournalFile, JournalName, SettingsLock, SettingsOwner};
use crate::settings::{
    AppliedCounts, TuneScopeArgs, TunedMachine, applied_line, counted, put_back,
};
use crate::subcommand::{Execute, Exit};

/// `punctual isolate`.
#[derive(Debug, clap::Args)]
pub(super) struct IsolateArgs {
    /// The CPUs to keep for the command, as the kernel lists them: 3, 2-3,7; or 'half': the last
    /// half of the cores, as for 'punctual tune'
    #[arg(long, value_name = "LIST")]
    cpus: String,
    /// SCHED_FIFO with this priority, 1 to 99: runs until it waits
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    fifo: Option<u8>,
    /// Run the command as this user, with the groups of that user
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    #[command(flatten)]
    state: StateArgs,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The time from one look for a signal that is to be passed on to the next, ns.
const LOOK_NS: u64 = 50_000_000;

impl Execute for IsolateArgs {
    fn execute(&self) -> Result<Exit> {
        signal::catch_stop_unless_ignored()
            .map_err(|errno| std::io::Error::from_raw_os_error(errno.0))?;
        // Whatever is requested, what was changed is put back.
        let _hold = signal::Hold::begin();
        let owner = SettingsOwner::of(&Root::live())?;
        let boot = owner.to_string();
        let mut settings = SettingsLock::take(None, &owner, "isolate")?;
        let mut journal =
            JournalFile::begin(&mut settings, &self.state.state, JournalName::Isolation)?;
        let scope = TuneScopeArgs::of_cpus(&self.cpus, None);
        let shown = || format::tune("status", None, &self.state.state);
        if put_back(&mut journal, &boot)? > 0 {
            bail!("what an earlier 'punctual isolate' left cannot be put back: {}", shown());
        }
        let machine = TunedMachine::read(&scope)?;
        machine.leaves_cpus(&scope)?;
        let (cpus, online) = (&machine.scope.cpus, machine.facts.cpu.online_cpus.value());
        let others = online.map(|online| online.difference(cpus)).unwrap_or_default();
        let booted = machine.facts.isolation.isolated_cpus.value().cloned().unwrap_or_default();
        let release = machine.settings.release;
        let partition = CpuPartition::of(&machine.root, (cpus, &others), &booted, release)
            .map_err(anyhow::Error::msg)?;
        are_free(&partition)?;
        let mut plan = machine.plan(&[])?;
        plan.keep_isolation();
        let ended = match isolate(&partition, &plan, &mut journal, &boot) {
            Ok(()) => {
                move_others(&partition, &machine);
                command(self, (cpus, &partition.group)).and_then(wait_for)
            }
            Err(why) => Err(why),
        };
        if let Some(lost) = ended.is_ok().then(|| lost(&partition)).flatten() {
            output::message(&format!("the partition was lost meanwhile: {lost}"));
        }
        let left = put_back(&mut journal, &boot)?;
        let status = ended?;
        if left > 0 {
            bail!("{} not as before: {}", counted(left), shown());
        }
        Ok(Exit::Status(code(status)))
    }
}

/// Refuses names of groups that somebody else has.
fn are_free(partition: &CpuPartition) -> Result<()> {
    let groups = partition.settings.iter().filter(|(path, _)| path.ends_with('/'));
    for (group, _) in groups {
        if Path::new(group).exists() {
            bail!(
                "{group} is there already and is not in the journal; if no process uses it: \
                 sudo rmdir {group}"
            );
        }
    }
    Ok(())
}

/// Makes the groups and changes the settings. Of the groups all must be had, of the others what
/// the kernel gives.
fn isolate(
    partition: &CpuPartition,
    plan: &TuningPlan,
    journal: &mut JournalFile,
    boot: &str,
) -> Result<()> {
    let groups = partition.settings.iter().map(|(path, value)| WantedValue::new(path, value));
    let settings: Vec<WantedValue> =
        plan.writes().map(|write| WantedValue::new(write.path, write.value)).collect();
    let mut files = MachineFiles::live();
    let mut refused = None;
    for group in groups {
        tuning::apply(&[group], &mut files, journal, boot, |step| {
            if !matches!(step.outcome, StepOutcome::Applied | StepOutcome::Already) {
                refused = Some(applied_line(&step));
            }
        })?;
        if let Some(refused) = refused {
            bail!("the CPUs cannot be isolated: {refused}");
        }
    }
    let mut counts = AppliedCounts::default();
    tuning::apply(&settings, &mut files, journal, boot, |step| {
        counts.count(&step);
        if !matches!(step.outcome, StepOutcome::Applied | StepOutcome::Already) {
            output::message(&applied_line(&step));
        }
    })?;
    output::message(&format!("{} made, {counts}", partition.group));
    Ok(())
}

/// Moves everybody else away, where a partition does not do that.
fn move_others(partition: &CpuPartition, machine: &TunedMachine) {
    let Some(others) = &partition.others else { return };
    let mut online_mask = CpuMask::EMPTY;
    let online = machine.facts.cpu.online_cpus.value();
    online.into_iter().flat_map(|online| online.iter()).for_each(|cpu| online_mask.insert(cpu));
    let done = move_threads(Path::new(&partition.above), Path::new(others), &online_mask);
    output::message(&format!(
        "{} threads moved to the other CPUs; not moved: {} that are pinned, {} of the kernel",
        done.moved, done.pinned, done.bound
    ));
}

/// What starts the command on these CPUs, in their group.
fn command(args: &IsolateArgs, (cpus, group): (&CpuList, &str)) -> Result<Command> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(own);
    command.args(["sched", "run", "--cpu", &cpus.to_string(), "--isolated"]);
    command.arg(format!("{group}cgroup.procs")).arg(std::process::id().to_string());
    if let Some(priority) = args.fifo {
        command.args(["--fifo", &priority.to_string()]);
    }
    if let Some(user) = &args.user {
        command.args(["--user", user]);
    }
    command.arg("--").args(&args.command);
    Ok(command)
}

/// Runs the command until it ends, and passes on the signals that request an end.
fn wait_for(mut command: Command) -> Result<ExitStatus> {
    let mut child = spawn::process(&mut command).context("cannot start the command")?;
    let pid = i32::try_from(child.id()).context("the number of a process")?;
    // Without it (Linux 5.3) the end is seen at the next look.
    let pidfd = pidfd::open(pid).ok();
    let mut over: Vec<Interest> = pidfd.iter().map(|fd| Interest::new(fd.number())).collect();
    let (mut passed_on, mut killed) = (false, false);
    loop {
        let _over_or_not = events::wait_until(&mut over, now_ns(ClockId::Monotonic) + LOOK_NS);
        if let Some(status) = child.try_wait().context("cannot wait for the command")? {
            return Ok(status);
        }
        if let Some(how) = signal::stop_signal().and_then(to_pass_on).filter(|_| !passed_on) {
            passed_on = true;
            // It may have ended meanwhile.
            let _ended = process::end(pid, how);
        }
        if signal::hurry_flag().load(Ordering::Relaxed) && !killed {
            killed = true;
            let _ended = process::end(pid, EndSignal::Kill);
        }
    }
}

/// The signal for the command when this process got one. A terminal sends SIGINT to both.
fn to_pass_on(signal: i32) -> Option<EndSignal> {
    use std::io::IsTerminal as _;
    let passed_on = [EndSignal::Interrupt, EndSignal::Terminate, EndSignal::HangUp];
    let how = passed_on.into_iter().find(|how| *how as i32 == signal)?;
    (how != EndSignal::Interrupt || !std::io::stdin().is_terminal()).then_some(how)
}

/// The state of the partition where it is none any more.
fn lost(partition: &CpuPartition) -> Option<String> {
    let (path, wanted) = partition.settings.last()?;
    let text = MachineFiles::live().read(path).ok()?;
    (text.trim() != wanted).then(|| text.trim().to_owned())
}

/// The status that a shell has for an end.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: IsolateArgs,
    }

    /// `sched run` takes a list of CPUs, and no word for some.
    #[test]
    fn the_command_gets_the_cpus_that_were_chosen() {
        let line = ["isolate", "--cpus", "half", "--fifo", "40", "--", "true"];
        let args = Line::try_parse_from(line).unwrap().args;
        let cpus = CpuList::parse("2-3", 3).unwrap();
        let command = command(&args, (&cpus, "/sys/fs/cgroup/punctual/")).unwrap();
        let words: Vec<String> =
            command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let own = std::process::id().to_string();
        let group = "/sys/fs/cgroup/punctual/cgroup.procs";
        let head = ["sched", "run", "--cpu", "2-3", "--isolated", group, own.as_str()];
        assert_eq!(words, [&head[..], &["--fifo", "40", "--", "true"]].concat());
    }
}
