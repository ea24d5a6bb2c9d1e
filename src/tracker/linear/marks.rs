//! The marks of the runner's comments, in the form in which Linear keeps them.
//!
//! Linear's editor drops hidden lines. So on Linear a mark is a line of code, `` `dirigent:KEY` ``; everywhere else in the program
//! it is the hidden line `<!-- dirigent:KEY -->` that the comments of every tracker have.

pub const HIDDEN: &str = "<!-- dirigent:";
const HIDDEN_END: &str = "-->";
const SHOWN: &str = "`dirigent:";
const NAME: &str = "dirigent:";

/// Converts a text for sending: each hidden mark becomes a line of code in a paragraph of its own.
pub fn shown(text: &str) -> String {
    let mut sent = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(HIDDEN) {
        let Some((key, behind)) = after.split_once(HIDDEN_END).filter(|(key, _)| is_key(key.trim())) else {
            sent.push_str(before);
            sent.push_str(HIDDEN);
            rest = after;
            continue;
        };
        sent.push_str(before);
        sent.truncate(sent.trim_end().len());
        let gap = if sent.is_empty() { "" } else { "\n\n" };
        sent.push_str(&format!("{gap}{SHOWN}{}`\n\n", key.trim()));
        rest = behind.trim_start();
    }
    sent.push_str(rest);
    sent.trim_end().to_owned()
}

/// Converts a text after reading: each line that contains only a mark becomes a hidden line.
pub fn hidden(text: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| match key_in(line) {
            Some(key) => format!("{HIDDEN}{key} {HIDDEN_END}"),
            None => line.to_owned(),
        })
        .collect();
    lines.join("\n")
}

/// Whether a text by another author contains anything that would be read as a mark, with any number of backticks.
pub fn has_mark(text: &str) -> bool {
    text.contains(HIDDEN) || text.split('`').skip(1).any(|code| code.trim_start().starts_with(NAME))
}

fn key_in(line: &str) -> Option<&str> {
    // A line break within a paragraph may appear as a backslash at the end of the line.
    let line = line.trim().trim_end_matches('\\').trim_end();
    line.strip_prefix(SHOWN)?.strip_suffix('`').filter(|key| is_key(key))
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c == '`' || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_sent_as_a_line_of_code_and_read_as_a_hidden_one() {
        let text = "## Pad\n\nwords\n\n<!-- dirigent:end -->\n\nbelow\n\n<!-- dirigent:workpad#0a1b -->";
        let sent = shown(text);
        assert_eq!(sent, "## Pad\n\nwords\n\n`dirigent:end`\n\nbelow\n\n`dirigent:workpad#0a1b`");
        assert_eq!(hidden(&sent), text);
        assert_eq!(shown(&hidden(&sent)), sent, "and again");
        assert_eq!(shown("words\n<!-- dirigent:end -->"), "words\n\n`dirigent:end`", "a paragraph of its own");
        assert_eq!(shown("<!-- dirigent:end -->\n<!-- dirigent:k#1 -->"), "`dirigent:end`\n\n`dirigent:k#1`");
    }

    #[test]
    fn nothing_else_is_a_mark() {
        for text in [
            "words with `dirigent:k#1` in them",
            "> `dirigent:k#1`",
            "\\`dirigent:k#1\\`",
            "`dirigent:two words`",
            "`dirigent:`",
        ] {
            assert_eq!(hidden(text), text);
        }
        for text in ["<!-- dirigent:no end", "<!-- dirigent:two words -->", "<!-- something else -->"] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(hidden("a\n`dirigent:k#1`\\\nb"), "a\n<!-- dirigent:k#1 -->\nb", "a broken line");
    }

    #[test]
    fn a_mark_in_somebodys_own_words_is_noticed() {
        for text in ["`dirigent:k`", "a\n`` dirigent:k ``", "```\ndirigent:k\n```", "<!-- dirigent:k -->"] {
            assert!(has_mark(text), "{text}");
        }
        assert!(!has_mark("dirigent: is here, and `this` is code of dirigent:"));
    }
}
