//! Loads: what makes a machine busy while its punctuality is measured.
//!
//! Each load runs in a child process of its own, started through a [`Launcher`] that the caller
//! gives and spoken to over two pipes (`protocol`). [`LOADS`] is the table of them, [`Loads`] reads
//! `--load`, [`RunningLoads`] is the parent's side, [`run_child`] the child's.
//!
//! Rates of different loads are not comparable, and that of one load only on one machine: they show
//! that it ran, and how much it was slowed.
//!
//! What holds for all: never more workers than the CPUs given, at most 256 MiB of memory and 64 MiB
//! of disk a load, a time limit that the kernel enforces too, SCHED_OTHER, and an end with the
//! parent however that ends. Nothing is sent to a machine but this one.

mod child;
mod kinds;
pub(crate) mod network;
mod protocol;
mod subprocess;
mod supervisor;

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use kinds::{Start, find};

pub use child::run_child;
pub(crate) use kinds::Polygons;
pub use kinds::stress_ng::StressArgs;
pub use kinds::{LOADS, LoadRow, names};
pub use protocol::LIMIT;
pub use supervisor::{READY, RunningLoads};

/// The most loads that run at once.
const LOADS_MAX: usize = 16;

/// One load: a row of the table, and its arguments where it takes any.
#[derive(Clone)]
pub struct LoadSpec {
    row: &'static LoadRow,
    args: Option<StressArgs>,
}

impl LoadSpec {
    /// The loads of `all`, in its order: those that need nothing installed.
    pub fn all() -> Vec<Self> {
        let own = LOADS.iter().filter(|row| matches!(row.start, Start::Own(_)));
        own.map(|row| Self { row, args: None }).collect()
    }

    /// Reads a list of loads that run at once; `none` is the empty list.
    ///
    /// # Errors
    /// What is wrong with it; `all` too, which is no list at once (see [`Loads::parse`]).
    pub fn parse_list(text: &str) -> Result<Vec<Self>, LoadError> {
        let items = split(text)?;
        for word in ["none", "all"] {
            if items.contains(&word) && (word == "all" || items.len() > 1) {
                return Err(LoadError::Alone { word });
            }
        }
        if items == ["none"] {
            return Ok(Vec::new());
        }
        let mut specs = Vec::new();
        for item in items {
            let spec = Self::parse(item)?;
            if specs.contains(&spec) {
                return Err(LoadError::Twice { word: spec.to_string() });
            }
            if specs.len() == LOADS_MAX {
                return Err(LoadError::TooMany { most: LOADS_MAX });
            }
            specs.push(spec);
        }
        Ok(specs)
    }

    /// Its name, without arguments.
    pub fn name(&self) -> &'static str {
        self.row.name
    }

    /// Its row in the table.
    fn row(&self) -> &'static LoadRow {
        self.row
    }

    /// Its arguments.
    fn args(&self) -> Option<&StressArgs> {
        self.args.as_ref()
    }

    fn parse(item: &str) -> Result<Self, LoadError> {
        if item.is_empty() {
            return Err(LoadError::Empty);
        }
        let (name, args) = match item.split_once(':') {
            Some((name, args)) => (name, Some(args)),
            None => (item, None),
        };
        let row = find(name).filter(|row| row.args.is_some() || args.is_none());
        let Some(row) = row else { return Err(LoadError::unknown(item, names())) };
        let args = match (row.args, args) {
            (Some(_), Some(args)) => Some(StressArgs::parse(unquote(args)?)?),
            (Some(_), None) => {
                let why = "its arguments are missing: stress-ng:\"--cpu 2\"";
                return Err(LoadError::stress_ng(why));
            }
            (None, _) => None,
        };
        Ok(Self { row, args })
    }
}

impl PartialEq for LoadSpec {
    fn eq(&self, spec: &Self) -> bool {
        (self.row.name, &self.args) == (spec.row.name, &spec.args)
    }
}

impl Eq for LoadSpec {}

impl fmt::Debug for LoadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadSpec({self})")
    }
}

impl fmt::Display for LoadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.args {
            Some(args) => f.write_str(&args.load(self.row.name)),
            None => f.write_str(self.row.name),
        }
    }
}

/// What `--load` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loads {
    /// All of them together; none for `none`.
    AtOnce(Vec<LoadSpec>),
    /// `all`: one after the other.
    InTurn(Vec<LoadSpec>),
}

impl Loads {
    /// Reads `all`, `none` or a list.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn parse(text: &str) -> Result<Self, LoadError> {
        if text.trim() == "all" {
            return Ok(Self::InTurn(LoadSpec::all()));
        }
        LoadSpec::parse_list(text).map(Self::AtOnce)
    }

    /// The sets that run one after the other, each of loads that run at once.
    pub fn turns(&self) -> Vec<Vec<LoadSpec>> {
        match self {
            Self::AtOnce(specs) => vec![specs.clone()],
            Self::InTurn(specs) => specs.iter().map(|spec| vec![spec.clone()]).collect(),
        }
    }
}

impl fmt::Display for Loads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InTurn(_) => f.write_str("all"),
            Self::AtOnce(specs) if specs.is_empty() => f.write_str("none"),
            Self::AtOnce(specs) => {
                for (index, spec) in specs.iter().enumerate() {
                    write!(f, "{}{spec}", if index == 0 { "" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

impl std::str::FromStr for Loads {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        Self::parse(text)
    }
}

/// Cuts at the commas that are not within double quotes.
fn split(text: &str) -> Result<Vec<&str>, LoadError> {
    let mut quoted = false;
    let items = text
        .split(|c| {
            quoted ^= c == '"';
            c == ',' && !quoted
        })
        .map(str::trim)
        .collect();
    if quoted { Err(LoadError::Quote) } else { Ok(items) }
}

/// Takes the quotes off; a shell may have done so already.
fn unquote(args: &str) -> Result<&str, LoadError> {
    let inner = args.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(args);
    if inner.contains('"') { Err(LoadError::Quote) } else { Ok(inner) }
}

/// Starts this program, or one like it, so that it calls [`run_child`] with the arguments.
///
/// The command must become that process itself: no shell or wrapper may stay in between, because a
/// child refuses to run when its parent is not the process that requested it.
pub trait Launcher {
    /// A command that ends up in [`run_child`] with exactly `args`.
    fn command(&self, args: &[String]) -> Command;
}

/// Starts the running program again, with words of its own before the load's arguments.
#[derive(Clone, Debug)]
pub struct Reexec {
    program: PathBuf,
    before: Vec<String>,
}

impl Reexec {
    /// `before` is what selects the hidden subcommand, for instance `__load`.
    pub fn new(before: &[&str]) -> Self {
        // A program that was replaced since it started has no path any more, but is still open.
        let program = std::env::current_exe()
            .ok()
            .filter(|path| path.exists())
            .unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
        Self { program, before: before.iter().map(|&word| word.to_owned()).collect() }
    }
}

impl Launcher for Reexec {
    fn command(&self, args: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.before).args(args);
        command
    }
}

/// The longest limit of time: a week.
pub const LIMIT_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Memory that one load may hold, all its workers together, in bytes.
const MEMORY_BYTES: usize = 256 << 20;

/// LoadBounds of all loads that run at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBounds {
    /// After so long a load ends by itself, in (0, [`LIMIT_MAX`]]. A safety net: give the length of
    /// the run and some seconds more, and call [`RunningLoads::stop`].
    pub limit: Duration,
    /// The CPUs that loads run on, at least one; as many workers, at most, does a load have.
    pub cpus: Vec<u32>,
    /// How many CPUs are not isolated: the N of load `linuxcnc`; in [1, length of `cpus`].
    pub unisolated: usize,
    /// Where load `disk` has its (nameless) file.
    pub temp: PathBuf,
}

impl LoadBounds {
    /// On `cpus`, of which none is isolated, with files in the system's temporary directory.
    pub fn new(limit: Duration, cpus: Vec<u32>) -> Self {
        Self { limit, unisolated: cpus.len(), cpus, temp: std::env::temp_dir() }
    }

    /// Whether a load can run in them.
    ///
    /// # Errors
    /// [`LoadError::Bounds`].
    fn check(&self) -> Result<(), LoadError> {
        let refuse = |why: &str| Err(LoadError::Bounds { why: why.to_owned() });
        if self.limit.is_zero() || self.limit > LIMIT_MAX {
            return refuse("the time limit must be greater than 0 and at most 7 days");
        }
        if self.cpus.is_empty() || self.cpus.len() > punctual_os::affinity::CPUS_MAX as usize {
            return refuse("there must be at least one CPU to run on, and at most 8192");
        }
        if self.unisolated == 0 || self.unisolated > self.cpus.len() {
            return refuse("the number of CPUs not isolated must be within the CPUs given");
        }
        Ok(())
    }
}

/// What went wrong with a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// Not the name of a load.
    Unknown {
        /// The word, cut at 40 characters.
        word: String,
        /// The names of all loads.
        known: String,
    },
    /// Nothing between two commas, or nothing at all.
    Empty,
    /// `all` or `none` together with another load.
    Alone {
        /// `all` or `none`.
        word: &'static str,
    },
    /// One load is named twice.
    Twice {
        /// Its name.
        word: String,
    },
    /// More loads than can run at once.
    TooMany {
        /// How many there may be.
        most: usize,
    },
    /// A double quote that is not closed, or not at the edge of the arguments.
    Quote,
    /// Arguments of stress-ng that cannot be kept in bounds.
    StressNg {
        /// What is wrong with them.
        why: String,
    },
    /// LoadBounds that no load can run in.
    Bounds {
        /// What is wrong with them.
        why: String,
    },
    /// A program that is not installed.
    Missing {
        /// Its name, which is that of its Debian package too.
        program: &'static str,
    },
    /// A load that did not start.
    Start {
        /// The load.
        name: String,
        /// What it, or the kernel, said.
        why: String,
    },
}

impl LoadError {
    /// [`LoadError::Unknown`] with the word cut to a readable length.
    fn unknown(word: &str, known: String) -> Self {
        Self::Unknown { word: cut(word), known }
    }

    /// [`LoadError::StressNg`].
    fn stress_ng(why: impl Into<String>) -> Self {
        Self::StressNg { why: why.into() }
    }
}

/// The first 40 characters of `word`.
fn cut(word: &str) -> String {
    word.chars().take(40).collect()
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { word, known } => {
                write!(f, "unknown load {word:?}; accepted are {known}, or all")
            }
            Self::Empty => f.write_str("a load is missing: names are separated by single commas"),
            Self::Alone { word } => {
                write!(f, "load {word:?} cannot be combined with others")
            }
            Self::Twice { word } => write!(f, "load {word} is named twice"),
            Self::TooMany { most } => write!(f, "at most {most} loads can run at once"),
            Self::Quote => f.write_str(
                "double quotes must enclose all arguments of stress-ng, as in \
                 stress-ng:\"--cpu 2\"",
            ),
            Self::StressNg { why } => write!(f, "stress-ng: {why}"),
            Self::Bounds { why } => write!(f, "loads: {why}"),
            Self::Missing { program } => {
                write!(f, "{program} is not installed (Debian: apt install {program})")
            }
            Self::Start { name, why } => write!(f, "load {name} did not start: {why}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// The most deaths that a report lists.
pub(crate) const DEATHS_MAX: usize = 16;

/// A load's process that ended before it was to, or stood still for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadDeath {
    /// When, on CLOCK_MONOTONIC, in ns.
    pub at_ns: u64,
    /// How long after it was ready, in ns; `None` when it had not become ready again.
    pub worked_ns: Option<u64>,
    /// Why, in one line.
    pub why: String,
    /// Whether it was started again: once in a block.
    pub restarted: bool,
    /// It did not end, but stood still for so long, in ns; `None` of one that ended.
    pub stood_still_ns: Option<u64>,
}

/// One rate of one load. A load can have several: stress-ng has one for each requested stressor.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadReport {
    /// The load as `--load` names it; a part of `linuxcnc` is `linuxcnc cpu`, for instance.
    pub name: String,
    /// Done per second between `ready` and the last count, by the load's own clock; of one that was
    /// started again, over the time that both worked. `None` when nothing was counted, and then
    /// `note` says why. 0 is a load that stood still.
    pub rate: Option<f64>,
    /// The unit of `rate`: `polygons/s`.
    pub unit: String,
    /// What a reader should know: a part that is not installed, a network that fell back.
    pub note: Option<String>,
    /// When its process ended before it was to, or stood still, the first 16.
    pub deaths: Vec<LoadDeath>,
}

/// `count` in `at_ns` as a rate per second; none in no time.
fn rate_per_s(count: u64, at_ns: u64) -> Option<f64> {
    (at_ns > 0).then(|| count as f64 * 1e9 / at_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stress(args: &str) -> LoadSpec {
        let args = StressArgs::parse(args).expect("good arguments");
        LoadSpec { args: Some(args), ..named("stress-ng") }
    }

    fn named(name: &str) -> LoadSpec {
        LoadSpec { row: find(name).expect("a load"), args: None }
    }

    #[test]
    fn lists_are_read() {
        let read = |text| LoadSpec::parse_list(text);
        assert_eq!(read("none"), Ok(vec![]));
        assert_eq!(read("cpu, disk"), Ok(vec![named("cpu"), named("disk")]));
        let two = Ok(vec![stress("--cpu 2 --vm 1"), named("linuxcnc")]);
        assert_eq!(read("stress-ng:\"--cpu 2 --vm 1\",linuxcnc"), two);
        assert_eq!(read("stress-ng:--cpu 2 --vm 1,linuxcnc"), two, "unquoted by a shell");
    }

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        let alone = |word| LoadError::Alone { word };
        for (text, why) in [
            ("", LoadError::Empty),
            ("cpu,,disk", LoadError::Empty),
            ("cpu,none", alone("none")),
            ("all,cpu", alone("all")),
            ("cpu,cpu", LoadError::Twice { word: "cpu".into() }),
            ("CPU", LoadError::unknown("CPU", names())),
            ("\"cpu\"", LoadError::unknown("\"cpu\"", names())),
            ("cpu:2", LoadError::unknown("cpu:2", names())),
            ("stress-ng:\"--cpu 1", LoadError::Quote),
            ("stress-ng:\"--cpu 1\"\"\"", LoadError::Quote),
        ] {
            assert_eq!(Loads::parse(text), Err(why.clone()), "{text}");
            assert_eq!(why.to_string().lines().count(), 1);
        }
        assert!(matches!(Loads::parse("stress-ng"), Err(LoadError::StressNg { .. })));
        let many: Vec<String> = (0..=LOADS_MAX).map(|n| format!("stress-ng:--cpu {n}")).collect();
        assert_eq!(Loads::parse(&many.join(",")), Err(LoadError::TooMany { most: LOADS_MAX }));
    }

    #[test]
    fn all_is_each_in_turn() {
        let loads = Loads::parse("all").expect("a name");
        assert_eq!(loads.turns().len(), LoadSpec::all().len());
        assert!(loads.turns().iter().all(|turn| turn.len() == 1));
        assert_eq!(loads.to_string(), "all");
        assert_eq!(Loads::parse("none").expect("a name").turns(), [vec![]]);
    }

    proptest! {
        #[test]
        fn anything_can_be_read(text in ".*") {
            if let Ok(loads) = Loads::parse(&text) {
                prop_assert_eq!(Loads::parse(&loads.to_string()), Ok(loads));
            }
        }

        #[test]
        fn near_lists_read_back(
            words in prop::collection::vec(
                "cpu|fork|none|all|linuxcnc|timer|stress-ng:\"?--cpu [0-9]{1,2},?( -m 1)?\"?|,|\"",
                0..5,
            ),
        ) {
            if let Ok(loads) = Loads::parse(&words.join(",")) {
                prop_assert_eq!(Loads::parse(&loads.to_string()), Ok(loads));
            }
        }
    }

    #[test]
    fn only_usable_bounds_pass() {
        let good = LoadBounds::new(Duration::from_secs(1), vec![0, 1]);
        assert_eq!(good.check(), Ok(()));
        for bad in [
            LoadBounds { limit: Duration::ZERO, ..good.clone() },
            LoadBounds { limit: LIMIT_MAX + Duration::from_nanos(1), ..good.clone() },
            LoadBounds { cpus: Vec::new(), ..good.clone() },
            LoadBounds { unisolated: 3, ..good.clone() },
            LoadBounds { unisolated: 0, ..good },
        ] {
            assert!(matches!(bad.check(), Err(LoadError::Bounds { .. })), "{bad:?}");
        }
    }

    #[test]
    fn rates_are_per_second() {
        assert_eq!(rate_per_s(50, 500_000_000), Some(100.0));
        assert_eq!(rate_per_s(0, 1), Some(0.0));
        assert_eq!(rate_per_s(7, 0), None);
    }
}
