//! Hostile neighbours on a supervisor's socket: it goes on, and whoever comes properly is served.

use std::fs;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use punctual_core::block::Source;
use punctual_engine::process::{Registration, Watch, socket};
use punctual_os::process::EndSignal;
use punctual_testkit::random::Random;

use super::Attack;
use crate::{Dir, json_file, punctual, signal, until};

/// Does something that no task does; in a word, what.
fn annoy(random: &mut Random, name: &str, at: &Path, kept: &mut Vec<UnixStream>) -> &'static str {
    let connect = || UnixStream::connect(at).expect("it listens");
    match random.index(7) {
        0 => {
            let bytes: Vec<u8> = (0..random.index(600)).map(|_| random.bits() as u8).collect();
            let _refused = connect().write_all(&bytes);
            "random bytes"
        }
        1 => {
            kept.extend((0..random.index(60)).map(|_| connect()));
            "connections that say nothing"
        }
        2 => {
            let mut half = connect();
            let line = b"punctual 1 join open\n";
            let _refused = half.write_all(&line[..random.index(line.len())]);
            kept.push(half);
            "half a request"
        }
        3 => {
            (0..random.index(60)).for_each(|_| drop(connect()));
            "connections that end at once"
        }
        4 => {
            let mut deaf = connect();
            let _refused = deaf.write_all(b"punctual 1 watch open\n");
            let _closed = deaf.shutdown(Shutdown::Read);
            "a request whose answer nobody reads"
        }
        5 => {
            let wrong = ["", "../x", "none", "open open", "\u{1b}[2J"];
            let line = format!("punctual 1 join {}\n", random.one_of(&wrong));
            let mut socket = connect();
            let _refused = socket.write_all(line.as_bytes());
            "a request that names no task"
        }
        _ => {
            if let Ok(mut task) = Registration::join(name, "open") {
                task.commit(&[7; 8]);
            }
            "a task that joins and leaves"
        }
    }
}

#[test]
fn neighbours() {
    let mut attack = Attack::begin("neighbours");
    let dir = Dir::new("attack-neighbours");
    let name = format!("attacked-{}", std::process::id());
    let (file, report) = (dir.path("tasks.toml"), dir.path("report.json"));
    let text = format!(
        "[supervisor]\nname = {name:?}\n[[task]]\nname = \"open\"\nperiod = \"5ms\"\n\
         safe = \"ff ff ff ff ff ff ff ff\"\n[[task]]\nname = \"other\"\nperiod = \"5ms\"\n"
    );
    fs::write(&file, text).expect("writable");
    let mut supervisor = punctual();
    supervisor.arg("run").arg(&file).arg("--json").arg(&report);
    let mut supervisor =
        supervisor.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("built");
    let at = socket(&name).expect("a name");
    until("its socket", || at.exists());
    let mut kept = Vec::new();
    while attack.goes_on() {
        let deed = annoy(&mut attack.random, &name, &at, &mut kept);
        if kept.len() > 300 {
            kept.clear();
        }
        assert!(supervisor.try_wait().expect("ours").is_none(), "{deed}: it has ended");
        // Silent connections may take the place of one that is slow to speak; it comes again.
        let mut watch = None;
        until(&format!("a watcher to be served after {deed}"), || {
            watch = Watch::open(&name, "open").ok();
            watch.is_some()
        });
        let watch = watch.expect("just opened");
        let mut bytes = [0; 8];
        until("the safe value", || watch.output(&mut bytes) == Some(Source::Safe));
        assert_eq!(bytes, [0xff; 8], "{deed}");
        attack.note(deed);
    }
    signal(&supervisor, EndSignal::Terminate);
    assert_eq!(supervisor.wait().expect("ours").code(), Some(143));
    assert_eq!(json_file(&report)["supervised"]["over"], "stopped");
    assert!(!at.exists());
    attack.end();
}
