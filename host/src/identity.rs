//! Which machine and which boot this is, for what goes on over reboots.
//!
//! Read through a [`Root`]. The machine's identifier is confidential (machine-id(5)): only a keyed
//! cryptographic hash of it, this project's own, leaves this file.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::fact::Fact;
use crate::root::{Read, Root};

const MACHINE_ID: &str = "/etc/machine-id";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// This project's application id: what makes the hash its own. Random; it is never changed.
const APPLICATION: [u8; 16] = [
    0x97, 0xbb, 0x69, 0x3d, 0x31, 0x13, 0x4e, 0xcb, 0xb9, 0xd4, 0xa3, 0xa9, 0x19, 0xc7, 0xbc, 0x30,
];

fn word(root: &Root, path: &str) -> Fact<String> {
    match root.read(path) {
        Read::Text(text) => match text.trim() {
            "" | "uninitialized" => Fact::absent(path),
            word if word.len() > 64 || word.contains(char::is_control) => {
                Fact::unreadable(path, "it contains no identifier")
            }
            word => Fact::known(word.to_owned(), path),
        },
        Read::Absent => Fact::absent(path),
        Read::Unreadable { why } => Fact::unreadable(path, why),
    }
}

/// The machine's identifier for this program, as 32 hexadecimal digits: tells machines apart, and
/// does not tell the identifier itself. As sd_id128_get_machine_app_specific(3) makes one:
/// HMAC-SHA256 of the application id, the machine's identifier being the key, cut to 128 bits, with
/// the bits of a UUID of version 4 set. An identifier that is not 32 hexadecimal digits, as
/// machine-id(5) wants them, is hashed as it is.
pub fn machine(root: &Root) -> Fact<String> {
    word(root, MACHINE_ID).map(|id| specific(&id, &APPLICATION))
}

fn specific(id: &str, application: &[u8; 16]) -> String {
    let key = bytes(id).map_or_else(|| id.as_bytes().to_vec(), |bytes| bytes.to_vec());
    // A key of any length is one to HMAC.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key) else { return String::new() };
    mac.update(application);
    let hash = mac.finalize().into_bytes();
    let mut number = u128::from_be_bytes(std::array::from_fn(|at| hash[at]));
    // Version 4, variant 1 (RFC 9562, section 5.4).
    number = number & !(0xf << 76) | 4 << 76;
    number = number & !(0x3 << 62) | 2 << 62;
    format!("{number:032x}")
}

/// The 16 bytes that 32 hexadecimal digits stand for.
fn bytes(id: &str) -> Option<[u8; 16]> {
    let digits = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = digits.then(|| u128::from_str_radix(id, 16).ok())??;
    Some(number.to_be_bytes())
}

/// The kernel's identifier of this boot (`Documentation/admin-guide/sysctl/kernel.rst`, `random`).
pub fn boot(root: &Root) -> Fact<String> {
    word(root, BOOT_ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn the_identifier_itself_is_not_told() {
        let id = "0123456789abcdef0123456789abcdef";
        let digest = |id: &str| machine(&Tree::of(&[("/etc/machine-id", id)]).root());
        let known = digest(&format!("{id}\n"));
        let hash = known.value().expect("known");
        assert!(hash.len() == 32 && !id.contains(hash.as_str()));
        assert_ne!(digest("fedcba9876543210fedcba9876543210").value(), known.value());
        assert!(matches!(digest("uninitialized\n"), Fact::Absent { .. }));
        assert!(matches!(digest("a\u{1b}b"), Fact::Unreadable { .. }));
        assert!(matches!(machine(&Tree::new().root()), Fact::Absent { .. }));
    }

    #[test]
    fn it_is_what_systemd_makes_of_the_same_two() {
        // systemd-id128 machine-id --app-specific=9a8b7c6d5e4f30211203f4e5d6c7b8a9, on a machine
        // of this identifier.
        let application = 0x9a8b_7c6d_5e4f_3021_1203_f4e5_d6c7_b8a9_u128.to_be_bytes();
        assert_eq!(
            specific("0123456789abcdef0123456789abcdef", &application),
            "c04a55bdb3714cb98aa0433bf99ba35b"
        );
    }

    #[test]
    fn a_boot_has_its_name() {
        let tree = Tree::of(&[("/proc/sys/kernel/random/boot_id", "c0ffee\n")]);
        assert_eq!(boot(&tree.root()).value().map(String::as_str), Some("c0ffee"));
    }
}
