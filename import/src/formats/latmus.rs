//! latmus of EVL and Xenomai 4: the gnuplot file of `-g`, a header that describes itself, then a
//! row a microsecond.
//!
//! Source: libevl, tidbits/latmus.c (`dump_gnuplot`), and its later form with several columns. The
//! first form counted one too many in each row, so that a log scale shows all, and wrote no sample
//! count, by which it is recognised.

use std::io::Read;

use super::run::RunBuilder;
use super::{Format, Place, RUNS_MAX, Reading, Sniff, Writer};
use crate::text::{ImportError, Lines, clean, decimal_ns, scaled, shortened, whole};
use punctual_analysis::imported::ImportedQuantity;

const CELL_NS: i64 = 1_000;

/// The header.
#[derive(Default)]
struct Header {
    period_ns: Option<u64>,
    holds: Option<ImportedQuantity>,
    priority: Option<u8>,
    cpu: Option<u32>,
    /// The series by name, in the order of the columns; one without a name in most files.
    series: Vec<Series>,
}

/// The header of one column.
#[derive(Default)]
struct Series {
    name: String,
    n: Option<u64>,
    missed: u64,
    min_ns: Option<f64>,
    mean_ns: Option<f64>,
    max_ns: Option<f64>,
}

/// Its row in the table of formats.
pub(super) const FORMAT: Format = Format {
    name: "latmus",
    writers: &[Writer {
        program: "latmus",
        file: "latmus of EVL, Xenomai 4",
        made_with: "`latmus -g F`",
        holds: "lateness; context irq: of the interrupt; gpio: responses",
        resolution: "1 ns for min, mean, max; 1 µs for the histogram",
        cannot_tell: "how far beyond the last cell; order",
    }],
    sniff: Sniff::Line(is_line),
    read,
};

/// A line of the header.
fn is_line(line: &str) -> bool {
    line.starts_with("# sampling period: ")
}

/// Reads a whole file.
fn read(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    file.source.format = "latmus -g";
    file.source.program = "latmus";
    file.cannot_know(&["interval and grid: there are no instants"]);
    let mut lines = Lines::new(reader);
    let mut header = Header::default();
    let mut ended = false;
    while let Some(line) = lines.advance()? {
        let line = line.trim();
        if let Some(text) = line.strip_prefix('#') {
            header.take(file, text.trim()).map_err(|why| lines.refuse(why))?;
        } else if ended {
            return Err(lines.refuse("there is text after the last row"));
        } else if !line.is_empty() {
            // /proc/cmdline may be long, and stands without a mark.
            if file.runs.is_empty() && !line.starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            ended = row(file, &header, line).map_err(|why| lines.refuse(why))?;
        }
    }
    for run in &mut file.runs {
        close(run).map_err(|why| lines.refuse(why))?;
    }
    Ok(Place::Line(lines.number()))
}

/// A last row without a mark is the end of the histogram: nothing is beyond it.
fn close(run: &mut RunBuilder) -> Result<(), String> {
    let reaches =
        run.stated.limit_ns.zip(run.stated.max_ns).is_some_and(|(end, max)| max < end as f64);
    if run.stated.n.is_none() && !reaches {
        return Err(
            "the rows end below the stated maximum: the file was cut, or its last row also \
             counts all larger values, which this format does not record"
                .to_owned(),
        );
    }
    run.stated.beyond.get_or_insert(0);
    Ok(())
}

impl Header {
    fn take(&mut self, file: &mut Reading<'_>, text: &str) -> Result<(), String> {
        let Some((name, value)) = text.split_once(": ") else { return Ok(()) };
        let value = value.trim();
        match name {
            "test started on" | "Test started on" => file.started_at = Some(clean(value, 80)),
            "libevl version" => file.source.version = Some(clean(value, 80)),
            "sampling period" => {
                let us = value.strip_suffix(" microseconds").ok_or(
                    "the period is not in \
                                            microseconds",
                )?;
                self.period_ns = whole(us)?.checked_mul(1_000);
            }
            "context" => {
                self.holds = Some(match value {
                    value if value.contains("gpio") => ImportedQuantity::Response,
                    value if value.contains("irq") => ImportedQuantity::InterruptLateness,
                    _ => ImportedQuantity::Lateness,
                });
            }
            "thread priority" => self.priority = u8::try_from(whole(value)?).ok(),
            "thread affinity" => {
                let cpu = value.strip_prefix("CPU").unwrap_or_default();
                let digits = cpu.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
                self.cpu = digits.parse().ok();
            }
            _ => self.number(name, value)?,
        }
        Ok(())
    }

    /// `min latency`, or `NAME min latency` where there are several.
    fn number(&mut self, name: &str, value: &str) -> Result<(), String> {
        const NAMES: [&str; 5] = ["min", "avg", "max", "sample count", "OVERRUNS"];
        // min, avg and max stand before the program's own word for a lateness.
        let name = name.strip_suffix("latency").unwrap_or(name).trim_end();
        let Some(at) = NAMES.iter().position(|number| name.ends_with(number)) else {
            return Ok(());
        };
        let series = name[..name.len() - NAMES[at].len()].trim();
        let place = self.series.iter().position(|known| known.name == series);
        let place = place.unwrap_or(self.series.len());
        if place == self.series.len() {
            if place == RUNS_MAX {
                return Err(format!("more than {RUNS_MAX} series"));
            }
            self.series.push(Series { name: series.to_owned(), ..Series::default() });
        }
        let series = &mut self.series[place];
        match at {
            0 => series.min_ns = Some(decimal_ns(value, CELL_NS)?),
            1 => series.mean_ns = Some(decimal_ns(value, CELL_NS)?),
            2 => series.max_ns = Some(decimal_ns(value, CELL_NS)?),
            3 => series.n = Some(whole(value)?),
            _ => series.missed = whole(value)?,
        }
        Ok(())
    }

    /// The run of a column.
    fn run(&self, file: &Reading<'_>, series: &Series) -> Result<RunBuilder, String> {
        let holds = self.holds.ok_or("there is no context above the first row")?;
        if series.min_ns.is_none() || series.mean_ns.is_none() || series.max_ns.is_none() {
            return Err("there are no min, avg and max above the first row".to_owned());
        }
        let name = if series.name.is_empty() { "latmus" } else { series.name.as_str() };
        let mut run = RunBuilder::new(name, holds, CELL_NS, &file.request.thresholds_ns);
        run.stated.period_ns = self.period_ns;
        run.stated.cpu = self.cpu;
        run.stated.priority = self.priority;
        run.stated.missed = Some(series.missed);
        // RunBuilder to a nanosecond; the mean is cut to one.
        run.stated.rounding_ns = 1;
        (run.stated.n, run.stated.min_ns, run.stated.mean_ns, run.stated.max_ns) =
            (series.n, series.min_ns, series.mean_ns, series.max_ns);
        Ok(run)
    }
}

/// One row; whether it is the last, which takes in all that is larger.
fn row(file: &mut Reading<'_>, header: &Header, line: &str) -> Result<bool, String> {
    if file.runs.is_empty() {
        for series in &header.series {
            let run = header.run(file, series)?;
            file.add(run)?;
        }
    }
    let mut words = line.split_whitespace();
    let cell = words.next().unwrap_or_default();
    let (cell, last) = cell.strip_suffix('+').map_or((cell, false), |cell| (cell, true));
    let lowest = scaled(whole(cell)?, CELL_NS)?;
    let counts = words.clone().count();
    if counts != file.runs.len() || counts == 0 {
        let shown = shortened(line.as_bytes());
        return Err(format!("{counts} counts for {} series: {shown:?}", file.runs.len()));
    }
    for (run, word) in file.runs.iter_mut().zip(words) {
        let count = whole(word)?;
        let count = match run.stated.n {
            Some(_) => count,
            None => count.checked_sub(1).ok_or("a count of 0 in a file without sample count")?,
        };
        if run.stated.limit_ns.is_some_and(|next| lowest < next) {
            return Err(format!("row {cell} is not above the previous row"));
        }
        run.stated.limit_ns = Some(lowest + CELL_NS);
        let beyond = run.stated.max_ns.is_some_and(|max| max >= (lowest + CELL_NS) as f64);
        if last && beyond {
            run.stated.beyond = Some(count);
            run.stated.limit_ns = Some(lowest);
        } else {
            run.push(lowest, lowest + CELL_NS - 1, count)?;
        }
    }
    Ok(last)
}
