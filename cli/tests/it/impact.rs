//! `punctual impact`: the published figures, dimensions refused by name, results by run.

use std::fs;

use serde_json::json;

use crate::{Dir, json, refused, run, stderr, stdout};

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
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    assert!(stdout(&out).contains("no: at 20000 steps/s steps are lost"), "{}", stdout(&out));
    let mut args = stepper("1Nm", "1.8deg", "100rev/s", "100us");
    args.extend(["--json", "-"]);
    let result = json(&run(args));
    assert_eq!(
        (&result["impact"]["answer"], &result["verdict"]["ok"]),
        (&json!("no"), &json!(false))
    );
}

#[test]
fn above_the_lower_of_two_limits_the_answer_is_no() {
    // 10 % of what is available is taken at 5.31 steps/s; steps are lost much later.
    for (speed, answer, status) in [("0.02rev/s", "yes: ", 0), ("0.05rev/s", "no: ", 1)] {
        let out = run(stepper("1Nm", "1.8deg", speed, "6ms"));
        assert_eq!(out.status.code(), Some(status), "{}", stderr(&out));
        let page = stdout(&out);
        assert!(page.starts_with(answer) && page.contains("the lower one holds"), "{page}");
    }
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
    assert_eq!(whole["impact"]["answer"], "yes");
    let basis = &whole["impact"]["basis"][0];
    assert_eq!((&basis["level"], &basis["n"]), (&json!("L0"), &json!(100)), "{basis}");
    assert_eq!(whole["step_generation"]["interval_max_abs_ns"], 900);
    fs::write(dir.path("newer.json"), r#"{"schema":3,"tool":"punctual"}"#).expect("writable");
    refused(&from(dir.path("newer.json").to_str().expect("UTF-8")), &["schema 3"]);
    fs::write(dir.path("other.json"), "[]").expect("writable");
    refused(&from(dir.path("other.json").to_str().expect("UTF-8")), &["not a result"]);
    fs::write(dir.path("text"), "hello").expect("writable");
    refused(&from(dir.path("text").to_str().expect("UTF-8")), &["not a result"]);
    refused(&from(dir.path("absent").to_str().expect("UTF-8")), &["cannot read"]);
}

#[test]
fn steps_are_those_of_the_base_thread_and_the_run_is_named() {
    let dir = Dir::new("impact-threads");
    let wakes: String = (0..100).map(|k| format!("{}\n", 1 + k * 1_000_000)).collect();
    let (csv, file) = (dir.path("wakes.csv"), dir.path("night.json"));
    fs::write(&csv, wakes).expect("writable");
    let columns = ["--column", "instant:ns", "--period", "1ms", "--json", "-"];
    let csv = csv.to_str().expect("UTF-8");
    let mut result = json(&run(["analyse", csv].into_iter().chain(columns)));
    let made = result["runs"][0].clone();
    let thread = |name: &str, period_ns: u64, grid_pp_ns: f64, interval_ns: f64| {
        let mut run = made.clone();
        (run["name"], run["setup"]["period_ns"]) = (json!(name), json!(period_ns));
        run["grid"]["jitter_pp_ns"] = json!(grid_pp_ns);
        run["jitters"]["interval_max_abs_ns"] = json!(interval_ns);
        run
    };
    let base = thread("CPU 1, 25 µs, idle", 25_000, 3_000.0, 8_000.0);
    let loaded = thread("CPU 1, 25 µs, linuxcnc", 25_000, 9_000.0, 7_000.0);
    let servo = thread("CPU 1, 1 ms, linuxcnc", 1_000_000, 5e6, 4e6);
    result["runs"] = json!([base, servo, loaded]);
    fs::write(&file, result.to_string()).expect("writable");
    let ran_with = |more: &[&str]| {
        let args = ["impact", "stepper", "--holding-torque", "1.2Nm", "--step-angle", "1.8deg"];
        let from = ["--speed", "5rev/s", "--from", file.to_str().expect("UTF-8")];
        run(args.iter().chain(&from).chain(more))
    };
    let taken = json(&ran_with(&["--json", "-"]));
    assert_eq!(taken["step_generation"]["interval_max_abs_ns"], 8_000);
    assert_eq!(taken["step_generation"]["run"], "CPU 1, 25 µs, idle");
    assert_eq!(taken["impact"]["run"], "CPU 1, 25 µs, linuxcnc");
    assert_eq!(taken["impact"]["jitter_pp_ns"], 9_000.0);
    let page = stdout(&ran_with(&[]));
    assert!(page.contains("of the run \"CPU 1, 25 µs, idle\""), "{page}");
    assert!(page.contains("of the run \"CPU 1, 25 µs, linuxcnc\""), "{page}");
    assert!(!page.contains("servo thread"), "{page}");
    let joined = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("two limits, and the lower one holds, the motor's: "), "{page}");
    // Copied from a terminal, where a number and its unit stay together.
    let servo = stdout(&ran_with(&["--run", "CPU 1, 1\u{a0}ms, linuxcnc"]));
    let joined = servo.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("max |interval| 4.00 ms"), "{servo}");
    assert_eq!(joined.matches("of the run").count(), 1, "{servo}");
    assert!(joined.contains("a loop of 1 ms is a servo thread"), "{servo}");
    assert!(joined.contains("'punctual check --for linuxcnc' measures both"), "{servo}");
}

/// (model and its arguments, what a dimension mismatch of the first quantity is refused with).
const MODELS: [(&[&str], &str); 11] = [
    (&["servo", "--crossover", "100Hz", "--period", "1ms"], "--crossover"),
    (&["sampling", "--signal", "1kHz", "--bits", "3"], "--signal"),
    (&["audio", "--rate", "48kHz", "--frames", "64"], "--rate"),
    (&["quadrature", "--period", "25us", "--edges", "20kHz"], "--period"),
    (&["position", "--speed", "10m/min", "--tolerance", "10um"], "--speed"),
    (&["velocity", "--period", "1ms", "--tolerance", "6%"], "--period"),
    (&["ethercat", "--shift", "300us", "--frame", "120us"], "--shift"),
    (&["tsn", "--delta", "100us", "--losses", "1%"], "--delta"),
    (&["pacing", "--rate", "1Gbit/s", "--buffer", "64KiB"], "--rate"),
    (&["pwm", "--pulses", "1kHz", "--bits", "4"], "--pulses"),
    (&["safety", "--period", "1ms", "--reaction", "5ms"], "--period"),
];

#[test]
fn each_application_says_its_answer_and_what_it_rests_on() {
    for (model, _) in MODELS {
        let by_hand = ["--time-error", "15us", "--cycles", "1000000"];
        let ran = |extra: &[&str]| {
            run(["impact"].iter().chain(model).chain(&by_hand).chain(extra).copied())
        };
        let out = ran(&[]);
        assert_eq!(out.status.code(), Some(0), "{model:?}: {}{}", stdout(&out), stderr(&out));
        let text = stdout(&out);
        assert!(text.contains("rests on") && text.contains("as given"), "{text}");
        let impact = json(&ran(&["--json", "-"]))["impact"].clone();
        assert_eq!(impact["model"], model[0]);
        assert!(impact["basis"][0]["statistic"].is_string() && impact["figures"][0].is_object());
        assert!(impact["source"].is_string() && !impact["statement"].is_null());
    }
}

#[test]
fn each_application_refuses_other_dimensions_zero_and_what_is_negative() {
    for (model, option) in MODELS {
        let at = model.iter().position(|arg| *arg == option).expect("an option") + 1;
        for bad in ["5", "0.9deg", "-1us", "0s", "", "1e999Hz", "x"] {
            let mut args: Vec<&str> = ["impact"].iter().chain(model).copied().collect();
            args[at + 1] = bad;
            args.extend(["--time-error", "15us"]);
            refused(&run(args), &[option]);
        }
        let hand = ["impact"].iter().chain(model).copied();
        refused(&run(hand.clone().chain(["--time-error", "0us"])), &["zero"]);
        refused(&run(hand.clone().chain(["--time-error", "-1us"])), &["negative"]);
        refused(&run(hand.clone().chain(["--time-error", "15"])), &["unit"]);
        refused(&run(hand.clone().chain(["--run", "idle"])), &["--from"]);
        refused(&run(hand), &["--from"]);
    }
}

#[test]
fn no_is_exit_1_and_what_cannot_be_known_is_3_or_what_undecided_says() {
    let tsn = ["impact", "tsn", "--delta", "100us", "--losses", "1ppm", "--time-error"];
    let code = |rest: &[&str]| run(tsn.iter().chain(rest)).status.code();
    assert_eq!(code(&["50us", "--cycles", "10000000"]), Some(0));
    let few = ["50us", "--cycles", "1000"];
    assert_eq!(code(&few), Some(3), "too few cycles for 1 ppm");
    for (word, status) in [("fail", 1), ("pass", 0)] {
        let out = run(tsn.iter().chain(&few).chain(&["--undecided", word]));
        assert_eq!(out.status.code(), Some(status), "{}", stderr(&out));
    }
    assert_eq!(code(&["150us", "--cycles", "1000"]), Some(1));
    assert_eq!(code(&["150us", "--cycles", "10000000"]), Some(3), "of one that was late");
    let huge = run(["impact", "pacing", "--rate", "1e300Gbit/s", "--time-error", "292y"]);
    refused(&huge, &["--rate", "too large"]);
}

#[test]
fn a_share_of_late_wakes_decides_and_what_is_open_names_the_measurement_that_would() {
    let dir = Dir::new("impact-share");
    let file = dir.path("night.json");
    let name = file.to_str().expect("UTF-8");
    let run_of = |late_ns: u64| {
        let late = |k: u64| if k.is_multiple_of(2) { late_ns } else { 5_000 };
        let wakes: String = (0..5_000).map(|k| format!("{}\n", late(k))).collect();
        let csv = dir.path("late.csv");
        fs::write(&csv, wakes).expect("writable");
        let columns = ["--column", "lateness:ns", "--period", "1ms", "--json", "-"];
        let args = ["analyse", csv.to_str().expect("UTF-8")];
        let mut result = json(&run(args.into_iter().chain(columns)));
        result["runs"][0]["setup"]["policy"] = json!("SCHED_FIFO");
        result["runs"][0]["setup"]["load"] = json!(["stress-ng:\"--cpu 2\""]);
        fs::write(&file, result.to_string()).expect("writable");
    };
    let audio = |rest: &[&str]| {
        let args = ["impact", "audio", "--frames", "256", "--wanted", "1h", "--from", name];
        run(args.iter().chain(rest))
    };
    // 5.33 ms may pass.
    run_of(8_000_000);
    let no = audio(&[]);
    assert_eq!(no.status.code(), Some(1), "{}", stderr(&no));
    let page = stdout(&no).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        page.starts_with(
            "no: 256 frames (5.33 ms): with 2 buffers a wake may be 5.33 ms late, \
             and 2 500 of 5 000 were"
        ),
        "{page}"
    );
    assert!(page.contains("2 500 of 5 000 cycles"), "{page}");
    assert_eq!(json(&audio(&["--json", "-"]))["impact"]["basis"][0]["exceedances"], 2_500);
    // None was that late, of too few.
    run_of(6_000);
    let open = audio(&[]);
    assert_eq!(open.status.code(), Some(3), "{}", stderr(&open));
    let page = stdout(&open).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        page.starts_with("unknown, 5.0 s measured are too short, and 3.3 h are needed: "),
        "{page}"
    );
    assert!(page.contains("and none of 5 000 was later"), "{page}");
    let begins = "punctual measure periodic --period 1ms --load 'stress-ng:\"--cpu 2\"' -d ";
    let command = json(&audio(&["--json", "-"]))["impact"]["command"].clone();
    assert!(command.as_str().expect("a command").starts_with(begins), "{command}");
    assert!(page.contains(command.as_str().expect("a command")), "{page}");
    // Loads of check that took turns: a check so much longer.
    let mut turns = crate::json_file(&file);
    turns["experiment"] = json!("check");
    turns["rows"] = json!([]);
    turns["runs"][0]["setup"]["load"] = json!(["cpu", "disk"]);
    turns["runs"][0]["setup"]["duration_ns"] = json!(5_000_000_000u64);
    fs::write(&file, turns.to_string()).expect("writable");
    let command = json(&audio(&["--json", "-"]))["impact"]["command"].clone();
    let begins = "punctual check --period 1ms -d ";
    assert!(command.as_str().is_some_and(|command| command.starts_with(begins)), "{command}");
    // No computing, no copying: said or left out.
    let none = json(&audio(&["--compute", "0ms", "--json", "-"]));
    assert_eq!(none["impact"], json(&audio(&["--json", "-"]))["impact"]);
}

#[test]
fn the_run_under_load_is_taken_and_no_time_beyond_a_third_of_the_one_measured_is_claimed() {
    let dir = Dir::new("impact-load");
    let (csv, file) = (dir.path("late.csv"), dir.path("night.json"));
    let made = |cycles: u64| {
        let wakes: String = (0..cycles).map(|k| format!("{}\n", 5_000 + k % 7)).collect();
        fs::write(&csv, wakes).expect("writable");
        let columns = ["--column", "lateness:ns", "--period", "1333333ns", "--json", "-"];
        let args = ["analyse", csv.to_str().expect("UTF-8")];
        json(&run(args.into_iter().chain(columns)))
    };
    // 24.5 s, and 1.5 s.
    for (cycles, third_s) in [(18_375, 8.2), (1_123, 0.5)] {
        fs::write(&file, made(cycles).to_string()).expect("writable");
        for more in [&["--frames", "4096"][..], &["--frames", "8192"], &[]] {
            let args = ["impact", "audio", "--wanted", "1min", "--json", "-", "--from"];
            let out = run(args.iter().chain(&[file.to_str().expect("UTF-8")]).chain(more));
            let impact = json(&out)["impact"].clone();
            assert_eq!(impact["answer"], "unknown", "{impact}");
            let figures = impact["figures"].as_array().expect("figures");
            let least = "mean time between dropouts, at least";
            let least = figures.iter().find(|figure| figure["name"] == least);
            let least_ns = least.and_then(|figure| figure["value"].as_f64()).expect("a time");
            assert!(least_ns <= third_s * 1e9, "{least_ns} {impact}");
            assert!(impact["statement"].as_str().is_some_and(|text| text.contains(" frames")));
        }
    }
    // Shorter runs without load, one of them of another wait, are passed over.
    let mut result = made(18_375);
    let mut idle = made(1_123)["runs"][0].clone();
    idle["name"] = json!("idle");
    let mut library = idle.clone();
    (library["name"], library["setup"]["wait"]) = (json!("library loop, idle"), json!("adaptive"));
    result["runs"][0]["name"] = json!("under load");
    result["runs"][0]["setup"]["load"] = json!(["cpu"]);
    result["runs"][0]["setup"]["policy"] = json!("SCHED_FIFO");
    result["runs"] = json!([idle, result["runs"][0], library]);
    fs::write(&file, result.to_string()).expect("writable");
    for more in [&["--wanted", "1h"][..], &[]] {
        let args = ["impact", "audio", "--json", "-", "--from"];
        let out = run(args.iter().chain(&[file.to_str().expect("UTF-8")]).chain(more));
        let impact = json(&out)["impact"].clone();
        assert_eq!(impact["run"], "under load", "{impact}");
        let statement = impact["statement"].as_str().expect("a sentence");
        assert!(statement.ends_with("by the run \"under load\""), "{statement}");
        if !more.is_empty() {
            let command = impact["command"].as_str().expect("a command");
            assert!(command.contains(" --load cpu -d "), "{command}");
        }
    }
}

#[test]
fn where_nothing_is_allowed_no_margin_is_left() {
    let given = ["--frames", "64", "--compute", "2ms", "--time-error", "10us", "--cycles", "1000"];
    let out = run(["impact", "audio"].into_iter().chain(given));
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let page = stdout(&out);
    let margin = page.lines().find(|line| line.contains("margin left")).unwrap_or(&page);
    assert!(margin.trim_end().ends_with("none"), "{margin}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
}

#[test]
fn of_a_result_the_worst_run_is_taken_or_the_one_that_is_named() {
    let dir = Dir::new("impact-runs");
    let late: String = (0..5_000).map(|k| format!("{}\n", 5 + k % 7)).collect();
    fs::write(dir.path("late.csv"), late).expect("writable");
    let csv = dir.path("late.csv");
    let columns = ["--column", "lateness:us", "--period", "1ms", "--json", "-"];
    let args = ["analyse", csv.to_str().expect("UTF-8")];
    let mut result = json(&run(args.into_iter().chain(columns)));
    let mut worse = result["runs"][0].clone();
    worse["name"] = json!("\u{1b}[2Jworse");
    worse["lateness_ns"]["max"] = json!(900_000.0);
    worse["grid"]["jitter_pp_ns"] = json!(900_000.0);
    result["runs"][0]["name"] = json!("better");
    let mut library = worse.clone();
    (library["name"], library["setup"]["wait"]) = (json!("library loop, idle"), json!("adaptive"));
    library["grid"]["jitter_pp_ns"] = json!(990_000.0);
    result["runs"] = json!([result["runs"][0], worse, library]);
    let file = dir.path("with-library.json");
    fs::write(&file, result.to_string()).expect("writable");
    // A run that waits otherwise is taken where it is named, of a motor too.
    let motor = "impact stepper --holding-torque 1Nm --step-angle 1.8deg --speed 1rev/s --json -";
    let of_motor = |rest: &[&str]| {
        let from = ["--from", file.to_str().expect("UTF-8")];
        json(&run(motor.split(' ').chain(from).chain(rest.iter().copied())))["impact"].clone()
    };
    assert_eq!(of_motor(&[])["run"], "\u{1b}[2Jworse");
    assert_eq!(of_motor(&["--run", "library loop, idle"])["run"], "library loop, idle");
    result["runs"].as_array_mut().expect("runs").pop();
    fs::write(dir.path("result.json"), result.to_string()).expect("writable");
    let position = |rest: &[&str]| {
        let args = ["impact", "position", "--speed", "1m/s", "--from"];
        run(args.iter().chain(&[dir.0.to_str().expect("UTF-8")]).chain(rest))
    };
    let worst = json(&position(&["--json", "-"]))["impact"].clone();
    assert_eq!(worst["run"], "\u{1b}[2Jworse");
    assert_eq!(
        (&worst["basis"][0]["level"], &worst["basis"][0]["n"]),
        (&json!("L0"), &json!(5_000))
    );
    let named = json(&position(&["--json", "-", "--run", "better"]))["impact"].clone();
    let spread = &result["runs"][0]["grid"]["jitter_pp_ns"];
    assert_eq!((&named["run"], &named["basis"][0]["value_ns"]), (&json!("better"), spread));
    refused(&position(&["--run", "none"]), &["no run", "better"]);
    assert!(!stdout(&position(&[])).contains('\u{1b}'), "a hostile name reached the terminal");
    let written = dir.path("impact.json");
    position(&["--json", written.to_str().expect("UTF-8")]);
    let read = ["impact", "position", "--speed", "1m/s", "--from"];
    let read = run(read.into_iter().chain([written.to_str().expect("UTF-8")]));
    refused(&read, &["no runs in this result"]);
}

#[test]
fn drives_are_listed_and_their_timings_taken() {
    let list = stdout(&run(["impact", "stepper", "--drives"]));
    assert!(list.contains("gecko-201 ") && list.contains("20.0 µs"), "{list}");
    let mut args = stepper("1Nm", "1.8deg", "1rev/s", "10us");
    args.extend(["--json", "-", "--drive", "gecko-203v", "--dir-hold", "7us"]);
    let steps = json(&run(args))["step_generation"].clone();
    assert_eq!(steps["drive"]["step_time_ns"], 1_000);
    assert_eq!(steps["base_period_ns"], 10_000 + 1_000 + 2_000 + 5_000);
    assert_eq!((&steps["dir_hold_ns"], &steps["dir_setup_ns"]), (&json!(17_000), &json!(10_200)));
    let mut args = stepper("1Nm", "1.8deg", "1rev/s", "10us");
    args.extend(["--drive", "no-such"]);
    refused(&run(args), &["no-such", "--drives"]);
}

#[test]
fn what_a_histogram_ends_before_lies_between_its_end_and_the_largest() {
    // Of cyclictest -h 100: ten values beyond it, the largest 120 µs.
    let dir = Dir::new("impact-overflow");
    let (file, result) = (dir.path("cov.txt"), dir.path("cov.json"));
    let mut rows: Vec<String> = (0..100).map(|us| format!("{us:06} 000000")).collect();
    rows[8] = "000008 019990".to_owned();
    let text = format!(
        "# Histogram\n{}\n# Total: 000019990\n# Min Latencies: 00008\n# Avg Latencies: 00008\n\
         # Max Latencies: 00120\n# Histogram Overflows: 00010\n",
        rows.join("\n")
    );
    fs::write(&file, text).expect("writable");
    let (file, result) = (crate::text(&file), crate::text(&result));
    let limits = ["--limit", "p99.99<150us", "--limit", "p99.99<=121us", "--limit", "max<150us"];
    let read = ["analyse", file, "--unit", "us", "-q", "--json", result];
    let out = run([&read[..], &limits[..]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let broken =
        run([&["analyse", file, "--unit", "us", "-q"][..], &["--limit", "p99.99<90us"]].concat());
    assert_eq!(broken.status.code(), Some(1), "{}", stderr(&broken));
    assert!(stderr(&broken).contains("p99.99 is at least 100 µs"), "{}", stderr(&broken));
    // The same of the result that was stored.
    let claimed = |claim: &str| {
        let out = run(["analyse", result, "-q", "--claim", claim]);
        (out.status.code(), stderr(&out))
    };
    assert_eq!(claimed("p(lateness>1ms)<1e-3").0, Some(0));
    let (code, text) = claimed("p(lateness>110us)<1e-4");
    assert!(code == Some(3) && text.contains(": 0 to 10 of 20 000 releases"), "{text}");
    let (code, text) = claimed("p(lateness>99us)<1e-4");
    assert!(code == Some(3) && text.contains(": 10 of 20 000 releases"), "{text}");
    // None was 1 ms late: ten were taken for later than anything.
    let drops = |losses: &str| {
        let out = run(["impact", "tsn", "--delta", "1ms", "--losses", losses, "--from", result]);
        (out.status.code(), stdout(&out))
    };
    let (code, text) = drops("1e-4");
    assert!(code == Some(3) && !text.contains("10 of"), "{text}");
    let (code, text) = drops("6e-4");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code == Some(0) && text.contains("if late releases come alone"), "{text}");
}
