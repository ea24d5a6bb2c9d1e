//! A setting that cannot be what it is. The loader adds file, line and column.

/// One finding about one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Full path of the key, such as `merge.method`.
    pub path: String,
    pub message: String,
    /// How to put it right.
    pub help: Option<String>,
    /// Other keys that this follows from: while one of them is wrong, this is not worth saying.
    pub depends_on: Vec<String>,
}

impl Problem {
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), help: None, depends_on: Vec::new() }
    }

    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn depending_on(mut self, key: impl Into<String>) -> Self {
        self.depends_on.push(key.into());
        self
    }
}
