//! Files as people write them, and as they should not.

use punctual::Restart;
use punctual::periodic::OnOverrun;
use punctual::wait_policy::WaitKind;
use punctual_core::time::Span;

use super::*;
use crate::waits::WAITS;

const WHOLE: &str = r#"
[supervisor]
name = "cell"
cpu = 1
priority = 70
wait = "adaptive"
budget = "5%"
phase = "50us"

[[task]]
name = "sense"
command = ["./sense", "--fast"]
period = "1ms"
phase = "100us"
priority = 60
cpu = 1
budget = "200us"
deadline = "500us"
start_within = "50us"
overrun = "terminate"
register_within = "2s"
restart = "on-failure"
restarts = 3
pause = "50ms"
safe = "00 ff"

[[task]]
name = "act"
period = "1ms"
after = "sense"
phase = "300us"
priority = 50
overrun = "burst 2"
"#;

#[test]
fn a_whole_file_is_what_it_says() {
    let tasks = TaskFile::parse(WHOLE.as_bytes()).expect("fine");
    let thread = RtThread::cpu(1).fifo(70).with_wait(WaitKind::Adaptive(0.05));
    assert_eq!((tasks.name.as_deref(), &tasks.thread), (Some("cell"), &thread));
    assert_eq!(tasks.phase, GridPhase::At(50_000));
    let [sense, act] = &tasks.all[..] else { panic!("two") };
    assert_eq!((sense.line, sense.program_line), (11, 12));
    assert_eq!((act.line, act.program_line), (28, 28));
    assert_eq!(sense.spec.command, ["./sense", "--fast"]);
    assert_eq!(sense.spec.thread, RtThread::cpu(1).fifo(60));
    assert_eq!(sense.spec.safe, [0, 0xff, 0, 0, 0, 0, 0, 0]);
    assert_eq!(sense.spec.register_within, Span::from_ms(2_000));
    let restart = Restart { most: 3, pause: Span::from_ms(50), ..Restart::ON_FAILURE };
    assert_eq!(sense.spec.restart, restart);
    assert_eq!(sense.spec.task.overrun_policy(), OnOverrun::Terminate);
    assert_eq!(act.spec.task.overrun_policy(), OnOverrun::Burst(2));
    assert!(act.spec.command.is_empty());
    assert_eq!(tasks.shortest().map(Period::as_ns), Some(1_000_000));
    let supervisor = TaskFile { name: None, ..tasks }.supervisor(50_000);
    let ready = supervisor.build().expect("fine");
    assert_eq!((ready.plan().name(0), ready.plan().phase_ns(0)), ("sense", 100_000));
    assert_eq!((ready.plan().name(1), ready.plan().phase_ns(1)), ("act", 400_000));
    assert_eq!(ready.priorities().collect::<Vec<u8>>(), [60, 50]);
}

#[test]
fn the_least_that_is_needed_is_a_name_and_a_period() {
    let tasks = TaskFile::parse(b"[[task]]\nname = \"a\"\nhertz = 3\n").expect("fine");
    assert_eq!(
        (tasks.thread.wait_kind(), tasks.phase, tasks.name),
        (WaitKind::Sleep, GridPhase::At(0), None)
    );
    assert_eq!(tasks.all[0].spec.task.period().den(), 3);
}

#[test]
fn every_wait_of_the_table_can_be_named() {
    for row in &WAITS {
        let file =
            format!("[supervisor]\nwait = \"{}\"\n[[task]]\nname = \"a\"\nhertz = 3\n", row.name);
        let tasks = TaskFile::parse(file.as_bytes()).expect("fine");
        assert_eq!(tasks.thread.wait_kind(), row.kind(None, 0.1));
    }
}

#[test]
fn what_is_wrong_is_said_in_a_line_with_its_place() {
    let with = |line: &str| format!("[[task]]\nname = \"a\"\nperiod = \"1ms\"\n{line}\n");
    let head = |line: &str| format!("[supervisor]\n{line}\n{}", with(""));
    for (file, place, words) in [
        (String::new(), "", "no [[task]]"),
        ("[[task]]\nname = ".to_owned(), "line 2", ""),
        ("[[task]]\nperiod = \"1ms\"".to_owned(), "line 1", "name"),
        ("[[task]]\nname = \"a\"".to_owned(), "line 2", "neither"),
        (
            "[[task]]\nname = \"a/b\"\nperiod = \"1ms\"".to_owned(),
            "line 2, column 8",
            "invalid name",
        ),
        ("[[task]]\nname = \"a\"\nperiod = \"0ms\"".to_owned(), "line 3, column 10", ""),
        ("[[task]]\nname = \"a\"\nperiod = \"1\"".to_owned(), "line 3", "unit"),
        ("[[task]]\nname = \"a\"\nperiod = 1".to_owned(), "line 3", "a string"),
        ("[[task]]\nname = \"a\"\nhertz = 0".to_owned(), "line 3", "[1, 1000000000] (got 0)"),
        (with("hertz = 5"), "line 3, column 10", "not both"),
        (with("colour = \"red\""), "line 4", "colour"),
        (with("period = \"1ms\""), "line 4", "duplicate"),
        (with("command = []"), "line 4", "program"),
        (with("command = [\"a\\u0000\"]"), "line 4", "zero byte"),
        (with("overrun = \"eat\""), "line 4", "skip"),
        (with("overrun = \"burst 0\""), "line 4", "burst"),
        (with("overrun = \"external\""), "line 4", "device"),
        (with("restart = \"maybe\""), "line 4", "on-failure"),
        (with("after = \"b\""), "line 4", "distance"),
        (with("safe = \"0\""), "line 4", "hex"),
        (with("safe = \"\""), "line 4", "hex"),
        (with("safe = \"é0\""), "line 4", "hex"),
        (with("priority = 300"), "line 4, column 12", "[1, 79] (got 300)"),
        (with("priority = 80"), "line 4", "[1, 79] (got 80)"),
        (with("priority = 0"), "line 4", "[1, 79] (got 0)"),
        (with("priority = -3"), "line 4", "[1, 79] (got -3)"),
        (with("priority = 0xff_ff_ff_ff_ff_ff_ff_ff_ff"), "line 4", "[1, 79]"),
        (with("cpu = 8192"), "line 4", "[0, 8191]"),
        (with("restarts = 4294967296"), "line 4", "[0, 4294967295]"),
        (with("overrun = \"delay\""), "line 4", "phase"),
        (with("overrun = \"burst 17\""), "line 4", "16"),
        (with("pause = \"-1ms\""), "line 4", ""),
        (with("[[task]]\nname = \"a\"\nperiod = \"1ms\""), "line 5", "another task"),
        (head("name = \"../x\""), "line 2", "invalid name"),
        (head("priority = 99"), "line 2, column 12", "[2, 98] (got 99)"),
        (head("priority = 1"), "line 2", "[2, 98]"),
        (head("priority = 5") + "priority = 5", "line 7", "[1, 4] (got 5)"),
        (head("wait = \"hope\""), "line 2", "adaptive"),
        (head("budget = \"5%\""), "line 2", "adaptive"),
        (head("phase = \"5\""), "line 2", "unit"),
        (head("nmae = \"x\""), "line 2", "nmae"),
    ] {
        let said = TaskFile::parse(file.as_bytes()).expect_err(&file).to_string();
        assert!(said.contains(place) && said.contains(words), "{place:?} {words:?} in {said:?}");
        assert!(!said.contains('\n'), "{said:?}");
    }
    let said = TaskFile::parse(b"a = 1\n\xff").expect_err("no text").to_string();
    assert!(said.contains("line 2, column 1") && said.contains("UTF-8"), "{said}");
    assert!(TaskFile::parse(&vec![b' '; FILE_MAX + 1]).is_err());
}

#[test]
fn what_has_another_shape_is_told_in_the_words_of_the_file() {
    let with = |line: &str| format!("[[task]]\nname = \"a\"\nperiod = \"1ms\"\n{line}\n");
    let head = |line: &str| format!("[supervisor]\n{line}\n{}", with(""));
    let tasks = "each task must be a table, written [[task]]";
    let one = "supervisor must be one table, written [supervisor]";
    for (file, place, said, not) in [
        ("task = 5".to_owned(), (1, 8), tasks, "an integer"),
        ("[task]".to_owned(), (1, 1), tasks, "a table in single brackets"),
        ("task = [5]".to_owned(), (1, 9), tasks, "an integer"),
        ("[[supervisor]]".to_owned(), (1, 1), one, "an array"),
        ("supervisor = 1.5".to_owned(), (1, 14), one, "a float"),
        (with("command = \"./a\""), (4, 11), "command must be an array of strings", "a string"),
        (
            with("command = [\"./a\", 5]"),
            (4, 19),
            "each element of command must be a string",
            "an integer",
        ),
        (with("budget = 2024-01-01"), (4, 10), "budget must be a string", "a datetime"),
        (with("safe = [0]"), (4, 8), "safe must be a string", "an array"),
        (with("cpu = \"1\""), (4, 7), "cpu must be an integer in [0, 8191]", "a string"),
        (with("cpu = {}"), (4, 7), "cpu must be an integer in [0, 8191]", "a table"),
        (head("overload = 1"), (2, 12), "overload must be a boolean", "an integer"),
        (head("wait = true"), (2, 8), "wait must be a string", "a boolean"),
    ] {
        let is = TaskFile::parse(file.as_bytes()).expect_err(&file).to_string();
        let (line, column) = place;
        assert_eq!(is, format!("line {line}, column {column}: {said} (got {not})"), "{file}");
    }
    let refused = |file: &str| TaskFile::parse(file.as_bytes()).expect_err(file).to_string();
    let said = refused("[tasks]");
    let all = "a file has [supervisor] and [[task]]";
    assert_eq!(said, format!("line 1, column 2: unknown key \"tasks\": {all}"));
    // Of two keys that nobody knows the first in the file, and nothing that a terminal obeys.
    let said = refused(&with("z = 1\n\"b\\u001b[2J\" = 1"));
    assert!(said.starts_with("line 4, column 1: unknown key \"z\""), "{said}");
    let said = refused(&with("\"b\\u001b[2J\" = 1"));
    assert!(said.contains("\\u{1b}") && !said.contains('\u{1b}'), "{said}");
}

#[test]
fn no_more_tasks_than_a_supervisor_has_and_no_longer_periods() {
    let many = |n: usize| -> String {
        let task = |at| format!("[[task]]\nname = \"t{at}\"\nperiod = \"1s\"\n");
        (0..n).map(task).collect()
    };
    assert_eq!(TaskFile::parse(many(TASKS_MAX).as_bytes()).expect("fits").all.len(), TASKS_MAX);
    let said = TaskFile::parse(many(TASKS_MAX + 1).as_bytes()).expect_err("too many").to_string();
    assert_eq!(said, "at most 256 tasks are accepted");
    let period = |ns: u64| format!("[[task]]\nname = \"a\"\nperiod = \"{ns}ns\"\n");
    assert!(TaskFile::parse(period(1 << 62).as_bytes()).is_ok());
    let said = TaskFile::parse(period((1 << 62) + 1).as_bytes()).expect_err("too long").to_string();
    assert_eq!(said, "line 3, column 10: period must be at most 2^62 ns");
}

#[test]
fn what_a_process_runs_as_and_in_is_written_as_systemd_names_it() {
    let file = |keys: &str| {
        let head = "[[task]]\nname = \"a\"\nperiod = \"1ms\"\n";
        TaskFile::parse(format!("{head}{keys}\n").as_bytes())
    };
    let given = file(
        "command = [\"x\"]\nuser = \"nobody\"\ngroup = \"7\"\numask = \"027\"\n\
         capabilities = [\"CAP_NET_RAW\"]\ndirectory = \"/tmp\"\n\
         env = { A = \"1\", B = \"\" }",
    );
    let given = given.expect("fine").all[0].spec.surroundings.clone();
    assert_eq!((given.user.as_deref(), given.group.as_deref()), (Some("nobody"), Some("7")));
    assert_eq!((given.umask, given.directory), (Some(0o27), Some("/tmp".into())));
    assert_eq!(given.capabilities, Some(vec!["CAP_NET_RAW".to_owned()]));
    let env = [("A", "1"), ("B", "")].map(|(name, value)| (name.into(), value.into()));
    assert_eq!(given.env, Some(env.to_vec()));
    for (keys, words) in [
        ("command = [\"x\"]\numask = \"1000\"", "line 5, column 9: umask must be"),
        ("command = [\"x\"]\numask = \"9\"", "umask must be"),
        ("command = [\"x\"]\nuser = \"\"", "user is empty"),
        ("command = [\"x\"]\nenv = \"A=1\"", "env must be a table of strings"),
        ("command = [\"x\"]\nenv = { A = 1 }", "each value of env must be a string"),
        ("command = [\"x\"]\nenv = { \"A=B\" = \"1\" }", "contains '='"),
        ("user = \"nobody\"", "require a command"),
    ] {
        let said = file(keys).expect_err("refused").to_string();
        assert!(said.contains(words), "{keys}: {said}");
    }
}
