//! The programs of `tests/c`, each of which checks one thing and says by its status how it went.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_testkit::skip;

use crate::built::{CAPI, Linked, compile, link, need, output, program};

pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(CAPI).join("tests/c").join(name)
}

const C: [&str; 1] = ["-std=c11"];
const CPP: [&str; 1] = ["-std=c++17"];

#[test]
fn the_header_is_c11_and_cpp17() {
    if !need(&[&program("g++")]) {
        return;
    }
    output(&mut Command::new(compile("layout-c", &program("gcc"), &source("layout.c"), &C)));
    let as_cpp = [CPP[0], "-x", "c++"];
    output(&mut Command::new(compile("layout-cpp", &program("g++"), &source("layout.c"), &as_cpp)));
}

#[test]
fn bad_arguments_are_answered() {
    if !need(&[]) {
        return;
    }
    output(&mut Command::new(compile("bad", &program("gcc"), &source("bad.c"), &C)));
}

#[test]
fn what_a_wait_learned_is_kept_for_the_next_start() {
    if !need(&[]) || !skip::need_native("a wait that learns") {
        return;
    }
    output(&mut Command::new(compile("learned", &program("gcc"), &source("learned.c"), &C)));
}

#[test]
fn threads_of_c_wait_watch_and_stop() {
    if !need(&[]) {
        return;
    }
    for linked in [Linked::Shared, Linked::Static] {
        let name = format!("threads-{linked:?}");
        output(&mut Command::new(link(&name, &program("gcc"), &source("threads.c"), &C, linked)));
    }
}

#[test]
fn a_loop_ends_as_its_answer_says_and_its_releases_are_counted() {
    if !need(&[]) {
        return;
    }
    let built = compile("ends", &program("gcc"), &source("ends.c"), &C);
    output(Command::new(&built).arg(built.with_extension("samples")));
}

#[test]
fn a_task_that_is_to_be_terminated_is_told() {
    if !need(&[]) {
        return;
    }
    output(&mut Command::new(compile("cancel", &program("gcc"), &source("cancel.c"), &C)));
}

#[test]
fn tasks_without_threads_are_refused_and_none_is_left() {
    if !need(&[]) || !skip::need_native("a limit of threads") {
        return;
    }
    let flags = ["-std=gnu11"];
    output(&mut Command::new(compile(
        "no-threads",
        &program("gcc"),
        &source("no_threads.c"),
        &flags,
    )));
}

#[test]
fn a_child_of_fork_leaves_what_is_its_parents_alone() {
    if !need(&[]) {
        return;
    }
    let built = compile("forked", &program("gcc"), &source("forked.c"), &C);
    let samples = built.with_extension("samples");
    let out = Command::new(built).arg(&samples).output().expect("it starts");
    let err = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success() && err.is_empty(), "{}: {err}", out.status);
    assert!(std::fs::metadata(&samples).is_ok_and(|file| file.len() > 0), "the parent's samples");
    // Left to the next run at worst.
    let _gone = std::fs::remove_file(samples);
}

#[test]
fn a_loop_allocates_nothing() {
    if !need(&[]) {
        return;
    }
    output(&mut Command::new(compile(
        "quiet",
        &program("gcc"),
        &source("quiet.c"),
        &["-std=gnu11"],
    )));
}

#[test]
fn a_loop_makes_no_system_call_but_its_sleep() {
    if !need(&["strace"]) || !skip::need_native("strace") {
        return;
    }
    let built = compile("quiet-strace", &program("gcc"), &source("quiet.c"), &["-std=gnu11"]);
    let log = built.with_extension("log");
    let mut strace = Command::new("strace");
    output(strace.arg("-f").arg("-o").arg(&log).arg(built));
    let text = std::fs::read_to_string(log).expect("written");
    let mut threads: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in text.lines() {
        // A thread's number and its call; not that one goes on, nor signals and ends.
        let mut words = line.split_whitespace();
        let (Some(thread), Some(word)) = (words.next(), words.next()) else { continue };
        if !word.starts_with(['<', '-', '+']) {
            threads.entry(thread).or_default().push(word.split('(').next().unwrap_or(word));
        }
    }
    // What is between two marks, of each thread that marks; and what is before and behind.
    let marked = |calls: &Vec<&str>| calls.contains(&"getppid");
    let mut loops: Vec<Vec<&[&str]>> = threads
        .values()
        .filter(|calls| marked(calls))
        .map(|calls| calls.split(|call| *call == "getppid").skip(1).step_by(2).collect())
        .collect();
    loops.sort_by_key(Vec::len);
    // Each of the three threads; four loops, two executives of tasks and two of units.
    assert_eq!(loops.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1, 8], "{threads:?}");
    for stretch in loops.pop().expect("the last one") {
        assert!(stretch.len() > 10, "{stretch:?}");
        assert!(stretch.iter().all(|call| *call == "clock_nanosleep"), "{stretch:?}");
    }
    for stretch in loops.iter().flatten() {
        // One sleeps by futex, where it has to, and two by the clock.
        assert!(!stretch.is_empty(), "{threads:?}");
        let mut sleeps = ["clock_nanosleep", "futex"].iter();
        assert!(sleeps.any(|one| stretch.iter().all(|call| call == one)), "{stretch:?}");
    }
}

#[test]
fn an_exception_comes_out_of_run_and_not_through_the_library() {
    if !need(&[&program("g++")]) {
        return;
    }
    output(&mut Command::new(compile("throws", &program("g++"), &source("throws.cpp"), &CPP)));
}

#[test]
fn threads_add_and_remove_tasks_at_once() {
    if !need(&[&program("g++")]) {
        return;
    }
    output(&mut Command::new(compile("adds", &program("g++"), &source("adds.cpp"), &CPP)));
}

#[test]
fn no_thread_touches_what_another_does_in_the_cpp_header() {
    let sanitizer = "g++ -fsanitize=thread";
    if !need(&[&program("g++")]) || !skip::need_native(sanitizer) {
        return;
    }
    let flags = [CPP[0], "-g", "-O1", "-fsanitize=thread"];
    let empty = Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty.cpp");
    std::fs::write(&empty, "int main() {}\n").expect("writable");
    // Its own library may be missing, and some kernels' maps are not for it.
    let runs = |built: PathBuf| Command::new(built).status().is_ok_and(|status| status.success());
    let empty_to = empty.with_extension("sanitized");
    let builds = Command::new("g++").args(flags).arg(&empty).arg("-o").arg(&empty_to).output();
    let works = builds.is_ok_and(|built| built.status.success()) && runs(empty_to);
    if skip::need(sanitizer, works) {
        output(&mut Command::new(compile("adds-tsan", "g++", &source("adds.cpp"), &flags)));
    }
}

#[test]
fn a_loop_in_cpp_says_how_it_ended() {
    if !need(&[&program("g++")]) || !skip::need_native("real timing") {
        return;
    }
    let built = compile("ends-cpp", &program("g++"), &source("ends.cpp"), &CPP);
    output(Command::new(&built).arg(built.with_extension("samples")));
}

#[test]
fn durations_of_cpp_are_nanoseconds_of_the_header() {
    if !need(&[&program("g++")]) {
        return;
    }
    let strict = [CPP[0], "-Wconversion", "-Wsign-conversion", "-Wshadow"];
    output(&mut Command::new(compile("chrono", &program("g++"), &source("chrono.cpp"), &strict)));
}

#[test]
fn no_byte_is_touched_that_is_not_theirs() {
    if !need(&["valgrind"]) || !skip::need_native("valgrind") {
        return;
    }
    for name in ["bad", "threads", "ends"] {
        let built = compile(
            &format!("{name}-valgrind"),
            &program("gcc"),
            &source(&format!("{name}.c")),
            &C,
        );
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--fair-sched=try"]);
        let samples = built.with_extension("samples");
        output(valgrind.arg(built).arg(samples));
    }
}
