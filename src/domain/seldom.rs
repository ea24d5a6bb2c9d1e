//! A part of a record that is empty in most records. While it is empty, it takes no memory.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Dereferences to the part and serializes like it. An empty part and one that was never written are equal.
#[derive(Clone, Default)]
pub struct Seldom<T>(Option<Box<T>>);

/// A part whose default value stands for "never written".
pub trait Unwritten: Default + PartialEq + 'static {
    fn unwritten() -> &'static Self;
}

/// Implements `Unwritten` for a type, with the type's default as the empty value.
macro_rules! unwritten {
    ($part:ty) => {
        impl crate::domain::seldom::Unwritten for $part {
            fn unwritten() -> &'static Self {
                static EMPTY: std::sync::LazyLock<$part> = std::sync::LazyLock::new(<$part>::default);
                &EMPTY
            }
        }
    };
}
pub(crate) use unwritten;

impl<T: Unwritten> Seldom<T> {
    /// Frees the memory if the part is equal to its default again.
    pub fn tidy(&mut self) {
        if self.0.as_deref().is_some_and(|part| part == T::unwritten()) {
            self.0 = None;
        }
    }
}

impl<T: Unwritten> Deref for Seldom<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| T::unwritten())
    }
}

impl<T: Unwritten> DerefMut for Seldom<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: Unwritten> From<T> for Seldom<T> {
    fn from(part: T) -> Self {
        let mut kept = Self(Some(Box::new(part)));
        kept.tidy();
        kept
    }
}

impl<T: Unwritten> PartialEq for Seldom<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Unwritten + Eq> Eq for Seldom<T> {}

impl<T: Unwritten + fmt::Debug> fmt::Debug for Seldom<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}

impl<T: Unwritten + Serialize> Serialize for Seldom<T> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(out)
    }
}

impl<'de, T: Unwritten + Deserialize<'de>> Deserialize<'de> for Seldom<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        T::deserialize(input).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    struct Part {
        word: String,
    }
    unwritten!(Part);

    #[test]
    fn what_is_empty_takes_no_place_and_is_written_as_if_it_did() {
        let mut part = Seldom::<Part>::default();
        assert_eq!((part.word.as_str(), part.0.is_none()), ("", true));
        assert_eq!(serde_json::to_string(&part).unwrap(), r#"{"word":""}"#);
        part.word.push('a');
        assert_eq!(part.word, "a");
        assert_ne!(part, Seldom::default());
        part.word.clear();
        assert_eq!(part, Seldom::default(), "empty and never written are the same");
        part.tidy();
        assert!(part.0.is_none());
        let read: Seldom<Part> = serde_json::from_str(r#"{"word":""}"#).unwrap();
        assert!(read.0.is_none());
    }
}
