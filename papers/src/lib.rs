//! The papers that punctual builds on, one file a paper: what it prints, what its own formula
//! gives, what is measured beside it on this machine, and where it errs. Never prints.
//!
//! [`nist`]: timing jitter of a Linux with a real-time executive below it. [`linuxcnc`]: a tuned
//! desktop. [`wince`]: interrupt and application latencies of Windows CE. [`ant`]: the six tables
//! of AnT against the wait queue of ART-Linux. [`maruti`]: exits of a spin to the counter's cycle.
//!
//! What only a paper needs lies beside it. The measuring is the lab's, the machine and the time the
//! caller's: [`bench::Bench`].
#![forbid(unsafe_code)]

pub mod ant;
pub mod bench;
pub mod claim;
pub mod figure;
pub mod linuxcnc;
pub mod maruti;
pub mod nist;
pub mod row;
pub mod wince;

use bench::Bench;
use claim::PaperClaim;
use row::PaperRow;

/// What measuring a paper again gives.
#[derive(Clone, Debug, Default)]
pub struct Reproduction {
    /// A row for each number that it prints.
    pub rows: Vec<PaperRow>,
    /// What it claims, each with its verdict.
    pub claims: Vec<PaperClaim>,
}

/// A paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// NIST's.
    Nist,
    /// LinuxCNC's.
    Linuxcnc,
    /// The one on Windows CE.
    Wince,
    /// AnT's.
    Ant,
    /// Maruti's.
    Maruti,
}

impl Paper {
    /// In the order of results.
    pub const ALL: [Self; 5] = [Self::Nist, Self::Linuxcnc, Self::Wince, Self::Ant, Self::Maruti];

    /// The paper with this short name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|paper| paper.name() == name)
    }

    /// Its short name, with which the ids of its rows and figures begin.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nist => "nist",
            Self::Linuxcnc => "linuxcnc",
            Self::Wince => "wince",
            Self::Ant => "ant",
            Self::Maruti => "maruti",
        }
    }

    /// Its title, shortened.
    pub fn title(self) -> &'static str {
        match self {
            Self::Nist => "Timing jitter of real-time Linux, and its effect on motor control",
            Self::Linuxcnc => "Tuning the kernel for LinuxCNC",
            Self::Wince => "Benchmarking real-time determinism in Windows CE",
            Self::Ant => "Sophisticated periodic execution control (AnT against ART-Linux)",
            Self::Maruti => "Temporal accuracy on the Pentium Pro (Maruti)",
        }
    }

    /// Its rows and its claims, measured.
    ///
    /// # Errors
    /// Why it cannot be measured.
    pub fn reproduce<B: Bench>(self, bench: &mut B) -> Result<Reproduction, B::Error> {
        match self {
            Self::Nist => nist::reproduce(bench),
            Self::Linuxcnc => linuxcnc::reproduce(bench),
            Self::Wince => wince::reproduce(bench),
            Self::Ant => ant::reproduce(bench),
            Self::Maruti => maruti::reproduce(bench),
        }
    }
}
