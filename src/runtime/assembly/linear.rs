//! Builds the Linear board from the settings.

use secrecy::ExposeSecret;

use crate::config::Settings;
use crate::config::tracker::AccountUse;
use crate::tracker::TrackerError;
use crate::tracker::linear::{Assignee, ENDPOINT, LinearConfig, LinearTracker, NamedStates, Scope};

pub fn linear_board(settings: &Settings) -> Result<LinearTracker, TrackerError> {
    LinearTracker::new(linear_config(settings)?)
}

/// Returns what the board is made from.
pub(super) fn linear_config(settings: &Settings) -> Result<LinearConfig, TrackerError> {
    let (tracker, provider) = (&settings.tracker, &settings.tracker.provider);
    let api_key = provider.api_key.clone().filter(|key| !key.expose_secret().trim().is_empty());
    let api_key = api_key.ok_or_else(|| {
        TrackerError::MissingSecret(
            "set LINEAR_API_KEY, or name another variable in tracker.provider.api_key".to_owned(),
        )
    })?;
    let scope = Scope {
        team_key: provider.team_key.clone(),
        project_slug: provider.project_slug.clone(),
        assignee: provider.assignee.as_deref().map(Assignee::named),
    };
    let mut targets: Vec<String> = settings.orchestration.states.values().cloned().collect();
    targets.push(settings.completion_state().to_owned());
    Ok(LinearConfig {
        endpoint: provider.endpoint.clone().unwrap_or_else(|| ENDPOINT.to_owned()),
        states: NamedStates {
            active: tracker.active_states.clone(),
            terminal: tracker.terminal_states.clone(),
            targets,
            approval: settings.merge.approval_states.clone(),
        },
        own_account: provider.account.map(|account| account == AccountUse::Own),
        create_labels: provider.create_labels.unwrap_or(false),
        ..LinearConfig::new(api_key, scope)
    })
}
