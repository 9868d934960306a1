//! A `perf.data` that this program wrote, opened by perf itself.

use std::fs::{self, File, Permissions};
use std::io::BufReader;
use std::mem::discriminant;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use punctual_testkit::skip;
use punctual_trace::capture::text::TextReader;
use punctual_trace::capture::{CaptureReader, open};
use punctual_trace::event::{ContextFlags, TraceEvent, TraceKind};
use punctual_trace::symbols::Symbols;
use punctual_trace::write::perf_data::{Addresses, PerfDataWriter, writable};

fn read(mut reader: Box<dyn CaptureReader + '_>) -> Vec<TraceEvent> {
    std::iter::from_fn(|| reader.next_event().unwrap()).collect()
}

#[test]
fn perf_script_prints_what_was_written() {
    if !skip::need_program("perf") {
        return;
    }
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/trace/6.18/perf.data");
    let events = read(open(File::open(fixture).unwrap()).unwrap());
    let path = std::env::temp_dir().join(format!("punctual-perf-{}.data", std::process::id()));
    let file = File::create(&path).unwrap();
    let mut writer =
        PerfDataWriter::new(file, writable(), Symbols::default(), Addresses::Kept).unwrap();
    for event in &events {
        writer.write(event).unwrap();
    }
    writer.finish().unwrap();
    // perf opens no file that others may write.
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let again = read(open(File::open(&path).unwrap()).unwrap());
    assert_eq!(again.len(), events.len());
    for (again, event) in again.iter().zip(&events) {
        // A name becomes a record of its own, which has no context.
        let is_name = matches!(event.kind, TraceKind::Renamed { .. });
        let context = if is_name { ContextFlags::default() } else { event.context };
        assert_eq!(*again, TraceEvent { context, ..event.clone() });
    }
    let output = Command::new("perf")
        .args(["script", "--ns", "-F", "comm,tid,cpu,time,event,trace", "-i"])
        .arg(&path)
        .output()
        .unwrap();
    fs::remove_file(&path).unwrap();
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{problem}");
    let mut printed = TextReader::new(BufReader::new(&output.stdout[..]));
    let shown: Vec<_> = std::iter::from_fn(|| printed.next_event().unwrap()).collect();
    assert_eq!(printed.facts().first_problem(), None);
    // perf prints neither ends of page faults nor names as events.
    let is_printed = |event: &&TraceEvent| {
        !matches!(event.kind, TraceKind::PageFaultExit | TraceKind::Renamed { .. })
    };
    let expected: Vec<_> = events.iter().filter(is_printed).collect();
    assert_eq!(shown.len(), expected.len(), "{problem}");
    for (shown, expected) in shown.iter().zip(expected) {
        assert_eq!(
            (shown.at_ns, shown.cpu, shown.tid),
            (expected.at_ns, expected.cpu, expected.tid)
        );
        assert_eq!(discriminant(&shown.kind), discriminant(&expected.kind));
        if let TraceKind::Switch { .. } | TraceKind::Waking { .. } = shown.kind {
            assert_eq!(shown.kind, expected.kind);
        }
    }
}
