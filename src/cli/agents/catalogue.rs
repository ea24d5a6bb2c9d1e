//! The agents that Dirigent knows by name: how each is configured in WORKFLOW.md, and what it can do when it is run that way.

use serde::Serialize;

use crate::agent::plan::ACP_PRESETS;
use crate::config::worker::Runtime;

/// The client that an agent is based on; decides which configuration files and variables it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Codex,
    Claude,
    Pi,
    Opencode,
}

#[derive(Debug, Clone, Serialize)]
pub struct Preset {
    pub name: &'static str,
    pub runtime: Runtime,
    /// The value of `<runtime>.command`.
    pub command: &'static str,
    pub can: Abilities,
    /// The client, if the self-test knows how to point it at a scripted model. `None`: there is no self-test.
    #[serde(skip)]
    pub family: Option<Family>,
}

/// What an agent can do. Each text says how; `no` means that it cannot.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Abilities {
    pub resume: &'static str,
    pub steer: &'static str,
    pub approvals: &'static str,
    pub usage: &'static str,
    pub sandbox: &'static str,
}

const ACP: Abilities = Abilities {
    resume: "if it loads sessions",
    steer: "next turn",
    approvals: "yes",
    usage: "if it tells",
    sandbox: "its own",
};

const fn one_shot(usage: &'static str, sandbox: &'static str) -> Abilities {
    Abilities { resume: "yes", steer: "no", approvals: "no", usage, sandbox }
}

impl Preset {
    /// Returns the program that must be installed.
    pub fn program(&self) -> &'static str {
        self.command.split_whitespace().next().unwrap_or_default()
    }

    pub fn named(name: &str) -> Option<Preset> {
        all().into_iter().find(|preset| preset.name == name)
    }
}

pub fn all() -> Vec<Preset> {
    let live = |name, runtime, command, family, can| Preset { name, runtime, command, can, family: Some(family) };
    let mut presets = vec![
        live(
            "codex",
            Runtime::Codex,
            "codex app-server",
            Family::Codex,
            Abilities { resume: "yes", steer: "yes", approvals: "yes", usage: "tokens", sandbox: "yes" },
        ),
        live(
            "claude",
            Runtime::Claude,
            "claude",
            Family::Claude,
            Abilities { resume: "yes", steer: "yes", approvals: "yes", usage: "tokens, cost", sandbox: "its own" },
        ),
        live(
            "pi",
            Runtime::Pi,
            "pi",
            Family::Pi,
            Abilities { resume: "yes", steer: "yes", approvals: "by extension", usage: "tokens, cost", sandbox: "no" },
        ),
    ];
    presets.extend(ACP_PRESETS.iter().map(|(name, command)| Preset {
        name,
        runtime: Runtime::Acp,
        command,
        can: ACP,
        family: (*name == "opencode").then_some(Family::Opencode),
    }));
    let once = |name, command, family, can| live(name, Runtime::Exec, command, family, can);
    presets.extend([
        once(
            "codex-exec",
            "codex exec --json --sandbox workspace-write -c sandbox_workspace_write.network_access=true",
            Family::Codex,
            one_shot("tokens", "by flag"),
        ),
        once(
            "claude-print",
            "claude -p --output-format stream-json --verbose --allowedTools=Bash,Edit,Write",
            Family::Claude,
            one_shot("tokens, cost", "no"),
        ),
        once("opencode-run", "opencode run --format json", Family::Opencode, one_shot("tokens, cost", "no")),
        once("pi-json", "pi --mode json", Family::Pi, one_shot("tokens, cost", "no")),
    ]);
    presets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::presets::OneShot;

    #[test]
    fn names_are_unique_and_one_shot_commands_are_understood() {
        let presets = all();
        for preset in &presets {
            assert_eq!(presets.iter().filter(|other| other.name == preset.name).count(), 1, "{}", preset.name);
            if preset.runtime == Runtime::Exec {
                assert!(OneShot::of_command(preset.command).is_some(), "{}", preset.command);
            }
        }
    }
}
