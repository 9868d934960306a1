//! `punctual task exec`: the examples of docs/running.md run as they are printed there, and
//! programs that do not keep to the lines are ended with a reason.
//!
//! Writes into a directory of its own.

use std::fs;
use std::path::Path;
use std::process::Output;

use punctual_testkit::skip::need_program;
use serde_json::Value;

use crate::{Dir, PROGRAM, json, punctual, refused, run, stderr};

/// Runs a file of tasks in its directory for a second, with the program on the path.
fn run_tasks(dir: &Dir, tasks: &str) -> Output {
    run_tasks_for(dir, tasks, "1s")
}

fn run_tasks_for(dir: &Dir, tasks: &str, duration: &str) -> Output {
    fs::write(dir.path("tasks.toml"), tasks).expect("writable");
    let built = Path::new(PROGRAM).parent().expect("a directory");
    let path = format!("{}:{}", built.display(), std::env::var("PATH").unwrap_or_default());
    let args = ["run", "tasks.toml", "--duration", duration, "--json", "-"];
    let mut command = punctual();
    command.args(args).env("PATH", path).current_dir(&dir.0);
    command.output().expect("it starts")
}

/// The block of this language in docs/running.md.
fn example(language: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/running.md");
    let text = fs::read_to_string(path).expect("there");
    let (_, rest) = text.split_once(&format!("```{language}\n")).expect("an example");
    rest.split_once("```").expect("its end").0.to_owned()
}

#[test]
fn the_examples_of_the_documentation_run() {
    if !need_program("python3") {
        return;
    }
    let dir = Dir::new("task-examples");
    fs::write(dir.path("camera.py"), example("python")).expect("writable");
    fs::write(dir.path("log.sh"), example("sh")).expect("writable");
    let toml = example("toml");
    let mut last = String::new();
    let ran = |duration| {
        let out = run_tasks_for(&dir, &toml, duration);
        let tasks = json(&out)["supervised"]["tasks"].as_array().expect("tasks").clone();
        assert_eq!(tasks.len(), 2);
        let runs = |task: &Value| task["cycles"].as_u64().is_some_and(|cycles| cycles > 0);
        let each_ran = tasks.iter().all(runs);
        last = format!("{duration}: {tasks:?}, {}", stderr(&out));
        // One that has not begun at the end is killed, and that is an error.
        assert!(!each_ran || out.status.code() == Some(0), "{}", stderr(&out));
        each_ran
    };
    // An interpreter may take longer than a second to start where others keep the CPUs.
    assert!(["1s", "5s", "25s", "125s"].into_iter().any(ran), "a task never ran: {last}");
}

#[test]
fn a_program_that_breaks_the_rules_is_named_with_its_reason() {
    let dir = Dir::new("task-broken");
    for (script, reason) in [
        ("exit 3", "sh failed: exit status: 3"),
        ("echo; read -r line; exit 4", "sh failed: exit status: 4"),
        ("echo colour; sleep 60", "pairs of hex digits, got \\\"colour\\\""),
        ("echo 00; sleep 60", "longer than the task's 'safe' value"),
    ] {
        let reason = reason.replace("\\", "");
        let tasks = format!(
            "[[task]]\nname = \"a\"\nperiod = \"5ms\"\n\
             command = [\"punctual\", \"task\", \"exec\", \"--\", \"sh\", \"-c\", \"{script}\"]\n"
        );
        let out = run_tasks(&dir, &tasks);
        assert_eq!(out.status.code(), Some(1), "{script}: {}", stderr(&out));
        assert!(stderr(&out).contains(&reason), "{script}: {}", stderr(&out));
    }
}

#[test]
fn a_program_that_does_not_answer_ends_with_its_task() {
    let dir = Dir::new("task-silent");
    let script = "#!/bin/sh\necho $$ > pid\necho\nwhile :; do sleep 1; done\n";
    fs::write(dir.path("silent.sh"), script).expect("writable");
    let tasks = "[[task]]\nname = \"a\"\nperiod = \"5ms\"\n\
                 command = [\"punctual\", \"task\", \"exec\", \"--\", \"sh\", \"silent.sh\"]\n";
    // On a busy machine its first release may come after a second.
    let out = run_tasks_for(&dir, tasks, "4s");
    let pid = fs::read_to_string(dir.path("pid")).expect("it ran");
    // Whoever inherits it may not have looked at its end yet.
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z ") || stat.contains(") X "), "{stat}");
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
}

#[test]
fn a_task_that_exited_has_its_cycles_and_no_invalid_results() {
    let dir = Dir::new("task-exited");
    let script = "grep SigIgn /proc/self/status > signals\n\
                  echo; for i in 1 2 3 4 5; do read -r line; echo; done; exit 0";
    fs::write(dir.path("five.sh"), script).expect("writable");
    let text = "[[task]]\nname = \"a\"\nperiod = \"5ms\"\n\
                command = [\"punctual\", \"task\", \"exec\", \"--\", \"sh\", \"five.sh\"]\n\
                [[task]]\nname = \"free\"\nperiod = \"5ms\"\n";
    let seen = |duration: &str| {
        let out = run_tasks_for(&dir, text, duration);
        let tasks = json(&out)["supervised"]["tasks"].as_array().expect("tasks").clone();
        let task = tasks.iter().find(|task| task["name"] == "a").expect("one");
        let count = |key: &str| task[key].as_u64().expect("a count");
        assert_eq!((count("rubbish"), &task["exit_status"]), (0, &0.into()), "{task}");
        assert!(count("cycles") <= 5 && count("after_end") < count("vacant"), "{task}");
        count("cycles") == 5 && count("after_end") > 0
    };
    // An interpreter may take longer than a second to start where others keep the CPUs.
    assert!(["1s", "5s", "25s"].into_iter().any(seen), "it never ran");
    let signals = fs::read_to_string(dir.path("signals")).expect("it ran");
    let mask = signals.trim_start_matches("SigIgn:").trim();
    let own = fs::read_to_string("/proc/self/status").expect("procfs");
    let own = own.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask").trim();
    // SIGXFSZ: the default, or as it was started with.
    let file_size = |mask: &str| u64::from_str_radix(mask, 16).expect("a mask") >> 24 & 1;
    assert_eq!(file_size(mask), file_size(own), "{signals}");
}

#[test]
fn a_task_that_is_always_to_run_and_was_given_up_has_failed_however_it_ended() {
    let dir = Dir::new("task-always");
    let script = "echo; for i in 1 2 3; do read -r line; echo; done; exit 0";
    fs::write(dir.path("three.sh"), script).expect("writable");
    let text = "[[task]]\nname = \"a\"\nperiod = \"5ms\"\nrestart = \"always\"\nrestarts = 1\n\
                pause = \"10ms\"\n\
                command = [\"punctual\", \"task\", \"exec\", \"--\", \"sh\", \"three.sh\"]\n\
                [[task]]\nname = \"free\"\nperiod = \"5ms\"\n";
    let given_up = |duration: &str| {
        let out = run_tasks_for(&dir, text, duration);
        let report = json(&out);
        let task = &report["supervised"]["tasks"][0];
        let reasons = report["verdict"]["reasons"].to_string();
        let has_ended = (&task["restarts"], &task["exit_status"]) == (&1.into(), &0.into());
        has_ended && reasons.contains("a failed after a restart") && out.status.code() == Some(1)
    };
    assert!(["1s", "5s", "25s"].into_iter().any(given_up), "it was given up");
}

#[test]
fn lines_that_answer_no_release_are_surplus_and_end_no_cycle() {
    let dir = Dir::new("task-surplus");
    // One never reads; one prints twice a cycle, and both before its next release.
    for (script, cycles) in [
        ("while :; do echo; sleep 0.01; done", None),
        (
            "echo; n=0; while read -r line; do printf '\\n\\n'; n=$((n+1)); echo $n > ran; done",
            Some("ran"),
        ),
    ] {
        fs::write(dir.path("prints.sh"), script).expect("writable");
        let tasks = "[[task]]\nname = \"a\"\nperiod = \"20ms\"\n\
                     command = [\"punctual\", \"task\", \"exec\", \"--\", \"sh\", \"prints.sh\"]\n";
        let out = run_tasks(&dir, tasks);
        let ran = json(&out)["supervised"]["tasks"][0]["cycles"].as_u64().expect("a count");
        let surplus = stderr(&out).contains("sh: surplus lines so far: 1;");
        match cycles {
            // The one that began, and never ended, ran as far as it came.
            None => assert!(ran <= 1, "{ran} cycles of a program that reads nothing"),
            Some(file) => {
                let read = fs::read_to_string(dir.path(file)).unwrap_or_default();
                let read: u64 = read.trim().parse().unwrap_or(0);
                // So did the last one, if the end came upon it before the program read it.
                assert!(ran <= read + 1, "{ran} cycles of {read} that were read");
                // Where its second line was seen at all.
                assert!(surplus || ran <= 1, "{}", stderr(&out));
            }
        }
    }
}

#[test]
fn by_hand_it_says_who_starts_it() {
    refused(&run(["task", "exec", "--", "true"]), &["punctual run", "docs/running.md"]);
    refused(&run(["task", "exec"]), &["CMD"]);
}
