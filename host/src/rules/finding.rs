//! What a rule finds: a verdict, what was seen, what would change it. Types only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What facts make of a knob, the most urgent first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RuleVerdict {
    /// It contradicts another setting, or does harm.
    Conflict,
    /// It was set and does nothing.
    NoEffect,
    /// It can be improved while the machine runs.
    Improve,
    /// It can be improved by a boot parameter, another kernel or firmware.
    NeedsReboot,
    /// What is needed to judge could not be read.
    Unknown,
    /// It is as it should be.
    Good,
    /// This machine or this kernel does not have it.
    NotApplicable,
}

impl RuleVerdict {
    /// All of them, the most urgent first.
    pub const ALL: [Self; 7] = [
        Self::Conflict,
        Self::NoEffect,
        Self::Improve,
        Self::NeedsReboot,
        Self::Unknown,
        Self::Good,
        Self::NotApplicable,
    ];

    /// The word of it, as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::NoEffect => "no-effect",
            Self::Improve => "improve",
            Self::NeedsReboot => "needs-reboot",
            Self::Unknown => "unknown",
            Self::Good => "good",
            Self::NotApplicable => "not-applicable",
        }
    }

    /// Whether something is left to do.
    pub fn is_open(self) -> bool {
        self <= Self::NeedsReboot
    }
}

/// What would change a knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum KnobChange {
    /// A file is written while the machine runs.
    Write {
        /// The file.
        path: String,
        /// What is written into it.
        value: String,
    },
    /// A boot parameter is set.
    Boot {
        /// Its name.
        name: String,
        /// Its value; null for one without.
        value: Option<String>,
    },
    /// A boot parameter is removed.
    Remove {
        /// Its name.
        name: String,
    },
    /// A cgroup v2 partition with these CPUs is made.
    Partition {
        /// The CPUs.
        cpus: String,
    },
}

/// What one rule finds of one knob.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    pub(super) verdict: RuleVerdict,
    /// The value as it was read, in words.
    pub(super) found: String,
    pub(super) origin: String,
    /// What in particular is the matter; stands before the rule's own reason.
    pub(super) note: String,
    /// Another knob than that of the rule.
    pub(super) knob: Option<Box<str>>,
    pub(super) changes: Vec<KnobChange>,
}

impl Finding {
    fn new(verdict: RuleVerdict, found: impl Into<String>, origin: impl Into<String>) -> Self {
        let (found, origin) = (found.into(), origin.into());
        Self { verdict, found, origin, note: String::new(), knob: None, changes: Vec::new() }
    }

    pub(super) fn conflict(found: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(RuleVerdict::Conflict, found, origin)
    }

    pub(super) fn no_effect(found: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(RuleVerdict::NoEffect, found, origin)
    }

    pub(super) fn improve(found: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(RuleVerdict::Improve, found, origin)
    }

    pub(super) fn needs_reboot(found: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(RuleVerdict::NeedsReboot, found, origin)
    }

    pub(super) fn unknown(found: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(RuleVerdict::Unknown, found, origin)
    }

    pub(super) fn good(found: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(RuleVerdict::Good, found, origin)
    }

    pub(super) fn not_applicable(found: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(RuleVerdict::NotApplicable, found, origin)
    }

    /// What in particular is the matter, as a sentence.
    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Of this knob rather than that of the rule.
    pub(super) fn knob(mut self, knob: impl Into<String>) -> Self {
        self.knob = Some(knob.into().into());
        self
    }

    /// A file that would be written.
    pub(super) fn write(mut self, path: impl Into<String>, value: impl Into<String>) -> Self {
        self.changes.push(KnobChange::Write { path: path.into(), value: value.into() });
        self
    }

    /// A boot parameter that would be set.
    pub(super) fn boot(mut self, name: &str, value: Option<String>) -> Self {
        self.changes.push(KnobChange::Boot { name: name.to_owned(), value });
        self
    }

    /// A boot parameter that would go.
    pub(super) fn remove(mut self, name: &str) -> Self {
        self.changes.push(KnobChange::Remove { name: name.to_owned() });
        self
    }

    /// A partition that would be made.
    pub(super) fn partition(mut self, cpus: impl ToString) -> Self {
        self.changes.push(KnobChange::Partition { cpus: cpus.to_string() });
        self
    }
}
