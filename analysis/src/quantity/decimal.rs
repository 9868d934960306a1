//! A decimal number as it was written, without a detour through floating point.
//!
//! For durations and for imported instants, which have more digits than a double holds. Reads text;
//! knows no units.

/// ± digits · 10^exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// True where a minus stood before it.
    pub negative: bool,
    digits: u128,
    exponent: i32,
    /// True where digits beyond the 38th were cut off.
    cut: bool,
}

/// A decimal as an integer of a smaller unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaled {
    /// Exactly this.
    Exact(i128),
    /// Between two integers; this is the nearer one (away from zero at a half).
    Rounded(i128),
    /// Beyond ± 10³⁷.
    TooLarge,
}

const DIGITS_MAX: u32 = 37;

impl Decimal {
    /// Splits `text` into the longest number at its beginning (sign, digits, point, exponent) and
    /// the rest; `None` when it does not begin with a number.
    pub fn split(text: &[u8]) -> Option<(Self, &[u8])> {
        let mut rest = text;
        let negative = match rest.first() {
            Some(b'-') => true,
            Some(b'+') | Some(_) => false,
            None => return None,
        };
        if matches!(rest[0], b'-' | b'+') {
            rest = &rest[1..];
        }
        let mut number = Self { negative, digits: 0, exponent: 0, cut: false };
        let mut any = false;
        let mut after_point = false;
        while let Some(&byte) = rest.first() {
            match byte {
                b'0'..=b'9' => number.take(byte - b'0', after_point),
                b'.' if !after_point => {
                    after_point = true;
                    rest = &rest[1..];
                    continue;
                }
                _ => break,
            }
            any = true;
            rest = &rest[1..];
        }
        if !any {
            return None;
        }
        if let Some((exponent, after)) = exponent(rest) {
            number.exponent = number.exponent.saturating_add(exponent);
            rest = after;
        }
        Some((number, rest))
    }

    fn take(&mut self, digit: u8, after_point: bool) {
        if self.digits < 10u128.pow(DIGITS_MAX - 1) {
            self.digits = self.digits * 10 + u128::from(digit);
            self.exponent = self.exponent.saturating_sub(i32::from(after_point));
        } else {
            self.cut |= digit != 0;
            self.exponent = self.exponent.saturating_add(i32::from(!after_point));
        }
    }

    /// True for zero.
    pub fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// The number times `factor`·10^`power`, as an integer.
    pub fn scaled(self, factor: u32, power: i32) -> Scaled {
        if self.digits == 0 {
            return Scaled::Exact(0);
        }
        let Some(digits) = self.digits.checked_mul(u128::from(factor)) else {
            return Scaled::TooLarge;
        };
        let exponent = self.exponent.saturating_add(power);
        let (magnitude, exact) = if exponent >= 0 {
            let scale = 10u128.checked_pow(exponent.unsigned_abs());
            match scale.and_then(|scale| digits.checked_mul(scale)) {
                Some(magnitude) => (magnitude, !self.cut),
                None => return Scaled::TooLarge,
            }
        } else {
            match 10u128.checked_pow(exponent.unsigned_abs()) {
                Some(scale) => {
                    let (whole, rest) = (digits / scale, digits % scale);
                    (whole + u128::from(rest >= scale - rest), rest == 0 && !self.cut)
                }
                None => (0, false),
            }
        };
        if magnitude >= 10u128.pow(DIGITS_MAX) {
            return Scaled::TooLarge;
        }
        let value = magnitude.cast_signed();
        let value = if self.negative { -value } else { value };
        if exact { Scaled::Exact(value) } else { Scaled::Rounded(value) }
    }
}

/// `e` or `E` with a whole number after it; an `e` without digits belongs to what follows.
fn exponent(text: &[u8]) -> Option<(i32, &[u8])> {
    let rest = text.strip_prefix(b"e").or_else(|| text.strip_prefix(b"E"))?;
    let (negative, rest) = match rest.first()? {
        b'-' => (true, &rest[1..]),
        b'+' => (false, &rest[1..]),
        _ => (false, rest),
    };
    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if len == 0 {
        return None;
    }
    let value = rest[..len]
        .iter()
        .fold(0i32, |value, byte| value.saturating_mul(10).saturating_add(i32::from(byte - b'0')));
    Some((if negative { -value } else { value }, &rest[len..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scaled(text: &str, power: i32) -> Scaled {
        let (number, rest) = Decimal::split(text.as_bytes()).unwrap();
        assert!(rest.is_empty(), "{text}");
        number.scaled(1, power)
    }

    #[test]
    fn digits_survive_that_a_double_would_lose() {
        assert_eq!(scaled("9999999999.999999999", 9), Scaled::Exact(9_999_999_999_999_999_999));
        assert_eq!(scaled("-0.0005", 3), Scaled::Rounded(-1));
        assert_eq!(scaled("-0.0004", 3), Scaled::Rounded(0));
        assert_eq!(scaled("1.5e3", 0), Scaled::Exact(1500));
        assert_eq!(scaled("12E-1", 0), Scaled::Rounded(1));
        assert_eq!(scaled(".5", 1), Scaled::Exact(5));
        assert_eq!(scaled("7.", 0), Scaled::Exact(7));
        assert_eq!(scaled("1e99999999999", 0), Scaled::TooLarge);
        assert_eq!(scaled("1e-99999999999", 0), Scaled::Rounded(0));
        assert_eq!(scaled("0e99999999999", 0), Scaled::Exact(0));
        assert_eq!(scaled(&format!("0.{}1", "0".repeat(60)), 9), Scaled::Rounded(0));
    }

    #[test]
    fn what_is_no_number_is_none_and_the_rest_is_given_back() {
        for text in ["", "-", ".", "us", "e5", "nan", "inf", "--1", "+.e1"] {
            assert_eq!(Decimal::split(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Decimal::split(b"5em").unwrap().1, b"em");
        assert_eq!(Decimal::split(b"1.2.3").unwrap().1, b".3");
    }

    proptest! {
        #[test]
        fn integers_and_fractions_round_trip(value in any::<i64>(), places in 0usize..18) {
            let magnitude = value.unsigned_abs();
            let scale = 10u64.pow(places as u32);
            let sign = if value < 0 { "-" } else { "" };
            let text = format!("{sign}{}.{:0places$}", magnitude / scale, magnitude % scale);
            let text = if places == 0 { format!("{value}") } else { text };
            prop_assert_eq!(scaled(&text, places as i32), Scaled::Exact(i128::from(value)));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), power in -50i32..50) {
            if let Some((number, _)) = Decimal::split(&bytes) {
                number.scaled(864, power);
            }
        }
    }
}
