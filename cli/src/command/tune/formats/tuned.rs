//! A plan as a profile of TuneD: its plugins sysctl, sysfs, bootloader and script.

use anyhow::Result;

use super::Printed;
use crate::format;

/// `tuned.conf`.
pub(super) fn print(printed: &Printed<'_>) -> Result<String> {
    let mut text = "# /etc/tuned/punctual/tuned.conf; then run tuned-adm profile punctual\n\
                    [main]\nsummary=Settings for a real-time loop\n"
        .to_owned();
    let (mut sysctls, mut files) = (String::new(), String::new());
    for (_, path, value) in printed.plan.writes() {
        let value = format::plain(value);
        match path.strip_prefix("/proc/sys/") {
            Some(name) => sysctls += &format!("{}={value}\n", name.replace('/', ".")),
            None => files += &format!("{path}={value}\n"),
        }
    }
    let section = |name: &str, body: &str| match body {
        "" => String::new(),
        body => format!("\n[{name}]\n{body}"),
    };
    text += &section("sysctl", &sysctls);
    text += &section("sysfs", &files);
    let set = format::plain(&printed.set().join(" "));
    if !set.is_empty() {
        text += &section("bootloader", &format!("cmdline_punctual={set}\n"));
    }
    for gone in printed.gone() {
        text += &format!("# remove from the boot loader: {}\n", format::plain(&gone));
    }
    if let Some(cpus) = printed.partition() {
        text += &format!("# TuneD makes no isolated partition: make one for CPU {cpus}\n");
    }
    Ok(text)
}
