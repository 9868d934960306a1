//! A plan's boot parameters: a drop-in for GRUB, and the command line as a whole.

use anyhow::Result;
use punctual_host::plan::grub_lines;

use super::Printed;
use crate::format;

/// `/etc/default/grub.d/90-punctual.cfg`, as `tune apply --boot` writes it.
pub(super) fn print_grub(printed: &Printed<'_>) -> Result<String> {
    let head = "# /etc/default/grub.d/90-punctual.cfg; then run update-grub\n";
    Ok(head.to_owned() + &lines(&grub_lines(printed.plan, "")))
}

/// A text of several lines without anything else that a terminal would obey.
fn lines(text: &str) -> String {
    text.lines().map(|line| format::plain(line) + "\n").collect()
}

/// One line: as systemd-boot's /etc/kernel/cmdline and a Raspberry Pi's cmdline.txt have it.
pub(super) fn print_line(printed: &Printed<'_>) -> Result<String> {
    Ok(format::plain(&printed.next()?.to_string()) + "\n")
}
