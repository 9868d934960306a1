//! The table itself.

use super::*;
use crate::cmdline::{CommandLine, Param};
use crate::facts::MachineFacts;
use crate::settings::KernelSettings;
use crate::{Fact, Root};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn ids_are_unique_and_name_their_subject() {
    let ids: BTreeSet<&str> = all().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), all().count());
    for rule in all() {
        let (subject, name) = rule.id.split_once('.').unwrap();
        assert!(!subject.is_empty() && !name.is_empty(), "{}", rule.id);
        for text in [rule.why, rule.verified, rule.source, rule.knob] {
            assert!(!text.is_empty(), "{} lacks a text", rule.id);
            assert!(!text.contains("  "), "{}: two spaces in {text:?}", rule.id);
        }
        assert!(rule.why.ends_with('.') && rule.gain <= 9, "{}", rule.id);
    }
}

/// The machines of `fixtures`, with their settings.
fn machines() -> Vec<(String, MachineFacts, KernelSettings)> {
    let at = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines");
    let entries = std::fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path());
    let mut machines: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    machines.sort();
    let machine = |path: std::path::PathBuf| {
        let root = Root::captured(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, MachineFacts::collect(&root), KernelSettings::collect(&root))
    };
    machines.into_iter().map(machine).collect()
}

/// What each rule finds on each machine, for all workloads.
fn found() -> BTreeMap<&'static str, BTreeSet<(RuleVerdict, String)>> {
    let workloads = [None, Some(Workload::Servo), Some(Workload::Polling)];
    let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (name, facts, settings) in machines() {
        let scope = CpuScope::of(None, &facts);
        for workload in workloads {
            let inputs = Inputs { facts: &facts, settings: &settings, cpus: &scope.cpus, workload };
            for rule in all() {
                let verdicts = rule.verdicts(&inputs).into_iter();
                let seen = found.entry(rule.id).or_default();
                seen.extend(verdicts.map(|verdict| (verdict.verdict, name.clone())));
            }
        }
    }
    found
}

#[test]
fn every_rule_is_hit_as_good_as_bad_and_as_unknown() {
    let found = found();
    let lacks = |rule: &Rule, wanted: fn(RuleVerdict) -> bool| {
        !found[rule.id].iter().any(|(verdict, _)| wanted(*verdict))
    };
    let mut missing = Vec::new();
    for rule in all() {
        let is_lacking = [
            ("good", lacks(rule, |verdict| verdict == RuleVerdict::Good)),
            ("bad", lacks(rule, RuleVerdict::is_open)),
            ("unknown", lacks(rule, |verdict| verdict == RuleVerdict::Unknown)),
        ];
        let names = is_lacking.iter().filter(|(_, lacking)| *lacking);
        missing.extend(names.map(|(name, _)| format!("{} is {name} on no machine", rule.id)));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn one_verdict_a_knob_the_most_urgent_first() {
    for (name, facts, settings) in machines() {
        let scope = CpuScope::of(None, &facts);
        let inputs =
            Inputs { facts: &facts, settings: &settings, cpus: &scope.cpus, workload: None };
        let verdicts = judge(&inputs);
        let knobs: BTreeSet<&str> = verdicts.iter().map(|v| v.knob.as_str()).collect();
        assert_eq!(knobs.len(), verdicts.len(), "{name}");
        assert!(verdicts.is_sorted_by_key(|v| v.verdict), "{name}");
        for verdict in &verdicts {
            assert!(!verdict.found.is_empty() && !verdict.why.is_empty(), "{name}: {verdict:?}");
        }
        // What was typed is never passed over.
        let line = settings.command_line.value();
        for param in line.into_iter().flat_map(|line| &line.params) {
            let of_it = verdicts.iter().find(|verdict| param.is(&verdict.knob));
            let passed = of_it.is_some_and(|v| v.verdict == RuleVerdict::NotApplicable);
            assert!(!passed, "{name}: {param} is passed over");
        }
    }
}

/// What the rules say of `name` where it is typed with this value on that machine.
fn typed(
    (facts, settings): (&MachineFacts, &KernelSettings),
    words: &str,
    name: &str,
) -> Option<KnobVerdict> {
    let mut settings = settings.clone();
    let line = settings.command_line.value().cloned().unwrap_or_default();
    let mut params: Vec<Param> = line.params;
    let new = CommandLine::parse(words).params;
    params.retain(|param| !new.iter().any(|other| param.is(&other.name)));
    params.extend(new);
    settings.command_line = Fact::known(CommandLine { params, ..line }, "/proc/cmdline");
    let cpus = CpuScope::of(None, facts).cpus;
    let inputs = Inputs { facts, settings: &settings, cpus: &cpus, workload: None };
    judge(&inputs).into_iter().find(|verdict| verdict.knob == name)
}

#[test]
fn no_name_that_is_known_is_passed_over_where_it_is_typed() {
    let known = names::TUNING.iter().chain(names::NEVER.iter().map(|(name, _)| name));
    let known: BTreeSet<&str> = known.copied().collect();
    let mut passed = BTreeSet::new();
    for (_, facts, settings) in machines() {
        for name in &known {
            for value in ["", "=1", "=0", "=off"] {
                let verdict = typed((&facts, &settings), &format!("{name}{value}"), name);
                let found = verdict.map(|of| (of.verdict, of.found));
                if found.as_ref().is_none_or(|(of, _)| *of == RuleVerdict::NotApplicable) {
                    passed.insert(format!("{name}{value}: {found:?}"));
                }
            }
        }
    }
    assert!(passed.is_empty(), "{}", passed.into_iter().collect::<Vec<_>>().join("\n"));
}

/// The verdict about `name` on a machine of `fixtures`.
fn verdict_on(machine: &str, words: &str, name: &str) -> (RuleVerdict, String) {
    let (_, facts, settings) = machines().into_iter().find(|(name, ..)| name == machine).unwrap();
    let verdict = typed((&facts, &settings), words, name).unwrap();
    (verdict.verdict, verdict.why)
}

#[test]
fn threads_that_poll_for_callbacks_need_cpus_that_have_some_offloaded() {
    let poll = |machine: &str, list: &str| {
        verdict_on(machine, &format!("{list} rcu_nocb_poll"), "rcu_nocb_poll")
    };
    // The logs of both reach back to the start; one names CPU 1, the other none.
    assert_eq!(poll("debian-rt-guest-2cpu-tuned", "rcu_nocbs=1").0, RuleVerdict::Good);
    assert_eq!(poll("firecracker-guest-2cpu", "rcu_nocbs=1").0, RuleVerdict::NoEffect);
    let (verdict, why) = poll("smt-desktop-8cpu", "rcu_nocbs=4-7");
    assert_eq!(verdict, RuleVerdict::NoEffect);
    assert!(why.contains("built without CONFIG_RCU_NOCB_CPU"), "{why}");
    // Without a log it is what the kernel makes of the list: it drops all but the last of these.
    let (_, facts, mut settings) =
        machines().into_iter().find(|(name, ..)| name == "firecracker-guest-2cpu").unwrap();
    settings.kernel_log = Fact::unreadable("dmesg", "refused");
    for (list, wanted) in [
        ("rcu_nocbs=1-2", RuleVerdict::NoEffect),
        ("rcu_nocbs", RuleVerdict::NoEffect),
        ("rcu_nocbs=1-0", RuleVerdict::NoEffect),
        ("rcu_nocbs=1", RuleVerdict::Good),
    ] {
        let words = format!("{list} rcu_nocb_poll");
        let verdict = typed((&facts, &settings), &words, "rcu_nocb_poll").unwrap();
        assert_eq!(verdict.verdict, wanted, "{list}");
    }
}

#[test]
fn what_switches_the_detector_of_soft_lockups_off_is_told_from_what_does_not() {
    let on = |machine: &str, words: &str| verdict_on(machine, words, "nosoftlockup");
    let (verdict, why) = on("amd-smt-32cpu", "nosoftlockup nowatchdog");
    assert_eq!(verdict, RuleVerdict::NoEffect);
    assert!(why.starts_with("nowatchdog switches"), "{why}");
    assert_eq!(on("industrial-rt-4cpu", "nosoftlockup").0, RuleVerdict::Good);
    let (verdict, why) = on("laptop-intel-pstate", "nosoftlockup");
    assert_eq!(verdict, RuleVerdict::NoEffect);
    assert!(why.starts_with("Something switched it on again."), "{why}");
    let (verdict, why) = verdict_on("legacy-4cpu", "amd_idle.max_cstate=1", "amd_idle.max_cstate");
    assert_eq!(verdict, RuleVerdict::NoEffect);
    assert!(why.starts_with("No driver of Linux"), "{why}");
}
