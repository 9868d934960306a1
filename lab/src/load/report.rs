//! What a load did.

/// One rate of one load. A load can have several: stress-ng has one for each requested stressor.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadReport {
    /// The load as `--load` names it; a part of `linuxcnc` is `linuxcnc cpu`, for instance.
    pub name: String,
    /// Done per second between `ready` and the last count, by the load's own clock; `None` when
    /// nothing was counted, and then `note` says why. 0 is a load that stood still.
    pub rate: Option<f64>,
    /// The unit of `rate`: `polygons/s`.
    pub unit: String,
    /// What a reader should know: a part that is not installed, a network that fell back.
    pub note: Option<String>,
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
