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

/// How many buckets a histogram has, by the command line: `-h 500`, `-h500`, `--histogram=500`, the
/// same with `-H` and `--histofall`. Values from there on are beyond it.
pub(super) fn buckets(command: &str) -> Option<u64> {
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        let rest = ["--histogram", "--histofall", "-h", "-H"];
        let Some(rest) = rest.iter().find_map(|name| word.strip_prefix(name)) else { continue };
        let number = rest.trim_start_matches('=');
        let number = if number.is_empty() { words.next()? } else { number };
        return number.parse().ok().filter(|&buckets| buckets > 0);
    }
    None
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_histogram_is_in_the_command_line() {
        let of = |options: &str| buckets(&format!("./cyclictest -q -i 1000 {options} -p 80"));
        for options in ["-h 500", "-h500", "-H 500", "--histogram=500", "--histofall 500"] {
            assert_eq!(of(options), Some(500), "{options}");
        }
        for options in ["", "-h", "-h x", "--json=-h", "-h 0"] {
            assert_eq!(of(options), None, "{options}");
        }
    }
}
