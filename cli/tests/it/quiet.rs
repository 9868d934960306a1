//! `-q`: a line a loop with its worst, why it failed, and nothing else.

use std::fs;
use std::process::{Output, Stdio};

use punctual_core::sample::Sample;
use punctual_core::time::Span;
use punctual_os::process::EndSignal;

use crate::{Dir, catches_interrupt, punctual, recording_of, run, signal, stderr, stdout, until};

/// A recording of 2000 cycles, of which the last is 700 µs late and the others at most 70 µs.
fn recording(dir: &Dir) -> String {
    let sample = |cycle| Sample {
        cycle,
        lateness: Span::from_us(if cycle == 1_999 { 700 } else { 20 + cycle as i64 % 51 }),
        ..Sample::default()
    };
    let path = dir.path("samples.punctual");
    recording_of(&path, &["idle"], &[((0..2_000).map(sample).collect(), 0)]);
    path.to_str().expect("UTF-8").to_owned()
}

/// One line on standard output, and these on standard error.
fn lines(out: &Output, code: i32, line: &str, failures: &[&str]) {
    assert_eq!(out.status.code(), Some(code), "{}", stderr(out));
    let (page, named) = (stdout(out), stderr(out));
    assert_eq!(page.lines().count(), 1, "{page}");
    assert!(page.contains(line), "{line:?} in {page:?}");
    let named: Vec<&str> = named.lines().collect();
    assert_eq!(named.len(), failures.len(), "{named:?}");
    for (line, part) in named.iter().zip(failures) {
        assert!(line.contains(part), "{part:?} in {line:?}");
    }
}

#[test]
fn what_fails_is_named_beside_the_line() {
    let dir = Dir::new("quiet");
    let file = recording(&dir);
    let analyse = |more: &[&str]| run(["analyse", &file, "-q"].iter().chain(more));
    lines(&analyse(&[]), 0, "1 kHz on CPU 0: none of 2 000 releases missed, ", &[]);
    lines(&analyse(&[]), 0, "Worst 700 µs;", &[]);
    lines(&analyse(&["--limit", "max<1ms"]), 0, "Worst 700 µs;", &[]);
    let limits = ["--limit", "max<500us", "--limit", "p99<1us", "--limit", "missed<1"];
    let failed = ["FAILS idle: max<500us: max is 700 µs", "FAILS idle: p99<1us: "];
    lines(&analyse(&limits), 1, "Worst 700 µs;", &failed);
    let open = ["--claim", "p(lateness>800us)<1e-9"];
    lines(&analyse(&open), 3, "Worst 700 µs;", &["OPEN idle: p(lateness>800us)<1e-9: not shown"]);
    let no = ["--claim", "p(lateness>10us)<0.1"];
    lines(&analyse(&no), 1, "Worst 700 µs;", &["FALSE idle: p(lateness>10us)<1e-1: shown false"]);
    // A result on standard output leaves no other place for it either.
    let out = analyse(&["--limit", "max<500us", "--json", "-"]);
    assert!(stdout(&out).starts_with('{') && stderr(&out).contains("FAILS idle"), "{out:?}");
}

#[test]
fn a_locale_without_utf_8_has_ascii_alone_and_data_are_as_they_are() {
    let dir = Dir::new("quiet-ascii");
    let file = recording(&dir);
    let analyse = |locale: &str, more: &[&str]| {
        let mut command = punctual();
        command.env_remove("LC_CTYPE").env("LC_ALL", locale).args(["analyse", &file]).args(more);
        command.output().expect("it starts")
    };
    for more in [&["-v"][..], &[], &["-q"], &["--limit", "max<1us"]] {
        let page = analyse("C", more).stdout;
        assert!(page.is_ascii(), "{}", String::from_utf8_lossy(&page));
    }
    let page = stdout(&analyse("C", &["-q"]));
    assert!(page.contains("Worst 700 us") && !page.contains('?'), "{page}");
    assert!(stdout(&analyse("C.UTF-8", &["-q"])).contains("Worst 700 µs"));
    assert!(stdout(&analyse("de_DE.utf8", &["-q"])).contains("µs"));
    let json = |locale: &str| stdout(&analyse(locale, &["--json", "-"]));
    assert_eq!(json("C"), json("C.UTF-8"));
    assert!(stdout(&analyse("C", &["--markdown", "-"])).contains("µs"));
}

#[test]
fn data_without_a_deadline_have_a_figure_and_those_cut_off_say_so() {
    let dir = Dir::new("quiet-figure");
    let csv = dir.path("loop.csv");
    let rows: String = (0..5_000).map(|k| format!("{}\n", 5 + k % 13)).collect();
    fs::write(&csv, format!("lateness_us\n{rows}900\n")).expect("writable");
    let out = run(["analyse", csv.to_str().expect("UTF-8"), "--column", "lateness_us:us", "-q"]);
    lines(&out, 0, "Worst 900 µs.", &[]);

    let file = recording(&dir);
    let whole = fs::read(&file).expect("readable");
    fs::write(&file, &whole[..whole.len() - 100]).expect("writable");
    let out = run(["analyse", &file, "-q", "--limit", "max<1s"]);
    let open = ["OPEN the run ended early", "OPEN idle: max<1s: max is "];
    lines(&out, 3, " Incomplete: ", &open);
}

#[test]
fn a_measurement_that_is_ended_says_so_and_shows_no_progress() {
    let dir = Dir::new("quiet-ended");
    let samples = dir.path("samples.punctual");
    let mut command = punctual();
    command.args(["measure", "periodic", "-q", "-d", "600s", "--samples"]).arg(&samples);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("it starts");
    until("samples", || {
        let begun = fs::metadata(&samples).is_ok_and(|meta| meta.len() > 8_000);
        begun && catches_interrupt(&child)
    });
    signal(&child, EndSignal::Terminate);
    let out = child.wait_with_output().expect("it ends");
    lines(&out, 143, " Incomplete: ", &[]);
}
