//! Rules about what stops real-time tasks: budgets, reservations, services.

use super::{Finding, Inputs, Judge, Rule, Workload, read, rule, settled};
use crate::facts::RtThrottling;

pub(super) const RULES: &[Rule] = &[
    Rule {
        why: "Of each second, real-time threads together have 950 ms, so that one that never \
              sleeps leaves the machine usable.",
        cost: "Without the limit, a real-time thread that never sleeps takes its CPU for ever.",
        verified: "/proc/sys/kernel/sched_rt_runtime_us",
        source: "Linux, scheduler/sched-rt-group",
        ..rule("throttling.rt_runtime", "kernel.sched_rt_runtime_us", 4, Judge::One(rt_runtime))
    },
    Rule {
        since: Some((6, 12)),
        why: "Since Linux 6.12 the fair server reserves 50 ms of each second for ordinary tasks, \
              whatever sched_rt_runtime_us is; its timer brings the tick back on CPUs of \
              nohz_full.",
        cost: "At 0, ordinary tasks starve on a CPU with a thread that never sleeps.",
        verified: "/sys/kernel/debug/sched/fair_server",
        source: "Linux, scheduler/sched-deadline; github.com/ni/meta-nilrt pull 864",
        ..rule("throttling.fair_server", "fair_server", 5, Judge::One(fair_server))
    },
    Rule {
        why: "With it, a control group has a real-time budget that begins at 0, and a thread in it \
              gets EPERM for SCHED_FIFO.",
        verified: "the configuration, rt_group_sched= and cpu.rt_runtime_us of the own group",
        source: "Linux, scheduler/sched-rt-group; github.com/siderolabs/pkgs issue 1484",
        ..rule("throttling.rt_group", "rt_group_sched", 4, Judge::One(rt_group))
    },
    Rule {
        why: "A CPU may borrow real-time time of others, so that a thread that never sleeps takes \
              all of its CPU despite the limit.",
        verified: "/sys/kernel/debug/sched/features",
        source: "Linux, kernel/sched/features.h",
        ..rule("throttling.rt_runtime_share", "RT_RUNTIME_SHARE", 2, Judge::One(runtime_share))
    },
    Rule {
        why: "stalld gives starving threads time on the CPU of whoever starves them: it takes it \
              from the loop on purpose.",
        cost: "Without it, starving threads stay so.",
        verified: "whether systemd has a group of it with processes",
        source: "stalld(8)",
        ..rule("throttling.stalld", "stalld", 2, Judge::One(stalld))
    },
];

fn rt_runtime(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.value("kernel.sched_rt_runtime_us").and_then(|(runtime, origin)| {
        let (period, _) = inputs.value("kernel.sched_rt_period_us")?;
        let (Ok(runtime), Ok(period)) = (runtime.parse::<i64>(), period.parse::<i64>()) else {
            return Err(Finding::unknown(runtime, origin));
        };
        let found = format!("{runtime} of {period}");
        let path = "/proc/sys/kernel/sched_rt_runtime_us";
        let usual = (period as f64 * 0.95).round() as i64;
        let server = inputs.kernel_from((6, 12)) == Some(true);
        let is_off = !RtThrottling { runtime_us: runtime, period_us: period }.is_on();
        Ok(match runtime {
            _ if is_off && server => Finding::conflict(found, origin)
                .note(
                    "On this kernel that alone does not give 100 %: the fair server still takes \
                     its share; and a thread that never sleeps is not stopped by the limit.",
                )
                .write(path, usual.to_string()),
            _ if is_off => Finding::conflict(found, origin)
                .note("Nothing stops a real-time thread that never sleeps.")
                .write(path, usual.to_string()),
            _ if runtime < usual => Finding::improve(found, origin)
                .note("Real-time threads are stopped earlier than usual.")
                .write(path, usual.to_string()),
            _ => Finding::good(found, origin),
        })
    });
    settled(judged)
}

fn fair_server(inputs: &Inputs<'_>) -> Finding {
    let judged = read(&inputs.facts.limits.fair_server).map(|(servers, origin)| {
        let reserved = servers.iter().filter(|server| server.runtime_ns > 0);
        let cpus: crate::CpuList = reserved.flat_map(|server| server.cpus.iter()).collect();
        let reserved_here = cpus.intersection(inputs.cpus);
        let full = inputs.facts.isolation.nohz_full_cpus.value().cloned().unwrap_or_default();
        let disturbed = reserved_here.intersection(&full);
        let spins = inputs.workload.is_some_and(Workload::spins);
        if reserved_here.is_empty() {
            return Finding::good("nothing is reserved there", origin);
        }
        let found = format!("reserves time on CPU {reserved_here}");
        if disturbed.is_empty() && !spins {
            return Finding::good(found, origin)
                .note("A loop that sleeps every period is not stopped by it.");
        }
        let off = |finding: Finding, cpu: u32| {
            finding.write(format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime"), "0")
        };
        reserved_here.iter().fold(Finding::improve(found, origin), off)
    });
    match inputs.kernel_from((6, 12)) {
        // Where debugfs is not mounted there are no files; the server is there all the same.
        Some(true) if !inputs.facts.limits.fair_server.is_known() => Finding::unknown(
            inputs.facts.limits.fair_server.why().unwrap_or("debugfs is not mounted").to_owned(),
            inputs.facts.limits.fair_server.origin(),
        ),
        _ => settled(judged),
    }
}

fn rt_group(inputs: &Inputs<'_>) -> Finding {
    let judged = read(&inputs.facts.kernel.rt_group_sched).map(|(on, origin)| {
        let budget = inputs.facts.limits.cgroup_rt_runtime_us.value();
        if !on {
            return Finding::good("off", origin);
        }
        let finding = match budget {
            Some(0) => Finding::conflict("on, and the own group has a budget of 0 µs", origin)
                .note("SCHED_FIFO is refused in this group."),
            Some(us) => Finding::needs_reboot(format!("on; the own group has {us} µs"), origin),
            None => Finding::needs_reboot("on", origin),
        };
        match inputs.kernel_from((6, 16)) {
            Some(true) => finding.boot("rt_group_sched", Some("0".to_owned())),
            _ => finding,
        }
    });
    settled(judged)
}

fn runtime_share(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.value("sched/features").map(|(value, origin)| {
        let mut words = value.split_ascii_whitespace();
        match words.find(|word| word.ends_with("RT_RUNTIME_SHARE")) {
            Some("RT_RUNTIME_SHARE") => Finding::improve("on", origin)
                .write("/sys/kernel/debug/sched/features", "NO_RT_RUNTIME_SHARE"),
            Some(_) => Finding::good("off", origin),
            None => Finding::not_applicable("this kernel has no such feature", origin),
        }
    });
    settled(judged)
}

fn stalld(inputs: &Inputs<'_>) -> Finding {
    let service = inputs.settings.value("stalld");
    match read(service) {
        Ok((state, origin)) => Finding::improve(state, origin)
            .note("Run it only where a loop never sleeps, and measure with it running."),
        Err(_) if service.why().is_none() => Finding::good("not running", service.origin()),
        Err(unknown) => unknown,
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::RuleVerdict;
    use crate::testing::verdict;

    #[test]
    fn a_limit_of_the_whole_period_is_none() {
        let judged = |runtime: &str| {
            let files = [
                ("/proc/sys/kernel/sched_rt_runtime_us", runtime),
                ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
            ];
            let judged = verdict(&files, None, "kernel.sched_rt_runtime_us").unwrap();
            (judged.verdict, judged.changes.len())
        };
        assert_eq!(judged("-1\n"), (RuleVerdict::Conflict, 1));
        assert_eq!(judged("1000000\n"), (RuleVerdict::Conflict, 1));
        assert_eq!(judged("999000\n"), (RuleVerdict::Good, 0));
        assert_eq!(judged("950000\n"), (RuleVerdict::Good, 0));
        assert_eq!(judged("500000\n"), (RuleVerdict::Improve, 1));
    }
}
