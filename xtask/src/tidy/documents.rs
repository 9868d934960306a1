//! Markdown: one title a document, and no link into the tree that leads nowhere.
//!
//! Looks at one document's text at a time; whether a link's goal exists is asked of the list of
//! files, so that a check of links comes with the whole tree (see `check_links`).

use super::{File, Finding};

/// All checks of one document.
pub(crate) fn check(file: &File, found: &mut Vec<Finding>) {
    if !file.path.ends_with(".md") {
        return;
    }
    let titles: Vec<usize> = lines_outside_code(&file.text)
        .filter(|(_, line)| line.starts_with("# "))
        .map(|(number, _)| number)
        .collect();
    if titles.len() != 1 {
        found.push(file.finding(
            "title",
            titles.get(1).copied().unwrap_or(1),
            format!("{} lines begin with `# `", titles.len()),
            "a document has one subject",
            "exactly one `# Title`",
        ));
    }
}

/// Links from one document to another, or to a folder.
pub(crate) fn check_links(files: &[File], found: &mut Vec<Finding>) {
    for file in files.iter().filter(|file| file.path.ends_with(".md") && !file.is_data()) {
        let folder = file.path.rfind('/').map_or("", |end| &file.path[..end]);
        for (number, line) in lines_outside_code(&file.text) {
            for goal in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let goal = goal.split('#').next().unwrap_or_default();
                if goal.is_empty() || goal.contains("://") || goal.starts_with("mailto:") {
                    continue;
                }
                let path = join(folder, goal);
                let inside = format!("{path}/");
                if !files.iter().any(|file| file.path == path || file.path.starts_with(&inside)) {
                    let problem = format!("a link to `{goal}`");
                    let why = "there is no such file";
                    found.push(file.finding("link", number, problem, why, "the path from here"));
                }
            }
        }
    }
}

/// `goal` as seen from `folder`, without dots.
fn join(folder: &str, goal: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in goal.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Lines, numbered from 1, outside fenced blocks.
fn lines_outside_code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fence && !fenced).then_some((index + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_one_title() {
        let count = |text: &str| {
            let mut found = Vec::new();
            check(&File::new("a.md", text), &mut found);
            found.len()
        };
        assert_eq!(count("# A\n\n## B\n\n```sh\n# a comment\n```\n"), 0);
        assert_eq!(count("# A\n\n# B\n"), 1);
        assert_eq!(count("A\n"), 1);
    }

    #[test]
    fn a_link_leads_somewhere() {
        let broken = |text: &str| {
            let files = [File::new("docs/a.md", text), File::new("core/src/lib.rs", "")];
            let mut found = Vec::new();
            check_links(&files, &mut found);
            found.len()
        };
        assert_eq!(broken("[a](../core/src/lib.rs) [b](a.md#part) [c](../core) [d](#part)"), 0);
        assert_eq!(broken("[a](https://docs.rs/x) and `x[i](y)`"), 1, "known limit: code marks");
        assert_eq!(broken("[a](b.md)"), 1);
    }
}
