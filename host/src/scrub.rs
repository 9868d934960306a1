//! Takes out of a text what tells whose machine it is: addresses, identifiers, names.
//!
//! Each thing is replaced by a placeholder of its kind (documentation addresses of RFC 5737 and
//! RFC 3849, a locally administered MAC address, zeros, `host`, `user`), so that the text keeps
//! its shape and parses as before. Pure and total. What is a name is for the caller to say;
//! [`Scrub::of`] reads the usual ones through a root.

mod command_line;
mod pattern;

use crate::root::{Read, Root};
use pattern::Kind;

/// What stands for a host's name.
pub const HOST: &str = "host";
/// What stands for a person's name.
pub const USER: &str = "user";

/// The names to take out, and the taking out.
#[derive(Debug, Clone, Default)]
pub struct Scrub {
    /// Name in lower case, placeholder; longer names first.
    names: Vec<(String, &'static str)>,
}

impl Scrub {
    /// Knows no names yet: addresses and identifiers only.
    pub fn new() -> Self {
        Self::default()
    }

    /// Knows the host's names and those of its people (user ids from 1000), as the machine's own
    /// files give them. Names in the environment are for the caller to add.
    pub fn of(root: &Root) -> Self {
        let read = |path| match root.read(path) {
            Read::Text(text) => text,
            Read::Absent | Read::Unreadable { .. } => String::new(),
        };
        let mut scrub = Self::new();
        for path in ["/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname", "/etc/hostname"] {
            scrub = scrub.host(read(path).trim());
        }
        for line in read("/etc/passwd").lines() {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, id, _, full, home, ..] = fields.as_slice() else { continue };
            if id.parse().is_ok_and(|id: u32| (1000..65534).contains(&id)) {
                let home = home.rsplit('/').next().unwrap_or_default();
                let full = full.split(',').next().unwrap_or_default();
                scrub = scrub.user(name).user(home).user(full);
            }
        }
        scrub
    }

    /// Takes this host's name out too; of a full name, the first part as well.
    #[must_use]
    pub fn host(self, name: &str) -> Self {
        let first = name.split('.').next().unwrap_or_default().to_owned();
        self.name(name, HOST).name(&first, HOST)
    }

    /// Takes this person's name out too.
    #[must_use]
    pub fn user(self, name: &str) -> Self {
        self.name(name, USER)
    }

    fn name(mut self, name: &str, placeholder: &'static str) -> Self {
        let name = name.to_lowercase();
        // Names that every machine has tell nothing; a single letter is no name.
        let common = ["localhost", "localdomain", "root", "nobody", "(none)", HOST, USER];
        let known = self.names.iter().any(|(other, _)| *other == name);
        if name.len() > 1 && !known && !common.contains(&name.as_str()) {
            self.names.push((name, placeholder));
            self.names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        }
        self
    }

    /// Free text: names, MAC and IP addresses, UUIDs and other long identifiers. Unspecified and
    /// loopback addresses are everybody's and stay.
    pub fn text(&self, text: &str) -> String {
        self.replace(
            text,
            &[Kind::Uuid, Kind::MacName, Kind::Mac, Kind::Ipv6, Kind::Ipv4, Kind::LongHex],
        )
    }

    /// Names of kernels and paths, where four numbers with points are a version: as
    /// [`Scrub::text`], without IP addresses.
    pub fn path(&self, text: &str) -> String {
        self.replace(text, &[Kind::Uuid, Kind::MacName, Kind::Mac, Kind::LongHex])
    }

    /// A kernel command line: as text, and by what each parameter is. What stands after `--` is for
    /// the first process and is left out.
    pub fn command_line(&self, text: &str) -> String {
        command_line::scrub(self, text)
    }

    fn replace(&self, text: &str, kinds: &[Kind]) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        let mut inside_word = false;
        while let Some(c) = rest.chars().next() {
            let found = if inside_word { None } else { self.at_start(rest, kinds) };
            let (taken, shown) = found.unwrap_or_else(|| (c.len_utf8(), c.to_string()));
            out.push_str(&shown);
            inside_word = rest[..taken].ends_with(is_word);
            rest = &rest[taken..];
        }
        out
    }

    /// What stands at the start of a text, in bytes, and what stands for it.
    fn at_start(&self, text: &str, kinds: &[Kind]) -> Option<(usize, String)> {
        let ends = |taken: usize| !text[taken..].starts_with(is_word);
        let kind = kinds.iter().find_map(|kind| kind.at_start(text)).filter(|found| ends(found.0));
        kind.or_else(|| {
            let found = self.names.iter().find_map(|(name, placeholder)| {
                let taken = same_letters(text, name)?;
                ends(taken).then(|| (taken, (*placeholder).to_owned()))
            });
            found.filter(|(taken, _)| *taken > 0)
        })
    }
}

/// How many bytes of the text are that name, letters large or small.
fn same_letters(text: &str, lower: &str) -> Option<usize> {
    let mut letters = text.char_indices();
    let mut wanted = lower.chars();
    let mut pending = wanted.next();
    while pending.is_some() {
        let (_, c) = letters.next()?;
        for small in c.to_lowercase() {
            if pending != Some(small) {
                return None;
            }
            pending = wanted.next();
        }
    }
    Some(letters.next().map_or(text.len(), |(at, _)| at))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric()
}

#[cfg(test)]
mod tests;
