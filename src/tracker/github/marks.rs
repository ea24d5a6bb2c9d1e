//! The hidden marks in the runner's texts, by which a repeated write finds the first one.

use crate::tracker::below::is_end;

/// Must match the format that the engine's provenance reads.
const MARKER: &str = "<!-- dirigent:";
const PRIORITY: &str = "<!-- dirigent-priority: ";
const END: &str = " -->";

/// GitHub accepts 65,536 characters; the rest is reserved for the mark.
const LONGEST_BODY: usize = 65_000;
const POINTER: &str =
    "\n\n… cut here, because GitHub takes no longer text. The whole of it is with the run: `dirigent logs`.";

pub fn marker(key: &str) -> String {
    format!("{MARKER}{key}{END}")
}

/// Appends the mark as the last line of a text.
pub fn marked(body: &str, marker: &str) -> String {
    format!("{}\n{marker}", fitting(body))
}

/// Returns the mark on the last line of a text, the only place where it counts: people put quotes above their own text.
pub fn mark_of(body: &str) -> Option<&str> {
    let last = body.trim_end().lines().next_back()?;
    (last.starts_with(MARKER) && last.ends_with(END)).then_some(last)
}

/// Returns the last mark in a comment that is known by its id to be the runner's. People may have written below it.
pub fn mark_within(body: &str) -> Option<&str> {
    let is_mark = |line: &&str| line.starts_with(MARKER) && line.ends_with(END) && !is_end(line);
    body.lines().map(str::trim_end).rfind(is_mark)
}

pub fn carries(body: &str, key: &str) -> bool {
    mark_of(body).is_some_and(|mark| mark == marker(key))
}

/// Truncates a text that is too long for GitHub, with a pointer to the full text.
pub fn fitting(body: &str) -> String {
    match body.char_indices().nth(LONGEST_BODY) {
        None => body.to_owned(),
        Some(_) => {
            let kept = LONGEST_BODY - POINTER.chars().count();
            body.chars().take(kept).chain(POINTER.chars()).collect()
        }
    }
}

/// Returns the body of a ticket that the runner creates. The priority is hidden in it, because GitHub's issues have none.
pub fn ticket_body(description: &str, priority: Option<i64>, key: &str) -> String {
    let priority = priority.map(|priority| format!("\n{PRIORITY}{priority}{END}")).unwrap_or_default();
    format!("{}\n{priority}\n{}", fitting(description), marker(key)).replacen("\n\n\n", "\n\n", 1)
}

/// Splits the body of an issue that the runner's account created: the visible description, and the hidden priority. A body without a
/// mark has no hidden priority.
pub fn read_ticket_body(body: &str) -> (&str, Option<i64>) {
    let Some(mark) = mark_of(body) else { return (body, None) };
    let rest = body.trim_end().strip_suffix(mark).unwrap_or(body).trim_end();
    let last = rest.lines().next_back().unwrap_or_default();
    match last.strip_prefix(PRIORITY).and_then(|line| line.strip_suffix(END)) {
        Some(priority) => (rest.strip_suffix(last).unwrap_or(rest).trim_end(), priority.trim().parse().ok()),
        None => (rest, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_on_the_last_line_alone() {
        let body = marked("Started.", &marker("started:1#ab"));
        assert!(carries(&body, "started:1#ab"));
        assert!(!carries(&body, "started:1"), "a key that only begins the same");
        assert!(!carries(&format!("> {}\n\nwhy?", body.replace('\n', "\n> ")), "started:1#ab"), "quoted");
        assert!(carries(&body.replace('\n', "\r\n"), "started:1#ab"), "GitHub's own line ends");
    }

    #[test]
    fn a_long_text_is_cut_with_a_pointer_and_keeps_its_mark() {
        let body = marked(&"ü".repeat(70_000), &marker("k"));
        assert!(body.chars().count() <= 65_536);
        assert!(body.contains("cut here") && carries(&body, "k"));
    }

    #[test]
    fn a_ticket_of_ours_is_read_without_what_we_hid() {
        for priority in [Some(2), None] {
            let body = ticket_body("What was left over.", priority, "follow up 1");
            assert!(carries(&body, "follow up 1"), "{body:?}");
            assert_eq!(read_ticket_body(&body), ("What was left over.", priority), "{body:?}");
        }
        assert_eq!(read_ticket_body("a person's words\n"), ("a person's words\n", None));
    }
}
