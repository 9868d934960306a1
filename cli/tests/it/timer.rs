//! `measure timer`, for real: what must hold of the rows, whatever the machine does.

use std::fs;

use punctual_os::process::EndSignal;
use serde_json::Value;

use crate::{
    Dir, catches_interrupt, fits, json, json_file, punctual, refused, run, signal, stderr, stdout,
    until,
};

fn number(object: &Value, key: &str) -> f64 {
    object[key].as_f64().unwrap_or_else(|| panic!("{key} in {object}"))
}

#[test]
fn each_path_has_a_row_for_each_background_and_none_is_early() {
    let args = ["measure", "timer", "--period", "100us,1ms", "--background", "none,nop"];
    let out = run(args.into_iter().chain(["--duration", "500ms", "--json", "-"]));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    assert_eq!(
        (&result["experiment"], &result["incomplete"]),
        (&"measure timer".into(), &false.into())
    );
    let rows = result["timer"]["rows"].as_array().expect("rows");
    for period in [100_000, 1_000_000] {
        for background in ["none", "nop"] {
            for (path, store) in [
                ("sleep", "array"),
                ("timerfd", "array"),
                ("posix", "array"),
                ("mdelay", "array"),
                ("sleep", "hot"),
                ("sleep", "cold"),
            ] {
                let is = |row: &&Value| {
                    row["path"] == path
                        && row["store"] == store
                        && row["background"] == background
                        && row["period_ns"] == period
                };
                assert_eq!(rows.iter().filter(is).count(), 1, "{path} {store} {background}");
            }
        }
    }
    // The kernel may refuse SCHED_DEADLINE, and does without rights.
    let reserved = rows.iter().filter(|row| row["path"] == "deadline").count();
    assert!(reserved == 4 || result["timer"]["deadline_refused"].is_i64(), "{result}");
    assert_eq!(rows.len(), 24 + reserved);
    for row in rows {
        let lateness = &row["lateness_ns"];
        assert!(number(row, "n") > 0.0 && number(lateness, "min") >= 0.0, "{row}");
        assert!(number(lateness, "max") >= number(lateness, "min"), "{row}");
        // Late by a period or more: some passed unseen, but for the last of a block.
        let late = number(lateness, "max") >= 3.0 * number(row, "period_ns");
        assert!(!late || number(row, "missed") > 0.0 || number(row, "n") < 1_000.0, "{row}");
        assert!((0.0..=1.0).contains(&number(row, "cpu_share")), "{row}");
    }
}

#[test]
fn the_page_fits_and_a_report_has_the_table() {
    let dir = Dir::new("timer");
    let (result, page) = (dir.path("result.json"), dir.path("page.html"));
    let args = ["measure", "timer", "--period", "15us", "--duration", "1ms", "--json"];
    let out = run(args.map(str::to_owned).into_iter().chain([result.display().to_string()]));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = stdout(&out);
    assert!(text.contains("From the expiry") && text.contains("mdelay"), "{text}");
    fits(&text);
    let out = run(["report", &result.display().to_string(), "-o", &page.display().to_string()]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = fs::read_to_string(page).expect("written");
    assert!(page.contains("Lateness of timers"));
    assert!(page.contains("Lateness of each path, every 15 µs") && page.contains("<svg"));
}

#[test]
fn an_interrupt_keeps_what_there_is() {
    let dir = Dir::new("timer-interrupted");
    let file = dir.path("result.json");
    let mut command = punctual();
    command.args(["measure", "timer", "--duration", "1h", "--json"]).arg(&file);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    until("signals to be caught", || catches_interrupt(&child));
    signal(&child, EndSignal::Interrupt);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(json_file(&file)["incomplete"], true);
}

#[test]
fn bad_input_is_refused_with_the_reason() {
    let with = |args: &[&str]| run(["measure", "timer"].iter().chain(args));
    refused(&with(&["--period", "10us"]), &["--period", "10 µs", "15 µs"]);
    refused(&with(&["--period", "0s"]), &["--period"]);
    refused(&with(&["--period", "1ms,2ms,3ms,4ms,5ms,6ms,7ms,8ms,9ms"]), &["9 periods", "8"]);
    refused(&with(&["--background", "halt"]), &["halt", "nop"]);
    refused(&with(&["--duration", "0s"]), &["--duration"]);
    refused(&with(&["--cpu", "0-1"]), &["--cpu", "one CPU"]);
    refused(&with(&["--priority", "99"]), &["--priority", "98"]);
}
