//! Section `gates`: the commands that check finished work, and the evidence that a run has to bring.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::wire;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GatesSettings {
    /// Commands that run in a worktree of the head after a run has reported that it is done, before the pull request is opened.
    pub task: Vec<GateCommand>,
    /// Commands that run on the merged branches of a wave.
    pub wave: Vec<GateCommand>,
    /// Commands that run on the merged result of the last wave.
    #[serde(rename = "final")]
    pub final_: Vec<GateCommand>,
    /// Kinds of evidence that a run must record.
    pub required_evidence: Vec<EvidenceType>,
    /// What happens when a gate fails.
    pub failure_action: FailureAction,
    pub max_reopens_per_task: u32,
    pub followup_owner: FollowupOwner,
    /// Whether a worker may create follow-up tickets.
    pub allow_followups: bool,
    /// Text that must not be in the final result.
    pub forbidden_patterns: Vec<String>,
    /// The most heads (commits to be checked) whose commands run at the same time.
    #[schemars(range(min = 1))]
    pub max_concurrent: usize,
    /// The time limit of each command that has none of its own.
    #[serde(rename = "timeout_ms", with = "wire::millis")]
    #[schemars(with = "wire::PositiveMillis")]
    pub timeout: Duration,
    /// The repository's own script that checks finished work, `.dirigent/hooks/on_task_completed`. `None` if there is none.
    #[serde(skip)]
    pub hook: Option<HookScript>,
    /// Events for which the repository has a script that this version never calls. Each of these scripts is meant to hold work back until
    /// it passes.
    #[serde(skip)]
    pub guards_without_caller: Vec<String>,
}

/// The name of the script that checks finished work, and of its result.
pub const TASK_COMPLETED: &str = "on_task_completed";

/// A script in `.dirigent/hooks/` and how it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookScript {
    /// The interpreter that runs the script; `None` where the file is executable itself.
    pub program: Option<String>,
    pub path: PathBuf,
}

impl HookScript {
    pub fn argv(&self) -> Vec<String> {
        self.program.iter().cloned().chain([self.path.display().to_string()]).collect()
    }
}

/// A command. In the workflow file it is a plain string or a map.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "WrittenGate")]
pub struct GateCommand {
    pub name: String,
    pub run: String,
    #[serde(rename = "timeout_ms", with = "wire::optional_millis")]
    #[schemars(with = "Option<wire::PositiveMillis>")]
    pub timeout: Option<Duration>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum WrittenGate {
    Command(String),
    Full(FullGate),
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct FullGate {
    /// The name that people see. Default: the command itself.
    name: String,
    /// The command line, run by `sh -c` exactly as it is written.
    run: String,
    /// The time limit of this command. Default: `gates.timeout_ms`.
    #[serde(rename = "timeout_ms", with = "wire::optional_millis")]
    #[schemars(with = "Option<wire::PositiveMillis>")]
    timeout: Option<Duration>,
}

impl From<WrittenGate> for GateCommand {
    fn from(written: WrittenGate) -> Self {
        match written {
            WrittenGate::Command(run) => Self { name: String::new(), run, timeout: None },
            WrittenGate::Full(FullGate { name, run, timeout }) => Self { name, run, timeout },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceType {
    Command,
    File,
    Test,
    Note,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureAction {
    Warn,
    Followup,
    #[default]
    Reopen,
    ReopenFollowup,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FollowupOwner {
    #[default]
    Member,
    Lead,
    None,
}

impl Default for GatesSettings {
    fn default() -> Self {
        Self {
            task: Vec::new(),
            wave: Vec::new(),
            final_: Vec::new(),
            required_evidence: Vec::new(),
            failure_action: FailureAction::default(),
            max_reopens_per_task: 3,
            followup_owner: FollowupOwner::default(),
            allow_followups: false,
            forbidden_patterns: Vec::new(),
            max_concurrent: 2,
            timeout: Duration::from_secs(30 * 60),
            hook: None,
            guards_without_caller: Vec::new(),
        }
    }
}

impl EvidenceType {
    pub fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::File => "file",
            Self::Test => "test",
            Self::Note => "note",
        }
    }
}

impl GateCommand {
    /// Returns the name that people see: the gate's name, or its command line if it has none.
    pub fn title(&self) -> &str {
        if self.name.is_empty() { &self.run } else { &self.name }
    }
}

impl GatesSettings {
    /// Returns the names of everything that checks finished work: the `task` commands and the repository's own script.
    pub fn task_names(&self) -> Vec<String> {
        let commands = self.task.iter().map(|gate| gate.title().to_owned());
        commands.chain(self.hook.iter().map(|_| TASK_COMPLETED.to_owned())).collect()
    }

    pub fn judges_tasks(&self) -> bool {
        !self.task.is_empty() || self.hook.is_some()
    }

    pub fn timeout_of(&self, gate: &GateCommand) -> Duration {
        gate.timeout.unwrap_or(self.timeout)
    }

    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (key, commands) in [("gates.task", &self.task), ("gates.wave", &self.wave), ("gates.final", &self.final_)] {
            for (index, command) in commands.iter().enumerate() {
                let path = format!("{key}[{index}]");
                if command.title() == TASK_COMPLETED {
                    problems.push(
                        Problem::new(path.clone(), format!("`{path}` has the name of the script in .dirigent/hooks"))
                            .with_help("give it another `name`"),
                    );
                }
                if command.run.trim().is_empty() {
                    problems.push(
                        Problem::new(path.clone(), format!("`{path}` has no command"))
                            .with_help("write a string, or a map with `run`"),
                    );
                }
                if commands[..index].iter().any(|earlier| earlier.title() == command.title()) {
                    problems.push(
                        Problem::new(
                            path.clone(),
                            format!("`{path}` has the name `{}` a second time", command.title()),
                        )
                        .with_help("give each command its own `name`"),
                    );
                }
            }
        }
        problems
    }
}
