//! A report as JUnit XML, which build servers show: a suite, with a test case for each limit,
//! claim, answer and comparison.
//!
//! Which cases there are and how they came out is `punctual_report`'s. The form is what the schemas
//! of Ant and of Jenkins both accept. Any text becomes XML: what XML has no character for, and what
//! steers a reader, is escaped as elsewhere.

use std::io;

use punctual_analysis::plain::plain_spaces;
use punctual_core::time::Span;
use punctual_report::{CaseFinding, JudgedCase, Report, cases, measured_in};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::kinds;
use crate::format;

/// Writes XML into memory.
type Xml = Writer<Vec<u8>>;

/// A report as JUnit XML; `now` is the time of day in UTC, for data that do not record theirs.
pub(super) fn rendered(report: &Report, now: &str) -> String {
    let xml = written(report, now).expect("memory takes what is written");
    // All that is written is text, or XML of it.
    String::from_utf8_lossy(&xml).into_owned() + "\n"
}

fn written(report: &Report, now: &str) -> io::Result<Vec<u8>> {
    let cases = cases(report);
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    xml.create_element("testsuites").write_inner_content(|xml| suite(xml, report, now, &cases))?;
    Ok(xml.into_inner())
}

/// The one test suite of the file, with a case for each judgement.
fn suite(xml: &mut Xml, report: &Report, now: &str, cases: &[JudgedCase]) -> io::Result<()> {
    let envelope = &report.envelope;
    let name = format!("punctual {}", envelope.experiment);
    let count = |is_one: fn(&CaseFinding) -> bool| {
        cases.iter().filter(|case| is_one(&case.finding)).count().to_string()
    };
    let started = envelope.started_at.as_deref().and_then(without_zone);
    let attributes = [
        ("name", shown(&name)),
        ("package", class(&envelope.experiment)),
        ("id", "0".to_owned()),
        // Results name no host; the machine is a property.
        ("hostname", "localhost".to_owned()),
        ("timestamp", shown(started.or(without_zone(now)).unwrap_or_default())),
        ("tests", cases.len().to_string()),
        ("failures", count(|finding| matches!(finding, CaseFinding::Fails(_)))),
        ("errors", count(|finding| matches!(finding, CaseFinding::Undecided(_)))),
        ("skipped", count(|finding| matches!(finding, CaseFinding::DoesNotCount(_)))),
        ("time", seconds(measured_in(report))),
    ];
    let element = xml.create_element("testsuite").with_attributes(pairs(&attributes));
    element.write_inner_content(|xml| {
        xml.create_element("properties").write_inner_content(|xml| properties(xml, report))?;
        cases.iter().try_for_each(|case| test_case(xml, &envelope.experiment, case))?;
        xml.create_element("system-out").write_empty()?;
        xml.create_element("system-err").write_empty()?;
        Ok(())
    })?;
    Ok(())
}

/// The machine and what else tells results apart.
fn properties(xml: &mut Xml, report: &Report) -> io::Result<()> {
    let envelope = &report.envelope;
    let facts = envelope.machine.as_ref();
    let named = [
        ("machine", facts.map(|facts| kinds::head::machine(&envelope.version, facts))),
        ("cpus", envelope.choice.as_ref().map(|choice| choice.cpus.clone())),
        ("version", Some(envelope.version.clone())),
        ("commit", envelope.commit.clone()),
        ("started_at", envelope.started_at.clone()),
    ];
    for (name, value) in named {
        let Some(value) = value else { continue };
        let attributes = [("name", name.to_owned()), ("value", shown(&value))];
        xml.create_element("property").with_attributes(pairs(&attributes)).write_empty()?;
    }
    Ok(())
}

fn test_case(xml: &mut Xml, experiment: &str, case: &JudgedCase) -> io::Result<()> {
    let attributes = [
        ("name", shown(&case.name)),
        ("classname", class_of(experiment, case)),
        ("time", seconds(case.took)),
    ];
    let element = xml.create_element("testcase").with_attributes(pairs(&attributes));
    let (tag, sentence) = match &case.finding {
        CaseFinding::Holds => return element.write_empty().map(drop),
        CaseFinding::Fails(sentence) => ("failure", sentence),
        CaseFinding::Undecided(sentence) => ("error", sentence),
        CaseFinding::DoesNotCount(sentence) => ("skipped", sentence),
    };
    let sentence = shown(sentence);
    let attributes = [("message", sentence.clone()), ("type", case.kind.word().to_owned())];
    element.write_inner_content(|xml| {
        let found = xml.create_element(tag).with_attributes(pairs(&attributes));
        found.write_text_content(BytesText::new(&sentence)).map(drop)
    })?;
    Ok(())
}

fn pairs<'a>(attributes: &'a [(&'static str, String)]) -> impl Iterator<Item = (&'a str, &'a str)> {
    attributes.iter().map(|(name, value)| (*name, value.as_str()))
}

/// The class of all test cases of a subcommand, as build servers group them: `punctual.check`.
fn class(experiment: &str) -> String {
    shown(&format!("punctual.{}", experiment.replace(' ', ".")))
}

/// The class of a test case: that of its subcommand, for a figure of a paper with its id.
fn class_of(experiment: &str, case: &JudgedCase) -> String {
    let class = class(experiment);
    case.id.as_ref().map_or_else(|| class.clone(), |id| format!("{class}.{}", shown(id)))
}

/// A time of day in UTC as the schema of Ant has it: whole seconds, and no zone.
fn without_zone(at: &str) -> Option<&str> {
    at.get(..19)
}

fn seconds(took: Span) -> String {
    format!("{:.3}", took.as_ns().max(0) as f64 / 1e9)
}

/// A text in one line that XML can hold: characters that it has none for are escaped, as are those
/// that steer a reader.
fn shown(text: &str) -> String {
    let text = plain_spaces(&format::plain(text));
    let mut shown = String::with_capacity(text.len());
    for c in text.trim().chars() {
        // The other characters that XML 1.0 lacks are controls.
        if matches!(c, '\u{fffe}' | '\u{ffff}') {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use quick_xml::Reader;
    use quick_xml::events::BytesStart;

    use super::*;
    use crate::program::PROGRAM;
    use punctual_report::{Envelope, Judged, Overall};

    const NOW: &str = "2026-11-21T20:01:07.123Z";

    /// An element as a reader of XML has it.
    #[derive(Debug, Default)]
    struct Element {
        name: String,
        attributes: BTreeMap<String, String>,
        text: String,
        inside: Vec<Element>,
    }

    impl Element {
        fn begun(start: &BytesStart<'_>) -> Self {
            let attribute = |attribute: Result<quick_xml::events::attributes::Attribute<'_>, _>| {
                let attribute = attribute.expect("an attribute, once");
                let value = quick_xml::escape::unescape(&attribute.value).expect("escaped");
                (attribute.key.as_ref().to_owned(), value.into_owned())
            };
            Self {
                name: start.name().as_ref().to_owned(),
                attributes: start.attributes().map(attribute).collect(),
                ..Self::default()
            }
        }

        fn count(&self, name: &str) -> usize {
            self.attributes[name].parse().expect("a number")
        }
    }

    /// The root of a text, which is XML to its end.
    fn parsed(text: &str) -> Element {
        let mut reader = Reader::from_str(text);
        let mut open = vec![Element::default()];
        loop {
            match reader.read_event().unwrap_or_else(|why| panic!("{why}: {text}")) {
                Event::Start(start) => open.push(Element::begun(&start)),
                Event::Empty(start) => {
                    open.last_mut().expect("a root").inside.push(Element::begun(&start));
                }
                Event::End(_) => {
                    let closed = open.pop().expect("opened");
                    open.last_mut().expect("a root").inside.push(closed);
                }
                Event::Text(part) => open.last_mut().expect("a root").text += &part,
                Event::GeneralRef(named) => {
                    let named = format!("&{};", &*named);
                    let text = quick_xml::escape::unescape(&named).expect("known").into_owned();
                    open.last_mut().expect("a root").text += &text;
                }
                Event::Eof => break,
                Event::Decl(_) => {}
                other => panic!("{other:?}: {text}"),
            }
        }
        assert_eq!(open.len(), 1, "all are closed");
        open.pop().and_then(|mut root| root.inside.pop()).expect("a root")
    }

    /// Elements in the order in which both schemas have them, with the attributes that one of them
    /// demands first, and those that both know.
    const SCHEMA: [(&str, &[&str], &[&str]); 9] = [
        ("testsuites", &[], &["testsuite"]),
        (
            "testsuite",
            &[
                "name",
                "package",
                "id",
                "hostname",
                "timestamp",
                "tests",
                "failures",
                "errors",
                "skipped",
                "time",
            ],
            &["properties", "testcase", "system-out", "system-err"],
        ),
        ("properties", &[], &["property"]),
        ("property", &["name", "value"], &[]),
        ("testcase", &["name", "classname", "time"], &["failure", "error", "skipped"]),
        ("failure", &["message", "type"], &[]),
        ("error", &["message", "type"], &[]),
        ("skipped", &["message", "type"], &[]),
        ("system-out", &[], &[]),
    ];

    /// Asserts that an element and all in it are as the schemas have them.
    fn is_valid(element: &Element) {
        let name = if element.name == "system-err" { "system-out" } else { &element.name };
        let row = SCHEMA.iter().find(|(known, ..)| *known == name);
        let (_, attributes, inside) = row.unwrap_or_else(|| panic!("{}", element.name));
        let mut demanded: Vec<&str> = attributes.to_vec();
        demanded.sort_unstable();
        assert_eq!(element.attributes.keys().collect::<Vec<_>>(), demanded, "{}", element.name);
        let place = |child: &Element| {
            let place = inside.iter().position(|known| *known == child.name);
            place.unwrap_or_else(|| panic!("{} in {}", child.name, element.name))
        };
        assert!(element.inside.is_sorted_by_key(place), "{}", element.name);
        if element.name == "testcase" {
            assert!(element.inside.len() <= 1, "one finding");
        }
        element.inside.iter().for_each(is_valid);
    }

    /// The suite of a report, which is valid and counts what is in it.
    fn suite_of(report: &Report) -> Element {
        let root = parsed(&rendered(report, NOW));
        assert_eq!(root.name, "testsuites");
        is_valid(&root);
        let suite = root.inside.into_iter().next().expect("a suite");
        let cases = || suite.inside.iter().filter(|child| child.name == "testcase");
        assert_eq!(suite.count("tests"), cases().count());
        for (counted, tag) in [("failures", "failure"), ("errors", "error"), ("skipped", "skipped")]
        {
            let found = cases().filter(|case| case.inside.iter().any(|found| found.name == tag));
            assert_eq!(suite.count(counted), found.count(), "{tag}");
        }
        suite
    }

    #[test]
    fn each_kind_of_stored_result_is_valid() {
        let kinds = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/results/kinds");
        let mut counts = BTreeMap::new();
        for file in std::fs::read_dir(kinds).expect("results").flatten() {
            let text = std::fs::read_to_string(file.path()).expect("a result");
            let report = Report::parse(&text).expect("a result");
            let suite = suite_of(&report);
            let name = file.file_name().to_string_lossy().into_owned();
            let at = suite.attributes["timestamp"].as_bytes();
            assert!(at.len() == 19 && at[10] == b'T', "{name}: {at:?}");
            assert_eq!(
                suite.attributes["name"],
                format!("punctual {}", report.envelope.experiment)
            );
            let properties = suite.inside[0].inside.iter();
            let properties: Vec<&str> =
                properties.map(|property| property.attributes["name"].as_str()).collect();
            let has_machine = report.envelope.machine.is_some();
            assert_eq!(properties.contains(&"machine"), has_machine, "{name}");
            counts.insert(name, suite.count("tests"));
        }
        // An answer, and the measurement; the runs that are compared.
        assert!(counts["check.json"] >= 2 && counts["check-against.json"] > counts["check.json"]);
        assert!(counts["compare.json"] >= 1, "{counts:?}");
    }

    #[test]
    fn hostile_names_become_well_formed_xml_and_stay_legible() {
        let hostile = "a\u{0}\u{1b}[2J]]> <b x=\"1\">'&amp;&#0;\u{202e}\r\n\u{fffe}\u{ffff}\u{85}é";
        let mut envelope = Envelope::of(PROGRAM, &format!("check{hostile}"));
        envelope.started_at = Some(hostile.repeat(3));
        let mut verdict = Overall::default();
        verdict.fail(format!("{hostile}: max<1us: it was 2 us"));
        envelope.verdict = verdict;
        let report = Report { envelope, body: Judged::default().into() };
        let suite = suite_of(&report);
        let case = suite.inside.iter().find(|child| child.name == "testcase").expect("one");
        let failure = &case.inside[0];
        let legible = "a\\u{0}\\u{1b}[2J]]> <b x=\"1\">'&amp;&#0;\\u{202e}\\r\\n\\u{fffe}\\u{ffff}\
                       \\u{85}é: max<1us: it was 2 us";
        assert_eq!(failure.text, legible);
        assert_eq!(failure.attributes["message"], legible);
        let is_char =
            |c: char| c == '\n' || (!c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}'));
        let text = rendered(&report, NOW);
        assert!(text.chars().all(is_char) && !text.contains("]]>"), "{text}");
    }

    #[test]
    fn figures_of_papers_are_named_in_words_and_their_classes_have_the_ids() {
        use crate::comparison::grid::{self, GridSide};
        use punctual_report::CompareBody;

        let stored = include_str!("../../tests/results/kinds/reproduce.json");
        let stored = Report::parse(stored).expect("a result");
        let sides = ["A", "B"].map(|label| GridSide { label, from: label, report: &stored });
        let compare = grid::of(&sides).expect("one kind").expect("a grid");
        let ids: Vec<String> =
            compare.grid.iter().flat_map(|grid| &grid.rows).map(|row| row.name.clone()).collect();
        let report = Report::new(PROGRAM, "compare", CompareBody { compare });
        let suite = suite_of(&report);
        let cases: Vec<&Element> =
            suite.inside.iter().filter(|child| child.name == "testcase").collect();
        assert_eq!(cases.len(), ids.len());
        let mut identities = std::collections::BTreeSet::new();
        for (case, id) in cases.into_iter().zip(&ids) {
            let (name, class) = (&case.attributes["name"], &case.attributes["classname"]);
            assert!(name.starts_with("B against A: ") && !name.contains(id.as_str()), "{name}");
            assert_eq!(*class, format!("punctual.compare.{id}"));
            assert!(identities.insert((class.clone(), name.clone())), "twice: {class} {name}");
        }
    }
}
