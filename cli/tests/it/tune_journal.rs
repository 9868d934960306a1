//! The journals of `punctual tune`: whose they are, what they may say, and one directory of them at
//! a time; on directories that stand for machines.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_testkit::skip;

use crate::support::{Dir, punctual, refused, run, settings_of_this_machine, stderr, stdout};
use crate::tune_apply::{DROP_IN, Laptop, SWAPPINESS, apply_boot, files, with_grub};

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

/// That nothing obeys the journals, and nothing is changed.
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
    let shell = format!("umask 0; exec {} \"$@\"", env!("CARGO_BIN_EXE_punctual"));
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
    assert_eq!(laptop.tune("apply").status.code(), Some(0));
    let second = format!("{}-second", laptop.state);
    let tune = |command| run(["tune", command, "--root", &laptop.root, "--state", &second]);
    let first = format!("tune revert --root {} --state {}", laptop.root, laptop.state);
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
    let foreign = |of: &str| {
        line(&["punctual tuning journal 1", &format!("{of} {}", laptop.root)])
            + &line(&["old", "/proc/sys/kernel/core_pattern", "evil", "precious"])
    };
    let second = format!("{}-second", laptop.state);
    let tune = |command| run(["tune", command, "--root", &laptop.root, "--state", &second]);
    fs::create_dir(&laptop.state).expect("new");
    set_mode(Path::new(&laptop.state), 0o755);
    for name in ["tune", "isolate", "experiment", "throttling", "boot"] {
        let at = Path::new(&laptop.state).join(format!("{name}.journal"));
        let of = if name == "boot" { "files of the boot loader of" } else { "files of" };
        for text in ["other\n", &foreign(of)] {
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
