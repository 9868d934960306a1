//! The examples as a user runs them: each ends by itself, well, and says what it did.
//!
//! They run one after the other, as ten real-time loops beside each other starve on two CPUs, each
//! in a directory of its own. Nothing here asserts a time.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use punctual_testkit::skip;

/// The example programs lie beside the tests.
fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("own");
    let target = own.parent().and_then(|deps| deps.parent()).expect("in a target directory");
    target.join("examples").join(name)
}

/// Each example, and what it says.
const EXAMPLES: [(&str, &[&str]); 10] = [
    ("loop", &["loop: ", " samples in loop.punctual", "after 5 s"]),
    ("tasks", &["servo: ", "plan: ", "log: ", "samples in tasks.punctual"]),
    ("threads", &["servo: ", "vision: ", "sensor: ", "10 sent, 10 received", "background: "]),
    ("calendar", &["read: ", "control: ", "filter: ", "write: ", "watch: ", "log: "]),
    ("changing", &["removed: probe", "servo: ", "0 releases of the servo lost"]),
    ("exchange", &["servo: ", "vision: ", "3 commands obeyed, ", " targets followed"]),
    ("logger", &["    0: at 0.000", " lines printed, 0 dropped", "loop: "]),
    ("follow", &["following Tai", "loop: ", "fast: ", "slow: "]),
    ("replay", &["the lateness is made up", "×0 ", "×10 "]),
    ("processes", &["sense: started 1 times, Some(Status(0))", "act: started 1 times", "beat: "]),
];

#[test]
fn every_example_runs_to_its_end_and_says_what_it_did() {
    if !skip::need_native("real timing") {
        return;
    }
    let base = std::env::temp_dir().join(format!("punctual-examples-{}", std::process::id()));
    for (name, expected) in EXAMPLES {
        let dir = base.join(name);
        std::fs::create_dir_all(&dir).expect("writable");
        let run = || {
            let mut command = Command::new(program(name));
            let output = command.current_dir(&dir).stdin(Stdio::null()).output();
            output.unwrap_or_else(|why| panic!("{name}: {why}"))
        };
        // Loops of other tests may keep a loop's CPU: its watchdog ends it, and it is run again.
        let is_starved = |output: &Output| {
            String::from_utf8_lossy(&output.stderr).contains("it did not get the CPU")
        };
        let Output { status, stdout, stderr } = (0..4)
            .map(|_| run())
            .find(|output| output.status.success() || !is_starved(output))
            .unwrap_or_else(run);
        let [stdout, stderr] =
            [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(status.success(), "{name}: {status}\n{stdout}{stderr}");
        for text in expected {
            assert!(stdout.contains(text), "{name}: {text:?} in\n{stdout}");
        }
    }
    std::fs::remove_dir_all(&base).expect("ours");
}
