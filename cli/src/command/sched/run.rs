//! `punctual sched run -- CMD…`: this process gets policy and CPUs, becomes the user, and is
//! replaced by the command.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io::{Error as IoError, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail};
use punctual_os::process;
use punctual_os::user::become_user;
use punctual_os::user::{self, GROUPS_MAX};

use super::request::Request;
use crate::args::SchedRunArgs;
use crate::exit::Exit;
use crate::{format, output};

/// Runs the subcommand; returns only where the command could not be run.
pub(super) fn run(args: &SchedRunArgs) -> Result<Exit> {
    let (program, rest) = args.command.split_first().context("no command")?;
    let isolated = args.isolated.as_deref().map(Membership::of).transpose()?;
    if let Some(membership) = &isolated {
        // First: it decides which CPUs there are.
        membership.join()?;
        if let Err(errno) = process::allow_real_time() {
            let why = IoError::from_raw_os_error(errno.0);
            output::message(&format!("the limits of real-time threads stay as they are: {why}"));
        }
    }
    let request = Request::of(&args.sched)?;
    // Looked up before anything else changes.
    let user = args.user.as_deref().map(Account::of).transpose()?;
    request.give(0)?;
    if let Some(Account { uid, gid, groups }) = user {
        become_user(uid, gid, &groups).map_err(|errno| {
            let why = IoError::from_raw_os_error(errno.0);
            anyhow!("cannot become the user {}: {why}", args.user.as_deref().unwrap_or_default())
        })?;
    }
    if let Some(Membership { parent, .. }) = isolated {
        // Last: a change of the user drops the tie.
        process::end_with_parent().map_err(|errno| IoError::from_raw_os_error(errno.0))?;
        if process::parent() != parent {
            bail!("'punctual isolate' has ended");
        }
    }
    let why = Command::new(program).args(rest).exec();
    bail!("cannot run {}: {why}", format::plain(&program.to_string_lossy()))
}

/// The group that the command is to be in, and who made it: with that process it ends.
struct Membership {
    members: String,
    parent: i32,
}

impl Membership {
    fn of(words: &[String]) -> Result<Self> {
        let [members, parent] = words else { bail!("--isolated takes FILE PID") };
        Ok(Self { members: members.clone(), parent: parent.parse().context("--isolated")? })
    }

    /// Joins the group. Only for 'punctual isolate', and only a group: another file keeps what is
    /// in it.
    fn join(&self) -> Result<()> {
        let Self { members, parent } = self;
        if process::parent() != *parent {
            bail!("--isolated is for 'punctual isolate': process {parent} did not start this one");
        }
        if !Path::new(members).ends_with("cgroup.procs") {
            bail!("--isolated: {members} is not the members of a control group (cgroup.procs)");
        }
        let file = OpenOptions::new().write(true).open(members);
        file.and_then(|mut file| file.write_all(b"0"))
            .with_context(|| format!("cannot join {members}"))
    }
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
