//! Why a reference cannot be followed, in words for a person.

use std::fmt;
use std::io;

use punctual_core::follow::Settings;
use punctual_core::time::Span;

use super::{Follow, Reference};

/// The most that a grid's time may be made to differ from CLOCK_MONOTONIC's, parts in 10⁹.
pub(super) const LIMIT_MAX_PPB: i64 = 100_000_000;

/// Why a reference cannot be followed.
#[derive(Debug)]
#[non_exhaustive]
pub enum FollowError {
    /// It could not be read once.
    Unreadable(Reference),
    /// Readings so close to one another: at least [`Follow::EVERY_MIN`].
    Every(Span),
    /// A lead below nothing, or not below the distance of two readings, which follows.
    Lead(Span, Span),
    /// Settings that cannot be: a limit outside 0 to 10⁸ parts in 10⁹, a step below nothing, a
    /// period of nothing.
    Settings(Settings),
    /// There is no thread for it.
    Thread(io::Error),
}

impl fmt::Display for FollowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(reference) => write!(f, "{reference:?} cannot be read"),
            Self::Every(every) => {
                write!(
                    f,
                    "distance of two readings must be at least {} (got {every})",
                    Follow::EVERY_MIN
                )
            }
            Self::Lead(lead, every) => {
                write!(
                    f,
                    "lead must be from 0 to below the distance of two readings of {every} (got \
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
            Self::Thread(why) => write!(f, "cannot start the thread that follows it: {why}"),
        }
    }
}

impl std::error::Error for FollowError {}
