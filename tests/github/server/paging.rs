//! Pages of lists, with the `Link` header as GitHub writes it.

use super::exchange::Answer;

/// The part of a list that was asked for, and the `Link` header, if there is more than one page.
pub struct Page<T> {
    pub items: Vec<T>,
    pub link: Option<String>,
}

/// `place` is the URL of the list without its query.
pub fn page<T>(all: Vec<T>, query: &[(String, String)], place: &str) -> Page<T> {
    let number = |name: &str| query.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.parse().ok());
    let size: usize = number("per_page").unwrap_or(30).clamp(1, 100);
    let at: usize = number("page").unwrap_or(1).max(1);
    let last = all.len().div_ceil(size).max(1);
    let items = all.into_iter().skip((at - 1) * size).take(size).collect();
    let rest: Vec<String> =
        query.iter().filter(|(key, _)| key != "page").map(|(key, value)| format!("{key}={}", encode(value))).collect();
    let to = |page: usize, relation: &str| {
        let mut query = rest.clone();
        query.push(format!("page={page}"));
        format!("<{place}?{}>; rel=\"{relation}\"", query.join("&"))
    };
    let mut links = Vec::new();
    if at > 1 {
        links.push(to(at - 1, "prev"));
    }
    if at < last {
        links.push(to(at + 1, "next"));
        links.push(to(last, "last"));
    }
    if at > 1 {
        links.push(to(1, "first"));
    }
    Page { items, link: (last > 1).then(|| links.join(", ")) }
}

pub fn linked(answer: Answer, link: Option<String>) -> Answer {
    match link {
        Some(link) => answer.with("link", link),
        None => answer,
    }
}

pub fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") }).collect()
}
