//! Debian systems below `target`, made by mmdebstrap from the mirror that this machine's apt uses.
//!
//! For the subcommands that need another release than this machine's. The only place that knows of
//! mirrors.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process;

/// Has mmdebstrap, told all but that, make `suite` in `at`, in place of what stands there.
pub(crate) fn unpack(mmdebstrap: &mut Command, suite: &str, at: &Path) -> Result<(), String> {
    let mirror = mirror()?;
    let failed = |error: std::io::Error| format!("{}: {error}", at.display());
    if at.exists() {
        fs::remove_dir_all(at).map_err(failed)?;
    }
    fs::create_dir_all(at.parent().unwrap_or(at)).map_err(failed)?;
    // A mirror that is no longer refreshed serves as well.
    mmdebstrap.arg("--aptopt=Acquire::Check-Valid-Until \"false\"");
    mmdebstrap.args(["--aptopt=Acquire::Retries \"3\"", suite]);
    process::run(mmdebstrap.arg(at).arg(mirror))
}

/// The mirror that this machine's apt reads packages from.
fn mirror() -> Result<String, String> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages"]);
    let listed = process::output(&mut targets)?;
    main_site(&String::from_utf8_lossy(&listed))
        .ok_or_else(|| "apt has no source of Debian's main archive".to_owned())
}

/// The first site that is not one of updates alone: lines of `SITE RELEASE`.
fn main_site(listed: &str) -> Option<String> {
    let sites = listed.lines().filter_map(|line| line.split_once(' '));
    let main = |(_, release): &(&str, &str)| !release.contains('-');
    sites.filter(|(site, _)| !site.contains("security")).find(main).map(|(site, _)| site.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_that_of_the_main_archive() {
        let listed = "http://a/debian-security stable-security\nhttp://b/debian stable-updates\n\
                      http://c/debian stable\nhttp://d/debian stable\n";
        assert_eq!(main_site(listed).as_deref(), Some("http://c/debian"));
        assert_eq!(main_site("http://a/debian-security stable\n"), None);
        assert_eq!(main_site(""), None);
    }
}
