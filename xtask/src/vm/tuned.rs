//! A guest that is tuned: what is changed in it, and how its boots are judged.
//!
//! Steps and judgements of printed text; starts nothing.

use super::guest::Console;
use super::judge::{has, same};

/// TuneD and irqbalance run as a Debian starts them, until their part is over: both change
/// settings by themselves. irqbalance places interrupts 10 s after its start.
pub(super) const TUNE: &str = "cd /root
systemctl stop tuned
step rules punctual tune check --cpus 1
step placed punctual tune apply --cpus 1 --for servo
systemctl restart irqbalance
for look in $(seq 30); do
  sleep 2; punctual tune status | grep -q '/irq/./.*\\(as before\\|changed since\\)' && break
done
step moved punctual tune verify --cpus 1 --for servo
step unplaced punctual tune revert
step running systemctl is-active irqbalance
systemctl stop irqbalance
update-grub 2>/dev/null
step files files
step before snapshot
step groups groups
step isolate punctual isolate --cpus 1 --fifo 40 -- /tmp/inside
step killed killed
step left groups
step runtime punctual tune apply --cpus 1 --for servo
step effect punctual tune verify --cpus 1 --for servo
step back punctual tune revert
step after snapshot
step apply punctual tune apply --cpus 1 --for servo --boot
step again punctual tune apply --cpus 1 --for servo --boot
step status punctual tune status
step cmdline cmdline
";
/// With the boot parameters.
pub(super) const TUNED: &str = "cd /root
step now cat /proc/cmdline
step isolated cat /sys/devices/system/cpu/isolated
step interrupts cat /proc/irq/default_smp_affinity
step callbacks sh -c 'dmesg | grep -i \"offload RCU callbacks\"'
step tasks sed -n 's/^Cpus_allowed_list:\\t//p' /proc/1/status
step verify punctual tune verify --cpus 1 --for servo
step polling punctual tune apply --cpus 1 --for polling --boot
step cmdline cmdline
";
/// With the boot parameters of a loop that never sleeps, added to those before.
pub(super) const POLLING: &str = "cd /root
step now cat /proc/cmdline
step tickless cat /sys/devices/system/cpu/nohz_full
step verify punctual tune verify --cpus 1 --for polling
step revert punctual tune revert
step cmdline cmdline
";
/// After the revert.
pub(super) const UNTUNED: &str = "cd /root
step now cat /proc/cmdline
step files files
step status punctual tune status
step isolated cat /sys/devices/system/cpu/isolated
";

/// The words that the plan adds to the command line of this guest.
const PLANNED: [&str; 3] = ["isolcpus=domain,managed_irq,1", "irqaffinity=0", "rcu_nocbs=1"];

/// That irqbalance was named, and that a revert beside it put back or named every interrupt that
/// was placed.
fn balanced(console: &Console) -> Result<(), String> {
    console.ok("running")?;
    has("tune check", console.step("rules")?.1, "it may use CPU 1")?;
    let interrupt = |line: &&str| line.starts_with("/proc/irq/") && !line.contains(" refused: ");
    let (moved, left) = (console.step("moved")?.1, console.ok("unplaced")?);
    let mut count = 0;
    for line in console.step("placed")?.1.lines().filter(interrupt) {
        let path = format!("{}: ", line.split(": ").next().unwrap_or_default());
        has("revert beside irqbalance", left, &path)?;
        let now = moved.lines().find(|line| line.starts_with(&path)).unwrap_or_default();
        count += usize::from(now.contains("as before") || now.contains("changed since"));
    }
    println!("  interrupts that irqbalance moved after apply, seen by verify: {count}");
    if count == 0 {
        return Err(format!("irqbalance moved no interrupt, or verify did not see it: {moved}"));
    }
    has("revert beside irqbalance", left, " are as before, 0 are not")
}

/// That what was planned is in effect after the reboot, and that nothing of it is left after the
/// revert.
pub(super) fn tuned(consoles: &[Console]) -> Result<(), String> {
    let [first, second, third, last] = consoles else {
        return Err("not four boots".to_owned());
    };
    balanced(first)?;
    isolated(first, "isolated")?;
    applied(first)?;
    has("apply --boot", first.step("apply")?.1, "ran /usr/sbin/update-grub")?;
    has("the second apply", first.step("again")?.1, "rcu_nocbs=1 already")?;
    for word in PLANNED {
        has("status", first.ok("status")?, word)?;
        has("the command line", second.ok("now")?, word)?;
        has("the command line", third.ok("now")?, word)?;
        let name = word.split('=').next().unwrap_or(word);
        has("verify", second.step("verify")?.1, &format!("{name}: good: "))?;
    }
    same("isolated CPUs", second.ok("isolated")?, "1\n")?;
    same("default_smp_affinity", second.ok("interrupts")?, "1\n")?;
    same("CPUs of the first process", second.ok("tasks")?, "0\n")?;
    has("the kernel log", second.ok("callbacks")?, "CPUs: 1.")?;
    same("CPUs without a tick", third.ok("tickless")?, "1\n")?;
    has("verify", third.step("verify")?.1, "nohz_full: good: ")?;
    third.ok("revert")?;
    same("files before and after", first.ok("files")?, last.ok("files")?)?;
    has("status", last.ok("status")?, "nothing is applied")?;
    if let Some(word) = last
        .ok("now")?
        .split_whitespace()
        .find(|word| word.starts_with("nohz_full") || PLANNED.contains(word))
    {
        return Err(format!("{word} is there after the revert"));
    }
    same("isolated CPUs", last.ok("isolated")?, "\n")
}

/// That a command had its CPU in a group of its own, and that nothing is left of it.
pub(super) fn isolated(console: &Console, partition: &str) -> Result<(), String> {
    let (code, inside) = console.step("isolate")?;
    if code != 7 {
        return Err(format!("isolate exited with {code} instead of the command's 7: {inside}"));
    }
    let group = "0::/punctual.isolated\n";
    for word in [group, "Cpus_allowed_list:\t1\n", &format!("\n{partition}\n40\n")] {
        has("isolate", inside, word)?;
    }
    has("revert after a kill", console.ok("killed")?, "/punctual.isolated/: none\n")?;
    same("control groups before and after", console.ok("groups")?, console.ok("left")?)
}

/// That settings of the running kernel were changed, are in effect, and were put back.
pub(super) fn applied(console: &Console) -> Result<(), String> {
    // The kernel refuses some settings of these guests: exit status 1, and each is named.
    let (code, runtime) = console.step("runtime")?;
    if code > 1 {
        return Err(format!("apply exited with {code}: {runtime}"));
    }
    for setting in ["/proc/irq/default_smp_affinity", "/proc/sys/kernel/timer_migration"] {
        has("apply", runtime, &format!("{setting}: "))?;
        has("verify", console.step("effect")?.1, &format!("{setting}: in effect\n"))?;
    }
    console.ok("back")?;
    same("settings before and after", console.ok("before")?, console.ok("after")?)
}
