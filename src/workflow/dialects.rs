//! Accepts other spellings of the same settings: Symphony's, pi-symphony's flat one, and aliases. Rewrites the tree into Dirigent's
//! spelling; every value keeps its place in the file and the path it was written under.

use super::tree::{Entry, Node, Value};
use crate::config::foreign::{Becomes, FOREIGN};
use crate::config::tracker::TrackerKind;

pub fn normalise(root: &mut Node) {
    flat_tracker_keys(root);
    for foreign in FOREIGN {
        if let Becomes::Ours(ours) = foreign.becomes
            && let (Some(from), Some(to)) = (foreign.key.split_once('.'), ours.split_once('.'))
        {
            alias(root, from, to);
        }
    }
    words(root, "merge", "executor", &[("gh", "forge"), ("land_skill", "prompt")]);
    if let Some(review) = root.get_mut("review") {
        split_model(review);
    }
    if let Some(Value::List(routes)) =
        root.get_mut("agent").and_then(|agent| agent.get_mut("routing")).map(|node| &mut node.value)
    {
        routes.iter_mut().for_each(split_model);
    }
}

/// Moves `tracker.api_key` and similar keys to `tracker.provider`.
fn flat_tracker_keys(root: &mut Node) {
    let Some(tracker) = root.get_mut("tracker") else { return };
    let kinds = [TrackerKind::Tk, TrackerKind::Github, TrackerKind::Linear];
    for key in kinds.into_iter().flat_map(TrackerKind::provider_keys) {
        let taken = tracker.get("provider").is_some_and(|provider| provider.entry(key).is_some());
        if taken {
            continue;
        }
        if let Some(mut entry) = tracker.remove(key) {
            entry.node.written_as = Some(format!("tracker.{key}"));
            put(tracker, "provider", entry);
        }
    }
}

/// Moves a key to its place in Dirigent's spelling, unless that place is taken.
fn alias(root: &mut Node, (from_section, from_key): (&str, &str), (to_section, to_key): (&str, &str)) {
    let taken = root.get(to_section).is_some_and(|section| section.get(to_key).is_some());
    if taken {
        return;
    }
    let Some(mut entry) = root.get_mut(from_section).and_then(|section| section.remove(from_key)) else { return };
    entry.node.written_as = Some(format!("{from_section}.{from_key}"));
    entry.key = to_key.to_owned();
    put(root, to_section, entry);
}

fn words(root: &mut Node, section: &str, key: &str, spellings: &[(&str, &str)]) {
    let Some(node) = root.get_mut(section).and_then(|section| section.get_mut(key)) else { return };
    if let Value::Text(text) = &mut node.value
        && let Some((_, ours)) = spellings.iter().find(|(theirs, _)| theirs == text)
    {
        *text = (*ours).to_owned();
    }
}

/// Splits `model: {provider, model_id}` into `model` and `model_provider`.
fn split_model(owner: &mut Node) {
    let Some(model) = owner.get_mut("model") else { return };
    let provider = model.remove("provider");
    if let Some(id) = model.remove("model_id") {
        *model = id.node;
    }
    if let Some(mut provider) = provider {
        provider.key = "model_provider".to_owned();
        owner.insert(provider);
    }
}

/// Puts `entry` into the map under `key`. If there is no such map, it is made, at the place of the entry.
fn put(owner: &mut Node, key: &str, entry: Entry) {
    if owner.entry(key).is_none_or(|existing| existing.node.is_null()) {
        owner.remove(key);
        let node = Node::new(Value::Map(Vec::new()), entry.node.place);
        owner.insert(Entry { key: key.to_owned(), key_place: entry.key_place, node });
    }
    if let Some(target) = owner.get_mut(key) {
        target.remove(&entry.key);
        target.insert(entry);
    }
}
