//! KernelSettings of trees built by code.

use super::*;
use crate::cpulist::CpuList;
use crate::testing::Tree;

fn settings(files: &[(&str, &str)]) -> KernelSettings {
    KernelSettings::collect(&Tree::of(files).root())
}

#[test]
fn interrupts_have_counts_and_affinities() {
    let tree = Tree::of(&[
        (
            "/proc/interrupts",
            "           CPU0       CPU2\n 24:  1  7  IO-APIC 5-edge  eth0\nNMI:  0  0 x\nERR: 0\n",
        ),
        ("/proc/irq/24/smp_affinity_list", "0-2\n"),
        ("/proc/irq/24/effective_affinity_list", "2\n"),
    ]);
    let mut settings = KernelSettings::collect(&tree.root());
    let first = |settings: &KernelSettings| settings.interrupts.value().unwrap().all[0].clone();
    let before = first(&settings);
    assert_eq!((before.number, before.name.as_str()), (24, "IO-APIC 5-edge eth0"));
    assert_eq!(before.counts.get(&2), Some(&7));
    assert_eq!(before.effective.value().map(ToString::to_string).as_deref(), Some("2"));
    assert!(before.risen.is_empty() && !settings.interrupts.value().unwrap().watched);
    tree.write(
        "/proc/interrupts",
        "           CPU0       CPU2\n 24:  1  9  IO-APIC 5-edge  eth0\n",
    );
    settings.watch(&tree.root());
    assert_eq!(first(&settings).risen, CpuList::single(2));
    assert!(settings.interrupts.value().unwrap().watched);
}

#[test]
fn the_log_tells_what_the_kernel_did_not_know() {
    let log = "[    0.000000] Linux version 6.1.0 (x@y) #1 SMP\n\
               <5>[    0.010000] Unknown kernel command line parameters \"kthread_cpus=0 splash\", \
               will be passed to user space.\n[    0.1] other\n";
    let release = ("/proc/sys/kernel/osrelease", "6.1.0\n");
    let read = |log: &str| settings(&[release, ("/var/log/dmesg", log)]);
    let unknown = |settings: &KernelSettings| {
        let log = settings.kernel_log.value().unwrap();
        log.unknown_parameters(settings.release).map(|words| words.join(","))
    };
    let settings = read(log);
    assert_eq!(settings.kernel_log.value().unwrap().lines.len(), 2);
    assert_eq!(unknown(&settings).as_deref(), Some("kthread_cpus=0,splash"));
    assert_eq!(unknown(&read("[ 0.0] Linux version 6.1.0\n")).as_deref(), Some(""));
    assert_eq!(unknown(&read("[ 9.0] NO_HZ: x\n")), None, "the start of the log is lost");
}

#[test]
fn boot_files_give_their_kernel_parameters() {
    let settings = settings(&[
        ("/etc/default/grub", "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n"),
        ("/etc/default/grub.d/50-x.cfg", "GRUB_CMDLINE_LINUX='isolcpus=2 a=\"b c\"'\n"),
        ("/boot/loader/entries/a.conf", "title T\noptions root=/dev/x nohz_full=2\n"),
        ("/boot/cmdline.txt", "console=tty1 isolcpus=3\nsecond\n"),
    ]);
    let shown: Vec<String> = settings.boot.iter().map(|f| f.parameters.to_string()).collect();
    assert_eq!(
        shown,
        ["quiet", "isolcpus=2 a=\"b c\"", "root=/dev/x nohz_full=2", "console=tty1 isolcpus=3"]
    );
    assert_eq!(settings.boot[3].loader, Loader::RaspberryPi);
}

#[test]
fn parameters_of_modules_are_looked_up() {
    let settings = settings(&[
        ("/proc/cmdline", "workqueue.cpumask=1 rcutree.kthread_prio=11 none.x=1 ..=1\n"),
        ("/sys/module/rcutree/parameters/kthread_prio", "11\n"),
        ("/sys/module/workqueue/parameters/power_efficient", "N\n"),
    ]);
    let seen: Vec<(&str, bool, bool)> = settings
        .module_parameters
        .iter()
        .map(|p| (p.name.as_str(), p.module.is_known(), p.shown.is_known()))
        .collect();
    assert_eq!(
        seen,
        [
            ("workqueue.cpumask", true, false),
            ("rcutree.kthread_prio", true, true),
            ("none.x", false, false)
        ]
    );
}
