//! Outputs that are inputs, named inside of directories that are given as inputs: refused.

use std::fs;

use super::{names, result, text};
use crate::support::{Dir, refused, run, stderr};

#[test]
fn an_output_inside_of_a_directory_that_is_read_is_refused() {
    let dir = Dir::new("outputs-inputs");
    let (a, b) = (result(&dir, "a"), result(&dir, "b"));
    let runs = dir.path("runs");
    let one = result(&dir, "runs/one");
    for made in [&a, &b, &one] {
        fs::write(made.join("samples.punctual"), "precious samples").expect("writable");
    }
    let (a, b, runs) = (text(&a), text(&b), text(&runs));
    let inside = |name: &str| format!("{a}/{name}");
    let (samples, json) = (inside("samples.punctual"), inside("result.json"));
    let below = format!("{runs}/one/samples.punctual");
    let cases: &[&[&str]] = &[
        &["analyse", a, "--json", &samples],
        &["analyse", a, "--json", &json],
        &["analyse", &json, "--json", &samples],
        &["report", a, "-o", &samples],
        &["report", a, b, "-o", &json],
        &["report", runs, "-o", &below],
        &["compare", b, a, "--json", &samples],
        &["compare", "--a", b, "--b", a, "--json", &json],
        &["export", "--csv", a, "-o", &json],
        &["export", "--hdr", &json, "-o", &samples],
        &["impact", "position", "--speed", "1m/s", "--from", a, "--json", &json],
        &["run", &samples, "--json", &samples],
        &["soak", "--show", a, "--json", &json],
        &["soak", "--campaign", a, "--json", &samples],
    ];
    let before = names(a.as_ref());
    let as_markdown = |args: &&[&str]| args.join("\n").replace("--json", "--markdown");
    let markdown: Vec<String> = cases.iter().map(as_markdown).collect();
    let markdown = markdown.iter().map(|args| args.split('\n').collect());
    for args in cases.iter().map(|args| args.to_vec()).chain(markdown) {
        refused(&run(&args), &["would overwrite an input", "name another file"]);
        for made in [a, b, text(&one)] {
            let kept = fs::read_to_string(format!("{made}/samples.punctual")).expect("there");
            assert_eq!(kept, "precious samples", "{args:?}");
        }
        assert_eq!(names(a.as_ref()), before, "{args:?}");
    }
    // Under another name of the same file, too.
    fs::hard_link(&json, dir.path("other.json")).expect("one file system");
    refused(&run(["report", a, "-o", text(&dir.path("other.json"))]), &["an input"]);
}

#[test]
fn what_is_not_read_may_be_written_there() {
    let dir = Dir::new("outputs-beside");
    let a = result(&dir, "a");
    let page = a.join("page.html");
    for args in [&["report", text(&a), "-o", text(&page)][..], &["report", text(&a)]] {
        let out = run(args);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    }
    assert_eq!(names(&a), ["page.html", "report.html", "result.json"]);
    let campaign = dir.path("c");
    let short = ["--duration", "1s", "--every", "1s", "--json"];
    let json = campaign.join("copy.json");
    let soak = ["soak", "--campaign", text(&campaign)];
    fs::create_dir(&campaign).expect("writable");
    let out = run([&soak, &short[..], &[text(&json)]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    for name in ["state-0.punctual", "state-1.punctual", "lock", "result.json"] {
        let inside = campaign.join(name);
        refused(&run(["soak", "--show", text(&campaign), "--json", text(&inside)]), &["an input"]);
        refused(&run([&soak, &short[..], &[text(&inside)]].concat()), &["an input"]);
    }
}

#[test]
fn a_captured_tree_and_a_baseline_are_inputs_too() {
    let dir = Dir::new("outputs-trees");
    let tree = dir.path("machine");
    assert_eq!(run(["capture", text(&tree)]).status.code(), Some(0));
    for name in ["MANIFEST", "proc/cmdline", "new.json"] {
        let inside = tree.join(name);
        let args = ["facts", "--root", text(&tree), "--json", text(&inside)];
        refused(&run(args), &["captured tree", "elsewhere"]);
    }
    assert!(!tree.join("new.json").exists());
    let baselines = dir.path("baselines");
    let kept = ["--baselines", text(&baselines), "--json"];
    let file = baselines.join("night.json");
    let measure = ["measure", "periodic", "--duration", "1s"];
    let out = run([&measure[..], &kept, &["-", "--baseline", "night"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let before = fs::read(&file).expect("kept");
    for how in [&["--against", "night"][..], &["--baseline", "night", "--force"]] {
        let args = [&measure[..], &kept, &[text(&file)], how].concat();
        refused(&run(args), &["used for another output"]);
        assert_eq!(fs::read(&file).expect("there"), before);
    }
}
