//! `punctual report`: pages written, small whatever they hold, and bad input refused.
//!
//! The page of a result in a real browser: clicked, typed at, printed, with scripts and without.

use std::fs;
use std::path::{Path, PathBuf};

use punctual_core::sample::{Flags, Sample};
use punctual_core::time::Span;
use punctual_testkit::browser::{Browser, RETURN, TAB};
use serde_json::{Value, json};

use crate::{
    Dir, json_file, only_result, punctual, recorded_result, recording_of, refused, result_of, run,
    sample_file, stderr, text,
};

/// The most bytes of a page.
const PAGE_MAX: usize = 1_000_000;

/// The directory of a real, short check, below `dir`. Where others hog the CPU so that the watchdog
/// ends it, which fails, it is another one.
fn checked(dir: &Dir, name: &str) -> PathBuf {
    let results = dir.path(name);
    let mut failed = String::new();
    for _ in 0..5 {
        let out = run(["check", "--duration", "1s", "--results", text(&results)]);
        if out.status.success() {
            return only_result(&results);
        }
        failed = stderr(&out);
        fs::remove_dir_all(&results).expect("there");
    }
    panic!("five checks failed: {failed}");
}

/// Runs `report` with `args` and gives the page at `out`.
fn report(args: &[&str], out: &Path) -> String {
    let done = run([&["report"], args, &["-o", text(out)]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let page = fs::read_to_string(out).expect("written");
    assert!(page.len() < PAGE_MAX, "{} bytes", page.len());
    unmarked(&page)
}

/// A page in which numbers and their units are plain words.
fn unmarked(page: &str) -> String {
    page.replace("<span class=\"figure\">", "").replace("</span>", "")
}

#[test]
fn check_leaves_a_page_that_needs_nothing_else() {
    let dir = Dir::new("report-page");
    let made = checked(&dir, "results");
    let page = fs::read_to_string(made.join("report.html")).expect("beside the result");
    assert!(page.len() < PAGE_MAX);
    assert!(page.contains("<span class=\"figure\">"), "numbers keep their units");
    let page = unmarked(&page);
    let worst = page.split("<section id=\"worst\"").nth(1).expect("worst cycles");
    let worst = worst.split("</section>").next().expect("its end");
    assert!(worst.contains("seconds into the run") && worst.contains(">load</th>"), "{worst}");
    assert!(!worst.contains(">cause</th>"), "no empty column: {worst}");
    for part in
        ["Verdict", "A loop that may be late", "Figures", "<svg", "Percentile curve", "<caption>"]
    {
        assert!(page.contains(part), "{part}");
    }
    for part in ["src=", "href=\"http", "url(", "@import"] {
        let markup = page.split("<script>").next().expect("a page");
        assert!(!markup.contains(part), "{part} would load something");
    }
    let headline = &json_file(&made.join("result.json"))["headline"];
    let escaped = |text: &Value| {
        let text = text.as_str().expect("text").replace('&', "&amp;");
        let text = text.replace('<', "&lt;").replace('>', "&gt;");
        text.replace('"', "&quot;").replace('\'', "&#39;")
    };
    let rows = |value: &str, key: &str| -> Vec<String> {
        headline[value].as_array().expect("rows").iter().map(|row| escaped(&row[key])).collect()
    };
    let settings = rows("settings", "knob");
    assert!(!settings.is_empty(), "no machine that runs tests is wholly tuned: {headline}");
    for knob in [settings, rows("advice", "text")].concat() {
        assert!(page.contains(&knob), "{knob}");
    }
    assert!(page.contains("default-src 'none'; script-src 'sha256-"));
    // The page that `report` makes of it is the same but for names.
    let again = report(&[text(&made)], &dir.path("again.html"));
    assert_eq!(again.matches("<svg").count(), page.matches("<svg").count());
}

#[test]
fn without_samples_or_with_a_part_of_them_the_page_says_so() {
    let dir = Dir::new("report-samples");
    let made = checked(&dir, "results");
    let samples = made.join("samples.punctual");
    let whole = fs::read(&samples).expect("written");
    fs::write(&samples, &whole[..whole.len() - 10]).expect("writable");
    let page = report(&[text(&made)], &dir.path("cut.html"));
    assert!(page.contains("the time series is incomplete") && page.contains("time-1-1"));
    fs::write(&samples, "nonsense").expect("writable");
    let page = report(&[text(&made)], &dir.path("nonsense.html"));
    assert!(page.contains("no time series") && page.contains("histogram-1-1"));
    fs::remove_file(&samples).expect("there");
    let page = report(&[text(&made)], &dir.path("none.html"));
    assert!(page.contains("no sample file next to this result") && !page.contains("time-1-1"));
    // Samples of another run are not drawn as if they were this one's.
    let second = checked(&dir, "other");
    fs::copy(second.join("samples.punctual"), &samples).expect("copied");
    let mut result = json_file(&made.join("result.json"));
    result["incomplete"] = true.into();
    // A busy machine may have ended this one too.
    result["ended_by"] = Value::Null;
    result["started_at"] = "2001-01-01T00:00:00Z".into();
    fs::write(made.join("result.json"), result.to_string()).expect("writable");
    let page = report(&[text(&made)], &dir.path("other.html"));
    assert!(page.contains("belong to another run"), "{page}");
    assert!(page.contains("Incomplete: the run ended"), "{page}");
}

/// A result of the program's own tests.
fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results/kinds").join(name)
}

#[test]
fn a_comparison_is_said_once() {
    let dir = Dir::new("report-once");
    let mut result = json_file(&stored("check-against.json"));
    let runs = result["compare"]["pairs"][0]["runs"].as_array().expect("runs").clone();
    let sentence = |run: &Value| {
        let part = |key: &str| run[key].as_str().expect("words").to_owned();
        format!("{}: {}", part("name"), part("statement"))
    };
    let sentences: Vec<String> = runs.iter().map(sentence).collect();
    let against = |at: usize| format!("against b: {}", sentences[at]);
    result["verdict"]["ok"] = false.into();
    result["verdict"]["reasons"] = json!([against(0), "idle: max<1us: max is 609 µs"]);
    result["verdict"]["reasons_about"] = json!([{"kind": "run", "pair": 0, "at": 0}]);
    result["verdict"]["open"] = json!([against(1)]);
    result["verdict"]["open_about"] = json!([{"kind": "run", "pair": 0, "at": 1}]);
    let file = dir.path("result.json");
    fs::write(&file, result.to_string()).expect("writable");
    let page = report(&[text(&file)], &dir.path("page.html"));
    for sentence in &sentences {
        let sentence = sentence.replace('<', "&lt;");
        assert_eq!(page.matches(&sentence).count(), 1, "{sentence}");
    }
    // What the answer comes to, and what is no comparison, stand in the verdict.
    let verdict = page.split("id=\"compared\"").next().expect("a beginning");
    assert!(verdict.contains("this run compared with baseline b: "), "{verdict}");
    assert!(verdict.contains("idle: max&lt;1us: max is 609"), "{verdict}");
    // Whatever is held against a baseline, it is the comparison that failed.
    assert!(verdict.contains("The comparison failed:"), "{verdict}");
    // A comparison alone has sentences, and is no loop without a verdict.
    let page = report(&[text(&stored("compare.json"))], &dir.path("compare.html"));
    assert!(page.contains("idle: better: ") && !page.contains("there is no verdict"));
}

#[test]
fn an_answer_is_said_once() {
    let dir = Dir::new("report-answer");
    let file = dir.path("impact.json");
    let few = ["impact", "tsn", "--delta", "100us", "--losses", "1ppm", "--cycles", "1000"];
    for time_error in ["50us", "150us"] {
        let out = run(few.iter().chain(&["--time-error", time_error, "--json", text(&file)]));
        assert!(out.status.code() != Some(2), "{}", stderr(&out));
        let result = json_file(&file);
        let statement = result["impact"]["statement"].as_str().expect("a sentence").to_owned();
        let page = report(&[text(&file)], &dir.path("impact.html"));
        assert_eq!(
            page.matches(&statement.replace('<', "&lt;")).count(),
            1,
            "{statement} in\n{page}"
        );
        assert!(!page.contains("limit or claim failed"), "{page}");
    }
    let mut result = json_file(&stored("wait.json"));
    let sentence = "none of these ways holds the deadline of 2 µs";
    result["no_way"] = sentence.into();
    result["undecided"] = Value::Null;
    result["recommendation"] = Value::Null;
    result["verdict"]["ok"] = false.into();
    result["verdict"]["reasons"] = json!([format!("No: {sentence}.")]);
    result["verdict"]["reasons_about"] = json!([{"kind": "answer", "at": 0}]);
    fs::write(&file, result.to_string()).expect("writable");
    let page = report(&[text(&file)], &dir.path("wait.html"));
    assert_eq!(page.matches("none of these ways holds").count(), 1, "{page}");
}

#[test]
fn what_never_has_samples_is_not_said_to_lack_them() {
    let dir = Dir::new("report-samples");
    for (name, is_noted) in [
        ("check.json", true),
        ("periodic.json", true),
        ("reproduce.json", false),
        ("wait.json", false),
        ("soak.json", false),
    ] {
        let mut result = json_file(&stored(name));
        if name == "reproduce.json" {
            // A paper with loops, which are drawn from their histograms.
            result["runs"] = json_file(&stored("check.json"))["runs"].clone();
        }
        let file = dir.path(name);
        fs::write(&file, result.to_string()).expect("writable");
        let page = report(&[text(&file)], &dir.path("page.html"));
        assert_eq!(page.contains("no sample file next to this result"), is_noted, "{name}");
    }
}

#[test]
fn two_are_set_side_by_side_and_plots_are_files() {
    let dir = Dir::new("report-two");
    let (a, b) = (checked(&dir, "before"), checked(&dir, "after"));
    let plots = dir.path("plots");
    let args = [text(&a), text(&b), "--plots", text(&plots)];
    let page = report(&args, &dir.path("ab.html"));
    assert!(page.contains("idle, before") && page.contains("idle, after"));
    assert!(page.contains("id=\"compared\"") && page.contains("after compared with before"));
    let others = report(&[text(&b), text(&b)], &dir.path("bb.html"));
    assert!(!others.contains("idle, before"), "called so only when named so");
    let svg = fs::read_to_string(plots.join("histogram-1-1.svg")).expect("a plot");
    assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"));
    let after = fs::read_to_string(plots.join("histogram-1-2.svg")).expect("the other");
    let ticks = |svg: &str| svg.split("<text").filter(|part| part.contains("middle")).count();
    assert_eq!(ticks(&svg), ticks(&after), "one scale");
    for name in ["time-1-1.png", "heat-1-1.png"] {
        let png = fs::read(plots.join(name)).expect("a picture");
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
    }
}

#[test]
fn a_pair_has_the_price_of_recording_and_labels_that_tell_it_apart() {
    let dir = Dir::new("report-recorded");
    let results = dir.path("punctual-results");
    let made = ["2026-11-22T21-41", "latest"].map(|name| {
        let place = results.join(name);
        fs::create_dir_all(&place).expect("made");
        place
    });
    let mut result = json_file(&stored("check.json"));
    for (at, place) in made.iter().enumerate() {
        result["started_at"] = format!("2026-11-22T21:41:0{at}.5Z").into();
        result["blame"] = json!({
            "is_recorded": at == 0, "why_not": (at == 1).then_some("it is forbidden"),
            "is_asked": true, "place": "within", "price": null, "evidence": null
        });
        fs::write(place.join("result.json"), result.to_string()).expect("writable");
    }
    let page = report(&made.each_ref().map(|place| text(place)), &dir.path("page.html"));
    let heading = "Punctuality of 21:41:00 UTC and 21:41:01 UTC";
    assert!(page.contains(heading), "{page}");
    let caveats =
        page.split("id=\"notes\"").nth(1).and_then(|rest| rest.split("</section>").next());
    let caveats = caveats.expect("caveats");
    for words in ["events were recorded: what that cost", "were not recorded: it is forbidden"] {
        assert!(caveats.contains(words), "{words}: {caveats}");
    }
    let page = report(&[text(&made[0])], &dir.path("alone.html"));
    assert!(page.contains("events were recorded: what that cost is not known"), "{page}");
}

#[test]
fn samples_alone_have_a_page_with_their_time() {
    let dir = Dir::new("report-alone");
    let result = recorded_result(&dir, |cycle| 10_000 + cycle % 512);
    let samples = result.with_file_name("samples.punctual");
    let night = dir.path("night.punctual");
    fs::copy(&samples, &night).expect("copied");
    let page = report(&[text(&night)], &dir.path("night.html"));
    assert!(page.contains("id=\"verdict\"") && page.contains("time-1-1"), "{page}");
    // So has a directory in which a run that was killed left nothing else.
    let killed = dir.path("killed");
    fs::create_dir_all(&killed).expect("writable");
    fs::copy(&samples, killed.join("samples.punctual")).expect("copied");
    let page = report(&[text(&killed)], &killed.join("report.html"));
    assert!(page.contains("heat-1-1"), "{page}");
}

#[test]
fn loads_of_loops_at_once_stand_with_their_periods() {
    let dir = Dir::new("report-loads");
    let mut result = json_file(&stored("check.json"));
    let mut row = result["rows"][0].clone();
    row["load"] = "gears".into();
    let rows = [25_000, 1_000_000].map(|period_ns| {
        row["period_ns"] = period_ns.into();
        row.clone()
    });
    result["rows"] = json!(rows);
    let file = dir.path("result.json");
    fs::write(&file, result.to_string()).expect("writable");
    let page = report(&[text(&file)], &dir.path("page.html"));
    for name in ["gears, 25 µs", "gears, 1 ms"] {
        assert!(page.contains(&format!("<th scope=\"row\">{name}</th>")), "{name}: {page}");
    }
}

#[test]
fn many_results_without_runs_have_their_plots_beside_each_other() {
    let dir = Dir::new("report-many-kinds");
    let noise = ["a.json", "b.json", "c.json"].map(|name| {
        let to = dir.path(name);
        fs::copy(stored("noise.json"), &to).expect("copied");
        to
    });
    let page = report(&noise.each_ref().map(|path| text(path)), &dir.path("noise.html"));
    for name in ["a", "b", "c"] {
        assert!(page.contains(&format!("<h3>{name}: Lengths of the gaps</h3>")), "{page}");
    }
    assert!(page.contains("Every result") && !page.contains("drawn are the last run"), "{page}");
    assert!(!page.contains("<caption>a: "), "tables stand on a page of their own");
}

#[test]
fn a_result_without_loops_has_its_figures_and_no_word_of_lateness_that_lacks() {
    let dir = Dir::new("report-without-loops");
    let shown = [
        ("run.json", vec!["What became of each task", "released by SCHED_FIFO 80"]),
        ("impact-servo.json", vec!["Figures of the answer", "crossover", "rests on", "no: the"]),
        ("impact-stepper.json", vec!["time error (peak-to-peak)", "software stepping up to"]),
        ("tune-check.json", vec!["that could be better"]),
    ];
    for (name, words) in shown {
        let page = report(&[text(&stored(name))], &dir.path("page.html"));
        assert!(!page.contains("so there is no verdict"), "{name}: {page}");
        assert!(!page.contains("A limit or claim failed"), "{name}: {page}");
        assert!(words.iter().all(|words| page.contains(words)), "{name}: {page}");
        let said = |words: &str| page.matches(words).count() <= 1;
        assert!(said("the loop may become unstable") && said("software stepping"), "{page}");
    }
    let mut failed = json_file(&stored("run.json"));
    failed["verdict"]["ok"] = false.into();
    failed["verdict"]["reasons"] = json!(["task \"a\" failed"]);
    let path = dir.path("failed.json");
    fs::write(&path, failed.to_string()).expect("writable");
    let page = report(&[text(&path)], &dir.path("page.html"));
    assert!(page.contains("The run failed:") && !page.contains("limit or claim"), "{page}");
    // No limit failed where the watchdog ended it.
    let mut ended = json_file(&stored("check.json"));
    (ended["incomplete"], ended["ended_by"]) = (true.into(), "watchdog".into());
    ended["verdict"]["ok"] = false.into();
    ended["verdict"]["reasons"] = json!(["the watchdog ended the run"]);
    let watchdog = dir.path("watchdog.json");
    fs::write(&watchdog, ended.to_string()).expect("writable");
    let page = report(&[text(&watchdog)], &dir.path("page.html"));
    assert!(page.contains("The run failed:") && page.contains("the watchdog ended the run"));
    assert!(!page.contains("limit or claim failed"), "{page}");
    let many = [watchdog, stored("check.json"), stored("periodic.json")];
    let page = report(&many.each_ref().map(|path| text(path)), &dir.path("many.html"));
    assert!(page.contains(">incomplete</td>") && !page.contains(">a limit fails</td>"), "{page}");
    // Beside each other they have nothing that is compared, and no note that it was not.
    let page = report(&[text(&path), text(&stored("run.json"))], &dir.path("two.html"));
    assert!(page.contains("failed: What became of each task"), "{page}");
    assert!(!page.contains("not compared"), "{page}");
}

#[test]
fn what_failed_is_known_by_the_judgements_and_not_by_the_subjects_of_reasons() {
    let dir = Dir::new("report-failed");
    // Of before: its reasons have no subject.
    let judged = stored("check-judged.json");
    let page = report(&[text(&judged)], &dir.path("page.html"));
    assert!(page.contains("A limit or claim failed:") && !page.contains("run failed:"), "{page}");
    // Cut short, it failed all the same.
    let mut ended = json_file(&judged);
    (ended["incomplete"], ended["ended_by"]) = (true.into(), "watchdog".into());
    let file = dir.path("ended.json");
    fs::write(&file, ended.to_string()).expect("writable");
    let many = [file, stored("check.json"), stored("periodic.json")];
    let page = report(&many.each_ref().map(|path| text(path)), &dir.path("many.html"));
    assert!(page.contains(">a limit fails</td>"), "{page}");
    assert!(!page.contains(">incomplete</td>"), "{page}");
    // What failed by something else is not said to fail by a limit.
    let mut worse = json_file(&stored("check.json"));
    worse["verdict"]["ok"] = false.into();
    worse["verdict"]["reasons"] = json!(["idle: worse"]);
    worse["verdict"]["reasons_about"] = json!([{ "kind": "run", "pair": 0, "at": 0 }]);
    let file = dir.path("worse.json");
    fs::write(&file, worse.to_string()).expect("writable");
    let many = [file, stored("check.json"), stored("periodic.json")];
    let page = report(&many.each_ref().map(|path| text(path)), &dir.path("many.html"));
    assert!(page.contains(">worse</td>") && !page.contains("a limit fails"), "{page}");
    // Where nothing ran, no run failed.
    let mut strict = json_file(&stored("tune-check.json"));
    strict["verdict"]["ok"] = false.into();
    strict["verdict"]["reasons"] = json!(["nohz_full: conflict"]);
    let file = dir.path("strict.json");
    fs::write(&file, strict.to_string()).expect("writable");
    let page = report(&[text(&file)], &dir.path("strict.html"));
    let heading = "A setting conflicts or has no effect:";
    assert!(page.contains(heading) && !page.contains("run failed:"), "{page}");
}

#[test]
fn a_campaign_counts_its_batches_and_names_the_run_of_each() {
    let dir = Dir::new("report-campaign");
    let mut result = json_file(&stored("soak.json"));
    let campaign = &mut result["campaign"];
    let mut run = campaign["setups"][0]["runs"][0].clone();
    run["name"] = "under load".into();
    campaign["setups"][0]["runs"].as_array_mut().expect("runs").push(run);
    let mut row = campaign["stretches"][0].clone();
    row["run"] = 1.into();
    campaign["stretches"].as_array_mut().expect("rows").push(row);
    let path = dir.path("soak.json");
    let page = |result: &Value| {
        fs::write(&path, result.to_string()).expect("writable");
        report(&[text(&path)], &dir.path("page.html"))
    };
    let two = page(&result);
    assert!(two.contains("<summary>1 batch</summary>"), "{two}");
    assert!(two.contains("<td>idle</td>") && two.contains("<td>under load</td>"), "{two}");
    let words = "1 batch, of each the worst and the median";
    assert!(two.contains(words) && !two.contains(">batches</th>"), "{two}");
    // The list was full, so that a row stands for several.
    for run in [0, 1] {
        result["campaign"]["stretches"][run]["stretches"] = 700.into();
    }
    let merged = page(&result);
    assert!(merged.contains("<summary>700 batches, in 2 rows</summary>"), "{merged}");
    assert!(merged.contains(">batches</th>") && merged.contains(">700</td>"), "{merged}");
    assert!(merged.contains("1 stretch of one or more batches, of each"), "{merged}");
}

#[test]
fn what_repeats_in_time_is_seen_in_a_heat_map() {
    let dir = Dir::new("report-heat");
    // Each 300 ms ten releases are 0.9 ms late, of which the curve and the histogram know no time.
    let late_ns = |cycle| if cycle % 300 < 10 { 900_000 } else { 10_000 + cycle % 512 };
    let result = recorded_result(&dir, late_ns);
    let plots = dir.path("plots");
    let page = report(&[text(&result), "--plots", text(&plots)], &dir.path("night.html"));
    assert!(page.contains("heat-1-1"), "{page}");
    let svg = fs::read_to_string(plots.join("heat-1-1.svg")).expect("a plot");
    // Shades are drawn as one shape each; a stretch of columns of one shade is one rectangle.
    let shades = svg.split("<path").skip(1).filter(|path| path.contains("fill-opacity"));
    let rectangles: Vec<usize> = shades.map(|path| path.matches('z').count()).collect();
    assert!(
        rectangles.len() > 1 && rectangles.iter().sum::<usize>() >= 11,
        "{rectangles:?}: {svg}"
    );
}

#[test]
fn a_night_has_hours_and_minutes_on_its_axis() {
    let dir = Dir::new("report-night");
    let info = json!({ "tool": "punctual", "version": "0.1.0",
        "runs": [{ "name": "night", "period_ns": 1_000_000_000u64 }] });
    let late_ns = |k: i64| if k % 64 == 0 { 900_000 } else { 10_000 + k % 512 };
    let latenesses: Vec<i64> = (0..10_000).map(late_ns).collect();
    let night = sample_file(&dir.path("night"), &info, &[&latenesses]);
    let path = dir.path("night.html");
    let page = report(&[&night], &path);
    assert!(page.contains("time from the first release (hours:minutes)"), "{page}");
    assert!(page.contains(">2:00<"), "{page}");
    let Some(browser) = Browser::start("browser-night") else { return };
    browser.open(&path);
    let heat = "const p = punctual.plots.find(p => p.chart.kind === 'heat').live;";
    let marks = browser.run(&format!("{heat} return p.axes[0]._values"));
    let marks = marks.as_array().expect("a list");
    assert!(marks.contains(&json!("0:30")) && marks.contains(&json!("2:00")), "{marks:?}");
    // Closer than a second, where steps have no whole ones.
    let zoom = "p.setScale('x', { min: 3599.5, max: 3600.5 }); p.redraw(false);";
    browser.run(&format!("{heat} {zoom} return 0"));
    let marks = browser.run(&format!("{heat} return p.axes[0]._values"));
    let marks = marks.as_array().expect("a list");
    assert!(marks.contains(&json!("1:00")) && marks.contains(&json!("0:59:59.8")), "{marks:?}");
    quiet(&browser);
}

#[test]
fn recorded_data_are_laid_over_a_measurement() {
    let dir = Dir::new("report-peer");
    let made = checked(&dir, "results");
    let (lateness, result) = (dir.path("peer.csv"), dir.path("peer.json"));
    let lines: String = (0..2_000).map(|k| format!("{}\n", 5 + k % 40)).collect();
    fs::write(&lateness, lines).expect("writable");
    let args = ["analyse", text(&lateness), "--column", "lateness:us", "--json", text(&result)];
    assert_eq!(run(args).status.code(), Some(0));
    let page = report(&[text(&made), text(&result)], &dir.path("both.html"));
    assert!(page.contains("histogram-1-1") && !page.contains("histogram-1-2"), "one plot");
    let drawn = page.split("<figure").nth(1).expect("a histogram");
    assert!(drawn.contains("idle") && drawn.contains("peer.csv"), "both in it");
}

#[test]
fn two_imports_are_compared_on_their_page_and_why_not_says_what_would() {
    let dir = Dir::new("report-imports");
    let results = [("good", 40), ("bad", 60)].map(|(name, most)| {
        let (csv, result) = (format!("{name}.csv"), dir.path(&format!("{name}.json")));
        let lines: String = (0..2_000).map(|k| format!("{}\n", 5 + k % most)).collect();
        fs::write(dir.path(&csv), lines).expect("writable");
        let args = ["analyse", &csv, "--column", "lateness:us", "--json", text(&result)];
        let out = punctual().current_dir(&dir.0).args(args).output().expect("it starts");
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        result
    });
    let files = results.each_ref().map(|path| text(path));
    let page = report(&files, &dir.path("imports.html"));
    assert!(page.contains("bad compared with good") && page.contains("good.csv and bad.csv"));
    // Measurements keep the names of their runs, and `report` has no --anyway.
    let mut result = json_file(&stored("check-against.json"));
    let others = ["one", "two"].map(|name| {
        result["compare"] = Value::Null;
        result["runs"] = json!([result["runs"][0].clone()]);
        result["runs"][0]["name"] = name.into();
        let file = dir.path(&format!("{name}.json"));
        fs::write(&file, result.to_string()).expect("writable");
        file
    });
    let page = report(&others.each_ref().map(|path| text(path)), &dir.path("others.html"));
    assert!(page.contains("no run with the same name"), "{page}");
    assert!(page.contains("punctual compare A B --anyway"), "{page}");
}

#[test]
fn many_runs_are_one_small_page() {
    let dir = Dir::new("report-runs");
    let (samples, result) = (dir.path("samples.punctual"), dir.path("result.json"));
    let periods: Vec<String> = (0..14).map(|k| format!("{}us", 500 + 10 * k)).collect();
    let args = ["measure", "periodic", "--policy", "other", "--duration", "3s", "--period"];
    let files = ["--samples", text(&samples), "--json", text(&result)];
    let out = run([&args[..], &[&periods.join(",")], &files].concat());
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = report(&[text(&dir.0)], &dir.path("page.html"));
    assert!(page.contains("8 of 14 runs are drawn") && page.contains("time-8-1"));
    // As many runs as there may be, without samples.
    let mut many = json_file(&result);
    let first = many["runs"][0].clone();
    let named = |k: usize| {
        let mut run = first.clone();
        run["name"] = format!("run {k}").into();
        run
    };
    many["runs"] = (0..256).map(named).collect();
    let file = dir.path("many.json");
    fs::write(&file, many.to_string()).expect("writable");
    fs::remove_file(&samples).expect("there");
    let page = report(&[text(&file)], &dir.path("many.html"));
    assert!(page.contains("run 255"));
}

#[test]
fn a_page_of_runs_without_any_pattern_is_small_too() {
    let dir = Dir::new("report-disorder");
    // From 1 ns to 1 s, each octave as often as another, and two of three releases missed.
    let mut state = 1_u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut sample = |k: u64| Sample {
        cycle: 3 * k + random() % 3,
        lateness: Span::from_ns((1_i64 << (random() % 30)) + (random() % 30).cast_signed()),
        flags: if k == 0 { Flags::FIRST } else { Flags::NONE },
    };
    let runs = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let recorded = runs.map(|_| ((0..21_800).map(&mut sample).collect(), 43_600));
    let samples = dir.path("samples.punctual");
    recording_of(&samples, &runs, &recorded);
    let result = dir.path("result.json");
    let out = run(["analyse", text(&samples), "--json", text(&result)]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = report(&[text(&result)], &dir.path("page.html"));
    assert!(page.contains("time-8-1") && page.contains("heat-8-1"));
    // What a run of this machine has besides: its facts, findings and notes.
    assert!(page.len() + 120_000 < PAGE_MAX, "{} bytes", page.len());
}

#[test]
fn a_hundred_results_are_one_small_page_with_links() {
    let dir = Dir::new("report-hundred");
    let made = checked(&dir, "one");
    let many = dir.path("many");
    for number in 0..100 {
        let each = many.join(format!("run-{number:03}"));
        fs::create_dir_all(&each).expect("writable");
        for file in ["result.json", "report.html"] {
            fs::copy(made.join(file), each.join(file)).expect("copied");
        }
    }
    fs::create_dir_all(many.join("empty")).expect("writable");
    let page = report(&[text(&many)], &many.join("report.html"));
    assert!(page.contains("run-000") && page.contains("href=\"./run-099/report.html\""));
    assert!(page.contains("have the 6 latest of 100 results"));
    // The chart of all has each of them, and none twice.
    let chart = page.split("<figure").find(|figure| figure.contains("Lateness of every result"));
    let chart = chart.expect("a chart of all");
    let names = (0..100).filter(|number| chart.contains(&format!(">run-{number:03}<")));
    assert_eq!(names.count(), 100);
}

#[test]
fn what_is_no_result_is_refused_in_a_line() {
    let dir = Dir::new("report-refused");
    let nothing = dir.path("nothing");
    fs::create_dir_all(&nothing).expect("writable");
    refused(&run(["report", text(&nothing)]), &["nothing", "no result.json"]);
    refused(&run(["report", "/nonexistent"]), &["/nonexistent"]);
    refused(&run(["report"]), &["RESULT"]);
    let newer = dir.path("newer.json");
    fs::write(&newer, r#"{"schema":3,"tool":"punctual"}"#).expect("writable");
    refused(&run(["report", text(&newer)]), &["newer.json", "schema 3"]);
    let pipe = dir.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    refused(&run(["report", text(&pipe)]), &["pipe", "regular file"]);
    // Nothing of them is read: three of 60 MiB are more than a page can hold.
    for name in ["x", "y", "z"] {
        let big = fs::File::create(dir.path(name)).expect("writable");
        big.set_len(60 << 20).expect("a file with a hole");
    }
    let big = ["x", "y", "z"].map(|name| text(&dir.path(name)).to_owned());
    refused(&run([&["report".to_owned()], &big[..]].concat()), &["3 results of 180 MiB"]);
    // A result is never written over.
    let lateness = dir.path("a.csv");
    fs::write(&lateness, "1\n2\n").expect("writable");
    let result = dir.path("a.json");
    let args = ["analyse", text(&lateness), "--column", "lateness:us", "--json", text(&result)];
    assert_eq!(run(args).status.code(), Some(0));
    refused(&run(["report", text(&result), "-o", text(&result)]), &["would overwrite an input"]);
    refused(&run(["report", text(&result), "-o", "/nonexistent/a"]), &["cannot write"]);
    report(&[text(&result)], &dir.path("a.html"));
}

/// Where pictures of the pages are kept, when somebody wants to look at them.
fn keep(name: &str, bytes: &[u8]) {
    if let Some(dir) = std::env::var_os("PUNCTUAL_SHOTS") {
        fs::write(PathBuf::from(dir).join(name), bytes).expect("writable");
    }
}

/// Nothing was loaded but the page itself, and nothing was complained of.
fn quiet(browser: &Browser) {
    assert_eq!(browser.console(), Vec::<String>::new());
    let requests = browser.requests();
    assert!(requests.iter().all(|url| url.ends_with(".html")), "{requests:?}");
}

fn number(browser: &Browser, script: &str) -> f64 {
    browser.run(script).as_f64().unwrap_or_else(|| panic!("{script} gives a number"))
}

const SHOWN: &str = "const x = punctual.plots[0].live.scales.x; return x.max / x.min";
const WHOLE: &str = "const x = punctual.plots[0].chart.x; return x.high / x.low";

#[test]
fn what_repeats_is_named_with_its_distance_and_folded() {
    let dir = Dir::new("report-repeats");
    // A poll every 6.4 s, twice in ten not late, among wakes of no order.
    let late_ns = |cycle: u64| match (cycle % 6_400, cycle / 6_400 % 10) {
        (1_700, 0..8) => 700_000 + cycle % 7,
        _ => 10_000 + cycle * 2_654_435_761 % 4_096,
    };
    let result = result_of(&dir, 192_000, late_ns);
    let plots = dir.path("plots");
    let page = report(&[text(&result), "--plots", text(&plots)], &dir.path("night.html"));
    let sentence = page.split("<p").find(|text| text.contains("idle repeats every 6.40 s"));
    let sentence = sentence.unwrap_or_else(|| panic!("{page}"));
    assert!(sentence.contains("24 of the 28 turns"), "{sentence}");
    keep("repeats.html", page.as_bytes());
    for name in ["repeated-1.svg", "worst-strip.svg", "heat-1-1.svg"] {
        assert!(fs::metadata(plots.join(name)).is_ok_and(|file| file.len() > 0), "{name}");
    }
    // Without the poll nothing is said to repeat.
    let still = Dir::new("report-repeats-not");
    let result = result_of(&still, 192_000, |cycle| 10_000 + cycle * 2_654_435_761 % 4_096);
    assert!(!report(&[text(&result)], &still.path("page.html")).contains("repeats every"));
}

#[test]
fn a_table_of_many_results_is_sorted_by_a_click() {
    let Some(browser) = Browser::start("browser-sorted") else { return };
    let dir = Dir::new("report-sorted");
    let late: [fn(u64) -> u64; 4] = [
        |cycle| if cycle == 7 { 9_000 } else { 3_000 },
        |cycle| if cycle == 7 { 1_200_000 } else { 3_000 },
        |cycle| if cycle == 7 { 80_000 } else { 3_000 },
        |cycle| if cycle == 7 { 700 } else { 500 },
    ];
    for (name, late_ns) in ["a", "b", "c", "d"].into_iter().zip(late) {
        let each = Dir::new(&format!("report-sorted-{name}"));
        fs::create_dir_all(dir.path(name)).expect("writable");
        fs::copy(recorded_result(&each, late_ns), dir.path(name).join("result.json"))
            .expect("copied");
    }
    let page = dir.path("all.html");
    report(&[text(&dir.0)], &page);
    browser.open(&page);
    let names = "return Array.from(document.querySelectorAll('#overview tbody tr'))\
                 .map(r => r.cells[0].textContent).join('')";
    let sort = |head: &str| {
        browser.run(&format!(
            "Array.from(document.querySelectorAll('#overview .sort'))\
             .find(b => b.textContent === '{head}').click(); {names}"
        ))
    };
    assert_eq!(browser.run(names), "abcd");
    let clicks = [("worst", "bcad"), ("worst", "dacb"), ("worst", "abcd"), ("result", "abcd")];
    for (head, order) in clicks.into_iter().chain([("result", "dcba"), ("worst", "bcad")]) {
        assert_eq!(sort(head), order, "{head}");
    }
    // The first click has the largest first. A unit may stand behind the end of an interval alone.
    for (cells, order) in [
        (["980 µs–1.20 ms", "12.0–30.1 µs", "1.20–8.05 ms", "-"], "cabd"),
        (["8\u{a0}840", "169\u{a0}k", "300", "2.1\u{a0}M"], "dbac"),
        (["8.3 h", "35 days", "50 min", "≥ 1.00 day"], "bdac"),
        (["-1.50 µs", "1.2e-3 s", "1 kHz", "999"], "bcda"),
    ] {
        let set = "const rows = document.querySelectorAll('#overview tbody tr'), heads = \
             Array.from(document.querySelectorAll('#overview .sort')), \
             column = heads.findIndex(b => b.textContent === 'worst'); \
             while (heads[column].parentNode.getAttribute('aria-sort')) heads[column].click(); \
             const named = row => row.cells[0].textContent; \
             Array.from(rows).sort((a, b) => named(a) < named(b) ? -1 : 1) \
             .forEach((row, at) => { row.cells[column].textContent = CELLS[at]; })";
        browser.run(&set.replace("CELLS", &json!(cells).to_string()));
        assert_eq!(sort("worst"), order, "{cells:?}");
    }
    keep("fleet.png", &browser.screenshot(1_280));
    quiet(&browser);
}

#[test]
fn one_result_is_clicked_and_typed_at() {
    let Some(browser) = Browser::start("browser-one") else { return };
    let dir = Dir::new("report-browser");
    let made = checked(&dir, "results");
    browser.open(&made.join("report.html"));
    let drawn = number(&browser, "return punctual.plots.filter(p => p.drawn > 0).length");
    let live = "return document.querySelectorAll('figure[data-kind]').length";
    assert_eq!(drawn, number(&browser, live));
    let still = "return document.querySelectorAll('figure:not([data-kind])').length";
    assert!(drawn > 0.0 && number(&browser, still) > 0.0, "{drawn}");
    heat_maps(&browser);
    bars(&browser);
    keep("light.png", &browser.screenshot(1_280));

    let background = "return getComputedStyle(document.documentElement).backgroundColor";
    let before = browser.run(background);
    browser.click("#theme");
    assert_ne!(browser.run(background), before, "another theme");
    keep("dark.png", &browser.screenshot(1_280));
    browser.click("#theme");
    assert_eq!(browser.run(background), before);

    zooms(&browser);
    readable_by_others(&browser);

    let pdf = browser.print();
    assert!(pdf.starts_with(b"%PDF") && pdf.len() > 20_000, "{} bytes", pdf.len());
    keep("print.pdf", &pdf);
    browser.devtools("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
    let printed = "const f = document.querySelector('figure'); return \
         [getComputedStyle(f.querySelector('.live')).display, \
          getComputedStyle(f.querySelector('svg.chart')).display]";
    assert_eq!(browser.run(printed), json!(["none", "block"]), "drawings are printed");
    keep("print.png", &browser.screenshot(800));
    browser.devtools("Emulation.setEmulatedMedia", &json!({ "media": "" }));
    keep("narrow.png", &browser.screenshot(390));
    browser.devtools(
        "Emulation.setDeviceMetricsOverride",
        &json!({ "width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": true }),
    );
    browser.open(&made.join("report.html"));
    let wide = "return document.documentElement.scrollWidth";
    assert!(number(&browser, wide) <= 390.0, "nothing sticks out on a phone");
    quiet(&browser);
}

/// By button, by mouse, by key.
fn zooms(browser: &Browser) {
    let whole = number(browser, WHOLE);
    assert!((number(browser, SHOWN) / whole - 1.0).abs() < 1e-9);
    browser.click("figure [aria-label='Zoom in']");
    let zoomed = number(browser, SHOWN);
    assert!((zoomed.ln() / whole.ln() - 0.5).abs() < 1e-6, "half of the scale");
    browser.click("figure [aria-label='Zoom out']");
    assert!((number(browser, SHOWN) / whole - 1.0).abs() < 1e-6);

    browser.run(
        "document.querySelector('.stage').scrollIntoView({block:'center',behavior:'instant'})",
    );
    let place = "const r = document.querySelector('.u-over').getBoundingClientRect(); \
                 return [r.left, r.top, r.width, r.height].map(Math.round)";
    let place: Vec<i64> = serde_json::from_value(browser.run(place)).expect("four numbers");
    let (left, middle) = (place[0], place[1] + place[3] / 2);
    browser.drag((left + place[2] / 4, middle), (left + place[2] / 2, middle));
    assert!((number(browser, SHOWN).ln() / whole.ln() - 0.25).abs() < 0.02, "a quarter");
    let text = browser.run("return document.querySelector('.readout').textContent");
    assert!(text.as_str().is_some_and(|text| text.contains("cycles")), "hover says: {text}");
    browser.click("figure [aria-label='Show all']");

    browser.run("document.querySelector('.stage').focus()");
    browser.keys("+");
    assert!(number(browser, SHOWN) < whole * 0.99);
    browser.keys("0");
    assert!((number(browser, SHOWN) / whole - 1.0).abs() < 1e-9);
}

/// The end of a percentile curve is as high as the data say: where the latest cycle is alone in its
/// bucket, the step there leads from the one before it up to the largest.
fn curves(browser: &Browser) {
    let ends = "return punctual.plots.filter(p => p.chart.kind === 'percentiles').flatMap(p => \
         p.chart.series.map((s, i) => { const n = s.x.length - 1; \
         const alone = s.x[n - 1] === s.x[n]; \
         const at = p.live.data[0].indexOf(s.x[n]), ys = p.live.data[i + 1]; \
         return [ys[at] === s.y[alone ? n - 1 : n], !alone || ys[at + 1] === s.y[n]]; }))";
    let ends = browser.run(ends);
    let ends = ends.as_array().expect("a list");
    assert!(!ends.is_empty() && ends.iter().all(|end| *end == json!([true, true])), "{ends:?}");
}

/// A heat map is drawn from as many cycles as the run has, about, and says what is pointed at.
fn heat_maps(browser: &Browser) {
    let counted = "return punctual.plots.filter(p => p.chart.kind === 'heat').map(p => { \
         const levels = p.chart.series[0].columns.flatMap(c => Array.from(c.slice(2))); \
         const all = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_'; \
         const cycles = levels.map(l => all.indexOf(l)).filter(l => l > 0); \
         const size = p.live.over; \
         p.live.setCursor({ left: size.clientWidth / 2, top: size.clientHeight - 9 }); \
         return [cycles.reduce((sum, l) => sum + Math.pow(2, (l - 1) / 3), 0), \
                 p.readout.textContent]; })";
    let counted = browser.run(counted);
    let counted = counted.as_array().expect("a list");
    assert!(!counted.is_empty());
    for map in counted {
        let cycles = map[0].as_f64().expect("a number");
        assert!(cycles > 100.0, "{map}");
        let words = map[1].as_str().expect("words");
        assert!(words.contains(" late: ") && words.contains("cycle"), "{map}");
    }
}

/// A histogram says of the bar that is pointed at, wherever on it, and of no other.
fn bars(browser: &Browser) {
    let said = "const edges = JSON.parse(document.getElementById('data').textContent).edges; \
         const p = punctual.plots.find(p => p.chart.kind === 'histogram'); \
         const at = (bar, share) => { const [l, r] = [0, 1].map(next => \
         p.live.valToPos(edges[bar + next], 'x')); \
         p.live.setCursor({ left: l + (r - l) * share, top: 9 }); return p.readout.textContent; }; \
         return edges.slice(1).map((_, bar) => [.1, .5, .9].map(share => at(bar, share)))";
    let said = browser.run(said);
    let said = said.as_array().expect("a list");
    assert!(said.len() > 2, "{said:?}");
    for (at, bar) in said.iter().enumerate() {
        assert!(bar[0] == bar[1] && bar[1] == bar[2] && bar[0] != "", "{at}: {bar}");
        assert!(at == 0 || said[at - 1][0] != bar[0], "{at}: {bar}");
    }
}

/// A run is hidden and shown again.
fn toggles(browser: &Browser) {
    let button = "[data-kind=percentiles] [aria-label='Show idle, after']";
    let state = "const p = punctual.plots.find(p => p.chart.kind === 'percentiles'); return \
         [p.live.series[2].show, p.figure.querySelectorAll('[aria-pressed=true]').length]";
    assert_eq!(browser.run(state), json!([true, 2]));
    browser.click(button);
    assert_eq!(browser.run(state), json!([false, 1]));
    browser.click(button);
    assert_eq!(browser.run(state), json!([true, 2]));
}

/// Keyboard and screen reader: order, focus that is seen, headings, landmarks, names.
fn readable_by_others(browser: &Browser) {
    browser.run("document.querySelector('.skip').focus()");
    let mut visited = Vec::new();
    for _ in 0..8 {
        browser.keys(TAB);
        let at = "const e = document.activeElement, s = getComputedStyle(e); \
                  return [e.textContent.trim(), s.outlineStyle]";
        let at = browser.run(at);
        assert_eq!(at[1], "solid", "the focus is seen on {at}");
        visited.push(at[0].as_str().unwrap_or_default().to_owned());
    }
    assert!(visited.iter().any(|text| text == "Figures"), "{visited:?}");
    browser.run("document.querySelector('#theme').focus()");
    browser.keys(RETURN);
    assert_eq!(browser.run("return document.documentElement.dataset.theme"), "dark");
    browser.keys(RETURN);
    let lacking = "const bad = []; \
        document.querySelectorAll('table').forEach(t => t.caption || bad.push(t.outerHTML)); \
        document.querySelectorAll('th').forEach(t => t.scope || bad.push(t.outerHTML)); \
        document.querySelectorAll('svg[role=img]').forEach(s => \
          s.querySelector('title') && s.querySelector('desc') || bad.push(s.id)); \
        document.querySelectorAll('figure').forEach(f => \
          f.querySelector('table') || f.nextElementSibling?.querySelector('table') || \
          bad.push(f.outerHTML.slice(0, 80))); \
        document.querySelectorAll('button').forEach(b => \
          b.textContent || b.ariaLabel || bad.push(b.outerHTML)); \
        ['header','nav','main','footer','h1'].forEach(l => \
          document.querySelectorAll(l).length === 1 || bad.push(l)); \
        const ids = [...document.querySelectorAll('[id]')].map(e => e.id); \
        if (new Set(ids).size !== ids.length) bad.push('ids'); return bad";
    assert_eq!(browser.run(lacking), json!([]));
}

#[test]
fn before_and_after_and_without_scripts() {
    let Some(browser) = Browser::start("browser-two") else { return };
    let dir = Dir::new("report-browser-two");
    let (a, b) = (checked(&dir, "before"), checked(&dir, "after"));
    let page = dir.path("ab.html");
    report(&[text(&a), text(&b)], &page);
    browser.open(&page);
    let scales = "const of = k => punctual.plots.filter(p => p.chart.kind === k).map(p => \
        JSON.stringify([p.live.scales.x.min, p.live.scales.x.max, p.live.scales.y.min, \
        p.live.scales.y.max])); return ['histogram','percentiles','time','heat'].map(k => \
        new Set(of(k)).size)";
    assert_eq!(browser.run(scales), json!([1, 1, 1, 1]), "one scale for all plots of a kind");
    let beside = "const [a, b] = [...document.querySelectorAll('figure')].slice(0, 2).map(f => \
        f.getBoundingClientRect()); return a.top === b.top && a.right <= b.left";
    assert_eq!(browser.run(beside), true, "side by side");
    keep("before-after.png", &browser.screenshot(1_280));
    toggles(&browser);
    curves(&browser);
    quiet(&browser);

    browser.devtools("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
    browser.open(&page);
    keep("js-off.png", &browser.screenshot(1_280));
    browser.devtools("Emulation.setScriptExecutionDisabled", &json!({ "value": false }));
    let seen = "return [...document.querySelectorAll('svg.chart')].filter(s => \
        s.getBoundingClientRect().height > 100 && s.querySelectorAll('path').length > 3).length";
    assert_eq!(
        number(&browser, seen),
        number(&browser, "return document.querySelectorAll('figure').length")
    );
    assert_eq!(browser.run("return typeof punctual"), "undefined", "no script ran");
    let text = browser.run("return document.body.innerText");
    assert!(text.as_str().is_some_and(|text| text.contains("Lateness of releases")));
}

/// Every string of a result, hostile.
fn poison(value: &mut Value, key: &str, hostile: &str) {
    let kept = [
        "kind",
        "tool",
        "level",
        "answer",
        "stands",
        "verdict",
        "experiment",
        "started_at",
        "place",
        "load_cpus",
    ];
    match value {
        Value::String(text) if !kept.contains(&key) => text.push_str(hostile),
        Value::Array(values) => values.iter_mut().for_each(|first| poison(first, key, hostile)),
        Value::Object(fields) => {
            // Names of processors and kernels are free text; what is parsed stays.
            let facts = key == "machine";
            for (key, first) in fields {
                let free = ["cpu_model", "kernel", "clocksource"].contains(&key.as_str());
                if !facts || free {
                    poison(first, key, hostile);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn hostile_words_stay_words() {
    let Some(browser) = Browser::start("browser-hostile") else { return };
    let dir = Dir::new("report-hostile");
    let made = checked(&dir, "results");
    let hostile = "</script></title></style><img src=x onerror=document.title='owned'>\
         <script>document.title='owned'</script>\"' onmouseover='document.title=1' {{script}}";
    let mut result = json_file(&made.join("result.json"));
    poison(&mut result, "", hostile);
    for place in ["/warnings", "/disturbances"] {
        assert!(result.pointer(place).is_some());
    }
    result["warnings"] = json!([hostile]);
    result["disturbances"] = json!([{ "at_ns": 1, "what": hostile }]);
    let evil = dir.path("<img src=x onerror=document.title=1>&{{data}}");
    fs::create_dir_all(&evil).expect("writable");
    fs::write(evil.join("result.json"), result.to_string()).expect("writable");
    let samples = "samples.punctual";
    fs::copy(made.join(samples), evil.join(samples)).expect("copied");
    let page = dir.path("hostile.html");
    for results in [vec![text(&evil)], vec![text(&evil); 2], vec![text(&evil); 3]] {
        report(&results, &page);
        harmless(&browser, &page, results.len());
    }
    keep("hostile.png", &browser.screenshot(1_280));
}

fn harmless(browser: &Browser, page: &Path, results: usize) {
    browser.open(page);
    let title = browser.run("return document.title");
    let title = title.as_str().unwrap_or_default();
    assert!(title.contains("Punctuality of") && title != "owned", "{title}");
    let found = "return [document.querySelectorAll('img, iframe, object, [onerror], \
         [onmouseover]').length, document.scripts.length, punctual.plots.length > 0]";
    assert_eq!(browser.run(found), json!([0, 3, true]), "{results} results");
    // Hovering and hiding put names into the page too.
    browser.click("figure [aria-label='Zoom in']");
    assert_eq!(browser.run("return document.querySelectorAll('img').length"), 0);
    quiet(browser);
}
