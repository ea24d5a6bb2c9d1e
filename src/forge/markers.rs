//! HTML comment markers that tell the runner's text in pull requests apart from text that people wrote around it.

/// Marks the start of the runner's part of a pull request's text; `BODY_TO` marks its end. Both are on lines of their own.
pub const BODY_FROM: &str = "<!-- dirigent:body -->";
const BODY_TO: &str = "<!-- dirigent:end -->";

pub fn our_body(text: &str) -> String {
    format!("{BODY_FROM}\n{text}\n{BODY_TO}")
}

/// Returns `old` with the runner's part replaced by `text`. If `old` has no such part, it is appended at the end. Lines may end with `\r\n`,
/// as in every text that was edited in a browser.
pub fn with_our_body(old: &str, text: &str) -> String {
    let ours = old.split_once(BODY_FROM).and_then(|(before, rest)| Some((before, rest.split_once(BODY_TO)?.1)));
    match ours {
        Some((before, after)) => format!("{before}{}{after}", our_body(text)),
        None => format!("{old}\n{}", our_body(text)),
    }
}

/// Returns the hidden marker by which the runner finds its own comment again.
pub fn mark(key: &str) -> String {
    format!("<!-- dirigent:{key} -->")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_part_is_found_whatever_the_lines_end_with() {
        let old = format!("Mine.\n\n{}\n\nMine, too.", our_body("first\nline"));
        let new = format!("Mine.\n\n{}\n\nMine, too.", our_body("second"));
        assert_eq!(with_our_body(&old, "second"), new);
        let (edited, expected) = (old.replace('\n', "\r\n"), "Mine.\r\n\r\n{}\r\n\r\nMine, too.");
        let once = with_our_body(&edited, "second");
        assert_eq!(once, expected.replace("{}", &our_body("second")));
        assert_eq!(with_our_body(&once, "second"), once, "written again it is the same");
        assert_eq!(with_our_body("Mine.", "text"), format!("Mine.\n{}", our_body("text")));
    }
}
