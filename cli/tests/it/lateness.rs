//! One number has one value: lateness over releases, in every view of one recording.
//!
//! The recording has late wakes that took releases with them, a body that ran too long and releases
//! that no wake followed. What is right is worked out here, release by release.

use punctual_core::sample::{Flags, Sample};
use punctual_core::time::Span;
use serde_json::Value;

use crate::{Dir, PERIOD_NS, json, recording_of, run, stderr, stdout};

/// Cycles that ran.
const N: u64 = 12_000;
/// Releases at the end that no wake followed.
const CENSORED: u64 = 3;

/// The samples: now and then a wake 2.5 to 40.5 periods late, or a body of 20 periods.
fn samples() -> Vec<Sample> {
    let period = PERIOD_NS as i64;
    let mut cycle = 0;
    (0..N)
        .map(|k| {
            let stall = if k % 900 == 450 { 2 + k as i64 % 39 } else { 0 };
            let body = if k % 1_700 == 850 { 20 } else { 0 };
            let calm = 5_000 + (k * 7_919 % 60_000) as i64;
            let lateness = if stall > 0 { stall * period + period / 2 } else { calm };
            let flags = if k == 0 { Flags::FIRST } else { Flags::NONE };
            let sample = Sample { cycle, lateness: Span::from_ns(lateness), flags };
            // Releases up to this wake were missed, and those during the body.
            cycle += 1 + stall as u64 + body;
            sample
        })
        .collect()
}

/// Every lateness that is known, in rising order, by the definition.
fn known(samples: &[Sample]) -> Vec<i64> {
    let due = |k: u64| (k * PERIOD_NS) as i64;
    let wakes: Vec<i64> =
        samples.iter().map(|sample| due(sample.cycle) + sample.lateness.as_ns()).collect();
    let (mut lateness_ns, mut at) = (Vec::new(), 0);
    for k in 0..=samples.last().expect("some").cycle {
        if let Ok(ran) = samples.binary_search_by_key(&k, |sample| sample.cycle) {
            lateness_ns.push(samples[ran].lateness.as_ns());
            continue;
        }
        while wakes[at] < due(k) {
            at += 1;
        }
        lateness_ns.push((wakes[at] - due(k)).max(PERIOD_NS as i64));
    }
    lateness_ns.sort_unstable();
    lateness_ns
}

/// The value at rank ⌈p·n⌉ of n, those not known being the latest.
fn quantile(known: &[i64], p: f64) -> i64 {
    let n = known.len() as f64 + CENSORED as f64;
    known[(p * n - 1e-9).ceil() as usize - 1]
}

/// A number that is at most a bucket above the right one.
fn near(found: &Value, right: i64) -> f64 {
    let ns = found.as_f64().unwrap_or_else(|| panic!("{found}: {right} is known"));
    let above = ns - right as f64;
    assert!((0.0..=right as f64 / 1_024.0 + 1.0).contains(&above), "{ns} for {right}");
    ns
}

#[test]
fn every_view_of_a_recording_has_the_same_lateness() {
    let dir = Dir::new("lateness");
    let (samples, path) = (samples(), dir.path("samples.punctual"));
    let known = known(&samples);
    let missed = known.len() as u64 - N + CENSORED;
    recording_of(&path, &["idle"], &[(samples.clone(), missed)]);
    let path = path.to_str().expect("UTF-8");

    // JSON.
    let result = json(&run(["analyse", path, "--json", "-"]));
    let outcome = &result["runs"][0];
    assert_eq!(outcome["missed"], missed);
    assert_eq!(
        (&outcome["censored"], &outcome["wakes"]["left_out"]),
        (&CENSORED.into(), &missed.into())
    );
    let lateness = &outcome["lateness_ns"];
    for (key, p) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        near(&lateness[key], quantile(&known, p));
    }
    let p99_ns = near(&lateness["p99"], quantile(&known, 0.99));
    let max_ns = *known.last().expect("some");
    assert_eq!(lateness["max"].as_f64(), Some(max_ns as f64));
    let wakes = |p: f64| {
        let mut wakes: Vec<i64> = samples.iter().map(|sample| sample.lateness.as_ns()).collect();
        wakes.sort_unstable();
        wakes[(p * N as f64 - 1e-9).ceil() as usize - 1]
    };
    near(&outcome["wakes"]["p99"], wakes(0.99));
    assert!(wakes(0.99) < quantile(&known, 0.99) / 10, "the wakes alone look far better");

    // Text: median, worst with the sign of what is not known.
    let text = stdout(&run(["analyse", "-v", path]));
    let shown = |ns: f64| Span::from_ns(ns.round() as i64).to_string();
    for part in [
        shown(near(&lateness["p50"], quantile(&known, 0.5))),
        format!("≥ {}", shown(max_ns as f64)),
    ] {
        assert!(text.contains(&part), "{part} in {text}");
    }
    assert!(text.contains("of wakes alone"), "{text}");
    let claims = outcome["claims"].as_array().expect("claims");
    let largest =
        claims.iter().find(|claim| claim["bound_ns"] == max_ns as f64 && claim["p"] != Value::Null);
    let largest = largest.and_then(|claim| claim["statement"].as_str()).expect("a claim");
    assert!(largest.contains("and 3 missed with no wake after them may have"), "{largest}");

    // Limits: what lies above the number holds, what lies below it does not; one on the
    // largest is open: the next wake would have shown it.
    let exit = |option: &str, text: String| run(["analyse", path, option, &text]).status.code();
    assert_eq!(exit("--limit", format!("p99<{}ns", p99_ns + 1.0)), Some(0));
    assert_eq!(exit("--limit", format!("p99<{p99_ns}ns")), Some(1));
    assert_eq!(exit("--limit", "max<1h".to_owned()), Some(3));

    // Claims count the same releases.
    let above_ns = 3_000_000;
    let late = known.iter().filter(|&&ns| ns > above_ns).count() as u64;
    let claim = format!("p(lateness>{above_ns}ns)<0.5");
    let judged = json(&run(["analyse", path, "--claim", &claim, "--json", "-"]));
    let judged = &judged["verdict"]["claims"][0];
    assert_eq!(judged["n"], known.len() as u64 + CENSORED);
    assert_eq!(judged["exceedances"], late);
    assert_eq!(judged["exceedances_at_most"], late + CENSORED);

    exported(path, &known, missed);
    compared(&dir, path, &result, &known);
}

/// The table of samples has a row a release, the histogram every known one and an open end.
fn exported(path: &str, known: &[i64], missed: u64) {
    let csv = stdout(&run(["export", "--csv", path]));
    let rows = csv.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let (mut lateness_ns, mut kinds) = (Vec::new(), [0, 0, 0]);
    for row in rows {
        let kind = ["ran", "missed", "censored"].iter().position(|kind| row[10] == *kind);
        kinds[kind.expect("a kind")] += 1;
        if row[10] != "censored" {
            lateness_ns.push(row[5].parse::<i64>().expect("ns"));
        }
    }
    lateness_ns.sort_unstable();
    assert_eq!((kinds, lateness_ns), ([N, missed - CENSORED, CENSORED], known.to_vec()));
    let csv = stdout(&run(["export", "--csv", "--histogram", "--keep-cold", path]));
    let counts: Vec<(&str, u64)> = csv
        .lines()
        .skip(1)
        .map(|line| {
            let (bounds, count) = line.rsplit_once(',').expect("a count");
            (bounds, count.parse().expect("a count"))
        })
        .collect();
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), known.len() as u64 + CENSORED);
    assert_eq!(counts.last().expect("rows").1, CENSORED, "{:?}", counts.last());
}

/// The page and a comparison say what the result says.
fn compared(dir: &Dir, path: &str, result: &Value, known: &[i64]) {
    let file = dir.path("result.json");
    std::fs::write(&file, result.to_string()).expect("writable");
    let file = file.to_str().expect("UTF-8");
    let page = dir.path("page.html");
    let out = run(["report", file, "-o", page.to_str().expect("UTF-8")]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = std::fs::read_to_string(page).expect("a page");
    let p99 = result["runs"][0]["lateness_ns"]["p99"].as_f64().expect("known");
    let metrics = stdout(&run(["export", "--openmetrics", file]));
    let line =
        metrics.lines().find(|line| line.contains("quantile") && line.contains("p=\"0.99\""));
    let (_, seconds) = line.and_then(|line| line.rsplit_once(' ')).expect("a quantile");
    assert_eq!(seconds.parse::<f64>().map(|s| (s * 1e9).round()), Ok(p99));
    let p99 = Span::from_ns(p99.round() as i64).to_string();
    assert!(page.contains(&p99), "{p99}");
    let out = run(["compare", path, path, "--anyway", "--threshold", "3ms", "--json", "-"]);
    let compared = json(&out);
    let pair = &compared["compare"]["pairs"][0]["runs"][0];
    let n = result["runs"][0]["cycles"].as_u64().expect("cycles")
        + result["runs"][0]["missed"].as_u64().expect("missed");
    assert_eq!((&pair["n_a"], &pair["n_b"]), (&n.into(), &n.into()));
    // The threshold stands at the end of its bucket, at most 1/128 above.
    let rates = pair["rates"].as_array().expect("rates");
    let near =
        |rate: &&Value| (3e6..3.03e6).contains(&rate["threshold_ns"].as_f64().unwrap_or(0.0));
    let quantiles = pair["quantiles"].as_array().expect("quantiles");
    for (key, quantile) in ["p50", "p90", "p99", "p99_9"].into_iter().zip(quantiles) {
        let right = result["runs"][0]["lateness_ns"][key].as_f64().expect("known");
        for side in ["a_ns", "b_ns"] {
            assert_eq!(quantile[side].as_f64(), Some(right), "{key}");
        }
    }
    let rate = rates.iter().find(near).expect("the threshold");
    let above_ns = rate["threshold_ns"].as_f64().expect("ns") as i64;
    let late = known.iter().filter(|&&ns| ns > above_ns).count() as u64;
    assert_eq!(rate["exceedances_a"], late + CENSORED);
}

#[test]
fn instants_alone_have_the_lateness_of_releases_without_a_wake() {
    // 16 000 wakes, and eight stalls in which 500 releases have none.
    let in_stall = |k: u64| (2_000..19_600).contains(&k) && (k - 2_000) % 2_200 < 500;
    let wakes = (0..20_000u64).filter(|&k| !in_stall(k));
    let instants: Vec<String> = wakes
        .map(|k| (1_000_000_000 + k * PERIOD_NS + 5_000 + k * 7_919 % 85_000).to_string())
        .collect();
    assert_eq!(instants.len(), 16_000);
    let dir = Dir::new("lateness-instants");
    let path = dir.path("wakes.csv");
    std::fs::write(&path, format!("instant\n{}\n", instants.join("\n"))).expect("writable");
    let path = path.to_str().expect("UTF-8");
    let analyse = |option: &str, text: &str| {
        let args = ["analyse", path, "--column", "instant:ns", "--period", "1ms", "--json", "-"];
        let out = run(args.into_iter().chain([option, text]));
        (out.status.code(), json(&out))
    };
    let (code, result) = analyse("--claim", "p(lateness>10ms)<0.1");
    assert_ne!(code, Some(0));
    let claim = &result["verdict"]["claims"][0];
    // In each stall 490 or 491 are later than 10 ms.
    assert_eq!((&claim["n"], &claim["exceedances"]), (&20_000.into(), &(8 * 491).into()));
    let outcome = &result["runs"][0];
    assert_eq!((&outcome["missed"], &outcome["wakes"]["left_out"]), (&4_000.into(), &4_000.into()));
    assert!(outcome["lateness_ns"]["p90"].as_f64().is_some_and(|ns| ns > 200e6));
    assert!(outcome["lateness_ns"]["max"].as_f64().is_some_and(|ns| ns > 500e6));
    assert!(outcome["wakes"]["max"].as_f64().is_some_and(|ns| ns < 100e3));
    for claim in outcome["claims"].as_array().expect("claims").iter().filter(|c| c["level"] == "L1")
    {
        let (bound_ns, p) = (claim["bound_ns"].as_f64(), claim["p"].as_f64());
        assert!(bound_ns >= Some(100e6) || p >= Some(0.1), "{claim}");
    }
    assert_eq!(analyse("--limit", "p90<10ms").0, Some(1));
    assert_eq!(analyse("--limit", "p75<1ms").0, Some(0));
}
