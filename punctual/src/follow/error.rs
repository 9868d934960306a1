//! Why a reference cannot be followed, in words for a person.
//!
//! Plain data and its text; the public error is [`crate::Error`].

use std::fmt;
use std::io;
use std::path::PathBuf;

use punctual_core::follow::Settings;
use punctual_core::time::Span;

use crate::error_kind::ErrorKind;

/// The most that a grid's time may be made to differ from CLOCK_MONOTONIC's, parts in 10⁹.
pub(super) const LIMIT_MAX_PPB: i64 = 100_000_000;

/// The shortest time between two readings.
pub(super) const EVERY_MIN: Span = Span::from_ms(1);

/// Why a reference cannot be followed.
#[derive(Debug)]
pub(crate) enum FollowError {
    /// This device cannot be opened, or is no PTP clock.
    Device(PathBuf, io::Error),
    /// This reference could not be read.
    Unreadable(String),
    /// The time between two readings is below [`Follow::EVERY_MIN`].
    Every(Span),
    /// The lead is negative, or not shorter than the time between two readings, which follows.
    Lead(Span, Span),
    /// Settings out of range.
    Settings(Settings),
    /// The thread cannot be started.
    Thread(io::Error),
}

impl FollowError {
    /// What kind of thing it is.
    pub(crate) fn kind(&self) -> ErrorKind {
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
            Self::Every(every) => {
                write!(f, "time between two readings must be at least {EVERY_MIN} (got {every})")
            }
            Self::Lead(lead, every) => {
                write!(
                    f,
                    "lead must be from 0 to below the time between two readings of {every} (got \
                     {lead})"
                )
            }
            Self::Settings(Settings { period_ns: Some(0), .. }) => {
                f.write_str("period must be greater than 0")
            }
            Self::Settings(Settings { limit_ppb, step, .. }) => write!(
                f,
                "limit must be from 0 to {LIMIT_MAX_PPB} parts in 10^9 (got {limit_ppb}), and step \
                 must not be negative (got {step})"
            ),
            Self::Thread(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for FollowError {}
