//! Files that the program writes: whole or as they were, whatever ends it; where they were meant,
//! whoever plants links; never in the place of what is read.
//!
//! Ended or out of room while files are written: the old file or the new one is there.
//!
//! The end at every single call that changes a file is tested in [`crate::attack`].
//!
//! Outputs that are inputs, named inside of directories that are given as inputs: refused.
//!
//! Links in the place of names that the program chooses: never followed; in the place of names that
//! the user chose: followed only where nobody else planted them.
//!
//! As root, directories of other users: refused before anything is measured or written, unless
//! `--trust-directory` names them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use punctual_os::process::EndSignal;
use punctual_testkit::skip;

use crate::{
    Dir, PROGRAM, as_user, commands, may_trace, names, punctual, refused, result, run, signal,
    stderr, stdout, text, traced, until,
};

#[test]
fn a_name_as_long_as_one_may_be_is_written() {
    let dir = Dir::new("outputs-long");
    let made = result(&dir, "made");
    for bytes in [239, 241, 255] {
        let json = made.join("j".repeat(bytes));
        let csv = dir.path("a.csv");
        let out = run(["analyse", text(&csv), "--column", "lateness:us", "--json", text(&json)]);
        assert_eq!(out.status.code(), Some(0), "{bytes}: {}", stderr(&out));
        assert!(json.is_file(), "{bytes}");
    }
}

#[test]
fn markdown_goes_where_it_is_asked_for_and_nowhere_else() {
    let dir = Dir::new("outputs-markdown");
    let csv = dir.path("a.csv");
    fs::write(&csv, "1\n2\n3\n").expect("writable");
    let analyse = ["analyse", text(&csv), "--column", "lateness:us"];
    let with = |more: &[&str]| run([&analyse, more].concat());
    let page = stdout(&with(&[]));
    let markdown = stdout(&with(&["--markdown", "-"]));
    assert!(markdown.starts_with("## punctual analyse\n\n"), "{markdown}");
    assert!(markdown.contains("\n| --- | ---: |"), "{markdown}");
    let (md, json) = (dir.path("a.md"), dir.path("a.json"));
    let out = with(&["--markdown", text(&md), "--json", text(&json)]);
    assert_eq!(stdout(&out), page);
    assert_eq!(fs::read_to_string(&md).expect("written"), markdown);
    let kept = fs::read_to_string(&json).expect("written");
    let out = with(&["--markdown", text(&md), "--json", "-"]);
    assert_eq!(stdout(&out), kept);
    refused(&with(&["--markdown", "-", "--json", "-"]), &["--json - and --markdown -", "a file"]);
    let same = with(&["--markdown", text(&md), "--json", text(&md)]);
    refused(&same, &["--markdown", "a.md", "used for another output"]);
    let none = with(&["--markdown", text(&dir.path("none/a.md"))]);
    refused(&none, &["cannot write", "none/a.md"]);
}

/// The number of cells in a line of a GFM table; an escaped bar is one of its letters.
fn cells(line: &str) -> usize {
    line.replace("\\|", "").matches('|').count() - 1
}

/// Finds a heading and tables, each of heads, a rule and rows that have as many cells.
fn has_tables(heading: &str, markdown: &str) {
    assert!(markdown.starts_with(&format!("## punctual {heading}\n\n")), "{markdown}");
    let tables: Vec<Vec<&str>> = markdown
        .split("\n\n")
        .map(|part| part.lines().filter(|line| line.starts_with('|')).collect::<Vec<_>>())
        .filter(|lines| !lines.is_empty())
        .collect();
    assert!(!tables.is_empty(), "{markdown}");
    for lines in tables {
        assert!(lines.len() > 2, "heads, a rule and a row: {markdown}");
        assert!(lines[1].chars().all(|c| "| -:".contains(c)), "{markdown}");
        assert!(lines.iter().all(|line| cells(line) == cells(lines[0])), "{lines:?}");
        assert!(lines[0].split('|').skip(1).take(cells(lines[0])).all(|head| head.trim() != ""));
    }
}

#[test]
fn commands_without_a_result_show_theirs_as_markdown_too() {
    let dir = Dir::new("outputs-shown");
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines");
    let (machine, state) = (format!("{fixtures}/laptop-intel-pstate"), dir.path("state"));
    let about = ["--root", &machine];
    let copy = dir.path("machine");
    let copied = Command::new("cp").args(["-r", &machine, text(&copy)]).status();
    assert!(copied.expect("it starts").success());
    let applied = ["tune", "apply", "--root", text(&copy), "--state", text(&state)];
    assert!(run(applied).status.code().is_some_and(|code| code < 2));
    let applied = ["--root", text(&copy), "--state", text(&state)];
    let baselines = dir.path("baselines");
    let kept = ["measure", "periodic", "--duration", "100ms", "--baseline", "night"];
    let kept = run([&kept[..], &["--baselines", text(&baselines)]].concat());
    assert_eq!(kept.status.code(), Some(0), "{}", stderr(&kept));
    let own = std::process::id().to_string();
    let commands: [(&str, &[&str]); 7] = [
        ("facts", &about),
        ("tune plan", &about),
        ("tune verify", &applied),
        ("tune status", &applied),
        ("baseline list", &["--baselines", text(&baselines)]),
        ("baseline show", &["night", "--baselines", text(&baselines)]),
        ("sched show", &[&own]),
    ];
    for (name, args) in commands {
        let with = |more: &[&str]| run(name.split(' ').chain(args.iter().chain(more).copied()));
        let markdown = stdout(&with(&["--markdown", "-"]));
        has_tables(name, &markdown);
        let file = dir.path("shown.md");
        let page = stdout(&with(&["--markdown", text(&file)]));
        assert!(!page.is_empty() && !page.contains("| ---"), "{page}");
        has_tables(name, &fs::read_to_string(&file).expect("written"));
    }
    // Whatever another program is to read, people read the same plan.
    let grub = run(["tune", "plan", "--as", "grub", "--root", &machine, "--markdown", "-"]);
    has_tables("tune plan", &stdout(&grub));
    let baseline = baselines.join("night.json");
    for command in [&["list"][..], &["show", "night"]] {
        let more = ["--baselines", text(&baselines), "--markdown", text(&baseline)];
        refused(&run([&["baseline"], command, &more].concat()), &["would overwrite an input"]);
    }
    for command in ["facts", "tune plan", "tune verify", "tune status"] {
        let inside = copy.join("new.md");
        let more = ["--root", text(&copy), "--markdown", text(&inside)];
        refused(&run(command.split(' ').chain(more)), &["--markdown", "inside the captured tree"]);
    }
}

#[test]
fn a_file_is_synced_before_it_is_renamed_and_its_directory_after() {
    let dir = Dir::new("outputs-sync");
    if !skip::need_program("strace") || !may_trace(&dir) {
        return;
    }
    let log = dir.path("log");
    for command in commands(&dir) {
        let out = traced(&command.args, &log, "fsync,renameat,renameat2", &[]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let text = fs::read_to_string(&log).expect("a log");
        let call = |line: &str| Some(line.split_whitespace().nth(1)?.split_once('(')?.0.to_owned());
        let calls: Vec<String> = text.lines().filter_map(call).collect();
        assert_eq!(calls, ["fsync", "renameat", "fsync"], "{text}");
    }
}

#[test]
fn a_limit_on_the_size_of_files_leaves_the_old_json() {
    if !skip::need_native("a limit of the size of files") {
        return;
    }
    let dir = Dir::new("outputs-limit");
    let [analyse, report, _] = commands(&dir);
    for command in [analyse, report] {
        fs::write(&command.file, "the old one").expect("writable");
        let mut limited = Command::new("sh");
        limited.args(["-c", r#"ulimit -f 1; exec "$0" "$@""#, PROGRAM]);
        refused(&limited.args(&command.args).output().expect("a shell"), &["cannot write"]);
        assert_eq!(fs::read_to_string(&command.file).expect("there"), "the old one");
        let at = command.file.parent().expect("a directory");
        assert!(names(at).iter().all(|name| !name.starts_with('.')), "{:?}", names(at));
    }
}

#[test]
fn standard_output_by_its_name_is_added_to_and_not_replaced() {
    let dir = Dir::new("outputs-stdout");
    let [analyse, ..] = commands(&dir);
    let written = dir.path("all");
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        fs::write(&written, "before\n").expect("writable");
        let appended = fs::OpenOptions::new().append(true).open(&written).expect("writable");
        let last = analyse.args.len() - 1;
        let mut command = punctual();
        command.args(&analyse.args[..last]).arg(name).stdout(appended);
        assert!(command.status().expect("it starts").success(), "{name}");
        let text = fs::read_to_string(&written).expect("there");
        let (json, page) = text.split_once("\n}\n").expect("JSON, then the page");
        assert!(json.starts_with("before\n{\n") && page.contains("lateness"), "{name}: {text}");
    }
    assert_eq!(names(&dir.0), ["a.csv", "all", "issue", "made", "out"]);
}

/// An hour's measurement onto `samples`.
fn measure(samples: &Path, json: &Path, load: &str) -> Command {
    let mut command = punctual();
    command.args(["measure", "periodic", "--duration", "1h", "--period", "200us", "--load", load]);
    command.arg("--samples").arg(samples).arg("--json").arg(json);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn samples_replace_older_ones_only_once_there_are_some() {
    let dir = Dir::new("outputs-samples");
    let (samples, json) = (dir.path("samples"), dir.path("result.json"));
    for file in [&samples, &json] {
        fs::write(file, "the old one").expect("writable");
    }
    let old = || [&samples, &json].map(|file| fs::read_to_string(file).unwrap_or_default());
    // A load that does not start: it writes where there is nothing.
    let mut failed = measure(&samples, &json, "disk");
    let out = failed.env("TMPDIR", dir.path("missing")).output().expect("it starts");
    refused(&out, &["disk", "missing"]);
    assert_eq!(old(), ["the old one", "the old one"]);
    // An end before the first sample: the program was asked to stop before it began to measure.
    let child = measure(&samples, &json, "none").spawn().expect("it starts");
    until("the signal to be caught", || catches_stop(child.id()));
    signal(&child, EndSignal::Interrupt);
    let out = child.wait_with_output().expect("it ends");
    let measured = fs::read(&samples).expect("there").starts_with(b"PUNCTUAL");
    assert_eq!(
        measured,
        !stderr(&out).contains("not written, because nothing was recorded"),
        "{}",
        stderr(&out)
    );
    assert!(measured || old()[0] == "the old one");
    // Once some are written they are there, however it ends.
    fs::write(&samples, "the old one").expect("writable");
    let mut child = measure(&samples, &json, "none").spawn().expect("it starts");
    until("samples", || fs::metadata(&samples).is_ok_and(|meta| meta.len() > 8_000));
    signal(&child, EndSignal::Kill);
    child.wait().expect("it ends");
    assert!(fs::read(&samples).expect("there").starts_with(b"PUNCTUAL"));
    assert_eq!(names(&dir.0), ["result.json", "samples"], "nothing beside them");
}

/// Returns true where a process catches SIGINT already: bit 1 of its mask (proc_pid_status(5)).
fn catches_stop(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 2 != 0)
}

#[test]
fn samples_that_are_removed_meanwhile_are_missed() {
    let dir = Dir::new("outputs-removed");
    let (samples, json) = (dir.path("samples"), dir.path("result.json"));
    let child = measure(&samples, &json, "none").spawn().expect("it starts");
    until("samples", || fs::metadata(&samples).is_ok_and(|meta| meta.len() > 8_000));
    fs::remove_file(&samples).expect("there");
    signal(&child, EndSignal::Interrupt);
    let out = child.wait_with_output().expect("it ends");
    refused_at_the_end(&out, "removed or replaced while it was written");
    assert!(json.is_file(), "all else is written");
}

#[test]
fn a_campaign_that_cannot_keep_its_result_fails() {
    let dir = Dir::new("outputs-soak");
    let campaign = dir.path("c");
    let mut soak = punctual();
    soak.args(["soak", "--every", "1s", "--save-every", "1s", "--campaign"]).arg(&campaign);
    let child = soak.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let result = campaign.join("result.json");
    until("a result", || result.is_file());
    // Moved away and put in place at once would be undone by the next batch.
    until("a directory in its place", || {
        let _gone = fs::remove_file(&result);
        fs::create_dir(&result).is_ok()
    });
    let rows = fs::metadata(campaign.join("state-0.punctual")).expect("there").modified().ok();
    until("another state", || {
        fs::metadata(campaign.join("state-0.punctual")).is_ok_and(|at| at.modified().ok() != rows)
    });
    signal(&child, EndSignal::Terminate);
    let out = child.wait_with_output().expect("it ends");
    refused_at_the_end(&out, "result.json could not be saved");
    assert!(stdout(&out).contains("it is a directory"), "{}", stdout(&out));
    // And it does not begin where it could not.
    let again = punctual().args(["soak", "--resume"]).arg(&campaign).output().expect("it starts");
    refused(&again, &["result.json", "it is a directory"]);
}

/// Asserts exit 2, and why in the last line of standard error.
fn refused_at_the_end(out: &Output, why: &str) {
    let errors = stderr(out);
    assert_eq!(out.status.code(), Some(2), "{errors}");
    assert!(errors.trim_end().lines().last().is_some_and(|line| line.contains(why)), "{errors}");
}

#[test]
fn an_output_inside_of_a_directory_that_is_read_is_refused() {
    let dir = Dir::new("outputs-inputs");
    let (a, b) = (result(&dir, "a"), result(&dir, "b"));
    let runs = dir.path("runs");
    let first = result(&dir, "runs/one");
    for made in [&a, &b, &first] {
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
    let with = |args: &&[&str], option: &str| args.join("\n").replace("--json", option);
    let judging = |args: &&&[&str]| ["analyse", "compare", "soak"].contains(&args[0]);
    let markdown = cases.iter().map(|args| with(args, "--markdown"));
    let junit = cases.iter().filter(judging).map(|args| with(args, "--junit"));
    let others: Vec<String> = markdown.chain(junit).collect();
    let others = others.iter().map(|args| args.split('\n').collect());
    for args in cases.iter().map(|args| args.to_vec()).chain(others) {
        refused(&run(&args), &["would overwrite an input", "name another file"]);
        for made in [a, b, text(&first)] {
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
    let mkfifo = Command::new("mkfifo").arg(&pipe).status();
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

/// Commands that choose names in `DIR`, which is in their place; the first ones take a moment.
fn commands_into(dir: &str) -> Vec<Vec<String>> {
    let below = format!("{dir}/below");
    let split = |line: &str| -> Vec<String> {
        let word = |word: &str| word.replace("BELOW", &below).replace("DIR", dir);
        line.split(' ').map(word).collect()
    };
    [
        "man DIR",
        "man BELOW/deeper",
        "capture BELOW/machine",
        "report DIR",
        "report DIR/result.json",
        "report OWN --plots BELOW/plots",
        "soak --every 1s --duration 1s --campaign BELOW/c",
        "check --duration 1s --results BELOW/results",
        "measure periodic --duration 1s --baseline day --baselines BELOW/baselines",
        "baseline remove night --baselines BELOW/baselines",
    ]
    .map(split)
    .to_vec()
}

/// The same with a result of ours in the place of `OWN`.
fn with_own(args: &[String], own: &Path) -> Vec<String> {
    args.iter().map(|arg| arg.replace("OWN", text(own))).collect()
}

#[test]
fn a_strangers_directory_is_refused_unless_it_is_trusted() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let dir = Dir::new("stranger");
    let own = result(&dir, "own");
    let theirs = result(&dir, "theirs");
    fs::create_dir_all(theirs.join("below/baselines")).expect("writable");
    fs::write(theirs.join("below/baselines/night.json"), "{}").expect("writable");
    for made in ["", "below", "below/baselines"] {
        chown(theirs.join(made), Some(STRANGER), None).expect("root may");
    }
    let before = (names(&theirs), names(&theirs.join("below")));
    for args in commands_into(text(&theirs)) {
        // An hour: it would not come back if it began.
        let long = |arg: String| if arg == "1s" { "1h".to_owned() } else { arg };
        let args: Vec<String> = with_own(&args, &own).into_iter().map(long).collect();
        refused(&run(&args), &["another user (uid 54321)", "--trust-directory"]);
        assert_eq!((names(&theirs), names(&theirs.join("below"))), before, "{args:?}");
    }
    for args in commands_into(text(&theirs)) {
        let args = with_own(&args, &own);
        let trust = ["--trust-directory".to_owned(), text(&theirs).to_owned()];
        let out = run([&args[..], &trust].concat());
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", stderr(&out));
    }
    let made = ["baselines", "c", "deeper", "machine", "plots", "results"];
    assert_eq!(names(&theirs.join("below")), made);
    assert!(theirs.join("report.html").is_file() && theirs.join("punctual.1").is_file());
}

/// Where there is anything that another user could change: the modes of `dir` and all below it.
fn open_to_others(dir: &Path) -> Vec<(PathBuf, u32)> {
    let entries = fs::read_dir(dir).expect("readable").map(|entry| entry.expect("there").path());
    let below = |path: PathBuf| {
        let found = path.symlink_metadata().expect("there");
        let writable = if found.is_dir() { 0o022 } else { 0o002 };
        // A link has no permissions of its own.
        let own = (!found.is_symlink() && found.mode() & writable != 0)
            .then(|| (path.clone(), found.mode()));
        let deeper = if found.is_dir() { open_to_others(&path) } else { Vec::new() };
        own.into_iter().chain(deeper)
    };
    entries.flat_map(below).collect()
}

#[test]
fn what_it_makes_is_no_other_users_to_change_whatever_the_umask() {
    let dir = Dir::new("umask");
    let (own, made, state) = (result(&dir, "own"), dir.path("made"), dir.path("made/state"));
    fs::create_dir(&made).expect("writable");
    fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).expect("ours");
    let below = |args: &Vec<String>| args.iter().any(|arg| arg.contains("below"));
    let chosen = commands_into(text(&made)).into_iter().filter(|args| below(args));
    // `check` keeps what waits learned; a second one writes into the directories of the first.
    let again = chosen.clone().filter(|args| args[0] == "check");
    let named = ["facts", "--json", text(&made.join("facts.json"))].map(str::to_owned).to_vec();
    for args in chosen.clone().filter(|args| args[0] != "baseline").chain(again).chain([named]) {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 000; exec \"$@\"", "sh"]).arg(PROGRAM);
        command.args(with_own(&args, &own)).env("XDG_STATE_HOME", &state);
        let out = command.output().expect("it starts");
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", stderr(&out));
        assert_eq!(open_to_others(&made), [], "{args:?}");
    }
}

fn man_as(user: Option<u32>, dir: &Path) -> Output {
    let mut command = punctual();
    command.arg("man").arg(dir).env_remove("SUDO_UID").env_remove("PKEXEC_UID");
    if let Some(user) = user {
        command.env("SUDO_UID", user.to_string());
    }
    command.output().expect("it starts")
}

#[test]
fn the_user_behind_sudo_is_no_stranger_and_whoever_turns_a_link_is_one() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let dir = Dir::new("stranger-sudo");
    let theirs = dir.path("theirs");
    fs::create_dir(&theirs).expect("writable");
    chown(&theirs, Some(STRANGER), None).expect("root may");
    refused(&man_as(None, &theirs), &["another user"]);
    refused(&man_as(Some(STRANGER + 1), &theirs), &["another user"]);
    assert_eq!(man_as(Some(STRANGER), &theirs).status.code(), Some(0));
    // A link of theirs to a directory of ours.
    let (link, ours) = (dir.path("link"), dir.path("ours"));
    fs::create_dir(&ours).expect("writable");
    symlink(&ours, &link).expect("free");
    assert_eq!(man_as(None, &link).status.code(), Some(0), "our own link is followed");
    lchown(&link, Some(STRANGER), None).expect("root may");
    let before = names(&ours);
    refused(&man_as(None, &link), &["symbolic link", "another user"]);
    assert_eq!(names(&ours), before);
    // What every user may change is a stranger's, but for a directory such as /tmp.
    let open = dir.path("open");
    fs::create_dir(&open).expect("writable");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("ours");
    refused(&man_as(None, &open), &["every user", "0777", "--trust-directory"]);
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).expect("ours");
    assert_eq!(man_as(None, &open).status.code(), Some(0));
    refused(&run(["--trust-directory", "/nonexistent", "schema"]), &["--trust-directory", "/non"]);
}

#[test]
fn what_sudo_makes_belongs_to_who_called_it_and_nothing_else_does() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let dir = Dir::new("sudo-owner");
    let (theirs, ours) = (dir.path("theirs"), dir.path("ours"));
    for (made, owner) in [(&theirs, STRANGER), (&ours, 0)] {
        fs::create_dir(made).expect("writable");
        chown(made, Some(owner), Some(owner)).expect("root may");
    }
    let check = |at: &Path| {
        let mut command = punctual();
        command.args(["check", "-q", "-d", "300ms", "--results"]).arg(at.join("new/results"));
        command.args(["--baseline", "b", "--baselines"]).arg(at.join("baselines"));
        let out = command.env("SUDO_UID", STRANGER.to_string()).output().expect("it starts");
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    };
    fn owners(at: &Path, found: &mut Vec<(PathBuf, u32, u32)>) {
        for entry in fs::read_dir(at).expect("readable").flatten() {
            let meta = entry.path().symlink_metadata().expect("there");
            found.push((entry.path(), meta.uid(), meta.gid()));
            if meta.is_dir() {
                owners(&entry.path(), found);
            }
        }
    }
    for (made, owner) in [(&theirs, STRANGER), (&ours, 0)] {
        check(made);
        let mut found = Vec::new();
        owners(made, &mut found);
        let names: Vec<_> = found.iter().filter_map(|(path, ..)| path.file_name()).collect();
        for name in ["new", "latest", "result.json", "report.html", "samples.punctual", "b.json"] {
            assert!(names.iter().any(|found| *found == name), "{name} in {found:?}");
        }
        let others = found.iter().filter(|(_, uid, gid)| (*uid, *gid) != (owner, owner));
        assert_eq!(others.count(), 0, "{found:?}");
    }
    // A file of root's that is replaced stays root's.
    let kept = theirs.join("facts.json");
    fs::write(&kept, "").expect("root may");
    let mut facts = punctual();
    facts.args(["facts", "--json"]).arg(&kept).env("SUDO_UID", STRANGER.to_string());
    assert_eq!(facts.output().expect("it starts").status.code(), Some(0));
    assert_eq!(fs::metadata(&kept).expect("there").uid(), 0);
}

#[test]
fn without_root_the_kernel_decides() {
    if !skip::need("root", skip::is_root()) || !skip::need_program("setpriv") {
        return;
    }
    let dir = Dir::new("stranger-user");
    let open = dir.path("open");
    fs::create_dir(&open).expect("writable");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("ours");
    let out = as_user(&dir).arg("man").arg(&open).output().expect("it starts");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    // A file of somebody else's in a directory like /tmp could not be replaced at the end.
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).expect("ours");
    let json = open.join("facts.json");
    fs::write(&json, "theirs").expect("writable");
    fs::set_permissions(&json, fs::Permissions::from_mode(0o666)).expect("ours");
    let out = as_user(&dir).args(["facts", "--json"]).arg(&json).output().expect("it starts");
    refused(&out, &["facts.json", "another user"]);
    assert_eq!(fs::read_to_string(&json).expect("there"), "theirs");
}
