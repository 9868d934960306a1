//! Links in the place of names that the program chooses: never followed; in the place of names that
//! the user chose: followed only where nobody else planted them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use punctual_testkit::skip;

use super::{names, result, text};
use crate::support::{Dir, punctual, refused, run, stderr, stdout, until};

/// Somebody's file and directory that links point to.
struct Victim<'a>(&'a Dir);

impl Victim<'_> {
    fn file(&self) -> PathBuf {
        self.0.path("victim")
    }

    fn dir(&self) -> PathBuf {
        self.0.path("victims")
    }

    /// Makes both.
    fn make(&self) {
        fs::create_dir(self.dir()).expect("writable");
        fs::write(self.file(), "precious").expect("writable");
    }

    /// Puts a link to the file at `path`.
    fn plant(&self, path: &Path) {
        let _free = fs::remove_file(path);
        symlink(self.file(), path).expect("free");
    }

    fn is_whole(&self) {
        assert_eq!(fs::read_to_string(self.file()).expect("there"), "precious");
        assert!(names(&self.dir()).is_empty(), "{:?}", names(&self.dir()));
    }
}

#[test]
fn pages_plots_and_man_pages_replace_links() {
    let dir = Dir::new("planted-pages");
    let victim = Victim(&dir);
    victim.make();
    let made = result(&dir, "made");
    let (plots, man) = (dir.path("plots"), dir.path("man"));
    for dir in [&plots, &man] {
        fs::create_dir(dir).expect("writable");
    }
    let places = [
        made.join("report.html"),
        plots.join("histogram-1-1.svg"),
        plots.join("histogram-1-1.png"),
        man.join("punctual.1"),
        man.join("punctual-check.1"),
    ];
    places.iter().for_each(|place| victim.plant(place));
    for args in [&["report", text(&made), "--plots", text(&plots)][..], &["man", text(&man)]] {
        let out = run(args);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    }
    victim.is_whole();
    for place in places {
        assert!(place.symlink_metadata().is_ok_and(|meta| meta.is_file()), "{}", place.display());
    }
}

#[test]
fn a_campaign_follows_no_link_in_its_directory() {
    let dir = Dir::new("planted-soak");
    let victim = Victim(&dir);
    victim.make();
    let campaign = dir.path("c");
    let soak = |duration| {
        let args = ["soak", "--every", "1s", "--duration", duration, "--campaign"];
        punctual().args(args).arg(&campaign).output().expect("it starts")
    };
    fs::create_dir(&campaign).expect("writable");
    victim.plant(&campaign.join("lock"));
    refused(&soak("1s"), &["lock", "symbolic link"]);
    fs::remove_file(campaign.join("lock")).expect("there");
    victim.plant(&campaign.join("state-0.punctual"));
    refused(&soak("1s"), &["state-0.punctual", "symbolic link"]);
    fs::remove_file(campaign.join("state-0.punctual")).expect("there");
    let out = soak("1s");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    for name in ["state-1.punctual", "result.json", "state.new"] {
        victim.plant(&campaign.join(name));
    }
    let out = soak("3s");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(stdout(&out).contains("corrupt, so the other one is used"), "{}", stdout(&out));
    for name in ["state-0.punctual", "state-1.punctual", "result.json", "lock"] {
        let is_file = campaign.join(name).symlink_metadata().is_ok_and(|meta| meta.is_file());
        assert!(is_file, "{name}");
    }
    victim.is_whole();
    fs::remove_file(campaign.join("lock")).expect("there");
    fs::hard_link(victim.file(), campaign.join("lock")).expect("one file system");
    refused(&soak("4s"), &["lock", "one link"]);
    victim.is_whole();
}

#[test]
fn results_go_where_their_directory_is_whatever_becomes_of_its_name() {
    let dir = Dir::new("planted-check");
    let victim = Victim(&dir);
    victim.make();
    let results = dir.path("results");
    let mut check = punctual();
    check.args(["check", "--duration", "3s", "--results"]).arg(&results);
    let child = check.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let run = || fs::read_dir(&results).ok()?.flatten().next().map(|entry| entry.path());
    until("samples", || run().is_some_and(|run| run.join("samples.punctual").exists()));
    let (run, away) = (run().expect("one"), results.join("away"));
    fs::rename(&run, &away).expect("ours");
    symlink(victim.dir(), &run).expect("free");
    let out = child.wait_with_output().expect("it ends");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert_eq!(names(&away), ["report.html", "result.json", "samples.punctual"]);
    let page = fs::read_to_string(away.join("report.html")).expect("there");
    assert!(!page.contains("no samples are beside this result"), "its own samples are drawn");
    victim.is_whole();
}

/// A user that is not root.
const STRANGER: u32 = 54_321;

/// Commands that write the file that the user names, each with its options up to the name.
fn writers(dir: &Dir) -> Vec<Vec<String>> {
    let made = result(dir, "made");
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/industrial-rt-4cpu");
    let csv = dir.path("a.csv");
    let split = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
    vec![
        split(&format!("analyse {} --column lateness:us --json", text(&csv))),
        split(&format!("report {} --output", text(&made))),
        split(&format!("export {} --csv --histogram --output", text(&made.join("result.json")))),
        split("facts --json"),
        split(&format!("tune check --root {tree} --json")),
        split(&format!("tune plan --root {tree} --json")),
        // An hour: it would not come back if it began.
        split("measure periodic --duration 1h --samples"),
        split("measure periodic --duration 1h --json"),
    ]
}

/// A directory like /tmp, which `owner` has.
fn like_tmp(dir: &Dir, owner: u32) -> PathBuf {
    let open = dir.path(&format!("open-{owner}"));
    fs::create_dir(&open).expect("writable");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).expect("ours");
    chown(&open, Some(owner), None).expect("root may");
    open
}

#[test]
fn what_another_user_planted_in_a_directory_like_tmp_is_no_output() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let dir = Dir::new("planted-named");
    let victim = Victim(&dir);
    victim.make();
    let open = like_tmp(&dir, 0);
    let (link, file, pipe) = (open.join("link"), open.join("file"), open.join("pipe"));
    victim.plant(&link);
    fs::write(&file, "theirs").expect("writable");
    let mkfifo = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(mkfifo.expect("it starts").success());
    for planted in [&link, &file, &pipe] {
        lchown(planted, Some(STRANGER), None).expect("root may");
    }
    // A link of our own to theirs leads to theirs.
    let ours = dir.path("ours");
    symlink(&link, &ours).expect("free");
    for args in writers(&dir) {
        for planted in [&link, &file, &pipe, &ours] {
            let args = [&args[..], &[text(planted).to_owned()]].concat();
            let kind = if *planted == link || *planted == ours { "symbolic link" } else { "file" };
            let why = [kind, "another user (uid 54321)", "name a file in another directory"];
            refused(&run(&args), &why);
        }
    }
    victim.is_whole();
    assert_eq!(fs::read_to_string(&file).expect("there"), "theirs");
    assert_eq!(names(&open), ["file", "link", "pipe"]);
}

#[test]
fn a_link_of_the_users_own_or_of_the_directorys_owner_is_followed() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let dir = Dir::new("planted-own");
    for (around, owner) in [(0, 0), (STRANGER, STRANGER), (STRANGER, 0)] {
        let open = like_tmp(&dir, around);
        let (target, link) = (open.join("target"), open.join("link"));
        symlink("target", &link).expect("free");
        lchown(&link, Some(owner), None).expect("root may");
        let out = run(["facts", "--json", text(&link)]);
        assert_eq!(out.status.code(), Some(0), "{around} {owner}: {}", stderr(&out));
        let written = fs::read_to_string(&target).expect("where the link leads");
        assert!(written.starts_with('{') && names(&open) == ["link", "target"]);
        fs::remove_dir_all(&open).expect("ours");
    }
}

#[test]
fn a_baseline_replaces_a_link() {
    let dir = Dir::new("planted-baseline");
    let victim = Victim(&dir);
    victim.make();
    let baselines = dir.path("baselines");
    fs::create_dir(&baselines).expect("writable");
    let file = baselines.join("night.json");
    victim.plant(&file);
    let args = ["measure", "periodic", "--duration", "1s", "--baseline", "night", "--baselines"];
    let measure = [&args[..], &[text(&baselines)]].concat();
    refused(&run(&measure), &["the baseline exists already", "--force"]);
    let out = run([&measure[..], &["--force"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(file.symlink_metadata().is_ok_and(|meta| meta.is_file()));
    victim.plant(&file);
    let out = run(["baseline", "remove", "night", "--baselines", text(&baselines)]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(names(&baselines).is_empty());
    victim.is_whole();
}
