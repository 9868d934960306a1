//! `latency` of Xenomai 3: what it prints with `-h`, and the gnuplot file of `-g`.
//!
//! Source: Xenomai 3, `testsuite/latency/latency.c` (`dump_histogram`, `dump_histo_gnuplot`). Its
//! histogram takes the magnitude of a value, and its last bucket all that is larger; the gnuplot
//! file counts one too many in each row. Times are in µs, also where buckets are not.

use std::io::Read;

use super::run::RunBuilder;
use super::{Format, Place, Reading, Sniff, Writer};
use crate::text::{ImportError, Lines, clean, decimal_ns, scaled, shortened, whole};
use punctual_analysis::imported::ImportedQuantity;

/// Titles above minimum, mean and maximum.
const TITLES: &str = "----lat min|";

const CANNOT_KNOW: [&str; 2] = [
    "interval and grid: there are no instants",
    "early wakes: the histogram counts them as if they were late",
];

/// Its row in the table of formats.
pub(super) const TEXT: Format = Format {
    name: "xenomai_text",
    writers: &[Writer {
        program: "Xenomai's latency",
        file: "what `latency` of Xenomai 3 prints",
        made_with: "`latency -h`",
        holds: "lateness; timer handler: of the interrupt",
        resolution: "1 ns for min, mean, max; the width of a bucket is **not in the file** \
                     and read as 1 µs",
        cannot_tell: "early wakes: it counts their magnitude",
    }],
    sniff: Sniff::Line(is_text),
    read: text,
};

/// Titles or rows of what is printed.
fn is_text(line: &str) -> bool {
    let row = ["== Sampling period:", "HSD|", "RTS|"].iter().any(|start| line.starts_with(start));
    row || (line.contains(TITLES) && !line.starts_with('#'))
}

/// Its row in the table of formats.
pub(super) const GNUPLOT: Format = Format {
    name: "xenomai_gnuplot",
    writers: &[Writer {
        program: "Xenomai's latency",
        file: "gnuplot file of `latency` of Xenomai 3",
        made_with: "`latency -g F`",
        holds: "the same",
        resolution: "1 ns for min, mean, max; the width of a bucket",
        cannot_tell: "the same",
    }],
    sniff: Sniff::Line(is_gnuplot),
    read: gnuplot,
};

/// Titles in the header of a gnuplot file.
fn is_gnuplot(line: &str) -> bool {
    line.contains(TITLES) && line.starts_with('#')
}

/// The run of a test mode.
fn begin(file: &Reading<'_>, mode: &str, width_ns: i64) -> RunBuilder {
    let handler = mode.contains("timer handler");
    let holds =
        if handler { ImportedQuantity::InterruptLateness } else { ImportedQuantity::Lateness };
    let mut run = RunBuilder::new(mode, holds, width_ns, &file.request.thresholds_ns);
    run.stated.rounding_ns = 1;
    run
}

/// min | avg | max | overrun | msw, in µs.
fn totals(run: &mut RunBuilder, line: &str) -> Result<(), String> {
    let fields: Vec<&str> = line.split('|').map(str::trim).collect();
    let [min, avg, max, overrun, ..] = fields[..] else {
        return Err(format!(
            "expected min, avg, max and overrun, got \
                           {:?}",
            shortened(line.as_bytes())
        ));
    };
    run.stated.min_ns = Some(decimal_ns(min, 1_000)?);
    run.stated.mean_ns = Some(decimal_ns(avg, 1_000)?);
    run.stated.max_ns = Some(decimal_ns(max, 1_000)?);
    run.stated.missed = Some(whole(overrun)?);
    Ok(())
}

/// Takes in the last bucket, which holds all that is larger where the maximum is larger.
fn push_last(run: &mut RunBuilder, lowest: i64, width_ns: i64, count: u64) -> Result<(), String> {
    if run.stated.max_ns.is_some_and(|max| max >= (lowest + width_ns) as f64) {
        run.stated.beyond = Some(count);
        run.stated.limit_ns = Some(lowest);
        return Ok(());
    }
    run.push(lowest, lowest + width_ns - 1, count)
}

/// Reads what `latency -h` printed.
fn text(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    file.source.format = "Xenomai's latency -h";
    file.source.program = "Xenomai's latency";
    file.cannot_know(&CANNOT_KNOW);
    file.cannot_know(&["the width of a bucket: read as 1 µs, the default"]);
    let mut lines = Lines::new(reader);
    let (mut mode, mut period_ns) = ("latency".to_owned(), None);
    let mut run: Option<RunBuilder> = None;
    let mut last: Option<(i64, u64)> = None;
    let mut ended = false;
    while let Some(line) = lines.advance()? {
        let line = line.trim();
        let taken = if let Some(text) = line.strip_prefix("== Test mode: ") {
            mode = clean(text, 80);
            Ok(())
        } else if let Some(text) = line.strip_prefix("== Sampling period: ") {
            let us = text.strip_suffix(" us").ok_or("the period is not in us".to_owned());
            us.and_then(whole).map(|us| period_ns = us.checked_mul(1_000))
        } else if let Some(row) = line.strip_prefix("HSD|") {
            let run = run.get_or_insert_with(|| begin(file, &mode, 1_000));
            bucket(run, &mut last, row)
        } else if let (Some(row), Some(run)) = (line.strip_prefix("HSS|"), run.as_mut()) {
            samples(run, row)
        } else if let (Some(row), Some(run)) = (line.strip_prefix("RTS|"), run.as_mut()) {
            ended = true;
            totals(run, row)
        } else {
            Ok(())
        };
        taken.map_err(|why| lines.refuse(why))?;
    }
    let Some(mut run) = run else {
        return Err(lines.refuse("there is no histogram of all values: start the program with -h"));
    };
    if !ended {
        return Err(lines.refuse("the file ends without the line RTS|"));
    }
    run.stated.period_ns = period_ns;
    if let Some((lowest, count)) = last {
        push_last(&mut run, lowest, 1_000, count).map_err(|why| lines.refuse(why))?;
    }
    run.stated.beyond.get_or_insert(0);
    file.add(run).map_err(|why| lines.refuse(why))?;
    Ok(Place::Line(lines.number()))
}

/// `    avg|      2000|      1.156|      0.610`: how many values there were.
fn samples(run: &mut RunBuilder, row: &str) -> Result<(), String> {
    if let Some((kind, rest)) = row.split_once('|')
        && kind.trim() == "avg"
    {
        run.stated.n = Some(whole(rest.split('|').next().unwrap_or_default().trim())?);
    }
    Ok(())
}

/// `    avg|   3 -  4 |     120`: of the three histograms the one of all values. Each bucket waits
/// for the next, for the last one is another.
fn bucket(run: &mut RunBuilder, last: &mut Option<(i64, u64)>, row: &str) -> Result<(), String> {
    let fields: Vec<&str> = row.split('|').map(str::trim).collect();
    let [kind, range, count] = fields[..] else {
        return Err(format!("not a bucket: {:?}", shortened(row.as_bytes())));
    };
    if kind != "avg" {
        return Ok(());
    }
    let (from, to) = range.split_once('-').ok_or("a bucket without a range")?;
    let (from, to) = (whole(from.trim())?, whole(to.trim())?);
    if from.checked_add(1) != Some(to) {
        return Err(format!("invalid bucket from {from} to {to}"));
    }
    let lowest = scaled(from, 1_000)?;
    let before = last.replace((lowest, whole(count)?));
    match before {
        Some((before, _)) if before >= lowest => Err(format!("bucket {from} is out of order")),
        Some((before, count)) => run.push(before, before + 999, count),
        None => Ok(()),
    }
}

/// Reads what `latency -g` wrote: a header, the lower edge, the middle of each bucket with its
/// count and one more, the upper edge.
fn gnuplot(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    file.source.format = "Xenomai's latency -g";
    file.source.program = "Xenomai's latency";
    file.cannot_know(&CANNOT_KNOW);
    let mut lines = Lines::new(reader);
    let mut plot = Plot::default();
    while let Some(line) = lines.advance()? {
        let line = line.trim();
        let taken = match line.strip_prefix('#') {
            Some(text) => plot.header(file, text.trim()),
            None if line.is_empty() => Ok(()),
            None => plot.row(line),
        };
        taken.map_err(|why| lines.refuse(why))?;
    }
    let run = plot.close(file).map_err(|why| lines.refuse(why))?;
    file.add(run).map_err(|why| lines.refuse(why))?;
    Ok(Place::Line(lines.number()))
}

/// A gnuplot file while it is read.
#[derive(Default)]
struct Plot {
    run: Option<RunBuilder>,
    titles: bool,
    summarised: bool,
    /// The lower edge of the first bucket, and the width of all.
    start_ns: Option<f64>,
    width_ns: Option<i64>,
    /// Buckets that are sure, and the row that may be one or the upper edge.
    buckets: u64,
    waiting: Option<(f64, u64)>,
    last: Option<(i64, u64)>,
}

impl Plot {
    fn header(&mut self, file: &Reading<'_>, text: &str) -> Result<(), String> {
        if self.run.is_none() {
            // 00:00:10 (periodic user-mode task, 100 us period, priority 99)
            let inside = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
            let mut words = inside.ok_or("the first line has no test mode")?.split(", ");
            let mut run = begin(file, words.next().unwrap_or_default(), 1);
            for word in words {
                if let Some(us) = word.strip_suffix(" us period") {
                    run.stated.period_ns = whole(us)?.checked_mul(1_000);
                } else if let Some(priority) = word.strip_prefix("priority ") {
                    run.stated.priority = u8::try_from(whole(priority)?).ok();
                }
            }
            self.run = Some(run);
        } else if text.contains(TITLES) {
            self.titles = true;
        } else if let (true, false, Some(run)) = (self.titles, self.summarised, &mut self.run) {
            totals(run, text)?;
            self.summarised = true;
        }
        Ok(())
    }

    fn row(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        let (Some(x), Some(count), None) = (words.next(), words.next(), words.next()) else {
            return Err(format!("expected x and count, got {:?}", shortened(line.as_bytes())));
        };
        let (x, count) = (decimal_ns(x, 1_000)?, whole(count)?);
        let Some(start) = self.start_ns else {
            self.start_ns = Some(x);
            return Ok(());
        };
        if self.width_ns.is_none() {
            let width = ((x - start) * 2.0).round();
            if width < 1.0 {
                return Err("the buckets have no width".to_owned());
            }
            self.width_ns = Some(width as i64);
        }
        match self.waiting.replace((x, count)) {
            Some(waiting) => self.bucket(waiting),
            None => Ok(()),
        }
    }

    /// A row that another one follows: a bucket, in its place.
    fn bucket(&mut self, (x, count): (f64, u64)) -> Result<(), String> {
        let (Some(start), Some(width_ns), Some(run)) =
            (self.start_ns, self.width_ns, &mut self.run)
        else {
            return Err("there are rows before the header".to_owned());
        };
        let due = start + (self.buckets as f64 + 0.5) * width_ns as f64;
        // The program prints six figures.
        if (x - due).abs() > 1.0 + 1e-5 * x.abs() {
            return Err(format!("the middle of a bucket is at {x} ns, expected {due} ns"));
        }
        let count = count.checked_sub(1).ok_or(
            "a count of 0, but the program writes the count \
                                               plus 1",
        )?;
        let lowest = scaled(self.buckets, width_ns)? + start.round() as i64;
        self.buckets += 1;
        match self.last.replace((lowest, count)) {
            Some((lowest, count)) => run.push(lowest, lowest + width_ns - 1, count),
            None => Ok(()),
        }
    }

    fn close(self, _: &Reading<'_>) -> Result<RunBuilder, String> {
        let mut run = self.run.ok_or("the file has no header")?;
        let (Some((x, 1)), Some((lowest, count)), Some(width_ns)) =
            (self.waiting, self.last, self.width_ns)
        else {
            return Err("the file ends without the upper edge of its last bucket".to_owned());
        };
        let edge = (lowest + width_ns) as f64;
        if (x - edge).abs() > 1.0 + 1e-5 * x.abs() {
            return Err("the file ends without the upper edge of its last bucket".to_owned());
        }
        if !self.summarised {
            return Err("the header has no min, avg and max".to_owned());
        }
        run.stated.width_ns = Some(width_ns);
        run.stated.widest_ns = width_ns;
        push_last(&mut run, lowest, width_ns, count)?;
        Ok(run)
    }
}
