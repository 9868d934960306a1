//! `cargo xtask test [--install]`: everything that must hold, in one command.
//!
//! Runs each step even when an earlier one failed, then prints a table of steps, the tests that
//! were skipped with what they lacked, and as its last line `N passed, N failed, N skipped`.
//! Without `--install` it installs nothing. With `CI=true` in the environment a skip is a failure.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::{
    attack, bare, fuzz, generated, licences, msrv, package, packages, process, readme, tidy,
    versus, vm, workspace,
};

/// A step that counts no tests.
type Step = fn(&Path) -> Result<(), String>;

/// Steps before the tests: the quick ones first, then the one that the tests' build follows.
const BEFORE: &[(&str, Step)] = &[
    ("format", format),
    ("tidy", |_| tidy::run(&[])),
    ("licences", |_| licences::run(&[])),
    ("msrv", |_| msrv::run(&[])),
    ("clippy", clippy),
];

/// Steps after the tests, which use what they built.
const AFTER: &[(&str, Step)] = &[
    ("attack", attack::check),
    ("schema", |_| generated::schema(&[])),
    ("man", |_| generated::man(&[])),
    ("doc", doc),
    ("package", |_| package::run(&[])),
    ("readme", readme::check),
    ("peers", versus::check_peers),
    ("fuzz", fuzz::check),
    ("stimulator", stimulator),
    ("bare", bare::check),
    ("vm", |_| vm::run(&[])),
];

/// The arguments, for `--help`.
pub(crate) const DETAILS: &str = "Arguments:
  --install      first install what tests need: Debian packages and a Rust target, for which it
                 must be root, and Python packages into target/python

Without --install nothing is installed: a test or step whose part is missing is skipped, counted
and named, and with CI=true in the environment fails. RUST_TEST_THREADS says how many tests run
at once (three for each CPU). One crate alone: cargo test -p CRATE
";

/// Runs all steps.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let install = match args {
        [] => false,
        [flag] if flag == "--install" => true,
        _ => {
            return Err(format!(
                "test takes [--install], got {args:?}: `cargo xtask test --help` says more"
            ));
        }
    };
    let root = workspace::root();
    let ci = process::in_ci();
    let mut report = Report::default();
    if install {
        step(&mut report, "packages", packages::install);
        step(&mut report, "bare targets", bare::install);
        step(&mut report, "python", || packages::install_python(&root));
    }
    for (name, run) in BEFORE {
        step(&mut report, name, || run(&root));
    }
    step_of_tests(&mut report, &root, ci);
    for (name, run) in AFTER {
        match (!ci).then(|| lacking(name, &root)).flatten() {
            Some(lack) => report.skip(name, lack),
            None => step(&mut report, name, || run(&root)),
        }
    }
    print!("\n{report}");
    match report.failed() {
        0 => Ok(()),
        count => Err(format!("{count} steps failed")),
    }
}

/// The requirement of a step that this machine lacks; `None` when nothing.
fn lacking(name: &str, root: &Path) -> Option<&'static str> {
    match name {
        "peers" => workspace::lacking(root, versus::MANIFEST),
        "fuzz" => workspace::lacking(root, fuzz::MANIFEST),
        "vm" => vm::lacking(),
        "bare" => bare::lacking(),
        _ => None,
    }
}

/// Runs one step and keeps how it went.
fn step(report: &mut Report, name: &'static str, run: impl FnOnce() -> Result<(), String>) {
    println!("\n==> {name}");
    let start = Instant::now();
    let outcome = run();
    if let Err(error) = &outcome {
        println!("{name}: {error}");
    }
    report.add(name, outcome, start.elapsed());
}

/// The step that counts.
fn step_of_tests(report: &mut Report, root: &Path, ci: bool) {
    let mut ran = None;
    step(report, "tests", || {
        let outcome = ran.insert(run_suite(root)?);
        judge(outcome, ci)
    });
    if let Some(Outcome { counts, skips, failures, .. }) = ran {
        report.count(counts, skips, failures);
    }
}

fn format(root: &Path) -> Result<(), String> {
    process::run(&mut process::cargo(root, &["fmt", "--all", "--check"]))?;
    for manifest in [fuzz::MANIFEST, versus::MANIFEST, STIMULATOR] {
        let args = ["fmt", "--all", "--manifest-path", manifest, "--check"];
        process::run(&mut process::cargo(root, &args))?;
    }
    Ok(())
}

/// The workspace of a board's firmware.
const STIMULATOR: &str = "stimulator/Cargo.toml";

/// Tests what the firmware of a board decides, on this machine.
fn stimulator(root: &Path) -> Result<(), String> {
    process::run(&mut process::cargo(root, &["test", "--locked", "--manifest-path", STIMULATOR]))
}

fn clippy(root: &Path) -> Result<(), String> {
    let args = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    process::run(&mut process::cargo(root, &args))
}

fn doc(root: &Path) -> Result<(), String> {
    let mut cargo = process::cargo(root, &["doc", "--workspace", "--no-deps", "--locked"]);
    process::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Tests by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Ran and held.
    pub passed: usize,
    /// Ran and did not hold.
    pub failed: usize,
    /// Did not run.
    pub skipped: usize,
}

/// A test that did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skip {
    /// The test.
    pub test: String,
    /// The requirement it lacked, in words.
    pub lacks: String,
    /// True where all of that is devices, which no installation brings.
    device: bool,
}

/// The result of a step.
struct StepResult {
    name: &'static str,
    outcome: Result<(), String>,
    took: Duration,
}

/// The results of all steps.
#[derive(Default)]
struct Report {
    steps: Vec<StepResult>,
    counts: Counts,
    skips: Vec<Skip>,
    failures: Vec<String>,
}

impl Report {
    /// Adds a step.
    fn add(&mut self, name: &'static str, outcome: Result<(), String>, took: Duration) {
        self.steps.push(StepResult { name, outcome, took });
    }

    /// Sets what the tests counted, and what the failed ones printed.
    fn count(&mut self, counts: Counts, skips: Vec<Skip>, failures: Vec<String>) {
        (self.counts, self.skips, self.failures) = (counts, skips, failures);
    }

    /// Adds a step that did not run, for want of `what`.
    fn skip(&mut self, step: &str, lacks: &str) {
        self.counts.skipped += 1;
        let (test, lacks) = (format!("the step {step}"), lacks.to_owned());
        self.skips.push(Skip { test, lacks, device: false });
    }

    /// Steps that failed.
    fn failed(&self) -> usize {
        self.steps.iter().filter(|step| step.outcome.is_err()).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for StepResult { name, outcome, took } in &self.steps {
            let (word, why) = match outcome {
                Ok(()) => ("pass", ""),
                Err(why) => ("FAIL", why.as_str()),
            };
            let line = format!("{word}  {name:10} {:>6.1} s  {why}", took.as_secs_f64());
            writeln!(f, "{}", line.trim_end())?;
        }
        for Skip { test, lacks, .. } in &self.skips {
            writeln!(f, "SKIPPED {test}: {lacks}")?;
        }
        // Near the end, which is what is kept of a long log.
        for line in &self.failures {
            writeln!(f, "{line}")?;
        }
        for line in reasons(&self.failures) {
            writeln!(f, "FAILED {line}")?;
        }
        let Counts { passed, failed, skipped } = self.counts;
        writeln!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// Characters of a failure's own words that are repeated at the end.
const REASON: usize = 200;

/// Where each test panicked, and the first of what it said.
fn reasons(failures: &[String]) -> Vec<String> {
    let panics = failures
        .windows(2)
        .filter(|lines| lines[0].contains("' panicked at ") || lines[0].contains(") panicked at "));
    let reason = |lines: &[String]| {
        let message: String = lines[1].chars().take(REASON).collect();
        format!("{} {message}", lines[0])
    };
    panics.map(reason).collect()
}

/// The result of the tests.
pub(crate) struct Outcome {
    /// The result of the runner.
    ended: Result<(), String>,
    /// Tests of each kind.
    pub counts: Counts,
    /// Tests that did not run.
    pub skips: Vec<Skip>,
    /// The lines that the failed ones printed, with their names: a log of which only the end is
    /// kept has it there again.
    pub failures: Vec<String>,
}

impl Default for Outcome {
    fn default() -> Self {
        let (skips, failures) = (Vec::new(), Vec::new());
        Self { ended: Ok(()), counts: Counts::default(), skips, failures }
    }
}

impl Outcome {
    /// Adds the outcome of further tests.
    fn add(&mut self, further: Self) {
        let Self { ended, counts, skips, failures } = further;
        self.ended = self.ended.clone().and(ended);
        self.counts.passed += counts.passed;
        self.counts.failed += counts.failed;
        self.counts.skipped += counts.skipped;
        self.skips.extend(skips);
        self.failures.extend(failures);
    }

    /// Adds the skips that tests wrote to the file `log`, which is removed.
    fn add_log(&mut self, log: &Path) {
        let logged = read_log(&std::fs::read_to_string(log).unwrap_or_default());
        // Left over in the temporary folder at worst.
        let _ = std::fs::remove_file(log);
        // The runner counts a test that gave up early as passed.
        self.counts.passed = self.counts.passed.saturating_sub(logged.len());
        self.counts.skipped += logged.len();
        self.skips.extend(logged);
    }
}

/// Lines of failures that are kept, of each test program.
const KEPT: usize = 100;

/// Calls of `cargo test`, one after the other.
struct Lane {
    /// The file below `target` that gets all that they print.
    transcript: &'static str,
    /// The arguments by which each call selects tests.
    calls: &'static [&'static [&'static str]],
}

/// They run beside each other, about as long as each other: most tests wait for a clock and not
/// for a CPU.
const LANES: [Lane; 2] = [
    Lane { transcript: "tests-it.log", calls: &[&["--test", "it"], &["--doc"]] },
    // Only `it` and `isolate` begin with an i.
    Lane { transcript: "tests.log", calls: &[&["--lib", "--bins", "--test", "[!i]*"]] },
];

/// It takes a CPU from all others, so they have ended before.
const ALONE: Lane = Lane { transcript: "tests-isolate.log", calls: &[&["--test", "isolate"]] };

/// Tests of a program that run at once, for each CPU, unless `RUST_TEST_THREADS` says.
const TESTS_PER_CPU: usize = 3;

/// Runs all tests; fails only when they could not be run.
///
/// Reads the closing lines of the test programs from what they print, which goes to a file of each
/// lane; the screen shows a line or two a program. Skips come through the file that
/// `PUNCTUAL_SKIP_LOG` names, to which `punctual_testkit::skip` adds a line each: the test runner
/// itself knows no skipping and hides what a passing test prints.
fn run_suite(root: &Path) -> Result<Outcome, String> {
    let args = ["test", "--workspace", "--locked"];
    // On its own, so that what does not build is shown as cargo shows it.
    process::run(process::cargo(root, &args).arg("--no-run"))?;
    let log = std::env::temp_dir().join(format!("punctual-skips-{}", std::process::id()));
    std::fs::write(&log, "").map_err(|error| format!("{}: {error}", log.display()))?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let run_lane = |lane: &Lane| {
        let transcript = Transcript::create(&root.join("target").join(lane.transcript))?;
        let mut outcome = Outcome::default();
        for call in lane.calls {
            let mut cargo = process::cargo(root, &args);
            cargo.args(*call).arg("--no-fail-fast").env("PUNCTUAL_SKIP_LOG", &log);
            if std::env::var_os("RUST_TEST_THREADS").is_none() {
                cargo.env("RUST_TEST_THREADS", (TESTS_PER_CPU * cpus).to_string());
            }
            cargo.stdout(Stdio::piped()).stderr(Stdio::piped());
            let child = cargo.spawn().map_err(|error| format!("cargo test: {error}"))?;
            outcome.add(read_run(child, &transcript)?);
        }
        println!("all that the tests printed: {}", transcript.path().display());
        Ok::<_, String>(outcome)
    };
    let mut outcome = Outcome::default();
    std::thread::scope(|scope| {
        for lane in LANES.each_ref().map(|lane| scope.spawn(move || run_lane(lane))) {
            outcome.add(lane.join().map_err(|_| "cargo test: a lane panicked")??);
        }
        Ok::<_, String>(())
    })?;
    outcome.add(run_lane(&ALONE)?);
    outcome.add_log(&log);
    Ok(outcome)
}

/// Counts what a `cargo test` prints to its piped standard output, and its skips in `log`. All
/// that it prints through pipes goes to the file `whole`.
pub(crate) fn count(child: Child, log: &Path, whole: &Path) -> Result<Outcome, String> {
    let transcript = Transcript::create(whole)?;
    let mut outcome = read_run(child, &transcript)?;
    println!("all that the tests printed: {}", transcript.path().display());
    outcome.add_log(log);
    Ok(outcome)
}

/// Counts what one call of `cargo test` prints.
fn read_run(mut child: Child, transcript: &Transcript) -> Result<Outcome, String> {
    let mut counts = Counts::default();
    let (mut skips, mut failures) = (Vec::new(), Failures::default());
    let errors = child.stderr.take();
    let output = child.stdout.take().ok_or("cargo test: no output")?;
    std::thread::scope(|scope| {
        let errors = errors.map(|errors| scope.spawn(|| transcript.read(errors, |_| ())));
        transcript.read(output, |line| {
            read_line(line, &mut counts, &mut skips);
            failures.read_line(line);
        })?;
        let read = errors.map(|reader| reader.join());
        read.unwrap_or(Ok(Ok(()))).map_err(|_| "cargo test: a reader panicked")?
    })?;
    let status = child.wait().map_err(|error| format!("cargo test: {error}"))?;
    let ended = if status.success() { Ok(()) } else { Err(format!("cargo test: {status}")) };
    Ok(Outcome { ended, counts, skips, failures: failures.kept })
}

/// Checks that what was counted is good enough: with `ci` nothing may be skipped but for want of a
/// device.
pub(crate) fn judge(outcome: &Outcome, ci: bool) -> Result<(), String> {
    let Outcome { ended, counts, skips, .. } = outcome;
    if counts.failed > 0 {
        return Err(format!("{} tests failed", counts.failed));
    }
    ended.clone()?;
    if counts.passed == 0 {
        return Err("no test was run".to_owned());
    }
    let devices = skips.iter().filter(|skip| skip.device).count();
    let skipped = counts.skipped.saturating_sub(devices);
    if ci && skipped > 0 {
        return Err(format!("{skipped} tests skipped, and CI=true"));
    }
    Ok(())
}

/// The lines between `failures:` and the result of a test program.
#[derive(Default)]
struct Failures {
    kept: Vec<String>,
    /// Lines of this program that are kept; none outside of its failures.
    lines: Option<usize>,
    /// In a backtrace, which says less than the words before it and is longer.
    is_trace: bool,
}

impl Failures {
    fn read_line(&mut self, line: &str) {
        if line == "failures:" {
            self.lines = self.lines.or(Some(0));
        } else if line.starts_with("test result: ") {
            self.lines = None;
        } else if line == "stack backtrace:" {
            self.is_trace = true;
        } else if self.is_trace && !line.is_empty() {
            self.is_trace = !line.starts_with("note: ");
        } else if let Some(lines) = &mut self.lines
            && !line.is_empty()
        {
            *lines += 1;
            match *lines {
                ..=KEPT => self.kept.push(line.to_owned()),
                _ if line.starts_with("    ") || line.starts_with("---- ") => {
                    self.kept.push(line.to_owned());
                }
                _ => {}
            }
        }
    }
}

/// Adds what one line of the runner's output says: `test result: ok. 3 passed; 0 failed; …`, or
/// `test NAME ... ignored, WHY`.
fn read_line(line: &str, counts: &mut Counts, skips: &mut Vec<Skip>) {
    if let Some(result) = line.strip_prefix("test result: ") {
        let numbers = result.split_once(". ").map_or(result, |(_, numbers)| numbers);
        for part in numbers.split("; ") {
            match part.split_once(' ').map(|(count, kind)| (count.parse::<usize>(), kind)) {
                Some((Ok(count), "passed")) => counts.passed += count,
                Some((Ok(count), "failed")) => counts.failed += count,
                Some((Ok(count), "ignored")) => counts.skipped += count,
                _ => {}
            }
        }
    } else if let Some((name, why)) =
        line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ignored"))
    {
        let lacks = format!("marked as ignored{why}");
        skips.push(Skip { test: name.to_owned(), lacks, device: false });
    }
}

/// The lines `TEST<tab>WHAT` of the log, for a device with `<tab>device` after it: one skip a test
/// however many things it lacked.
pub(crate) fn read_log(log: &str) -> Vec<Skip> {
    let mut tests: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (test, lack) in log.lines().filter_map(|line| line.split_once('\t')) {
        let lacks = tests.entry(test).or_default();
        if !lacks.contains(&lack) {
            lacks.push(lack);
        }
    }
    let skip = |(test, lacks): (&str, Vec<&str>)| {
        let device = lacks.iter().all(|lack| lack.ends_with("\tdevice"));
        let lacks = lacks.join(", ").replace("\tdevice", "");
        Skip { test: test.to_owned(), lacks, device }
    };
    tests.into_iter().map(skip).collect()
}

/// Lines before the end of a test program that did not end by itself.
const LAST: usize = 60;

/// The output of all test programs.
struct Transcript {
    path: PathBuf,
    kept: Mutex<Kept>,
}

struct Kept {
    file: File,
    last: VecDeque<String>,
}

impl Transcript {
    /// Writes to the new file `path`.
    fn create(path: &Path) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let kept = Mutex::new(Kept { file, last: VecDeque::new() });
        Ok(Self { path: path.to_owned(), kept })
    }

    /// Where all of it is.
    fn path(&self) -> &Path {
        &self.path
    }

    /// Reads `output` to its end and gives each line to `each`.
    fn read(&self, output: impl Read, mut each: impl FnMut(&str)) -> Result<(), String> {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.map_err(|error| format!("cargo test: {error}"))?;
            let line = String::from_utf8_lossy(&line);
            let mut kept = self.kept.lock().map_err(|_| "cargo test: a reader panicked")?;
            // A full disk must not stop the counting: who writes would wait for a reader.
            let _ = writeln!(kept.file, "{line}");
            if kept.last.len() == LAST {
                kept.last.pop_front();
            }
            kept.last.push_back(line.clone().into_owned());
            if is_shown(&line) {
                println!("{line}");
            }
            if was_killed(&line) {
                println!("the last {} lines before:", kept.last.len());
                kept.last.drain(..).for_each(|line| println!("| {line}"));
            }
            drop(kept);
            each(&line);
        }
        Ok(())
    }
}

/// Returns true where a line stands on the screen too: which program runs, and how it ended.
fn is_shown(line: &str) -> bool {
    let starts = ["     Running ", "   Doc-tests ", "test result: ", "error: "];
    starts.iter().any(|start| line.starts_with(start)) || line.ends_with(" ... FAILED")
}

/// Returns true where cargo says that a test program was ended by a signal: its failures were never
/// printed.
fn was_killed(line: &str) -> bool {
    line.contains("process didn't exit successfully") && line.contains("(signal: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_stands_alone_on_the_last_line() {
        let mut report = Report::default();
        report.add("tidy", Ok(()), Duration::from_secs(1));
        report.add("clippy", Err("exit status: 101".to_owned()), Duration::from_secs(2));
        let skip = Skip { test: "a::b".to_owned(), lacks: "root".to_owned(), device: false };
        report.count(
            Counts { passed: 7, failed: 0, skipped: 1 },
            vec![skip],
            vec!["    c::d".to_owned()],
        );
        let shown = report.to_string();
        assert!(
            shown.ends_with("\nSKIPPED a::b: root\n    c::d\n7 passed, 0 failed, 1 skipped\n"),
            "{shown}"
        );
        assert!(shown.contains("FAIL  clippy") && shown.contains("pass  tidy"), "{shown}");
        assert_eq!(report.failed(), 1);
    }

    fn counted(lines: &[&str]) -> (Counts, Vec<Skip>) {
        let (mut counts, mut skips) = (Counts::default(), Vec::new());
        for line in lines {
            read_line(line, &mut counts, &mut skips);
        }
        (counts, skips)
    }

    #[test]
    fn closing_lines_are_summed() {
        let (counts, _) = counted(&[
            "running 4 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished",
            "test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 9 filtered out; …",
        ]);
        assert_eq!(counts, Counts { passed: 8, failed: 2, skipped: 1 });
    }

    #[test]
    fn outcomes_of_lanes_are_summed_and_one_that_failed_stays() {
        let ran = |ended, passed, failed: usize| Outcome {
            ended,
            counts: Counts { passed, failed, skipped: 0 },
            skips: Vec::new(),
            failures: vec!["f".to_owned(); failed],
        };
        let mut sum = ran(Err("first".to_owned()), 3, 1);
        sum.add(ran(Ok(()), 4, 2));
        assert_eq!(sum.counts, Counts { passed: 7, failed: 3, skipped: 0 });
        assert_eq!((sum.ended.clone(), sum.failures.len()), (Err("first".to_owned()), 3));
        let log = std::env::temp_dir().join(format!("punctual-log-{}", std::process::id()));
        std::fs::write(&log, "x\troot\n").unwrap();
        sum.add_log(&log);
        assert_eq!(sum.counts, Counts { passed: 6, failed: 3, skipped: 1 });
        assert!(!log.exists());
    }

    #[test]
    fn every_test_program_is_in_one_lane() {
        let mut with_i = Vec::new();
        for crate_folder in std::fs::read_dir(workspace::root()).unwrap() {
            let tests = crate_folder.unwrap().path().join("tests");
            for test in std::fs::read_dir(tests).into_iter().flatten() {
                let path = test.unwrap().path();
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                if name.starts_with('i') && !with_i.contains(&name) {
                    with_i.push(name);
                }
            }
        }
        with_i.sort();
        assert_eq!(with_i, ["isolate", "it"], "others that begin with an i would not run");
    }

    #[test]
    fn failures_are_kept_and_nothing_else_is() {
        let mut failures = Failures::default();
        for line in [
            "test a ... FAILED",
            "failures:",
            "",
            "---- a stdout ----",
            "thread 'a' panicked at a.rs:1:2:",
            "stack backtrace:",
            "   0: a",
            "note: more",
            "failures:",
            "    a",
            "test result: FAILED. 0 passed; 1 failed",
            "running 3 tests",
        ] {
            failures.read_line(line);
        }
        let kept = ["---- a stdout ----", "thread 'a' panicked at a.rs:1:2:", "    a"];
        assert_eq!(failures.kept, kept);
    }

    #[test]
    fn where_each_test_failed_stands_at_the_end() {
        let long = "x".repeat(300);
        let kept = ["---- a stdout ----", "thread 'a' (7) panicked at a.rs:1:2:", &long, "    a"];
        let shown = reasons(&kept.map(str::to_owned));
        assert_eq!(shown, [format!("{} {}", kept[1], &long[..REASON])]);
    }

    #[test]
    fn an_ignored_test_is_named() {
        let (_, skips) = counted(&["test a::b ... ignored, needs time", "test c ... ok"]);
        assert_eq!(skips.len(), 1);
        assert_eq!(
            (skips[0].test.as_str(), skips[0].lacks.as_str()),
            ("a::b", "marked as ignored, needs time")
        );
    }

    #[test]
    fn a_test_is_skipped_once() {
        let skips =
            read_log("x (a.rs)\troot\nx (a.rs)\tip\nx (a.rs)\troot\ny (a.rs)\tip\nbroken\n");
        assert_eq!(skips.len(), 2);
        assert_eq!(skips[0].lacks, "root, ip");
        let skips = read_log("x\ta clock\tdevice\ny\tip\ny\ta clock\tdevice\n");
        let shown = |skip: &Skip| (skip.lacks.clone(), skip.device);
        assert_eq!(shown(&skips[0]), ("a clock".to_owned(), true));
        assert_eq!(shown(&skips[1]), ("ip, a clock".to_owned(), false));
    }

    #[test]
    fn what_is_good_enough() {
        let counts = |passed, failed, skipped| Counts { passed, failed, skipped };
        let judge_of = |ended, counts, skips: &[Skip], ci| {
            let skips = skips.to_vec();
            judge(&Outcome { ended, counts, skips, failures: Vec::new() }, ci)
        };
        let judge = |ended, counts, ci| judge_of(ended, counts, &[], ci);
        assert!(judge(Ok(()), counts(3, 0, 1), false).is_ok());
        assert!(judge(Ok(()), counts(3, 0, 1), true).is_err(), "a skip in CI");
        assert!(judge(Ok(()), counts(3, 1, 0), false).is_err());
        assert!(judge(Ok(()), counts(0, 0, 0), false).is_err(), "nothing ran");
        assert!(judge(Err("did not build".to_owned()), counts(3, 0, 0), false).is_err());
        let device = read_log("x\ta clock\tdevice\n");
        assert!(judge_of(Ok(()), counts(3, 0, 1), &device, true).is_ok());
        assert!(judge_of(Ok(()), counts(3, 0, 2), &device, true).is_err(), "one too many");
    }

    #[test]
    fn all_is_in_the_file_and_each_line_is_read() {
        let path = std::env::temp_dir().join(format!("punctual-transcript-{}", std::process::id()));
        let transcript = Transcript::create(&path).unwrap();
        let mut lines = Vec::new();
        transcript
            .read(&b"test a ... ok\n\xff\nlast"[..], |line| lines.push(line.to_owned()))
            .unwrap();
        assert_eq!(lines, ["test a ... ok", "\u{fffd}", "last"]);
        let whole = std::fs::read_to_string(transcript.path()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(whole, "test a ... ok\n\u{fffd}\nlast\n");
    }

    #[test]
    fn passing_tests_are_not_shown() {
        assert!(!is_shown("test a ... ok"));
        assert!(!is_shown("thread 'a' (1) panicked at a.rs:1:2:"));
        for line in ["test a ... FAILED", "test result: ok. 1 passed", "     Running tests/a.rs"] {
            assert!(is_shown(line), "{line}");
        }
    }

    #[test]
    fn a_signal_is_told_from_a_failure() {
        assert!(was_killed("  process didn't exit successfully: `/a` (signal: 6, SIGABRT: …)"));
        assert!(!was_killed("  process didn't exit successfully: `/a` (exit status: 101)"));
    }
}
