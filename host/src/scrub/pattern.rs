//! The shapes of addresses and identifiers. Pure.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A kind of thing that is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
    /// How many bytes at the start of the text are of this kind, and what stands for them.
    pub(super) fn at_start(self, text: &str) -> Option<(usize, String)> {
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

/// The same shape with all digits zero.
pub(super) fn zeros(text: &str) -> String {
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
    let prefix = ["enx", "wlx", "wwx", "slx", "ibx"].into_iter().find(|of| text.starts_with(of))?;
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
