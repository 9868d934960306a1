//! The files that the next boot's command line is made of: what is written there, which may not be
//! what the kernel was started with. Reads through the source; knows no boot loader's syntax but
//! where it keeps kernel parameters.

use crate::cmdline::CommandLine;
use crate::facts::source::Source;
use crate::root::Listing;

/// A boot loader, by where it keeps kernel parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loader {
    /// GRUB by Debian's tools: `/etc/default/grub` and its drop-ins, then `update-grub`.
    Grub,
    /// systemd-boot or a unified image by kernel-install: `/etc/kernel/cmdline`.
    SystemdBoot,
    /// Boot Loader Specification entries, changed by grubby.
    Entries,
    /// A Raspberry Pi: `cmdline.txt` on the boot partition.
    RaspberryPi,
}

/// A file with kernel parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootFile {
    /// Its path.
    pub path: String,
    /// Whose it is.
    pub loader: Loader,
    /// The parameters in it.
    pub parameters: CommandLine,
}

const GRUB: &str = "/etc/default/grub";
const DROP_INS: &str = "/etc/default/grub.d";
const ENTRIES: &str = "/boot/loader/entries";

/// Files of one line, which is the command line.
const WHOLE: &[(&str, Loader)] = &[
    ("/boot/firmware/cmdline.txt", Loader::RaspberryPi),
    ("/boot/cmdline.txt", Loader::RaspberryPi),
    ("/etc/kernel/cmdline", Loader::SystemdBoot),
];

/// The most files that are read of a directory.
const MAX: usize = 64;

/// Whether a path is one of these files: of them, a capture keeps the kernel parameters alone.
pub(crate) fn is_boot_file(path: &str) -> bool {
    path == GRUB
        || path.starts_with(DROP_INS)
        || path.starts_with(ENTRIES)
        || WHOLE.iter().any(|(whole, _)| path == *whole)
}

/// The kernel parameters of a file, on one line.
pub(crate) fn kernel_words(path: &str, text: &str) -> String {
    if WHOLE.iter().any(|(whole, _)| path == *whole) {
        return text.lines().next().unwrap_or_default().to_owned();
    }
    let entries = path.starts_with(ENTRIES);
    let words = text.lines().filter_map(|line| {
        let line = line.trim();
        if entries {
            return line.strip_prefix("options").map(str::trim);
        }
        let rest = line.strip_prefix("GRUB_CMDLINE_LINUX")?;
        let (name, value) = rest.split_once('=')?;
        let known = matches!(name, "" | "_DEFAULT");
        let value = value.trim();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let value = quote
            .map_or(value, |q| value[1..].split_once(q).map_or(&value[1..], |(inside, _)| inside));
        known.then_some(value)
    });
    words.collect::<Vec<_>>().join(" ")
}

pub(super) fn read(source: &Source<'_>) -> Vec<BootFile> {
    let mut paths = vec![(GRUB.to_owned(), Loader::Grub)];
    let mut listed = |directory: &str, ending: &str, loader| {
        if let Listing::Names(names) = source.root.list(directory) {
            let names = names.into_iter().filter(|name| name.ends_with(ending)).take(MAX);
            paths.extend(names.map(|name| (format!("{directory}/{name}"), loader)));
        }
    };
    listed(DROP_INS, ".cfg", Loader::Grub);
    listed(ENTRIES, ".conf", Loader::Entries);
    paths.extend(WHOLE.iter().map(|(path, loader)| ((*path).to_owned(), *loader)));
    let file = |(path, loader): (String, Loader)| {
        let text = source.text(&path).value().cloned()?;
        // A captured file holds the parameters alone, as an assignment or as they are.
        let parameters = CommandLine::parse(&kernel_words(&path, &text));
        Some(BootFile { path, loader, parameters })
    };
    paths.into_iter().filter_map(file).collect()
}
