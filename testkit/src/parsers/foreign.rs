//! Bodies for other programs' files: whatever the bytes, what is made of them holds together.

use punctual_analysis::quantile::Probability;
use punctual_import::formats::{Format, HEAD_BYTES, ImportRequest, ImportedRun, detect, read};

use super::one_line;

/// Which program wrote a file: any bytes may be looked at, and then the file is read.
pub(super) fn detected(data: &[u8]) {
    if let Some(format) = detect(&data[..data.len().min(HEAD_BYTES)]) {
        read_as(format, data);
    }
}

/// Reads the file in whole and in pieces, which gives the same runs or the same refusal.
pub(super) fn read_as(format: &Format, data: &[u8]) {
    let request = ImportRequest { thresholds_ns: vec![-7, 50_000], unit_ns: Some(1_000) };
    let whole = read(format, data, &request);
    let (first, rest) = data.split_at(data.len() / 3);
    let pieces = read(format, std::io::Read::chain(first, rest), &request);
    match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => {
            assert!(!whole.runs.is_empty(), "a file without a run");
            assert_eq!(whole.runs.len(), pieces.runs.len());
            whole.runs.iter().for_each(sound);
        }
        (Err(whole), Err(pieces)) => {
            one_line(&whole);
            assert_eq!(whole.to_string(), pieces.to_string());
        }
        (whole, pieces) => panic!("in whole {}, in pieces {}", whole.is_ok(), pieces.is_ok()),
    }
}

/// What must hold of every run, whatever was read.
fn sound(run: &ImportedRun) {
    assert!(!run.name.chars().any(char::is_control), "{:?}", run.name);
    let outcome = &run.outcome;
    let imported = outcome.imported.as_ref().expect("another program's");
    let values = &imported.values_ns;
    let n = outcome.cycles;
    let counted: u64 = outcome.histogram.buckets.iter().map(|bucket| bucket.2).sum();
    assert!(counted + outcome.histogram.overflow >= imported.overflow && counted <= n);
    assert!(outcome.histogram.buckets.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(outcome.histogram.buckets.iter().all(|bucket| bucket.0 < bucket.1 && bucket.2 > 0));
    let rising = [values.min, values.mean, values.max];
    assert!(rising.iter().flatten().is_sorted(), "{values:?}");
    let quantiles = [values.p50, values.p90, values.p99, values.p99_9, values.p99_99];
    for (p, quantile) in Probability::SUMMARY.iter().zip(quantiles) {
        assert!(quantile.is_none() || p.is_supported(n), "{p} of {n}");
    }
    for claim in &outcome.claims {
        assert!(!claim.statement.is_empty() && !claim.conditions.is_empty());
        assert!(claim.p.is_none_or(|p| (0.0..=1.0).contains(&p)), "{claim:?}");
        assert!(!claim.given || claim.n > 0, "{claim:?}");
    }
    for tail in outcome.tails.tails() {
        let (least, most) = outcome.tails.exceedances_within(tail.threshold_ns);
        let n = outcome.tails.n();
        assert!(least <= most && most <= n, "{least} to {most} of {n}");
    }
}
