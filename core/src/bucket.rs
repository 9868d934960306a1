//! The buckets of a page's histogram: linear at first, then 128 to each doubling.
//!
//! For the page that counts and the reader that shows. Pure arithmetic; touches nothing.
//!
//! Values up to 255 ns have a bucket each; above, a bucket is at most 1/128 of its value wide
//! (0.8 %). The last one ends at 2⁴⁰ ns (18 minutes). The layout is HdrHistogram's.

/// Buckets to a doubling, as a power of two.
const SUB_BITS: u32 = 7;
/// Values at or above 2 to this power have no bucket.
const TOP_BITS: u32 = 40;

/// How many buckets there are.
pub const COUNT: usize = (((TOP_BITS - SUB_BITS) as usize) + 1) << SUB_BITS;

/// Where a value belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
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
pub const fn index(value_ns: i64) -> Place {
    if value_ns < 0 {
        return Place::Below;
    }
    let value = value_ns.cast_unsigned();
    // The doublings above the linear part: 0 below 256 ns.
    let shift = (64 - SUB_BITS - 1).saturating_sub((value | 1).leading_zeros());
    if shift > TOP_BITS - SUB_BITS - 1 {
        return Place::Above;
    }
    Place::In(((shift as usize) << SUB_BITS) + (value >> shift) as usize)
}

/// The values of bucket `index` in [0, `COUNT`), in nanoseconds: from the first to before the
/// second.
///
/// # Real-time: reader side
pub const fn bounds(index: usize) -> (u64, u64) {
    let linear = 1usize << (SUB_BITS + 1);
    if index < linear {
        return (index as u64, index as u64 + 1);
    }
    let shift = (index >> SUB_BITS) as u32 - 1;
    let low = ((index & ((1 << SUB_BITS) - 1)) as u64 + (1 << SUB_BITS)) << shift;
    (low, low + (1 << shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_join_without_gap_and_end_where_said() {
        let mut next = 0;
        for at in 0..COUNT {
            let (low, high) = bounds(at);
            assert_eq!(low, next, "bucket {at}");
            assert!(high > low && (high - low) <= (low / 128).max(1), "bucket {at}");
            next = high;
        }
        assert_eq!(next, 1 << TOP_BITS);
    }

    #[test]
    fn each_value_is_in_the_bucket_that_holds_it() {
        let edges = (0..TOP_BITS).flat_map(|bit| [(1i64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        for value in edges.chain(0..2_000) {
            let Place::In(at) = index(value) else { panic!("{value} has a bucket") };
            let (low, high) = bounds(at);
            assert!((low..high).contains(&value.cast_unsigned()), "{value} in {at}");
        }
        assert_eq!(index(-1), Place::Below);
        assert_eq!(index(i64::MIN), Place::Below);
        assert_eq!(index(1 << TOP_BITS), Place::Above);
        assert_eq!(index(i64::MAX), Place::Above);
    }
}
