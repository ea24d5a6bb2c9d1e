//! Checks of a commit: reading their status, reading why one failed, and running one again.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::Inner;
use super::wire::GraphCheck;
use crate::domain::ids::CommitId;
use crate::domain::pr::{Check, CheckStatus};
use crate::forge::{CommitStatus, ForgeError};
use crate::github::{GithubError, Purpose, with_query};

/// Prefixes of a check's id. They tell where its log is: `run:` is a check run (often a job of Actions), `status:` a commit status, whose
/// description is the log.
const RUN: &str = "run:";
const STATUS: &str = "status:";

/// How many lines (and bytes) of a log a prompt gets.
const TAIL_LINES: usize = 120;
const TAIL_BYTES: usize = 12_000;
/// Longer logs are not downloaded in full, in bytes.
const LONGEST_LOG: usize = 32 * 1024 * 1024;
/// How many logs are kept in memory.
const MOST_LOGS: usize = 200;

#[derive(Deserialize)]
struct Job {
    name: String,
    status: String,
    conclusion: Option<String>,
    html_url: Option<String>,
    #[serde(default)]
    id: u64,
    #[serde(default)]
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    name: String,
    conclusion: Option<String>,
}

#[derive(Deserialize)]
struct CheckRun {
    output: Option<Output>,
}

#[derive(Deserialize)]
struct Output {
    title: Option<String>,
    summary: Option<String>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct Combined {
    statuses: Vec<Status>,
}

#[derive(Deserialize)]
struct Status {
    context: String,
    state: String,
    description: Option<String>,
    target_url: Option<String>,
}

#[derive(Deserialize)]
struct Runs {
    workflow_runs: Vec<Run>,
}

/// A run of a workflow of Actions.
#[derive(Deserialize)]
struct Run {
    id: u64,
    workflow_id: u64,
    event: String,
    name: Option<String>,
    status: Option<String>,
    conclusion: Option<String>,
    html_url: Option<String>,
}

#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<Job>,
}

/// Turns a check of the GraphQL API into a `Check`. The flag tells that the check waits for a person. `None` for unknown kinds of checks.
pub fn read(check: GraphCheck, head: &CommitId) -> Option<(Check, bool)> {
    match check {
        GraphCheck::CheckRun { database_id, name, status, conclusion, details_url, permalink } => {
            let waits = conclusion.as_deref() == Some("ACTION_REQUIRED");
            let status = run_status(&status, conclusion.as_deref());
            let linked = || [&details_url, &permalink].into_iter().flatten().find_map(|url| id_in(url));
            let id = database_id.or_else(linked).map_or_else(|| format!("{RUN}?{name}"), |id| format!("{RUN}{id}"));
            Some((Check { id, name, status, url: details_url, log_tail: None }, waits))
        }
        GraphCheck::StatusContext { context, state, description, target_url } => {
            let status = word_status(&state.to_lowercase());
            let log_tail = (status == CheckStatus::Failed).then(|| description.unwrap_or_default());
            let id = format!("{STATUS}{head}:{context}");
            Some((Check { id, name: context, status, url: target_url, log_tail }, false))
        }
        GraphCheck::Unknown => None,
    }
}

/// Returns the id in a check's address. The GraphQL API has no number for ids beyond 32 bits; the addresses have.
fn id_in(url: &str) -> Option<u64> {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let (_, id) = path.rsplit_once("/job/").or_else(|| path.rsplit_once("/runs/"))?;
    id.parse().ok()
}

/// Maps the status of a check run. An unknown word never counts as passed.
fn run_status(status: &str, conclusion: Option<&str>) -> CheckStatus {
    if !status.eq_ignore_ascii_case("completed") {
        return CheckStatus::Pending;
    }
    match conclusion.map(str::to_lowercase).as_deref() {
        Some("success") => CheckStatus::Passed,
        Some("neutral" | "skipped") => CheckStatus::Neutral,
        // It neither failed nor runs: a person has to let it run.
        Some("action_required") => CheckStatus::Neutral,
        Some("failure" | "timed_out" | "cancelled" | "startup_failure") => CheckStatus::Failed,
        // Superseded by a newer run ("stale"), or a word that this version does not know.
        _ => CheckStatus::Pending,
    }
}

fn word_status(state: &str) -> CheckStatus {
    match state {
        "success" => CheckStatus::Passed,
        "failure" | "error" => CheckStatus::Failed,
        _ => CheckStatus::Pending,
    }
}

/// Keeps the newest run of each workflow and event. Jobs of different workflows may have the same name, and each of them counts.
fn newest(runs: Vec<Run>) -> Vec<Run> {
    let mut found: Vec<Run> = Vec::new();
    for run in runs {
        match found.iter_mut().find(|known| known.workflow_id == run.workflow_id && known.event == run.event) {
            Some(known) if known.id < run.id => *known = run,
            Some(_) => {}
            None => found.push(run),
        }
    }
    found
}

impl Inner {
    /// Reads the checks that a fine-grained token can see: commit statuses and the jobs of Actions. Check runs of other Apps stay unknown.
    pub(super) async fn checks_without_check_runs(&self, head: &CommitId) -> Result<Vec<Check>, GithubError> {
        let statuses = self.statuses(Purpose::Look, head).await?;
        let mut checks: Vec<Check> = statuses
            .into_iter()
            .filter_map(|status| {
                let Status { context, state, description, target_url } = status;
                read(GraphCheck::StatusContext { context, state, description, target_url }, head)
            })
            .map(|(check, _)| check)
            .collect();
        let path = with_query(&self.path("/actions/runs"), &[("head_sha", head.as_str()), ("per_page", "100")]);
        let runs = self.listed(Purpose::Look, &path, |page: Runs| page.workflow_runs).await?;
        for run in newest(runs) {
            let path = self.path(&format!("/actions/runs/{}/jobs?per_page=100", run.id));
            let jobs = self.listed(Purpose::Look, &path, |page: Jobs| page.jobs).await?;
            if jobs.is_empty() {
                // It has not begun, or could not begin.
                let status = run_status(run.status.as_deref().unwrap_or_default(), run.conclusion.as_deref());
                let name = run.name.unwrap_or_else(|| format!("workflow {}", run.workflow_id));
                checks.push(Check { id: format!("{RUN}?{name}"), name, status, url: run.html_url, log_tail: None });
            }
            checks.extend(jobs.into_iter().map(|job| Check {
                id: format!("{RUN}{}", job.id),
                status: run_status(&job.status, job.conclusion.as_deref()),
                name: job.name,
                url: job.html_url,
                log_tail: None,
            }));
        }
        Ok(checks)
    }

    async fn statuses(&self, purpose: Purpose, commit: &CommitId) -> Result<Vec<Status>, GithubError> {
        let path = self.path(&format!("/commits/{commit}/status?per_page=100"));
        self.listed(purpose, &path, |page: Combined| page.statuses).await
    }

    /// Reads all pages of a list whose pages are objects. `items` takes the list out of such an object.
    async fn listed<P: DeserializeOwned, T>(
        &self,
        purpose: Purpose,
        path: &str,
        items: impl Fn(P) -> Vec<T> + Send,
    ) -> Result<Vec<T>, GithubError> {
        let mut pages = self.github.pages(purpose, path);
        let mut all = Vec::new();
        while let Some(page) = pages.next().await? {
            all.extend(items(page.read::<P>()?));
        }
        Ok(all)
    }

    /// Returns the name of the failed step and the end of its log. Each log is requested once and then remembered.
    pub(super) async fn check_log(&self, check: &str) -> Result<String, ForgeError> {
        if let Some(known) = self.logs().get(check) {
            return Ok(known.clone());
        }
        let log = self.read_log(check).await?;
        if !log.is_empty() {
            let mut logs = self.logs();
            if logs.len() >= MOST_LOGS {
                logs.clear();
            }
            logs.insert(check.to_owned(), log.clone());
        }
        Ok(log)
    }

    fn logs(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read_log(&self, check: &str) -> Result<String, ForgeError> {
        let Some(id) = check.strip_prefix(RUN).and_then(|id| id.parse::<u64>().ok()) else {
            return Ok(String::new());
        };
        let job = self.github.get::<Job>(Purpose::Look, &self.path(&format!("/actions/jobs/{id}"))).await;
        match job {
            Ok(job) => self.job_log(id, &job).await,
            // A check run of another App.
            Err(GithubError::NotFound(_) | GithubError::Refused(_)) => self.output_of(id).await,
            Err(error) => Err(error.into()),
        }
    }

    async fn job_log(&self, id: u64, job: &Job) -> Result<String, ForgeError> {
        let failed = |step: &&Step| matches!(step.conclusion.as_deref(), Some("failure" | "timed_out" | "cancelled"));
        let step = job.steps.iter().find(failed).map(|step| format!("Failed step: {}\n", step.name));
        let log =
            self.github.download(Purpose::Look, &self.path(&format!("/actions/jobs/{id}/logs")), LONGEST_LOG).await;
        let log = match log {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            // The log has expired or is not written yet.
            Err(GithubError::NotFound(_) | GithubError::Gone(_)) => String::new(),
            Err(error) => return Err(error.into()),
        };
        Ok(format!("{}{}", step.unwrap_or_default(), tail_of(&log)))
    }

    async fn output_of(&self, id: u64) -> Result<String, ForgeError> {
        let run = match self.github.get::<CheckRun>(Purpose::Look, &self.path(&format!("/check-runs/{id}"))).await {
            Ok(run) => run,
            Err(GithubError::NotFound(_) | GithubError::Refused(_)) => return Ok(String::new()),
            Err(error) => return Err(error.into()),
        };
        let parts =
            run.output.map(|output| [output.title, output.summary, output.text]).into_iter().flatten().flatten();
        Ok(tail_of(&parts.filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join("\n\n")))
    }

    pub(super) async fn rerun_check(&self, check: &str) -> Result<(), ForgeError> {
        let Some(id) = check.strip_prefix(RUN).and_then(|id| id.parse::<u64>().ok()) else {
            return Err(ForgeError::Refused(format!("`{check}` is not a check that GitHub could run again")));
        };
        let path = self.path(&format!("/actions/jobs/{id}"));
        let refused = |error: GithubError| match error {
            GithubError::NotFound(_) => ForgeError::Refused(format!("`{check}` is not a job of GitHub Actions")),
            error => error.into(),
        };
        let job: Job = self.github.get(Purpose::Write, &path).await.map_err(refused)?;
        if job.status != "completed" {
            return Ok(());
        }
        let path = self.path(&format!("/actions/jobs/{id}/rerun"));
        Ok(self.github.write_blindly(Purpose::Write, Method::POST, &path, None::<&()>).await?)
    }

    pub(super) async fn publish_status(&self, status: &CommitStatus) -> Result<(), ForgeError> {
        const LONGEST: usize = 140;
        let description: String = status.description.chars().take(LONGEST).collect();
        let state = if status.passed { "success" } else { "failure" };
        let known = self.statuses(Purpose::Write, &status.commit).await?;
        let same = |one: &Status| {
            one.context == status.name && one.state == state && one.description.as_deref() == Some(description.as_str())
        };
        if known.iter().any(same) {
            return Ok(());
        }
        let body = json!({ "state": state, "context": status.name, "description": description });
        let path = self.path(&format!("/statuses/{}", status.commit));
        Ok(self.github.write_blindly(Purpose::Write, Method::POST, &path, Some(&body)).await?)
    }
}

/// Returns the end of a log, without the time before each line.
fn tail_of(log: &str) -> String {
    let lines: Vec<&str> = log.lines().map(without_time).collect();
    let text = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
    let mut start = text.len().saturating_sub(TAIL_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].to_owned()
}

/// Removes the time that Actions writes before each line: `2026-01-01T00:00:00.0000000Z `.
fn without_time(line: &str) -> &str {
    match line.split_once(' ') {
        Some((time, rest)) if time.len() >= 20 && time.ends_with('Z') && time.as_bytes().get(10) == Some(&b'T') => rest,
        _ => line.trim_start_matches('\u{feff}'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_success_is_a_pass() {
        for (status, conclusion, expected) in [
            ("COMPLETED", Some("SUCCESS"), CheckStatus::Passed),
            ("COMPLETED", Some("SKIPPED"), CheckStatus::Neutral),
            ("COMPLETED", Some("TIMED_OUT"), CheckStatus::Failed),
            ("COMPLETED", Some("STALE"), CheckStatus::Pending),
            ("COMPLETED", Some("SOMETHING_NEW"), CheckStatus::Pending),
            ("COMPLETED", None, CheckStatus::Pending),
            ("WAITING", None, CheckStatus::Pending),
            ("SOMETHING_NEW", Some("SUCCESS"), CheckStatus::Pending),
        ] {
            assert_eq!(run_status(status, conclusion), expected, "{status} {conclusion:?}");
        }
        assert_eq!(word_status("expected"), CheckStatus::Pending);
    }

    #[test]
    fn the_id_of_a_check_run_is_found_in_its_address() {
        assert_eq!(id_in("https://github.com/a/b/actions/runs/12/job/34567890123"), Some(34_567_890_123));
        assert_eq!(id_in("https://github.com/a/b/runs/34567890123?check_suite_focus=true"), Some(34_567_890_123));
        assert_eq!(id_in("https://ci.example.com/builds/7"), None);
        assert_eq!(id_in("https://github.com/a/b/actions/runs/12/attempts/2"), None);
    }

    #[test]
    fn a_log_is_its_end_without_times() {
        let log: String = (0..500).map(|at| format!("2026-01-01T00:00:00.0000000Z line {at}\n")).collect();
        let tail = tail_of(&log);
        assert!(tail.starts_with("line 380\n") && tail.ends_with("line 499"), "{tail}");
        assert_eq!(tail_of("plain words\n"), "plain words");
    }
}
