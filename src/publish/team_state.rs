//! The document in `agent-state.json`, schema 1.0: its exact keys and values, and the operations that change it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::observability::{ModelTier, OrchestrationPattern};
use crate::domain::time::Timestamp;
use crate::launcher::environment::Secrets;

pub const VERSION: &str = "1.0";
pub const MOST_TEAMMATES: usize = 10;
pub const MOST_MESSAGES: usize = 50;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct TeamState {
    /// Always `1.0` for this schema.
    #[schemars(extend("const" = "1.0"))]
    pub version: String,
    /// `false` once the session is over. If it is `true` and `lastUpdated` is more than five minutes ago, the writer died.
    pub enabled: bool,
    pub team_name: String,
    pub feature: String,
    pub pdca_phase: PdcaPhase,
    pub orchestration_pattern: OrchestrationPattern,
    /// The leader's model.
    pub cto_agent: String,
    /// When the session began. RFC 3339, like every time in this document.
    pub started_at: String,
    /// The time of the last write.
    pub last_updated: String,
    /// At most ten, in the order in which they were started.
    #[schemars(length(max = 10))]
    pub teammates: Vec<Teammate>,
    pub progress: TeamProgress,
    /// At most 50 messages, the newest last.
    #[schemars(length(max = 50))]
    pub recent_messages: Vec<TeamMessage>,
    pub session_id: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PdcaPhase {
    #[default]
    Plan,
    Design,
    Do,
    Check,
    Act,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Teammate {
    pub name: String,
    pub role: String,
    pub model: ModelTier,
    pub status: TeammateStatus,
    pub current_task: Option<String>,
    pub task_id: Option<String>,
    pub started_at: String,
    pub last_activity_at: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TeammateStatus {
    Spawning,
    Working,
    Idle,
    Completed,
    Failed,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct TeamProgress {
    pub total_tasks: usize,
    pub completed_tasks: usize,
    pub in_progress_tasks: usize,
    pub failed_tasks: usize,
    pub pending_tasks: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TeamMessage {
    pub from: String,
    pub to: String,
    pub content: String,
    pub timestamp: String,
}

impl TeammateStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Spawning => "spawning",
            Self::Working => "working",
            Self::Idle => "idle",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

impl TeamState {
    /// Returns a session that begins now and has no teammates.
    pub fn begun(team_name: &str, session_id: &str, now: Timestamp) -> Self {
        Self {
            version: VERSION.into(),
            enabled: true,
            team_name: team_name.into(),
            feature: String::new(),
            pdca_phase: PdcaPhase::default(),
            orchestration_pattern: OrchestrationPattern::default(),
            cto_agent: ModelTier::Opus.name().into(),
            started_at: time_text(now),
            last_updated: time_text(now),
            teammates: Vec::new(),
            progress: TeamProgress::default(),
            recent_messages: Vec::new(),
            session_id: session_id.into(),
        }
    }

    /// Adds a teammate. One whose name is already there is updated and keeps its `startedAt`. When there are ten, a new one replaces the
    /// first that is completed or failed; if all ten are at work, the new one is dropped.
    pub fn add(&mut self, mut new: Teammate) {
        if let Some(known) = self.teammates.iter_mut().find(|known| known.name == new.name) {
            new.started_at.clone_from(&known.started_at);
            *known = new;
            return;
        }
        if self.teammates.len() >= MOST_TEAMMATES {
            let Some(oldest) = self.teammates.iter().position(|mate| mate.status.is_over()) else { return };
            self.teammates.remove(oldest);
        }
        self.teammates.push(new);
    }

    /// Sets a teammate's status, and its task where `task` is given (description, id). Without `task`, a teammate that becomes idle or
    /// completed loses its task. Does nothing for an unknown name.
    pub fn set_status(
        &mut self,
        name: &str,
        status: TeammateStatus,
        task: Option<(Option<String>, Option<String>)>,
        now: Timestamp,
    ) {
        let Some(mate) = self.teammates.iter_mut().find(|mate| mate.name == name) else { return };
        mate.status = status;
        mate.last_activity_at = time_text(now);
        match task {
            Some((task, id)) => (mate.current_task, mate.task_id) = (task, id),
            None if matches!(status, TeammateStatus::Idle | TeammateStatus::Completed) => {
                (mate.current_task, mate.task_id) = (None, None);
            }
            None => {}
        }
    }

    /// Sets the progress from the teammates' statuses, one task for each teammate. Used where no ticket list is known.
    pub fn count_teammates(&mut self) {
        let count =
            |wanted: &[TeammateStatus]| self.teammates.iter().filter(|mate| wanted.contains(&mate.status)).count();
        self.progress = TeamProgress {
            total_tasks: self.teammates.len(),
            completed_tasks: count(&[TeammateStatus::Completed]),
            in_progress_tasks: count(&[TeammateStatus::Spawning, TeammateStatus::Working]),
            failed_tasks: count(&[TeammateStatus::Failed]),
            pending_tasks: count(&[TeammateStatus::Idle]),
        };
    }

    /// Adds a message. Beyond 50 the oldest are removed.
    pub fn say(&mut self, from: &str, to: &str, content: &str, now: Timestamp) {
        let or = |text: &str, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text.to_owned() };
        self.recent_messages.push(TeamMessage {
            from: or(from, "unknown"),
            to: or(to, "all"),
            content: content.into(),
            timestamp: time_text(now),
        });
        let too_many = self.recent_messages.len().saturating_sub(MOST_MESSAGES);
        self.recent_messages.drain(..too_many);
    }

    /// Returns the document with secrets removed from every text that people or agents wrote.
    pub fn without_secrets(mut self, secrets: &Secrets) -> Self {
        let clean = |text: &mut String| *text = secrets.cut_from(text);
        clean(&mut self.team_name);
        clean(&mut self.feature);
        for mate in &mut self.teammates {
            [&mut mate.name, &mut mate.role].into_iter().for_each(clean);
            mate.current_task.iter_mut().chain(&mut mate.task_id).for_each(clean);
        }
        for message in &mut self.recent_messages {
            [&mut message.from, &mut message.to, &mut message.content].into_iter().for_each(clean);
        }
        self
    }

    /// Ends the session: there are no teammates any more. Progress and messages stay for readers.
    pub fn end(&mut self) {
        self.enabled = false;
        self.teammates.clear();
    }
}

/// Formats a time as RFC 3339 in UTC, with milliseconds.
pub fn time_text(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Returns the JSON Schema of `agent-state.json`, as it is kept in `schema/`.
pub fn json_schema_text() -> String {
    let settings =
        schemars::generate::SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<TeamState>().to_value();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), "agent-state.json".into());
    }
    format!("{schema:#}\n")
}
