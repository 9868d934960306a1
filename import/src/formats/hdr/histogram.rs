//! One histogram of a log: base64, a header, zlib, a header, then counts as ZigZag LEB128.
//!
//! For [`super`]. Streams; what it holds does not depend on the header.

use std::io::{Cursor, Read};

use flate2::read::ZlibDecoder;

/// The first word of a compressed V2 histogram, and of what is in it.
const COMPRESSED: u32 = 0x1c84_9314;
const PLAIN: u32 = 0x1c84_9313;

/// Decodes a histogram and gives each bucket that holds something: lowest, highest, count.
pub(super) fn decode(
    text: &str,
    bucket: &mut impl FnMut(u64, u64, u64) -> Result<(), String>,
) -> Result<(), String> {
    let bytes = base64(text)?;
    let mut packed = Cursor::new(&bytes);
    let cookie = u32::from_be_bytes(take(&mut packed)?);
    if cookie != COMPRESSED {
        return Err(format!("not a compressed V2 histogram: it begins with {cookie:#x}"));
    }
    let length = u32::from_be_bytes(take(&mut packed)?) as usize;
    if length != bytes.len() - 8 {
        return Err(format!("{} compressed bytes; the header states {length}", bytes.len() - 8));
    }
    let mut plain = std::io::BufReader::new(ZlibDecoder::new(packed));
    let scale = Scale::read(&mut plain)?;
    let mut index = 0u64;
    let mut plain = plain.take(scale.length);
    while let Some(number) = leb128(&mut plain)? {
        if let Ok(count) = u64::try_from(number) {
            if index >= scale.indices {
                return Err("more buckets than the header allows".to_owned());
            }
            if count > 0 {
                let (lowest, highest) = scale.bucket(index).ok_or("a bucket beyond 63 bits")?;
                bucket(lowest, highest, count)?;
            }
            index += 1;
        } else {
            index = index.saturating_add(number.unsigned_abs());
        }
    }
    match plain.limit() {
        0 => Ok(()),
        left => Err(format!("a histogram is cut: {left} bytes of counts are missing")),
    }
}

/// Where the buckets lie.
struct Scale {
    /// How many bytes of counts there are.
    length: u64,
    unit_magnitude: u32,
    half_magnitude: u32,
    indices: u64,
}

impl Scale {
    fn read(plain: &mut impl Read) -> Result<Self, String> {
        let cookie = u32::from_be_bytes(take(plain)?);
        if cookie != PLAIN {
            return Err(format!("not a V2 histogram: it begins with {cookie:#x}"));
        }
        let length = u64::from(u32::from_be_bytes(take(plain)?));
        let offset = u32::from_be_bytes(take(plain)?);
        let digits = u32::from_be_bytes(take(plain)?);
        let lowest = u64::from_be_bytes(take(plain)?);
        let highest = u64::from_be_bytes(take(plain)?);
        let ratio = f64::from_be_bytes(take(plain)?);
        if offset != 0 || ratio.to_bits() != 1f64.to_bits() {
            return Err("shifted or scaled values are not supported".to_owned());
        }
        if digits > 5 || !(1..=1 << 32).contains(&lowest) || highest > 1 << 63 {
            return Err(format!("invalid range: {digits} digits from {lowest} to {highest}"));
        }
        let unit_magnitude = lowest.ilog2();
        // 2·10^digits, rounded up to a power of two, and half of that.
        let half_magnitude = (2 * 10u64.pow(digits)).next_power_of_two().ilog2().max(1) - 1;
        let sub_buckets = 2u64 << half_magnitude;
        let mut buckets = 1u64;
        let mut end = u128::from(sub_buckets) << unit_magnitude;
        while end <= u128::from(highest) {
            end <<= 1;
            buckets += 1;
        }
        let indices = (buckets + 1) * (sub_buckets / 2);
        Ok(Self { length, unit_magnitude, half_magnitude, indices })
    }

    /// Lowest and highest value of a bucket.
    fn bucket(&self, index: u64) -> Option<(u64, u64)> {
        let half = 1u64 << self.half_magnitude;
        let (power, sub) = match index >> self.half_magnitude {
            0 => (0, index),
            power => (u32::try_from(power - 1).ok()?, (index & (half - 1)) + half),
        };
        let shift = power + self.unit_magnitude;
        let width = 1u64.checked_shl(shift)?;
        let lowest = sub.checked_mul(width)?;
        Some((lowest, lowest.checked_add(width - 1)?))
    }
}

fn take<const N: usize>(reader: &mut impl Read) -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes).map_err(|error| format!("a histogram is cut: {error}"))?;
    Ok(bytes)
}

/// The next number; `None` at the end.
fn leb128(reader: &mut impl Read) -> Result<Option<i64>, String> {
    let mut number = 0u64;
    for at in 0..9 {
        let mut byte = [0];
        match reader.read(&mut byte) {
            Ok(0) if at == 0 => return Ok(None),
            Ok(0) => return Err("a histogram is cut within a count".to_owned()),
            Ok(_) => {}
            Err(error) => return Err(format!("a histogram is damaged: {error}")),
        }
        // The ninth byte has all of its eight bits.
        let bits = if at == 8 { u64::from(byte[0]) } else { u64::from(byte[0] & 0x7f) };
        number |= bits << (7 * at);
        if at == 8 || byte[0] & 0x80 == 0 {
            break;
        }
    }
    Ok(Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed())))
}

/// The bytes of a base64 text.
fn base64(text: &str) -> Result<Vec<u8>, String> {
    let text = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut bits, mut have) = (0u32, 0);
    for byte in text.bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return Err("not base64 text".to_owned()),
        };
        bits = bits << 6 | u32::from(six);
        have += 6;
        if have >= 8 {
            have -= 8;
            bytes.push((bits >> have) as u8);
        }
    }
    if bytes.len() < 8 {
        return Err("the histogram has too few bytes".to_owned());
    }
    Ok(bytes)
}
