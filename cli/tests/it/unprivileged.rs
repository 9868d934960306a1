//! Without any privilege: it works as SCHED_OTHER, says what was refused and what that costs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::{Dir, json, punctual, refused, stderr, stdout};
use punctual_testkit::skip;

#[test]
fn works_as_sched_other_and_says_so() {
    let root = punctual_os::process::euid() == 0;
    let setpriv = Command::new("setpriv").arg("--version").output().is_ok();
    if !skip::need("setpriv (util-linux), to give privileges up", !root || setpriv) {
        return;
    }
    let dir = Dir::new("unprivileged");
    let program = dir.path("punctual");
    fs::copy(punctual().get_program(), &program).expect("copied to where anybody may read");
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
    fs::copy(punctual().get_program(), &program).expect("copied to where anybody may read");
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
