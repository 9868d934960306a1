//! `reproduce`, for real: every row has its reason, and nothing stays behind.

use std::collections::HashSet;
use std::fs;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use punctual_os::process::EndSignal;
use punctual_testkit::skip;
use serde_json::Value;

use crate::{
    Dir, catches_interrupt, fits, json_file, punctual, refused, run, signal, stderr, stdout, until,
};

/// Checks what must hold of all rows.
fn hold(result: &Value, paper: &str) {
    assert_eq!(result["experiment"], "reproduce");
    let rows = result["rows"].as_array().expect("rows");
    let mut ids = HashSet::new();
    for row in rows {
        let id = row["id"].as_str().expect("an id");
        assert!(id.starts_with(&format!("{paper}.")) && ids.insert(id), "{id}");
        assert!(row["published"].is_string() && row["unit"].is_string(), "{row}");
        assert!(row["what"].as_str().is_some_and(|title| !title.is_empty()), "{row}");
        let note = row["note"].as_str().expect("a note");
        assert!(row["measured"].is_f64() || note.contains("not measured"), "{row}");
    }
}

/// Checks what must hold of all claims, and that terminal and page begin with them.
fn judged(result: &Value, paper: &str, text: &str, page: &str) {
    let claims = result["claims"].as_array().expect("claims");
    assert!(claims.len() >= 4, "{claims:?}");
    let mut ids = HashSet::new();
    for claim in claims {
        let id = claim["id"].as_str().expect("an id");
        assert!(id.starts_with(&format!("{paper}.claim.")) && ids.insert(id), "{id}");
        assert!(claim["because"].as_str().is_some_and(|because| !because.is_empty()), "{claim}");
        let figures = claim["figures"].as_array().expect("figures");
        let tests = figures.iter().filter(|figure| !figure["holds"].is_null());
        let answers: HashSet<&str> = tests.filter_map(|figure| figure["holds"].as_str()).collect();
        match claim["holds"].as_str() {
            Some("yes") => assert_eq!(answers, HashSet::from(["yes"]), "{claim}"),
            Some("no") => assert!(answers.contains("no"), "{claim}"),
            Some("undecided") => assert!(!answers.contains("no"), "{claim}"),
            other => panic!("{other:?}"),
        }
        for figure in figures.iter().filter(|figure| {
            figure["what"].as_str().is_some_and(|title| title.contains("one stall"))
        }) {
            assert!(
                figure["holds"].is_null() && figure["n"].is_u64(),
                "no range decides: {figure}"
            );
        }
    }
    let heading = format!("{} claims: ", claims.len());
    let begins = |shown: &str, rows: &str| {
        let [claims, rows] = [&heading, rows]
            .map(|part| shown.find(part).unwrap_or_else(|| panic!("{part}: {shown}")));
        assert!(claims < rows, "{shown}");
    };
    begins(text, "Published, by the paper's own formula");
    begins(page, "Published, by the paper&#39;s own formula");
    let badges = page.matches("<span class=\"badge ").count();
    assert!(badges >= claims.len(), "{badges} of {}", claims.len());
    assert!(!page.contains("so there is no verdict"), "a reproduction has verdicts");
}

/// That people see words where programs see ids, and no note about samples, which such a result
/// does not have.
fn in_words(result: &Value, text: &str, page: &str) {
    // Attributes and the data of scripts are for programs.
    let visible: String = page
        .split("<script")
        .flat_map(|part| part.split("</script>").last())
        .flat_map(|part| part.split('<'))
        .filter_map(|part| part.split_once('>'))
        .map(|(_, text)| text)
        .collect();
    for list in ["rows", "claims", "figures"] {
        for listed in result[list].as_array().expect("a list") {
            let id = listed["id"].as_str().expect("an id");
            for shown in [text, visible.as_str()] {
                assert!(!shown.contains(id), "{id}: {shown}");
            }
        }
    }
    assert!(!page.contains("no sample file"), "a reproduction keeps none");
}

/// Some figures keep the CPU for themselves at SCHED_FIFO, by design: beside them the watchdog ends
/// the loops of another paper.
static ONE_PAPER: Mutex<()> = Mutex::new(());

fn reproduced(paper: &str) -> (Value, String) {
    let _alone = ONE_PAPER.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = Dir::new(&format!("reproduce-{paper}"));
    let (result, page) = (dir.path("result.json"), dir.path("page.html"));
    let kept = dir.path("results");
    let json = ["--json", crate::text(&result), "--results", crate::text(&kept)];
    let out = run(["reproduce", paper, "--quick"].into_iter().chain(json));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = stdout(&out);
    fits(&text);
    assert_eq!(json_file(&kept.join("latest/result.json")), json_file(&result));
    assert!(kept.join("latest/report.html").is_file() && text.contains("report.html"), "{text}");
    let stored = json_file(&result);
    assert_eq!(stored["papers"][0], paper);
    hold(&stored, paper);
    let plots = dir.path("plots");
    let args =
        ["report", crate::text(&result), "-o", crate::text(&page), "--plots", crate::text(&plots)];
    let out = run(args);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = fs::read_to_string(page).expect("written");
    // What the page draws of the paper is a file, too.
    for figure in stored["figures"].as_array().expect("figures") {
        let name = figure["id"].as_str().expect("an id").replace('.', "-") + "-1";
        assert!(page.contains(&format!("id=\"{name}-title\"")), "{name}");
        for ending in ["svg", "png"] {
            assert!(plots.join(format!("{name}.{ending}")).is_file(), "{name}.{ending}");
        }
    }
    judged(&stored, paper, &text, &page);
    in_words(&stored, &text, &page);
    (stored, page)
}

/// Checks that these figures are in the result and drawn on the page.
fn drawn(result: &Value, page: &str, ids: &[&str]) {
    let figures = result["figures"].as_array().expect("figures");
    for id in ids {
        let figure = figures.iter().find(|figure| figure["id"] == *id);
        let title =
            figure.and_then(|figure| figure["what"].as_str()).unwrap_or_else(|| panic!("{id}"));
        let mut parts = id.split('.');
        let paper = parts.next().unwrap_or_default();
        let shown = match parts.next().and_then(|part| part.strip_prefix("fig")) {
            // One without a number there.
            Some("") | None => format!("{paper}: {title}"),
            Some(number) => format!("{paper}, figure {number}: {title}"),
        };
        assert!(page.contains(&shown), "{id}: {shown}");
        let svg = page.split(&format!("id=\"{}-1", id.replace('.', "-"))).count();
        assert!(svg > 1, "{id} is not drawn");
    }
}

fn row<'r>(result: &'r Value, id: &str) -> &'r Value {
    let rows = result["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("{id}"))
}

#[test]
fn ant_has_its_tables_and_says_where_it_errs() {
    let (result, page) = reproduced("ant");
    assert_eq!(row(&result, "ant.table2.max")["published"], "5.47");
    assert_eq!(row(&result, "ant.tick")["published"], "0.996");
    let most = row(&result, "ant.fig11.most");
    assert_eq!((&most["published"], &most["measured"]), (&"3 or 4".into(), &1.0.into()));
    assert!(most["note"].as_str().is_some_and(|note| note.contains("exactly 1")), "{most}");
    assert!(row(&result, "ant.fig12.most")["measured"].as_f64().is_some_and(|most| most > 1.0));
    assert!(page.contains("table 3: "), "where the paper has it");
    // The loops behind the tables are drawn: those of table 2, at phase zero and at a quiet one,
    // and one a period of figure 3.
    let runs = result["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 7);
    assert!(row(&result, "ant.table2.quiet.avg")["measured"].is_number());
    for run in runs {
        let name = run["name"].as_str().expect("a name");
        assert!(name.starts_with("ant ") && page.contains(name), "{name}");
    }
    drawn(
        &result,
        &page,
        &[
            "ant.fig2",
            "ant.fig3",
            "ant.fig9",
            "ant.fig9.warm",
            "ant.fig10",
            "ant.fig10.warm",
            "ant.fig11",
            "ant.fig12",
        ],
    );
    assert!(page.contains("id=\"plot-histogram\"") && page.contains("id=\"plot-percentiles\""));
}

#[test]
fn nist_has_both_schedulers_by_one_definition_and_its_figures() {
    let (result, page) = reproduced("nist");
    for loading in ["normal", "disk", "net"] {
        let fifo = row(&result, &format!("nist.fig3.{loading}"));
        let deadline = row(&result, &format!("nist.fig3.second.{loading}"));
        assert!(fifo["measured"].as_f64().is_some_and(|us| us > 0.0), "{fifo}");
        let title = |row: &Value| row["what"].as_str().expect("what").to_owned();
        assert_eq!(title(fifo).replace("FIFO", "DEADLINE"), title(deadline));
    }
    assert!(row(&result, "nist.fig4")["measured"].as_f64().is_some_and(|calls| calls > 0.0));
    for side in ["uncompensated", "compensated"] {
        let tick = row(&result, &format!("nist.tick.{side}"));
        assert!(tick["measured"].is_f64(), "{tick}");
    }
    // The loops of both phases lie where they should.
    let runs = result["runs"].as_array().expect("runs");
    let phase = |name: &str| {
        let run = runs.iter().find(|run| run["name"] == format!("nist 500 µs {name}"));
        run.unwrap_or_else(|| panic!("{name}"))["setup"]["phase_ns"].as_u64().expect("a phase")
    };
    assert!(result["warnings"].to_string().contains("quiet phase: "), "{}", result["warnings"]);
    assert_eq!(phase("idle at the tick"), 0);
    assert_eq!(phase("idle"), phase("rearm"));
    assert!(phase("idle") > 0);
    let figures = ["3", "3a", "3c", "4", "5"].map(|number| format!("nist.fig{number}"));
    drawn(&result, &page, &figures.each_ref().map(String::as_str));
    // Exactly as many samples as the paper has, in the order of time. Where releases were missed
    // there may be too few.
    let own = ["nist 500 µs idle", "nist 500 µs rearm"];
    let is_own = |run: &&Value| own.contains(&run["name"].as_str().expect("a name"));
    let is_whole = runs.iter().filter(is_own).all(|run| run["missed"] == 0);
    let figures = result["figures"].as_array().expect("figures");
    for id in ["nist.fig1a", "nist.fig1b", "nist.fig6"] {
        let Some(figure) = figures.iter().find(|figure| figure["id"] == id) else {
            // A stall in the tenth of a second of a figure is in no other run.
            let is_lost = ["nist.fig1", "nist.fig6.compensated"]
                .iter()
                .any(|id| row(&result, id)["measured"].is_null());
            assert!(!is_whole || is_lost, "{id}");
            continue;
        };
        drawn(&result, &page, &[id]);
        if id != "nist.fig1b" {
            let points = figure["series"][0]["points"].as_array().expect("points");
            assert_eq!(points.len(), 100, "{id}");
            assert!((1..).zip(points).all(|(at, point)| point[0] == f64::from(at)), "{points:?}");
        }
    }
    let many = row(&result, "nist.fig2");
    let missed = many["note"].as_str().is_some_and(|note| note.contains("releases were missed"));
    // Where even a hundred are not there, nothing says which of both it was.
    let none = !is_whole && row(&result, "nist.fig1")["measured"].is_null();
    assert!(many["measured"].is_f64() || missed || none, "{many}");
}

#[test]
fn linuxcnc_has_the_histograms_of_both_threads_side_by_side() {
    let (result, page) = reproduced("linuxcnc");
    drawn(&result, &page, &["linuxcnc.fig.base", "linuxcnc.fig.servo"]);
    let figures = result["figures"].as_array().expect("figures");
    assert_eq!((&figures[0]["beside"], &figures[1]["beside"]), (&false.into(), &true.into()));
    for figure in figures {
        let series = figure["series"].as_array().expect("series");
        let names: Vec<&str> = series.iter().filter_map(|entry| entry["name"].as_str()).collect();
        let begin =
            |name: &str, wanted: &str| name == wanted || name.starts_with(&format!("{wanted} ("));
        assert!(begin(names[0], "here: idle") && begin(names[1], "here: linuxcnc"), "{names:?}");
        assert_eq!((names.len(), &figure["x"]), (2, &"interval less the period, µs".into()));
        assert!(series.iter().all(|entry| entry["drawn"] == "steps"), "{series:?}");
    }
    let edges = |at: usize| {
        let points = figures[at]["series"][0]["points"].as_array().expect("points");
        points.iter().map(|point| point[0].clone()).collect::<Vec<_>>()
    };
    assert_eq!(edges(0), edges(1), "the same bins");
}

#[test]
fn wince_draws_each_figure_with_its_own_id() {
    let (result, page) = reproduced("wince");
    let figures = ["3", "5", "6a", "6b", "6c", "7", "8", "9a", "9b", "10", "11"];
    let ids = figures.map(|number| format!("wince.fig{number}"));
    drawn(&result, &page, &ids.each_ref().map(String::as_str));
    for id in ["wince.fig9a.app", "wince.fig9b.app", "wince.fig10.app"] {
        let note = row(&result, id)["note"].as_str().expect("a note");
        assert!(note.contains("this one system stands for the paper's three"), "{note}");
    }
}

#[test]
fn maruti_has_its_figures() {
    if !skip::need_native("a counter of cycles") {
        return;
    }
    let (result, page) = reproduced("maruti");
    assert_eq!(row(&result, "maruti.fig3.period")["published"], "32 clock cycles");
    assert!(row(&result, "maruti.fig7")["measured"].is_f64());
    assert!(row(&result, "maruti.fig10.100us")["measured"].is_f64());
    let cold = row(&result, "maruti.fig12.15us")["note"].as_str().expect("a note");
    assert!(cold.contains("2 MiB are read before each wait"), "{cold}");
    assert!(
        row(&result, "maruti.dispatch.mdelay.cost")["measured"]
            .as_f64()
            .is_some_and(|value| value > 0.0)
    );
    // The open question is answered where all three ways were measured.
    let claims = result["claims"].as_array().expect("claims");
    let claim = claims.iter().find(|claim| claim["id"] == "maruti.claim.dispatch").expect("one");
    let costs = ["mdelay", "sleep", "adaptive"]
        .map(|way| row(&result, &format!("maruti.dispatch.{way}.cost"))["measured"].is_f64());
    let because = claim["because"].as_str().expect("words");
    assert!(costs == [true; 3], "{costs:?}");
    assert!(because.contains("takes least of the CPU among those that scatter"), "{because}");
    // Where polls differ in length too often no delay can be calibrated: that is said in its place.
    let corrected = row(&result, "maruti.fig8");
    let is_calibrated = corrected["measured"].is_f64();
    let note = corrected["note"].as_str().unwrap_or_default();
    assert!(is_calibrated || note.contains("no delay could be calibrated"), "{corrected}");
    let last = if is_calibrated { 8 } else { 7 };
    let figures: Vec<String> = (3..=last).map(|number| format!("maruti.fig{number}")).collect();
    drawn(&result, &page, &figures.iter().map(String::as_str).collect::<Vec<_>>());
    // Consecutive samples, each after the other, of each period and both states of the caches.
    for number in [9, 10, 11, 12] {
        let ids = ["100us", "15us"].map(|period| format!("maruti.fig{number}.{period}"));
        drawn(&result, &page, &ids.each_ref().map(String::as_str));
        for id in ids {
            let figures = result["figures"].as_array().expect("figures");
            let figure = figures.iter().find(|figure| figure["id"] == id.as_str());
            let points = &figure.expect("drawn")["series"][0]["points"];
            let points = points.as_array().expect("points");
            assert!((1..=4_096).contains(&points.len()), "{id}: {}", points.len());
            assert!((1..).zip(points).all(|(at, point)| point[0] == f64::from(at)), "{id}");
        }
    }
    assert!(page.contains("maruti, figure 7") && page.contains("512 samples"));
}

#[test]
fn an_interruption_before_the_first_figure_leaves_no_empty_directory() {
    let dir = Dir::new("reproduce-early-stop");
    let results = dir.path("results");
    let mut command = punctual();
    command.args(["reproduce", "nist", "--quick", "--results"]).arg(&results);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("it starts");
    let made = || fs::read_dir(&results).ok()?.flatten().next().map(|entry| entry.path());
    until("its directory", || made().is_some());
    signal(&child, EndSignal::Interrupt);
    child.wait().expect("it ends");
    if let Some(kept) = made() {
        let result = json_file(&kept.join("result.json"));
        assert_eq!(result["ended_by"], "interrupt", "{result}");
    }
}

#[test]
fn an_interrupt_keeps_the_rows_and_says_which_were_not_measured() {
    let dir = Dir::new("reproduce-interrupted");
    let file = dir.path("result.json");
    let mut command = punctual();
    command.args(["reproduce", "--all", "--json"]).arg(&file);
    let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
    until("signals to be caught", || catches_interrupt(&child));
    signal(&child, EndSignal::Interrupt);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let result = json_file(&file);
    assert_eq!(result["incomplete"], true);
    let nothing = row(&result, "ant.table3.ant.max");
    assert!(nothing["measured"].is_null() && nothing["note"] != "", "{nothing}");
    // What did not run is not told, and not told apart from what failed.
    let claims = result["claims"].as_array().expect("claims");
    let claim = claims.iter().find(|claim| claim["id"] == "ant.claim.wait").expect("a claim");
    assert_eq!(claim["holds"], "undecided");
    assert!(claim["because"].as_str().is_some_and(|why| why.contains("ended early")), "{claim}");
    for id in ["nist.fig1", "linuxcnc.duration", "wince.fig8.ce30.mf-isr", "maruti.goal"] {
        assert!(row(&result, id)["published"].is_string());
    }
}

#[test]
fn bad_input_is_refused_with_the_reason() {
    refused(&run(["reproduce"]), &["PAPER", "nist", "maruti", "--all"]);
    refused(&run(["reproduce", "--quick"]), &["PAPER"]);
    refused(&run(["reproduce", "nist", "--quick", "--full"]), &["--quick", "--full"]);
    refused(&run(["reproduce", "vista"]), &["vista", "nist", "maruti"]);
    refused(&run(["reproduce", "nist", "--all"]), &["--all"]);
    refused(&run(["reproduce", "nist", "--cpu", "0-1"]), &["--cpu", "one CPU"]);
}

/// The stored result of another machine, of these papers.
fn other(dir: &Dir, papers: &[&str]) -> String {
    let kinds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results/kinds");
    let mut result = json_file(&kinds.join("reproduce.json"));
    if !papers.is_empty() {
        result["papers"] = papers.into();
    }
    let path = dir.path("bench.json");
    fs::write(&path, result.to_string()).expect("writable");
    path.display().to_string()
}

#[test]
fn another_machine_stands_beside_this_one_and_the_paper() {
    let _alone = ONE_PAPER.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = Dir::new("reproduce-beside");
    let (beside, result) = (other(&dir, &[]), dir.path("result.json"));
    let stored = json_file(std::path::Path::new(&beside));
    let paper = stored["papers"][0].as_str().expect("a paper").to_owned();
    let out =
        run(["reproduce", &paper, "--quick", "--beside", &beside, "--json", crate::text(&result)]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let made = json_file(&result);
    let sides = made["beside"]["sides"].as_array().expect("sides");
    assert_eq!((&sides[0]["label"], &sides[1]["label"]), (&"here".into(), &"bench".into()));
    let rows = made["beside"]["grid"]["rows"].as_array().expect("rows");
    let both = rows.iter().filter(|row| {
        row["cells"].as_array().is_some_and(|cells| cells.iter().all(|cell| !cell.is_null()))
    });
    assert!(both.count() > 0, "{rows:?}");
    assert!(rows.iter().any(|row| row["published"].as_str().is_some_and(|text| !text.is_empty())));
    let claims = made["beside"]["grid"]["claims"].as_array().expect("claims");
    assert!(!claims.is_empty() && claims.iter().all(|claim| claim["holds"].is_array()));
    let text = stdout(&out);
    assert!(text.contains("bench compared with here"), "{text}");
    // Its figures lie over these where both have them.
    let ids = |result: &Value| -> HashSet<String> {
        let figures = result["figures"].as_array().expect("figures");
        figures.iter().filter_map(|figure| Some(figure["id"].as_str()?.to_owned())).collect()
    };
    let laid = made["figures"]
        .as_array()
        .expect("figures")
        .iter()
        .filter(|figure| figure["series"].to_string().contains("\"bench: "));
    let laid = laid.count();
    assert_eq!(laid > 0, !ids(&made).is_disjoint(&ids(&stored)), "{laid}");
}

#[test]
fn what_cannot_stand_beside_is_refused_before_anything_is_measured() {
    let dir = Dir::new("reproduce-beside-refused");
    let beside = |file: &str| run(["reproduce", "nist", "--beside", file]);
    refused(&beside("/no/such/file"), &["--beside", "/no/such/file"]);
    refused(&beside(&other(&dir, &["ant"])), &["bench.json", "it reproduces ant, not nist"]);
    let kinds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results/kinds");
    let check = kinds.join("check.json");
    refused(&beside(crate::text(&check)), &["a result of 'check'", "give one of 'punctual reprod"]);
    let file = dir.path("file.json");
    for (text, words) in [
        ("nonsense", "not a result of punctual"),
        (r#"{"tool":"punctual","schema":1}"#, "schema 1"),
        (r#"{"tool":"punctual","schema":9}"#, "schema 9"),
    ] {
        fs::write(&file, text).expect("writable");
        refused(&beside(crate::text(&file)), &["--beside", "file.json", words]);
    }
}
