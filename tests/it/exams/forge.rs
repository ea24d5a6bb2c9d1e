//! What every forge has to be able to do.

pub mod conversations;
pub mod failures;
pub mod looking;
pub mod merging;
pub mod opening;
pub mod updating;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dirigent::domain::ids::{CommentId, CommitId, PrNumber};
use dirigent::domain::pr::{MergeMethod, NewPr, PullRequest, Verdict};
use dirigent::forge::memory::LookPart;
use dirigent::forge::{Forge, ForgeError, MergeOrder, Merged};

use super::permit;
pub use super::{Cannot, Gaps, Outcome};

/// A forge with the repository behind it and the people before it.
#[async_trait]
pub trait Candidate: Send + Sync + Sized {
    const CANNOT: Gaps;

    /// A repository with a base branch and nothing else.
    async fn fresh() -> Self;

    fn forge(&self) -> Arc<dyn Forge>;

    /// The branch that everything is merged into.
    fn base(&self) -> &'static str;

    /// The name that a person's writings carry.
    fn person(&self) -> String;

    /// Lets everything that was done become visible. Where nothing lags there is nothing to wait for.
    async fn settle(&self) {}

    /// A worker commits on the branch, which begins at the base. On the forge it is only once it is pushed.
    async fn work(&self, branch: &str) -> CommitId;

    /// A person commits on a branch of the forge.
    async fn push(&self, branch: &str) -> CommitId;

    /// Somebody else's work arrives in the base.
    async fn advance_base(&self);

    /// Work arrives in the base that the branch conflicts with, in these files.
    async fn contradict(&self, branch: &str) -> Vec<String>;

    /// A part of what the branch changes arrives in the base by another way.
    async fn absorb(&self, branch: &str);

    /// What git has under the name.
    async fn head(&self, branch: &str) -> Option<CommitId>;

    /// A file that the branch's work is in, where the forge knows which lines a change shows.
    fn changed_file(&self, _branch: &str) -> Option<String> {
        None
    }

    /// How often the pull request was merged by us.
    async fn merges(&self, number: PrNumber) -> usize;

    /// What `git diff base...branch` says.
    async fn diff(&self, _branch: &str) -> Result<String, Cannot> {
        Err(Cannot("show what a branch changes"))
    }

    async fn close(&self, number: PrNumber);

    async fn merge_by_hand(&self, number: PrNumber);

    /// A person gives the pull request another base branch.
    async fn retarget(&self, _number: PrNumber, _base: &str) -> Outcome {
        Err(Cannot("let a person change the base branch"))
    }

    /// CI reports on the head of a pull request.
    async fn report(&self, number: PrNumber, name: &str, passed: bool, log: &str);

    async fn review(&self, _number: PrNumber, _verdict: Verdict, _text: &str) -> Result<CommentId, Cannot> {
        Err(Cannot("let a person review"))
    }

    /// A person begins a conversation on a line.
    async fn converse(&self, _number: PrNumber, _text: &str) -> Result<CommentId, Cannot> {
        Err(Cannot("let a person begin a conversation"))
    }

    async fn say(&self, _number: PrNumber, _text: &str) -> Result<CommentId, Cannot> {
        Err(Cannot("let a person comment"))
    }

    async fn delete_remark(&self, _number: PrNumber, _id: &CommentId) -> Outcome {
        Err(Cannot("let a person take something back"))
    }

    /// How many reactions the comment has.
    async fn reactions(&self, _id: &CommentId) -> Result<usize, Cannot> {
        Err(Cannot("show reactions"))
    }

    /// A person adds something to the text of the pull request.
    async fn append(&self, _number: PrNumber, _text: &str) -> Outcome {
        Err(Cannot("let a person edit the text of a pull request"))
    }

    async fn body(&self, _number: PrNumber) -> Result<String, Cannot> {
        Err(Cannot("show the text of a pull request"))
    }

    async fn reviewers(&self, _number: PrNumber) -> Result<Vec<String>, Cannot> {
        Err(Cannot("show who was asked for a review"))
    }

    /// From now on, nothing becomes visible before it settles; git itself never lags.
    async fn lag(&self) -> Outcome {
        Err(Cannot("show a pull request as it was a while ago"))
    }

    /// Looks come without this part.
    async fn withhold(&self, _number: PrNumber, _part: LookPart) -> Outcome {
        Err(Cannot("leave a part of a look unread"))
    }

    /// The next write's answer is lost, and so is the request unless it was `done`.
    async fn lose_next(&self, _done: bool) -> Outcome {
        Err(Cannot("lose an answer"))
    }

    async fn lock_out(&self, _out: bool) -> Outcome {
        Err(Cannot("refuse our access"))
    }

    /// The next call is told to come back after this time.
    async fn limit_next(&self, _wait: Duration) -> Outcome {
        Err(Cannot("limit our requests"))
    }
}

/// Every check, one test each.
macro_rules! forge_exam {
    ($candidate:ty) => {
        papers! {
            $candidate, $crate::exams::forge;
            opening: {
                a_branch_is_pushed_as_often_as_one_likes,
                a_pull_request_is_opened_once_per_branch,
                a_pull_request_whose_answer_was_lost_is_opened_once,
                a_pull_request_is_opened_once_at_the_same_time,
                a_merged_branch_can_have_another_pull_request,
                a_closed_one_is_not_merged_and_can_come_back,
            }
            looking: {
                a_look_is_complete,
                an_unknown_number_hides_no_other,
                a_part_that_was_not_read_is_unknown,
                the_head_is_what_git_says,
                a_head_has_the_checks_that_were_run_on_it,
                a_merge_by_hand_is_seen,
            }
            merging: {
                merges_once,
                merges_once_at_the_same_time,
                merges_by_every_method,
                merges_only_the_expected_head,
                merges_only_into_the_expected_base,
                a_changed_base_branch_is_not_merged_into,
                a_merge_whose_answer_was_lost_is_one_merge,
                a_conflict_names_its_files,
                a_branch_is_deleted_only_where_it_was_merged,
            }
            updating: {
                the_base_is_brought_into_the_branch,
                an_update_that_changes_the_change_says_so,
                the_same_change_is_what_git_calls_so,
                only_the_expected_head_is_updated,
                title_text_draft_and_labels_are_changed,
            }
            conversations: {
                our_comment_is_written_once_and_reworded,
                a_persons_comment_is_theirs,
                a_review_has_verdict_author_and_head,
                a_conversation_is_answered_once_and_resolved,
                a_note_on_a_line_is_begun_once_and_only_where_the_change_shows_the_line,
                a_remark_that_was_taken_back_is_gone,
                a_reaction_to_a_comment_counts_once,
                a_reviewer_is_asked_once,
                a_status_is_published_on_its_commit,
                a_check_runs_again,
                what_is_in_no_queue_can_leave_it,
            }
            failures: {
                lost_access_is_told_and_nothing_is_done,
                a_limit_is_told_with_its_end,
                what_is_not_there_cannot_be_merged,
            }
        }
    };
}

const BRANCH: &str = "dirigent/one";

fn new_pr(c: &impl Candidate, branch: &str, head: &CommitId) -> NewPr {
    NewPr {
        title: format!("Work on {branch}"),
        body: "What was done.".to_owned(),
        head_branch: branch.to_owned(),
        head: head.clone(),
        base_branch: c.base().to_owned(),
        draft: false,
        labels: vec!["auto".to_owned()],
        reviewers: Vec::new(),
    }
}

/// Work on a branch, pushed and with a pull request.
async fn opened(c: &impl Candidate, branch: &str) -> PullRequest {
    let head = c.work(branch).await;
    let forge = c.forge();
    forge.push_branch(&permit(), branch, &head, None).await.unwrap();
    let pr = forge.open_pr(&permit(), &new_pr(c, branch, &head)).await.unwrap();
    assert_eq!((pr.head_branch.as_str(), &pr.head), (branch, &head));
    pr
}

/// A look once everything is visible.
async fn look(c: &impl Candidate, number: PrNumber) -> PullRequest {
    c.settle().await;
    c.forge().inspect(number).await.unwrap()
}

async fn merge(c: &impl Candidate, number: PrNumber, head: &CommitId) -> Result<Merged, ForgeError> {
    let (expected_head, expected_base) = (head.clone(), c.base().to_owned());
    let order = MergeOrder { number, expected_head, expected_base, method: MergeMethod::Squash, trailers: Vec::new() };
    c.forge().merge(&permit(), &order).await
}

/// A refusal that tells a person something.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(answer: Result<T, ForgeError>) {
    match answer {
        Err(ForgeError::Refused(sentence)) => assert!(sentence.contains(' '), "not a sentence: {sentence:?}"),
        other => panic!("not refused: {other:?}"),
    }
}
