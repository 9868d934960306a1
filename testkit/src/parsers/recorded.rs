//! Bodies for what was recorded: sample files and CSV.

use std::collections::BTreeMap;
use std::io::Read;

use punctual_analysis::quantity;
use punctual_analysis::recording::{Recording, RecordingConfig};
use punctual_core::file::{BLOCK_HEADER_BYTES, FILE_HEADER_BYTES};
use punctual_core::sample::{SAMPLE_BYTES, Sample};
use punctual_core::time::{Instant, Period};
use punctual_import::csv::{ColumnSpec, CsvFile};
use punctual_import::samples::{FileEnding, OpenError, SampleFileReader, count_samples};

use super::one_line;

/// Runs of one file that are analysed; each takes some memory.
const RUNS: usize = 4;

/// Reads the file as it is, then with its checksums mended, so that what lies behind them is
/// reached too. A file that is complete is not when cut short, and damage lies inside of it.
pub(super) fn samples_file(data: &[u8]) {
    let mut mended = data.to_vec();
    mend(&mut mended);
    for data in [data, &mended] {
        let (samples, ending) = match analyse(data) {
            Ok(read) => read,
            Err(error) => {
                one_line(&error);
                continue;
            }
        };
        if let FileEnding::Damaged { at_byte, why } = &ending {
            one_line(why);
            assert!(*at_byte <= data.len() as u64, "damage at {at_byte} of {}", data.len());
        }
        if let Ok((before, cut)) = count_samples(&data[..data.len() / 2]) {
            assert!(before <= samples, "{before} samples in the half of {samples}");
            assert!(
                ending != FileEnding::Complete || cut != FileEnding::Complete,
                "complete when cut"
            );
        }
    }
}

/// Reads a file through the analysis: its samples, whose cycles do not decrease within a run, and
/// how it ended.
fn analyse(data: &[u8]) -> Result<(u64, FileEnding), OpenError> {
    let mut file = SampleFileReader::open(data)?;
    let mut setups: Vec<RecordingConfig> = file.info().runs.iter().map(setup).collect();
    let mut runs: BTreeMap<usize, (Recording, u64)> = BTreeMap::new();
    let mut samples = 0;
    while let Some(block) = file.next_block() {
        samples += block.samples.len() as u64;
        if runs.len() >= RUNS && !runs.contains_key(&block.run) {
            continue;
        }
        let new = || (Recording::new(std::mem::take(&mut setups[block.run])), 0);
        let (recording, cycle) = runs.entry(block.run).or_insert_with(new);
        for sample in block.samples {
            assert!(sample.cycle >= *cycle, "cycle {} after {cycle}", sample.cycle);
            *cycle = sample.cycle;
        }
        recording.extend(block.samples);
    }
    for (recording, _) in runs.into_values() {
        let taken = recording.samples();
        assert_eq!(recording.finish(0).cycles, taken);
    }
    let ending = file.ending().cloned();
    Ok((samples, ending.expect("a file without a next block has ended")))
}

fn setup(run: &punctual_import::samples::RunInfo) -> RecordingConfig {
    RecordingConfig {
        period: Period::from_ns(run.period_ns),
        epoch: Instant::from_ns(run.epoch_ns),
        ..RecordingConfig::default()
    }
}

/// Writes into each header the checksum that it should have, as far as the headers lead.
fn mend(file: &mut [u8]) {
    let number = |file: &[u8], at: usize| {
        file.get(at..at + 4)
            .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    let Some(json_bytes) = number(file, 12) else { return };
    let mut at = FILE_HEADER_BYTES.saturating_add(json_bytes as usize);
    let Some(json) = file.get(FILE_HEADER_BYTES..at) else { return };
    let crc = crc32(json);
    file[16..20].copy_from_slice(&crc.to_le_bytes());
    while let Some(samples) = number(file, at + 8 + 4) {
        let payload = at + BLOCK_HEADER_BYTES;
        let next = payload.saturating_add((samples as usize).saturating_mul(SAMPLE_BYTES));
        if file.len() < payload {
            return;
        }
        if let Some(bytes) = file.get(payload..next) {
            let crc = crc32(bytes);
            file[payload - 8..payload - 4].copy_from_slice(&crc.to_le_bytes());
        }
        let crc = crc32(&file[at..payload - 4]);
        file[payload - 4..payload].copy_from_slice(&crc.to_le_bytes());
        at = next;
    }
}

/// CRC-32 (IEEE 802.3) bit by bit: another's opinion on the one that the reader uses.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let polynomial = 0xedb8_8320;
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc: u32, _| {
            (crc >> 1) ^ (polynomial & (crc & 1).wrapping_neg())
        })
    })
}

/// A file gives the same samples, and the same refusal, however it arrives. The first line says
/// how it is read: `NAME:UNIT`, then the period if there is one.
pub(super) fn csv(data: &[u8]) {
    let (head, text) = match data.iter().position(|&byte| byte == b'\n') {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[][..]),
    };
    let head = String::from_utf8_lossy(head);
    let mut words = head.split_whitespace();
    let Ok(spec) = ColumnSpec::parse(words.next().unwrap_or_default()) else { return };
    let period = words.next().and_then(|word| quantity::period(word).ok());
    let whole = read_csv(text, spec.clone(), period);
    let pieces = read_csv(Pieces { text, next: 1 }, spec, period);
    assert_eq!(whole, pieces);
}

/// All samples, and why there are no more.
fn read_csv(
    reader: impl Read,
    spec: ColumnSpec,
    period: Option<Period>,
) -> (Vec<Sample>, Option<String>) {
    let mut samples = Vec::new();
    let refused = |error: punctual_import::csv::CsvError| {
        one_line(&error);
        Some(error.to_string())
    };
    let mut file = match CsvFile::open(reader, spec, period) {
        Ok(file) => file,
        Err(error) => return (samples, refused(error)),
    };
    loop {
        match file.next_block() {
            Ok([]) => return (samples, None),
            Ok(block) => samples.extend_from_slice(block),
            Err(error) => return (samples, refused(error)),
        }
    }
}

/// A text that arrives a few bytes at a time: 1, 2, … 7, 1, …
struct Pieces<'a> {
    text: &'a [u8],
    next: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.next.min(self.text.len()).min(buffer.len());
        self.next = self.next % 7 + 1;
        let (now, later) = self.text.split_at(bytes);
        buffer[..bytes].copy_from_slice(now);
        self.text = later;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn a_mended_file_is_believed_up_to_its_cut() {
        let json = br#"{"runs":[{"period_ns":1000}]}"#;
        let mut file = Vec::from(*b"PUNCTUAL");
        for word in [1, json.len() as u32, 0, 0] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend(json);
        file.extend(b"pblk");
        for word in [0, 0, 2] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend([0; 32]);
        for cycle in [3_u64, 4] {
            file.extend(cycle.to_le_bytes());
            file.extend([0; 8]);
        }
        assert!(matches!(analyse(&file), Err(OpenError::Damaged(_))), "before it is mended");
        mend(&mut file);
        assert_eq!(analyse(&file).unwrap(), (2, FileEnding::Incomplete));
    }
}
