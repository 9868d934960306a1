//! Samples from CSV: one instant or one lateness a line.
//!
//! Streaming: one line and one block of samples are held. Numbers are read as decimals, exactly,
//! and rounded to the nearest ns. A bad line ends the reading with its number and its text, and so
//! does a last line without a line end, which may have been cut within a number; nothing is skipped
//! silently except blank lines.
//!
//! *Lateness*: lines are cycles 0, 1, 2 … *Instants* must not decrease; k is counted from wake to
//! wake ([`punctual_analysis::gridfit::Counter`]), and a sample's lateness is its deviation from
//! the nominal grid through the first instant. That is no lateness where the clocks drift: record
//! it with [`punctual_analysis::recording::ReleaseInstants::Unknown`], or `Fitted` in a second
//! pass.

use std::borrow::Cow;
use std::fmt;
use std::io::{ErrorKind, Read};

use punctual_analysis::gridfit::{Counter, NumberedWake};
use punctual_analysis::quantity::decimal::{Decimal, Scaled};
use punctual_core::sample::{CYCLE_MAX, Flags, Sample};
use punctual_core::time::{Instant, Period, Span};

use crate::text::shortened;

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
    /// True once the first line that is not blank was read.
    begun: bool,
    grid: Option<Wakes>,
    cycle: u64,
    samples: Vec<Sample>,
    done: bool,
    /// Why it is done, until the samples before that have been given.
    refused: Option<CsvError>,
}

impl<'r> CsvFile<'r> {
    /// A reader of one column. Instants need the nominal period.
    ///
    /// The kind of the column is its name where that is one (`instant`, `lateness`, and what
    /// begins with one of them and `_`, as `lateness_ns`); any other
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

    /// The kind of the column: instants or lateness.
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
        let ns = match time_ns(field, self.spec.unit()) {
            Ok(ns) => ns,
            Err(why) => {
                let why = why.to_owned() + &without_value(field, separator, self.column);
                return Err(self.lines.refuse_text(&why, separator, columns));
            }
        };
        // What is left of a cut number is a number too, and a smaller one.
        if !self.lines.has_end() {
            return Err(self.lines.refuse(NO_END));
        }
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
        // A line of numbers alone is no header, whatever the column is called.
        let is_data = fields.iter().all(is_number);
        let named = fields.iter().position(|field| self.spec.is_named(field));
        let named = named.filter(|_| !is_data);
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
            let way_out = match self.spec.kind(false) {
                ColumnKind::Instant => "",
                ColumnKind::Lateness => "; without --period the column is read as latenesses",
            };
            let why = format!("the instant is before the previous one{way_out}");
            return Err(self.lines.refuse(why));
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

    /// Samples that the counter still buffers, a block at most.
    fn drain(&mut self) {
        let Some(wakes) = &mut self.grid else { return };
        while self.samples.len() < BLOCK_SAMPLES
            && let Some(counted) = wakes.counter.finish()
        {
            self.samples.extend(wakes.deviation(counted));
        }
    }
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
    if let Some(number) = whole(field) {
        return Ok(i128::from(number) * 10i128.pow(unit.ns_power().unsigned_abs()));
    }
    match Decimal::split(field.trim_ascii()) {
        Some((number, [])) => match number.scaled(1, unit.ns_power()) {
            Scaled::Exact(ns) | Scaled::Rounded(ns) => Ok(ns),
            Scaled::TooLarge => Err("the number is too large"),
        },
        _ => Err("not a number"),
    }
}

/// A field of nothing but up to 18 digits, which most are: several times quicker than [`Decimal`],
/// for which the others are left.
fn whole(field: &[u8]) -> Option<i64> {
    if field.is_empty() || field.len() > 18 {
        return None;
    }
    field.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
    })
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

/// A CSV file that was refused.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// Instants without a nominal period.
    #[error("instants need the nominal period: --period 500us")]
    NoPeriod,
    /// The first line is data, and the name does not determine its kind.
    #[error("no header, so the column must be named instant or lateness, not {name:?}")]
    NoHeader {
        /// The requested name.
        name: String,
    },
    /// The header has no such column.
    #[error("no column {name:?}; the columns are: {columns:?}")]
    NoColumn {
        /// The requested name.
        name: String,
        /// The header, shortened.
        columns: String,
    },
    /// A line that cannot be read as the requested column.
    #[error("line {line}: {why}: {text:?}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// The defect, in words.
        why: String,
        /// Its text, shortened.
        text: String,
    },
    /// A line beyond all bounds.
    #[error("line {line}: longer than {LINE_BYTES_MAX} bytes")]
    TooLong {
        /// Its number, from 1.
        line: u64,
    },
    /// Reading failed.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

/// A longer line is no line of numbers.
const LINE_BYTES_MAX: usize = 65_536;

/// The ways out where a line may be one number with a decimal comma, or several.
const BOTH_WAYS: &str = "for a decimal comma write a point, for several columns name \
                                    each in a first line";

/// The way out where a line has semicolons and the first one has none.
const SEMICOLON: &str = "; ';' is no separator here, because it is none in the first line: \
                                    name the columns there with ';' between them, or make \
                                    commas with tr ';' ','";

/// Cells that programs write where they have no value.
const NO_VALUES: [&str; 8] = ["", "na", "n/a", "nan", "null", "none", "-", "?"];

/// The way out where a cell has no value: none is made up, and no line is left out silently.
fn without_value(field: &[u8], separator: Separator, column: usize) -> String {
    // As it is behind the command, which takes returns out.
    let cell = String::from_utf8_lossy(field).replace('\r', "");
    if !NO_VALUES.contains(&cell.trim().to_ascii_lowercase().as_str()) {
        return String::new();
    }
    let separator = match separator {
        Separator::Comma => ",",
        Separator::Semicolon => ";",
        Separator::Tab => "\\t",
    };
    let refused = if cell.trim().is_empty() { "an empty cell" } else { "a cell without a value" };
    format!(
        " but {refused}; take out such lines first, e.g. tr -d '\\r' < FILE | awk -F'{separator}' \
         '${} != \"{cell}\"' (of instants each counts as a missed release then)",
        column + 1
    )
}

/// Why a last line without an end is refused, and the way out where it is whole.
const NO_END: &str = "the last line has no end: if it was not cut, add one";

const BUFFER_BYTES: usize = 2 * LINE_BYTES_MAX;

/// The separator of fields.
///
/// Holds one buffer; finds lines (LF or CR LF), skips a byte order mark, takes fields apart (quoted
/// ones included). Returns bytes; interprets no numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Comma,
    Semicolon,
    Tab,
}

impl Separator {
    fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
        }
    }
}

/// A source of lines, standing on one of them. What it reads from is boxed, not a parameter, so
/// that the loops over lines are compiled here, whatever the crate that reads is built with.
struct Lines<'r> {
    reader: Box<dyn Read + 'r>,
    buffer: Vec<u8>,
    /// The present line, without its end; and where the next one begins.
    start: usize,
    end: usize,
    next: usize,
    /// The number of bytes in the buffer.
    filled: usize,
    at_end: bool,
    number: u64,
    unquoted: Vec<u8>,
}

impl<'r> Lines<'r> {
    fn new(reader: impl Read + 'r) -> Self {
        Self {
            reader: Box::new(reader),
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            next: 0,
            filled: 0,
            at_end: false,
            number: 0,
            unquoted: Vec::new(),
        }
    }

    /// Goes to the next line; false at the end.
    fn advance(&mut self) -> Result<bool, CsvError> {
        self.start = self.next;
        self.number += 1;
        let mut searched = self.start;
        loop {
            let end = self.buffer[searched..self.filled].iter().position(|&byte| byte == b'\n');
            if let Some(end) = end.map(|end| searched + end) {
                self.next = end + 1;
                return self.stand_on(end);
            }
            if self.at_end {
                self.next = self.filled;
                return if self.start < self.filled {
                    self.stand_on(self.filled)
                } else {
                    Ok(false)
                };
            }
            if self.filled - self.start > LINE_BYTES_MAX {
                return Err(CsvError::TooLong { line: self.number });
            }
            searched = self.fill()?;
        }
    }

    /// Reads more behind what is there; where the new bytes begin.
    fn fill(&mut self) -> Result<usize, CsvError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
        }
        let before = self.filled;
        match self.reader.read(&mut self.buffer[before..]) {
            Ok(0) => self.at_end = true,
            Ok(bytes) => self.filled += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        Ok(before)
    }

    fn stand_on(&mut self, end: usize) -> Result<bool, CsvError> {
        if end - self.start > LINE_BYTES_MAX {
            return Err(CsvError::TooLong { line: self.number });
        }
        if self.number == 1 && self.buffer[self.start..end].starts_with(b"\xef\xbb\xbf") {
            self.start += 3;
        }
        self.end = end;
        if self.buffer[self.start..end].ends_with(b"\r") {
            self.end -= 1;
        }
        Ok(true)
    }

    fn line(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns true where a line end follows; only the last line may lack it.
    fn has_end(&self) -> bool {
        self.buffer[..self.next].ends_with(b"\n")
    }

    fn is_blank(&self) -> bool {
        self.line().trim_ascii().is_empty()
    }

    /// The separator that the line shows: tab before semicolon before comma.
    fn separator(&self) -> Separator {
        let line = self.line();
        if line.contains(&b'\t') {
            Separator::Tab
        } else if line.contains(&b';') {
            Separator::Semicolon
        } else {
            Separator::Comma
        }
    }

    /// One field of the line, from 0, where the first line has so many `columns`.
    fn field(
        &mut self,
        separator: Separator,
        at: usize,
        columns: usize,
    ) -> Result<&[u8], CsvError> {
        let mut rest = &self.buffer[self.start..self.end];
        for column in 0.. {
            let (field, after) = split(rest, separator).ok_or_else(|| self.unclosed())?;
            if column == at {
                // Fields at most: those in quotes may hold separators.
                let more = after.map_or(0, |after| {
                    1 + after.iter().filter(|&&byte| byte == separator.byte()).count()
                });
                if column + 1 + more > columns {
                    self.refuse_more(separator, columns)?;
                }
                return Ok(match field {
                    Cow::Borrowed(field) => field,
                    Cow::Owned(field) => {
                        self.unquoted = field;
                        &self.unquoted
                    }
                });
            }
            match after {
                Some(after) => rest = after,
                None => break,
            }
        }
        let semicolon = self.semicolon(separator == Separator::Semicolon);
        Err(self.refuse(format!("column {} is missing{semicolon}", at + 1)))
    }

    /// The way out where semicolons stand in the line, and separate nothing.
    fn semicolon(&self, is_separator: bool) -> &'static str {
        if !is_separator && self.line().contains(&b';') { SEMICOLON } else { "" }
    }

    /// All fields of the line, as text.
    fn fields(&self, separator: Separator) -> Result<Vec<String>, CsvError> {
        let mut fields = Vec::new();
        let mut rest = Some(self.line());
        while let Some(line) = rest {
            let (field, after) = split(line, separator).ok_or_else(|| self.unclosed())?;
            fields.push(String::from_utf8_lossy(&field).trim().to_owned());
            rest = after;
        }
        Ok(fields)
    }

    /// Refuses a line of more fields than the first one has: a decimal comma looks like that.
    fn refuse_more(&self, separator: Separator, columns: usize) -> Result<(), CsvError> {
        let fields = self.fields(separator)?;
        let filled = fields.iter().rposition(|field| !field.is_empty()).map_or(0, |last| last + 1);
        if filled <= columns {
            return Ok(());
        }
        let first = if columns == 1 { "one".to_owned() } else { columns.to_string() };
        let semicolon = self.semicolon(columns > 1);
        Err(self.refuse(format!(
            "{filled} fields, but {first} in the first line; {BOTH_WAYS}{semicolon}"
        )))
    }

    /// Why the requested field of the line is no number.
    fn refuse_text(&self, why: &str, separator: Separator, columns: usize) -> CsvError {
        let own = self.separator();
        let refused = (own != separator).then(|| self.refuse_more(own, columns).err()).flatten();
        let is_comma = |byte: &u8| *byte == b',' && separator != Separator::Comma;
        let comma =
            if self.line().iter().any(is_comma) { "; write decimals with a point" } else { "" };
        refused.unwrap_or_else(|| self.refuse(format!("{why}{comma}")))
    }

    fn unclosed(&self) -> CsvError {
        self.refuse("a quote is not closed")
    }

    /// An error about this line.
    fn refuse(&self, why: impl Into<String>) -> CsvError {
        CsvError::Line { line: self.number, why: why.into(), text: shortened(self.line()) }
    }
}

impl fmt::Debug for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A field, and what stands after the separator behind it.
type Split<'a> = (Cow<'a, [u8]>, Option<&'a [u8]>);

/// The first field and what follows its separator; `None` when a quote is not closed.
fn split(line: &[u8], separator: Separator) -> Option<Split<'_>> {
    let separator = separator.byte();
    let begin = line.iter().take_while(|&&byte| byte == b' ').count();
    if line.get(begin) != Some(&b'"') {
        let end = line.iter().position(|&byte| byte == separator).unwrap_or(line.len());
        return Some((Cow::Borrowed(&line[..end]), line.get(end + 1..)));
    }
    let mut field = Vec::new();
    let mut rest = &line[begin + 1..];
    loop {
        let quote = rest.iter().position(|&byte| byte == b'"')?;
        field.extend_from_slice(&rest[..quote]);
        rest = &rest[quote + 1..];
        match rest.strip_prefix(b"\"") {
            // Two quotes inside quotes are one.
            Some(after) => {
                field.push(b'"');
                rest = after;
            }
            None => break,
        }
    }
    let end = rest.iter().position(|&byte| byte == separator).unwrap_or(rest.len());
    Some((Cow::Owned(field), rest.get(end + 1..)))
}

/// The unit of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl TimeUnit {
    /// The power of ten of ns that it is.
    fn ns_power(self) -> i32 {
        match self {
            Self::Ns => 0,
            Self::Us => 3,
            Self::Ms => 6,
            Self::S => 9,
        }
    }
}

/// The quantity of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Instants of wakes.
    Instant,
    /// wake − release.
    Lateness,
}

/// A requested column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    name: String,
    unit: TimeUnit,
}

/// Why an expression does not name a column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    /// No colon.
    #[error("{0:?} has no unit; write NAME:UNIT, e.g. instant:ns or lateness:us")]
    NoUnit(String),
    /// Nothing before the colon.
    #[error("{0:?} has no name; write NAME:UNIT, e.g. instant:ns or lateness:us")]
    NoName(String),
    /// A unit that a column cannot have.
    #[error("{0:?} is not a unit of a column; expected ns, us, ms or s")]
    UnknownUnit(String),
}

impl ColumnSpec {
    /// Reads NAME:UNIT; the last colon counts.
    ///
    /// # Errors
    /// No unit, no name, or a unit other than ns, us, ms, s.
    pub fn parse(text: &str) -> Result<Self, ColumnError> {
        let text = text.trim();
        let Some((name, unit)) = text.rsplit_once(':') else {
            return Err(ColumnError::NoUnit(shortened(text.as_bytes())));
        };
        let unit = match unit.trim() {
            "ns" => TimeUnit::Ns,
            "us" | "µs" | "μs" => TimeUnit::Us,
            "ms" => TimeUnit::Ms,
            "s" => TimeUnit::S,
            "" => return Err(ColumnError::NoUnit(shortened(text.as_bytes()))),
            unit => {
                return Err(ColumnError::UnknownUnit(shortened(unit.as_bytes())));
            }
        };
        match name.trim() {
            "" => Err(ColumnError::NoName(shortened(text.as_bytes()))),
            name => Ok(Self { name: name.to_owned(), unit }),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its unit.
    pub fn unit(&self) -> TimeUnit {
        self.unit
    }

    /// Returns true where it is no name of a column and only says what the single one contains.
    pub fn tells_kind(&self) -> bool {
        ["instant", "lateness"].iter().any(|kind| self.name.eq_ignore_ascii_case(kind))
    }

    /// The kind of the column: its name decides; any other name is instants when there is a period.
    pub fn kind(&self, has_period: bool) -> ColumnKind {
        if self.says("instant") || (has_period && !self.says("lateness")) {
            ColumnKind::Instant
        } else {
            ColumnKind::Lateness
        }
    }

    /// Returns true where its name is this word, or begins with it and `_`, as `lateness_ns` of an
    /// export does.
    fn says(&self, kind: &str) -> bool {
        let word = self.name.split_once('_').map_or(self.name.as_str(), |(word, _)| word);
        word.eq_ignore_ascii_case(kind)
    }

    /// Returns true where a field of a header is this column's: ignoring case and surrounding
    /// space.
    fn is_named(&self, field: &str) -> bool {
        field.trim().eq_ignore_ascii_case(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &[u8], column: &str, period_us: Option<u64>) -> Result<Vec<(u64, i64)>, String> {
        let spec = ColumnSpec::parse(column).map_err(|error| error.to_string())?;
        let period = period_us.and_then(|us| Period::from_ns(us * 1_000));
        let mut file = CsvFile::open(text, spec, period).map_err(|error| error.to_string())?;
        let mut samples = Vec::new();
        loop {
            let block = file.next_block().map_err(|error| error.to_string())?;
            if block.is_empty() {
                return Ok(samples);
            }
            samples.extend(block.iter().map(|s| (s.cycle, s.lateness.as_ns())));
        }
    }

    #[test]
    fn lateness_with_and_without_a_header() {
        let wanted = Ok(vec![(0, 7_600), (1, -250), (2, 1_000_000)]);
        assert_eq!(read(b"7.6\n-0.25\n1e3\n", "lateness:us", None), wanted);
        assert_eq!(
            read(
                b"\xef\xbb\xbfcpu,Lateness\r\n1,7.6\r\n\r\n1,-0.25\r\n1,1000\r\n",
                "lateness:us",
                None
            ),
            wanted
        );
        assert_eq!(
            read(b"n;\"late, ness\"\n1;\"7.6\"\n1;-.25\n1; 1000 \n", "late, ness:us", None),
            wanted
        );
        assert_eq!(read(b"what\n7.6\n-0.25\n1000\n", "lateness:us", None), wanted);
        assert_eq!(read(b"lateness\tn\n7.6\t1\n-0.25\t2\n1000\t3\n", "lateness:us", None), wanted);
        assert_eq!(read(b"lateness\n7.6,\n-0.25,, \n1000\n", "lateness:us", None), wanted);
        assert_eq!(read(b"lateness,n\n7.6\n-0.25,2\n1000,3,\n", "lateness:us", None), wanted);
    }

    #[test]
    fn instants_are_counted_from_wake_to_wake() {
        let text = b"wake,x\n10000000000.000001,0\n10000000000.001011,0\n10000000000.004001,0\n";
        let wanted = Ok(vec![(0, 0), (1, 10_000), (4, 0)]);
        assert_eq!(read(text, "wake:s", Some(1_000)), wanted);
        let text = b"18446744073709000000\n18446744073709551615\n";
        assert_eq!(read(text, "instant:ns", Some(500)).unwrap(), vec![(0, 0), (1, 51_615)]);
    }

    proptest! {
        #[test]
        fn whole_numbers_are_read_as_decimals_are(field in "[0-9]{0,20}|[-+.0-9]{1,4}") {
            let bytes = field.as_bytes();
            let whole = whole(bytes).map(i128::from);
            let decimal = Decimal::split(bytes).filter(|(_, rest)| rest.is_empty());
            let decimal = decimal.map(|(number, _)| match number.scaled(1, 0) {
                Scaled::Exact(value) | Scaled::Rounded(value) => value,
                Scaled::TooLarge => panic!("20 digits are not too large: {field}"),
            });
            let is_plain = field.len() <= 18 && bytes.iter().all(u8::is_ascii_digit);
            prop_assert_eq!(whole, decimal.filter(|_| is_plain));
        }
    }

    #[test]
    fn bad_input_is_refused_with_line_and_text() {
        let refused = |text: &[u8], column, period| read(text, column, period).unwrap_err();
        assert_eq!(refused(b"1\n\n2x\n", "lateness:us", None), "line 3: not a number: \"2x\"");
        assert_eq!(
            refused(b"5\n4\n", "instant:us", Some(1)),
            "line 2: the instant is before the previous one: \"4\""
        );
        assert_eq!(
            refused(b"latency\n5\n4\n", "latency:us", Some(1)),
            "line 3: the instant is before the previous one; without --period the column is read \
             as latenesses: \"4\""
        );
        assert_eq!(
            refused(b"-5\n", "instant:us", Some(1)),
            "line 1: an instant is negative: \"-5\""
        );
        assert_eq!(
            refused(b"1\n", "instant:us", None),
            "instants need the nominal period: --period 500us"
        );
        let advice = "for a decimal comma write a point, for several columns name each in";
        for text in ["7,6\n0,25\n", "1;2\n", "1\t2\n"] {
            let why = refused(text.as_bytes(), "lateness:us", None);
            assert!(
                why.starts_with("line 1: 2 numbers and no header; ") && why.contains(advice),
                "{why}"
            );
        }
        for text in
            ["lateness\n5\n1,5\n", "5\n6\n1,5\n", "lateness\n5\n1;5\n", "lateness\n5\n1\t5\n"]
        {
            let why = refused(text.as_bytes(), "lateness:us", None);
            let place = "line 3: 2 fields, but one in the first line; ";
            assert!(why.starts_with(place) && why.contains(advice), "{text:?}: {why}");
        }
        let why = refused(b"n,lateness\n1,7,6\n", "lateness:us", None);
        assert!(why.starts_with("line 2: 3 fields, but 2 in the first line; "), "{why}");
        for text in ["n;lateness\n1;7,6\n", "n\tlateness\n1\t\"7,6\"\n"] {
            let why = refused(text.as_bytes(), "lateness:us", None);
            assert!(
                why.starts_with("line 2: not a number; write decimals with a point: "),
                "{why}"
            );
        }
        assert!(
            refused(b"a,b\n1,2\n", "c:us", None)
                .contains("no column \"c\"; the columns are: \"a, b\"")
        );
        assert!(refused(b"1,2\n", "wake:us", Some(1)).contains("no header"));
        assert!(refused(b"1;2\n3;4\n", "1:us", None).contains("2 numbers and no header"));
        assert!(refused(b"a,b\n1\n", "b:us", None).contains("line 2: column 2 is missing"));
        assert!(
            refused(b"\"1\n2\n", "lateness:us", None).contains("line 1: a quote is not closed")
        );
        assert!(refused(b"99999999999999\n", "lateness:s", None).contains("beyond"));
        assert!(refused(&[b'7'; 100_000], "lateness:us", None).contains("line 1: longer than"));
        assert!(refused(b"1\n\xff\xfe\n", "lateness:us", None).starts_with("line 2: not a number"));
        let long = refused(&[b"1\n", &[b'x'; 500][..]].concat(), "lateness:us", None);
        assert!(long.len() < 120, "{long}");
    }

    #[test]
    fn a_cell_without_a_value_and_a_semicolon_have_a_way_out() {
        let refused = |text: &str| {
            let column = ColumnSpec::parse("lateness:us").expect("a column");
            count_samples(text.as_bytes(), column, None).expect_err(text).to_string()
        };
        let cases: [(&str, &[&str]); 5] = [
            ("k,lateness\n0,1\n1,\n", &["line 3: not a number but an empty cell", "'$2 != \"\"'"]),
            ("k;lateness\n0;NA\n", &["a cell without a value", "awk -F';' '$2 != \"NA\"'"]),
            ("lateness\n1\nnan\n", &["line 3: not a number but a cell", "'$1 != \"nan\"'"]),
            ("lateness\n1.5;7\n", &["2 fields, but one", "tr ';' ','"]),
            ("k,lateness\n0;1.5\n", &["line 2: column 2 is missing", "tr ';' ','"]),
        ];
        for (text, words) in cases {
            let why = refused(text);
            assert!(words.iter().all(|word| why.contains(word)), "{why}");
            assert!(!why.contains('\n'), "{why}");
        }
        assert!(!refused("lateness\nx\n").contains("awk"), "damage is no cell without a value");
        assert!(!refused("k;lateness\n1\n").contains("tr "), "it is the separator");
    }

    #[test]
    fn a_last_line_without_an_end_may_be_cut_and_is_refused() {
        let cut = |text: &[u8], column, period| read(text, column, period).unwrap_err();
        assert_eq!(
            cut(b"8.1\n12", "lateness:us", None),
            "line 2: the last line has no end: if it was not cut, add one: \"12\""
        );
        let files: [(&[u8], &str, Option<u64>); 4] = [
            (b"8.1", "lateness:us", None),
            (b"lateness\r\n8.1\r\n12\r", "lateness:us", None),
            (b"n,lateness\n1,8.1\n2,12", "lateness:us", None),
            (b"1000\n2000\n3", "instant:ms", Some(1_000)),
        ];
        for (text, column, period) in files {
            let why = cut(text, column, period);
            let shown = String::from_utf8_lossy(text);
            assert!(why.contains(NO_END), "{shown:?}: {why}");
        }
        // The end counts, not what comes after it; and what is blank is no number.
        for text in [&b"8.1\n12\n"[..], b"8.1\r\n12\r\n", b"8.1\n12\n ", b"8.1\n12\n\n"] {
            assert_eq!(read(text, "lateness:us", None), Ok(vec![(0, 8_100), (1, 12_000)]));
        }
        // A long file, of which the buffer does not hold all at once.
        let long = "12\n".repeat(100_000);
        assert_eq!(read(long.as_bytes(), "lateness:us", None).unwrap().len(), 100_000);
        let why = cut(&long.as_bytes()[..long.len() - 1], "lateness:us", None);
        assert!(why.starts_with("line 100000: the last line has no end"), "{why}");
    }

    #[test]
    fn what_came_before_a_bad_line_is_given() {
        let spec = ColumnSpec::parse("lateness:us").unwrap();
        let mut file = CsvFile::open(&b"1\n2\nx\n3\n"[..], spec, None).unwrap();
        assert_eq!(file.next_block().unwrap().len(), 2);
        assert!(file.next_block().is_err());
        assert!(file.next_block().unwrap().is_empty());
        let spec = ColumnSpec::parse("instant:us").unwrap();
        let mut file = CsvFile::open(&b"1\n2\n3\n1\n"[..], spec, Period::from_ns(1_000)).unwrap();
        assert_eq!(file.next_block().unwrap().len(), 3);
        assert!(file.next_block().is_err());
    }

    #[test]
    fn an_empty_file_has_no_samples() {
        assert_eq!(read(b"", "lateness:us", None), Ok(vec![]));
        assert_eq!(read(b"\n\r\n", "instant:us", Some(1)), Ok(vec![]));
        assert_eq!(read(b"lateness\n", "lateness:us", None), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                "[0-9.,;\"\t\r\n e+-]{0,200}".prop_map(String::into_bytes),
            ],
            instants in any::<bool>(), period in 1u64..u64::MAX,
        ) {
            let column = if instants { "instant:s" } else { "lateness:ns" };
            let spec = ColumnSpec::parse(column).unwrap();
            let _ = count_samples(&bytes, spec, Period::from_ns(period));
        }

        #[test]
        fn latenesses_round_trip(values in prop::collection::vec(any::<i64>(), 0..10_000)) {
            let text: String = values.iter().map(|v| format!("{v}\n")).collect();
            let read = read(text.as_bytes(), "lateness:ns", None).unwrap();
            let read: Vec<i64> = read.into_iter().map(|sample| sample.1).collect();
            prop_assert_eq!(read, values);
        }

        #[test]
        fn instants_round_trip(steps in prop::collection::vec(900u64..1_100, 1..10_000)) {
            let mut at = 0;
            let mut wake = |step: &u64| {
                at += step;
                at
            };
            let wakes: Vec<u64> = steps.iter().map(&mut wake).collect();
            let text: String = wakes.iter().map(|v| format!("{v}\n")).collect();
            let read = read(text.as_bytes(), "instant:ns", Some(1)).unwrap();
            let release = |k: u64| wakes[0] + k * 1_000;
            let again: Vec<u64> =
                read.iter().map(|&(k, d)| release(k).saturating_add_signed(d)).collect();
            prop_assert_eq!(again, wakes);
        }
    }

    #[test]
    fn name_and_unit_are_both_needed() {
        let spec = ColumnSpec::parse(" a:b : us").unwrap();
        assert_eq!((spec.name(), spec.unit()), ("a:b", TimeUnit::Us));
        assert!(matches!(ColumnSpec::parse("instant"), Err(ColumnError::NoUnit(_))));
        assert!(matches!(ColumnSpec::parse("instant:"), Err(ColumnError::NoUnit(_))));
        assert!(matches!(ColumnSpec::parse(":ns"), Err(ColumnError::NoName(_))));
        let message = ColumnSpec::parse("x:min").unwrap_err().to_string();
        assert_eq!(message, "\"min\" is not a unit of a column; expected ns, us, ms or s");
    }

    #[test]
    fn a_cell_with_a_return_alone_is_shown_without_it() {
        let refused = read(b"lateness,x\n5,1\n\r,1\n7,1\n", "lateness:ns", None).unwrap_err();
        assert!(refused.contains("awk -F',' '$1 != \"\"'"), "{refused}");
        assert!(!refused.contains('\r'), "{refused:?}");
    }

    #[test]
    fn a_single_column_of_another_name_is_not_taken_for_the_one_that_is_named() {
        let other = b"wake_ns\n1000000\n2000000\n3000000\n";
        for column in ["lateness_ns:ns", "instant_ns:ns", "late:ns"] {
            let refused = read(other, column, Some(1_000)).unwrap_err();
            assert!(refused.contains("wake_ns"), "{column}: {refused}");
        }
        assert!(read(other, "lateness:ns", None).is_ok(), "says what it contains");
    }

    #[test]
    fn the_name_tells_the_kind_or_else_the_period_does() {
        let kind = |text, has_period| ColumnSpec::parse(text).unwrap().kind(has_period);
        assert_eq!(kind("Instant:ns", false), ColumnKind::Instant);
        assert_eq!(kind("lateness:ns", true), ColumnKind::Lateness);
        // The header of an export, and the same of others.
        assert_eq!(kind("lateness_ns:ns", true), ColumnKind::Lateness);
        assert_eq!(kind("Lateness_us:us", true), ColumnKind::Lateness);
        assert_eq!(kind("instant_ns:ns", false), ColumnKind::Instant);
        assert_eq!(kind("latenesses:ns", true), ColumnKind::Instant);
        assert_eq!(kind("wake:ns", true), ColumnKind::Instant);
        assert_eq!(kind("late:ns", false), ColumnKind::Lateness);
    }
}
