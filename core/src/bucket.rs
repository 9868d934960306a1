//! Log-linear buckets of a histogram: linear at first, then so many to each doubling.
//!
//! For whoever counts and whoever shows. Pure arithmetic; touches nothing. The layout is
//! HdrHistogram's: [`LogLinear`] for any resolution, and that of a page, which is [`PageBuckets`]
//! with [`COUNT`], [`index`] and [`bounds`].

/// A layout of buckets: 2^`FINE_BITS` of them to each doubling, up to 2^`TOP_BITS`.
///
/// Magnitudes below 2^(`FINE_BITS` + 1) have a bucket each; above, a bucket is at most
/// 1/2^`FINE_BITS` of its lowest magnitude wide. Signs are its user's to keep. `FINE_BITS` is less
/// than `TOP_BITS`, and that less than 64.
#[derive(Clone, Copy, Debug)]
pub struct LogLinear<const FINE_BITS: u32, const TOP_BITS: u32>;

impl<const FINE_BITS: u32, const TOP_BITS: u32> LogLinear<FINE_BITS, TOP_BITS> {
    /// The number of buckets.
    pub const COUNT: usize = (((TOP_BITS - FINE_BITS) as usize) + 1) << FINE_BITS;

    /// The bucket of a magnitude; [`Self::COUNT`] or more when it is 2^`TOP_BITS` or more.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn index(magnitude: u64) -> usize {
        // The position of the highest bit, at least FINE_BITS: below that, buckets are 1 wide.
        let high = 63 - (magnitude | (1 << FINE_BITS)).leading_zeros();
        let shift = high - FINE_BITS;
        // The shifted magnitude keeps its leading one, which adds the last 2^FINE_BITS.
        ((shift as usize) << FINE_BITS) + (magnitude >> shift) as usize
    }

    /// The magnitudes of bucket `index` in [0, [`Self::COUNT`]]: from the first to before the
    /// second. The one at `COUNT` is that where the range ends.
    ///
    /// # Real-time: reader side
    #[inline]
    pub const fn bounds(index: usize) -> (u64, u64) {
        let linear = 1usize << (FINE_BITS + 1);
        if index < linear {
            return (index as u64, index as u64 + 1);
        }
        let shift = (index >> FINE_BITS) as u32 - 1;
        let low = ((index & ((1 << FINE_BITS) - 1)) as u64 + (1 << FINE_BITS)) << shift;
        (low, low + (1 << shift))
    }
}

/// The buckets of a page, in nanoseconds: values up to 255 ns have one each, above they are 0.8 %
/// wide, and the last one ends at 2⁴⁰ ns (18 minutes).
pub type PageBuckets = LogLinear<7, 40>;

/// The number of buckets in a page.
pub const COUNT: usize = PageBuckets::COUNT;

/// The place of a value in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketPlace {
    /// The value is negative.
    Below,
    /// In this bucket, in [0, `COUNT`).
    In(usize),
    /// Beyond the last bucket.
    Above,
}

/// The place of a value in nanoseconds.
///
/// # Real-time: in loop
#[inline]
pub const fn index(value_ns: i64) -> BucketPlace {
    if value_ns < 0 {
        return BucketPlace::Below;
    }
    match PageBuckets::index(value_ns.cast_unsigned()) {
        at if at < COUNT => BucketPlace::In(at),
        _ => BucketPlace::Above,
    }
}

/// The values of a page's bucket `index` in [0, `COUNT`), in nanoseconds: from the first to before
/// the second.
///
/// # Real-time: reader side
pub const fn bounds(index: usize) -> (u64, u64) {
    PageBuckets::bounds(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joins_without_gap<const FINE_BITS: u32, const TOP_BITS: u32>() {
        let mut next = 0;
        for at in 0..LogLinear::<FINE_BITS, TOP_BITS>::COUNT {
            let (low, high) = LogLinear::<FINE_BITS, TOP_BITS>::bounds(at);
            assert_eq!(low, next, "bucket {at}");
            assert!(high > low && (high - low) <= (low >> FINE_BITS).max(1), "bucket {at}");
            assert_eq!(LogLinear::<FINE_BITS, TOP_BITS>::index(low), at);
            assert_eq!(LogLinear::<FINE_BITS, TOP_BITS>::index(high - 1), at);
            next = high;
        }
        assert_eq!(next, 1 << TOP_BITS);
        let count = LogLinear::<FINE_BITS, TOP_BITS>::COUNT;
        assert_eq!(LogLinear::<FINE_BITS, TOP_BITS>::bounds(count).0, 1 << TOP_BITS);
        for beyond in [1 << TOP_BITS, 1 << 63, u64::MAX] {
            assert!(LogLinear::<FINE_BITS, TOP_BITS>::index(beyond) >= count, "{beyond}");
        }
    }

    #[test]
    fn buckets_join_without_gap_and_end_where_said() {
        joins_without_gap::<7, 40>();
        joins_without_gap::<10, 42>();
    }

    #[test]
    fn each_value_is_in_the_bucket_that_holds_it() {
        let edges = (0..40).flat_map(|bit| [(1i64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        for value in edges.chain(0..2_000) {
            let BucketPlace::In(at) = index(value) else { panic!("{value} has a bucket") };
            let (low, high) = bounds(at);
            assert!((low..high).contains(&value.cast_unsigned()), "{value} in {at}");
        }
        assert_eq!(index(-1), BucketPlace::Below);
        assert_eq!(index(i64::MIN), BucketPlace::Below);
        assert_eq!(index(1 << 40), BucketPlace::Above);
        assert_eq!(index(i64::MAX), BucketPlace::Above);
    }
}
