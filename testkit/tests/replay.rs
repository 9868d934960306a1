//! Replays every seed of the fuzz target on stable, and an empty input of each parser; names the
//! parser that lacks seeds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use punctual_testkit::parsers;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus")
}

fn folders() -> BTreeSet<String> {
    let entries = fs::read_dir(corpus()).expect("fuzz/corpus");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| name(entry.expect("fuzz/corpus"))).collect()
}

#[test]
fn every_parser_has_its_seeds_and_every_seed_its_parser() {
    let parsers = parsers::all();
    let names: BTreeSet<String> = parsers.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names.len(), parsers.len(), "a name stands twice in parsers::all");
    assert_eq!(folders(), names, "folders of fuzz/corpus, and parsers");
}

#[test]
fn every_seed_holds() {
    for (name, body) in parsers::all() {
        let folder = corpus().join(&name);
        println!("{name}: nothing");
        body(&[]);
        let mut seeds = 0;
        for entry in fs::read_dir(&folder).expect(&name) {
            let path = entry.expect(&name).path();
            let data = fs::read(&path).expect(&name);
            // The runner shows this beside a panic, and only then.
            println!("{}", path.display());
            body(&data);
            seeds += 1;
        }
        assert!(seeds >= 2, "fuzz/corpus/{name} has {seeds}: a usual one, and one of each damage");
    }
}
