//! What the settings say about places on this machine: paths that leave their folder, files that are not there.

use super::resolve::canonical;
use crate::config::Settings;
use crate::config::problem::Problem;

/// Paths that must not be where they are.
pub fn problems(settings: &Settings) -> Vec<Problem> {
    let (file, repo) = (&settings.observability.agent_state_file, &settings.workspace.repo);
    if settings.workspace.repo_is_url() || canonical(file).starts_with(canonical(repo)) {
        return Vec::new();
    }
    let message = format!(
        "`observability.agent_state_file` ({}) lies outside the repository ({})",
        file.display(),
        repo.display()
    );
    vec![Problem::new("observability.agent_state_file", message).with_help("name a file inside the repository")]
}

/// Files that something relies on and that are not there.
pub fn doubts(settings: &Settings) -> Vec<Problem> {
    let missing = settings.pi.extension_paths.iter().enumerate().filter(|(_, path)| !path.exists());
    missing
        .map(|(index, path)| {
            Problem::new(
                format!("pi.extension_paths[{index}]"),
                format!("`pi.extension_paths[{index}]` ({}) is not there", path.display()),
            )
            .with_help("pi would start without it, or not at all")
        })
        .collect()
}
