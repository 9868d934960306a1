//! A plan's sysctls as a file for `/etc/sysctl.d`.

use anyhow::Result;

use super::Printed;
use crate::format;

/// The file; what no sysctl sets is named at its end.
pub(super) fn print(printed: &Printed<'_>) -> Result<String> {
    let mut text = "# /etc/sysctl.d/90-punctual.conf; then run sysctl --system\n".to_owned();
    let mut others = 0;
    for (step, path, value) in printed.plan.writes() {
        match path.strip_prefix("/proc/sys/") {
            Some(name) => {
                let from = step.from.as_deref().unwrap_or("unknown");
                let name = name.replace('/', ".");
                text +=
                    &format!("# was {}\n{name} = {}\n", format::plain(from), format::plain(value));
            }
            None => others += 1,
        }
    }
    if others > 0 {
        text += &format!("# {others} more settings are no sysctls: see --as systemd\n");
    }
    Ok(text)
}
