//! Loads that are stopped (SIGSTOP) at any time of a run under load, and never go on or late: the
//! run says so, no limit holds, and nothing is left at its end.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use punctual_testkit::random::Random;

use super::{Attack, Place};
use crate::{children, json_file, text, until};

/// Runs under load with a limit that only a load's failure breaks, and how many loads each has at
/// least; `OUT` is a directory.
const RUNS: [(&str, usize); 6] = [
    ("measure periodic --duration 10s --load cpu,timer", 2),
    ("measure periodic --duration 10s --load fork", 1),
    ("measure periodic --duration 10s --load cache,memory,syscall", 3),
    ("measure periodic --duration 10s --load disk,cpu --policy other", 2),
    ("measure periodic --duration 10s --load net", 1),
    // Idle for a third of its time.
    ("check --duration 15s --results OUT/results", 3),
];

/// For how long a load stands still that goes on: longer than a busy machine makes one silent.
const STOPPED: Duration = Duration::from_secs(6);

/// Sends this signal to processes of the run.
fn kill(signal: &str, pids: &[i32]) {
    for pid in pids {
        // A load that has ended meanwhile cannot be stopped, which the assertions find.
        let _ended = Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).status();
    }
}

/// Stops loads of a run that has them for a moment; the ones that were.
fn stop(random: &mut Random, program: &Child, loads: usize) -> Vec<i32> {
    let (mut found, mut looks) = (Vec::new(), 0);
    // All of them, which take a moment to start: none has come for half a second.
    until("the loads", || {
        let now = children(program);
        looks = if now == found { looks + 1 } else { 0 };
        found = now;
        found.len() >= loads && looks > 25
    });
    thread::sleep(Duration::from_millis(random.below(1_000)));
    if random.index(2) == 0 {
        let only = found[random.index(found.len())];
        found = vec![only];
    }
    kill("STOP", &found);
    found
}

/// One run; in a word, what was done to it.
fn trial(random: &mut Random, place: &Place) -> &'static str {
    let (line, loads) = RUNS[random.index(RUNS.len())];
    let out = place.path("out");
    let (result, page) = (out.join("result.json"), place.path("page"));
    let mut command = place.shell("");
    command.args(line.split(' ').map(|word| word.replace("OUT", text(&out))));
    command.args(["--limit", "max<60s", "--json"]).arg(&result);
    let file = std::fs::File::create(&page).expect("writable");
    let mut program = command.stdout(Stdio::null()).stderr(file).spawn().expect("a shell");
    let stopped = stop(random, &program, loads);
    let goes_on = random.index(2) == 0;
    if goes_on {
        thread::sleep(STOPPED);
        kill("CONT", &stopped);
    }
    let trial = format!("{line}: {} stopped, goes on: {goes_on}", stopped.len());
    until(&trial, || program.try_wait().expect("ours").is_some());
    let status = program.wait().expect("ours");
    let errors = std::fs::read_to_string(page).expect("text");
    if status.code() == Some(2) && errors.contains("did not start") {
        place.left_nothing(&trial, program.id(), status);
        return "stopped before it was ready, refused";
    }
    // Open, unless it is broken.
    let is_held = !matches!(status.code(), Some(1 | 3));
    assert!(!is_held, "{trial}: {status}: a limit under a load that stood still: {errors}");
    let result = json_file(&result);
    let verdict = &result["verdict"];
    // That of an idle run may hold.
    let limits = verdict["limits"].as_array().expect("limits");
    assert_eq!(verdict["ok"], false, "{trial}");
    assert!(limits.iter().any(|limit| limit["ok"] == false), "{trial}: {limits:?}");
    let runs = result["runs"].as_array().expect("runs").iter();
    let loads = runs.flat_map(|run| run["loads"].as_array().cloned().unwrap_or_default());
    let still: Vec<String> = loads
        .filter(|load| load["deaths"].as_array().is_some_and(|deaths| !deaths.is_empty()))
        .filter_map(|load| load["name"].as_str().map(str::to_owned))
        .collect();
    assert!(still.len() >= stopped.len(), "{trial}: {still:?} are known to have stood still");
    let warnings = result["warnings"].to_string();
    let words = warnings.split_whitespace().collect::<Vec<_>>().join(" ");
    for name in still {
        assert!(words.contains(&format!("load {name} stood still")), "{trial}: {words}");
    }
    place.left_nothing(&trial, program.id(), status);
    if goes_on { "stopped for a time, no limit holds" } else { "stopped for good, no limit holds" }
}

#[test]
fn stopped() {
    let mut attack = Attack::begin("stopped");
    while attack.goes_on() {
        let place = Place::new(&format!("stopped-{}", attack.trials()));
        let outcome = trial(&mut attack.random, &place);
        attack.note(outcome);
    }
    attack.end();
}
