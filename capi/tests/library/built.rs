//! The installed library, made once a run of the tests, and programs that are built with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
#[expect(clippy::disallowed_types, reason = "a test's: no loop of the library waits for it")]
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_testkit::skip;

/// Of the crate.
pub(crate) const CAPI: &str = env!("CARGO_MANIFEST_DIR");

/// Warnings that no program of ours has.
pub(crate) const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// The library below a folder of its own, which stays in the target directory.
#[expect(clippy::disallowed_types, reason = "a test's: no loop of the library waits for it")]
static INSTALLED: LazyLock<PathBuf> = LazyLock::new(|| {
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
    install(&["--dev"], &prefix);
    prefix
});

/// Installs below a folder, with these arguments.
pub(crate) fn install(args: &[&str], prefix: &Path) {
    let mut xtask = Command::new(env!("CARGO"));
    xtask.args(["run", "--quiet", "--locked", "--package", "xtask", "--", "install"]).args(args);
    xtask.arg("--prefix").arg(prefix).env("CC", program("gcc")).current_dir(CAPI);
    let output = xtask.output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A file of the library.
pub(crate) fn installed(path: &str) -> PathBuf {
    INSTALLED.join(path)
}

/// A program for the processor of these tests, which may be emulated.
pub(crate) fn program(name: &str) -> String {
    match std::env::var_os(skip::EMULATED) {
        Some(_) => format!("aarch64-linux-gnu-{name}"),
        None => name.to_owned(),
    }
}

/// Returns true where these programs are here, and the compiler that links the library.
#[track_caller]
pub(crate) fn need(programs: &[&str]) -> bool {
    skip::need_program(&program("gcc")) && programs.iter().all(|name| skip::need_program(name))
}

/// The output of a program, which must end well.
#[track_caller]
pub(crate) fn output(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{out}\n{err}");
    out.into_owned()
}

/// Which library a program is linked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linked {
    Shared,
    Static,
}

/// A program of these sources; `name` is unique among the tests.
#[track_caller]
pub(crate) fn compile(name: &str, compiler: &str, source: &Path, flags: &[&str]) -> PathBuf {
    link(name, compiler, source, flags, Linked::Shared)
}

/// A program of these sources, linked as it is told. Tests that run at once may build the same one:
/// it gets its name when it is whole.
#[track_caller]
pub(crate) fn link(
    name: &str,
    compiler: &str,
    source: &Path,
    flags: &[&str],
    linked: Linked,
) -> PathBuf {
    static BUILT: AtomicU32 = AtomicU32::new(0);
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let new = to.with_extension(format!("new-{}", BUILT.fetch_add(1, Ordering::Relaxed)));
    let (include, libdir) = (installed("include"), installed("lib"));
    let mut command = Command::new(compiler);
    command.args(STRICT).args(flags).arg("-I").arg(include).arg(source).arg("-o").arg(&new);
    match linked {
        Linked::Shared => {
            command.arg("-L").arg(&libdir).arg("-lpunctual");
            command.arg(format!("-Wl,-rpath,{}", libdir.display()));
        }
        Linked::Static => {
            command.arg(libdir.join("libpunctual.a"));
            command.args(["-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]);
        }
    }
    command.arg("-pthread");
    output(&mut command);
    fs::rename(&new, &to).expect("just built");
    to
}
