//! What `cargo xtask install` puts beside the C library: the program and what goes with it.
//!
//! Looks; changes nothing.

use std::fs;
use std::process::Command;

use crate::built::{installed, output};

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
