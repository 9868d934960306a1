//! Formats of a plan: one row a format. Each file here turns a plan into the text of another tool;
//! none writes a file.

use anyhow::Result;
use clap::ValueEnum;
use clap::builder::PossibleValue;

use punctual_analysis::plain::shell_word;
use punctual_document::{Block, Frame, Item, Items, ItemsKind, Table, words};
use punctual_host::CpuFormat;
use punctual_host::cmdline::CommandLine;
use punctual_host::plan::{ByHand, PlanStep, PlannedWrite, TuningPlan, grub_lines};
use punctual_host::rules::{CpuScope, KnobChange};

use crate::format;

/// A plan to be printed, and its CPUs.
pub(super) struct PrintedPlan<'a> {
    plan: &'a TuningPlan,
    scope: &'a CpuScope,
    /// The command line of now, where it is known.
    now: Option<&'a CommandLine>,
}

/// A format.
struct PlanFormat {
    name: &'static str,
    help: &'static str,
    /// Writes a plan in it; `None` for people, who read its document.
    print: Option<fn(&PrintedPlan<'_>) -> Result<String>>,
}

/// All formats.
const FORMATS: [PlanFormat; 7] = [
    PlanFormat { name: "diff", help: "a diff for people", print: None },
    PlanFormat { name: "grub", help: "a drop-in for /etc/default/grub.d", print: Some(print_grub) },
    PlanFormat {
        name: "cmdline",
        help: "the kernel command line of the next boot",
        print: Some(print_line),
    },
    PlanFormat { name: "sysctl", help: "a file for /etc/sysctl.d", print: Some(print_sysctl) },
    PlanFormat {
        name: "systemd",
        help: "a unit that sets everything at boot",
        print: Some(print_systemd),
    },
    PlanFormat { name: "tuned", help: "tuned.conf of a TuneD profile", print: Some(print_tuned) },
    PlanFormat {
        name: "ansible",
        help: "tasks of an Ansible playbook",
        print: Some(print_ansible),
    },
];

/// A format by its row.
#[derive(Clone, Copy)]
pub(super) struct FormatName(&'static PlanFormat);

impl FormatName {
    /// The text of a plan in this format; `None` where that is its document.
    ///
    /// # Errors
    /// It needs the kernel command line of now, which could not be read.
    pub(super) fn print(self, printed: &PrintedPlan<'_>) -> Result<Option<String>> {
        self.0.print.map(|print| print(printed)).transpose()
    }
}

impl std::fmt::Debug for FormatName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}

impl ValueEnum for FormatName {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: [FormatName; FORMATS.len()] = {
            static ROWS: [PlanFormat; FORMATS.len()] = FORMATS;
            let mut names = [FormatName(&ROWS[0]); FORMATS.len()];
            let mut at = 0;
            while at < names.len() {
                names[at] = FormatName(&ROWS[at]);
                at += 1;
            }
            names
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name).help(self.0.help))
    }
}

impl<'a> PrintedPlan<'a> {
    /// A plan for these CPUs; `now` is the kernel command line, where it is known.
    pub(super) fn new(
        plan: &'a TuningPlan,
        scope: &'a CpuScope,
        now: Option<&'a CommandLine>,
    ) -> Self {
        Self { plan, scope, now }
    }

    /// The CPUs of a partition, where one is made.
    pub(super) fn partition(&self) -> Option<&str> {
        self.plan.runtime.iter().find_map(|step| match &step.change {
            KnobChange::Partition { cpus } => Some(cpus.as_str()),
            _ => None,
        })
    }

    /// The changes that would be made: a diff in a terminal, tables elsewhere. What takes no reboot
    /// comes first; `verbose` has what makes no loop less late too.
    pub(super) fn document(&self, verbose: bool) -> Vec<Block> {
        let plan = self.plan;
        let cpus = format!("CPU {} ({})", self.scope.cpus, self.scope.why);
        let mut head = vec!["--- now".to_owned(), format!("+++ planned for {cpus}")];
        let mut blocks = Vec::new();
        if plan.is_empty() {
            blocks.push(Block::words(format!("nothing would be changed for {cpus}")));
        }
        for (needs_reboot, title, steps, by_hand) in [
            (false, "while the machine runs", &plan.runtime, "by hand, without a reboot:"),
            (
                true,
                "at the next boot: kernel parameters",
                &plan.boot,
                "by hand, for the next boot:",
            ),
        ] {
            if !steps.is_empty() {
                head.push(format!("@@ {title} @@"));
                let caption = format!("For {cpus}, {title}");
                blocks.extend((!blocks.is_empty()).then_some(Block::Break));
                blocks.push(planned(caption, std::mem::take(&mut head), steps).into());
            }
            let is_shown = |left: &&ByHand| verbose || left.gain > 0;
            let left = plan.by_hand.iter().filter(|left| left.needs_reboot == needs_reboot);
            let item = |left: &ByHand| {
                let label = format!("{}:", left.knob);
                Item::new(label, format!("{}. {}", left.found, left.why))
            };
            let items: Vec<Item> = left.filter(is_shown).map(item).collect();
            if !items.is_empty() {
                blocks.extend([Block::Break, Block::words(by_hand)]);
                blocks.push(Items::new(ItemsKind::Plain, items).into());
            }
        }
        let hidden = plan.by_hand.iter().filter(|left| !verbose && left.gain == 0);
        let hidden: Vec<&str> = hidden.map(|left| left.knob.as_str()).collect();
        if !hidden.is_empty() {
            let text = format!("no loop is less late by: {} (--verbose)", hidden.join(", "));
            blocks.extend([Block::Break, Block::words(text)]);
        }
        blocks
    }

    /// The command line of the next boot.
    fn next(&self) -> Result<CommandLine> {
        let Some(now) = self.now else {
            anyhow::bail!("the kernel command line of this machine could not be read");
        };
        Ok(self.plan.command_line(now))
    }

    /// The boot parameters that are set, as words.
    fn set(&self) -> Vec<String> {
        let line = self.plan.command_line(&CommandLine::default());
        line.params.iter().map(ToString::to_string).collect()
    }

    /// The boot parameters that go: those that are removed or replaced, as they stand now.
    fn gone(&self) -> Vec<String> {
        self.plan.boot.iter().filter_map(|step| step.from.clone()).collect()
    }
}

/// The commands that make a partition, for a shell: as in the kernel's admin-guide/cpu-isolation.
fn partition_commands(cpus: &str) -> [String; 4] {
    let group = "/sys/fs/cgroup/punctual.isolated";
    [
        "echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control".to_owned(),
        format!("mkdir -p {group}"),
        format!("echo {cpus} > {group}/cpuset.cpus"),
        format!("echo isolated > {group}/cpuset.cpus.partition"),
    ]
}

/// The steps as a table; in a terminal as a diff, after these lines of it.
fn planned(caption: String, mut diff: Vec<String>, steps: &[PlanStep]) -> Table {
    let (mut rows, mut rule) = (Vec::new(), "");
    for step in steps {
        let Some(PlannedValue { place, value }) = PlannedValue::of(&step.change) else { continue };
        diff.extend(reason(step, &mut rule));
        for (mark, text) in [(' ', &place), ('-', &step.from), ('+', &value)] {
            diff.extend(text.as_ref().map(|text| format!("{mark}{text}")));
        }
        let [place, now, value] = [place, step.from.clone(), value].map(Option::unwrap_or_default);
        rows.push(vec![step.knob.clone(), place, now, value, step.why.clone(), step.cost.clone()]);
    }
    let columns = ["setting", "place", "now", "planned", "why", "cost"].map(words);
    let diff = diff.into_iter().map(|line| vec![line]).collect();
    let frame = Frame::Lines { has_heads: false };
    Table::new(caption, columns, rows).brief(frame, [words("")], diff)
}

/// Where a change is made, and to what.
struct PlannedValue {
    /// `None` of a boot parameter, which is all of it.
    place: Option<String>,
    /// `None` where something is removed.
    value: Option<String>,
}

impl PlannedValue {
    /// `None` of a command that is run.
    fn of(change: &KnobChange) -> Option<Self> {
        let (place, value) = match change {
            KnobChange::Write { path, value } => (Some(path.clone()), Some(value.clone())),
            KnobChange::Partition { cpus } => {
                let place = "cgroup v2 partition punctual.isolated".to_owned();
                (Some(place), Some(format!("isolated {cpus}")))
            }
            KnobChange::Boot { name, value } => {
                let value = value.as_deref().map(|value| format!("={value}")).unwrap_or_default();
                (None, Some(format!("{name}{value}")))
            }
            KnobChange::Remove { .. } => (None, None),
            KnobChange::Run { .. } => return None,
        };
        Some(Self { place, value })
    }
}

/// The purpose of a rule's changes, in its first sentence, and their cost, as lines of a diff;
/// before the first of them, empty before the others.
fn reason<'s>(step: &'s PlanStep, rule: &mut &'s str) -> Vec<String> {
    if *rule == step.id {
        return Vec::new();
    }
    *rule = &step.id;
    let why = step.why.split_once(". ").map_or(step.why.as_str(), |(first, _)| first);
    let cost = match step.cost.as_str() {
        "" => String::new(),
        cost => format!(" Cost: {}.", cost.trim_end_matches('.')),
    };
    let text = format!("{}: {}.{cost}", step.knob, why.trim_end_matches('.'));
    let wrapped = format::wrap(&format!("# {}", format::plain(&text)), 2);
    wrapped.lines().map(|line| format!("# {}", line.trim_start_matches(['#', ' ']))).collect()
}

/// `/etc/default/grub.d/90-punctual.cfg`, as `tune apply --boot` writes it.
fn print_grub(printed: &PrintedPlan<'_>) -> Result<String> {
    let head = "# /etc/default/grub.d/90-punctual.cfg; then run update-grub\n";
    Ok(head.to_owned() + &lines(&grub_lines(printed.plan, "")))
}

/// A text of several lines without anything else that a terminal would obey.
fn lines(text: &str) -> String {
    text.lines().map(|line| format::plain(line) + "\n").collect()
}

/// One line: as systemd-boot's /etc/kernel/cmdline and a Raspberry Pi's cmdline.txt have it.
fn print_line(printed: &PrintedPlan<'_>) -> Result<String> {
    Ok(format::plain(&printed.next()?.to_string()) + "\n")
}

/// The file; what no sysctl sets is named at its end.
fn print_sysctl(printed: &PrintedPlan<'_>) -> Result<String> {
    let mut text = "# /etc/sysctl.d/90-punctual.conf; then run sysctl --system\n".to_owned();
    let mut others = 0;
    for PlannedWrite { step, path, value } in printed.plan.writes() {
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

/// The unit. Each line is a shell of its own, so that one refused setting does not stop the others.
fn print_systemd(printed: &PrintedPlan<'_>) -> Result<String> {
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
    for PlannedWrite { path, value, .. } in printed.plan.writes() {
        text += &unit(&format!("echo {} > {}", shell_word(value), shell_word(path)));
    }
    for command in printed.partition().into_iter().flat_map(partition_commands) {
        text += &unit(&command);
    }
    Ok(text + "\n[Install]\nWantedBy=multi-user.target\n")
}

/// `tuned.conf`.
fn print_tuned(printed: &PrintedPlan<'_>) -> Result<String> {
    let mut text = "# /etc/tuned/punctual/tuned.conf; then run tuned-adm profile punctual\n\
                    [main]\nsummary=Settings for a real-time loop\n"
        .to_owned();
    let (mut sysctls, mut files) = (String::new(), String::new());
    let mut interrupts: Vec<(String, Vec<String>)> = Vec::new();
    for PlannedWrite { path, value, .. } in printed.plan.writes() {
        let value = format::plain(value);
        if let Some(name) = path.strip_prefix("/proc/sys/") {
            sysctls += &format!("{}={value}\n", name.replace('/', "."));
        } else if let Some((device, cpus)) = tuned_irq(path, &value) {
            match interrupts.iter_mut().find(|(known, _)| *known == cpus) {
                Some((_, devices)) => devices.push(device),
                None => interrupts.push((cpus, vec![device])),
            }
        } else {
            files += &format!("{path}={value}\n");
        }
    }
    let section = |name: &str, body: &str| match body {
        "" => String::new(),
        body => format!("\n[{name}]\n{body}"),
    };
    text += &section("sysctl", &sysctls);
    text += &section("sysfs", &files);
    // plugin_sysfs.py writes below /sys alone.
    if !interrupts.is_empty() {
        text += "\n# TuneD before 2.23 has no plugin irq: see --as systemd\n";
    }
    for (at, (cpus, devices)) in interrupts.iter().enumerate() {
        let body = format!("type=irq\ndevices={}\naffinity={cpus}\n", devices.join(","));
        text += section(&format!("irq_{at}"), &body).trim_start();
    }
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

/// What TuneD's plugin irq calls the interrupts whose CPUs a file has, and these CPUs as it takes
/// them, a list; `None` of any other file.
fn tuned_irq(path: &str, value: &str) -> Option<(String, String)> {
    let device = match path.strip_prefix("/proc/irq/")? {
        "default_smp_affinity" => "DEFAULT".to_owned(),
        file => format!("irq{}", file.strip_suffix("/smp_affinity_list")?),
    };
    Some((device, CpuFormat::of_file(path)?.parse(value)?.to_string()))
}

/// The tasks. Strings are JSON, which is YAML.
fn print_ansible(printed: &PrintedPlan<'_>) -> Result<String> {
    let mut text = "# tasks; they need root (become: true)\n".to_owned();
    let string = |value: &str| serde_json::to_string(&format::plain(value));
    for PlannedWrite { step, path, value } in printed.plan.writes() {
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
                let command = format!("echo {} > {}", shell_word(value), shell_word(path));
                text += &shell(&name, &string(&command)?);
            }
        }
    }
    for command in printed.partition().into_iter().flat_map(partition_commands) {
        text += &shell("\"isolated partition\"", &string(&command)?);
    }
    if !printed.plan.boot.is_empty() {
        let grub = print_grub(printed)?;
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
