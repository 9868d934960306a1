//! Runs that were interrupted: that is said, no other cause, and the exit status has the signal.

use std::fs;
use std::process::Stdio;

use punctual_os::process::EndSignal;

use crate::support::{
    Dir, catches_interrupt, json_file, punctual, run, signal, stderr, stdout, until,
};

/// Interrupts a run of `args` as soon as it can be, and looks at its page, its result and the page
/// of its result.
fn interrupted(args: &[&str]) {
    let dir = Dir::new(&format!("interrupted-{}", args.join("-").replace([' ', '/'], "-")));
    let (json, page) = (dir.path("of.json"), dir.path("of.html"));
    let mut command = punctual();
    command.args(args).arg("--json").arg(&json);
    match args[0] {
        "check" => command.arg("--results").arg(dir.path("results")),
        "soak" => command.arg("--campaign").arg(dir.path("campaign")),
        _ => &mut command,
    };
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    until("signals to be caught", || catches_interrupt(&child));
    signal(&child, EndSignal::Interrupt);
    let out = child.wait_with_output().expect("it ends");
    let text = stdout(&out);
    assert_eq!(out.status.code(), Some(130), "{args:?}: {text} {}", stderr(&out));
    let result = json_file(&json);
    assert_eq!((&result["incomplete"], &result["ended_by"]), (&true.into(), &"interrupt".into()));
    let report = run(["report", &json.display().to_string(), "-o", &page.display().to_string()]);
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
    let html = fs::read_to_string(&page).expect("written");
    assert!(html.contains("Incomplete: interrupted; these are the results so far."), "{args:?}");
    let warnings = result["warnings"].to_string();
    assert!(
        text.contains("incomplete: interrupted; these are the results so far"),
        "{args:?}: {text}"
    );
    for words in ["cut off", "longer --duration", "too short", "ended early, or", "so short"] {
        let said = [&text, &warnings].into_iter().find(|of| of.contains(words));
        assert_eq!(said, None, "{args:?}: {words}");
    }
}

#[test]
fn each_signal_has_the_exit_status_that_the_help_names() {
    let help = stdout(&run(["--help"]));
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for (how, name, status) in [
        (EndSignal::Interrupt, "SIGINT", 130),
        (EndSignal::Terminate, "SIGTERM", 143),
        (EndSignal::HangUp, "SIGHUP", 129),
    ] {
        let mut command = punctual();
        command.args(["measure", "accuracy", "-d", "1h"]).stdout(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        until("signals to be caught", || catches_interrupt(&child));
        signal(&child, how);
        assert_eq!(child.wait().expect("it ends").code(), Some(status), "{name}");
        assert!(help.contains(&format!("{status} by {name}")), "{help}");
    }
}

#[test]
fn an_interrupted_run_says_that_and_no_other_cause() {
    interrupted(&["measure", "periodic", "-d", "1h", "--load", "cpu"]);
    interrupted(&["measure", "periodic", "-d", "1h", "-p", "1ms,25us", "--load", "cpu"]);
    interrupted(&["measure", "wait", "-d", "1h", "--front"]);
    interrupted(&["measure", "timer", "-d", "1h"]);
    interrupted(&["measure", "accuracy", "-d", "1h"]);
    interrupted(&["measure", "work", "-d", "1h", "--load", "cpu"]);
    interrupted(&["reproduce", "nist", "--quick"]);
    interrupted(&["check", "-d", "1h", "-p", "1ms,25us"]);
    interrupted(&["soak", "-d", "1h"]);
}
