//! Why a quantity was refused, in one line that says what to write instead.

use super::Dimension;

/// A quantity that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// It does not begin with a number.
    NotANumber {
        /// What was written.
        text: String,
        /// What was needed.
        expected: Dimension,
    },
    /// A bare number.
    NoUnit {
        /// What was written.
        text: String,
        /// What was needed.
        expected: Dimension,
    },
    /// A unit that is not in the table.
    UnknownUnit {
        /// The unit as written.
        unit: String,
        /// What was needed.
        expected: Dimension,
    },
    /// A unit of another dimension.
    Dimension {
        /// What was written.
        text: String,
        /// What was needed.
        expected: Dimension,
        /// What it is.
        found: Dimension,
    },
    /// Zero where a positive value is needed.
    Zero {
        /// What was written.
        text: String,
    },
    /// Negative where a positive value is needed.
    Negative {
        /// What was written.
        text: String,
    },
    /// A duration that is not a whole number of nanoseconds.
    TooFine {
        /// What was written.
        text: String,
    },
    /// Beyond what can be held.
    TooLarge {
        /// What was written.
        text: String,
    },
    /// A share outside (0, 1].
    OutsideShare {
        /// What was written.
        text: String,
    },
}

impl QuantityError {
    pub(super) fn too_large(text: &str) -> Self {
        Self::TooLarge { text: text.trim().to_owned() }
    }
}

impl std::error::Error for QuantityError {}

impl std::fmt::Display for QuantityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotANumber { text, expected } if text.is_empty() => {
                write!(f, "expected {} (e.g. {}), got nothing", expected.name(), expected.example())
            }
            Self::NotANumber { text, expected } => {
                write!(f, "{text} is not {}; write e.g. {}", expected.name(), expected.example())
            }
            Self::NoUnit { text, expected } => {
                write!(f, "{text} needs a unit, e.g. {text}{}", expected.example_unit())
            }
            Self::UnknownUnit { unit, expected } => {
                write!(f, "unknown unit {unit}; {} takes {}", expected.name(), expected.units())
            }
            Self::Dimension { text, expected, found } => write!(
                f,
                "{text} is {}; expected {} ({})",
                found.name(),
                expected.name(),
                expected.units()
            ),
            Self::Zero { text } => write!(f, "{text} is zero; the value must be greater than 0"),
            Self::Negative { text } => {
                write!(f, "{text} is negative; the value must be greater than 0")
            }
            Self::TooFine { text } => write!(f, "{text} is not a whole number of nanoseconds"),
            Self::TooLarge { text } => write!(f, "{text} is too large"),
            Self::OutsideShare { text } => {
                write!(
                    f,
                    "{text} is not a share: it must be above 0 and at most 1, e.g. 10% or \
                          0.1"
                )
            }
        }
    }
}
