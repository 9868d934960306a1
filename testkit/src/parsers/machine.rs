//! Bodies for what is read from a machine or from the copy of one.
//!
//! Only [`facts`] touches files: a folder of its own below the temporary one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_host::capture::manifest::{MANIFEST, Manifest};
use punctual_host::cmdline::{CommandLine, Isolcpus, Param};
use punctual_host::cpulist::{CpuList, MAX_CPUS};
use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;
use punctual_host::scrub::Scrub;

use super::{one_line, says_why};

/// A list that was read is shown and read again as itself, within its bound.
pub(super) fn cpulist(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for last in [0, 63, MAX_CPUS - 1] {
        match CpuList::parse(&text, last) {
            Ok(list) => {
                assert!(list.last().is_none_or(|cpu| cpu <= last), "{list} beyond {last}");
                assert_eq!(CpuList::parse(&list.to_string(), last).as_ref(), Ok(&list), "{list}");
                assert_eq!(list.iter().count(), list.len(), "{list}");
            }
            Err(error) => says_why(&text, &error),
        }
    }
}

/// A command line that was split is shown and split again as itself. Left out: a parameter without
/// name and value, which is shown as nothing, and a line that keeps a quotation mark, for which
/// the kernel, which takes off those around a value, has no spelling.
pub(super) fn cmdline(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut line = CommandLine::parse(&text);
    for params in [&mut line.params, &mut line.init] {
        params.retain(|param| !param.name.is_empty() || param.value.is_some());
    }
    let quoted = |param: &Param| {
        let value = param.value.as_deref().unwrap_or_default();
        param.name.contains('"') || value.contains('"')
    };
    if !line.params.iter().chain(&line.init).any(quoted) {
        let shown = line.to_string();
        assert_eq!(CommandLine::parse(&shown), line, "shown as {shown:?}");
    }
    for param in line.all("isolcpus") {
        if let Some(Err(error)) = param.value.as_ref().map(|value| Isolcpus::parse(value, 63)) {
            says_why(&text, &error);
        }
    }
}

/// A manifest that was read is written and read again as itself.
pub(super) fn manifest(data: &[u8]) {
    match Manifest::parse(&String::from_utf8_lossy(data)) {
        Ok(manifest) => {
            let written = manifest.to_string();
            assert_eq!(Manifest::parse(&written).as_ref(), Ok(&manifest), "{written:?}");
        }
        Err(error) => one_line(&error),
    }
}

/// What was scrubbed names nobody, and keeps its lines.
pub(super) fn scrub(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let scrub = Scrub::new().host("workbench.lab.example.com").user("alice");
    let scrubbed = [scrub.text(&text), scrub.path(&text), scrub.command_line(&text)];
    for once in &scrubbed {
        let names = |name: &str| once.split(|c: char| !c.is_alphanumeric()).any(|w| w == name);
        assert!(!names("alice") && !names("workbench"), "{once:?}");
    }
    assert_eq!(scrubbed[0].lines().count(), text.lines().count(), "{:?}", scrubbed[0]);
}

/// Files of one machine: more are left out.
const FILES: usize = 64;
/// Bytes of the longest path that is taken.
const PATH_BYTES: usize = 160;

/// A machine whose files hold anything gives facts, the same ones each time. The data is a
/// sequence of files, each behind a line `==> PATH` with a path below `proc` or `sys`, or of the
/// manifest.
pub(super) fn facts(data: &[u8]) {
    let folder = Folder::new();
    for (path, text) in files(data).take(FILES) {
        let file = folder.0.join(path);
        // Fails where a file stands in the way of a folder, or the other way round.
        let _ =
            file.parent().map(fs::create_dir_all).transpose().and_then(|_| fs::write(&file, text));
    }
    let collect = || Root::captured(&folder.0).map(|root| MachineFacts::collect(&root));
    match (collect(), collect()) {
        (Ok(once), Ok(again)) => assert_eq!(once, again),
        (Err(error), Err(_)) => one_line(&error),
        (once, again) => panic!("{once:?}, then {again:?}"),
    }
}

/// The parts of the data that have a path.
fn files(data: &[u8]) -> impl Iterator<Item = (&str, &[u8])> {
    let marks = data
        .windows(4)
        .enumerate()
        .filter(|(at, window)| *window == b"==> " && (*at == 0 || data[at - 1] == b'\n'));
    let starts: Vec<usize> = marks.map(|(at, _)| at).chain([data.len()]).collect();
    let parts: Vec<&[u8]> = starts.windows(2).map(|pair| &data[pair[0]..pair[1]]).collect();
    parts.into_iter().filter_map(|part| {
        let line = part.iter().position(|&byte| byte == b'\n')?;
        let path = std::str::from_utf8(&part[4..line]).ok().filter(|path| is_inside(path))?;
        Some((path, &part[line + 1..]))
    })
}

/// Whether the path leads to a place inside the folder that it is joined to.
fn is_inside(path: &str) -> bool {
    let plain = |part: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"_-,.:".contains(&byte);
        !part.is_empty() && part != "." && part != ".." && part.bytes().all(known)
    };
    let below = path.starts_with("proc/") || path.starts_with("sys/") || path == MANIFEST;
    below && path.len() <= PATH_BYTES && path.split('/').all(plain)
}

/// A folder that goes with its holder.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Memory rather than a disk, where there is such a folder.
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = above.join(format!("punctual-facts-{}-{count}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder is writable");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Left over in the temporary folder at worst.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out() {
        for inside in ["proc/cpuinfo", "sys/fs/cgroup/cpu,cpuacct/a", MANIFEST] {
            assert!(is_inside(inside), "{inside}");
        }
        for outside in ["/proc/a", "proc/../../a", "proc//a", "etc/passwd", "proc/.", "", "proc/"] {
            assert!(!is_inside(outside), "{outside}");
        }
    }

    #[test]
    fn files_are_told_apart_by_their_paths() {
        let data = b"junk\n==> proc/a\n1\n==> /etc/b\n2\n==> sys/c\nx ==> proc/d\n";
        let found: Vec<_> = files(data).collect();
        assert_eq!(found, [("proc/a", &b"1\n"[..]), ("sys/c", b"x ==> proc/d\n")]);
    }
}
