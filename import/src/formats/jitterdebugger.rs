//! jitterdebugger's sample files (`-s`): every value in records of 28 bytes, without a header.
//!
//! Source: jitterdebugger 0.3, jitterdebugger.c (`struct latency_sample`, packed): CPU u32, instant
//! as seconds and nanoseconds i64, value u64, in the byte order of the machine; little-endian here.
//! Its JSON is in [`super::threads`]. A value is wake − release in µs (ns with -N), which the file
//! does not record.

use std::io::{ErrorKind, Read};

use super::run::RunBuilder;
use super::{Format, Place, RUNS_MAX, Reading, Sniff, Writer};
use crate::text::{ImportError, scaled};
use punctual_analysis::imported::ImportedQuantity;

const RECORD_BYTES: usize = 28;

/// CPUs of the largest machines that Linux runs on.
const CPUS_MAX: u32 = 8_192;

/// The facts that no file of jitterdebugger records.
pub(super) const CANNOT_KNOW: [&str; 2] = [
    "one cause from several: jitterdebugger adds a value for every release that passed, so one \
    stall is many values",
    "interval and grid: the period is not in the file",
];

/// A value as its record has it.
struct Record {
    cpu: u32,
    instant_ns: u64,
    value: u64,
}

/// A record; `None` when it cannot be one.
fn record(bytes: &[u8; RECORD_BYTES]) -> Option<Record> {
    let long = |at: usize| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(eight)
    };
    let cpu = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let (seconds, ns) = (long(4), long(12));
    if cpu >= CPUS_MAX || ns >= 1_000_000_000 {
        return None;
    }
    let instant_ns = seconds.checked_mul(1_000_000_000)?.checked_add(ns)?;
    // No wake can be later than the uptime.
    let value = long(20);
    (instant_ns > 0 && value <= instant_ns).then_some(Record { cpu, instant_ns, value })
}

/// Its row in the table of formats.
pub(super) const FORMAT: Format = Format {
    name: "jitterdebugger_samples",
    writers: &[Writer {
        program: "jitterdebugger",
        file: "samples of jitterdebugger",
        made_with: "`jitterdebugger -s -o DIR`",
        holds: "lateness in order, a run a CPU",
        resolution: "1 µs, or 1 ns with `-N`, which is **not in the file**: `--unit`",
        cannot_tell: "the period; what its ring dropped",
    }],
    sniff: Sniff::Head(is_samples),
    read: samples,
};

/// Returns true where a file begins with records: at least one, and all that are there in full.
fn is_samples(head: &[u8]) -> bool {
    let (records, _) = head.as_chunks::<RECORD_BYTES>();
    !records.is_empty() && records.iter().all(|bytes| record(bytes).is_some())
}

/// A CPU while its values come, in the order of time.
struct Cpu {
    number: u32,
    /// Of its last value.
    instant_ns: u64,
    run: RunBuilder,
}

/// Reads a whole file.
fn samples(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    file.source.format = "jitterdebugger -s";
    file.source.program = "jitterdebugger";
    file.cannot_know(&CANNOT_KNOW);
    file.cannot_know(&["values that its ring dropped before they were written"]);
    let unit_ns = file.unit_ns(1_000, "-N");
    let mut cpus: Vec<Cpu> = Vec::new();
    let mut at_byte = 0;
    loop {
        let mut bytes = [0; RECORD_BYTES];
        match fill(reader, &mut bytes) {
            Ok(0) => break,
            Ok(RECORD_BYTES) => {}
            Ok(_) => return Err(ImportError::byte(at_byte, "the file ends within a record")),
            Err(error) => {
                return Err(ImportError::byte(at_byte, format!("cannot be read: {error}")));
            }
        }
        let taken = take(file, &mut cpus, &bytes, unit_ns);
        taken.map_err(|why| ImportError::byte(at_byte, why))?;
        at_byte += RECORD_BYTES as u64;
    }
    cpus.sort_by_key(|cpu| cpu.number);
    for Cpu { run, .. } in cpus {
        file.add(run).map_err(|why| ImportError::byte(at_byte, why))?;
    }
    Ok(Place::Byte(at_byte))
}

fn take(
    file: &Reading<'_>,
    cpus: &mut Vec<Cpu>,
    bytes: &[u8; RECORD_BYTES],
    unit_ns: i64,
) -> Result<(), String> {
    let record = record(bytes).ok_or("not a record of jitterdebugger")?;
    let at = match cpus.iter().position(|cpu| cpu.number == record.cpu) {
        Some(at) => at,
        None if cpus.len() == RUNS_MAX => return Err(format!("more than {RUNS_MAX} CPUs")),
        None => {
            let name = format!("CPU {}", record.cpu);
            let thresholds_ns = &file.request.thresholds_ns;
            let mut run =
                RunBuilder::in_order(name, ImportedQuantity::Lateness, unit_ns, thresholds_ns);
            run.stated.cpu = Some(record.cpu);
            run.stated.missed = Some(0);
            cpus.push(Cpu { number: record.cpu, instant_ns: 0, run });
            cpus.len() - 1
        }
    };
    let cpu = &mut cpus[at];
    if record.instant_ns < cpu.instant_ns {
        return Err("the instant is before the previous one".to_owned());
    }
    cpu.instant_ns = record.instant_ns;
    cpu.run.push_value(scaled(record.value, unit_ns)?)
}

/// Reads as much as there is.
fn fill(reader: &mut dyn Read, bytes: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match reader.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
