//! A kernel command line without secrets, by what each parameter is. Pure.

use super::{Scrub, pattern};
use crate::cmdline::{CommandLine, Param};

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

/// What announces a secret wherever it stands in a name: `wifikey`, `apitoken`, `mypassword`.
const SECRET_WORDS: &[&str] = &["cred", "key", "pass", "psk", "pwd", "secret", "token", "wpa"];

/// Names of parameters in which such a word means something else.
const NO_SECRET: &[&str] = &["bypass", "keyboard", "keymap", "keyring", "passthrough", "passthru"];

/// Whether a name announces a secret.
fn is_secret(lower: &str) -> bool {
    let plain = NO_SECRET.iter().fold(lower.to_owned(), |name, word| name.replace(word, ""));
    SECRET_WORDS.iter().any(|word| plain.contains(word))
}

pub(super) fn scrub(scrub: &Scrub, text: &str) -> String {
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
            format!("{}={REMOVED}", pattern::zeros(id))
        } else if has_part(&["uuid"]) {
            pattern::zeros(&value)
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
            return format!("{prefix}{}", pattern::zeros(id));
        }
    }
    let prefixes = ["LABEL=", "PARTLABEL=", "/dev/mapper/", "/dev/disk/by-"];
    match prefixes.into_iter().find(|prefix| value.starts_with(prefix)) {
        Some("/dev/disk/by-") => format!("/dev/disk/by-id/{REMOVED}"),
        Some(prefix) => format!("{prefix}{REMOVED}"),
        None => value.to_owned(),
    }
}
