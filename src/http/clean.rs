//! Removes secrets and paths of this machine from texts that leave it.

use std::path::Path;

use crate::launcher::environment::Secrets;

/// Shorter paths are not replaced: they could be part of other words.
const SHORTEST_PATH: usize = 4;
/// Minimum length of a truncated path that is still replaced.
const SHORTEST_REST: usize = 8;

/// Replaces secrets and paths in texts.
#[derive(Debug, Clone, Default)]
pub struct Clean {
    secrets: Secrets,
    /// Paths of this machine with their replacements, the longest first.
    places: Vec<(String, &'static str)>,
}

impl Clean {
    pub fn new(secrets: Secrets, places: &[(&Path, &'static str)]) -> Self {
        let mut known: Vec<(String, &'static str)> = Vec::new();
        for (path, word) in places {
            // Messages may contain either form.
            for path in [Some(path.to_path_buf()), path.canonicalize().ok()].into_iter().flatten() {
                let path = path.display().to_string();
                if path.len() >= SHORTEST_PATH && !known.iter().any(|(known, _)| *known == path) {
                    known.push((path, word));
                }
            }
        }
        known.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Self { secrets, places: known }
    }

    /// Removes only the secrets. Paths stay, because a person has to judge the text as it is.
    pub fn without_secrets(&self, text: &str) -> String {
        self.secrets.cut_from(text)
    }

    /// Masks secrets and paths with the same number of bytes, so that offsets in the text stay valid.
    pub fn masked(&self, bytes: &[u8]) -> Vec<u8> {
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            text.push_str(&"?".repeat(chunk.invalid().len()));
        }
        let mut text = self.secrets.starred(&text);
        for (path, word) in &self.places {
            let width = path.len();
            let same_length: String = format!("{word:_<width$}").chars().take(width).collect();
            text = text.replace(path.as_str(), &same_length);
        }
        text.into_bytes()
    }

    /// Removes secrets and paths. JSON stays valid JSON.
    pub fn text(&self, text: &str) -> String {
        let mut text = self.secrets.cut_from(text);
        for (path, word) in &self.places {
            if text.contains(path.as_str()) {
                text = text.replace(path.as_str(), word);
            }
        }
        if text.contains('…') { self.without_rests(&text) } else { text }
    }

    /// Replaces paths that were truncated with `…` in their middle.
    fn without_rests(&self, text: &str) -> String {
        let mut parts: Vec<String> = text.split('…').map(str::to_owned).collect();
        let before_a_cut = parts.len().saturating_sub(1);
        for part in parts.iter_mut().take(before_a_cut) {
            let rest = |path: &str| (SHORTEST_REST..path.len()).rev().find(|end| part.ends_with(&path[..*end]));
            let found = self
                .places
                .iter()
                .find_map(|(path, word)| path.is_ascii().then(|| rest(path)).flatten().map(|rest| (rest, word)));
            if let Some((rest, word)) = found {
                part.truncate(part.len() - rest);
                part.push_str(word);
            }
        }
        parts.join("…")
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    #[test]
    fn secrets_and_places_go_and_the_longest_place_wins() {
        let secrets = Secrets { names: Vec::new(), values: vec![SecretString::from("ghp_0123456789")] };
        let clean = Clean::new(secrets, &[(Path::new("/home/ada"), "~"), (Path::new("/home/ada/work/repo"), "<repo>")]);
        let said = clean.text(r#"{"why":"/home/ada/work/repo/.dirigent/pause and /home/ada/x with ghp_0123456789"}"#);
        assert_eq!(said, r#"{"why":"<repo>/.dirigent/pause and ~/x with ***"}"#);
        let line = b"in /home/ada/work/repo/x: ghp_0123456789 \xff Z2hwXzAxMjM0NTY3ODk= end";
        let masked = clean.masked(line);
        assert_eq!(masked.len(), line.len());
        let masked = String::from_utf8(masked).unwrap();
        assert_eq!(masked, "in <repo>_____________/x: ************** ? ******************** end");
    }

    #[test]
    fn what_was_shortened_in_the_middle_of_a_secret_or_a_path_tells_neither() {
        let secrets = Secrets { names: Vec::new(), values: vec![SecretString::from("ghp_0123456789abcdef")] };
        let clean = Clean::new(secrets, &[(Path::new("/srv/work/repo"), "<repo>")]);
        let said = clean.text(r#"{"a":"in /srv/work/re…","b":"with ghp_0123456789…","c":"/srv/wo…"}"#);
        assert_eq!(said, r#"{"a":"in <repo>…","b":"with ***…","c":"/srv/wo…"}"#);
        assert_eq!(clean.masked(b"it ends ghp_0123456789"), b"it ends **************");
    }
}
