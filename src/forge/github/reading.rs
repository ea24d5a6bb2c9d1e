//! Converts a pull request of the GraphQL API into `PullRequest`. A part that was not read to its last page is unknown (`None`).

use std::collections::HashMap;
use std::time::Instant;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::documents::{MORE_CHECKS, MORE_COMMENTS, MORE_IN_THREAD, MORE_LABELS, MORE_REVIEWS, MORE_THREADS};
use super::rules::{self, Demands};
use super::wire::{ByNode, GraphCheck, GraphComment, GraphLabel, GraphPull, GraphReview, GraphThread, Page, time};
use super::{Inner, checks};
use crate::domain::comment::{Comment, has_command_line};
use crate::domain::ids::{CommentId, CommitId, PrNumber};
use crate::domain::pr::{Check, CheckStatus, Mergeability, PrState, PullRequest, Review, ReviewThread, Verdict};
use crate::domain::ticket::normalise_labels;
use crate::github::{GithubError, GraphqlFault, Purpose};

/// Limit of pages that are read of one list.
const MOST_PAGES: usize = 50;

/// What else is known when a pull request is converted.
pub struct Facts<'a> {
    /// The commits that git has for branches. `None` if git could not be queried.
    pub heads: Option<&'a HashMap<String, CommitId>>,
    pub viewer: Option<&'a str>,
    pub faults: &'a [GraphqlFault],
    /// When the look began.
    pub begun: Instant,
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct OfNode<T> {
    page: Option<Page<T>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfRollup {
    status_check_rollup: Option<OfNode<GraphCheck>>,
}

/// The checks of a head.
struct ChecksRead {
    checks: Option<Vec<Check>>,
    /// Names of checks that a person has to let run. Their conclusion is `ACTION_REQUIRED`.
    waiting_for_people: Vec<String>,
}

impl Inner {
    /// Fails if the labels cannot be read to their end: one of them may be a kill switch.
    pub(super) async fn read(&self, mut pull: GraphPull, facts: &Facts<'_>) -> Result<PullRequest, GithubError> {
        let labels: Vec<GraphLabel> = self.whole(Purpose::Look, pull.labels.take(), &pull.id, MORE_LABELS).await?;
        let number = PrNumber(pull.number);
        let head = CommitId::new(pull.head_ref_oid.clone());
        let state = match pull.state.as_str() {
            "OPEN" => PrState::Open,
            "MERGED" => PrState::Merged { commit: pull.merge_commit.take().map(|commit| CommitId::new(commit.oid)) },
            _ => PrState::Closed,
        };
        let demands = match state {
            PrState::Open => self.demands(&pull.base_ref_name).await,
            _ => Demands { checks: Some(Vec::new()), ..Demands::default() },
        };
        let reviews = self.reviews(&mut pull, facts).await.map_err(unread("reviews", number)).ok();
        let threads = self.threads(&mut pull, facts).await.map_err(unread("conversations", number)).ok();
        let comments = self.comments(&mut pull, facts).await.map_err(unread("comments", number)).ok();
        let read = self.checks(&mut pull, &head, facts, &demands).await;
        let ref_head = facts.heads.and_then(|heads| heads.get(&pull.head_ref_name)).filter(|_| self.is_here(&pull));
        let base = facts.heads.and_then(|heads| heads.get(&pull.base_ref_name)).cloned();
        let mergeability = match state {
            PrState::Open => self.mergeability(&pull, &head, &demands, &read, threads.as_deref()).await,
            _ => Mergeability::Unknown,
        };
        // An unreadable permission leaves the author unknown. It must not make the whole look fail.
        let author = self.author(pull.author.as_ref(), facts.viewer).await.ok();
        Ok(PullRequest {
            number,
            url: pull.url,
            title: pull.title,
            state,
            draft: pull.is_draft,
            author,
            head_branch: pull.head_ref_name,
            head,
            head_repo: pull.head_repository.map(|repo| repo.name_with_owner),
            ref_head: ref_head.cloned(),
            base_branch: pull.base_ref_name,
            base: base.or_else(|| Some(CommitId::new(pull.base_ref_oid))),
            mergeability,
            checks: read.checks,
            required_checks: demands.checks,
            reviews,
            threads,
            comments,
            labels: normalise_labels(labels.into_iter().map(|label| label.name)),
            in_queue: pull.is_in_merge_queue,
            pushed_at: None,
        })
    }

    async fn reviews(&self, pull: &mut GraphPull, facts: &Facts<'_>) -> Result<Vec<Review>, GithubError> {
        let all = self.whole(Purpose::Look, pull.reviews.take(), &pull.id, MORE_REVIEWS).await?;
        let mut reviews = Vec::with_capacity(all.len());
        for review in all.into_iter().filter(|review| !review.is_minimized) {
            let Some(verdict) = verdict(&review) else { continue };
            let author = match verdict {
                Verdict::Approved => self.approver(review.author.as_ref(), facts.viewer, facts.begun).await?,
                _ => self.author(review.author.as_ref(), facts.viewer).await?,
            };
            reviews.push(Review {
                author,
                id: CommentId::new(review.id),
                verdict,
                head: review.commit.map(|commit| CommitId::new(commit.oid)),
                body: review.body,
                submitted_at: review.submitted_at.as_deref().and_then(time),
            });
        }
        Ok(reviews)
    }

    async fn threads(&self, pull: &mut GraphPull, facts: &Facts<'_>) -> Result<Vec<ReviewThread>, GithubError> {
        let all: Vec<GraphThread> =
            self.whole(Purpose::Look, pull.review_threads.take(), &pull.id, MORE_THREADS).await?;
        let mut threads = Vec::with_capacity(all.len());
        for thread in all {
            let said: Vec<GraphComment> =
                self.whole(Purpose::Look, thread.comments, &thread.id, MORE_IN_THREAD).await?;
            let review = said.first().and_then(|first| first.pull_request_review.as_ref());
            let review = review.map(|review| CommentId::new(review.id.clone()));
            threads.push(ReviewThread {
                id: CommentId::new(thread.id),
                resolved: thread.is_resolved,
                review,
                path: thread.path,
                line: thread.line.or(thread.original_line),
                comments: self.said(said, facts).await?,
            });
        }
        // A conversation without comments is one whose comments were all deleted or hidden.
        threads.retain(|thread| !thread.comments.is_empty());
        Ok(threads)
    }

    async fn comments(&self, pull: &mut GraphPull, facts: &Facts<'_>) -> Result<Vec<Comment>, GithubError> {
        let all = self.whole(Purpose::Look, pull.comments.take(), &pull.id, MORE_COMMENTS).await?;
        self.said(all, facts).await
    }

    async fn said(&self, said: Vec<GraphComment>, facts: &Facts<'_>) -> Result<Vec<Comment>, GithubError> {
        let mut comments = Vec::with_capacity(said.len());
        for comment in said.into_iter().filter(|comment| !comment.is_minimized) {
            let author = match has_command_line(&comment.body) {
                true => self.approver(comment.author.as_ref(), facts.viewer, facts.begun).await?,
                false => self.author(comment.author.as_ref(), facts.viewer).await?,
            };
            comments.push(Comment {
                author,
                id: CommentId::new(comment.id),
                body: comment.body,
                created_at: comment.created_at.as_deref().and_then(time),
                updated_at: comment.updated_at.as_deref().and_then(time),
            });
        }
        Ok(comments)
    }

    async fn checks(&self, pull: &mut GraphPull, head: &CommitId, facts: &Facts<'_>, demands: &Demands) -> ChecksRead {
        let about_checks = |fault: &GraphqlFault| fault.path.iter().any(|step| step == "statusCheckRollup");
        let forbidden = facts.faults.iter().any(about_checks);
        let all = match pull.status_check_rollup.take() {
            // No checks have run on this head.
            None if !forbidden => Ok(Vec::new()),
            Some(rollup) if !forbidden => self.whole_checks(rollup.contexts, &pull.id).await,
            _ => {
                return ChecksRead {
                    checks: self.partial_checks(pull, head, demands).await,
                    waiting_for_people: Vec::new(),
                };
            }
        };
        let all = match all {
            Ok(all) => all,
            Err(error) => {
                unread("checks", PrNumber(pull.number))(error);
                return ChecksRead { checks: None, waiting_for_people: Vec::new() };
            }
        };
        let read: Vec<(Check, bool)> = all.into_iter().filter_map(|check| checks::read(check, head)).collect();
        let waiting_for_people = read.iter().filter(|(_, waits)| *waits).map(|(check, _)| check.name.clone()).collect();
        ChecksRead { checks: Some(read.into_iter().map(|(check, _)| check).collect()), waiting_for_people }
    }

    /// Reads the checks with a token that cannot read check runs. The visible ones are used only if one of them failed, if GitHub itself
    /// finds everything well, or if the required checks are known by name. Otherwise the checks are unknown and nothing is merged.
    async fn partial_checks(&self, pull: &GraphPull, head: &CommitId, demands: &Demands) -> Option<Vec<Check>> {
        let seen = self.checks_without_check_runs(head).await.map_err(unread("checks", PrNumber(pull.number))).ok()?;
        let failed = seen.iter().any(|check| check.status == CheckStatus::Failed);
        let named = demands.checks.as_ref().is_some_and(|names| !names.is_empty());
        let all_well = pull.merge_state_status.as_deref() == Some("CLEAN") && !seen.is_empty();
        (failed || named || all_well).then_some(seen)
    }

    async fn whole_checks(&self, first: Option<Page<GraphCheck>>, id: &str) -> Result<Vec<GraphCheck>, GithubError> {
        let Some(first) = first else { return Err(GithubError::Pages("the checks are missing".to_owned())) };
        let (mut all, mut next) = taken(first)?;
        for _ in 0..MOST_PAGES {
            let Some(after) = next else { return Ok(all) };
            let variables = json!({ "id": id, "after": after });
            let answer = self.github.query::<ByNode<OfRollup>>(Purpose::Look, MORE_CHECKS, &variables).await?;
            let page = answer.data.and_then(|data| data.node?.status_check_rollup?.page);
            let page = page.ok_or_else(|| GithubError::Pages("a page of checks is missing".to_owned()))?;
            let (more, then) = taken(page)?;
            all.extend(more);
            next = further(&after, then)?;
        }
        Err(GithubError::Pages("there is no end of checks".to_owned()))
    }

    /// Reads all pages of a list. Fails if a page or an item cannot be read.
    pub(super) async fn whole<T: DeserializeOwned>(
        &self,
        purpose: Purpose,
        first: Option<Page<T>>,
        id: &str,
        document: &str,
    ) -> Result<Vec<T>, GithubError> {
        let Some(first) = first else { return Err(GithubError::Pages("the list is missing".to_owned())) };
        let (mut all, mut next) = taken(first)?;
        for _ in 0..MOST_PAGES {
            let Some(after) = next else { return Ok(all) };
            let page = self.page(purpose, document, id, Some(&after)).await?;
            let page = page.ok_or_else(|| GithubError::Pages("a page of the list is missing".to_owned()))?;
            let (more, then) = taken(page)?;
            all.extend(more);
            next = further(&after, then)?;
        }
        Err(GithubError::Pages("there is no end of the list".to_owned()))
    }

    /// Reads the page of a list after the cursor `after`, or the first one. `None` if there is no such list.
    pub(super) async fn page<T: DeserializeOwned>(
        &self,
        purpose: Purpose,
        document: &str,
        id: &str,
        after: Option<&str>,
    ) -> Result<Option<Page<T>>, GithubError> {
        let variables = json!({ "id": id, "after": after });
        let answer = self.github.query::<ByNode<OfNode<T>>>(purpose, document, &variables).await?;
        Ok(answer.data.and_then(|data| data.node?.page))
    }

    async fn mergeability(
        &self,
        pull: &GraphPull,
        head: &CommitId,
        demands: &Demands,
        read: &ChecksRead,
        threads: Option<&[ReviewThread]>,
    ) -> Mergeability {
        let status = pull.merge_state_status.as_deref().unwrap_or("UNKNOWN");
        match (pull.mergeable.as_str(), status) {
            ("CONFLICTING", _) | (_, "DIRTY") => {
                let files = self.conflicting_files(PrNumber(pull.number), head, &pull.base_ref_name).await;
                let files = files.inspect_err(|error| tracing::debug!(%error, "the conflict's files are not known"));
                return Mergeability::Conflicting { files: files.unwrap_or_default() };
            }
            ("MERGEABLE", "UNKNOWN") => return Mergeability::Unknown,
            ("MERGEABLE", _) => {}
            _ => return Mergeability::Unknown,
        }
        if !read.waiting_for_people.is_empty() {
            let because =
                format!("somebody has to let these checks run on GitHub: {}", read.waiting_for_people.join(", "));
            return Mergeability::Refused { because };
        }
        match status {
            "BEHIND" => Mergeability::Behind,
            "BLOCKED" => {
                let standing = rules::RuledFacts {
                    review_decision: pull.review_decision.as_deref(),
                    open_conversations: threads
                        .into_iter()
                        .flatten()
                        .filter(|thread| !thread.resolved)
                        .filter_map(|thread| thread.comments.first().map(|first| first.author.name.as_str()))
                        .collect(),
                    missing_checks: missing_checks(demands, read.checks.as_deref()),
                };
                Mergeability::Refused { because: rules::because(demands, &pull.base_ref_name, &standing) }
            }
            // Checks that are not required may fail ("UNSTABLE"), and a draft is reported separately.
            "CLEAN" | "UNSTABLE" | "HAS_HOOKS" | "DRAFT" => Mergeability::Clean,
            // A word that this version does not know.
            _ => Mergeability::Unknown,
        }
    }
}

fn missing_checks(demands: &Demands, checks: Option<&[Check]>) -> Vec<String> {
    let passed = |name: &&String| {
        let good =
            |check: &Check| check.name == **name && matches!(check.status, CheckStatus::Passed | CheckStatus::Neutral);
        checks.is_some_and(|checks| checks.iter().any(good))
    };
    demands.checks.iter().flatten().filter(|name| !passed(name)).cloned().collect()
}

/// Returns the items of a page, and the cursor to the next page if there is one.
fn taken<T>(page: Page<T>) -> Result<(Vec<T>, Option<String>), GithubError> {
    let nodes = page.nodes.unwrap_or_default();
    let count = nodes.len();
    let items: Vec<T> = nodes.into_iter().flatten().collect();
    if items.len() != count {
        return Err(GithubError::Pages("an item of the list may not be read".to_owned()));
    }
    match (page.page_info.has_next_page, page.page_info.end_cursor) {
        (false, _) => Ok((items, None)),
        (true, Some(cursor)) => Ok((items, Some(cursor))),
        (true, None) => Err(GithubError::Pages("there is a next page, and nothing leads to it".to_owned())),
    }
}

/// Returns the cursor `then` that a page gave. Fails if it is `after`, the cursor that led to that page.
fn further(after: &str, then: Option<String>) -> Result<Option<String>, GithubError> {
    if then.as_deref() == Some(after) {
        return Err(GithubError::Pages("the page after one is that page again".to_owned()));
    }
    Ok(then)
}

/// Returns the verdict of a review. `None` if the review is not submitted or its state is an unknown word.
fn verdict(review: &GraphReview) -> Option<Verdict> {
    Some(match review.state.as_str() {
        "APPROVED" => Verdict::Approved,
        "CHANGES_REQUESTED" => Verdict::ChangesRequested,
        "COMMENTED" => Verdict::Commented,
        "DISMISSED" => Verdict::Dismissed,
        _ => return None,
    })
}

fn unread(what: &'static str, number: PrNumber) -> impl FnOnce(GithubError) {
    move |error| tracing::warn!(%number, %error, "the {what} of a pull request could not be read to the end")
}
