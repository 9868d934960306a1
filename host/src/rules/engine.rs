//! The engine: all rules over one machine, one verdict a knob, the most urgent first. Knows no
//! rule.

use super::finding::{Finding, KnobChange, RuleVerdict};
use super::inputs::{CMDLINE, Inputs, Typed};
use super::row::{Judge, Release, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is found of one knob, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnobVerdict {
    /// The rule; stable from version to version.
    pub id: String,
    /// The parameter's or setting's own name; one verdict has it.
    pub knob: String,
    /// "conflict", "no-effect", "improve", "needs-reboot", "unknown", "good" or "not-applicable".
    pub verdict: RuleVerdict,
    /// What was read.
    pub found: String,
    /// Where it was read.
    pub origin: String,
    /// Why it matters here.
    pub why: String,
    /// What it costs: heat, security, lost diagnostics; empty where it costs nothing.
    pub cost: String,
    /// The first kernel that has the knob, as "6.12"; null for all in use.
    pub since: Option<String>,
    /// The first kernel without it; null where it is still there.
    pub until: Option<String>,
    /// How the verdict was verified.
    pub verified: String,
    /// Where the rule is from.
    pub source: String,
    /// How much a loop usually gains, from 9 (stalls of milliseconds) to 0.
    pub gain: u8,
    /// What would change it.
    pub changes: Vec<KnobChange>,
}

/// Judges a machine by all rules: one verdict a knob, the most urgent first.
pub fn judge(inputs: &Inputs<'_>) -> Vec<KnobVerdict> {
    let mut by_knob: BTreeMap<String, KnobVerdict> = BTreeMap::new();
    for rule in super::table::all() {
        for verdict in rule.verdicts(inputs) {
            // Of several rules about a knob, the one that finds most counts; what another one
            // would change is kept where that one has nothing.
            let verdict = match by_knob.remove(&verdict.knob) {
                None => verdict,
                Some(other) if other.rank() <= verdict.rank() => other.or_changes(verdict),
                Some(other) => verdict.or_changes(other),
            };
            by_knob.insert(verdict.knob.clone(), verdict);
        }
    }
    let mut verdicts: Vec<_> = by_knob.into_values().collect();
    verdicts.sort_by(|a, b| (a.rank(), &a.id, &a.knob).cmp(&(b.rank(), &b.id, &b.knob)));
    verdicts
}

impl KnobVerdict {
    fn or_changes(mut self, other: Self) -> Self {
        if self.changes.is_empty() && self.verdict.is_open() {
            self.changes = other.changes;
        }
        self
    }

    fn rank(&self) -> (RuleVerdict, u8) {
        (self.verdict, u8::MAX - self.gain)
    }
}

impl Rule {
    /// What this rule alone finds.
    pub(super) fn verdicts(&self, inputs: &Inputs<'_>) -> Vec<KnobVerdict> {
        let findings = match (self.before_its_time(inputs), self.judge) {
            (Some(finding), _) => vec![finding],
            (None, Judge::One(one)) => vec![one(inputs)],
            (None, Judge::Each(each)) => each(inputs),
        };
        let findings = findings.into_iter().map(|finding| self.not_passed_over(finding, inputs));
        findings.map(|finding| self.verdict(finding)).collect()
    }

    /// A parameter that was typed where the machine or the kernel does not have what it sets does
    /// nothing, which is more than that the setting is not there.
    fn not_passed_over(&self, finding: Finding, inputs: &Inputs<'_>) -> Finding {
        match inputs.typed(self.knob) {
            Typed::Yes(param)
                if finding.verdict == RuleVerdict::NotApplicable && finding.knob.is_none() =>
            {
                Finding::no_effect(format!("{param}; {}", finding.found), finding.origin)
                    .note("This machine does not have what it sets.")
                    .remove(self.knob)
            }
            _ => finding,
        }
    }

    /// Whether this kernel does not have the knob yet, or no longer.
    fn before_its_time(&self, inputs: &Inputs<'_>) -> Option<Finding> {
        let release = inputs.settings.release?;
        let (major, minor) = release;
        let lacks = match (self.since, self.until) {
            (Some(since), _) if release < since => format!("came with Linux {}", shown(since)),
            (_, Some(until)) if release >= until => format!("went with Linux {}", shown(until)),
            _ => return None,
        };
        let found = format!("this is Linux {major}.{minor}, and it {lacks}");
        Some(match inputs.typed(self.knob) {
            Typed::Yes(param) => Finding::no_effect(format!("{param}: {found}"), CMDLINE)
                .note("This kernel does not have the parameter.")
                .remove(self.knob),
            _ => Finding::not_applicable(found, "/proc/sys/kernel/osrelease"),
        })
    }

    fn verdict(&self, finding: Finding) -> KnobVerdict {
        let why = [finding.note.as_str(), self.why].map(str::trim);
        KnobVerdict {
            id: self.id.to_owned(),
            knob: finding.knob.map_or_else(|| self.knob.to_owned(), String::from),
            verdict: finding.verdict,
            found: finding.found,
            origin: finding.origin,
            why: why.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "),
            cost: self.cost.to_owned(),
            since: self.since.map(shown),
            until: self.until.map(shown),
            verified: self.verified.to_owned(),
            source: self.source.to_owned(),
            gain: self.gain,
            changes: finding.changes,
        }
    }
}

/// A release as people write it.
pub(super) fn shown((major, minor): Release) -> String {
    format!("{major}.{minor}")
}
