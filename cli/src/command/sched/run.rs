//! `punctual sched run -- CMD…`: this process gets policy and CPUs, becomes the user, and is
//! replaced by the command.

use std::ffi::CString;
use std::io::Error as IoError;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail};
use punctual_os::credentials::become_user;
use punctual_os::user::{self, GROUPS_MAX};

use super::request::Request;
use crate::args::SchedRunArgs;
use crate::exit::Exit;
use crate::format;

/// Runs the subcommand; returns only where the command could not be run.
pub(super) fn run(args: &SchedRunArgs) -> Result<Exit> {
    let (program, rest) = args.command.split_first().context("no command")?;
    let request = Request::of(&args.sched)?;
    // Looked up before anything changes.
    let user = args.user.as_deref().map(Account::of).transpose()?;
    request.give(0)?;
    if let Some(Account { uid, gid, groups }) = user {
        become_user(uid, gid, &groups).map_err(|errno| {
            let why = IoError::from_raw_os_error(errno.0);
            anyhow!("cannot become the user {}: {why}", args.user.as_deref().unwrap_or_default())
        })?;
    }
    let why = Command::new(program).args(rest).exec();
    bail!("cannot run {}: {why}", format::plain(&program.to_string_lossy()))
}

/// A user with all groups.
struct Account {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl Account {
    fn of(name: &str) -> Result<Self> {
        let shown = name.escape_debug();
        let c_name = CString::new(name).with_context(|| format!("--user {shown}"))?;
        let error = |errno: punctual_os::Errno| IoError::from_raw_os_error(errno.0);
        let found = user::by_name(&c_name).map_err(error);
        let Some(found) = found.with_context(|| format!("--user {shown}"))? else {
            bail!("--user {shown}: there is no such user");
        };
        let mut groups = [0; GROUPS_MAX];
        let count = user::groups(&c_name, found.gid, &mut groups).map_err(error);
        let count = count.with_context(|| format!("--user {shown}: its groups"))?;
        Ok(Self { uid: found.uid, gid: found.gid, groups: groups[..count].to_vec() })
    }
}
