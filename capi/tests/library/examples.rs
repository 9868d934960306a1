//! The examples: built by the line that each gives, with every warning an error, and run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_testkit::skip;

use crate::built::{CAPI, STRICT, compile, installed, need, output, program};
use crate::programs::source;

fn example(name: &str) -> PathBuf {
    Path::new(CAPI).join("examples").join(name)
}

/// The line after "cc" or "c++" in an example's own comment.
fn build_line(source: &Path) -> String {
    let text = fs::read_to_string(source).expect("readable");
    let line = text.lines().find(|line| line.contains("$(pkg-config")).expect("it says how");
    line.trim_start_matches([' ', '*', '/']).to_owned()
}

/// Builds an example as its comment says, in a folder of its own: tests that run at once build the
/// same one, and none of them can run what another one is linking.
fn build(name: &str, compiler: &str) -> PathBuf {
    static BUILT: AtomicU32 = AtomicU32::new(0);
    let own = format!("example-{name}-{}", BUILT.fetch_add(1, Ordering::Relaxed));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
    fs::create_dir_all(&folder).expect("writable");
    fs::copy(example(name), folder.join(name)).expect("writable");
    let line = build_line(&example(name));
    run_line(&folder, compiler, &line)
}

/// Builds in a folder as a line says, by this compiler in place of its own; what it builds.
fn run_line(folder: &Path, compiler: &str, line: &str) -> PathBuf {
    let (_, rest) = line.split_once(' ').expect("a compiler and its arguments");
    let libdir = installed("lib");
    let line = format!("{compiler} {} {rest} -Wl,-rpath,{}", STRICT.join(" "), libdir.display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).env("PKG_CONFIG_PATH", libdir.join("pkgconfig"));
    output(shell.current_dir(folder));
    let built = rest.split("-o ").nth(1).expect("it says where to").trim();
    folder.join(built)
}

#[test]
fn the_loop_in_c_runs_a_second_and_tells() {
    if !need(&["pkg-config"]) || !skip::need_native("real timing") {
        return;
    }
    let built = build("each_ms.c", &program("gcc"));
    let folder = built.parent().expect("a folder of its own");
    let printed = output(Command::new(&built).arg("1").current_dir(folder));
    assert!(printed.contains("1000 cycles") && printed.contains("in a share of 0.99"), "{printed}");
    let samples = fs::metadata(folder.join("each_ms.punctual")).expect("written");
    assert!(samples.len() > 4_000, "{samples:?}");
}

#[test]
fn the_loop_in_cpp_runs_a_second_beside_its_watcher() {
    if !need(&["pkg-config", &program("g++")]) || !skip::need_native("real timing") {
        return;
    }
    let printed = output(Command::new(build("each_ms.cpp", &program("g++"))).arg("1"));
    assert!(printed.contains("s of loop, late by at most"), "{printed}");
}

#[test]
fn the_executive_runs_its_three_tasks() {
    if !need(&["pkg-config", &program("g++")]) || !skip::need_native("real timing") {
        return;
    }
    for (name, compiler) in [("tasks.c", "gcc"), ("tasks.cpp", "g++")] {
        let printed = output(Command::new(build(name, &program(compiler))).arg("1"));
        for task in ["servo: ", "plan: ", "display: ", "finished"] {
            assert!(printed.contains(task), "{printed}");
        }
    }
}

#[test]
fn the_calendar_runs_its_units_and_what_fits_between() {
    if !need(&["pkg-config"]) || !skip::need_native("real timing") {
        return;
    }
    let printed = output(Command::new(build("calendar.c", &program("gcc"))).arg("1"));
    for task in ["read: ", "control: ", "filter: ", "write: ", "log: ", "write begins 300000 ns"] {
        assert!(printed.contains(task), "{printed}");
    }
}

#[test]
fn the_threads_run_and_what_never_ends_is_told() {
    if !need(&["pkg-config"]) || !skip::need_native("real timing") {
        return;
    }
    let printed = output(Command::new(build("threads.c", &program("gcc"))).arg("1"));
    for task in ["servo: ", "planner: ", "search: ", "sensor: ", "background: "] {
        assert!(printed.contains(task), "{printed}");
    }
}

#[test]
fn tasks_come_and_go_and_the_servo_loses_no_release() {
    if !need(&["pkg-config"]) || !skip::need_native("real timing") {
        return;
    }
    let printed = output(&mut Command::new(build("changing.c", &program("gcc"))));
    assert_eq!(printed.matches("removed after").count(), 3, "{printed}");
    assert!(printed.contains(" 0 releases of the servo lost"), "{printed}");
}

#[test]
fn the_followed_loop_keeps_to_whole_milliseconds_of_tai() {
    if !need(&["pkg-config"]) || !skip::need_native("real timing") {
        return;
    }
    let printed = output(Command::new(build("follow.c", &program("gcc"))).arg("1"));
    assert!(printed.contains("0 of 1000 releases off a whole millisecond"), "{printed}");
    assert!(printed.contains("drift "), "{printed}");
}

#[test]
fn the_task_of_a_supervisor_says_when_it_has_none() {
    if !need(&["pkg-config"]) {
        return;
    }
    let built = build("task.c", &program("gcc"));
    let alone = Command::new(built).output().expect("it starts");
    let printed = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert!(!alone.status.success() && printed.contains("no supervisor started"), "{printed}");
}

/// The names of the fields of a struct of the header, in their order.
fn fields(header: &str, name: &str) -> String {
    let from = header.find(&format!("typedef struct {name} {{")).expect("it is there");
    let lines = header[from..].lines().skip(1).take_while(|line| !line.starts_with('}'));
    let field = |line: &str| {
        let (declared, _) = line.split_once(';')?;
        // What is behind a comment's begin is none.
        let is_field = line.starts_with("    ") && !line.starts_with("     ");
        is_field.then(|| declared.rsplit([' ', '*']).next().map(ToOwned::to_owned))?
    };
    lines.filter_map(field).collect::<Vec<String>>().join(" ")
}

#[test]
fn the_loop_in_python_runs_and_has_the_structs_of_the_header() {
    if !need(&["python3"]) || !skip::need_native("real timing") {
        return;
    }
    let python = |args: &[&str]| {
        let mut python = Command::new("python3");
        python.args(args).current_dir(example("")).env("LD_LIBRARY_PATH", installed("lib"));
        output(python.env("PYTHONDONTWRITEBYTECODE", "1"))
    };
    let printed = python(&["each_ms.py", "0.2"]);
    assert!(printed.contains("s of loop: 200 cycles, "), "{printed}");
    let header = fs::read_to_string(Path::new(CAPI).join("include/punctual.h")).expect("readable");
    let names = "import each_ms as py\n\
                 for record in py.Options, py.Cycle, py.Stats:\n    \
                 print(record.C_NAME, *[name for name, _ in record._fields_])";
    let structs = ["punctual_options", "punctual_cycle", "punctual_stats"];
    let expected = structs.map(|name| format!("{name} {}\n", fields(&header, name)));
    assert_eq!(python(&["-c", names]), expected.concat());
    let defaults = "import each_ms as py\no = py.Options()\n\
                    print(o.period_den, o.budget_share, o.cpu, o.priority, o.learn_first)";
    assert_eq!(python(&["-c", defaults]), "1 0.1 -1 90 1\n", "each at its place");
}

#[test]
fn the_program_on_the_page_about_c_is_one() {
    if !need(&[]) {
        return;
    }
    let page = fs::read_to_string(Path::new(CAPI).join("../docs/c.md")).expect("readable");
    let program_text = page.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page.c");
    fs::write(&source, program_text.expect("a program")).expect("writable");
    compile("page", &program("gcc"), &source, &["-std=c11"]);
}

#[test]
fn each_line_of_the_page_about_c_links_and_runs() {
    if !need(&["pkg-config", "readelf", &program("g++")]) || !skip::need_native("real timing") {
        return;
    }
    let page = fs::read_to_string(Path::new(CAPI).join("../docs/c.md")).expect("readable");
    let lines = page.lines().filter_map(|line| line.strip_prefix("    "));
    let lines: Vec<&str> = lines.filter(|line| line.contains("$(pkg-config")).collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    for (at, line) in lines.into_iter().enumerate() {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-line-{at}"));
        fs::create_dir_all(&folder).expect("writable");
        for name in ["each_ms.c", "each_ms.cpp"] {
            fs::copy(example(name), folder.join(name)).expect("writable");
        }
        let compiler = if line.starts_with("c++ ") { "g++" } else { "gcc" };
        let built = run_line(&folder, &program(compiler), line);
        let printed = output(Command::new(&built).arg("1").current_dir(&folder));
        assert!(printed.contains("late by at most"), "{line}: {printed}");
        let dynamic = output(Command::new("readelf").arg("-dW").arg(&built));
        let needs = |library: &str| dynamic.contains(&format!("[{library}"));
        let linked = (needs("libc.so"), needs("libpunctual.so"));
        let wanted = (!line.contains("-static "), !line.contains("tatic"));
        assert_eq!(linked, wanted, "{line}: {dynamic}");
    }
}

#[test]
fn clang_builds_them_too() {
    if need(&["pkg-config", "clang", "clang++"]) {
        for name in ["tasks.c", "calendar.c", "threads.c", "changing.c", "follow.c"] {
            build(name, "clang");
        }
        build("each_ms.cpp", "clang++");
        compile("layout-clang", "clang", &source("layout.c"), &["-std=c11"]);
        compile("throws-clang", "clang++", &source("throws.cpp"), &["-std=c++17"]);
    }
}
