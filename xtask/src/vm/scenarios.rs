//! What guests are booted for, a row each.
//!
//! Data and judgements of printed text; starts nothing.

use super::guest::Console;
use super::judge::{has, only};
use super::programs::Program;
use super::tuned::{POLLING, TUNE, TUNED, UNTUNED, applied, isolated, tuned};
use super::{Root, Scenario, sources, unthrottled};

/// Every scenario.
pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "check",
        what: "the command on kernels with PREEMPT_RT, as root and unprivileged",
        system: Root::Memory { guests: &[("6.1", &[]), ("6.12", &[]), ("7.2", &[])], drivers: &[] },
        append: "isolcpus=1 nohz_full=1",
        programs: &[Program::Command],
        outside: &[],
        steps: &[CHECK],
        judge: checked,
    },
    Scenario {
        name: "follow",
        what: "the tests of followed clocks beside the PTP clocks of igb and e1000e",
        system: Root::Memory {
            guests: &[("6.12", &["igb"]), ("6.12", &["e1000e"])],
            drivers: &[
                "dca/dca",
                "i2c/algos/i2c-algo-bit",
                "net/ethernet/intel/igb/igb",
                "net/ethernet/intel/e1000e/e1000e",
            ],
        },
        append: "",
        programs: &[Program::Command, Program::Library, Program::Commands],
        outside: &[],
        steps: &[FOLLOW],
        judge: followed,
    },
    Scenario {
        name: "respond",
        what: "stimuli from this side, over a serial line and a network, answered in the guest",
        system: Root::Memory {
            guests: &[("6.12", &[])],
            drivers: &["net/ethernet/intel/e1000e/e1000e"],
        },
        append: "isolcpus=1",
        programs: &[Program::Command],
        outside: &[
            ("over-serial", "stimulate SERIAL --period 50ms --duration 5s --policy other"),
            ("over-udp", "stimulate UDP --period 10ms --duration 5s --policy other"),
        ],
        steps: &[RESPOND],
        judge: responded,
    },
    sources::SCENARIO,
    unthrottled::SCENARIO,
    Scenario {
        name: "hog",
        what: "a Debian whose CPU 1 a thread takes for 5 ms: cyclictest, rtla and punctual see it",
        system: Root::Disk,
        append: "root=/dev/vda rw isolcpus=1",
        programs: &[Program::Command],
        outside: &[],
        steps: &[HOG],
        judge: hogged,
    },
    Scenario {
        name: "tune",
        what: "a Debian with GRUB: settings applied, four boots, everything as before",
        system: Root::Disk,
        append: "root=/dev/vda rw quiet",
        programs: &[Program::Command],
        outside: &[],
        steps: &[TUNE, TUNED, POLLING, UNTUNED],
        judge: tuned,
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
    let console = only(consoles)?;
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
    let console = only(consoles)?;
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

/// Whether all tests ended well, with a clock to look at.
fn followed(consoles: &[Console]) -> Result<(), String> {
    let console = only(consoles)?;
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
/// second, for 100 s at most.
const HOG: &str = "cat >/tmp/hog <<'END'
use Time::HiRes qw(time sleep);
for (1 .. 400) { my $end = time + 0.005; 1 while time < $end; sleep 0.245; }
END
hog() { chrt -f 95 taskset -c 1 perl /tmp/hog & }
rest() { kill $!; wait; }
cd /root
hog
step punctual punctual measure periodic --cpu 1 --priority 80 --wait sleep --duration 4s --json -
rest; hog
step cyclictest cyclictest -q -m -a 1 -t 1 -p 80 -i 1000 -D 4s -h 100
rest; hog
step timerlat timeout 60 rtla timerlat hist -c 1 -P f:80 -d 4s --no-irq
rest; hog
step osnoise timeout 60 rtla osnoise hist -c 1 -P f:80 -p 100000 -r 50000 -d 4s
rest
";

/// What an instrument must have seen of the 5 ms: nearly all of it, and no time of the emulation is
/// judged beyond that.
const SEEN_US: f64 = 4_000.0;

fn hogged(consoles: &[Console]) -> Result<(), String> {
    let console = only(consoles)?;
    console.ok("punctual")?;
    let result = console.result("punctual")?;
    let worst_us = result["runs"][0]["lateness_ns"]["max"].as_f64().unwrap_or_default() / 1e3;
    let of = |step, line: &str| -> Result<f64, String> {
        let output = console.ok(step)?;
        let line = output.lines().find(|of| of.starts_with(line)).unwrap_or_default();
        let number =
            line.split([' ', ':']).filter_map(|word| word.trim().parse::<f64>().ok()).next_back();
        number.ok_or_else(|| format!("{step}: no maximum"))
    };
    let seen = [
        ("punctual", worst_us),
        ("cyclictest", of("cyclictest", "# Max Latencies")?),
        ("timerlat", of("timerlat", "max:")?),
        ("osnoise", of("osnoise", "max:")?),
    ];
    for (name, us) in seen {
        println!("  {name}: {us:.0} us");
    }
    match seen.iter().find(|(_, us)| *us < SEEN_US) {
        None => Ok(()),
        Some((name, us)) => Err(format!("{name} saw {us} us of 5000")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_without_answers_is_found() {
        let step = |name: &str, output: &str| format!("step: {name}\n{output}\nended: {name} 0\n");
        let console = |udp: &str| {
            let counts = |of: &str| format!("Stimuli\n  sent  answered  late\n  {of}\n");
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
}
