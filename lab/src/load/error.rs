//! The errors of loads.
//!
//! Plain data and words.

use std::fmt;

/// An error of a load.
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
        /// The most that there may be.
        most: usize,
    },
    /// A double quote that is not closed, or not at the edge of the arguments.
    Quote,
    /// Arguments of stress-ng that cannot be kept in bounds.
    StressNg {
        /// The fault of the arguments, in words for the user.
        why: String,
    },
    /// LoadBounds that no load can run in.
    Bounds {
        /// The fault of the bounds, in words for the user.
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
        /// The failure, as the load or the kernel reported it.
        why: String,
    },
}

impl LoadError {
    /// [`LoadError::Unknown`] with the word cut to a readable length.
    pub(super) fn unknown(word: &str, known: String) -> Self {
        Self::Unknown { word: cut(word), known }
    }

    /// [`LoadError::StressNg`].
    pub(super) fn stress_ng(why: impl Into<String>) -> Self {
        Self::StressNg { why: why.into() }
    }
}

/// The first 40 characters of `word`.
pub(super) fn cut(word: &str) -> String {
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
