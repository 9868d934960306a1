//! Quantiles of a loop's lateness, from its page.
//!
//! For whoever watches a loop. Walks all buckets; never stops the loop. What they support, and with
//! which confidence, is analysis's to say.

use punctual_core::bucket;
use punctual_core::stats::View;
use punctual_core::time::Span;

/// A lateness that at least `share` of the cycles did not exceed: the upper end of a bucket, so at
/// most 0.8 % too much, and never above the exact maximum. `None` before the first cycle, and for a
/// share outside [0, 1].
///
/// # Real-time: reader side
pub fn of(view: &View<'_>, share: f64) -> Option<Span> {
    let mut buckets = Box::new([0; bucket::COUNT]);
    let counts = view.read(&mut buckets);
    let largest = counts.max?;
    if !(0.0..=1.0).contains(&share) {
        return None;
    }
    let n: u64 = counts.below + counts.above + buckets.iter().sum::<u64>();
    let wanted = ((share * n as f64).ceil() as u64).max(1);
    let mut seen = counts.below;
    if seen >= wanted {
        // They have no buckets: none of them was late at all.
        return Some(largest.min(Span::ZERO));
    }
    for (index, count) in buckets.iter().enumerate() {
        seen += count;
        if seen >= wanted {
            let upper_ns = i64::try_from(bucket::bounds(index).1 - 1).unwrap_or(i64::MAX);
            return Some(largest.min(Span::from_ns(upper_ns)));
        }
    }
    Some(largest)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use punctual_core::cycle::Overruns;
    use punctual_core::stats::{At, Page, PageKind, WORDS};

    use super::*;

    #[test]
    fn a_quantile_is_not_below_the_exact_one_and_within_a_bucket_of_it() {
        let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let mut page = Page::new(&words, PageKind::Lateness).expect("fits");
        let view = View::open(&words).expect("a page");
        assert_eq!(of(&view, 0.5), None);
        let mut push = |ns| page.keep(At::default(), Span::from_ns(ns), None, Overruns::default());
        (1..=1_000).for_each(|k| push(k * 100));
        for (share, exact) in [(0.0, 100), (0.5, 50_000), (0.99, 99_000), (1.0, 100_000)] {
            let ns = of(&view, share).expect("some").as_ns();
            assert!(ns >= exact && ns as f64 <= exact as f64 * 1.008, "{share}: {ns}");
        }
        assert_eq!((of(&view, -0.1), of(&view, f64::NAN)), (None, None));
        (0..1_000).for_each(|_| push(-7));
        assert_eq!(of(&view, 0.25), Some(Span::ZERO));
        push(i64::MAX);
        assert_eq!(of(&view, 1.0), Some(Span::from_ns(i64::MAX)));
    }
}
