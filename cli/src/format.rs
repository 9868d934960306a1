//! Numbers, times and lines as shown to people: those of results, those of a terminal, and commands
//! of this program.

use std::path::Path;

use punctual_analysis::plain::shell_word;
pub(crate) use punctual_document::Paint;
pub(crate) use punctual_document::terminal::{Styled, columns, command, has_colours, width, wrap};
pub(crate) use punctual_report::format::{
    argument, count, count_or_dash, largest, long, ns, period, period_argument, plain, rate,
    sentence, share, whole, within,
};

use crate::stored::STATE;

/// A command of `punctual tune` about what the journals in `state` have, on a machine or in a
/// directory that stands for one; as it can be pasted here.
pub(crate) fn tune(word: &str, tree: Option<&Path>, state: &Path) -> String {
    let mut line = format!("punctual tune {word}");
    let option = |name, path: &Path| format!(" {name} {}", shell_word(&path.to_string_lossy()));
    line += &tree.map(|tree| option("--root", tree)).unwrap_or_default();
    if state != Path::new(STATE) {
        line += &option("--state", state);
    }
    plain(&command(&line))
}

/// Returns true where a browser can be opened here.
pub(crate) fn has_desktop() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_state_that_it_is_about() {
        let at = |tree: Option<&str>, state: &str| {
            let words = tune("revert", tree.map(Path::new), Path::new(state));
            words.split_once(" tune ").expect("the command").1.to_owned()
        };
        assert_eq!(at(None, STATE), "revert");
        assert_eq!(at(Some("a b"), "/s"), "revert --root 'a b' --state /s");
    }
}
