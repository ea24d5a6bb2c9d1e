//! What a live agent is told between its prompts.

use crate::domain::job::HumanMessage;

pub const WRAP_UP: &str = "Your budget is nearly spent. Commit what you have now, write down what is left to do with \
`tk comment`, and end your turn. Do not start anything new.";

pub const NUDGE: &str = "Nothing has been heard from you for a while. If something hangs, leave it and go on another way; if you wait for a \
person, say what you need with `tk blocked`; if you are done, declare it.";

/// Returns people's messages as one text for a prompt.
pub fn words(words: &[HumanMessage]) -> String {
    words.iter().map(said).collect::<Vec<_>>().join("\n\n")
}

fn said(word: &HumanMessage) -> String {
    let name = word.key.as_ref().map(|key| format!(" (remark {})", key.handle())).unwrap_or_default();
    format!("{} says{name}:\n{}", word.from, word.text.trim())
}
