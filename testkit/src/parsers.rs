//! What must hold of every parser, whatever its input: the bodies of the fuzz target.
//!
//! For `fuzz/fuzz_targets/parser.rs`, and for the test that replays `fuzz/corpus` on stable. A body
//! panics when something does not hold: a panic inside the parser, an error that is no single
//! line, a round trip that does not come back.

mod campaign;
mod foreign;
mod machine;
mod recorded;
mod supervised;
mod typed;

use std::fmt::Display;

use punctual_import::formats;

/// Looks at one input; panics when something does not hold.
pub type Body = Box<dyn Fn(&[u8]) + Send + Sync>;

/// A parser's name and body.
type Own = (&'static str, fn(&[u8]));

/// Every parser but those of other programs' files, by the name of its folder of seeds.
const OWN: &[Own] = &[
    ("campaign", campaign::campaign),
    ("claim", typed::claim),
    ("cmdline", machine::cmdline),
    ("column_spec", typed::column_spec),
    ("cpulist", machine::cpulist),
    ("csv", recorded::csv),
    ("duration", typed::duration),
    ("facts", machine::facts),
    ("import_detect", foreign::detected),
    ("join_request", supervised::join_request),
    ("limit", typed::limit),
    ("loads", typed::loads),
    ("manifest", machine::manifest),
    ("quantity", typed::quantity),
    ("samples_file", recorded::samples_file),
    ("scrub", machine::scrub),
    ("tasks_file", supervised::tasks_file),
];

/// Every parser by the name of its folder of seeds: those of this crate, and `import_NAME` for each
/// row of the table of formats.
pub fn all() -> Vec<(String, Body)> {
    let own = OWN.iter().map(|&(name, body)| (name.to_owned(), Box::new(body) as Body));
    let formats = formats::ALL.iter().map(|format| {
        let body = move |data: &[u8]| foreign::read_as(format, data);
        (format!("import_{}", format.name), Box::new(body) as Body)
    });
    own.chain(formats).collect()
}

/// What a file's error says fits in one line behind the name of the file.
fn one_line(error: &dyn Display) {
    says_why("", error);
}

/// An error says something, in one line; where it repeats what a person wrote, it has the line
/// breaks of that, and no more.
fn says_why(written: &str, error: &dyn Display) {
    let text = error.to_string();
    assert!(!text.trim().is_empty(), "an error without words");
    let breaks = |text: &str| text.matches(['\n', '\r']).count();
    assert!(breaks(&text) <= breaks(written), "an error of several lines: {text:?}");
}
