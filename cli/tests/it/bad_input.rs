//! Bad input: one clear line, exit 2, nothing lost, nothing measured.

use std::fs;

use crate::{Dir, refused, run};

#[test]
fn arguments_are_refused_by_name_with_the_way_out() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["measure", "periodic", "--period", "500"], &["--period", "unit"]),
        (&["measure", "periodic", "--period", "0us"], &["--period"]),
        (&["measure", "periodic", "--period", "-5us"], &["-5us"]),
        (&["measure", "periodic", "--period", "20ns"], &["--period 20 ns", "stamp"]),
        (&["measure", "periodic", "--duration", "0s"], &["--duration"]),
        (&["measure", "periodic", "--duration", "10"], &["--duration", "unit"]),
        (&["measure", "periodic", "--duration", "1ms", "--period", "1s"], &["shorter"]),
        (&["measure", "periodic", "--priority", "100"], &["--priority", "98"]),
        (&["measure", "periodic", "--priority", "1", "--period", "1ms,2ms"], &["--priority"]),
        (&["measure", "periodic", "--cpu", "8191"], &["--cpu", "8191"]),
        (&["measure", "periodic", "--cpu", "x"], &["--cpu", "x"]),
        (&["measure", "periodic", "--cpu", ""], &["--cpu"]),
        (&["measure", "periodic", "--load", "disco"], &["disco", "stress-ng"]),
        (&["measure", "periodic", "--load", "none,cpu"], &["none"]),
        (&["measure", "periodic", "--wait", "hope"], &["hope", "sleep"]),
        (&["measure", "periodic", "--limit", "p99.9<50"], &["p99.9<50"]),
        (&["measure", "periodic", "--limit", "p101<50us"], &["p101"]),
        (&["measure", "periodic", "--limit", "latency<50us"], &["latency"]),
        (&["check", "--cpu", "0,1"], &["--cpu"]),
        (&["check", "--nonsense"], &["--nonsense"]),
        (&["check", "--limt", "max<1ms"], &["'--limt'", "'--limit'"]),
        (&["chekc"], &["'chekc'", "'check'"]),
        (&["check", "-d", "0"], &["0 needs a unit, e.g. 1ms"]),
        (&["check", "-p", "0"], &["0 needs a unit, e.g. 1ms"]),
        (&["check", "-c", "8191"], &["--cpu", "8191"]),
        (&["measure", "periodic", "-d", "1ms", "-p", "1m"], &["shorter"]),
        (&["analyze", "/nonexistent"], &["/nonexistent"]),
        (&["analyse", "/nonexistent"], &["/nonexistent"]),
        (&["analyse", "/proc"], &["/proc", "directory"]),
        (&["sched", "check", ""], &["an empty name", "number"]),
        (
            &["tune", "plan", "--for", "foo"],
            &["--for foo: accepted are step-generation (also linuxcnc), servo (also mesa, ros, \
                 plc), audio, polling, vm-guest"],
        ),
        (
            &["baseline", "show", "x", "--baselines", "/nonexistent"],
            &["no baseline x", "'punctual baseline list'", "'punctual check --baseline x'"],
        ),
    ];
    for (args, words) in cases {
        refused(&run(*args), words);
    }
}

#[test]
fn an_output_that_cannot_be_written_is_found_before_measuring() {
    let dir = Dir::new("unwritable");
    let nowhere = dir.path("no/such/dir/file");
    let nowhere = nowhere.to_str().expect("UTF-8");
    // An hour's measurement: it would not come back if it began.
    let hour = ["measure", "periodic", "--duration", "1h"];
    refused(&run(hour.into_iter().chain(["--json", nowhere])), &["cannot write", nowhere]);
    refused(&run(hour.into_iter().chain(["--samples", nowhere])), &["cannot write", nowhere]);
    let full = run(hour.into_iter().chain(["--samples", "/dev/full"]));
    refused(&full, &["/dev/full", "space"]);
    fs::write(dir.path("file"), "").expect("writable");
    let under_a_file = dir.path("file/results");
    let under_a_file = under_a_file.to_str().expect("UTF-8");
    refused(&run(["check", "--duration", "1h", "--results", under_a_file]), &["cannot make"]);
}
