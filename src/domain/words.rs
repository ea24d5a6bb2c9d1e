//! Numbers in sentences.

/// `1 ticket`, `2 tickets`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}
