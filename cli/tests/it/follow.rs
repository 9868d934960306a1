//! `measure periodic --follow`: on the machine's own clocks, on a PTP clock where there is one, and
//! what is refused.

use std::path::Path;

use punctual_testkit::skip;
use serde_json::Value;

use crate::{Dir, json, refused, run, stderr, stdout};

fn measured(clock: &str, rest: &[&str]) -> Value {
    let args = ["measure", "periodic", "--follow", clock, "--duration", "2s", "--json", "-"];
    let out = run(args.iter().chain(rest));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    json(&out)
}

/// The page of a run, its lines made one: where they break depends on the numbers.
fn page<'a>(args: impl IntoIterator<Item = &'a str>) -> String {
    stdout(&run(args)).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks what must hold of every clock: the grid is on its time, and nothing was lost.
fn follows(result: &Value, clock: &str) {
    let run = &result["runs"][0];
    assert_eq!(run["setup"]["follows"], clock);
    let follow = &result["follow"];
    assert_eq!(follow["clock"], clock);
    let count = |key: &str| follow[key].as_u64().unwrap_or_else(|| panic!("{key}: {follow}"));
    assert!(count("readings") + count("steps") + count("stops") + count("unread") > 0, "{follow}");
    assert_eq!(count("limit_ppb"), 100_000);
    let instant = |at: &str, on: &str| follow[at][on].as_u64().expect("an instant");
    let passed = |on| instant("ended", on) - instant("began", on);
    // Within the limit of the slew, and rounding.
    let apart = passed("grid_ns").abs_diff(passed("monotonic_ns"));
    assert!(apart <= passed("monotonic_ns") / 10_000 + 2, "{follow}");
    assert!(run["cycles"].as_u64().expect("a count") > 0);
    assert!(run["lateness_ns"]["min"].as_f64().expect("cycles") >= 0.0);
}

#[test]
fn a_grid_lies_on_the_time_of_the_clock_that_it_follows() {
    let dir = Dir::new("follow");
    let file = dir.path("samples");
    let samples = ["--samples", file.to_str().expect("UTF-8"), "--phase", "300us"];
    let result = measured("realtime", &samples);
    follows(&result, "realtime");
    assert_eq!(result["runs"][0]["setup"]["phase_ns"], 300_000);
    let began = &result["follow"]["began"];
    assert!(began["grid_ns"].as_u64() > began["monotonic_ns"].as_u64(), "1970 was before: {began}");
    let worst = result["runs"][0]["worst"][0]["at_ns"].as_u64().expect("an instant");
    assert!(worst >= began["grid_ns"].as_u64().expect("an instant"), "on the grid's time");

    // The samples alone say the same.
    let file = file.to_str().expect("UTF-8");
    let read = json(&run(["analyse", file, "--json", "-"]));
    assert_eq!(read["runs"][0]["setup"]["follows"], "realtime");
    assert_eq!(read["runs"][0]["lateness_ns"], result["runs"][0]["lateness_ns"]);
    assert!(read["follow"].is_null(), "how well it followed is the result's alone");
    assert!(page(["analyse", "-v", file]).contains("the grid follows realtime"));
}

#[test]
fn a_run_that_follows_differs_from_one_that_does_not() {
    let dir = Dir::new("follow-compare");
    let paths = ["plain", "tai"].map(|name| dir.path(name).to_str().expect("UTF-8").to_owned());
    let plain = ["measure", "periodic", "--duration", "1s", "--json", paths[0].as_str()];
    assert_eq!(run(plain).status.code(), Some(0));
    let tai = ["measure", "periodic", "--duration", "1s", "--verbose", "--follow", "tai", "--json"];
    let page = page(tai.iter().copied().chain([paths[1].as_str()]));
    assert!(page.contains("the grid follows tai"), "{page}");
    let compared = json(&run(["compare", &paths[0], &paths[1], "--json", "-"]));
    let pairs = compared["compare"].to_string();
    assert!(pairs.contains("clock of the grid") && pairs.contains("CLOCK_MONOTONIC"), "{pairs}");
}

#[test]
fn a_clock_that_is_none_is_refused_before_anything_is_written() {
    let dir = Dir::new("follow-bad");
    let file = dir.path("samples");
    let samples = file.to_str().expect("UTF-8");
    let follow = |clock: &str, rest: &[&str]| {
        let args = ["measure", "periodic", "--samples", samples, "--follow", clock];
        run(args.iter().chain(rest))
    };
    refused(&follow("atomic", &[]), &["--follow", "tai, realtime and a PTP device"]);
    refused(&follow("/dev/no-such-ptp", &[]), &["/dev/no-such-ptp", "no such device"]);
    for other in ["/dev/null", "/proc/self/exe", "/"] {
        refused(&follow(other, &[]), &[other, "no PTP clock"]);
    }
    refused(&follow("/dev/\u{1b}[2Jptp", &[]), &["no such device"]);
    assert!(!stderr(&follow("/dev/\u{1b}[2Jptp", &[])).contains('\u{1b}'));
    refused(&follow("tai", &["--phase", "quiet"]), &["--phase quiet", "tick"]);
    assert!(!file.exists());
}

/// On a machine that has one, of whatever kind: also one that stands still.
#[test]
fn a_ptp_clock_is_followed() {
    let device = "/dev/ptp0";
    if !skip::need_device("a PTP clock, /dev/ptp0", Path::new(device).exists()) {
        return;
    }
    let result = measured(device, &[]);
    follows(&result, device);
    let read = result["follow"]["read"].as_str().expect("a way");
    assert!(["precise", "extended", "plain"].contains(&read), "{read}");
}
