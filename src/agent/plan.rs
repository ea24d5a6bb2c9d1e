//! How each runtime is started: the command, additions to its environment, and the protocol. It starts nothing and touches no file. A
//! command of the workflow is a shell line; flags are appended to it, never inserted.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thiserror::Error;

use super::acp::Acp;
use super::claude::Claude;
use super::codex::{Codex, ThreadPolicy};
use super::pi::Pi;
use super::presets::OneShot;
use super::{DeskServer, Protocol};
use crate::config::acp::AcpSettings;
use crate::config::claude::ClaudeSettings;
use crate::config::codex::CodexSettings;
use crate::config::pi::PiSettings;
use crate::domain::ids::SessionId;

/// Short names for agents that speak the Agent Client Protocol.
pub const ACP_PRESETS: [(&str, &str); 5] = [
    ("gemini", "gemini --acp"),
    ("opencode", "opencode acp"),
    ("claude-agent-acp", "claude-agent-acp"),
    ("codex-acp", "codex-acp"),
    ("pi-acp", "pi-acp"),
];

/// The flags that take Claude's tools for writing files away. Both kinds of its command take any number of them.
const CLAUDE_READ_ONLY: [&str; 3] =
    ["--disallowedTools=Edit", "--disallowedTools=Write", "--disallowedTools=NotebookEdit"];

pub struct LaunchPlan {
    /// The command line for the shell.
    pub line: String,
    pub env: Vec<(String, String)>,
    pub protocol: Box<dyn Protocol>,
}

/// What a launch needs to know about its run.
#[derive(Debug, Clone, Default)]
pub struct RunPlace {
    /// The worktree's own git directory (`.git/worktrees/NAME` of a linked worktree).
    pub git_dir: Option<PathBuf>,
    /// The repository's git directory; the same as `git_dir` in a plain clone.
    pub git_common_dir: Option<PathBuf>,
    /// A directory outside of the worktree, for session files.
    pub state_dir: PathBuf,
    pub resume: Option<SessionId>,
    /// The model for this run; takes precedence over the runtime's own setting.
    pub model: Option<String>,
    pub model_provider: Option<String>,
    pub thinking_level: Option<String>,
    pub runs_as_root: bool,
    /// A cost limit for agents that can enforce one, in addition to the runner's.
    pub max_cost_usd: Option<f64>,
    /// A private home for the agent, already prepared.
    pub agent_home: Option<PathBuf>,
    /// The program for hook commands, for agents that call hooks.
    pub hook_program: Option<PathBuf>,
    /// Whether the run only reads. Enforced for agents that have a way to enforce it.
    pub read_only: bool,
    /// The desk's server, for agents that get its tools on their command line.
    pub desk: Option<DeskServer>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    #[error("`{runtime}.command` is empty; write the command that starts the agent")]
    NoCommand { runtime: &'static str },
    #[error(
        "Claude Code refuses to skip permissions as root; run dirigent as an ordinary user, or set \
         `claude.permission_mode: acceptEdits` with `claude.allowed_tools`, and let dirigent answer the rest"
    )]
    BypassAsRoot,
}

pub fn codex(settings: &CodexSettings, place: &RunPlace) -> Result<LaunchPlan, PlanError> {
    let policy = ThreadPolicy {
        approval_policy: Some(settings.approval_policy.clone().unwrap_or_else(|| json!("never"))),
        thread_sandbox: match (place.read_only, &settings.thread_sandbox) {
            (true, _) => Some(json!("read-only")),
            (false, written) => Some(written.clone().unwrap_or_else(|| json!("workspace-write"))),
        },
        turn_sandbox_policy: settings.turn_sandbox_policy.clone().filter(|_| !place.read_only),
        writable_roots: match place.read_only {
            true => Vec::new(),
            false => git_roots(place.git_dir.as_deref(), place.git_common_dir.as_deref()),
        },
    };
    let (mut env, mut flags) = (Vec::new(), Vec::new());
    if let Some(home) = &place.agent_home {
        env.push(("CODEX_HOME".to_owned(), home.display().to_string()));
        flags = ["-c", "features.plugins=false", "-c", "features.apps=false"].map(str::to_owned).to_vec();
    }
    if let Some(tier) = &settings.service_tier {
        flags.extend(["-c".to_owned(), format!("service_tier={}", json!(tier))]);
    }
    Ok(LaunchPlan { line: shell("codex", &settings.command, &flags)?, env, protocol: Box::new(Codex::new(policy)) })
}

/// Returns the folders that a commit writes to. A linked worktree's git directory is outside of the worktree and Codex protects it by name,
/// so it has to be listed itself. Of the shared directory only objects, refs and logs are listed, so that hooks and configuration stay
/// protected.
fn git_roots(git_dir: Option<&Path>, common: Option<&Path>) -> Vec<PathBuf> {
    match (git_dir, common) {
        (Some(own), Some(common)) if own != common => {
            vec![own.to_owned(), common.join("objects"), common.join("refs"), common.join("logs")]
        }
        (Some(own), _) => vec![own.to_owned()],
        (None, Some(common)) => vec![common.to_owned()],
        (None, None) => Vec::new(),
    }
}

pub fn claude(settings: &ClaudeSettings, place: &RunPlace) -> Result<LaunchPlan, PlanError> {
    let bypasses = settings.permission_mode.as_deref() == Some("bypassPermissions")
        || settings.command.contains("--dangerously-skip-permissions");
    if bypasses && place.runs_as_root {
        return Err(PlanError::BypassAsRoot);
    }
    let mut flags: Vec<String> = [
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--replay-user-messages",
        "--permission-prompt-tool",
        "stdio",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut flag = |name: &str, value: &str| flags.extend([name.to_owned(), value.to_owned()]);
    if let Some(session) = &place.resume {
        flag("--resume", session.as_str());
    }
    if let Some(model) = place.model.as_ref().or(settings.model.as_ref()) {
        flag("--model", model);
    }
    if let Some(level) = &place.thinking_level {
        flag("--effort", level);
    }
    if let Some(mode) = &settings.permission_mode {
        flag("--permission-mode", mode);
    }
    if let Some(limit) = place.max_cost_usd {
        flag("--max-budget-usd", &format!("{limit:.6}"));
    }
    // A command with its own `--settings` keeps them, because the agent takes only one such flag.
    if let Some(program) =
        place.hook_program.as_ref().filter(|_| settings.hooks && !settings.command.contains("--settings"))
    {
        flag("--settings", &claude_hooks(program).to_string());
    }
    // Both flags take any number of values, so each value is bound to its own flag.
    if let Some(desk) = &place.desk {
        flags.push(format!("--mcp-config={}", claude_servers(desk)));
        flags.push(format!("--allowedTools=mcp__{}", DeskServer::NAME));
    }
    if place.read_only {
        flags.extend(CLAUDE_READ_ONLY.map(str::to_owned));
    }
    flags.extend(settings.allowed_tools.iter().map(|tool| format!("--allowedTools={tool}")));
    Ok(LaunchPlan {
        line: shell("claude", &settings.command, &flags)?,
        env: vec![("DISABLE_AUTOUPDATER".to_owned(), "1".to_owned())],
        protocol: Box::new(Claude::default()),
    })
}

/// Returns the configuration of the desk's server. The client inserts the values from its own environment, so that they are not on a
/// command line that others can read.
fn claude_servers(desk: &DeskServer) -> Value {
    let names = desk.variables.iter().map(|(name, _)| name.as_str()).chain([DeskServer::TOKEN_VARIABLE]);
    let env: serde_json::Map<String, Value> =
        names.map(|name| (name.to_owned(), json!(format!("${{{name}}}")))).collect();
    let server = json!({"type": "stdio", "command": desk.program, "args": desk.arguments, "env": env});
    json!({"mcpServers": {DeskServer::NAME: server}})
}

/// Returns settings for one run that contain only hooks.
fn claude_hooks(program: &Path) -> Value {
    let events = [
        ("SubagentStart", "subagent-start"),
        ("SubagentStop", "subagent-stop"),
        ("TeammateIdle", "teammate-idle"),
        ("TaskCompleted", "task-completed"),
        ("Stop", "stop"),
    ];
    let program = quoted(&program.display().to_string());
    let hooks: serde_json::Map<String, Value> = events
        .into_iter()
        .map(|(event, word)| {
            let command = json!({"type": "command", "command": format!("{program} hook {word}"), "timeout": 5});
            (event.to_owned(), json!([{"hooks": [command]}]))
        })
        .collect();
    json!({"hooks": hooks})
}

pub fn pi(settings: &PiSettings, place: &RunPlace) -> Result<LaunchPlan, PlanError> {
    let sessions = place.state_dir.join(settings.session_dir_name.as_deref().unwrap_or("pi-sessions"));
    let mut flags = vec!["--mode".to_owned(), "rpc".to_owned()];
    let mut flag = |name: &str, value: &str| flags.extend([name.to_owned(), value.to_owned()]);
    flag("--session-dir", &sessions.display().to_string());
    if let Some(session) = &place.resume {
        flag("--session-id", session.as_str());
    }
    let own = settings.model.as_ref();
    if let Some(provider) = &place.model_provider {
        flag("--provider", provider);
    }
    if let Some(model) = &place.model {
        flag("--model", model);
    } else if let Some(model) = own {
        if let Some(provider) = model.provider.as_ref().filter(|_| place.model_provider.is_none()) {
            flag("--provider", provider);
        }
        flag("--model", &model.model_id);
    }
    if let Some(level) = place.thinking_level.as_ref().or(settings.thinking_level.as_ref()) {
        flag("--thinking", level);
    }
    for path in &settings.extension_paths {
        flag("--extension", &path.display().to_string());
    }
    if settings.disable_extensions {
        flags.push("--no-extensions".to_owned());
    }
    if settings.disable_themes {
        flags.push("--no-themes".to_owned());
    }
    Ok(LaunchPlan {
        line: shell("pi", &settings.command, &flags)?,
        env: vec![("PI_SKIP_VERSION_CHECK".to_owned(), "1".to_owned())],
        protocol: Box::new(Pi::default()),
    })
}

pub fn acp(settings: &AcpSettings) -> Result<LaunchPlan, PlanError> {
    let wanted = settings.command.trim();
    let command = ACP_PRESETS.iter().find(|(name, _)| *name == wanted).map_or(wanted, |(_, command)| command);
    Ok(LaunchPlan { line: shell("acp", command, &[])?, env: Vec::new(), protocol: Box::new(Acp::default()) })
}

/// Returns the plan for a one-shot command whose output is understood; `None` for any other command.
pub fn one_shot(command: &str, place: &RunPlace) -> Option<LaunchPlan> {
    let protocol = OneShot::of_command(command)?;
    let mut flags = Vec::new();
    let mut setting = |name: &str, value: &str| flags.extend(["-c".to_owned(), format!("{name}={value}")]);
    if protocol.is_codex() && !command.contains("allow_login_shell") {
        // A login shell would read its profile and lose the `PATH` that `tk` is on.
        setting("allow_login_shell", "false");
    }
    let writes = command.contains("workspace-write") && !place.read_only;
    if protocol.is_codex() && writes && !command.contains("writable_roots") {
        let roots = json!(git_roots(place.git_dir.as_deref(), place.git_common_dir.as_deref()));
        setting("sandbox_workspace_write.writable_roots", &roots.to_string());
    }
    if protocol.is_claude() && place.read_only {
        flags.extend(CLAUDE_READ_ONLY.map(str::to_owned));
    }
    flags.extend(protocol.resume_flags(place.resume.as_ref()));
    let line = shell("exec", command, &flags).ok()?;
    Some(LaunchPlan { line, env: Vec::new(), protocol: Box::new(protocol) })
}

fn shell(runtime: &'static str, command: &str, flags: &[String]) -> Result<String, PlanError> {
    let command = command.trim();
    if command.is_empty() {
        return Err(PlanError::NoCommand { runtime });
    }
    let mut line = command.to_owned();
    for flag in flags {
        line.push(' ');
        line.push_str(&quoted(flag));
    }
    Ok(line)
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(plan: LaunchPlan) -> String {
        plan.line
    }

    #[test]
    fn claude_gets_its_flags_after_the_users_command() {
        let settings = ClaudeSettings {
            command: "nice claude".into(),
            allowed_tools: vec!["Bash(git *)".into(), "Edit".into()],
            permission_mode: Some("acceptEdits".into()),
            ..ClaudeSettings::default()
        };
        let place = RunPlace { resume: Some(SessionId::new("abc")), model: Some("m".into()), ..RunPlace::default() };
        let line = line(claude(&settings, &place).unwrap());
        assert!(line.starts_with("nice claude -p --input-format stream-json "), "{line}");
        assert!(line.ends_with(
            "--permission-prompt-tool stdio --resume abc --model m --permission-mode acceptEdits \
             '--allowedTools=Bash(git *)' --allowedTools=Edit"
        ));
    }

    #[test]
    fn the_rest_of_the_budget_is_claudes_own_brake() {
        let place = RunPlace { max_cost_usd: Some(1.5), ..RunPlace::default() };
        let line = line(claude(&ClaudeSettings::default(), &place).unwrap());
        assert!(line.ends_with("--max-budget-usd 1.500000"), "{line}");
    }

    #[test]
    fn an_isolated_codex_has_its_own_home_and_no_plugins() {
        let place = RunPlace { agent_home: Some("/state/codex".into()), ..RunPlace::default() };
        let plan = codex(&CodexSettings::default(), &place).unwrap();
        assert_eq!(plan.line, "codex app-server -c features.plugins=false -c features.apps=false");
        assert_eq!(plan.env, [("CODEX_HOME".to_owned(), "/state/codex".to_owned())]);
    }

    #[test]
    fn hooks_come_with_the_command_line_unless_it_has_settings_of_its_own() {
        let place = RunPlace { hook_program: Some("/opt/a b/dirigent".into()), ..RunPlace::default() };
        let with = line(claude(&ClaudeSettings::default(), &place).unwrap());
        assert!(with.contains("--settings '{\"hooks\":{") && with.contains("hook subagent-start"), "{with}");
        let own = ClaudeSettings { command: "claude --settings mine.json".into(), ..ClaudeSettings::default() };
        let off = ClaudeSettings { hooks: false, ..ClaudeSettings::default() };
        for settings in [own, off] {
            assert!(!line(claude(&settings, &place).unwrap()).contains("subagent-start"));
        }
    }

    #[test]
    fn claude_gets_the_desk_without_its_token_on_the_command_line() {
        let desk = DeskServer {
            program: "/opt/dirigent".into(),
            arguments: vec!["desk-mcp".into()],
            variables: vec![("DIRIGENT_SOCKET".into(), "/run/s".into())],
            token: "s3cret".to_owned().into(),
        };
        let place = RunPlace { desk: Some(desk), ..RunPlace::default() };
        let line = line(claude(&ClaudeSettings::default(), &place).unwrap());
        assert!(line.contains(r#""DIRIGENT_TOKEN":"${DIRIGENT_TOKEN}""#), "{line}");
        assert!(line.ends_with("--allowedTools=mcp__desk") && !line.contains("s3cret"), "{line}");
    }

    #[test]
    fn a_sandboxed_one_shot_codex_may_write_what_a_commit_writes() {
        let place = RunPlace {
            git_dir: Some("/r/.git/worktrees/w".into()),
            git_common_dir: Some("/r/.git".into()),
            resume: Some(SessionId::new("abc")),
            ..RunPlace::default()
        };
        let planned = |command: &str| line(one_shot(command, &place).unwrap());
        let sandboxed = planned("codex exec --json --sandbox workspace-write");
        assert!(sandboxed.contains("writable_roots=[\"/r/.git/worktrees/w\",\"/r/.git/objects\""), "{sandboxed}");
        assert!(sandboxed.ends_with(" resume abc -"), "{sandboxed}");
        assert!(!planned("codex exec --json --sandbox danger-full-access").contains("writable_roots"));
    }

    #[test]
    fn a_one_shot_reviewer_gets_nothing_more_to_write() {
        let place = RunPlace {
            git_dir: Some("/r/.git/worktrees/w".into()),
            git_common_dir: Some("/r/.git".into()),
            read_only: true,
            ..RunPlace::default()
        };
        let planned = |command: &str| line(one_shot(command, &place).unwrap());
        let codex = planned("codex exec --json --sandbox workspace-write");
        assert!(!codex.contains("writable_roots"), "{codex}");
        let claude = planned("claude -p --output-format stream-json");
        assert!(claude.contains("--disallowedTools=Edit --disallowedTools=Write"), "{claude}");
        assert!(!planned("opencode run --format json").contains("disallowed"));
    }

    #[test]
    fn claude_as_root_cannot_skip_permissions() {
        let settings =
            ClaudeSettings { permission_mode: Some("bypassPermissions".into()), ..ClaudeSettings::default() };
        let root = RunPlace { runs_as_root: true, ..RunPlace::default() };
        assert_eq!(claude(&settings, &root).err(), Some(PlanError::BypassAsRoot));
        assert!(claude(&settings, &RunPlace::default()).is_ok());
        let hidden =
            ClaudeSettings { command: "claude --dangerously-skip-permissions".into(), ..ClaudeSettings::default() };
        assert_eq!(claude(&hidden, &root).err(), Some(PlanError::BypassAsRoot));
    }

    #[test]
    fn a_linked_worktree_opens_what_a_commit_writes_and_nothing_more() {
        let roots = git_roots(Some(Path::new("/r/.git/worktrees/w")), Some(Path::new("/r/.git")));
        let wanted = ["/r/.git/worktrees/w", "/r/.git/objects", "/r/.git/refs", "/r/.git/logs"].map(PathBuf::from);
        assert_eq!(roots, wanted);
        assert_eq!(git_roots(Some(Path::new("/r/.git")), Some(Path::new("/r/.git"))), [PathBuf::from("/r/.git")]);
    }

    #[test]
    fn acp_names_become_commands() {
        let plan = |command: &str| acp(&AcpSettings { command: command.into(), ..AcpSettings::default() });
        assert_eq!(line(plan("opencode").unwrap()), "opencode acp");
        assert_eq!(line(plan("my-agent --acp").unwrap()), "my-agent --acp");
        assert_eq!(plan(" ").err(), Some(PlanError::NoCommand { runtime: "acp" }));
    }

    #[test]
    fn pi_keeps_its_sessions_outside() {
        let place = RunPlace { state_dir: "/state".into(), resume: Some(SessionId::new("s1")), ..RunPlace::default() };
        let line = line(pi(&PiSettings::default(), &place).unwrap());
        assert_eq!(line, "pi --mode rpc --session-dir /state/pi-sessions --session-id s1");
    }

    #[test]
    fn one_shot_commands_are_known_by_their_json_mode() {
        let place = RunPlace { resume: Some(SessionId::new("s1")), ..RunPlace::default() };
        assert_eq!(
            line(one_shot("codex exec --json", &place).unwrap()),
            "codex exec --json -c allow_login_shell=false resume s1 -"
        );
        assert!(one_shot("make work", &place).is_none());
    }
}
