//! What cannot be exported, hostile text, and outputs that are kept whole.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use super::made::{MISSED, N, exported, recorded, result, text};
use crate::support::{Dir, json_file, punctual, refused, run, stderr, stdout};

#[test]
fn what_is_no_result_is_refused_by_name() {
    let dir = Dir::new("export-bad");
    let path = |name: &str| text(&dir.path(name));
    refused(&run(["export", "--csv", &path("absent")]), &["cannot read", "absent"]);
    refused(&run(["export", "--csv", &text(&dir.0)]), &["neither result.json nor samples"]);
    fs::write(dir.path("text"), "hello").expect("writable");
    refused(&run(["export", "--csv", &path("text")]), &["text", "not a result"]);
    fs::write(dir.path("empty"), "").expect("writable");
    refused(&run(["export", "--hdr", &path("empty")]), &["empty", "not a result"]);
    fs::write(dir.path("newer.json"), r#"{"schema":3,"tool":"punctual"}"#).expect("writable");
    refused(&run(["export", "--openmetrics", &path("newer.json")]), &["schema 3"]);
    let made = Command::new("mkfifo").arg(dir.path("pipe")).status().expect("it starts");
    assert!(made.success());
    refused(&run(["export", "--csv", &path("pipe")]), &["pipe", "neither a regular file"]);
    refused(&run(["export", "--csv", "/dev/zero"]), &["/dev/zero"]);
    refused(&run(["export", &path("text")]), &["--csv"]);
    refused(&run(["export", "--csv", "--hdr", &path("text")]), &["--hdr"]);
    refused(&run(["export", "--hdr", "--histogram", &path("text")]), &["--histogram"]);
}

#[test]
fn a_result_without_samples_says_what_is_missing_and_gives_the_rest() {
    let dir = Dir::new("export-without");
    let path = text(&result(&dir, &["idle"]));
    fs::remove_file(dir.path("samples.punctual")).expect("it was there");
    for format in ["--parquet", "--csv"] {
        let out = run(["export", format, &text(&dir.0), "-o", &text(&dir.path("out"))]);
        refused(&out, &["no samples", "--histogram", "--hdr"]);
        assert!(!dir.path("out").exists(), "nothing half done");
    }
    for format in ["--hdr", "--openmetrics"] {
        assert!(!stdout(&run(["export", format, &path])).is_empty());
    }
    let mut damaged = json_file(dir.path("result.json").as_path());
    damaged["runs"][0]["histogram"]["buckets"] = serde_json::json!([[5, 9, 1], [1, 5, 1]]);
    fs::write(&path, damaged.to_string()).expect("writable");
    refused(&run(["export", "--hdr", &path]), &["corrupt", "idle", "out of order"]);
    damaged["runs"] = serde_json::json!([]);
    fs::write(&path, damaged.to_string()).expect("writable");
    refused(&run(["export", "--openmetrics", &path]), &["no run"]);
}

#[test]
fn samples_of_another_run_are_not_taken_for_those_of_a_result() {
    let dir = Dir::new("export-foreign");
    let path = result(&dir, &["idle"]);
    let mut other = json_file(&path);
    other["started_at"] = "2001-01-01T00:00:00Z".into();
    fs::write(&path, other.to_string()).expect("writable");
    let path = text(&path);
    for format in ["--csv", "--parquet"] {
        refused(&run(["export", format, &path]), &["another run", "samples.punctual"]);
    }
    // What the result itself holds is there.
    let out = stdout(&run(["export", "--csv", "--histogram", &path]));
    assert!(out.lines().count() > 1, "{out}");
}

#[test]
fn a_cut_or_damaged_file_is_exported_up_to_there_and_said() {
    let dir = Dir::new("export-cut");
    let file = recorded(&dir, &["idle", "cpu"]);
    let whole = fs::read(&file).expect("written");
    let rows = |out: &std::process::Output| stdout(out).lines().count() - 1;
    assert_eq!(rows(&run(["export", "--csv", &file])), 2 * (N + MISSED) as usize);
    // Behind the last samples stand 144 bytes: the final counters of both runs, and the end.
    let inside = whole.len() - 200;
    fs::write(&file, &whole[..inside]).expect("writable");
    for format in ["--csv", "--parquet", "--hdr", "--openmetrics"] {
        let out = run(["export", format, &file]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        assert!(stderr(&out).contains("cut off"), "{format}: {}", stderr(&out));
    }
    // Of the second run all but the last block, of which each has 1024 samples at most.
    let left = 2 * (N + MISSED) - N % 1024;
    assert_eq!(rows(&run(["export", "--csv", &file])), left as usize, "the second is cut");
    let mut damaged = whole;
    damaged[inside] ^= 1;
    fs::write(&file, &damaged).expect("writable");
    let out = run(["export", "--csv", &file]);
    assert!(stderr(&out).contains("damaged at byte"), "{}", stderr(&out));
    damaged[8] = 2;
    fs::write(&file, &damaged).expect("writable");
    refused(&run(["export", "--parquet", &file]), &[&file, "newer"]);
}

#[test]
fn hostile_names_stay_in_their_cells() {
    let dir = Dir::new("export-hostile");
    let names = ["=cmd|' /C calc'!A0", "a,\"b\"\n\u{1b}]0;x\u{7}", "<script>alert(1)</script>"];
    let csv = stdout(&run(["export", "--csv", &recorded(&dir, &names)]));
    assert_eq!(csv.lines().count(), 1 + 3 * (N + MISSED) as usize, "one line a release");
    assert!(!csv.contains('\u{1b}') && !csv.contains("\n="), "nothing raw, no formula");
    assert!(csv.contains("\n'=cmd|' /C calc'!A0,"));
    assert!(csv.contains("\n\"a,\"\"b\"\"\\n\\u{1b}]0;x\\u{7}\","));
    let long = "x".repeat(100_000);
    let csv = stdout(&run(["export", "--csv", &recorded(&dir, &[&long])]));
    assert!(csv.len() < 3_000_000, "{} bytes: a name is cut", csv.len());
}

#[test]
fn an_output_is_replaced_when_it_is_whole_and_the_input_never() {
    let dir = Dir::new("export-output");
    let file = recorded(&dir, &["idle"]);
    let names = || {
        let entries = fs::read_dir(&dir.0).expect("readable");
        entries.map(|entry| entry.expect("readable").file_name()).collect::<Vec<_>>()
    };
    refused(&run(["export", "--csv", &file, "-o", &file]), &["would overwrite an input"]);
    symlink(&file, dir.path("link")).expect("writable");
    refused(&run(["export", "--csv", &file, "-o", &text(&dir.path("link"))]), &["an input"]);
    assert_eq!(fs::read(&file).expect("there")[..8], *b"PUNCTUAL");
    let before = fs::read(exported(&dir, &["--csv", &file])).expect("written");
    // The disk is full in the middle of the work: what was there stays, and nothing else.
    let out = text(&dir.path("exported"));
    let mut full = Command::new("sh");
    full.args(["-c", "ulimit -f 8; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_punctual")]);
    let full = full.args(["export", "--csv", &file, "-o", &out]).output().expect("it starts");
    refused(&full, &["cannot write", &out]);
    assert_eq!(fs::read(&out).expect("kept"), before);
    let nowhere = text(&dir.path("no/such/dir"));
    refused(&run(["export", "--csv", &file, "-o", &nowhere]), &["cannot write", &nowhere]);
    refused(&run(["export", "--csv", &file, "-o", &text(&dir.0)]), &["directory"]);
    assert!(names().iter().all(|name| !name.to_string_lossy().ends_with(".new")), "{:?}", names());
    for format in ["--csv", "--parquet", "--hdr", "--openmetrics"] {
        let full = run(["export", format, &file, "-o", "/dev/full"]);
        refused(&full, &["/dev/full", "space"]);
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let dir = Dir::new("export-pipe");
    let file = recorded(&dir, &["idle", "cpu"]);
    for format in ["--csv", "--parquet"] {
        let mut child = punctual()
            .args(["export", format, &file])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        drop(child.stdout.take());
        let out = child.wait_with_output().expect("it ends");
        assert_eq!((out.status.code(), stderr(&out).as_str()), (Some(0), ""), "{format}");
    }
}
