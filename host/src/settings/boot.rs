//! The files that the next boot's command line is made of: what is written there, which may not be
//! what the kernel was started with. Reads through the source; knows no boot loader's syntax but
//! where it keeps kernel parameters.

use crate::cmdline::CommandLine;
use crate::facts::Source;
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

pub(crate) const GRUB: &str = "/etc/default/grub";
pub(crate) const DROP_INS: &str = "/etc/default/grub.d";

/// Where entries of the Boot Loader Specification lie.
pub(crate) const ENTRIES: [&str; 3] =
    ["/boot/loader/entries", "/efi/loader/entries", "/boot/efi/loader/entries"];

/// What kernel-install makes entries and images with.
pub(crate) const KERNEL: &str = "/etc/kernel/cmdline";

/// Files of one line, which is the command line.
pub(crate) const WHOLE: &[(&str, Loader)] = &[
    ("/boot/firmware/cmdline.txt", Loader::RaspberryPi),
    ("/boot/cmdline.txt", Loader::RaspberryPi),
    (KERNEL, Loader::SystemdBoot),
];

/// The most files that are read of a directory.
const MAX: usize = 64;

/// Whether a path is one of these files: of them, a capture keeps the kernel parameters alone.
pub(crate) fn is_boot_file(path: &str) -> bool {
    path == GRUB
        || path.starts_with(DROP_INS)
        || is_entry(path)
        || WHOLE.iter().any(|(whole, _)| path == *whole)
}

fn is_entry(path: &str) -> bool {
    ENTRIES.iter().any(|directory| path.starts_with(directory))
}

/// The kernel parameters of a file, on one line.
pub fn kernel_words(path: &str, text: &str) -> String {
    if WHOLE.iter().any(|(whole, _)| path == *whole) {
        return text.lines().next().unwrap_or_default().to_owned();
    }
    let entries = is_entry(path);
    let words = text.lines().filter_map(|line| {
        let line = line.trim();
        if entries {
            return line.strip_prefix("options").map(|options| options.trim().to_owned());
        }
        let rest = line.strip_prefix("GRUB_CMDLINE_LINUX")?;
        let (name, value) = rest.split_once('=')?;
        let known = matches!(name, "" | "_DEFAULT");
        known.then(|| shell_words(value.trim())).flatten()
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The words that a shell would assign, without what it would put in: other variables, commands.
fn shell_words(value: &str) -> Option<String> {
    if value.starts_with("$(") {
        return None;
    }
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let mut text = String::new();
    let mut letters = value.chars().skip(usize::from(quote.is_some()));
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if quote != Some('\'') => text.extend(letters.next()),
            letter if Some(letter) == quote => break,
            letter => text.push(letter),
        }
    }
    let words = text.split_whitespace().filter(|word| !word.starts_with('$'));
    Some(words.collect::<Vec<_>>().join(" "))
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
    ENTRIES.iter().for_each(|directory| listed(directory, ".conf", Loader::Entries));
    paths.extend(WHOLE.iter().map(|(path, loader)| ((*path).to_owned(), *loader)));
    let file = |(path, loader): (String, Loader)| {
        let text = source.text(&path).value().cloned()?;
        // A captured file holds the parameters alone, as an assignment or as they are.
        let parameters = CommandLine::parse(&kernel_words(&path, &text));
        Some(BootFile { path, loader, parameters })
    };
    paths.into_iter().filter_map(file).collect()
}
