//! The lines between a load and its parent.
//!
//! Child to parent, on standard output: `ready`, `count COUNT AT_NS UNIT`, `note TEXT`,
//! `failed TEXT`. Parent to child, on standard input: `stop`; its end means that the parent is
//! gone. A line that is none of these is ignored. Pure text.

use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use super::bounds::{LIMIT_MAX, LoadBounds};

/// The longest text of a note or failure, in characters.
const TEXT_MAX: usize = 200;
/// The reason why a load ended that was not stopped, in its notes and its death.
pub const LIMIT: &str = "it ended at its time limit";
/// The word that the parent writes to end a load in order.
pub(super) const STOP: &str = "stop";

/// The name, among those of loads, of the step that becomes a program of somebody else's.
pub(super) const EXEC: &str = "exec";

/// One line from a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Set up; work begins now.
    Ready,
    /// So much was done since `ready`.
    Count {
        /// Number of units done since `ready`.
        count: u64,
        /// The instant, ns since `ready`.
        at_ns: u64,
        /// Of what: `polygons`.
        unit: String,
    },
    /// A note for the reader of a report.
    Note(String),
    /// It cannot run.
    Failed(String),
}

impl Line {
    /// Reads one line; `None` for anything else.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match word {
            "ready" if rest.is_empty() => Self::Ready,
            "count" => {
                let (count, rest) = rest.split_once(' ')?;
                let (at_ns, unit) = rest.split_once(' ')?;
                Self::Count {
                    count: count.parse().ok()?,
                    at_ns: at_ns.parse().ok()?,
                    unit: text(unit),
                }
            }
            "note" => Self::Note(text(rest)),
            "failed" => Self::Failed(text(rest)),
            _ => return None,
        })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Count { count, at_ns, unit } => write!(f, "count {count} {at_ns} {}", text(unit)),
            Self::Note(note) => write!(f, "note {}", text(note)),
            Self::Failed(why) => write!(f, "failed {}", text(why)),
        }
    }
}

/// Writes one line.
///
/// # Errors
/// When nobody reads any more.
pub(super) fn say(out: &mut dyn Write, line: &Line) -> Result<(), String> {
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|why| why.to_string())
}

/// `raw` on one line, without control characters, cut at [`TEXT_MAX`].
fn text(raw: &str) -> String {
    let one_line: String =
        raw.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT_MAX).collect();
    one_line.trim().to_owned()
}

/// The task of a load's process, and its bounds.
///
/// As words: `NAME --parent PID --limit-ns N --cpus 0,1 --workers N --temp DIR [-- WORDS…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    /// The load: a name of [`super::LoadSpec`], `gears`, or `exec`.
    pub(super) name: String,
    /// The process that must be its parent.
    pub(super) parent: i32,
    /// It ends by itself after so long.
    pub(super) limit: Duration,
    /// The CPUs that it may run on; empty leaves those that it inherited.
    pub(super) cpus: Vec<u32>,
    /// Its most workers, at least 1.
    pub(super) workers: usize,
    /// The directory of its files.
    pub(super) temp: PathBuf,
    /// Words for another program.
    pub(super) words: Vec<String>,
}

impl Setup {
    /// Of load `name` in `bounds`, with this process as its parent.
    pub(super) fn new(name: &str, bounds: &LoadBounds) -> Self {
        Self {
            name: name.to_owned(),
            parent: std::process::id().cast_signed(),
            limit: bounds.limit,
            cpus: bounds.cpus.clone(),
            workers: bounds.cpus.len(),
            temp: bounds.temp.clone(),
            words: Vec::new(),
        }
    }

    /// As arguments.
    pub(super) fn to_args(&self) -> Vec<String> {
        let cpus: Vec<String> = self.cpus.iter().map(u32::to_string).collect();
        let mut args = vec![
            self.name.clone(),
            "--parent".into(),
            self.parent.to_string(),
            "--limit-ns".into(),
            self.limit.as_nanos().to_string(),
            "--workers".into(),
            self.workers.to_string(),
            "--temp".into(),
            self.temp.to_string_lossy().into_owned(),
        ];
        if !cpus.is_empty() {
            args.extend(["--cpus".into(), cpus.join(",")]);
        }
        if !self.words.is_empty() {
            args.push("--".into());
            args.extend(self.words.iter().cloned());
        }
        args
    }

    /// Reads arguments back.
    ///
    /// # Errors
    /// The fault of the arguments, in one line.
    pub(super) fn parse(args: &[String]) -> Result<Self, String> {
        let (name, mut rest) = args.split_first().ok_or("the name of a load is missing")?;
        let mut setup = Self {
            name: name.clone(),
            parent: 0,
            limit: Duration::ZERO,
            cpus: Vec::new(),
            workers: 1,
            temp: std::env::temp_dir(),
            words: Vec::new(),
        };
        while let Some((option, after)) = rest.split_first() {
            if option == "--" {
                setup.words = after.to_vec();
                break;
            }
            let (value, after) =
                after.split_first().ok_or_else(|| format!("{option} needs a value"))?;
            setup.set(option, value).ok_or_else(|| format!("{option} {value:?}: not usable"))?;
            rest = after;
        }
        if setup.parent < 1 || setup.limit.is_zero() {
            return Err("--parent and --limit-ns are needed".to_owned());
        }
        Ok(setup)
    }

    fn set(&mut self, option: &str, value: &str) -> Option<()> {
        match option {
            "--parent" => self.parent = value.parse().ok()?,
            "--limit-ns" => {
                self.limit = Duration::from_nanos(value.parse().ok()?);
                (self.limit <= LIMIT_MAX).then_some(())?;
            }
            "--workers" => self.workers = value.parse().ok().filter(|&workers| workers > 0)?,
            "--cpus" => {
                let cpus: Result<_, _> = value.split(',').map(str::parse).collect();
                self.cpus = cpus.ok()?;
            }
            "--temp" => self.temp = PathBuf::from(value),
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn other_lines_are_ignored() {
        for line in ["", "ready now", "count", "count 1", "count 1 2", "count -1 2 x", "hello"] {
            assert_eq!(Line::parse(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn lines_read_back(count: u64, at_ns: u64, words in ".*") {
            let unit = "polygons".to_owned();
            for line in [
                Line::Ready,
                Line::Count { count, at_ns, unit },
                Line::Note(text(&words)),
                Line::Failed(text(&words)),
            ] {
                let written = line.to_string();
                prop_assert_eq!(written.lines().count(), 1);
                prop_assert_eq!(Line::parse(&written), Some(line));
            }
        }

        #[test]
        fn any_line_can_be_read(line in ".*") {
            let _ = Line::parse(&line);
        }
    }

    #[test]
    fn arguments_read_back() {
        let bounds = LoadBounds::new(Duration::from_millis(1500), vec![0, 3]);
        let mut setup = Setup::new("cpu", &bounds);
        assert_eq!(Setup::parse(&setup.to_args()), Ok(setup.clone()));
        setup.words = vec!["--cpu".into(), "2".into(), "--".into()];
        assert_eq!(Setup::parse(&setup.to_args()), Ok(setup));
    }

    #[test]
    fn what_is_missing_or_unusable_is_said() {
        for bad in [
            "",
            "cpu",
            "cpu --parent 5",
            "cpu --parent",
            "cpu --parent 5 --limit-ns 99999999999999999",
            "cpu --parent 5 --limit-ns 1 --workers 0",
            "cpu --parent 5 --limit-ns 1 --cpus 0-1",
            "cpu --parent 5 --limit-ns 1 --what 3",
        ] {
            let args: Vec<String> = bad.split_ascii_whitespace().map(str::to_owned).collect();
            assert!(Setup::parse(&args).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_args_can_be_read(args in prop::collection::vec("(--)?[a-z]*|[0-9,-]*|.*", 0..8)) {
            let _ = Setup::parse(&args);
        }
    }
}
