//! Many tests at once: the level of each, so that the level of all together holds.
//!
//! Holm's procedure (Scandinavian Journal of Statistics 6, 1979): valid whatever the dependence.

/// One test of a family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tested {
    /// The p value times the factor of the procedure, at most 1; significant where at most alpha.
    pub(super) adjusted: f64,
    /// The level at which this test is done; an interval of this level agrees with the test.
    pub(super) level: f64,
}

/// The tests of a family that shall hold at `alpha` together.
pub(super) fn holm(p_values: &[f64], alpha: f64) -> Vec<Tested> {
    let m = p_values.len();
    let mut order: Vec<usize> = (0..m).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut tested = vec![Tested { adjusted: 1.0, level: alpha }; m];
    let (mut adjusted, mut stopped) = (0.0f64, None);
    for (at, &test) in order.iter().enumerate() {
        let left = (m - at) as f64;
        adjusted = adjusted.max((p_values[test] * left).min(1.0));
        let level = stopped.unwrap_or(alpha / left);
        if adjusted > alpha {
            stopped.get_or_insert(level);
        }
        tested[test] = Tested { adjusted, level };
    }
    tested
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_its_level_until_one_fails() {
        let tested = holm(&[0.04, 0.001, 0.02], 0.05);
        let adjusted: Vec<f64> = tested.iter().map(|test| test.adjusted).collect();
        assert_eq!(adjusted, [0.04, 0.003, 0.04]);
        let tested = holm(&[0.03, 0.001, 0.04], 0.05);
        // 0.03 · 2 fails, and so does all that follows, at the same level.
        assert_eq!(tested[0], Tested { adjusted: 0.06, level: 0.025 });
        assert_eq!(tested[2], Tested { adjusted: 0.06, level: 0.025 });
        assert!(holm(&[], 0.05).is_empty());
    }
}
