//! One test of the battery, and its result.
//!
//! Plain data: a statistic with the critical value that it must not exceed. Each critical value is
//! exceeded by a stationary independent series with a tail of the assumed kind in the given share
//! of runs; all shares together stay below 8 %, so that such a run is refused in fewer.

use std::fmt;

/// What a test is about: the three conditions for an extrapolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The same distribution from the first cycle to the last.
    Stationarity,
    /// Late cycles do not come in clusters.
    Independence,
    /// One tail, of the fitted kind, up to the largest value.
    Tail,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stationarity => "stationarity",
            Self::Independence => "independence",
            Self::Tail => "tail",
        })
    }
}

/// One test with its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// What it is about.
    pub about: About,
    /// What a series that fails it does, in words.
    pub fails_when: &'static str,
    /// The name of the statistic.
    pub name: &'static str,
    /// What was computed.
    pub statistic: f64,
    /// The critical value.
    pub limit: f64,
}

impl Test {
    /// Whether the series passed.
    pub fn passes(&self) -> bool {
        // A statistic that could not be computed passes nothing.
        self.statistic <= self.limit
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { about, fails_when, name, statistic, limit } = self;
        write!(f, "the {about} test failed: {fails_when} ({name} {statistic:.2} > {limit:.2})")
    }
}
