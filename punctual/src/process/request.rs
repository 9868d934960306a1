//! Requests of processes that address a supervisor by its name, and its answers: a line each.
//!
//! Pure. Nothing but these lines and descriptors goes through the socket.

pub(super) mod place;
mod tie;

pub(super) use place::invalid_name;
pub use place::{DIR_VARIABLE, NAME_MAX, directory, is_name, socket};
#[cfg(test)]
pub(super) use tie::exchange;
pub(super) use tie::{Tie, ask};

/// The longest line, bytes.
pub const LINE_MAX: usize = 256;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// To register as this task.
    Join(String),
    /// To read the page and the outputs of this task.
    Watch(String),
}

impl Request {
    /// The line that asks.
    ///
    /// # Real-time: setup only
    pub fn line(&self) -> String {
        match self {
            Self::Join(task) => format!("punctual 1 join {task}\n"),
            Self::Watch(task) => format!("punctual 1 watch {task}\n"),
        }
    }

    /// What a line asks for, its end included.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in a line.
    ///
    /// # Real-time: setup only
    pub fn parse(line: &[u8]) -> Result<Self, &'static str> {
        let line = std::str::from_utf8(line).map_err(|_| "the request is not UTF-8")?;
        let words: Vec<&str> = line
            .strip_suffix('\n')
            .ok_or("the request does not end with a newline")?
            .split(' ')
            .collect();
        let &[tool, version, what, task] = &words[..] else {
            return Err("the request must have four words");
        };
        if tool != "punctual" {
            return Err("the request must begin with 'punctual'");
        }
        if version != "1" {
            return Err("the request must be of version 1");
        }
        if !is_name(task) {
            return Err("the request names no valid task");
        }
        match what {
            "join" => Ok(Self::Join(task.to_owned())),
            "watch" => Ok(Self::Watch(task.to_owned())),
            _ => Err("neither join nor watch"),
        }
    }
}

/// The line of an answer: `None` where the request is granted, else why not.
///
/// # Real-time: setup only
pub fn answer(refused: Option<&str>) -> String {
    match refused {
        None => "ok\n".to_owned(),
        Some(why) => {
            let why: String = why.chars().filter(|c| !c.is_control()).take(LINE_MAX / 4).collect();
            format!("no {why}\n")
        }
    }
}

/// What an answer says.
///
/// # Errors
///
/// Why the request was refused.
///
/// # Real-time: setup only
pub fn answered(line: &[u8]) -> Result<(), String> {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end_matches('\n');
    match line.strip_prefix("no ") {
        _ if line == "ok" => Ok(()),
        Some(why) => Err(why.chars().filter(|c| !c.is_control()).collect()),
        None => Err("invalid answer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_and_others_are_refused() {
        for request in [Request::Join("a-1".to_owned()), Request::Watch("b".to_owned())] {
            assert_eq!(Request::parse(request.line().as_bytes()), Ok(request));
        }
        for line in [
            "",
            "\n",
            "join a\n",
            "punctual 1 join a",
            "punctual 2 join a\n",
            "punctual 1 eat a\n",
            "punctual 1 join ../a\n",
            "punctual 1 join a b\n",
            "x 1 join a\n",
            "punctual 1  a\n",
        ] {
            assert!(Request::parse(line.as_bytes()).is_err(), "{line:?}");
        }
        assert!(Request::parse(&[0xff, b'\n']).is_err());
    }

    #[test]
    fn answers_are_one_line() {
        assert_eq!(answered(answer(None).as_bytes()), Ok(()));
        let said = answer(Some("it is\n\u{1b}taken"));
        assert_eq!(said, "no it istaken\n");
        assert_eq!(answered(said.as_bytes()), Err("it istaken".to_owned()));
        assert!(answered(b"ok then\n").is_err() && answered(b"").is_err());
    }
}
