//! What must hold of every parser, whatever its input: the bodies of the fuzz targets.
//!
//! For `fuzz/fuzz_targets`, one line each, and for the test that replays `fuzz/corpus` on stable.
//! A body panics when something does not hold: a panic inside the parser, an error that is no
//! single line, a round trip that does not come back.

mod asked;
mod campaign;
mod foreign;
mod machine;
mod recorded;
mod supervised;

use std::fmt::Display;

pub use asked::{claim, column_spec, duration, limit, loads, quantity};
pub use campaign::campaign;
pub use foreign::{
    import_cyclictest_histogram, import_cyclictest_verbose, import_detect, import_hdr,
    import_jitterdebugger_samples, import_latency_histogram, import_latencybins, import_latmus,
    import_rtla, import_stress_ng, import_threads, import_xenomai_gnuplot, import_xenomai_text,
};
pub use machine::{cmdline, cpulist, facts, manifest, scrub};
pub use recorded::{csv, samples_file};
pub use supervised::{join_request, tasks_file};

/// Looks at one input; panics when something does not hold.
pub type Body = fn(&[u8]);

/// Every parser by the name of its fuzz target and of its folder of seeds.
pub const ALL: &[(&str, Body)] = &[
    ("campaign", campaign),
    ("claim", claim),
    ("cmdline", cmdline),
    ("column_spec", column_spec),
    ("cpulist", cpulist),
    ("csv", csv),
    ("duration", duration),
    ("facts", facts),
    ("import_cyclictest_histogram", import_cyclictest_histogram),
    ("import_cyclictest_verbose", import_cyclictest_verbose),
    ("import_detect", import_detect),
    ("import_hdr", import_hdr),
    ("import_jitterdebugger_samples", import_jitterdebugger_samples),
    ("import_latency_histogram", import_latency_histogram),
    ("import_latencybins", import_latencybins),
    ("import_latmus", import_latmus),
    ("import_rtla", import_rtla),
    ("import_stress_ng", import_stress_ng),
    ("import_threads", import_threads),
    ("import_xenomai_gnuplot", import_xenomai_gnuplot),
    ("import_xenomai_text", import_xenomai_text),
    ("join_request", join_request),
    ("limit", limit),
    ("loads", loads),
    ("manifest", manifest),
    ("quantity", quantity),
    ("samples_file", samples_file),
    ("scrub", scrub),
    ("tasks_file", tasks_file),
];

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
