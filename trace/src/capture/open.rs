//! The format of a capture, and the reader for it: the table of formats.
//!
//! For whoever has a file and does not know who wrote it. Reads its head, then hands it on.

use std::io::{BufReader, Read, Seek, SeekFrom};

use super::{CaptureError, CaptureFormat, CaptureReader};
use super::{ndjson, perf_data, text, trace_dat, tracing_data, wprof};

/// Bytes of a capture that are read to find its format.
const HEAD_BYTES: u64 = 64 * 1024;

/// Most lines that are looked at for one that is an event.
const HEAD_LINES: usize = 200;

/// The format of the capture that begins with these bytes; nothing if it is none that is read.
#[must_use]
pub fn detect(head: &[u8]) -> Option<CaptureFormat> {
    if head.starts_with(perf_data::MAGIC_PERF) || head.starts_with(b"2ELIFREP") {
        return Some(CaptureFormat::PerfData);
    }
    if head.starts_with(tracing_data::MAGIC) {
        return Some(CaptureFormat::TraceDat);
    }
    let text = String::from_utf8_lossy(head);
    let first = text.lines().next().unwrap_or_default();
    if first.starts_with('{') {
        let keys: serde_json::Value = serde_json::from_str(first).ok()?;
        if keys.get("punctual_trace").is_some() {
            return Some(CaptureFormat::Ndjson);
        }
        return keys.get("stack_cnt").map(|_| CaptureFormat::Wprof);
    }
    text.lines().take(HEAD_LINES).find_map(text::format_of_line)
}

/// Reads a capture, whichever of the formats it has.
///
/// # Errors
/// A capture of no known format, or what its reader says of its head.
pub fn open<'a, R: Read + Seek + 'a>(
    mut file: R,
) -> Result<Box<dyn CaptureReader + 'a>, CaptureError> {
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    (&mut file).take(HEAD_BYTES).read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(0))?;
    let Some(format) = detect(&head) else {
        return Err(CaptureError::Unsupported {
            form: Box::from("it is no capture that is known"),
            way_out: "perf.data, trace.dat, the text of perf script, of ftrace or of trace-cmd \
                      report, and NDJSON of wprof or of this program are read",
        });
    };
    Ok(match format {
        CaptureFormat::PerfData => Box::new(perf_data::PerfDataReader::open(file)?),
        CaptureFormat::TraceDat => Box::new(trace_dat::TraceDatReader::open(file)?),
        CaptureFormat::PerfScript | CaptureFormat::FtraceText => {
            Box::new(text::TextReader::new(BufReader::new(file)))
        }
        CaptureFormat::Wprof => Box::new(wprof::WprofReader::open(BufReader::new(file))?),
        CaptureFormat::Ndjson => Box::new(ndjson::NdjsonReader::open(BufReader::new(file))?),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{detect, open};
    use crate::capture::CaptureFormat;

    #[test]
    fn formats_are_told_by_their_beginning() {
        for (head, format) in [
            ("PERFILE2\0", Some(CaptureFormat::PerfData)),
            ("\u{17}\u{8}Dtracing6\0", Some(CaptureFormat::TraceDat)),
            ("{\"punctual_trace\":1}\n{}", Some(CaptureFormat::Ndjson)),
            ("{\"version\":\"3.1\",\"stack_cnt\":0}\n", Some(CaptureFormat::Wprof)),
            ("{\"other\":1}", None),
            ("{", None),
            ("# tracer: nop\n\n a-5 [000] d..2. 1.000000: x: y\n", Some(CaptureFormat::FtraceText)),
            ("a  5 [000] 1.000000: sched:x: y\n", Some(CaptureFormat::PerfScript)),
            ("other text\n", None),
            ("", None),
        ] {
            assert_eq!(detect(head.as_bytes()), format, "{head}");
        }
        let refused = open(Cursor::new(b"other")).err().unwrap().to_string();
        assert!(refused.starts_with("it is no capture that is known; perf.data, trace.dat"));
        let mut reader =
            open(Cursor::new(b"a-5 [000] ..... 1.000000: softirq_exit: vec=1\n")).unwrap();
        assert!(reader.next_event().unwrap().is_some());
        assert_eq!(reader.facts().format(), CaptureFormat::FtraceText);
    }
}
