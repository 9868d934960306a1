//! `punctual analyse`: recorded data judged without measuring, and damage told.
//!
//! Recordings of programs of the library: `punctual analyse` reads them, task by task.
//!
//! `punctual analyse` of other programs' files: recognised by content, packed or not, and refused
//! in one line where they cannot be read.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use punctual::{Executive, Flow, Loop, Period, Phase, Placement, RtThread, Task, WaitPolicy};
use punctual_core::time::Span;
use punctual_testkit::skip;

use serde_json::{Value, json};

use crate::{
    Dir, PROGRAM, json, punctual, recorded_result, refused, run, sample_file, stderr, stdout, text,
};

fn recorded(dir: &Dir) -> String {
    let file = dir.path("samples");
    let file = file.to_str().expect("UTF-8").to_owned();
    // A busy machine misses most releases; a block has 1024 samples at most, and a third of the
    // file must hold more than one.
    for duration in ["1s", "4s", "16s", "60s"] {
        let loops = ["measure", "periodic", "--period", "250us", "--duration", duration];
        let out = run(loops.iter().copied().chain(["--json", "-", "--samples", file.as_str()]));
        // A stall may also cost samples, and a file that lacks some is incomplete as it is; one
        // that is long enough for the watchdog ends the run, which fails then.
        let result = json(&out);
        let is_ended = result["ended_by"] == "watchdog";
        assert_eq!(out.status.code(), Some(i32::from(is_ended)), "{}", stderr(&out));
        let is_long = result["runs"][0]["cycles"].as_u64() > Some(3 * 1_024);
        if is_long && result["incomplete"] == false {
            return file;
        }
    }
    panic!("too few cycles in 60 s, or samples lost in each run");
}

#[test]
fn a_cut_or_damaged_file_is_read_up_to_there() {
    let dir = Dir::new("damage");
    let file = recorded(&dir);
    let whole = fs::read(&file).expect("written");
    let read = |bytes: &[u8]| {
        fs::write(&file, bytes).expect("writable");
        let out = run(["analyse", &file, "--json", "-"]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let result = json(&out);
        let cycles = result["runs"][0]["cycles"].as_u64().unwrap_or(0);
        (cycles, result["incomplete"].clone(), result["warnings"].to_string())
    };
    let (cycles, incomplete, _) = read(&whole);
    assert!(cycles > 0 && incomplete == false);
    let (cut, incomplete, warnings) = read(&whole[..whole.len() * 2 / 3]);
    assert!(cut > 0 && cut < cycles && incomplete == true, "{cut} of {cycles}");
    assert!(warnings.contains("cut off"), "{warnings}");
    let mut damaged = whole.clone();
    let at = whole.len() * 2 / 3;
    damaged[at] ^= 0x10;
    let (before, incomplete, warnings) = read(&damaged);
    assert!(before > 0 && before < cycles && incomplete == true, "{before} of {cycles}");
    assert!(warnings.contains("damaged at byte"), "{warnings}");
    let mut newer = whole.clone();
    newer[8] = 2;
    fs::write(&file, newer).expect("writable");
    refused(&run(["analyse", &file]), &["newer"]);
    fs::write(&file, "PUNCTUAL").expect("writable");
    refused(&run(["analyse", &file]), &[&file]);
    fs::write(&file, "").expect("writable");
    refused(&run(["analyse", &file]), &[&file, "the file is empty"]);
    fs::write(&file, &whole).expect("writable");
    refused(&run(["analyse", &file, "--period", "1ms"]), &["--period", "its own period"]);
}

#[test]
fn csv_of_lateness_gives_its_numbers() {
    let dir = Dir::new("lateness");
    let file = dir.path("file.csv");
    let file = file.to_str().expect("UTF-8");
    let lines: String = (0..1000).map(|k| format!("{k},{}.5\r\n", k % 100)).collect();
    fs::write(file, format!("cycle,lateness\r\n{lines}")).expect("writable");
    let result = json(&run(["analyse", file, "--column", "lateness:us", "--json", "-"]));
    let lateness = &result["runs"][0]["lateness_ns"];
    assert_eq!(lateness["min"], 500.0);
    assert_eq!(lateness["max"], 99_500.0);
    assert_eq!(result["runs"][0]["cycles"], 1000);
    assert!((lateness["mean"].as_f64().expect("a mean") - 50_000.0).abs() < 1e-6);
    let failed = run(["analyse", file, "--column", "lateness:us", "--limit", "max<10us"]);
    assert_eq!(failed.status.code(), Some(1));
    refused(&run(["analyse", file, "--column", "lateness"]), &["unit"]);
    refused(&run(["analyse", file, "--column", "other:us"]), &["other"]);
    // A deadline is answered without a period, and what has no answer is no gate.
    let analysed =
        |more: &[&str]| run([&["analyse", file, "--column", "lateness:us"], more].concat());
    let answered = analysed(&["--deadline", "50us", "--miss", "10%", "--gate"]);
    assert_eq!(answered.status.code(), Some(1), "{}", stderr(&answered));
    let page = stdout(&answered);
    assert!(page.contains("wakes    no: 500 of 1 000 wakes were later than 50 µs"), "{page}");
    assert!(page.lines().count() < 20, "{page}");
    let fine = analysed(&["--deadline", "100us", "--miss", "10%", "--gate"]);
    assert_eq!(fine.status.code(), Some(0), "{}", stdout(&fine));
    refused(&analysed(&["--gate"]), &["--gate", "--deadline TIME", "--period TIME"]);
    assert!(stdout(&analysed(&[])).contains("note: these data do not state their period"));
    fs::write(file, "lateness\n1\nx\n").expect("writable");
    refused(&run(["analyse", file, "--column", "lateness:us"]), &[file, "line 3"]);
}

#[test]
fn instants_of_a_drifting_clock_are_drift_never_a_miss() {
    let dir = Dir::new("instants");
    let file = dir.path("file.csv");
    let file = file.to_str().expect("UTF-8");
    // 500 µs by a clock that is 1000 ppm fast; every tenth wake 3 µs late.
    let wake = |k: u64| 1_000 + k * 500_500 + if k % 10 == 9 { 3_000 } else { 0 };
    let lines: String = (0..20_000).map(|k| format!("{}\n", wake(k))).collect();
    fs::write(file, lines).expect("writable");
    let args = ["analyse", file, "--column", "instant:ns", "--period", "500us", "--json", "-"];
    let result = json(&run(args));
    let run0 = &result["runs"][0];
    assert_eq!(run0["missed"], 0);
    let drift = run0["grid"]["drift_ppb"].as_f64().expect("fitted");
    assert!((drift / 1e6 - 1.0).abs() < 1e-3, "{drift}");
    let peak = run0["grid"]["jitter_pp_ns"].as_f64().expect("fitted");
    assert!((peak - 3_000.0).abs() < 2.0, "{peak}");
    refused(&run(["analyse", file, "--column", "instant:ns"]), &["--period"]);
    fs::write(file, "5\n3\n").expect("writable");
    refused(&run(args), &[file, "line 2"]);
}

/// What the program makes of these bytes on its standard input, as JSON.
fn piped(args: &[&str], bytes: &[u8]) -> Value {
    let mut child = punctual()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("piped").write_all(bytes).expect("it reads");
    json(&child.wait_with_output().expect("it ends"))
}

#[test]
fn reads_standard_input() {
    let column = ["analyse", "-", "--column", "lateness:ns", "--json", "-"];
    let result = piped(&column, b"10\n20\n30\n");
    assert_eq!(result["runs"][0]["lateness_ns"]["max"], 30.0);
    // A result too, which may be compressed.
    let bytes = result.to_string().into_bytes();
    for bytes in [packed(&bytes), bytes] {
        let again = piped(&["analyse", "-", "--json", "-"], &bytes);
        assert_eq!(again["runs"][0]["lateness_ns"]["max"], 30.0, "{again}");
    }
}

#[test]
fn the_columns_of_an_export_are_what_they_are_called() {
    let dir = Dir::new("analyse-export");
    let file = dir.path("s.csv");
    let file = text(&file);
    fs::write(file, "cycle,release_ns,lateness_ns\n0,1000000,500\n1,2000000,300\n2,3000000,400\n")
        .expect("writable");
    let column = ["analyse", file, "--column", "lateness_ns:ns", "--period", "1ms", "--json", "-"];
    let result = json(&run(column));
    let run = &result["runs"][0];
    assert_eq!(
        (&run["cycles"], &run["lateness_ns"]["max"]),
        (&Value::from(3), &Value::from(500.0))
    );
}

/// Memory that the program may take for 1024 runs without samples, in KiB: itself, 44 MiB where it
/// is built for tests, and some 32 KiB a run.
const MEMORY_KIB: u32 = 72 << 10;

/// The same for 1024 runs of three samples: some 270 KiB a run, half of it never touched.
const THREE_KIB: u32 = 336 << 10;

#[test]
fn many_runs_are_refused_and_as_many_as_are_read_take_little_memory() {
    let dir = Dir::new("analyse-runs");
    let file = |runs: usize| {
        let run = |n| serde_json::json!({ "name": format!("run {n}"), "period_ns": 1_000_000 });
        let info = serde_json::json!({ "runs": (0..runs).map(run).collect::<Vec<_>>() });
        sample_file(&dir.path("samples"), &info, &[])
    };
    let many = file(1_025);
    for command in [&["analyse", &many][..], &["export", "--csv", &many], &["report", &many]] {
        refused(&run(command), &[&many]);
    }
    refused(&run(["analyse", &many]), &["describes 1025 runs; at most 1024 are read"]);
    let compared = run(["compare", &many, &many, "--anyway"]);
    refused(&compared, &["describes 1025 runs; at most 1024 are read"]);
    if !skip::need_native("a limit of its memory") {
        return;
    }
    let run = |n| serde_json::json!({ "name": format!("run {n}"), "period_ns": 1_000_000 });
    let info = serde_json::json!({ "runs": (0..1_024).map(run).collect::<Vec<_>>() });
    let three = sample_file(&dir.path("three"), &info, &[&[20_000, 30_000, 25_000][..]; 1_024]);
    // Without a cycle nothing is decided.
    for (most, memory, code) in [(file(1_024), MEMORY_KIB, 3), (three, THREE_KIB, 0)] {
        let limited = format!("ulimit -v {memory} && exec \"$0\" analyse \"$1\" --json -");
        let out = Command::new("sh").args(["-c", &limited]).arg(PROGRAM).arg(&most).output();
        let out = out.expect("sh starts");
        assert_eq!(out.status.code(), Some(code), "{}", stderr(&out));
        assert_eq!(json(&out)["runs"].as_array().map(Vec::len), Some(1_024));
    }
}

#[test]
fn a_decimal_comma_is_no_second_column_and_no_whole_number() {
    let dir = Dir::new("decimal-comma");
    let file = dir.path("file.csv");
    let file = file.to_str().expect("UTF-8");
    let ways = ["for a decimal comma write a point", "for several columns name each"];
    for text in ["lateness\n1,5\n2,5\n", "lateness\n1;2\n", "1;2\n3;4\n", "1,5\n2,5\n"] {
        fs::write(file, text).expect("writable");
        let out = run(["analyse", file, "--column", "lateness:us"]);
        refused(&out, &[ways[0], ways[1], file]);
    }
    fs::write(file, "cpu;lateness\n1;1.5\n").expect("writable");
    let result = json(&run(["analyse", file, "--column", "lateness:us", "--json", "-"]));
    assert_eq!(result["runs"][0]["lateness_ns"]["max"], 1_500.0);
}

fn thread() -> RtThread {
    RtThread::any().wait(WaitPolicy::sleep())
}

#[test]
fn a_loop_and_the_tasks_of_an_executive_are_read_from_their_sample_files() {
    let dir = Dir::new("library");
    let [one, many] = ["loop.punctual", "tasks.punctual"].map(|name| dir.path(name));
    let period = |hertz| Period::hz(hertz).expect("in range");
    let builder = Loop::builder(period(1_000)).thread(thread()).phase(Phase::Zero);
    let mut each_ms = builder.record(&one).start().expect("a loop");
    while each_ms.wait().is_some_and(|cycle| cycle.n < 200) {}
    let control_loop = each_ms.finish().ok().expect("a good end");

    let own = Task::every("own thread", period(500)).placed(Placement::thread(RtThread::any()));
    let (plan, _) = Executive::builder()
        .thread(thread())
        .phase(Phase::Zero)
        .task(Task::every("fast", period(1_000)), |_| ())
        .task(own, |_| ())
        .record(&many)
        .build()
        .expect("fine");
    let tasks = plan.run_for(Duration::from_millis(400)).expect("it starts").ok();
    let tasks = tasks.expect("a good end");

    for (file, summary) in [(&one, &control_loop), (&many, &tasks)] {
        let out = run(["analyse", file.to_str().expect("UTF-8"), "--json", "-"]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let result = json(&out);
        let runs = result["runs"].as_array().expect("runs");
        assert_eq!(runs.len(), summary.tasks.len());
        for (run, task) in runs.iter().zip(&summary.tasks) {
            assert_eq!(run["name"], task.name.as_str());
            assert_eq!(run["cycles"].as_u64(), Some(task.counts.ran), "{run}");
        }
    }
}

#[test]
fn releases_that_no_wake_followed_count_as_in_the_summary() {
    let dir = Dir::new("library-censored");
    let file = dir.path("tasks.punctual");
    let period = Period::hz(50).expect("in range");
    let (plan, _) = Executive::builder()
        .thread(thread())
        .phase(Phase::Zero)
        .task(Task::every("control", period), |cycle| {
            let last = cycle.n >= 20;
            if last {
                // Two releases pass, and no cycle comes after them.
                std::thread::sleep(Duration::from_millis(45));
            }
            if last { Flow::Stop } else { Flow::Continue }
        })
        .record(&file)
        .build()
        .expect("fine");
    let summary = plan.run().expect("it starts").ok().expect("a good end");
    let counts = &summary.tasks[0].counts;
    assert!(counts.censored >= 2, "{counts:?}");
    let (missed, releases) = (counts.missed, counts.ran + counts.missed);
    let max_ns = counts.max.expect("some ran").as_ns();

    let file = file.to_str().expect("UTF-8");
    let result = json(&run(["analyse", file, "--json", "-"]));
    let recorded_run = &result["runs"][0];
    assert_eq!(
        (
            recorded_run["cycles"].as_u64(),
            recorded_run["missed"].as_u64(),
            recorded_run["censored"].as_u64()
        ),
        (Some(counts.ran), Some(missed), Some(counts.censored))
    );
    // A file does not say how long after the last release the task ended: a period at least.
    let worst_ns = recorded_run["lateness_ns"]["max"].as_f64().expect("known") as i64;
    let period_ns = period.as_ns().cast_signed();
    assert!((period_ns..=max_ns.max(period_ns)).contains(&worst_ns), "{worst_ns} of {max_ns}");
    let headline = &result["headline"]["loops"][0];
    let counted = headline["counts"].as_str().expect("text");
    let worst = format!("≥ {}", Span::from_ns(worst_ns));
    assert!(counted.contains(&format!("{missed} of {releases} releases missed")), "{counted}");
    assert!(headline["worst"].as_str().is_some_and(|text| text.contains(&worst)), "{headline}");
    let largest = recorded_run["claims"][0]["statement"].as_str().expect("a claim of level L0");
    let claimed =
        format!("the largest of {releases} latenesses was at least {}", Span::from_ns(worst_ns));
    assert_eq!(largest, claimed);

    let page = stdout(&run(["analyse", "-v", file]));
    let row = page.lines().find(|line| line.trim_start().starts_with("control ")).expect("a row");
    assert!(row.contains(&worst), "{row}");
    let counts: Vec<&str> = row.split_whitespace().rev().take(2).collect();
    assert_eq!(counts, [missed.to_string(), releases.to_string()], "{row}");
}

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
    let lookup = |limit| judged("cyclictest/histogram.json", limit);
    assert_eq!(lookup("max<10ms").0, Some(0));
    assert_eq!(lookup("p50<60us").0, Some(0));
    // The largest is told as 4565 µs, cut to whole ones.
    assert_eq!(lookup("max<=4565us").0, Some(1));
    assert_eq!(lookup("max<4566us").0, Some(0));
    // No quantile is above the largest.
    let (code, page) = lookup("p99<1s");
    assert!(code == Some(0) && page.contains("p99 is at most the largest"), "{page}");
    for (limit, word) in [("p99<1ms", "beyond the histogram"), ("missed<1", "missed is not in")] {
        let (code, page) = lookup(limit);
        assert_eq!(code, Some(1));
        assert!(page.contains(word), "{page}");
    }
    let (code, page) = judged("linuxcnc/latencybins.txt", "max<1s");
    assert_eq!(code, Some(1));
    assert!(page.contains("this run holds") && page.contains("software stepping"), "{page}");
    // More cycles would decide it.
    let (code, page) = judged("cyclictest/histogram.json", "p99.9999999<1s");
    assert_eq!(code, Some(3), "{page}");
    assert!(page.contains("needs at least"), "{page}");
}

#[test]
fn a_unit_that_a_file_does_not_tell_is_asked_for() {
    let log = peer("hdrhistogram/latenesses.hlog");
    let log = log.to_str().expect("UTF-8");
    refused(&run(["analyse", log]), &[log, "--unit"]);
    let max = |unit| json(&run(["analyse", log, "--unit", unit, "--json", "-"]));
    let max = |unit| max(unit)["runs"][0]["lateness_ns"]["max"].as_f64().expect("a median");
    assert!((max("us") / max("ns") - 1_000.0).abs() < 1.0);
    let text = peer("cyclictest/histogram.txt");
    let page = stdout(&run(["analyse", text.to_str().expect("UTF-8")]));
    assert!(page.contains("give --unit"), "{page}");
    refused(&run(["analyse", log, "--unit", "fortnight"]), &["--unit", "ns, us, ms or s"]);
}

/// A unit that the file states is not to be given: it would do nothing.
#[test]
fn a_unit_that_a_file_tells_is_refused() {
    for (name, program) in [
        ("rtla/timerlat.txt", "rtla"),
        ("cyclictest/histogram.json", "of cyclictest,"),
        ("oslat/whole.json", "of oslat,"),
        ("jitterdebugger/results.json", "of jitterdebugger,"),
        ("latmus/user.plot", "latmus"),
        ("xenomai/histogram.txt", "Xenomai"),
        ("stress-ng/few.txt", "stress-ng"),
        ("linuxcnc/latencybins.txt", "latencybins"),
    ] {
        let file = peer(name);
        let file = file.to_str().expect("UTF-8");
        let out = run(["analyse", file, "--unit", "ns"]);
        refused(&out, &[file, "--unit", program, "does; leave it out"]);
    }
    let result = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/results/kinds/periodic.json");
    refused(&run(["analyse", result, "--unit", "ns"]), &[result, "--unit", "of punctual does"]);
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
        ("empty", b"", &["the file is empty"]),
        ("blank", b" \n\n", &["the file is empty"]),
        (
            "braces",
            b"{}\n",
            &["there is no file_version", "accepted is JSON of cyclictest", "-o DIR"],
        ),
        ("lines", b"a\nb\n", &["unrecognised file format"]),
        ("brace", b"{", &["line 1"]),
        ("result", b"{\"schema\":1,\"tool\":\"punctual\"}", &["schema 1", "punctual analyse"]),
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
fn a_packed_result_is_read_wherever_a_result_is() {
    let dir = Dir::new("import-packed-result");
    let plain = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results/kinds/check.json");
    let gz = dir.path("result.json.gz");
    fs::write(&gz, packed(&fs::read(&plain).expect("readable"))).expect("writable");
    let [plain, gz] = [&plain, &gz].map(|path| path.to_str().expect("UTF-8"));
    for command in [&["analyse", "-q"][..], &["impact", "audio", "--from"]] {
        let [whole, unpacked] = [plain, gz].map(|path| run(command.iter().chain([&path])));
        assert_eq!(unpacked.status.code(), whole.status.code(), "{}", stderr(&unpacked));
        assert_eq!(stdout(&unpacked), stdout(&whole).replace(plain, gz), "{command:?}");
    }
    let out = run(["compare", plain, gz, "--anyway"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    // Cut short it is refused with its name.
    let cut = dir.path("cut.json.gz");
    let bytes = fs::read(gz).expect("readable");
    fs::write(&cut, &bytes[..bytes.len() / 2]).expect("writable");
    let cut = cut.to_str().expect("UTF-8");
    refused(&run(["analyse", cut]), &[cut, "incomplete deflate stream"]);
    // Nor is there memory for what unpacks to much.
    let bomb = dir.path("bomb.json.gz");
    let head = br#"{"tool": "punctual", "schema": 2, "x": ""#;
    fs::write(&bomb, packed(&[&head[..], &[b'7'; 80 << 20]].concat())).expect("writable");
    let bomb = bomb.to_str().expect("UTF-8");
    refused(&run(["analyse", bomb]), &[bomb, "more than 64 MiB"]);
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
fn punctual_within(bytes: u64) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {}; exec \"$0\" \"$@\"", bytes >> 10);
    command.arg("-c").arg(script).arg(PROGRAM);
    command
}

#[test]
fn a_directory_and_a_pipe_are_refused_and_standard_input_is_read() {
    let dir = Dir::new("import-pipe");
    let pipe = dir.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let pipe = pipe.to_str().expect("UTF-8");
    refused(&run(["analyse", pipe]), &[pipe, "pipe", "'-'"]);
    refused(&run(["analyse", pipe, "--column", "lateness:us"]), &[pipe, "pipe"]);
    let own = dir.path("");
    refused(&run([Path::new("analyse"), &own]), &["directory"]);
    let bytes = fs::read(peer("oslat/whole.json")).expect("readable");
    let result = piped(&["analyse", "-", "--json", "-"], &packed(&bytes));
    assert_eq!(result["runs"][0]["imported"]["holds"], "stall");
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
    let (file, stated) = (dir.path("ct.json"), peer("cyclictest/histogram.json"));
    let text = fs::read_to_string(stated).expect("readable");
    // An interval that is no number: the program would not have run.
    fs::write(&file, text.replace("-i 1000", "-i x")).expect("writable");
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

#[test]
fn the_period_of_a_recording_of_cyclictest_is_that_of_its_command_line() {
    let dir = Dir::new("cyclictest-period");
    let (file, result) = (peer("cyclictest/histogram.json"), dir.path("result.json"));
    let analysed = |more: &[&str]| run([&["analyse", text(&file)], more].concat());
    let gated = analysed(&["--for", "1kHz", "--gate", "--json", text(&result)]);
    // 3: the share seen is not refuted by so few.
    assert!(matches!(gated.status.code(), Some(1 | 3)), "{}", stderr(&gated));
    let page = stdout(&gated);
    assert!(page.contains("1 kHz") && !page.contains("state their period"), "{page}");
    let kept: Value = serde_json::from_slice(&fs::read(&result).expect("written")).expect("JSON");
    assert_eq!(kept["runs"][1]["setup"]["period_ns"], 1_000_000);
    let impact = run(["impact", "servo", "--from", text(&result), "--crossover", "20Hz"]);
    assert!(matches!(impact.status.code(), Some(0 | 1 | 3)), "{}", stderr(&impact));
    // Another period is a way out, with a warning.
    let other = analysed(&["--period", "2ms", "-q"]);
    assert_eq!(other.status.code(), Some(0), "{}", stderr(&other));
    assert!(stderr(&other).contains("the file states 1 ms"), "{}", stderr(&other));
    let single = peer("cyclictest/verbose-ns.txt");
    let of_single = |more: &[&str]| {
        json(&run([&["analyse", text(&single), "--unit", "ns", "--json", "-"], more].concat()))
    };
    let (unknown, given) = (of_single(&[]), of_single(&["--period", "1ms"]));
    assert_eq!(unknown["runs"][0]["setup"]["period_ns"], Value::Null);
    assert!(unknown["warnings"].to_string().contains("--period TIME"), "{unknown}");
    assert_eq!(given["runs"][0]["setup"]["period_ns"], 1_000_000);
}

#[test]
fn a_question_that_data_without_a_period_do_not_answer_is_named() {
    let analysed = |name: &str, more: &[&str]| {
        let file = peer(name);
        run([&["analyse", text(&file), "--for", "linuxcnc"], more].concat())
    };
    let name = "cyclictest/verbose-ns.txt";
    let why = "--for has no answer here: these data do not state their period: --period TIME";
    let page = stdout(&analysed(name, &[]));
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(why), "{page}");
    let out = analysed(name, &["-q"]);
    assert!(stderr(&out).contains(why), "{}", stderr(&out));
    assert!(!stderr(&analysed(name, &["-q", "--deadline", "50us"])).contains("no answer"));
    let intervals = stderr(&analysed("linuxcnc/latency-histogram.txt", &["-q"]));
    assert!(intervals.contains("no answer here: these data hold no lateness"), "{intervals}");
    // It prints the largest, and of how many not.
    let line = stdout(&analysed("linuxcnc/latency-histogram.txt", &["-q"]));
    assert!(line.contains("base: an unknown number of intervals, typical -, worst "), "{line}");
    let page = stdout(&analysed("linuxcnc/latency-histogram.txt", &[]));
    let row = page.lines().find(|row| row.contains("base (intervals)")).expect("a row");
    assert!(row.ends_with("   -        -"), "{row}");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("software stepping no: intervals are off by up to 65.3 ms"), "{page}");
    assert!(page.contains(" in an unknown number of cycles; "), "{page}");
    // A small one is no yes: of how many it is the largest is not known.
    let dir = Dir::new("latency-histogram-small");
    let file = dir.path("latency.txt");
    let line = "    6 s   base min:  -1.900 us max:   2.400 us sdev:   0.900 us\n";
    fs::write(&file, line).expect("writable");
    let page = stdout(&run(["analyse", text(&file)]));
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("software stepping not shown yet: "), "{page}");
}

#[test]
fn instants_with_a_stall_that_is_caught_up_are_late_as_they_were() {
    let dir = Dir::new("instants-stall");
    let file = dir.path("file.csv");
    let judged = |wake: &dyn Fn(u64) -> u64| {
        let rows: String = (0..10_000).map(|k| format!("{}\n", wake(k))).collect();
        fs::write(&file, format!("instant\n{rows}")).expect("writable");
        let column = ["--column", "instant:ns", "--period", "1ms", "--deadline", "25us"];
        let analysed = |more: &[&str]| run([&["analyse", text(&file)], &column[..], more].concat());
        (json(&analysed(&["--json", "-"])), analysed(&["-q"]))
    };
    // 3 to 7 µs of jitter, and 20 ms of stall, of which a cycle makes up for so much.
    let stalled = |at: u64, caught_up_ns: u64| {
        move |k: u64| {
            let since = k.saturating_sub(at) * caught_up_ns;
            let delay = if k < at { 0 } else { 20_000_000u64.saturating_sub(since) };
            1_000_000_000 + k * 1_000_000 + 3_000 + k * 7_919 % 4_001 + delay
        }
    };
    for (at, caught_up_ns, late) in
        [(3_200, 900_000, 23), (6_800, 900_000, 23), (9_000, 100_000, 200)]
    {
        let (result, line) = judged(&stalled(at, caught_up_ns));
        let run = &result["runs"][0];
        let median = run["lateness_ns"]["p50"].as_f64().expect("a median");
        assert!((1_900.0..2_300.0).contains(&median), "{at}: {median}");
        let counted = format!("none of 10 000 releases missed, {late} over 25 µs late");
        let page = stdout(&line).replace('\u{a0}', " ");
        assert!(page.contains(&counted) && stderr(&line).is_empty(), "{page} {}", stderr(&line));
    }
    // What makes the line doubtful stands on standard error where the page is a line.
    let wrong_period = |k: u64| k * 250_000;
    let early_first = |k: u64| if k == 0 { 0 } else { 400_000 + k * 1_000_000 };
    let step = |k: u64| k * 1_000_000 + if k < 7_000 { 0 } else { 50_000 };
    let doubts: [(&dyn Fn(u64) -> u64, &str); 3] = [
        (&wrong_period, "the fitted period is 250 µs, but --period is 1 ms"),
        (&early_first, "half of all wakes are later than 400 µs after the earliest one"),
        (&step, "the earliest wakes lie on no straight line"),
    ];
    for (wake, doubt) in doubts {
        let (result, line) = judged(wake);
        let warnings = result["warnings"].to_string().replace('\u{a0}', " ");
        assert!(warnings.contains(doubt), "{doubt}: {warnings}");
        let named = stderr(&line).replace('\u{a0}', " ");
        assert!(named.contains(doubt), "{doubt}: {named}");
    }
}

#[test]
fn instants_that_do_not_advance_are_refused() {
    let dir = Dir::new("instants-still");
    let file = dir.path("file.csv");
    fs::write(&file, format!("instant\n{}", "2147483647\n".repeat(3_000))).expect("writable");
    let column = ["--column", "instant:ns", "--period", "1ms"];
    let words = [
        "the instants do not advance: the period fitted to 3 000 of them is 0 ns, and --period is",
        "name the column that has them, and its unit, e.g. --column NAME:us",
    ];
    refused(&run([&["analyse", text(&file)], &column[..]].concat()), &words);
}

#[test]
fn a_late_wake_before_a_missed_release_makes_no_other_late() {
    let dir = Dir::new("instants-early");
    let file = dir.path("file.csv");
    // 18 to 22 µs late but for one in a hundred, which is 650 µs late; the next one is so late that
    // a release passes.
    let late_ns = |k: u64| match k % 100 {
        50 => 650_000,
        51 => 1_200_000,
        _ => 18_000 + k * 7_919 % 4_001,
    };
    let wakes = (0..10_000).filter(|k| k % 100 != 52).map(|k| k * 1_000_000 + late_ns(k));
    let rows: String = wakes.map(|wake| format!("{wake}\n")).collect();
    fs::write(&file, format!("instant\n{rows}")).expect("writable");
    let column = ["--column", "instant:ns", "--period", "1ms", "--json", "-"];
    let result = json(&run([&["analyse", text(&file)], &column[..]].concat()));
    let run = &result["runs"][0];
    let figure = |key: &str| run["lateness_ns"][key].as_f64().expect("a figure");
    assert!(figure("p50") < 2_300.0 && figure("min") >= 0.0, "{}", run["lateness_ns"]);
    assert_eq!(run["missed"], 100);
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("how late that wake was is unknown"), "{warnings}");
    assert!(!warnings.contains("half of all wakes"), "{warnings}");
}

#[test]
fn a_count_within_a_bucket_of_a_stored_result_is_told_by_both_its_bounds() {
    let dir = Dir::new("analyse-bounds");
    // One release a nanosecond: 900 of the 3000 are later than 102.1 µs.
    let result = recorded_result(&dir, |cycle| 100_000 + cycle);
    let page_of = |file: &str| {
        let out = run(["analyse", file, "--deadline", "102100ns", "-v"]);
        let page = stdout(&out).replace('\u{a0}', " ");
        page.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // Samples are counted one by one.
    let samples = dir.path("samples.punctual");
    let page = page_of(text(&samples));
    assert!(page.contains("none of 3 000 releases missed, 899 over 102"), "{page}");
    fs::remove_file(&samples).expect("written");
    let page = page_of(text(&result));
    let bounds = |before: &str, behind: &str| -> (u64, u64) {
        let counts = page.split(before).nth(1).and_then(|rest| rest.split(behind).next());
        let counts = counts.unwrap_or_else(|| panic!("{before:?} {behind:?} in {page}"));
        let (least, most) = counts.split_once(" to ").unwrap_or_else(|| panic!("{counts:?}"));
        let number = |text: &str| text.replace(' ', "").parse().expect("a count");
        (number(least), number(most))
    };
    let (least, most) = bounds("none of 3 000 releases missed, ", " over 102");
    assert!(least <= 899 && 899 <= most && least < most, "{least} to {most}");
    let counted = format!("{least} to {most} of 3 000 releases were later than 102");
    assert!(page.contains(&counted), "{counted:?} in {page}");
}

#[test]
fn a_part_of_a_result_is_refused_with_what_is_accepted() {
    let dir = Dir::new("analyse-part");
    let file = dir.path("part.json");
    fs::write(&file, "{\"schema\":2}\n").expect("writable");
    let words =
        ["no whole result of punctual", "again with --json", "key \"schema\" stands at line 1"];
    refused(&run(["analyse", text(&file)]), &words);
}

#[test]
fn a_page_of_an_analysis_says_which_command_draws_what_it_lacks() {
    let dir = Dir::new("analyse-page");
    let (csv, result, page) = (dir.path("loop.csv"), dir.path("r.json"), dir.path("r.html"));
    let page_of = |analysed: &[&str]| {
        let out = run([&["analyse", "--json", text(&result)], analysed].concat());
        assert!(result.is_file(), "{}", stderr(&out));
        let out = run(["report", text(&result), "-o", text(&page)]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        fs::read_to_string(&page).expect("written")
    };
    fs::write(&csv, "lateness\n".to_owned() + &"5000\n".repeat(2_000)).expect("writable");
    let of_csv = page_of(&[text(&csv), "--column", "lateness:ns", "--period", "1ms"]);
    assert!(of_csv.contains("no sample file of punctual no command draws them"), "{of_csv}");
    recorded_result(&dir, |cycle| 100_000 + cycle);
    let samples = dir.path("samples.punctual");
    let elsewhere = dir.path("loops.punctual");
    fs::rename(&samples, &elsewhere).expect("ours");
    let of_samples = page_of(&[text(&elsewhere)]);
    let draws = "punctual report FILE.punctual";
    assert!(of_samples.contains(draws), "{of_samples}");
    let out = run(["report", text(&elsewhere), "-o", text(&page)]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(fs::read_to_string(&page).expect("written").contains("plot-heat"));
}

#[test]
fn data_without_lateness_pass_no_gate_whatever_their_period_is() {
    let stalls = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/peers/oslat/whole.json");
    let gate = ["analyse", stalls, "--for", "1kHz", "--gate"];
    refused(&run(gate), &["hold no lateness", "--limit"]);
    refused(&run(gate.into_iter().chain(["--period", "1ms"])), &["hold no lateness"]);
    let out = run(["analyse", stalls, "--for", "1kHz", "--period", "1ms", "-q"]);
    assert!(stderr(&out).contains("--for has no answer here"), "{}", stderr(&out));
}

#[test]
fn samples_beside_their_result_keep_its_reasons() {
    let dir = Dir::new("reasons");
    let results = dir.path("results");
    let out = run(["check", "--duration", "3s", "--results", text(&results), "--json", "-"]);
    let mut result = json(&out);
    let folder = results.join("latest");
    let others = json!({ "share": 0.5, "threads": [{ "name": "zz_other", "share": 0.5 }] });
    (result["runs"][0]["others"], result["runs"][0]["load_deaths"]) = (others.clone(), 3.into());
    result["runs"][0]["worst"][0]["cause"] = "zz_cause".into();
    result["blame"] = json!({
        "is_recorded": true, "why_not": null, "is_asked": true, "place": "within", "price": null,
        "evidence": null
    });
    fs::write(folder.join("result.json"), result.to_string()).expect("writable");
    let analysed = || json(&run(["analyse", text(&folder), "--json", "-"]));
    let kept = analysed();
    assert_eq!(kept["runs"][0]["others"]["threads"][0]["name"], "zz_other");
    assert_eq!(kept["runs"][0]["load_deaths"], 3);
    assert_eq!(kept["runs"][0]["worst"][0]["cause"], "zz_cause");
    assert_eq!(kept["blame"], result["blame"], "the figures contain its price");
    let page = String::from_utf8(run(["analyse", text(&folder)]).stdout).expect("text");
    assert!(page.contains("note: the kernel's events were recorded"), "{page}");
    assert_eq!(kept["runs"][0]["cycles"], result["runs"][0]["cycles"]);
    // The directory and the result in it are one.
    let named = json(&run(["analyse", text(&folder.join("result.json")), "--json", "-"]));
    assert_eq!(named["runs"], kept["runs"]);
    assert!(!named["warnings"].to_string().contains("order of cycles"), "{named}");
    // Samples of another measurement have nothing to say of this result.
    result["started_at"] = "2020-01-01T00:00:00Z".into();
    fs::write(folder.join("result.json"), result.to_string()).expect("writable");
    let alone = analysed();
    let warnings = alone["warnings"].to_string();
    assert!(warnings.contains("has the samples of another measurement"), "{warnings}");
    assert!(warnings.contains("without the order of cycles"), "{warnings}");
    assert_eq!(alone["runs"][0]["others"], kept["runs"][0]["others"]);
    // What is no result leaves the samples.
    fs::write(folder.join("result.json"), "{").expect("writable");
    let samples = analysed();
    assert!(samples["warnings"].to_string().contains("the result beside these samples"));
    assert_eq!(samples["runs"][0]["others"], Value::Null);
}
