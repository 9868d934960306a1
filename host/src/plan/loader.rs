//! Where a plan's boot parameters go: the texts of the files that the boot loader of this machine
//! makes its command line of, and the command that makes it.
//!
//! Reads through the root; writes nothing and runs nothing. A file keeps all that it has but the
//! parameters of the plan.

use super::{TuningPlan, boot_name};
use crate::Root;
use crate::cmdline::{CommandLine, Param};
use crate::root::{Listing, Read};
use crate::settings::{
    DROP_INS, ENTRIES, GRUB, KERNEL, Loader, WHOLE, boot_places, kernel_words, taken_out,
    taking_out,
};

/// A file and the text that it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootText {
    /// Its path.
    pub path: String,
    /// All of it.
    pub text: String,
}

/// The files to be written for the next boot, and the commands to be run after that.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BootPlan {
    /// The boot loader, in words; empty where none is known.
    pub loader: &'static str,
    /// Files, in this order.
    pub files: Vec<BootText>,
    /// The program that makes the boot loader's own files of them, with its arguments.
    pub then: Option<&'static [&'static str]>,
}

/// The drop-in of GRUB that holds what `tune apply` added.
const GRUB_DROP_IN: &str = "/etc/default/grub.d/90-punctual.cfg";

/// Programs that make GRUB's configuration: those of Debian, of other systems, and theirs under
/// another name.
const GRUB_PROGRAMS: &[&[&str]] = &[
    &["/usr/sbin/update-grub"],
    &["/usr/bin/grub-mkconfig", "-o", "/boot/grub/grub.cfg"],
    &["/usr/sbin/grub2-mkconfig", "-o", "/boot/grub2/grub.cfg"],
];

/// Makes entries and images of the file of the same parameters.
const KERNEL_INSTALL: &[&str] = &["/usr/bin/kernel-install", "add-all"];

/// A loader whose entries only its own program can change.
pub const GRUBBY: &str = "grubby";

impl BootPlan {
    /// The files of this machine's boot loader with the parameters of a plan.
    pub fn of(plan: &TuningPlan, root: &Root) -> Self {
        if plan.boot.is_empty() {
            return Self::default();
        }
        raspberry_pi(plan, root)
            .or_else(|| entries(plan, root))
            .or_else(|| grub(plan, root))
            .or_else(|| kernel_install(plan, root))
            .inspect(|plan| {
                let known = |file: &BootText| Self::is_file(&file.path);
                debug_assert!(plan.files.iter().all(known), "{:?}", plan.files);
            })
            .unwrap_or_default()
    }

    /// What was looked for where no boot loader is known, and is not there, in words.
    pub fn lacking(root: &Root) -> String {
        if text(root, GRUB).is_none() {
            return format!("none of these can be read: {}", boot_places());
        }
        let programs = GRUB_PROGRAMS.iter().filter_map(|program| program.first().copied());
        let programs = programs.collect::<Vec<_>>().join(", ");
        format!("{GRUB} is there, and none of the programs that read it: {programs}")
    }

    /// Returns true where a plan may name this file: one of a boot loader that is known, an entry
    /// by its name in its directory.
    pub fn is_file(path: &str) -> bool {
        let is_entry = |directory: &str| {
            let name = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
            name.is_some_and(|name| name.ends_with(".conf") && !name.contains('/'))
        };
        [GRUB, GRUB_DROP_IN].contains(&path)
            || WHOLE.iter().any(|(whole, _)| path == *whole)
            || ENTRIES.into_iter().any(is_entry)
    }

    /// The program that has to run again once a file of a plan was put back.
    pub fn then_of(path: &str, root: &Root) -> Option<&'static [&'static str]> {
        match path {
            _ if path.starts_with(GRUB) => grub_program(root),
            KERNEL => there(KERNEL_INSTALL, root),
            _ => None,
        }
    }
}

fn text(root: &Root, path: &str) -> Option<String> {
    match root.read(path) {
        Read::Text(text) => Some(text),
        _ => None,
    }
}

fn names(root: &Root, directory: &str) -> Vec<String> {
    match root.list(directory) {
        Listing::Names(names) => names,
        _ => Vec::new(),
    }
}

/// A program, where it is installed.
fn there(program: &'static [&'static str], root: &Root) -> Option<&'static [&'static str]> {
    let (directory, name) = program.first()?.rsplit_once('/')?;
    names(root, directory).iter().any(|listed| listed == name).then_some(program)
}

fn grub_program(root: &Root) -> Option<&'static [&'static str]> {
    GRUB_PROGRAMS.iter().find_map(|program| there(program, root))
}

/// A line of parameters with those of the plan, in the place of the old ones.
fn line(plan: &TuningPlan, old: &str) -> String {
    plan.command_line(&CommandLine::parse(old)).to_string()
}

/// The first line of a text replaced; what follows stays.
fn first_line(plan: &TuningPlan, text: &str) -> String {
    let (old, rest) = text.split_once('\n').map_or((text, ""), |(old, rest)| (old, rest));
    let end = if text.contains('\n') { "\n" } else { "" };
    format!("{}{end}{rest}", line(plan, old))
}

fn raspberry_pi(plan: &TuningPlan, root: &Root) -> Option<BootPlan> {
    let mut paths = WHOLE.iter().filter(|(_, loader)| *loader == Loader::RaspberryPi);
    let (path, old) = paths.find_map(|(path, _)| Some((*path, text(root, path)?)))?;
    let file = BootText { path: path.to_owned(), text: first_line(plan, &old) };
    Some(BootPlan { loader: "Raspberry Pi", files: vec![file], then: None })
}

/// Entries whose options are spelt out; where one takes them from a variable, all are left to
/// grubby, which knows where that is.
fn entries(plan: &TuningPlan, root: &Root) -> Option<BootPlan> {
    let mut files = Vec::new();
    let mut variable = false;
    for directory in ENTRIES {
        let entries = names(root, directory).into_iter().filter(|name| name.ends_with(".conf"));
        for path in entries.map(|name| format!("{directory}/{name}")) {
            let old = text(root, &path)?;
            let options: Vec<&str> = old.lines().filter_map(options).collect();
            if options.is_empty() {
                continue;
            }
            variable |= options.iter().any(|line| line.contains('$'));
            files.push(BootText { text: with_options(plan, &old), path });
        }
    }
    if files.is_empty() {
        return None;
    }
    if variable {
        return Some(BootPlan { loader: GRUBBY, ..BootPlan::default() });
    }
    // Entries of kernels that are installed later are made of this file.
    if let Some(old) = text(root, KERNEL) {
        files.push(BootText { path: KERNEL.to_owned(), text: first_line(plan, &old) });
    }
    Some(BootPlan { loader: "Boot Loader Specification", files, then: None })
}

/// The options on a line of an entry.
fn options(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("options")?;
    rest.starts_with(char::is_whitespace).then(|| rest.trim())
}

/// An entry whose options, which may stand on several lines, are one line with the parameters.
fn with_options(plan: &TuningPlan, entry: &str) -> String {
    let old: Vec<&str> = entry.lines().filter_map(options).collect();
    let mut new = Some(format!("options {}", line(plan, &old.join(" "))));
    let mut text = String::new();
    for line in entry.lines() {
        let line = match options(line) {
            None => line.to_owned(),
            Some(_) => match new.take() {
                Some(new) => new,
                None => continue,
            },
        };
        text += &(line + "\n");
    }
    text
}

fn grub(plan: &TuningPlan, root: &Root) -> Option<BootPlan> {
    let whole = text(root, GRUB)?;
    let then = grub_program(root)?;
    // Debian's program reads drop-ins; the others read the one file.
    let directory = matches!(root.list(DROP_INS), Listing::Names(_));
    let (path, old) = match then.len() == 1 && directory {
        true => (GRUB_DROP_IN, text(root, GRUB_DROP_IN).unwrap_or_default()),
        false => (GRUB, whole),
    };
    let (before, ours) = old.split_once(GRUB_HEAD).unwrap_or((&old, ""));
    let end = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let text = format!("{before}{end}{}", grub_lines(plan, ours));
    let file = BootText { path: path.to_owned(), text };
    Some(BootPlan { loader: "GRUB", files: vec![file], then: Some(then) })
}

/// The first line of those for GRUB.
const GRUB_HEAD: &str = "# Added by punctual tune; then run the program that makes grub.cfg.\n";

/// Lines of a shell for GRUB's configuration: those that were there, with the plan's.
///
/// They take the old values out of what the lines before them set, and add the new ones.
pub fn grub_lines(plan: &TuningPlan, before: &str) -> String {
    let set = CommandLine::parse(&kernel_words(GRUB_DROP_IN, before));
    let added = plan.command_line(&set);
    let mut gone: Vec<&str> = taken_out(before).collect();
    let names = plan.boot.iter().filter(|step| step.from.is_some());
    for name in names.filter_map(|step| boot_name(&step.change)) {
        // A parameter that ends up in a pattern or a command: letters, digits and these.
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.chars().all(plain) && gone.iter().all(|known| *known != name) {
            gone.push(name);
        }
    }
    let without = |variable: &str| {
        format!(
            "  {variable}=$(set -f; for word in ${variable}; do case $word in \
             \"$name\" | \"$name\"=*) ;; *) printf '%s ' \"$word\" ;; esac; done)\n"
        )
    };
    let body = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"].map(without).concat();
    let mut text = GRUB_HEAD.to_owned() + &taking_out(&gone, &body);
    if !added.params.is_empty() {
        let words = added.params.iter().map(Param::to_string).collect::<Vec<_>>().join(" ");
        // Inside double quotes of a shell these have a meaning.
        let escaped = |c: char| match c {
            '\\' | '"' | '$' | '`' => format!("\\{c}"),
            c => c.to_string(),
        };
        let words: String = words.chars().map(escaped).collect();
        text += &format!("GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT {words}\"\n");
    }
    text
}

fn kernel_install(plan: &TuningPlan, root: &Root) -> Option<BootPlan> {
    let old = text(root, KERNEL)?;
    let file = BootText { path: KERNEL.to_owned(), text: first_line(plan, &old) };
    let then = there(KERNEL_INSTALL, root);
    Some(BootPlan { loader: "kernel-install", files: vec![file], then })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::super::PlanStep;
    use super::*;
    use crate::rules::KnobChange;
    use crate::settings::KernelSettings;
    use crate::testing::Tree;

    fn plan(changes: &[(&str, Option<&str>)]) -> TuningPlan {
        let step = |(word, from): &(&str, Option<&str>)| {
            let (name, value) = word.split_once('=').map_or((*word, None), |(n, v)| (n, Some(v)));
            let name = name.to_owned();
            let change = match word.strip_prefix('-') {
                Some(name) => KnobChange::Remove { name: name.to_owned() },
                None => KnobChange::Boot { name, value: value.map(ToOwned::to_owned) },
            };
            let (knob, from) = (String::new(), from.map(ToOwned::to_owned));
            let words = String::new;
            PlanStep { id: words(), knob, why: words(), cost: words(), from, change }
        };
        let boot = changes.iter().map(step).collect();
        TuningPlan { runtime: Vec::new(), boot, by_hand: Vec::new() }
    }

    fn of(files: &[(&str, &str)], changes: &[(&str, Option<&str>)]) -> BootPlan {
        BootPlan::of(&plan(changes), &Tree::of(files).root())
    }

    #[test]
    fn what_was_looked_for_is_named() {
        let lacking = |files: &[(&str, &str)]| BootPlan::lacking(&Tree::of(files).root());
        let named = lacking(&[("/etc/hostname", "x")]);
        let places = WHOLE.iter().map(|(whole, _)| *whole).chain(ENTRIES).chain([GRUB]);
        assert!(places.into_iter().all(|place| named.contains(place)), "{named}");
        let grub = lacking(&[(GRUB, "GRUB_CMDLINE_LINUX=quiet\n")]);
        assert!(grub.contains("/usr/sbin/update-grub") && !grub.contains(KERNEL), "{grub}");
    }

    #[test]
    fn one_line_of_a_raspberry_pi_keeps_its_place_and_its_end() {
        let path = "/boot/firmware/cmdline.txt";
        let edited = |text| of(&[(path, text)], &[("isolcpus=3", None), ("-quiet", Some("quiet"))]);
        assert_eq!(edited("console=tty1 quiet rw\n").files[0].text, "console=tty1 rw isolcpus=3\n");
        assert_eq!(edited("rw").files[0].text, "rw isolcpus=3");
        assert_eq!(edited("rw\nrest\n").files[0].text, "rw isolcpus=3\nrest\n");
        assert_eq!(edited("rw").files[0].path, path);
    }

    #[test]
    fn options_of_entries_are_changed_and_those_from_a_variable_are_left() {
        let entry = "title T\noptions root=/dev/x\noptions isolcpus=1\nlinux /vmlinuz\n";
        let files = [
            ("/boot/loader/entries/a.conf", entry),
            ("/boot/loader/entries/b.conf", "title U\nefi /x.efi\n"),
            ("/etc/kernel/cmdline", "root=/dev/x"),
        ];
        let plan = of(&files, &[("isolcpus=2", Some("isolcpus=1"))]);
        let texts: Vec<(&str, &str)> =
            plan.files.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
        let changed = "title T\noptions root=/dev/x isolcpus=2\nlinux /vmlinuz\n";
        assert_eq!(
            texts,
            [
                ("/boot/loader/entries/a.conf", changed),
                ("/etc/kernel/cmdline", "root=/dev/x isolcpus=2")
            ]
        );
        assert_eq!(of(&[], &[("quiet", None)]), BootPlan::default(), "nothing is known");
        assert_eq!(of(&files, &[]), BootPlan::default(), "nothing is to be done");
        let variable = ("/boot/loader/entries/c.conf", "options $kernelopts\n");
        let left = of(&[files[0], variable], &[("quiet", None)]);
        assert!(left.loader == GRUBBY && left.files.is_empty(), "{left:?}");
    }

    /// The parameters that a shell reads from GRUB's files.
    fn sourced(files: &[&str]) -> String {
        let mut shell = Command::new("sh")
            .args(["-e", "/dev/stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh");
        let end = "\necho $GRUB_CMDLINE_LINUX_DEFAULT $GRUB_CMDLINE_LINUX\n";
        let text = files.join("\n") + end;
        shell.stdin.take().expect("piped").write_all(text.as_bytes()).expect("written");
        let output = shell.wait_with_output().expect("ended");
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[test]
    fn a_drop_in_of_grub_replaces_removes_and_goes_on_from_what_it_had() {
        let own = "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=1\"\nGRUB_CMDLINE_LINUX='idle=poll'";
        let drop_in_before = ("/etc/default/grub.d/00-other.cfg", "");
        let files = [("/etc/default/grub", own), ("/usr/sbin/update-grub", ""), drop_in_before];
        let first = [("isolcpus=2", Some("isolcpus=1")), ("-idle", Some("idle=poll"))];
        let plan = of(&files, &first);
        assert_eq!(plan.then, Some(&["/usr/sbin/update-grub"][..]));
        let foreign = ["/etc/shadow", "/etc/default/grub.d/50-mine.cfg", "/etc/default/grub/", ""];
        let entry = ["/boot/loader/entries/../x.conf", "/boot/loader/entries/a/b.conf"];
        assert!(foreign.iter().chain(&entry).all(|path| !BootPlan::is_file(path)));
        let drop_in = &plan.files[0];
        assert_eq!(drop_in.path, GRUB_DROP_IN);
        assert_eq!(sourced(&[own, &drop_in.text]), "quiet isolcpus=2\n", "{}", drop_in.text);
        assert_eq!(kernel_words(GRUB_DROP_IN, &drop_in.text), "isolcpus=2");
        // Another plan later, when the machine runs with the first: both hold.
        let files = [files[0], files[1], drop_in_before, (GRUB_DROP_IN, drop_in.text.as_str())];
        let next = of(&files, &[("dyndbg=file a +p", None)]);
        let line = sourced(&[own, &next.files[0].text]);
        assert_eq!(line, "quiet isolcpus=2 dyndbg=\"file a +p\"\n", "{}", next.files[0].text);
        assert_eq!(
            of(&files, &first).files[0].text,
            drop_in.text,
            "the same again changes nothing"
        );
    }

    #[test]
    fn what_a_plan_took_out_of_grubs_variables_is_written_no_more() {
        let own =
            "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=1\"\nGRUB_CMDLINE_LINUX='idle=poll'\n";
        let changes = [("isolcpus=2", Some("isolcpus=1")), ("-idle", Some("idle=poll"))];
        let programs = ["/usr/sbin/update-grub", "/usr/bin/grub-mkconfig"];
        let drop_ins = ("/etc/default/grub.d/00-other.cfg", "");
        for program in programs {
            let files = [("/etc/default/grub", own), (program, ""), drop_ins];
            let planned = of(&files, &changes);
            let file = &planned.files[0];
            let tree = Tree::of(&files);
            tree.write(&file.path, &file.text);
            let written = |root: &Root| {
                let files = KernelSettings::collect(root).boot;
                let words = files.iter().map(|file| file.parameters.to_string());
                words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" ") + "\n"
            };
            let root = tree.root();
            assert_eq!(written(&root), "quiet isolcpus=2\n", "{}: {}", file.path, file.text);
            // A capture reads the same.
            let out = Tree::new();
            let write = |path: &str, bytes: &[u8]| -> std::io::Result<()> {
                out.write(path, bytes);
                Ok(())
            };
            let recording = tree.root();
            let scrub = crate::scrub::Scrub::of(&tree.root());
            crate::capture::capture(recording, &scrub, write).expect("captured");
            assert_eq!(written(&out.root()), written(&root), "{}", file.path);
        }
    }

    #[test]
    fn where_grub_has_no_drop_ins_its_file_ends_with_the_lines() {
        let own = "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"";
        let files = [("/etc/default/grub", own), ("/usr/bin/grub-mkconfig", "")];
        let plan = of(&files, &[("isolcpus=2", None)]);
        let file = &plan.files[0];
        assert!(file.text.starts_with(own) && file.path == "/etc/default/grub", "{}", file.text);
        assert_eq!(sourced(&[&file.text]), "quiet isolcpus=2\n");
        assert_eq!(plan.then.map(|then| then[0]), Some("/usr/bin/grub-mkconfig"));
        let again = [("/etc/default/grub", file.text.as_str()), files[1]];
        assert_eq!(of(&again, &[("isolcpus=2", None)]).files[0].text, file.text);
        assert_eq!(of(&files[..1], &[("isolcpus=2", None)]), BootPlan::default(), "no program");
    }
}
