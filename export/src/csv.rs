//! Tables as CSV (RFC 4180, comma, a header line, `\n` at line ends), for pandas and all others.
//!
//! Numbers stand as whole ones, what is not there as nothing between two commas, flags as 0 and 1.
//! A name that a spreadsheet would take for a formula gets an apostrophe before it.

use std::borrow::Cow;
use std::io::Write;

use punctual_core::sample::Sample;

use crate::ExportError;
use crate::distribution::{self, LatenessHistogram};
use crate::row::{COLUMNS, ReleaseRow, ReleaseRows};

/// So much text is written at once.
const TEXT_BYTES: usize = 1 << 16;

/// A table of samples being written.
#[derive(Debug)]
pub struct CsvSamples<W> {
    writer: W,
    rows: ReleaseRows,
    /// The first fields of a row of each run, by run.
    heads: Vec<String>,
    /// Rows that are not written yet.
    text: Vec<u8>,
}

impl<W: Write> CsvSamples<W> {
    /// Writes the header line.
    ///
    /// # Errors
    /// A writer that fails.
    pub fn begin(mut writer: W, rows: ReleaseRows) -> Result<Self, ExportError> {
        writeln!(writer, "{}", COLUMNS.join(","))?;
        let head = |run: &crate::row::ExportedRun| {
            format!("{},{},{}", cell(&run.run), cell(&run.condition), run.cpu)
        };
        let heads = rows.runs().iter().map(head).collect();
        Ok(Self { writer, rows, heads, text: Vec::new() })
    }

    /// Writes samples of run `run`, of which `unrecorded` have none so far, and the releases that
    /// were missed between them.
    ///
    /// # Errors
    /// A writer that fails; a time out of range; a gap of too many rows.
    ///
    /// # Panics
    /// When there is no such run.
    pub fn extend(
        &mut self,
        run: usize,
        samples: &[Sample],
        unrecorded: u64,
    ) -> Result<(), ExportError> {
        let mut out = Rows { head: &self.heads[run], text: &mut self.text, out: &mut self.writer };
        out.samples(&mut self.rows, run, samples, unrecorded)
    }

    /// Writes the releases of run `run` that were missed after the last cycle of a segment, where
    /// `missed` were missed in all.
    ///
    /// # Errors
    /// As [`Self::extend`].
    ///
    /// # Panics
    /// When there is no such run.
    pub fn ended(&mut self, run: usize, missed: u64, unrecorded: u64) -> Result<(), ExportError> {
        let mut out = Rows { head: &self.heads[run], text: &mut self.text, out: &mut self.writer };
        self.rows.ended(run, missed, unrecorded, &mut |row| out.row(row))
    }

    /// Writes out what is still held.
    ///
    /// # Errors
    /// A writer that fails.
    pub fn finish(mut self) -> Result<(), ExportError> {
        self.writer.write_all(&self.text)?;
        Ok(self.writer.flush()?)
    }
}

/// Where the rows of a run go. Not generic: compiled here, and optimised, whatever the crate that
/// exports is built with.
struct Rows<'a> {
    head: &'a str,
    text: &'a mut Vec<u8>,
    out: &'a mut dyn Write,
}

impl Rows<'_> {
    /// Writes samples of run `run` and what was missed between them.
    fn samples(
        &mut self,
        rows: &mut ReleaseRows,
        run: usize,
        samples: &[Sample],
        unrecorded: u64,
    ) -> Result<(), ExportError> {
        let mut give = |row: &ReleaseRow| self.row(row);
        samples.iter().try_for_each(|sample| rows.sample(run, sample, unrecorded, &mut give))
    }

    /// Writes a row behind its head.
    fn row(&mut self, row: &ReleaseRow) -> Result<(), ExportError> {
        let (head, text) = (self.head, &mut *self.text);
        write!(text, "{head},{},{},{},", row.cycle, row.release_ns, row.lateness_ns)?;
        if let (Some(interval_ns), Some(gap)) = (row.interval_ns, row.gap_before) {
            write!(text, "{interval_ns},{gap}")?;
        } else {
            text.push(b',');
        }
        let (first, cold) = (u8::from(row.first), u8::from(row.cold));
        writeln!(text, ",{first},{cold},{}", row.kind.name())?;
        if text.len() >= TEXT_BYTES {
            self.out.write_all(text)?;
            text.clear();
        }
        Ok(())
    }
}

/// Writes histograms as one table: lower ≤ value < upper; what is in no bucket ends in an open one.
///
/// # Errors
/// A writer that fails.
pub fn histograms(mut writer: impl Write, runs: &[LatenessHistogram]) -> Result<(), ExportError> {
    writeln!(writer, "{}", distribution::COLUMNS.join(","))?;
    for run in runs {
        let cpu = run.cpu.map(|cpu| cpu.to_string()).unwrap_or_default();
        let head = format!("{},{cpu}", cell(&run.run));
        for bucket in &run.buckets {
            let upper_ns = i128::from(bucket.highest_ns) + 1;
            writeln!(writer, "{head},{},{upper_ns},{}", bucket.lowest_ns, bucket.count)?;
        }
        if run.overflow > 0 {
            writeln!(writer, "{head},,,{}", run.overflow)?;
        }
    }
    Ok(writer.flush()?)
}

/// A text as a cell: quoted where it must be, and no formula.
fn cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@']);
    let text = if formula { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::ExportedRun;
    use punctual_analysis::histogram::Bucket;
    use punctual_core::sample::Flags;
    use punctual_core::time::Span;

    #[test]
    fn samples_stand_one_a_line_with_nothing_for_what_is_not_there() {
        let run = |name: &str| ExportedRun {
            run: name.to_owned(),
            condition: "c".to_owned(),
            cpu: 1,
            period_ns: 1_000,
            epoch_ns: 500,
        };
        let mut out = Vec::new();
        let rows = ReleaseRows::new(vec![run("idle"), run("CPU 1, \"2\"")]);
        let mut table = CsvSamples::begin(&mut out, rows).unwrap();
        let sample = |cycle, ns, flags| Sample { cycle, lateness: Span::from_ns(ns), flags };
        let first_and_cold = Flags::FIRST.with(Flags::COLD);
        table.extend(0, &[sample(0, 10, first_and_cold), sample(2, -5, Flags::NONE)], 0).unwrap();
        table.extend(1, &[sample(7, 1, first_and_cold)], 0).unwrap();
        table.ended(0, 3, 0).unwrap();
        table.finish().unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "run,condition,cpu,cycle,release_ns,lateness_ns,interval_ns,gap_before,\
            first,cold,kind\n\
            idle,c,1,0,500,10,,,1,1,ran\n\
            idle,c,1,1,1500,1000,,,0,0,missed\n\
            idle,c,1,2,2500,-5,985,1,0,0,ran\n\
            \"CPU 1, \"\"2\"\"\",c,1,7,7500,1,,,1,1,ran\n\
            idle,c,1,3,3500,1000,,,0,0,censored\n\
            idle,c,1,4,4500,1000,,,0,0,censored\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn histograms_end_in_an_open_bucket() {
        let run = LatenessHistogram {
            run: "idle".to_owned(),
            buckets: vec![Bucket { lowest_ns: -3, highest_ns: 4, count: 7 }],
            overflow: 2,
            ..LatenessHistogram::default()
        };
        let mut out = Vec::new();
        histograms(&mut out, &[run]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "run,cpu,lower_ns,upper_ns,count\nidle,,-3,5,7\nidle,,,,2\n");
    }

    #[test]
    fn no_cell_is_a_formula_or_leaves_its_place() {
        assert_eq!(cell("=1+1"), "'=1+1");
        assert_eq!(cell("@SUM(A1,B2)"), "\"'@SUM(A1,B2)\"");
        assert_eq!(cell("a\"b"), "\"a\"\"b\"");
        assert_eq!(cell("under load"), "under load");
    }
}
