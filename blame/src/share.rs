//! Shares of a whole: in words, and how sure one is.

/// The share of a part in a whole, 0..1; 0 of an empty whole.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}

/// A share in [0, 1], as a sentence has it.
pub(crate) fn per_cent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        ..1.0 => "<1 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// Wilson's interval (1927) of a share at 95 %, in [0, 1]; all of that where there is nothing.
#[must_use]
pub fn wilson(part: u64, whole: u64) -> (f64, f64) {
    if whole == 0 {
        return (0.0, 1.0);
    }
    const Z: f64 = 1.959_964;
    let (n, share) = (whole as f64, part as f64 / whole as f64);
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_is_wide_where_wakes_are_few() {
        assert_eq!(wilson(0, 0), (0.0, 1.0));
        let (low, high) = wilson(3, 4);
        assert!(low > 0.29 && low < 0.31 && high > 0.95 && high < 0.96, "{low} {high}");
        let (low, high) = wilson(7_500, 10_000);
        assert!(low > 0.74 && high < 0.76);
        assert!(wilson(10, 10).1 <= 1.0 && wilson(0, 10).0 >= 0.0);
    }
}
