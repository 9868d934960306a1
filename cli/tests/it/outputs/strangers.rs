//! As root, directories of other users: refused before anything is measured or written, unless
//! `--trust-directory` names them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use punctual_testkit::skip;

use super::{names, result, text};
use crate::support::{Dir, punctual, refused, run, stderr};

/// A user that is neither root nor the one who called these tests.
const STRANGER: u32 = 54_321;

/// Commands that choose names in `DIR`, which is in their place; the first ones take a moment.
fn commands(dir: &str) -> Vec<Vec<String>> {
    let below = format!("{dir}/below");
    let split = |line: &str| -> Vec<String> {
        let word = |word: &str| word.replace("BELOW", &below).replace("DIR", dir);
        line.split(' ').map(word).collect()
    };
    [
        "man DIR",
        "man BELOW/deeper",
        "capture BELOW/machine",
        "report DIR",
        "report DIR/result.json",
        "report OWN --plots BELOW/plots",
        "soak --every 1s --duration 1s --campaign BELOW/c",
        "check --duration 1s --results BELOW/results",
        "measure periodic --duration 1s --baseline day --baselines BELOW/baselines",
        "baseline remove night --baselines BELOW/baselines",
    ]
    .map(split)
    .to_vec()
}

/// The same with a result of ours in the place of `OWN`.
fn with_own(args: &[String], own: &Path) -> Vec<String> {
    args.iter().map(|arg| arg.replace("OWN", text(own))).collect()
}

#[test]
fn a_strangers_directory_is_refused_unless_it_is_trusted() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let dir = Dir::new("stranger");
    let own = result(&dir, "own");
    let theirs = result(&dir, "theirs");
    fs::create_dir_all(theirs.join("below/baselines")).expect("writable");
    fs::write(theirs.join("below/baselines/night.json"), "{}").expect("writable");
    for made in ["", "below", "below/baselines"] {
        chown(theirs.join(made), Some(STRANGER), None).expect("root may");
    }
    let before = (names(&theirs), names(&theirs.join("below")));
    for args in commands(text(&theirs)) {
        // An hour: it would not come back if it began.
        let long = |arg: String| if arg == "1s" { "1h".to_owned() } else { arg };
        let args: Vec<String> = with_own(&args, &own).into_iter().map(long).collect();
        refused(&run(&args), &["another user (uid 54321)", "--trust-directory"]);
        assert_eq!((names(&theirs), names(&theirs.join("below"))), before, "{args:?}");
    }
    for args in commands(text(&theirs)) {
        let args = with_own(&args, &own);
        let trust = ["--trust-directory".to_owned(), text(&theirs).to_owned()];
        let out = run([&args[..], &trust].concat());
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", stderr(&out));
    }
    let made = ["baselines", "c", "deeper", "machine", "plots", "results"];
    assert_eq!(names(&theirs.join("below")), made);
    assert!(theirs.join("report.html").is_file() && theirs.join("punctual.1").is_file());
}

/// Where there is anything that another user could change: the modes of `dir` and all below it.
fn open_to_others(dir: &Path) -> Vec<(PathBuf, u32)> {
    let entries = fs::read_dir(dir).expect("readable").map(|entry| entry.expect("there").path());
    let below = |path: PathBuf| {
        let found = path.symlink_metadata().expect("there");
        let writable = if found.is_dir() { 0o022 } else { 0o002 };
        let own = (found.mode() & writable != 0).then(|| (path.clone(), found.mode()));
        let deeper = if found.is_dir() { open_to_others(&path) } else { Vec::new() };
        own.into_iter().chain(deeper)
    };
    entries.flat_map(below).collect()
}

#[test]
fn what_it_makes_is_no_other_users_to_change_whatever_the_umask() {
    let dir = Dir::new("umask");
    let (own, made, state) = (result(&dir, "own"), dir.path("made"), dir.path("made/state"));
    fs::create_dir(&made).expect("writable");
    fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).expect("ours");
    let below = |args: &Vec<String>| args.iter().any(|arg| arg.contains("below"));
    let chosen = commands(text(&made)).into_iter().filter(|args| below(args));
    // `check` keeps what waits learned; a second one writes into the directories of the first.
    let again = chosen.clone().filter(|args| args[0] == "check");
    let named = ["facts", "--json", text(&made.join("facts.json"))].map(str::to_owned).to_vec();
    for args in chosen.clone().filter(|args| args[0] != "baseline").chain(again).chain([named]) {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 000; exec \"$@\"", "sh"]).arg(punctual().get_program());
        command.args(with_own(&args, &own)).env("XDG_STATE_HOME", &state);
        let out = command.output().expect("it starts");
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", stderr(&out));
        assert_eq!(open_to_others(&made), [], "{args:?}");
    }
}

fn man_as(user: Option<u32>, dir: &Path) -> Output {
    let mut command = punctual();
    command.arg("man").arg(dir).env_remove("SUDO_UID").env_remove("PKEXEC_UID");
    if let Some(user) = user {
        command.env("SUDO_UID", user.to_string());
    }
    command.output().expect("it starts")
}

#[test]
fn the_user_behind_sudo_is_no_stranger_and_whoever_turns_a_link_is_one() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let dir = Dir::new("stranger-sudo");
    let theirs = dir.path("theirs");
    fs::create_dir(&theirs).expect("writable");
    chown(&theirs, Some(STRANGER), None).expect("root may");
    refused(&man_as(None, &theirs), &["another user"]);
    refused(&man_as(Some(STRANGER + 1), &theirs), &["another user"]);
    assert_eq!(man_as(Some(STRANGER), &theirs).status.code(), Some(0));
    // A link of theirs to a directory of ours.
    let (link, ours) = (dir.path("link"), dir.path("ours"));
    fs::create_dir(&ours).expect("writable");
    symlink(&ours, &link).expect("free");
    assert_eq!(man_as(None, &link).status.code(), Some(0), "our own link is followed");
    lchown(&link, Some(STRANGER), None).expect("root may");
    let before = names(&ours);
    refused(&man_as(None, &link), &["symbolic link", "another user"]);
    assert_eq!(names(&ours), before);
    // What every user may change is a stranger's, but for a directory such as /tmp.
    let open = dir.path("open");
    fs::create_dir(&open).expect("writable");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("ours");
    refused(&man_as(None, &open), &["every user", "0777", "--trust-directory"]);
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).expect("ours");
    assert_eq!(man_as(None, &open).status.code(), Some(0));
    refused(&run(["--trust-directory", "/nonexistent", "schema"]), &["--trust-directory", "/non"]);
}

#[test]
fn without_root_the_kernel_decides() {
    if !skip::need("root", skip::is_root()) || !skip::need_program("setpriv") {
        return;
    }
    let dir = Dir::new("stranger-user");
    let program = dir.path("punctual");
    fs::copy(punctual().get_program(), &program).expect("copied to where anybody may read");
    let open = dir.path("open");
    fs::create_dir(&open).expect("writable");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("ours");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=54321", "--regid=54321", "--clear-groups"]).arg(&program);
    let out = command.arg("man").arg(&open).output().expect("it starts");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    // A file of somebody else's in a directory like /tmp could not be replaced at the end.
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).expect("ours");
    let json = open.join("facts.json");
    fs::write(&json, "theirs").expect("writable");
    fs::set_permissions(&json, fs::Permissions::from_mode(0o666)).expect("ours");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=54321", "--regid=54321", "--clear-groups"]).arg(&program);
    let out = command.args(["facts", "--json"]).arg(&json).output().expect("it starts");
    refused(&out, &["facts.json", "another user"]);
    assert_eq!(fs::read_to_string(&json).expect("there"), "theirs");
}
