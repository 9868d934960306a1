//! Few threads: limits of a user and of a control group under which commands cannot start all
//! their threads and processes. Refused in words, or it works; no panic, and nothing left.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_testkit::control_group::ControlGroup;
use punctual_testkit::skip;

use super::{Attack, COMMANDS, Place, Settings, ended};
use crate::{Dir, copy_program};

/// A user without any other process, for whom the limit of a user counts one command alone.
const USER: u32 = 54_323;

/// Commands beside those of [`Place::command`]; `OUT` is a directory, `PROGRAM` the program.
const MORE: [&str; 7] = [
    "check --duration 1s --results OUT/results",
    "stimulate udp:127.0.0.1:9 --duration 300ms",
    "sched run --other -- true",
    "reproduce linuxcnc --quick --json -",
    "run OUT/exec.toml --duration 500ms",
    "tune experiment --only vm.stat_interval --duration 9s --dry-run --state OUT/state",
    // Takes a CPU from everybody: only where nothing else runs.
    "isolate --cpus 1 --state OUT/state -- true",
];

/// One of the commands that start threads, in a place, after these limits.
fn command(place: &Place, which: usize, limits: &str, program: &Path) -> Command {
    let Some(line) = which.checked_sub(COMMANDS).map(|at| MORE[at]) else {
        return place.command(which, limits);
    };
    let out = place.path("out");
    let tasks = format!(
        "[supervisor]\nname = \"attacked\"\n[[task]]\nname = \"a\"\nperiod = \"5ms\"\n\
         command = [\"{}\", \"task\", \"exec\", \"--\", \"sh\", \"-c\", \
         \"echo; while read -r line; do echo; done\"]\n",
        program.display()
    );
    fs::write(out.join("exec.toml"), tasks).expect("writable");
    let mut command = place.shell(limits);
    command.args(line.split(' ').map(|word| word.replace("OUT", &out.display().to_string())));
    command
}

/// A program that every user can run.
fn for_everybody(dir: &Dir) -> PathBuf {
    let program = dir.path("punctual");
    copy_program(&program);
    fs::set_permissions(&dir.0, fs::Permissions::from_mode(0o755)).expect("ours");
    program
}

/// A limit of a user, who is not root: the shell's commands that begin under it.
fn user_limit(place: &Place, threads: usize, program: &Path) -> String {
    let limit = format!("prlimit --nproc={threads} -- '{}' \"$@\";", program.display());
    if !skip::is_root() {
        return format!("exec {limit}");
    }
    for made in ["", "tmp", "run", "out"] {
        chown(place.path(made), Some(USER), Some(USER)).expect("root may");
    }
    format!("exec setpriv --reuid={USER} --regid={USER} --clear-groups {limit}")
}

#[test]
fn threads() {
    if !skip::need_program("prlimit") || !skip::need_program("setpriv") {
        return;
    }
    let mut attack = Attack::begin("threads");
    let dir = Dir::new("attack-threads");
    let program = for_everybody(&dir);
    let group = ControlGroup::with("pids.max", "attack");
    let _none = skip::need_device("a control group of pids that may be made", group.is_some());
    let which = COMMANDS + MORE.len() - usize::from(!attack.is_alone());
    let mut trials: Vec<(usize, usize, bool)> = (0..which)
        .flat_map(|which| {
            let of_a_user = (0..=3).map(move |limit| (which, limit, true));
            of_a_user.chain((2..=8).map(move |limit| (which, limit, false)))
        })
        .filter(|&(.., of_user)| of_user || group.is_some())
        .collect();
    attack.random.shuffle(&mut trials);
    let settings = Settings::read(&[]);
    for (number, &(which, threads, of_user)) in trials.iter().cycle().enumerate() {
        if !attack.goes_on() {
            break;
        }
        let place = Place::within_turn(&format!("threads-{number}"));
        let limits = match &group {
            Some(group) if !of_user => {
                group.write("pids.max", threads).expect("a limit");
                format!("{} &&", group.join())
            }
            _ => user_limit(&place, threads, &program),
        };
        let command = command(&place, which, &limits, &program);
        let whose = if of_user { "user" } else { "group" };
        let trial = format!("{threads} threads of a {whose}: {command:?}");
        let word = ended(command, &place, &trial);
        settings.are_as_before(&trial);
        attack.note(format!("{word} ({whose})"));
    }
    attack.end();
}
