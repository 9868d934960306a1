//! A claim as a person writes it: `p(lateness>50us)<1e-6 @99%`.
//!
//! Reads the expression and writes it back. Judges nothing (`judge` does) and counts nothing.
//!
//! ```text
//! claim  = "p(" event ")" "<" share [ "@" confidence ]
//! event  = "lateness>" time | "|interval|>" time | "missed"
//! ```
//!
//! `interval>T` is read as `|interval|>T`; spaces may stand between the parts. The share lies in
//! [10⁻¹⁵, 1), the confidence, 95 % where none is written, in [50 %, 99.9999999 %].

mod parse;

use crate::quantile::Probability;
use parse::{Wrong, parts};

/// What a claim counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimEvent {
    /// Cycles later than this. A missed release counts with the lateness that the stall caused.
    Lateness {
        /// The lateness, ns; positive.
        above_ns: i64,
    },
    /// Intervals farther from zero than this.
    Interval {
        /// The distance, ns; positive.
        above_ns: i64,
    },
    /// Releases that never ran.
    Missed,
}

/// A claim: that an event has a probability below a bound, at a confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    event: ClaimEvent,
    p: f64,
    confidence: Probability,
}

/// Why an expression is not a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("claim {text:?}: at character {at}: {why}")]
pub struct AskError {
    text: String,
    /// The character that it is about, counted from 1.
    at: usize,
    why: String,
}

/// The smallest probability that a claim may state: 3·10¹⁵ cycles, 95 000 years at 1 ms.
pub const P_MIN: f64 = 1e-15;

const EXAMPLE: &str = "p(lateness>50us)<1e-6";
/// Characters of a refused text that are shown.
const SHOWN: usize = 60;

impl Ask {
    /// A claim from its parts; `None` when `p` or the confidence is out of range, or the event's
    /// threshold is not positive.
    pub fn new(event: ClaimEvent, p: f64, confidence: Probability) -> Option<Self> {
        let above_ns = match event {
            ClaimEvent::Lateness { above_ns } | ClaimEvent::Interval { above_ns } => above_ns,
            ClaimEvent::Missed => 1,
        };
        let fits = (P_MIN..1.0).contains(&p) && confidence.share() >= 0.5 && above_ns > 0;
        fits.then_some(Self { event, p, confidence })
    }

    /// Reads a claim.
    ///
    /// # Errors
    /// One line that says at which character something is wrong and what to write.
    pub fn parse(text: &str) -> Result<Self, AskError> {
        parts(text).map_err(|Wrong { at, why }| AskError {
            text: text.chars().take(SHOWN).collect(),
            at: text.get(..at).unwrap_or(text).chars().count() + 1,
            why,
        })
    }

    /// What it counts.
    pub fn event(self) -> ClaimEvent {
        self.event
    }

    /// The bound that the probability is to lie under, in [10⁻¹⁵, 1).
    pub fn p(self) -> f64 {
        self.p
    }

    /// The confidence, in [0.5, 1).
    pub fn confidence(self) -> f64 {
        self.confidence.share()
    }

    /// The confidence as it is shown: `95 %`.
    pub fn shown_confidence(self) -> String {
        format!("{} %", self.confidence.to_string().trim_start_matches('p'))
    }

    /// The lateness threshold of the claim, ns, to be watched while recording.
    pub fn lateness_ns(self) -> Option<i64> {
        match self.event {
            ClaimEvent::Lateness { above_ns } => Some(above_ns),
            ClaimEvent::Interval { .. } | ClaimEvent::Missed => None,
        }
    }

    /// The interval's threshold of the claim: its distance from zero, ns.
    pub fn interval_ns(self) -> Option<i64> {
        match self.event {
            ClaimEvent::Interval { above_ns } => Some(above_ns),
            ClaimEvent::Lateness { .. } | ClaimEvent::Missed => None,
        }
    }
}

impl std::str::FromStr for Ask {
    type Err = AskError;

    fn from_str(text: &str) -> Result<Self, AskError> {
        Self::parse(text)
    }
}

impl std::fmt::Display for ClaimEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Lateness { above_ns } => write!(f, "lateness>{}", exact(above_ns)),
            Self::Interval { above_ns } => write!(f, "|interval|>{}", exact(above_ns)),
            Self::Missed => f.write_str("missed"),
        }
    }
}

impl std::fmt::Display for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p({})<{:e}", self.event, self.p)?;
        if self.confidence != DEFAULT {
            write!(f, " @{}%", self.confidence.to_string().trim_start_matches('p'))?;
        }
        Ok(())
    }
}

/// 95 %.
const DEFAULT: Probability = Probability::P95;

/// A time with every digit, in the largest unit that gives a whole number.
fn exact(ns: i64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match units.iter().find(|(unit, _)| ns % unit == 0) {
        Some((unit, name)) => format!("{}{name}", ns / unit),
        None => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests;
