//! Starting other programs: cargo, and what the tests need.
//!
//! Every child gets no standard input, so that none can wait for an answer.

use std::path::Path;
use std::process::{Command, Stdio};

/// Cargo, as the one that runs this, in the folder `root`. Continuous integration builds once:
/// there it keeps nothing for the next build, which is as much of the disk as the build itself.
pub(crate) fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root).stdin(Stdio::null());
    // Tests compare what is printed, and in a locale without UTF-8 it is ASCII.
    command.env("LC_ALL", "C.UTF-8");
    if in_ci() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// Runs `command` with its output where ours goes; an error names it and how it ended.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = show(command);
    let status =
        command.stdin(Stdio::null()).status().map_err(|error| format!("{shown}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{shown}: {status}")) }
}

/// Runs `command` and returns what it printed; its errors go where ours go.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let shown = show(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{shown}: {error}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{shown}: {}", output.status))
    }
}

/// The command as a person would type it.
pub(crate) fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    let args = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(name).chain(args).collect::<Vec<_>>().join(" ")
}

/// Returns true where a program of that name is on the path; of an absolute path, where it is.
pub(crate) fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Returns true where continuous integration runs this: then everything must be there.
pub(crate) fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// Returns true where the effective user is root.
pub(crate) fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    effective_uid(&status) == Some(0)
}

/// The second number of the line `Uid:` of `/proc/PID/status` (proc_pid_status(5)).
fn effective_uid(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_child_is_named() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert!(error.contains("sh -c exit 3") && error.contains('3'), "{error}");
        assert!(run(&mut Command::new("no-such-program")).unwrap_err().contains("no-such-program"));
    }

    #[test]
    fn what_a_child_prints_is_returned() {
        assert_eq!(output(Command::new("sh").args(["-c", "echo a"])).unwrap(), b"a\n");
    }

    #[test]
    fn the_path_is_searched() {
        assert!(on_path("sh") && !on_path("no-such-program"));
        assert!(on_path("/bin/sh") && !on_path("/bin/no-such-program"));
    }

    #[test]
    fn the_effective_user_counts() {
        assert_eq!(effective_uid("Name:\tx\nUid:\t1000\t0\t1000\t1000\n"), Some(0));
        assert_eq!(effective_uid("Uid:\t0\t1000\t0\t0\n"), Some(1000));
        assert_eq!(effective_uid("Name:\tx\n"), None);
    }
}
