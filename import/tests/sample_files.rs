//! Sample files, whole and spoiled in every way: all that stands before the damage is read, and the
//! damage is reported.

use proptest::prelude::*;
use punctual_core::file::{BlockHeader, BlockKind, FILE_VERSION, FileHeader};
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::Span;
use punctual_import::samples::{
    FileEnding, FileInfo, OpenError, RUNS_MAX, RunCounts, RunInfo, SampleFileReader, count_samples,
};

fn info(runs: usize) -> FileInfo {
    let run = |i| RunInfo { name: format!("run {i}"), period_ns: 1_000, ..RunInfo::default() };
    FileInfo { tool: "test".into(), runs: (0..runs).map(run).collect(), ..FileInfo::default() }
}

fn head(info: &FileInfo, version: u32) -> Vec<u8> {
    let json = serde_json::to_vec(info).unwrap();
    let header =
        FileHeader { version, json_bytes: json.len() as u32, json_crc: crc32fast::hash(&json) };
    [&header.to_bytes()[..], &json].concat()
}

fn block(run: u32, first: u64, samples: &[Sample], counters: (u64, u64)) -> Vec<u8> {
    let payload: Vec<u8> = samples.iter().flat_map(|sample| sample.to_bytes()).collect();
    let header = BlockHeader {
        kind: BlockKind::Data,
        run,
        samples: samples.len() as u32,
        first,
        missed: counters.0,
        unrecorded: counters.1,
        payload_crc: crc32fast::hash(&payload),
    };
    [&header.to_bytes(crc32fast::hash)[..], &payload].concat()
}

fn end() -> Vec<u8> {
    let header = BlockHeader {
        kind: BlockKind::End,
        run: 0,
        samples: 0,
        first: 0,
        missed: 0,
        unrecorded: 0,
        payload_crc: 0,
    };
    header.to_bytes(crc32fast::hash).to_vec()
}

fn samples(cycles: std::ops::Range<u64>) -> Vec<Sample> {
    let sample = |cycle| Sample { cycle, lateness: Span::from_ns(-3), flags: Flags::COLD };
    cycles.map(sample).collect()
}

/// Two blocks of run 0, one of run 1, an end.
fn whole() -> Vec<u8> {
    [
        head(&info(2), FILE_VERSION),
        block(0, 0, &samples(0..5), (0, 0)),
        block(1, 0, &samples(7..9), (0, 0)),
        block(0, 5, &samples(8..10), (3, 1)),
        end(),
    ]
    .concat()
}

#[test]
fn a_whole_file_is_read() {
    let bytes = whole();
    let mut file = SampleFileReader::open(&bytes[..]).unwrap();
    assert_eq!(file.info(), &info(2));
    let mut read = Vec::new();
    while let Some(block) = file.next_block() {
        read.push((block.run, block.samples.to_vec(), block.missed, block.unrecorded));
    }
    assert_eq!(read[0], (0, samples(0..5), 0, 0));
    assert_eq!(read[1], (1, samples(7..9), 0, 0));
    assert_eq!(read[2], (0, samples(8..10), 3, 1));
    assert_eq!(file.ending(), Some(&FileEnding::Complete));
    assert_eq!(file.counts(0), Some(RunCounts { samples: 7, missed: 3, unrecorded: 1 }));
    assert_eq!(file.counts(2), None);
}

#[test]
fn every_cut_is_told_and_keeps_the_blocks_before_it() {
    let bytes = whole();
    let start = head(&info(2), FILE_VERSION).len();
    let mut most = 0;
    for cut in 0..bytes.len() {
        match count_samples(&bytes[..cut]) {
            Ok((samples, ending)) => {
                assert!(cut >= start);
                assert_eq!(ending, FileEnding::Incomplete, "{cut}");
                assert!(samples >= most);
                most = samples;
            }
            Err(error) => {
                assert!(cut < start, "{cut} {error}");
                assert!(matches!(error, OpenError::Empty | OpenError::Damaged(_)), "{error}");
            }
        }
    }
    assert_eq!(most, 9);
}

#[test]
fn every_flipped_bit_is_seen() {
    let bytes = whole();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        match count_samples(&damaged) {
            Ok((samples, FileEnding::Damaged { .. } | FileEnding::Incomplete)) => {
                assert!(samples <= 9);
            }
            // The reserved word of the file header is the one place that nothing guards.
            Ok(_) => assert!((20..24).contains(&at), "{at}"),
            Err(_) => assert!(at < head(&info(2), FILE_VERSION).len()),
        }
    }
}

#[test]
fn what_checksums_do_not_guard_is_checked() {
    let head = || head(&info(1), FILE_VERSION);
    let first = || block(0, 0, &samples(5..8), (2, 2));
    for (why, second) in [
        ("a block of run 1, but the file has 1 runs", block(1, 0, &samples(0..1), (0, 0))),
        ("a block starts at sample 4, expected 3", block(0, 4, &samples(8..9), (2, 2))),
        ("a counter of a run decreased", block(0, 3, &samples(8..9), (1, 2))),
        ("the cycles decrease", block(0, 3, &samples(6..9), (2, 2))),
    ] {
        let bytes = [head(), first(), second].concat();
        let at_byte = (head().len() + first().len()) as u64;
        let damaged = FileEnding::Damaged { at_byte, why: why.to_owned() };
        assert_eq!(count_samples(&bytes).unwrap(), (3, damaged));
    }
    let after = [head(), first(), end(), vec![1]].concat();
    assert!(matches!(count_samples(&after), Ok((3, FileEnding::Damaged { .. }))));
}

#[test]
fn foreign_newer_and_empty_files_are_told_apart() {
    let message = |bytes: &[u8]| count_samples(bytes).unwrap_err().to_string();
    assert_eq!(message(b""), "the file is empty");
    assert_eq!(message(b"PK\x03\x04"), "not a sample file of punctual");
    assert_eq!(message(&[b'x'; 100]), "not a sample file of punctual");
    let newer = message(&head(&info(1), 2));
    assert_eq!(newer, "written by a newer punctual (layout 2); this one reads layout 1");
    let mut zero = info(1);
    zero.runs[0].period_ns = 0;
    assert!(message(&head(&zero, 1)).contains("period of 0"));
}

#[test]
fn fields_of_later_versions_are_ignored_and_missing_ones_have_defaults() {
    let text = r#"{"tool":"punctual","later":[1],"runs":[{"period_ns":500000,"new":{}}]}"#;
    let info: FileInfo = serde_json::from_str(text).unwrap();
    assert_eq!(info.runs[0].period_ns, 500_000);
    assert_eq!(info.runs[0].floor_ns, None);
    let again: FileInfo = serde_json::from_value(serde_json::to_value(&info).unwrap()).unwrap();
    assert_eq!(again, info);
}

proptest! {
    #[test]
    fn no_bytes_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        at in 0usize..400,
        cut in 0usize..400,
    ) {
        let mut spoiled = whole();
        let at = at.min(spoiled.len());
        spoiled.truncate(at + cut);
        spoiled.splice(at.min(spoiled.len()).., bytes.iter().copied());
        let _ = (count_samples(&bytes), count_samples(&spoiled));
    }
}

#[test]
fn more_runs_than_are_read_are_refused_with_their_number() {
    let file = |runs| [head(&info(runs), FILE_VERSION), end()].concat();
    assert_eq!(count_samples(&file(RUNS_MAX)).unwrap(), (0, FileEnding::Complete));
    let why = count_samples(&file(RUNS_MAX + 1)).unwrap_err();
    assert!(matches!(why, OpenError::Runs(1025)), "{why}");
    assert_eq!(why.to_string(), "the file describes 1025 runs; at most 1024 are read");
}
