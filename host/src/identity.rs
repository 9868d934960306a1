//! Which machine and which boot this is, for what goes on over reboots.
//!
//! Read through a [`Root`]. The machine's identifier is confidential (machine-id(5)): only a hash
//! of it, salted with this project's name, leaves this file.

use crate::fact::Fact;
use crate::root::{Read, Root};

const MACHINE_ID: &str = "/etc/machine-id";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// What makes the hash this project's own.
const SALT: &[u8] = b"punctual campaign";

fn word(root: &Root, path: &str) -> Fact<String> {
    match root.read(path) {
        Read::Text(text) => match text.trim() {
            "" | "uninitialized" => Fact::absent(path),
            word if word.len() > 64 || word.contains(char::is_control) => {
                Fact::unreadable(path, "it holds no identifier")
            }
            word => Fact::known(word.to_owned(), path),
        },
        Read::Absent => Fact::absent(path),
        Read::Unreadable { why } => Fact::unreadable(path, why),
    }
}

/// A hash of the machine's identifier: 64 bits of FNV-1a, in hexadecimal. Tells machines apart, and
/// does not tell the identifier.
pub fn machine(root: &Root) -> Fact<String> {
    word(root, MACHINE_ID).map(|id| {
        let hash =
            SALT.iter().chain(id.as_bytes()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
        format!("{hash:016x}")
    })
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
        let of = |id: &str| machine(&Tree::of(&[("/etc/machine-id", id)]).root());
        let known = of(&format!("{id}\n"));
        let hash = known.value().expect("known");
        assert!(hash.len() == 16 && !id.contains(hash.as_str()));
        assert_ne!(of("fedcba9876543210fedcba9876543210").value(), known.value());
        assert!(matches!(of("uninitialized\n"), Fact::Absent { .. }));
        assert!(matches!(of("a\u{1b}b"), Fact::Unreadable { .. }));
        assert!(matches!(machine(&Tree::new().root()), Fact::Absent { .. }));
    }

    #[test]
    fn a_boot_has_its_name() {
        let tree = Tree::of(&[("/proc/sys/kernel/random/boot_id", "c0ffee\n")]);
        assert_eq!(boot(&tree.root()).value().map(String::as_str), Some("c0ffee"));
    }
}
