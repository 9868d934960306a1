//! Which directories the program writes into as root.
//!
//! Whoever can change a directory decides what a name in it leads to. As root the program therefore
//! chooses names only in directories that belong to root or to the user who became root, and in
//! those that `--trust-directory` names. Looks at the process and at directories; opens and writes
//! none.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use punctual_os::process;
use rustix::fs::Stat;

/// Set once by `main`; unit tests use the default, as without the option.
static TRUST: OnceLock<Trust> = OnceLock::new();

/// Device and inode of a directory.
type Identity = (u64, u64);

/// What may be written into.
#[derive(Debug)]
pub(crate) struct Trust {
    /// Users whose directories are trusted. `None`: all, because without root the kernel protects
    /// other users' files.
    owners: Option<Vec<u32>>,
    /// What the user named.
    named: Vec<Identity>,
}

impl Trust {
    /// Takes the directories of `--trust-directory`.
    ///
    /// # Errors
    /// Names the one that is no directory.
    pub(crate) fn set(named: &[PathBuf]) -> Result<()> {
        let trust = Self { owners: owners(), named: Vec::new() };
        let named = named.iter().map(|dir| identity(dir)).collect::<Result<_>>()?;
        let _only_once = TRUST.set(Self { named, ..trust });
        Ok(())
    }

    /// What was set.
    pub(crate) fn of_process() -> &'static Self {
        TRUST.get_or_init(|| Self { owners: owners(), named: Vec::new() })
    }

    /// Whether this directory was named, so that all below it is trusted.
    pub(crate) fn is_named(&self, dir: &Stat) -> bool {
        self.named.contains(&(dir.st_dev, dir.st_ino))
    }

    /// Why a directory is not trusted: another user can change it.
    pub(crate) fn distrusted(&self, dir: &Stat, shown: &Path) -> Option<String> {
        let owner = self.foreign_owner(dir, &format!("the directory {}", shown.display()));
        let mode = dir.st_mode & 0o7777;
        // In a sticky directory such as /tmp each user can change only its own entries.
        let open = self.owners.is_some() && mode & 0o1002 == 0o0002;
        owner.or_else(|| {
            let open = open.then(|| shown.display());
            open.map(|dir| format!("every user can write to the directory {dir} (mode {mode:04o})"))
        })
    }

    /// Why the journals in a directory are not trusted: users of its group can put others in their
    /// place.
    pub(crate) fn distrusted_group(&self, dir: &Stat, shown: &Path) -> Option<String> {
        let mode = dir.st_mode & 0o7777;
        (self.owners.is_some() && mode & 0o1020 == 0o0020).then(|| {
            format!(
                "the group {} can write to the directory {} (mode {mode:04o}): chmod g-w {}",
                dir.st_gid,
                shown.display(),
                shown.display()
            )
        })
    }

    /// Why a link is not trusted: another user can point it elsewhere.
    pub(crate) fn distrusted_link(&self, link: &Stat, shown: &Path) -> Option<String> {
        self.foreign_owner(link, &format!("the symbolic link {}", shown.display()))
    }

    fn foreign_owner(&self, stat: &Stat, what: &str) -> Option<String> {
        let owners = self.owners.as_ref()?;
        let uid = stat.st_uid;
        (!owners.contains(&uid)).then(|| format!("{what} belongs to another user (uid {uid})"))
    }
}

/// Root and the user who became root; `None` where this process is not root of the machine.
fn owners() -> Option<Vec<u32>> {
    if process::euid() != 0 || !is_machines_root() {
        return None;
    }
    // sudo and pkexec pass on who called them; the kernel keeps who logged in, for su and doas too.
    let callers =
        ["SUDO_UID", "PKEXEC_UID"].into_iter().filter_map(|name| std::env::var(name).ok());
    let login = fs::read_to_string("/proc/self/loginuid").ok();
    let users = callers.chain(login).filter_map(|text| text.trim().parse().ok());
    // (uid_t) -1: not from a login.
    Some(users.filter(|&uid| uid != u32::MAX).chain([0]).collect())
}

/// Whether root here is root of the machine. Root of a user namespace can write no more than the
/// user who made it.
fn is_machines_root() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map");
    map.map_or(true, |map| map.split_whitespace().eq(["0", "0", "4294967295"]))
}

fn identity(dir: &Path) -> Result<Identity> {
    let option = || format!("--trust-directory {}", dir.display());
    let meta = fs::metadata(dir).with_context(option)?;
    if !meta.is_dir() {
        bail!("{}: not a directory", option());
    }
    Ok((meta.dev(), meta.ino()))
}

#[cfg(test)]
impl Trust {
    /// Of whoever is not root.
    pub(crate) fn all() -> Self {
        Self { owners: None, named: Vec::new() }
    }

    /// Of root, behind which these users are.
    pub(crate) fn of_owners(owners: &[u32], named: &[&Path]) -> Self {
        let named = named.iter().map(|dir| identity(dir).expect("a directory")).collect();
        Self { owners: Some(owners.to_vec()), named }
    }
}
