//! Why a loop is late, and what to do next, as far as facts at hand show it.
//!
//! What a run shows is decided here; what can be tuned, by the rules of `host`. Each advice states
//! a fact of the machine or of the run, and a command that exists. It names no cause that it did
//! not see.

use punctual_host::facts::MachineFacts;
use punctual_host::rules::{KnobChange, KnobVerdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::LoadRow;
use crate::format;

/// That stalls may be the host's: also an advice.
pub(crate) const NOTE_GUEST: &str = "virtual machine: stalls caused by the host are included";

/// That the policy was refused: also in the headline.
pub(crate) const NOTE_ORDINARY: &str = "measured as SCHED_OTHER: any process can delay the loop; \
                                        a real-time loop on this machine would be late less often";

/// The most that are given.
const ADVICE_MAX: usize = 3;

/// One fact, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Advice {
    /// "host", "load", "CPU", "frequency", "memory", "setting".
    pub(crate) topic: String,
    /// The fact.
    pub(crate) text: String,
    /// A command that shows more, or changes it; null where none does.
    pub(crate) command: Option<String>,
}

/// A gain below this is not worth a line here: `punctual tune check` has the rest.
const GAIN_MIN: u8 = 4;

/// What the rules about tuning found on the CPUs that were measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// The CPUs, as the kernel lists them.
    pub(crate) cpus: String,
    /// All verdicts.
    pub(crate) verdicts: Vec<KnobVerdict>,
}

/// What a run shows, then what the rules about tuning find, by what it would gain.
pub(super) fn of(
    facts: &MachineFacts,
    rows: &[LoadRow],
    findings: Option<&Findings>,
) -> Vec<Advice> {
    let all = findings.into_iter().flat_map(|of| of.verdicts.iter().map(|v| (v, &of.cpus)));
    let mut open: Vec<(&KnobVerdict, &String)> =
        all.filter(|(of, _)| of.verdict.is_open() && of.gain >= GAIN_MIN).collect();
    open.sort_by_key(|(of, _)| std::cmp::Reverse(of.gain));
    let run = [host(facts), load(rows)].into_iter().flatten();
    let rules = open.into_iter().map(|(of, cpus)| of_rule(of, cpus));
    run.chain(rules).take(ADVICE_MAX).collect()
}

fn advice(topic: &str, text: impl Into<String>, command: Option<&str>) -> Option<Advice> {
    let command = command.map(ToOwned::to_owned);
    Some(Advice { topic: topic.to_owned(), text: text.into(), command })
}

fn host(facts: &MachineFacts) -> Option<Advice> {
    let guest = facts.virtualization.is_guest();
    let text = "virtual machine, so stalls of the host are included";
    if guest { advice("host", text, Some("punctual measure noise")) } else { None }
}

/// The load under which most were missed.
fn load(rows: &[LoadRow]) -> Option<Advice> {
    let all: u64 = rows.iter().map(|row| row.missed).sum();
    let most = rows.iter().max_by_key(|row| row.missed)?;
    if rows.len() < 2 || most.missed * 2 <= all {
        return None;
    }
    let (missed, all) = (format::count(most.missed), format::count(all));
    advice(
        "load",
        format!("{missed} of the {all} missed under load were under {}", most.load),
        None,
    )
}

/// A rule's finding: what was found, and the command that changes it.
fn of_rule(finding: &KnobVerdict, cpus: &str) -> Advice {
    let topic = match finding.id.split('.').next() {
        Some("idle" | "frequency") => "frequency",
        Some("memory") => "memory",
        Some("boot" | "risks") => "setting",
        _ => "CPU",
    };
    let command = match finding.changes.as_slice() {
        [KnobChange::Write { path, value }] => Some(format!("echo {value} | sudo tee {path}")),
        [] => None,
        [..] => Some(format!("punctual tune plan --cpus {cpus}")),
    };
    let text = format!("{}: {}", finding.knob, finding.found);
    Advice { topic: topic.to_owned(), text, command }
}

#[cfg(test)]
mod tests {
    use punctual_host::cpulist::CpuList;
    use punctual_host::root::Root;
    use punctual_host::rules::{self, Inputs};
    use punctual_host::settings::KernelSettings;

    use super::*;

    #[test]
    fn at_most_three_and_first_what_gains_most() {
        let machines = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/");
        let root = Root::captured(format!("{machines}laptop-intel-pstate")).expect("a machine");
        let (facts, settings) = (MachineFacts::collect(&root), KernelSettings::collect(&root));
        let cpus = CpuList::single(7);
        let inputs = Inputs { facts: &facts, settings: &settings, cpus: &cpus, workload: None };
        let findings = Findings { cpus: cpus.to_string(), verdicts: rules::judge(&inputs) };
        let given = of(&facts, &[], Some(&findings));
        let texts: Vec<&str> = given.iter().map(|advice| advice.text.as_str()).collect();
        assert_eq!(given.len(), ADVICE_MAX, "{texts:?}");
        assert!(texts[0].starts_with("PREEMPT_RT: "), "{texts:?}");
        assert!(texts[1..].iter().any(|text| text.contains("C10 (750 µs)")), "{texts:?}");
        let idle = given.iter().find(|advice| advice.topic == "frequency").expect("idle states");
        let command = idle.command.as_deref().expect("one file");
        assert!(
            command
                .ends_with("sudo tee /sys/devices/system/cpu/cpu7/power/pm_qos_resume_latency_us")
        );
        assert!(of(&facts, &[], None).is_empty(), "recorded data have no settings");
    }
}
