//! What the agent said since its last prompt, for runs whose result it is.

/// How many bytes of the end are kept.
const KEPT: usize = 128 << 10;

#[derive(Debug, Default)]
pub struct LastWords(String);

impl LastWords {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn add(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
        // Only at twice the limit, so that many lines cost little.
        if self.0.len() > 2 * KEPT {
            let from = self.0.len() - KEPT;
            let start = (from..self.0.len()).find(|at| self.0.is_char_boundary(*at)).unwrap_or(self.0.len());
            self.0.drain(..start);
        }
    }

    pub fn text(&self) -> Option<&str> {
        (!self.0.trim().is_empty()).then_some(self.0.as_str())
    }
}
