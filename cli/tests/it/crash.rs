//! Interrupted runs: Ctrl-C keeps what there is, `kill -9` all but the last block, and no load
//! outlives its parent.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use punctual_os::process::EndSignal;

use crate::support::{Dir, at_once, json, json_file, punctual, run, signal, stderr, stdout, until};

fn start(samples: &Path, load: &str) -> Child {
    punctual()
        .args(["measure", "periodic", "--duration", "1h", "--period", "200us", "--load", load])
        .arg("--samples")
        .arg(samples)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts")
}

/// Processes whose parent, or its parent, is `pid`.
fn descendants(pid: u32) -> Vec<u32> {
    let children = |pid: u32| -> Vec<u32> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        tasks
            .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
            .flat_map(|text| text.split_whitespace().flat_map(str::parse).collect::<Vec<u32>>())
            .collect()
    };
    let mut found = children(pid);
    let grandchildren: Vec<u32> = found.iter().flat_map(|&child| children(child)).collect();
    found.extend(grandchildren);
    found
}

#[test]
fn after_kill_9_all_but_the_last_block_is_readable_and_no_load_is_left() {
    let dir = Dir::new("kill");
    let file = dir.path("samples");
    let mut child = start(&file, "cpu,fork");
    until("a few blocks", || fs::metadata(&file).is_ok_and(|meta| meta.len() > 200_000));
    let loads = descendants(child.id());
    assert!(!loads.is_empty(), "the loads run");
    signal(&child, EndSignal::Kill);
    child.wait().expect("it ends");
    until("the loads to end", || {
        loads.iter().all(|pid| {
            fs::read_to_string(format!("/proc/{pid}/stat"))
                .map_or(true, |stat| stat.contains(") Z "))
        })
    });
    let out = run(["analyse", file.to_str().expect("UTF-8"), "--json", "-"]);
    assert_eq!(out.status.code(), Some(0));
    let result = json(&out);
    assert_eq!(result["incomplete"], true);
    let written = fs::read(&file).expect("there");
    let json_bytes = u32::from_le_bytes(written[12..16].try_into().expect("four"));
    let samples_written = (written.len() - 24 - json_bytes as usize) as u64 / 16;
    let cycles = result["runs"][0]["cycles"].as_u64().expect("a count");
    // All but the last block, which is closed after 0.2 s: 1 000 samples, more if the drain was
    // late.
    assert!(cycles > 5_000 && cycles + 5_000 > samples_written, "{cycles} of {samples_written}");
    assert!(result["machine"]["kernel"]["value"].is_string(), "the facts survive too");
}

#[test]
fn an_interrupt_ends_it_early_with_what_there_is() {
    for how in [EndSignal::Interrupt, EndSignal::Terminate] {
        let dir = Dir::new(&format!("interrupt-{how:?}"));
        let file = dir.path("samples");
        let child = start(&file, "none");
        until("samples", || fs::metadata(&file).is_ok_and(|meta| meta.len() > 8_000));
        signal(&child, how);
        let out = child.wait_with_output().expect("it ends");
        assert_eq!(out.status.code(), Some(128 + how as i32));
        assert!(stdout(&out).contains("incomplete"), "{}", stdout(&out));
        let read = run(["analyse", file.to_str().expect("UTF-8"), "--json", "-"]);
        let result = json(&read);
        assert_eq!(result["incomplete"], true);
        assert!(result["warnings"].to_string().contains("the recording ended early"), "{result}");
    }
}

#[test]
fn signals_within_half_a_second_are_one() {
    // A terminal that closes sends two SIGHUPs, timeout(1) sends its signal to the group as well.
    for how in [EndSignal::HangUp, EndSignal::Interrupt, EndSignal::Terminate] {
        let dir = Dir::new(&format!("pair-{how:?}"));
        let out = at_once(|| {
            let file = dir.path("samples");
            let child = start(&file, "none");
            until("samples", || fs::metadata(&file).is_ok_and(|meta| meta.len() > 8_000));
            let begun = Instant::now();
            for pause_ms in [0, 1, 5] {
                std::thread::sleep(Duration::from_millis(pause_ms));
                signal(&child, how);
            }
            let took = begun.elapsed();
            (took, child.wait_with_output().expect("it ends"))
        });
        assert_eq!(out.status.code(), Some(128 + how as i32), "{how:?}: {}", out.status);
        assert!(stdout(&out).contains("incomplete"), "{}", stdout(&out));
    }
}

#[test]
fn a_later_signal_ends_what_does_not_end_by_itself() {
    let dir = Dir::new("later-signal");
    let file = dir.path("samples");
    // A pipe that is full, and that nobody reads: its page can never be written.
    let (_reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(&[b'x'; 65_536]).expect("as much as one holds");
    let mut child = punctual()
        .args(["measure", "periodic", "--duration", "1h", "--period", "200us", "--samples"])
        .arg(&file)
        .stdout(writer)
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    until("samples", || fs::metadata(&file).is_ok_and(|meta| meta.len() > 8_000));
    let mut status = None;
    until("its end", || {
        signal(&child, EndSignal::Interrupt);
        // Longer than what makes two signals one.
        std::thread::sleep(Duration::from_millis(600));
        status = child.try_wait().expect("ours");
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.signal()), Some(EndSignal::Interrupt as i32));
}

fn cut_in_half(path: &Path) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("there");
    file.set_len(file.metadata().expect("there").len() / 2).expect("ours");
}

#[test]
fn a_sample_file_that_is_removed_or_cut_off_meanwhile_is_noticed_and_all_else_is_written() {
    type Change = fn(&Path);
    let changes: [(&str, Change, &str); 3] = [
        ("remove", |path| fs::remove_file(path).expect("there"), "removed or replaced"),
        (
            "replace",
            |path| {
                let new = path.with_extension("new");
                fs::write(&new, "x").expect("writable");
                fs::rename(new, path).expect("ours");
            },
            "removed or replaced",
        ),
        ("truncate", cut_in_half, "another program changed it"),
    ];
    for (how, change, words) in changes {
        let dir = Dir::new(&format!("changed-{how}"));
        let (file, result) = (dir.path("samples"), dir.path("result.json"));
        let child = punctual()
            .args(["measure", "periodic", "--duration", "3s", "--limit", "max<10s", "--json"])
            .arg(&result)
            .arg("--samples")
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        until("samples", || fs::metadata(&file).is_ok_and(|meta| meta.len() > 8_000));
        change(&file);
        let out = child.wait_with_output().expect("it ends");
        assert_eq!(out.status.code(), Some(2), "{how}: {}", stderr(&out));
        let page = stdout(&out).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(stderr(&out).contains(words), "{how}: {}", stderr(&out));
        assert!(page.contains("incomplete") && page.contains(words), "{how}: {page}");
        let result = json_file(&result);
        assert_eq!(result["incomplete"], true, "{how}");
        assert!(result["warnings"].to_string().contains(words), "{how}: {result}");
        // What was measured is whole.
        assert_eq!(result["verdict"]["ok"], true, "{how}");
        let of = |key: &str| result["runs"][0][key].as_u64().expect("a count");
        assert!(of("cycles") > 0 && of("cycles") + of("missed") > 2_900, "{how}: {result}");
    }
}

#[test]
fn a_disk_that_is_full_is_said_in_the_result_and_all_else_is_written() {
    let dir = Dir::new("full-disk");
    let (file, result) = (dir.path("samples"), dir.path("result.json"));
    // A limit on the length of files stands for the disk; in blocks of 512 bytes.
    let limited = "ulimit -f 128 && exec \"$0\" measure periodic --period 100us --duration 2s \
                   --samples \"$1\" --json \"$2\"";
    let program = punctual().get_program().to_owned();
    let mut shell = std::process::Command::new("sh");
    let out = shell.args(["-c", limited]).arg(program).arg(&file).arg(&result).output();
    let out = out.expect("sh starts");
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    assert!(stderr(&out).contains("ends early"), "{}", stderr(&out));
    assert!(stdout(&out).contains("incomplete"), "{}", stdout(&out));
    let result = json_file(&result);
    assert_eq!(result["incomplete"], true);
    assert!(result["warnings"].to_string().contains("ends early"), "{result}");
}
