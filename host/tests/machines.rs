//! Every captured machine in `fixtures/machines` gives the facts that are written beside it.
//! `PUNCTUAL_BLESS=1` writes them anew.

use punctual_host::capture::capture;
use punctual_host::scrub::Scrub;
use punctual_host::{Choice, MachineFacts, Root, choose};
use std::fs;
use std::io;
use std::path::PathBuf;

fn machines() -> Vec<PathBuf> {
    let at = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines");
    let entries = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path());
    let mut machines: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    machines.sort();
    assert!(machines.len() >= 2, "{machines:?}");
    machines
}

fn facts(machine: &str) -> MachineFacts {
    let found = machines().into_iter().find(|path| path.ends_with(machine)).unwrap();
    MachineFacts::collect(&Root::captured(found).unwrap())
}

#[test]
fn facts_are_as_written_beside_them() {
    for machine in machines() {
        let facts = MachineFacts::collect(&Root::captured(&machine).unwrap());
        let shown = serde_json::to_string_pretty(&facts).unwrap() + "\n";
        let golden = machine.join("facts.json");
        if std::env::var_os("PUNCTUAL_BLESS").is_some() {
            fs::write(&golden, &shown).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(shown, expected, "{} differs; PUNCTUAL_BLESS=1 rewrites it", golden.display());
        assert_eq!(serde_json::from_str::<MachineFacts>(&expected).unwrap(), facts);
    }
}

#[test]
fn a_capture_of_a_capture_is_the_same() {
    for machine in machines() {
        let name = machine.file_name().unwrap().to_str().unwrap().to_owned();
        let out =
            std::env::temp_dir().join(format!("punctual-again-{}-{name}", std::process::id()));
        let root = || Root::captured(&machine).unwrap();
        let write = |path: &str, bytes: &[u8]| -> io::Result<()> {
            let path = out.join(path);
            fs::create_dir_all(path.parent().unwrap())?;
            fs::write(path, bytes)
        };
        let captured = capture(root(), &Scrub::of(&root()), write).unwrap();
        let again = MachineFacts::collect(&Root::captured(&out).unwrap());
        let manifests =
            [&machine, &out].map(|dir| fs::read_to_string(dir.join("MANIFEST")).unwrap());
        fs::remove_dir_all(&out).unwrap();
        assert_eq!(again, captured.facts, "{name}");
        assert_eq!(manifests[0], manifests[1], "{name}: something is no longer asked, or newly");
    }
}

#[test]
fn each_machine_gets_its_cpu() {
    let cpu = |machine| choose(&facts(machine));
    assert_eq!(
        cpu("arm64-preempt-rt-4cpu"),
        Choice {
            cpu: 3,
            why: "isolated".to_owned(),
            helper: Some(0),
            helper_why: "not isolated, on another core".to_owned(),
            only_cpu: false,
        }
    );
    let guest = cpu("firecracker-guest-2cpu");
    assert_eq!((guest.cpu, guest.why.as_str()), (1, "last allowed, none isolated"));
}
