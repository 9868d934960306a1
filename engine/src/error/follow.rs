//! The faults of a reference that cannot be followed.
//!
//! Plain data and words, for [`Follow::start`](crate::follow::Follow::start).

use std::fmt;
use std::io;
use std::path::PathBuf;

use punctual_core::follow::Settings;
use punctual_core::time::Span;

use super::kind::ErrorKind;

/// The fault of a reference that cannot be followed.
#[derive(Debug)]
pub enum FollowError {
    /// This device cannot be opened, or is no PTP clock.
    Device(PathBuf, io::Error),
    /// This reference could not be read.
    Unreadable(String),
    /// The time between two readings is too short.
    Every {
        /// The time between two readings.
        got: Span,
        /// The shortest that it may be.
        least: Span,
    },
    /// The lead is negative, or not shorter than the time between two readings, which follows.
    Lead(Span, Span),
    /// Settings out of range.
    Settings {
        /// The settings.
        got: Settings,
        /// The most that their limit may be, parts in 10⁹.
        limit_max_ppb: i64,
    },
    /// A loop would sleep for longer than a change of the clock's pace is known ahead.
    Sleeps {
        /// The longest sleep of the loop.
        got: Span,
        /// The time by which a change is known before it takes effect.
        lead: Span,
    },
    /// The thread cannot be started.
    Thread(io::Error),
}

impl FollowError {
    /// The kind of error, by which callers decide.
    ///
    /// # Real-time: setup only
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Device(..) => ErrorKind::Device,
            Self::Unreadable(_) => ErrorKind::Unreadable,
            Self::Thread(_) => ErrorKind::Thread,
            _ => ErrorKind::Setting,
        }
    }
}

impl fmt::Display for FollowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(path, why) => write!(f, "{}: {why}", path.display()),
            Self::Unreadable(reference) => write!(f, "{reference} cannot be read"),
            Self::Every { got, least } => {
                write!(f, "time between two readings must be at least {least} (got {got})")
            }
            Self::Lead(lead, every) => {
                write!(
                    f,
                    "lead must be from 0 to below the time between two readings of {every} (got \
                     {lead})"
                )
            }
            Self::Settings { got: Settings { period_ns: Some(0), .. }, .. } => {
                f.write_str("period must be greater than 0")
            }
            Self::Settings { got: Settings { limit_ppb, step, .. }, limit_max_ppb } => write!(
                f,
                "limit must be from 0 to {limit_max_ppb} parts in 10^9 (got {limit_ppb}), and step \
                 must not be negative (got {step})"
            ),
            Self::Sleeps { got, lead } => write!(
                f,
                "a loop on a clock that is followed must not sleep for longer than changes of its \
                 pace are known ahead, {lead} (got a period of {got}): follow it with a longer \
                 lead (`Follow::every`; in C the period_ns of punctual_follow_create())"
            ),
            Self::Thread(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for FollowError {}
