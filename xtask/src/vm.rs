//! `cargo xtask vm [--install] [SCENARIO…]`: what needs another kernel, in guests of QEMU.
//!
//! Debian's kernels with PREEMPT_RT boot under emulation, without any right, from an image that
//! holds the command, the tests and a script; what the script printed is judged. Times under
//! emulation mean nothing, so none is judged. Packages are kept in the user's cache (about 1 GB,
//! 1.7 GB more for drivers of ours, see [`System`]); nothing is installed but, with `--install`,
//! what makes guests and is missing. What a guest printed is in `target/vm/SCENARIO-KERNEL….log`.

mod archive;
mod programs;
mod scenarios;
mod sources;

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{arm64, debian, process, workspace};
use archive::Archive;
use programs::{BuiltPrograms, Program};

/// One reason to boot guests: what they run, and the judgement of what they printed.
struct Scenario {
    name: &'static str,
    summary: &'static str,
    system: Root,
    /// Its processor, as QEMU names it.
    cpu: &'static str,
    clock: GuestClock,
    /// Parameters of the kernel.
    append: &'static str,
    /// A driver of ours, beside this file as `NAME.c`: built for each kernel in memory, and not
    /// loaded, at /NAME.ko.
    own_driver: Option<&'static str>,
    programs: &'static [Program],
    /// Runs of the command on this side meanwhile: their names, their arguments.
    outside: &'static [(&'static str, &'static str)],
    /// Lines of a shell for each boot, most of them `step NAME COMMAND…`.
    steps: &'static [&'static str],
    /// The steps during which the whole machine stands still now and then.
    standstills: &'static [&'static str],
    /// True where only its name runs it: the suite has no time for it.
    by_name_alone: bool,
    /// Judges what each boot printed; the error says what the guest did not do.
    judge: fn(&[Console]) -> Result<(), String>,
}

/// The clock of a guest.
#[derive(Clone, Copy)]
enum GuestClock {
    /// The host's: its timers are late where the emulator is, by milliseconds while it computes.
    Host,
    /// Its own instructions, 2 ns each, and where all CPUs idle it jumps to the next timer: its
    /// timers are exact however busy the host is. One CPU runs at a time, some ten times as slowly.
    Instructions,
}

impl GuestClock {
    /// The arguments of QEMU that set it.
    const fn args(self) -> &'static [&'static str] {
        match self {
            Self::Host => &["-accel", "tcg,thread=multi"],
            Self::Instructions => &["-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off"],
        }
    }
}

/// The processors of guests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Architecture {
    /// x86-64, as this machine is.
    Amd64,
    /// Its emulator has the counters of a processor, which [`GuestClock::Instructions`] feeds: a
    /// cycle is 1 ns, an instruction 2.
    Arm64,
}

impl Architecture {
    /// The packages of its emulator: of the first release whose QEMU has a card with a clock that
    /// keeps time.
    const fn emulator(self) -> Packages {
        let include = match self {
            Self::Amd64 => "base-files,qemu-system-x86,busybox-static,xz-utils",
            Self::Arm64 => "base-files,qemu-system-arm,xz-utils",
        };
        Packages { suite: "trixie", include, architecture: Self::Amd64 }
    }

    /// Starts its emulator, of this system.
    fn emulate(self, emulator: &System) -> Command {
        match self {
            Self::Amd64 => {
                let mut qemu = emulator.program("qemu-system-x86_64");
                for firmware in ["qemu", "seabios"] {
                    qemu.arg("-L").arg(emulator.path("usr/share").join(firmware));
                }
                qemu.arg("-L").arg(emulator.path("usr/lib/ipxe/qemu"));
                qemu
            }
            Self::Arm64 => {
                let mut qemu = emulator.program("qemu-system-aarch64");
                qemu.args(["-machine", "virt,gic-version=3"]);
                qemu
            }
        }
    }

    /// The console of its kernel.
    const fn console(self) -> &'static str {
        match self {
            Self::Amd64 => "ttyS0",
            Self::Arm64 => "ttyAMA0",
        }
    }

    /// The programs that make its guests, and the Debian packages of them.
    const fn tools(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Amd64 => &[
                ("mmdebstrap", "mmdebstrap"),
                ("strip", "binutils"),
                ("ldd", "libc-bin"),
                (MKE2FS, "e2fsprogs"),
                ("cc", "gcc"),
                ("unshare", "util-linux"),
            ],
            Self::Arm64 => &[
                (arm64::LINKER, "gcc-aarch64-linux-gnu"),
                (programs::STRIP, "binutils-aarch64-linux-gnu"),
            ],
        }
    }

    /// The programs that are missing here, and their packages.
    fn missing(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.tools().iter().copied().filter(|(program, _)| !process::on_path(program))
    }

    /// The first program that is missing here of those that make its guests.
    fn lacking(self) -> Option<&'static str> {
        self.missing().next().map(|(program, _)| program)
    }
}

/// The system that a guest boots into.
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

impl Scenario {
    /// The values that most scenarios have; the others must be given.
    const DEFAULT: Self = Self {
        name: "",
        summary: "",
        system: Root::Disk,
        cpu: "max",
        clock: GuestClock::Host,
        append: "",
        own_driver: None,
        programs: &[],
        outside: &[],
        steps: &[],
        standstills: &[],
        by_name_alone: false,
        judge: |_| Err("nothing judges it".to_owned()),
    };

    /// The processors of its guests.
    fn architectures(&self) -> Vec<Architecture> {
        match self.system {
            Root::Memory { guests, .. } => guests
                .iter()
                .filter_map(|(name, _)| Some(Kernel::named(name)?.architecture))
                .collect(),
            Root::Disk => vec![Architecture::Amd64],
        }
    }

    /// The most time that a guest of it may take.
    fn patience(&self) -> Duration {
        if self.by_name_alone { 3 * PATIENCE } else { PATIENCE }
    }
}

/// The most time that a guest of the suite may take: most take half a minute where nothing else
/// runs.
const PATIENCE: Duration = Duration::from_secs(600);

/// The characters of a failure that are repeated at the end: what a guest printed may be long.
const BEGIN: usize = 400;

/// Runs the subcommand.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let (install, names) = match args {
        [flag, rest @ ..] if flag == "--install" => (true, rest),
        rest => (false, rest),
    };
    let scenarios = named(names)?;
    let mut architectures: Vec<Architecture> =
        scenarios.iter().flat_map(|one| one.architectures()).collect();
    architectures.sort_unstable();
    architectures.dedup();
    if install {
        let guests = [Architecture::Amd64].into_iter().chain(architectures.iter().copied());
        for (_, package) in guests.flat_map(Architecture::missing) {
            crate::packages::install_one(package)?;
        }
        if architectures.contains(&Architecture::Arm64) {
            programs::install_arm64()?;
        }
    }
    if let Some(lack) = lacking().or_else(|| architectures.iter().find_map(|one| one.lacking())) {
        let install = [&["cargo xtask vm --install".to_owned()], names].concat().join(" ");
        return Err(format!("needs {lack} (`{install}` gets packages)"));
    }
    let clone = workspace::root();
    let kept = clone.join("target/vm");
    fs::create_dir_all(&kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    let workbench = |architecture: Architecture| {
        let emulator = System::of(&architecture.emulator())?;
        let programs = BuiltPrograms::build(architecture, &clone, &kept)?;
        Ok((architecture, Workbench { emulator, programs }))
    };
    let workbenches = architectures.into_iter().map(workbench).collect::<Result<_, String>>()?;
    let place = Place { kept: &kept, workbenches };
    // Systems on a disk share its image: one after the other, in the first lane.
    let (mut on_disk, mut in_memory) = (Vec::new(), VecDeque::new());
    for scenario in &scenarios {
        match &scenario.system {
            Root::Memory { guests, drivers } => {
                in_memory.extend(guests.iter().map(|&(kernel, devices)| GuestBoot {
                    scenario,
                    memory: Some(MemorySystem { kernel, devices, drivers }),
                }));
            }
            Root::Disk => on_disk.push(GuestBoot { scenario, memory: None }),
        }
    }
    let in_memory = Mutex::new(in_memory);
    let next = || in_memory.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    // Beside another guest the CPUs of one stand still for milliseconds: those that only their
    // names run look at what made wakes late, and have the machine for themselves.
    let is_alone = scenarios.iter().all(|scenario| scenario.by_name_alone);
    let lanes = if is_alone { vec![on_disk] } else { vec![on_disk, Vec::new()] };
    let failed = thread::scope(|scope| {
        let run_lane = |boots: Vec<_>| {
            let (place, next) = (&place, &next);
            scope.spawn(move || {
                let boots = boots.into_iter().chain(std::iter::from_fn(next));
                boots.filter_map(|boot| boot.failed(place)).collect()
            })
        };
        let lanes: Vec<_> = lanes.into_iter().map(run_lane).collect();
        let ended = lanes.into_iter().map(|lane| {
            lane.join().unwrap_or_else(|_| vec!["a lane of guests panicked".to_owned()])
        });
        ended.collect::<Vec<Vec<String>>>().concat()
    });
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(format!("failed: {}", failed.join("; "))),
    }
}

/// The first requirement of the suite's guests that this machine lacks; `None` when nothing.
pub(crate) fn lacking() -> Option<&'static str> {
    if !cfg!(target_arch = "x86_64") {
        return Some("x86-64, whose kernels and emulator these are");
    }
    Architecture::Amd64.lacking()
}

/// The scenarios of these names; without one all that the suite runs.
fn named(names: &[String]) -> Result<Vec<&'static Scenario>, String> {
    if names.is_empty() {
        return Ok(scenarios::ALL.iter().filter(|scenario| !scenario.by_name_alone).collect());
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

/// A guest to be booted and judged.
struct GuestBoot<'a> {
    scenario: &'a Scenario,
    /// The system in memory; `None` for one on a disk.
    memory: Option<MemorySystem>,
}

/// A guest's system in memory.
#[derive(Clone, Copy)]
struct MemorySystem {
    /// The kernel's name.
    kernel: &'static str,
    devices: &'static [&'static str],
    drivers: &'static [&'static str],
}

impl GuestBoot<'_> {
    fn name(&self) -> String {
        let Some(MemorySystem { kernel, devices, .. }) = self.memory else {
            return self.scenario.name.to_owned();
        };
        // What follows a device's name is no part of a file's.
        let devices = devices.iter().filter_map(|device| device.split(',').next());
        let name: Vec<&str> = [self.scenario.name, kernel].into_iter().chain(devices).collect();
        name.join("-")
    }

    /// Boots it, says how that went, and gives why it failed, where it did.
    fn failed(&self, place: &Place<'_>) -> Option<String> {
        let (name, begun) = (self.name(), Instant::now());
        let outcome = match self.memory {
            Some(system) => {
                let log = place.kept.join(format!("{name}.log"));
                place.boot(self.scenario, system, &log)
            }
            None => place.boot_disk(self.scenario),
        };
        let took = begun.elapsed().as_secs_f64();
        let Err(why) = outcome else {
            println!("vm: {name}: holds ({took:.0} s)");
            return None;
        };
        println!("vm: {name}: {why} ({took:.0} s)");
        let begin: String = why.chars().take(BEGIN).collect();
        Some(format!("{name}: {begin}"))
    }
}

/// What guests of one processor are made with.
struct Workbench {
    emulator: System,
    programs: BuiltPrograms,
}

/// Where guests are made.
struct Place<'a> {
    kept: &'a Path,
    workbenches: BTreeMap<Architecture, Workbench>,
}

impl Place<'_> {
    fn workbench(&self, architecture: Architecture) -> Result<&Workbench, String> {
        self.workbenches
            .get(&architecture)
            .ok_or_else(|| "no workbench for its processor".to_owned())
    }

    /// Boots a guest into memory and judges it.
    fn boot(&self, scenario: &Scenario, system: MemorySystem, log: &Path) -> Result<(), String> {
        let MemorySystem { kernel, devices, drivers } = system;
        let known = Kernel::named(kernel).ok_or_else(|| format!("no kernel {kernel}"))?;
        let Workbench { emulator, programs } = self.workbench(known.architecture)?;
        let kernel = System::of(&known.packages(scenario.own_driver.is_some()))?;
        let mut archive = Archive::default();
        let init = init(scenario.steps.first().unwrap_or(&""));
        archive.add("/init", init.as_bytes());
        let system_of_shell = match known.architecture {
            Architecture::Amd64 => emulator,
            Architecture::Arm64 => &kernel,
        };
        archive.add("/bin/busybox", &system_of_shell.read("usr/bin/busybox")?);
        for (number, driver) in drivers.iter().enumerate() {
            let bytes = kernel.driver(emulator, driver)?;
            archive.add(&format!("/drivers/{number}.ko"), &bytes);
        }
        if let Some(name) = scenario.own_driver {
            archive.add(&format!("/{name}.ko"), &kernel.built_driver(name)?);
        }
        for (path, bytes) in programs.files(scenario.programs, true)? {
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
            architecture: known.architecture,
            emulator,
            outside: outside.as_ref(),
            kernel: &kernel.kernel()?,
            initrd: &image,
            disks: &[],
            devices,
            append: scenario.append,
            cpu: scenario.cpu,
            clock: scenario.clock,
            standstills: scenario.standstills,
            patience: scenario.patience(),
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
        let Workbench { emulator, programs } = self.workbench(Architecture::Amd64)?;
        let programs = programs.files(scenario.programs, false)?;
        let (mut consoles, mut append) = (Vec::new(), scenario.append.to_owned());
        let mut log = self.kept.join(scenario.name);
        for (boot, steps) in scenario.steps.iter().enumerate() {
            let steps = format!("{FUNCTIONS}export PATH=$PATH:/mnt\n{steps}");
            let carrier = carrier(self.kept, &steps, &programs)?;
            log = self.kept.join(format!("{}-{boot}.log", scenario.name));
            let console = Guest {
                architecture: Architecture::Amd64,
                emulator,
                outside: None,
                kernel: &disk.kernel,
                initrd: &disk.initrd,
                disks: &[&root, &carrier],
                devices: &[],
                append: &append,
                cpu: scenario.cpu,
                clock: scenario.clock,
                standstills: scenario.standstills,
                patience: scenario.patience(),
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

/// Packages of one Debian release.
struct Packages {
    suite: &'static str,
    include: &'static str,
    architecture: Architecture,
}

/// A kernel with PREEMPT_RT, as Debian builds it.
struct Kernel {
    /// Its version as people name it, and its processor where that is not this one.
    name: &'static str,
    suite: &'static str,
    architecture: Architecture,
}

/// The packages of a kernel alone.
const IMAGE: &str = "base-files,linux-image-rt-amd64";
/// The packages of a kernel, of the same version, for which drivers can be built: 0.5 to 0.7 GB.
const WORKSHOP: &str = "base-files,linux-headers-rt-amd64,linux-image-rt-amd64,dash,coreutils,\
                        sed,grep,mawk,make,findutils";
/// The packages of a kernel of AArch64, and of a shell for it.
const IMAGE_ARM64: &str = "base-files,linux-image-rt-arm64,busybox-static";

impl Kernel {
    fn named(name: &str) -> Option<&'static Self> {
        KERNELS.iter().find(|known| known.name == name)
    }

    const fn packages(&self, with_workshop: bool) -> Packages {
        let include = match (self.architecture, with_workshop) {
            (Architecture::Amd64, false) => IMAGE,
            (Architecture::Amd64, true) => WORKSHOP,
            (Architecture::Arm64, _) => IMAGE_ARM64,
        };
        Packages { suite: self.suite, include, architecture: self.architecture }
    }
}

/// One of each age: the oldest that is supported, the stable one, the newest; and one of another
/// processor.
const KERNELS: [Kernel; 4] = [
    Kernel { name: "6.1", suite: "bookworm", architecture: Architecture::Amd64 },
    Kernel { name: "6.12", suite: "trixie", architecture: Architecture::Amd64 },
    Kernel { name: "7.2", suite: "sid", architecture: Architecture::Amd64 },
    Kernel { name: "6.12-arm64", suite: "trixie", architecture: Architecture::Arm64 },
];

/// Packages, unpacked in a folder.
///
/// Made by mmdebstrap in the user's cache, outside the clone, so that every clone uses them; made
/// again when the list of packages changes. Downloads only here. Programs are started by the
/// loader that lies beside them, so that none needs a root of its own; but for the compiler of
/// drivers, which gets one in a user namespace.
struct System(PathBuf);

impl System {
    /// Unpacks the packages unless they lie in the cache.
    fn of(packages: &Packages) -> Result<Self, String> {
        let _turn = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        let Packages { suite, include, architecture } = packages;
        let short = include.split(',').nth(1).unwrap_or(include);
        let at = cache()?.join(format!("{suite}-{short}"));
        let stamp = at.with_extension("made");
        let wanted = format!("{suite} {include}\n");
        if !(fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) && at.is_dir()) {
            println!("vm: unpacking {short} of Debian {suite} in {}", at.display());
            let failed = |error: std::io::Error| format!("{}: {error}", at.display());
            // Beside it first: another clone may be making the same.
            let new = Unfinished::beside(&at);
            let mut mmdebstrap = Command::new("mmdebstrap");
            mmdebstrap.args(["--quiet", "--variant=extract", "--format=directory"]);
            mmdebstrap.arg(format!("--include={include}"));
            if *architecture == Architecture::Arm64 {
                mmdebstrap.arg("--architectures=arm64");
            }
            debian::unpack(&mut mmdebstrap, suite, &new.0)?;
            if at.exists() {
                fs::remove_dir_all(&at).map_err(failed)?;
            }
            fs::rename(&new.0, &at).map_err(failed)?;
            fs::write(&stamp, wanted).map_err(failed)?;
        }
        Ok(Self(at))
    }

    /// A program of it.
    fn program(&self, name: &str) -> Command {
        let Self(at) = self;
        let libraries = at.join("usr/lib/x86_64-linux-gnu");
        let mut command = Command::new(at.join("usr/lib64/ld-linux-x86-64.so.2"));
        command.env("QEMU_MODULE_DIR", libraries.join("qemu"));
        command.arg("--library-path").arg(libraries).arg(at.join("usr/bin").join(name));
        command
    }

    /// A path in it.
    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// A file of it.
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let path = self.path(path);
        fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The kernel: in `boot`, or beside its modules where the package has no installer.
    fn kernel(&self) -> Result<PathBuf, String> {
        only(&self.path("boot"), "vmlinuz-").or_else(|_| only(&self.modules()?, "vmlinuz"))
    }

    /// A driver, unpacked by `emulator`'s xz where it is packed: its path in the kernel's tree,
    /// without its ending.
    fn driver(&self, emulator: &Self, name: &str) -> Result<Vec<u8>, String> {
        let plain = self.modules()?.join(format!("kernel/{name}.ko"));
        if plain.is_file() {
            return fs::read(&plain).map_err(|error| format!("{}: {error}", plain.display()));
        }
        let packed = plain.with_extension("ko.xz");
        process::output(emulator.program("xz").args(["--decompress", "--stdout"]).arg(packed))
    }

    /// A driver of ours, by the compiler of its packages, in a root that is theirs.
    fn built_driver(&self, name: &str) -> Result<Vec<u8>, String> {
        let _turn = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        // Another clone may be building the same.
        let folder = format!("tmp/{name}.{}", std::process::id());
        let at = self.path(&folder);
        let built = self.build_driver(name, &folder);
        fs::remove_dir_all(&at).map_err(|error| format!("{}: {error}", at.display()))?;
        built
    }

    fn build_driver(&self, name: &str, folder: &str) -> Result<Vec<u8>, String> {
        let at = self.path(folder);
        let failed = |error: std::io::Error| format!("{}: {error}", at.display());
        fs::create_dir_all(&at).map_err(failed)?;
        let sources = workspace::root().join("xtask/src/vm");
        for file in [&format!("{name}.c"), "take.h"] {
            fs::copy(sources.join(file), at.join(file)).map_err(failed)?;
        }
        fs::write(at.join("Makefile"), format!("obj-m := {name}.o\n")).map_err(failed)?;
        // Tools of newer kernels look into /proc.
        fs::create_dir_all(self.path("proc")).map_err(failed)?;
        let release = self.modules()?;
        let release = release.file_name().ok_or("a kernel without a release")?.to_string_lossy();
        let mut make = Command::new("unshare");
        make.args(["--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"]);
        make.arg(format!("--root={}", self.0.display()));
        make.args(["/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "make", "AWK=mawk", "-C"]);
        make.arg(format!("/usr/src/linux-headers-{release}"));
        process::output(make.arg(format!("M=/{folder}")).arg("modules"))?;
        fs::read(at.join(format!("{name}.ko"))).map_err(failed)
    }

    fn modules(&self) -> Result<PathBuf, String> {
        let merged = self.path("usr/lib/modules");
        only(&if merged.is_dir() { merged } else { self.path("lib/modules") }, "")
    }
}

/// Held by the lane that changes the cache: two may want the same system at once.
static CACHE: Mutex<()> = Mutex::new(());

/// A folder that is being made in the cache, and goes with its holder unless it got another name.
struct Unfinished(PathBuf);

impl Unfinished {
    /// What its name ends with, behind the number of the process that makes it.
    const END: &'static str = "new";

    /// Makes nothing yet. What processes that are gone left beside `at`, is removed.
    fn beside(at: &Path) -> Self {
        let siblings = at.parent().and_then(|cache| fs::read_dir(cache).ok());
        for sibling in siblings.into_iter().flatten().flatten().map(|entry| entry.path()) {
            let maker = Self::maker(&sibling);
            if maker.is_some_and(|maker| !Path::new("/proc").join(maker.to_string()).exists()) {
                drop(Self(sibling));
            }
        }
        Self(at.with_extension(format!("{}.{}", std::process::id(), Self::END)))
    }

    /// The number of the process that makes the folder of this name, `SYSTEM.NUMBER.new`.
    fn maker(path: &Path) -> Option<u32> {
        let name = path.file_name()?.to_str()?.strip_suffix(Self::END)?.strip_suffix('.')?;
        name.rsplit_once('.')?.1.parse().ok()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Self(folder) = self;
        if folder.exists() && fs::remove_dir_all(&folder).is_err() {
            println!("vm: {}: left over, remove it", folder.display());
        }
    }
}

/// Where unpacked systems lie: `$XDG_CACHE_HOME/punctual-vm`, below `~/.cache` without it.
fn cache() -> Result<PathBuf, String> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = named.filter(|path| path.is_absolute()).or_else(home);
    cache
        .map(|cache| cache.join("punctual-vm"))
        .ok_or_else(|| "neither XDG_CACHE_HOME nor HOME is set: nowhere to keep guests".to_owned())
}

/// The last entry of a folder, by name, of those that begin so.
fn only(folder: &Path, begins: &str) -> Result<PathBuf, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?.flatten();
    let named = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(begins);
    let mut paths: Vec<PathBuf> = entries.filter(named).map(|entry| entry.path()).collect();
    paths.sort();
    paths.pop().ok_or_else(|| format!("{}: no {begins}*", folder.display()))
}

const SUITE: &str = "trixie";
const PACKAGES: &str = "linux-image-rt-amd64,systemd-sysv,udev,grub2-common,grub-pc-bin,\
                        initramfs-tools,rt-tests,rtla,iproute2,kmod,perl,tuned,irqbalance";

/// Runs the steps of the second disk; what they print goes to the second serial port.
const UNIT: &str = "[Unit]
Description=Steps
After=multi-user.target
[Service]
Type=oneshot
Environment=HOME=/root
ExecStart=/bin/sh -c 'mount /dev/vdb /mnt && exec /bin/sh /mnt/steps'
ExecStopPost=/bin/systemctl --no-block poweroff
StandardOutput=file:/dev/ttyS1
StandardError=inherit
";

/// The changes to the system before it becomes a disk. The root is named by its device: the guest
/// has no udev links while grub-mkconfig runs.
const CHANGE: &str = "set -e
cp \"$1/usr/share/grub/default/grub\" \"$1/etc/default/grub\"
printf '%s\\n' GRUB_DISABLE_LINUX_UUID=true 'GRUB_CMDLINE_LINUX=\"rw\"' >>\"$1/etc/default/grub\"
mkdir -p \"$1/boot/grub\" \"$1/etc/systemd/system/graphical.target.wants\"
printf '%s' \"$UNIT\" >\"$1/etc/systemd/system/steps.service\"
ln -sf ../steps.service \"$1/etc/systemd/system/graphical.target.wants/steps.service\"
ln -sf /dev/null \"$1/etc/systemd/system/serial-getty@ttyS0.service\"
rm -rf \"$1/var/lib/apt/lists\" \"$1/var/cache/apt\"
";

/// A prepared system: its disk, kernel and first root.
///
/// A whole Debian system: systemd, GRUB's tools, a PREEMPT_RT kernel and other tools. Made once by
/// mmdebstrap, in the user's cache; each run works on a copy. QEMU boots its kernel directly, with
/// the command line that the scenario gives. A second disk carries the command and the steps,
/// which a unit of the guest runs once all else has started.
struct Disk {
    root: PathBuf,
    kernel: PathBuf,
    initrd: PathBuf,
}

impl Disk {
    /// Makes the system unless it lies in the cache.
    fn make() -> Result<Self, String> {
        let at = cache()?.join("debian");
        let disk = Self {
            root: at.join("root.ext4"),
            kernel: at.join("vmlinuz"),
            initrd: at.join("initrd"),
        };
        let stamp = at.join("made");
        let wanted = format!("{SUITE} {PACKAGES}\n{UNIT}{CHANGE}");
        if fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
            return Ok(disk);
        }
        println!("vm: making a Debian {SUITE} in {}", at.display());
        let failed = |error: std::io::Error| format!("{}: {error}", at.display());
        fs::create_dir_all(&at).map_err(failed)?;
        // Where another clone makes the same meanwhile, each in its own.
        let new = Unfinished::beside(&at.join("tree"));
        let tree = &new.0;
        let mut mmdebstrap = Command::new("mmdebstrap");
        mmdebstrap.args(["--quiet", "--variant=minbase", "--format=directory"]);
        mmdebstrap.arg("--aptopt=APT::Install-Recommends \"false\"");
        mmdebstrap.arg(format!("--include={PACKAGES}"));
        debian::unpack(&mut mmdebstrap, SUITE, tree)?;
        let mut change = Command::new("sh");
        change.args(["-c", CHANGE, "sh"]).arg(tree).env("UNIT", UNIT);
        process::run(&mut change)?;
        for (name, to) in [("vmlinuz-", &disk.kernel), ("initrd.img-", &disk.initrd)] {
            fs::copy(only(&tree.join("boot"), name)?, to).map_err(failed)?;
        }
        format(tree, &disk.root, "1500M")?;
        drop(new);
        fs::write(&stamp, wanted).map_err(failed)?;
        Ok(disk)
    }
}

/// Where Debian has it, which is not on the path of an ordinary user.
const MKE2FS: &str = "/sbin/mke2fs";

/// Makes a disk of the files below `tree`.
fn format(tree: &Path, disk: &Path, size: &str) -> Result<(), String> {
    if disk.exists() {
        fs::remove_file(disk).map_err(|error| format!("{}: {error}", disk.display()))?;
    }
    let mut mke2fs = Command::new(MKE2FS);
    mke2fs.args(["-q", "-t", "ext4", "-d"]).arg(tree).arg(disk).arg(size);
    process::run(&mut mke2fs)
}

/// The disk that carries the steps and programs, made in `folder`.
fn carrier(folder: &Path, steps: &str, programs: &[(String, Vec<u8>)]) -> Result<PathBuf, String> {
    use std::os::unix::fs::PermissionsExt;

    let tree = folder.join("carrier");
    let failed = |error: std::io::Error| format!("{}: {error}", tree.display());
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(failed)?;
    }
    fs::create_dir_all(&tree).map_err(failed)?;
    fs::write(tree.join("steps"), steps).map_err(failed)?;
    for (path, bytes) in programs {
        let to = tree.join(Path::new(path).file_name().ok_or("a program without a name")?);
        fs::write(&to, bytes).map_err(failed)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    let disk = folder.join("carrier.ext4");
    format(&tree, &disk, "400M")?;
    fs::remove_dir_all(&tree).map_err(failed)?;
    Ok(disk)
}

/// The work of the first process before the steps: mounts and drivers. Nothing is mounted on /tmp:
/// the command under test lies there when the clone does, and the root is in memory anyway.
const BEFORE: &str = "#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /root /etc
/bin/busybox mount -t proc proc /proc
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd
echo 'user:x:1000:1000::/:/bin/sh' >>/etc/passwd
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /sys/fs/cgroup /dev/shm /dev/pts
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
ip link set lo up
for driver in /drivers/*; do [ -e $driver ] && insmod $driver; done
";

/// Functions of the shell: `step` runs a command between two lines, `snapshot` prints the settings
/// that a plan may change, `groups` the control groups, `files` and `cmdline` what the boot loader
/// reads; `killed` ends `punctual isolate` in the middle; `blame` prints the sentence about 15 s of
/// CPU 1, or of CPU $cpu; /tmp/inside, isolated, shows where it runs.
const FUNCTIONS: &str = "step() {
  name=$1; shift; echo \"step: $name\"; \"$@\" 2>&1; echo \"ended: $name $?\"
}
snapshot() {
  for file in /proc/sys/vm/* /proc/sys/kernel/*watchdog* /proc/sys/kernel/sched* \\
    /proc/sys/kernel/timer_migration /proc/sys/kernel/numa_balancing /proc/irq/*/smp_affinity \\
    /proc/irq/default_smp_affinity /sys/devices/virtual/workqueue/cpumask \\
    /sys/devices/virtual/workqueue/*/cpumask /sys/kernel/mm/transparent_hugepage/* \\
    /sys/kernel/rcu_* /sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us \\
    /sys/devices/system/machinecheck/machinecheck*/check_interval; do
    [ -f $file ] && [ -r $file ] && echo $file $(cat $file 2>&1)
  done
}
groups() { ls -d /sys/fs/cgroup/punctual* 2>/dev/null; cat /sys/fs/cgroup/cgroup.subtree_control; }
killed() {
  punctual isolate --cpus 1 -- sleep 60 &
  for second in $(seq 60); do [ -d /sys/fs/cgroup/punctual.isolated ] && break; sleep 1; done
  sleep 2; kill -9 $!; wait $!; punctual tune revert
}
files() { sha256sum /etc/default/grub /boot/grub/grub.cfg; ls -A /etc/default /etc/default/grub.d; }
cmdline() {
  sed -n 's/^[[:space:]]*linux[[:space:]]*[^[:space:]]*//p' /boot/grub/grub.cfg | head -n 1
}
blame() {
  punctual blame --cpu ${cpu:-1} --duration 15s --json - $* >/tmp/blame &&
    grep -m1 sentence /tmp/blame
}
cat >/tmp/inside <<'END'
#!/bin/sh
cat /proc/self/cgroup
grep Cpus_allowed_list /proc/self/status
cat /sys/fs/cgroup/punctual.isolated/cpuset.cpus.partition
cut -d' ' -f40 /proc/self/stat
exit 7
END
chmod +x /tmp/inside
";

/// A program that talks to the guest: over its third serial port, and over its network card, whose
/// UDP port [`GUEST_PORT`] is `port` of the loopback interface here.
struct Outside<'a> {
    program: &'a Path,
    /// Each run's name and arguments; `SERIAL` and `UDP` stand for the links to the guest.
    runs: &'a [(&'a str, &'a str)],
    port: u16,
}

/// The port that the guest listens on.
const GUEST_PORT: u16 = 7_000;

/// The word by which a device names the end that connects RTS to CTS.
const PLUG: &str = "chardev=plug";

/// The word by which a device names one end of a cable; the other one is `netdev=far`.
const CABLE: &str = "netdev=near";

/// A guest to be started.
///
/// The console goes to a file, which is read once the guest has ended; a guest that hangs is
/// ended. The first process runs the steps of a script, each between two lines that [`Console`]
/// finds again.
struct Guest<'a> {
    architecture: Architecture,
    emulator: &'a System,
    kernel: &'a Path,
    initrd: &'a Path,
    /// Disks: /dev/vda and on.
    disks: &'a [&'a Path],
    /// Devices as QEMU names them; `null0` and `null1` are ends of theirs that take everything,
    /// `plug` one that connects RTS to CTS, `near` and `far` those of a cable.
    devices: &'a [&'a str],
    /// The runs of the command on this side meanwhile.
    outside: Option<&'a Outside<'a>>,
    /// Parameters of the kernel, added to those of the console.
    append: &'a str,
    /// Its processor, as QEMU names it.
    cpu: &'a str,
    clock: GuestClock,
    /// The steps during which it stands still now and then.
    standstills: &'a [&'a str],
    /// A guest that takes longer is ended: one boots in 5 s where nothing else runs.
    patience: Duration,
}

/// The first process: mounts, drivers, the lines of `steps`, off.
fn init(steps: &str) -> String {
    format!("{BEFORE}{FUNCTIONS}{steps}\npoweroff -f\n")
}

impl Guest<'_> {
    /// Boots it and returns what came out of its serial ports: the first, with the kernel's
    /// console, is kept in `log`, the second in `log` with the ending `.steps`.
    fn run(&self, log: &Path) -> Result<Console, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", log.display());
        let (first, second) = (File::create(log).map_err(failed)?, log.with_extension("steps"));
        let errors = first.try_clone().map_err(failed)?;
        let mut qemu = self.architecture.emulate(self.emulator);
        qemu.args(["-chardev", "null,id=null0", "-chardev", "null,id=null1"]);
        qemu.args(self.clock.args());
        qemu.args(["-cpu", self.cpu, "-m", "1G", "-smp", "2"]);
        qemu.args(["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"]);
        qemu.arg("-serial").arg(format!("file:{}", second.display()));
        qemu.arg("-kernel").arg(self.kernel).arg("-initrd").arg(self.initrd);
        let console = self.architecture.console();
        qemu.arg("-append").arg(format!("console={console} panic=-1 quiet {}", self.append));
        for disk in self.disks {
            qemu.arg("-drive").arg(format!("file={},format=raw,if=virtio", disk.display()));
        }
        if self.devices.iter().any(|device| device.contains(PLUG)) {
            Self::plug(&mut qemu, log)?;
        }
        if self.devices.iter().any(|device| device.contains(CABLE)) {
            qemu.args(["-netdev", "hubport,hubid=0,id=near", "-netdev", "hubport,hubid=0,id=far"]);
        }
        for device in self.devices {
            qemu.args(["-device", device]);
        }
        let line = log.with_extension("line");
        if let Some(Outside { port, .. }) = self.outside {
            qemu.arg("-chardev").arg(format!("pty,id=line,path={}", line.display()));
            qemu.args(["-serial", "chardev:line", "-device", "e1000e,netdev=net,romfile="]);
            let forward = format!("hostfwd=udp:127.0.0.1:{port}-:{GUEST_PORT}");
            qemu.arg("-netdev").arg(format!("user,id=net,{forward}"));
        }
        qemu.stdin(Stdio::null()).stdout(first).stderr(errors);
        let mut child = qemu.spawn().map_err(|error| format!("qemu: {error}"))?;
        let end = Instant::now() + self.patience;
        let printed = self.outside.map(|outside| outside.run(&line, &mut child, end));
        let mut standstills = Standstills { steps: self.standstills, count: 0 };
        wait(child, end, |guest| standstills.look(guest, &[log, &second]))?;
        let mut bytes = fs::read(log).map_err(failed)?;
        bytes.extend(fs::read(&second).map_err(failed)?);
        bytes.extend(printed.unwrap_or_default().into_bytes());
        bytes.extend(standstills.printed().into_bytes());
        Ok(Console(String::from_utf8_lossy(&bytes).replace('\r', "")))
    }

    /// A pseudo-terminal as the end of a serial port, and a library that answers for its modem
    /// lines.
    fn plug(qemu: &mut Command, log: &Path) -> Result<(), String> {
        let (library, end) = (log.with_extension("so"), log.with_extension("end"));
        if end.is_symlink() {
            // Of a guest that was killed.
            fs::remove_file(&end).map_err(|error| format!("{}: {error}", end.display()))?;
        }
        let mut compiler = Command::new("cc");
        compiler.args(["-Wall", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library);
        process::run(compiler.arg(workspace::root().join("xtask/src/vm/plug.c")))?;
        qemu.env("LD_PRELOAD", &library);
        qemu.arg("-chardev").arg(format!("pty,id=end,path={}", end.display()));
        qemu.arg("-chardev").arg(format!("serial,id=plug,path={}", end.display()));
        Ok(())
    }
}

impl Outside<'_> {
    /// Runs each in turn, again until it succeeds: the guest may not be up yet. What the last try
    /// of each printed, as steps.
    fn run(&self, line: &Path, guest: &mut Child, end: Instant) -> String {
        let mut printed = String::new();
        for (name, arguments) in self.runs {
            let links = [
                ("SERIAL", format!("serial:{}", line.display())),
                ("UDP", format!("udp:127.0.0.1:{}", self.port)),
            ];
            let arguments = links
                .iter()
                .fold((*arguments).to_owned(), |text, (word, link)| text.replace(word, link));
            let last = loop {
                let mut command = Command::new(self.program);
                command.args(arguments.split(' ')).stdin(Stdio::null());
                let output = command.output();
                let done = output.as_ref().is_ok_and(|output| output.status.success());
                let is_up = matches!(guest.try_wait(), Ok(None)) && Instant::now() < end;
                if done || !is_up {
                    break output;
                }
                // A look now and then, as in `wait`.
                thread::sleep(LOOK);
            };
            let (text, code) = last.map_or_else(
                |why| (why.to_string(), -1),
                |output| {
                    let text = [output.stdout, output.stderr].concat();
                    let code = output.status.code().unwrap_or(-1);
                    (String::from_utf8_lossy(&text).into_owned(), code)
                },
            );
            printed += &format!("step: {name}\n{text}\nended: {name} {code}\n");
        }
        printed
    }
}

/// The time between two looks at a guest: nothing is timed by it.
const LOOK: Duration = Duration::from_millis(200);

/// All CPUs of a guest stand still, as in a host that stalls or firmware that took over.
struct Standstills<'a> {
    /// Only during these steps.
    steps: &'a [&'a str],
    count: u32,
}

impl Standstills<'_> {
    /// The length of each.
    const LENGTH: Duration = Duration::from_millis(25);
    /// The step that prints their number.
    const STEP: &'static str = "standstills";

    /// Once, where one of them has begun and has not ended, by what the guest printed to its ports.
    fn look(&mut self, guest: &Child, ports: &[&Path]) -> Result<(), String> {
        if self.steps.is_empty() {
            return Ok(());
        }
        // The emulator makes the files once it runs.
        let printed: Vec<u8> =
            ports.iter().flat_map(|port| fs::read(port).unwrap_or_default()).collect();
        let printed = String::from_utf8_lossy(&printed).replace('\r', "");
        let has = |line: String| printed.contains(&line);
        let goes_on =
            |step: &&str| has(format!("step: {step}\n")) && !has(format!("ended: {step} "));
        if self.steps.iter().any(goes_on) {
            // The shell's own: a program of that name is in a package that may be missing.
            let signal = |name: &str| {
                let kill = format!("kill {name} {}", guest.id());
                process::run(Command::new("sh").args(["-c", &kill]))
            };
            signal("-STOP")?;
            // At least so long; how much longer does not matter.
            thread::sleep(Self::LENGTH);
            signal("-CONT")?;
            self.count += 1;
        }
        Ok(())
    }

    /// Their number, as a step.
    fn printed(&self) -> String {
        format!("step: {0}\n{1}\nended: {0} 0\n", Self::STEP, self.count)
    }
}

/// Waits for the guest's end, and has `look` at it meanwhile. Where it does not end by itself, or
/// cannot be looked at, it is ended.
fn wait(
    mut child: Child,
    end: Instant,
    mut look: impl FnMut(&Child) -> Result<(), String>,
) -> Result<(), String> {
    let mut ended = || {
        while Instant::now() < end {
            if child.try_wait().map_err(|error| format!("qemu: {error}"))?.is_some() {
                return Ok(());
            }
            look(&child)?;
            // A look now and then.
            thread::sleep(LOOK);
        }
        Err("the guest was not done in time".to_owned())
    };
    ended().inspect_err(|_| {
        // Our own child, not waited for yet.
        let _ = child.kill();
        let _ = child.wait();
    })
}

/// The text that a guest printed.
struct Console(String);

impl Console {
    /// The exit code of a step and the text it printed; an error where it did not run to its end.
    fn step(&self, name: &str) -> Result<(i32, &str), String> {
        let Self(text) = self;
        let begin = format!("step: {name}\n");
        let (_, rest) =
            text.split_once(&begin).ok_or_else(|| format!("the step {name} did not begin"))?;
        let end = format!("ended: {name} ");
        let (output, rest) =
            rest.split_once(&end).ok_or_else(|| format!("the step {name} did not end"))?;
        let code = rest.lines().next().unwrap_or_default().trim();
        let code =
            code.parse().map_err(|_| format!("the step {name} ended with {code:?}, no number"))?;
        Ok((code, output))
    }

    /// The output of a step that must exit with 0.
    fn ok(&self, name: &str) -> Result<&str, String> {
        match self.step(name)? {
            (0, output) => Ok(output),
            (code, output) => {
                let last = output.lines().map(str::trim).rfind(|line| !line.is_empty());
                Err(format!("the step {name} exited with {code}: {}", last.unwrap_or("no output")))
            }
        }
    }

    /// The first JSON object that a step printed.
    fn result(&self, name: &str) -> Result<Value, String> {
        let (_, printed) = self.step(name)?;
        let none = || format!("{name}: no result: {printed}");
        let begin = printed.find('{').ok_or_else(none)?;
        let first = serde_json::Deserializer::from_str(&printed[begin..]).into_iter().next();
        first.ok_or_else(none)?.map_err(|error| format!("{name}: {error}"))
    }
}

/// The console of the first guest.
fn first_console(consoles: &[Console]) -> Result<&Console, String> {
    consoles.first().ok_or_else(|| "nothing was booted".to_owned())
}

/// That a step printed it.
fn has(step: &str, output: &str, word: &str) -> Result<(), String> {
    match output.contains(word) {
        true => Ok(()),
        false => Err(format!("{step} lacks {word:?}: {output}")),
    }
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
                assert!(Kernel::named(kernel).is_some(), "{kernel}");
            }
        }
        assert!(named(&["none".to_owned()]).is_err_and(|why| why.contains("follow")));
    }

    #[test]
    fn what_was_not_finished_goes_with_its_maker() {
        let cache = std::env::temp_dir().join(format!("punctual-vm-test-{}", std::process::id()));
        // No process has so high a number (kernel.pid_max is at most 2^22).
        let gone = cache.join("trixie-linux.4194305.new");
        let others = ["trixie-linux", "trixie-linux.made", "sid.new", "trixie-linux.1.new"];
        for folder in others.map(|name| cache.join(name)).iter().chain([&gone]) {
            fs::create_dir_all(folder.join("usr")).expect("writable");
        }
        let new = Unfinished::beside(&cache.join("trixie-linux"));
        assert!(!gone.exists() && others.iter().all(|name| cache.join(name).is_dir()));
        let made = cache.join(format!("trixie-linux.{}.new", std::process::id()));
        fs::create_dir_all(made.join("usr")).expect("writable");
        assert_eq!(Unfinished::maker(&made), Some(std::process::id()));
        drop(new);
        assert!(!made.exists());
        fs::remove_dir_all(&cache).expect("it was made here");
    }

    #[test]
    fn a_guest_that_cannot_be_looked_at_is_ended() {
        let guest = Command::new("sleep").arg("600").spawn().expect("sleep");
        let id = guest.id();
        let end = Instant::now() + Duration::from_secs(300);
        assert_eq!(wait(guest, end, |_| Err("no kill".to_owned())), Err("no kill".to_owned()));
        assert!(!Path::new(&format!("/proc/{id}")).exists(), "it was waited for");
    }

    #[test]
    fn a_guest_stands_still_during_a_step_alone() {
        let mut guest = Command::new("sleep").arg("600").spawn().expect("sleep");
        let port = std::env::temp_dir().join(format!("punctual-vm-port-{}", std::process::id()));
        let mut standstills = Standstills { steps: &["stood"], count: 0 };
        for (printed, count) in [("step: one\n", 0), ("step: stood\n", 1), ("step: one\n", 1)] {
            fs::write(&port, printed).expect("writable");
            assert_eq!(standstills.look(&guest, &[&port]), Ok(()));
            assert_eq!(standstills.count, count, "{printed}");
        }
        fs::remove_file(&port).expect("it was made here");
        assert_eq!(guest.try_wait().expect("a child"), None, "it goes on");
        guest.kill().and_then(|()| guest.wait()).expect("a child");
    }

    #[test]
    fn a_step_is_found_with_its_code_and_its_output() {
        let console =
            Console("boot\nstep: one\na\nb\nended: one 0\nstep: two\nended: two 3\n".to_owned());
        assert_eq!(console.step("one"), Ok((0, "a\nb\n")));
        assert_eq!(console.ok("one"), Ok("a\nb\n"));
        assert_eq!(console.step("two"), Ok((3, "")));
        assert_eq!(console.ok("two").expect_err("3"), "the step two exited with 3: no output");
        let failed = Console("step: one\na\npunctual: b\n\nended: one 2\n".to_owned());
        assert!(failed.ok("one").is_err_and(|why| why.ends_with("exited with 2: punctual: b")));
        assert!(console.step("three").is_err());
        let cut = Console("step: one\na\n".to_owned());
        assert!(cut.step("one").expect_err("cut").contains("did not end"));
    }

    #[test]
    fn the_script_ends_by_switching_off() {
        let script = init("step one true");
        assert!(script.starts_with("#!/bin/busybox sh\n"));
        assert!(script.ends_with("step one true\npoweroff -f\n"));
    }
}
