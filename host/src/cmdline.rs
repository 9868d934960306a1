//! The kernel command line: parameters, quotes, `--`, and the flags of `isolcpus`.
//!
//! Pure and total. The splitting is that of `next_arg` and `parse_args` (Linux, `lib/cmdline.c`,
//! `kernel/params.c`), the flags those of `housekeeping_isolcpus_setup`
//! (`kernel/sched/isolation.c`). What a parameter means is for others to know.

use crate::cpulist::{CpuList, CpuListError};
use std::fmt;
use thiserror::Error;

/// A command line, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    /// The parameters of the kernel.
    pub params: Vec<Param>,
    /// The parameters after `--`, for the first process.
    pub init: Vec<Param>,
    /// True where a `--` was there.
    pub ended: bool,
}

/// One parameter: `name` or `name=value`, without the quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// As written; the kernel takes `-` and `_` in it for the same.
    pub name: String,
    /// The text behind the first `=`; `None` without one.
    pub value: Option<String>,
}

/// The kernel's isspace (lib/ctype.c), as far as ASCII goes: Rust's leaves the vertical tab out.
fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

impl CommandLine {
    /// Splits a command line; a newline is white space.
    pub fn parse(text: &str) -> Self {
        let mut line = Self::default();
        let mut rest = text.trim_start_matches(is_space);
        while !rest.is_empty() {
            let (param, after) = Param::take(rest);
            rest = after.trim_start_matches(is_space);
            if line.ended {
                line.init.push(param);
            } else if param.value.is_none() && param.name == "--" {
                line.ended = true;
            } else {
                line.params.push(param);
            }
        }
        line
    }

    /// Every occurrence of a parameter, in order.
    pub fn all(&self, name: &str) -> impl DoubleEndedIterator<Item = &Param> {
        self.params.iter().filter(move |param| param.is(name))
    }

    /// The last occurrence: the one that counts for a parameter that sets something.
    pub fn last(&self, name: &str) -> Option<&Param> {
        self.all(name).next_back()
    }

    /// The value of the last occurrence that has one.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.all(name).rev().find_map(|param| param.value.as_deref())
    }
}

impl Param {
    fn take(text: &str) -> (Self, &str) {
        let (text, outer) = match text.strip_prefix('"') {
            Some(text) => (text, true),
            None => (text, false),
        };
        let mut quoted = outer;
        let mut equals = None;
        let mut end = text.len();
        for (at, c) in text.char_indices() {
            if is_space(c) && !quoted {
                end = at;
                break;
            }
            if c == '=' && equals.is_none() && at > 0 {
                equals = Some(at);
            }
            quoted ^= c == '"';
        }
        let (word, rest) = text.split_at(end);
        let unquoted = |text: &str, quote: bool| {
            text.strip_suffix('"').filter(|_| quote).unwrap_or(text).to_owned()
        };
        let param = match equals.map(|at| (&word[..at], &word[at + 1..])) {
            None => Self { name: unquoted(word, outer), value: None },
            Some((name, value)) => {
                let inner = value.strip_prefix('"');
                let value = unquoted(inner.unwrap_or(value), outer || inner.is_some());
                Self { name: name.to_owned(), value: Some(value) }
            }
        };
        (param, rest)
    }

    /// True for the parameter of that name, `-` and `_` being the same.
    pub fn is(&self, name: &str) -> bool {
        let same = |(a, b): (u8, u8)| a == b || matches!((a, b), (b'-', b'_') | (b'_', b'-'));
        self.name.len() == name.len() && self.name.bytes().zip(name.bytes()).all(same)
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spaced = |text: &str| text.contains(is_space);
        match &self.value {
            None if spaced(&self.name) => write!(f, "\"{}\"", self.name),
            None => write!(f, "{}", self.name),
            Some(value) if spaced(&self.name) => write!(f, "\"{}={value}\"", self.name),
            Some(value) if spaced(value) => write!(f, "{}=\"{value}\"", self.name),
            Some(value) => write!(f, "{}={value}", self.name),
        }
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = self.params.iter().map(Param::to_string).collect();
        if self.ended {
            words.push("--".to_owned());
        }
        words.extend(self.init.iter().map(Param::to_string));
        write!(f, "{}", words.join(" "))
    }
}

/// `isolcpus=[flag,…]LIST` as the kernel reads it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Isolcpus {
    /// Taken out of load balancing; implied only when no flag is given.
    pub domain: bool,
    /// Kept free of managed interrupts, as far as possible.
    pub managed_irq: bool,
    /// The tick is stopped, as by `nohz_full`.
    pub nohz: bool,
    /// Flags that the kernel skips with a message.
    pub unknown: Vec<String>,
    /// Which CPUs.
    pub cpus: CpuList,
}

/// Why the kernel ignores an `isolcpus` as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IsolcpusError {
    /// Something that starts like a flag and is none.
    #[error("unknown flag '{flag}' of isolcpus, so the kernel ignores the whole parameter")]
    Flag {
        /// The flag as it was written.
        flag: String,
    },
    /// The list is wrong.
    #[error(transparent)]
    List(#[from] CpuListError),
}

impl Isolcpus {
    /// Reads the value of `isolcpus`; `last` is the last CPU there can be.
    ///
    /// # Errors
    /// When the kernel would ignore the parameter.
    pub fn parse(value: &str, last: u32) -> Result<Self, IsolcpusError> {
        let mut parsed = Self::default();
        let mut rest = value;
        while rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let (flag, after) = rest.split_once(',').unwrap_or((rest, ""));
            match flag {
                "domain" => parsed.domain = true,
                "managed_irq" => parsed.managed_irq = true,
                "nohz" => parsed.nohz = true,
                _ if flag.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_') => {
                    parsed.unknown.push(flag.to_owned());
                }
                _ => return Err(IsolcpusError::Flag { flag: flag.to_owned() }),
            }
            rest = after;
        }
        parsed.domain |= !(parsed.managed_irq || parsed.nohz);
        parsed.cpus = CpuList::parse(rest, last)?;
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn splits_as_the_kernel_does() {
        let line =
            CommandLine::parse("quiet a=1 b=\"x y\" \"c=d e\" =f \"g h\" a=2\n -- a=3 --x\n");
        let shown: Vec<_> =
            line.params.iter().map(|p| (p.name.as_str(), p.value.as_deref())).collect();
        assert_eq!(
            shown,
            [
                ("quiet", None),
                ("a", Some("1")),
                ("b", Some("x y")),
                ("c", Some("d e")),
                ("=f", None),
                ("g h", None),
                ("a", Some("2")),
            ]
        );
        assert!(line.ended);
        assert_eq!(line.init.len(), 2);
        assert_eq!(line.value("a"), Some("2"));
        assert_eq!(line.all("a").count(), 2);
        assert_eq!(line.value("quiet"), None);
        assert!(line.last("quiet").is_some());
        assert!(line.last("x").is_none());
    }

    #[test]
    fn dash_and_underscore_are_the_same() {
        let line = CommandLine::parse("rcu-nocb-poll log_buf_len=1M");
        assert!(line.last("rcu_nocb_poll").is_some());
        assert_eq!(line.value("log-buf-len"), Some("1M"));
        assert!(line.last("rcu_nocb_polls").is_none());
    }

    #[test]
    fn flags_of_isolcpus() {
        let plain = Isolcpus::parse("2-3", 3).unwrap();
        assert!(plain.domain && !plain.managed_irq);
        let flagged = Isolcpus::parse("managed_irq,2-3", 3).unwrap();
        assert!(!flagged.domain && flagged.managed_irq, "a flag drops the implied domain");
        let isolcpus = Isolcpus::parse("nohz,domain,managed_irq,1", 3).unwrap();
        assert!(isolcpus.domain && isolcpus.managed_irq && isolcpus.nohz);
        let unknown = Isolcpus::parse("foo,1", 3).unwrap();
        assert_eq!(unknown.unknown, ["foo"]);
        assert!(unknown.domain);
        assert!(matches!(Isolcpus::parse("N-1", 3), Err(IsolcpusError::Flag { .. })));
        assert!(matches!(Isolcpus::parse("2-7", 3), Err(IsolcpusError::List(_))));
    }

    proptest! {
        #[test]
        fn any_text_is_survived_and_bounded(text in "[a-z=\"\\- \n_,0-9é]{0,60}") {
            let line = CommandLine::parse(&text);
            prop_assert!(line.params.len() + line.init.len() <= text.len());
            let _ = Isolcpus::parse(&text, 63);
        }

        #[test]
        fn shown_lines_read_back(
            words in proptest::collection::vec("[a-z]{1,5}(=[a-z ]{0,6})?", 0..6)
        ) {
            let params = words.iter().map(|w| Param::take(&format!("\"{w}\"")).0).collect();
            let line = CommandLine { params, init: Vec::new(), ended: false };
            prop_assert_eq!(CommandLine::parse(&line.to_string()), line);
        }
    }
}
