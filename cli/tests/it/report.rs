//! `punctual report`: pages written, small whatever they hold, and bad input refused.

use std::fs;
use std::path::Path;

use crate::support::{Dir, json_file, refused, run, stderr};

/// The most bytes of a page.
const PAGE_MAX: usize = 1_000_000;

/// The directory of a real, short check, below `dir`.
pub(crate) fn checked(dir: &Dir, name: &str) -> std::path::PathBuf {
    let results = dir.path(name);
    let out = run(["check", "--duration", "1s", "--results", text(&results)]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    fs::read_dir(&results).expect("made").flatten().next().expect("one run").path()
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Runs `report` with `args` and gives the page at `out`.
pub(crate) fn report(args: &[&str], out: &Path) -> String {
    let done = run([&["report"], args, &["-o", text(out)]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let page = fs::read_to_string(out).expect("written");
    assert!(page.len() < PAGE_MAX, "{} bytes", page.len());
    page
}

#[test]
fn check_leaves_a_page_that_needs_nothing_else() {
    let dir = Dir::new("report-page");
    let made = checked(&dir, "results");
    let page = fs::read_to_string(made.join("report.html")).expect("beside the result");
    assert!(page.len() < PAGE_MAX);
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
    let escaped = |text: &serde_json::Value| {
        let text = text.as_str().expect("text").replace('&', "&amp;");
        text.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    let rows = |of: &str, key: &str| -> Vec<String> {
        headline[of].as_array().expect("rows").iter().map(|row| escaped(&row[key])).collect()
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
    let other = checked(&dir, "other");
    fs::copy(other.join("samples.punctual"), &samples).expect("copied");
    let mut result = json_file(&made.join("result.json"));
    result["incomplete"] = true.into();
    result["started_at"] = "2001-01-01T00:00:00Z".into();
    fs::write(made.join("result.json"), result.to_string()).expect("writable");
    let page = report(&[text(&made)], &dir.path("other.html"));
    assert!(page.contains("belong to another run") && page.contains("Incomplete: the run ended"));
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
    let png = fs::read(plots.join("time-1-1.png")).expect("a picture");
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
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
    let one = many["runs"][0].clone();
    let named = |k: usize| {
        let mut run = one.clone();
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
    assert!(page.contains("the first 6 of 100 results are drawn"));
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
