//! Which loads: the list that `--load` takes.
//!
//! Text in, values out; panics on no input. Starts nothing, and does not know what is installed.

use std::fmt;

use super::{LoadError, StressArgs};

/// The most loads that run at once.
const LOADS_MAX: usize = 16;

/// One load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadSpec {
    /// Integer polygons into a frame buffer.
    Cpu,
    /// Chases pointers through more than a processor's own cache, and dirties the lines.
    Cache,
    /// Copies buffers that do not fit into a cache.
    Memory,
    /// Makes processes that end at once.
    Fork,
    /// Writes and syncs a file.
    Disk,
    /// UDP datagrams between two network namespaces, or over loopback.
    Net,
    /// Sleeps of 100 µs.
    Timer,
    /// System calls that do nothing.
    Syscall,
    /// What the LinuxCNC documentation loads a machine with: cpu and fork on all CPUs that are not
    /// isolated, and glxgears.
    LinuxCnc,
    /// Stressors of stress-ng.
    StressNg(StressArgs),
}

impl LoadSpec {
    /// The loads of `all`, in its order: those that need nothing installed.
    pub const ALL: [Self; 8] = [
        Self::Cpu,
        Self::Cache,
        Self::Memory,
        Self::Fork,
        Self::Disk,
        Self::Net,
        Self::Timer,
        Self::Syscall,
    ];

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
        match self {
            Self::Cpu => "cpu",
            Self::Cache => "cache",
            Self::Memory => "memory",
            Self::Fork => "fork",
            Self::Disk => "disk",
            Self::Net => "net",
            Self::Timer => "timer",
            Self::Syscall => "syscall",
            Self::LinuxCnc => "linuxcnc",
            Self::StressNg(_) => "stress-ng",
        }
    }

    fn parse(item: &str) -> Result<Self, LoadError> {
        if item.is_empty() {
            return Err(LoadError::Empty);
        }
        if let Some(args) = item.strip_prefix("stress-ng:") {
            return StressArgs::parse(unquote(args)?).map(Self::StressNg);
        }
        if item == "stress-ng" {
            return Err(LoadError::stress_ng("its arguments are missing: stress-ng:\"--cpu 2\""));
        }
        [Self::LinuxCnc]
            .iter()
            .chain(&Self::ALL)
            .find(|spec| spec.name() == item)
            .cloned()
            .ok_or_else(|| LoadError::unknown(item))
    }
}

impl fmt::Display for LoadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StressNg(args) => write!(f, "stress-ng:\"{args}\""),
            other => f.write_str(other.name()),
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
            return Ok(Self::InTurn(LoadSpec::ALL.to_vec()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stress(args: &str) -> LoadSpec {
        LoadSpec::StressNg(StressArgs::parse(args).expect("good arguments"))
    }

    #[test]
    fn lists_are_read() {
        let read = |text| LoadSpec::parse_list(text);
        assert_eq!(read("none"), Ok(vec![]));
        assert_eq!(read("cpu, disk"), Ok(vec![LoadSpec::Cpu, LoadSpec::Disk]));
        let both = Ok(vec![stress("--cpu 2 --vm 1"), LoadSpec::LinuxCnc]);
        assert_eq!(read("stress-ng:\"--cpu 2 --vm 1\",linuxcnc"), both);
        assert_eq!(read("stress-ng:--cpu 2 --vm 1,linuxcnc"), both, "unquoted by a shell");
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
            ("CPU", LoadError::unknown("CPU")),
            ("\"cpu\"", LoadError::unknown("\"cpu\"")),
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
        let all = Loads::parse("all").expect("a name");
        assert_eq!(all.turns().len(), LoadSpec::ALL.len());
        assert!(all.turns().iter().all(|turn| turn.len() == 1));
        assert_eq!(all.to_string(), "all");
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
}
