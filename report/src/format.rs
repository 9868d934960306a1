//! Numbers and times as shown to people: times with their unit, counts in groups of three.
//!
//! Rounds for the eye only; whoever needs the number has the JSON.

pub use punctual_analysis::plain::{grouped as count, plain};
use punctual_core::time::Span;

/// A time in ns with its unit, or `-` where there was too little data.
pub fn ns(value: Option<f64>) -> String {
    match value {
        // Saturates far beyond what a span can show.
        Some(ns) => Span::from_ns(ns.round() as i64).to_string(),
        None => "-".to_owned(),
    }
}

/// The largest of several times in ns, of which `unknown` more may be larger.
pub fn largest(value: Option<f64>, unknown: u64) -> String {
    match (value, unknown) {
        (Some(_), 1..) => format!("≥ {}", ns(value)),
        (value, _) => ns(value),
    }
}

/// The ends of an interval in ns, their unit once where it is the same: `1.20–8.05 ms`; `≥ 1.20 ms`
/// where it has no upper end, and `-` without any.
pub fn within(low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(_), Some(_)) => {
            let (low, high) = (ns(low), ns(high));
            let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
            match unit(&low) == unit(&high) {
                true => format!("{}–{high}", low.split(' ').next().unwrap_or_default()),
                false => format!("{low}–{high}"),
            }
        }
        (Some(_), None) => format!("≥ {}", ns(low)),
        (None, Some(_)) => format!("≤ {}", ns(high)),
        (None, None) => "-".to_owned(),
    }
}

/// A whole number, without the sign of nothing.
pub fn whole(value: f64) -> String {
    // -0.4 would be shown as -0.
    format!("{:.0}", value.round() + 0.0)
}

/// A period as it was given: without figures that add nothing.
pub fn period(ns: u64) -> String {
    let unit = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    match unit.iter().find(|(unit_ns, _)| ns.is_multiple_of(*unit_ns)) {
        Some((unit_ns, unit)) => format!("{} {unit}", ns / unit_ns),
        // Three digits after the point are nanoseconds: exact.
        None if ns > 1_000 => format!("{} µs", ns as f64 / 1e3),
        None => format!("{ns} ns"),
    }
}

/// A period as an argument: `500us`.
pub fn period_argument(ns: u64) -> String {
    period(ns).replace(' ', "").replace('µ', "u")
}

/// The rate of a period: `1 kHz`, `750 Hz`, `0.2 Hz`; the period itself beyond 100 s, where three
/// places of the rate are too few.
pub fn frequency(period_ns: u64) -> String {
    if period_ns > 100_000_000_000 {
        return period(period_ns);
    }
    let hz = 1e9 / period_ns.max(1) as f64;
    let (value, unit) = if hz >= 999.5 { (hz / 1e3, "kHz") } else { (hz, "Hz") };
    let digits = format!("{value:.3}");
    format!("{}\u{a0}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// A long time in the unit that people wait in: `30.0 ms`, `2.5 s`, `50 min`, `8.3 h`.
pub fn long(ns: f64) -> String {
    match ns / 1e9 {
        s if s < 0.95 => self::ns(Some(s * 1e9)),
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3_600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

/// A time as an argument that is long enough, rounded up: `49.9min`, `2.6h`; `None` beyond what one
/// can ask for.
pub fn argument(ns: f64) -> Option<String> {
    const LONGEST_NS: f64 = 9.2e18;
    let (unit_ns, unit) = match ns / 1e9 {
        s if s < 120.0 => (1e9, "s"),
        s if s < 7_200.0 => (60e9, "min"),
        s if s < 172_800.0 => (3_600e9, "h"),
        _ => (86_400e9, "d"),
    };
    let tenths = (ns / unit_ns * 10.0).ceil() / 10.0;
    (tenths * unit_ns < LONGEST_NS).then(|| format!("{tenths}{unit}"))
}

/// A count that is known within bounds: `none`, `536`, `536 to 543`, `up to 7`.
pub(crate) fn count_within((least, most): (u64, u64)) -> String {
    match (least, most) {
        (_, 0) => "none".to_owned(),
        (least, most) if least >= most => count(most),
        (0, most) => format!("up to {}", count(most)),
        (least, most) => format!("{} to {}", count(least), count(most)),
    }
}

/// A count, or `-` where the data do not have it.
pub fn count_or_dash(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), count)
}

/// A rate with three figures: `169 k`, `8 842`, `87.3`, `0.52`.
pub fn rate(value: f64) -> String {
    let figures = |value: f64| match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    };
    match value {
        v if v >= 1e9 => format!("{}\u{a0}G", figures(v / 1e9)),
        v if v >= 1e6 => format!("{}\u{a0}M", figures(v / 1e6)),
        v if v >= 1e5 => format!("{}\u{a0}k", figures(v / 1e3)),
        v if v >= 1e3 => count(v.round() as u64),
        v => figures(v),
    }
}

/// A share in percent: `87 %`, `0.4 %`, `87 832 %`.
pub fn share(value: f64) -> String {
    let percent = value * 100.0;
    if percent >= 999.5 {
        // Such as a lateness of many periods.
        format!("{} %", count(percent.round() as u64))
    } else if percent >= 9.95 || percent == 0.0 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// ASCII words as a sentence: with a capital letter and a full stop.
pub fn sentence(words: &str) -> String {
    let (first, rest) = words.split_at(words.len().min(1));
    format!("{}{rest}.", first.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_three_places_do_not_show_is_its_period() {
        let shown = [25_000, 1_333_333, 5_000_000_000, 100_000_000_000].map(frequency);
        assert_eq!(shown, ["40\u{a0}kHz", "750\u{a0}Hz", "0.2\u{a0}Hz", "0.01\u{a0}Hz"]);
        assert_eq!([150, 2_000].map(|s| frequency(s * 1_000_000_000)), ["150 s", "2000 s"]);
    }

    #[test]
    fn numbers_are_grouped_and_carry_their_unit() {
        assert_eq!(
            [0, 7, 999, 1_000, 1_234_567].map(count),
            ["0", "7", "999", "1\u{a0}000", "1\u{a0}234\u{a0}567"]
        );
        assert_eq!(
            [(1.2e6, 8.05e6), (980e3, 1.2e6)].map(|(low, high)| within(Some(low), Some(high))),
            ["1.20–8.05 ms", "980 µs–1.20 ms"]
        );
        let open = [(Some(1.2e6), None), (None, Some(1.2e6)), (None, None)];
        assert_eq!(open.map(|(low, high)| within(low, high)), ["≥ 1.20 ms", "≤ 1.20 ms", "-"]);
        assert_eq!(ns(Some(7_609.4)), "7.61 µs");
        assert_eq!([-0.4, 0.4, -3.6, 12.0].map(whole), ["0", "0", "-4", "12"]);
        assert_eq!(
            [30e6, 2.5e9, 90e9, 3_000e9, 30_000e9, 3e15].map(long),
            ["30.0 ms", "2.5 s", "90 s", "50 min", "8.3 h", "35 days"]
        );
        let rates = [6.454e9, 169_312.0, 8_842.4, 87.25, 0.524].map(rate);
        assert_eq!(rates, ["6.45\u{a0}G", "169\u{a0}k", "8\u{a0}842", "87.2", "0.52"]);
        let arguments = [1.23e9, 180e9, 9_000e9, 9e15, 1e19].map(argument);
        let whole = arguments.map(Option::unwrap_or_default);
        assert_eq!(whole, ["1.3s", "3min", "2.5h", "104.2d", ""]);
        assert_eq!(ns(None), "-");
        assert_eq!(
            [25_000, 1_000_000, 1_500_000, 62_500, 1_333_333, 7].map(period),
            ["25 µs", "1 ms", "1500 µs", "62.5 µs", "1333.333 µs", "7 ns"]
        );
        assert_eq!(period_argument(62_500), "62.5us");
        assert_eq!(ns(Some(f64::INFINITY)), Span::from_ns(i64::MAX).to_string());
        assert_eq!([0.873, 0.004, 0.0, 1.0].map(share), ["87 %", "0.4 %", "0 %", "100 %"]);
        assert_eq!([9.996, 878.318].map(share), ["1\u{a0}000 %", "87\u{a0}832 %"]);
    }
}
