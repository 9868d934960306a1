//! The table itself.

use super::*;
use crate::Root;
use crate::facts::MachineFacts;
use crate::settings::KernelSettings;
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
