//! Links planted by another user in a directory where every user may make files, such as /tmp: what
//! the kernel refuses a shell there (fs.protected_symlinks) is refused for every named output.

use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::Path;

use punctual_testkit::skip;

use super::{Attack, Settings};
use crate::{Dir, names, result, run, stderr, text};

/// The user who plants links.
const STRANGER: u32 = 54_321;
/// Distributions set it to 1.
const PROTECTED: &str = "/proc/sys/fs/protected_symlinks";

/// Commands with the file that they write, `OUT`; `DIR` has what they read.
const FILES: [&str; 20] = [
    "analyse DIR/a.csv --column lateness:us --json OUT",
    "analyse DIR/a.csv --column lateness:us --junit OUT",
    "report DIR/made -o OUT",
    "export --csv --histogram DIR/made/result.json -o OUT",
    "export --openmetrics DIR/made/result.json --output OUT",
    "compare --anyway DIR/made DIR/made --json OUT",
    "blame --from DIR/trace.txt --text OUT",
    "facts --json OUT",
    "tune check --json OUT",
    "tune plan --json OUT",
    "tune status --markdown OUT",
    "sched show --markdown OUT",
    "measure periodic --duration 100ms --json OUT",
    "measure periodic --duration 100ms --samples OUT",
    "measure noise --duration 100ms --json OUT",
    "measure accuracy --duration 100ms --json OUT",
    "respond udp:127.0.0.1:0 --duration 100ms --json OUT",
    "run DIR/tasks.toml --duration 100ms --json OUT",
    "check --duration 1s --results DIR/results --json OUT",
    "impact audio --frames 64 --from DIR/made --json OUT",
];

/// Commands that choose names in a directory that was named, `OUT`.
const FOLDERS: [&str; 8] = [
    "man OUT",
    "capture OUT",
    "blame --duration 300ms --keep OUT",
    "report DIR/made --plots OUT",
    "soak --every 1s --duration 100ms --campaign OUT",
    "check --duration 1s --results OUT",
    "measure periodic --duration 100ms --baseline day --baselines OUT",
    "tune apply --only vm.swappiness --root DIR/machine --state OUT",
];

/// Targets of the planted link.
#[derive(Clone, Copy, Debug)]
enum Leads {
    ToFile,
    ToNothing,
    /// To another link, which root made, and which leads to the file.
    ToLink,
    /// To a directory, in which the output has its name.
    ThroughFolder,
}

const LEADS: [Leads; 4] = [Leads::ToFile, Leads::ToNothing, Leads::ToLink, Leads::ThroughFolder];

/// Root's files and directory, which nobody else may change.
struct Victims {
    dir: Dir,
}

impl Victims {
    fn new() -> Self {
        let dir = Dir::new("attack-sticky-victims");
        fs::write(dir.path("file"), "precious").expect("writable");
        symlink(dir.path("file"), dir.path("link")).expect("free");
        fs::create_dir(dir.path("folder")).expect("writable");
        fs::write(dir.path("folder/out"), "precious").expect("writable");
        Self { dir }
    }

    fn are_untouched(&self, trial: &str) {
        assert_eq!(names(&self.dir.0), ["file", "folder", "link"], "{trial}");
        assert_eq!(names(&self.dir.path("folder")), ["out"], "{trial}");
        for file in ["file", "folder/out"] {
            let bytes = fs::read(self.dir.path(file)).expect("readable");
            assert!(bytes == b"precious", "{trial}: {file} is overwritten");
        }
        let is_link = self.dir.path("link").symlink_metadata().is_ok_and(|meta| meta.is_symlink());
        assert!(is_link, "{trial}");
    }
}

/// Files that the commands read.
fn inputs() -> Dir {
    let dir = Dir::new("attack-sticky");
    result(&dir, "made");
    let tasks = "[supervisor]\nname = \"sticky\"\n[[task]]\nname = \"a\"\nperiod = \"5ms\"\n";
    fs::write(dir.path("tasks.toml"), tasks).expect("writable");
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/trace/6.18/ftrace.txt");
    fs::copy(trace, dir.path("trace.txt")).expect("a fixture");
    for (file, content) in [("proc/sys/vm/swappiness", "60\n"), ("proc/cpuinfo", "")] {
        let file = dir.path("machine").join(file);
        fs::create_dir_all(file.parent().expect("a directory")).expect("writable");
        fs::write(file, content).expect("writable");
    }
    dir
}

/// The words of a command of the tables.
fn words(line: &str, dir: &Path, out: &Path) -> Vec<String> {
    let word = |word: &str| word.replace("OUT", text(out)).replace("DIR", text(dir));
    line.split(' ').map(word).collect()
}

/// Plants a link where a command is to write, and runs it.
fn plant(line: &str, is_file: bool, leads: Leads, dir: &Dir) {
    let (open, victims) = (Dir::new("attack-sticky-open"), Victims::new());
    fs::set_permissions(&open.0, fs::Permissions::from_mode(0o1777)).expect("ours");
    let planted = open.path("planted");
    let target = match leads {
        Leads::ToFile if is_file => "file",
        Leads::ToLink if is_file => "link",
        Leads::ToNothing => "nothing",
        _ => "folder",
    };
    symlink(victims.dir.path(target), &planted).expect("free");
    lchown(&planted, Some(STRANGER), Some(STRANGER)).expect("root may");
    let through = is_file && matches!(leads, Leads::ThroughFolder);
    let out = if through { planted.join("out") } else { planted.clone() };
    let trial = format!("{line}, OUT a stranger's link {leads:?}");
    let ran = run(words(line, &dir.0, &out));
    victims.are_untouched(&trial);
    assert_eq!(ran.status.code(), Some(2), "{trial}: {}", stderr(&ran));
    assert!(stderr(&ran).contains("planted"), "{trial}: {}", stderr(&ran));
    assert_eq!(names(&open.0), ["planted"], "{trial}");
    assert_eq!(fs::read_link(&planted).ok(), Some(victims.dir.path(target)), "{trial}");
    // A link of its own root may follow there.
    if is_file {
        fs::remove_file(&planted).expect("ours");
        symlink(open.path("written"), &planted).expect("free");
        let ran = run(words(line, &dir.0, &planted));
        assert!(open.path("written").is_file(), "{line}, own link: {}", stderr(&ran));
    }
}

#[test]
fn sticky() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let settings = Settings::read(&[PROTECTED]);
    // As it is where it may not be set: what is promised does not depend on it.
    let _refused = fs::write(PROTECTED, "1");
    let mut attack = Attack::begin("sticky");
    let dir = inputs();
    while attack.goes_on() {
        let is_file = attack.random.index(4) > 0;
        let line = *attack.random.one_of(if is_file { &FILES[..] } else { &FOLDERS });
        let leads = *attack.random.one_of(&LEADS);
        plant(line, is_file, leads, &dir);
        attack.note(if is_file { "file refused" } else { "directory refused" });
    }
    drop(settings);
    attack.end();
}
