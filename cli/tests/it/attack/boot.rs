//! Boot parameters: killed, or failed, at each call while the boot loader's files change, and
//! inside of its own program. A revert brings back every file, and runs that program after the last
//! of them; until then none says that nothing is applied.
//!
//! On this machine with directories of a trial's own in the place of /etc/default, /boot and
//! /usr/sbin, which only the processes of the trial see.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use punctual_testkit::random::Random;
use punctual_testkit::skip;

use super::Attack;
use super::faults::CHANGING;
use crate::{Dir, PROGRAM, may_trace, names, settings_of_this_machine, stderr, stdout, text};

/// Directories of a machine that a trial has its own of.
const OWN: [(&str, &str); 3] =
    [("default", "/etc/default"), ("boot", "/boot"), ("sbin", "/usr/sbin")];

/// A boot loader's program and the file that it makes of all others, as the real ones do; what
/// /boot/fault says befalls it before or after that.
const UPDATE_SCRIPT: &str = "#!/bin/sh\n\
    fault=$(cat /boot/fault 2>/dev/null)\n\
    case $fault in\n\
    fails) echo no device >&2; exit 3;;\n\
    killed) kill -9 $$;;\n\
    parent-killed) kill -9 $PPID; exit 0;;\n\
    esac\n\
    set -e\n\
    for file in /etc/default/grub /etc/default/grub.d/*.cfg; do\n\
    [ ! -e \"$file\" ] || cat \"$file\"\n\
    done >/boot/grub.new\n\
    mv /boot/grub.new /boot/grub.cfg\n\
    case $fault in\n\
    fails-late) exit 4;;\n\
    parent-killed-late) kill -9 $PPID;;\n\
    esac\n\
    exit 0\n";
const PROGRAM_FAULTS: [&str; 5] =
    ["fails", "killed", "parent-killed", "fails-late", "parent-killed-late"];

/// The command that isolates the processor: only at boot, so that nothing of this machine that runs
/// is changed.
const APPLY: [&str; 7] = ["tune", "apply", "--only", "isolcpus", "--cpus", "0", "--boot"];
const REVERT: [&str; 2] = ["tune", "revert"];

/// Files by their names, with their bytes.
type Files = BTreeMap<String, Vec<u8>>;

/// The faults of a call.
#[derive(Clone, Debug)]
enum Fault {
    /// At a call of the program, or of the boot loader's: which, and what happens.
    AtCall(&'static str, String),
    InProgram(&'static str),
}

/// A machine's boot loader, in directories of a trial's own.
struct Loader {
    dir: Dir,
}

impl Loader {
    /// GRUB of Debian, with drop-ins, or of another system, with one file.
    fn new(with_drop_ins: bool) -> Self {
        let loader = Self { dir: Dir::new("attack-boot-machine") };
        let path = |name: &str| loader.dir.path(name);
        for (folder, _) in OWN {
            fs::create_dir_all(path(folder)).expect("writable");
        }
        fs::write(path("default/grub"), "GRUB_CMDLINE_LINUX_DEFAULT=quiet\n").expect("writable");
        fs::create_dir(path("default/grub.d")).expect("writable");
        let name = if with_drop_ins { "sbin/update-grub" } else { "sbin/grub2-mkconfig" };
        fs::write(path(name), UPDATE_SCRIPT).expect("writable");
        fs::set_permissions(path(name), fs::Permissions::from_mode(0o755)).expect("ours");
        let made = loader.shell(&format!("/usr/{name}")).output().expect("unshare starts");
        assert!(made.status.success() && path("boot/grub.cfg").exists(), "{}", stderr(&made));
        loader
    }

    /// A command of a shell that sees these directories.
    fn shell(&self, script: &str) -> Command {
        let mut mounts = String::new();
        for (folder, place) in OWN {
            mounts += &format!("mount --bind {} {place} && ", text(&self.dir.path(folder)));
        }
        let mut command = Command::new("unshare");
        command.args(["-m", "--propagation", "private", "sh", "-c", &format!("{mounts}{script}")]);
        command.stdin(Stdio::null());
        command
    }

    /// The program with `args` here, after `tracer` and its arguments.
    fn run(&self, args: &[&str], tracer: &[String]) -> Output {
        let mut command = self.shell("exec \"$0\" \"$@\"");
        command.args(tracer).arg(PROGRAM).args(args);
        command.arg("--state").arg(self.dir.path("state"));
        command.env_remove("LD_LIBRARY_PATH").output().expect("unshare starts")
    }

    fn trace(&self, calls: &str, fault: Option<String>) -> Vec<String> {
        let log = self.dir.path("log");
        let words = ["strace", "-f", "-qq", "-o", text(&log), "-e", "signal=none", "-e"];
        let mut tracer: Vec<String> = words.map(str::to_owned).to_vec();
        tracer.push(format!("trace={calls}"));
        tracer.extend(fault.into_iter().flat_map(|fault| ["-e".to_owned(), fault]));
        tracer
    }

    /// The most calls of each kind that change files, made by a process of `args`.
    fn calls(&self, args: &[&str]) -> BTreeMap<&'static str, u32> {
        let out = self.run(args, &self.trace("all", None));
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}{}", stdout(&out), stderr(&out));
        let mut of_processes: BTreeMap<(String, &str), u32> = BTreeMap::new();
        let log = fs::read_to_string(self.dir.path("log")).expect("a log");
        for line in log.lines() {
            let mut words = line.split_whitespace();
            let (Some(pid), Some(rest)) = (words.next(), words.next()) else { continue };
            let Some((call, _)) = rest.split_once('(') else { continue };
            if let Some(known) = CHANGING.iter().find(|known| **known == call) {
                *of_processes.entry((pid.to_owned(), known)).or_default() += 1;
            }
        }
        let mut most: BTreeMap<&'static str, u32> = BTreeMap::new();
        for ((_, call), count) in of_processes {
            let known = CHANGING.iter().find(|known| **known == call).expect("listed");
            let most = most.entry(known).or_default();
            *most = count.max(*most);
        }
        most
    }

    /// All that boots this machine, but for the programs, and for what a killed one was writing:
    /// the next one that writes there removes it.
    fn files(&self) -> Files {
        let mut files = Files::new();
        for folder in ["default", "default/grub.d", "boot"] {
            for name in names(&self.dir.path(folder)) {
                let path = self.dir.path(folder).join(&name);
                let unfinished = name.starts_with(".punctual-") || name == "grub.new";
                if path.is_file() && !unfinished && name != "fault" {
                    files.insert(format!("{folder}/{name}"), fs::read(path).expect("readable"));
                }
            }
        }
        files
    }

    fn is_as_before(&self, before: &Files, trial: &str) {
        let now = self.files();
        let shown = |files: &Files| -> Vec<String> {
            let show = |(name, bytes): (&String, &Vec<u8>)| {
                format!("{name}: {:?}", String::from_utf8_lossy(bytes))
            };
            files.iter().map(show).collect()
        };
        assert_eq!(shown(&now), shown(before), "{trial}");
    }
}

/// Calls of a whole apply and of a whole revert.
type Calls = [BTreeMap<&'static str, u32>; 2];

fn fault(random: &mut Random, calls: &BTreeMap<&'static str, u32>) -> Fault {
    if random.index(3) == 0 {
        return Fault::InProgram(PROGRAM_FAULTS[random.index(PROGRAM_FAULTS.len())]);
    }
    let known: Vec<(&'static str, u32)> = calls.iter().map(|(call, most)| (*call, *most)).collect();
    let &(call, most) = random.one_of(&known);
    let how = random.one_of(&["signal=KILL", "error=EIO", "error=ENOSPC"]);
    let at = random.index(most as usize) + 1;
    Fault::AtCall(call, format!("{how}:when={at}"))
}

/// One command with a fault, and reverts after it.
fn trial(random: &mut Random, with_drop_ins: bool, calls: &Calls) -> &'static str {
    let loader = Loader::new(with_drop_ins);
    let before = loader.files();
    let is_revert = random.index(2) == 1;
    if is_revert {
        let out = loader.run(&APPLY, &[]);
        assert_eq!(out.status.code(), Some(0), "{}{}", stdout(&out), stderr(&out));
        assert_ne!(loader.files()["boot/grub.cfg"], before["boot/grub.cfg"]);
    }
    let args = if is_revert { &REVERT[..] } else { &APPLY };
    let fault = fault(random, &calls[usize::from(is_revert)]);
    let out = match &fault {
        Fault::AtCall(call, fault) => {
            loader.run(args, &loader.trace(call, Some(format!("inject={call}:{fault}"))))
        }
        Fault::InProgram(word) => {
            fs::write(loader.dir.path("boot/fault"), word).expect("writable");
            let out = loader.run(args, &[]);
            fs::remove_file(loader.dir.path("boot/fault")).expect("ours");
            out
        }
    };
    let mut trial = format!("{args:?} with {fault:?}: {}{}", stdout(&out), stderr(&out));
    if is_revert && out.status.success() {
        loader.is_as_before(&before, &trial);
    }
    let reverted = loader.run(&REVERT, &[]);
    trial += &format!("then revert: {}{}", stdout(&reverted), stderr(&reverted));
    assert_eq!(reverted.status.code(), Some(0), "{trial}");
    loader.is_as_before(&before, &trial);
    let again = loader.run(&REVERT, &[]);
    let page = stdout(&again);
    assert!(page.contains("nothing is applied"), "{trial}, then revert again: {page}");
    loader.is_as_before(&before, &trial);
    for args in [&APPLY[..], &REVERT] {
        assert_eq!(loader.run(args, &[]).status.code(), Some(0), "{trial}, then {args:?}");
    }
    loader.is_as_before(&before, &trial);
    for folder in ["default", "default/grub.d"] {
        let left = names(&loader.dir.path(folder));
        assert!(!left.iter().any(|name| name.starts_with('.')), "{trial}: {left:?} are left");
    }
    match fault {
        Fault::AtCall(..) => "cut at a call, all as before",
        Fault::InProgram(_) => "cut in the loader's program, all as before",
    }
}

#[test]
fn boot() {
    let dir = Dir::new("attack-boot");
    if !skip::need("root", skip::is_root())
        || !skip::need_program("unshare")
        || !skip::need_program("strace")
        || !may_trace(&dir)
    {
        return;
    }
    // A directory may be hidden; entries of a loader elsewhere would be taken before it.
    let is_own =
        |(_, place): &(&str, &str)| fs::symlink_metadata(place).is_ok_and(|meta| meta.is_dir());
    let has_own = OWN.iter().all(is_own) && !Path::new("/efi/loader/entries").exists();
    if !skip::need_device("/etc/default, /boot and /usr/sbin, and no entries in /efi", has_own) {
        return;
    }
    // One command changes settings at a time, those of the boot too.
    let _turn = settings_of_this_machine();
    let mut attack = Attack::begin("boot");
    let calls = [true, false].map(|with_drop_ins| {
        let loader = Loader::new(with_drop_ins);
        [loader.calls(&APPLY), loader.calls(&REVERT)]
    });
    while attack.goes_on() {
        let with_drop_ins = attack.random.index(2) == 0;
        let calls = &calls[usize::from(!with_drop_ins)];
        let outcome = trial(&mut attack.random, with_drop_ins, calls);
        attack.note(outcome);
    }
    attack.end();
}
