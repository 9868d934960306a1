//! A headless Chromium to test pages with: WebDriver (w3.org/TR/webdriver2) spoken to chromedriver.
//!
//! For tests of pages and for nothing else: every failure of the browser is a panic with its
//! words. The browser has a profile of its own in the temporary directory and ends with the value.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::skip;

/// The key code of the tab key (WebDriver, 17.4.2).
pub const TAB: &str = "\u{e004}";
/// The key code of the return key.
pub const RETURN: &str = "\u{e007}";

/// A browser with one window.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    profile: PathBuf,
}

impl Browser {
    /// Starts one; `None`, counted as a skip, where the programs are missing. `name` is unique
    /// among the tests of a process.
    ///
    /// # Panics
    /// When it does not start, and as [`skip::need`] does.
    #[track_caller]
    pub fn start(name: &str) -> Option<Self> {
        if !skip::need_program("chromedriver") || !skip::need_program("chromium") {
            return None;
        }
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let stdout = driver.stdout.take().expect("piped");
        let port = BufReader::new(stdout)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                line.split("started successfully on port ")
                    .nth(1)?
                    .trim_end_matches('.')
                    .parse()
                    .ok()
            })
            .expect("chromedriver says its port");
        let profile = std::env::temp_dir().join(format!("punctual-{name}-{}", std::process::id()));
        let mut browser = Self { driver, port, session: String::new(), profile };
        let args = [
            "--headless=new".to_owned(),
            // Root has no sandbox; the pages are this test's own.
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--window-size=1280,1000".to_owned(),
            format!("--user-data-dir={}", browser.profile.display()),
        ];
        let request = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": {
                "binary": skip::program("chromium").expect("found above"), "args": args,
            },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        } } });
        let made = browser.ask("POST", "/session", &request);
        browser.session = made["sessionId"].as_str().expect("a session").to_owned();
        // What the browser's own first page requested is not the tests'.
        browser.post("url", &json!({ "url": "about:blank" }));
        browser.log("performance");
        Some(browser)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let text = if method == "GET" { String::new() } else { body.to_string() };
        let answer = ask(self.port, method, path, &text);
        let answer: Value = serde_json::from_str(&answer).expect("JSON from chromedriver");
        let value = answer["value"].clone();
        assert!(value.get("error").is_none(), "{method} {path}: {value}");
        value
    }

    fn post(&self, command: &str, body: &Value) -> Value {
        self.ask("POST", &format!("/session/{}/{command}", self.session), body)
    }

    /// Opens the page in a file.
    pub fn open(&self, file: &Path) {
        let path = file.canonicalize().expect("a page");
        self.post("url", &json!({ "url": format!("file://{}", path.display()) }));
    }

    /// Runs a script as the body of a function and gives what it returns.
    pub fn run(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Runs a script whose last argument is called with the answer.
    pub fn run_until_called(&self, script: &str) -> Value {
        self.post("execute/async", &json!({ "script": script, "args": [] }))
    }

    /// Clicks on the first element that a CSS selector finds, as a mouse does.
    pub fn click(&self, selector: &str) {
        let found = self.post("element", &json!({ "using": "css selector", "value": selector }));
        let id = found.as_object().and_then(|found| found.values().next()?.as_str());
        let id = id.expect("an element").to_owned();
        self.post(&format!("element/{id}/click"), &json!({}));
    }

    /// Presses and releases keys, one after the other, wherever the focus is.
    pub fn keys(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }))
            })
            .collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.post("actions", &json!({ "actions": [keyboard] }));
    }

    /// Presses the mouse at one point of the window, moves, and releases it at another.
    pub fn drag(&self, from: (i64, i64), to: (i64, i64)) {
        let go =
            |at: (i64, i64)| json!({ "type": "pointerMove", "duration": 50, "x": at.0, "y": at.1 });
        let press = |kind: &str| json!({ "type": kind, "button": 0 });
        let actions = [go(from), press("pointerDown"), go(to), press("pointerUp")];
        let mouse = json!({ "type": "pointer", "id": "mouse", "actions": actions });
        self.post("actions", &json!({ "actions": [mouse] }));
    }

    /// A command of the Chrome DevTools Protocol.
    pub fn devtools(&self, command: &str, params: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({ "cmd": command, "params": params }))
    }

    /// Lines of the page's console since the last call: errors, refusals.
    pub fn console(&self) -> Vec<String> {
        self.log("browser").iter().map(|line| line["message"].to_string()).collect()
    }

    /// Every address requested since the last call.
    pub fn requests(&self) -> Vec<String> {
        let lines = self.log("performance");
        let urls = lines.iter().filter_map(|line| -> Option<String> {
            let entry: Value = serde_json::from_str(line["message"].as_str()?).ok()?;
            let message = &entry["message"];
            let sent = message["method"] == "Network.requestWillBeSent";
            let url = message["params"]["request"]["url"].as_str().filter(|_| sent)?;
            Some(url.to_owned())
        });
        urls.collect()
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        let log = self.post("se/log", &json!({ "type": kind }));
        log.as_array().cloned().unwrap_or_default()
    }

    /// The whole page as a PNG file, `width` pixels wide.
    pub fn screenshot(&self, width: u32) -> Vec<u8> {
        let metrics = |height: u64| {
            let mut metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1 });
            metrics["mobile"] = false.into();
            metrics
        };
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics(1_000));
        let size = self.devtools("Page.getLayoutMetrics", &json!({}));
        let height = size["cssContentSize"]["height"].as_f64().unwrap_or(1_000.0) as u64;
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics(height.min(12_000)));
        let shot = self.devtools("Page.captureScreenshot", &json!({ "format": "png" }));
        self.devtools("Emulation.clearDeviceMetricsOverride", &json!({}));
        base64(shot["data"].as_str().unwrap_or_default())
    }

    /// The page as it prints: a PDF file.
    pub fn print(&self) -> Vec<u8> {
        base64(self.post("print", &json!({ "background": true })).as_str().unwrap_or_default())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A failed test may have lost its browser already.
        let _gone = try_ask(self.port, "DELETE", &format!("/session/{}", self.session), "");
        let _ended = self.driver.kill();
        let _waited = self.driver.wait();
        let _left = std::fs::remove_dir_all(&self.profile);
    }
}

/// RFC 4648, section 4, without a check of what is wrong.
fn base64(text: &str) -> Vec<u8> {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut word, mut bits) = (Vec::new(), 0u32, 0);
    for letter in text.bytes() {
        let Some(value) = letters.iter().position(|&known| known == letter) else { continue };
        word = word << 6 | value as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    bytes
}

/// The longest wait for an answer: a browser on a busy machine starts slowly.
const PATIENCE: Duration = Duration::from_secs(120);

/// The answer's body.
fn ask(port: u16, method: &str, path: &str, body: &str) -> String {
    try_ask(port, method, path, body)
        .unwrap_or_else(|why| panic!("{method} {path}: no answer from chromedriver: {why}"))
}

/// The answer's body, or why there is none.
fn try_ask(port: u16, method: &str, path: &str, body: &str) -> std::io::Result<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        assert_eq!(base64("Zm9vYmFy"), b"foobar");
        assert_eq!(base64("Zm9vYg=="), b"foob");
    }
}
