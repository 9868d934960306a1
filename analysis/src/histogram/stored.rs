//! A histogram as it is stored: the buckets that hold something, each as its distance from the one
//! before and its count, in one flat list. It is checked when it is read back.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{BUCKETS, Histogram, bucket_of, reach};

/// More values than any histogram holds: so many that a few such counts add up without overflow.
const COUNT_MAX: u64 = 1 << 56;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    /// [steps over empty buckets, count, …], for values ≥ 0 and < 0.
    positive: Vec<u64>,
    negative: Vec<u64>,
    beyond: u64,
    below: u64,
    range_ns: Option<(i64, i64)>,
}

fn sparse(counts: &[u64]) -> Vec<u64> {
    let mut next = 0;
    let mut list = Vec::new();
    for (at, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        list.extend([(at - next) as u64, count]);
        next = at + 1;
    }
    list
}

/// The counts by bucket, and how many there are in all.
fn dense(list: &[u64]) -> Result<(Vec<u64>, u64), &'static str> {
    let (pairs, rest) = list.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("a bucket without a count");
    }
    let (mut counts, mut next, mut n) = (Vec::new(), 0u64, 0u64);
    for &[step, count] in pairs {
        let at = next.checked_add(step).filter(|&at| at < BUCKETS as u64);
        let at = at.ok_or("a bucket beyond the last one")?;
        if count == 0 || count > COUNT_MAX {
            return Err("an invalid count");
        }
        reach(&mut counts, at as usize);
        counts[at as usize] = count;
        n += count;
        if n > COUNT_MAX {
            return Err("too many values");
        }
        next = at + 1;
    }
    Ok((counts, n))
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = Wire {
            positive: sparse(&self.positive),
            negative: sparse(&self.negative),
            beyond: self.beyond,
            below: self.below,
            range_ns: self.range,
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        whole(&wire).map_err(|why| D::Error::custom(format!("a histogram with {why}")))
    }
}

fn whole(wire: &Wire) -> Result<Histogram, &'static str> {
    let (positive, above) = dense(&wire.positive)?;
    let (negative, under) = dense(&wire.negative)?;
    if wire.beyond > COUNT_MAX || wire.below > COUNT_MAX {
        return Err("too many values");
    }
    let n = above + under + wire.beyond + wire.below;
    let range = wire.range_ns.filter(|_| n > 0);
    let histogram =
        Histogram { positive, negative, beyond: wire.beyond, below: wire.below, n, range };
    match (n, wire.range_ns) {
        (0, None) => Ok(histogram),
        (1.., Some((min, max))) if min <= max => {
            let ends = [min, max].into_iter().all(|ns| histogram.holds(ns));
            let inside = histogram.buckets().all(|b| b.highest_ns >= min && b.lowest_ns <= max);
            if ends && inside {
                Ok(histogram)
            } else {
                Err("a minimum or maximum outside its \
                                                           buckets")
            }
        }
        _ => Err("an invalid minimum or maximum"),
    }
}

impl Histogram {
    /// Whether the bucket of this value holds something.
    fn holds(&self, value_ns: i64) -> bool {
        let bucket = bucket_of(value_ns.unsigned_abs());
        let (half, outside) = if value_ns >= 0 {
            (&self.positive, self.beyond)
        } else {
            (&self.negative, self.below)
        };
        if bucket < BUCKETS {
            half.get(bucket).is_some_and(|&count| count > 0)
        } else {
            outside > 0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_cannot_be_is_refused() {
        let read = |text: &str| serde_json::from_str::<Histogram>(text).map_err(|e| e.to_string());
        let one = |positive: &str, range: &str| {
            let rest = r#""negative":[],"beyond":0,"below":0"#;
            read(&format!(r#"{{"positive":{positive},{rest},"range_ns":{range}}}"#))
        };
        assert_eq!(one("[5,2]", "[5,5]").map(|h| h.count()), Ok(2));
        assert_eq!(one("[]", "null"), Ok(Histogram::new()));
        for (positive, range, why) in [
            ("[5]", "[5,5]", "without a count"),
            ("[5,0]", "[5,5]", "an invalid count"),
            ("[99999999,1]", "[5,5]", "beyond the last"),
            ("[18446744073709551615,1]", "[5,5]", "beyond the last"),
            ("[5,72057594037927937]", "[5,5]", "an invalid count"),
            ("[5,1]", "null", "minimum or maximum"),
            ("[5,1]", "[6,5]", "minimum or maximum"),
            ("[5,1]", "[5,6]", "minimum or maximum"),
            ("[5,1,1,1]", "[5,5]", "minimum or maximum"),
            ("[]", "[5,5]", "minimum or maximum"),
        ] {
            let refused = one(positive, range).unwrap_err();
            assert!(refused.contains(why), "{positive} {range}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn what_was_stored_comes_back(
            values in prop::collection::vec(
                prop_oneof![-3_000i64..3_000, -1_000_000_000i64..1_000_000_000, any::<i64>()],
                0..200,
            ),
        ) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&value| histogram.push(value));
            let text = serde_json::to_string(&histogram).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
        }
    }
}
