//! The JSON of rt-tests (cyclictest, oslat) and of jitterdebugger: a histogram a thread or CPU.
//!
//! Sources: rt-tests 2.4, src/lib/rt-utils.c (`rt_write_json`, whose keys `cmdline:` and
//! `rt_test_version:` end in a colon) and the `write_stats` of each program; jitterdebugger 0.3,
//! jd_utils.c. Read as it comes: what a histogram means must stand before it, as it does in what
//! the programs write.

use std::fmt;
use std::io::{Error, ErrorKind, Read};

use punctual_analysis::imported::ImportedQuantity;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use super::run::RunBuilder;
use super::{Format, ImportRequest, Place, Reading, Sniff, Writer, cyclictest, jitterdebugger};
use crate::text::{ImportError, clean, scaled, whole};

/// A program that writes such JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Cyclictest,
    Oslat,
    Jitterdebugger,
}

/// Its row in the table of formats.
pub(super) const FORMAT: Format = Format {
    name: "threads",
    writers: &[
        Writer {
            program: "cyclictest",
            file: "JSON of cyclictest (file_version 1)",
            made_with: "`cyclictest -h N --json=F`",
            holds: "lateness, a run a thread",
            resolution: "1 µs, or 1 ns with `-N`",
            cannot_tell: "missed releases (below); overflow is cycles less the sum of the \
                          histogram, whose end is that of `-h` or `-H` in the command line, as \
                          the period is that of `-i` and `-d`; policy and priority but for the \
                          command line",
        },
        Writer {
            program: "oslat",
            file: "JSON of oslat (file_version 1)",
            made_with: "`oslat --json=F`",
            holds: "stalls: each pass of a spin",
            resolution: "1 µs, rounded up",
            cannot_tell: "lateness; what is in its last bucket, which takes in all that is \
                          larger",
        },
        Writer {
            program: "jitterdebugger",
            file: "JSON of jitterdebugger (version 3)",
            made_with: "`jitterdebugger -o DIR`",
            holds: "lateness, a run a CPU",
            resolution: "1 µs or 1 ns",
            cannot_tell: "values beyond its histogram have left it; period; one stall counts \
                          once for each release that passed in it",
        },
    ],
    sniff: Sniff::Head(is_json),
    read,
};

/// Returns true where a file begins as JSON does: no other format here begins with a brace.
fn is_json(head: &[u8]) -> bool {
    head.trim_ascii_start().starts_with(b"{")
}

/// Reads a whole file.
fn read(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    let mut root = Root {
        file,
        version: None,
        program: None,
        unit_ns: None,
        threads: None,
        command: cyclictest::CommandLine::default(),
    };
    read_object(reader, &mut root)?;
    Ok(Place::Line(1))
}

/// The document.
struct Root<'a, 'b> {
    file: &'a mut Reading<'b>,
    /// `file_version` or `version`.
    version: Option<u64>,
    program: Option<Program>,
    /// The unit of buckets and values.
    unit_ns: Option<i64>,
    threads: Option<u64>,
    /// What the command line of cyclictest says.
    command: cyclictest::CommandLine,
}

impl<'b> Root<'_, 'b> {
    /// The program by its command line, the only thing that identifies it.
    fn command(&mut self, command: &str) -> Result<(), String> {
        let program = command.split_whitespace().next().unwrap_or_default();
        self.program = match program.rsplit('/').next().unwrap_or_default() {
            "cyclictest" => {
                self.command = cyclictest::CommandLine::parse(command);
                Some(Program::Cyclictest)
            }
            "oslat" => Some(Program::Oslat),
            unknown => return Err(format!("files of {:?} are not supported", clean(unknown, 40))),
        };
        self.file.source.command = Some(clean(command, 400));
        Ok(())
    }

    fn resolution(&mut self, resolution: u64) -> Result<(), String> {
        self.unit_ns = Some(match (self.program, resolution) {
            // cyclictest writes 1 with -N and else 0, which stands for µs.
            (Some(Program::Cyclictest), 0) => 1_000,
            (_, 1) => 1,
            (Some(Program::Jitterdebugger), 1_000) => 1_000,
            _ => return Err(format!("unknown resolution_in_ns {resolution}")),
        });
        Ok(())
    }

    /// The keys before the histograms must have stated what they mean.
    fn begin<'s>(&'s mut self, key: &str) -> Result<Threads<'s, 'b>, String> {
        if self.version.is_none() {
            return Err(format!("{key:?} before any file_version"));
        }
        let program = self.program.ok_or_else(|| format!("{key:?} before the command line"))?;
        let source = &mut self.file.source;
        let mut unit_ns = self.unit_ns;
        let (format, name, cannot_know): (_, _, &[&str]) = match program {
            Program::Cyclictest => ("cyclictest --json", "cyclictest", &cyclictest::CANNOT_KNOW),
            Program::Oslat => {
                // oslat counts in µs and has no other unit.
                unit_ns = Some(1_000);
                ("oslat --json", "oslat", &OSLAT_CANNOT_KNOW)
            }
            Program::Jitterdebugger => {
                ("jitterdebugger JSON", "jitterdebugger", &jitterdebugger::CANNOT_KNOW)
            }
        };
        (source.format, source.program) = (format, name);
        if program == Program::Cyclictest {
            self.file.cannot_know(&["policy and priority, except in the command line"]);
        }
        self.file.cannot_know(cannot_know);
        let unit_ns = unit_ns.ok_or_else(|| format!("{key:?} before resolution_in_ns"))?;
        Ok(Threads { file: self.file, program, unit_ns, command: self.command })
    }
}

impl Object for Root<'_, '_> {
    fn field<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let custom = A::Error::custom;
        match key {
            "file_version" | "version" => {
                let version = map.next_value()?;
                let known = if key == "version" { 3 } else { 1 };
                if version != known {
                    return Err(custom(format!(
                        "{key} {version} is not supported; expected \
                                              {known}"
                    )));
                }
                self.version = Some(version);
                if key == "version" {
                    self.program = Some(Program::Jitterdebugger);
                }
            }
            "cmdline" | "cmdline:" => self.command(&map.next_value::<String>()?).map_err(custom)?,
            "rt_test_version" | "rt_test_version:" => {
                self.file.source.version = Some(clean(&map.next_value::<String>()?, 40));
            }
            "start_time" => self.file.started_at = Some(clean(&map.next_value::<String>()?, 80)),
            "num_threads" => self.threads = Some(map.next_value()?),
            "resolution_in_ns" => self.resolution(map.next_value()?).map_err(custom)?,
            "sysinfo" => map.next_value_seed(Fields(&mut Sysinfo(self)))?,
            "thread" | "cpu" => {
                let threads = self.begin(key).map_err(custom)?;
                map.next_value_seed(Fields(&mut { threads }))?;
            }
            "tool" | "runs" | "schema" => {
                // A whole result is read before this; of a part no figures are known.
                return Err(custom(format!(
                    "not a recording, and no whole result of punctual, which has \"tool\", \
                     \"schema\" and \"runs\": write it again with --json, or give a sample file; \
                     the key \"{key}\" stands"
                )));
            }
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn done(&mut self) -> Result<(), String> {
        let runs = self.file.runs.len() as u64;
        if self.version.is_none() {
            return Err("there is no file_version: accepted is JSON of cyclictest and oslat \
                       (--json=FILE) and of jitterdebugger (-o DIR), and a result of punctual \
                       (--json)"
                .to_owned());
        }
        match self.threads {
            Some(stated) if stated != runs => {
                Err(format!("num_threads is {stated}, but the file contains {runs}"))
            }
            _ if runs == 0 => Err("the file contains no threads".to_owned()),
            _ => Ok(()),
        }
    }
}

/// The object in which jitterdebugger records the system; its timer resolution is read.
struct Sysinfo<'r, 'a, 'b>(&'r mut Root<'a, 'b>);

impl Object for Sysinfo<'_, '_, '_> {
    fn field<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        if key == "resolution_in_ns" {
            return self.0.resolution(map.next_value()?).map_err(A::Error::custom);
        }
        map.next_value::<IgnoredAny>().map(|_| ())
    }
}

/// All threads or CPUs.
struct Threads<'a, 'b> {
    file: &'a mut Reading<'b>,
    program: Program,
    unit_ns: i64,
    command: cyclictest::CommandLine,
}

impl Object for Threads<'_, '_> {
    fn field<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let number = whole(key).map_err(A::Error::custom)?;
        let mut thread = Thread::new(self.program, number, self.unit_ns, self.file.request);
        if self.file.runs.iter().any(|run| run.stated.name == thread.run.stated.name) {
            return Err(A::Error::custom(format!("{:?} twice", thread.run.stated.name)));
        }
        thread.run.stated.period_ns = match self.program {
            Program::Cyclictest => self.command.period_ns(number),
            Program::Oslat | Program::Jitterdebugger => None,
        };
        let limit_ns = self.command.buckets.map(|buckets| scaled(buckets, self.unit_ns));
        thread.run.stated.limit_ns = limit_ns.transpose().map_err(A::Error::custom)?;
        map.next_value_seed(Fields(&mut thread))?;
        self.file.add(thread.run).map_err(A::Error::custom)?;
        Ok(())
    }
}

/// The facts that oslat does not record.
const OSLAT_CANNOT_KNOW: [&str; 2] = [
    "lateness: there are no releases; a value is one pass of a spin, rounded up to whole µs, and \
    most passes are not stalls",
    "what interrupted the spin",
];

/// A thread while it is read.
struct Thread {
    run: RunBuilder,
    program: Program,
    unit_ns: i64,
    /// oslat's highest bucket, which takes in all that is larger: (bucket, count).
    last: Option<(u64, u64)>,
    histogram: bool,
}

impl Thread {
    fn new(program: Program, number: u64, unit_ns: i64, request: &ImportRequest) -> Self {
        let (word, holds) = match program {
            Program::Cyclictest => ("thread", ImportedQuantity::Lateness),
            Program::Oslat => ("thread", ImportedQuantity::Stall),
            Program::Jitterdebugger => ("CPU", ImportedQuantity::Lateness),
        };
        let thresholds_ns = &request.thresholds_ns;
        let mut run = RunBuilder::new(format!("{word} {number}"), holds, unit_ns, thresholds_ns);
        match program {
            // oslat rounds up, so its values are upper ends already.
            Program::Oslat => {}
            Program::Cyclictest => run.stated.rounding_ns = unit_ns - 1,
            Program::Jitterdebugger => {
                run.stated.rounding_ns = unit_ns - 1;
                run.stated.missed = Some(0);
                run.stated.cpu = u32::try_from(number).ok();
            }
        }
        Self { run, program, unit_ns, last: None, histogram: false }
    }

    /// A mean in the unit of the file, as ns.
    fn number(&self, value: f64) -> Result<Option<f64>, String> {
        let ns = value * self.unit_ns as f64;
        if ns.abs() < 1e18 { Ok(Some(ns)) } else { Err(format!("{value} is too large for a time")) }
    }

    fn bucket(&mut self, bucket: u64, count: u64) -> Result<(), String> {
        let oslat = self.program == Program::Oslat;
        if oslat && bucket == 0 {
            return Err("a bucket 0, which oslat does not have".to_owned());
        }
        let (bucket, count) = match (oslat, self.last) {
            // The highest bucket so far waits until the maximum shows whether it took in more.
            (true, None) => {
                self.last = Some((bucket, count));
                return Ok(());
            }
            (true, Some(last)) if bucket > last.0 => {
                self.last = Some((bucket, count));
                last
            }
            _ => (bucket, count),
        };
        self.push(bucket, count)
    }

    fn push(&mut self, bucket: u64, count: u64) -> Result<(), String> {
        let lowest = scaled(bucket, self.unit_ns)?;
        // oslat rounds up: its bucket i holds what lies above i − 1 and not above i.
        let shift = if self.program == Program::Oslat { self.unit_ns - 1 } else { 0 };
        self.run.push(lowest - shift, lowest - shift + self.unit_ns - 1, count)
    }
}

impl Object for Thread {
    fn field<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let custom = A::Error::custom;
        match (key, self.program) {
            ("histogram", _) => {
                self.histogram = true;
                return map.next_value_seed(Fields(&mut Buckets(self)));
            }
            ("cycles", Program::Cyclictest) | ("count", Program::Jitterdebugger) => {
                self.run.stated.n = Some(map.next_value()?);
            }
            ("min", _) => {
                self.run.stated.min_ns = self.number(map.next_value()?).map_err(custom)?;
            }
            ("max", _) => {
                self.run.stated.max_ns = self.number(map.next_value()?).map_err(custom)?;
            }
            ("avg", _) => {
                self.run.stated.mean_ns = self.number(map.next_value()?).map_err(custom)?;
            }
            ("cpu", _) => self.run.stated.cpu = u32::try_from(map.next_value::<i64>()?).ok(),
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn done(&mut self) -> Result<(), String> {
        let name = self.run.stated.name.clone();
        let missing = |figure: &str| format!("{name}: no {figure}");
        if self.run.stated.n.is_none() && self.program != Program::Oslat {
            return Err(missing("count of its values"));
        }
        if !self.histogram {
            return Err(missing("histogram"));
        }
        for (figure, number) in [
            ("min", self.run.stated.min_ns),
            ("max", self.run.stated.max_ns),
            ("avg", self.run.stated.mean_ns),
        ] {
            number.ok_or_else(|| missing(figure))?;
        }
        if let Some((bucket, count)) = self.last.take() {
            let end = scaled(bucket, self.unit_ns)?;
            if self.run.stated.max_ns.is_some_and(|max| max > end as f64) {
                self.run.stated.beyond = Some(count);
                self.run.stated.limit_ns = Some(end - self.unit_ns);
            } else {
                self.push(bucket, count)?;
            }
        }
        Ok(())
    }
}

/// The buckets of a histogram.
struct Buckets<'a>(&'a mut Thread);

impl Object for Buckets<'_> {
    fn field<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let bucket = whole(key).map_err(A::Error::custom)?;
        let count = map.next_value()?;
        self.0.bucket(bucket, count).map_err(A::Error::custom)
    }
}

/// The most bytes between two quotes.
const TEXT_BYTES_MAX: usize = 1 << 16;

/// A reader of the fields of an object.
///
/// For the importers of JSON: read as it comes, in bounded memory. A string longer than
/// [`TEXT_BYTES_MAX`] ends the reading, so that a hostile file cannot use much memory; unknown
/// fields are skipped.
trait Object {
    /// Takes the value of `key` from `map`, which must be read.
    fn field<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error>;

    /// All fields have been given.
    fn done(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Reads one whole document into `object`.
fn read_object(reader: impl Read, object: &mut impl Object) -> Result<(), ImportError> {
    let guarded = Guarded { reader, since_quote: 0, escaped: false };
    let buffered = std::io::BufReader::with_capacity(1 << 16, guarded);
    let mut json = serde_json::Deserializer::from_reader(buffered);
    Fields(object).deserialize(&mut json)?;
    Ok(json.end()?)
}

/// The value of a field as an object of its own.
struct Fields<'a, T>(&'a mut T);

impl<'de, T: Object> DeserializeSeed<'de> for Fields<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Object> Visitor<'de> for Fields<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.0.field(&key, &mut map)?;
        }
        self.0.done().map_err(A::Error::custom)
    }
}

/// Passes bytes on until a string is too long for what it may be.
struct Guarded<R> {
    reader: R,
    since_quote: usize,
    escaped: bool,
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.reader.read(buffer)?;
        for &byte in &buffer[..bytes] {
            if byte == b'"' && !self.escaped {
                self.since_quote = 0;
            } else {
                self.since_quote += 1;
            }
            self.escaped = byte == b'\\' && !self.escaped;
            if self.since_quote > TEXT_BYTES_MAX {
                return Err(Error::new(ErrorKind::InvalidData, "a string or a gap is too long"));
            }
        }
        Ok(bytes)
    }
}
