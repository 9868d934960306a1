//! What a load did.

/// The most deaths that a report lists.
pub(crate) const DEATHS_MAX: usize = 16;

/// A load's process that ended before it was to, or stood still for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadDeath {
    /// When, on CLOCK_MONOTONIC, in ns.
    pub at_ns: u64,
    /// How long after it was ready, in ns; `None` when it had not become ready again.
    pub worked_ns: Option<u64>,
    /// Why, in one line.
    pub why: String,
    /// Whether it was started again: once in a block.
    pub restarted: bool,
    /// It did not end, but stood still for so long, in ns; `None` of one that ended.
    pub stood_still_ns: Option<u64>,
}

/// One rate of one load. A load can have several: stress-ng has one for each requested stressor.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadReport {
    /// The load as `--load` names it; a part of `linuxcnc` is `linuxcnc cpu`, for instance.
    pub name: String,
    /// Done per second between `ready` and the last count, by the load's own clock; of one that was
    /// started again, over the time that both worked. `None` when nothing was counted, and then
    /// `note` says why. 0 is a load that stood still.
    pub rate: Option<f64>,
    /// The unit of `rate`: `polygons/s`.
    pub unit: String,
    /// What a reader should know: a part that is not installed, a network that fell back.
    pub note: Option<String>,
    /// When its process ended before it was to, or stood still, the first 16.
    pub deaths: Vec<LoadDeath>,
}

/// `count` in `at_ns` as a rate per second; none in no time.
pub(super) fn rate_per_s(count: u64, at_ns: u64) -> Option<f64> {
    (at_ns > 0).then(|| count as f64 * 1e9 / at_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::rate_per_s;

    #[test]
    fn rates_are_per_second() {
        assert_eq!(rate_per_s(50, 500_000_000), Some(100.0));
        assert_eq!(rate_per_s(0, 1), Some(0.0));
        assert_eq!(rate_per_s(7, 0), None);
    }
}
