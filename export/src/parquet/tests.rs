//! What was written is read again by the library's own reader.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row as Read};
use punctual_analysis::histogram::Bucket;
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::Span;

use super::{GROUP_ROWS, ParquetSamples, histograms};
use crate::distribution::LatenessHistogram;
use crate::row::{COLUMNS, ExportedRun, ReleaseRow, ReleaseRows, RowKind};

fn runs() -> Vec<ExportedRun> {
    let run = |run: &str, condition: &str, cpu| ExportedRun {
        run: run.to_owned(),
        condition: condition.to_owned(),
        cpu,
        period_ns: 1_000_000,
        epoch_ns: 500,
    };
    vec![run("idle", "idle", 1), run("under load", "cpu", 0)]
}

fn read(bytes: Vec<u8>) -> (Vec<Read>, Vec<(String, String)>, usize) {
    // The library reads what is a `Bytes` or a file; its own type comes along with the reader.
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let meta = reader.metadata();
    let facts = meta.file_metadata().key_value_metadata().cloned().unwrap_or_default();
    let facts = facts.into_iter().map(|fact| (fact.key, fact.value.unwrap_or_default())).collect();
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    (rows, facts, meta.num_row_groups())
}

#[test]
fn samples_come_back_across_row_groups() {
    let n = GROUP_ROWS as u64 + 1_000;
    let mut bytes = Vec::new();
    let mut table = ParquetSamples::begin(&mut bytes, ReleaseRows::new(runs())).unwrap();
    let mut expected = Vec::new();
    let mut rows = ReleaseRows::new(runs());
    for block in 0..n.div_ceil(500) {
        let run = usize::from(block % 3 == 0);
        let samples: Vec<Sample> = (block * 500..n.min(block * 500 + 500))
            .map(|k| Sample {
                cycle: k + block * 2,
                lateness: Span::from_ns((k * 7_919 % 90_001) as i64 - 3),
                flags: if k % 5_000 == 0 { Flags::FIRST.with(Flags::COLD) } else { Flags::NONE },
            })
            .collect();
        table.extend(run, &samples, 0).unwrap();
        for sample in &samples {
            let mut give = |row: &ReleaseRow| {
                expected.push((run, *row));
                Ok(())
            };
            rows.sample(run, sample, 0, &mut give).unwrap();
        }
    }
    assert!(expected.iter().any(|(_, row)| row.kind == RowKind::Missed), "gaps between blocks");
    table.finish(vec![("punctual.schema", "1".to_owned())]).unwrap();
    let (read, facts, groups) = read(bytes);
    assert_eq!((read.len(), groups), (expected.len(), 2));
    assert!(facts.contains(&("punctual.schema".to_owned(), "1".to_owned())));
    for (read, (run, row)) in read.iter().zip(&expected) {
        same(read, &runs()[*run], row);
    }
}

fn same(read: &Read, run: &ExportedRun, row: &ReleaseRow) {
    let optional = |value: Option<i64>| value.map_or(Field::Null, Field::Long);
    let expected = [
        Field::Str(run.run.clone()),
        Field::Str(run.condition.clone()),
        Field::Int(run.cpu.cast_signed()),
        Field::Long(row.cycle),
        Field::Long(row.release_ns),
        Field::Long(row.lateness_ns),
        optional(row.interval_ns),
        optional(row.gap_before),
        Field::Bool(row.first),
        Field::Bool(row.cold),
        Field::Str(row.kind.name().to_owned()),
    ];
    let columns: Vec<(String, Field)> =
        read.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect();
    let expected: Vec<(String, Field)> =
        COLUMNS.iter().map(|&name| name.to_owned()).zip(expected).collect();
    assert_eq!(columns, expected);
}

#[test]
fn a_table_without_samples_is_a_table_too() {
    let mut bytes = Vec::new();
    ParquetSamples::begin(&mut bytes, ReleaseRows::new(runs()))
        .unwrap()
        .finish(Vec::new())
        .unwrap();
    assert_eq!(read(bytes).0.len(), 0);
}

#[test]
fn histograms_come_back_with_an_open_bucket() {
    let of = |run: &str, cpu, overflow| LatenessHistogram {
        run: run.to_owned(),
        cpu,
        buckets: vec![
            Bucket { lowest_ns: -2, highest_ns: -1, count: 3 },
            Bucket { lowest_ns: 0, highest_ns: 99, count: u64::MAX },
        ],
        overflow,
        ..LatenessHistogram::default()
    };
    let mut bytes = Vec::new();
    let runs = [of("a", Some(3), 0), of("b", None, 5), LatenessHistogram::default()];
    histograms(&mut bytes, &runs, Vec::new()).unwrap();
    let rows: Vec<Vec<Field>> = read(bytes)
        .0
        .iter()
        .map(|row| row.get_column_iter().map(|(_, field)| field.clone()).collect())
        .collect();
    let text = |text: &str| Field::Str(text.to_owned());
    assert_eq!(rows.len(), 5);
    assert_eq!(
        rows[0],
        [text("a"), Field::Int(3), Field::Long(-2), Field::Long(0), Field::Long(3)]
    );
    assert_eq!(rows[1][4], Field::Long(i64::MAX), "counts beyond the format's are the largest");
    assert_eq!(rows[4], [text("b"), Field::Null, Field::Null, Field::Null, Field::Long(5)]);
}
