//! How durations, secrets and paths are written in the workflow file: serde adapters and the schema formats that go with them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// What is shown in place of a secret wherever settings are shown.
pub const MASK: &str = "***";

/// The values of `format` in the schema that the loader interprets: duration, secret and path.
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
    /// A duration as milliseconds or as text such as `30s`. Zero is off.
    Millis, json_schema!({ "type": ["integer", "string"], "format": FORMAT_DURATION, "minimum": 0 })
}
marker! {
    /// A duration above zero, as milliseconds or as text such as `30s`.
    PositiveMillis, json_schema!({ "type": ["integer", "string"], "format": FORMAT_DURATION, "minimum": 1 })
}
marker! {
    /// A duration as milliseconds or as text such as `30s`. Zero or less is off.
    MillisOrOff, json_schema!({ "type": ["integer", "string"], "format": FORMAT_DURATION })
}
marker! {
    /// A secret, usually written as `$NAME`.
    SecretText, json_schema!({ "type": "string", "format": FORMAT_SECRET })
}
marker! {
    /// A path. `$NAME` and `~` are expanded; a relative path is relative to the workflow file.
    PathText, json_schema!({ "type": "string", "format": FORMAT_PATH })
}
marker! {
    /// Any value; it is passed on unchanged.
    Anything, json_schema!(true)
}

/// Serde adapter for a `Duration` as whole milliseconds. Negative numbers are read as zero.
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

/// Serde adapter for an optional `Duration` as whole milliseconds.
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

/// Serde adapter for an optional secret. It serializes as [`MASK`].
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

/// Serde adapter for secrets by name. Each serializes as [`MASK`].
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

/// A list. A single value is read as a list with one element.
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

/// Returns the schema of one word out of a fixed list, for enums that are defined in `domain`.
pub fn one_of(words: &[&str]) -> Schema {
    json_schema!({ "type": "string", "enum": words })
}

/// Returns the schema of a list of such words.
pub fn list_of(words: &[&str]) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "enum": words } })
}
