//! The merge of the local forge: compute it, write down the landing, update the user's work tree, move the ref, record the merge.
//!
//! After a crash at any of these steps, the next call finishes or takes back the landing that was written down.

use std::sync::Arc;

use git2::{Oid, Repository};

use super::update_worktree::{self, Step};
use super::{Inner, Landing, PrRecord, blocking, commit_id, head_of, libgit, oid, recorded};
use crate::domain::ids::CommitId;
use crate::forge::combine::{self, Combined, Wanted};
use crate::forge::{ForgeError, MergeOrder, Merged};
use crate::workspace::repo::{CheckedOut, branch_ref};

/// What to do next. Making a plan changes only the record.
enum Plan {
    /// There is nothing left to do: the pull request is merged.
    Over(Merged),
    /// An earlier landing on this base was interrupted before its ref moved, and is no longer wanted.
    TakeBack(Landing),
    Go {
        landing: Landing,
        resumed: bool,
    },
}

/// How often the base may move during one merge before the merge waits for its next turn.
const PATIENCE_WITH_COMMITS: u32 = 5;

enum Put {
    InPlace(Merged),
    /// The base moved in between. Everything was put back as it was before.
    Overtaken,
}

pub async fn merge(inner: &Arc<Inner>, order: &MergeOrder) -> Result<Merged, ForgeError> {
    let _one_at_a_time = inner.landing.lock().await;
    let mut overtaken = 0;
    loop {
        let plan = {
            let (inner, order) = (Arc::clone(inner), order.clone());
            blocking(move || plan(&inner, &order)).await?
        };
        match plan {
            Plan::Over(merged) => return Ok(merged),
            Plan::TakeBack(landing) => {
                let step = Step { old: oid(&landing.old)?, new: oid(&landing.new)? };
                for tree in trees_on(inner, &landing.base_branch).await? {
                    update_worktree::resume(&inner.git, &inner.place, &tree, step.back()).await?;
                    update_worktree::follow(&inner.git, &inner.place, &tree, step.back()).await?;
                }
                inner.store.end_landing(&landing.base_branch).map_err(|error| recorded(&error))?;
            }
            Plan::Go { landing, resumed } => {
                let base = landing.base_branch.clone();
                match put_in_place(inner, landing, resumed).await? {
                    Put::InPlace(merged) => return Ok(merged),
                    Put::Overtaken if overtaken < PATIENCE_WITH_COMMITS => overtaken += 1,
                    Put::Overtaken => {
                        return Err(ForgeError::NotNow(format!("`{base}` keeps moving; it is tried again")));
                    }
                }
            }
        }
    }
}

fn plan(inner: &Inner, order: &MergeOrder) -> Result<Plan, ForgeError> {
    let (number, head, method) = (order.number, &order.expected_head, order.method);
    let repo = inner.repo()?;
    let record = inner.settle(&repo, inner.record(number)?)?;
    if record.merged {
        return Ok(Plan::Over(Merged::Done { commit: record.merge_commit }));
    }
    if record.base_branch != order.expected_base {
        let (expected, actual) = (order.expected_base.clone(), record.base_branch);
        return Err(ForgeError::OtherBase { expected, actual });
    }
    let base = inner.base_head(&repo, &record.base_branch)?;
    let tip = inner.expect_head(&repo, &record.head_branch, head);
    if let Some(plan) = interrupted(inner, &repo, &record, base, head, tip.is_ok())? {
        return Ok(plan);
    }
    let message = message(&record, &order.trailers);
    let commits = inner.commits();
    let wanted = Wanted { base, head: tip?, message: &message, commits: &commits };
    let new = match combine::combine(&repo, &wanted, method).map_err(|error| libgit(&error))? {
        Combined::Commit(new) => new,
        Combined::Conflict(files) => return Err(ForgeError::Conflict { files }),
        Combined::Nothing => {
            inner.store.merged(number, head, &commit_id(base)).map_err(|error| recorded(&error))?;
            return Ok(Plan::Over(Merged::Done { commit: Some(commit_id(base)) }));
        }
    };
    let landing = Landing {
        base_branch: record.base_branch,
        number,
        head: head.clone(),
        old: commit_id(base),
        new: commit_id(new),
    };
    inner.store.begin_landing(&landing).map_err(|error| recorded(&error))?;
    failpoint!("landing.written_down");
    Ok(Plan::Go { landing, resumed: false })
}

/// Handles what an interrupted landing on the same base left. `None`: nothing is left, and a new landing can begin.
fn interrupted(
    inner: &Inner,
    repo: &Repository,
    record: &PrRecord,
    base: Oid,
    head: &CommitId,
    head_stands: bool,
) -> Result<Option<Plan>, ForgeError> {
    let Some(landing) = inner.store.landing(&record.base_branch).map_err(|error| recorded(&error))? else {
        return Ok(None);
    };
    let new = oid(&landing.new)?;
    if combine::is_in(repo, new, base).unwrap_or(false) {
        inner.store.merged(landing.number, &landing.head, &landing.new).map_err(|error| recorded(&error))?;
        return Ok(None);
    }
    if landing.old.as_str() != base.to_string() || repo.find_commit(new).is_err() {
        // The base moved on without this landing: there is nothing to finish.
        inner.store.end_landing(&record.base_branch).map_err(|error| recorded(&error))?;
        return Ok(None);
    }
    if landing.number == record.number && landing.head == *head && head_stands {
        return Ok(Some(Plan::Go { landing, resumed: true }));
    }
    Ok(Some(Plan::TakeBack(landing)))
}

async fn put_in_place(inner: &Arc<Inner>, landing: Landing, resumed: bool) -> Result<Put, ForgeError> {
    let step = Step { old: oid(&landing.old)?, new: oid(&landing.new)? };
    let trees = trees_on(inner, &landing.base_branch).await?;
    for (done, tree) in trees.iter().enumerate() {
        if resumed {
            update_worktree::resume(&inner.git, &inner.place, tree, step).await?;
        }
        if let Err(error) = update_worktree::follow(&inner.git, &inner.place, tree, step).await {
            let moved: Vec<CheckedOut> = trees.iter().take(done).cloned().collect();
            // A resumed landing stays written down, and the next call continues it.
            if take_back(inner, &moved, step).await.is_ok() && !resumed {
                inner.store.end_landing(&landing.base_branch).map_err(|error| recorded(&error))?;
            }
            return Err(error);
        }
    }
    failpoint!("landing.before_ref");
    let swapped = {
        let (inner, landing) = (Arc::clone(inner), landing.clone());
        blocking(move || swap(&inner, &landing, step)).await
    };
    if !matches!(swapped, Ok(true)) {
        let taken_back = take_back(inner, &trees, step).await;
        if taken_back.is_ok() {
            inner.store.end_landing(&landing.base_branch).map_err(|error| recorded(&error))?;
        }
        swapped?;
        return taken_back.map(|()| Put::Overtaken);
    }
    failpoint!("landing.ref_moved");
    let new = landing.new.clone();
    let inner = Arc::clone(inner);
    blocking(move || inner.store.merged(landing.number, &landing.head, &landing.new).map_err(|e| recorded(&e))).await?;
    failpoint!("landing.recorded");
    Ok(Put::InPlace(Merged::Done { commit: Some(new) }))
}

/// Moves the base branch to the new commit. Returns `false` if something else moved it first.
fn swap(inner: &Inner, landing: &Landing, step: Step) -> Result<bool, ForgeError> {
    let repo = inner.repo()?;
    let name = branch_ref(&landing.base_branch).map_err(|error| ForgeError::Git(error.to_string()))?;
    let why = format!("dirigent: merge pull request {}", landing.number);
    match repo.reference_matching(&name, step.new, true, step.old, &why) {
        Ok(_) => Ok(true),
        Err(_) if head_of(&repo, &landing.base_branch) != Some(step.old) => Ok(false),
        Err(error) => Err(libgit(&error)),
    }
}

async fn take_back(inner: &Arc<Inner>, trees: &[CheckedOut], step: Step) -> Result<(), ForgeError> {
    for tree in trees {
        update_worktree::follow(&inner.git, &inner.place, tree, step.back()).await?;
    }
    Ok(())
}

/// Lists the work trees that have the base checked out, or are rebasing it.
async fn trees_on(inner: &Arc<Inner>, branch: &str) -> Result<Vec<CheckedOut>, ForgeError> {
    let (inner, branch) = (Arc::clone(inner), branch.to_owned());
    blocking(move || {
        let repo = inner.repo()?;
        Ok(inner.place.users_of_branch(&repo, &branch))
    })
    .await
}

fn message(record: &PrRecord, trailers: &[String]) -> String {
    let body = record.body.trim();
    let body = if body.is_empty() { String::new() } else { format!("{body}\n\n") };
    let trailers: String = trailers.iter().map(|line| format!("{line}\n")).collect();
    format!("{}\n\n{body}{trailers}Dirigent-PR: {}\n", record.title.trim(), record.number.0)
}
