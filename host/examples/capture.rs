//! Captures this machine's facts: `cargo run -p punctual-host --example capture -- OUT`.
//! With a second argument, those of a tree instead: `… -- OUT TREE`.

use punctual_host::{Root, capture::capture, scrub::Scrub};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(out) = std::env::args_os().nth(1) else {
        eprintln!("name the directory to write to");
        return ExitCode::from(2);
    };
    let root = match std::env::args_os().nth(2).map(|tree| Root::captured(Path::new(&tree))) {
        None => Root::live(),
        Some(Ok(root)) => root,
        Some(Err(error)) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let mut scrub = Scrub::of(&root);
    for name in ["USER", "LOGNAME", "SUDO_USER"].into_iter().filter_map(|n| std::env::var(n).ok()) {
        scrub = scrub.user(&name);
    }
    let write = |path: &str, bytes: &[u8]| -> io::Result<()> {
        let path = Path::new(&out).join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        File::create_new(path)?.write_all(bytes)
    };
    match capture(root, &scrub, write) {
        Ok(done) => {
            let (absent, refused) = (done.absent, done.unreadable);
            println!("{} files, {absent} absent, {refused} unreadable", done.files);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot write below {}: {error}", out.display());
            ExitCode::from(2)
        }
    }
}
