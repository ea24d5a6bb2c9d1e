//! The repository's own pull request template, read from the base branch.

use git2::Repository;

use crate::workspace::repo::RepoPlace;

/// The folders in which GitHub looks for a template, in GitHub's order.
const FOLDERS: [&str; 3] = [".github", "", "docs"];
const NAMES: [&str; 2] = ["pull_request_template.md", "pull_request_template"];
/// The marker in a template that the runner's text replaces.
const OUR_PLACE: &str = "<!-- dirigent -->";
const LONGEST: usize = 20_000;

/// Returns the template on a branch. `None` if there is none, or if it is empty or too long.
pub fn of_base(place: &RepoPlace, base: &str) -> Option<String> {
    let repo = place.open().ok()?;
    let tree = tree_of(&repo, base)?;
    for folder in FOLDERS {
        let found = match folder {
            "" => None,
            folder => match tree.get_name(folder) {
                Some(entry) => Some(entry.to_object(&repo).ok()?.peel_to_tree().ok()?),
                None => continue,
            },
        };
        let listed = found.as_ref().unwrap_or(&tree);
        for name in NAMES {
            let entry = listed.iter().find(|entry| entry.name().is_ok_and(|found| found.eq_ignore_ascii_case(name)));
            let Some(blob) = entry.and_then(|entry| entry.to_object(&repo).ok()?.peel_to_blob().ok()) else { continue };
            let text = String::from_utf8_lossy(blob.content()).into_owned();
            return (!text.trim().is_empty() && text.len() <= LONGEST).then_some(text);
        }
    }
    None
}

fn tree_of<'a>(repo: &'a Repository, base: &str) -> Option<git2::Tree<'a>> {
    let names = [format!("refs/remotes/origin/{base}"), format!("refs/heads/{base}")];
    let commit = names.iter().find_map(|name| repo.find_reference(name).ok()?.peel_to_commit().ok())?;
    commit.tree().ok()
}

/// Puts the runner's text in place of the template's marker, or before the template if it has no marker.
pub fn filled(template: Option<&str>, ours: &str) -> String {
    match template {
        None => ours.to_owned(),
        Some(template) if template.contains(OUR_PLACE) => template.replacen(OUR_PLACE, ours, 1),
        Some(template) => format!("{ours}\n\n{template}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_part_stands_where_the_template_wants_it() {
        assert_eq!(filled(None, "ours"), "ours");
        assert_eq!(filled(Some("## Why\n<!-- dirigent -->\n## Notes"), "ours"), "## Why\nours\n## Notes");
        assert_eq!(filled(Some("## Checklist"), "ours"), "ours\n\n## Checklist");
    }
}
