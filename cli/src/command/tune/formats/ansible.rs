//! A plan as tasks of an Ansible playbook.

use anyhow::Result;

use super::{Printed, partition_commands};
use crate::format;
use crate::format::quoted;

/// The tasks. Strings are JSON, which is YAML.
pub(super) fn print(printed: &Printed<'_>) -> Result<String> {
    let mut text = "# tasks; they need root (become: true)\n".to_owned();
    let string = |value: &str| serde_json::to_string(&format::plain(value));
    for (step, path, value) in printed.plan.writes() {
        let name = string(&step.knob)?;
        match path.strip_prefix("/proc/sys/") {
            Some(sysctl) => {
                let sysctl = string(&sysctl.replace('/', "."))?;
                text += &format!(
                    "- name: {name}\n  ansible.posix.sysctl:\n    name: {sysctl}\n    value: {}\n\
                     \x20   sysctl_file: /etc/sysctl.d/90-punctual.conf\n",
                    string(value)?
                );
            }
            None => {
                let command = format!("echo {} > {}", quoted(value), quoted(path));
                text += &shell(&name, &string(&command)?);
            }
        }
    }
    for command in printed.partition().into_iter().flat_map(partition_commands) {
        text += &shell("\"isolated partition\"", &string(&command)?);
    }
    if !printed.plan.boot.is_empty() {
        let grub = super::boot::print_grub(printed)?;
        text += &format!(
            "- name: boot parameters\n  ansible.builtin.copy:\n\
             \x20   dest: /etc/default/grub.d/90-punctual.cfg\n    content: {}\n\
             - name: boot loader\n  ansible.builtin.command: update-grub\n",
            // Its line ends are part of it.
            serde_json::to_string(&grub)?
        );
    }
    Ok(text)
}

fn shell(name: &str, command: &str) -> String {
    format!("- name: {name}\n  ansible.builtin.shell: {command}\n")
}
