//! A plan as a diff: runtime first, boot second, and what is left to a person.

use anyhow::Result;
use punctual_host::rules::KnobChange;

use super::Printed;
use crate::format;

/// The diff.
pub(super) fn print(printed: &Printed<'_>) -> Result<String> {
    let plan = printed.plan;
    let cpus = format!("CPU {} ({})", printed.cpus, printed.why);
    let mut page = format!("--- now\n+++ planned for {}\n", format::plain(&cpus));
    let line = |mark: char, text: &str| format!("{mark}{}\n", format::plain(text));
    if !plan.runtime.is_empty() {
        page += "@@ while the machine runs @@\n";
    }
    for step in &plan.runtime {
        let (place, value) = match &step.change {
            KnobChange::Write { path, value } => (path.clone(), value.clone()),
            KnobChange::Partition { cpus } => {
                ("cgroup v2 partition punctual.isolated".to_owned(), format!("isolated {cpus}"))
            }
            KnobChange::Boot { .. } | KnobChange::Remove { .. } => continue,
        };
        page += &line(' ', &place);
        page += &step.from.as_deref().map(|from| line('-', from)).unwrap_or_default();
        page += &line('+', &value);
    }
    if !plan.boot.is_empty() {
        page += "@@ at the next boot: kernel parameters @@\n";
    }
    for step in &plan.boot {
        page += &step.from.as_deref().map(|from| line('-', from)).unwrap_or_default();
        if let KnobChange::Boot { name, value } = &step.change {
            let value = value.as_deref().map(|value| format!("={value}")).unwrap_or_default();
            page += &line('+', &format!("{name}{value}"));
        }
    }
    if plan.is_empty() {
        page += "nothing would be changed\n";
    }
    if !plan.by_hand.is_empty() {
        page += "\nby hand:\n";
    }
    for by_hand in &plan.by_hand {
        let text = format!("  {}: {}. {}", by_hand.knob, by_hand.found, by_hand.why);
        page += &(format::wrap(&text, 4) + "\n");
    }
    Ok(page)
}
