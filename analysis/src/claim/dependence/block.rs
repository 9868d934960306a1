//! Many latenesses at once: which thresholds each exceeds, without a branch per value.
//!
//! For recordings, most of which are neighbouring cycles without a gap. The result is exactly that
//! of pushing them one by one.

use super::Exceedances;

/// The most values at once.
const BLOCK: usize = 256;

impl Exceedances {
    /// Takes in recorded cycles with no release missed between them, each within 2³¹ ns.
    pub(crate) fn extend(&mut self, latenesses_ns: &[i64]) {
        for some in latenesses_ns.chunks(BLOCK) {
            if self.warm {
                self.watch_all(some);
            } else {
                some.iter().for_each(|&ns| self.push(ns, 0, 0));
            }
        }
    }

    fn watch_all(&mut self, latenesses_ns: &[i64]) {
        let (mut min, mut max) = (i64::MAX, i64::MIN);
        for &ns in latenesses_ns {
            (min, max) = (min.min(ns), max.max(ns));
        }
        let (low, high) = (self.level_of(min), self.level_of(max));
        let (index, recorded) = (self.index, self.recorded);
        // Narrow, so that more fit in a register; these thresholds lie between min and max.
        let mut narrow = [0i32; BLOCK];
        narrow.iter_mut().zip(latenesses_ns).for_each(|(narrow, &ns)| *narrow = ns as i32);
        let mut levels = [low as i32; BLOCK];
        for watch in &self.watches[low..high] {
            let threshold_ns = watch.threshold_ns() as i32;
            for (level, &ns) in levels.iter_mut().zip(&narrow) {
                *level += i32::from(ns > threshold_ns);
            }
        }
        // Written whether the level changes or not; kept only where it does.
        let mut changes = [0u16; BLOCK];
        let (mut many, mut before) = (0, self.level as i32);
        for (at, &level) in levels[..latenesses_ns.len()].iter().enumerate() {
            changes[many] = at as u16;
            many += usize::from(level != before);
            before = level;
        }
        for &at in &changes[..many] {
            self.index = index.saturating_add(u64::from(at));
            self.recorded = recorded + u64::from(at);
            self.move_to(levels[usize::from(at)] as usize);
        }
        self.index = index.saturating_add(latenesses_ns.len() as u64);
        self.recorded = recorded + latenesses_ns.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn many_at_once_are_what_they_are_one_by_one(
            values in prop::collection::vec(
                prop_oneof![20 => 1_000i64..20_000, 1 => -5_000_000i64..50_000_000], 3_900..6_000,
            ),
            split in 0usize..6_000,
        ) {
            let mut one = Exceedances::new(1_000_000, &[-3, 7_777]);
            let mut all = one.clone();
            let (first, second) = values.split_at(split.min(values.len()));
            all.extend(first);
            all.push(9_000, 3, 4_000_000);
            first.iter().for_each(|&ns| one.push(ns, 0, 0));
            one.push(9_000, 3, 4_000_000);
            second.iter().for_each(|&ns| one.push(ns, 0, 0));
            all.extend(second);
            prop_assert_eq!(one.finish(3), all.finish(3));
        }
    }
}
