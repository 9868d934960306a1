//! `punctual run`: files that are refused, programs that do not behave, a report of what became of
//! them. The tasks that behave are tested with the library.
//!
//! `punctual run` with a task in an endless cycle, and the signals that come in pairs: what is
//! written and taken back whatever comes, and what the kernel does where nobody can.
//!
//! This program is the task: started with a task block, the test `a_task` hangs in its third cycle.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use punctual_core::block::Source;
use punctual_engine::process::{Registration, TASK_VARIABLE, Watch, socket};
use punctual_os::process::{EndSignal, alarm_s};
use punctual_testkit::skip;
use serde_json::Value;

use crate::{Dir, PROGRAM, json, json_file, punctual, refused, run, signal, stderr, stdout, until};

/// Writes a file and runs it.
fn run_file(dir: &Dir, text: &str, more: &[&str]) -> std::process::Output {
    let path = dir.path("tasks.toml");
    fs::write(&path, text).expect("writable");
    let path = path.to_str().expect("UTF-8").to_owned();
    run(["run", &path].into_iter().chain(more.iter().copied()))
}

fn task(more: &str) -> String {
    format!("[[task]]\nname = \"a\"\nperiod = \"5ms\"\n{more}\n")
}

#[test]
fn what_is_wrong_with_a_file_is_one_line_with_its_place() {
    let dir = Dir::new("run-refused");
    for (text, words) in [
        (task("colour = 1"), &["tasks.toml", "line 4", "colour"][..]),
        (
            "[supervisor]\nwait = \"spin\"\n".to_owned() + &task("").replace("5ms", "10us"),
            &["spins", "at least 40.0 µs", "10000 ns"],
        ),
        (task("") + &task(""), &["line 6", "another task"]),
        (task("command = [\"/no/such/program\"]"), &["line 4", "\"a\"", "/no/such/program"]),
        (task("command = [\"no/such\"]"), &["line 4", "no/such from this directory"]),
        (task("command = [\"no-such-program-at-all\"]"), &["line 4", "cannot find program"]),
        (task("overrun = \"delay\""), &["line 4", "phase"]),
        (task("budget = \"9ms\""), &["line 2", "\"a\"", "budget"]),
        (task("priority = 80"), &["line 4", "[1, 79]"]),
        (task("after = \"b\"\nphase = \"1ms\""), &["line 2", "\"a\"", "\"b\""]),
        (task("command = \"x\""), &["line 4, column 11", "command must be an array of strings"]),
        (task("priority = 5") + "[[task]]\nname = \"b\"\nperiod = \"1ms\"", &["\"a\"", "\"b\""]),
        ("[[task]]\nname = \"a\"\nperiod = \"0s\"".to_owned(), &["line 3"]),
        (String::new(), &["no [[task]], and no [calendar]"]),
        ("[[unit]]\nname = \"a\"".to_owned(), &["line 1", "requires a [calendar]"]),
    ] {
        refused(&run_file(&dir, &text, &[]), words);
    }
    refused(&run(["run", "/no/such/file"]), &["/no/such/file"]);
    let pipe = dir.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("coreutils");
    assert!(made.success());
    refused(&run(["run".as_ref(), pipe.as_os_str()]), &["pipe", "named pipe; give a file"]);
    let path = dir.path("tasks.toml");
    fs::write(&path, b"\xff\xfe").expect("writable");
    refused(&run([std::ffi::OsStr::new("run"), path.as_os_str()]), &["line 1", "UTF-8"]);
}

#[test]
fn programs_that_never_register_are_ended_and_counted() {
    let dir = Dir::new("run-programs");
    let text = "[[task]]\nname = \"silent\"\nperiod = \"5ms\"\ncommand = [\"sleep\", \"60\"]\n\
                register_within = \"20ms\"\nrestart = \"on-failure\"\nrestarts = 1\n\
                pause = \"1ms\"\n\
                [[task]]\nname = \"leaves\"\nperiod = \"5ms\"\ncommand = [\"true\"]\n";
    let output = run_file(&dir, text, &["--duration", "60s", "--json", "-"]);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!((report["experiment"].as_str(), report["schema"].as_u64()), (Some("run"), Some(2)));
    assert_eq!(report["incomplete"], true, "all were gone before the time was up");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("silent never registered, so it had no releases"), "{warnings}");
    let supervised = &report["supervised"];
    assert_eq!(supervised["over"], "all gone");
    let row = |name: &str| {
        let rows = supervised["tasks"].as_array().expect("rows");
        rows.iter().find(|row| row["name"] == name).expect("one").clone()
    };
    let silent = row("silent");
    assert_eq!((&silent["starts"], &silent["restarts"]), (&2.into(), &1.into()));
    assert_eq!((&silent["exit_signal"], &silent["failed"]), (&9.into(), &true.into()));
    assert_eq!((&silent["cycles"], &silent["lateness_ns"]["max"]), (&0.into(), &().into()));
    // It ended in good order, and yet it never registered.
    assert_eq!(
        (&row("leaves")["exit_status"], &row("leaves")["failed"]),
        (&0.into(), &true.into())
    );
    assert_eq!(report["verdict"]["ok"], false);
    let errors = stderr(&output);
    assert!(errors.contains("silent: ended by SIGKILL: it did not register in time"), "{errors}");
}

#[test]
fn a_page_has_a_row_for_each_task_and_a_free_block_is_no_failure() {
    let dir = Dir::new("run-page");
    let file = dir.path("run.json");
    let written = ["--duration", "100ms", "--json", file.to_str().expect("UTF-8")];
    let output = run_file(&dir, &task(""), &written);
    let page = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{page} {}", stderr(&output));
    assert!(page.starts_with("finished"), "{page}");
    let report: Value = serde_json::from_slice(&fs::read(file).expect("written")).expect("JSON");
    let releases = &report["supervised"]["executive"];
    let [ran, missed] = ["cycles", "missed"].map(|key| releases[key].as_u64().expect("a count"));
    // However late it starts or wakes: 100 ms hold 20 releases, and the last one is met late.
    assert_eq!((ran + missed, ran > 0), (20, true), "{page}");
    assert!(page.contains(&format!("{ran} releases before the task was ready")), "{page}");
    assert_eq!(page.contains(&format!("{missed} missed")), missed > 0, "{page}");
}

#[test]
fn a_cpu_that_is_not_there_is_refused_where_it_is_named() {
    let dir = Dir::new("run-cpus");
    let supervisor = "[supervisor]\ncpu = 8191\n".to_owned() + &task("");
    refused(&run_file(&dir, &supervisor, &[]), &["tasks.toml", "[supervisor]", "CPU 8191"]);
    refused(&run_file(&dir, &task("cpu = 8191"), &[]), &["line 2", "CPU 8191"]);
}

#[test]
fn too_few_descriptors_are_said_in_words() {
    let dir = Dir::new("run-descriptors");
    let file = dir.path("tasks.toml");
    fs::write(&file, task("command = [\"true\"]")).expect("writable");
    for most in [5, 6] {
        let limited = format!("ulimit -n {most}; exec \"$0\" run \"$1\" --duration 1s");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &limited]).arg(PROGRAM).arg(&file);
        let out = shell.output().expect("sh starts");
        assert_ne!(out.status.code(), Some(0), "{most}");
        let words = ["cannot", "could not"].iter().any(|words| stderr(&out).contains(words));
        assert!(words && stderr(&out).contains("Too many open files"), "{}", stderr(&out));
    }
}

#[test]
fn a_period_that_the_clock_fills_is_refused() {
    let dir = Dir::new("run-short");
    let file = "[[task]]\nname = \"short\"\nperiod = \"1ns\"\n";
    refused(
        &run_file(&dir, file, &[]),
        &["tasks.toml", "at least 4 of the clock's stamps", "1 ns"],
    );
}

#[test]
fn nobody_waits_for_who_does_not_read_what_tasks_say() {
    let dir = Dir::new("run-flood");
    let (file, pid) = (dir.path("tasks.toml"), dir.path("pid"));
    // It fills the pipe that the supervisor's own lines go to.
    let script = format!("echo $$ > {}; while :; do echo flood; done", pid.display());
    let text = task(&format!("command = [\"sh\", \"-c\", {script:?}]\nregister_within = \"1s\""));
    fs::write(&file, text).expect("writable");
    let mut supervisor = punctual()
        .arg("run")
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("built");
    // It is ended and buried all the same, which leaves nothing of it.
    let mut written = String::new();
    let gone = (0..6_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        written = fs::read_to_string(&pid).unwrap_or_default();
        written.ends_with('\n') && !fs::exists(format!("/proc/{}", written.trim())).expect("known")
    });
    let mut words = String::new();
    let mut stderr = supervisor.stderr.take().expect("piped");
    std::io::Read::read_to_string(&mut stderr, &mut words).expect("UTF-8");
    assert_eq!(supervisor.wait().expect("ours").code(), Some(1));
    assert!(gone, "process {written:?}");
    assert!(words.contains("a: will not be restarted"), "all of it comes once it is read");
}

#[test]
fn a_task_runs_as_the_user_and_in_what_its_file_says() {
    let dir = Dir::new("run-surroundings");
    // Writable for whoever the task runs as.
    fs::set_permissions(&dir.0, fs::Permissions::from_mode(0o777)).expect("ours");
    let written = dir.path("written");
    let script = "exec >\"$OUT\"; id -u; id -g; id -G; pwd; umask; \
                  grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status; \
                  env | grep -cE '^(HOME|SECRET)='; ls /proc/self/fd | tr '\\n' ' '";
    let is_root = skip::need("root", skip::is_root());
    let as_other = "user = \"65534\"\ngroup = \"12345\"\ncapabilities = [\"CAP_NET_RAW\"]\n";
    let text = task(&format!(
        "command = [\"sh\", \"-c\", {script:?}]\nrestart = \"never\"\ndirectory = \"/\"\n\
         umask = \"0027\"\nenv = {{ OUT = {written:?}, PATH = \"/usr/bin:/bin\" }}\n{}",
        if is_root { as_other } else { "" }
    ));
    let file = dir.path("tasks.toml");
    fs::write(&file, text).expect("writable");
    // With a descriptor and a variable that are no task's business.
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", r#"exec 9</etc/passwd; exec "$0" run "$1""#]);
    shell.arg(PROGRAM).arg(&file).env("SECRET", "x");
    let output = shell.output().expect("a shell");
    assert_eq!(output.status.code(), Some(1), "it never registers: {}", stderr(&output));
    let words = fs::read_to_string(&written).expect("it ran");
    let lines: Vec<&str> = words.lines().collect();
    assert_eq!(lines[3..5], ["/", "0027"], "{words}");
    if is_root {
        assert_eq!(lines[..3], ["65534", "12345", "12345"], "{words}");
        for line in &lines[5..10] {
            assert!(line.ends_with("0000000000002000"), "CAP_NET_RAW alone: {words}");
        }
    }
    let [variables, descriptors] = lines[10..] else { panic!("two more: {words}") };
    assert_eq!(variables, "0", "none of the supervisor's: {words}");
    assert!(!descriptors.split(' ').any(|number| number == "9"), "{words}");
}

#[test]
fn a_user_that_is_not_there_is_refused_before_anything_starts() {
    let dir = Dir::new("run-user");
    for (key, words) in [
        ("user = \"no such\"", &["line 2", "there is no user \"no such\""][..]),
        ("capabilities = [\"CAP_X\"]", &["line 2", "unknown capability \"CAP_X\""]),
        ("umask = \"8\"", &["line 5", "umask must be"]),
        ("directory = \"/no/such\"", &["line 2", "there is no directory \"/no/such\""]),
    ] {
        let text = task(&format!("command = [\"true\"]\n{key}"));
        refused(&run_file(&dir, &text, &[]), words);
        refused(&run_file(&dir, &text, &["--check"]), words);
    }
}

/// The calendar of docs/running.md, with this program in the place of the one that is installed.
fn documented_calendar() -> String {
    let page = include_str!("../../../docs/running.md");
    let from = page.find("[calendar]\nframe").expect("it is there");
    let text = page[from..].split("```").next().expect("a block");
    let own = format!("{:?}", punctual().get_program());
    text.replace("\"punctual\"", &own)
}

#[test]
fn a_check_shows_the_places_of_the_calendar_in_the_documentation_and_starts_nothing() {
    let dir = Dir::new("run-check");
    let text = documented_calendar()
        + "[[task]]\nname = \"slow\"\nperiod = \"20ms\"\nphase = \"1ms\"\ncpu = 0\n";
    let output = run_file(&dir, &text, &["--check"]);
    let page = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{page} {}", stderr(&output));
    assert!(page.starts_with("frame of 4 ms: 10 places, made to meet all deadlines"), "{page}");
    let rows = |name: &str| -> Vec<Vec<String>> {
        let lines = page.lines().filter(|line| line.trim_start().starts_with(name));
        lines.map(|line| line.split_whitespace().map(ToOwned::to_owned).collect()).collect()
    };
    // Four places, then its task.
    assert_eq!(rows("read ").len(), 5, "{page}");
    assert_eq!(rows("flush").len(), 1, "{page}");
    let slow = rows("slow").pop().expect("a row");
    assert_eq!(slow[..], ["slow", "evenly", "20", "ms", "1", "ms", "78", "0"], "{page}");
    assert!(rows("control").pop().expect("its task").contains(&"79".to_owned()), "{page}");
    assert_eq!(stderr(&output), "", "nothing was started");
    let by_hand = "[calendar]\nframe = \"2ms\"\n[[unit]]\nname = \"a\"\nbudget = \"300us\"\n\
                   at = \"500us\"\ndeadline = \"1ms\"\n";
    let page = stdout(&run_file(&dir, by_hand, &["--check"]));
    let row = page.lines().find(|line| line.contains("500 µs")).expect("its place").to_owned();
    let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let expected = ["a", "a", "500 µs", "800 µs", "1500 µs", "700 µs", "1700 µs"];
    assert_eq!(cells, expected, "{page}");
}

#[test]
fn what_no_calendar_meets_is_refused_by_a_check_and_by_a_run() {
    let dir = Dir::new("run-unmet");
    let head = "[calendar]\nframe = \"4ms\"\nscheduled = true\n";
    let unit = |name: &str, more: &str| format!("[[unit]]\nname = \"{name}\"\n{more}\n");
    for (file, words) in [
        (
            head.to_owned() + &unit("a", "budget = \"3ms\"") + &unit("b", "budget = \"2ms\""),
            &["tasks.toml: line 5", "take 5.00 ms", "which is 4.00 ms", "later deadlines"][..],
        ),
        (
            head.to_owned() + &unit("a", "budget = \"1ms\"\nevery = \"3ms\""),
            &["line 5", "must divide the frame of 4000000 ns (got 3000000 ns)"],
        ),
        (
            head.to_owned() + &unit("a", "budget = \"10us\"\nevery = \"50us\""),
            &["line 5", "80 places in the frame", "at most 64", "a longer period"],
        ),
        (
            "[supervisor]\ncpu = 0\n".to_owned()
                + head
                + &unit("a", "budget = \"3ms\"")
                + "[[task]]\nname = \"b\"\nperiod = \"1ms\"\nbudget = \"500us\"\n",
            &["add up to 1.250 of CPU 0", "\"b\" 500 µs of 1.00 ms, \"a\" 3.00 ms of 4.00 ms"],
        ),
        (unit("a", "budget = \"1ms\""), &["line 1", "requires a [calendar]"]),
    ] {
        refused(&run_file(&dir, &file, &["--check"]), words);
        refused(&run_file(&dir, &file, &["--duration", "1s"]), words);
    }
    let file = head.to_owned() + &unit("a", "budget = \"1ms\"");
    for option in [["--duration", "1s"], ["--json", "-"], ["--markdown", "-"]] {
        let words = ["--check", option[0], "cannot be used with"];
        refused(&run_file(&dir, &file, &[&["--check"], &option[..]].concat()), &words);
    }
}

/// A unit of a calendar: one that is called "hog" runs on in its third release.
#[test]
fn a_unit() {
    if std::env::var_os(TASK_VARIABLE).is_none() {
        return;
    }
    alarm_s(100);
    let mut task = Registration::from_env(None).expect("a supervisor started it");
    let mut left = if task.task() == "hog" { 3 } else { u64::MAX };
    while task.wait().is_ok() {
        left -= 1;
        if left == 0 {
            loop {
                std::hint::spin_loop();
            }
        }
    }
}

#[test]
fn a_unit_that_runs_over_is_ended_and_its_neighbour_keeps_its_places() {
    let dir = Dir::new("run-calendar");
    let own = std::env::current_exe().expect("this program");
    let unit = |name: &str, more: &str| {
        format!(
            "[[unit]]\nname = {name:?}\nbudget = \"2ms\"\nregister_within = \"60s\"\n\
             command = [{own:?}, \"--exact\", \"run::a_unit\", \"--nocapture\"]\n{more}\n"
        )
    };
    let text = "[calendar]\nframe = \"40ms\"\n".to_owned()
        + &unit(
            "hog",
            "overrun = \"terminate\"\nrestart = \"on-failure\"\nrestarts = 1\n\
                       pause = \"1ms\"",
        )
        + &unit("good", "at = \"5ms\"\ndeadline = \"20ms\"")
        + "[[unit]]\nname = \"again\"\ntask = \"good\"\nbudget = \"2ms\"\nat = \"30ms\"\n";
    let [file, events, report] = ["tasks.toml", "events", "report.json"].map(|name| dir.path(name));
    fs::write(&file, text).expect("writable");
    let mut supervisor = punctual()
        .arg("run")
        .args([&file, &PathBuf::from("--json"), &report])
        .stdout(Stdio::null())
        .stderr(fs::File::create(&events).expect("writable"))
        .spawn()
        .expect("built");
    let events_written = || fs::read_to_string(&events).expect("it is written");
    until("the hog to be given up", || events_written().contains("hog: will not be restarted"));
    signal(&supervisor, EndSignal::Interrupt);
    assert_eq!(
        supervisor.wait().expect("ours").code(),
        Some(1),
        "the hog failed: {}",
        events_written()
    );
    let report = json_file(&report);
    let rows = report["supervised"]["tasks"].as_array().expect("rows").clone();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).expect("one").clone();
    let (hog, good) = (row("hog"), row("good"));
    assert_eq!(
        (&hog["terminated"], &hog["starts"], &hog["failed"]),
        (&2.into(), &2.into(), &true.into())
    );
    assert!(hog["overran"].as_u64() >= Some(2), "{hog}");
    assert!(
        events_written().contains("hog: ended by SIGKILL: it was still running"),
        "{}",
        events_written()
    );
    assert_eq!((&good["terminated"], &good["failed"]), (&0.into(), &false.into()));
    // Two places in a frame; however late it is woken, none of its releases is lost uncounted.
    assert_eq!((&good["period_ns"], &good["phase_ns"]), (&20_000_000.into(), &5_000_000.into()));
    let [cycles, missed, vacant] =
        ["cycles", "missed", "vacant"].map(|key| good[key].as_u64().expect("a count"));
    assert!(cycles > 0, "{good}");
    let posted = report["supervised"]["executive"]["cycles"].as_u64().expect("a count");
    assert!(cycles + missed + vacant <= posted, "{good} {posted}");
    assert_eq!(good["rubbish"], 0);
}

/// Hangs after a few cycles. Ends at the latest by its alarm, so that a test that fails leaves
/// nothing that runs on and on.
#[test]
fn a_task() {
    if std::env::var_os(TASK_VARIABLE).is_none() {
        return;
    }
    alarm_s(100);
    let mut task = Registration::from_env(Some("hangs")).expect("a supervisor started it");
    for _ in 0..3 {
        task.wait().expect("released");
    }
    assert!(task.commit(&[1; 8]));
    loop {
        std::hint::spin_loop();
    }
}

/// A supervisor whose task hangs.
struct Supervised {
    process: Child,
    name: String,
    watch: Watch,
    /// Of the task.
    pid: u32,
    report: PathBuf,
    _dir: Dir,
}

/// Starts one, and waits until its task hangs.
fn hanging(named: &str) -> Supervised {
    let dir = Dir::new(&format!("run-signals-{named}"));
    let name = format!("signals-{named}-{}", std::process::id());
    let own = std::env::current_exe().expect("this program");
    let text = format!(
        "[supervisor]\nname = {name:?}\n[[task]]\nname = \"hangs\"\nperiod = \"5ms\"\n\
         safe = \"ff ff ff ff ff ff ff ff\"\nregister_within = \"60s\"\n\
         command = [{own:?}, \"--exact\", \"run::a_task\", \"--nocapture\"]\n"
    );
    let (file, report) = (dir.path("tasks.toml"), dir.path("report.json"));
    fs::write(&file, text).expect("writable");
    let process = punctual()
        .arg("run")
        .args([&file, &PathBuf::from("--json"), &report])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("built");
    let mut watch = None;
    until("the task to hang", || {
        watch = watch.take().or_else(|| Watch::open(&name, "hangs").ok());
        watch.as_ref().is_some_and(|watch| watch.output(&mut [0; 8]) == Some(Source::Task))
    });
    let started = fs::read_to_string(format!("/proc/{0}/task/{0}/children", process.id()));
    let pid = started.expect("it lives").trim().parse().expect("one process");
    Supervised { process, name, watch: watch.expect("opened"), pid, report, _dir: dir }
}

/// Returns true where a process has ended, whether or not somebody has waited for it.
fn is_gone(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn signals_that_come_again_do_not_keep_a_supervisor_from_its_end() {
    for (how, pauses_ms) in [
        (EndSignal::Interrupt, &[300][..]),
        (EndSignal::HangUp, &[300]),
        (EndSignal::Terminate, &[300]),
        // The third is another one, which shortens the end; the fourth belongs to it.
        (EndSignal::Terminate, &[300, 400, 20]),
    ] {
        let mut run = hanging(&format!("{how:?}-{}", pauses_ms.len()));
        signal(&run.process, how);
        for pause_ms in pauses_ms {
            std::thread::sleep(Duration::from_millis(*pause_ms));
            // Where the end has come already its number is still its own.
            signal(&run.process, how);
        }
        let status = run.process.wait().expect("ours");
        assert_eq!(status.code(), Some(1), "{how:?} {pauses_ms:?}: {status}");
        let supervised = &json_file(&run.report)["supervised"];
        assert_eq!(
            (&supervised["over"], supervised["tasks"][0]["exit_signal"].as_i64()),
            (&"stopped".into(), Some(9))
        );
        let mut bytes = [0; 8];
        assert_eq!((run.watch.output(&mut bytes), bytes), (Some(Source::Safe), [0xff; 8]));
        let left = socket(&run.name).expect("a name");
        assert!(!left.exists() && !left.with_extension("lock").exists(), "{how:?}");
        assert!(is_gone(run.pid), "{how:?}");
    }
}

#[test]
fn after_kill_9_no_task_runs_on_and_a_reader_can_tell() {
    let mut run = hanging("kill");
    assert!(run.watch.is_supervised());
    signal(&run.process, EndSignal::Kill);
    run.process.wait().expect("ours");
    until("the task to end", || is_gone(run.pid));
    // Nobody could write the safe value.
    assert_eq!(run.watch.output(&mut [0; 8]), Some(Source::Task));
    assert!(!run.watch.is_supervised());
    // What a killed supervisor leaves is in nobody's way, and yet not left lying about.
    let left = socket(&run.name).expect("a name");
    for file in [&left, &left.with_extension("lock")] {
        fs::remove_file(file).expect("left behind");
    }
}
