//! The man pages of the C library (section 3), of the comments of its header.
//!
//! One page for each function and type, and one of the whole, with its rules and constants. The
//! header is the one source: nothing is said here that it does not say.

/// A page.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    /// Of the function or type.
    pub(super) name: String,
    /// As man(1) reads it.
    pub(super) text: String,
}

/// A comment of the header, and what it is about.
#[derive(Debug, PartialEq)]
struct Block {
    /// Its lines, without their stars.
    comment: Vec<String>,
    /// The lines behind it, as they are.
    code: Vec<String>,
}

/// The subject of a block.
enum Subject {
    /// The header itself.
    Header,
    /// A function or a type.
    Named(String),
    /// Constants, which have no page of their own.
    Constants,
}

/// All pages of a header of this version.
pub(super) fn pages(header: &str, version: &str) -> Vec<Page> {
    let blocks = blocks(header);
    let mut overview = head("punctual", version);
    overview += ".SH NAME\npunctual \\- run periodic loops on Linux, and know how late each cycle \
                 was\n.SH SYNOPSIS\n.nf\n#include <punctual.h>\n\ncc x.c $(pkg\\-config \
                 \\-\\-cflags \\-\\-libs punctual)\n.fi\n";
    let (mut rules, mut constants, mut names) = (String::new(), String::new(), Vec::new());
    let mut pages = Vec::new();
    for block in &blocks {
        match block.subject() {
            // Its paragraphs hang.
            Subject::Header => rules += &verbatim(&block.comment),
            Subject::Constants => {
                constants += &described(&block.comment);
                constants += &verbatim(&block.code);
            }
            Subject::Named(name) => {
                pages.push(Page { text: block.page(&name, version), name: name.clone() });
                names.push(format!(".BR {name} (3)"));
            }
        }
    }
    overview += &format!(".SH DESCRIPTION\n{rules}.SH CONSTANTS\n{constants}");
    overview += &format!(".SH \"SEE ALSO\"\n{}\n", names.join("\n"));
    pages.push(Page { name: "punctual".to_owned(), text: overview });
    pages
}

impl Block {
    fn subject(&self) -> Subject {
        let code = self.code.join(" ");
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let last_word =
            |text: &str| text.rsplit(|c| !is_name(c)).next().unwrap_or_default().to_owned();
        if code.starts_with("#ifndef") {
            return Subject::Header;
        }
        if let Some((_, pointer)) = code.split_once("(*") {
            return Subject::Named(pointer.split(')').next().unwrap_or_default().to_owned());
        }
        if code.starts_with("typedef") {
            return Subject::Named(last_word(code.trim_end_matches(';')));
        }
        match code.split_once('(') {
            Some((before, _)) if code.ends_with("PUNCTUAL_NOEXCEPT;") => {
                Subject::Named(last_word(before))
            }
            _ => Subject::Constants,
        }
    }

    /// The page of a function or type.
    fn page(&self, name: &str, version: &str) -> String {
        let whole = self.comment.join(" ");
        let summary = whole.split(['.', ':', ';']).next().unwrap_or_default().trim();
        let code: Vec<String> =
            self.code.iter().map(|line| line.replace(" PUNCTUAL_NOEXCEPT", "")).collect();
        let mut page = head(name, version);
        page += &format!(".SH NAME\n{name} \\- {}\n", escaped(summary));
        page += &format!(".SH SYNOPSIS\n.nf\n#include <punctual.h>\n.fi\n{}", verbatim(&code));
        page += &format!(".SH DESCRIPTION\n{}", described(&self.comment));
        page + ".SH \"SEE ALSO\"\n.BR punctual (3)\n"
    }
}

/// The comments of a header that begin a line, each with the code behind it.
fn blocks(header: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut inside, mut open) = (false, false);
    for line in header.lines() {
        if line.starts_with("/*") {
            found.push(Block { comment: Vec::new(), code: Vec::new() });
            (inside, open) = (true, true);
        }
        let Some(block) = found.last_mut().filter(|_| open) else { continue };
        if inside {
            let text = line.trim_end_matches("*/").trim_end();
            let text = text.strip_prefix("/*").or(text.strip_prefix(" *")).unwrap_or(text);
            block.comment.push(text.strip_prefix(' ').unwrap_or(text).to_owned());
            inside = !line.ends_with("*/");
        } else if line.is_empty() {
            open = false;
        } else {
            block.code.push(line.to_owned());
        }
    }
    found.retain(|block| !block.code.is_empty());
    found
}

fn head(name: &str, version: &str) -> String {
    format!(".TH {} 3 \"\" \"punctual {version}\"\n", name.to_uppercase())
}

/// Text as lines that begin no request and whose signs are those that are typed.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

/// Lines as they stand.
fn verbatim(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| escaped(line)).collect();
    format!(".PP\n.nf\n{}\n.fi\n", lines.join("\n").trim_matches('\n'))
}

/// A comment: what is indented stands as it is, the rest flows.
fn described(comment: &[String]) -> String {
    let (mut text, mut flows) = (".PP\n".to_owned(), true);
    for line in comment.iter().skip_while(|line| line.is_empty()) {
        let indented = line.starts_with(' ');
        if indented == flows && !line.is_empty() {
            text += if indented { ".nf\n" } else { ".fi\n.br\n" };
            flows = !indented;
        }
        text += &if line.is_empty() { ".PP\n".to_owned() } else { escaped(line) + "\n" };
    }
    text + if flows { "" } else { ".fi\n" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "/*
 * x.h: rules.
 *
 * Answers. 0.
 */
#ifndef X_H
#define X_H

/* ---- Part ---- */

/* One cycle. */
typedef struct x_cycle {
    int n; /* its n */
} x_cycle;

/*
 * Waits: for a time.
 * .5 ns at least.
 *   -EPERM  not now
 * Real-time: in loop
 */
int x_wait(x_cycle *cycle,
           int n) PUNCTUAL_NOEXCEPT;

/* A body. */
typedef int (*x_fn)(void *data);

/* Which. */
enum {
    X_A = 0
};
";

    fn page(name: &str) -> String {
        let found = pages(HEADER, "1.2.3").into_iter().find(|page| page.name == name);
        found.map_or_else(String::new, |page| page.text)
    }

    #[test]
    fn functions_and_types_have_pages_and_constants_are_in_that_of_the_whole() {
        let names: Vec<String> = pages(HEADER, "1.2.3").into_iter().map(|page| page.name).collect();
        assert_eq!(names, ["x_cycle", "x_wait", "x_fn", "punctual"]);
        let whole = page("punctual");
        for part in ["\nAnswers. 0.\n", "\n    X_A = 0\n", "\n.BR x_wait (3)\n"] {
            assert!(whole.contains(part), "{part:?}: {whole}");
        }
        assert!(page("x_cycle").contains("\n    int n; /* its n */\n} x_cycle;\n"));
    }

    #[test]
    fn a_page_has_the_call_and_the_comment_and_no_line_is_taken_for_a_request() {
        let page = page("x_wait");
        assert!(page.starts_with(".TH X_WAIT 3 \"\" \"punctual 1.2.3\"\n"), "{page}");
        for part in [
            "\nx_wait \\- Waits\n",
            "\nint x_wait(x_cycle *cycle,\n           int n);\n",
            "\n\\&.5 ns at least.\n.nf\n  \\-EPERM  not now\n.fi\n.br\nReal\\-time: in loop\n",
        ] {
            assert!(page.contains(part), "{part:?}: {page}");
        }
    }
}
