//! `punctual sched`: commands and threads get what was requested, or the reason why not.

use std::process::{Child, Command, Stdio};

use punctual_testkit::skip;

use crate::{Dir, PROGRAM, json, refused, run, stderr, stdout, text};

/// A process that ends when the test does.
struct Sleeper(Child);

impl Sleeper {
    fn new(command: &str) -> Self {
        let mut sh = Command::new("sh");
        sh.args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(sh.spawn().expect("a shell"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Waits for its first line.
    fn ready(&mut self) {
        use std::io::BufRead as _;
        let mut line = String::new();
        let out = self.0.stdout.as_mut().expect("a pipe");
        std::io::BufReader::new(out).read_line(&mut line).expect("it writes");
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // Closing its input ends what it runs.
        drop(self.0.stdin.take());
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
fn a_command_gets_nice_value_cpu_and_exit_status() {
    let script = "cut -d' ' -f19 /proc/self/stat; grep Cpus_allowed_list /proc/self/status; exit 7";
    let out =
        run(["sched", "run", "--other", "--nice", "19", "--cpu", "0", "--", "sh", "-c", script]);
    assert_eq!(out.status.code(), Some(7), "{}", stderr(&out));
    let shown = stdout(&out);
    assert!(shown.starts_with("19\n") && shown.ends_with(":\t0\n"), "{shown}");
    let absent = run(["sched", "run", "--other", "--", "/no/such/program"]);
    refused(&absent, &["cannot run /no/such/program"]);
}

#[test]
fn a_command_starts_with_the_signals_that_it_would_have_without() {
    // SIGXFSZ, which is caught here; SIGPIPE, which Rust ignores.
    let ignored = |program: &str, args: &[&str]| {
        let out = Command::new(program).args(args).output().expect("it starts");
        let shown = stdout(&out);
        let mask = shown.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.unwrap_or_else(|| panic!("{}", stderr(&out))).trim().to_owned();
        u64::from_str_radix(&mask, 16).expect("a mask") & (1 << 24 | 1 << 12)
    };
    let direct = ["SigIgn", "/proc/self/status"];
    let without = ignored("grep", &direct);
    let command = ["sched", "run", "--other", "--", "grep"];
    assert_eq!(ignored(PROGRAM, &[&command[..], &direct[..]].concat()), without);
    let through =
        format!("trap '' XFSZ; exec {PROGRAM} {} {}", command.join(" "), direct.join(" "));
    assert_eq!(ignored("sh", &["-c", &through]), without | 1 << 24, "as it was started with");
}

#[test]
fn what_only_isolate_may_request_changes_no_file() {
    let dir = Dir::new("sched-isolated");
    let own = std::process::id().to_string();
    for (name, pid, why) in [
        ("cgroup.procs", "1", "did not start this one"),
        ("notes", own.as_str(), "not the members of a control group"),
        ("absent/cgroup.procs", own.as_str(), "cannot join"),
    ] {
        let file = dir.path(name);
        let _parent = std::fs::write(&file, "kept");
        let file = file.to_str().expect("UTF-8");
        let args = ["sched", "run", "--other", "--isolated", file, pid, "--", "true"];
        let out = Command::new(PROGRAM).args(args).output().expect("it starts");
        refused(&out, &[why]);
        assert!(std::fs::read(file).is_ok_and(|text| text == b"kept") || name.contains('/'));
    }
}

#[test]
fn a_command_and_what_it_starts_get_a_real_time_policy() {
    if !skip::need("root", skip::is_root()) || !skip::need_fifo() {
        return;
    }
    let show = format!("{PROGRAM} sched show $$; (exec {PROGRAM} sched show $$)");
    let out = run(["sched", "run", "--fifo", "3", "--cpu", "0", "--", "sh", "-c", &show]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert_eq!(stdout(&out).matches("SCHED_FIFO 3 ").count(), 2, "{}", stdout(&out));
    let out = run(["sched", "run", "--rr", "3", "--reset-on-fork", "--", "sh", "-c", &show]);
    assert!(stdout(&out).contains("SCHED_RR 3, reset "), "{}", stdout(&out));
    let show = format!("exec {PROGRAM} sched show $$");
    let out = run(["sched", "run", "--deadline", "10ms:100ms", "--", "sh", "-c", &show]);
    let shown = stdout(&out) + &stderr(&out);
    let text =
        ["SCHED_DEADLINE 10 ms:100 ms:100 ms", "refused: "].iter().any(|w| shown.contains(w));
    assert!(text, "{shown}");
}

#[test]
fn a_refusal_names_the_reason_and_the_way_out() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let inner = format!("exec {PROGRAM} sched run --fifo 80 -- true");
    let args = ["sched", "run", "--user", "nobody", "--other", "--", "sh", "-c"];
    let out = run(args.into_iter().chain(["id -un; id -Gn; umask >/dev/null; exit 3"]));
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    assert!(stdout(&out).starts_with("nobody\nnogroup"), "{}", stdout(&out));
    let out = run(args.into_iter().chain([inner.as_str()]));
    refused(&out, &["SCHED_FIFO 80 refused", "RLIMIT_RTPRIO", "limits.d"]);
}

#[test]
fn threads_and_children_of_a_process_are_changed_and_shown() {
    let mut sleeper = Sleeper::new("exec 3<&0; cat <&3 & echo ready; wait");
    sleeper.ready();
    let pid = sleeper.pid();
    let out = run(["sched", "set", "--other", "--nice", "11", "--children", &pid]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert_eq!(stdout(&out), "2 of 2 threads changed\n");
    let shown = stdout(&run(["sched", "show", &pid]));
    assert!(shown.contains("SCHED_OTHER, nice 11"), "{shown}");
    let out = run(["sched", "set", "--cpu", "0", "--threads", &pid]);
    assert_eq!(stdout(&out), "1 of 1 threads changed\n", "{}", stderr(&out));
    let shown = stdout(&run(["sched", "show", &pid]));
    assert!(shown.trim_end().ends_with(" 0"), "{shown}");
    let out = run(["sched", "show"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
}

#[test]
fn batch_and_idle_are_given_handed_on_and_shown() {
    // The policy is field 41 of proc_pid_stat(5): what the shell started has it too. SCHED_IDLE
    // leaves the nice value as it is.
    let script = "cut -d' ' -f41 /proc/self/stat; cut -d' ' -f19 /proc/self/stat";
    for (args, policy) in [(&["--batch", "--nice", "19"][..], "3\n19\n"), (&["--idle"], "5\n")] {
        let command = ["--", "sh", "-c", script];
        let out = run(["sched", "run"].iter().chain(args).chain(&command));
        assert_eq!(out.status.code(), Some(0), "{args:?} {}", stderr(&out));
        assert!(stdout(&out).starts_with(policy), "{args:?} {}", stdout(&out));
    }
    let mut sleeper = Sleeper::new("echo ready; read line");
    sleeper.ready();
    let pid = sleeper.pid();
    for (args, shown) in [
        (&["--batch", "--nice", "18"][..], "SCHED_BATCH, nice 18"),
        (&["--idle"][..], "SCHED_IDLE"),
    ] {
        let out = run(["sched", "set"].iter().chain(args).chain(&[pid.as_str()]));
        assert_eq!(stdout(&out), "1 of 1 threads changed\n", "{args:?} {}", stderr(&out));
        let page = stdout(&run(["sched", "show", &pid]));
        assert!(page.contains(shown), "{page}");
    }
}

#[test]
fn what_may_not_leave_idle_is_told_the_limit() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let inner = format!("exec {PROGRAM} sched run --other -- true");
    let args = ["sched", "run", "--user", "nobody", "--idle", "--", "sh", "-c", inner.as_str()];
    refused(&run(args), &["SCHED_OTHER refused", "leave SCHED_IDLE", "RLIMIT_NICE", "=20"]);
}

#[test]
fn a_program_that_runs_is_judged_with_what_changes_it() {
    let sleeper = Sleeper::new("while read line; do :; done");
    let out = run(["sched", "check", &sleeper.pid(), "--json", "-"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    assert_eq!(result["program"]["pid"].to_string(), sleeper.pid());
    let verdict = |id: &str| {
        let verdicts = result["verdicts"].as_array().expect("verdicts");
        let found = verdicts.iter().find(|verdict| verdict["id"] == id);
        found.unwrap_or_else(|| panic!("{id} in {result}")).clone()
    };
    assert_eq!(verdict("program.policy")["found"], "its only thread has no real-time policy");
    let command = &verdict("program.policy")["changes"][0];
    assert_eq!(
        (&command["kind"], command["command"].as_str()),
        (
            &"run".into(),
            Some(format!("sudo punctual sched set --fifo 80 {}", sleeper.pid()).as_str())
        )
    );
    assert_eq!(verdict("program.memory")["verdict"], "improve");
    // The same for people, and as a page.
    let page = stdout(&run(["sched", "check", &sleeper.pid(), "-v", "--strict"]));
    for part in
        ["1 thread, watched for", "memory of sh: none of", "rule: program.slack", "blame --pid"]
    {
        assert!(page.contains(part), "{part} in {page}");
    }
    let dir = Dir::new("sched-check");
    let kept = dir.path("result.json");
    std::fs::write(&kept, result.to_string()).expect("writable");
    let file = dir.path("page.html");
    let out = run(["report", text(&kept), "-o", text(&file)]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let shown = std::fs::read_to_string(file).expect("written");
    assert!(shown.contains("what could be better of sh"), "{shown}");
    refused(&run(["sched", "check", "no-such-program"]), &["no process named", "number"]);
    refused(&run(["sched", "check", "4194305"]), &["no process 4194305"]);
}

#[test]
fn a_real_time_program_is_found_by_name_and_held_against_its_neighbours() {
    if !skip::need_fifo() {
        return;
    }
    let dir = Dir::new("sched-check-name");
    let script = dir.path("axis-loop");
    std::fs::write(&script, "read line\n").expect("writable");
    let path = script.to_str().expect("UTF-8");
    let sleeper = Sleeper::new(&format!("{PROGRAM} sched run --fifo 99 -- sh {path}"));
    crate::until("the loop", || run(["sched", "check", "axis-loop"]).status.success());
    let out = run(["sched", "check", "axis-loop", "--strict"]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let page = stdout(&out);
    assert!(page.contains("SCHED_FIFO 99: as high as the kernel's own"), "{page}");
    assert!(page.contains("conflict"), "{page}");
    drop(sleeper);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let with = |args: &[&str]| run(["sched", "run"].iter().chain(args).chain(&["--", "true"]));
    refused(&with(&["--batch", "--idle"]), &["--idle"]);
    refused(&with(&["--idle", "--nice", "3"]), &["--nice 3", "--batch"]);
    refused(&with(&["--fifo", "3", "--nice", "3"]), &["--nice 3", "--other"]);
    refused(&with(&["--batch", "--reset-on-fork"]), &["SCHED_BATCH", "leave the option out"]);
    refused(&run(["sched", "run", "--", "true"]), &["nothing to set", "--fifo"]);
    refused(&run(["sched", "run", "--fifo", "100", "--", "true"]), &["100", "1..=99"]);
    refused(&run(["sched", "run", "--fifo", "1", "--rr", "2", "--", "true"]), &["--rr"]);
    refused(&run(["sched", "run", "--deadline", "2ms:1ms", "--", "true"]), &["in that order"]);
    refused(&run(["sched", "run", "--cpu", "9999", "--", "true"]), &["--cpu 9999"]);
    refused(&run(["sched", "run", "--reset-on-fork", "--cpu", "0", "--", "true"]), &["policy"]);
    refused(
        &run(["sched", "run", "--user", "no such", "--other", "--", "true"]),
        &["no such user"],
    );
    refused(&run(["sched", "set", "--other", "4194305"]), &["no such thread"]);
    refused(&run(["sched", "show", "4194305"]), &["no process 4194305 runs"]);
}
