//! The files that `cargo xtask install` puts beside the C library: the program and its companions,
//! or nothing.
//!
//! Looks; changes nothing but a prefix of its own.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::built::{install, installed, need, output};
use crate::header::names;

#[test]
fn the_library_alone_comes_with_a_page_of_each_function_and_no_program() {
    if !need(&[]) {
        return;
    }
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("library");
    // Not there before the first run.
    let _gone = fs::remove_dir_all(&prefix);
    install(&["--library", "--dev"], &prefix);
    let listed = |folder: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(prefix.join(folder)).expect("there");
        entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into()).collect()
    };
    assert_eq!(listed(""), ["include", "lib", "share"].map(str::to_owned).into());
    assert_eq!(listed("share"), ["man".to_owned()].into());
    assert_eq!(listed("share/man"), ["man3".to_owned()].into());
    assert_eq!(listed("include"), ["punctual.h", "punctual.hpp"].map(str::to_owned).into());
    assert!(listed("lib").contains("libpunctual.so") && !listed("lib").contains("systemd"));
    let pages = listed("share/man/man3");
    for name in names().into_iter().chain(["punctual".to_owned(), "punctual_task".to_owned()]) {
        assert!(pages.contains(&format!("{name}.3")), "{name}: {pages:?}");
    }
    let page = fs::read_to_string(prefix.join("share/man/man3/punctual_loop_destroy.3"));
    let page = page.expect("there");
    assert!(page.contains("\nint punctual_loop_destroy(punctual_loop *loop);\n"), "{page}");
    assert!(page.contains("  \\-EBUSY "), "{page}");
}

#[test]
fn the_unit_completions_and_man_pages_are_those_of_the_installed_program() {
    let program = installed("bin/punctual");
    let version = output(Command::new(&program).arg("--version"));
    assert!(version.starts_with(concat!("punctual ", env!("CARGO_PKG_VERSION"))), "{version}");
    let unit = installed("lib/systemd/system/punctual-soak@.service");
    let unit = fs::read_to_string(unit).expect("there");
    assert!(unit.contains(&format!("\nExecStart={} soak ", program.display())), "{unit}");
    let completions = [
        "share/bash-completion/completions/punctual",
        "share/zsh/site-functions/_punctual",
        "share/fish/vendor_completions.d/punctual.fish",
    ];
    for path in completions {
        let text = fs::read_to_string(installed(path)).expect("there");
        assert!(text.contains("soak"), "{path}");
    }
    let page = fs::read_to_string(installed("share/man/man1/punctual-check.1")).expect("there");
    let footer = concat!("\"punctual ", env!("CARGO_PKG_VERSION"), "\"");
    assert!(page.contains(footer), "{page}");
}
