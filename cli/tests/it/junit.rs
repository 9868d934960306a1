//! `--junit`: what was judged, for a build server; it fails where the exit status does.

use std::fs;

use crate::{Dir, N, recorded_result, recording_of, refused, run, stderr, stdout, text};
use punctual_core::sample::Sample;
use punctual_core::time::Span;

/// Lateness of releases of which the last 30 are beyond a tenth of a millisecond, in ns.
const fn late_at_the_end_ns(cycle: u64) -> u64 {
    if cycle < N - 30 { 20_000 } else { 400_000 }
}

/// The attribute of the first element of this name that has it.
fn attribute<'x>(xml: &'x str, element: &str, name: &str) -> &'x str {
    let element = xml.split(&format!("<{element} ")).nth(1).unwrap_or_else(|| panic!("{xml}"));
    let head = element.split('>').next().expect("an end");
    let value = head.split(&format!("{name}=\"")).nth(1).unwrap_or_else(|| panic!("{head}"));
    value.split('"').next().expect("an end")
}

/// The test cases: all, and those that fail, are in error and are skipped.
fn counts(xml: &str) -> [u32; 4] {
    ["tests", "failures", "errors", "skipped"]
        .map(|name| attribute(xml, "testsuite", name).parse().expect("a number"))
}

/// The test case whose name has this in it, to its end.
pub(crate) fn case<'x>(xml: &'x str, named: &str) -> &'x str {
    let mut cases = xml.split("<testcase ").skip(1);
    let found = cases
        .find(|case| attribute(&format!("<testcase {case}"), "testcase", "name").contains(named));
    let found = found.unwrap_or_else(|| panic!("{named}: {xml}"));
    found.split("</testcase>").next().expect("an end")
}

#[test]
fn limits_claims_and_answers_are_cases_and_fail_as_the_exit_status_does() {
    let dir = Dir::new("junit");
    let result = recorded_result(&dir, late_at_the_end_ns);
    // Of the counts alone a "no" is sure: they do not show that late cycles came together.
    fs::remove_file(dir.path("samples.punctual")).expect("written");
    let judged = |args: &[&str]| {
        let out = run([&["analyse", text(&result), "--junit", "-"], args].concat());
        (out.status.code(), stdout(&out))
    };
    let (code, xml) = judged(&["--limit", "max<300us", "--limit", "p50<21us"]);
    assert_eq!((code, counts(&xml)[1]), (Some(1), 1), "{xml}");
    assert!(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>"), "{xml}");
    assert_eq!(attribute(&xml, "testsuite", "name"), "punctual analyse");
    assert_eq!(attribute(&xml, "testcase", "classname"), "punctual.analyse");
    let failed = case(&xml, "idle: max&lt;300us");
    assert!(failed.contains("<failure message=\"idle: max&lt;300us: max is 400 µs"), "{failed}");
    assert!(failed.contains("type=\"limit\""), "{failed}");
    assert!(!case(&xml, "idle: p50&lt;21us").contains("<failure"), "{xml}");
    assert!(case(&xml, "the data are whole").contains("/>"), "{xml}");
    // A question that is no gate counts for nothing: it is skipped, with its sentence.
    let (code, xml) = judged(&["--for", "ros"]);
    assert_eq!((code, counts(&xml)[1]), (Some(0), 0), "{xml}");
    assert!(case(&xml, "1 kHz").contains("<skipped message=\"1 kHz: no: 30 of 3 000"), "{xml}");
    let (code, xml) = judged(&["--for", "ros", "--gate"]);
    assert_eq!((code, counts(&xml)[1]), (Some(1), 1), "{xml}");
    assert!(case(&xml, "1 kHz").contains("<failure message=\"1 kHz: no: 30 of 3 000"), "{xml}");
    // What is undecided is what it counts as.
    for (counts_as, code, tag) in [
        (&[][..], 3, "<error "),
        (&["--undecided", "fail"], 1, "<failure "),
        (&["--undecided", "pass"], 0, "<skipped "),
    ] {
        let (given, xml) = judged(&[&["--claim", "p(missed)<1e-9"][..], counts_as].concat());
        assert_eq!(given, Some(code), "{xml}");
        assert!(case(&xml, "p(missed)").contains(tag), "{tag}: {xml}");
    }
}

#[test]
fn hostile_names_of_runs_make_no_other_xml() {
    let dir = Dir::new("junit-hostile");
    let hostile = "a]]><b x=\"1\">&'\u{1b}[31m\u{0}\u{202e}\nc";
    let samples: Vec<Sample> = (0..100)
        .map(|cycle| Sample { cycle, lateness: Span::from_us(70), ..Sample::default() })
        .collect();
    let file = dir.path("hostile.punctual");
    recording_of(&file, &[hostile], &[(samples, 0)]);
    let junit = dir.path("junit.xml");
    let out = run(["analyse", text(&file), "--limit", "max<1us", "--junit", text(&junit), "-q"]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let xml = fs::read_to_string(&junit).expect("written");
    let name = "a]]&gt;&lt;b x=&quot;1&quot;&gt;&amp;&apos;\\u{1b}[31m\\u{0}\\u{202e}\\nc";
    assert!(case(&xml, &format!("{name}: max&lt;1us")).contains("<failure "), "{xml}");
    assert!(!xml.contains("]]>") && !xml.contains("<b"), "{xml}");
    assert!(xml.chars().all(|c| c == '\n' || !c.is_control()), "{xml}");
    // Every tag is closed by its own.
    let mut open = Vec::new();
    for tag in xml.split('<').skip(2).map(|part| part.split('>').next().expect("an end")) {
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{xml}"),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().expect("a name")),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_measurement_names_its_machine_and_its_time_and_a_baseline_is_a_case() {
    let dir = Dir::new("junit-measured");
    let (baselines, junit) = (dir.path("baselines"), dir.path("junit.xml"));
    let measure = |args: &[&str]| {
        let fixed = ["measure", "periodic", "-d", "1s", "--baselines", text(&baselines), "--junit"];
        let out = run([&fixed[..], &[text(&junit)], args].concat());
        (out.status.code(), stderr(&out), fs::read_to_string(&junit).expect("written"))
    };
    let (code, errors, xml) = measure(&["--baseline", "good", "--limit", "max<60s"]);
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(attribute(&xml, "testsuite", "time"), "1.000");
    assert_eq!(attribute(&xml, "testsuite", "timestamp").len(), "2026-11-21T20:01:07".len());
    let machine = xml.split("name=\"machine\" value=\"").nth(1).expect("a machine");
    assert!(machine.split('"').next().is_some_and(|words| words.contains("Linux")), "{machine}");
    assert!(!case(&xml, "idle: max&lt;60s").contains("</failure>"), "{xml}");
    let (_, _, xml) = measure(&["--against", "good", "--undecided", "pass"]);
    let compared = case(&xml, "this run against baseline good: idle");
    assert!(compared.contains("time=\"1.000\""), "{compared}");
}

#[test]
fn compared_results_are_cases_and_count_where_that_is_asked_for() {
    let dir = Dir::new("junit-compare");
    let file = |name: &str, late_us: i64| {
        let sample =
            |cycle| Sample { cycle, lateness: Span::from_us(late_us), ..Sample::default() };
        let path = dir.path(name);
        recording_of(&path, &["idle"], &[((0..2_000).map(sample).collect(), 0)]);
        path
    };
    let (before, after) = (file("a.punctual", 20), file("b.punctual", 900));
    let compare = |args: &[&str]| {
        let out = run([&["compare", text(&before), text(&after), "--junit", "-"], args].concat());
        (out.status.code(), stdout(&out))
    };
    let (code, xml) = compare(&["--fail-if-worse"]);
    assert_eq!((code, counts(&xml)), (Some(1), [1, 1, 0, 0]), "{xml}");
    let worse = case(&xml, "B against A: idle");
    assert!(
        worse.contains("<failure message=\"idle: later than 100 µs, the deadline: A "),
        "{worse}"
    );
    let (code, xml) = compare(&[]);
    assert_eq!((code, counts(&xml)), (Some(0), [1, 0, 0, 1]), "{xml}");
}

#[test]
fn a_campaign_has_its_cases_and_places_are_refused_as_those_of_other_outputs() {
    let dir = Dir::new("junit-soak");
    let (campaign, junit) = (dir.path("campaign"), dir.path("junit.xml"));
    let soak = ["soak", "--campaign", text(&campaign), "-d", "1s", "--every", "1s"];
    let out = run([&soak[..], &["--limit", "max<60s", "--junit", text(&junit)]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let xml = fs::read_to_string(&junit).expect("written");
    assert!(case(&xml, "max&lt;60s").contains("/>"), "{xml}");
    assert_eq!(attribute(&xml, "testcase", "classname"), "punctual.soak");
    let shown = run(["soak", "--show", text(&campaign), "--junit", "-"]);
    assert!(case(&stdout(&shown), "max&lt;60s").contains("/>"), "{}", stdout(&shown));
    let samples = dir.path("samples.punctual");
    recorded_result(&dir, |_| 20_000);
    let analyse = |args: &[&str]| run([&["analyse", text(&samples)], args].concat());
    refused(&analyse(&["--junit", text(&samples)]), &["--junit", "would overwrite an input"]);
    refused(&analyse(&["--junit", "-", "--json", "-"]), &["--json - and --junit -", "a file"]);
    let twice = analyse(&["--markdown", text(&junit), "--junit", text(&junit)]);
    refused(&twice, &["--junit", "used for another output"]);
    let planned = ["check", "--claim", "p(lateness>50us)<1e-3", "--plan", "--junit", "-"];
    refused(&run(planned), &["--plan", "--junit"]);
    // A command that judges nothing has nothing of the kind.
    refused(&run(["measure", "noise", "--junit", "-"]), &["--junit"]);
}
