//! `punctual capture OUT`: the facts of this machine as plain files, without secrets.
//!
//! What it copies is what the facts read; `--root OUT` then gives the same facts elsewhere.

use std::fs::{self, File};
use std::io::Write;

use anyhow::{Context, Result, bail};
use punctual_host::capture::capture;
use punctual_host::scrub::Scrub;

use crate::Exit;
use crate::args::CaptureArgs;
use crate::output::Json;

/// Environment variables that name a user.
const USERS: [&str; 3] = ["USER", "LOGNAME", "SUDO_USER"];

/// Runs the subcommand.
pub(crate) fn run(args: &CaptureArgs) -> Result<Exit> {
    let root = super::root(args.root.root.as_deref())?;
    let mut scrub = Scrub::of(&root);
    for user in USERS.iter().filter_map(|name| std::env::var(name).ok()) {
        scrub = scrub.user(&user);
    }
    let shown = args.out.display();
    let made = fs::create_dir_all(&args.out).and_then(|()| fs::read_dir(&args.out));
    if made.with_context(|| format!("cannot write {shown}"))?.next().is_some() {
        bail!("{shown} is not empty; name a directory that does not exist yet");
    }
    let captured = capture(root, &scrub, |path, bytes| {
        let path = args.out.join(path);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| File::create_new(&path)?.write_all(bytes))
            .with_context(|| format!("cannot write {}", path.display()))
    })?;
    let line = format!(
        "{} files in {}; {} absent and {} unreadable ones are in its MANIFEST. \
         Look it through before you send it: names that no rule knows may be left.\n",
        captured.files,
        args.out.display(),
        captured.absent,
        captured.unreadable,
    );
    Json::None.write("", &line)?;
    Ok(Exit::Fine)
}
