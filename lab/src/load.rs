//! Loads: what makes a machine busy while its punctuality is measured.
//!
//! Each load runs in a child process of its own, started through a [`Launcher`] that the caller
//! gives and spoken to over two pipes (`protocol`). [`LOADS`] is the table of them, [`Loads`] reads
//! `--load`, [`RunningLoads`] is the parent's side, [`run_child`] the child's.
//!
//! Rates of different loads are not comparable, and that of one load only on one machine: they show
//! that it ran, and how much it was slowed.
//!
//! Common to all: never more workers of each kind than the CPUs given (the stressors of `stress-ng`
//! and the parts of `linuxcnc` are kinds of their own, and run beside each other), at most 256 MiB
//! of memory and 64 MiB of disk a load, a time limit that the kernel enforces too, SCHED_OTHER, and
//! an end with the parent however that ends. Nothing is sent to a machine but this one.

mod bounds;
mod child;
mod error;
mod kinds;
mod launcher;
pub(crate) mod network;
mod orders;
mod protocol;
mod row;
mod stress_args;
mod subprocess;
mod supervisor;
mod worker;

use std::fmt;

use kinds::find;
use row::Start;

pub use bounds::{LIMIT_GRACE, LIMIT_MAX, LoadBounds};
pub use child::run_child;
pub use error::LoadError;
pub(crate) use kinds::Polygons;
pub use kinds::{LOADS, names};
pub use launcher::{Launcher, Reexec};
pub use protocol::LIMIT;
pub use row::LoadRow;
pub use stress_args::StressArgs;
pub use supervisor::RunningLoads;

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
    /// The fault of the list; `all` too, which is no list at once (see [`Loads::parse`]).
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
            // A name of its own: "disk:heavy".
            _ if find(item).is_some() => (item, None),
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

/// The loads that `--load` requests.
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
    /// The fault of the text, in one line.
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

/// The most deaths that a report lists.
pub(crate) const DEATHS_MAX: usize = 16;

/// A load's process that ended before it was to, or stood still for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadDeath {
    /// The instant of that, ns on CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Time from when it was ready until then, in ns; `None` when it had not become ready again.
    pub worked_ns: Option<u64>,
    /// The reason, in one line.
    pub why: String,
    /// True where it was started again: once in a block.
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
    /// `notes` say why. 0 is a load that stood still.
    pub rate: Option<f64>,
    /// The unit of `rate`: `polygons/s`.
    pub unit: String,
    /// Notes for the reader of a report: a part that is not installed, a network that fell back.
    pub notes: Vec<String>,
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
        assert_eq!(read("disk:heavy,disk"), Ok(vec![named("disk:heavy"), named("disk")]));
        assert!(read("disk:hevy").is_err() && read("cpu:heavy").is_err());
        assert!(LoadSpec::all().iter().all(|spec| !spec.name().contains(':')));
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
    fn rates_are_per_second() {
        assert_eq!(rate_per_s(50, 500_000_000), Some(100.0));
        assert_eq!(rate_per_s(0, 1), Some(0.0));
        assert_eq!(rate_per_s(7, 0), None);
    }
}
