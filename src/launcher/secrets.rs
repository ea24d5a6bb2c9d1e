//! The secrets of the tracker, the forge and the server: finds them in variables and removes them from texts. A secret is recognised as a
//! whole, line by line, JSON-escaped, in base64, percent-encoded, and as the rest that a truncation left.

use std::ops::Range;

use secrecy::{ExposeSecret, SecretString};

use crate::config::wire::MASK;

/// The shortest value in bytes that is recognised within a text; shorter ones are too likely to be part of something else.
const SHORTEST: usize = 8;
/// The same for one line of a secret that has several.
const SHORTEST_LINE: usize = 16;
/// The shortest rest of a truncated secret that is recognised. A shorter one reveals hardly more than the kind of secret.
const SHORTEST_REST: usize = 12;

/// The secrets that must never reach a worker: names of variables and values.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    pub names: Vec<String>,
    pub values: Vec<SecretString>,
}

impl Secrets {
    /// Whether this variable must not be passed on.
    pub fn hide(&self, name: &str, value: &str) -> bool {
        self.names.iter().any(|secret| secret == name) || self.found_in(value)
    }

    /// Whether the text contains a secret: plain, in base64 (alone, or as a part of something longer) or percent-encoded.
    pub fn found_in(&self, text: &str) -> bool {
        if self.values.is_empty() {
            return false;
        }
        let whole = |text: &str| decode_base64(text).is_some_and(|decoded| self.within(&decoded));
        if self.within(text.as_bytes()) || self.within(&decode_percent(text)) || whole(text.trim_end_matches('=')) {
            return true;
        }
        // The text before a base64 part decides where its first byte begins: `name=`, a path, `user:` inside of it.
        text.split(|c: char| !(c.is_ascii_alphanumeric() || "+/-_".contains(c)))
            .filter(|run| run.len() >= SHORTEST)
            .any(|run| (0..4).filter_map(|skip| run.get(skip..)).any(whole))
    }

    /// Returns the text with every secret masked.
    pub fn cut_from(&self, text: &str) -> String {
        self.without(text, |_| MASK.to_owned())
    }

    /// Returns the text with asterisks for every secret, of the same length in bytes, so that positions stay valid.
    pub fn starred(&self, text: &str) -> String {
        self.without(text, |width| "*".repeat(width))
    }

    fn without(&self, text: &str, instead: impl Fn(usize) -> String) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for place in self.places(text) {
            out.push_str(text.get(at..place.start).unwrap_or_default());
            out.push_str(&instead(place.len()));
            at = place.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }

    /// Returns the ranges of secrets, in order and without overlaps.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let mut plain: Vec<Range<usize>> = Vec::new();
        for form in self.values.iter().flat_map(|secret| forms(secret.expose_secret())) {
            plain.extend(text.match_indices(&form).map(|(at, _)| at..at + form.len()));
            plain.extend(rests(text, &form));
        }
        let mut all = apart(plain);
        if self.values.is_empty() {
            return all;
        }
        // Words that contain an encoded secret. The ranges found so far do not count as part of a word.
        let mut bytes = text.as_bytes().to_vec();
        all.iter().for_each(|place| bytes[place.clone()].fill(b'*'));
        let rest = String::from_utf8_lossy(&bytes).into_owned();
        let is_edge = |c: char| !(c.is_ascii_alphanumeric() || "+/=_-%.~".contains(c));
        let mut at = 0;
        for word in rest.split_inclusive(is_edge) {
            let bare = word.trim_end_matches(is_edge);
            if bare.len() >= SHORTEST && self.found_in(bare) {
                all.push(at..at + bare.len());
            }
            at += word.len();
        }
        apart(all)
    }

    fn within(&self, text: &[u8]) -> bool {
        self.values
            .iter()
            .map(|secret| secret.expose_secret().trim().as_bytes())
            .filter(|secret| !secret.is_empty())
            .any(|secret| {
                let part = secret.len() >= SHORTEST && text.windows(secret.len()).any(|window| window == secret);
                part || text == secret
            })
    }
}

/// Sorts the ranges and joins those that overlap.
fn apart(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.sort_by_key(|place| (place.start, place.end));
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(places.len());
    for place in places {
        match apart.last_mut() {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => apart.push(place),
        }
    }
    apart
}

/// Returns the forms in which a secret is searched for: the whole and, if it has several, its lines (a key is printed and recorded so);
/// each plain and JSON-escaped, once and twice.
fn forms(secret: &str) -> Vec<String> {
    let whole = secret.trim();
    // A variable may hold a key on one line, with its line ends written as `\n`. The key's first and last line are not secret.
    let lines = whole.lines().flat_map(|line| line.split("\\n")).map(str::trim);
    let lines = lines.filter(|line| line.len() >= SHORTEST_LINE && !line.starts_with("-----"));
    let parts: Vec<&str> = if has_lines(whole) { lines.chain([whole]).collect() } else { vec![whole] };
    let mut forms: Vec<String> = Vec::new();
    for part in parts.into_iter().filter(|part| part.len() >= SHORTEST) {
        let once = in_json(part);
        for form in [part.to_owned(), part.replace('/', "\\/"), in_json(&once), once] {
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
    }
    forms
}

fn has_lines(text: &str) -> bool {
    text.contains('\n') || text.contains("\\n")
}

/// Returns the text JSON-escaped, without the quotes around it.
fn in_json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// Returns the ranges of what truncation left of a secret: its beginning before the gap, its end behind it.
fn rests(text: &str, form: &str) -> Vec<Range<usize>> {
    let least = least_rest(form);
    let (Some(head), Some(tail)) = (form.get(..least), form.get(form.len().saturating_sub(least)..)) else {
        return Vec::new();
    };
    // A rest of several lines is found by its lines.
    if least >= form.len() || has_lines(form) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (at, _) in text.match_indices(head) {
        let same = text.as_bytes()[at..].iter().zip(form.as_bytes()).take_while(|(have, want)| have == want).count();
        if text.get(at + same..).is_some_and(is_cut_before) {
            found.push(at..at + same);
        }
    }
    for (at, _) in text.match_indices(tail) {
        let end = at + tail.len();
        let backwards = text.as_bytes()[..end].iter().rev().zip(form.as_bytes().iter().rev());
        let start = end - backwards.take_while(|(have, want)| have == want).count();
        if text.get(..start).is_some_and(is_cut_behind) {
            found.push(start..end);
        }
    }
    found
}

/// Returns the shortest rest of this form that counts. Of an address, the scheme and the host alone reveal nothing.
fn least_rest(form: &str) -> usize {
    let usual = if form.len() >= SHORTEST_LINE { SHORTEST_REST } else { (form.len() * 3).div_ceil(4).max(SHORTEST) };
    let path = form.find("://").and_then(|at| Some(at + 3 + form.get(at + 3..)?.find('/')?));
    path.map_or(usual, |path| usual.max(path + SHORTEST))
}

/// What may follow or precede a truncated text: nothing, an ellipsis, a quote, a line end.
const EDGES: [&str; 8] = ["…", "...", "\"", "'", "`", "\n", "\\n", "\u{fffd}"];

fn is_cut_before(rest: &str) -> bool {
    rest.is_empty() || EDGES.iter().any(|edge| rest.starts_with(edge))
}

fn is_cut_behind(before: &str) -> bool {
    before.is_empty() || EDGES.iter().any(|edge| before.ends_with(edge))
}

fn decode_percent(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escaped = (*byte == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    out
}

/// Decodes both base64 alphabets, without padding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let (mut bits, mut filled) = (0_u32, 0_u32);
    for byte in text.trim().bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(digit)) & 0x00ff_ffff;
        filled += 6;
        if filled >= 8 {
            filled -= 8;
            out.push(u8::try_from(bits >> filled & 0xff).unwrap_or_default());
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(values: &[&str]) -> Secrets {
        let values = values.iter().map(|value| SecretString::from(*value)).collect();
        Secrets { names: Vec::new(), values }
    }

    const TOKEN: &str = "ghp_0123456789abcdefghijklmnop";

    #[test]
    fn a_secret_goes_whatever_it_is_wrapped_in() {
        let known = secrets(&["lin/api+s3cret\"x"]);
        for (text, left) in [
            (r#"a lin/api+s3cret"x b"#, "a *** b"),
            (r#"{"a":"lin/api+s3cret\"x"}"#, r#"{"a":"***"}"#),
            (r#"{"a":"{\"b\":\"lin/api+s3cret\\\"x\"}"}"#, r#"{"a":"{\"b\":\"***\"}"}"#),
            ("https://u:lin%2Fapi%2Bs3cret%22x@host", "https://u:***@host"),
            // base64 of `user:lin/api+s3cret"x`
            ("Basic dXNlcjpsaW4vYXBpK3MzY3JldCJ4 end", "Basic *** end"),
            ("nothing of it", "nothing of it"),
        ] {
            assert_eq!(known.cut_from(text), left, "{text}");
        }
        assert_eq!(secrets(&["a/b/c/d/e/f"]).cut_from(r"x a\/b\/c\/d\/e\/f y"), "x *** y");
    }

    #[test]
    fn what_a_cut_leaves_of_it_goes_too() {
        let known = secrets(&[TOKEN]);
        for (text, left) in [
            ("it is ghp_0123456789ab", "it is ***"),
            ("it is ghp_0123456789ab… and on", "it is ***… and on"),
            (r#"{"said":"it is ghp_0123456789ab"}"#, r#"{"said":"it is ***"}"#),
            ("efghijklmnop is its end", "*** is its end"),
            ("…efghijklmnop is its end", "…*** is its end"),
            // Not truncated: the text is about such tokens.
            ("ghp_0123456789 is how they begin", "ghp_0123456789 is how they begin"),
            ("ghp_01", "ghp_01"),
        ] {
            assert_eq!(known.cut_from(text), left, "{text}");
            assert_eq!(known.starred(text).len(), text.len(), "{text}");
        }
        // Wherever it is truncated, no more than the kind of secret is revealed.
        let text = format!("say {TOKEN} twice");
        for cut in 0..=text.len() {
            for half in [&text[..cut], &text[cut..]] {
                let told = known.cut_from(half);
                let longest = (0..TOKEN.len()).flat_map(|from| (from..=TOKEN.len()).map(move |to| &TOKEN[from..to]));
                let longest = longest.filter(|part| told.contains(part)).map(str::len).max().unwrap_or(0);
                assert!(longest < SHORTEST_REST, "{half:?} tells {told:?}");
            }
        }
        let hook = secrets(&["https://hooks.example.com/services/T0/B0/0123456789"]);
        assert_eq!(hook.cut_from("see https://hooks.example.com/"), "see https://hooks.example.com/");
        assert_eq!(hook.cut_from("see https://hooks.example.com/services/T0/B…"), "see ***…");
    }

    #[test]
    fn of_two_secrets_that_begin_alike_neither_is_told() {
        for order in [["0123456789abcdef", "0123456789abcdef-ada"], ["0123456789abcdef-ada", "0123456789abcdef"]] {
            assert_eq!(secrets(&order).cut_from("by 0123456789abcdef-ada, 0123456789abcdef"), "by ***, ***");
        }
    }

    #[test]
    fn a_key_of_several_lines_is_known_by_each_of_them() {
        let key =
            "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA04up8hoqzS1\nqW3Zr5PAj1lO0Yk2tZ8cXw9mQ\nab==\n-----END KEY-----\n";
        let known = secrets(&[key]);
        let record = "7 out -----BEGIN KEY-----\n7 out MIIEpAIBAAKCAQEA04up8hoqzS1\n8 out qW3Zr5PAj1lO0Yk2tZ8cXw9mQ\n";
        assert_eq!(known.cut_from(record), "7 out -----BEGIN KEY-----\n7 out ***\n8 out ***\n");
        let written_out = secrets(&[&key.replace('\n', "\\n")]);
        assert_eq!(written_out.cut_from(record), known.cut_from(record));
        let json = serde_json::to_string(key).unwrap();
        assert!(!known.cut_from(&json).contains("MIIE"), "{}", known.cut_from(&json));
    }

    #[test]
    fn stars_take_the_same_place() {
        let text = format!("é {TOKEN} and Z2hwXzAxMjM0NTY3ODlhYmNkZWZnaGlqa2xtbm9w, é");
        let starred = secrets(&[TOKEN]).starred(&text);
        assert_eq!(starred, format!("é {} and {}, é", "*".repeat(30), "*".repeat(40)));
    }
}
