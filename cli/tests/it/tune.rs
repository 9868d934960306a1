//! `punctual tune`: verdicts and plans of this machine and of captured ones.
//!
//! `punctual tune apply`, `verify`, `revert`, `status`: on directories that stand for machines.
//!
//! `tune apply --boot` and `revert` with a boot loader's program that fails, or during which
//! everything ends; and a boot that cannot be told from an earlier one. In a mount namespace of
//! their own, where the boot loader's files and its program are the test's.
//!
//! `tune experiment` on this machine, with a setting that disturbs nobody: what it says, and that
//! everything is as before, also after a signal and a kill.
//!
//! The journals of `punctual tune`: whose they are, what they may say, and one directory of them at
//! a time; on directories that stand for machines.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use punctual_os::process::EndSignal;
use punctual_testkit::skip;
use serde_json::Value;

use crate::{
    Dir, KernelSetting, PROGRAM, json, punctual, refused, run, settings_of_this_machine, signal,
    stderr, stdout, until,
};

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
    let verdicts = result["verdicts"].as_array().expect("verdicts");
    verdicts
        .iter()
        .find(|entry| entry["knob"] == knob)
        .unwrap_or_else(|| panic!("no verdict of {knob}"))
}

#[test]
fn parameters_that_do_nothing_are_named_with_the_reason() {
    let result = check("smt-desktop-8cpu", &["--cpus", "4-7"]);
    for (knob, wanted) in [
        ("isolcpus", "no-effect"),
        ("kthread_cpus", "no-effect"),
        ("workqueue.cpumask", "no-effect"),
        ("noirqbalance", "no-effect"),
        ("loglevl", "unknown"),
        ("strange.name", "unknown"),
        ("pcie_aspm", "no-effect"),
        ("rcu_nocbs", "no-effect"),
        ("processor.max_cstate", "no-effect"),
        ("cpuidle.off", "no-effect"),
        ("amd_pstate", "no-effect"),
        ("rcutree.nohz_full_patience_delay", "no-effect"),
        ("workqueue.unbound_cpus", "no-effect"),
        ("IRQBALANCE_BANNED_CPUS", "conflict"),
        ("nohz_full", "conflict"),
        ("intel_idle.max_cstate", "conflict"),
        ("idle", "conflict"),
        ("irqpoll", "conflict"),
        ("mitigations", "conflict"),
        ("preempt", "conflict"),
        ("smt", "improve"),
    ] {
        let row = verdict(&result, knob);
        assert_eq!(row["verdict"], wanted, "{row}");
        for key in ["id", "found", "origin", "why", "source"] {
            assert!(row[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {row}");
        }
        assert!(
            row.get("since").is_some() && row.get("until").is_some() && row.get("cost").is_some()
        );
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
    let lookup = |name: &str| check(name, &["--cpus", "1"]);
    let (before, after) = (lookup("debian-rt-guest-2cpu"), lookup("debian-rt-guest-2cpu-tuned"));
    let open = |result: &Value| -> Vec<String> {
        let verdicts = result["verdicts"].as_array().expect("verdicts");
        let open =
            |lookup: &&Value| lookup["verdict"] == "improve" || lookup["verdict"] == "needs-reboot";
        verdicts
            .iter()
            .filter(open)
            .map(|lookup| lookup["knob"].as_str().expect("a name").to_owned())
            .collect()
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
    // The plan is for the same workload as the judgement.
    let page = stdout(&run(["tune", "check", "--for", "linuxcnc", "--root", &bad]));
    let joined = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.ends_with("--for step-generation"), "{page}");
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
        let verdicts = result["verdicts"].as_array().expect("verdicts");
        // Which interrupts arrive changes from second to second.
        let others = verdicts.iter().filter(|entry| entry["knob"] != "smp_affinity_list");
        let text = |entry: &Value, key: &str| entry[key].as_str().expect("text").to_owned();
        others.map(|entry| (text(entry, "knob"), text(entry, "verdict"))).collect()
    };
    let own = || knobs(&json(&run(["tune", "check", "--json", "-"])));
    let mut tries = 0;
    let _turn = settings_of_this_machine();
    // Others than tests may change settings too.
    until("settings that stay as they are", || {
        tries += 1;
        let out = dir.path(&format!("machine-{tries}"));
        let out = out.to_str().expect("UTF-8");
        let before = own();
        assert_eq!(run(["capture", out]).status.code(), Some(0));
        let still = own() == before;
        let captured = json(&run(["tune", "check", "--json", "-", "--root", out]));
        assert!(!still || knobs(&captured) == before, "{before:?} {captured}");
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
    // What takes no reboot comes first, by hand too; what takes one stands together at the end.
    assert!(runtime.contains("\nby hand, without a reboot:\n"), "{runtime}");
    assert!(!boot.contains("without a reboot") && boot.contains("by hand, for the next boot:"));
    let place = |knob: &str| diff.find(&format!("\n# {knob}: ")).expect(knob);
    assert!(place("pm_qos_resume_latency_us") < place("kernel.sched_rt_runtime_us"), "{diff}");
    assert!(place("kernel.sched_rt_runtime_us") < place("vm.stat_interval"), "{diff}");
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
    // Its plugin sysfs refuses what is not below /sys.
    let (_, sysfs) = tuned.split_once("[sysfs]\n").expect("a section");
    let (sysfs, rest) = sysfs.split_once("\n\n").expect("another behind it");
    assert!(sysfs.lines().all(|line| line.starts_with("/sys/")), "{tuned}");
    let irq = "\n[irq_0]\ntype=irq\ndevices=irq";
    assert!(rest.contains(irq) && rest.contains("\naffinity=0-2,4-6\n"), "{tuned}");
    assert!(rest.contains("DEFAULT") && !tuned.contains("/proc/"), "{tuned}");
    assert!(plan("ansible").contains("ansible.posix.sysctl:"));
    let steps = json(&run(["tune", "plan", "--root", &root, "--json", "-"]));
    assert!(steps["runtime"].as_array().is_some_and(|steps| !steps.is_empty()), "{steps}");
}

#[test]
fn a_plan_has_what_is_good_only_when_it_is_wanted() {
    let root = machine("smt-desktop-8cpu");
    let plan = |more: &[&str]| {
        let words = ["tune", "plan", "--cpus", "3,7", "--for", "servo", "--root", &root];
        let out = run(words.iter().chain(more));
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        stdout(&out)
    };
    let (short, long) = (plan(&[]), plan(&["-v"]));
    let tracer = "no loop is less late by: CONFIG_TIMERLAT_TRACER (--verbose)";
    assert!(short.contains(tracer) && !short.contains("not-applicable"), "{short}");
    assert!(!long.contains(tracer) && long.contains("CONFIG_TIMERLAT_TRACER: not built in"));
    for words in ["\ngood\n", "\nnot-applicable\n", "rule: "] {
        assert!(long.contains(words) && !short.contains(words), "{words:?} in {long}");
    }
}

#[test]
fn a_boot_parameter_of_the_plan_is_a_setting_that_could_be_better() {
    let machines = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines");
    let entries = fs::read_dir(machines).expect("a directory").flatten();
    let machines = entries.filter(|entry| entry.path().is_dir());
    let names: Vec<String> =
        machines.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
    let is_at_boot = |change: &Value| change["kind"] == "boot" || change["kind"] == "remove";
    let mut planned = 0;
    for name in &names {
        for workload in ["linuxcnc", "servo", "audio", "polling", "vm-guest"] {
            let result = check(name, &["--for", workload]);
            let verdicts = result["verdicts"].as_array().expect("verdicts");
            let root = machine(name);
            let args = ["tune", "plan", "--for", workload, "--root", &root, "--json", "-"];
            let plan = json(&run(args));
            for step in plan["boot"].as_array().expect("steps") {
                let wants = |row: &&Value| {
                    row["changes"]
                        .as_array()
                        .is_some_and(|changes| changes.contains(&step["change"]))
                };
                let is_unknown = verdict(&result, step["knob"].as_str().expect("a name"))["verdict"]
                    == "unknown";
                let said = verdicts.iter().find(wants).map(|row| &row["verdict"]);
                let is_open = said.is_some_and(|word| {
                    ["conflict", "no-effect", "improve", "needs-reboot"].iter().any(|w| word == w)
                });
                assert!(is_open || is_unknown, "{name} {workload}: {step} {said:?}");
                planned += 1;
            }
            // And the plan has each that is wanted.
            let open = ["conflict", "no-effect", "improve", "needs-reboot"];
            let is_open = |row: &&Value| open.iter().any(|word| row["verdict"] == *word);
            for row in verdicts.iter().filter(is_open) {
                let wanted = row["changes"].as_array().expect("changes").iter();
                for change in wanted.filter(|change| is_at_boot(change)) {
                    let is_it = |step: &Value| step["change"]["name"] == change["name"];
                    let is_planned =
                        plan["boot"].as_array().is_some_and(|steps| steps.iter().any(is_it));
                    let is_dangerous = row["verdict"] == "conflict";
                    assert!(is_planned || is_dangerous, "{name} {workload}: {row}");
                }
            }
            // "Without a reboot" is said of what has a change that takes none, or none at all.
            for row in verdicts.iter().filter(|row| row["verdict"] == "improve") {
                let changes = row["changes"].as_array().expect("changes");
                assert!(changes.is_empty() || !changes.iter().all(is_at_boot), "{name}: {row}");
            }
        }
    }
    assert!(planned > 50, "{planned}");
    let guest = |more: &[&str]| {
        let result = check("debian-rt-guest-2cpu", &[&["--cpus", "1"], more].concat());
        ["rcu_nocbs", "irqaffinity"].map(|knob| verdict(&result, knob)["verdict"].clone())
    };
    assert_eq!(guest(&["--for", "linuxcnc"]), ["needs-reboot", "needs-reboot"]);
    assert_eq!(guest(&[]), ["not-applicable", "not-applicable"]);
}

#[test]
fn only_what_makes_a_loop_less_late_is_counted() {
    let root = machine("smt-desktop-8cpu");
    let args = ["tune", "check", "--cpus", "3,7", "--root", &root];
    let result = json(&run(args.into_iter().chain(["--json", "-"])));
    let open = |row: &&Value| {
        let words = ["conflict", "no-effect", "improve", "needs-reboot"];
        words.iter().any(|word| row["verdict"] == *word)
    };
    let verdicts = result["verdicts"].as_array().expect("verdicts");
    let (helping, others): (Vec<&Value>, Vec<&Value>) =
        verdicts.iter().filter(open).partition(|row| row["gain"].as_u64() > Some(0));
    assert!(others.iter().any(|row| row["knob"] == "CONFIG_TIMERLAT_TRACER"), "{others:?}");
    let page = stdout(&run(args));
    let line = format!("\n{} settings could be better", helping.len());
    assert!(page.contains(&line), "{line} {page}");
}

#[test]
fn whole_cores_are_chosen_for_loops() {
    let plan = |name: &str, args: &[&str]| {
        let root = machine(name);
        let words = ["tune", "plan", "--for", "servo", "--as", "cmdline", "--root", &root];
        let out = run(words.iter().chain(args));
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        stdout(&out)
    };
    for (name, args, isolated) in [
        ("laptop-intel-pstate", &["--cpus", "half"][..], "5-7"),
        ("laptop-intel-pstate", &["--loops", "5"], "2-7"),
        ("smt-desktop-8cpu", &["--cpus", "half"], "2-3,6-7"),
        ("smt-desktop-8cpu", &["--loops", "1"], "3,7"),
        ("debian-rt-guest-2cpu", &["--cpus", "half"], "1"),
    ] {
        let line = plan(name, args);
        let wanted = format!("isolcpus=domain,managed_irq,{isolated}");
        assert!(line.split_whitespace().any(|word| word == wanted), "{name} {args:?}: {line}");
    }
    let check = |args: &[&str]| {
        let root = machine("debian-rt-guest-2cpu");
        run(["tune", "check", "--root", &root].iter().chain(args))
    };
    let shown = stdout(&check(&["--cpus", "half"]));
    assert!(shown.contains("half of the cores, the last ones"), "{shown}");
    refused(&check(&["--loops", "2"]), &["--loops 2", "2 whole cores", "1 that can be spared"]);
    refused(&check(&["--loops", "0"]), &["--loops", "1..="]);
    refused(&check(&["--loops", "1", "--cpus", "1"]), &["--cpus", "--loops"]);
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

/// Files by their paths, with their bytes.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// The files of a directory with their bytes.
pub(crate) fn files(under: &Path) -> Files {
    let mut found = Files::new();
    for entry in fs::read_dir(under).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.display().to_string(), fs::read(&path).expect("readable"));
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("writable");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &copied);
        } else {
            fs::copy(&path, &copied).expect("copied");
        }
    }
}

/// A directory that stands for a machine of the fixtures, the laptop, and one for the journal.
pub(crate) struct Laptop {
    _dir: Dir,
    pub(crate) root: String,
    pub(crate) state: String,
}

impl Laptop {
    pub(crate) fn new(name: &str) -> Self {
        Self::of(name, "laptop-intel-pstate")
    }

    fn of(name: &str, machine: &str) -> Self {
        let dir = Dir::new(name);
        let machines = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines");
        let root = dir.path("machine");
        copy(&Path::new(machines).join(machine), &root);
        let state = dir.path("state").display().to_string();
        Self { _dir: dir, root: root.display().to_string(), state }
    }

    pub(crate) fn tune(&self, command: &str) -> Output {
        run(["tune", command, "--root", &self.root, "--state", &self.state])
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(Path::new(&self.root).join(path)).expect("readable")
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(Path::new(&self.root).join(path), text).expect("writable");
    }
}

const SWAPPINESS: &str = "proc/sys/vm/swappiness";
const HUGE_PAGES: &str = "sys/kernel/mm/transparent_hugepage/enabled";

#[test]
fn what_was_applied_is_shown_verified_and_put_back_exactly() {
    let laptop = Laptop::new("tune-apply");
    let before = files(Path::new(&laptop.root));
    assert!(stdout(&laptop.tune("status")).contains("nothing is applied"));
    let applied = laptop.tune("apply");
    assert_eq!(applied.status.code(), Some(0), "{}{}", stdout(&applied), stderr(&applied));
    assert_eq!(laptop.text(SWAPPINESS), "10\n");
    assert_eq!(laptop.text(HUGE_PAGES), "madvise\n");
    let page = stdout(&applied);
    assert!(page.contains("swappiness: 10\n") && page.contains("not applied: "), "{page}");
    let undo = format!("tune revert --root {} --state {}\n", laptop.root, laptop.state);
    assert!(page.contains(&undo), "{page}");
    let status = stdout(&laptop.tune("status"));
    assert!(status.contains("/proc/sys/vm/swappiness: 60 -> 10: as applied\n"), "{status}");
    // Its command line has parameters that do nothing: that is not in effect.
    let verified = laptop.tune("verify");
    let page = stdout(&verified);
    assert_eq!(verified.status.code(), Some(1), "{page}");
    assert!(page.contains("/proc/sys/vm/swappiness: in effect\n"), "{page}");
    assert!(page.contains("preempt: no-effect: preempt=none"), "{page}");
    let irq = "/proc/irq/120/smp_affinity_list: set: takes effect at its next interrupt (CPU 7";
    assert!(page.contains(irq), "a directory has no next interrupt: {page}");
    assert!(!page.contains("without effect"), "{page}");
    // Each line is counted once, as what it is.
    let (applied, booted) = counted_lines(&page);
    assert!(applied > 1 && booted >= 1, "{page}");
    let good = applied - 1;
    let summary = summary(&page);
    let expected = format!(
        "{good} of {applied} settings that were applied are in effect, 1 waits for its next \
         interrupt; "
    );
    assert!(summary.starts_with(&expected), "{summary}: {page}");
    assert!(summary.contains(&format!(" of {booted} parameter")), "{summary}: {page}");
    let again = stdout(&laptop.tune("apply"));
    assert!(again.contains("0 settings changed"), "{again}");
    let reverted = laptop.tune("revert");
    assert_eq!(reverted.status.code(), Some(0), "{}", stdout(&reverted));
    assert_eq!(files(Path::new(&laptop.root)), before);
    assert!(stdout(&laptop.tune("revert")).contains("nothing is applied"));
}

/// The sentences of `verify` below its lines.
fn summary(page: &str) -> String {
    let (_, summary) = page.split_once("\n\n").unwrap_or_else(|| panic!("no summary: {page}"));
    summary.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The lines of `verify` about files, and those about parameters.
fn counted_lines(page: &str) -> (usize, usize) {
    let lines: Vec<&str> = page.lines().take_while(|line| !line.is_empty()).collect();
    let files = lines.iter().filter(|line| line.starts_with('/')).count();
    (files, lines.len() - files)
}

/// `verify` without options looks at the CPU that would be measured, `apply` had another one.
#[test]
fn what_was_applied_for_other_cpus_is_in_effect() {
    let laptop = Laptop::new("tune-other-cpus");
    let place = ["--root", laptop.root.as_str(), "--state", laptop.state.as_str()];
    let scope = ["tune", "apply", "--cpus", "2", "--for", "servo"];
    let applied = stdout(&run(scope.into_iter().chain(place)));
    let page = stdout(&laptop.tune("verify"));
    for setting in ["/proc/sys/kernel/watchdog_cpumask", "/proc/irq/default_smp_affinity"] {
        assert!(applied.contains(&format!("\n{setting}: ")), "{applied}");
        assert!(page.contains(&format!("{setting}: in effect\n")), "{page}");
    }
    assert!(!page.contains("without effect"), "{page}");
}

#[test]
fn a_setting_that_was_applied_twice_is_one() {
    let laptop = Laptop::new("tune-twice");
    let before = files(Path::new(&laptop.root));
    for cpus in ["3", "2"] {
        let args = ["tune", "apply", "--cpus", cpus, "--root", &laptop.root];
        let only = ["--only", "kernel.watchdog_cpumask", "--only", "vm.swappiness"];
        let only = only.into_iter().chain(["--state", laptop.state.as_str()]);
        let out = run(args.into_iter().chain(only));
        assert_eq!(out.status.code(), Some(0), "{}{}", stdout(&out), stderr(&out));
    }
    let distinct = |page: &str| {
        let lines: Vec<&str> = page.lines().filter(|line| line.starts_with('/')).collect();
        let mut paths: Vec<&str> =
            lines.iter().filter_map(|line| Some(line.split_once(": ")?.0)).collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), lines.len(), "{page}");
        paths.len()
    };
    let standing = stdout(&laptop.tune("status"));
    let applied = distinct(&standing);
    let line = format!("{applied} of {applied} settings that were changed are as applied\n");
    assert!(applied == 2 && standing.ends_with(&line), "{standing}");
    let reverted = stdout(&laptop.tune("revert"));
    assert_eq!(distinct(&reverted), applied, "{reverted}");
    assert!(reverted.ends_with(&format!("\n{applied} settings are as before, 0 are not\n")));
    assert_eq!(files(Path::new(&laptop.root)), before);
}

#[test]
fn what_somebody_else_changed_is_left() {
    let laptop = Laptop::new("tune-changed");
    laptop.tune("apply");
    laptop.write(SWAPPINESS, "33\n");
    assert!(stdout(&laptop.tune("status")).contains("swappiness: 60 -> 10: changed since to 33"));
    let verified = stdout(&laptop.tune("verify"));
    assert!(verified.contains("changed since to 33"), "{verified}");
    let reverted = laptop.tune("revert");
    assert_eq!(reverted.status.code(), Some(1), "{}", stdout(&reverted));
    assert!(stdout(&reverted).contains("swappiness: left at 33"), "{}", stdout(&reverted));
    assert_eq!(laptop.text(SWAPPINESS), "33\n");
    assert_eq!(laptop.text(HUGE_PAGES), "[always] madvise never\n");
}

#[test]
fn a_corrupt_or_foreign_journal_is_refused_and_nothing_is_changed() {
    let laptop = Laptop::new("tune-corrupt");
    laptop.tune("apply");
    let journal = Path::new(&laptop.state).join("tune.journal");
    let good = fs::read(&journal).expect("written");
    let after = files(Path::new(&laptop.root));
    let mut bad = good.clone();
    bad[200] ^= 1;
    for (bytes, words) in [(bad, "journal is corrupt"), (b"other\n".to_vec(), "not a journal")] {
        fs::write(&journal, &bytes).expect("writable");
        for command in ["apply", "revert", "status", "verify"] {
            refused(&laptop.tune(command), &[words]);
        }
        assert_eq!(files(Path::new(&laptop.root)), after);
        assert_eq!(fs::read(&journal).expect("still there"), bytes);
    }
    // Cut off in its last line, as by a power cut: what came before is put back.
    fs::write(&journal, &good[..good.len() - 7]).expect("writable");
    assert_eq!(laptop.tune("revert").status.code(), Some(0));
    assert_eq!(laptop.text(SWAPPINESS), "60\n");
}

#[test]
fn two_at_once_exclude_each_other() {
    use std::os::fd::AsRawFd as _;
    let laptop = Laptop::new("tune-lock");
    laptop.tune("apply");
    let journal = fs::File::open(Path::new(&laptop.state).join("tune.journal")).expect("written");
    assert_eq!(punctual_os::file::try_lock(journal.as_raw_fd()), Ok(true));
    for command in ["apply", "revert"] {
        refused(&laptop.tune(command), &["'punctual isolate' is changing settings"]);
    }
    drop(journal);
    assert_eq!(laptop.tune("revert").status.code(), Some(0));
}

#[test]
fn one_setting_alone_can_be_changed() {
    let laptop = Laptop::new("tune-only");
    let before = files(Path::new(&laptop.root));
    let args = ["tune", "apply", "--only", "vm.swappiness", "--root", &laptop.root];
    let out = run(args.into_iter().chain(["--state", laptop.state.as_str()]));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(stdout(&out).contains("1 setting changed, 0 refused"), "{}", stdout(&out));
    let now = files(Path::new(&laptop.root));
    let changed: Vec<_> = now.iter().filter(|(path, bytes)| before[*path] != **bytes).collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    laptop.tune("revert");
    assert_eq!(files(Path::new(&laptop.root)), before);
    let args = ["tune", "plan", "--only", "no.such", "--root", &laptop.root];
    refused(&run(args), &["--only no.such", "no such setting"]);
}

/// The command that comes next makes the plan that is shown, and no other.
#[test]
fn the_next_command_has_every_option_of_the_plan() {
    let path = Path::new("/proc/sys/vm/stat_interval");
    if skip::need_device("/proc/sys/vm/stat_interval", path.exists()) {
        let _turn = settings_of_this_machine();
        let args = ["tune", "plan", "--cpus", "0", "--only", "vm.stat_interval", "--for", "servo"];
        let (out, interval) = (run(args), fs::read_to_string(path).expect("readable"));
        // A machine of one CPU has none to spare, another a longer interval already.
        if out.status.success() && interval.trim().parse::<u32>().is_ok_and(|s| s < 10) {
            let next = "tune apply --cpus 0 --for servo --only vm.stat_interval\n";
            assert!(stdout(&out).contains(next), "{}", stdout(&out));
        }
    }
    let laptop = Laptop::new("tune next");
    let options = "--cpus 2 --for servo --only isolcpus --only vm.swappiness";
    let place = ["--root", laptop.root.as_str(), "--state", laptop.state.as_str()];
    let page = stdout(&run(["tune", "apply"].into_iter().chain(options.split(' ')).chain(place)));
    let next = format!("tune plan {options} --root '{}'\n", laptop.root);
    assert!(page.contains("not applied: ") && page.contains(&next), "{page}");
}

/// On this machine itself: one harmless setting, which is put back.
#[test]
fn a_setting_of_this_machine_is_changed_and_put_back() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let _turn = settings_of_this_machine();
    let path = "/proc/sys/vm/stat_interval";
    let before = fs::read_to_string(path).expect("readable");
    let dir = Dir::new("tune-live");
    let state = dir.path("state").display().to_string();
    let tune = |args: &[&str]| {
        let out = run(["tune"].iter().chain(args).copied().chain(["--state", state.as_str()]));
        (out.status.code(), stdout(&out) + &stderr(&out))
    };
    let (code, page) = tune(&["apply", "--only", "vm.stat_interval"]);
    let during = fs::read_to_string(path).expect("readable");
    let (reverted, after) = tune(&["revert"]);
    assert_eq!(fs::read_to_string(path).expect("readable"), before, "{page}{after}");
    // Another test machine may have a longer interval already, or a read-only /proc/sys.
    match code {
        Some(0) if before.trim().parse::<u32>().is_ok_and(|s| s < 10) => {
            assert_eq!(during, "10\n", "{page}");
            assert!(after.contains("/proc/sys/vm/stat_interval: "), "{after}");
        }
        Some(0) => assert_eq!(during, before, "{page}"),
        _ => assert!(page.contains("refused"), "{page}"),
    }
    assert_eq!(reverted, Some(0), "{after}");
}

/// On this machine itself: a setting that virtual machines refuse even root.
#[test]
fn what_the_machine_cannot_set_is_named_and_no_failure() {
    let path = "/sys/module/pcie_aspm/parameters/policy";
    if !skip::need("root", skip::is_root()) || !skip::need_device(path, Path::new(path).exists()) {
        return;
    }
    let _turn = settings_of_this_machine();
    let before = fs::read_to_string(path).expect("readable");
    let dir = Dir::new("tune-impossible");
    let state = dir.path("state").display().to_string();
    let args = |command| ["tune", command, "--state", state.as_str()];
    let apply = || run(args("apply").into_iter().chain(["--only", "pcie_aspm.policy"]));
    let (_first, out) = (apply(), apply());
    let (page, code) = (stdout(&out), out.status.code());
    let (verified, standing) = (run(args("verify")), stdout(&run(args("status"))));
    let checked = run(args("check").into_iter().chain(["--json", "-"]));
    let planned = stdout(&run(args("plan")));
    let reverted = run(args("revert"));
    assert_eq!(fs::read_to_string(path).expect("readable"), before, "{page}");
    assert_eq!(reverted.status.code(), Some(0), "{}{}", stdout(&reverted), stderr(&reverted));
    let is_impossible = page.contains(", 1 cannot be set on this machine;");
    assert_eq!(is_impossible, page.contains(&format!("{path}: performance cannot be set here: ")));
    // What could be done was done: no failure, and the reason is still known.
    if is_impossible {
        let verified = stdout(&verified);
        let sum = "1 setting cannot be set on this machine";
        assert!(verified.contains(sum), "{verified}");
        for page in [&verified, &standing] {
            assert!(page.contains("cannot be set here: "), "{page}");
            assert!(!page.contains("as before"), "{page}");
            assert_eq!(page.matches(path).count(), 1, "applied twice, and one setting: {page}");
        }
        let checked = json(&checked);
        let mut verdicts = checked["verdicts"].as_array().expect("verdicts").iter();
        let judged = verdicts.find(|judged| judged["knob"] == "pcie_aspm.policy").expect("judged");
        assert_eq!(judged["verdict"], "not-applicable", "{judged}");
        assert!(judged["why"].as_str().expect("words").starts_with("cannot be set here: "));
        assert!(!planned.contains(path), "{planned}");
        let never = "1 setting could not be set and never changed\n";
        assert!(standing.ends_with(never), "{standing}");
        let reverted = stdout(&reverted);
        let sum = "0 settings are as before, 0 are not, 1 could not be set and never changed";
        assert!(reverted.contains(sum), "{reverted}");
        assert_eq!(reverted.matches(path).count(), 1, "{reverted}");
    }
    // A read-only /sys refuses, and that is another thing.
    let expected = if page.contains(", 0 refused") { 0 } else { 1 };
    assert_eq!(code, Some(expected), "{page}{}", stderr(&out));
}

const DROP_IN: &str = "etc/default/grub.d/90-punctual.cfg";

/// A machine with GRUB as Debian has it.
fn with_grub(name: &str) -> Laptop {
    let machine = Laptop::of(name, "smt-desktop-8cpu");
    for directory in ["etc/default/grub.d", "usr/sbin"] {
        fs::create_dir_all(Path::new(&machine.root).join(directory)).expect("writable");
    }
    machine.write("usr/sbin/update-grub", "");
    machine
}

fn apply_boot(machine: &Laptop) -> Output {
    let to = ["--cpus", "3,7", "--for", "servo", "--boot"];
    run(["tune", "apply", "--root", &machine.root, "--state", &machine.state].into_iter().chain(to))
}

#[test]
fn where_no_boot_loader_is_known_what_was_looked_for_is_named() {
    let machine = with_grub("tune-no-loader");
    let root = Path::new(&machine.root);
    fs::remove_file(root.join("usr/sbin/update-grub")).expect("there");
    let page = stdout(&apply_boot(&machine));
    assert!(page.contains("/etc/default/grub is there, and none of the programs"), "{page}");
    fs::remove_file(root.join("etc/default/grub")).expect("there");
    let applied = apply_boot(&machine);
    let page = stdout(&applied);
    assert_eq!(applied.status.code(), Some(1), "{page}");
    for place in ["/etc/default/grub", "/etc/kernel/cmdline", "/boot/loader/entries", &machine.root]
    {
        assert!(page.contains(place), "{place}: {page}");
    }
}

#[test]
fn boot_parameters_go_into_the_boot_loaders_files_and_out_again() {
    let machine = with_grub("tune-boot");
    let before = files(Path::new(&machine.root));
    let applied = apply_boot(&machine);
    let page = stdout(&applied);
    assert_eq!(applied.status.code(), Some(0), "{page}{}", stderr(&applied));
    assert!(page.contains("/etc/default/grub.d/90-punctual.cfg: "), "{page}");
    assert!(page.contains("then, on that machine: /usr/sbin/update-grub"), "{page}");
    assert!(machine.text(DROP_IN).contains(" isolcpus=domain,managed_irq,3,7"), "{page}");
    let again = stdout(&apply_boot(&machine));
    assert!(again.contains("grub.d/90-punctual.cfg: ") && again.contains(" already"), "{again}");
    let status = stdout(&machine.tune("status"));
    let of_parameter = |page: &str, end: &str| {
        page.lines().any(|line| line.contains("irqaffinity=0-2,4-6") && line.ends_with(end))
    };
    assert!(of_parameter(&status, ": not before the next boot"), "{status}");
    let verified = machine.tune("verify");
    let page = stdout(&verified);
    assert_eq!(verified.status.code(), Some(1), "{page}");
    assert!(of_parameter(&page, ": the kernel was not started with it"), "{page}");
    let waiting = page.lines().filter(|line| line.ends_with("the kernel was not started with it"));
    let waiting = waiting.count();
    // The sums of both kinds are all lines about parameters, and those of each all of it.
    let (_, parameters) = counted_lines(&page);
    let summary = summary(&page);
    let numbers = |kind: &str| -> Vec<usize> {
        let part = summary.split("; ").find(|part| part.contains(kind));
        let part = part.unwrap_or_else(|| panic!("{kind}: {summary}"));
        part.split([' ', ',']).filter_map(|word| word.parse().ok()).collect()
    };
    let [written, others] = ["that were written", "of this boot"].map(numbers);
    for counts in [&written, &others] {
        let parts = counts[0] + counts[2..].iter().sum::<usize>();
        assert_eq!(parts, counts[1], "{summary}");
    }
    assert_eq!(written[1] + others[1], parameters, "{summary}: {page}");
    assert!(waiting >= 1 && written[1] >= waiting, "{summary}: {page}");
    let reverted = machine.tune("revert");
    assert_eq!(reverted.status.code(), Some(0), "{}", stdout(&reverted));
    assert_eq!(files(Path::new(&machine.root)), before);
    assert!(stdout(&machine.tune("status")).contains("nothing is applied"));
}

#[test]
fn a_boot_file_that_somebody_else_changed_is_left() {
    let machine = with_grub("tune-boot-changed");
    apply_boot(&machine);
    machine.write(DROP_IN, "# mine\n");
    let status = stdout(&machine.tune("status"));
    assert!(status.contains("90-punctual.cfg: changed since by somebody else"), "{status}");
    let reverted = machine.tune("revert");
    assert_eq!(reverted.status.code(), Some(1), "{}", stdout(&reverted));
    assert_eq!(machine.text(DROP_IN), "# mine\n");
}

#[test]
fn where_no_boot_loader_is_known_it_says_what_to_add() {
    let machine = Laptop::of("tune-boot-none", "smt-desktop-8cpu");
    let applied = apply_boot(&machine);
    let page = stdout(&applied);
    assert_eq!(applied.status.code(), Some(1), "{page}");
    assert!(page.contains("add to the kernel command line: "), "{page}");
    assert!(page.contains("isolcpus=domain,managed_irq,3,7"), "{page}");
    assert_eq!(machine.tune("revert").status.code(), Some(0), "what could be applied is put back");
}

/// Runs the program where these files and directories stand in the place of the machine's.
pub(crate) fn run_with(mounts: &[(&Path, &str)], args: &[&str]) -> Output {
    let mount = |(from, to): &(&Path, &str)| format!("mount --bind {} {to} && ", from.display());
    let script: String = mounts.iter().map(mount).collect();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c"]);
    command.arg(script + "exec \"$@\"").arg("sh").arg(PROGRAM);
    command.args(args).output().expect("it starts")
}

/// Returns true where file systems can be mounted, in a namespace of its own.
pub(crate) fn may_mount(dir: &Dir) -> bool {
    let able = skip::is_root() && {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "mount", "--bind"]);
        let probe = command.arg(&dir.0).arg("/etc/default").output();
        probe.is_ok_and(|output| output.status.success())
    };
    skip::need("root that may mount", able)
}

/// A machine with GRUB in the place of this one's boot loader.
struct Grub {
    dir: Dir,
    state: String,
}

const DROP_IN_BELOW_ETC: &str = "default/grub.d/90-punctual.cfg";

impl Grub {
    fn new(name: &str) -> Self {
        let dir = Dir::new(name);
        for made in ["default/grub.d", "sbin", "boot"] {
            fs::create_dir_all(dir.path(made)).expect("writable");
        }
        fs::write(dir.path("default/grub"), "GRUB_CMDLINE_LINUX=quiet\n").expect("writable");
        let state = dir.path("state").display().to_string();
        Self { dir, state }
    }

    /// Sets the script that update-grub runs.
    fn program(&self, script: &str) {
        let at = self.dir.path("sbin/update-grub");
        fs::write(&at, format!("#!/bin/sh\n{script}\n")).expect("writable");
        fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).expect("ours");
    }

    fn tune(&self, args: &[&str]) -> Output {
        let at = |name: &str| self.dir.path(name);
        let (default, sbin, boot) = (at("default"), at("sbin"), at("boot"));
        let mounts = [
            (default.as_path(), "/etc/default"),
            (sbin.as_path(), "/usr/sbin"),
            (boot.as_path(), "/boot"),
        ];
        let words: Vec<&str> =
            ["tune"].iter().chain(args).copied().chain(["--state", &self.state]).collect();
        run_with(&mounts, &words)
    }
}

#[test]
fn the_boot_loaders_program_runs_again_until_it_has_succeeded() {
    let grub = Grub::new("tune-grub");
    let enough = Path::new("/boot").is_dir() && Path::new("/usr/sbin").is_dir();
    if !may_mount(&grub.dir) || !skip::need_device("directories of a boot loader", enough) {
        return;
    }
    let _turn = settings_of_this_machine();
    let ran = grub.dir.path("ran");
    let runs = || fs::read_to_string(&ran).unwrap_or_default().lines().count();
    let counted = format!("echo >> {}", ran.display());
    grub.program(&counted);
    let apply = ["apply", "--boot", "--cpus", "0", "--for", "servo", "--only", "isolcpus"];
    let applied = grub.tune(&apply);
    if !skip::need_device("a boot parameter to change", grub.dir.path(DROP_IN_BELOW_ETC).exists()) {
        return;
    }
    assert_eq!(applied.status.code(), Some(0), "{}{}", stdout(&applied), stderr(&applied));
    assert_eq!(runs(), 1);
    // It fails; everything ends while it runs.
    for (script, code) in [("exit 3", Some(1)), ("kill -KILL $PPID", None)] {
        grub.program(&format!("{counted}\n{script}"));
        let before = runs();
        let reverted = grub.tune(&["revert"]);
        assert_eq!(reverted.status.code(), code, "{}", stdout(&reverted));
        assert_eq!(runs(), before + 1, "{script}");
        assert!(!grub.dir.path(DROP_IN_BELOW_ETC).exists());
        let journal = fs::read(grub.dir.path("state/boot.journal")).expect("there");
        assert!(!journal.is_empty(), "{script}: what is left to do is not forgotten");
    }
    grub.program(&counted);
    let reverted = grub.tune(&["revert"]);
    let page = stdout(&reverted);
    assert_eq!(reverted.status.code(), Some(0), "{page}{}", stderr(&reverted));
    assert!(page.contains("ran /usr/sbin/update-grub"), "{page}");
    assert_eq!(runs(), 4);
    let again = stdout(&grub.tune(&["revert"]));
    assert!(again.contains("nothing is applied"), "{again}");
    assert_eq!(runs(), 4);
    // It fails, and somebody edits the file before it is run again.
    assert_eq!(grub.tune(&apply).status.code(), Some(0));
    grub.program(&format!("{counted}\nexit 3"));
    assert_eq!(grub.tune(&["revert"]).status.code(), Some(1));
    fs::write(grub.dir.path(DROP_IN_BELOW_ETC), "# mine\n").expect("writable");
    let journal = || fs::read(grub.dir.path("state/boot.journal")).expect("there");
    let failed = stdout(&grub.tune(&["revert"]));
    assert!(failed.contains("update-grub failed: ") && !journal().is_empty(), "{failed}");
    grub.program(&counted);
    let page = stdout(&grub.tune(&["revert"]));
    assert!(page.contains("left: changed since") && page.contains("ran /usr/sbin/"), "{page}");
    assert_eq!((runs(), journal().len()), (8, 0));
    assert_eq!(fs::read_to_string(grub.dir.path(DROP_IN_BELOW_ETC)).expect("theirs"), "# mine\n");
}

#[test]
fn a_boot_that_cannot_be_told_is_not_taken_for_a_later_one() {
    let dir = Dir::new("tune-unknown-boot");
    if !may_mount(&dir) {
        return;
    }
    let _turn = settings_of_this_machine();
    let path = "/proc/sys/vm/stat_interval";
    let text = || fs::read_to_string(path).expect("readable");
    let (before, state) = (text(), dir.path("state").display().to_string());
    let empty = dir.path("empty");
    fs::create_dir(&empty).expect("writable");
    let hidden = [(empty.as_path(), "/proc/sys/kernel/random")];
    let apply = ["tune", "apply", "--only", "vm.stat_interval", "--state", &state];
    let out = run_with(&hidden, &apply);
    assert_eq!((out.status.code(), text()), (Some(2), before.clone()), "{}", stdout(&out));
    let applied = run_with(&[], &apply);
    let during = text();
    let journal = || fs::read(dir.path("state/tune.journal")).expect("there");
    let kept = journal();
    let out = run_with(&hidden, &["tune", "revert", "--state", &state]);
    let (unknown, left) = (text(), journal());
    let reverted = run_with(&[], &["tune", "revert", "--state", &state]);
    assert_eq!(text(), before, "{}{}", stdout(&applied), stdout(&reverted));
    if skip::need_device("a setting that can be changed", during != before) {
        assert_eq!(out.status.code(), Some(2), "{}", stdout(&out));
        assert!(stderr(&out).contains("unknown which boot"), "{}", stderr(&out));
        assert_eq!((unknown, left), (during, kept));
        assert_eq!(reverted.status.code(), Some(0), "{}", stdout(&reverted));
    }
}

/// Settings that no other test depends on.
const HARMLESS: [(&str, &str); 2] = [
    ("vm.stat_interval", "/proc/sys/vm/stat_interval"),
    ("vm.compaction_proactiveness", "/proc/sys/vm/compaction_proactiveness"),
];

/// One that the plan of this machine would change and this process may; its file.
fn harmless() -> Option<(&'static str, &'static str)> {
    let plan = json(&run(["tune", "plan", "--json", "-"]));
    let planned = |knob: &str| {
        let steps = plan["runtime"].as_array().expect("an array").iter();
        steps.clone().any(|step| step["knob"] == knob)
    };
    let writable = |path: &str| fs::OpenOptions::new().write(true).open(path).is_ok();
    let found = HARMLESS.into_iter().find(|(knob, path)| planned(knob) && writable(path));
    skip::need_device("a setting that may be tried", found.is_some()).then_some(())?;
    found
}

#[test]
fn a_setting_is_tried_and_all_is_as_before() {
    let _turn = settings_of_this_machine();
    let Some((knob, path)) = harmless() else { return };
    let before = fs::read_to_string(path).expect("readable");
    let dir = Dir::new("tune-experiment");
    let state = dir.path("state");
    let args = ["tune", "experiment", "--only", knob, "--duration", "9s", "--json", "-"];
    let out = punctual().args(args).arg("--dry-run").arg("--state").arg(&state).output();
    let out = out.expect("it starts");
    let result = json(&out);
    assert_eq!(out.status.code(), Some(0), "{} {}", result["changed"], stderr(&out));
    assert_eq!(result["experiment"], "tune experiment");
    let setting = &result["settings"][0];
    assert_eq!(setting["knob"], knob);
    let first = &setting["first"];
    assert!(first["n_a"].as_u64() > Some(0) && first["n_b"].as_u64() > Some(0), "{first}");
    assert!(result["threshold_ns"].as_i64() > Some(0), "{result}");
    assert_eq!(result["kept"].as_array().map(Vec::len), Some(0));
    assert_eq!(fs::read_to_string(path).expect("readable"), before);
    let journal = fs::read(state.join("experiment.journal")).expect("it was locked");
    assert!(journal.is_empty());
}

#[test]
fn causes_of_late_wakes_are_told_with_and_without_a_setting() {
    let _turn = settings_of_this_machine();
    let Some((knob, path)) = harmless() else { return };
    if !skip::need_tracing() {
        return;
    }
    let before = fs::read_to_string(path).expect("readable");
    let dir = Dir::new("tune-experiment-blame");
    let state = dir.path("state");
    for (when, duration, place) in [("on", "9s", "within"), ("auto", "24s", "behind")] {
        let args = ["tune", "experiment", "--only", knob, "--duration", duration, "--json", "-"];
        let mut command = punctual();
        command.args(args).args(["--dry-run", "--blame", when, "--state"]).arg(&state);
        let out = command.output().expect("it starts");
        let result = json(&out);
        assert_eq!(out.status.code(), Some(0), "{} {}", result["changed"], stderr(&out));
        let recording = &result["blame"];
        assert_eq!((&recording["is_recorded"], &recording["place"]), (&true.into(), &place.into()));
        let sentence = result["sentence"].as_str().expect("without any");
        assert_eq!(sentence.starts_with("recorded in "), place == "behind", "{sentence}");
        for cause in result["settings"][0]["causes"].as_array().into_iter().flatten() {
            let rate = &cause["rate"];
            assert!(rate["n_a"].as_u64() > Some(0) && rate["n_b"].as_u64() > Some(0), "{cause}");
        }
        assert_eq!(fs::read_to_string(path).expect("readable"), before, "{when}");
    }
}

#[test]
fn a_setting_that_somebody_else_changes_meanwhile_is_void_and_left() {
    let _turn = settings_of_this_machine();
    let Some((knob, path)) = harmless() else { return };
    let setting = KernelSetting::of(path);
    let dir = Dir::new("tune-experiment-changed");
    let state = dir.path("state");
    let mut command = punctual();
    command.args(["tune", "experiment", "--only", knob, "--duration", "9s", "--json", "-"]);
    command.arg("--state").arg(&state).stdout(Stdio::piped());
    let child = command.spawn().expect("it starts");
    until("the setting", || setting.text() != setting.before);
    setting.set("7\n");
    let out = child.wait_with_output().expect("ours");
    let after = setting.text();
    drop(setting);
    assert_eq!(after, "7\n", "what somebody else set is left");
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let result = json(&out);
    assert_eq!(result["settings"][0]["verdict"], "void", "{result}");
    assert_eq!(result["changed"][0], format!("{path}: 7"), "{result}");
    assert_eq!(result["kept"].as_array().map(Vec::len), Some(0));
    let reason = result["verdict"]["reasons"][0].as_str().expect("a reason");
    assert!(reason.contains("changed by somebody else") && reason.contains(path), "{reason}");
}

#[test]
fn a_paper_is_measured_with_and_without_the_plan_and_all_is_as_before() {
    let _turn = settings_of_this_machine();
    if harmless().is_none() {
        return;
    }
    let dir = Dir::new("tune-reproduce");
    let state = dir.path("state");
    let files = || {
        let paths = HARMLESS.map(|(_, path)| path);
        let more = ["/proc/irq/default_smp_affinity", "/proc/sys/kernel/timer_migration"];
        paths.into_iter().chain(more).map(fs::read_to_string).collect::<Result<Vec<_>, _>>().ok()
    };
    let before = files();
    let args = ["reproduce", "linuxcnc", "--quick", "--tune", "--json", "-", "--state"];
    let out = punctual().args(args).arg(&state).output().expect("it starts");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    let rows = result["rows"].as_array().expect("rows");
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("{id}"));
    for name in ["idle", "idle-tuned", "linuxcnc", "linuxcnc-tuned"] {
        assert!(row(&format!("linuxcnc.{name}.latency"))["measured"].is_f64(), "{result}");
    }
    let note = |id: &str| row(id)["note"].as_str().expect("a note");
    assert!(note("linuxcnc.idle-tuned.latency").contains("those changed at run time"), "{result}");
    assert!(note("linuxcnc.tuned").starts_with("/"), "{result}");
    assert!(row("linuxcnc.tuned")["measured"].as_f64().is_some_and(|count| count >= 1.0));
    assert_eq!(files(), before);
    assert!(fs::read(state.join("experiment.journal")).expect("it was locked").is_empty());
}

#[test]
fn an_end_in_the_middle_leaves_nothing() {
    let _turn = settings_of_this_machine();
    let Some((knob, path)) = harmless() else { return };
    let before = fs::read_to_string(path).expect("readable");
    let dir = Dir::new("tune-experiment-ended");
    let state = dir.path("state");
    for (how, code) in [(EndSignal::Interrupt, Some(130)), (EndSignal::Kill, None)] {
        let mut command = punctual();
        command.args(["tune", "experiment", "--only", knob, "--duration", "60s"]);
        let printed = dir.path("printed");
        let errors = fs::File::create(&printed).expect("writable");
        command.arg("--state").arg(&state).stdout(Stdio::null()).stderr(errors);
        let mut child = command.spawn().expect("it starts");
        let journal = state.join("experiment.journal");
        // In a block with the setting, or while it is tried for a moment before any block.
        let applied = || {
            let ended = child.try_wait().expect("ours");
            assert!(ended.is_none(), "{ended:?}: {:?}", fs::read_to_string(&printed));
            let journal = fs::read_to_string(&journal).unwrap_or_default();
            journal.contains(path) && fs::read_to_string(path).expect("readable") != before
        };
        until("the setting", applied);
        signal(&child, how);
        assert_eq!(child.wait().expect("ours").code(), code, "{how:?}");
        if how == EndSignal::Kill {
            let out = punctual().args(["tune", "revert", "--state"]).arg(&state).output();
            assert_eq!(out.expect("it starts").status.code(), Some(0));
        }
        assert_eq!(fs::read_to_string(path).expect("readable"), before, "{how:?}");
    }
}

#[test]
fn what_could_not_be_kept_in_the_end_is_refused_at_the_beginning() {
    let _turn = settings_of_this_machine();
    let Some((knob, path)) = harmless() else { return };
    let before = fs::read_to_string(path).expect("readable");
    let laptop = Laptop::new("tune-experiment-keep");
    assert_eq!(laptop.tune("apply").status.code(), Some(0));
    // Too short for an experiment, which is found out later.
    let args = ["tune", "experiment", "--only", knob, "--duration", "1s", "--state"];
    let experiment = || run(args.iter().copied().chain([laptop.state.as_str()]));
    refused(&experiment(), &["tune.journal", "it is about files of ", &laptop.root]);
    assert_eq!(laptop.tune("revert").status.code(), Some(0));
    refused(&experiment(), &["1 setting takes at least 8.0 s"]);
    // Blocks behind the measurement take a tenth of it.
    let behind = args.iter().copied().chain([laptop.state.as_str(), "--blame", "auto"]);
    refused(&run(behind), &["1 setting takes at least 8.8 s"]);
    assert_eq!(fs::read_to_string(path).expect("readable"), before);
}

#[test]
fn an_error_in_the_middle_leaves_the_result_so_far() {
    let _turn = settings_of_this_machine();
    let Some((knob, path)) = harmless() else { return };
    let text = || fs::read_to_string(path).expect("readable");
    let (before, dir) = (text(), Dir::new("tune-experiment-error"));
    let state = dir.path("state");
    let mut command = punctual();
    command.args(["tune", "experiment", "--only", knob, "--duration", "9s", "--json", "-"]);
    command.arg("--state").arg(&state).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    let tasks = format!("/proc/{}/task", child.id());
    let threads = || fs::read_dir(&tasks).map_or(0, Iterator::count);
    // Not while it is tried for a moment before any block.
    until("the setting in a block", || text() != before && threads() > 1);
    let journal = state.join("experiment.journal");
    let file = fs::OpenOptions::new().append(true).open(journal).expect("there");
    { file }.write_all(b"somebody else's line\n").expect("writable");
    let out = child.wait_with_output().expect("ours");
    fs::write(path, &before).expect("writable");
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    assert!(stderr(&out).contains("journal is corrupt"), "{}", stderr(&out));
    let result = json(&out);
    assert_eq!(result["experiment"], "tune experiment", "{result}");
    assert_eq!(result["incomplete"], true, "{result}");
    assert!(result["threshold_ns"].as_i64() > Some(0), "{result}");
}

#[test]
fn what_cannot_be_tried_is_refused() {
    let refused = |args: &[&str], why: &str| {
        let out = run(["tune", "experiment"].iter().chain(args));
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(stderr(&out).contains(why), "{args:?}: {}", stderr(&out));
    };
    refused(&["--tail", "p100"], "neither a time (50us) nor a quantile");
    refused(&["--tail", "soon"], "neither a time (50us) nor a quantile");
    refused(&["--only", "no.such"], "no such setting");
    refused(&["--root", "/nowhere"], "--root: settings are tried on this machine only");
    let _turn = settings_of_this_machine();
    let Some((knob, _)) = harmless() else { return };
    let dir = Dir::new("tune-experiment-short");
    let state = dir.path("state").display().to_string();
    refused(
        &["--only", knob, "--duration", "1s", "--state", &state],
        "1 setting takes at least 8.0 s; try fewer with --only",
    );
}

const COMMANDS: [&str; 4] = ["apply", "revert", "status", "verify"];

fn journal(laptop: &Laptop) -> PathBuf {
    Path::new(&laptop.state).join("tune.journal")
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).expect("there").mode() & 0o777
}

/// A line of a journal, with the checksum that anybody can compute.
fn line(parts: &[&str]) -> String {
    let escaped = |part: &&str| part.replace('\t', "\\t").replace('\n', "\\n");
    let body = parts.iter().map(escaped).collect::<Vec<_>>().join("\t");
    let sum = body.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{body}\t{sum:016x}\n")
}

/// Checks that nothing obeys the journals, and nothing is changed.
fn all_refuse(laptop: &Laptop, words: &[&str]) {
    let before = files(Path::new(&laptop.root));
    for command in COMMANDS {
        refused(&laptop.tune(command), words);
    }
    assert_eq!(files(Path::new(&laptop.root)), before);
}

#[test]
fn a_journal_is_its_owners_alone_whatever_the_umask() {
    let laptop = Laptop::new("tune-journal-umask");
    let shell = format!("umask 0; exec {PROGRAM} \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &shell, "sh", "tune", "apply", "--root", &laptop.root, "--state"]);
    let out = command.arg(&laptop.state).output().expect("it starts");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert_eq!(mode(journal(&laptop)), 0o600);
    if skip::is_root() {
        assert_eq!(mode(&laptop.state), 0o755);
    }
    assert_eq!(laptop.tune("revert").status.code(), Some(0));
}

#[test]
fn a_journal_that_others_may_have_written_is_not_obeyed() {
    let laptop = Laptop::new("tune-journal-mode");
    assert_eq!(laptop.tune("apply").status.code(), Some(0));
    let journal = journal(&laptop);
    for shared in [0o666, 0o620, 0o602] {
        set_mode(&journal, shared);
        all_refuse(&laptop, &[&format!("(mode {shared:04o}, not 0600)"), "would be obeyed"]);
    }
    set_mode(&journal, 0o600);
    let second = journal.with_file_name("second");
    fs::hard_link(&journal, &second).expect("one file system");
    for command in COMMANDS {
        assert_eq!(laptop.tune(command).status.code(), Some(2), "{command}");
    }
    fs::remove_file(&second).expect("there");
    if skip::need("root", skip::is_root()) {
        chown(&journal, Some(12_345), None).expect("root may");
        all_refuse(&laptop, &["another user (uid 12345)", "would be obeyed"]);
        chown(&journal, Some(0), None).expect("root may");
        set_mode(Path::new(&laptop.state), 0o770);
        all_refuse(&laptop, &["the group ", "(mode 0770)"]);
        set_mode(Path::new(&laptop.state), 0o755);
    }
    assert_eq!(laptop.tune("revert").status.code(), Some(0));
    assert_eq!(laptop.text(SWAPPINESS), "60\n");
}

#[test]
fn a_journal_changes_nothing_but_settings() {
    let laptop = Laptop::new("tune-journal-forged");
    laptop.write("victim", "precious");
    fs::create_dir(Path::new(&laptop.root).join("empty")).expect("writable");
    let head = line(&["punctual tuning journal 1", &format!("files of {}", laptop.root)]);
    fs::create_dir(&laptop.state).expect("new");
    let foreign =
        ["/victim", "/empty/", "/proc/sys/kernel/core_pattern", "/proc/irq/../../victim", ""];
    for path in foreign {
        for name in ["tune", "isolate", "experiment", "throttling", "boot"] {
            let head = match name {
                "boot" => line(&["punctual tuning journal 1", "files of the boot loader"]),
                _ => head.clone(),
            };
            let text = head + &line(&["old", path, "evil", "precious"]);
            let at = Path::new(&laptop.state).join(format!("{name}.journal"));
            fs::write(&at, &text).expect("writable");
            set_mode(&at, 0o600);
            for command in ["revert", "status"] {
                let words = format!("it names {path}, which");
                refused(&laptop.tune(command), &[&words, "does not change"]);
            }
            assert_eq!(fs::read_to_string(&at).expect("there"), text, "kept as it is");
            assert_eq!(laptop.text("victim"), "precious");
            assert!(Path::new(&laptop.root).join("empty").is_dir());
            fs::remove_file(&at).expect("there");
        }
    }
}

#[test]
fn a_journal_of_another_machine_is_not_taken_for_an_earlier_boot() {
    let (laptop, other) = (Laptop::new("tune-journal-of"), Laptop::new("tune-journal-other"));
    assert_eq!(laptop.tune("apply").status.code(), Some(0));
    let before = fs::read(journal(&laptop)).expect("written");
    let args = ["tune", "revert", "--root", &other.root, "--state", &laptop.state];
    refused(&run(args), &["it is about files of ", &laptop.root]);
    let _turn = settings_of_this_machine();
    refused(&run(["tune", "revert", "--state", &laptop.state]), &["it is about files of "]);
    assert_eq!(fs::read(journal(&laptop)).expect("there"), before);
    assert_eq!(laptop.tune("revert").status.code(), Some(0));
    assert_eq!(laptop.text(SWAPPINESS), "60\n");
}

#[test]
fn boot_files_of_another_machine_are_not_taken_for_those_of_this_one() {
    let (machine, other) = (with_grub("tune-boot-of"), with_grub("tune-boot-other"));
    let before = files(Path::new(&machine.root));
    assert_eq!(apply_boot(&machine).status.code(), Some(0));
    let running = journal(&machine);
    fs::rename(&running, running.with_file_name("kept")).expect("ours");
    let at_boot = || fs::read(running.with_file_name("boot.journal")).expect("written");
    let written = at_boot();
    let whose = ["boot.journal", "it is about files of the boot loader of ", &machine.root];
    let args = ["tune", "revert", "--root", &other.root, "--state", &machine.state];
    refused(&run(args), &whose);
    {
        let _turn = settings_of_this_machine();
        refused(&run(["tune", "revert", "--state", &machine.state]), &whose);
    }
    // And those of this one, which have no directory.
    let head = ["punctual tuning journal 1", "files of the boot loader"];
    let of_this = line(&head) + &line(&["old", "/etc/default/grub.d/90-punctual.cfg", "", ""]);
    fs::write(running.with_file_name("boot.journal"), of_this).expect("ours");
    refused(&machine.tune("revert"), &["it is about files of the boot loader, not about"]);
    fs::write(running.with_file_name("boot.journal"), &written).expect("ours");
    fs::rename(running.with_file_name("kept"), &running).expect("ours");
    assert_eq!(at_boot(), written);
    assert_eq!(machine.tune("revert").status.code(), Some(0));
    assert_eq!(files(Path::new(&machine.root)), before);
}

#[test]
fn settings_are_changed_by_one_directory_at_a_time() {
    let laptop = Laptop::new("tune-two-states");
    let before = files(Path::new(&laptop.root));
    let applied = laptop.tune("apply");
    assert_eq!(applied.status.code(), Some(0));
    let second = format!("{}-second", laptop.state);
    let tune = |command| run(["tune", command, "--root", &laptop.root, "--state", &second]);
    let first = format!("tune revert --root {} --state {}", laptop.root, laptop.state);
    // The way back names the state, too.
    assert!(stdout(&applied).contains(&first), "{}", stdout(&applied));
    refused(&tune("apply"), &["have settings that are changed", &first]);
    // Who holds the lock is named.
    let tree = fs::metadata(&laptop.root).expect("there");
    let user = match tree.uid() {
        0 => String::new(),
        user => format!("-{user}"),
    };
    let name = format!("punctual-settings{user}-{:x}-{:x}.lock", tree.dev(), tree.ino());
    let lock = match skip::is_root() {
        true => Path::new("/run").join(name),
        false => match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
            Some(dir) if dir.is_absolute() && dir.is_dir() => dir.join(name),
            _ => Path::new(env!("CARGO_TARGET_TMPDIR")).join("state/punctual").join(name),
        },
    };
    assert_eq!(mode(&lock), 0o600);
    let held = fs::File::open(&lock).expect("it stays as long as settings are changed");
    assert_eq!(punctual_os::file::try_lock(held.as_raw_fd()), Ok(true));
    for command in ["apply", "revert"] {
        let holder = ["process ", "'punctual tune apply'", "is changing settings of "];
        refused(&laptop.tune(command), &holder);
    }
    drop(held);
    assert_eq!(laptop.tune("revert").status.code(), Some(0));
    assert!(!lock.exists(), "nothing is changed");
    assert_eq!(tune("apply").status.code(), Some(0));
    assert_eq!(tune("revert").status.code(), Some(0));
    assert_eq!(files(Path::new(&laptop.root)), before);
}

#[test]
fn whoever_changes_settings_of_this_machine_does_so_alone() {
    let _turn = settings_of_this_machine();
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let dir = Dir::new("tune-machine-lock");
    let _held = HeldLock::take();
    let (state, result) = (dir.path("state"), dir.path("result.json"));
    let (state, result) = (state.display().to_string(), result.display().to_string());
    let commands = [
        "tune apply --cpus 0 --only vm.stat_interval --state STATE",
        "tune experiment --cpus 0 --only vm.stat_interval --duration 2s --state STATE",
        "isolate --cpus 1 --state STATE -- true",
        "measure saturation --duration 1s --unsafe-no-throttle --state STATE",
        "reproduce linuxcnc --quick --tune --state STATE --json RESULT",
    ];
    // Throttling is put back by a process of the highest priority: without it all is refused.
    let can_throttle = skip::need_fifo();
    for command in commands.iter().filter(|command| can_throttle || !command.contains("throttle")) {
        let words = command.split(' ').map(|word| match word {
            "STATE" => state.as_str(),
            "RESULT" => result.as_str(),
            word => word,
        });
        let out = run(words);
        let errors = stderr(&out);
        assert_eq!(out.status.code(), Some(2), "{command}: {errors}");
        let holder = "process 1 ('punctual tune apply') is changing settings; wait until it has";
        assert!(errors.contains(holder), "{command}: {errors}");
    }
}

/// The lock of this machine, held as if by another command; as before once it is dropped.
struct HeldLock {
    file: fs::File,
    before: String,
}

impl HeldLock {
    const PATH: &str = "/run/punctual-settings.lock";

    fn take() -> Self {
        let mut held = None;
        // Who had it may have removed it before it was locked here.
        until("the lock of this machine", || {
            let mut options = fs::OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = options.open(Self::PATH).expect("root may");
            let is_ours = punctual_os::file::try_lock(file.as_raw_fd()) == Ok(true)
                && file.metadata().expect("open").nlink() == 1;
            held = is_ours.then_some(file);
            held.is_some()
        });
        let mut file = held.expect("just taken");
        let before = fs::read_to_string(Self::PATH).expect("readable");
        file.set_len(0).expect("ours");
        writeln!(file, "process 1 ('punctual tune apply')").expect("ours");
        Self { file, before }
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // The lock is released when the file is closed, after this.
        let _as_before = match self.before.is_empty() {
            true => fs::remove_file(Self::PATH),
            false => self.file.set_len(0).and_then(|()| fs::write(Self::PATH, &self.before)),
        };
    }
}

#[test]
fn a_journal_of_an_earlier_boot_may_name_what_this_one_has_not() {
    let _turn = settings_of_this_machine();
    let dir = Dir::new("tune-earlier-boot");
    let at = dir.path("isolate.journal");
    set_mode(&dir.0, 0o755);
    let journal = |boot: &str| {
        let path = "/sys/fs/cgroup/of-another-version/cpuset.cpus";
        let head = line(&["punctual tuning journal 1", boot]);
        fs::write(&at, head + &line(&["old", path, "", "1"])).expect("writable");
        set_mode(&at, 0o600);
    };
    let tune = |command: &str| punctual().args(["tune", command, "--state"]).arg(&dir.0).output();
    journal("00000000-0000-4000-8000-000000000000");
    for command in ["status", "revert"] {
        let out = tune(command).expect("it starts");
        assert_eq!(out.status.code(), Some(0), "{command}: {}", stderr(&out));
        assert!(stdout(&out).contains("the machine was restarted since"), "{}", stdout(&out));
    }
    assert!(fs::read(&at).expect("there").is_empty());
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("readable");
    journal(boot.trim());
    for command in ["status", "revert"] {
        refused(&tune(command).expect("it starts"), &["it names /sys/fs/cgroup/of-another"]);
    }
}

#[test]
fn a_directory_whose_journals_are_refused_keeps_no_other_out() {
    let laptop = Laptop::new("tune-refused-state");
    let foreign = |owner: &str| {
        line(&["punctual tuning journal 1", &format!("{owner} {}", laptop.root)])
            + &line(&["old", "/proc/sys/kernel/core_pattern", "evil", "precious"])
    };
    let second = format!("{}-second", laptop.state);
    let tune = |command| run(["tune", command, "--root", &laptop.root, "--state", &second]);
    fs::create_dir(&laptop.state).expect("new");
    set_mode(Path::new(&laptop.state), 0o755);
    for name in ["tune", "isolate", "experiment", "throttling", "boot"] {
        let at = Path::new(&laptop.state).join(format!("{name}.journal"));
        let owner = if name == "boot" { "files of the boot loader of" } else { "files of" };
        for text in ["other\n", &foreign(owner)] {
            fs::write(&at, text).expect("writable");
            set_mode(&at, 0o600);
            refused(&laptop.tune("apply"), &[]);
            let applied = tune("apply");
            assert_eq!(applied.status.code(), Some(0), "{name}: {}", stderr(&applied));
            assert_eq!(tune("revert").status.code(), Some(0), "{name}");
        }
        fs::remove_file(&at).expect("there");
    }
    assert_eq!(laptop.text(SWAPPINESS), "60\n");
}

#[test]
fn what_a_killed_command_left_goes_first() {
    let laptop = Laptop::new("tune-left");
    assert_eq!(laptop.tune("apply").status.code(), Some(0));
    let left = journal(&laptop).with_file_name("experiment.journal");
    fs::rename(journal(&laptop), &left).expect("ours");
    refused(&laptop.tune("apply"), &["a command that was killed", "tune revert --root "]);
    assert_eq!(laptop.tune("revert").status.code(), Some(0));
    assert_eq!(laptop.text(SWAPPINESS), "60\n");
}

#[test]
fn as_root_another_users_machine_is_left_alone_unless_it_is_named() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let laptop = Laptop::new("tune-foreign-tree");
    let before = files(Path::new(&laptop.root));
    chown(&laptop.root, Some(12_345), None).expect("root may");
    refused(&laptop.tune("apply"), &["another user (uid 12345)", "--trust-directory"]);
    assert_eq!(files(Path::new(&laptop.root)), before);
    let args = ["--trust-directory", &laptop.root, "tune", "apply", "--root", &laptop.root];
    let out = punctual().args(args).args(["--state", &laptop.state]).output().expect("it starts");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    refused(&laptop.tune("revert"), &["another user (uid 12345)", "--trust-directory"]);
    chown(&laptop.root, Some(0), None).expect("root may");
    // A directory in it, too.
    let vm = Path::new(&laptop.root).join("proc/sys/vm");
    chown(&vm, Some(12_345), None).expect("root may");
    let reverted = laptop.tune("revert");
    assert_eq!(reverted.status.code(), Some(1), "{}", stdout(&reverted));
    assert_eq!(laptop.text(SWAPPINESS), "10\n");
    chown(&vm, Some(0), None).expect("root may");
    assert_eq!(laptop.tune("revert").status.code(), Some(0));
    assert_eq!(files(Path::new(&laptop.root)), before);
}

#[test]
fn a_pipe_in_the_place_of_a_setting_is_not_waited_for() {
    let laptop = Laptop::new("tune-pipe");
    assert_eq!(laptop.tune("apply").status.code(), Some(0));
    let knob = Path::new(&laptop.root).join(SWAPPINESS);
    fs::remove_file(&knob).expect("there");
    assert!(Command::new("mkfifo").arg(&knob).status().expect("it starts").success());
    for command in ["status", "verify", "revert"] {
        let page = stdout(&laptop.tune(command));
        let line = page.lines().find(|line| line.contains("/proc/sys/vm/swappiness"));
        let line = line.unwrap_or_else(|| panic!("{command}: {page}"));
        assert!(line.contains("not a regular file"), "{command}: {line}");
    }
    fs::remove_file(&knob).expect("there");
    laptop.write(SWAPPINESS, "10\n");
    assert_eq!(laptop.tune("revert").status.code(), Some(0), "it stayed in the journal");
    assert_eq!(laptop.text(SWAPPINESS), "60\n");
}

#[test]
fn a_boot_file_that_is_too_long_is_not_written_from_a_part_of_it() {
    let machine = with_grub("tune-boot-long");
    let long = "# a comment\n".repeat(100_000);
    machine.write(DROP_IN, &long);
    let applied = apply_boot(&machine);
    assert_eq!(applied.status.code(), Some(1), "{}", stdout(&applied));
    assert!(stdout(&applied).contains("it has more than 1 MiB"), "{}", stdout(&applied));
    assert_eq!(machine.text(DROP_IN), long);
    machine.tune("revert");
    assert_eq!(machine.text(DROP_IN), long);
}
