//! Where no thread or process can be started: a result, or exit 2 with the limit's name, and
//! nothing that runs on.
//!
//! RLIMIT_NPROC counts the threads of a user: as root the program runs as one that nobody is.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Output};

use punctual_testkit::limits::PidsGroup;
use punctual_testkit::skip;

use crate::support::{Dir, punctual, stderr, until};

/// Commands that need threads, the least of them in this order first.
const COMMANDS: [&[&str]; 6] = [
    &["measure", "periodic", "-d", "50ms"],
    &["measure", "periodic", "-d", "50ms", "--load", "cpu", "--phase", "quiet"],
    &["measure", "noise", "-d", "50ms"],
    &["measure", "response", "-d", "50ms"],
    &["check", "-d", "1s", "-q"],
    &["run", "tasks.toml", "--duration", "50ms"],
];

/// A directory in which anybody may work, with the program and a file of tasks.
fn place(name: &str, mode: u32) -> (Dir, PathBuf) {
    let dir = Dir::new(name);
    let program = dir.path("punctual");
    fs::copy(punctual().get_program(), &program).expect("copied to where anybody may read");
    let tasks = "[[task]]\nname = \"a\"\nperiod = \"5ms\"\ncommand = [\"sleep\", \"60\"]\n";
    fs::write(dir.path("tasks.toml"), tasks).expect("writable");
    fs::set_permissions(&dir.0, fs::Permissions::from_mode(mode)).expect("own");
    (dir, program)
}

/// Asserts that it came to an end with a result, or with the reason in words.
fn ended(output: &Output, shown: &str) -> bool {
    let (code, words) = (output.status.code(), stderr(output));
    let refused = code == Some(2);
    // A task that could not be started fails the run.
    assert!(refused || matches!(code, Some(0 | 1)), "{shown}: {code:?} {words}");
    assert!(!words.contains("panicked"), "{shown}: {words}");
    if refused {
        let named = ["cannot start", "pids.max", "RLIMIT_NPROC", "raise"];
        assert!(named.iter().all(|name| words.contains(name)), "{shown}: {words}");
    }
    refused
}

/// The processes of this user.
fn processes(user: u32) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("procfs").flatten();
    let of_user = all.filter(|entry| entry.metadata().is_ok_and(|of| of.uid() == user));
    let names = of_user.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

#[test]
fn a_user_without_threads_left_is_told_so() {
    let root = skip::is_root();
    if !skip::need_native("RLIMIT_NPROC")
        || !skip::need_program("prlimit")
        || (root && !skip::need_program("setpriv"))
    {
        return;
    }
    let (dir, program) = place("nproc", 0o777);
    let user = 1_000_000 + std::process::id() % 1_000_000;
    // Any other user has processes already: 1 allows no thread more.
    for &most in if root { &[0, 1, 3][..] } else { &[1] } {
        for command in COMMANDS {
            let shown = format!("RLIMIT_NPROC {most}: {command:?}");
            let mut limited = Command::new(if root { "setpriv" } else { "prlimit" });
            if root {
                limited.args([format!("--reuid={user}"), format!("--regid={user}")]);
                limited.args(["--clear-groups", "prlimit"]);
            }
            limited.arg(format!("--nproc={most}")).arg("--").arg(&program).args(command);
            limited.current_dir(&dir.0).env("HOME", &dir.0).env("XDG_STATE_HOME", dir.path("own"));
            let output = limited.output().expect("it starts");
            let refused = ended(&output, &shown);
            assert!(refused || most > 1, "{shown}: there was no thread for it");
            if root {
                until("its processes to end", || processes(user).is_empty());
            }
        }
    }
}

#[test]
fn with_a_small_stack_a_command_runs_in_a_thread_or_says_what_it_needs() {
    if !skip::need_native("RLIMIT_STACK") {
        return;
    }
    let (dir, program) = place("stack", 0o777);
    for command in [&["--version"][..], &["sched", "run", "--other", "--", "true"], COMMANDS[1]] {
        for kib in [64, 384] {
            let mut limited = Command::new("sh");
            let script = format!("ulimit -s {kib}; exec \"$0\" \"$@\"");
            limited.arg("-c").arg(script).arg(&program).args(command).current_dir(&dir.0);
            let out = limited.env("XDG_STATE_HOME", dir.path("own")).output().expect("it starts");
            assert_eq!(out.status.code(), Some(0), "{kib} {command:?}: {}", stderr(&out));
        }
    }
    let root = skip::is_root();
    if !skip::need_program("prlimit") || (root && !skip::need_program("setpriv")) {
        return;
    }
    let mut limited = Command::new(if root { "setpriv" } else { "prlimit" });
    if root {
        let user = 2_000_000 + std::process::id() % 1_000_000;
        limited.args([format!("--reuid={user}"), format!("--regid={user}")]);
        limited.args(["--clear-groups", "prlimit"]);
    }
    limited.args(["--nproc=0", "--stack=65536:65536", "--"]).arg(&program).arg("--version");
    let out = limited.output().expect("it starts");
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    for word in ["RLIMIT_NPROC", "stack limit of 64 KiB", "ulimit -s 4096"] {
        assert!(stderr(&out).contains(word), "{word}: {}", stderr(&out));
    }
}

#[test]
fn a_control_group_without_threads_left_is_named() {
    let group = PidsGroup::new("threads");
    if !skip::need_device("control groups with pids.max that can be made", group.is_some()) {
        return;
    }
    let (Some(group), (dir, program)) = (group, place("pids", 0o755)) else { return };
    for most in [2, 3, 5] {
        group.limit(most);
        for command in COMMANDS {
            let shown = format!("pids.max {most}: {command:?}");
            let mut limited = group.command(&program);
            limited.args(command).current_dir(&dir.0).env("XDG_STATE_HOME", dir.path("own"));
            let refused = ended(&limited.output().expect("it starts"), &shown);
            assert!(refused || most > 2, "{shown}: a thread beside the first is too few");
            until("its processes to end", || group.members().is_empty());
        }
    }
}
