//! The program under strace, which logs its system calls, ends it as it enters one, or fails the
//! call in its place.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use punctual_testkit::skip;

use crate::support::{Dir, punctual};

/// Runs the program with `args` under strace, which logs `calls` and does each of `faults`: a call
/// and what happens to it, as `--inject` takes it.
pub(crate) fn run(args: &[String], log: &Path, calls: &str, faults: &[(&str, String)]) -> Output {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(log).args(["-e", &format!("trace={calls}")]);
    strace.args(["-e", "signal=none"]);
    for (call, what) in faults {
        strace.args(["-e", &format!("inject={call}:{what}")]);
    }
    strace.arg(punctual().get_program()).args(args);
    // What cargo's path for libraries has the loader look for is no call of the program's.
    strace.env_remove("LD_LIBRARY_PATH");
    strace.stdin(Stdio::null()).output().expect("strace starts")
}

/// Whether the program may be traced here.
pub(crate) fn may_trace(dir: &Dir) -> bool {
    let log = dir.path("probe");
    let mut strace = Command::new("strace");
    let traced = strace.args(["-qq", "-o"]).arg(&log).arg("true").output();
    let may = traced.is_ok_and(|out| out.status.success());
    let _none = std::fs::remove_file(log);
    skip::need("the right to trace (ptrace)", may)
}
