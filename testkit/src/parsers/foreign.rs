//! Bodies for other programs' files: whatever the bytes, what is made of them holds together.

use punctual_analysis::import::detect::{HEAD_BYTES, detect};
use punctual_analysis::import::foreign::{Asked, Format, Run, read};
use punctual_analysis::quantile::Probability;

use super::one_line;

/// The JSON of rt-tests and jitterdebugger.
pub fn import_threads(data: &[u8]) {
    body(Format::Threads, data);
}

/// cyclictest -h.
pub fn import_cyclictest_histogram(data: &[u8]) {
    body(Format::CyclictestHistogram, data);
}

/// cyclictest -v.
pub fn import_cyclictest_verbose(data: &[u8]) {
    body(Format::CyclictestVerbose, data);
}

/// jitterdebugger -s.
pub fn import_jitterdebugger_samples(data: &[u8]) {
    body(Format::JitterdebuggerSamples, data);
}

/// rtla timerlat hist and osnoise hist.
pub fn import_rtla(data: &[u8]) {
    body(Format::Rtla, data);
}

/// stress-ng --cyclic.
pub fn import_stress_ng(data: &[u8]) {
    body(Format::StressNg, data);
}

/// latmus -g.
pub fn import_latmus(data: &[u8]) {
    body(Format::Latmus, data);
}

/// What Xenomai's program prints with -h.
pub fn import_xenomai_text(data: &[u8]) {
    body(Format::XenomaiText, data);
}

/// What Xenomai's program writes with -g.
pub fn import_xenomai_gnuplot(data: &[u8]) {
    body(Format::XenomaiGnuplot, data);
}

/// The pins of LinuxCNC's latencybins.
pub fn import_latencybins(data: &[u8]) {
    body(Format::Latencybins, data);
}

/// LinuxCNC's latency-histogram --nox.
pub fn import_latency_histogram(data: &[u8]) {
    body(Format::LatencyHistogram, data);
}

/// A log of HdrHistogram.
pub fn import_hdr(data: &[u8]) {
    body(Format::HdrLog, data);
}

/// Which program wrote a file: told of any bytes, and then the file is read.
pub fn import_detect(data: &[u8]) {
    if let Some(format) = detect(&data[..data.len().min(HEAD_BYTES)]) {
        body(format, data);
    }
}

/// Reads the file in whole and in pieces, which gives the same runs or the same refusal.
fn body(format: Format, data: &[u8]) {
    let asked = Asked { thresholds_ns: vec![-7, 50_000], unit_ns: Some(1_000) };
    let whole = read(format, data, &asked);
    let (first, rest) = data.split_at(data.len() / 3);
    let pieces = read(format, std::io::Read::chain(first, rest), &asked);
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
fn sound(run: &Run) {
    assert!(!run.name.chars().any(char::is_control), "{:?}", run.name);
    let outcome = &run.outcome;
    let told = outcome.imported.as_ref().expect("another program's");
    let values = &told.values_ns;
    let n = outcome.cycles;
    let counted: u64 = outcome.histogram.buckets.iter().map(|bucket| bucket.2).sum();
    assert!(counted + outcome.histogram.overflow >= told.overflow && counted <= n);
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
