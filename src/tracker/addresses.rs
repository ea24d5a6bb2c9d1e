//! Finds addresses of files in the text of a ticket.

use crate::domain::service::Attachment;

/// Returns the files of the service that a text refers to, each once. `name_of` returns the file name for an address of the
/// service, and `None` for any other address.
pub fn attachments_in(text: &str, name_of: impl Fn(&str) -> Option<String>) -> Vec<Attachment> {
    let mut found: Vec<Attachment> = Vec::new();
    for (at, _) in text.match_indices("http") {
        let rest = &text[at..];
        let end = rest.find(|c: char| c.is_whitespace() || "()<>[]\"'`".contains(c)).unwrap_or(rest.len());
        let url = rest[..end].trim_end_matches(['.', ',', ';']);
        if let Some(name) = name_of(url)
            && found.iter().all(|known| known.url != url)
        {
            found.push(Attachment { url: url.to_owned(), name });
        }
    }
    found
}
