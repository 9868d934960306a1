//! A program of somebody else's as a part of a load: tied to it, listened to, ended.
//!
//! The program belongs to the load's process group, and is tied to the load by
//! [`become_program`](super::child). The load lives as long as the main thread of its process,
//! which the kernel's tie refers to.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use punctual_engine::spawn;
use punctual_os::process::{self, EndSignal};

use super::launcher::Launcher;
use super::protocol::{EXEC, Setup};

/// Lines that wait to be read; a program that writes more waits too.
const LINES: usize = 1024;

/// A program that runs.
pub(super) struct Program {
    child: Child,
    lines: Receiver<String>,
}

impl Program {
    /// Starts `path` with `args` and, in its environment, `variables`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(
        setup: &Setup,
        launcher: &dyn Launcher,
        path: &Path,
        args: &[String],
        variables: &[(&str, String)],
    ) -> Result<Self, String> {
        let mut words = vec![path.to_string_lossy().into_owned()];
        words.extend_from_slice(args);
        let step = Setup {
            name: EXEC.to_owned(),
            parent: std::process::id().cast_signed(),
            words,
            ..setup.clone()
        };
        let mut command = launcher.command(&step.to_args());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let mut child =
            spawn::process(&mut command).map_err(|why| format!("{}: {why}", path.display()))?;
        let (sender, lines) = sync_channel(LINES);
        let out = child.stdout.take().map(|out| listen(out, sender.clone()));
        let errors = child.stderr.take().map(|errors| listen(errors, sender));
        if let Err(why) = out.into_iter().chain(errors).collect::<io::Result<()>>() {
            // Without its outputs nobody learns what it does.
            let _ended = child.kill().and_then(|()| child.wait());
            return Err(why.to_string());
        }
        Ok(Self { child, lines })
    }

    /// The next line that it writes, on either output; `None` when there is none within `wait`.
    pub(super) fn line(&self, wait: Duration) -> Option<String> {
        self.lines.recv_timeout(wait).ok()
    }

    /// The lines that it writes until both of its outputs have ended, for `patience` at most: for
    /// one that has ended, whose last lines may still be on their way.
    pub(super) fn rest(&self, patience: Duration) -> impl Iterator<Item = String> {
        let deadline = Instant::now() + patience;
        std::iter::from_fn(move || {
            self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
        })
    }

    /// Returns true once it has ended.
    pub(super) fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Requests its end.
    pub(super) fn end(&mut self, how: EndSignal) {
        if !self.is_over() {
            // It is not yet waited for, so that the number is still its own.
            let _ = process::end(self.child.id().cast_signed(), how);
        }
    }
}

fn listen(source: impl Read + Send + 'static, sender: SyncSender<String>) -> io::Result<()> {
    let pass_on = move || {
        let lines = BufReader::new(source).lines().map_while(Result::ok);
        for line in lines {
            if sender.send(line).is_err() {
                break;
            }
        }
    };
    spawn::plain("load-lines", pass_on).map(drop)
}

/// Directories of system programs that a user's `PATH` may leave out.
const SYSTEM: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The first executable file called `name` on `PATH`, then in the system's directories.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .chain(SYSTEM.map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|file| {
            file.metadata()
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_or_not() {
        assert!(find("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("no-such-program-anywhere"), None);
        assert_eq!(find(""), None, "a directory is no program");
    }
}
