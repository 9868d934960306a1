//! A plan's settings as a systemd unit: what of them a boot forgets is set again.

use anyhow::Result;

use super::{Printed, partition_commands};
use crate::format;
use crate::format::quoted;

/// The unit. Each line is a shell of its own, so that one refused setting does not stop the others.
pub(super) fn print(printed: &Printed<'_>) -> Result<String> {
    let mut text = "# /etc/systemd/system/punctual-tune.service\n\
                    # then: systemctl enable --now punctual-tune.service\n\
                    [Unit]\nDescription=Settings for a real-time loop\n\
                    After=systemd-sysctl.service\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n"
        .to_owned();
    // In a unit % starts a specifier and $ a variable.
    let unit = |command: &str| {
        let command = command.replace('%', "%%").replace('$', "$$");
        let command = command.replace('\\', "\\\\").replace('"', "\\\"");
        format!("ExecStart=-/bin/sh -c \"{}\"\n", format::plain(&command))
    };
    for (_, path, value) in printed.plan.writes() {
        text += &unit(&format!("echo {} > {}", quoted(value), quoted(path)));
    }
    for command in printed.partition().into_iter().flat_map(partition_commands) {
        text += &unit(&command);
    }
    Ok(text + "\n[Install]\nWantedBy=multi-user.target\n")
}
