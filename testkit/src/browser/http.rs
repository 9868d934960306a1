//! One question and its answer over HTTP/1.1 on the loopback: all that WebDriver needs.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The longest wait for an answer: a browser on a busy machine starts slowly.
const PATIENCE: Duration = Duration::from_secs(120);

/// The answer's body.
pub(super) fn ask(port: u16, method: &str, path: &str, body: &str) -> String {
    try_ask(port, method, path, body)
        .unwrap_or_else(|why| panic!("{method} {path}: no answer from chromedriver: {why}"))
}

/// The answer's body, or why there is none.
pub(super) fn try_ask(port: u16, method: &str, path: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut reader = BufReader::new(stream);
    let mut length = None;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(Error::from(ErrorKind::UnexpectedEof));
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<u64>().ok();
        }
    }
    let mut answer = String::new();
    match length {
        Some(length) => reader.take(length).read_to_string(&mut answer)?,
        None => reader.read_to_string(&mut answer)?,
    };
    Ok(answer)
}
