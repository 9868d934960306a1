//! `rtla timerlat hist` and `rtla osnoise hist` in text: a row a bucket, a column a CPU and kind.
//!
//! Source: Linux tools/tracing/rtla/src/timerlat_hist.c, osnoise_hist.c and common.c (6.1, 7.2).
//! IRQ, Thr and Usr are three quantities, each against the same programmed expiry. rtla does not
//! print the width of buckets: it divides all rows, so their greatest common divisor is at least
//! the width. Below the table stand totals, lost events, that a limit stopped it, and its analysis.

use std::io::Read;

use super::run::RunBuilder;
use super::{Format, Place, Reading, Sniff, Writer};
use crate::text::{ImportError, Lines, clean, decimal_ns, scaled, shortened, whole};
use punctual_analysis::imported::ImportedQuantity;

/// The most numbers in all rows together: they are held until the width of a bucket is known.
const CELLS_MAX: usize = 1 << 20;

const SUMMARY: [&str; 5] = ["over:", "count:", "min:", "avg:", "max:"];

/// The minimum of a column without values, as versions before 6.10 print it: ~0.
const NO_MINIMUM: &str = "18446744073709551615";

/// The columns as read, before their meaning is known.
#[derive(Default)]
struct Table {
    /// Headings: IRQ-000, Thr-000, CPU-001.
    columns: Vec<String>,
    rows: Vec<u64>,
    cells: Vec<u64>,
    /// over, count, min, avg, max; a dash for what has no value.
    summary: [Option<Vec<String>>; 5],
    /// Events of all columns together that were lost.
    lost: u64,
}

/// Its row in the table of formats.
pub(super) const FORMAT: Format = Format {
    name: "rtla",
    writers: &[
        Writer {
            program: "rtla",
            file: "rtla timerlat",
            made_with: "`rtla timerlat hist`",
            holds: "`IRQ`: lateness of the interrupt; `Thr`: lateness of a kernel thread; \
                    `Usr`: lateness on return to user space",
            resolution: "the unit (µs or ns) times the width of a bucket, which is not in the \
                         file: the greatest common divisor of all rows, never less than it is",
            cannot_tell: "period, priority, missed releases, how far beyond the histogram",
        },
        Writer {
            program: "rtla",
            file: "rtla osnoise",
            made_with: "`rtla osnoise hist`",
            holds: "stalls, each net of what is nested in it",
            resolution: "the same",
            cannot_tell: "lateness: nothing was due",
        },
    ],
    sniff: Sniff::Line(is_line),
    read,
};

/// The first line.
fn is_line(line: &str) -> bool {
    ["# RTLA timerlat histogram", "# RTLA osnoise histogram"].iter().any(|s| line.starts_with(s))
}

/// A file of its own that it writes, said below the table, by newer versions above it.
fn is_saving(line: &str) -> bool {
    ["  Saving trace to ", "  Saving event "].iter().any(|start| line.starts_with(start))
}

/// Reads a whole file.
fn read(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    file.source.program = "rtla";
    let mut lines = Lines::new(reader);
    let mut table = Table::default();
    let (mut unit_ns, mut totals) = (None, false);
    while let Some(line) = lines.advance()? {
        let line = line.trim_end();
        if let Some(tool) = line.strip_prefix("# RTLA ") {
            if !file.source.format.is_empty() {
                return Err(lines.refuse("a second histogram; a file must hold one"));
            }
            let osnoise = tool.starts_with("osnoise");
            file.source.format = if osnoise { "rtla osnoise hist" } else { "rtla timerlat hist" };
        } else if let Some(unit) = line.strip_prefix("# Time unit is ") {
            unit_ns = Some(if unit.contains("(ns)") { 1 } else { 1_000 });
        } else if line.ends_with("events missed, results might not be accurate") {
            file.warnings.push(format!("rtla lost events: {}", clean(line, 80)));
            let count = line.split_once(' ').map_or(line, |(count, _)| count);
            match count {
                // It could not count them.
                "unknown" => {
                    file.cannot_know(&["how many events went unrecorded: rtla does not know it"]);
                }
                count => table.lost = whole(count).map_err(|why| lines.refuse(why))?,
            }
        } else if line.ends_with("hit stop tracing") {
            file.ended_early = true;
            // Its analysis of the one wake that stopped it follows.
            break;
        } else if line.starts_with("ALL") {
            // Newer versions add totals of all CPUs below.
            totals = true;
        } else if let Some(headings) = line.strip_prefix("Index") {
            if !table.columns.is_empty() {
                return Err(lines.refuse("a second heading Index; a histogram has one"));
            }
            table.columns = headings.split_whitespace().map(str::to_owned).collect();
        } else if !(totals || line.is_empty() || line.starts_with('#') || is_saving(line)) {
            table.take(line).map_err(|why| lines.refuse(why))?;
        }
    }
    let unit_ns = unit_ns.ok_or_else(|| lines.refuse("no line states the unit"))?;
    about(file);
    table.close(file, unit_ns).map_err(|why| lines.refuse(why))?;
    Ok(Place::Line(lines.number()))
}

fn about(file: &mut Reading<'_>) {
    file.cannot_know(&[
        "the width of a bucket and the end of the histogram: rtla does not print them",
    ]);
    if file.source.format == "rtla osnoise hist" {
        file.cannot_know(&[
            "lateness: there are no releases; a value is one interference without those nested in \
            it",
        ]);
    } else {
        file.cannot_know(&[
            "period, priority and missed releases: rtla does not print them",
            "what a user-space loop would see, except in the Usr columns: IRQ is the start of the \
             timer's handler, Thr that of a kernel thread",
        ]);
    }
}

impl Table {
    fn take(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        let columns = self.columns.len();
        if columns == 0 {
            return Err(
                "no heading Index above the rows: rtla was started with --no-index or --no-header"
                    .to_owned(),
            );
        }
        if let Some(at) = SUMMARY.iter().position(|name| *name == first) {
            let words: Vec<String> = words.map(str::to_owned).collect();
            if words.len() != columns {
                return Err(format!("{} numbers, expected {columns}", words.len()));
            }
            self.summary[at] = Some(words);
            return Ok(());
        }
        if self.summary[0].is_some() {
            let shown = shortened(line.as_bytes());
            return Err(format!("unexpected text below the histogram: {shown:?}"));
        }
        let row = whole(first)?;
        if self.rows.last().is_some_and(|last| row <= *last) {
            return Err(format!("row {row} is not above the previous row"));
        }
        if self.cells.len() + columns > CELLS_MAX {
            return Err(format!("more than {CELLS_MAX} counts"));
        }
        self.rows.push(row);
        let before = self.cells.len();
        for word in words {
            self.cells.push(whole(word)?);
        }
        match self.cells.len() - before {
            counts if counts == columns => Ok(()),
            counts => Err(format!("{counts} counts, expected {columns}")),
        }
    }

    fn close(self, file: &mut Reading<'_>, unit_ns: i64) -> Result<(), String> {
        let [over, rest @ ..] = &self.summary;
        let over = over.as_ref().ok_or("the file ends without the line over:")?;
        // With --no-summary all four are missing; some of them alone, and the file was cut.
        let given = rest.iter().flatten().count();
        if given != 0 && given != rest.len() {
            return Err("the file ends within its summary".to_owned());
        }
        let width = self.rows.iter().copied().fold(0, gcd).max(1);
        let width_ns = scaled(width, unit_ns)?;
        let last = self.rows.last().map_or(Ok(0), |row| scaled(*row, unit_ns))?;
        for (at, heading) in self.columns.iter().enumerate() {
            let mut run = column(file, heading, width_ns)?;
            for (row, cells) in self.rows.iter().zip(self.cells.chunks(self.columns.len())) {
                let lowest = scaled(*row, unit_ns)?;
                run.push(lowest, lowest + width_ns - 1, cells[at])?;
            }
            run.stated.beyond = Some(whole(&over[at])?);
            run.stated.limit_ns = Some(last + if self.rows.is_empty() { 0 } else { width_ns });
            run.stated.rounding_ns = unit_ns - 1;
            // Of which column they were it does not print: each may lack all of them, but for one
            // that nothing came for.
            run.stated.unrecorded = self.lost;
            if let [Some(count), Some(min), Some(avg), Some(max)] = rest {
                let n = whole(&count[at])?;
                run.stated.n = Some(n);
                run.stated.unrecorded = if n == 0 { 0 } else { self.lost };
                let number = |word: &str| match word {
                    "-" => Ok(None),
                    NO_MINIMUM if n == 0 => Ok(None),
                    word => decimal_ns(word, unit_ns).map(Some),
                };
                run.stated.min_ns = number(&min[at])?;
                run.stated.mean_ns = number(&avg[at])?;
                run.stated.max_ns = number(&max[at])?;
            }
            file.add(run)?;
        }
        Ok(())
    }
}

/// The run of a column.
fn column(file: &Reading<'_>, heading: &str, width_ns: i64) -> Result<RunBuilder, String> {
    let unknown = || format!("not a column of rtla: {:?}", shortened(heading.as_bytes()));
    let (kind, cpu) = heading.split_once('-').ok_or_else(unknown)?;
    let cpu = u32::try_from(whole(cpu).map_err(|_| unknown())?).map_err(|_| unknown())?;
    let osnoise = file.source.format == "rtla osnoise hist";
    let (name, holds) = match kind {
        "IRQ" if !osnoise => (format!("CPU {cpu}, interrupt"), ImportedQuantity::InterruptLateness),
        "Thr" if !osnoise => (format!("CPU {cpu}, kernel thread"), ImportedQuantity::Lateness),
        "Usr" if !osnoise => {
            (format!("CPU {cpu}, return to user space"), ImportedQuantity::Lateness)
        }
        "CPU" if osnoise => (format!("CPU {cpu}"), ImportedQuantity::Stall),
        _ => return Err(unknown()),
    };
    let mut run = RunBuilder::new(name, holds, width_ns, &file.request.thresholds_ns);
    run.stated.cpu = Some(cpu);
    Ok(run)
}

fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Import, ImportRequest, detect};

    const HEAD: &str = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n\
                        # Duration:   0 00:00:05\nIndex   IRQ-000   Thr-000   Usr-000\n";
    const TABLE: &str = "10            1         0         0\n20            4         3         0\n\
                         over:         1         3         0\ncount:        6         6         0\n\
                         min:         11        20 18446744073709551615\n\
                         avg:         19        40         -\n\
                         max:         50        77         0\n";
    const TOTALS: &str = "ALL:        IRQ       Thr\ncount:        6         6\nmin: 11 20\n";

    fn import(text: &str) -> Result<Import, String> {
        assert_eq!(detect(text.as_bytes()), Some(&FORMAT));
        let request = ImportRequest::default();
        crate::formats::read(&FORMAT, text.as_bytes(), &request).map_err(|why| why.to_string())
    }

    /// What each version prints around the table where a limit stops it.
    #[test]
    fn the_table_ends_where_a_limit_stopped_it() {
        let saving = "  Saving trace to timerlat_trace.txt\n";
        let analysis =
            "## CPU 0 hit stop tracing, analyzing it ##\n  IRQ handler delay: 27.49 us\n";
        for (above, totals, stopped) in [
            ("", "", "rtla timelat hit stop tracing\n"),
            ("", "", "rtla timerlat hit stop tracing\n"),
            ("", TOTALS, "rtla timerlat hit stop tracing\n"),
            ("", "", "rtla osnoise hit stop tracing\n"),
            (saving, TOTALS, "timerlat hit stop tracing\n"),
            (saving, TOTALS, ""),
        ] {
            let below = if stopped.is_empty() { "" } else { analysis };
            let text = format!("{above}{HEAD}{TABLE}{totals}{saving}{stopped}{below}");
            let import = import(&text).unwrap_or_else(|why| panic!("{stopped:?}: {why}"));
            assert_eq!(import.ended_early, !stopped.is_empty(), "{text}");
            let runs = import.runs;
            let cycles: Vec<u64> = runs.iter().map(|run| run.outcome.cycles).collect();
            assert_eq!(cycles, [6, 6, 0], "{text}");
            let values = |at: usize| runs[at].outcome.imported.as_ref().unwrap().values_ns.clone();
            assert_eq!((values(1).min, values(1).max), (Some(20e3), Some(77e3)));
            assert_eq!((values(2).min, values(2).max), (None, None), "no value, no minimum");
        }
        let unknown = import(&format!("{HEAD}{TABLE}whatever\n")).unwrap_err();
        assert!(unknown.contains("unexpected text below the histogram"), "{unknown}");
        let no_minimum = TABLE.replace("6         0\nmin", "6         1\nmin");
        let refused = import(&format!("{HEAD}{no_minimum}")).unwrap_err();
        assert!(refused.contains(NO_MINIMUM), "{refused}");
    }

    #[test]
    fn events_that_rtla_lost_are_a_warning_and_unrecorded() {
        for totals in ["", TOTALS] {
            let lost = "12 (0.50%) events missed, results might not be accurate\n";
            let import = import(&format!("{HEAD}{TABLE}{totals}{lost}")).unwrap();
            let [warning] = &import.warnings[..] else { panic!("{:?}", import.warnings) };
            assert!(warning.starts_with("rtla lost events: 12 (0.50%) events missed"), "{warning}");
            let unrecorded: Vec<u64> =
                import.runs.iter().map(|run| run.outcome.unrecorded).collect();
            assert_eq!(unrecorded, [12, 12, 0]);
        }
        let lost = "unknown number of events missed, results might not be accurate\n";
        let import = import(&format!("{HEAD}{TABLE}{lost}")).unwrap();
        let outcome = &import.runs[0].outcome;
        let unknown = &outcome.imported.as_ref().unwrap().cannot_know;
        assert!(unknown.iter().any(|fact| fact.starts_with("how many events")), "{unknown:?}");
        assert_eq!((outcome.unrecorded, import.warnings.len()), (0, 1));
    }
}
