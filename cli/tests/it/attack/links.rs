//! Links and other things planted in the place of names that the program chooses: nothing is
//! written through them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::Attack;
use crate::{Dir, names, result, run, stderr, text};

/// Things that stand in the place of a file.
#[derive(Clone, Copy, Debug)]
enum Planted {
    ToFile,
    ToNothing,
    ToFolder,
    Hard,
    Folder,
}

const PLANTED: [Planted; 5] =
    [Planted::ToFile, Planted::ToNothing, Planted::ToFolder, Planted::Hard, Planted::Folder];

/// Files below `dir`, relative to it.
fn below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in names(dir) {
        let path = dir.join(&name);
        if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            found.extend(below(&path).into_iter().map(|file| Path::new(&name).join(file)));
        } else {
            found.push(name.into());
        }
    }
    found
}

/// The arguments of a command that chooses names in `out`.
fn command(which: usize, made: &Path, out: &Path) -> Vec<String> {
    let owned = |args: &[&str]| args.iter().map(|&arg| arg.to_owned()).collect();
    match which {
        0 => owned(&["report", text(made), "-o", text(&out.join("page.html"))]),
        1 => owned(&["report", text(made), "--plots", text(out)]),
        2 => owned(&["man", text(out)]),
        _ => owned(&["soak", "--every", "1s", "--duration", "100ms", "--campaign", text(out)]),
    }
}

#[test]
fn links() {
    let mut attack = Attack::begin("links");
    let dir = Dir::new("attack-links");
    let made = result(&dir, "made");
    // The names that each chooses, from a run without links.
    let mut chosen = Vec::new();
    for which in 0..4 {
        let out = dir.path(&format!("whole-{which}"));
        fs::create_dir(&out).expect("writable");
        let ran = run(command(which, &made, &out));
        assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
        chosen.push(below(&out));
    }
    while attack.goes_on() {
        let trial = attack.trials();
        let (which, planted) = (attack.random.index(4), *attack.random.one_of(&PLANTED));
        // A page that the user names is written where a link leads, as the shell would.
        let which = if which == 0 { 1 } else { which };
        let name = attack.random.one_of(&chosen[which]).clone();
        let out = dir.path(&format!("out-{trial}"));
        let (victim, victims) = (dir.path("victim"), dir.path("victims"));
        let nothing = dir.path("nothing");
        fs::write(&victim, "precious").expect("writable");
        fs::create_dir_all(&victims).expect("writable");
        let at = out.join(&name);
        fs::create_dir_all(at.parent().expect("a directory")).expect("writable");
        match planted {
            Planted::ToFile => symlink(&victim, &at),
            Planted::ToNothing => symlink(&nothing, &at),
            Planted::ToFolder => symlink(&victims, &at),
            Planted::Hard => fs::hard_link(&victim, &at),
            Planted::Folder => fs::create_dir(&at),
        }
        .expect("free");
        let ran = run(command(which, &made, &out));
        let described = format!("{planted:?} as {} of command {which}", name.display());
        assert!(ran.status.code().is_some(), "{described}: {}", ran.status);
        assert_eq!(fs::read_to_string(&victim).expect("there"), "precious", "{described}");
        assert!(names(&victims).is_empty() && !nothing.exists(), "{described}");
        attack.note(if ran.status.success() { "replaced" } else { "refused" });
        fs::remove_dir_all(&out).expect("ours");
    }
    attack.end();
}
