//! `punctual task exec -- CMD…`: a program in any language as a task of `punctual run`.
//!
//! Starts the program, registers when it is ready, and turns each release into a line of its
//! standard input; a line of its standard output is the end of the cycle. The program ends with the
//! task. Waits for the program without a limit of its own: the supervisor has those, for
//! registering (`register_within`), for a cycle (`overrun`) and for the end.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use punctual::Registration;
use punctual_lab::tasks::hex;
use punctual_os::errno::Errno;

use crate::args::{TaskCommand, TaskExecArgs};
use crate::exit::Exit;
use crate::format as show;

/// The longest line of the program: an output of 4096 bytes as hex digits with spaces.
const LINE_MAX: u64 = 16_384;
/// What the program has for its own end; the supervisor gives its tasks 2 s.
const GRACE: Duration = Duration::from_secs(1);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(5);

/// Runs the subcommand.
pub(crate) fn run(command: &TaskCommand) -> Result<Exit> {
    let TaskCommand::Exec(args) = command;
    if std::env::var_os(punctual::process::TASK_VARIABLE).is_none() {
        bail!("not started by 'punctual run': name this command in its file (docs/running.md)");
    }
    let mut program = Program::start(args)?;
    // Its first line: it is ready. A first output is valid from its first cycle on.
    let Some(mut output) = program.line()? else { return program.ended() };
    let mut task = Registration::from_env(None)?;
    commit(&mut task, &output)?;
    loop {
        let cycle = match task.wait() {
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
        output = match program.tell(&cycle).then(|| program.line()).transpose()?.flatten() {
            Some(output) => output,
            None => {
                task.unregister();
                return program.ended();
            }
        };
        commit(&mut task, &output)?;
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
    from: BufReader<ChildStdout>,
}

impl Program {
    fn start(args: &TaskExecArgs) -> Result<Self> {
        let (program, rest) = args.command.split_first().context("no command")?;
        let name = show::plain(&program.to_string_lossy());
        let mut command = Command::new(program);
        command.args(rest).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let from = BufReader::new(from.context("no pipe from the program")?);
        Ok(Self { name, child, to, from })
    }

    /// Writes a line; false where the program reads no more.
    fn tell(&mut self, line: &str) -> bool {
        self.to.as_mut().is_some_and(|to| to.write_all(line.as_bytes()).is_ok())
    }

    /// Its next line, without its end; `None` where it has closed its output.
    fn line(&mut self) -> Result<Option<String>> {
        let mut line = Vec::new();
        let read = self.from.by_ref().take(LINE_MAX).read_until(b'\n', &mut line);
        read.with_context(|| format!("cannot read from {}", self.name))?;
        match line.pop() {
            None => Ok(None),
            Some(b'\n') => Ok(Some(String::from_utf8_lossy(&line).trim().to_owned())),
            Some(_) if line.len() as u64 + 1 < LINE_MAX => Ok(None),
            Some(_) => bail!("{}: line is longer than {LINE_MAX} bytes", self.name),
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

    /// What became of a program that has closed its output by itself.
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
