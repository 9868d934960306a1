//! Files made from the command line beside man pages: completions and `--version`.
//!
//! Writes into a directory of its own.

use std::fs;
use std::process::Command;

use punctual_testkit::skip::need_program;

use crate::{Dir, run, stderr, stdout};

/// The build script, for its own functions.
#[path = "../../build.rs"]
#[expect(dead_code, reason = "its main is cargo's")]
mod build;

/// The subcommands below `words`, as the help lists them.
fn subcommands(words: &[&str]) -> Vec<String> {
    let help = stdout(&run([words, &["--help"]].concat()));
    let mut lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = lines.by_ref().take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(ToOwned::to_owned).collect()
}

#[test]
fn completions_hold_each_subcommand() {
    let mut names = subcommands(&[]);
    assert!(names.len() > 10, "{names:?}");
    for outer in ["measure", "impact", "baseline"] {
        let below = subcommands(&[outer]);
        assert!(!below.is_empty(), "{outer}");
        names.extend(below);
    }
    for shell in ["bash", "zsh", "fish"] {
        let out = run(["completions", shell]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let text = stdout(&out);
        for name in &names {
            assert!(text.contains(name.as_str()), "{shell}: {name}");
        }
        if need_program(shell) {
            let dir = Dir::new(&format!("completions-{shell}"));
            let file = dir.path("punctual");
            fs::write(&file, &text).expect("writable");
            let checked = Command::new(shell).arg("-n").arg(&file).output().expect("it starts");
            assert!(checked.status.success(), "{shell}: {}", stderr(&checked));
        }
    }
    let out = run(["completions", "tcsh"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(stderr(&out).contains("bash, zsh, fish"), "{}", stderr(&out));
}

/// Scripts that print the completions of a shell: `$1` is the file of completions, in a directory
/// of its own.
const COMPLETING: [(&str, &str); 3] = [
    (
        "bash",
        "source \"$1\"; COMP_WORDS=(punctual measure per) COMP_CWORD=2
         _punctual punctual per measure; echo \"${COMPREPLY[@]}\"",
    ),
    ("fish", "source $argv[1]; complete -C 'punctual measure per'"),
    // Completes in a terminal alone, so it gets one.
    (
        "zsh",
        "zmodload zsh/zpty; zpty z zsh -f -i; cd ${1:h}
         zpty -w z \"fpath=($PWD \\$fpath); autoload -U compinit; compinit -u -d $PWD/dump\"
         zpty -w z \"bindkey '^I' complete-word; echo re''ady\"; zpty -r -m z line '*ready*'
         zpty -w -n z $'punctual measure per\\t'; zpty -r -m z line '*periodic*'; echo $line",
    ),
];

#[test]
fn shells_complete_a_subcommand() {
    for (shell, script) in COMPLETING {
        if !need_program(shell) {
            continue;
        }
        let dir = Dir::new(&format!("completing-{shell}"));
        let file = dir.path("_punctual");
        fs::write(&file, stdout(&run(["completions", shell]))).expect("writable");
        // Without what the user has set up; a shell that waits for ever is ended.
        let mut command = Command::new("timeout");
        command.args(["120", shell]).args(if shell == "fish" { &["--no-config"][..] } else { &[] });
        command.args(["-c", script]).args((shell != "fish").then_some(shell)).arg(&file);
        let out = command.env("HOME", &dir.0).output().expect("it starts");
        assert!(stdout(&out).contains("periodic"), "{shell}: {} {}", stdout(&out), stderr(&out));
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let version = stdout(&run(["--version"]));
    let plain = concat!("punctual ", env!("CARGO_PKG_VERSION"));
    let more = version.trim_end().strip_prefix(plain);
    assert!(more.is_some_and(|more| more.is_empty() || more.starts_with(" (")), "{version}");
}

#[test]
fn the_commit_is_that_of_the_clone_and_no_other() {
    if !need_program("git") {
        return;
    }
    let dir = Dir::new("version-commit");
    let git = |args: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
        let out = Command::new("git").arg("-C").arg(&dir.0).args(who).args(args).output();
        let out = out.expect("it starts");
        assert!(out.status.success(), "{}", stderr(&out));
        stdout(&out).trim().to_owned()
    };
    let below = dir.path("package");
    fs::create_dir(&below).expect("writable");
    fs::write(below.join("file"), "1").expect("writable");
    assert_eq!(build::commit(&dir.0, &["package"]), None, "no clone");
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "x"]);
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    assert_eq!(build::commit(&dir.0, &["package"]), Some(commit.clone()));
    assert_eq!(build::commit(&below, &["file"]), None, "a package inside another's clone");
    fs::write(below.join("file"), "2").expect("writable");
    assert_eq!(build::commit(&dir.0, &["package"]), Some(format!("{commit}, modified")));
}
