//! `punctual analyse` of other programs' files: recognised by content, packed or not, and refused
//! in one line where they cannot be read.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::{Dir, json, punctual, refused, run, stderr, stdout};

fn peer(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/peers").join(name)
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("packed");
    encoder.finish().expect("packed")
}

#[test]
fn a_name_says_nothing_and_packing_changes_nothing() {
    let dir = Dir::new("import-packed");
    for name in ["cyclictest/histogram.json", "rtla/timerlat.txt", "jitterdebugger/samples.raw"] {
        let bytes = fs::read(peer(name)).expect("readable");
        let plain = dir.path("a-file");
        fs::write(&plain, &bytes).expect("writable");
        let gz = dir.path("another.csv");
        fs::write(&gz, packed(&bytes)).expect("writable");
        let result = |path: &Path| {
            let out = run([Path::new("analyse"), path, Path::new("--json"), Path::new("-")]);
            assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
            json(&out)["runs"].clone()
        };
        assert_eq!(result(&plain), result(&gz), "{name}");
    }
}

#[test]
fn what_a_file_holds_and_cannot_tell_stands_with_each_run() {
    let file = peer("rtla/timerlat.txt");
    let file = file.to_str().expect("UTF-8");
    let result = json(&run(["analyse", file, "--json", "-"]));
    let runs = result["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 4);
    assert_eq!(runs[0]["imported"]["holds"], "interrupt-lateness");
    assert!(runs[0]["lateness_ns"]["max"].is_null() && runs[0]["missed"].is_null());
    assert_eq!(runs[1]["imported"]["holds"], "lateness");
    assert!(runs[1]["lateness_ns"]["max"].is_number() && runs[1]["grid"].is_null());
    let page = stdout(&run(["analyse", file]));
    assert!(page.contains("not in these data") && page.contains("beyond the histogram"), "{page}");
}

#[test]
fn limits_are_judged_as_far_as_the_data_go() {
    let judged = |name: &str, limit: &str| {
        let file = peer(name);
        let out = run(["analyse", file.to_str().expect("UTF-8"), "--limit", limit]);
        (out.status.code(), stdout(&out))
    };
    let of = |limit| judged("cyclictest/histogram.json", limit);
    assert_eq!(of("max<10ms").0, Some(0));
    assert_eq!(of("p50<60us").0, Some(0));
    // The largest is told as 4565 µs, cut to whole ones.
    assert_eq!(of("max<=4565us").0, Some(1));
    assert_eq!(of("max<4566us").0, Some(0));
    for (limit, word) in [("p99<1s", "beyond the histogram"), ("missed<1", "missed is not in")] {
        let (code, page) = of(limit);
        assert_eq!(code, Some(1));
        assert!(page.contains(word), "{page}");
    }
    let (code, page) = judged("linuxcnc/latencybins.txt", "max<1s");
    assert_eq!(code, Some(1));
    assert!(page.contains("this run holds") && page.contains("software stepping"), "{page}");
}

#[test]
fn a_unit_that_a_file_does_not_tell_is_asked_for() {
    let log = peer("hdrhistogram/latenesses.hlog");
    let log = log.to_str().expect("UTF-8");
    refused(&run(["analyse", log]), &[log, "--unit"]);
    let max = |unit| json(&run(["analyse", log, "--unit", unit, "--json", "-"]));
    let max = |unit| max(unit)["runs"][0]["lateness_ns"]["max"].as_f64().expect("told");
    assert!((max("us") / max("ns") - 1_000.0).abs() < 1.0);
    let text = peer("cyclictest/histogram.txt");
    let page = stdout(&run(["analyse", text.to_str().expect("UTF-8")]));
    assert!(page.contains("give --unit"), "{page}");
    refused(&run(["analyse", log, "--unit", "fortnight"]), &["--unit", "ns, us, ms or s"]);
}

#[test]
fn bad_files_are_refused_in_one_line_with_name_and_place() {
    let dir = Dir::new("import-bad");
    let whole = fs::read(peer("cyclictest/histogram.json")).expect("readable");
    let gz = packed(&whole);
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.path(name);
        fs::write(&path, bytes).expect("writable");
        path.to_str().expect("UTF-8").to_owned()
    };
    let twice = packed(&gz);
    let damaged: Vec<u8> = gz
        .iter()
        .enumerate()
        .map(|(at, &b)| if at == gz.len() / 2 { b ^ 0x55 } else { b })
        .collect();
    let cases: &[(&str, &[u8], &[&str])] = &[
        ("cut", &whole[..whole.len() / 2], &["line "]),
        ("cut.gz", &gz[..gz.len() / 2], &[]),
        ("damaged.gz", &damaged, &[]),
        ("twice.gz", &twice, &["unrecognised file format"]),
        ("garbage", &[0x80; 4_096], &["unrecognised file format", "--column"]),
        ("zeros", &[0; 4_096], &["unrecognised file format"]),
        ("empty", b"", &["unrecognised file format"]),
        ("lines", b"a\nb\n", &["unrecognised file format"]),
        ("brace", b"{", &["line 1"]),
        ("result", b"{\"schema\":1,\"tool\":\"punctual\"}", &["line 1", "punctual report"]),
        ("escape", b"{\"file_version\":1,\"cmdline:\":\"\\u001b[2Jx\"}", &["line 1"]),
    ];
    for (name, bytes, words) in cases {
        let path = write(name, bytes);
        let out = run(["analyse", &path]);
        refused(&out, &[&[path.as_str()], *words].concat());
        assert!(!stderr(&out).contains('\u{1b}'), "{name}");
    }
}

#[test]
fn what_packs_to_little_and_unpacks_to_much_takes_no_memory() {
    let dir = Dir::new("import-bomb");
    let path = dir.path("bomb.gz");
    let mut encoder = GzEncoder::new(File::create(&path).expect("writable"), Compression::best());
    let line = b"       0:       0:      39\n";
    encoder.write_all(line).expect("packed");
    for _ in 0..64 {
        encoder.write_all(&[b'7'; 1 << 20]).expect("packed");
    }
    encoder.finish().expect("packed");
    let path = path.to_str().expect("UTF-8");
    // 64 MiB in a line: with the address space bounded there is no room for them.
    let out = punctual_within(512 << 20).args(["analyse", path]).output().expect("it starts");
    refused(&out, &[path, "line 2", "longer than"]);
}

/// The program with so many bytes of address space.
fn punctual_within(bytes: u64) -> std::process::Command {
    let program = punctual();
    let mut command = std::process::Command::new("sh");
    let script = format!("ulimit -v {}; exec \"$0\" \"$@\"", bytes >> 10);
    command.arg("-c").arg(script).arg(program.get_program());
    command
}

#[test]
fn a_directory_and_a_pipe_are_refused_and_standard_input_is_read() {
    let dir = Dir::new("import-pipe");
    let pipe = dir.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let pipe = pipe.to_str().expect("UTF-8");
    refused(&run(["analyse", pipe]), &[pipe, "pipe", "'-'"]);
    refused(&run(["analyse", pipe, "--column", "lateness:us"]), &[pipe, "pipe"]);
    let here = dir.path("");
    refused(&run([Path::new("analyse"), &here]), &["directory"]);
    let mut child = punctual()
        .args(["analyse", "-", "--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let bytes = fs::read(peer("oslat/whole.json")).expect("readable");
    child.stdin.take().expect("piped").write_all(&packed(&bytes)).expect("it reads");
    let out = child.wait_with_output().expect("it ends");
    assert_eq!(json(&out)["runs"][0]["imported"]["holds"], "stall");
}

#[test]
fn a_recording_is_read_from_a_mail_and_a_summary_is_none() {
    let dir = Dir::new("pasted");
    let file = dir.path("mail");
    let rows = (1..=20).map(|us| format!("{us:06} 000100\n")).collect::<String>();
    let sums = "# Total: 000002000\n# Min Latencies: 00001\n# Avg Latencies: 00010\n\
                # Max Latencies: 00020\n# Histogram Overflows: 00000\n";
    let recording = format!("# Histogram\n{rows}{sums}");
    let quoted: String = recording.lines().map(|line| format!("> {line}\n")).collect();
    let text = format!("> user@host:~$ cyclictest -h 100 -q\n{quoted}");
    fs::write(&file, text).expect("writable");
    let path = file.to_str().expect("UTF-8");
    let result = json(&run(["analyse", path, "--json", "-"]));
    assert_eq!(result["runs"][0]["cycles"], 2_000, "{result}");
    let line = "T: 0 ( 1234) P:80 I:1000 C:  10000 Min:      3 Act:    5 Avg:    6 Max:      40\n";
    fs::write(&file, line).expect("writable");
    refused(&run(["analyse", path]), &["cyclictest", "-h 500 --json=FILE"]);
    fs::write(&file, recording).expect("writable");
    refused(&run(["export", path, "--csv"]), &["a recording of cyclictest", "analyse"]);
}

#[test]
fn the_page_of_wakes_without_a_period_judges_no_rate() {
    let dir = Dir::new("imported-page");
    let (result, page) = (dir.path("cyclictest.json"), dir.path("page.html"));
    let file = peer("cyclictest/histogram.json");
    let out = run(["analyse".as_ref(), file.as_os_str(), "--json".as_ref(), result.as_os_str()]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(!stdout(&out).contains("not measured"), "{}", stdout(&out));
    let out = run(["report".as_ref(), result.as_os_str(), "-o".as_ref(), page.as_os_str()]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("These data do not state their period"));
    assert!(page.contains("Lateness of wakes where missed releases are not known"));
    assert!(!page.contains("missed ones included") && !page.contains("not measured</"));
}
