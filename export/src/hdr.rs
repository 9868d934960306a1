//! Histograms as an HdrHistogram log, version 1.3, with V2 compressed histograms and a tag a run.
//!
//! Three significant digits have the buckets that this project's histograms have, so that counts
//! come back as they were. What such a log cannot hold (values below zero, exact extremes) is in
//! its comments.

use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::ExportError;
use crate::distribution::LatenessHistogram;
use crate::name::Distinct;

/// Significant decimal digits: 2048 values of a bucket each, then 1024 buckets a power of two.
const DIGITS: u8 = 3;
/// Nanoseconds of the unit in which readers of such logs expect the largest value of a line.
const MAX_UNIT_NS: f64 = 1e6;

/// A run for the log.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalHistogram {
    /// Its lateness, in ns.
    pub lateness: LatenessHistogram,
    /// The planned length of the run.
    pub duration: Duration,
}

/// Writes a log of these runs, which began at `started` where that is known; `notes` are comments
/// at its head, one line each.
///
/// # Errors
/// A writer or a library that fails.
pub fn write(
    mut writer: impl Write,
    runs: &[IntervalHistogram],
    started: Option<SystemTime>,
    notes: &[String],
) -> Result<(), ExportError> {
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Histogram log format version 1.3]");
    for note in notes {
        builder.add_comment(note);
    }
    let mut tags = Distinct::default();
    let named: Vec<(String, &IntervalHistogram)> =
        runs.iter().map(|run| (tag(&mut tags, &run.lateness.run), run)).collect();
    for (tag, run) in &named {
        builder.add_comment(&comment(tag, &run.lateness));
    }
    if let Some(started) = started {
        builder.with_start_time(started).with_base_time(started);
    }
    builder.with_max_value_divisor(MAX_UNIT_NS);
    let mut serializer = V2DeflateSerializer::new();
    let mut log = builder.begin_log_with(&mut writer, &mut serializer)?;
    for (tag, run) in &named {
        let histogram = histogram(&run.lateness)?;
        let tag = Tag::new(tag);
        log.write_histogram(&histogram, Duration::ZERO, run.duration, tag).map_err(
            |why| match why {
                hdrhistogram::serialization::interval_log::IntervalLogWriterError::IoError(why) => {
                    ExportError::Io(why)
                }
                why => ExportError::Hdr(why.to_string()),
            },
        )?;
    }
    Ok(writer.flush()?)
}

/// A tag that readers take as one word, unlike all before it.
fn tag(tags: &mut Distinct, run: &str) -> String {
    let kept = |c: char| if c.is_alphanumeric() || "-.".contains(c) { c } else { '_' };
    let word: String = run.chars().map(kept).collect();
    let word = if word.is_empty() { "run".to_owned() } else { word };
    tags.numbered(word, |word, number| format!("{word}-{number}"))
}

/// A comment with what the line of a run cannot hold.
fn comment(tag: &str, run: &LatenessHistogram) -> String {
    let mut comment =
        format!("tag {tag}: run \"{}\", lateness in ns, n = {}", run.run, run.count());
    if let Some(cpu) = run.cpu {
        let _infallible = write!(comment, ", CPU {cpu}");
    }
    if let (Some(min_ns), Some(max_ns)) = (run.min_ns, run.max_ns) {
        let _infallible = write!(comment, ", exact min_ns = {min_ns}, exact max_ns = {max_ns}");
    }
    let early: u64 = early(run);
    if early > 0 {
        let _infallible = write!(comment, "; {early} below zero (woken early) are counted as 0");
    }
    if run.overflow > 0 {
        let _infallible = write!(
            comment,
            "; {} of 2^42 ns or more, or of unknown lateness, are counted as the maximum",
            run.overflow
        );
    }
    comment
}

fn early(run: &LatenessHistogram) -> u64 {
    let early = run.buckets.iter().filter(|bucket| bucket.highest_ns < 0);
    early.map(|bucket| bucket.count).fold(0, u64::saturating_add)
}

/// The counts as an HdrHistogram: each bucket at its upper end, but none beyond the exact maximum.
fn histogram(run: &LatenessHistogram) -> Result<Histogram<u64>, ExportError> {
    let refused = |why: &dyn std::fmt::Display| ExportError::Hdr(why.to_string());
    let last = run.buckets.last().map_or(0, |bucket| bucket.highest_ns);
    let max_ns = run.max_ns.unwrap_or(last).max(0);
    // The library's smallest range ends at 2.
    let high = max_ns.max(2).unsigned_abs();
    let mut histogram = Histogram::new_with_bounds(1, high, DIGITS).map_err(|why| refused(&why))?;
    for bucket in &run.buckets {
        let value = bucket.highest_ns.min(max_ns).max(0).unsigned_abs();
        histogram.record_n(value, bucket.count).map_err(|why| refused(&why))?;
    }
    if run.overflow > 0 {
        histogram.record_n(max_ns.unsigned_abs(), run.overflow).map_err(|why| refused(&why))?;
    }
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use proptest::prelude::*;
    use punctual_analysis::histogram::Histogram as Counts;

    fn run(name: &str, values: &[i64]) -> LatenessHistogram {
        let mut counts = Counts::new();
        values.iter().for_each(|&value| counts.push(value));
        LatenessHistogram { run: name.to_owned(), ..LatenessHistogram::default() }.with(&counts)
    }

    fn log(runs: &[LatenessHistogram]) -> String {
        let interval = |lateness: &LatenessHistogram| IntervalHistogram {
            lateness: lateness.clone(),
            duration: Duration::from_millis(1_500),
        };
        let runs: Vec<IntervalHistogram> = runs.iter().map(interval).collect();
        let mut out = Vec::new();
        write(&mut out, &runs, Some(SystemTime::UNIX_EPOCH), &["a note".to_owned()]).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tags_are_words_and_differ() {
        let runs = ["under load", "under_load", "a,b\"", ""].map(|name| run(name, &[5]));
        let text = log(&runs);
        for tag in ["Tag=under_load,", "Tag=under_load-2,", "Tag=a_b_,", "Tag=run,"] {
            assert!(text.contains(&format!("\n{tag}0.000,1.500,")), "{tag} in {text}");
        }
        assert!(text.starts_with("#[Histogram log format version 1.3]\n#a note\n"), "{text}");
    }

    #[test]
    fn what_the_format_cannot_hold_is_named() {
        let text = log(&[run("r", &[-40, -3, 7, i64::MAX])]);
        assert!(text.contains("n = 4, exact min_ns = -40, exact max_ns = 9223372036854775807"));
        assert!(
            text.contains("; 2 below zero (woken early) are counted as 0; 1 of 2^42 ns"),
            "{text}"
        );
        assert!(log(&[run("empty", &[])]).contains("n = 0\n"));
    }

    proptest! {
        #[test]
        fn counts_come_back_as_they_were(values in prop::collection::vec(0i64..1 << 40, 1..200)) {
            let text = log(&[run("r", &values)]);
            let line = IntervalLogIterator::new(text.as_bytes()).find_map(|entry| match entry {
                Ok(LogEntry::Interval(line)) => Some(line.encoded_histogram().to_owned()),
                _ => None,
            });
            let bytes = base64(&line.unwrap());
            let read: Histogram<u64> =
                Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            prop_assert_eq!(read.len(), values.len() as u64);
            for value in &values {
                let value = value.unsigned_abs();
                let ours = values.iter().filter(|&&near| {
                    read.equivalent(near.unsigned_abs(), value)
                });
                prop_assert_eq!(read.count_at(value), ours.count() as u64);
            }
        }
    }

    /// RFC 4648, padded: the test's own, so that the crate needs no library for it.
    fn base64(text: &str) -> Vec<u8> {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let (mut bits, mut held, mut out) = (0_u32, 0, Vec::new());
        for byte in text.bytes().filter(|&byte| byte != b'=') {
            let digit = alphabet.iter().position(|&letter| letter == byte).unwrap() as u32;
            (bits, held) = (bits << 6 | digit, held + 6);
            if held >= 8 {
                held -= 8;
                out.push((bits >> held) as u8);
            }
        }
        out
    }
}
