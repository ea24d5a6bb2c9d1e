//! The document in `agent-state.json`, schema 1.0: its exact keys and values, and the few ways in which it changes.

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
    /// `false` once the session is over. `true` with a `lastUpdated` of more than five minutes ago means that the writer died.
    pub enabled: bool,
    pub team_name: String,
    pub feature: String,
    pub pdca_phase: PdcaPhase,
    pub orchestration_pattern: OrchestrationPattern,
    /// The leader's model.
    pub cto_agent: String,
    /// RFC 3339, as every time here.
    pub started_at: String,
    /// Of every write.
    pub last_updated: String,
    /// In the order in which they were started.
    #[schemars(length(max = 10))]
    pub teammates: Vec<Teammate>,
    pub progress: TeamProgress,
    /// The newest last.
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
    /// A session that begins now, with nobody in it.
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

    /// One of a known name is brought up to date and keeps its start. A new one gets a place if there is one: the oldest that is
    /// over makes room. With ten at work there is none.
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

    /// Nothing happens for a name that is not there. One that is idle or has ended well has no task any more.
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

    /// Where nobody knows of tasks, each teammate has one.
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

    /// The oldest go when there are too many.
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

    /// Whatever people and agents wrote into it.
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

    /// The session is over. What it came to stays for its readers.
    pub fn end(&mut self) {
        self.enabled = false;
        self.teammates.clear();
    }
}

/// With milliseconds and time zone.
pub fn time_text(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// The JSON Schema of the file, as it is kept in `schema/`.
pub fn json_schema_text() -> String {
    let settings =
        schemars::generate::SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<TeamState>().to_value();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), "agent-state.json".into());
    }
    format!("{schema:#}\n")
}
