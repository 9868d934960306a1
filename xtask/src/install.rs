//! `cargo xtask install [--library] [--prefix DIR] [--libdir DIR] [--destdir DIR] [--dev]`: the
//! program and the C library, or the library alone.
//!
//! Builds libpunctual.a, links libpunctual.so from it with its soname and the versions of its
//! symbols (rustc's own cdylib has neither: it takes no second list of exports), and puts both
//! below the prefix (/usr/local) with headers, pkg-config file, symbolic links and man pages of
//! section 3 (`pages`). Writes nothing elsewhere; overwrites what an earlier install left.

mod pages;

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process;
use crate::workspace::{self, Scope};

/// The crate that the library is made of.
const PACKAGE: &str = "punctual-capi";
/// The libraries that Rust's standard library wants beside the C library, as
/// `cargo rustc -p punctual-capi -- --print native-static-libs` says, less the compiler's own
/// library: each compiler adds that by itself, libgcc_eh with `-static` and libgcc_s without, and
/// there is no libgcc_s that `-static` could link.
const PRIVATE: &str = "-lutil -lrt -lpthread -lm -ldl -lc";
/// The compiler's own library, for the shared one.
const UNWIND: &str = "-lgcc_s";
/// The headers.
const HEADERS: &[&str] = &["punctual.h", "punctual.hpp"];

/// The arguments, for `--help`.
pub(crate) const DETAILS: &str = "Arguments:
  --library      the C library alone: libpunctual.so and .a, headers, pkg-config file, man
                 pages of section 3; about a minute of a CPU, where all takes several
  --prefix DIR   the absolute path below which it goes (/usr/local)
  --libdir DIR   where libraries go, below the prefix where it is relative (lib)
  --destdir DIR  put before all paths, for packagers
  --dev          built as `cargo build` does, for tests: sooner done, and slower

Without --library also the program with its man pages, completions for bash, zsh and fish, and
the systemd unit. It needs a Rust toolchain, and a C compiler (cc, or what CC says).
";

/// The parts to install, and their places.
#[derive(Debug, PartialEq)]
struct Options {
    /// The C library alone.
    library: bool,
    prefix: PathBuf,
    /// Below the prefix where it is relative.
    libdir: PathBuf,
    /// Put before all paths, for packagers; no file says so.
    destdir: Option<PathBuf>,
    /// As `cargo build` builds, for tests.
    dev: bool,
}

/// Runs the subcommand.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let root = workspace::root();
    install_library(&root, &options)?;
    if options.library { Ok(()) } else { install_program(&root, &options) }
}

/// Builds and installs the C library.
fn install_library(root: &Path, options: &Options) -> Result<(), String> {
    let version = version(root)?;
    let archive = build(root, options.dev)?;
    let libdir = options.place(&options.libdir());
    let include = options.place(&options.prefix.join("include"));
    for folder in [&libdir.join("pkgconfig"), &include] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let capi = root.join("capi");
    let shared = Names::of(&version);
    link(&archive, &capi.join("punctual.map"), &shared, &libdir)?;
    for (name, to) in [(&shared.soname, &shared.file), (&shared.plain, &shared.soname)] {
        symlink(to, &libdir.join(name))?;
    }
    copy(&archive, &libdir.join("libpunctual.a"))?;
    for header in HEADERS {
        copy(&capi.join("include").join(header), &include.join(header))?;
    }
    let template = capi.join("punctual.pc.in");
    let text = fs::read_to_string(&template)
        .map_err(|error| format!("{}: {error}", template.display()))?;
    let file = libdir.join("pkgconfig/punctual.pc");
    replace(&file, |new| fs::write(new, options.pkg_config(&text, &version)))?;
    let header = include.join(HEADERS[0]);
    let text =
        fs::read_to_string(&header).map_err(|error| format!("{}: {error}", header.display()))?;
    for page in pages::pages(&text, &version) {
        write(options, &format!("share/man/man3/{}.3", page.name), page.text.as_bytes())?;
    }
    println!("install: {} in {}", shared.file, libdir.display());
    Ok(())
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self {
            library: false,
            prefix: PathBuf::from("/usr/local"),
            libdir: PathBuf::from("lib"),
            destdir: None,
            dev: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut folder = || {
                let folder = args.next().ok_or_else(|| format!("{arg} needs a folder"))?;
                Ok::<_, String>(PathBuf::from(folder))
            };
            match arg.as_str() {
                "--prefix" => options.prefix = folder()?,
                "--libdir" => options.libdir = folder()?,
                "--destdir" => options.destdir = Some(folder()?),
                "--dev" => options.dev = true,
                "--library" => options.library = true,
                unknown => {
                    let way_out = "`cargo xtask install --help` lists what it takes";
                    return Err(format!("no argument {unknown:?}: {way_out}"));
                }
            }
        }
        if !options.prefix.is_absolute() {
            return Err(format!("--prefix {}: an absolute path", options.prefix.display()));
        }
        Ok(options)
    }

    fn libdir(&self) -> PathBuf {
        self.prefix.join(&self.libdir)
    }

    /// Where a path of the installed system lies now.
    fn place(&self, path: &Path) -> PathBuf {
        match &self.destdir {
            Some(destdir) => destdir.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_owned(),
        }
    }

    fn pkg_config(&self, template: &str, version: &str) -> String {
        template
            .replace("@PREFIX@", &self.prefix.display().to_string())
            .replace("@LIBDIR@", &self.libdir().display().to_string())
            .replace("@INCLUDEDIR@", &self.prefix.join("include").display().to_string())
            .replace("@VERSION@", version)
            .replace("@PRIVATE@", PRIVATE)
    }
}

/// The names of the shared library.
#[derive(Debug, PartialEq)]
struct Names {
    /// The file itself.
    file: String,
    /// The name that programs that were linked with it look for: it changes where they would break.
    soname: String,
    /// The name that the linker looks for.
    plain: String,
}

impl Names {
    fn of(version: &str) -> Self {
        let plain = "libpunctual.so".to_owned();
        let major = version.split('.').next().unwrap_or("0");
        Self { file: format!("{plain}.{version}"), soname: format!("{plain}.{major}"), plain }
    }
}

fn version(root: &Path) -> Result<String, String> {
    let packages = workspace::packages(root, Scope::Ours)?;
    let ours = packages.into_iter().find(|package| package.name == PACKAGE);
    ours.map(|package| package.version).ok_or_else(|| format!("no crate {PACKAGE}"))
}

/// Builds the archive; where cargo put it.
fn build(root: &Path, dev: bool) -> Result<PathBuf, String> {
    built(root, &[PACKAGE, "--lib"], "libpunctual.a", dev)
}

/// Builds what `package` names; where cargo put the file `name` of it.
fn built(root: &Path, package: &[&str], name: &str, dev: bool) -> Result<PathBuf, String> {
    let mut args = [&["build", "--locked", "--package"], package].concat();
    args.push("--message-format=json-render-diagnostics");
    if !dev {
        args.extend(["--profile", "dist"]);
    }
    let messages = process::output(&mut process::cargo(root, &args))?;
    file_named(&messages, name).ok_or_else(|| format!("cargo names no {name}"))
}

/// The file that cargo's messages name so, one message a line.
fn file_named(messages: &[u8], wanted: &str) -> Option<PathBuf> {
    let made = |line: &[u8]| -> Option<PathBuf> {
        let message: Value = serde_json::from_slice(line).ok()?;
        let files = message["filenames"].as_array()?;
        files
            .iter()
            .filter_map(Value::as_str)
            .map(PathBuf::from)
            .find(|file| file.file_name().is_some_and(|name| name == wanted))
    };
    messages.split(|&byte| byte == b'\n').find_map(made)
}

/// The C compiler that `CC` names, with its arguments or behind another program (`ccache gcc`);
/// `cc` where it names none.
fn compiler(named: &str) -> Command {
    let mut words = named.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words);
    command
}

/// Links the shared library of all of the archive, less what nothing exported needs. Every symbol
/// is bound when the library is loaded: a first call in a loop costs no more than another.
fn link(archive: &Path, map: &Path, names: &Names, libdir: &Path) -> Result<(), String> {
    replace(&libdir.join(&names.file), |new| link_to(new, archive, map, names))
}

fn link_to(file: &Path, archive: &Path, map: &Path, names: &Names) -> Result<(), String> {
    let mut command = compiler(&std::env::var("CC").unwrap_or_default());
    command.arg("-shared").arg("-o").arg(file);
    command.arg(format!("-Wl,-soname,{}", names.soname));
    command.arg(format!("-Wl,--version-script={}", map.display()));
    command.arg("-Wl,--whole-archive").arg(archive).arg("-Wl,--no-whole-archive");
    command.args(["-Wl,--gc-sections", "-Wl,--strip-debug", "-Wl,-z,defs"]);
    command.args(["-Wl,-z,relro", "-Wl,-z,now"]);
    command.arg(UNWIND).args(PRIVATE.split(' '));
    process::run(&mut command)
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    replace(to, |new| fs::copy(from, new).map(drop))
}

/// Puts the file that `write` writes in the place of `to`, whole: the kernel lets nobody write into
/// a program that runs (ETXTBSY), and what runs or is read there goes on with the old file.
fn replace<E: Display>(
    to: &Path,
    write: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), String> {
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let new = to.with_file_name(format!(".{name}.new"));
    let moved = |()| fs::rename(&new, to).map_err(|error| error.to_string());
    write(&new).map_err(|error| error.to_string()).and_then(moved).map_err(|error| {
        // Left over beside it at worst.
        let _ = fs::remove_file(&new);
        format!("{}: {error}", to.display())
    })
}

/// Makes `at` a link to its neighbour `to`.
fn symlink(to: &str, at: &Path) -> Result<(), String> {
    replace(at, |new| {
        // One that an interrupted run left.
        let _ = fs::remove_file(new);
        std::os::unix::fs::symlink(to, new)
    })
}

/// The crate that the program is made of.
const PROGRAM: &[&str] = &["punctual-cli", "--bin", "punctual"];
/// Where each shell looks for completions, below the prefix.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "share/bash-completion/completions/punctual"),
    ("zsh", "share/zsh/site-functions/_punctual"),
    ("fish", "share/fish/vendor_completions.d/punctual.fish"),
];
/// The unit, in this tree below `packaging`, and below the prefix's `lib`.
const UNIT: &str = "systemd/system/punctual-soak@.service";

/// Builds and installs all of it.
fn install_program(root: &Path, options: &Options) -> Result<(), String> {
    let binaries = options.prefix.join("bin");
    let unit = unit(root, &binaries)?;
    let program = make(options, "bin/punctual")?;
    copy(&built(root, PROGRAM, "punctual", options.dev)?, &program)?;
    let pages = options.place(&options.prefix.join("share/man/man1"));
    process::run(Command::new(&program).arg("man").arg(&pages))?;
    for (shell, path) in COMPLETIONS {
        let text = process::output(Command::new(&program).args(["completions", shell]))?;
        write(options, path, &text)?;
    }
    write(options, &format!("lib/{UNIT}"), unit.as_bytes())?;
    println!("install: punctual in {}", options.place(&binaries).display());
    Ok(())
}

/// The unit, with the path of the program.
fn unit(root: &Path, binaries: &Path) -> Result<String, String> {
    let file = root.join("packaging/systemd/punctual-soak@.service");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text.replace("@BINDIR@", &unit_word(binaries)?))
}

/// A path as a systemd unit has it: `%` begins a specifier, a space ends the word.
fn unit_word(path: &Path) -> Result<String, String> {
    let text = path.to_str().unwrap_or(" ");
    let is_special = |c: char| c.is_whitespace() || c.is_control() || "\"'\\$".contains(c);
    if text.chars().any(is_special) {
        let shown = path.display();
        return Err(format!(
            "--prefix: {shown} cannot be named in a systemd unit; use a path \
                            without spaces, quotes, `\\` and `$`"
        ));
    }
    Ok(text.replace('%', "%%"))
}

/// A path below the prefix whose directory exists.
fn make(options: &Options, path: &str) -> Result<PathBuf, String> {
    let path = options.place(&options.prefix.join(path));
    let folder = path.parent().unwrap_or(&path);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(path)
}

fn write(options: &Options, path: &str, bytes: &[u8]) -> Result<(), String> {
    replace(&make(options, path)?, |new| fs::write(new, bytes))
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    fn options(args: &[&str]) -> Result<Options, String> {
        Options::parse(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_destination_comes_before_paths_and_into_no_file() {
        let options =
            options(&["--prefix", "/usr", "--libdir", "lib/x", "--destdir", "/d"]).unwrap();
        assert_eq!(options.place(&options.libdir()), Path::new("/d/usr/lib/x"));
        let text = options.pkg_config("@PREFIX@ @LIBDIR@ @INCLUDEDIR@ @VERSION@", "1.2.3");
        assert_eq!(text, "/usr /usr/lib/x /usr/include 1.2.3");
        assert!(!options.pkg_config("@PRIVATE@", "1.2.3").contains("gcc_s"), "-static has none");
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        assert!(options(&["--prefix"]).unwrap_err().contains("needs a folder"));
        assert!(options(&["--prefix", "x"]).unwrap_err().contains("absolute"));
        assert!(options(&["x"]).unwrap_err().contains("\"x\""));
        let usual = options(&[]).unwrap();
        assert_eq!((usual.prefix.as_path(), usual.library), (Path::new("/usr/local"), false));
        assert!(options(&["--library"]).unwrap().library);
    }

    #[test]
    fn the_help_lists_each_argument() {
        for arg in ["--library", "--prefix", "--libdir", "--destdir", "--dev"] {
            assert_eq!(DETAILS.matches(&format!("\n  {arg} ")).count(), 1, "{arg}");
            assert!(options(&[arg, "/x"]).is_ok() || options(&[arg]).is_ok(), "{arg}");
        }
    }

    #[test]
    fn the_soname_holds_the_first_number_of_the_version() {
        let names = Names::of("1.2.3");
        assert_eq!(
            (names.file.as_str(), names.soname.as_str()),
            ("libpunctual.so.1.2.3", "libpunctual.so.1")
        );
    }

    #[test]
    fn the_archive_is_found_among_cargos_messages() {
        let messages = b"{\"reason\":\"x\"}\nnoise\n{\"filenames\":[\"/a/x.rlib\"]}\n\
                         {\"filenames\":[\"/a/libpunctual.a\"]}\n";
        let found = file_named(messages, "libpunctual.a").unwrap();
        assert_eq!(found, Path::new("/a/libpunctual.a"));
        assert_eq!(file_named(b"", "libpunctual.a"), None);
    }

    #[test]
    fn a_compiler_may_have_words_before_and_behind_it() {
        for (named, shown) in
            [("", "cc"), ("clang", "clang"), ("ccache gcc -m64 ", "ccache gcc -m64")]
        {
            assert_eq!(process::show(&compiler(named)), shown);
        }
    }

    #[test]
    fn a_program_that_runs_is_replaced_and_goes_on() {
        let folder =
            std::env::temp_dir().join(format!("punctual-install-test-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("cat");
        // By another process: one that is forked here meanwhile would hold it open for writing.
        process::run(Command::new("cp").arg("/bin/cat").arg(&program)).unwrap();
        let mut running = Command::new(&program).stdin(Stdio::piped()).spawn().unwrap();
        let header = workspace::root().join("capi/include").join(HEADERS[0]);
        let copied = copy(&header, &program);
        let still_runs = running.try_wait().unwrap().is_none();
        drop(running.stdin.take());
        let ended = running.wait().unwrap();
        assert_eq!(copied, Ok(()));
        assert!(still_runs && ended.success(), "{ended}");
        assert_eq!(fs::read(&program).unwrap(), fs::read(&header).unwrap());
        assert!(copy(&folder.join("absent"), &program).unwrap_err().contains("cat: "));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_unit_starts_the_installed_program() {
        let unit = unit(&workspace::root(), Path::new("/opt/100%/bin")).unwrap();
        assert!(unit.contains("\nExecStart=/opt/100%%/bin/punctual soak "), "{unit}");
        assert!(!unit.contains("@BINDIR@"));
        assert!(unit_word(Path::new("/opt/a b")).unwrap_err().contains("/opt/a b"));
    }
}
