//! The home directory of a client for a self-test: the scripted model is its only provider, it has nothing of the user's settings, and it
//! makes no other network requests.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::json;

use super::catalogue::Family;

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

/// Writes the configuration into `home`. Returns the environment variables that make the client use it.
pub fn prepare(family: Family, home: &Path, url: &str) -> io::Result<Vec<(String, String)>> {
    fs::create_dir_all(home)?;
    let mut env = vec![("HOME".to_owned(), home.display().to_string())];
    let mut set = |name: &str, value: String| env.push((name.to_owned(), value));
    match family {
        Family::Codex => {
            let own = home.join("codex");
            write(&own.join("config.toml"), &CODEX_CONFIG.replace("URL", url))?;
            set("CODEX_HOME", own.display().to_string());
            set("MOCK_API_KEY", "none".into());
        }
        Family::Claude => {
            set("ANTHROPIC_BASE_URL", url.into());
            set("ANTHROPIC_API_KEY", "none".into());
            set("CLAUDE_CONFIG_DIR", home.join("claude").display().to_string());
            set("CLAUDE_CODE_MAX_RETRIES", "1".into());
            for name in ["DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] {
                set(name, "1".into());
            }
        }
        Family::Pi => {
            let own = home.join("pi");
            let model = json!({"id": "mock-model", "contextWindow": 128_000, "maxTokens": 8192});
            let provider = json!({"baseUrl": format!("{url}/v1"), "api": "openai-completions", "apiKey": "none",
                                  "models": [model]});
            write(&own.join("models.json"), &json!({"providers": {"mock": provider}}).to_string())?;
            set("PI_CODING_AGENT_DIR", own.display().to_string());
            set("PI_OFFLINE", "1".into());
            set("PI_TELEMETRY", "0".into());
        }
        Family::Opencode => {
            let options = json!({"baseURL": format!("{url}/v1"), "apiKey": "none"});
            let models = json!({"mock-model": {"limit": {"context": 128_000, "output": 8192}}});
            let provider = json!({"npm": "@ai-sdk/openai-compatible", "options": options, "models": models});
            let config = json!({"autoupdate": false, "share": "disabled", "model": "mock/mock-model",
                "small_model": "mock/mock-model", "enabled_providers": ["mock"], "provider": {"mock": provider}});
            write(&home.join("config/opencode/opencode.json"), &config.to_string())?;
            for name in ["CONFIG", "DATA", "STATE", "CACHE"] {
                set(&format!("XDG_{name}_HOME"), home.join(name.to_lowercase()).display().to_string());
            }
            for name in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
                set(&format!("OPENCODE_DISABLE_{name}"), "1".into());
            }
        }
    }
    Ok(env)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(named)?;
    }
    fs::write(path, text).map_err(named)
}
