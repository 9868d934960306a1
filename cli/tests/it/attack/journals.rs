//! Journals of settings that another user wrote, could write, or planted, and such that name what
//! no setting is: nothing outside of what tuning changes is written, whoever says so.
//!
//! Each is made of a real one, line by line, with checksums that fit: those find damage, and keep
//! nobody from forging.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use punctual_testkit::random::Random;
use punctual_testkit::skip;

use super::{Attack, PANICKED, Settings};
use crate::{Dir, PROGRAM, names, punctual, run, stderr, stdout, text};

/// A user and a group that are not root's.
const STRANGER: u32 = 54_321;
/// The text that a forged journal wants written, and the content of the file that it names.
const FORGED: &str = "evil::0:0:::/bin/sh\n";
const PRECIOUS: &str = "precious\n";

/// The checksum of a line (FNV-1a of 64 bits).
fn checksum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A change that a journal claims, from the value before to the value now.
struct Claim<'a> {
    path: &'a str,
    was: &'a str,
    is: &'a str,
}

/// A real journal whose lines are about something else.
fn forge(journal: &str, claim: &Claim<'_>) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('\n', "\\n");
    let mut forged = String::new();
    for (at, line) in journal.lines().enumerate() {
        let (body, sum) = line.rsplit_once('\t').expect("a checksum");
        assert_eq!(
            u64::from_str_radix(sum, 16).ok(),
            Some(checksum(body)),
            "journals have another format: teach it to this attack: {line:?}"
        );
        let mut parts: Vec<String> = body.split('\t').map(str::to_owned).collect();
        let texts = match (at, parts[0].as_str()) {
            (0, _) => &[][..],
            (_, "old") => &[claim.path, claim.was, claim.is],
            (_, "took") => &[claim.path, claim.is],
            (_, word) => panic!("journals have other lines: teach this attack {word:?}"),
        };
        parts.iter_mut().skip(1).zip(texts).for_each(|(part, text)| *part = escaped(text));
        let body = parts.join("\t");
        forged += &format!("{body}\t{:016x}\n", checksum(&body));
    }
    forged
}

/// Whose the journal is, and who may change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Journal {
    /// Root's, as this program makes it: only what it says is wrong.
    Own,
    Strangers,
    OfAll,
    OfGroup,
    /// It has a second name.
    Linked,
    InOpenDirectory,
    InGroupsDirectory,
    InStrangersDirectory,
}

const JOURNALS: [Journal; 8] = [
    Journal::Own,
    Journal::Strangers,
    Journal::OfAll,
    Journal::OfGroup,
    Journal::Linked,
    Journal::InOpenDirectory,
    Journal::InGroupsDirectory,
    Journal::InStrangersDirectory,
];

impl Journal {
    fn plant(self, state: &Path, name: &str, bytes: &str) {
        let file = state.join(name);
        fs::write(&file, bytes).expect("writable");
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        let give = |path: &Path, user, group| chown(path, user, group);
        mode(&file, 0o600).expect("ours");
        match self {
            Self::Own => Ok(()),
            Self::Strangers => give(&file, Some(STRANGER), Some(STRANGER)),
            Self::OfAll => mode(&file, 0o666),
            Self::OfGroup => give(&file, None, Some(STRANGER)).and_then(|()| mode(&file, 0o660)),
            Self::Linked => fs::hard_link(&file, state.with_extension("other")),
            Self::InOpenDirectory => mode(state, 0o777),
            Self::InGroupsDirectory => {
                give(state, None, Some(STRANGER)).and_then(|()| mode(state, 0o775))
            }
            Self::InStrangersDirectory => give(state, Some(STRANGER), Some(STRANGER)),
        }
        .expect("root may");
    }
}

/// The journals, and what reads each.
const NAMES: [&str; 5] =
    ["tune.journal", "isolate.journal", "experiment.journal", "throttling.journal", "boot.journal"];
/// Commands that read them; `TREE` is a machine of files.
const COMMANDS: [&str; 5] = [
    "tune revert",
    "tune status",
    "tune verify",
    "tune apply --only vm.swappiness --root TREE",
    // Puts back what an earlier one left, and then finds that there is no such CPU.
    "isolate --cpus 4095",
];

/// A machine of files that has GRUB, and a setting to change.
fn tree(dir: &Dir) -> PathBuf {
    let machine = dir.path("machine");
    let laptop = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/smt-desktop-8cpu");
    let copied = Command::new("cp").args(["-r", laptop]).arg(&machine).status();
    assert!(copied.is_ok_and(|status| status.success()));
    for folder in ["etc/default/grub.d", "usr/sbin", "proc/sys/vm"] {
        fs::create_dir_all(machine.join(folder)).expect("writable");
    }
    fs::write(machine.join("usr/sbin/update-grub"), "").expect("writable");
    machine
}

/// Puts back what was applied to a machine of files: with it the lock of its settings goes, which
/// lies in /run and would stay when the machine is removed.
fn put_back(machine: &Path, state: &Path) {
    let out = run(["tune", "revert", "--root", text(machine), "--state", text(state)]);
    assert_eq!(out.status.code(), Some(0), "{}{}", stdout(&out), stderr(&out));
}

/// Journals as the program writes them: of settings of this machine, and of boot files. `None`
/// where nothing can be changed here, which is noted.
fn real(dir: &Dir, settings: &Settings) -> Option<[String; 2]> {
    let state = dir.path("real");
    let at_state = |args: &[&str]| run(args.iter().chain(&["--state", text(&state)]));
    let applied = at_state(&["tune", "apply", "--only", "vm.stat_interval"]);
    let journal = fs::read_to_string(state.join("tune.journal")).unwrap_or_default();
    at_state(&["tune", "revert"]);
    settings.are_as_before("a real journal");
    // Where a setting cannot be written that is said with another code.
    assert_ne!(applied.status.code(), Some(2), "{}", stderr(&applied));
    let changed = applied.status.success() && journal.lines().count() > 1;
    skip::need_device("a setting that may be changed", changed).then_some(())?;
    let machine = tree(dir);
    let boot = [
        "tune", "apply", "--only", "isolcpus", "--cpus", "3,7", "--for", "servo", "--boot",
        "--root",
    ];
    let applied = at_state(&[&boot[..], &[text(&machine)]].concat());
    let boot = fs::read_to_string(state.join("boot.journal")).unwrap_or_default();
    assert!(boot.lines().count() > 1, "{}{}", stdout(&applied), stderr(&applied));
    put_back(&machine, &state);
    Some([journal, boot])
}

/// Plants a journal and runs a command that reads it; in a word, what that did.
fn trial(random: &mut Random, real: &[String; 2]) -> &'static str {
    let dir = Dir::new("attack-journals-trial");
    let (state, victims) = (dir.path("state"), dir.path("victims"));
    let folder = victims.join("folder");
    fs::create_dir(&state).expect("writable");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).expect("ours");
    fs::create_dir_all(&folder).expect("writable");
    let victim = victims.join("passwd");
    fs::write(&victim, PRECIOUS).expect("writable");
    let (planted, name) = (*random.one_of(&JOURNALS), *random.one_of(&NAMES));
    // What puts back reads them all.
    let line = if random.index(2) == 0 { COMMANDS[0] } else { *random.one_of(&COMMANDS) };
    let around = format!("/proc/sys/vm/../../..{}", text(&victim));
    let folder_path = format!("{}/", text(&folder));
    let (file, is_boot) = (text(&victim), name == "boot.journal");
    let claims = [
        Claim { path: file, was: FORGED, is: PRECIOUS },
        Claim { path: file, was: "", is: PRECIOUS },
        Claim { path: &around, was: FORGED, is: PRECIOUS },
        Claim { path: &folder_path, was: "none", is: "made" },
    ];
    let claim = random.one_of(&claims);
    let journal = forge(&real[usize::from(is_boot)], claim);
    planted.plant(&state, name, &journal);
    let machine = if line.contains("TREE") { tree(&dir) } else { PathBuf::new() };
    let mut command = punctual();
    command.args(line.split(' ').map(|word| word.replace("TREE", text(&machine))));
    command.arg("--state").arg(&state);
    if line.starts_with("isolate") {
        command.args(["--", "true"]);
    }
    let out = command.output().expect("it starts");
    let trial = format!("{line}, {name} {planted:?} about {}", claim.path);
    let message = format!("{trial}: {}{}", stdout(&out), stderr(&out));
    assert_eq!(fs::read_to_string(&victim).ok().as_deref(), Some(PRECIOUS), "{message}");
    assert_eq!(names(&victims), ["folder", "passwd"], "{message}");
    let now = fs::read_to_string(state.join(name)).expect("still there");
    judge(&out, (planted, name, line), now == journal, &message)
}

/// Checks that the command did only what it may: see the comments. Returns the outcome in words.
fn judge(out: &Output, trial: (Journal, &str, &str), kept: bool, message: &str) -> &'static str {
    let (planted, name, line) = trial;
    let code = out.status.code();
    assert!(code.is_some() && code != Some(PANICKED), "{message}");
    let reads = line == "tune revert"
        || (line.starts_with("tune apply") && name == "tune.journal")
        || (line.starts_with("isolate") && name == "isolate.journal");
    if planted != Journal::Own && reads {
        // Nothing that it says is done, and it is there for whoever looks into it.
        assert_eq!(code, Some(2), "{message}");
        assert!(kept, "{message}: the journal was changed");
        return "another's journal refused";
    }
    // What was not put back is not reported to be as before.
    assert!(line != "tune revert" || code != Some(0), "{message}");
    if reads { "own journal not obeyed" } else { "nothing changed" }
}

/// The journal is made for its owner alone, whatever the mask of the process, in a directory that
/// is there already or has to be made.
fn mask(attack: &mut Attack) {
    for is_there in [true, false] {
        let dir = Dir::new("attack-journals-mask");
        let (machine, state) = (tree(&dir), dir.path("state"));
        if is_there {
            fs::create_dir(&state).expect("writable");
            fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).expect("ours");
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", "umask 0; exec \"$0\" \"$@\""]).arg(PROGRAM);
        shell.args(["tune", "apply", "--only", "vm.swappiness", "--root"]).arg(&machine);
        let out = shell.arg("--state").arg(&state).output().expect("a shell");
        let mode = |path: &Path| fs::metadata(path).map(|meta| meta.permissions().mode() & 0o7777);
        let message = format!("umask 0, directory there: {is_there}: {}", stderr(&out));
        assert_eq!(mode(&state.join("tune.journal")).ok(), Some(0o600), "{message}");
        assert_eq!(mode(&state).expect("there") & 0o022, 0, "{message}");
        put_back(&machine, &state);
        attack.note("made for its owner alone");
    }
}

#[test]
fn journals() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let settings = Settings::read(&[]);
    let dir = Dir::new("attack-journals");
    let Some(real) = real(&dir, &settings) else { return };
    let mut attack = Attack::begin("journals");
    while attack.goes_on() {
        let outcome = trial(&mut attack.random, &real);
        attack.note(outcome);
        settings.are_as_before("forged journals");
    }
    mask(&mut attack);
    attack.end();
}
