//! Numbers and names in sentences for people.

/// Formats a count: `1 ticket`, `2 tickets`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// Returns the values in the order in which they come first, each once.
pub fn each_once<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// How many letters of a run's id are shown to people. Commands that take a run accept them.
pub const SHORT_RUN: usize = 6;
const RUN_ID: usize = 26;

/// Shortens every run id in the text to its last letters.
pub fn short_run_ids(text: &str) -> String {
    let is_id = |word: &&str| {
        word.len() == RUN_ID && word.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
    };
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_id);
    words.fold(text.to_owned(), |text, id| text.replace(id, short_run(id)))
}

pub fn short_run(id: &str) -> &str {
    id.len().checked_sub(SHORT_RUN).and_then(|start| id.get(start..)).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_named_once_where_it_came_first() {
        assert_eq!(each_once(["ann", "bob", "ann", "ann", "bob"]), ["ann", "bob"]);
        assert!(each_once::<u8>([]).is_empty());
    }
}
