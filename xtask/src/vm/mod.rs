//! `cargo xtask vm [--install] [SCENARIO…]`: what needs another kernel, in guests of QEMU.
//!
//! Debian's kernels with PREEMPT_RT boot under emulation, without any right, from an image that
//! holds the command, the tests and a script; what the script printed is judged. Times under
//! emulation mean nothing, so none is judged. Packages are kept in the user's cache (about 1 GB,
//! see `system.rs`); nothing is installed but, with `--install`, mmdebstrap. What a guest printed
//! is in `target/vm/SCENARIO-KERNEL….log`.

mod archive;
mod guest;
mod programs;
mod scenarios;
mod system;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::{process, root};
use archive::Archive;
use guest::{Console, Guest};
use programs::Program;
use system::System;

/// What guests are booted for.
struct Scenario {
    name: &'static str,
    what: &'static str,
    /// Each guest: the kernel's name and its devices.
    guests: &'static [(&'static str, &'static [&'static str])],
    /// Parameters of the kernel.
    append: &'static str,
    /// Drivers that are loaded, in this order.
    drivers: &'static [&'static str],
    programs: &'static [Program],
    /// Lines of a shell, most of them `step NAME COMMAND…`.
    steps: &'static str,
    /// Whether the guest did what it should.
    judge: fn(&Console) -> Result<(), String>,
}

/// How long a guest may take: most take half a minute where nothing else runs.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs the subcommand.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let (install, names) = match args {
        [flag, rest @ ..] if flag == "--install" => (true, rest),
        rest => (false, rest),
    };
    let scenarios = named(names)?;
    if install {
        crate::test::install_one("mmdebstrap")?;
    }
    if let Some(what) = lacking() {
        return Err(format!("needs {what} (`cargo xtask vm --install` gets mmdebstrap)"));
    }
    let clone = root::root();
    let kept = clone.join("target/vm");
    fs::create_dir_all(&kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    let emulator = System::of(&system::EMULATOR)?;
    let mut failed = Vec::new();
    for scenario in &scenarios {
        for &(kernel, devices) in scenario.guests {
            let begun = Instant::now();
            let outcome = boot(&clone, &kept, &emulator, scenario, kernel, devices);
            let took = begun.elapsed().as_secs_f64();
            let name = [&[scenario.name, kernel], devices].concat().join(" ");
            match outcome {
                Ok(()) => println!("vm: {name}: holds ({took:.0} s)"),
                Err(why) => {
                    println!("vm: {name}: {why} ({took:.0} s)");
                    failed.push(name);
                }
            }
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(format!("failed: {}", failed.join(", "))),
    }
}

/// What all of this lacks on this machine; `None` when nothing.
pub(crate) fn lacking() -> Option<&'static str> {
    if !cfg!(target_arch = "x86_64") {
        return Some("x86-64, whose kernels and emulator these are");
    }
    ["mmdebstrap", "strip", "ldd"].into_iter().find(|program| !process::on_path(program))
}

/// The scenarios of these names, all of them without one.
fn named(names: &[String]) -> Result<Vec<&'static Scenario>, String> {
    if names.is_empty() {
        return Ok(scenarios::ALL.iter().collect());
    }
    let of = |name: &String| {
        scenarios::ALL.iter().find(|scenario| scenario.name == name).ok_or_else(|| {
            let list: Vec<String> =
                scenarios::ALL.iter().map(|of| format!("  {:8} {}", of.name, of.what)).collect();
            format!("no scenario {name:?}; there are\n{}", list.join("\n"))
        })
    };
    names.iter().map(of).collect()
}

/// Boots one guest and judges it.
fn boot(
    clone: &Path,
    kept: &Path,
    emulator: &System,
    scenario: &Scenario,
    kernel: &str,
    devices: &[&str],
) -> Result<(), String> {
    let of = system::KERNELS.iter().find(|of| of.name == kernel);
    let kernel = System::of(&of.ok_or_else(|| format!("no kernel {kernel}"))?.packages)?;
    let mut archive = Archive::default();
    archive.add("/init", guest::init(scenario.steps).as_bytes());
    archive.add("/bin/busybox", &emulator.read("usr/bin/busybox")?);
    for (number, driver) in scenario.drivers.iter().enumerate() {
        archive.add(&format!("/drivers/{number}.ko"), &kernel.driver(emulator, driver)?);
    }
    programs::add(&mut archive, clone, kept, scenario.programs)?;
    let name = [&[scenario.name, of.map_or("", |of| of.name)], devices].concat().join("-");
    let image = kept.join(format!("{name}.image"));
    let named = |error: std::io::Error| format!("{}: {error}", image.display());
    fs::write(&image, archive.end()).map_err(named)?;
    let log = kept.join(format!("{name}.log"));
    let append = scenario.append;
    let guest = Guest { emulator, kernel: &kernel, devices, append, patience: PATIENCE };
    let console = guest.run(&image, &log);
    // An image takes 200 MB.
    fs::remove_file(&image).map_err(named)?;
    (scenario.judge)(&console?).map_err(|why| format!("{why}: {} has all of it", log.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_have_names_of_their_own_and_kernels_that_there_are() {
        for (at, scenario) in scenarios::ALL.iter().enumerate() {
            assert!(scenarios::ALL[..at].iter().all(|of| of.name != scenario.name));
            for (kernel, _) in scenario.guests {
                assert!(system::KERNELS.iter().any(|of| of.name == *kernel), "{kernel}");
            }
        }
        assert!(named(&["none".to_owned()]).is_err_and(|why| why.contains("follow")));
    }
}
