//! What guests are booted for, a row each.
//!
//! Data and judgements of printed text; starts nothing.

use super::Scenario;
use super::guest::Console;
use super::programs::Program;

/// Every scenario.
pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "check",
        what: "the command on kernels with PREEMPT_RT, as root and unprivileged",
        guests: &[("6.1", &[]), ("6.12", &[]), ("7.2", &[])],
        append: "isolcpus=1 nohz_full=1",
        drivers: &[],
        programs: &[Program::Command],
        steps: CHECK,
        judge: checked,
    },
    Scenario {
        name: "follow",
        what: "the tests of followed clocks beside the PTP clocks of igb and e1000e",
        guests: &[("6.12", &["igb"]), ("6.12", &["e1000e"])],
        append: "",
        drivers: &[
            "dca/dca",
            "i2c/algos/i2c-algo-bit",
            "net/ethernet/intel/igb/igb",
            "net/ethernet/intel/e1000e/e1000e",
        ],
        programs: &[Program::Command, Program::Library, Program::Commands],
        steps: FOLLOW,
        judge: followed,
    },
];

const CHECK: &str = "cd /root
step facts punctual facts
step check punctual check --duration 2s --results /root/results
step noise punctual measure noise --threshold 100us --duration 1s
step spin punctual measure periodic --wait spin --phase 50us --duration 1s --cpu 1
chmod 777 /tmp
step user su -s /bin/sh user -c 'punctual check -q --duration 2s --results /tmp/results'
";

fn checked(console: &Console) -> Result<(), String> {
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
    Ok(())
}

const FOLLOW: &str = "sleep 1
step clock cat /sys/class/ptp/ptp0/clock_name
step library library follow:: --test-threads=1 --nocapture
step commands commands follow:: --test-threads=1 --nocapture
";

/// Whether all tests ended well, with a clock to look at.
fn followed(console: &Console) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let judge = |text: String| followed(&Console(text));
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
