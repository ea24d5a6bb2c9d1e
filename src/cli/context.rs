//! The context of every command: the environment, the current folder, and which workflow file to use.

use std::path::{Path, PathBuf};

use crate::runtime::RunnerFolder;
use crate::workflow::{self, Env, Loaded, Overrides};

use super::Failure;

const USUAL_NAME: &str = "WORKFLOW.md";

/// The environment, the current folder, and the options that choose and override the workflow file.
pub struct Context {
    pub env: Env,
    pub cwd: PathBuf,
    workflow: Option<PathBuf>,
    overrides: Overrides,
}

impl Context {
    /// Reads the environment of the process. `set` holds the `key.path=value` texts of `--set`.
    pub fn new(workflow: Option<PathBuf>, set: &[String]) -> Result<Self, Failure> {
        let overrides = Overrides::parse(set).map_err(|error| Failure::Usage(error.to_string()))?;
        let cwd =
            std::env::current_dir().map_err(|error| Failure::plain(format!("the current folder is gone: {error}")))?;
        Ok(Self { env: Env::of_process(), cwd, workflow, overrides })
    }

    /// Returns the path of the workflow file: `--workflow`, else the positional path, else `WORKFLOW.md` here or in the nearest folder
    /// above, up to the repository's top.
    pub fn workflow_path(&self, positional: Option<&Path>) -> PathBuf {
        match self.workflow.as_deref().or(positional) {
            Some(path) => self.cwd.join(path),
            None => self.found_above().unwrap_or_else(|| self.cwd.join(USUAL_NAME)),
        }
    }

    fn found_above(&self) -> Option<PathBuf> {
        let top = workflow::resolve::usual_repo(&self.cwd);
        let inside = self.cwd.ancestors().take_while(|folder| folder.starts_with(&top));
        inside.map(|folder| folder.join(USUAL_NAME)).find(|file| file.is_file())
    }

    /// Returns where a new workflow file belongs: the path of `--workflow`, else that of an existing file here or above, else the
    /// repository's top.
    pub fn new_workflow_path(&self) -> PathBuf {
        match &self.workflow {
            Some(path) => self.cwd.join(path),
            None => self.found_above().unwrap_or_else(|| workflow::resolve::usual_repo(&self.cwd).join(USUAL_NAME)),
        }
    }

    pub fn load(&self, positional: Option<&Path>) -> Result<Loaded, Failure> {
        self.load_file(&self.workflow_path(positional))
    }

    pub fn load_file(&self, path: &Path) -> Result<Loaded, Failure> {
        Ok(workflow::load_with(path, &self.env, &self.overrides)?)
    }

    /// Returns the runner's folder for the default repository, for when the workflow file cannot be read.
    pub fn usual_place(&self) -> RunnerFolder {
        let file = self.workflow_path(None);
        RunnerFolder::of(&workflow::resolve::usual_repo(file.parent().unwrap_or(&self.cwd)), &self.env)
    }

    pub fn place(&self, loaded: &Loaded) -> RunnerFolder {
        RunnerFolder::of(&loaded.settings.workspace.repo, &self.env)
    }
}
