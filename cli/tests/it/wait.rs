//! The ways to wait, for real: what each says of itself, and all of them in turns.

use serde_json::json;

use crate::{
    Dir, json, json_file, measured, punctual, refused, run, settings_of_this_machine, stderr,
    stdout,
};

fn periodic(args: &[&str]) -> serde_json::Value {
    let always = ["measure", "periodic", "--duration", "500ms", "--json", "-"];
    let out = run(always.iter().chain(args));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    json(&out)["runs"][0].clone()
}

#[test]
fn each_way_says_how_it_came_to_its_releases() {
    let fixed = periodic(&["--wait", "fixed", "--margin", "50us"]);
    assert_eq!(
        (&fixed["setup"]["wait"], &fixed["approach"]["margin_ns"]),
        (&"fixed".into(), &50_000.into())
    );
    assert!(fixed["approach"]["hop_ns"].is_null() && fixed["approach"]["reachable"].is_null());
    let default = periodic(&["--wait", "fixed"]);
    assert_eq!(default["approach"]["margin_ns"], 125_000);
    let rearm = periodic(&["--wait", "rearm"]);
    // √(T·S), S between half a microsecond and a tenth of the period.
    let every = rearm["approach"]["hop_ns"].as_u64().expect("measured");
    assert!((22_000..320_000).contains(&every), "{every}");
    assert!(periodic(&["--wait", "sleep"])["approach"].is_null());
}

#[test]
fn the_adaptive_way_learns_before_it_is_recorded_and_keeps_its_budget() {
    let run = periodic(&["--wait", "adaptive", "--budget", "20%"]);
    let approach = &run["approach"];
    assert!(approach["margin_ns"].as_u64().is_some_and(|ns| ns >= 2_000), "{approach}");
    assert!(approach["late_share"].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)));
    assert!(approach["trials_late"].is_u64(), "{approach}");
    assert!(approach["reachable"].is_boolean() && approach["extrapolated"].is_boolean());
    assert_eq!(run["setup"]["wait"], "adaptive");
}

#[test]
fn what_only_some_ways_have_is_refused_for_the_others() {
    let with = |args: &[&str]| run(["measure", "periodic"].iter().chain(args));
    refused(&with(&["--margin", "50us"]), &["--margin", "fixed"]);
    refused(&with(&["--wait", "adaptive", "--margin", "50us"]), &["--margin"]);
    for budget in ["0", "-1%", "200%", "x"] {
        let out = with(&["--wait", "adaptive", &format!("--budget={budget}")]);
        assert_eq!(out.status.code(), Some(2), "{budget}");
        assert!(stderr(&out).contains("--budget"), "{budget}: {}", stderr(&out));
    }
}

#[test]
fn a_quiet_phase_is_said_or_that_there_is_none() {
    let out =
        run(["measure", "periodic", "--phase", "quiet", "--duration", "100ms", "--json", "-"]);
    let result = json(&out);
    let text = result["warnings"].as_array().expect("warnings").iter().filter_map(|w| w.as_str());
    let text: Vec<&str> = text.filter(|w| w.contains("quiet phase")).collect();
    assert_eq!(text.len(), 1, "{}", result["warnings"]);
    let phase = result["runs"][0]["setup"]["phase_ns"].as_u64().expect("a phase");
    assert_eq!(text[0].starts_with("no quiet phase"), phase == 0, "{text:?} {phase}");
    // 7 µs come near any tick.
    let short =
        ["measure", "periodic", "--phase", "quiet", "--duration", "100ms", "--period", "7us"];
    // On a busy machine stamps may take so long that the period is refused.
    let ran = (0..100).map(|_| run(short)).find(|out| out.status.success());
    assert!(stdout(&ran.expect("stamps that fit into 7 µs")).contains("no quiet phase"));
}

/// `measure wait` for as long as it takes until each way has more than 100 cycles: on a machine
/// that others use a turn can pass without any.
fn with_cycles(args: &[&str]) -> serde_json::Value {
    let enough = |run: &serde_json::Value| run["cycles"].as_u64().is_some_and(|n| n > 120);
    let args = [&["measure", "wait"], args].concat();
    measured(&args, &["5s", "10s", "20s", "40s"], |result| {
        result["runs"].as_array().expect("runs").iter().all(enough)
    })
}

#[test]
fn the_ways_take_turns_and_stand_side_by_side() {
    let result = with_cycles(&["--phase", "300us"]);
    assert_eq!(result["experiment"], "measure wait");
    let rows = result["strategies"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["sleep", "fixed", "hop", "rearm", "adaptive", "spin"]);
    for (row, run) in rows.iter().zip(result["runs"].as_array().expect("runs")) {
        assert_eq!(row["lateness_ns"], run["lateness_ns"]);
        assert_eq!(row["phase_ns"], 300_000);
        assert!(row["cpu_load"].as_f64().is_some_and(|load| (0.0..=1.0).contains(&load)));
        assert!(run["cycles"].as_u64().is_some_and(|n| n > 100), "{}", run["name"]);
    }
    assert!(rows[0]["margin_ns"].is_null() && rows[1]["margin_ns"] == 125_000);
    refused(&run(["measure", "wait", "--cpu", "0-1"]), &["--cpu", "one CPU"]);
    refused(&run(["measure", "wait", "--load", "all"]), &["--load"]);
}

#[test]
fn the_answer_to_a_deadline_decides_the_exit_status() {
    let lasting = |duration: &str, more: &[&str]| {
        let args = ["measure", "wait", "-d", duration, "-q", "--deadline"];
        run(args.iter().chain(more))
    };
    // A busy machine may leave a way without enough releases: then it is measured for longer.
    let decided = |more: &[&str]| {
        let mut tried = ["3s", "12s", "48s"].into_iter().map(|duration| lasting(duration, more));
        tried.find(|out| out.status.code() != Some(3)).expect("it is open after 48 s")
    };
    let ways = |more: &[&str]| lasting("3s", more);
    // No release is so punctual; nor can so few show what is seldom.
    let no = decided(&["1ns", "--miss", "10%"]);
    assert_eq!(no.status.code(), Some(1), "{}", stderr(&no));
    assert!(stderr(&no).contains("FAILS No: none of these ways holds the deadline"), "{no:?}");
    let rare = ["1s", "--miss", "1e-9"];
    for (more, status) in
        [(&[][..], 3), (&["--undecided", "fail"], 1), (&["--undecided", "pass"], 0)]
    {
        let open = ways(&[&rare[..], more].concat());
        assert_eq!(open.status.code(), Some(status), "{more:?} {}", stderr(&open));
        assert!(stderr(&open).contains("Undecided: none is shown to hold"), "{}", stderr(&open));
    }
    let held = decided(&["10s", "--miss", "50%"]);
    assert_eq!(held.status.code(), Some(0), "{}", stderr(&held));
    assert!(stderr(&held).contains("Use --wait "), "{}", stderr(&held));
}

#[test]
fn a_front_has_ways_that_no_cheaper_one_beats() {
    let result = with_cycles(&["--front"]);
    let rows = result["strategies"].as_array().expect("rows");
    let front: Vec<bool> =
        rows.iter().map(|row| row["on_front"].as_bool().expect("a bool")).collect();
    assert!(rows.len() > 15 && front.contains(&true) && front.contains(&false), "{front:?}");
    let lookup = |row: &serde_json::Value| {
        (row["cpu_load"].as_f64().expect("seen"), row["lateness_ns"]["p99"].as_f64())
    };
    for (row, _) in rows.iter().zip(&front).filter(|(_, on)| **on) {
        let (cpu, late) = lookup(row);
        let beaten =
            rows.iter().map(lookup).any(|(other, p99)| other < cpu && p99 < late && p99.is_some());
        assert!(!beaten, "{row}");
    }
    let named = rows.iter().filter(|row| row["name"] == "hop" && row["hop_ns"] == 100_000);
    assert_eq!(named.count(), 4);
    // Each row has its releases and what a spin beside it saw; those spins are no rows.
    let runs = result["runs"].as_array().expect("runs");
    let beside = |run: &serde_json::Value| {
        run["name"].as_str().is_some_and(|name| name.starts_with("spin beside"))
    };
    let spins: Vec<&serde_json::Value> = runs.iter().filter(|run| beside(run)).collect();
    assert_eq!(runs.len(), rows.len() + spins.len());
    for (at, (row, run)) in rows.iter().zip(runs).enumerate() {
        let n = run["cycles"].as_u64().expect("a count") + run["missed"].as_u64().expect("a count")
            - run["cold"].as_u64().expect("a count");
        assert_eq!(row["releases"], n, "{}", run["name"]);
        assert_eq!(row["quiet_p99_ns"], spins[at / 4]["lateness_ns"]["p99"]);
    }
    let dir = Dir::new("front");
    let file = dir.path("front.json");
    std::fs::write(&file, result.to_string()).expect("writable");
    let (page, plots) = (dir.path("front.html"), dir.path("plots"));
    let out = run([
        "report".as_ref(),
        file.as_os_str(),
        "-o".as_ref(),
        page.as_os_str(),
        "--plots".as_ref(),
        plots.as_os_str(),
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = std::fs::read_to_string(page).expect("a page");
    let on_front = rows.iter().filter(|row| row["on_front"] == true).count();
    assert_eq!(page.matches("<td>yes</td>").count(), on_front);
    assert!(page.contains("Lateness against CPU of ways to wait"));
    assert!(plots.join("front-1.svg").is_file() && plots.join("front-1.png").is_file());
}

#[test]
fn what_a_wait_learned_is_kept_for_the_next_run_and_checked() {
    // What is kept holds for one setup of the machine.
    let _turn = settings_of_this_machine();
    let dir = Dir::new("learned");
    let file = dir.path("punctual").join("learned.json");
    let measured = |more: &[&str]| {
        let args = ["measure", "periodic", "--wait", "adaptive", "--duration", "300ms"];
        let mut command = punctual();
        command.env("XDG_STATE_HOME", &dir.0).args(args).args(["--json", "-"]).args(more);
        let out = command.output().expect("the program starts");
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        (json(&out)["runs"][0].clone(), stderr(&out))
    };
    let (first, _) = measured(&[]);
    assert_eq!(first["approach"]["resumed"], false);
    // On a machine that others use its aim may be out of reach, or it may still learn.
    assert!(first["approach"]["reachable"] == true || !file.is_file(), "{}", first["approach"]);
    let kept = |period_ns: u64| {
        json!({ "cpu": first["setup"]["cpu"], "period_ns": period_ns, "budget": 0.1, "hop_ns": 0,
            "hops": 0, "margin_ns": 60_000, "late": 5e-4, "cycles": 20_000 })
    };
    // What was kept by hand: of this machine, as a baseline names it.
    let whole = |waits: serde_json::Value, digests: [&str; 2], id: serde_json::Value| {
        json!({ "tool": "punctual", "layout": 1, "machine_id": id, "machine_digest": digests[0],
            "setup_digest": digests[1], "waits": waits })
    };
    std::fs::create_dir_all(file.parent().expect("a directory")).expect("writable");
    let foreign = whole(json!([kept(1_000_000)]), ["x", "y"], json!("z"));
    for (text, word) in [
        (foreign.to_string(), "learned on another machine"),
        ("{\"tool\": \"punct".to_owned(), "not a file of learned waits"),
        ("\u{1b}[2J".repeat(40_000), "more than 64 KiB"),
    ] {
        std::fs::write(&file, text).expect("writable");
        let (ran, said) = measured(&[]);
        assert_eq!(ran["approach"]["resumed"], false);
        let line = said.lines().filter(|line| line.contains("is ignored"));
        assert_eq!(line.filter(|line| line.contains(word)).count(), 1, "{said}");
    }
    let baselines = dir.path("baselines");
    // Another program may set the machine up differently between two runs: then it is said so, and
    // both are done again.
    let with = |waits: serde_json::Value, more: &[&str]| {
        let attempt = |_| {
            let name = ["--duration", "300ms", "--baseline", "b", "--baselines"];
            let args = ["measure", "periodic"].iter().chain(&name).map(AsRef::as_ref);
            let out = run(args.chain([baselines.as_os_str()]));
            assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
            let baseline = json_file(&baselines.join("b.json"));
            std::fs::remove_dir_all(&baselines).expect("its own");
            let digest = |key: &str| baseline[key].as_str().expect("a digest").to_owned();
            let own = [digest("machine_digest"), digest("setup_digest")];
            let own = [own[0].as_str(), own[1].as_str()];
            let text = whole(waits.clone(), own, baseline["machine_id"].clone()).to_string();
            std::fs::write(&file, text).expect("writable");
            let (ran, said) = measured(more);
            let same = !said.contains("set up differently");
            assert!(!same || !said.contains("is ignored"), "{said}");
            same.then(|| ran["approach"]["resumed"].clone())
        };
        (0..10).find_map(attempt).expect("a machine that stays as it is for two seconds")
    };
    assert_eq!(with(json!([kept(1_000_000)]), &[]), true);
    assert_eq!(with(json!([kept(1_000_000)]), &["--relearn"]), false);
    // Of another period, and what cannot be true: nothing is known.
    let others = json!([kept(500_000), { "cpu": 0, "period_ns": 0, "budget": 0.1, "hop_ns": 0,
        "hops": 0, "margin_ns": 0, "late": 0.0, "cycles": 0 }]);
    assert_eq!(with(others, &[]), false);
}
