//! `dep`, `undep`, `link`, `unlink`: change dependencies and links between tickets.

use super::arguments::only_words;
use super::cycles;
use super::failure::Failure;
use super::session::{TkCall, TkOutput};
use super::tickets::Tickets;
use crate::tracker::tk::{Document, Store, StoreError};

pub fn dep(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let words = only_words(arguments)?;
    let [id, dep, ..] = words[..] else {
        return Err(Failure::Usage(
            "Usage: ticket dep <id> <dependency-id>\n       ticket dep tree <id>  - show dependency tree\n       ticket dep cycle      - find dependency cycles"
                .into(),
        ));
    };
    let store = session.store()?;
    let (id, dep) = (store.resolve(id)?, store.resolve(dep)?);
    if !store.update(&id, |doc| Ok(doc.list_add("deps", &dep)))? {
        return Ok(TkOutput::line("Dependency already exists"));
    }
    let cycle = cycles::through(&Tickets::load(session, &store)?, &id);
    let warning = cycle.map(|path| format!("Warning: this closes a dependency cycle: {}", path.join(" -> ")));
    Ok(TkOutput::line(format!("Added dependency: {id} -> {dep}")).warn(warning))
}

pub fn undep(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let words = only_words(arguments)?;
    let [id, dep, ..] = words[..] else {
        return Err(Failure::Usage("Usage: ticket undep <id> <dependency-id>".into()));
    };
    let store = session.store()?;
    let id = store.resolve(id)?;
    let dep = resolve_listed(&store, &id, "deps", dep)?;
    if store.update(&id, |doc| Ok(doc.list_remove("deps", &dep)))? {
        Ok(TkOutput::line(format!("Removed dependency: {id} -/-> {dep}")))
    } else {
        Ok(TkOutput::line("Dependency not found").with_code(1))
    }
}

pub fn link(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let words = only_words(arguments)?;
    if words.len() < 2 {
        return Err(Failure::Usage("Usage: ticket link <id> <id> [id...]".into()));
    }
    let store = session.store()?;
    let mut ids: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        let id = store.resolve(word)?;
        if ids.contains(&id) {
            return Err(Failure::said(format!("{id} is named twice; a ticket cannot be linked to itself")));
        }
        ids.push(id);
    }
    let locked = store.lock()?;
    // Every file is read before the first one is written, so that a broken file does not leave half of the links.
    for id in &ids {
        store.document(id)?;
    }
    let mut added = 0;
    for id in &ids {
        added += locked.update(id, |doc: &mut Document| {
            let others = ids.iter().filter(|other| *other != id);
            Ok(others.filter(|other| doc.list_add("links", other)).count())
        })?;
    }
    Ok(TkOutput::line(match added {
        0 => "All links already exist".to_owned(),
        _ => format!("Added {added} link(s) between {} tickets", ids.len()),
    }))
}

pub fn unlink(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let words = only_words(arguments)?;
    let [id, target, ..] = words[..] else {
        return Err(Failure::Usage("Usage: ticket unlink <id> <target-id>".into()));
    };
    let store = session.store()?;
    let id = store.resolve(id)?;
    let target = resolve_listed(&store, &id, "links", target)?;
    let locked = store.lock()?;
    if !locked.update(&id, |doc| Ok(doc.list_remove("links", &target)))? {
        return Ok(TkOutput::line("Link not found").with_code(1));
    }
    match locked.update(&target, |doc| Ok(doc.list_remove("links", &id))) {
        Ok(_) | Err(StoreError::NotFound(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(TkOutput::line(format!("Removed link: {id} <-> {target}")))
}

/// Resolves an id. A ticket whose file is gone is still found if it is in the list `key` of ticket `id`.
fn resolve_listed(store: &Store, id: &str, key: &str, typed: &str) -> Result<String, Failure> {
    match store.resolve(typed) {
        Err(StoreError::NotFound(typed)) => {
            let listed = store.document(id)?.list(key);
            let mut matches = listed.iter().filter(|item| **item == typed || item.contains(&typed));
            match (listed.contains(&typed), matches.next(), matches.next()) {
                (true, _, _) => Ok(typed),
                (false, Some(only), None) => Ok(only.clone()),
                _ => Err(StoreError::NotFound(typed).into()),
            }
        }
        other => Ok(other?),
    }
}
