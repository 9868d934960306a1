//! Samples from CSV: one instant or one lateness a line.
//!
//! Streaming: one line and one block of samples are held. Numbers are read as decimals, exactly,
//! and rounded to the nearest ns. A bad line ends the reading with its number and its text; nothing
//! is skipped silently except blank lines.
//!
//! *Lateness*: lines are cycles 0, 1, 2 … *Instants* must not decrease; k is counted from wake to
//! wake ([`punctual_analysis::gridfit::count`]), and a sample's lateness is its deviation from the nominal grid
//! through the first instant. That is no lateness where the clocks drift: record it with
//! [`punctual_analysis::recording::ReleaseInstants::Unknown`], or `Fitted` in a second pass.

mod column;
mod error;
mod line;

use std::io::Read;

use punctual_core::sample::{CYCLE_MAX, Flags, Sample};
use punctual_core::time::{Instant, Period, Span};

pub use column::{ColumnError, ColumnKind, ColumnSpec, TimeUnit};
pub use error::{CsvError, shortened};
use line::{BOTH_WAYS, Lines, Separator};
use punctual_analysis::gridfit::count::{Counter, NumberedWake};
use punctual_analysis::quantity::decimal::{Decimal, Scaled};

/// Samples in a block.
const BLOCK_SAMPLES: usize = 4096;

/// A CSV file being read.
#[derive(Debug)]
pub struct CsvFile<'r> {
    lines: Lines<'r>,
    spec: ColumnSpec,
    kind: ColumnKind,
    column: usize,
    /// Fields of the first line.
    columns: usize,
    separator: Separator,
    /// What was found out from the first line that is not blank.
    begun: bool,
    grid: Option<Wakes>,
    cycle: u64,
    samples: Vec<Sample>,
    done: bool,
    /// Why it is done, until the samples before that have been given.
    refused: Option<CsvError>,
}

/// The state of a column of instants.
#[derive(Debug)]
struct Wakes {
    counter: Counter,
    period: Period,
    /// First and latest instant, ns.
    first: Option<u64>,
    latest: u64,
}

impl<'r> CsvFile<'r> {
    /// A reader of one column. Instants need the nominal period.
    ///
    /// The kind of the column is its name where that says so (`instant`, `lateness`); any other
    /// name is a column of a header, and is instants when a period is given, lateness otherwise.
    ///
    /// # Errors
    /// A column of instants without a period.
    pub fn open(
        reader: impl Read + 'r,
        spec: ColumnSpec,
        period: Option<Period>,
    ) -> Result<Self, CsvError> {
        let kind = spec.kind(period.is_some());
        let grid = match (kind, period) {
            (ColumnKind::Lateness, _) => None,
            (ColumnKind::Instant, None) => return Err(CsvError::NoPeriod),
            (ColumnKind::Instant, Some(period)) => {
                Some(Wakes { counter: Counter::new(period), period, first: None, latest: 0 })
            }
        };
        Ok(Self {
            lines: Lines::new(reader),
            spec,
            kind,
            column: 0,
            columns: 1,
            separator: Separator::Comma,
            begun: false,
            grid,
            cycle: 0,
            samples: Vec::with_capacity(BLOCK_SAMPLES + 1),
            done: false,
            refused: None,
        })
    }

    /// Whether the column holds instants or lateness.
    pub fn kind(&self) -> ColumnKind {
        self.kind
    }

    /// The first instant, which is the epoch of the samples; `None` for lateness, or before the
    /// first block.
    pub fn epoch(&self) -> Option<Instant> {
        self.grid.as_ref().and_then(|wakes| wakes.first).map(Instant::from_ns)
    }

    /// The next samples; empty at the end.
    ///
    /// # Errors
    /// A line that cannot be read as the requested columns, or a reader that fails. The samples
    /// before it have been returned already.
    pub fn next_block(&mut self) -> Result<&[Sample], CsvError> {
        self.samples.clear();
        while !self.done && self.samples.len() < BLOCK_SAMPLES {
            let step = match self.lines.advance() {
                Ok(true) => self.take_line(),
                Ok(false) => {
                    self.done = true;
                    Ok(())
                }
                Err(error) => Err(error),
            };
            if let Err(error) = step {
                self.done = true;
                self.refused = Some(error);
            }
        }
        if self.done {
            self.drain();
        }
        match self.refused.take_if(|_| self.samples.is_empty()) {
            Some(error) => Err(error),
            None => Ok(&self.samples),
        }
    }

    fn take_line(&mut self) -> Result<(), CsvError> {
        if self.lines.is_blank() {
            return Ok(());
        }
        if !self.begun {
            self.begun = true;
            if self.take_first_line()? {
                return Ok(());
            }
        }
        let (separator, columns) = (self.separator, self.columns);
        let field = self.lines.field(separator, self.column, columns)?;
        let ns = time_ns(field, self.spec.unit());
        let ns = ns.map_err(|why| self.lines.refuse_text(why, separator, columns))?;
        match self.kind {
            ColumnKind::Lateness => self.take_lateness(ns),
            ColumnKind::Instant => self.take_instant(ns),
        }
    }

    /// Decides separator and column; whether the line was a header.
    fn take_first_line(&mut self) -> Result<bool, CsvError> {
        self.separator = self.lines.separator();
        let fields = self.lines.fields(self.separator)?;
        self.columns = fields.len();
        let is_number =
            |field: &String| matches!(Decimal::split(field.trim().as_bytes()), Some((_, [])));
        let named = fields.iter().position(|field| self.spec.is_named(field));
        if named.is_none() && fields.iter().any(is_number) {
            // No header: of several numbers none is named, or a comma is a decimal one; and only a
            // telling name says what a single one is.
            let numbers = fields.iter().filter(|field| is_number(field)).count();
            return if numbers > 1 {
                Err(self.lines.refuse(format!("{numbers} numbers and no header; {BOTH_WAYS}")))
            } else if self.spec.tells_kind() {
                Ok(false)
            } else {
                Err(CsvError::NoHeader { name: self.spec.name().to_owned() })
            };
        }
        self.column = match named {
            Some(column) => column,
            None if fields.len() == 1 && self.spec.tells_kind() => 0,
            None => {
                return Err(CsvError::NoColumn {
                    name: self.spec.name().to_owned(),
                    columns: shortened(fields.join(", ").as_bytes()),
                });
            }
        };
        Ok(true)
    }

    fn take_lateness(&mut self, ns: i128) -> Result<(), CsvError> {
        let lateness = i64::try_from(ns).map_err(|_| {
            self.lines.refuse(
                "the value is beyond ± 292 \
            years",
            )
        })?;
        if self.cycle > CYCLE_MAX {
            return Err(self.lines.refuse("too many cycles"));
        }
        self.samples.push(sample(self.cycle, lateness));
        self.cycle += 1;
        Ok(())
    }

    fn take_instant(&mut self, ns: i128) -> Result<(), CsvError> {
        let Some(wakes) = &mut self.grid else { return Ok(()) };
        let Ok(wake_ns) = u64::try_from(ns) else {
            let why = if ns < 0 {
                "an instant is negative"
            } else {
                "the instant is beyond 584 \
                                  years"
            };
            return Err(self.lines.refuse(why));
        };
        if wakes.first.is_some() && wake_ns < wakes.latest {
            return Err(self.lines.refuse("the instant is before the previous one"));
        }
        wakes.first.get_or_insert(wake_ns);
        wakes.latest = wake_ns;
        if let Some(counted) = wakes.counter.push(wake_ns) {
            match wakes.deviation(counted) {
                Some(sample) => self.samples.push(sample),
                None => {
                    return Err(self.lines.refuse(
                        "the instant is too far from the grid of \
                                                     this period",
                    ));
                }
            }
        }
        Ok(())
    }

    /// What the counter still buffers, at most a block's worth.
    fn drain(&mut self) {
        let Some(wakes) = &mut self.grid else { return };
        while self.samples.len() < BLOCK_SAMPLES
            && let Some(counted) = wakes.counter.finish()
        {
            self.samples.extend(wakes.deviation(counted));
        }
    }
}

impl Wakes {
    /// The sample of a counted wake; `None` beyond what a sample can hold.
    fn deviation(&self, counted: NumberedWake) -> Option<Sample> {
        let elapsed = i128::from(counted.wake_ns) - i128::from(self.first.unwrap_or_default());
        let release = i128::from(counted.cycle) * i128::from(self.period.as_ns());
        let lateness = i64::try_from(elapsed - release).ok()?;
        (counted.cycle <= CYCLE_MAX).then(|| sample(counted.cycle, lateness))
    }
}

fn sample(cycle: u64, lateness_ns: i64) -> Sample {
    let flags = if cycle == 0 { Flags::FIRST } else { Flags::NONE };
    Sample { cycle, lateness: Span::from_ns(lateness_ns), flags }
}

/// A field as ns, rounded to the nearest.
fn time_ns(field: &[u8], unit: TimeUnit) -> Result<i128, &'static str> {
    match Decimal::split(field.trim_ascii()) {
        Some((number, [])) => match number.scaled(1, unit.ns_power()) {
            Scaled::Exact(ns) | Scaled::Rounded(ns) => Ok(ns),
            Scaled::TooLarge => Err("the number is too large"),
        },
        _ => Err("not a number"),
    }
}

/// Reads all of `bytes` as CSV and returns how many samples came: the whole reader behind one call,
/// for tests and fuzzing.
///
/// # Errors
/// As [`CsvFile::open`] and [`CsvFile::next_block`].
pub fn count_samples(
    bytes: &[u8],
    spec: ColumnSpec,
    period: Option<Period>,
) -> Result<u64, CsvError> {
    let mut file = CsvFile::open(bytes, spec, period)?;
    let mut samples = 0;
    loop {
        match file.next_block()?.len() {
            0 => return Ok(samples),
            more => samples += more as u64,
        }
    }
}

#[cfg(test)]
mod tests;
