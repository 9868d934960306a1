//! A task of a supervisor: its program, its releases, and the answer to its faults.
//!
//! Plain data, and the refusal of settings that a process cannot have.

use std::ffi::{CString, OsString};
use std::fmt::Display;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use punctual_core::block::OUTPUT_WORDS_MAX;
use punctual_core::time::Span;
use punctual_os::Errno;
use punctual_os::child::{self, Confinement};
use punctual_os::user::{self, GROUPS_MAX, User};

use super::error::SetupError;
use super::lifecycle::Restart;
use super::name::is_name;
use crate::error::BuildError;
use crate::periodic::{OnOverrun, Task};
use crate::rt_thread::RtThread;

/// A task that is a process.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Name, period, phase, budget, limits and policy.
    pub task: Task,
    /// The program and its arguments; none: a process that joins by name.
    pub command: Vec<OsString>,
    /// The CPU that its thread is pinned to, and its SCHED_FIFO priority, below the supervisor's;
    /// without one: by rank, 1 for all whose rank is beyond the priorities there are.
    pub thread: RtThread,
    /// The time in which it has to register, above 0; else its process is ended.
    pub register_within: Span,
    /// The restarts after its process has ended.
    pub restart: Restart,
    /// Its output while nobody gives one: a multiple of 8 bytes; none for no output.
    pub safe: Vec<u8>,
    /// User, group, environment, capabilities, directory and umask of a process that is started.
    pub surroundings: Surroundings,
}

impl Spec {
    /// The longest burst: its results fit in the block until they are taken.
    pub const BURST_MAX: u32 = 16;
    /// The default time within which a process must register.
    pub const REGISTER_WITHIN: Span = Span::from_ms(5_000);

    /// A process of these words; without a word, one that joins.
    ///
    /// # Real-time: setup only
    pub fn new(task: Task, command: Vec<OsString>) -> Self {
        Self {
            task,
            command,
            thread: RtThread::any(),
            register_within: Self::REGISTER_WITHIN,
            restart: Restart::default(),
            safe: Vec::new(),
            surroundings: Surroundings::default(),
        }
    }

    /// The safe value as words.
    pub(super) fn safe_words(&self) -> Vec<u64> {
        let word = |bytes: &[u8]| {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            u64::from_ne_bytes(whole)
        };
        self.safe.chunks(8).map(word).collect()
    }

    /// Refuses settings that a process of a supervisor of this SCHED_FIFO priority cannot have.
    pub(super) fn check(&self, supervisor: u8) -> Result<(), SetupError> {
        let name = || self.task.name().to_owned();
        let cannot = |why| Err(SetupError::Build(BuildError::Cannot(name(), why)));
        if !is_name(self.task.name()) {
            return Err(SetupError::Name(name()));
        }
        match self.task.overrun_policy() {
            OnOverrun::Delay => {
                return cannot(
                    "a process cannot move its phase, which its supervisor keeps: use skip or \
                     burst, or a worker thread",
                );
            }
            OnOverrun::Burst(most) if most > Self::BURST_MAX => {
                return cannot("a burst of a process must be at most 16 cycles");
            }
            _ => {}
        }
        match self.thread.named_fifo() {
            Some(fifo) if fifo == 0 || fifo >= supervisor => {
                return Err(SetupError::Priority(name(), fifo, supervisor));
            }
            _ => {}
        }
        if self.register_within <= Span::ZERO {
            return cannot("register_within must be above 0");
        }
        if self.restart.pause < Span::ZERO {
            return cannot("the pause before a restart must not be negative");
        }
        if self.safe.len() > 8 * OUTPUT_WORDS_MAX {
            return cannot("a safe value must be at most 4096 bytes");
        }
        if !self.safe.len().is_multiple_of(8) {
            return cannot("a safe value must be a multiple of 8 bytes");
        }
        Ok(())
    }
}

/// The surroundings of a process, each part by the name that systemd.exec(5) gives it; by default
/// those of its supervisor.
///
/// `Surroundings::default().user("nobody").umask(0o077)`; a field is set directly too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Surroundings {
    /// Its user, by name or number. It then has that user's groups, and no capabilities but those
    /// of `capabilities`.
    pub user: Option<String>,
    /// Its group, by name or number [default: the login group of `user`].
    pub group: Option<String>,
    /// Its whole environment, besides the variables by which it finds its supervisor; `None`: that
    /// of its supervisor.
    pub env: Option<Vec<(OsString, OsString)>>,
    /// The capabilities that it has, and that no program that it runs can exceed: `CAP_NET_RAW`.
    pub capabilities: Option<Vec<String>>,
    /// Its working directory.
    pub directory: Option<PathBuf>,
    /// Its file mode creation mask, at most 0o777.
    pub umask: Option<u32>,
}

/// The surroundings in the numbers that the kernel takes.
#[derive(Debug)]
pub(super) struct Resolved {
    uid: Option<u32>,
    gid: Option<u32>,
    groups: Option<Vec<u32>>,
    capabilities: Option<u64>,
    directory: Option<CString>,
    umask: Option<u32>,
}

impl Surroundings {
    /// Sets [`Surroundings::user`].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets [`Surroundings::group`].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Sets [`Surroundings::env`].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn env<N, V>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.env = Some(variables.collect());
        self
    }

    /// Sets [`Surroundings::capabilities`].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn capabilities<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.capabilities = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets [`Surroundings::directory`].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directory = Some(path.into());
        self
    }

    /// Sets [`Surroundings::umask`].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn umask(mut self, mask: u32) -> Self {
        self.umask = Some(mask);
        self
    }

    /// Looks the names up.
    ///
    /// # Errors
    /// Names that do not exist, and settings that cannot be.
    pub(super) fn resolve(&self, task: &str) -> Result<Resolved, SetupError> {
        let refused = |why: String| SetupError::Surroundings(task.to_owned(), why);
        let user = self.user.as_deref().map(find_user).transpose().map_err(refused)?;
        let group = self.group.as_deref().map(find_group).transpose().map_err(refused)?;
        let gid = group.or_else(|| user.as_ref().and_then(|(_, user)| Some(user.as_ref()?.gid)));
        if user.is_some() && gid.is_none() {
            return Err(refused("user is a number without a name: group is needed too".to_owned()));
        }
        let groups = match (&user, gid) {
            (Some((_, Some(_))), Some(gid)) => {
                let name = self.user.as_deref().unwrap_or_default();
                Some(groups_of(name, gid).map_err(|why| refused(format!("user {name:?}: {why}")))?)
            }
            (_, Some(gid)) => Some(vec![gid]),
            _ => None,
        };
        if let Some(umask) = self.umask.filter(|&umask| umask > 0o777) {
            return Err(refused(format!("umask must be at most 0777 (got {umask:#o})")));
        }
        let names = self.env.iter().flatten().map(|(name, _)| name.as_encoded_bytes());
        if names.clone().any(|name| name.is_empty() || name.contains(&b'=')) {
            return Err(refused("the name of a variable must not be empty or contain '='".into()));
        }
        if let Some(path) = self.directory.as_ref().filter(|path| !path.is_dir()) {
            return Err(refused(format!("there is no directory {path:?}")));
        }
        let directory = self.directory.as_ref().map(|path| {
            let bytes = path.clone().into_os_string().into_vec();
            CString::new(bytes).map_err(|_| refused("directory contains a zero byte".to_owned()))
        });
        Ok(Resolved {
            uid: user.map(|(uid, _)| uid),
            gid,
            groups,
            capabilities: self.bits().map_err(refused)?,
            directory: directory.transpose()?,
            umask: self.umask,
        })
    }

    fn bits(&self) -> Result<Option<u64>, String> {
        let Some(names) = &self.capabilities else { return Ok(None) };
        let mut bits = 0;
        for name in names {
            let number = child::capability(name).ok_or_else(|| {
                format!("unknown capability {name:?}; names are those of capabilities(7)")
            })?;
            bits |= 1 << number;
        }
        Ok(Some(bits))
    }
}

impl Resolved {
    /// The part of a new process's start that confines it.
    pub(super) fn confinement(&self) -> Confinement<'_> {
        Confinement {
            uid: self.uid,
            gid: self.gid,
            groups: self.groups.as_deref(),
            capabilities: self.capabilities,
            directory: self.directory.as_deref(),
            umask: self.umask,
        }
    }
}

fn text(name: &str) -> Result<CString, String> {
    CString::new(name).map_err(|_| "it contains a zero byte".to_owned())
}

fn cannot(kind: &str, name: &str) -> impl Fn(Errno) -> String {
    let wanted = format!("{kind} {name:?}");
    move |why| format!("{wanted} cannot be looked up: {why}")
}

fn unknown(kind: &str, name: impl Display) -> String {
    format!("there is no {kind} {name}")
}

/// A user by name, or by number; of a number, what is known of it.
fn find_user(name: &str) -> Result<(u32, Option<User>), String> {
    let failed = cannot("user", name);
    if let Ok(uid) = name.parse() {
        return Ok((uid, user::by_number(uid).map_err(failed)?));
    }
    let found = user::by_name(&text(name)?).map_err(failed)?;
    let found = found.ok_or_else(|| unknown("user", format_args!("{name:?}")))?;
    Ok((found.uid, Some(found)))
}

fn find_group(name: &str) -> Result<u32, String> {
    if let Ok(gid) = name.parse() {
        return Ok(gid);
    }
    let found = user::group(&text(name)?).map_err(cannot("group", name))?;
    found.ok_or_else(|| unknown("group", format_args!("{name:?}")))
}

/// The groups of a user; of one that was given by its number, the one group.
fn groups_of(name: &str, gid: u32) -> Result<Vec<u32>, String> {
    if name.parse::<u32>().is_ok() {
        return Ok(vec![gid]);
    }
    let mut groups = [0; GROUPS_MAX];
    let count = user::groups(&text(name)?, gid, &mut groups)
        .map_err(|_| format!("it is in more than {GROUPS_MAX} groups"))?;
    Ok(groups[..count].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_numbers_or_are_refused_with_the_task() {
        let root = Surroundings {
            user: Some("root".to_owned()),
            capabilities: Some(vec!["cap_net_raw".to_owned(), "CAP_CHOWN".to_owned()]),
            umask: Some(0o27),
            ..Surroundings::default()
        };
        let resolved = root.resolve("a").expect("every machine has it");
        assert_eq!((resolved.uid, resolved.gid), (Some(0), Some(0)));
        assert!(resolved.groups.is_some_and(|groups| groups.contains(&0)));
        assert_eq!((resolved.capabilities, resolved.umask), (Some(1 << 13 | 1), Some(0o27)));
        let refused = |surroundings: Surroundings| {
            surroundings.resolve("a").expect_err("refused").to_string()
        };
        let some = |text: &str| Some(text.to_owned());
        let none = Surroundings::default;
        for (surroundings, words) in [
            (Surroundings { user: some("no such"), ..none() }, "there is no user \"no such\""),
            (Surroundings { group: some("no such"), ..none() }, "there is no group \"no such\""),
            (Surroundings { user: some("4000000000"), ..none() }, "group is needed"),
            (
                Surroundings { capabilities: Some(vec!["CAP_X".to_owned()]), ..none() },
                "unknown capability \"CAP_X\"",
            ),
            (Surroundings { umask: Some(0o1000), ..none() }, "got 0o1000"),
            (
                Surroundings { directory: Some("/no/such".into()), ..none() },
                "there is no directory \"/no/such\"",
            ),
            (Surroundings { env: Some(vec![("A=".into(), "b".into())]), ..none() }, "'='"),
        ] {
            let refusal = refused(surroundings);
            assert!(refusal.starts_with("task \"a\": ") && refusal.contains(words), "{refusal}");
        }
        let number = Surroundings { user: some("4000000000"), group: some("7"), ..none() };
        assert_eq!(number.resolve("a").expect("given").groups, Some(vec![7]));
    }
}
