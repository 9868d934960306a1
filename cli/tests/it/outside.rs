//! `stimulate` and `respond`, against each other: over loopback and over pseudo-terminals, with
//! what should not arrive.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};

use punctual_os::descriptor::Descriptor;
use punctual_os::events;
use punctual_os::process::EndSignal;
use serde_json::Value;

use crate::{Dir, json_file, punctual, refused, run, signal, stderr, stdout, until};

/// A responder, its standard error, and the link at which it answers.
fn respond(link: &str, json: &Path) -> (Child, BufReader<ChildStderr>, String) {
    let mut command = punctual();
    command.args(["respond", link, "--json"]).arg(json);
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut errors = BufReader::new(child.stderr.take().expect("piped"));
    let link = loop {
        let mut line = String::new();
        assert!(errors.read_line(&mut line).expect("text") > 0, "it ended before it was ready");
        if let Some((_, link)) = line.trim_end().split_once("responds at ") {
            break link.to_owned();
        }
    };
    (child, errors, link)
}

/// Interrupts a responder; what it has.
fn interrupted(mut child: Child, json: &Path) -> Value {
    signal(&child, EndSignal::Interrupt);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let result = json_file(json);
    assert_eq!((&result["experiment"], &result["incomplete"]), (&"respond".into(), &true.into()));
    result["respond"].clone()
}

/// Checks that stimuli sent are answered or lost, and that times are in order.
fn adds_up(object: &Value) {
    let count = |key: &str| object[key].as_u64().expect("a count");
    assert_eq!(count("stimuli"), count("answered") + count("lost"), "{object}");
    assert!(count("late") <= count("answered"), "{object}");
    let latency = |key: &str| object["latency_ns"][key].as_f64();
    assert_eq!(latency("min").is_some(), count("answered") > 0, "{object}");
    assert!(latency("min") <= latency("p50") && latency("p50") <= latency("max"), "{object}");
    assert!(
        object["loopback"]["n"].as_u64() > Some(0),
        "the instrument is measured first: {object}"
    );
}

#[test]
fn a_responder_answers_over_loopback_whatever_else_arrives() {
    let dir = Dir::new("outside-udp");
    let (own, other, page) = (dir.path("own.json"), dir.path("other.json"), dir.path("page.html"));
    let (child, _errors, link) = respond("udp:127.0.0.1:0", &other);
    // Not a frame, a frame of another version, one that is damaged, and one that is too long.
    let hostile = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    hostile.connect(link.strip_prefix("udp:").expect("its address")).expect("loopback");
    let mut version = [0; 28];
    version[..6].copy_from_slice(b"PNCT\x09\x01");
    let mut damaged = [0; 28];
    damaged[..6].copy_from_slice(b"PNCT\x01\x03");
    for bytes in [&b"hello"[..], &[], &version, &damaged, &[0x50; 1_400]] {
        hostile.send(bytes).expect("sent");
    }
    let mut refusal = [0; 64];
    let count = hostile.recv(&mut refusal).expect("the other version alone is answered");
    assert_eq!(&refusal[..count], b"PNCT\x01\x05");
    let args = ["stimulate", &link, "--period", "2ms", "--duration", "200ms", "--json"];
    let out = run(args.iter().map(ToString::to_string).chain([own.display().to_string()]));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = stdout(&out);
    assert!(text.contains("loopback") && text.contains("duplicates"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let stored = json_file(&own);
    let stimulated = &stored["stimulate"];
    adds_up(stimulated);
    assert!(
        stimulated["answered"].as_u64() > Some(0) && stimulated["ended"].is_null(),
        "{stimulated}"
    );
    let responded = interrupted(child, &other);
    assert_eq!(responded["sessions"], 1, "{responded}");
    assert!(responded["answered"].as_u64() >= stimulated["answered"].as_u64(), "{responded}");
    assert_eq!(responded["others"]["wrong_version"], 1, "{responded}");
    assert_eq!(responded["others"]["foreign"], 4, "{responded}");
    for result in [&own, &other] {
        let out = run(["report", &result.display().to_string(), "-o", &page.display().to_string()]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        assert!(fs::read_to_string(&page).expect("written").contains("What else arrived"));
    }
}

/// The device of an end of a pseudo-terminal.
fn device(end: &Descriptor) -> String {
    let path = fs::read_link(format!("/proc/self/fd/{}", end.number())).expect("open");
    format!("serial:{}", path.display())
}

/// Passes on what comes in at one end, with some noise before the first bytes, until that is
/// closed.
fn pass_on(from: &Descriptor, to: &Descriptor) {
    let mut bytes = [0; 64];
    let mut noise = &b"login: "[..];
    while let Ok(count) = events::read(from, &mut bytes) {
        let sent = [std::mem::take(&mut noise), &bytes[..count]].concat();
        if count == 0 || events::write(to, &sent).is_err() {
            break;
        }
    }
}

#[test]
fn a_responder_answers_over_a_serial_line_until_that_is_gone() {
    let dir = Dir::new("outside-line");
    let (own, other) = (dir.path("own.json"), dir.path("other.json"));
    let (near, near_line) = events::line().expect("a pseudo-terminal");
    let (far, far_line) = events::line().expect("a pseudo-terminal");
    let (mut child, mut errors, link) = respond(&device(&far_line), &other);
    refused(&run(["respond", &link]), &["another program has this line"]);
    let stimulating = device(&near_line);
    let args = ["stimulate", &stimulating, "--period", "5ms", "--duration", "300ms", "--json"];
    let mut command = punctual();
    command.args(args).arg(&own).stdout(Stdio::null()).stderr(Stdio::piped());
    let stimulate = command.spawn().expect("it starts");
    let (out, ended) = std::thread::scope(|scope| {
        scope.spawn(|| pass_on(&near, &far));
        scope.spawn(|| pass_on(&far, &near));
        let out = stimulate.wait_with_output();
        signal(&child, EndSignal::Interrupt);
        let ended = child.wait();
        // Nobody has the lines any more: the reads of their other ends return.
        drop((near_line, far_line));
        (out.expect("it ends"), ended.expect("it ends"))
    });
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let stimulated = &json_file(&own)["stimulate"];
    adds_up(stimulated);
    assert!(
        stimulated["answered"].as_u64() > Some(0) && stimulated["others"]["foreign"] == 1,
        "{stimulated}"
    );
    let mut rest = String::new();
    errors.read_to_string(&mut rest).expect("text");
    assert_eq!(ended.code(), Some(130), "{rest}");
    let responded = &json_file(&other)["respond"];
    assert!(
        responded["answered"].as_u64() > Some(0) && responded["others"]["foreign"] == 1,
        "{responded}"
    );
}

#[test]
fn a_line_that_is_lost_ends_the_responder_with_what_it_has() {
    let dir = Dir::new("outside-lost");
    let second = dir.path("other.json");
    let (far, line) = events::line().expect("a pseudo-terminal");
    let (mut child, mut errors, _link) = respond(&device(&line), &second);
    drop((far, line));
    assert_eq!(child.wait().expect("it ends").code(), Some(2));
    let mut rest = String::new();
    errors.read_to_string(&mut rest).expect("text");
    assert!(rest.contains("the link was lost") && rest.contains("carrier"), "{rest}");
    let responded = &json_file(&second)["respond"];
    assert!(responded["ended"].is_string() && responded["answered"] == 0, "{responded}");
}

#[test]
fn an_interrupt_keeps_what_there_is() {
    let dir = Dir::new("outside-interrupted");
    let (own, other) = (dir.path("own.json"), dir.path("other.json"));
    let (child, _errors, link) = respond("udp:127.0.0.1:0", &other);
    let mut command = punctual();
    command.args(["stimulate", &link, "--duration", "10min", "--json"]).arg(&own);
    let mut stimulate = command.stdout(Stdio::null()).spawn().expect("it starts");
    until("the stimuli", || crate::catches_interrupt(&stimulate));
    signal(&stimulate, EndSignal::Interrupt);
    assert_eq!(stimulate.wait().expect("it ends").code(), Some(130));
    let result = json_file(&own);
    assert_eq!(result["incomplete"], true);
    let stimulated = &result["stimulate"];
    assert_eq!(
        stimulated["stimuli"].as_u64().expect("a count"),
        stimulated["answered"].as_u64().expect("a count")
            + stimulated["lost"].as_u64().expect("a count")
    );
    interrupted(child, &other);
}

#[test]
fn what_cannot_be_had_is_refused_with_the_reason() {
    let taken = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let at = format!("udp:{}", taken.local_addr().expect("bound"));
    refused(&run(["respond", &at]), &["another program has this port"]);
    refused(&run(["respond", "serial:/dev/null"]), &["/dev/null", "not a serial line"]);
    refused(&run(["stimulate", "serial:/dev/none"]), &["/dev/none", "No such file"]);
    refused(&run(["stimulate", "tcp:host:1"]), &["tcp:host:1", "udp:HOST:PORT"]);
    let with = |args: &[&str]| run(["stimulate", "udp:127.0.0.1:9"].iter().chain(args));
    refused(&with(&["--period", "10us"]), &["--period", "10 µs", "50 µs"]);
    refused(&with(&["--duration", "1h"]), &["stimuli", "at most"]);
    refused(&run(["respond", "serial:/dev/ttyS0", "--baud", "7"]), &["7 baud", "115200"]);
}
