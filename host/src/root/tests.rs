//! What a root does with odd trees: links, FIFOs, huge and missing files.

use super::*;
use crate::testing::Tree;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

fn unreadable(why: &str) -> Read {
    Read::Unreadable { why: why.to_owned() }
}

#[test]
fn reads_and_lists_below_the_tree() {
    let tree = Tree::of(&[("/proc/a", "x\n"), ("/proc/b/c", "")]);
    let root = tree.root();
    assert_eq!(root.read("/proc/a"), Read::Text("x\n".to_owned()));
    assert_eq!(root.read("/proc/none"), Read::Absent);
    assert_eq!(root.read("/proc/a/under"), Read::Absent);
    assert_eq!(root.list("/proc"), Listing::Names(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(root.list("/none"), Listing::Absent);
}

#[test]
fn never_leaves_the_tree() {
    let outside = Tree::of(&[("/secret", "x")]);
    let tree = Tree::of(&[("/proc/a", "inside")]);
    symlink(outside.path().join("secret"), tree.path().join("absolute")).unwrap();
    symlink("../../..", tree.path().join("up")).unwrap();
    symlink("proc/a", tree.path().join("within")).unwrap();
    symlink("loop", tree.path().join("loop")).unwrap();
    let root = tree.root();
    assert_eq!(root.read("/absolute"), unreadable("a link leaves the captured tree"));
    assert_eq!(root.read("/within"), Read::Text("inside".to_owned()));
    assert!(matches!(root.list("/up"), Listing::Unreadable { .. }));
    assert!(matches!(root.read("/loop"), Read::Unreadable { .. }));
    for path in ["/proc/../proc/a", "proc/a", "", "/../x"] {
        assert_eq!(root.read(path), unreadable("not an absolute path without '..'"), "{path}");
    }
}

#[test]
fn a_link_that_is_turned_meanwhile_leads_nowhere_else() {
    let outside = Tree::of(&[("/knob", "outside")]);
    let tree = Tree::of(&[("/real/knob", "inside")]);
    let at = |name: &str| tree.path().join(name);
    symlink("real", at("within")).unwrap();
    symlink(outside.path(), at("out")).unwrap();
    symlink("real", at("turned")).unwrap();
    let root = tree.root();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let turner = scope.spawn(|| {
            for target in ["within", "out"].into_iter().cycle() {
                if done.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                let _raced = symlink(fs::read_link(at(target)).unwrap(), at("next"));
                fs::rename(at("next"), at("turned")).unwrap();
            }
        });
        let texts = (0..2_000).filter_map(|_| match root.read("/turned/knob") {
            Read::Text(text) => Some(text),
            _ => None,
        });
        let texts: BTreeSet<String> = texts.collect();
        // Before anything can fail: the scope waits for the other thread.
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        turner.join().unwrap();
        assert_eq!(texts, BTreeSet::from(["inside".to_owned()]));
    });
}

#[test]
fn special_files_do_not_hang() {
    let tree = Tree::of(&[("/proc/a", "")]);
    let _socket = UnixListener::bind(tree.path().join("socket")).unwrap();
    let fifo = tree.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let root = tree.root();
    for path in ["/socket", "/fifo", "/proc"] {
        assert_eq!(root.read(path), unreadable("not a regular file"), "{path}");
        assert_eq!(root.read_compressed(path), unreadable("not a regular file"), "{path}");
    }
    assert!(!matches!(root.list("/fifo"), Listing::Names(_)));
}

#[test]
fn sizes_are_bounded() {
    let tree = Tree::new();
    tree.write("/big", vec![b'x'; MAX_BYTES as usize + 1]);
    tree.write("/most", vec![b'x'; MAX_BYTES as usize]);
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    bomb.write_all(&vec![0; 2 * MAX_BYTES as usize]).unwrap();
    tree.write("/bomb.gz", bomb.finish().unwrap());
    let root = tree.root();
    assert!(matches!(root.read("/big"), Read::Unreadable { .. }));
    assert!(matches!(root.read("/most"), Read::Text(_)));
    assert!(matches!(root.read_compressed("/bomb.gz"), Read::Unreadable { .. }));
    assert_eq!(root.read_head("/big", 3), Read::Text("xxx".to_owned()));
}

#[test]
fn compressed_files_are_decompressed_and_damaged_ones_refused() {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(b"CONFIG_HZ=250\n").unwrap();
    let gz = gz.finish().unwrap();
    let tree = Tree::of(&[("/plain", "CONFIG_HZ=250\n")]);
    tree.write("/whole.gz", &gz);
    tree.write("/cut.gz", &gz[..gz.len() - 4]);
    let root = tree.root();
    let expected = Read::Text("CONFIG_HZ=250\n".to_owned());
    assert_eq!(root.read_compressed("/whole.gz"), expected);
    assert_eq!(root.read_compressed("/plain"), expected);
    assert!(matches!(root.read_compressed("/cut.gz"), Read::Unreadable { .. }));
}

#[test]
fn a_manifest_tells_absent_from_never_looked_for() {
    let tree = Tree::of(&[(
        "/MANIFEST",
        "punctual capture 1\nabsent\t/a\nunreadable\t/b\tpermission denied\ndirectory\t/d\n",
    )]);
    let root = tree.root();
    assert_eq!(root.read("/a"), Read::Absent);
    assert_eq!(root.read("/b"), unreadable("permission denied"));
    assert_eq!(root.read("/c"), unreadable("not captured"));
    assert_eq!(root.list("/d"), Listing::Names(Vec::new()));
    tree.write("/MANIFEST", "something else\n");
    assert!(matches!(Root::captured(tree.path()), Err(RootError::Manifest { .. })));
}

#[test]
fn a_root_must_be_a_directory() {
    let tree = Tree::of(&[("/file", "")]);
    let none = Root::captured(tree.path().join("none")).unwrap_err().to_string();
    assert!(none.ends_with("no such file or directory"), "{none}");
    assert!(Root::captured(tree.path().join("file")).is_err());
}

#[test]
fn recording_keeps_every_answer() {
    let tree = Tree::of(&[("/a", "x")]);
    let root = tree.root().recording();
    let _ = (root.read("/a"), root.read("/b"), root.list("/"), root.read_msr(0, 0x34));
    let seen = root.seen();
    assert_eq!(seen["/a"], Seen::File(Read::Text("x".to_owned())));
    assert_eq!(seen["/b"], Seen::File(Read::Absent));
    assert_eq!(seen["/dev/cpu/0/msr-0x34"], Seen::File(Read::Absent));
    assert!(matches!(&seen["/"], Seen::Directory(Listing::Names(names)) if names == &["a"]));
}
