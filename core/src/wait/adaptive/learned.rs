//! What a wait learned of its machine, and what it reached.
//!
//! For reports. Plain data.

use crate::wait::WakePlan;

/// The phase of a learner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnPhase {
    /// Trying each approach in turn.
    Calibrating,
    /// Following the one that it chose.
    Following,
    /// Trying a cheaper one for a moment.
    Probing,
}

/// What was learned, and what it reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learned {
    /// Its phase.
    pub phase: LearnPhase,
    /// How releases are approached.
    pub approach: WakePlan,
    /// The share of wakes since the last calibration that came after the release.
    pub late: f64,
    /// Wakes since then.
    pub cycles: u64,
    /// The share of the CPU that waiting takes, as computed from the aim's cost of a wake.
    pub cpu: f64,
    /// Whether the aim is within the budget on this machine, as far as is known.
    pub reachable: bool,
    /// Whether too few sleeps were seen for the aim: until then the margin is as wide as a fixed
    /// one ([`Spin::FIXED`](crate::wait::Spin::FIXED)), or as the budget pays.
    pub extrapolated: bool,
    /// Late wakes since the last calibration while another approach was tried.
    pub trials_late: u64,
}
