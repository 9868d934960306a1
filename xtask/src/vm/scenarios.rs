//! The reasons to boot guests, a row each.
//!
//! Data and judgements of printed text; starts nothing.

use serde_json::Value;

use super::programs::Program;
use super::{Console, GuestClock, Root, Scenario, first_console, has, sources};

/// Every scenario.
pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "check",
        summary: "the command on kernels with PREEMPT_RT, as root and unprivileged",
        system: Root::Memory { guests: &[("6.1", &[]), ("6.12", &[]), ("7.2", &[])], drivers: &[] },
        append: "isolcpus=1 nohz_full=1",
        programs: &[Program::Command],
        steps: &[CHECK],
        judge: checked,
        ..Scenario::DEFAULT
    },
    Scenario {
        name: "follow",
        summary: "the tests of followed clocks beside the PTP clocks of igb and e1000e",
        system: Root::Memory {
            guests: &[("6.12", &["igb"]), ("6.12", &["e1000e"])],
            drivers: &[
                "drivers/dca/dca",
                "drivers/i2c/algos/i2c-algo-bit",
                "drivers/net/ethernet/intel/igb/igb",
                "drivers/net/ethernet/intel/e1000e/e1000e",
            ],
        },
        programs: &[Program::Command, Program::Library, Program::Commands],
        steps: &[FOLLOW],
        judge: followed,
        ..Scenario::DEFAULT
    },
    Scenario {
        name: "respond",
        summary: "stimuli from this side, over a serial line and a network, answered in the guest",
        system: Root::Memory {
            guests: &[("6.12", &[])],
            drivers: &["drivers/net/ethernet/intel/e1000e/e1000e"],
        },
        append: "isolcpus=1",
        programs: &[Program::Command],
        outside: &[
            ("over-serial", "stimulate SERIAL --period 50ms --duration 5s --policy other"),
            ("over-udp", "stimulate UDP --period 10ms --duration 5s --policy other"),
        ],
        steps: &[RESPOND],
        judge: responded,
        ..Scenario::DEFAULT
    },
    sources::SCENARIO,
    UNTHROTTLED,
    Scenario {
        name: "hog",
        summary: "a Debian where a thread takes CPU 1 for 5 ms: who sees it, who names it",
        system: Root::Disk,
        append: "root=/dev/vda rw isolcpus=1",
        programs: &[Program::Command],
        steps: &[HOG],
        by_name_alone: true,
        judge: hogged,
        ..Scenario::DEFAULT
    },
    Scenario {
        name: "causes",
        summary: "why it was late: others starve, interrupts off, and a host that stood still",
        system: Root::Memory { guests: &[("6.1", &[]), ("6.12", &[]), ("7.2", &[])], drivers: &[] },
        own_driver: Some("irqs_off"),
        programs: &[Program::Command, Program::Confusion],
        steps: &[CAUSES],
        standstills: &["stood", "disturbed"],
        by_name_alone: true,
        judge: explained,
        ..Scenario::DEFAULT
    },
    Scenario {
        name: "firmware",
        summary: "why it was late where firmware, or a host that is not seen, took all CPUs",
        system: Root::Memory {
            guests: &[("6.1", &[]), ("6.12", &[]), ("7.2", &[])],
            drivers: &["arch/x86/kernel/msr"],
        },
        own_driver: Some("smi"),
        // It counts system management interrupts as Intel's do.
        cpu: "max,hypervisor=off,vendor=GenuineIntel,family=6,model=94",
        // What stands still makes the kernel distrust the counter, which the handlers wait by.
        append: "memmap=64K$0x30000 memmap=4K$0x80000 nox2apic tsc=reliable",
        programs: &[Program::Command, Program::Confusion, Program::Inject],
        steps: &[FIRMWARE],
        standstills: &["stood"],
        by_name_alone: true,
        judge: stopped_by_firmware,
        ..Scenario::DEFAULT
    },
    Scenario {
        name: "disturbed",
        summary: "which of seven known disturbances blame names, of wakes that they made late",
        system: Root::Memory { guests: &[("6.1", &[]), ("6.12", &[]), ("7.2", &[])], drivers: &[] },
        own_driver: Some("irqs_off"),
        clock: GuestClock::Instructions,
        programs: &[Program::Confusion],
        steps: &[DISTURBED],
        by_name_alone: true,
        judge: disturbed,
        ..Scenario::DEFAULT
    },
    Scenario {
        name: "counters",
        summary: "what a processor counted around late wakes, and interrupts of others, on AArch64",
        system: Root::Memory { guests: &[("6.12-arm64", &[])], drivers: &[] },
        cpu: "max,pauth-impdef=on",
        clock: GuestClock::Instructions,
        programs: &[Program::Command],
        steps: &[COUNTERS],
        by_name_alone: true,
        judge: counted,
        ..Scenario::DEFAULT
    },
    Scenario {
        name: "tune",
        summary: "a Debian with GRUB: settings applied, four boots, everything as before",
        system: Root::Disk,
        append: "root=/dev/vda rw quiet",
        programs: &[Program::Command],
        steps: &[TUNE, TUNED, POLLING, UNTUNED],
        judge: tuned,
        ..Scenario::DEFAULT
    },
];

const CHECK: &str = "cd /root
step facts punctual facts
step check punctual check --duration 2s --results /root/results
step noise punctual measure noise --threshold 100us --duration 1s
step spin punctual measure periodic --wait spin --phase 50us --duration 1s --cpu 1
step before snapshot
step groups groups
step isolate punctual isolate --cpus 1 --fifo 40 -- /tmp/inside
step killed killed
step left groups
step rules punctual tune check
step runtime punctual tune apply
step effect punctual tune verify
step back punctual tune revert
step after snapshot
chmod 777 /tmp
step user su -s /bin/sh user -c 'punctual check -q --duration 2s --results /tmp/results'
";

fn checked(consoles: &[Console]) -> Result<(), String> {
    let console = first_console(consoles)?;
    let facts = console.ok("facts")?;
    for (fact, value) in [("preemption", "PREEMPT_RT"), ("isolated_cpus", "1")] {
        let line = facts.lines().find_map(|line| line.strip_prefix(fact)).unwrap_or_default();
        if line.trim() != value {
            return Err(format!("{fact} is {:?} instead of {value}", line.trim()));
        }
    }
    for step in ["check", "noise", "spin", "user"] {
        console.ok(step)?;
    }
    has("tune check", console.ok("rules")?, "isolcpus")?;
    // CPUs of isolcpus= get no partition.
    isolated(console, "member")?;
    applied(console)
}

const RESPOND: &str = "ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0
punctual respond serial:/dev/ttyS2 --duration 45s --cpu 1 >/tmp/serial 2>&1 &
punctual respond udp:0.0.0.0:7000 --duration 45s --cpu 0 >/tmp/udp 2>&1 &
wait
step serial cat /tmp/serial
step udp cat /tmp/udp
";

/// That stimuli of both links were answered; how late means nothing under emulation.
fn responded(consoles: &[Console]) -> Result<(), String> {
    let console = first_console(consoles)?;
    for (inside, outside) in [("serial", "over-serial"), ("udp", "over-udp")] {
        has("respond", console.ok(inside)?, "answered")?;
        let printed = console.ok(outside)?;
        let mut lines = printed.lines().skip_while(|line| !line.contains("sent  answered"));
        let counts = lines.nth(1).unwrap_or_default();
        println!("  {outside}: sent, answered, late, lost, not sent: {}", counts.trim());
        let answered = counts.split_whitespace().nth(1).and_then(|text| text.parse::<u32>().ok());
        if answered.is_none_or(|answered| answered == 0) {
            return Err(format!("{outside}: no answer: {printed}"));
        }
    }
    Ok(())
}

const FOLLOW: &str = "sleep 1
step clock cat /sys/class/ptp/ptp0/clock_name
step library library follow:: --test-threads=1 --nocapture
step commands commands follow:: --test-threads=1 --nocapture
";

/// Judges that all tests ended well, with a clock to look at.
fn followed(consoles: &[Console]) -> Result<(), String> {
    let console = first_console(consoles)?;
    console.ok("clock")?;
    for step in ["library", "commands"] {
        let output = console.ok(step)?;
        if output.contains("test result: ok. 0 passed") {
            return Err(format!("{step}: no test of that name ran"));
        }
        if let Some(skipped) =
            output.lines().find(|line| line.contains("SKIPPED") && line.contains("PTP"))
        {
            return Err(format!("no PTP clock: {}", skipped.trim()));
        }
    }
    Ok(())
}

/// Each instrument runs while a thread of a higher priority takes the CPU for 5 ms, four times a
/// second, for 200 s at most.
const HOG: &str = "cat >/tmp/hog <<'END'
use Time::HiRes qw(time sleep);
for (1 .. 800) { my $end = time + 0.005; 1 while time < $end; sleep 0.245; }
END
hog() { chrt -f 95 taskset -c 1 perl /tmp/hog & hog=$!; }
rest() { kill $hog; wait $hog; }
cd /root
hog
step punctual punctual measure periodic --cpu 1 --priority 80 --wait sleep --duration 4s --json -
rest; hog
step cyclictest cyclictest -q -m -a 1 -t 1 -p 80 -i 1000 -D 4s -h 100
rest; hog
step timerlat timeout 60 rtla timerlat hist -c 1 -P f:80 -d 4s --no-irq
rest; hog
step osnoise timeout 60 rtla osnoise hist -c 1 -P f:80 -p 100000 -r 50000 -d 4s
rest; hog
timeout 240 rtla timerlat top -q -c 1 -P f:80 -a 4000 -d 30s >/tmp/rtla 2>&1 &
rtla=$!
step blamed punctual blame --cpu 1 --over 4ms --duration 12s
wait $rtla
step rtla cat /tmp/rtla
rest
";

/// The name of the thread that takes the CPU.
const HOG_NAME: &str = "perl";

/// The least that an instrument must have seen of the 5 ms, µs: nearly all of it, and no time of
/// the emulation is judged beyond that.
const SEEN_US: f64 = 4_000.0;

fn hogged(consoles: &[Console]) -> Result<(), String> {
    let console = first_console(consoles)?;
    console.ok("punctual")?;
    let result = console.result("punctual")?;
    let worst_us = result["runs"][0]["lateness_ns"]["max"].as_f64().unwrap_or_default() / 1e3;
    let maximum = |step, line: &str| -> Result<f64, String> {
        let output = console.ok(step)?;
        let line = output.lines().find(|printed| printed.starts_with(line)).unwrap_or_default();
        let number =
            line.split([' ', ':']).filter_map(|word| word.trim().parse::<f64>().ok()).next_back();
        number.ok_or_else(|| format!("{step}: no maximum"))
    };
    let seen = [
        ("punctual", worst_us),
        ("cyclictest", maximum("cyclictest", "# Max Latencies")?),
        ("timerlat", maximum("timerlat", "max:")?),
        ("osnoise", maximum("osnoise", "max:")?),
    ];
    for (name, us) in seen {
        println!("  {name}: {us:.0} us");
    }
    if let Some((name, us)) = seen.iter().find(|(_, us)| *us < SEEN_US) {
        return Err(format!("{name} saw {us} us of 5000"));
    }
    let blamed = console.ok("blamed")?;
    let naming =
        |output: &str| output.lines().find(|line| line.contains(HOG_NAME)).map(str::to_owned);
    let line = naming(blamed).ok_or_else(|| format!("blame: no {HOG_NAME}: {blamed}"))?;
    println!("  blame: {}", line.trim());
    // It stops at the first wake of 4 ms and more, and that the emulation may have made.
    let line = naming(console.ok("rtla")?);
    println!("  rtla: {}", line.as_deref().unwrap_or("another cause, of one wake").trim());
    Ok(())
}

/// Two threads of CPU 1 never sleep, one of them above all ordinary ones: the kernel gives those
/// their share, at the loop's cost. The upper one takes turns with the kernel's own threads of its
/// priority. Then the kernel's detector of hardware latencies switches interrupts off for 10 ms of
/// each 100 ms, and after it a driver of ours. Then nothing runs, and the machine stands still now
/// and then: while a user looks for causes, and where they are held against a log.
const CAUSES: &str = "cd /root
dmesg -n 1
spin='while :; do :; done'
punctual sched run --cpu 1 -- sh -c \"$spin\" & below=$!
punctual sched run --cpu 1 --rr 1 -- sh -c \"$spin\" & above=$!
step starved blame --over 30ms
kill -9 $below $above
mount -t tracefs tracefs /sys/kernel/tracing
cd /sys/kernel/tracing
echo 2 >tracing_cpumask
echo 10000 >hwlat_detector/width
echo 100000 >hwlat_detector/window
echo hwlat >current_tracer
step tracer grep . current_tracer hwlat_detector/*
step off blame --over 4ms
echo nop >current_tracer
cd /root
insmod /irqs_off.ko length_us=10000 every_ms=90
step kept blame --over 4ms
rmmod irqs_off
step stood blame --over 15ms
step disturbed confusion slow=20 1 standstill
";

/// Nothing runs, and the machine stands still now and then. Then the firmware takes all CPUs: for
/// 20 ms of each 200 ms while a user looks for causes, and for 6 ms of each 102 ms where they are
/// held against a log.
const FIRMWARE: &str = "cd /root
dmesg -n 1
step facts punctual facts
step stood blame --over 15ms
step driver insmod /smi.ko
punctual sched run --fifo 2 -- inject smi 1 300 200000 20000 >/dev/null & smi=$!
cpu=0
step managed blame --over 10ms
kill $smi
step disturbed confusion slow=20 2 smi
";

/// Where a move makes a wake late, it is by the time until the other CPU is interrupted. One of the
/// emulator waits for the end of its neighbour's turn: the slower the loop, the shorter that is.
const DISTURBED: &str = "cd /root
dmesg -n 1
insmod /irqs_off.ko
step disturbed confusion slow=2 1 higher equal stop overrun driver
step moved confusion slow=4 5 moves
step served confusion slow=8 2 ktimers
";

/// That the latest wakes have what their processor counted, and that its readings are put together
/// with their own switches: the emulator's processor has a cycle each nanosecond and an instruction
/// every two, but none where it idles.
const COUNTERS: &str = "cd /root
dmesg -n 1
step facts punctual facts
step check punctual check -q --duration 1s --results /root/results
step blame punctual blame --cpu 1 --period 10ms --duration 6s --over p90 --json - --text events
step interrupts sh -c 'grep -o \"[a-z_]*_entry:\" events | sort | uniq -c'
";

fn counted(consoles: &[Console]) -> Result<(), String> {
    let console = first_console(consoles)?;
    has("facts", console.ok("facts")?, "aarch64")?;
    let (_, verdict) = console.step("check")?;
    println!("  check: {}", verdict.trim().lines().next_back().unwrap_or_default());
    console.ok("blame")?;
    let result = console.result("blame")?;
    let latest = result["worst"].as_array().ok_or("blame kept no wake")?;
    let counts = |wake: &Value| -> Option<(u64, u64)> {
        let cycle = &wake["processor"]["cycle"];
        Some((cycle["cycles"].as_u64()?, cycle["instructions"].as_u64()?))
    };
    let counted: Vec<(u64, u64)> = latest.iter().filter_map(counts).collect();
    // What runs between two readings of one switch is some hundred of them.
    let is_right =
        |(cycles, instructions): &&(u64, u64)| cycles.abs_diff(2 * instructions) * 100 <= *cycles;
    let (wakes, right) = (latest.len(), counted.iter().filter(is_right).count());
    println!("  {} of {wakes} wakes have counts, {right} of these the right ones", counted.len());
    // Between a switch and its reading the emulator may turn to the other CPU.
    let are_most = right * 100 >= wakes * RIGHT_MIN_PERCENT as usize;
    match right == counted.len() && are_most && wakes >= COUNTED_MIN {
        true => told_by_kind(console, &result["evidence"]["missing"]),
        false => Err(format!("cycles and instructions of {wakes} wakes: {counted:?}")),
    }
}

/// That interrupts from another CPU are recorded by their kind: this processor has no vectors, and
/// lacks none.
fn told_by_kind(console: &Console, missing: &Value) -> Result<(), String> {
    let missing = missing.as_array().ok_or("blame has no list of what it lacks")?;
    if let Some(vector) = missing.iter().find(|event| event.to_string().contains("irq_vectors")) {
        return Err(format!("an event of x86 is missed: {vector}"));
    }
    let events = console.ok("interrupts")?;
    let count = |name: &str| -> u32 {
        let line = events.lines().find_map(|line| line.trim().strip_suffix(name));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
    };
    let (reschedules, unknown) = (count(" reschedule_entry:"), count(" ipi_entry:"));
    println!(
        "  {reschedules} interrupts to reschedule, {unknown} from another CPU of no known kind"
    );
    match (reschedules, unknown) {
        (1.., 0) => Ok(()),
        _ => Err(format!("interrupts by their events:\n{events}")),
    }
}

/// The wakes below which nothing is known of their counts.
const COUNTED_MIN: usize = 10;

/// What stops a thread that runs looks like its own work where no CPU time is missing, as in an
/// emulator, whose clock runs on.
const OWN: &str = "its own code";

/// A step of `blame`, and the causes of which nearly all the time of its late wakes must be one.
type ExpectedCauses = (&'static str, &'static [&'static str]);

fn explained(consoles: &[Console]) -> Result<(), String> {
    have_their_causes(
        consoles,
        &[
            ("starved", &["fair server ran sh", "real-time throttling"]),
            ("off", &["hwlatd"]),
            ("kept", &["interrupts off in keep of irqs-kept-off"]),
            ("stood", &["host took the CPU", "host woke the idle CPU late", OWN]),
        ],
    )?;
    named_by(consoles)
}

fn stopped_by_firmware(consoles: &[Console]) -> Result<(), String> {
    let facts = first_console(consoles)?.ok("facts")?;
    let hypervisor = facts.lines().find(|line| line.contains("virtualization"));
    has("facts", hypervisor.unwrap_or(facts), "none")?;
    // What stops a whole guest is no such interrupt, and its processor counted none.
    let expected: &[ExpectedCauses] = &[
        ("stood", &["stood still, without an SMI", OWN]),
        ("managed", &["firmware took the CPU", OWN]),
    ];
    have_their_causes(consoles, expected)?;
    named_by(consoles)
}

/// That nearly all the time of late wakes has the cause that was made, by `blame`'s sentence.
fn have_their_causes(consoles: &[Console], expected: &[ExpectedCauses]) -> Result<(), String> {
    let console = first_console(consoles)?;
    let stood: u32 = console.ok("standstills")?.trim().parse().unwrap_or_default();
    println!("  the machine stood still {stood} times");
    if stood == 0 {
        return Err("it never stood still".to_owned());
    }
    for (step, causes) in expected {
        let sentence = console.ok(step)?.trim().trim_start_matches("\"sentence\": \"");
        let sentence = sentence.trim_end_matches("\",");
        println!("  {step}: {sentence}");
        // "N % of the D lost by the M wakes later than T: cause; N %: cause; …. The worst was …".
        let sentence = sentence.split(" The worst was ").next().unwrap_or(sentence);
        let share = |clause: &str| -> Option<u32> {
            let is_right = causes.iter().any(|cause| clause.contains(cause));
            // What stands before the first share is another sentence.
            let number = clause.split(" %").next()?.rsplit(' ').next()?;
            number.parse().ok().filter(|_| is_right)
        };
        let percent: u32 = sentence.split(';').filter_map(share).sum();
        let first = sentence.split(';').next().unwrap_or_default();
        let is_first = causes.iter().any(|&cause| cause != OWN && first.contains(cause));
        if percent < RIGHT_MIN_PERCENT || !is_first {
            return Err(format!("{step}: {percent} % of the time by {causes:?}: {sentence}"));
        }
    }
    Ok(())
}

/// A kind of disturbance, as `confusion` printed it: "higher 9 of 9 right (…), mostly 8 of 8 (…),
/// …; 6000 wakes, 350 late, …".
struct Disturbed<'p> {
    kind: &'p str,
    /// Wakes that it mostly made late, and those of them that have it by name.
    right: u32,
    mostly: u32,
    /// All wakes, and those that were late for whatever cause.
    wakes: u32,
    late: u32,
}

impl<'p> Disturbed<'p> {
    fn read(line: &'p str) -> Option<Self> {
        let (kind, rest) = line.split_once(' ')?;
        let (_, rest) = rest.split_once(" right (")?;
        let (_, rest) = rest.split_once("mostly ")?;
        let (right, mostly) = rest.split_once(" (")?.0.split_once(" of ")?;
        let (wakes, rest) = rest.split_once("; ")?.1.split_once(" wakes, ")?;
        let (late, _) = rest.split_once(" late")?;
        let [right, mostly, wakes, late] = [right, mostly, wakes, late].map(|word| word.parse());
        Some(Self {
            kind,
            right: right.ok()?,
            mostly: mostly.ok()?,
            wakes: wakes.ok()?,
            late: late.ok()?,
        })
    }

    /// Returns true where nearly every wake was late, disturbed or not: a slow emulator's are, and
    /// what it does itself takes more of them than the disturbance.
    fn is_undecided(&self) -> bool {
        self.late * 10 > self.wakes * 9
    }

    fn is_wrong(&self) -> bool {
        self.mostly < DISTURBED_MIN || self.right * 100 < self.mostly * RIGHT_MIN_PERCENT
    }
}

fn disturbed(consoles: &[Console]) -> Result<(), String> {
    named_by(consoles)?;
    let console = first_console(consoles)?;
    ["moved", "served"].into_iter().try_for_each(|step| are_named(console.ok(step)?))
}

/// That each disturbance is named as the main cause of the wakes that it mostly made late.
fn named_by(consoles: &[Console]) -> Result<(), String> {
    are_named(first_console(consoles)?.ok("disturbed")?)
}

fn are_named(printed: &str) -> Result<(), String> {
    let kinds: Vec<Disturbed<'_>> = printed.lines().filter_map(Disturbed::read).collect();
    for Disturbed { kind, right, mostly, wakes, late } in &kinds {
        println!("  {kind}: {right} of {mostly} wakes by name; {late} of {wakes} were late");
    }
    let (open, decided): (Vec<_>, Vec<_>) = kinds.iter().partition(|kind| kind.is_undecided());
    for Disturbed { kind, .. } in open {
        println!("  {kind}: undecided, this guest wakes too late without it");
    }
    match decided.iter().find(|kind| kind.is_wrong()) {
        None if decided.is_empty() => Err(format!("nothing could be judged: {printed}")),
        None => Ok(()),
        Some(Disturbed { kind, right, mostly, .. }) => {
            Err(format!("{kind}: {right} of {mostly} disturbed wakes by name: {printed}"))
        }
    }
}

/// The wakes of a kind below which nothing is known of it.
const DISTURBED_MIN: u32 = 20;

/// The share of the time of late wakes that must have the cause that was made: the emulation itself
/// makes some late.
const RIGHT_MIN_PERCENT: u32 = 80;

/// An error names the lines of which the other text has none.
fn same(compared: &str, a: &str, b: &str) -> Result<(), String> {
    let only = |sign, text: &str, reference: &str| -> String {
        let lines = text.lines().filter(|line| reference.lines().all(|kept| kept != *line));
        lines.map(|line| format!("\n  {sign} {line}")).collect()
    };
    match a == b {
        true => Ok(()),
        false => Err(format!("{compared} differ:{}{}", only('-', a, b), only('+', b, a))),
    }
}

/// TuneD and irqbalance run as a Debian starts them, until their part is over: both change
/// settings by themselves. irqbalance places interrupts 10 s after its start.
const TUNE: &str = "cd /root
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
const TUNED: &str = "cd /root
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
const POLLING: &str = "cd /root
step now cat /proc/cmdline
step tickless cat /sys/devices/system/cpu/nohz_full
step verify punctual tune verify --cpus 1 --for polling
step revert punctual tune revert
step cmdline cmdline
";
/// After the revert.
const UNTUNED: &str = "cd /root
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
fn tuned(consoles: &[Console]) -> Result<(), String> {
    let [first, second, third, last] = consoles else {
        return Err("not four boots".to_owned());
    };
    balanced(first)?;
    isolated(first, "isolated")?;
    applied(first)?;
    has("apply --boot", first.step("apply")?.1, "ran /usr/sbin/update-grub")?;
    let again = first.step("again")?.1;
    let is_kept = |line: &&str| line.contains("90-punctual.cfg: ") && line.ends_with(" already");
    let kept = again.lines().find(is_kept);
    let kept = kept.ok_or_else(|| format!("the second apply changed the parameters: {again}"))?;
    for word in PLANNED {
        has("the second apply", kept, word)?;
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
fn isolated(console: &Console, partition: &str) -> Result<(), String> {
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
fn applied(console: &Console) -> Result<(), String> {
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

const UNTHROTTLED: Scenario = Scenario {
    name: "death",
    summary: "real-time throttling switched off and put back, also after kill -9",
    system: Root::Memory { guests: &[("6.1", &[]), ("6.12", &[])], drivers: &[] },
    programs: &[Program::Command],
    steps: &[STEPS],
    judge,
    ..Scenario::DEFAULT
};

/// `within COMMAND` waits for a minute until it succeeds.
const STEPS: &str = "mount -t debugfs debugfs /sys/kernel/debug
chmod 1777 /tmp
server=/sys/kernel/debug/sched/fair_server/cpu1/runtime
throttle() { cat /proc/sys/kernel/sched_rt_runtime_us; [ ! -e $server ] || cat $server; }
was=$(throttle)
on() { [ \"$(throttle)\" = \"$was\" ]; }
off() {
  [ $(cat /proc/sys/kernel/sched_rt_runtime_us) = -1 ] &&
    { [ ! -e $server ] || [ $(cat $server) = 0 ]; }
}
within() { for second in $(seq 60); do \"$@\" && return 0; sleep 1; done; return 1; }
saturation='punctual measure saturation --cpu 1 --stimulus-cpu 0 --unsafe-no-throttle'
step before throttle
step death $saturation --duration 40s --json -
step after throttle
$saturation --duration 10min >/tmp/tool 2>&1 & tool=$!
step off within off
kill -9 $tool
step on within on
step killed throttle
$saturation --duration 1min >/tmp/tool 2>&1 & tool=$!
step off-again within off
for process in /proc/[0-9]*; do
  grep -q __unthrottle $process/cmdline && kill -9 ${process#/proc/}
done
step on-again within on
step orphan wait $tool
step told cat /tmp/tool
step status punctual tune status
step user su -s /bin/sh user -c \"$saturation --duration 10s --state /tmp\"
step last throttle
";

/// Judges all but the frequencies, which mean nothing under emulation.
fn judge(consoles: &[Console]) -> Result<(), String> {
    let console = first_console(consoles)?;
    for step in ["death", "off", "on", "off-again", "on-again", "status"] {
        console.ok(step)?;
    }
    let before = console.ok("before")?;
    for step in ["after", "killed", "last"] {
        same(&format!("settings before and {step}"), before, console.ok(step)?)?;
    }
    let result = console.result("death")?;
    let saturation = &result["saturation"];
    let trials = saturation["trials"].as_array().map_or(&[][..], Vec::as_slice);
    let long = trials.iter().filter(|trial| trial["ns"] == 2_500_000_000_u64);
    let left: Vec<f64> = long.filter_map(|trial| trial["background_share"].as_f64()).collect();
    println!("  left for the background in trials of 2.5 s: {left:.2?}");
    if saturation["unthrottled"] != true || left.is_empty() {
        return Err(format!("death: no trial without throttling: {saturation}"));
    }
    has("death", &result["warnings"].to_string(), "real-time throttling")?;
    has("status", console.ok("status")?, "nothing is applied")?;
    has("told", console.ok("told")?, "the process that puts throttling back was killed")?;
    for (step, why) in [("orphan", ""), ("user", "is not permitted")] {
        let (code, output) = console.step(step)?;
        has(step, output, why)?;
        if code != 2 {
            return Err(format!("{step} exited with {code} instead of 2"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_without_answers_is_found() {
        let step = |name: &str, output: &str| format!("step: {name}\n{output}\nended: {name} 0\n");
        let console = |udp: &str| {
            let counts = |row: &str| format!("Stimuli\n  sent  answered  late\n  {row}\n");
            let inside = ["serial", "udp"].map(|name| step(name, "sessions  answered")).concat();
            let outside = step("over-serial", &counts("100       100     0"));
            Console(inside + &outside + &step("over-udp", &counts(udp)))
        };
        assert_eq!(responded(&[console("490       470    20")]), Ok(()));
        assert!(responded(&[console("490         0     0")]).is_err());
        assert!(responded(&[console("")]).is_err());
    }

    #[test]
    fn tests_that_failed_or_saw_no_clock_are_found() {
        let step = |name: &str, output: &str, code: u8| {
            format!("step: {name}\n{output}\nended: {name} {code}\n")
        };
        let fine = [
            step("clock", "igb", 0),
            step("library", "test a ... ok", 0),
            step("commands", "test b ... ok", 0),
        ];
        let judge = |text: String| followed(&[Console(text)]);
        assert_eq!(judge(fine.concat()), Ok(()));
        assert!(judge(fine[..2].concat()).is_err());
        assert!(judge([&fine[..2], &[step("commands", "", 101)]].concat().concat()).is_err());
        let none = step("commands", "test result: ok. 0 passed; 130 filtered out", 0);
        assert!(judge([&fine[..2], &[none]].concat().concat()).is_err());
        let skipped = step("commands", "SKIPPED a::b (c.rs): a PTP clock, /dev/ptp0", 0);
        let text = [&fine[..2], &[skipped]].concat().concat();
        assert!(judge(text).expect_err("no clock").contains("no PTP clock"));
    }

    #[test]
    fn texts_that_differ_are_named_by_their_lines() {
        assert_eq!(same("settings", "a 1\nb 2\n", "a 1\nb 2\n"), Ok(()));
        let error = same("settings", "a 1\nb 2\n", "a 1\nb 3\n").unwrap_err();
        assert_eq!(error, "settings differ:\n  - b 2\n  + b 3");
    }

    fn printed(killed: &str, share: &str) -> Console {
        let step = |name: &str, output: &str, code: u8| {
            format!("step: {name}\n{output}\nended: {name} {code}\n")
        };
        let result = format!(
            "{{\"warnings\":[\"real-time throttling was off\"],\"saturation\":{{\"unthrottled\":\
             true,\"trials\":[{{\"ns\":2500000000,\"background_share\":{share}}}]}}}}"
        );
        let settings =
            [("before", "950000"), ("after", "950000"), ("killed", killed), ("last", "950000")];
        let fine = ["off", "on", "off-again", "on-again"].map(|name| step(name, "", 0)).concat();
        let settings = settings.map(|(name, value)| step(name, value, 0)).concat();
        let printed = "the process that puts throttling back was killed; 0 settings";
        Console(
            [
                settings,
                fine,
                step("death", &result, 0),
                step("status", "nothing is applied", 0),
                step("told", printed, 0),
                step("orphan", "", 2),
                step("user", "SCHED_FIFO 99, which is not permitted", 2),
            ]
            .concat(),
        )
    }

    #[test]
    fn a_disturbance_that_is_not_named_is_found() {
        let line = |kind: &str, right: u32, late: u32| {
            format!(
                "{kind} 8 of 9 right (88.9 %), mostly {right} of 40 (97.5 %), found 9 %, wrongly \
                 blamed 0 of 3; 6000 wakes, {late} late, 9 injected of 3 us\n  late 1 us, covered \
                 1 us: another\n"
            )
        };
        let stop = line("stop", 40, 300);
        assert_eq!(are_named(&(line("higher", 39, 350) + &stop)), Ok(()));
        let wrong = are_named(&(line("higher", 31, 350) + &stop));
        assert!(wrong.unwrap_err().starts_with("higher: 31 of 40"));
        // Where nearly every wake is late by itself nothing is known of that kind, nor of none.
        assert_eq!(are_named(&(line("higher", 31, 5_900) + &stop)), Ok(()));
        assert!(are_named(&line("higher", 31, 5_900)).is_err());
        assert!(are_named(&line("stop", 1, 300)).is_err());
        assert!(are_named("").is_err());
    }

    #[test]
    fn settings_that_stay_off_are_found() {
        assert_eq!(judge(&[printed("950000", "0.5")]), Ok(()));
        assert!(judge(&[printed("-1", "0.5")]).is_err_and(|why| why.contains("killed")));
        assert!(judge(&[printed("950000", "null")]).is_err());
        assert!(judge(&[Console(String::new())]).is_err());
    }
}
