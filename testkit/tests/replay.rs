//! Replays every seed of the fuzz targets on stable, and holds targets, bodies and seeds together.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use punctual_testkit::parsers;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

/// Names in a folder of `fuzz`, without the ending.
fn names(folder: &str, ending: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(fuzz().join(folder)).expect(folder);
    let names = entries.map(|entry| entry.expect(folder).file_name());
    names.filter_map(|name| Some(name.to_str()?.strip_suffix(ending)?.to_owned())).collect()
}

#[test]
fn every_body_has_its_target_and_its_seeds() {
    let bodies: BTreeSet<String> =
        parsers::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(bodies.len(), parsers::ALL.len(), "a name stands twice in parsers::ALL");
    assert_eq!(names("fuzz_targets", ".rs"), bodies);
    assert_eq!(names("corpus", ""), bodies);
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).expect("fuzz/Cargo.toml");
    for name in &bodies {
        let path = format!("path = \"fuzz_targets/{name}.rs\"");
        assert!(manifest.contains(&path), "fuzz/Cargo.toml has no [[bin]] with {path}");
        let target = fs::read_to_string(fuzz().join(format!("fuzz_targets/{name}.rs")));
        let call = format!("parsers::{name}(data)");
        assert!(target.expect(name).contains(&call), "{name}.rs calls another body");
    }
}

#[test]
fn every_seed_holds() {
    for (name, body) in parsers::ALL {
        let folder = fuzz().join("corpus").join(name);
        let mut seeds = 0;
        for entry in fs::read_dir(&folder).expect(name) {
            let path = entry.expect(name).path();
            let data = fs::read(&path).expect(name);
            // The runner shows this beside a panic, and only then.
            println!("{}", path.display());
            body(&data);
            seeds += 1;
        }
        assert!(seeds >= 2, "fuzz/corpus/{name} has {seeds} seeds: a usual one and a broken one");
    }
}
