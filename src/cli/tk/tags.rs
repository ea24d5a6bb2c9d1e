//! `tag`: adds tags to a ticket and removes tags from it.

use super::failure::Failure;
use super::session::{TkCall, TkOutput};

/// `tag <id> +x -y`: adds `x` and removes `y`; a bare word is added, too. Either all changes are made or none.
pub fn tag(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let Some((id, changes)) =
        arguments.split_first().filter(|(id, changes)| !changes.is_empty() && !id.starts_with('-'))
    else {
        return Err(Failure::Usage(format!("Usage: {} tag <id> +tag... -tag...", session.program)));
    };
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for change in changes {
        match change.strip_prefix('-') {
            Some(tag) => off.push(checked(tag)?),
            None => on.push(checked(change.strip_prefix('+').unwrap_or(change))?),
        }
    }
    if let Some(both) = on.iter().find(|tag| off.contains(tag)) {
        return Err(Failure::said(format!("the tag '{both}' cannot be put on and taken off at once")));
    }
    let store = session.store()?;
    let id = store.resolve(id)?;
    let (changed, tags) = store.update(&id, |doc| {
        let added = on.iter().filter(|tag| doc.list_add("tags", tag)).count();
        let removed = off.iter().filter(|tag| doc.list_remove("tags", tag)).count();
        Ok((added + removed, doc.list("tags")))
    })?;
    let tags = if tags.is_empty() { "no tags".to_owned() } else { tags.join(", ") };
    Ok(TkOutput::line(match changed {
        0 => format!("Nothing to change: {id} has {tags}"),
        _ => format!("Updated {id}: {tags}"),
    }))
}

/// Returns the tag, or an error if it contains characters with a special meaning in a YAML list.
fn checked(tag: &str) -> Result<&str, Failure> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || ",[]{}\"'#&*!|>%@`".contains(c);
    if tag.is_empty() || tag.contains(bad) || tag.starts_with(['-', '?', ':', '+']) || tag.ends_with(':') {
        return Err(Failure::said(format!("'{tag}' is not a tag: letters, digits and - _ . / : = + ~ between them")));
    }
    Ok(tag)
}
