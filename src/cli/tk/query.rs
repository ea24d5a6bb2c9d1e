//! `query`: prints every ticket's front matter as one JSON object per line, with all scalars as strings and the keys in file order.

use std::ffi::OsString;

use super::arguments::only_words;
use super::failure::Failure;
use super::session::{Successor, TkCall, TkOutput};
use super::show::handed_over;
use crate::tracker::tk::{Document, StoreError};

pub fn query(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let filter = match arguments {
        [filter] if !filter.starts_with("--") => Some(filter.as_str()).filter(|filter| !filter.is_empty()),
        other => only_words(other)?.first().copied(),
    };
    let store = session.store()?;
    let (mut lines, mut warnings) = (String::new(), Vec::new());
    for id in store.ids()? {
        match store.document(&id) {
            Ok(doc) => {
                if let Some(object) = object(&doc) {
                    lines.push_str(&object);
                    lines.push('\n');
                }
            }
            Err(StoreError::NotFound(_)) => {}
            Err(_) if id.eq_ignore_ascii_case("readme") => {}
            Err(error) => warnings.push(format!("Warning: skipped {error}")),
        }
    }
    let Some(filter) = filter else { return Ok(TkOutput::text(lines).warn(warnings)) };
    let Some(program) = session.find_program("jq") else {
        let sentence = "a filter needs the program jq, which was not found; install it, or leave the filter out";
        return Err(Failure::Said { sentence: sentence.into(), code: 127 });
    };
    let arguments = vec![OsString::from("-c"), OsString::from(format!("select({filter})"))];
    let stdin = Some(handed_over(lines.as_bytes())?);
    Ok(TkOutput::exec(Successor { program, arguments, variables: Vec::new(), stdin }).warn(warnings))
}

fn object(doc: &Document) -> Option<String> {
    let mut keys: Vec<String> = Vec::new();
    for key in doc.keys().filter(|key| key.starts_with(|first: char| first.is_ascii_alphabetic())) {
        if !keys.iter().any(|known| *known == key) {
            keys.push(key.into_owned());
        }
    }
    let member = |key: &String| {
        let value = match doc.is_list(key) {
            true => serde_json::Value::from(doc.list(key)),
            false => serde_json::Value::from(doc.text(key).unwrap_or_default()),
        };
        format!("{}:{value}", serde_json::Value::from(key.as_str()))
    };
    (!keys.is_empty()).then(|| format!("{{{}}}", keys.iter().map(member).collect::<Vec<_>>().join(",")))
}
