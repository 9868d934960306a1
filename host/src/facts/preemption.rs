//! Preemption of the kernel: the model it was built with, and the mode that is active.
//!
//! `PREEMPT_RT` stands in `uname -v`; `/sys/kernel/realtime` exists only in kernels with the
//! former patch set, and the configuration is the third choice. With `PREEMPT_DYNAMIC` the active
//! mode stands in parentheses in `/sys/kernel/debug/sched/preempt`, which needs debugfs and its
//! permission; else the command line or the configured default is taken, and the origin says so.

use super::kernel::{KernelConfig, configured};
use super::kernel::{release_numbers, version};
use super::{Source, bracketed, switch};
use crate::fact::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const DEBUG: &str = "/sys/kernel/debug/sched/preempt";

/// Preemption, in one line and in its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Preemption {
    /// Model and mode in words: `PREEMPT_RT`, `PREEMPT_DYNAMIC (none)`.
    pub preemption: Fact<String>,
    /// The model that the kernel was built with.
    pub preemption_model: Fact<PreemptionModel>,
    /// The active mode of a kernel that can switch; absent for the others.
    pub preemption_mode: Fact<PreemptionMode>,
}

/// The preemption model that a kernel was built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PreemptionModel {
    /// `PREEMPT_RT`: nearly everything can be preempted, interrupt handlers are threads.
    Rt,
    /// `PREEMPT_DYNAMIC`: the mode is chosen at boot or later.
    Dynamic,
    /// `PREEMPT`: outside of critical sections.
    Full,
    /// `PREEMPT_LAZY`: at the tick for ordinary tasks, at once for real-time ones.
    Lazy,
    /// `PREEMPT`, where no configuration tells full from lazy (Linux 6.13 and later).
    FullOrLazy,
    /// `PREEMPT_VOLUNTARY`: at points chosen in the code.
    Voluntary,
    /// `PREEMPT_NONE`: at the return to user space.
    None,
    /// No preemption flag, and no configuration that tells none from voluntary.
    NoneOrVoluntary,
}

/// The mode of a kernel that can switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PreemptionMode {
    /// At the return to user space.
    None,
    /// At points chosen in the code.
    Voluntary,
    /// Outside of critical sections.
    Full,
    /// At the tick for ordinary tasks, at once for real-time ones.
    Lazy,
}

impl PreemptionMode {
    /// The kernel's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Voluntary => "voluntary",
            Self::Full => "full",
            Self::Lazy => "lazy",
        }
    }

    fn of(word: &str) -> Option<Self> {
        [Self::None, Self::Voluntary, Self::Full, Self::Lazy]
            .into_iter()
            .find(|mode| mode.word() == word)
    }
}

impl PreemptionModel {
    /// The name people know it by.
    pub fn word(self) -> &'static str {
        match self {
            Self::Rt => "PREEMPT_RT",
            Self::Dynamic => "PREEMPT_DYNAMIC",
            Self::Full => "PREEMPT",
            Self::Lazy => "PREEMPT_LAZY",
            Self::FullOrLazy => "PREEMPT or PREEMPT_LAZY",
            Self::Voluntary => "PREEMPT_VOLUNTARY",
            Self::None => "PREEMPT_NONE",
            Self::NoneOrVoluntary => "PREEMPT_NONE or PREEMPT_VOLUNTARY",
        }
    }
}

impl Preemption {
    pub(crate) fn collect(source: &Source<'_>) -> Self {
        let model = model(source);
        let mode = match model.value() {
            Some(PreemptionModel::Dynamic) => dynamic_mode(source),
            // Since Linux 6.13 an RT kernel can be dynamic too: full or lazy.
            Some(PreemptionModel::Rt) => shown_mode(source),
            _ => Fact::absent(DEBUG),
        };
        Self { preemption: in_words(&model, &mode), preemption_model: model, preemption_mode: mode }
    }
}

fn in_words(model: &Fact<PreemptionModel>, mode: &Fact<PreemptionMode>) -> Fact<String> {
    model.clone().map(PreemptionModel::word).and_then(|word, origin| match (mode, model.value()) {
        (Fact::Known { value, origin: seen }, _) => {
            Fact::known(format!("{word} ({})", value.word()), format!("{origin}; {seen}"))
        }
        (_, Some(PreemptionModel::Dynamic)) => {
            Fact::known(format!("{word} (mode unknown)"), origin)
        }
        _ => Fact::known(word.to_owned(), origin),
    })
}

fn model(source: &Source<'_>) -> Fact<PreemptionModel> {
    let version = version(source);
    let realtime = source.parsed("/sys/kernel/realtime", switch);
    let known = |model, origin: &str| Fact::known(model, origin);
    // Up to Linux 5.x the flag of the patch set was two words.
    let flags = version.value().map_or("", String::as_str);
    if flags.contains("PREEMPT_RT") || flags.contains("PREEMPT RT") {
        return known(PreemptionModel::Rt, version.origin());
    }
    if let Fact::Known { value: true, origin } = &realtime {
        return known(PreemptionModel::Rt, origin);
    }
    let configured_model = configured(&source.config, "CONFIG_PREEMPT*", built_model);
    if !version.is_known() {
        return configured_model.or_else(|| version.and_then(|_, origin| Fact::absent(origin)));
    }
    if flags.contains("PREEMPT_DYNAMIC") {
        return known(PreemptionModel::Dynamic, version.origin());
    }
    if configured_model.is_known() {
        return configured_model;
    }
    let lazy_exists = release_numbers(source).is_none_or(|numbers| numbers >= (6, 13));
    let model = match (flags.split_ascii_whitespace().any(|flag| flag == "PREEMPT"), lazy_exists) {
        (true, true) => PreemptionModel::FullOrLazy,
        (true, false) => PreemptionModel::Full,
        (false, _) => PreemptionModel::NoneOrVoluntary,
    };
    known(model, version.origin())
}

fn built_model(config: &KernelConfig) -> Option<PreemptionModel> {
    [
        ("PREEMPT_RT", PreemptionModel::Rt),
        ("PREEMPT_DYNAMIC", PreemptionModel::Dynamic),
        ("PREEMPT_LAZY", PreemptionModel::Lazy),
        ("PREEMPT", PreemptionModel::Full),
        ("PREEMPT_VOLUNTARY", PreemptionModel::Voluntary),
        ("PREEMPT_NONE", PreemptionModel::None),
    ]
    .into_iter()
    .find_map(|(name, model)| config.is_on(name).then_some(model))
}

fn dynamic_mode(source: &Source<'_>) -> Fact<PreemptionMode> {
    let shown = shown_mode(source);
    if shown.is_known() {
        return shown;
    }
    let requested = requested_mode(source);
    let default = || {
        configured(&source.config, "default of CONFIG_PREEMPT_*", |config| {
            [
                ("PREEMPT_NONE", PreemptionMode::None),
                ("PREEMPT_VOLUNTARY", PreemptionMode::Voluntary),
                ("PREEMPT_LAZY", PreemptionMode::Lazy),
                ("PREEMPT", PreemptionMode::Full),
            ]
            .into_iter()
            .find_map(|(name, mode)| config.is_on(name).then_some(mode))
        })
    };
    match requested.or_else(default) {
        Fact::Known { value, origin } => {
            Fact::known(value, format!("{origin}, as {DEBUG} is {}", state(&shown)))
        }
        missing => shown.or_else(|| missing),
    }
}

fn state<T>(fact: &Fact<T>) -> String {
    match fact.why() {
        Some(why) => format!("unreadable: {why}"),
        None => "absent".to_owned(),
    }
}

/// `none voluntary (full) lazy`.
fn shown_mode(source: &Source<'_>) -> Fact<PreemptionMode> {
    source.parsed(DEBUG, |text| PreemptionMode::of(&bracketed(text, '(', ')')?))
}

/// The last `preempt=` that the kernel takes: each valid one sets the mode, others are skipped.
fn requested_mode(source: &Source<'_>) -> Fact<PreemptionMode> {
    let origin = "/proc/cmdline (preempt=)";
    // Linux 7.0 took `none` and `voluntary` from the architectures that have `lazy`.
    let numbers = release_numbers(source);
    let restricted = numbers.is_some_and(|numbers| numbers >= (7, 0))
        && source.config.value().is_none_or(|config| config.is_on("ARCH_HAS_PREEMPT_LAZY"));
    let lazy_exists = numbers.is_none_or(|numbers| numbers >= (6, 13));
    let taken = |mode: &PreemptionMode| match mode {
        PreemptionMode::None | PreemptionMode::Voluntary => !restricted,
        PreemptionMode::Lazy => lazy_exists,
        PreemptionMode::Full => true,
    };
    source.command_line.clone().and_then(|line, _| {
        let values = line.all("preempt").rev().filter_map(|param| param.value.as_deref());
        match values.filter_map(PreemptionMode::of).find(taken) {
            Some(mode) => Fact::known(mode, origin),
            None => Fact::absent(origin),
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::facts::MachineFacts;
    use crate::testing::Tree;

    fn facts(files: &[(&str, &str)]) -> MachineFacts {
        MachineFacts::collect(&Tree::of(files).root())
    }

    const VERSION: &str = "/proc/sys/kernel/version";
    const RELEASE: &str = "/proc/sys/kernel/osrelease";
    const CMDLINE: &str = "/proc/cmdline";
    const CONFIG: &str = "/proc/config.gz";
    const DEBUG: &str = "/sys/kernel/debug/sched/preempt";
    const MANIFEST: &str = "/MANIFEST";
    const NO_DEBUGFS: &str = "punctual capture 1\n\
                          unreadable\t/sys/kernel/debug/sched/preempt\tpermission denied\n";

    fn preemption(files: &[(&str, &str)]) -> (String, String) {
        let found = facts(files).preemption.preemption;
        (found.value().cloned().unwrap_or_default(), found.origin().to_owned())
    }

    #[test]
    fn rt_by_version_by_patch_set_and_by_configuration() {
        let words = |files: &[(&str, &str)]| preemption(files).0;
        assert_eq!(words(&[(VERSION, "#1 SMP PREEMPT_RT Debian 6.12")]), "PREEMPT_RT");
        assert_eq!(words(&[(VERSION, "#1 SMP PREEMPT RT 2021")]), "PREEMPT_RT");
        assert_eq!(
            preemption(&[(VERSION, "#1 SMP"), ("/sys/kernel/realtime", "1\n")]),
            ("PREEMPT_RT".to_owned(), "/sys/kernel/realtime".to_owned())
        );
        assert_eq!(
            words(&[(CONFIG, "CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_DYNAMIC=y")]),
            "PREEMPT_RT"
        );
        let lazy = [(VERSION, "#1 SMP PREEMPT_RT"), (DEBUG, "full (lazy)\n")];
        assert_eq!(words(&lazy), "PREEMPT_RT (lazy)");
    }

    #[test]
    fn the_active_mode_stands_in_parentheses() {
        let files = [
            (VERSION, "#1 SMP PREEMPT_DYNAMIC"),
            (DEBUG, "none voluntary (full) lazy\n"),
            (CMDLINE, "preempt=none"),
        ];
        let (words, origin) = preemption(&files);
        assert_eq!(words, "PREEMPT_DYNAMIC (full)");
        assert_eq!(origin, format!("{VERSION}; {DEBUG}"));
    }

    #[test]
    fn without_debugfs_the_command_line_then_the_default_decide() {
        let dynamic = (VERSION, "#1 SMP PREEMPT_DYNAMIC");
        let config = (CONFIG, "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_ARCH_HAS_PREEMPT_LAZY=y\n");
        let refused = (MANIFEST, NO_DEBUGFS);
        let old = (RELEASE, "6.1.0-32-amd64");
        let new = (RELEASE, "7.2.13");
        let requested = (CMDLINE, "preempt=full preempt=none preempt=nonsense -- preempt=lazy");

        let (words, origin) = preemption(&[dynamic, config, refused, old, requested]);
        assert_eq!(words, "PREEMPT_DYNAMIC (none)", "the last valid one");
        assert!(
            origin.ends_with(&format!("(preempt=), as {DEBUG} is unreadable: permission denied"))
        );

        let (words, _) = preemption(&[dynamic, config, refused, new, requested]);
        assert_eq!(words, "PREEMPT_DYNAMIC (full)", "7.0 took none away");

        let (words, origin) =
            preemption(&[dynamic, config, refused, old, (CMDLINE, "preempt=lazy")]);
        assert_eq!(words, "PREEMPT_DYNAMIC (voluntary)", "6.1 has no lazy");
        assert!(origin.contains("default of CONFIG_PREEMPT_*"), "{origin}");

        let unknown = facts(&[dynamic, refused, (CMDLINE, "quiet")]);
        assert_eq!(
            unknown.preemption.preemption.value().unwrap(),
            "PREEMPT_DYNAMIC (mode unknown)"
        );
        assert_eq!(unknown.preemption.preemption_mode.why(), Some("permission denied"));
    }

    #[test]
    fn static_models() {
        let words = |files: &[(&str, &str)]| preemption(files).0;
        let preempt = (VERSION, "#1 SMP PREEMPT");
        assert_eq!(words(&[preempt, (RELEASE, "5.10.0")]), "PREEMPT");
        assert_eq!(words(&[preempt, (RELEASE, "6.14.0")]), "PREEMPT or PREEMPT_LAZY");
        let lazy = (CONFIG, "CONFIG_PREEMPT_LAZY=y");
        assert_eq!(words(&[preempt, (RELEASE, "6.14.0"), lazy]), "PREEMPT_LAZY");
        assert_eq!(words(&[(VERSION, "#1 SMP")]), "PREEMPT_NONE or PREEMPT_VOLUNTARY");
        assert_eq!(words(&[(VERSION, "#1"), (CONFIG, "CONFIG_PREEMPT_NONE=y")]), "PREEMPT_NONE");
        assert!(!facts(&[]).preemption.preemption.is_known());
    }
}
