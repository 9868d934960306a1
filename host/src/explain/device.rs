//! Refused device files and namespaces. Pure.

use super::errno::{EACCES, EIO, ENODEV, ENOENT, ENXIO, EPERM, EROFS};
use super::{Explanation, container_hint, unexplained};
use crate::facts::MachineFacts;

pub(super) fn cpu_dma_latency(errno: i32, facts: &MachineFacts) -> Explanation {
    let (why, remedy) = match errno {
        EACCES | EPERM | EROFS => (
            "only root may write /dev/cpu_dma_latency by default".to_owned(),
            format!(
                "Use sudo, or give a group the right: echo 'KERNEL==\"cpu_dma_latency\", \
                 GROUP=\"realtime\", MODE=\"0660\"' | sudo tee \
                 /etc/udev/rules.d/90-cpu-dma-latency.rules, then restart{}.",
                container_hint(facts, "--device /dev/cpu_dma_latency")
            ),
        ),
        ENOENT | ENODEV | ENXIO => (
            "there is no /dev/cpu_dma_latency: this kernel was built without CONFIG_CPU_IDLE or \
             the container does not show it"
                .to_owned(),
            format!(
                "None is needed if the kernel has no idle states to hold off{}.",
                container_hint(facts, "--device /dev/cpu_dma_latency")
            ),
        ),
        _ => (unexplained(errno), "Try it with sudo.".to_owned()),
    };
    Explanation::new(why, remedy, idle_cost(facts))
}

/// What the deepest idle state costs, where the driver says it.
fn idle_cost(facts: &MachineFacts) -> String {
    let states = facts.idle.idle_states.value().map_or(&[][..], Vec::as_slice);
    match states.iter().filter(|state| !state.disabled).max_by_key(|state| state.exit_us) {
        Some(deepest) if deepest.exit_us > 1 => format!(
            "An idle CPU may enter the idle state {}, and a wake from it takes up to {} µs more.",
            deepest.name, deepest.exit_us
        ),
        Some(_) => "Little: according to its driver, no idle state of this machine takes more \
                    than 1 µs to leave."
            .to_owned(),
        None => "An idle CPU may enter a deep idle state; how long a wake then takes is \
                    unknown."
            .to_owned(),
    }
}

pub(super) fn msr(errno: i32, facts: &MachineFacts) -> Explanation {
    let (why, remedy) = match errno {
        EACCES | EPERM => (
            "only root with CAP_SYS_RAWIO may read model-specific registers, and kernel lockdown \
             (Secure Boot) forbids it to root too"
                .to_owned(),
            "Use sudo; see cat /sys/kernel/security/lockdown.".to_owned(),
        ),
        ENOENT | ENXIO | ENODEV => (
            "there is no /dev/cpu/N/msr: the module is not loaded".to_owned(),
            "Type: sudo modprobe msr.".to_owned(),
        ),
        EIO if facts.virtualization.is_guest() => (
            "the hypervisor does not expose this register to the guest".to_owned(),
            "There is none in the guest; read the register on the host.".to_owned(),
        ),
        EIO => {
            ("this processor does not have the register".to_owned(), "There is none.".to_owned())
        }
        _ => (unexplained(errno), "Try it with sudo.".to_owned()),
    };
    let cost = "System management interrupts cannot be counted: the gaps that they cause look like \
                gaps of the hardware.";
    Explanation::new(why, remedy, cost)
}

pub(super) fn network_namespace(errno: i32, facts: &MachineFacts) -> Explanation {
    let why = match errno {
        EPERM => "a network namespace needs CAP_SYS_ADMIN".to_owned(),
        _ => unexplained(errno),
    };
    let remedy =
        format!("Use sudo{}.", container_hint(facts, "--cap-add=SYS_ADMIN --cap-add=NET_ADMIN"));
    let cost =
        "The network load uses the loopback device: packets do not pass through a pair of devices.";
    Explanation::new(why, remedy, cost)
}
