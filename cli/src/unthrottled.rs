//! Real-time throttling and a CPU's fair server switched off, by a process of its own that puts
//! them back whatever ends the one that measures.
//!
//! For `measure saturation --unsafe-no-throttle`. That process changes the settings, journal first,
//! waits above every other thread for the end of its standard input, and is in a process group of
//! its own. Where it is killed itself, the one that measures puts them back; where both are,
//! `punctual tune revert` does.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use punctual_engine::session::ThreadSession;
use punctual_engine::spawn;
use punctual_host::Root;
use punctual_lab::tuning::{self, MachineFiles, StepOutcome, WantedValue};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::events::{self, Interest};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::{Errno, signal};

use crate::format;
use crate::output::{JournalFile, JournalName, SettingsLock, SettingsOwner};
use crate::settings::{applied_line, put_back};

/// The word that selects that process.
pub(crate) const WORD: &str = "__unthrottle";
/// The words that it writes once they are off, and once they are as before.
const READY: &str = "off";
const RESTORED: &str = "restored";
/// Its priority: above every thread of the experiment.
const PRIORITY: u8 = 99;

/// Whom it works for.
const COMMAND: &str = "measure saturation";

/// Throttling, for all CPUs; and what runs ordinary threads of a CPU where it is off.
const THROTTLING: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const SCHED: &str = "/sys/kernel/debug/sched";

/// The settings are off while this lives.
#[derive(Debug)]
pub(crate) struct Unthrottled {
    process: Child,
    /// Its end tells the process to put them back.
    orders: Option<ChildStdin>,
    /// Puts them back where the process was killed.
    watcher: Option<JoinHandle<Result<()>>>,
}

impl Unthrottled {
    /// Switches them off, for `limit` at most; the journal is in `state`.
    pub(crate) fn begin(state: &Path, cpu: u32, limit: Duration) -> Result<Self> {
        let own = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(own);
        command.arg(WORD).arg(state).arg(cpu.to_string()).arg(limit.as_secs().to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut process =
            spawn::process(&mut command).context("cannot start the process that ends it")?;
        let orders = process.stdin.take();
        let mut lines = BufReader::new(process.stdout.take().context("no output")?).lines();
        let first = lines.next().and_then(Result::ok);
        if first.as_deref() != Some(READY) {
            drop(orders);
            let _ended = process.wait();
            bail!("cannot switch throttling off: {}", first.as_deref().unwrap_or("no answer"));
        }
        let state = state.to_owned();
        let mut begun = Self { process, orders, watcher: None };
        let watch = move || match lines.next().and_then(Result::ok) {
            Some(line) if line == RESTORED => Ok(()),
            Some(why) => bail!("throttling: {why}"),
            None => killed(&state),
        };
        // Where it cannot be started the drop of what has begun puts them back.
        begun.watcher = Some(spawn::plain("punctual-restore", watch)?);
        Ok(begun)
    }

    /// Puts them back; an error where that was too early, or failed.
    pub(crate) fn end(mut self) -> Result<()> {
        drop(self.orders.take());
        let watcher = self.watcher.take().context("ended twice")?;
        watcher.join().unwrap_or_else(|why| std::panic::resume_unwind(why))
    }
}

impl Drop for Unthrottled {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ended = self.process.wait();
    }
}

/// The process is gone without a word.
fn killed(state: &Path) -> Result<()> {
    let owner = SettingsOwner::of(&Root::live())?;
    let boot = owner.to_string();
    let settings = SettingsLock::take(None, &owner, COMMAND)?;
    let mut journal = JournalFile::lock(&settings, state, JournalName::Throttling)?;
    let left = put_back(&mut journal, &boot)?;
    bail!("the process that puts throttling back was killed; {left} settings are not as before")
}

/// `punctual __unthrottle STATE CPU SECONDS`: that process. Not for people.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let (line, code) = match held(words) {
        Ok(()) => (RESTORED.to_owned(), 0),
        Err(why) => (format!("{why:#}"), 2),
    };
    // The one that measures may be gone.
    let _nobody = say(&line);
    ExitCode::from(code)
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn held(words: &[String]) -> Result<()> {
    let [state, cpu, seconds] = words else { bail!("STATE CPU SECONDS") };
    let (state, cpu): (PathBuf, u32) = (state.into(), cpu.parse().context("a CPU")?);
    let limit = Duration::from_secs(seconds.parse().context("a number of seconds")?);
    signal::catch_stop().map_err(|why| io::Error::from_raw_os_error(why.0))?;
    // Whatever is requested, what was changed is put back.
    let _hold = signal::Hold::begin();
    let session = ThreadSession::enter(None, SchedPolicy::Fifo(PRIORITY));
    if session.policy() != SchedPolicy::Fifo(PRIORITY) {
        bail!("the process that puts it back needs SCHED_FIFO {PRIORITY}, which is not permitted");
    }
    let owner = SettingsOwner::of(&Root::live())?;
    let boot = owner.to_string();
    let mut settings = SettingsLock::take(None, &owner, COMMAND)?;
    let mut journal = JournalFile::begin(&mut settings, &state, JournalName::Throttling)?;
    let status = format::tune("status", None, &state);
    if put_back(&mut journal, &boot)? > 0 {
        bail!("what an earlier run left cannot be put back: {status}");
    }
    let off = switch_off(cpu, &mut journal, &boot);
    let late = off.is_ok() && say(READY).is_ok() && wait(limit);
    let left = put_back(&mut journal, &boot)?;
    off?;
    if left > 0 {
        bail!("{left} settings are not as before: {status}");
    }
    if late {
        bail!("it was put back after {} s, before the measurement ended", limit.as_secs());
    }
    Ok(())
}

/// Both, or an error.
fn switch_off(cpu: u32, journal: &mut JournalFile, boot: &str) -> Result<()> {
    if !Path::new(SCHED).is_dir() {
        bail!(
            "{SCHED} is not there, where the fair server is switched off: mount -t debugfs debugfs \
             /sys/kernel/debug"
        );
    }
    let mut wanted = vec![WantedValue::new(THROTTLING, "-1")];
    let server = format!("{SCHED}/fair_server/cpu{cpu}/runtime");
    // Kernels before 6.12 have none.
    if Path::new(&server).exists() {
        wanted.push(WantedValue::new(&server, "0"));
    }
    let mut refused = None;
    tuning::apply(&wanted, &mut MachineFiles::live(), journal, boot, |step| {
        if !matches!(step.outcome, StepOutcome::Applied | StepOutcome::Already) {
            refused = Some(applied_line(&step));
        }
    })?;
    refused.map_or(Ok(()), |why| bail!("{why}"))
}

/// Waits until standard input ends: its other end was closed, or who had it is gone. Whether it was
/// still open after `limit`.
fn wait(limit: Duration) -> bool {
    let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let until_ns = now_ns(ClockId::Monotonic).saturating_add(limit_ns);
    loop {
        match events::wait_until(&mut [Interest::new(0)], until_ns) {
            Err(Errno::INTR) => {}
            Ok(0) => return true,
            Ok(_) | Err(_) => return false,
        }
    }
}
