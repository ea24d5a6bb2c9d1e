//! A problem with a setting. The loader adds file, line and column.

/// One problem with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Full path of the key, such as `merge.method`.
    pub path: String,
    pub message: String,
    /// How to correct it.
    pub help: Option<String>,
    /// Keys that this problem may follow from. While one of them is wrong, this problem is not reported.
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
