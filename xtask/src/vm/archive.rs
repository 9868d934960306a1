//! An archive that the kernel unpacks as its first root: cpio, "newc" (the kernel's
//! Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! Pure. Every file may be executed.

use std::collections::BTreeSet;

/// An archive that is being written.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    folders: BTreeSet<String>,
}

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_755;

impl Archive {
    /// Adds a file at an absolute path, and the folders that it lies in.
    pub(crate) fn add(&mut self, path: &str, content: &[u8]) {
        let path = path.trim_start_matches('/');
        for (end, _) in path.match_indices('/') {
            let folder = &path[..end];
            if self.folders.insert(folder.to_owned()) {
                self.entry(folder, FOLDER, &[]);
            }
        }
        self.entry(path, FILE, content);
    }

    /// The archive, ended.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let length = |bytes: usize| u32::try_from(bytes).expect("a few megabytes");
        // Inode, mode, user, group, links, time, size, four device numbers, length of the name with
        // the zero at its end, no checksum.
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            length(content.len()),
            0,
            0,
            0,
            0,
            length(name.len() + 1),
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_before_their_files_and_all_is_aligned() {
        let mut archive = Archive::default();
        archive.add("/a/b/one", b"12345");
        archive.add("/a/b/two", b"");
        let bytes = archive.end();
        let text = String::from_utf8_lossy(&bytes);
        let places: Vec<usize> =
            ["a\0", "a/b\0", "a/b/one\0", "12345", "a/b/two\0", "TRAILER!!!\0"]
                .iter()
                .map(|word| text.find(word).expect(word))
                .collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(text.matches("070701").count(), 5);
        assert!(text.match_indices("070701").all(|(at, _)| at % 4 == 0));
        assert_eq!(bytes.len() % 4, 0);
    }
}
