//! Files of other programs that are cut, damaged or of another version: each is refused with its
//! place, none is believed.

use std::fs;
use std::io::Read;
use std::path::Path;

use punctual_import::formats::{self, Format, HEAD_BYTES, ImportRequest, detect, read};

fn format(name: &str) -> &'static Format {
    formats::find(name).unwrap_or_else(|| panic!("no format {name}"))
}

fn bytes(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/peers").join(name);
    fs::read(&path).unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// The cycles of all runs together; why not.
fn cycles(bytes: &[u8]) -> Result<u64, String> {
    let format = detect(&bytes[..bytes.len().min(HEAD_BYTES)]).ok_or("no format")?;
    let request = ImportRequest { unit_ns: Some(1_000), ..ImportRequest::default() };
    let import = read(format, bytes, &request).map_err(|error| error.to_string())?;
    Ok(import.runs.iter().map(|run| run.outcome.cycles).sum())
}

fn has_place(why: &str) -> bool {
    why == "no format" || why.contains("line ") || why.contains("byte ")
}

/// Formats whose end is known: cut anywhere before it, they are refused.
const CLOSED: &[(&str, &str)] = &[
    ("cyclictest/histogram.json", "}\n"),
    ("cyclictest/histogram.txt", "# Histogram Overflows"),
    ("jitterdebugger/results.json", "}\n"),
    ("oslat/whole.json", "}\n"),
    ("rtla/with-zeros.txt", "max:"),
    ("rtla/osnoise.txt", "max:"),
    ("latmus/user.plot", "5 8"),
    ("xenomai/histogram.txt", "RTS|"),
    ("xenomai/gnuplot.txt", "7 1"),
];

#[test]
fn a_file_that_is_cut_is_refused() {
    for (name, end) in CLOSED {
        let whole = bytes(name);
        let text = String::from_utf8(whole.clone()).expect("text");
        let end = text.rfind(end).expect("its end");
        assert!(cycles(&whole).is_ok(), "{name}");
        for cut in (1..=end).step_by(1 + end / 60).chain([end]) {
            match cycles(&whole[..cut]) {
                Ok(cycles) => panic!("{name} cut at byte {cut} gave {cycles} cycles"),
                Err(why) => assert!(has_place(&why) && !why.contains('\n'), "{name}: {why}"),
            }
        }
    }
}

#[test]
fn a_list_that_is_cut_is_refused_inside_of_a_line_and_else_has_fewer_values() {
    for name in [
        "cyclictest/verbose.txt",
        "stress-ng/percentiles.txt",
        "linuxcnc/latency-histogram.txt",
        "linuxcnc/latencybins.txt",
        "hdrhistogram/latenesses.hlog",
        "jitterdebugger/samples.raw",
    ] {
        let whole = bytes(name);
        let complete = cycles(&whole).unwrap_or_else(|why| panic!("{name}: {why}"));
        for cut in (1..whole.len()).step_by(1 + whole.len() / 150) {
            let at_an_end = match name.ends_with(".raw") {
                true => cut % 28 == 0,
                false => whole[cut - 1] == b'\n',
            };
            match cycles(&whole[..cut]) {
                Ok(cycles) => assert!(at_an_end && cycles <= complete, "{name} cut at byte {cut}"),
                Err(why) => assert!(has_place(&why) && !why.contains('\n'), "{name}: {why}"),
            }
        }
    }
}

/// (file, what stands there, what is put in its place, words of the refusal)
const DAMAGED: &[(&str, &str, &str, &[&str])] = &[
    (
        "cyclictest/histogram.json",
        "\"file_version\": 1",
        "\"file_version\": 2",
        &["file_version 2", "line 2"],
    ),
    ("cyclictest/histogram.json", "\"file_version\": 1,", "", &["file_version"]),
    ("cyclictest/histogram.json", "\"cycles\": 2000", "\"cycles\": -5", &["-5", "line "]),
    (
        "cyclictest/histogram.json",
        "\"cycles\": 2000",
        "\"cycles\": 99999999999999999999",
        &["line "],
    ),
    ("cyclictest/histogram.json", "\"cycles\": 2000", "\"cycles\": 1000", &["more than the 1000"]),
    ("cyclictest/histogram.json", "\"cycles\": 2000,", "", &["thread 0: no count", "line "]),
    ("cyclictest/histogram.json", "\"13\": 11", "\"13\": -11", &["-11", "line "]),
    ("cyclictest/histogram.json", "\"13\": 11", "\"-13\": 11", &["negative", "line "]),
    (
        "cyclictest/histogram.json",
        "\"13\": 11",
        "\"13\": 18446744073709551615",
        &["too many values", "line "],
    ),
    (
        "cyclictest/histogram.json",
        "\"13\": 11",
        "\"13000000000000000000\": 11",
        &["too large", "line "],
    ),
    ("cyclictest/histogram.json", "\"13\": 11", "\"x\": 11", &["not a count", "line "]),
    (
        "cyclictest/histogram.json",
        "\"resolution_in_ns\": 0",
        "\"resolution_in_ns\": 5",
        &["resolution_in_ns 5"],
    ),
    ("cyclictest/histogram.json", "\"resolution_in_ns\": 0,", "", &["before resolution_in_ns"]),
    (
        "cyclictest/histogram.json",
        "\"num_threads\": 2",
        "\"num_threads\": 3",
        &["num_threads is 3"],
    ),
    ("cyclictest/histogram.json", "\"1\": {", "\"0\": {", &["twice"]),
    (
        "cyclictest/histogram.json",
        "\"cyclictest -a",
        "\"signaltest -a",
        &["signaltest", "not supported"],
    ),
    ("cyclictest/histogram.json", "\"min\": 13", "\"min\": 14", &["below the minimum"]),
    ("cyclictest/histogram.json", "\"min\": 13,", "", &["thread 0: no min"]),
    ("cyclictest/histogram.txt", "# Total: 000001932", "# Total: 000001931", &["a total of 1931"]),
    (
        "cyclictest/histogram.txt",
        "000049 000016\t000012",
        "000049 000016",
        &["1 columns, expected 2", "line "],
    ),
    (
        "cyclictest/histogram.txt",
        "000049 000016\t000012",
        "000049 -00016\t000012",
        &["negative", "line "],
    ),
    (
        "cyclictest/histogram.txt",
        "000049 000016\t000012",
        "000047 000016\t000012",
        &["bucket 47", "line "],
    ),
    (
        "cyclictest/histogram.txt",
        "000049 000016\t000012",
        "lorem ipsum",
        &["expected a bucket", "line "],
    ),
    (
        "cyclictest/histogram.txt",
        "Overflows: 00068 00063",
        "Overflows: 99999999999999999999 00063",
        &["too large"],
    ),
    ("cyclictest/histogram.txt", "# Max Latencies: 04565 04511\n", "", &["Max Latencies"]),
    (
        "cyclictest/verbose.txt",
        "       0:       3:      30\n",
        "       0:       2:      30\n",
        &["cycle 2", "line "],
    ),
    (
        "cyclictest/verbose.txt",
        "       0:       3:      30\n",
        "       0:       3:\n",
        &["expected thread:cycle:value", "line "],
    ),
    (
        "cyclictest/verbose.txt",
        "       0:       3:      30\n",
        "    9999:       3:      30\n",
        &["thread 9999", "line "],
    ),
    (
        "jitterdebugger/results.json",
        "\"version\": 3",
        "\"version\": 4",
        &["version 4", "expected 3"],
    ),
    (
        "jitterdebugger/results.json",
        "\"resolution_in_ns\": 1000",
        "\"resolution_in_ns\": 7",
        &["resolution_in_ns 7"],
    ),
    ("jitterdebugger/results.json", "\"count\": ", "\"counts\": ", &["no count"]),
    ("oslat/whole.json", "\"1\": ", "\"0\": ", &["bucket 0"]),
    ("rtla/with-zeros.txt", "# Time unit is microseconds (us)\n", "", &["unit"]),
    ("rtla/with-zeros.txt", "Index ", "Inde ", &["Index", "line "]),
    ("rtla/with-zeros.txt", "# Dur", "Index a\n# Dur", &["second heading Index", "line 5"]),
    ("rtla/with-zeros.txt", "# Dur", "# RTLA x\n# Dur", &["second histogram", "line 3"]),
    ("rtla/with-zeros.txt", "IRQ-000", "FIQ-000", &["FIQ-000"]),
    ("rtla/with-zeros.txt", "over:      1143", "over:     -1143", &["negative"]),
    ("rtla/with-zeros.txt", "over:      1143", "over:      1144", &["1144 beyond"]),
    (
        "rtla/with-zeros.txt",
        "avg:        231       367       267       365 \n",
        "",
        &["within its summary"],
    ),
    ("rtla/with-zeros.txt", "99           31", "98           31", &["row 98", "line "]),
    (
        "stress-ng/distribution.txt",
        "100000         78",
        "100000         7800",
        &["more than the 10000"],
    ),
    (
        "stress-ng/distribution.txt",
        "100000         78",
        "110000         78",
        &["is not the next one", "line "],
    ),
    (
        "stress-ng/distribution.txt",
        "99.00%:     108509 ns",
        "99.00%:     808509 ns",
        &["99.90% percentile contradicts", "line "],
    ),
    ("stress-ng/distribution.txt", "10000 samples", "-1 samples", &["negative", "line "]),
    ("stress-ng/distribution.txt", "mean: 42127.10 ns", "mean: 42127.10 us", &["mean", "line "]),
    ("latmus/user.plot", "microseconds", "fortnights", &["microseconds", "line "]),
    ("latmus/user.plot", "# sample count: 10000", "# sample count: 9", &["more than the 9"]),
    ("latmus/user.plot", "# sample count: 10000", "# sample count: -9", &["negative", "line "]),
    ("latmus/user.plot", ": 5.310\n", ":5.310\n", &["max", "line "]),
    ("latmus/user.plot", "2 1300", "1 1300", &["row 1", "line "]),
    ("latmus/user.plot", "2 1300", "2 1300 5", &["2 counts for 1"]),
    ("latmus/first-form.plot", "3 1\n", "3 0\n", &["count of 0", "line "]),
    ("xenomai/histogram.txt", "HSD|    avg|   1 -  2 |     1300\n", "", &["2000 values counted"]),
    ("latmus/first-form.plot", "4 101\n", "", &["end below the stated maximum", "line "]),
    ("xenomai/histogram.txt", "2 -  3", "2 -  4", &["from 2 to 4", "line "]),
    (
        "xenomai/histogram.txt",
        "RTS|      0.560|      1.750|      6.120",
        "RTS|      0.560|      1.750|      2.120",
        &["above the maximum"],
    ),
    ("xenomai/gnuplot.txt", "2.5 481", "2.7 481", &["middle of a bucket", "line "]),
    ("xenomai/gnuplot.txt", "2.5 481", "2.5 0", &["count of 0", "line "]),
    (
        "linuxcnc/latencybins.txt",
        "s32   OUT             7  servobins.check",
        "s32   OUT             6  servobins.check",
        &["bin 7"],
    ),
    ("linuxcnc/latencybins.txt", "servobins.nsbinsize", "servobins.binsize", &["nsbinsize"]),
    (
        "linuxcnc/latency-histogram.txt",
        " us max:",
        " ms max:",
        &["not a line of latency-histogram", "line "],
    ),
    ("hdrhistogram/latenesses.hlog", "HISTFAAAA2", "HISTEwAAA2", &["V2", "line "]),
    ("hdrhistogram/latenesses.hlog", "HISTFAAAA2", "HISTFAAAA3", &["bytes", "line "]),
    ("hdrhistogram/latenesses.hlog", "version 1.", "version 2.", &["version", "line "]),
];

#[test]
fn damage_is_named_with_its_place() {
    for (name, from, to, words) in DAMAGED {
        let text = String::from_utf8(bytes(name)).expect("text");
        assert!(text.contains(from), "{name} has no {from:?}");
        let damaged = text.replacen(from, to, 1);
        let why = match cycles(damaged.as_bytes()) {
            Ok(cycles) => panic!("{name} with {to:?} gave {cycles} cycles"),
            Err(why) => why,
        };
        assert!(has_place(&why) && !why.contains('\n'), "{name}: {why}");
        for word in *words {
            assert!(why.contains(word), "{name} with {to:?}: {word:?} in {why:?}");
        }
    }
}

#[test]
fn records_that_cannot_be_are_refused_by_their_byte() {
    let whole = bytes("jitterdebugger/samples.raw");
    let refused = |bytes: &[u8]| {
        let read = read(format("jitterdebugger_samples"), bytes, &ImportRequest::default());
        read.expect_err("refused").to_string()
    };
    let record = 28 * 100;
    for (at, byte, word) in
        [(15, 0xff, "not a record"), (5, 0, "before the previous one"), (0, 0xff, "")]
    {
        let mut damaged = whole.clone();
        damaged[record + at] = byte;
        damaged[record + 1] = if at == 0 { 0xff } else { 0 };
        let why = refused(&damaged);
        assert!(why.starts_with("byte 28") && why.contains(word), "{why}");
    }
    let why = refused(&whole[..whole.len() - 3]);
    assert!(why.contains("within a record"), "{why}");
}

/// A histogram of `left` buckets that is never in memory as a whole.
struct Endless {
    left: u64,
    next: u64,
    head: &'static str,
    row: fn(u64) -> String,
    pending: Vec<u8>,
    tail: Option<String>,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.pending.is_empty() {
            let mut text = std::mem::take(&mut self.head).to_owned();
            while self.left > 0 && text.len() < 30_000 {
                text += &(self.row)(self.next);
                (self.next, self.left) = (self.next + 1, self.left - 1);
            }
            if self.left == 0 {
                text += &self.tail.take().unwrap_or_default();
            }
            self.pending = text.into_bytes();
        }
        let bytes = self.pending.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&self.pending[..bytes]);
        self.pending.drain(..bytes);
        Ok(bytes)
    }
}

#[test]
fn millions_of_buckets_are_read_as_they_come() {
    let buckets = 300_000;
    let head = "{\"file_version\":1,\"cmdline:\":\"cyclictest -h 10000000\",\"num_threads\":1,\
                \"resolution_in_ns\":0,\"thread\":{\"0\":{\"histogram\":{\"0\":1";
    let max = buckets;
    let tail = format!("}},\"cycles\":{},\"min\":0,\"max\":{max},\"avg\":7.0}}}}}}", buckets + 1);
    let row = |at| format!(",\"{}\":1", at + 1);
    let json = Endless { left: buckets, next: 0, head, row, pending: Vec::new(), tail: Some(tail) };
    let import = read(format("threads"), json, &ImportRequest::default()).expect("readable");
    assert_eq!(import.runs[0].outcome.cycles, buckets + 1);
    assert!(import.runs[0].outcome.histogram.buckets.len() <= 500);
    let row = |at| format!("{at:06} 000001\n");
    let tail = format!(
        "# Total: {buckets}\n# Min Latencies: 0\n# Avg Latencies: 5\n# Max Latencies: {}\n\
         # Histogram Overflows: 0\n",
        buckets - 1
    );
    let head = "# Histogram\n";
    let text = Endless { left: buckets, next: 0, head, row, pending: Vec::new(), tail: Some(tail) };
    let import =
        read(format("cyclictest_histogram"), text, &ImportRequest::default()).expect("readable");
    assert_eq!(import.runs[0].outcome.cycles, buckets);
    // Rows of rtla are held until the width of a bucket is known: there is an end to it.
    let head = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\nIndex   Thr-000\n";
    let row = |at| format!("{at}  1\n");
    let rtla = Endless { left: 10_000_000, next: 0, head, row, pending: Vec::new(), tail: None };
    let why =
        read(format("rtla"), rtla, &ImportRequest::default()).expect_err("too many").to_string();
    assert!(why.starts_with("line 104") && why.contains("more than 1048576"), "{why}");
}

#[test]
fn what_never_ends_is_ended() {
    let endless = |text: &'static [u8]| text.chain(std::io::repeat(b'7'));
    for (name, head) in [
        ("threads", &b"{\"cmdline:\":\"cyclictest "[..]),
        ("threads", b"{\"file_version\":"),
        ("cyclictest_histogram", b"# Histogram\n0 "),
        ("cyclictest_verbose", b"0:0:"),
        ("rtla", b"Index "),
        ("stress_ng", b"cyclic: sched "),
        ("latmus", b"# context: user\n"),
        ("hdr", b"1,2,3,HISTF"),
        ("latency_histogram", b" 1 s servo min:"),
    ] {
        let request = ImportRequest { unit_ns: Some(1), ..ImportRequest::default() };
        let read = read(format(name), endless(head), &request);
        let why = read.expect_err("endless").to_string();
        assert!(has_place(&why), "{name}: {why}");
    }
}
