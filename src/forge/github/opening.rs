//! Finds, opens, reopens and changes pull requests.

use http::Method;
use serde_json::json;

use super::conversation::cut;
use super::documents::{DRAFT, READY};
use super::errors::about;
use super::wire::RestPull;
use super::{Inner, blocking, template};
use crate::domain::comment::{Author, TrustLevel};
use crate::domain::ids::{CommitId, PrNumber};
use crate::domain::pr::{Mergeability, NewPr, PrState, PullRequest};
use crate::domain::ticket::normalise_labels;
use crate::forge::markers::{BODY_FROM, our_body, with_our_body};
use crate::forge::{ForgeError, PrChange};
use crate::github::{GithubError, Purpose, with_query};

/// A little less than GitHub's limit, in bytes, to leave room for what people add.
const LONGEST_BODY: usize = 60_000;
const LONGEST_TITLE: usize = 250;

impl Inner {
    pub(super) async fn find_pr(&self, branch: &str) -> Result<Option<PullRequest>, ForgeError> {
        let found = self.pulls_of(branch).await?;
        let open = found.iter().find(|pull| pull.state == "open");
        Ok(open.or_else(|| found.iter().max_by_key(|pull| pull.number)).map(|pull| shown(pull.clone())))
    }

    /// Lists all pull requests of a branch of this repository. Forks may have branches of the same name; those are left out.
    async fn pulls_of(&self, branch: &str) -> Result<Vec<RestPull>, ForgeError> {
        let head = format!("{}:{branch}", self.owner());
        let query = [("head", head.as_str()), ("state", "all"), ("per_page", "100")];
        let path = with_query(&self.path("/pulls"), &query);
        let found: Vec<RestPull> = self.github.list(Purpose::Write, &path).await?;
        Ok(found.into_iter().filter(|pull| pull.head.branch == branch).collect())
    }

    pub(super) async fn open_pr(&self, new: &NewPr) -> Result<PullRequest, ForgeError> {
        let _one_at_a_time = self.opening.lock().await;
        let found = self.pulls_of(&new.head_branch).await?;
        let open = found.into_iter().find(|pull| pull.state == "open");
        let pull = match open {
            Some(pull) if !self.settings.reuse && !is_ours(&pull) => {
                return Err(ForgeError::Refused(format!(
                    "`{}` has the open pull request #{} already, and pr.reuse_branch_pr is off",
                    new.head_branch, pull.number
                )));
            }
            Some(pull) => pull,
            None => self.create(new).await?,
        };
        let number = PrNumber(pull.number);
        self.add_labels(number, &pull, &new.labels).await?;
        if !new.reviewers.is_empty() {
            match self.request_reviews(number, &new.reviewers).await {
                // A reviewer whom GitHub refuses does not stop the pull request from being opened.
                Err(ForgeError::Refused(why)) => {
                    tracing::warn!(%number, why, "GitHub does not take all of pr.reviewers");
                }
                other => other?,
            }
        }
        let mut pr = shown(pull);
        pr.labels = normalise_labels(pr.labels.iter().chain(&new.labels));
        Ok(pr)
    }

    async fn create(&self, new: &NewPr) -> Result<RestPull, ForgeError> {
        let (place, base) = (self.remote.place().clone(), new.base_branch.clone());
        let template = blocking(move || Ok(template::of_base(&place, &base))).await?;
        let text = template::filled(template.as_deref(), &our_body(&cut(&new.body, LONGEST_BODY)));
        let title: String = new.title.chars().take(LONGEST_TITLE).collect();
        let body = json!({
            "title": title, "body": text, "head": new.head_branch, "base": new.base_branch, "draft": new.draft,
        });
        let made = self.github.write(Purpose::Write, Method::POST, &self.path("/pulls"), Some(&body)).await;
        let refusal = match made {
            Ok(pull) => return Ok(pull),
            Err(GithubError::Refused(refusal)) if refusal.status == 422 => refusal,
            Err(error) => return Err(error.into()),
        };
        let says = |words: &str| refusal.fields.iter().any(|fault| fault.message.contains(words));
        if says("already exists") {
            let again = self.pulls_of(&new.head_branch).await?.into_iter().find(|pull| pull.state == "open");
            return again
                .ok_or_else(|| ForgeError::NotNow("GitHub has the pull request and does not show it yet".to_owned()));
        }
        if refusal.fields.iter().any(|fault| fault.field == "head" && fault.code == "invalid") {
            // The branch was pushed a moment ago, and a replica of GitHub does not have it yet.
            return Err(ForgeError::NotNow(format!("GitHub does not see the branch `{}` yet", new.head_branch)));
        }
        if refusal.message.contains("Draft pull requests are not supported")
            || says("Draft pull requests are not supported")
        {
            return Err(ForgeError::Refused(
                "this repository has no draft pull requests\n  fix: set pr.draft: false".to_owned(),
            ));
        }
        Err(GithubError::Refused(refusal).into())
    }

    async fn add_labels(&self, number: PrNumber, pull: &RestPull, labels: &[String]) -> Result<(), ForgeError> {
        let has = |label: &&String| pull.labels.iter().any(|known| known.name.eq_ignore_ascii_case(label.trim()));
        let missing: Vec<&String> = labels.iter().filter(|label| !has(label)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let path = self.path(&format!("/issues/{}/labels", number.0));
        Ok(self.github.write_blindly(Purpose::Write, Method::POST, &path, Some(&json!({ "labels": missing }))).await?)
    }

    pub(super) async fn pull(&self, purpose: Purpose, number: PrNumber) -> Result<RestPull, ForgeError> {
        self.github.get(purpose, &self.path(&format!("/pulls/{}", number.0))).await.map_err(about(number))
    }

    pub(super) async fn reopen(&self, number: PrNumber) -> Result<(), ForgeError> {
        let pull = self.pull(Purpose::Write, number).await?;
        if pull.merged_at.is_some() {
            return Err(ForgeError::Refused(format!("pull request {number} is merged")));
        }
        if pull.state == "open" {
            return Ok(());
        }
        let path = self.path(&format!("/pulls/{}", number.0));
        Ok(self.github.write_blindly(Purpose::Write, Method::PATCH, &path, Some(&json!({ "state": "open" }))).await?)
    }

    pub(super) async fn update_pr(&self, number: PrNumber, change: &PrChange) -> Result<(), ForgeError> {
        let pull = self.pull(Purpose::Write, number).await?;
        let mut fields = serde_json::Map::new();
        if let Some(title) = change.title.as_ref().filter(|title| **title != pull.title) {
            fields.insert("title".to_owned(), json!(title.chars().take(LONGEST_TITLE).collect::<String>()));
        }
        if let Some(body) = &change.body {
            let old = pull.body.clone().unwrap_or_default();
            let text = with_our_body(&old, &cut(body, LONGEST_BODY));
            if text != old {
                fields.insert("body".to_owned(), json!(text));
            }
        }
        if !fields.is_empty() {
            let path = self.path(&format!("/pulls/{}", number.0));
            self.github.write_blindly(Purpose::Write, Method::PATCH, &path, Some(&fields)).await?;
        }
        if let Some(draft) = change.draft.filter(|draft| *draft != pull.draft) {
            let document = if draft { DRAFT } else { READY };
            let variables = json!({ "id": pull.node_id });
            self.github.mutate::<serde_json::Value>(Purpose::Write, document, &variables).await?;
        }
        self.add_labels(number, &pull, &change.add_labels).await
    }
}

fn is_ours(pull: &RestPull) -> bool {
    pull.body.as_deref().is_some_and(|body| body.contains(BODY_FROM))
}

/// Converts what a list or a created pull request shows. The rest stays unknown until the next look.
fn shown(pull: RestPull) -> PullRequest {
    let state = match (&pull.merged_at, pull.state.as_str()) {
        (Some(_), _) => PrState::Merged { commit: None },
        (None, "open") => PrState::Open,
        (None, _) => PrState::Closed,
    };
    PullRequest {
        number: PrNumber(pull.number),
        url: pull.html_url,
        title: pull.title,
        state,
        draft: pull.draft,
        author: pull.user.map(|user| Author::new(user.login, TrustLevel::Stranger)),
        head_branch: pull.head.branch,
        head: CommitId::new(pull.head.sha),
        head_repo: pull.head.repo.map(|repo| repo.full_name),
        ref_head: None,
        base_branch: pull.base.branch,
        base: Some(CommitId::new(pull.base.sha)),
        mergeability: Mergeability::Unknown,
        checks: None,
        required_checks: None,
        reviews: None,
        threads: None,
        comments: None,
        labels: normalise_labels(pull.labels.iter().map(|label| label.name.as_str())),
        in_queue: false,
        pushed_at: None,
    }
}
