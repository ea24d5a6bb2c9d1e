//! The real clients as these tests start them: their own home, the scripted model, no traffic but loopback.

use std::fs;
use std::path::{Path, PathBuf};

use dirigent::agent::plan::{self, LaunchPlan, RunPlace};
use dirigent::agent::{Opening, Protocol, ToolSpec};
use dirigent::agent::{
    acp::Acp, claude::Claude as ClaudeProtocol, codex::Codex as CodexProtocol, pi::Pi as PiProtocol,
};
use dirigent::config::acp::AcpSettings;
use dirigent::config::claude::ClaudeSettings;
use dirigent::config::codex::CodexSettings;
use dirigent::config::pi::{PiModel, PiSettings};
use dirigent::domain::ids::SessionId;
use serde_json::json;

use super::scenarios::Setup;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    Codex,
    Claude,
    Pi,
    Opencode,
}

impl Client {
    pub fn program(self) -> &'static str {
        match self {
            Client::Codex => "codex",
            Client::Claude => "claude",
            Client::Pi => "pi",
            Client::Opencode => "opencode",
        }
    }

    /// What a workflow file calls it.
    pub fn runtime(self) -> &'static str {
        match self {
            Client::Opencode => "acp",
            other => other.program(),
        }
    }

    /// The protocol alone, for lines that were recorded.
    pub fn protocol(self) -> Box<dyn Protocol> {
        match self {
            Client::Codex => Box::new(CodexProtocol::new(Default::default())),
            Client::Claude => Box::new(ClaudeProtocol::default()),
            Client::Pi => Box::new(PiProtocol::default()),
            Client::Opencode => Box::new(Acp::default()),
        }
    }
}

/// A home, a repository with a linked worktree, and the model's port.
pub struct Place {
    pub prefix: PathBuf,
    pub dir: tempfile::TempDir,
    pub port: u16,
}

impl Place {
    pub fn new(prefix: &Path, port: u16) -> Place {
        // Codex refuses to sandbox with a home below the temp directory.
        let dir = tempfile::Builder::new().prefix("dirigent-agents").tempdir_in("/var/tmp").unwrap();
        let place = Place { prefix: prefix.to_owned(), dir, port };
        let repo = place.path("repo");
        git(place.dir.path(), &["init", "-q", "-b", "main", "repo"]);
        git(&repo, &["commit", "-q", "--allow-empty", "-m", "Begin"]);
        git(&repo, &["worktree", "add", "-q", "../worktree", "-b", "work"]);
        fs::create_dir_all(place.path("home")).unwrap();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn worktree(&self) -> PathBuf {
        self.path("worktree")
    }

    /// The whole environment of the client.
    pub fn env(&self, client: Client, asks: bool) -> Vec<(String, String)> {
        let home = self.path("home");
        let url = format!("http://127.0.0.1:{}", self.port);
        let own = self.prefix.join("bin");
        let mut env = vec![
            ("HOME".to_owned(), home.display().to_string()),
            ("PATH".to_owned(), format!("{}:/usr/local/bin:/usr/bin:/bin", own.display())),
            ("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned()),
        ];
        let mut set = |name: &str, value: String| env.push((name.to_owned(), value));
        match client {
            Client::Codex => {
                let config = CODEX_CONFIG.replace("URL", &url);
                fs::create_dir_all(home.join("codex")).unwrap();
                fs::write(home.join("codex/config.toml"), config).unwrap();
                set("CODEX_HOME", home.join("codex").display().to_string());
                set("MOCK_API_KEY", "none".into());
            }
            Client::Claude => {
                set("ANTHROPIC_BASE_URL", url);
                set("ANTHROPIC_API_KEY", "none".into());
                set("CLAUDE_CONFIG_DIR", home.join("claude").display().to_string());
                set("CLAUDE_CODE_MAX_RETRIES", "1".into());
                for name in ["DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"]
                {
                    set(name, "1".into());
                }
            }
            Client::Pi => {
                let models = json!({"providers": {"mock": {"baseUrl": format!("{url}/v1"), "api": "openai-completions",
                    "apiKey": "none", "models": [{"id": "mock-model", "contextWindow": 128_000, "maxTokens": 8192}]}}});
                fs::create_dir_all(home.join("pi")).unwrap();
                fs::write(home.join("pi/models.json"), models.to_string()).unwrap();
                fs::write(self.path("ask.ts"), PI_ASKS).unwrap();
                set("PI_CODING_AGENT_DIR", home.join("pi").display().to_string());
                set("PI_OFFLINE", "1".into());
                set("PI_TELEMETRY", "0".into());
            }
            Client::Opencode => {
                let options = json!({"baseURL": format!("{url}/v1"), "apiKey": "none"});
                let limit = json!({"context": 128_000, "output": 8192});
                let config = json!({"autoupdate": false, "share": "disabled", "model": "mock/mock-model",
                    "small_model": "mock/mock-model", "enabled_providers": ["mock"],
                    "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "options": options,
                                          "models": {"mock-model": {"limit": limit}}}}});
                fs::create_dir_all(home.join("config/opencode")).unwrap();
                fs::write(home.join("config/opencode/opencode.json"), config.to_string()).unwrap();
                for name in ["CONFIG", "DATA", "STATE", "CACHE"] {
                    set(&format!("XDG_{name}_HOME"), home.join(name.to_lowercase()).display().to_string());
                }
                for name in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
                    set(&format!("OPENCODE_DISABLE_{name}"), "1".into());
                }
                if asks {
                    set("OPENCODE_PERMISSION", r#"{"bash":"ask"}"#.into());
                }
            }
        }
        env
    }

    pub fn plan(&self, client: Client, setup: Setup, resume: Option<SessionId>) -> LaunchPlan {
        let program = self.prefix.join("bin").join(client.program()).display().to_string();
        let place = RunPlace {
            git_dir: Some(self.path("repo/.git/worktrees/worktree")),
            git_common_dir: Some(self.path("repo/.git")),
            state_dir: self.path("state"),
            resume,
            runs_as_root: nix::unistd::geteuid().is_root(),
            ..RunPlace::default()
        };
        match client {
            Client::Codex => {
                let settings = CodexSettings {
                    command: format!("{program} app-server --enable default_mode_request_user_input"),
                    approval_policy: setup.asks.then(|| json!("untrusted")),
                    ..CodexSettings::default()
                };
                plan::codex(&settings, &place).unwrap()
            }
            Client::Claude => {
                let allowed_tools = if setup.asks { Vec::new() } else { vec!["Bash".to_owned()] };
                plan::claude(&ClaudeSettings { command: program, allowed_tools, ..ClaudeSettings::default() }, &place)
                    .unwrap()
            }
            Client::Pi => {
                let model = Some(PiModel { provider: Some("mock".into()), model_id: "mock-model".into() });
                let extension_paths = if setup.asks { vec![self.path("ask.ts")] } else { Vec::new() };
                let settings = PiSettings { command: program, model, extension_paths, ..PiSettings::default() };
                plan::pi(&settings, &place).unwrap()
            }
            Client::Opencode => {
                let settings = AcpSettings { command: format!("{program} acp"), ..AcpSettings::default() };
                plan::acp(&settings).unwrap()
            }
        }
    }
}

pub fn opening(cwd: &Path, setup: Setup, resume: Option<SessionId>) -> Opening {
    let tool = ToolSpec {
        name: "ticket_comment".into(),
        description: "Say something on the ticket.".into(),
        input_schema: json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
    };
    let tools = if setup.tool && resume.is_none() { vec![tool] } else { Vec::new() };
    Opening {
        cwd: cwd.to_owned(),
        resume,
        used_before: None,
        title: None,
        model: setup.model.map(str::to_owned),
        model_provider: None,
        thinking_level: None,
        tools,
        desk: None,
    }
}

pub fn git(dir: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"];
    let output = std::process::Command::new("git").current_dir(dir).args(identity).args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

const CODEX_CONFIG: &str = r#"
model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false
web_search = "disabled"
[model_providers.mock]
name = "mock"
base_url = "URL/v1"
wire_api = "responses"
env_key = "MOCK_API_KEY"
request_max_retries = 1
stream_max_retries = 1
stream_idle_timeout_ms = 20000
[analytics]
enabled = false
[feedback]
enabled = false
[otel]
exporter = "none"
metrics_exporter = "none"
trace_exporter = "none"
[features]
plugins = false
apps = false
"#;

const PI_ASKS: &str = r#"
export default function (pi) {
  pi.on("tool_call", async (event, ctx) => {
    const ok = await ctx.ui.confirm("Run this?", String(event.input.command));
    if (!ok) return { block: true, reason: "denied" };
  });
}
"#;
