//! A control group with a small real-time budget: said before the run, in the result and after it.
//!
//! Makes a group of the controller `cpu` (version 1, `CONFIG_RT_GROUP_SCHED`) where the kernel has
//! that, puts the program into it, and removes it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use punctual_testkit::skip;

use crate::support::{Dir, json_file, punctual, stderr};

/// A group whose real-time tasks may use a tenth of each CPU.
struct Group(PathBuf);

impl Group {
    fn make() -> Option<Self> {
        let name = format!("punctual-budget-{}", std::process::id());
        let group = Self(PathBuf::from("/sys/fs/cgroup/cpu").join(name));
        fs::create_dir(&group.0).ok()?;
        fs::write(group.0.join("cpu.rt_runtime_us"), "100000").ok()?;
        Some(group)
    }

    /// The program in this group.
    fn run(&self, args: &[&str]) -> Output {
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"echo $$ > "$0"; exec "$@""#]).arg(self.0.join("cgroup.procs"));
        shell.arg(punctual().get_program()).args(args).output().expect("a shell")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _not_made = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_small_budget_of_the_control_group_is_said_before_and_after() {
    let group = Group::make();
    if !skip::need_device("a control group with a real-time budget", group.is_some()) {
        return;
    }
    let group = group.expect("made");
    let dir = Dir::new("cgroup-budget");
    let (json, tasks) = (dir.path("result.json"), dir.path("tasks.toml"));
    let json_arg = json.to_str().expect("UTF-8");
    let text = "of this control group may use only 10";
    let out = group.run(&[
        "measure",
        "periodic",
        "--wait",
        "spin",
        "--duration",
        "1s",
        "--json",
        json_arg,
    ]);
    let said = stderr(&out);
    assert!(said.contains(text) && said.contains("will stop them for up to 900"), "{said}");
    let warnings = json_file(&json)["warnings"].to_string();
    assert!(warnings.contains("will stop them") && warnings.contains(text), "{warnings}");
    // What the tasks of a file will take is not known.
    fs::write(&tasks, "[[task]]\nname = \"a\"\nperiod = \"5ms\"\n").expect("writable");
    let tasks = tasks.to_str().expect("UTF-8");
    let out = group.run(&["run", tasks, "--duration", "100ms", "--json", json_arg]);
    for said in [stderr(&out), json_file(&json)["warnings"].to_string()] {
        assert!(said.contains(text) && said.contains("up to 900"), "{said}");
    }
}
