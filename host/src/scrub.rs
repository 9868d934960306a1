//! Takes out of a text what tells whose machine it is: addresses, identifiers, names.
//!
//! Each thing is replaced by a placeholder of its kind (documentation addresses of RFC 5737 and
//! RFC 3849, a locally administered MAC address, zeros, `host`, `user`), so that the text keeps
//! its shape and parses as before. Pure and total. What is a name is for the caller to say;
//! [`Scrub::of`] reads the usual ones through a root.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::cmdline::{CommandLine, Param};
use crate::root::{Read, Root};

/// The placeholder of a host's name.
pub const HOST: &str = "host";
/// The placeholder of a person's name.
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
        let known = self.names.iter().any(|(known, _)| *known == name);
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
        scrub_command_line(self, text)
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

    /// The length in bytes of what is replaced at the start of a text, and its replacement.
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

/// The number of bytes of the text that are that name, letters large or small.
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

/// A kind of thing that is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// 8-4-4-4-12 hexadecimal digits (RFC 9562), or the 8:8:8:8 of md arrays.
    Uuid,
    /// A network device that udev named after its address, `enx` and twelve hexadecimal digits.
    MacName,
    /// 6 to 8 pairs: Ethernet, BOOTIF= with its leading type, EUI-64.
    Mac,
    /// RFC 4291 text form.
    Ipv6,
    /// Four decimal numbers.
    Ipv4,
    /// 32 hexadecimal digits or more: machine and container ids, keys.
    LongHex,
}

const MAC: &str = "02:00:00:00:00:00";
const IPV4: &str = "192.0.2.1";
const IPV6: &str = "2001:db8::1";

impl Kind {
    /// The length in bytes of what is of this kind at the start of the text, and its replacement.
    fn at_start(self, text: &str) -> Option<(usize, String)> {
        match self {
            Self::Uuid => {
                let len = groups(text, '-', &[8, 4, 4, 4, 12])
                    .or_else(|| groups(text, ':', &[8, 8, 8, 8]))?;
                Some((len, zeros(&text[..len])))
            }
            Self::MacName => mac_name(text),
            Self::Mac => mac(text),
            Self::Ipv6 => ipv6(text),
            Self::Ipv4 => ipv4(text),
            Self::LongHex => {
                let len = run(text, |c| c.is_ascii_hexdigit());
                (len >= 32).then(|| (len, "0".repeat(len)))
            }
        }
    }
}

/// `text` with all digits zero.
fn zeros(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_hexdigit() { '0' } else { c }).collect()
}

fn run(text: &str, accept: impl Fn(char) -> bool) -> usize {
    text.find(|c| !accept(c)).unwrap_or(text.len())
}

/// Groups of hexadecimal digits of these lengths, in bytes.
fn groups(text: &str, separator: char, lengths: &[usize]) -> Option<usize> {
    let mut at = 0;
    for (number, &length) in lengths.iter().enumerate() {
        if number > 0 {
            at += text[at..].starts_with(separator).then_some(1)?;
        }
        if run(&text[at..], |c| c.is_ascii_hexdigit()) != length {
            return None;
        }
        at += length;
    }
    Some(at)
}

fn mac(text: &str) -> Option<(usize, String)> {
    for (separator, pairs) in [(':', 8), ('-', 8), ('-', 7), (':', 6), ('-', 6)] {
        if let Some(len) = groups(text, separator, &vec![2; pairs]) {
            if text[len..].starts_with(separator) {
                return None;
            }
            let shown = match (separator, pairs) {
                (':', 6) => MAC.to_owned(),
                ('-', 7) => format!("01-{}", MAC.replace(':', "-")),
                ('-', 6) => MAC.replace(':', "-"),
                _ => zeros(&text[..len]),
            };
            return Some((len, shown));
        }
    }
    None
}

/// `enx020000000000`: as systemd.net-naming-scheme(7) has them, for Ethernet, WLAN and others.
fn mac_name(text: &str) -> Option<(usize, String)> {
    const DIGITS: usize = 12;
    let prefix =
        ["enx", "wlx", "wwx", "slx", "ibx"].into_iter().find(|prefix| text.starts_with(prefix))?;
    let digits = run(&text[prefix.len()..], |c| c.is_ascii_hexdigit());
    let zeroed = format!("{prefix}{}", MAC.replace(':', ""));
    (digits == DIGITS).then_some((prefix.len() + DIGITS, zeroed))
}

fn ipv6(text: &str) -> Option<(usize, String)> {
    let len = run(text, |c| c.is_ascii_hexdigit() || c == ':' || c == '.');
    let run = &text[..len];
    let trimmed = [run, run.trim_end_matches('.'), run.strip_suffix(':').unwrap_or(run)];
    trimmed.into_iter().find_map(|candidate| {
        let address: Ipv6Addr = candidate.parse().ok()?;
        let everybodys = address.is_unspecified() || address.is_loopback();
        let shown = if everybodys { candidate } else { IPV6 };
        Some((candidate.len(), shown.to_owned()))
    })
}

fn ipv4(text: &str) -> Option<(usize, String)> {
    let len = run(text, |c| c.is_ascii_digit() || c == '.');
    let candidate = text[..len].trim_end_matches('.');
    let address: Ipv4Addr = candidate.parse().ok()?;
    let everybodys = address.is_unspecified() || address.is_loopback();
    Some((candidate.len(), if everybodys { candidate } else { IPV4 }.to_owned()))
}

const REMOVED: &str = "removed";

/// Parameters that say where the machine is on a network or who it is.
const PRIVATE: &[&str] = &[
    "ip",
    "nfsroot",
    "nfsaddrs",
    "netconsole",
    "ds",
    "ifname",
    "bootdev",
    "cifsroot",
    "vlan",
    "rd.lvm.lv",
    "rd.lvm.vg",
    "cryptdevice",
    "iscsi_initiator",
    "wpa",
    "psk",
    "ssid",
    "essid",
];

/// Parts of a parameter's name that announce a secret, an address or a name.
const PRIVATE_PARTS: &[&str] = &[
    "auth",
    "credential",
    "credentials",
    "host",
    "hostname",
    "key",
    "ks",
    "nameserver",
    "pass",
    "passphrase",
    "password",
    "secret",
    "token",
    "url",
    "user",
    "username",
    "serial",
];

/// Words that announce a secret wherever they stand in a name: `wifikey`, `apitoken`, `mypassword`.
const SECRET_WORDS: &[&str] = &["cred", "key", "pass", "psk", "pwd", "secret", "token", "wpa"];

/// Names of parameters in which such a word means something else.
const NO_SECRET: &[&str] = &["bypass", "keyboard", "keymap", "keyring", "passthrough", "passthru"];

/// True for a name that announces a secret.
fn is_secret(lower: &str) -> bool {
    let plain = NO_SECRET.iter().fold(lower.to_owned(), |name, word| name.replace(word, ""));
    SECRET_WORDS.iter().any(|word| plain.contains(word))
}

fn scrub_command_line(scrub: &Scrub, text: &str) -> String {
    let line = CommandLine::parse(text);
    let params = line.params.into_iter().map(|param| self::param(scrub, param)).collect();
    // Only the sign that something followed is kept.
    let line = CommandLine { params, init: Vec::new(), ended: line.ended };
    format!("{line}\n")
}

fn param(scrub: &Scrub, param: Param) -> Param {
    let name = scrub.text(&param.name);
    let lower = name.to_lowercase();
    let has_part = |wanted: &[&str]| lower.split(['.', '_', '-']).any(|p| wanted.contains(&p));
    let value = param.value.map(|value| {
        let is_private = PRIVATE.contains(&lower.as_str()) || has_part(PRIVATE_PARTS);
        if is_private || is_secret(&lower) || names_a_place(&value) {
            REMOVED.to_owned()
        } else if lower == "rd.luks.name" {
            // UUID=NAME: the name is whatever somebody thought of.
            let id = value.split_once('=').map_or(value.as_str(), |(id, _)| id);
            format!("{}={REMOVED}", zeros(id))
        } else if has_part(&["uuid"]) {
            zeros(&value)
        } else {
            device(&scrub.text(&value))
        }
    });
    Param { name, value }
}

/// An address on the network, or somebody at one.
fn names_a_place(value: &str) -> bool {
    let somebody = value
        .split_once('@')
        .is_some_and(|(who, at)| !who.is_empty() && !at.is_empty() && !who.ends_with('='));
    // //server/share and server:/path, as cifs and NFS have them.
    let share =
        value.starts_with("//") || value.split_once(":/").is_some_and(|(at, _)| is_server(at));
    value.contains("://") || somebody || share
}

/// A name that is a server's, rather than a path or a device's number.
fn is_server(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_alphabetic()) && !text.contains(['/', '='])
}

/// Disks by name: identifiers and labels go, device files stay.
fn device(value: &str) -> String {
    for prefix in ["UUID=", "PARTUUID="] {
        if let Some(id) = value.strip_prefix(prefix) {
            return format!("{prefix}{}", zeros(id));
        }
    }
    let prefixes = ["LABEL=", "PARTLABEL=", "/dev/mapper/", "/dev/disk/by-"];
    match prefixes.into_iter().find(|prefix| value.starts_with(prefix)) {
        Some("/dev/disk/by-") => format!("/dev/disk/by-id/{REMOVED}"),
        Some(prefix) => format!("{prefix}{REMOVED}"),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;
    use proptest::prelude::*;

    fn scrub() -> Scrub {
        Scrub::new().host("Anvil.example.org").user("alice").user("Alice Liddell")
    }

    #[test]
    fn addresses_and_identifiers_go() {
        let zeros = "00000000-0000-0000-0000-000000000000";
        for (text, shown) in [
            ("at 10.1.2.3.", "at 192.0.2.1."),
            ("10.1.2.3:8080/x", "192.0.2.1:8080/x"),
            ("de:ad:be:ef:00:01", "02:00:00:00:00:00"),
            ("enxdeadbeef0001-rx-0", "enx020000000000-rx-0"),
            ("renxdeadbeef0001 enxdeadbeef", "renxdeadbeef0001 enxdeadbeef"),
            ("BOOTIF=01-de-ad-be-ef-00-01", "BOOTIF=01-02-00-00-00-00-00"),
            ("[fe80::1234]:80", "[2001:db8::1]:80"),
            ("2001:470:1:2:3:4:5:6", "2001:db8::1"),
            ("x 4c1a5c3e-0001-4a3b-9c8d-0123456789ab", &format!("x {zeros}")),
            ("luks-4C1A5C3E-0001-4A3B-9C8D-0123456789AB", &format!("luks-{zeros}")),
            ("/docker/0123456789abcdef0123456789abcdef", &format!("/docker/{}", "0".repeat(32))),
        ] {
            assert_eq!(scrub().text(text), shown, "{text}");
        }
    }

    #[test]
    fn names_go_as_whole_words() {
        for (text, shown) in [
            ("anvil", "host"),
            ("ANVIL-root", "host-root"),
            ("anvil.example.org", "host"),
            ("/user.slice/alice@tty1", "/user.slice/user@tty1"),
            ("alice liddell!", "user!"),
            ("anvils malice alice2", "anvils malice alice2"),
        ] {
            assert_eq!(scrub().text(text), shown, "{text}");
        }
    }

    #[test]
    fn what_tells_nothing_stays() {
        for text in [
            "0::/",
            "0.0.0.0 127.0.0.1 ::1",
            "0000:00:1f.2",
            "12:34:56",
            "6.18.44-rc1 1.2.3",
            "3:cpuset:/",
            "0-3,5",
            "999.1.1.1",
            "000001fffeffffff",
        ] {
            assert_eq!(scrub().text(text), text);
        }
        assert_eq!(scrub().path("5.15.167.4-microsoft"), "5.15.167.4-microsoft");
        assert_eq!(
            Scrub::new().user("root").host("localhost").text("root localhost"),
            "root localhost"
        );
    }

    #[test]
    fn command_lines_keep_what_tunes() {
        let kept = "BOOT_IMAGE=/boot/vmlinuz-6.12 root=/dev/sda1 isolcpus=domain,2-3 quiet \
        preempt=full \
                rootflags=subvol=@ a=\"b c\"\n";
        assert_eq!(scrub().command_line(kept), kept);
        for (text, shown) in [
            ("root=UUID=1234-abcd", "root=UUID=0000-0000"),
            ("root=PARTUUID=deadbeef-02", "root=PARTUUID=00000000-00"),
            ("root=/dev/mapper/anvil--vg-root", "root=/dev/mapper/removed"),
            ("resume=/dev/disk/by-id/ata-SERIAL123", "resume=/dev/disk/by-id/removed"),
            ("ip=10.0.0.2::10.0.0.1:255.0.0.0:box:eth0", "ip=removed"),
            ("nfsroot=10.0.0.1:/srv", "nfsroot=removed"),
            ("rd.luks.uuid=luks-12ab", "rd.luks.uuid=luks-0000"),
            (
                "rd.md.uuid=12345678:12345678:12345678:12345678",
                "rd.md.uuid=00000000:00000000:00000000:00000000",
            ),
            ("inst.ks=http://box/ks", "inst.ks=removed"),
            ("systemd.set_credential=a:b", "systemd.set_credential=removed"),
            ("x=bob@box", "x=removed"),
            ("systemd.hostname=box", "systemd.hostname=removed"),
            ("quiet -- --token abc", "quiet --"),
            ("net.ifnames=1 ip=enxdeadbeef0001:dhcp", "net.ifnames=1 ip=removed"),
            ("rd.neednet=1 x=enxdeadbeef0001", "rd.neednet=1 x=enx020000000000"),
            (
                "rd.luks.name=4c1a5c3e-0001-4a3b-9c8d-0123456789ab=alices_disk",
                "rd.luks.name=00000000-0000-0000-0000-000000000000=removed",
            ),
            ("cifsroot=//fileserver/share,user=x", "cifsroot=removed"),
            ("root=fileserver:/srv/nfs", "root=removed"),
            (
                "wpa=hunter2 wifikey=x apitoken=y mypasswd=z",
                "wpa=removed wifikey=removed apitoken=removed mypasswd=removed",
            ),
            ("iommu.passthrough=1 vconsole.keymap=de", "iommu.passthrough=1 vconsole.keymap=de"),
            ("iommu=pt module.x_bypass=1 blkdev=8:1", "iommu=pt module.x_bypass=1 blkdev=8:1"),
        ] {
            assert_eq!(scrub().command_line(text).trim_end(), shown, "{text}");
        }
    }

    #[test]
    fn names_come_from_the_machine() {
        let tree = Tree::of(&[
            ("/proc/sys/kernel/hostname", "anvil\n"),
            (
                "/etc/passwd",
                "root:x:0:0:root:/root:/bin/sh\nal:x:1000:1000:Al Ice,,,:/home/alf:/bin/sh\nbad\n",
            ),
        ]);
        let scrub = Scrub::of(&tree.root());
        assert_eq!(scrub.text("anvil root al alf Al Ice"), "host root user user user");
    }

    proptest! {
        #[test]
        fn twice_is_once(
            // What is taken out, names and words, apart from each other.
            text in "(([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{2}(:[0-9a-f]{2}){5}|\
                 [0-9]{1,3}(\\.[0-9]{1,3}){3}|fe80::[1-9a-f]{1,4}|[0-9a-f]{30,40}|alice|anvil|\
                 ip|root=UUID|[a-z]{1,5})[ =/,@_é]){0,8}"
        ) {
            let once = scrub().text(&text);
            prop_assert_eq!(scrub().text(&once), once);
            let line = scrub().command_line(&text);
            prop_assert_eq!(scrub().command_line(&line), line);
        }

        #[test]
        fn any_text_is_survived(text in ".*") {
            let _ = (scrub().text(&text), scrub().path(&text), scrub().command_line(&text));
        }

        #[test]
        fn no_secret_is_left(
            before in "[ =/,\\[(]", after in "[ /,\\])]",
            octets in proptest::array::uniform6(16u8..=255),
            words in proptest::array::uniform8(16u16..),
        ) {
            let [a, b, c, d, e, f] = octets;
            let ipv6 = words.map(|word| format!("{word:x}")).join(":");
            let secrets = [
                format!("{a}.{b}.{c}.{d}"),
                format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"),
                format!("{a:02X}-{b:02X}-{c:02X}-{d:02X}-{e:02X}-{f:02X}"),
                ipv6,
            ];
            // 127.x.x.x is everybody's.
            prop_assume!(a != 127);
            for secret in secrets {
                let shown = scrub().text(&format!("x{before}{secret}{after}y"));
                prop_assert!(!shown.contains(&secret), "{}", shown);
                prop_assert!(shown.starts_with('x') && shown.ends_with('y'));
            }
        }
    }
}
