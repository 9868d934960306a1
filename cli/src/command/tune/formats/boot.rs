//! A plan's boot parameters: a drop-in for GRUB, and the command line as a whole.

use anyhow::Result;

use super::Printed;
use crate::format;

/// `/etc/default/grub.d/90-punctual.cfg`. A drop-in can only add: what has to go is named.
pub(super) fn print_grub(printed: &Printed<'_>) -> Result<String> {
    let mut text = "# /etc/default/grub.d/90-punctual.cfg; then run update-grub\n".to_owned();
    for gone in printed.gone() {
        text += &format!("# remove from /etc/default/grub: {}\n", format::plain(&gone));
    }
    let set = printed.set();
    if set.is_empty() {
        return Ok(text + "# no parameter is added\n");
    }
    // Inside double quotes of a shell these have a meaning.
    let escaped = |c: char| match c {
        '\\' | '"' | '$' | '`' => format!("\\{c}"),
        c => c.to_string(),
    };
    let words: String = format::plain(&set.join(" ")).chars().map(escaped).collect();
    text += &format!("GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT {words}\"\n");
    Ok(text)
}

/// One line: as systemd-boot's /etc/kernel/cmdline and a Raspberry Pi's cmdline.txt have it.
pub(super) fn print_line(printed: &Printed<'_>) -> Result<String> {
    Ok(format::plain(&printed.next()?.to_string()) + "\n")
}
