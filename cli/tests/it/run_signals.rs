//! `punctual run` with a task in an endless cycle, and the signals that come in pairs: what is
//! written and taken back whatever comes, and what the kernel does where nobody can.
//!
//! This program is the task: started with a task block, the test `a_task` hangs in its third cycle.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use punctual_core::block::Source;
use punctual_engine::process::{Registration, TASK_VARIABLE, Watch, socket};
use punctual_os::process::{EndSignal, alarm_s};

use crate::support::{Dir, json_file, punctual, signal, until};

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
fn hanging(of: &str) -> Supervised {
    let dir = Dir::new(&format!("run-signals-{of}"));
    let name = format!("signals-{of}-{}", std::process::id());
    let own = std::env::current_exe().expect("this program");
    let text = format!(
        "[supervisor]\nname = {name:?}\n[[task]]\nname = \"hangs\"\nperiod = \"5ms\"\n\
         safe = \"ff ff ff ff ff ff ff ff\"\nregister_within = \"60s\"\n\
         command = [{own:?}, \"--exact\", \"run_signals::a_task\", \"--nocapture\"]\n"
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

/// Whether a process has ended, whether or not somebody has waited for it.
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
