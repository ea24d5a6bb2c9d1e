//! HTML comment markers that tell the runner's text in pull requests apart from text that people wrote around it.

/// Marks the start of the runner's part of a pull request's text; `BODY_TO` marks its end.
const BODY_FROM: &str = "<!-- dirigent:body -->\n";
const BODY_TO: &str = "\n<!-- dirigent:end -->";

pub fn our_body(text: &str) -> String {
    format!("{BODY_FROM}{text}{BODY_TO}")
}

/// Returns `old` with the runner's part replaced by `text`. If `old` has no such part, it is appended at the end.
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
