//! A rule: what is known of one knob, and how it is judged. Data; judges nothing itself.

use super::finding::Finding;
use super::inputs::Inputs;

/// How a rule judges: one knob, or any number of them.
#[derive(Clone, Copy)]
pub(super) enum Judge {
    One(fn(&Inputs<'_>) -> Finding),
    Each(fn(&Inputs<'_>) -> Vec<Finding>),
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::One(_) => "One",
            Self::Each(_) => "Each",
        })
    }
}

/// A kernel release, major and minor.
pub type Release = (u32, u32);

/// What is known of one knob, and how it is judged.
#[derive(Debug)]
pub struct Rule {
    /// Stable: `isolation.isolcpus`.
    pub id: &'static str,
    /// The parameter's or setting's own name.
    pub knob: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// What it costs: heat, security, lost diagnostics.
    pub cost: &'static str,
    /// The first kernel that has the knob; `None` for all that are in use.
    pub since: Option<Release>,
    /// The first kernel that no longer has it; `None` where it is still there.
    pub until: Option<Release>,
    /// How the verdict is verified: what is read.
    pub verified: &'static str,
    /// Where this is from.
    pub source: &'static str,
    /// How much a loop usually gains: from 9, a stall of milliseconds, to 0.
    pub gain: u8,
    pub(super) judge: Judge,
}

/// A row in which only what is usual stands: the rest is written over it.
pub(super) const fn rule(id: &'static str, knob: &'static str, gain: u8, judge: Judge) -> Rule {
    Rule {
        id,
        knob,
        why: "",
        cost: "",
        since: None,
        until: None,
        verified: "/proc/cmdline",
        source: PARAMETERS,
        gain,
        judge,
    }
}

/// The kernel's list of its parameters.
pub(super) const PARAMETERS: &str = "Linux, admin-guide/kernel-parameters";
