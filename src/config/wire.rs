//! How durations, secrets and paths are written in the file: serde adapters and the schema formats that go with them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// What a masked secret looks like wherever settings are shown.
pub const MASK: &str = "***";

/// Schema formats that the loader gives a meaning to.
pub const FORMAT_DURATION: &str = "duration-ms";
pub const FORMAT_SECRET: &str = "secret";
pub const FORMAT_PATH: &str = "path";

macro_rules! marker {
    ($(#[$doc:meta])* $name:ident, $schema:expr) => {
        $(#[$doc])*
        pub struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }

            fn inline_schema() -> bool {
                true
            }
        }
    };
}

marker! {
    /// Milliseconds, or text such as `30s`. Zero is off.
    Millis, json_schema!({ "type": ["integer", "string"], "format": FORMAT_DURATION, "minimum": 0 })
}
marker! {
    /// Milliseconds above zero, or text such as `30s`.
    PositiveMillis, json_schema!({ "type": ["integer", "string"], "format": FORMAT_DURATION, "minimum": 1 })
}
marker! {
    /// Milliseconds, or text such as `30s`. Zero or less is off.
    MillisOrOff, json_schema!({ "type": ["integer", "string"], "format": FORMAT_DURATION })
}
marker! {
    /// A secret, usually `$NAME`.
    SecretText, json_schema!({ "type": "string", "format": FORMAT_SECRET })
}
marker! {
    /// A path: `$NAME`, `~` and relative to the workflow file.
    PathText, json_schema!({ "type": "string", "format": FORMAT_PATH })
}
marker! {
    /// Anything, passed on unchanged.
    Anything, json_schema!(true)
}

/// A `Duration` as whole milliseconds. Negative numbers read as zero.
pub mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(span: &Duration, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u64(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
        let millis = i64::deserialize(input)?;
        Ok(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
    }
}

/// The same where the key may be left out.
pub mod optional_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(span: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => super::millis::serialize(span, out),
            None => out.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
        let millis = Option::<i64>::deserialize(input)?;
        Ok(millis.map(|millis| Duration::from_millis(u64::try_from(millis).unwrap_or(0))))
    }
}

/// A secret that serializes as [`MASK`].
pub mod secret {
    use secrecy::SecretString;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(secret: &Option<SecretString>, out: S) -> Result<S::Ok, S::Error> {
        match secret {
            Some(_) => out.serialize_str(super::MASK),
            None => out.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<SecretString>, D::Error> {
        Ok(Option::<String>::deserialize(input)?.map(SecretString::from))
    }
}

/// Named secrets; each serializes as [`MASK`].
pub mod secret_map {
    use std::collections::BTreeMap;

    use secrecy::SecretString;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(secrets: &BTreeMap<String, SecretString>, out: S) -> Result<S::Ok, S::Error> {
        out.collect_map(secrets.keys().map(|name| (name, super::MASK)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<String, SecretString>, D::Error> {
        let plain = BTreeMap::<String, String>::deserialize(input)?;
        Ok(plain.into_iter().map(|(name, value)| (name, SecretString::from(value))).collect())
    }
}

/// A list; a single value is a list of one.
#[derive(serde::Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

pub fn one_or_many<'de, D, T>(input: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de>,
{
    Ok(match <OneOrMany<T> as serde::Deserialize>::deserialize(input)? {
        OneOrMany::One(value) => vec![value],
        OneOrMany::Many(values) => values,
    })
}

/// The schema of a word out of a fixed list, for enums that live in `domain`.
pub fn one_of(words: &[&str]) -> Schema {
    json_schema!({ "type": "string", "enum": words })
}

/// A list of such words.
pub fn list_of(words: &[&str]) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "enum": words } })
}
