//! Checks the paths in the settings against this machine: paths that leave their folder, files that are missing.

use std::path::Path;

use super::hook_scripts;
use super::resolve::canonical;
use crate::config::Settings;
use crate::config::problem::Problem;
use crate::config::tracker::TrackerKind;

/// Returns errors about paths that must not be where they are.
pub fn problems(settings: &Settings) -> Vec<Problem> {
    let (file, repo) = (&settings.observability.agent_state_file, &settings.workspace.home);
    if canonical(file).starts_with(canonical(repo)) {
        return Vec::new();
    }
    let message = format!(
        "`observability.agent_state_file` ({}) lies outside the repository ({})",
        file.display(),
        repo.display()
    );
    vec![Problem::new("observability.agent_state_file", message).with_help("name a file inside the repository")]
}

/// Returns warnings about files that are needed and missing, or of no use.
pub fn doubts(settings: &Settings) -> Vec<Problem> {
    let named = settings.pi.extension_paths.iter().enumerate();
    let extensions = named.filter_map(|(index, path)| extension_doubt(settings, index, path));
    extensions.chain(hook_scripts::doubts(settings)).collect()
}

/// Returns a warning about an extension that is missing, or that needs a secret which no worker gets.
fn extension_doubt(settings: &Settings, index: usize, path: &Path) -> Option<Problem> {
    const USE_INSTEAD: &str = "no worker gets Linear's key: remove it from the list; the agent asks Linear through the runner, with `tk api` \
                               in its shell";
    let key = format!("pi.extension_paths[{index}]");
    let asks_linear = settings.tracker.kind == TrackerKind::Linear && path.to_string_lossy().contains("linear");
    let help = if asks_linear { USE_INSTEAD } else { "pi would start without it, or not at all" };
    let what = match (path.exists(), asks_linear) {
        (false, _) => "is not there",
        (true, true) => "wants Linear's key in its environment",
        (true, false) => return None,
    };
    Some(Problem::new(key.clone(), format!("`{key}` ({}) {what}", path.display())).with_help(help))
}
