//! The thread of a Codex conversation: the sandbox and the tools with which it is started or resumed.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Call, Codex};
use crate::agent::conversation::text;
use crate::agent::{AgentEvent, Reaction};
use crate::domain::ids::SessionId;

/// The settings that a thread is started with. The policies are passed to Codex unchanged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadPolicy {
    pub approval_policy: Option<Value>,
    pub thread_sandbox: Option<Value>,
    pub turn_sandbox_policy: Option<Value>,
    /// Made writable inside `workspace-write`, besides the worktree itself.
    pub writable_roots: Vec<PathBuf>,
}

impl Codex {
    fn thread_params(&self) -> Value {
        let mut params = json!({});
        if let Some(opening) = &self.opening {
            params["cwd"] = json!(opening.cwd);
            if let Some(model) = &opening.model {
                params["model"] = json!(model);
            }
            if let Some(provider) = &opening.model_provider {
                params["modelProvider"] = json!(provider);
            }
        }
        if let Some(policy) = &self.policy.approval_policy {
            params["approvalPolicy"] = policy.clone();
        }
        if let Some(sandbox) = &self.policy.thread_sandbox {
            params["sandbox"] = sandbox.clone();
        }
        // A login shell would read its profile and lose the `PATH` that `tk` is on.
        params["config"] = json!({"allow_login_shell": false});
        if !self.policy.writable_roots.is_empty() {
            params["config"]["sandbox_workspace_write.writable_roots"] = json!(self.policy.writable_roots);
        }
        params
    }

    pub(super) fn start_thread(&mut self, out: &mut Reaction) {
        let mut params = self.thread_params();
        let tools = self.opening.as_ref().map(|opening| opening.tools.as_slice()).unwrap_or_default();
        if !tools.is_empty() {
            params["dynamicTools"] = tools
                .iter()
                .map(|tool| {
                    json!({"type": "function", "name": tool.name, "description": tool.description,
                           "inputSchema": tool.input_schema})
                })
                .collect();
        }
        self.call(Call::Start, "thread/start", params, out);
    }

    pub(super) fn open_thread(&mut self, out: &mut Reaction) {
        out.say(&json!({"method": "initialized"}));
        match self.opening.as_ref().and_then(|opening| opening.resume.clone()) {
            Some(session) => {
                let mut params = self.thread_params();
                params["threadId"] = json!(session.as_str());
                // Without this the thread keeps the roots of its first worktree, which is gone, and no sandbox would start.
                params["runtimeWorkspaceRoots"] = json!([params["cwd"]]);
                params["excludeTurns"] = json!(true);
                self.call(Call::Resume, "thread/resume", params, out);
            }
            None => self.start_thread(out),
        }
    }

    pub(super) fn thread_opened(&mut self, result: &Value, resumed: bool, out: &mut Reaction) {
        let id = text(result, "/thread/id");
        if id.is_empty() || self.thread.is_some() {
            return;
        }
        if !resumed {
            self.meters.entry(id.to_owned()).or_default();
        }
        self.thread = Some(id.to_owned());
        out.tell(AgentEvent::SessionStarted { id: SessionId::new(id) });
        if let (false, Some(title)) = (resumed, self.opening.as_ref().and_then(|opening| opening.title.clone())) {
            self.call(Call::Other, "thread/name/set", json!({"threadId": id, "name": title}), out);
        }
        let model = text(result, "/model");
        if !model.is_empty() {
            out.tell(AgentEvent::Model { name: model.to_owned() });
        }
        out.tell(AgentEvent::Ready);
        if let Some(prompt) = self.early_prompt.take() {
            self.start_turn(&prompt, out);
        }
    }
}

/// Returns the workflow's policy. If it limits writing to the workspace, the roots that commits need are added.
pub(super) fn with_roots(policy: &Value, roots: &[PathBuf]) -> Value {
    let mut policy = policy.clone();
    if policy["type"] == "workspaceWrite" && !roots.is_empty() {
        let mut all = policy["writableRoots"].as_array().cloned().unwrap_or_default();
        all.extend(roots.iter().map(|root| json!(root)));
        policy["writableRoots"] = Value::Array(all);
    }
    policy
}
