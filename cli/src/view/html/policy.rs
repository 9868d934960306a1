//! The page's content security policy: nothing loads, and only scripts and styles with these
//! digests run.
//!
//! CSP Level 3 (w3.org/TR/CSP3), hash sources: the SHA-256 of what stands between the tags.

use sha2::{Digest, Sha256};

/// The policy for a page with these scripts and styles, to be put in an attribute.
pub(super) fn of(scripts: &[&str], styles: &[&str]) -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        sources(scripts),
        sources(styles)
    )
}

fn sources(texts: &[&str]) -> String {
    let source =
        |text: &&str| format!("'sha256-{}'", base64(Sha256::digest(text.as_bytes()).as_slice()));
    texts.iter().map(source).collect::<Vec<_>>().join(" ")
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { letter as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let encoded = |text: &str| base64(text.as_bytes());
        assert_eq!(
            [encoded(""), encoded("f"), encoded("fo"), encoded("foo")],
            ["", "Zg==", "Zm8=", "Zm9v"]
        );
        assert_eq!(encoded("foobar"), "Zm9vYmFy");
    }

    #[test]
    fn uplot_is_the_published_one() {
        let digest = |text: &str| {
            let bytes = Sha256::digest(text.as_bytes());
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(
            digest(super::super::UPLOT),
            "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"
        );
        assert_eq!(
            digest(super::super::UPLOT_STYLE),
            "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"
        );
    }
}
