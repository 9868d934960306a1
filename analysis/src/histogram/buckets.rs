//! Which bucket a magnitude falls in, and back: the arithmetic of the log-linear scale.
//!
//! For the histogram alone. No data, no rounding beyond the bucket itself.

/// Buckets per power of two, as a power of two: the relative width is at most 1/1024.
const FINE_BITS: u32 = 10;
const FINE: u64 = 1 << FINE_BITS;
/// Magnitudes below 2 to this power have a bucket.
const RANGE_BITS: u32 = 42;

/// How many buckets a half has.
pub(crate) const BUCKETS: usize = ((RANGE_BITS - FINE_BITS + 1) as usize) << FINE_BITS;

/// The bucket of a magnitude; `BUCKETS` or more when it is beyond the range.
#[inline]
pub(super) fn bucket_of(magnitude: u64) -> usize {
    // The position of the highest bit, at least FINE_BITS: below that, buckets are 1 ns wide.
    let high = 63 - (magnitude | FINE).leading_zeros();
    let shift = high - FINE_BITS;
    // The shifted magnitude keeps its leading one, which adds the last FINE of the offset.
    ((u64::from(shift) << FINE_BITS) + (magnitude >> shift)) as usize
}

/// The lowest magnitude of a bucket.
pub(super) fn lowest_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * FINE {
        return bucket;
    }
    let shift = (bucket >> FINE_BITS) - 1;
    ((bucket & (FINE - 1)) + FINE) << shift
}

/// How many whole nanoseconds fall in a bucket.
pub(super) fn width_of(bucket: usize) -> u64 {
    1 << ((bucket as u64) >> FINE_BITS).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gap() {
        for bucket in 0..BUCKETS {
            let (lowest, width) = (lowest_of(bucket), width_of(bucket));
            assert_eq!(bucket_of(lowest), bucket);
            assert_eq!(bucket_of(lowest + width - 1), bucket);
            assert_eq!(lowest_of(bucket + 1), lowest + width);
            assert!(width == 1 || width * FINE <= lowest, "{bucket}");
        }
    }

    #[test]
    fn the_range_ends_where_it_says() {
        assert_eq!(bucket_of((1 << RANGE_BITS) - 1), BUCKETS - 1);
        assert!(bucket_of(1 << RANGE_BITS) >= BUCKETS);
        assert!(bucket_of(u64::MAX) >= BUCKETS);
        assert!(bucket_of(1 << 63) >= BUCKETS);
    }
}
