//! Why a change of an executive did not take effect, in words for a person.

use std::fmt;

use punctual_core::dispatch::Mismatch;

/// Why a change did not take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The executive has ended.
    Ended,
    /// Another thread publishes a change.
    Busy,
    /// It does not fit to what runs.
    Mismatch(Mismatch),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the executive has ended"),
            Self::Busy => f.write_str("another change of the executive is under way"),
            Self::Mismatch(why) => write!(f, "the change does not fit to what runs: {why:?}"),
        }
    }
}

impl std::error::Error for Refused {}
