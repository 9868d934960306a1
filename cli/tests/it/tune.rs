//! `punctual tune`: verdicts and plans of this machine and of captured ones.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{Dir, json, refused, run, settings_of_this_machine, stderr, stdout, until};

fn machine(name: &str) -> String {
    format!("{}/../fixtures/machines/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn check(name: &str, more: &[&str]) -> Value {
    let root = machine(name);
    let args = ["tune", "check", "--json", "-", "--root", root.as_str()];
    let out = run(args.iter().chain(more));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    json(&out)
}

fn verdict<'a>(result: &'a Value, knob: &str) -> &'a Value {
    let all = result["verdicts"].as_array().expect("verdicts");
    all.iter().find(|of| of["knob"] == knob).unwrap_or_else(|| panic!("no verdict of {knob}"))
}

#[test]
fn parameters_that_do_nothing_are_named_with_the_reason() {
    let result = check("smt-desktop-8cpu", &["--cpus", "4-7"]);
    for (knob, wanted) in [
        ("isolcpus", "no-effect"),
        ("kthread_cpus", "no-effect"),
        ("workqueue.cpumask", "no-effect"),
        ("noirqbalance", "no-effect"),
        ("loglevl", "no-effect"),
        ("strange.name", "no-effect"),
        ("pcie_aspm", "no-effect"),
        ("rcu_nocbs", "no-effect"),
        ("processor.max_cstate", "no-effect"),
        ("cpuidle.off", "no-effect"),
        ("amd_pstate", "no-effect"),
        ("rcutree.nohz_full_patience_delay", "no-effect"),
        ("workqueue.unbound_cpus", "no-effect"),
        ("IRQBALANCE_BANNED_CPUS", "no-effect"),
        ("nohz_full", "conflict"),
        ("intel_idle.max_cstate", "conflict"),
        ("idle", "conflict"),
        ("irqpoll", "conflict"),
        ("mitigations", "conflict"),
        ("preempt", "conflict"),
        ("smt", "improve"),
    ] {
        let of = verdict(&result, knob);
        assert_eq!(of["verdict"], wanted, "{of}");
        for key in ["id", "found", "origin", "why", "source"] {
            assert!(of[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {of}");
        }
        assert!(of.get("since").is_some() && of.get("until").is_some() && of.get("cost").is_some());
    }
    assert!(verdict(&result, "isolcpus")["why"].as_str().expect("text").contains("'domain'"));
    assert_eq!(result["experiment"], "tune check");
    assert_eq!(result["cpus"], "4-7");
}

#[test]
fn kernels_decide_what_a_parameter_does() {
    let seven = check("laptop-intel-pstate", &[]);
    let preempt = verdict(&seven, "preempt");
    assert_eq!(preempt["verdict"], "no-effect", "{preempt}");
    assert!(preempt["why"].as_str().expect("text").contains("7.0"), "{preempt}");
    let old = check("legacy-4cpu", &[]);
    let isolcpus = verdict(&old, "isolcpus");
    assert_eq!(isolcpus["verdict"], "no-effect", "{isolcpus}");
    assert!(isolcpus["why"].as_str().expect("text").contains("beyond the last CPU"));
    assert_eq!(verdict(&old, "fair_server")["verdict"], "not-applicable");
    assert_eq!(verdict(&check("raspberry-pi-4", &[]), "nohz_full")["verdict"], "no-effect");
    let container = check("container-unprivileged", &[]);
    assert_eq!(verdict(&container, "isolcpus")["verdict"], "unknown");
}

#[test]
fn a_guest_is_better_after_tuning_than_before() {
    let of = |name: &str| check(name, &["--cpus", "1"]);
    let (before, after) = (of("debian-rt-guest-2cpu"), of("debian-rt-guest-2cpu-tuned"));
    let open = |result: &Value| -> Vec<String> {
        let all = result["verdicts"].as_array().expect("verdicts");
        let open = |of: &&Value| of["verdict"] == "improve" || of["verdict"] == "needs-reboot";
        all.iter().filter(open).map(|of| of["knob"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(open(&before).len(), 12, "{:?}", open(&before));
    // The kernel refuses the first, a person decides about the others.
    assert_eq!(open(&after), ["pcie_aspm.policy", "machinecheck/ignore_ce", "SCHED_DEADLINE"]);
    for (knob, was) in [("isolcpus", "not-applicable"), ("irqaffinity", "not-applicable")] {
        assert_eq!(verdict(&before, knob)["verdict"], was);
        assert_eq!(verdict(&after, knob)["verdict"], "good");
    }
    assert_eq!(verdict(&before, "irqbalance")["verdict"], "improve");
    assert_eq!(verdict(&after, "rcu_nocbs")["verdict"], "good");
}

#[test]
fn strict_fails_where_something_does_nothing() {
    let bad = machine("legacy-4cpu");
    let out = run(["tune", "check", "--strict", "--root", &bad]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    assert!(stdout(&out).contains("no-effect\n  "), "{}", stdout(&out));
    let good = machine("industrial-rt-4cpu");
    let page = stdout(&run(["tune", "check", "--root", &good]));
    // The command at the end is as long as the program's path.
    let narrow = |line: &str| line.chars().count() <= 80 || line.contains(" tune plan ");
    assert!(page.contains("good: ") && page.lines().all(narrow), "{page}");
    let long = stdout(&run(["tune", "check", "-v", "--root", &good]));
    assert!(long.contains("rule: isolation.isolcpus") && long.contains("verified by:"), "{long}");
}

#[test]
fn this_machine_is_judged_and_a_capture_of_it_alike() {
    let dir = Dir::new("tune");
    let knobs = |result: &Value| -> Vec<(String, String)> {
        let all = result["verdicts"].as_array().expect("verdicts");
        // Which interrupts arrive changes from second to second.
        let others = all.iter().filter(|of| of["knob"] != "smp_affinity_list");
        let text = |of: &Value, key: &str| of[key].as_str().expect("text").to_owned();
        others.map(|of| (text(of, "knob"), text(of, "verdict"))).collect()
    };
    let here = || knobs(&json(&run(["tune", "check", "--json", "-"])));
    let mut tries = 0;
    let _turn = settings_of_this_machine();
    // Others than tests may change settings too.
    until("settings that stay as they are", || {
        tries += 1;
        let out = dir.path(&format!("machine-{tries}"));
        let out = out.to_str().expect("UTF-8");
        let before = here();
        assert_eq!(run(["capture", out]).status.code(), Some(0));
        let still = here() == before;
        let there = json(&run(["tune", "check", "--json", "-", "--root", out]));
        assert!(!still || knobs(&there) == before, "{before:?} {there}");
        still
    });
    let result = dir.path("tune.json");
    let result = result.to_str().expect("UTF-8");
    let root = machine("laptop-intel-pstate");
    run(["tune", "check", "--root", &root, "--json", result]);
    let page = dir.path("page.html");
    let made = run(["report", result, "-o", page.to_str().expect("UTF-8")]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    assert!(fs::read_to_string(page).expect("written").contains("scaling_governor"));
}

#[test]
fn plans_are_written_for_other_tools() {
    let root = machine("smt-desktop-8cpu");
    let plan = |format: &str| {
        let args = ["tune", "plan", "--cpus", "3,7", "--for", "servo", "--as", format, "--root"];
        let out = run(args.into_iter().chain([root.as_str()]));
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        stdout(&out)
    };
    let diff = plan("diff");
    let (runtime, boot) = diff.split_once("@@ at the next boot").expect("both parts");
    assert!(runtime.contains(" /proc/sys/kernel/sched_rt_runtime_us\n--1\n+950000\n"), "{diff}");
    assert!(boot.contains("-isolcpus=managed_irq,4-7\n+isolcpus=domain,managed_irq,3,7"), "{diff}");
    assert!(boot.contains("-mitigations=off\n"), "{diff}");
    let grub = plan("grub");
    assert!(grub.contains("GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT "), "{grub}");
    // As update-grub reads it, after /etc/default/grub.
    let script = format!("GRUB_CMDLINE_LINUX='irqpoll quiet'\n{grub}\necho $GRUB_CMDLINE_LINUX");
    let left = Command::new("sh").args(["-c", &script]).output().expect("sh starts");
    assert_eq!(stdout(&left), "quiet\n", "{grub}");
    let line = plan("cmdline");
    assert!(line.starts_with("BOOT_IMAGE=/boot/vmlinuz ") && line.lines().count() == 1, "{line}");
    assert!(plan("sysctl").contains("# was 60\nvm.swappiness = 10\n"));
    let unit = plan("systemd");
    assert!(unit.contains("[Service]") && unit.contains("cpuset.cpus.partition"), "{unit}");
    assert!(unit.contains("ExecStart=-/bin/sh -c \"echo n/a > /sys/"), "{unit}");
    let tuned = plan("tuned");
    assert!(tuned.contains("[sysctl]\n") && tuned.contains("cmdline_punctual="), "{tuned}");
    assert!(plan("ansible").contains("ansible.posix.sysctl:"));
    let steps = json(&run(["tune", "plan", "--root", &root, "--json", "-"]));
    assert!(steps["runtime"].as_array().is_some_and(|all| !all.is_empty()), "{steps}");
}

#[test]
fn what_cannot_be_judged_is_refused_in_one_line() {
    let root = machine("legacy-4cpu");
    refused(&run(["tune", "check", "--cpus", "9", "--root", &root]), &["--cpus 9", "no CPU 9"]);
    refused(&run(["tune", "check", "--cpus", "x", "--root", &root]), &["--cpus x", "'x'"]);
    refused(
        &run(["tune", "plan", "--cpus", "all", "--root", &root]),
        &["no CPU is left for other tasks", "0-3"],
    );
    refused(&run(["tune", "plan", "--as", "xml"]), &["xml", "ansible"]);
    refused(&run(["tune", "check", "--root", "/nonexistent"]), &["/nonexistent"]);
}
