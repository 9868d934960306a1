//! `cargo xtask vm [--install] [SCENARIO…]`: what needs another kernel, in guests of QEMU.
//!
//! Debian's kernels with PREEMPT_RT boot under emulation, without any right, from an image that
//! holds the command, the tests and a script; what the script printed is judged. Times under
//! emulation mean nothing, so none is judged. Packages are kept in the user's cache (about 1 GB,
//! see `system.rs`); nothing is installed but, with `--install`, mmdebstrap. What a guest printed
//! is in `target/vm/SCENARIO-KERNEL….log`.

mod archive;
mod disk;
mod guest;
mod programs;
mod scenarios;
mod sources;
mod system;

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{process, root};
use archive::Archive;
use disk::Disk;
use guest::{Console, Guest, Outside};
use programs::Program;
use system::System;

/// What guests are booted for.
struct Scenario {
    name: &'static str,
    summary: &'static str,
    system: Root,
    /// Parameters of the kernel.
    append: &'static str,
    programs: &'static [Program],
    /// Runs of the command on this side meanwhile: their names, their arguments.
    outside: &'static [(&'static str, &'static str)],
    /// Lines of a shell for each boot, most of them `step NAME COMMAND…`.
    steps: &'static [&'static str],
    /// Whether the guest did what it should; given what each boot printed.
    judge: fn(&[Console]) -> Result<(), String>,
}

/// What a guest boots into.
enum Root {
    /// An image in memory, made for it.
    Memory {
        /// Each guest: the kernel's name and its devices.
        guests: &'static [(&'static str, &'static [&'static str])],
        /// Drivers that are loaded, in this order.
        drivers: &'static [&'static str],
    },
    /// A whole Debian on a disk, which stays from boot to boot. From the second one on the kernel
    /// gets the command line that the step `cmdline` of the boot before printed.
    Disk,
}

/// How long a guest may take: most take half a minute where nothing else runs.
const PATIENCE: Duration = Duration::from_secs(600);

/// How much of a failure is told once more at the end: what a guest printed may be long.
const BEGIN: usize = 400;

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
    if let Some(lack) = lacking() {
        return Err(format!("needs {lack} (`cargo xtask vm --install` gets mmdebstrap)"));
    }
    let clone = root::root();
    let kept = clone.join("target/vm");
    fs::create_dir_all(&kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    let emulator = System::of(&system::EMULATOR)?;
    let mut failed = Vec::new();
    let mut boot_one = |name: String, boot: &dyn Fn() -> Result<(), String>| {
        let begun = Instant::now();
        let outcome = boot();
        let took = begun.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => println!("vm: {name}: holds ({took:.0} s)"),
            Err(why) => {
                println!("vm: {name}: {why} ({took:.0} s)");
                let begin: String = why.chars().take(BEGIN).collect();
                failed.push(format!("{name}: {begin}"));
            }
        }
    };
    let place = Place { clone: &clone, kept: &kept, emulator: &emulator };
    for scenario in &scenarios {
        match &scenario.system {
            Root::Memory { guests, drivers } => {
                for &(kernel, devices) in *guests {
                    // What follows a device's name is no part of a file's.
                    let devices_named =
                        devices.iter().filter_map(|device| device.split(',').next());
                    let name: Vec<&str> =
                        [scenario.name, kernel].into_iter().chain(devices_named).collect();
                    let name = name.join("-");
                    let log = kept.join(format!("{name}.log"));
                    boot_one(name, &|| place.boot(scenario, kernel, devices, drivers, &log));
                }
            }
            Root::Disk => boot_one(scenario.name.to_owned(), &|| place.boot_disk(scenario)),
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(format!("failed: {}", failed.join("; "))),
    }
}

/// What all of this lacks on this machine; `None` when nothing.
pub(crate) fn lacking() -> Option<&'static str> {
    if !cfg!(target_arch = "x86_64") {
        return Some("x86-64, whose kernels and emulator these are");
    }
    ["mmdebstrap", "strip", "ldd", "mke2fs", "cc"]
        .into_iter()
        .find(|program| !process::on_path(program))
}

/// The scenarios of these names, all of them without one.
fn named(names: &[String]) -> Result<Vec<&'static Scenario>, String> {
    if names.is_empty() {
        return Ok(scenarios::ALL.iter().collect());
    }
    let scenario_named = |name: &String| {
        scenarios::ALL.iter().find(|scenario| scenario.name == name).ok_or_else(|| {
            let list: Vec<String> = scenarios::ALL
                .iter()
                .map(|scenario| format!("  {:8} {}", scenario.name, scenario.summary))
                .collect();
            format!("no scenario {name:?}; there are\n{}", list.join("\n"))
        })
    };
    names.iter().map(scenario_named).collect()
}

/// Where guests are made.
struct Place<'a> {
    clone: &'a Path,
    kept: &'a Path,
    emulator: &'a System,
}

impl Place<'_> {
    /// Boots a guest into memory and judges it.
    fn boot(
        &self,
        scenario: &Scenario,
        kernel: &str,
        devices: &[&str],
        drivers: &[&str],
        log: &Path,
    ) -> Result<(), String> {
        let known = system::KERNELS.iter().find(|known| known.name == kernel);
        let kernel = System::of(&known.ok_or_else(|| format!("no kernel {kernel}"))?.packages)?;
        let mut archive = Archive::default();
        let init = guest::init(scenario.steps.first().unwrap_or(&""));
        archive.add("/init", init.as_bytes());
        archive.add("/bin/busybox", &self.emulator.read("usr/bin/busybox")?);
        for (number, driver) in drivers.iter().enumerate() {
            let bytes = kernel.driver(self.emulator, driver)?;
            archive.add(&format!("/drivers/{number}.ko"), &bytes);
        }
        for (path, bytes) in programs::files(self.clone, self.kept, scenario.programs, true)? {
            archive.add(&path, &bytes);
        }
        let image = log.with_extension("image");
        let failed = |error: std::io::Error| format!("{}: {error}", image.display());
        fs::write(&image, archive.end()).map_err(failed)?;
        let program = self.kept.join("punctual");
        let outside = (!scenario.outside.is_empty()).then(free_port).transpose()?;
        let outside =
            outside.map(|port| Outside { program: &program, runs: scenario.outside, port });
        let console = Guest {
            emulator: self.emulator,
            outside: outside.as_ref(),
            kernel: &kernel.kernel()?,
            initrd: &image,
            disks: &[],
            devices,
            append: scenario.append,
            patience: PATIENCE,
        }
        .run(log);
        // An image takes 200 MB.
        fs::remove_file(&image).map_err(failed)?;
        judge(scenario, &[console?], log)
    }

    /// Boots a Debian system as often as there are lists of steps, and judges it.
    fn boot_disk(&self, scenario: &Scenario) -> Result<(), String> {
        let disk = Disk::make()?;
        let root = self.kept.join("root.ext4");
        // Keeps the holes.
        process::run(Command::new("cp").arg("--sparse=always").arg(&disk.root).arg(&root))?;
        let programs = programs::files(self.clone, self.kept, scenario.programs, false)?;
        let (mut consoles, mut append) = (Vec::new(), scenario.append.to_owned());
        let mut log = self.kept.join(scenario.name);
        for (boot, steps) in scenario.steps.iter().enumerate() {
            let steps = format!("{}export PATH=$PATH:/mnt\n{steps}", guest::FUNCTIONS);
            let carrier = disk::carrier(self.kept, &steps, &programs)?;
            log = self.kept.join(format!("{}-{boot}.log", scenario.name));
            let console = Guest {
                emulator: self.emulator,
                outside: None,
                kernel: &disk.kernel,
                initrd: &disk.initrd,
                disks: &[&root, &carrier],
                devices: &[],
                append: &append,
                patience: PATIENCE,
            }
            .run(&log)?;
            if boot + 1 < scenario.steps.len() {
                let line = console.ok("cmdline").map_err(|why| shown(&why, &log))?;
                append = line.trim().to_owned();
            }
            consoles.push(console);
        }
        judge(scenario, &consoles, &log)?;
        for disk in [&root, &self.kept.join("carrier.ext4")] {
            fs::remove_file(disk).map_err(|error| format!("{}: {error}", disk.display()))?;
        }
        Ok(())
    }
}

/// A UDP port of the loopback interface that nobody has.
fn free_port() -> Result<u16, String> {
    let free = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    free.map(|address| address.port()).map_err(|error| format!("127.0.0.1: {error}"))
}

fn judge(scenario: &Scenario, consoles: &[Console], log: &Path) -> Result<(), String> {
    (scenario.judge)(consoles).map_err(|why| shown(&why, log))
}

fn shown(why: &str, log: &Path) -> String {
    format!("{why}: {} has all of it", log.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_have_names_of_their_own_and_kernels_that_there_are() {
        for (at, scenario) in scenarios::ALL.iter().enumerate() {
            assert!(scenarios::ALL[..at].iter().all(|earlier| earlier.name != scenario.name));
            assert!(!scenario.steps.is_empty(), "{}", scenario.name);
            let Root::Memory { guests, .. } = scenario.system else { continue };
            assert_eq!(scenario.steps.len(), 1, "{}: memory does not stay", scenario.name);
            for (kernel, _) in guests {
                assert!(system::KERNELS.iter().any(|known| known.name == *kernel), "{kernel}");
            }
        }
        assert!(named(&["none".to_owned()]).is_err_and(|why| why.contains("follow")));
    }
}
