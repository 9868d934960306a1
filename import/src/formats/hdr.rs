//! Logs of HdrHistogram, V2: a line an interval, each a compressed histogram; a run a tag.
//!
//! Source: HdrHistogram 2.1, HistogramLogReader and the V2 encoding; read without ever making the
//! array of counts, so that a few bytes cannot allocate gigabytes. Neither unit nor meaning of the
//! values is in the format.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use flate2::read::ZlibDecoder;
use punctual_analysis::imported::ImportedQuantity;

use super::run::RunBuilder;
use super::{Format, Place, RUNS_MAX, Reading, Sniff, Writer};
use crate::text::{ImportError, Lines, clean, scaled, shortened};

/// Its row in the table of formats.
pub(super) const FORMAT: Format = Format {
    name: "hdr",
    writers: &[Writer {
        program: "HdrHistogram",
        file: "HdrHistogram log V2",
        made_with: "any of its libraries",
        holds: "whatever was recorded, taken for lateness; a run a tag",
        resolution: "its significant digits",
        cannot_tell: "unit (**`--unit` is needed**), meaning, exact extremes",
    }],
    sniff: Sniff::Line(is_line),
    read,
};

/// A line of the header, or an interval.
fn is_line(line: &str) -> bool {
    line.starts_with("#[") && line.contains("log format version")
        || line.starts_with("\"StartTimestamp\",\"Interval_Length\"")
        || line.contains(",HISTF")
}

/// Reads a whole file.
fn read(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    file.source.format = "HdrHistogram log V2";
    file.source.program = "HdrHistogram";
    file.cannot_know(&[
        "what was measured: the log does not record it; its values are read as latenesses",
        "exact min, mean and max: only the ends of their buckets",
        "missed releases, interval and grid",
    ]);
    let mut lines = Lines::new(reader);
    let Some(unit_ns) = file.requested_unit_ns() else {
        return Err(ImportError::line(
            1,
            "an HdrHistogram log does not record the unit of its values: give it, as in --unit ns",
        ));
    };
    let mut tags: BTreeMap<String, RunBuilder> = BTreeMap::new();
    while let Some(line) = lines.advance()? {
        let line = line.trim();
        if let Some(version) = line.strip_prefix("#[Histogram log format version ") {
            let version = version.trim_end_matches(']');
            if !version.starts_with("1.") {
                let shown = shortened(version.as_bytes());
                return Err(lines.refuse(format!(
                    "log format version {shown:?} is not supported; \
                                                expected 1"
                )));
            }
        } else if let Some(at) = line.strip_prefix("#[StartTime: ") {
            file.started_at = Some(clean(at.trim_end_matches(']'), 80));
        }
        if line.is_empty() || line.starts_with('#') || line.starts_with('"') {
            continue;
        }
        let thresholds_ns = &file.request.thresholds_ns;
        let taken = interval(&mut tags, thresholds_ns, line, unit_ns);
        taken.map_err(|why| lines.refuse(why))?;
    }
    for (_, mut run) in tags {
        run.stated.n = Some(run.binned());
        file.add(run).map_err(|why| lines.refuse(why))?;
    }
    Ok(Place::Line(lines.number()))
}

/// `Tag=NAME,start,length,max,HISTF…`.
fn interval(
    tags: &mut BTreeMap<String, RunBuilder>,
    thresholds_ns: &[i64],
    line: &str,
    unit_ns: i64,
) -> Result<(), String> {
    let (tag, rest) = match line.strip_prefix("Tag=") {
        Some(rest) => rest.split_once(',').ok_or("nothing follows the tag")?,
        None => ("", line),
    };
    let fields: Vec<&str> = rest.split(',').collect();
    let [_, _, _, encoded] = fields[..] else {
        return Err(format!("{} fields, expected 4", fields.len()));
    };
    if tags.len() >= RUNS_MAX && !tags.contains_key(tag) {
        return Err(format!("more than {RUNS_MAX} tags"));
    }
    let run = tags.entry(tag.to_owned()).or_insert_with(|| {
        let name = if tag.is_empty() { "log" } else { tag };
        let mut run = RunBuilder::new(name, ImportedQuantity::Lateness, unit_ns, thresholds_ns);
        run.stated.width_ns = None;
        run
    });
    decode(encoded.trim(), &mut |lowest, highest, count| {
        let (lowest, highest) =
            (scaled(lowest, unit_ns)?, scaled(highest, unit_ns)?.saturating_add(unit_ns - 1));
        run.stated.widest_ns = run.stated.widest_ns.max((highest - lowest + 1).min(lowest + 1));
        let (low, high) = (lowest as f64, highest as f64);
        run.stated.min_ns = Some(run.stated.min_ns.map_or(low, |min| min.min(low)));
        run.stated.max_ns = Some(run.stated.max_ns.map_or(high, |max| max.max(high)));
        run.push(lowest, highest, count)
    })
}

/// The first word of a compressed V2 histogram, and of what is in it.
const COMPRESSED: u32 = 0x1c84_9314;

const PLAIN: u32 = 0x1c84_9313;

/// Decodes a histogram and gives each bucket that holds something: lowest, highest, count.
///
/// Streams; what it holds does not depend on the header.
fn decode(
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
    /// The number of bytes that hold counts.
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
