//! Parses the arguments of a `tk` command. Unknown options are errors; an option's value is the next argument or follows `=`.

use super::failure::Failure;

pub struct Arguments<'a> {
    rest: std::slice::Iter<'a, String>,
}

/// One argument: an option or a plain word.
pub enum Argument<'a> {
    Option(Opt<'a>),
    Word(&'a str),
}

/// An option, with its value if it was written as `--name=value`.
pub struct Opt<'a> {
    pub name: &'a str,
    glued: Option<&'a str>,
}

impl<'a> Arguments<'a> {
    pub fn new(arguments: &'a [String]) -> Self {
        Self { rest: arguments.iter() }
    }

    /// Returns the next argument. A lone `-` is a word.
    pub fn next(&mut self) -> Option<Argument<'a>> {
        let text = self.rest.next()?.as_str();
        if !text.starts_with('-') || text == "-" {
            return Some(Argument::Word(text));
        }
        let (name, glued) = match text.split_once('=') {
            Some((name, value)) if text.starts_with("--") => (name, Some(value)),
            _ => (text, None),
        };
        Some(Argument::Option(Opt { name, glued }))
    }

    pub fn value(&mut self, option: &Opt<'a>) -> Result<&'a str, Failure> {
        match option.glued {
            Some(value) => Ok(value),
            None => match self.rest.next() {
                Some(value) => Ok(value),
                None => Err(Failure::MissingValue(option.name.to_owned())),
            },
        }
    }
}

impl Opt<'_> {
    pub fn unknown(&self) -> Failure {
        match self.glued {
            Some(value) => Failure::UnknownOption(format!("{}={value}", self.name)),
            None => Failure::UnknownOption(self.name.to_owned()),
        }
    }

    /// Returns an error if the option was given a value, for options that take none.
    pub fn plain(&self) -> Result<(), Failure> {
        if self.glued.is_some() { Err(self.unknown()) } else { Ok(()) }
    }
}

/// Returns the tags of a comma-separated list; empty ones are left out.
pub fn tags(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|tag| !tag.is_empty())
}

/// Removes `--json` from the arguments. Returns whether it was there, and the other arguments.
pub fn take_json(arguments: &[String]) -> (bool, Vec<String>) {
    let rest: Vec<String> = arguments.iter().filter(|argument| *argument != "--json").cloned().collect();
    (rest.len() != arguments.len(), rest)
}

/// Returns the words of a command that takes no options; any option is an error.
pub fn only_words(arguments: &[String]) -> Result<Vec<&str>, Failure> {
    let mut walk = Arguments::new(arguments);
    let mut words = Vec::new();
    while let Some(argument) = walk.next() {
        match argument {
            Argument::Word(word) => words.push(word),
            Argument::Option(option) => return Err(option.unknown()),
        }
    }
    Ok(words)
}
