//! The process of a task that a supervisor started, with all that it started itself: one end for
//! all of them.
//!
//! Programs are started here and nowhere else. The process leads a process group of its own, is in
//! a cgroup of its own where one can be had, and is killed by the kernel when the thread that
//! started it ends. Decides nothing: that is [`super::super::lifecycle`].

use super::super::cgroup::{Cgroup, Home};
use super::super::lifecycle::ProcessEnd;
use super::super::spec::Spec;
use super::super::{BLOCK_VARIABLE, SUPERVISOR_VARIABLE, TASK_VARIABLE};
use super::TaskBlock;
use punctual_core::time::{Instant, Span};
use punctual_os::child::{self, Program, Status, Text};
use punctual_os::descriptor::{self, Descriptor};
use punctual_os::process::{self, EndSignal};
use punctual_os::{Errno, pidfd};
use std::ffi::{CString, OsStr, OsString, c_int};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How long the end of a process waits for what it started: that was killed, and may still write to
/// memory that it inherited. A process that nobody has waited for is left behind after it.
const LINGER: Span = Span::from_ms(100);

/// ENOENT: there is no such program.
const NOT_FOUND: Errno = Errno(2);

/// What execvp(3) takes where the environment has no PATH (confstr(3), _CS_PATH).
const PATH: &str = "/bin:/usr/bin";

/// A process that was started.
#[derive(Debug)]
pub(super) struct Child {
    pid: i32,
    /// Tells that it ends; gone once it has.
    pidfd: Option<Descriptor>,
    cgroup: Option<Cgroup>,
    /// How it ended, and until when what it started is waited for.
    ended: Option<(ProcessEnd, Instant)>,
}

impl Child {
    /// Starts the program of a block that is clear. What it prints goes to standard error, so that
    /// a report stays alone.
    pub(super) fn start(block: &TaskBlock, home: Option<&Home>) -> Result<Self, Errno> {
        let [name, ..] = &block.spec.command[..] else { return Err(NOT_FOUND) };
        // A path is the kernel's to refuse, with its own reason.
        let path = if name.as_encoded_bytes().contains(&b'/') {
            name.clone()
        } else {
            program(name).ok_or(NOT_FOUND)?.into_os_string()
        };
        // As the supervisor finds it, whatever directory the process will be in.
        let path = std::path::absolute(path).map_or_else(|_| name.clone(), Into::into);
        let path = CString::new(path.into_vec()).map_err(|_| Errno::INVAL)?;
        let words = texts(block.spec.command.iter().cloned())?;
        let memory = block.memory.descriptor().number();
        let variables = texts(environment(&block.spec, memory))?;
        let (words, variables) = (list(&words), list(&variables));
        let null = File::open("/dev/null").map_err(|why| Errno(why.raw_os_error().unwrap_or(0)))?;
        // Not under one of the numbers that it and the others are to have.
        let input = descriptor::duplicate(null.as_raw_fd())?;
        let cgroup = home.and_then(Home::make);
        let pid = child::start(&Program {
            path: &path,
            arguments: &words,
            environment: &variables,
            input: input.number(),
            output: std::io::stderr().as_raw_fd(),
            inherited: &[memory],
            realtime_us: block.realtime_us,
            cgroup: cgroup.as_ref().map(Cgroup::procs),
            confinement: block.resolved.confinement(),
        })?;
        // Without it the end is seen at the next look.
        let pidfd = pidfd::open(pid).ok();
        Ok(Self { pid, pidfd, cgroup, ended: None })
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// What tells that the process has ended, while that is not known.
    pub(super) fn descriptor(&self) -> Option<c_int> {
        self.pidfd.as_ref().map(Descriptor::number)
    }

    /// Ends the process, and all that it started.
    pub(super) fn kill(&self) {
        // Until it is reaped its number is its own.
        if self.ended.is_none() {
            let _ended = process::end(self.pid, EndSignal::Kill);
            self.kill_others();
        }
    }

    fn kill_others(&self) {
        // None is left, or one of another user.
        let _gone = process::end_group(self.pid, EndSignal::Kill);
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
    }

    /// How the process ended, once all that it started has ended too.
    pub(super) fn has_ended(&mut self, now: Instant) -> Option<ProcessEnd> {
        if self.ended.is_none() {
            let exit = match child::status(self.pid) {
                Ok(None) => return None,
                Ok(Some(Status::Exited(status))) => ProcessEnd::Status(status),
                Ok(Some(Status::Killed(signal))) => ProcessEnd::Signal(signal),
                Err(_) => ProcessEnd::Unknown,
            };
            // Before it is reaped: then its number may be another group's.
            self.kill_others();
            let _reaped = child::reap(self.pid);
            self.pidfd = None;
            self.ended = Some((exit, now + LINGER));
        }
        let (exit, until) = self.ended?;
        (now >= until || !self.has_others()).then_some(exit)
    }

    /// Whether anything is left of what it started.
    fn has_others(&self) -> bool {
        process::group_exists(self.pid) == Ok(true)
            || self.cgroup.as_ref().is_some_and(Cgroup::is_populated)
    }
}

impl Drop for Child {
    /// Where its supervisor fails, nobody guards it.
    fn drop(&mut self) {
        self.kill();
    }
}

/// The environment of a task: its own or this process's, and what says who it is.
fn environment(spec: &Spec, memory: c_int) -> impl Iterator<Item = OsString> {
    let own = [
        (BLOCK_VARIABLE, memory.to_string()),
        (TASK_VARIABLE, spec.task.name.clone()),
        (SUPERVISOR_VARIABLE, std::process::id().to_string()),
    ];
    let names = own.clone().map(|(name, _)| name);
    let given = spec.surroundings.env.clone();
    let given = given.unwrap_or_else(|| std::env::vars_os().collect());
    let given = given.into_iter().filter(move |(name, _)| names.iter().all(|own| name != own));
    given.chain(own.map(|(name, value)| (name.into(), value.into()))).map(|(mut text, value)| {
        text.push("=");
        text.push(value);
        text
    })
}

/// As the kernel takes them; refuses one with a zero in it.
fn texts(all: impl Iterator<Item = OsString>) -> Result<Vec<CString>, Errno> {
    all.map(|text| CString::new(text.into_vec()).map_err(|_| Errno::INVAL)).collect()
}

fn list(texts: &[CString]) -> Vec<Text<'_>> {
    texts.iter().map(|text| Text::of(text)).chain([Text::END]).collect()
}

/// The file of the program of this name, where there is one that can be run; as execvp(3) looks for
/// it: a name with a slash is a path, any other one is looked for in PATH. Starts nothing.
///
/// # Real-time: setup only
pub fn program(name: &OsStr) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| can_run(path));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| PATH.into());
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| can_run(path))
}

fn can_run(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_for_and_a_path_is_not() {
        let shell = program(OsStr::new("sh")).expect("every system has one");
        assert!(shell.is_absolute() && shell.ends_with("sh"));
        assert_eq!(program(shell.as_os_str()), Some(shell));
        for none in ["no-such-program", "no/such/program", "/tmp", "/etc/passwd", ""] {
            assert_eq!(program(OsStr::new(none)), None, "{none:?}");
        }
    }
}
