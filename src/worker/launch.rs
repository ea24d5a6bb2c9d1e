//! How a run's agent is started: its environment, its command line, its process, and the session with it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use secrecy::SecretString;

use super::route::Chosen;
use super::wrap_up::WorkspaceInUse;
use super::{RunOrder, Worker, Workplace, desk_tools, spent_path, transcript_path};
use crate::agent::codex;
use crate::agent::exec::Exec;
use crate::agent::plan::{self, LaunchPlan, PlanError, RunPlace};
use crate::agent::session::{HandshakeLimits, Session};
use crate::agent::spent_file::{self, SpentFile};
use crate::agent::transcript::{self, Transcript};
use crate::agent::{DeskServer, Opening, Protocol};
use crate::config::tracker::AgentTool;
use crate::config::worker::Runtime;
use crate::domain::failure::RunFailure;
use crate::domain::ids::SessionId;
use crate::domain::permit::Permit;
use crate::domain::service::ApiTool;
use crate::launcher::environment::{self, Sources, WorkerVariables};
use crate::launcher::run_mark::OWNER_VARIABLE;
use crate::launcher::worker_git;
use crate::launcher::{LaunchError, LaunchOrder, RUN_ID_VARIABLE};

pub(super) struct Opened {
    pub session: Session,
    pub one_shot: bool,
}

impl Worker {
    pub(super) async fn open(
        &self,
        permit: &Permit,
        order: &RunOrder,
        place: &WorkspaceInUse,
        variables: &WorkerVariables,
        chosen: &Chosen,
        resume: Option<SessionId>,
    ) -> Result<Opened, RunFailure> {
        let mut env = self.environment(chosen.runtime, Some(variables));
        let isolated = chosen.runtime == Runtime::Codex && self.settings.codex.isolated_home;
        let agent_home = isolated
            .then(|| codex::home::prepare(&self.state_dir.join("agents"), &env))
            .transpose()
            .map_err(|error| RunFailure::Launch { detail: error.to_string(), permanent: error.is_permanent() })?;
        let desk = self.desk_server(order, variables);
        let planned = self
            .plan(order, place, chosen, resume.clone(), agent_home, desk.clone())
            .map_err(|error| RunFailure::Launch { detail: error.to_string(), permanent: true })?;
        env.extend(planned.env);
        let mut launch = LaunchOrder::shell(variables.run.clone(), &planned.line, place.path().into(), env);
        // The agents' own state, from which conversations can be resumed, and the run's artifacts.
        let agents = self.state_dir.join("agents");
        fs::create_dir_all(&agents)
            .map_err(|error| RunFailure::Workspace { detail: error.to_string(), permanent: false })?;
        launch.writable = vec![agents, variables.artifacts.clone()];
        let transcript = Transcript::open(&transcript_path(&self.state_dir, &variables.run), transcript::DEFAULT_CAP)
            .map_err(|error| RunFailure::Workspace { detail: error.to_string(), permanent: false })?;
        let child = self.launcher.launch(permit, launch).await.map_err(|error| launch_failure(&error))?;
        let one_shot = planned.protocol.one_shot();
        let conversations = self.state_dir.join("conversations");
        let of_it = resume.as_ref().map(|id| spent_file::of_conversation(&conversations, id));
        let opening = Opening {
            cwd: place.path().into(),
            resume,
            used_before: of_it.and_then(|path| spent_file::spent(&path)),
            title: Some(format!("{}: {}", order.ticket.key, order.ticket.title.trim())),
            model: chosen.model.clone(),
            model_provider: chosen.model_provider.clone(),
            thinking_level: chosen.thinking_level.clone(),
            desk,
            tools: desk_tools::offered(
                order.reviewed_head().is_some(),
                self.settings.gates.allow_followups,
                self.api_tool(order),
            ),
        };
        let response = self.settings.timeouts(chosen.runtime).read;
        let limits = HandshakeLimits { start: self.settings.agent.start_timeout, response };
        let mut session = Session::open(child, planned.protocol, transcript, &opening, limits);
        match SpentFile::open(&spent_path(&self.state_dir, &variables.run)) {
            Ok(file) => session.account_in(file),
            Err(error) => session.note(&format!("what is spent cannot be written down: {error}")),
        }
        // Every run of a one-shot command is a process of its own, and its totals may be those of the whole conversation.
        if one_shot {
            session.account_conversations_in(conversations);
        }
        // Claude reports its cost at the end of each turn. Adding a price to its tokens would count that cost twice.
        if chosen.runtime != Runtime::Claude {
            session.usage_totals().price_by(self.settings.budget.price_table(), chosen.model.clone());
        }
        Ok(Opened { session, one_shot })
    }

    /// Returns the path of this program, found through the worker's `tk`. `None` if that is missing.
    fn own_program(&self) -> Option<PathBuf> {
        fs::canonicalize(self.tools.join("tk")).ok()
    }

    /// Returns what this run may do with the tracker's own API: as configured, but a reviewer only reads.
    pub(super) fn agent_tool(&self, order: &RunOrder) -> AgentTool {
        match self.settings.tracker.provider.agent_tool {
            AgentTool::Write if order.reviewed_head().is_some() => AgentTool::Read,
            allowed => allowed,
        }
    }

    /// Returns the tool of the tracker's own API. `None` if the workflow allows none or the tracker has none.
    fn api_tool(&self, order: &RunOrder) -> Option<ApiTool> {
        let allowed = self.agent_tool(order) != AgentTool::Off;
        order.service.as_ref().filter(|_| allowed).and_then(|service| service.api_tool())
    }

    fn desk_server(&self, order: &RunOrder, variables: &WorkerVariables) -> Option<DeskServer> {
        let mut arguments = vec!["desk-mcp".to_owned()];
        if order.reviewed_head().is_some() {
            arguments.push("--read-only".to_owned());
        } else if self.settings.gates.allow_followups {
            arguments.push("--follow-ups".to_owned());
        }
        arguments.extend(self.api_tool(order).map(|tool| format!("--api={}", tool.name)));
        let token = SecretString::from(variables.token.clone());
        let variables =
            [("DIRIGENT_SOCKET", variables.socket.display().to_string()), (RUN_ID_VARIABLE, variables.run.to_string())];
        let variables = variables.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Some(DeskServer { program: self.own_program()?, arguments, variables, token })
    }

    fn plan(
        &self,
        order: &RunOrder,
        place: &WorkspaceInUse,
        chosen: &Chosen,
        resume: Option<SessionId>,
        agent_home: Option<PathBuf>,
        desk: Option<DeskServer>,
    ) -> Result<LaunchPlan, PlanError> {
        let settings = &self.settings;
        let common = match &self.workplace {
            Workplace::Worktrees(workspaces) => Some(workspaces.git_dir().to_owned()),
            Workplace::Directories(_) => None,
        };
        let own = common.as_ref().zip(place.path().file_name()).map(|(git, name)| git.join("worktrees").join(name));
        let run_place = RunPlace {
            git_dir: own,
            git_common_dir: common,
            state_dir: self.state_dir.join("agents"),
            resume,
            model: chosen.model.clone(),
            model_provider: chosen.model_provider.clone(),
            thinking_level: chosen.thinking_level.clone(),
            runs_as_root: nix::unistd::geteuid().is_root(),
            // Whether anything is left is for the engine to decide. The agent requires a positive number.
            max_cost_usd: order.cost_left.map(|microusd| microusd.max(1) as f64 / 1_000_000.0),
            agent_home,
            hook_program: self.own_program(),
            read_only: order.reviewed_head().is_some(),
            desk,
        };
        match chosen.runtime {
            Runtime::Codex => plan::codex(&settings.codex, &run_place),
            Runtime::Claude => plan::claude(&settings.claude, &run_place),
            Runtime::Pi => plan::pi(&settings.pi, &run_place),
            Runtime::Acp => plan::acp(&settings.acp),
            Runtime::Exec => {
                let command = settings.exec.command.trim();
                if command.is_empty() {
                    return Err(PlanError::NoCommand { runtime: "exec" });
                }
                Ok(plan::one_shot(command, &run_place).unwrap_or_else(|| {
                    let protocol: Box<dyn Protocol> = Box::new(Exec::new(settings.exec.events));
                    LaunchPlan { line: command.to_owned(), env: Vec::new(), protocol }
                }))
            }
        }
    }

    /// Returns the allow-listed environment with the variables that the runtime needs, for agents and gates.
    pub fn environment(&self, runtime: Runtime, worker: Option<&WorkerVariables>) -> BTreeMap<String, String> {
        let pass: Vec<String> = runtime
            .env_pass()
            .iter()
            .map(|name| (*name).to_owned())
            .chain(self.settings.worker.env_pass.clone())
            .collect();
        self.complete(|set| environment::build(self.sources(&pass, set), worker))
    }

    /// Returns the user's own environment, for hooks.
    pub fn hook_environment(&self) -> BTreeMap<String, String> {
        self.complete(|set| environment::build_for_hook(self.sources(&[], set)))
    }

    fn sources<'a>(&'a self, pass: &'a [String], set: &'a BTreeMap<String, String>) -> Sources<'a> {
        Sources { parent: &self.environment, pass, set, secrets: &self.secrets, tools: &self.tools }
    }

    /// Builds an environment and adds what every process of a run gets: the identity for commits and the mark of this runner.
    fn complete(
        &self,
        build: impl FnOnce(&BTreeMap<String, String>) -> BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        use secrecy::ExposeSecret;
        let set = self.settings.worker.env.iter();
        let set = set.map(|(name, value)| (name.clone(), value.expose_secret().to_owned())).collect();
        let mut built = build(&set);
        if let Workplace::Worktrees(workspaces) = &self.workplace {
            for (name, value) in workspaces.stand_in_identity() {
                built.entry(name).or_insert(value);
            }
        }
        let commit = &self.settings.workspace.commit;
        if let Some((name, mail)) = commit.identity() {
            for role in ["AUTHOR", "COMMITTER"] {
                built.insert(format!("GIT_{role}_NAME"), name.to_owned());
                built.insert(format!("GIT_{role}_EMAIL"), mail.to_owned());
            }
        }
        if let Some(sign) = commit.sign {
            worker_git::set(&mut built, "commit.gpgSign", &sign.to_string());
        }
        if commit.signoff {
            worker_git::sign_off(&mut built, &self.tools);
        }
        built.insert(OWNER_VARIABLE.to_owned(), self.state_dir.display().to_string());
        built
    }
}

fn launch_failure(error: &LaunchError) -> RunFailure {
    RunFailure::Launch { detail: error.to_string(), permanent: error.is_permanent() }
}
