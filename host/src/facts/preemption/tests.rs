//! Preemption as kernels of several ages and builds show it.

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
    assert_eq!(words(&[(CONFIG, "CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_DYNAMIC=y")]), "PREEMPT_RT");
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
    let asked = (CMDLINE, "preempt=full preempt=none preempt=nonsense -- preempt=lazy");

    let (words, origin) = preemption(&[dynamic, config, refused, old, asked]);
    assert_eq!(words, "PREEMPT_DYNAMIC (none)", "the last valid one");
    assert!(origin.ends_with(&format!("(preempt=), as {DEBUG} is unreadable: permission denied")));

    let (words, _) = preemption(&[dynamic, config, refused, new, asked]);
    assert_eq!(words, "PREEMPT_DYNAMIC (full)", "7.0 took none away");

    let (words, origin) = preemption(&[dynamic, config, refused, old, (CMDLINE, "preempt=lazy")]);
    assert_eq!(words, "PREEMPT_DYNAMIC (voluntary)", "6.1 has no lazy");
    assert!(origin.contains("default of CONFIG_PREEMPT_*"), "{origin}");

    let unknown = facts(&[dynamic, refused, (CMDLINE, "quiet")]);
    assert_eq!(unknown.preemption.preemption.value().unwrap(), "PREEMPT_DYNAMIC (mode unknown)");
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
