//! Without any privilege: it works as SCHED_OTHER, says what was refused and what that costs.
//!
//! A control group with a small real-time budget: said before the run, in the result and after it.
//!
//! Makes a group of the controller `cpu` (version 1, `CONFIG_RT_GROUP_SCHED`) where the kernel has
//! that, puts the program into it, and removes it.
//!
//! Where no thread or process can be started: a result, or exit 2 with the limit's name, and
//! nothing that runs on.
//!
//! RLIMIT_NPROC counts the threads of a user: as root the program runs as one that nobody is.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use punctual_testkit::control_group::ControlGroup;
use punctual_testkit::skip;

use crate::{Dir, PROGRAM, copy_program, json, json_file, refused, stderr, stdout, until};

#[test]
fn works_as_sched_other_and_says_so() {
    let root = punctual_os::process::euid() == 0;
    let setpriv = Command::new("setpriv").arg("--version").output().is_ok();
    if !skip::need("setpriv (util-linux), to give privileges up", !root || setpriv) {
        return;
    }
    let dir = Dir::new("unprivileged");
    let program = dir.path("punctual");
    copy_program(&program);
    fs::set_permissions(&dir.0, fs::Permissions::from_mode(0o777)).expect("own");
    let mut command = Command::new(if root { "setpriv" } else { "env" });
    if root {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]);
        command.arg("--");
    }
    command.arg(&program).current_dir(&dir.0);
    command.args(["check", "--duration", "2s", "--json", "result.json"]);
    let out = command.output().expect("it starts");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = stdout(&out);
    assert!(page.contains("SCHED_OTHER") || !root, "{page}");
    if root {
        assert!(page.contains("refused: ") && page.contains("SCHED_FIFO 90"), "{page}");
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("any process can delay the loop. Use sudo."), "{page}");
        let verdict = page.split("Worst").next().expect("a verdict");
        assert!(verdict.contains("SCHED_OTHER"), "{verdict}");
        let text = fs::read(dir.path("result.json")).expect("written");
        let result: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let refused = &result["session"]["refused"];
        assert!(refused.to_string().contains("why"), "{refused}");
        assert_eq!(result["runs"][0]["setup"]["policy"], "SCHED_OTHER");
        let facts = Command::new(&program).args(["facts", "--json", "-"]).output().expect("starts");
        assert!(json(&facts)["rtprio_limit"].is_object());
    }
}

#[test]
fn settings_that_only_root_may_change_are_refused_with_the_way_out() {
    if !skip::need("root", skip::is_root()) || !skip::need_program("setpriv") {
        return;
    }
    let dir = Dir::new("unprivileged-tune");
    let (program, state) = (dir.path("punctual"), dir.path("state"));
    copy_program(&program);
    fs::create_dir(&state).expect("own");
    let apply = |state: &Path, more: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
        let command = command.args(["tune", "apply", "--state"]).arg(state).args(more);
        command.output().expect("it starts")
    };
    for mode in [0o755, 0o700] {
        fs::set_permissions(&state, fs::Permissions::from_mode(mode)).expect("own");
        refused(&apply(&state, &[]), &["tune.journal", "Permission denied", "use sudo"]);
    }
    // On a machine where it was never used.
    let missing = dir.path("missing/state");
    refused(&apply(&missing, &[]), &["missing", "Permission denied", "use sudo"]);
    // Of a directory that stands for a machine it need not be root.
    let tree = dir.path("tree");
    fs::create_dir(&tree).expect("own");
    let out = apply(&missing, &["--root", tree.to_str().expect("UTF-8")]);
    refused(&out, &["missing", "Permission denied", "--state DIR"]);
    assert!(!stderr(&out).contains("sudo"), "{}", stderr(&out));
}

#[test]
fn a_small_budget_of_the_control_group_is_said_before_and_after() {
    // Its real-time tasks may use a tenth of each CPU.
    let group = ControlGroup::with("cpu.rt_runtime_us", "budget");
    let group = group.filter(|group| group.write("cpu.rt_runtime_us", 100_000).is_ok());
    if !skip::need_device("a control group with a real-time budget", group.is_some()) {
        return;
    }
    let Some(group) = group else { return };
    let run = |args: &[&str]| group.command(PROGRAM).args(args).output().expect("a shell");
    let dir = Dir::new("cgroup-budget");
    let (json, tasks) = (dir.path("result.json"), dir.path("tasks.toml"));
    let json_arg = json.to_str().expect("UTF-8");
    let text = "of this control group may use only 10";
    let out =
        run(&["measure", "periodic", "--wait", "spin", "--duration", "1s", "--json", json_arg]);
    let errors = stderr(&out);
    assert!(errors.contains(text) && errors.contains("will stop them for up to 900"), "{errors}");
    let warnings = json_file(&json)["warnings"].to_string();
    assert!(warnings.contains("will stop them") && warnings.contains(text), "{warnings}");
    // What the tasks of a file will take is not known.
    fs::write(&tasks, "[[task]]\nname = \"a\"\nperiod = \"5ms\"\n").expect("writable");
    let tasks = tasks.to_str().expect("UTF-8");
    let out = run(&["run", tasks, "--duration", "100ms", "--json", json_arg]);
    for errors in [stderr(&out), json_file(&json)["warnings"].to_string()] {
        assert!(errors.contains(text) && errors.contains("up to 900"), "{errors}");
    }
}

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
    copy_program(&program);
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
    let pids = fs::read_dir("/proc").expect("procfs").flatten();
    let of_user = pids.filter(|entry| entry.metadata().is_ok_and(|meta| meta.uid() == user));
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
    let group = ControlGroup::with("pids.max", "threads");
    if !skip::need_device("control groups with pids.max that can be made", group.is_some()) {
        return;
    }
    let (Some(group), (dir, program)) = (group, place("pids", 0o755)) else { return };
    for most in [2, 3, 5] {
        group.write("pids.max", most).expect("a limit");
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
