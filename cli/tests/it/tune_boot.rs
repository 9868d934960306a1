//! `tune apply --boot` and `revert` with a boot loader's program that fails, or during which
//! everything ends; and a boot that cannot be told from an earlier one. In a mount namespace of
//! their own, where the boot loader's files and its program are the test's.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use punctual_testkit::skip;

use crate::support::{Dir, settings_of_this_machine, stderr, stdout};

/// Runs the program where these directories stand in the place of the machine's.
fn run_with(mounts: &[(&Path, &str)], args: &[&str]) -> Output {
    let mount = |(from, to): &(&Path, &str)| format!("mount --bind {} {to} && ", from.display());
    let script: String = mounts.iter().map(mount).collect();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c"]);
    command.arg(script + "exec \"$@\"").arg("sh").arg(env!("CARGO_BIN_EXE_punctual"));
    command.args(args).output().expect("it starts")
}

/// Whether file systems can be mounted, in a namespace of its own.
fn may_mount(dir: &Dir) -> bool {
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

const DROP_IN: &str = "default/grub.d/90-punctual.cfg";

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

    /// What update-grub does.
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
        let all: Vec<&str> =
            ["tune"].iter().chain(args).copied().chain(["--state", &self.state]).collect();
        run_with(&mounts, &all)
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
    if !skip::need_device("a boot parameter to change", grub.dir.path(DROP_IN).exists()) {
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
        assert!(!grub.dir.path(DROP_IN).exists());
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
    fs::write(grub.dir.path(DROP_IN), "# mine\n").expect("writable");
    let journal = || fs::read(grub.dir.path("state/boot.journal")).expect("there");
    let failed = stdout(&grub.tune(&["revert"]));
    assert!(failed.contains("update-grub failed: ") && !journal().is_empty(), "{failed}");
    grub.program(&counted);
    let page = stdout(&grub.tune(&["revert"]));
    assert!(page.contains("left: changed since") && page.contains("ran /usr/sbin/"), "{page}");
    assert_eq!((runs(), journal().len()), (8, 0));
    assert_eq!(fs::read_to_string(grub.dir.path(DROP_IN)).expect("theirs"), "# mine\n");
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
