//! What is ours in the text of a pull request, told apart from what people wrote around it.

/// What is between these in the text of a pull request is ours.
const BODY_FROM: &str = "<!-- dirigent:body -->\n";
const BODY_TO: &str = "\n<!-- dirigent:end -->";

pub fn our_body(text: &str) -> String {
    format!("{BODY_FROM}{text}{BODY_TO}")
}

/// The text with our part of it replaced; where somebody removed it, it comes back at the end.
pub fn with_our_body(old: &str, text: &str) -> String {
    let ours = old.split_once(BODY_FROM).and_then(|(before, rest)| Some((before, rest.split_once(BODY_TO)?.1)));
    match ours {
        Some((before, after)) => format!("{before}{}{after}", our_body(text)),
        None => format!("{old}\n{}", our_body(text)),
    }
}

/// How a comment of ours is found again.
pub fn mark(key: &str) -> String {
    format!("<!-- dirigent:{key} -->")
}
