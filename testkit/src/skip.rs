//! Skips that are counted: a test that lacks a part says so, and what it lacks.
//!
//! For every test that needs rights, a program or a kernel feature that a machine may not have.
//! Reads the environment and `/proc/self/status`, appends to the file that `PUNCTUAL_SKIP_LOG`
//! names. Never decides what a test needs, and never lets a skip pass where `CI=true`.
//!
//! ```
//! use punctual_testkit::skip;
//!
//! # fn test() {
//! if !skip::need("root", skip::is_root()) || !skip::need_program("ip") {
//!     return;
//! }
//! // What needs both.
//! # }
//! ```

use std::io::Write;
use std::panic::Location;
use std::path::{Path, PathBuf};

use punctual_os::scheduler::{self, SchedPolicy};

/// Names the file to which each skip is appended as a line `TEST (FILE)<tab>PART`.
pub const LOG: &str = "PUNCTUAL_SKIP_LOG";

/// Returns true where the test may go on: `present`. If not, the skip is printed and logged, and
/// the caller returns. `part` names what is missing, as in "missing: root".
///
/// # Panics
/// With `CI=true` in the environment when the part is missing: there a skip is a failure.
#[track_caller]
#[must_use = "a test without the part must return"]
pub fn need(part: &str, present: bool) -> bool {
    let is_run = present || skipped(part, "");
    let ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(is_run || !ci, "with CI=true a skip is a failure, and this test lacks {part}");
    is_run
}

/// As [`need`], for a device that no installation brings: its lack is no failure with `CI=true`
/// either, and is counted all the same.
#[track_caller]
#[must_use = "a test without the device must return"]
pub fn need_device(device: &str, present: bool) -> bool {
    present || skipped(device, DEVICE)
}

/// Ends the log's line of a skip that no installation can help.
const DEVICE: &str = "\tdevice";

/// Prints and logs that the calling test lacks `part`; false.
#[track_caller]
fn skipped(part: &str, kind: &str) -> bool {
    let thread = std::thread::current();
    let place = Location::caller();
    // The runner names a test's thread after the test; alone on the main thread, the place tells.
    let name = match thread.name() {
        None | Some("main") => format!("line {}", place.line()),
        Some(name) => name.to_owned(),
    };
    let test = format!("{name} ({})", place.file());
    eprintln!("SKIPPED {test}: {part}");
    if let Some(log) = std::env::var_os(LOG) {
        append(Path::new(&log), &format!("{test}\t{part}{kind}\n"));
    }
    false
}

/// Set by `cargo xtask arm64`: the processor is emulated, and so are the kernel's answers.
pub const EMULATED: &str = "PUNCTUAL_EMULATED";

/// As [`need`], for what an emulated processor has not: `part` names it, as in "real timing".
///
/// # Panics
/// As [`need`] does.
#[track_caller]
#[must_use = "a test without it must return"]
pub fn need_native(part: &str) -> bool {
    need(&format!("{part} (the processor is emulated)"), !is_emulated())
}

/// True where the processor is emulated, for a test that then expects something else.
pub fn is_emulated() -> bool {
    std::env::var_os(EMULATED).is_some()
}

/// As [`need`], for a kernel that grants SCHED_FIFO to threads of the test.
///
/// # Panics
/// As [`need`] does.
#[track_caller]
#[must_use = "a test without it must return"]
pub fn need_fifo() -> bool {
    let granted = std::thread::spawn(|| scheduler::set(0, SchedPolicy::Fifo(1)).is_ok());
    need("SCHED_FIFO", granted.join().unwrap_or(false))
}

/// As [`need`], for a user that may record the kernel's events: root, in a kernel that traces.
///
/// # Panics
/// As [`need`] does.
#[track_caller]
#[must_use = "a test without it must return"]
pub fn need_tracing() -> bool {
    // The kernel makes the directory, whether or not tracefs is mounted there.
    let has_events = Path::new("/sys/kernel/tracing").is_dir();
    need("root", is_root())
        && need_device("a kernel with CONFIG_TRACING", has_events)
        && need_native("perf events")
}

/// As [`need`], for a program on the path.
///
/// # Panics
/// As [`need`] does.
#[track_caller]
#[must_use = "a test without the program must return"]
pub fn need_program(name: &str) -> bool {
    need(&format!("{name} (`cargo xtask test --install` gets it)"), program(name).is_some())
}

/// Where a program lies on the path; `None` when it does not.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// True where the effective user is root, in whatever user namespace this is.
pub fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| effective_uid(&status) == Some(0))
}

/// The second number of the line `Uid:` (proc_pid_status(5)).
fn effective_uid(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// One write a line, so that tests of several threads do not mix theirs.
fn append(log: &Path, line: &str) {
    let written = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .and_then(|mut log| log.write_all(line.as_bytes()));
    assert!(written.is_ok(), "{}: {written:?}: a skip would go uncounted", log.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_skipped() {
        assert!(need("air", true));
        assert!(need_program("sh"));
    }

    #[test]
    fn programs_are_found_by_name() {
        assert!(program("sh").is_some_and(|path| path.ends_with("sh")));
        assert_eq!(program("no-such-program"), None);
    }

    #[test]
    fn the_effective_user_counts() {
        assert_eq!(effective_uid("Uid:\t1000\t0\t1000\t1000\n"), Some(0));
        assert_eq!(effective_uid("Name:\tx\n"), None);
    }

    /// Lacks something only as a child of the test below.
    #[test]
    fn lacking() {
        if std::env::var_os("PUNCTUAL_TEST_LACKING").is_some() {
            assert!(!need_device("a device", false));
            assert!(!need("a thing", false));
        }
    }

    #[test]
    fn a_skip_is_logged_and_in_ci_a_failure() {
        let log = std::env::temp_dir().join(format!("punctual-skip-test-{}", std::process::id()));
        let run = |ci: &str| {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "skip::tests::lacking", "--nocapture"]);
            child.env("PUNCTUAL_TEST_LACKING", "1").env(LOG, &log).env("CI", ci);
            child.output().unwrap()
        };
        let (passed, failed) = (run("false"), run("true"));
        let text = std::fs::read_to_string(&log);
        std::fs::remove_file(&log).unwrap();
        let page = String::from_utf8_lossy(&passed.stderr).into_owned();
        assert!(passed.status.success(), "{page}");
        assert!(page.contains("SKIPPED skip::tests::lacking"), "{page}");
        assert!(!failed.status.success(), "a skip passed with CI=true");
        let text = text.unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "one line a skip: {text}");
        for (line, end) in lines.iter().zip(["\ta device\tdevice", "\ta thing"].iter().cycle()) {
            assert!(line.ends_with(end), "{text}");
        }
    }
}
