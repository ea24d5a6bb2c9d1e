//! The front matter as a tree in which every key and value has its place in the file.
//!
//! The tree does not know which keys are valid.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

/// A place in the workflow file. Lines and columns count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub line: u32,
    pub column: u32,
    /// Bytes from the start of the text.
    pub offset: usize,
    pub len: usize,
}

#[derive(Debug, Clone)]
pub struct Node {
    pub value: Value,
    pub place: Place,
    /// The path it was written under, if a dialect spells it differently.
    pub written_as: Option<String>,
}

#[derive(Debug, Clone)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub key: String,
    pub key_place: Place,
    pub node: Node,
}

impl Node {
    pub fn new(value: Value, place: Place) -> Self {
        Self { value, place, written_as: None }
    }

    pub fn empty_map() -> Self {
        Self::new(Value::Map(Vec::new()), Place { line: 1, column: 1, offset: 0, len: 0 })
    }

    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// Returns the value of a key that is written and not null.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node).filter(|node| !node.is_null())
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        match &mut self.value {
            Value::Map(entries) => entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node),
            _ => None,
        }
    }

    /// Returns the value at a path such as `a.b[0].c`.
    pub fn at(&self, path: &str) -> Option<&Node> {
        let mut node = self;
        for step in steps(path) {
            node = match step {
                Step::Key(key) => node.get(key)?,
                Step::Index(index) => match &node.value {
                    Value::List(items) => items.get(index)?,
                    _ => return None,
                },
            };
        }
        Some(node)
    }

    /// Returns the entry of the deepest key of `path` that is written.
    pub fn nearest_entry(&self, path: &str) -> Option<&Entry> {
        let mut found = None;
        let mut node = self;
        for step in steps(path) {
            match step {
                Step::Key(key) => {
                    let Some(entry) = node.entry(key) else { return found };
                    found = Some(entry);
                    node = &entry.node;
                }
                Step::Index(index) => match &node.value {
                    Value::List(items) if index < items.len() => node = &items[index],
                    _ => return found,
                },
            }
        }
        found
    }

    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        match &mut self.value {
            Value::Map(entries) => {
                let index = entries.iter().position(|entry| entry.key == key)?;
                Some(entries.remove(index))
            }
            _ => None,
        }
    }

    pub fn insert(&mut self, entry: Entry) {
        if let Value::Map(entries) = &mut self.value {
            entries.push(entry);
        }
    }

    /// Describes the value for people.
    pub fn found(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(flag) => format!("`{flag}`"),
            Value::Int(number) => format!("`{number}`"),
            Value::Float(number) => format!("`{number}`"),
            Value::Text(text) if text.chars().count() > 40 => {
                format!("\"{}...\"", text.chars().take(40).collect::<String>().escape_debug())
            }
            Value::Text(text) => format!("\"{}\"", text.escape_debug()),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        }
    }

    /// Describes the kind of the value for people, without its content.
    pub fn found_kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a true/false",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

fn steps(path: &str) -> impl Iterator<Item = Step<'_>> {
    path.split('.').filter(|part| !part.is_empty()).flat_map(|part| {
        let mut pieces = part.split('[');
        let key = pieces.next().filter(|key| !key.is_empty()).map(Step::Key);
        let indexes = pieces.filter_map(|piece| piece.trim_end_matches(']').parse().ok()).map(Step::Index);
        key.into_iter().chain(indexes)
    })
}

impl Place {
    /// The place of values that are not in the file but on the command line.
    pub const COMMAND_LINE: Self = Self { line: 0, column: 0, offset: 0, len: 0 };

    /// Returns the place, or `None` if it is not in the file.
    pub fn in_file(self) -> Option<Self> {
        (self.line > 0).then_some(self)
    }

    pub fn of(location: &Location) -> Self {
        let span = location.span();
        Self {
            line: location.line() as u32,
            column: location.column() as u32,
            offset: span.byte_offset().unwrap_or(0) as usize,
            len: span.byte_len().unwrap_or(0) as usize,
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(input)?;
        Ok(Node::new(spanned.value, Place::of(&spanned.referenced)))
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::Float(number as f64), Value::Int))
    }

    fn visit_i128<E>(self, number: i128) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::Float(number as f64), Value::Int))
    }

    fn visit_u128<E>(self, number: u128) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::Float(number as f64), Value::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = items.next_element()? {
            nodes.push(node);
        }
        Ok(Value::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let key_place = Place::of(&key.referenced);
            entries.push(Entry { key: key.value, key_place, node: map.next_value()? });
        }
        Ok(Value::Map(entries))
    }
}
