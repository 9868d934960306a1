//! `punctual capture OUT`: the facts of this machine as plain files, without secrets.
//!
//! What it copies is what the facts read; `--root OUT` then gives the same facts elsewhere.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use punctual_host::capture::capture;
use punctual_host::scrub::Scrub;

use crate::args::RootArgs;
use crate::exit::Exit;
use crate::format;
use crate::output::{self, Dir};

/// `punctual capture`.
#[derive(Debug, clap::Args)]
pub(crate) struct CaptureArgs {
    /// The directory to write, new or empty
    out: PathBuf,
    #[command(flatten)]
    root: RootArgs,
}

/// Environment variables that name a user.
const USERS: [&str; 3] = ["USER", "LOGNAME", "SUDO_USER"];

/// Runs the subcommand.
pub(crate) fn run(args: &CaptureArgs) -> Result<Exit> {
    let root = super::root(args.root.root.as_deref())?;
    let mut scrub = Scrub::of(&root);
    for user in USERS.iter().filter_map(|name| std::env::var(name).ok()) {
        scrub = scrub.user(&user);
    }
    let out = Dir::make(&args.out)?;
    let shown = args.out.display();
    if let Some(name) = out.first_name(&[]).with_context(|| format!("cannot read {shown}"))? {
        bail!("{shown}: not empty (it contains {name}); name a new or empty directory");
    }
    let captured = capture(root, &scrub, |path, bytes| {
        let written = out.create(path, bytes);
        written.with_context(|| format!("cannot write {}", args.out.join(path).display()))
    })?;
    let line = format!(
        "{} files in {}; its MANIFEST lists {} absent and {} unreadable files. Check the files \
         before you send them: names that no rule covers may remain.\n",
        captured.files,
        format::plain(&args.out.display().to_string()),
        captured.absent,
        captured.unreadable,
    );
    output::show(line)?;
    Ok(Exit::Fine)
}
