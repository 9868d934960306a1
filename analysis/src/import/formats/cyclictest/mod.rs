//! cyclictest of rt-tests, in text: `-h` histograms and `-v` values. Its JSON is in
//! [`super::threads`].
//!
//! Source: rt-tests 2.4, src/cyclictest/cyclictest.c (`print_hist`, `print_stat`, `timerthread`).
//! A value is wake − release, cut to whole µs (ns with -N); the text does not say which. Releases
//! that passed meanwhile are skipped and not counted.

mod histogram;
mod verbose;

pub(super) use histogram::read as histogram;
pub(super) use verbose::read as verbose;

/// The line above the rows of a histogram.
pub(super) fn is_histogram(line: &str) -> bool {
    line == "# Histogram"
}

/// A value, or the line above those of a thread.
pub(super) fn is_verbose(line: &str) -> bool {
    verbose::line(line).is_some() || (line.starts_with("Thread ") && line.contains(" Interval: "))
}

/// What no file of cyclictest records.
pub(super) const CANNOT_KNOW: [&str; 2] = [
    "missed releases: cyclictest skips and does not count them, so one long stall is a single \
    value (coordinated omission)",
    "interval and grid: there are no instants",
];

/// What stands in a line of its running display: `T: 0 ( 1491) P:80 I:1000 C: …`.
struct Display {
    thread: usize,
    priority: u8,
    period_us: u64,
}

/// Reads a line of the running display, behind escape sequences too.
fn display(line: &str) -> Option<Display> {
    let rest = &line[line.find("T:")? + 2..];
    let field = |name: &str| {
        let rest = rest[rest.find(name)? + name.len()..].trim_start();
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
    };
    let thread = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    let priority = u8::try_from(field("P:")?).ok()?;
    Some(Display { thread, priority, period_us: field("I:")? })
}
