//! `punctual impact stepper`: the published figures, and dimensions refused by name.

use std::fs;

use serde_json::json;

use crate::support::{Dir, json, refused, run, stderr, stdout};

fn stepper<'a>(torque: &'a str, angle: &'a str, speed: &'a str, time: &'a str) -> Vec<&'a str> {
    vec![
        "impact",
        "stepper",
        "--holding-torque",
        torque,
        "--step-angle",
        angle,
        "--speed",
        speed,
        "--jitter",
        time,
    ]
}

#[test]
fn table_1_of_nist_by_its_own_formula() {
    // Torque and percent lost as published for 0.098 µs; at 3.6 µs the table is not its formula's.
    let ozin_nm = 0.007_061_551_8;
    for (torque, angle, speed, lost_ozin, percent) in [
        ("23ozin", "0.9deg", "15rev/s", 0.021, 0.18),
        ("80ozin", "0.9deg", "6.7rev/s", 0.033, 0.0825),
        ("500ozin", "0.9deg", "15rev/s", 0.46, 0.18),
    ] {
        let mut args = stepper(torque, angle, speed, "98ns");
        args.extend(["--json", "-"]);
        let impact = json(&run(args))["impact"].clone();
        let lost = impact["torque_lost_nm"].as_f64().expect("a torque") / ozin_nm;
        assert!((lost / lost_ozin - 1.0).abs() < 0.03, "{lost} for {torque}");
        let share = impact["share_of_available"].as_f64().expect("a share") * 100.0;
        assert!((share / percent - 1.0).abs() < 0.03, "{share} % for {torque}");
        assert_eq!(impact["steps_lost"], false);
    }
    let mut args = stepper("23ozin", "0.9deg", "15rev/s", "3.6us");
    args.extend(["--json", "-"]);
    let impact = json(&run(args))["impact"].clone();
    let ratio = impact["torque_lost_ratio"].as_f64().expect("a ratio");
    assert!((ratio - 0.033_929).abs() < 1e-5, "{ratio}");
    assert!((impact["max_step_rate_hz"].as_f64().expect("a rate") - 8_842.0).abs() < 1.0);
}

#[test]
fn a_wrong_dimension_is_refused_under_its_options_name() {
    refused(&run(stepper("0.9deg", "0.9deg", "15rev/s", "1us")), &["--holding-torque", "angle"]);
    refused(&run(stepper("1Nm", "1Nm", "15rev/s", "1us")), &["--step-angle", "torque"]);
    refused(&run(stepper("1Nm", "1deg", "15", "1us")), &["--speed"]);
    refused(&run(stepper("1Nm", "1deg", "15rev/s", "1")), &["--jitter", "unit"]);
    refused(&run(stepper("-1Nm", "1deg", "15rev/s", "1us")), &["-1Nm"]);
    refused(&run(["impact", "stepper", "--holding-torque", "1Nm"]), &["--step-angle"]);
}

#[test]
fn beyond_the_small_angle_steps_are_lost_and_it_says_so() {
    let out = run(stepper("1Nm", "1.8deg", "100rev/s", "100us"));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(stdout(&out).contains("steps are lost"), "{}", stdout(&out));
}

#[test]
fn takes_the_worst_of_a_result_and_refuses_what_is_none() {
    let dir = Dir::new("impact");
    // A result of recorded data, then with the figures that this test is about.
    let wakes: String = (0..100).map(|k| format!("{}\n", 1 + k * 1_000_000)).collect();
    fs::write(dir.path("wakes.csv"), wakes).expect("writable");
    let csv = dir.path("wakes.csv");
    let csv = csv.to_str().expect("UTF-8");
    let columns = ["--column", "instant:ns", "--period", "1ms", "--json", "-"];
    let mut result = json(&run(["analyse", csv].into_iter().chain(columns)));
    result["runs"] = json!([result["runs"][0], result["runs"][0]]);
    for (run, grid_pp_ns, interval_ns) in [(0, 1000.0, 900.0), (1, 3600.0, 700.0)] {
        result["runs"][run]["grid"]["jitter_pp_ns"] = json!(grid_pp_ns);
        result["runs"][run]["jitters"]["interval_max_abs_ns"] = json!(interval_ns);
    }
    fs::write(dir.path("result.json"), result.to_string()).expect("writable");
    let from = |path: &str| {
        let args = ["impact", "stepper", "--holding-torque", "23ozin", "--step-angle", "0.9deg"];
        let rest = ["--speed", "15rev/s", "--json", "-", "--from", path];
        run(args.into_iter().chain(rest))
    };
    let whole = json(&from(dir.0.to_str().expect("UTF-8")));
    assert_eq!(whole["impact"]["jitter_pp_ns"], 3600.0);
    assert_eq!(whole["step_generation"]["interval_max_abs_ns"], 900);
    fs::write(dir.path("newer.json"), r#"{"schema":2,"tool":"punctual"}"#).expect("writable");
    refused(&from(dir.path("newer.json").to_str().expect("UTF-8")), &["schema 2"]);
    fs::write(dir.path("other.json"), "[]").expect("writable");
    refused(&from(dir.path("other.json").to_str().expect("UTF-8")), &["no result"]);
    fs::write(dir.path("text"), "hello").expect("writable");
    refused(&from(dir.path("text").to_str().expect("UTF-8")), &["no result"]);
    refused(&from(dir.path("absent").to_str().expect("UTF-8")), &["cannot read"]);
}
