//! What leaves the machine: without its secrets, and without its paths.

use std::path::Path;

use secrecy::ExposeSecret;

use crate::launcher::environment::Secrets;

/// Shorter secrets are part of other words.
const SHORTEST_SECRET: usize = 8;
/// Shorter paths stand in other words, too.
const SHORTEST_PATH: usize = 4;

/// Takes out of a text what is nobody's business.
#[derive(Debug, Clone, Default)]
pub struct Clean {
    secrets: Secrets,
    /// A path of this machine and what is said in its place, the longest first.
    places: Vec<(String, &'static str)>,
}

impl Clean {
    pub fn new(secrets: Secrets, places: &[(&Path, &'static str)]) -> Self {
        let mut known: Vec<(String, &'static str)> = Vec::new();
        for (path, word) in places {
            // Messages may name it either way.
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

    /// Only without secrets: what a person judges is shown as it is.
    pub fn without_secrets(&self, text: &str) -> String {
        self.secrets.cut_from(text)
    }

    /// The same number of bytes, so that places in the text stay what they are.
    pub fn masked(&self, bytes: &[u8]) -> Vec<u8> {
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            text.push_str(&"?".repeat(chunk.invalid().len()));
        }
        for secret in &self.secrets.values {
            let plain = secret.expose_secret().trim();
            let in_json = serde_json::to_string(plain).unwrap_or_default();
            for form in [plain, in_json.trim_matches('"')] {
                if form.len() >= SHORTEST_SECRET {
                    text = text.replace(form, &"*".repeat(form.len()));
                }
            }
        }
        // What holds one in another writing, as `Secrets` tells them apart.
        let is_edge = |c: char| !(c.is_ascii_alphanumeric() || "+/=_-%.~".contains(c));
        let coded: Vec<String> = text
            .split(is_edge)
            .filter(|word| word.len() >= SHORTEST_SECRET && self.secrets.found_in(word))
            .map(str::to_owned)
            .collect();
        for word in coded {
            text = text.replace(&word, &"*".repeat(word.len()));
        }
        for (path, word) in &self.places {
            let width = path.len();
            let same_length: String = format!("{word:_<width$}").chars().take(width).collect();
            text = text.replace(path.as_str(), &same_length);
        }
        text.into_bytes()
    }

    /// Also of JSON, which stays JSON.
    pub fn text(&self, text: &str) -> String {
        let mut text = self.secrets.cut_from(text);
        for (path, word) in &self.places {
            if text.contains(path.as_str()) {
                text = text.replace(path.as_str(), word);
            }
        }
        text
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
}
