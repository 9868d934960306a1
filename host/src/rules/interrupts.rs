//! Rules about where interrupts and unbound kernel work go.

use super::{CMDLINE, Finding, Inputs, Judge, Rule, read, rule, settled};
use crate::cpulist::{CpuFormat, CpuList};
use crate::settings::{IrqLine, path_of};

const AFFINITY: &str = "Linux, core-api/irq/irq-affinity";
const WORKQUEUE: &str = "Linux, core-api/workqueue";

pub(super) const RULES: &[Rule] = &[
    Rule {
        why: "It is the mask that interrupts get when their driver starts, before anything moves \
              them.",
        verified: "/proc/irq/default_smp_affinity",
        ..rule("interrupts.irqaffinity", "irqaffinity", 4, Judge::One(irqaffinity))
    },
    Rule {
        why: "Interrupts of drivers that start from now on may go to the loop's CPU.",
        verified: "/proc/irq/default_smp_affinity",
        source: AFFINITY,
        ..rule("interrupts.default", "default_smp_affinity", 4, Judge::One(default_affinity))
    },
    Rule {
        why: "An interrupt on the loop's CPU delays it by its handler, network and disks by many \
              of them at once.",
        cost: "The other CPUs handle them.",
        verified: "effective_affinity_list of each, and the counts of /proc/interrupts, which are \
                   read twice on a machine that runs",
        source: AFFINITY,
        ..rule("interrupts.placement", "smp_affinity_list", 7, Judge::One(placement))
    },
    Rule {
        why: "irqbalance moves interrupts every few seconds, also those that were placed by hand. \
              It leaves the CPUs of IRQBALANCE_BANNED_CPULIST alone; only without that list those \
              of isolcpus= and nohz_full=.",
        verified: "whether systemd has a group of it with processes, and its configuration",
        source: "github.com/Irqbalance/irqbalance, cputree.c (setup_banned_cpus), issues 297, 336",
        ..rule("interrupts.irqbalance", "irqbalance", 5, Judge::One(irqbalance))
    },
    Rule {
        why: "irqbalance reads the mask first, warns that it is to go, and leaves \
              IRQBALANCE_BANNED_CPULIST unread.",
        verified: "the configuration of irqbalance",
        source: "github.com/Irqbalance/irqbalance, cputree.c (setup_banned_cpus)",
        ..rule("interrupts.banned", "IRQBALANCE_BANNED_CPUS", 4, Judge::One(banned))
    },
    Rule {
        why: "Handlers become threads, so that a loop above them is not delayed by their work; \
              PREEMPT_RT has that anyway.",
        cost: "One wake more for each interrupt.",
        verified: "the preemption model and CONFIG_IRQ_FORCED_THREADING",
        ..rule("interrupts.threadirqs", "threadirqs", 3, Judge::One(threadirqs))
    },
    Rule {
        why: "With every timer interrupt the kernel calls the handlers of all interrupts: a \
              workaround for broken hardware.",
        ..rule("interrupts.irqpoll", "irqpoll", 6, Judge::One(irqpoll))
    },
    Rule {
        why: "Unbound kernel work, such as that of disks and graphics, runs on these CPUs.",
        cost: "The other CPUs do it.",
        verified: "/sys/devices/virtual/workqueue/cpumask, which the kernel keeps",
        source: WORKQUEUE,
        ..rule("interrupts.workqueue", "workqueue/cpumask", 5, Judge::One(workqueue))
    },
    Rule {
        why: "Writing dirty pages back runs on these CPUs, a long piece of work at a time.",
        cost: "The other CPUs do it.",
        verified: "/sys/devices/virtual/workqueue/writeback/cpumask",
        source: WORKQUEUE,
        ..rule("interrupts.writeback", "workqueue/writeback/cpumask", 3, Judge::One(writeback))
    },
    Rule {
        since: Some((6, 6)),
        why: "It keeps unbound kernel work away from the loop's CPU from the start.",
        verified: "/sys/devices/virtual/workqueue/cpumask",
        source: WORKQUEUE,
        ..rule("interrupts.unbound_cpus", "workqueue.unbound_cpus", 3, Judge::One(unbound_cpus))
    },
];

fn irqaffinity(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("irqaffinity").or_absent().and_then(|param| {
        let nothing = |why| Finding::no_effect(param.to_string(), CMDLINE).note(why);
        let typed = inputs
            .list(param.value.as_deref().unwrap_or_default())
            .map_err(|error| nothing(format!("The kernel drops the whole parameter: {error}.")))?;
        let shared = typed.intersection(inputs.cpus);
        if !shared.is_empty() {
            return Ok(Finding::conflict(param.to_string(), CMDLINE)
                .note(format!("It sends interrupts to CPU {shared}, which is kept for the loop."))
                .boot("irqaffinity", Some(inputs.others().to_string())));
        }
        let (value, origin) = inputs.value("default_smp_affinity")?;
        let Some(effective) = CpuFormat::Mask.parse(value) else {
            return Err(Finding::unknown(value, origin));
        };
        let online = inputs.facts.cpu.online_cpus.value().cloned().unwrap_or_default();
        let differs = effective.intersection(&online) != typed.intersection(&online);
        let found = format!("{param}; the default is {effective}");
        Ok(if differs { Finding::no_effect(found, origin) } else { Finding::good(found, origin) })
    });
    settled(judged)
}

fn default_affinity(inputs: &Inputs<'_>) -> Finding {
    one_mask(inputs, "default_smp_affinity")
}

fn workqueue(inputs: &Inputs<'_>) -> Finding {
    one_mask(inputs, "workqueue/cpumask")
}

fn writeback(inputs: &Inputs<'_>) -> Finding {
    one_mask(inputs, "workqueue/writeback/cpumask")
}

/// A mask that should not have the loop's CPUs.
fn one_mask(inputs: &Inputs<'_>, name: &str) -> Finding {
    let judged = inputs.value(name).and_then(|(value, origin)| {
        let Some(cpus) = CpuFormat::Mask.parse(value) else {
            return Err(Finding::unknown(value, origin));
        };
        let online = inputs.facts.cpu.online_cpus.value().cloned().unwrap_or_default();
        let cpus = cpus.intersection(&online);
        let others = inputs.others();
        if cpus.intersection(inputs.cpus).is_empty() {
            return Ok(Finding::good(format!("CPU {cpus}"), origin));
        }
        if others.is_empty() {
            return Err(Finding::not_applicable("there is no other CPU", origin));
        }
        let path = path_of(name).unwrap_or_default();
        Ok(Finding::improve(format!("CPU {cpus}"), origin)
            .write(path, CpuFormat::Mask.show(&others)))
    });
    settled(judged)
}

fn placement(inputs: &Inputs<'_>) -> Finding {
    let judged = read(&inputs.settings.interrupts).map(|(table, origin)| {
        let others = inputs.others();
        let includes_tuned = |cpus: &CpuList| !cpus.intersection(inputs.cpus).is_empty();
        let came = |line: &&IrqLine| {
            let counted = line.counts.iter().any(|(cpu, n)| *n > 0 && inputs.cpus.contains(*cpu));
            let goes = line.effective.value().or(line.allowed.value()).is_some_and(includes_tuned);
            if table.watched {
                includes_tuned(&line.risen) || goes && counted
            } else {
                goes && counted
            }
        };
        // Set already, and nothing came there since: many are moved by their own handler.
        let waits = |line: &&IrqLine| {
            let is_set = line.allowed.value().is_some_and(|cpus| !includes_tuned(cpus));
            is_set && !includes_tuned(&line.risen)
        };
        let (waiting, lines): (Vec<&IrqLine>, Vec<&IrqLine>) =
            table.lines.iter().filter(came).partition(waits);
        if lines.is_empty() {
            let found = match waiting.len() {
                0 => "no interrupt of a device goes there".to_owned(),
                1 => "1 interrupt leaves it when it comes next".to_owned(),
                n => format!("{n} interrupts leave it when they come next"),
            };
            return Finding::good(found, origin);
        }
        let names = lines.iter().take(4).map(|line| match line.risen.is_empty() {
            true => format!("{} ({})", line.number, device(line)),
            false => format!("{} ({}, rising)", line.number, device(line)),
        });
        let more =
            if lines.len() > 4 { format!(" and {} more", lines.len() - 4) } else { "".into() };
        let found = format!("{}{more}", names.collect::<Vec<_>>().join(", "));
        if others.is_empty() {
            return Finding::not_applicable(found, origin).note("There is no other CPU.");
        }
        lines.iter().fold(Finding::improve(found, origin), |finding, line| {
            let path = format!("/proc/irq/{}/smp_affinity_list", line.number);
            finding.write(path, others.to_string())
        })
    });
    settled(judged)
}

/// The device of an interrupt: the last word of its line.
fn device(line: &IrqLine) -> &str {
    line.name.rsplit(' ').next().unwrap_or_default()
}

fn irqbalance(inputs: &Inputs<'_>) -> Finding {
    let service = inputs.settings.value("irqbalance");
    let (state, origin) = match read(service) {
        Ok(running) => running,
        Err(_) if service.why().is_none() => return Finding::good("not running", service.origin()),
        Err(unknown) => return unknown,
    };
    let config = match inputs.settings.value("irqbalance.conf") {
        crate::Fact::Known { value, .. } => value.as_str(),
        crate::Fact::Absent { .. } => "",
        crate::Fact::Unreadable { origin, why } => {
            return Finding::unknown(format!("{state}; unreadable: {why}"), origin);
        }
    };
    let left_alone = left_alone(inputs, config);
    let open = inputs.cpus.difference(&left_alone);
    if open.is_empty() {
        return Finding::good(format!("{state}; it leaves CPU {left_alone} alone"), origin);
    }
    // A list takes the place of all that it leaves alone now.
    let wanted = left_alone.union(inputs.cpus);
    let without = match variable(config, MASK) {
        Some(_) => format!(", take {MASK} out"),
        None => String::new(),
    };
    Finding::improve(format!("{state}; it may use CPU {open}"), origin)
        .note(format!("Set {LIST}={wanted} in its configuration{without} and restart it."))
}

const LIST: &str = "IRQBALANCE_BANNED_CPULIST";
const MASK: &str = "IRQBALANCE_BANNED_CPUS";

/// The CPUs that irqbalance keeps interrupts away from: those of the mask; without one, of the
/// list; without either, those that the machine was booted without. It looks for no partition.
fn left_alone(inputs: &Inputs<'_>, config: &str) -> CpuList {
    let banned = |name: &str, format: CpuFormat| {
        Some(format.parse(variable(config, name)?).unwrap_or_default())
    };
    banned(MASK, CpuFormat::Mask).or_else(|| banned(LIST, CpuFormat::List)).unwrap_or_else(|| {
        let isolation = &inputs.facts.isolation;
        let booted = [&isolation.isolated_cpus, &isolation.nohz_full_cpus];
        booted.into_iter().filter_map(crate::Fact::value).flat_map(CpuList::iter).collect()
    })
}

fn banned(inputs: &Inputs<'_>) -> Finding {
    let judged = read(inputs.settings.value("irqbalance.conf")).map(|(text, origin)| {
        let Some(mask) = variable(text, MASK) else {
            return Finding::good("not set", origin);
        };
        let cpus = CpuFormat::Mask.parse(mask).unwrap_or_default();
        match variable(text, LIST) {
            Some(list) => Finding::conflict(format!("{MASK}={mask} {LIST}={list}"), origin).note(
                format!("The mask counts (CPU {cpus}), the list does not: take the mask out."),
            ),
            None => Finding::good(format!("{MASK}={mask}"), origin)
                .note(format!("Write {LIST}={cpus} instead.")),
        }
    });
    settled(judged)
}

/// The value of a shell variable, the last that is assigned; an empty one counts as none.
fn variable<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = |line: &'a str| line.trim().strip_prefix(name)?.strip_prefix('=');
    let value = text.lines().rev().find_map(line)?.trim().trim_matches(['"', '\'']);
    (!value.is_empty()).then_some(value)
}

fn threadirqs(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("threadirqs").or_absent().and_then(|param| {
        let nothing = |why: &str| {
            Finding::no_effect(param.to_string(), CMDLINE).note(why).remove("threadirqs")
        };
        let model = &inputs.facts.preemption.preemption_model;
        match (inputs.is_rt(), inputs.settings.is_built("IRQ_FORCED_THREADING")) {
            (Some(true), _) => Err(nothing("PREEMPT_RT has threads for interrupts anyway.")),
            (_, Some(false)) => Err(nothing("The kernel is built without it.")),
            (None, _) => Err(Finding::unknown(param.to_string(), model.origin())),
            (Some(false), _) => Ok(Finding::good(param.to_string(), model.origin())),
        }
    });
    settled(judged)
}

fn irqpoll(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("irqpoll").or_good().map(|param| {
        Finding::conflict(param.to_string(), CMDLINE)
            .note("It adds work to each timer interrupt.")
            .remove("irqpoll")
    });
    settled(judged)
}

fn unbound_cpus(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("workqueue.unbound_cpus").or_absent().and_then(|param| {
        let nothing = |why: String| Finding::no_effect(param.to_string(), CMDLINE).note(why);
        let typed = inputs
            .list(param.value.as_deref().unwrap_or_default())
            .map_err(|error| nothing(format!("The kernel drops it: {error}.")))?;
        let (value, origin) = inputs.value("workqueue/cpumask")?;
        let Some(effective) = CpuFormat::Mask.parse(value) else {
            return Err(Finding::unknown(value, origin));
        };
        let found = format!("{param}; the mask is CPU {effective}");
        Ok(if effective.difference(&typed).is_empty() {
            Finding::good(found, origin)
        } else {
            Finding::no_effect(found, origin).note("The mask has other CPUs.")
        })
    });
    settled(judged)
}

#[cfg(test)]
mod tests {
    use crate::rules::RuleVerdict;
    use crate::testing::verdict;

    #[test]
    fn irqbalance_leaves_alone_what_its_own_source_says() {
        let on = |config: &str, isolated: &str, partition: &str, cpus: &str, knob: &str| {
            let files = [
                ("/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs", "1\n"),
                ("/etc/default/irqbalance", config),
                ("/sys/devices/system/cpu/online", "0-3\n"),
                ("/sys/devices/system/cpu/isolated", isolated),
                ("/sys/fs/cgroup/cpuset.cpus.isolated", partition),
                ("/proc/self/cgroup", "0::/\n"),
                ("/proc/self/mountinfo", "33 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"),
            ];
            let judged = verdict(&files, Some(cpus), knob).unwrap();
            (judged.verdict, judged.why)
        };
        let list = "IRQBALANCE_BANNED_CPULIST=1\n";
        let mask = "IRQBALANCE_BANNED_CPUS=c\n";
        let both = format!("{mask}{list}");
        let balance = |config: &str, isolated: &str, cpus: &str| {
            on(config, isolated, "\n", cpus, "irqbalance")
        };
        assert_eq!(balance("", "2-3\n", "2-3").0, RuleVerdict::Good);
        // The list takes the place of what was isolated at boot; the one that is wanted has both.
        let (judged, why) = balance(list, "2-3\n", "2-3");
        assert_eq!(judged, RuleVerdict::Improve);
        assert!(why.starts_with("Set IRQBALANCE_BANNED_CPULIST=1-3 in"), "{why}");
        let (judged, why) = balance("", "2-3\n", "1");
        assert_eq!(judged, RuleVerdict::Improve);
        assert!(why.starts_with("Set IRQBALANCE_BANNED_CPULIST=1-3 in"), "{why}");
        assert_eq!(balance(mask, "\n", "2-3").0, RuleVerdict::Good);
        let (judged, why) = balance(&both, "\n", "1");
        assert_eq!(judged, RuleVerdict::Improve);
        assert!(why.contains("take IRQBALANCE_BANNED_CPUS out"), "{why}");
        let (judged, _) = on("", "\n", "2-3\n", "2-3", "irqbalance");
        assert_eq!(judged, RuleVerdict::Improve, "it looks for no partition");
        let banned = |config: &str| on(config, "\n", "\n", "2-3", "IRQBALANCE_BANNED_CPUS");
        assert_eq!(banned(mask).0, RuleVerdict::Good);
        let (judged, why) = banned(&both);
        assert_eq!(judged, RuleVerdict::Conflict);
        assert!(why.starts_with("The mask counts (CPU 2-3)"), "{why}");
    }

    #[test]
    fn an_interrupt_that_is_set_already_is_not_to_be_set_again() {
        let placed = |allowed: &str, effective: &str| {
            let files = [
                ("/sys/devices/system/cpu/online", "0-1\n"),
                ("/proc/interrupts", "      CPU0 CPU1\n 24:    0    9  PCI-MSI 1-edge  nvme0q1\n"),
                ("/proc/irq/24/smp_affinity_list", allowed),
                ("/proc/irq/24/effective_affinity_list", effective),
            ];
            let judged = verdict(&files, Some("1"), "smp_affinity_list").unwrap();
            (judged.verdict, judged.found, judged.changes.len())
        };
        let (judged, _, changes) = placed("0-1\n", "1\n");
        assert_eq!((judged, changes), (RuleVerdict::Improve, 1));
        let waits = "1 interrupt leaves it when it comes next".to_owned();
        assert_eq!(placed("0\n", "1\n"), (RuleVerdict::Good, waits, 0));
        let moved = "no interrupt of a device goes there".to_owned();
        assert_eq!(placed("0\n", "0\n"), (RuleVerdict::Good, moved, 0));
    }
}
