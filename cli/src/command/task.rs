//! `punctual task exec -- CMD…`: a program in any language as a task of `punctual run`.
//!
//! Starts the program, registers when it is ready, and turns each release into a line of its
//! standard input; the next line of its standard output is the end of the cycle, and lines beyond
//! that are surplus. The program ends with the task. Waits for the program without a limit of its
//! own: the supervisor has those, for registering (`register_within`), for a cycle (`overrun`) and
//! for the end.

use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use punctual::Registration;
use punctual_engine::spawn;
use punctual_lab::tasks::hex;
use punctual_os::Errno;
use punctual_os::events::{self, Interest};

use crate::subcommand::{Execute, Exit};
use crate::{format as show, output};

/// `punctual task`.
#[derive(Debug, clap::Args)]
pub(super) struct TaskArgs {
    #[command(subcommand)]
    command: TaskCommand,
}

/// Subcommands about one task.
#[derive(Debug, clap::Subcommand)]
enum TaskCommand {
    /// Run a program in any language as the task: one line in per cycle, one line out at its end
    ///
    /// The program prints a line when it is ready. For each release it then reads a line with the
    /// cycle's number, its release (ns of CLOCK_MONOTONIC) and the releases missed since the last
    /// one, and prints a line when the cycle is done: empty, or the task's output as hex digits.
    /// The end of its input is the end of the task
    #[command(after_long_help = "Examples:\n\
                       \x20 command = [\"punctual\", \"task\", \"exec\", \"--\", \
                       \"python3\", \"camera.py\"]")]
    Exec(TaskExecArgs),
}

/// `punctual task exec`.
#[derive(Debug, clap::Args)]
struct TaskExecArgs {
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The longest line of the program: an output of 4096 bytes as hex digits with spaces.
const LINE_MAX: usize = 16_384;
/// Bytes that are read at once.
const CHUNK: usize = 4_096;
/// Reads of surplus before a release: a whole pipe, however fast it is filled again.
const SURPLUS_READS: usize = 16;
/// The time of the program for its own end; the supervisor gives its tasks 2 s.
const GRACE: Duration = Duration::from_secs(1);
/// The time from one look at it to the next.
const LOOK: Duration = Duration::from_millis(5);

impl Execute for TaskArgs {
    fn execute(&self) -> Result<Exit> {
        let TaskCommand::Exec(args) = &self.command;
        if std::env::var_os(punctual_engine::process::TASK_VARIABLE).is_none() {
            bail!("not started by 'punctual run': name this command in its file (docs/running.md)");
        }
        let mut program = Program::start(args)?;
        // Its first line: it is ready. A first output is valid from its first cycle on.
        let Some(first) = program.line()? else { return program.ended() };
        let mut task = Registration::from_env(None)?;
        commit(&mut task, &first)?;
        loop {
            let released = task.wait();
            program.drop_surplus()?;
            let cycle = match released {
                Ok(cycle) => format!("{} {} {}\n", cycle.n, cycle.release.as_ns(), cycle.missed),
                Err(why) => {
                    program.leave();
                    return if why.errno() == Some(Errno::CANCELED.0) {
                        Ok(Exit::Fine)
                    } else {
                        Err(why.into())
                    };
                }
            };
            let line = match program.tell(&cycle).then(|| program.answer()).transpose()?.flatten() {
                Some(line) => line,
                None => {
                    task.abandon();
                    return program.ended();
                }
            };
            commit(&mut task, &line)?;
        }
    }
}

/// Commits the output that a line holds, if any.
fn commit(task: &mut Registration, line: &str) -> Result<()> {
    if line.is_empty() {
        return Ok(());
    }
    let shown = || show::plain(&line.chars().take(40).collect::<String>());
    let bytes = hex(line).ok_or_else(|| {
        anyhow!("output must be 1 to 4096 bytes as pairs of hex digits, got {:?}", shown())
    })?;
    if !task.commit(&bytes) {
        let length = bytes.len();
        bail!("output of {length} bytes is longer than the task's 'safe' value {:?}", shown());
    }
    Ok(())
}

/// The program and its two pipes; it ends when this is dropped.
struct Program {
    name: String,
    child: Child,
    to: Option<ChildStdin>,
    from: ChildStdout,
    /// Bytes that were read of `from` and are no line that was taken.
    pending: Vec<u8>,
    /// Lines that ended no cycle.
    surplus: u64,
}

impl Program {
    fn start(args: &TaskExecArgs) -> Result<Self> {
        let (program, rest) = args.command.split_first().context("no command")?;
        let name = show::plain(&program.to_string_lossy());
        let mut command = Command::new(program);
        command.args(rest).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            spawn::process(&mut command).with_context(|| format!("cannot start {name}"))?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let from = from.context("no pipe from the program")?;
        Ok(Self { name, child, to, from, pending: Vec::new(), surplus: 0 })
    }

    /// Writes a line; false where the program reads no more.
    fn tell(&mut self, line: &str) -> bool {
        self.to.as_mut().is_some_and(|to| to.write_all(line.as_bytes()).is_ok())
    }

    /// The line that ends a cycle: one that it writes once it has read of its release.
    fn answer(&mut self) -> Result<Option<String>> {
        loop {
            let line = self.line()?;
            let unread = self.to.as_ref().and_then(|to| Interest::new(to.as_raw_fd()).unread());
            if line.is_none() || unread.unwrap_or(0) == 0 {
                return Ok(line);
            }
            self.count_surplus();
        }
    }

    /// Takes the lines that it has written since the last one: no release is open that they end.
    fn drop_surplus(&mut self) -> Result<()> {
        for _ in 0..SURPLUS_READS {
            while self.take_line().is_some() {
                self.count_surplus();
            }
            let mut output = [Interest::new(self.from.as_raw_fd())];
            let is_readable = events::wait_until(&mut output, 0).is_ok() && output[0].is_readable();
            if !is_readable || self.pending.len() >= LINE_MAX || !self.read()? {
                break;
            }
        }
        Ok(())
    }

    /// Says it of the first, the tenth, the hundredth, and so on.
    fn count_surplus(&mut self) {
        self.surplus += 1;
        let (name, count) = (&self.name, self.surplus);
        if 10_u64.checked_pow(count.ilog10()) == Some(count) {
            output::message(&format!(
                "{name}: surplus lines so far: {count}; a cycle ends by one line, after the \
                 program has read its release"
            ));
        }
    }

    /// Its next line, without its end; `None` where it has closed its output.
    fn line(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.pending.len() >= LINE_MAX {
                bail!("{}: line is longer than {LINE_MAX} bytes", self.name);
            }
            if !self.read()? {
                return Ok(None);
            }
        }
    }

    /// A whole line of what was read.
    fn take_line(&mut self) -> Option<String> {
        let end = self.pending.iter().take(LINE_MAX).position(|&byte| byte == b'\n')?;
        let line: Vec<u8> = self.pending.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).trim().to_owned())
    }

    /// Reads what there is, at least a byte; false at the end of its output.
    fn read(&mut self) -> Result<bool> {
        let mut chunk = [0; CHUNK];
        loop {
            match self.from.read(&mut chunk) {
                Ok(count) => {
                    self.pending.extend(chunk.iter().take(count));
                    return Ok(count > 0);
                }
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => {
                    return Err(why).with_context(|| format!("cannot read from {}", self.name));
                }
            }
        }
    }

    /// Closes its input and waits for its end; after the grace it is ended.
    fn leave(&mut self) -> Option<ExitStatus> {
        self.to = None;
        let begun = Instant::now();
        loop {
            match self.child.try_wait() {
                // Polls a process that ends; the loop is over.
                Ok(None) if begun.elapsed() < GRACE => std::thread::sleep(LOOK),
                Ok(Some(status)) => return Some(status),
                _ => return None,
            }
        }
    }

    /// The exit of a program that has closed its output by itself.
    fn ended(mut self) -> Result<Exit> {
        match self.leave() {
            Some(status) if status.success() => Ok(Exit::Fine),
            Some(status) => bail!("{} failed: {status}", self.name),
            None => bail!("{} closed its standard output and did not exit", self.name),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have exited.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
