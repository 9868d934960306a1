//! `punctual capture` and `--root`: the same facts elsewhere, and no secrets.

use std::fs;
use std::path::Path;

use crate::{Dir, json, refused, run, stderr};

fn files(under: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(under).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn a_captured_machine_has_the_same_facts_and_no_host_name() {
    let dir = Dir::new("capture");
    let out = dir.path("machine");
    let out = out.to_str().expect("UTF-8");
    let captured = run(["capture", out]);
    assert_eq!(captured.status.code(), Some(0), "{}", stderr(&captured));
    let own = json(&run(["facts", "--json", "-"]));
    let captured = json(&run(["facts", "--root", out, "--json", "-"]));
    for fact in ["cpu_model", "cpus", "kernel", "preemption", "hz", "clocksource", "isolated_cpus"]
    {
        assert_eq!(own[fact]["value"], captured[fact]["value"], "{fact}");
    }
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("readable");
    let mut captured = Vec::new();
    files(Path::new(out), &mut captured);
    assert!(captured.len() > 5);
    assert!(Path::new(out).join("proc/cmdline").is_file());
    // A short name such as `vm` is a word that may stand anywhere.
    if host.trim().len() > 4 {
        for path in captured {
            let text = String::from_utf8_lossy(&fs::read(&path).expect("readable")).into_owned();
            assert!(!text.contains(host.trim()), "{}", path.display());
        }
    }
    refused(&run(["capture", out]), &[out, "not empty", "name a new or empty directory"]);
    let occupied = dir.path("occupied");
    fs::create_dir(&occupied).expect("writable");
    fs::write(occupied.join("precious"), "x").expect("writable");
    for place in [&occupied, &occupied.join("precious")] {
        refused(&run(["capture".as_ref(), place.as_os_str()]), &["occupied"]);
    }
    let entries: Vec<_> = fs::read_dir(&occupied).expect("there").flatten().collect();
    assert_eq!(entries.len(), 1, "left as it was");
    assert_eq!(fs::read_to_string(occupied.join("precious")).expect("there"), "x");
    refused(&run(["facts", "--root", "/nonexistent"]), &["/nonexistent"]);
}
