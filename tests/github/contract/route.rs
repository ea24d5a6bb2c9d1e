//! Which operation of the description a method and a path mean.

use std::collections::BTreeMap;

/// One operation of GitHub's REST description.
#[derive(Debug)]
pub struct Route {
    /// `issues/list-for-repo`
    pub operation: String,
    pub method: String,
    /// `/repos/{owner}/{repo}/issues`
    pub template: String,
    segments: Vec<String>,
}

/// Names of parameters that may hold slashes: refs, branches and paths.
const MANY_SEGMENTS: [&str; 5] = ["{ref}", "{branch}", "{path}", "{basehead}", "{head}"];

impl Route {
    pub fn new(operation: &str, method: &str, template: &str) -> Self {
        let segments = split(template).map(str::to_owned).collect();
        Self { operation: operation.to_owned(), method: method.to_owned(), template: template.to_owned(), segments }
    }

    /// How many segments are words: the more there are, the more exactly a route fits.
    pub fn exactness(&self) -> usize {
        self.segments.iter().filter(|segment| !segment.starts_with('{')).count()
    }

    /// The path's parameters, decoded, if the path fits.
    pub fn parameters(&self, method: &str, path: &str) -> Option<BTreeMap<String, String>> {
        if !self.method.eq_ignore_ascii_case(method) {
            return None;
        }
        let given: Vec<&str> = split(path).collect();
        let mut found = BTreeMap::new();
        fits(&self.segments, &given, &mut found).then_some(found)
    }
}

fn split(path: &str) -> impl Iterator<Item = &str> {
    path.trim_matches('/').split('/').filter(|segment| !segment.is_empty())
}

fn fits(template: &[String], given: &[&str], found: &mut BTreeMap<String, String>) -> bool {
    let Some((first, rest)) = template.split_first() else { return given.is_empty() };
    if !first.starts_with('{') {
        return given.first() == Some(&first.as_str()) && fits(rest, &given[1..], found);
    }
    let most = if MANY_SEGMENTS.contains(&first.as_str()) { given.len() } else { given.len().min(1) };
    for taken in 1..=most {
        if fits(rest, &given[taken..], found) {
            let value = given[..taken].join("/");
            found.insert(first.trim_matches(['{', '}']).to_owned(), decode(&value));
            return true;
        }
    }
    false
}

/// Percent-decoding, for paths and queries.
pub fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match escaped {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The pairs of a query string, decoded.
pub fn query_pairs(query: &str) -> Vec<(String, String)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(&name.replace('+', " ")), decode(&value.replace('+', " ")))
        })
        .collect()
}
