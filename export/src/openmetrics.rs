//! Metrics as OpenMetrics text, version 1.0, which Prometheus's own text format reads as well.
//!
//! Therefore nothing here is a counter or an info: the older format names those differently. A
//! finished measurement is a gauge anyhow: the next one may be smaller. No timestamps, so that
//! node_exporter's text files take it. A value that is not a number is left out.

use std::fmt::Write as _;
use std::io::Write;

use punctual_analysis::histogram::Bucket;

use crate::ExportError;
use crate::distribution::LatenessHistogram;

/// Names and values, as they stand between braces.
pub type Labels = Vec<(&'static str, String)>;

/// Metrics of one name.
#[derive(Clone, Debug)]
pub struct MetricFamily {
    /// Its name, with the unit last.
    pub name: &'static str,
    /// Its unit, with which the name ends; "" for a pure number.
    pub unit: &'static str,
    /// Its help text: one line without quotes or backslashes.
    pub help: &'static str,
    /// Its values.
    pub points: Points,
}

/// The values of a family.
#[derive(Clone, Debug)]
pub enum Points {
    /// Numbers.
    Gauges(Vec<(Labels, f64)>),
    /// Distributions of ns, written in seconds.
    Histograms(Vec<(Labels, LatenessHistogram)>),
}

/// Writes families, and the end of the text.
///
/// # Errors
/// A writer that fails.
pub fn write(mut writer: impl Write, families: &[MetricFamily]) -> Result<(), ExportError> {
    for MetricFamily { name, unit, help, points } in families {
        let kind = match points {
            Points::Gauges(_) => "gauge",
            Points::Histograms(_) => "histogram",
        };
        // In the order that the format wants.
        writeln!(writer, "# TYPE {name} {kind}")?;
        if !unit.is_empty() {
            writeln!(writer, "# UNIT {name} {unit}")?;
        }
        writeln!(writer, "# HELP {name} {help}")?;
        match points {
            Points::Gauges(points) => {
                for (labels, value) in points.iter().filter(|(_, value)| value.is_finite()) {
                    writeln!(writer, "{name}{{{}}} {value}", shown(labels))?;
                }
            }
            Points::Histograms(points) => {
                for (labels, lateness) in points {
                    histogram(&mut writer, name, &shown(labels), lateness)?;
                }
            }
        }
    }
    writer.write_all(b"# EOF\n")?;
    Ok(writer.flush()?)
}

fn histogram(
    writer: &mut impl Write,
    name: &str,
    labels: &str,
    histogram: &LatenessHistogram,
) -> Result<(), ExportError> {
    let n = histogram.count();
    let comma = if labels.is_empty() { "" } else { "," };
    for (bound_ns, count) in BOUNDS_NS.into_iter().zip(cumulative(&histogram.buckets)) {
        writeln!(writer, "{name}_bucket{{{labels}{comma}le=\"{}\"}} {count}", seconds(bound_ns))?;
    }
    writeln!(writer, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {n}")?;
    let sum =
        if n == 0 { Some(0.0) } else { histogram.mean_ns.map(|mean_ns| mean_ns * n as f64 / 1e9) };
    // The format does not allow a negative sum, which early wakes can cause.
    if let Some(sum) = sum.filter(|sum| sum.is_finite() && *sum >= 0.0) {
        writeln!(writer, "{name}_sum{{{labels}}} {sum}")?;
        writeln!(writer, "{name}_count{{{labels}}} {n}")?;
    }
    Ok(())
}

/// Labels between their braces, escaped.
fn shown(labels: &Labels) -> String {
    let mut shown = String::new();
    for (name, value) in labels {
        let comma = if shown.is_empty() { "" } else { "," };
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _infallible = write!(shown, "{comma}{name}=\"{value}\"");
    }
    shown
}

// The bounds of every histogram, the same for all runs and machines, so that they can be summed:
// two a power of two from 255 ns to 1.07 s, each the last nanosecond below a power of two or below
// one and a half of it. There the histograms of results have an edge at every resolution, so that
// each count is exact.

/// The number of bounds.
const BOUNDS: usize = 43;
/// The first power of two with two bounds a power.
const FROM_BITS: usize = 10;

/// The bounds, inclusive, ns, rising.
pub const BOUNDS_NS: [i64; BOUNDS] = {
    let mut bounds = [0; BOUNDS];
    (bounds[0], bounds[1], bounds[2]) = (255, 511, 1_023);
    let mut at = 3;
    while at < BOUNDS {
        let power = 1 << (FROM_BITS + (at - 3) / 2);
        bounds[at] = if (at - 3) % 2 == 0 { power + power / 2 - 1 } else { 2 * power - 1 };
        at += 1;
    }
    bounds
};

/// Counts of values that are at most each bound. A bucket that spans a bound (of histograms with
/// other edges) counts above it: late rather than early.
fn cumulative(buckets: &[Bucket]) -> [u64; BOUNDS] {
    let mut counts = [0_u64; BOUNDS];
    for bucket in buckets {
        let first = BOUNDS_NS.partition_point(|&bound| bound < bucket.highest_ns);
        for count in &mut counts[first..] {
            *count = count.saturating_add(bucket.count);
        }
    }
    counts
}

/// Whole nanoseconds as a decimal number of seconds, exact: 1023 is "0.000001023".
pub fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    let text = format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_analysis::histogram::{Histogram, HistogramView};

    fn text(families: &[MetricFamily]) -> String {
        let mut out = Vec::new();
        write(&mut out, families).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn gauge(points: Vec<(Labels, f64)>) -> MetricFamily {
        MetricFamily {
            name: "a_seconds",
            unit: "seconds",
            help: "A.",
            points: Points::Gauges(points),
        }
    }

    #[test]
    fn labels_are_escaped_and_what_is_no_number_is_left_out() {
        let hostile = vec![("run", "a\"b\\c\nd".to_owned()), ("cpu", "1".to_owned())];
        let family = gauge(vec![(hostile, 1.5e-9), (vec![], f64::NAN), (vec![], f64::INFINITY)]);
        let expected = "# TYPE a_seconds gauge\n# UNIT a_seconds seconds\n# HELP a_seconds A.\n\
            a_seconds{run=\"a\\\"b\\\\c\\nd\",cpu=\"1\"} 0.0000000015\n# EOF\n";
        assert_eq!(text(&[family]), expected);
    }

    #[test]
    fn a_histogram_rises_to_its_count() {
        let mut counts = Histogram::new();
        let values = [-5, 100, 256, 1_023, 1_024, 5_000_000_000, i64::MAX];
        values.into_iter().for_each(|ns| counts.push(ns));
        let lateness =
            LatenessHistogram { mean_ns: Some(2e9), ..LatenessHistogram::default() }.with(&counts);
        let points = Points::Histograms(vec![(vec![("run", "r".to_owned())], lateness.clone())]);
        let name = "punctual_lateness_seconds";
        let family = |points| MetricFamily { name, unit: "seconds", help: "H.", points };
        let shown = text(&[family(points)]);
        for line in [
            "_bucket{run=\"r\",le=\"0.000000255\"} 2",
            "_bucket{run=\"r\",le=\"0.000001023\"} 4",
            "_bucket{run=\"r\",le=\"0.000001535\"} 5",
            "_bucket{run=\"r\",le=\"+Inf\"} 7",
            "_sum{run=\"r\"} 14",
            "_count{run=\"r\"} 7",
        ] {
            assert!(shown.contains(&format!("{name}{line}\n")), "{line} in {shown}");
        }
        // A sum that the format does not allow, and one that is not known.
        for mean_ns in [Some(-1.0), None] {
            let lateness = LatenessHistogram { mean_ns, ..lateness.clone() };
            let shown = text(&[family(Points::Histograms(vec![(Labels::new(), lateness)]))]);
            assert!(!shown.contains("_sum") && !shown.contains("_count"), "{shown}");
        }
        let none = Points::Histograms(vec![(Labels::new(), LatenessHistogram::default())]);
        let none = text(&[family(none)]);
        assert!(none.contains("_sum{} 0\n") && none.contains("_bucket{le=\"+Inf\"} 0\n"), "{none}");
    }

    #[test]
    fn bounds_rise_to_a_second() {
        assert!(BOUNDS_NS.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!((BOUNDS_NS[3], BOUNDS_NS[4]), (1_535, 2_047));
        assert_eq!(BOUNDS_NS[BOUNDS - 1], (1 << 30) - 1);
    }

    #[test]
    fn seconds_are_exact() {
        let shown = [1_023, 1_500_000_000, 2_000_000_000, 0, -5].map(seconds);
        assert_eq!(shown, ["0.000001023", "1.5", "2.0", "0.0", "-0.000000005"]);
    }

    proptest! {
        #[test]
        fn counts_are_exact_at_every_resolution_of_a_result(
            values in prop::collection::vec((-3_000i64..1 << 41, 0u32..41), 1..3_000),
        ) {
            let values: Vec<i64> = values.iter().map(|(value, shift)| value >> shift).collect();
            let mut histogram = Histogram::new();
            values.iter().for_each(|&value| histogram.push(value));
            let full: Vec<Bucket> = histogram.buckets().collect();
            let view = HistogramView::of(&histogram);
            let coarse: Vec<Bucket> = view.buckets.iter().map(|bucket| bucket.closed()).collect();
            let exact = BOUNDS_NS.map(|bound| {
                values.iter().filter(|&&value| value <= bound).count() as u64
            });
            prop_assert_eq!(cumulative(&full), exact);
            prop_assert_eq!(cumulative(&coarse), exact);
        }
    }
}
