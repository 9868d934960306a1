//! Parts of /proc and /sys that are missing, empty or cannot be read, as in a container or a
//! hardened machine: refused in words, or it works without; what was changed is put back, and no
//! journal that could not be judged is emptied.
//!
//! Each command is in a mount namespace of its own, where something empty lies over the part.

use std::fs;
use std::path::Path;
use std::process::Command;

use punctual_testkit::random::Random;
use punctual_testkit::skip;

use super::{Attack, Place, Settings, ended};
use crate::text;

/// Parts that may be missing; `self` is the command.
const PARTS: [&str; 56] = [
    "/proc",
    "/proc/sys",
    "/proc/sys/kernel",
    "/proc/sys/kernel/random",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/vm",
    "/proc/sys/vm/stat_interval",
    "/proc/irq",
    "/proc/irq/default_smp_affinity",
    "/proc/interrupts",
    "/proc/softirqs",
    "/proc/stat",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/cmdline",
    "/proc/uptime",
    "/proc/version",
    "/proc/swaps",
    "/proc/modules",
    "/proc/cgroups",
    "/proc/config.gz",
    "/proc/self/task",
    "/proc/self/fd",
    "/proc/self/ns",
    "/proc/self/status",
    "/proc/self/stat",
    "/proc/self/limits",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/proc/self/maps",
    "/proc/self/loginuid",
    "/proc/self/uid_map",
    "/proc/self/timerslack_ns",
    "/proc/self/cmdline",
    "/sys",
    "/sys/class",
    "/sys/devices",
    "/sys/devices/system",
    "/sys/devices/system/cpu",
    "/sys/devices/system/cpu/cpu0",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/possible",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/clocksource",
    "/sys/devices/virtual/workqueue",
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/cpuset",
    "/sys/fs/cgroup/cpuset/cpuset.cpus",
    "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance",
    "/sys/kernel",
    "/sys/kernel/iommu_groups",
    "/sys/kernel/mm",
    "/sys/module",
    "/etc/machine-id",
];

/// Commands that read them; `OUT` is a directory.
const COMMANDS: [&str; 23] = [
    "check --duration 1s --results OUT/results",
    "measure periodic --duration 300ms --load cpu,timer --samples OUT/samples",
    "measure noise --duration 300ms",
    "measure response --duration 300ms",
    "measure timer --duration 300ms",
    "measure saturation --duration 300ms",
    "measure accuracy --duration 300ms",
    "measure work --duration 300ms",
    "measure wait --duration 300ms",
    "reproduce linuxcnc --quick --json -",
    "soak --every 1s --duration 100ms --campaign OUT/c",
    "run OUT/tasks.toml --duration 300ms",
    "respond udp:127.0.0.1:0 --duration 300ms",
    "stimulate udp:127.0.0.1:9 --duration 300ms",
    "facts --json OUT/facts.json",
    "capture OUT/machine",
    "sched show",
    "sched run --other -- true",
    "tune check",
    "tune plan",
    "tune verify --state OUT/state",
    "tune status --state OUT/state",
    "tune experiment --only vm.stat_interval --duration 9s --dry-run --state OUT/state",
];
const APPLY: &str = "tune apply --only vm.stat_interval --state OUT/state";
const REVERT: &str = "tune revert --state OUT/state";
/// Takes a CPU from everybody for a moment.
const ISOLATE: &str = "isolate --cpus 1 --state OUT/state -- true";

/// The commands of a shell after which a part is missing for what it runs.
fn without(random: &mut Random, place: &Place, part: &str) -> String {
    let (folder, file) = (place.path("empty"), place.path("empty-file"));
    fs::create_dir_all(&folder).expect("writable");
    fs::write(&file, "").expect("writable");
    let cover = match () {
        () if Path::new(part).is_dir() => text(&folder),
        () if random.index(2) == 0 => text(&file),
        // Nothing is mapped at its beginning: it can be opened, and a read fails.
        () => "/proc/$$/mem",
    };
    let part = part.replace("self", "$$");
    format!(
        "exec unshare -m --propagation private sh -c \
         'mount --bind {cover} {part} && exec \"$0\" \"$@\"' \"$0\" \"$@\";"
    )
}

fn command(place: &Place, line: &str, limits: &str) -> Command {
    let out = place.path("out");
    let mut command = place.shell(limits);
    command.args(line.split(' ').map(|word| word.replace("OUT", text(&out))));
    command
}

/// One trial without a part; in a word, what came of it.
fn trial(random: &mut Random, alone: bool, settings: &Settings, place: &Place) -> &'static str {
    let present: Vec<&str> = PARTS.into_iter().filter(|part| Path::new(part).exists()).collect();
    // Every fourth time that which says whether a journal is of this boot.
    let is_boot = random.index(4) == 0;
    let part = if is_boot { "/proc/sys/kernel/random/boot_id" } else { *random.one_of(&present) };
    let limits = without(random, place, part);
    let tasks = "[supervisor]\nname = \"missing\"\n[[task]]\nname = \"a\"\nperiod = \"5ms\"\n";
    fs::write(place.path("out/tasks.toml"), tasks).expect("writable");
    let trial = |line: &str| format!("without {part} ({limits}): {line}");
    let run = |line: &str, limits: &str| ended(command(place, line, limits), place, &trial(line));
    let word = match random.index(if alone { 5 } else { 4 }) {
        0 => {
            run(APPLY, &limits);
            "applied without, reverted with it"
        }
        1 => {
            run(APPLY, "");
            let word = run(REVERT, &limits);
            let journal = fs::read(place.path("out/state/tune.journal")).unwrap_or_default();
            let is_open = !journal.is_empty();
            assert!(is_open || settings.changed().is_empty(), "{}: forgotten", trial(REVERT));
            assert!(word != "worked" || !is_open, "{}: not put back, exit 0", trial(REVERT));
            "applied with it, reverted without"
        }
        4 => {
            run(ISOLATE, &limits);
            "isolated without it"
        }
        _ => run(COMMANDS[random.index(COMMANDS.len())], &limits),
    };
    // With everything there, what is left is put back.
    run(REVERT, "");
    settings.are_as_before(&trial(word));
    word
}

#[test]
fn missing() {
    if !skip::need("root", skip::is_root()) || !skip::need_program("unshare") {
        return;
    }
    let settings = Settings::read(&[]);
    let mut attack = Attack::begin("missing");
    let alone = attack.is_alone();
    while attack.goes_on() {
        let place = Place::within_turn(&format!("missing-{}", attack.trials()));
        let outcome = trial(&mut attack.random, alone, &settings, &place);
        attack.note(outcome);
    }
    attack.end();
}
