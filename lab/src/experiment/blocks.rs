//! The order in which an experiment visits its conditions: short blocks in turn, so that a drift of
//! the machine hits all of them alike.

use punctual_core::time::Span;

/// A part of the experiment under one condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionBlock {
    /// Index of the condition.
    pub condition: usize,
    /// Time that its loops run, once its loads are up.
    pub length: Span,
}

/// Blocks that visit conditions 0 (idle) and 1 to `loads` in turn, so that a drift of the machine
/// hits all alike: in each of `rounds` rounds, one block of idle before every second load.
pub fn interleave(loads: usize, rounds: u32, total: Span) -> Vec<ConditionBlock> {
    let rounds = usize::try_from(rounds).unwrap_or(1);
    split(&round(loads).repeat(rounds), total)
}

/// One round of [`interleave`].
pub fn round(loads: usize) -> Vec<usize> {
    let visits = |load: usize| load.is_multiple_of(2).then_some(0).into_iter().chain([load + 1]);
    if loads == 0 { vec![0] } else { (0..loads).flat_map(visits).collect() }
}

/// Blocks of equal length that visit `order`; they add up to `total` exactly.
pub fn split(order: &[usize], total: Span) -> Vec<ConditionBlock> {
    let count = order.len() as i64;
    let edge = |block: i64| {
        i64::try_from(i128::from(total.as_ns()) * i128::from(block) / i128::from(count.max(1)))
            .unwrap_or(i64::MAX)
    };
    (0..)
        .zip(order)
        .map(|(at, &condition)| ConditionBlock {
            condition,
            length: Span::from_ns(edge(at + 1) - edge(at)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_add_up_and_each_condition_has_its_share() {
        let total = Span::from_ns(60_000_000_001);
        let blocks = interleave(8, 2, total);
        assert_eq!(blocks.len(), 24);
        assert_eq!(blocks.iter().map(|block| block.length.as_ns()).sum::<i64>(), total.as_ns());
        let visits = |condition| blocks.iter().filter(|b| b.condition == condition).count();
        assert_eq!(visits(0), 8);
        assert!((1..=8).all(|load| visits(load) == 2));
        assert!(blocks.windows(2).all(|pair| pair[0].condition != pair[1].condition));
    }

    #[test]
    fn without_loads_there_is_idle_alone() {
        let blocks = interleave(0, 1, Span::from_ms(5));
        assert_eq!(blocks, [ConditionBlock { condition: 0, length: Span::from_ms(5) }]);
        assert_eq!(split(&[], Span::from_ms(5)), []);
    }
}
