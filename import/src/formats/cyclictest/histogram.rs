//! `cyclictest -h`: a row a bucket, a column a thread, then totals.
//!
//! For [`super`]. The footer must be there: without it the file was cut.

use std::io::Read;

use super::CANNOT_KNOW;
use crate::error::{ImportError, decimal_ns, scaled, whole};
use crate::reading::{Place, Reading};
use crate::run::RunBuilder;
use crate::text::Lines;
use punctual_analysis::imported::ImportedQuantity;

/// The lines below the rows: totals of the values in buckets, then what stands beside them.
const FOOTER: [&str; 5] = [
    "# Total:",
    "# Min Latencies:",
    "# Avg Latencies:",
    "# Max Latencies:",
    "# Histogram Overflows:",
];

/// Reads a whole file.
pub(crate) fn read(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    file.source.format = "cyclictest -h";
    file.source.program = "cyclictest";
    file.cannot_know(&CANNOT_KNOW);
    let unit_ns = file.unit_ns(1_000, "-N");
    let mut lines = Lines::new(reader);
    let mut display = Vec::new();
    let mut footer: [Option<Vec<String>>; 5] = Default::default();
    let (mut begun, mut next) = (false, 0);
    while let Some(line) = lines.advance()? {
        let line = line.trim_end();
        if !begun {
            display.extend(super::display(line));
            begun = line == "# Histogram";
            continue;
        }
        if let Some(at) = FOOTER.iter().position(|name| line.starts_with(name)) {
            let words = line[FOOTER[at].len()..].split_whitespace();
            footer[at] = Some(words.map(str::to_owned).collect());
        } else if line.starts_with(|c: char| c.is_ascii_digit()) && footer[0].is_none() {
            let row = row(file, line, next, unit_ns);
            next = row.map_err(|why| lines.refuse(why))? + 1;
        } else if super::display(line).is_some() {
            display.extend(super::display(line));
        } else if !line.is_empty() && !line.starts_with('#') && footer[4].is_none() {
            return Err(lines.refuse("expected a bucket or the end of the histogram"));
        }
    }
    close(file, footer, next, unit_ns).map_err(|why| lines.refuse(why))?;
    for shown in display {
        if let Some(run) = file.runs.get_mut(shown.thread) {
            run.period_ns = shown.period_us.checked_mul(1_000);
            run.priority = Some(shown.priority).filter(|&priority| priority > 0);
        }
    }
    Ok(Place::Line(lines.number()))
}

/// One row; its bucket.
fn row(file: &mut Reading<'_>, line: &str, next: u64, unit_ns: i64) -> Result<u64, String> {
    let mut words = line.split_whitespace();
    let bucket = whole(words.next().unwrap_or_default())?;
    let first = next == 0 && file.runs.is_empty();
    if bucket < next {
        return Err(format!("bucket {bucket}, expected {next}"));
    }
    let lowest = scaled(bucket, unit_ns)?;
    let mut columns = 0;
    for (column, word) in words.enumerate() {
        let count = whole(word)?;
        if first {
            let name = format!("thread {column}");
            let thresholds_ns = &file.request.thresholds_ns;
            file.add(RunBuilder::new(name, ImportedQuantity::Lateness, unit_ns, thresholds_ns))?;
        }
        let run = file.runs.get_mut(column).ok_or("more columns than before")?;
        run.push(lowest, lowest + unit_ns - 1, count)?;
        columns = column + 1;
    }
    if columns == 0 || columns != file.runs.len() {
        return Err(format!("{columns} columns, expected {}", file.runs.len()));
    }
    Ok(bucket)
}

/// The totals. With -H the last column is the sum of all threads, which has no minimum of its own.
fn close(
    file: &mut Reading<'_>,
    footer: [Option<Vec<String>>; 5],
    buckets: u64,
    unit_ns: i64,
) -> Result<(), String> {
    let mut given = Vec::new();
    for (name, words) in FOOTER.iter().zip(footer) {
        given.push(words.ok_or_else(|| format!("the file ends without {:?}", &name[2..]))?);
    }
    let threads = given[1].len();
    let fits = |words: &Vec<String>| words.len() == threads || words.len() == threads + 1;
    if !given.iter().all(fits) || !(threads..=threads + 1).contains(&file.runs.len()) {
        return Err(format!("{threads} minima for {} columns", file.runs.len()));
    }
    file.runs.truncate(threads);
    for (at, run) in file.runs.iter_mut().enumerate() {
        let word = |line: usize| given[line][at].as_str();
        let (total, overflow) = (whole(word(0))?, whole(word(4))?);
        if total != run.binned() {
            return Err(format!(
                "thread {at}: a total of {total}, but its buckets hold \
                               {}",
                run.binned()
            ));
        }
        run.n = total.checked_add(overflow);
        run.beyond = Some(overflow);
        run.limit_ns = Some(scaled(buckets, unit_ns)?);
        run.rounding_ns = unit_ns - 1;
        run.min_ns = Some(decimal_ns(word(1), unit_ns)?);
        run.mean_ns = Some(decimal_ns(word(2), unit_ns)?);
        run.max_ns = Some(decimal_ns(word(3), unit_ns)?);
    }
    Ok(())
}
