//! `punctual tune apply`, `verify`, `revert`, `status`: on directories that stand for machines.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use punctual_testkit::skip;

use crate::support::{Dir, refused, run, settings_of_this_machine, stderr, stdout};

/// The files of a directory with their bytes.
pub(crate) fn files(under: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
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
        let (path, there) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &there);
        } else {
            fs::copy(&path, &there).expect("copied");
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

    pub(crate) fn tune(&self, command: &str) -> std::process::Output {
        run(["tune", command, "--root", &self.root, "--state", &self.state])
    }

    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(Path::new(&self.root).join(path)).expect("readable")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::write(Path::new(&self.root).join(path), text).expect("writable");
    }
}

pub(crate) const SWAPPINESS: &str = "proc/sys/vm/swappiness";
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
    assert!(status.contains("/proc/sys/vm/swappiness: 60 -> 10\n"), "{status}");
    // Its command line has parameters that do nothing: that is not in effect.
    let verified = laptop.tune("verify");
    let page = stdout(&verified);
    assert_eq!(verified.status.code(), Some(1), "{page}");
    assert!(page.contains("/proc/sys/vm/swappiness: in effect\n"), "{page}");
    assert!(page.contains("preempt: no-effect: preempt=none"), "{page}");
    let irq = "/proc/irq/120/smp_affinity_list: set: takes effect at its next interrupt (CPU 7";
    assert!(page.contains(irq), "a directory has no next interrupt: {page}");
    assert!(page.contains("next interrupt, ") && !page.contains("without effect"), "{page}");
    let again = stdout(&laptop.tune("apply"));
    assert!(again.contains("0 settings changed"), "{again}");
    let reverted = laptop.tune("revert");
    assert_eq!(reverted.status.code(), Some(0), "{}", stdout(&reverted));
    assert_eq!(files(Path::new(&laptop.root)), before);
    assert!(stdout(&laptop.tune("revert")).contains("nothing is applied"));
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
    assert!(stdout(&out).contains("1 settings changed, 0 refused"), "{}", stdout(&out));
    let now = files(Path::new(&laptop.root));
    let changed: Vec<_> = now.iter().filter(|(path, bytes)| before[*path] != **bytes).collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    laptop.tune("revert");
    assert_eq!(files(Path::new(&laptop.root)), before);
    let args = ["tune", "plan", "--only", "no.such", "--root", &laptop.root];
    refused(&run(args), &["--only no.such", "no such setting"]);
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

pub(crate) const DROP_IN: &str = "etc/default/grub.d/90-punctual.cfg";

/// A machine with GRUB as Debian has it.
pub(crate) fn with_grub(name: &str) -> Laptop {
    let machine = Laptop::of(name, "smt-desktop-8cpu");
    for directory in ["etc/default/grub.d", "usr/sbin"] {
        fs::create_dir_all(Path::new(&machine.root).join(directory)).expect("writable");
    }
    machine.write("usr/sbin/update-grub", "");
    machine
}

pub(crate) fn apply_boot(machine: &Laptop) -> std::process::Output {
    let to = ["--cpus", "3,7", "--for", "servo", "--boot"];
    run(["tune", "apply", "--root", &machine.root, "--state", &machine.state].into_iter().chain(to))
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
    assert!(status.contains("irqaffinity=0-2,4-6: not before the next boot"), "{status}");
    let verified = machine.tune("verify");
    let page = stdout(&verified);
    assert_eq!(verified.status.code(), Some(1), "{page}");
    assert!(page.contains("irqaffinity=0-2,4-6: the kernel was not started with it"), "{page}");
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
}
