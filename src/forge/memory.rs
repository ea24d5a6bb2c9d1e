//! A forge in memory that behaves as a real one, and misbehaves as told: for tests of everything that talks to a forge.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::{Forge, ForgeError, Merged};
use crate::domain::ids::{CommitId, PrNumber};
use crate::domain::permit::Permit;
use crate::domain::pr::{MergeMethod, Mergeability, NewPr, PrState, PullRequest};

/// What goes wrong with a coming call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    Fails(ForgeError),
    /// The write takes effect, its answer does not arrive.
    FailsAfterWriting(ForgeError),
    Late(Duration),
    /// A read is answered with the forge as [`MemoryForge::freeze`] saw it.
    Stale,
    Fine,
}

#[derive(Debug, Default)]
struct Store {
    prs: BTreeMap<PrNumber, PullRequest>,
    frozen: BTreeMap<PrNumber, PullRequest>,
    branches: BTreeMap<String, CommitId>,
    merges: Vec<(PrNumber, CommitId, MergeMethod)>,
    faults: VecDeque<Fault>,
    made: u64,
}

#[derive(Debug, Default)]
pub struct MemoryForge {
    store: Mutex<Store>,
}

impl MemoryForge {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets CI, a reviewer or anybody else change a pull request: checks, reviews, threads, labels, state.
    pub fn edit(&self, number: PrNumber, change: impl FnOnce(&mut PullRequest)) {
        if let Some(pr) = self.store().prs.get_mut(&number) {
            change(pr);
        }
    }

    /// Somebody pushes to a branch.
    pub fn push(&self, branch: &str, head: &CommitId) {
        self.store().set_head(branch, head);
    }

    pub fn branch(&self, name: &str) -> Option<CommitId> {
        self.store().branches.get(name).cloned()
    }

    /// Every merge that was really done, oldest first.
    pub fn merges(&self) -> Vec<(PrNumber, CommitId, MergeMethod)> {
        self.store().merges.clone()
    }

    /// Remembers the forge as it is now, for stale answers.
    pub fn freeze(&self) {
        let mut store = self.store();
        store.frozen = store.prs.clone();
    }

    /// One fault for each of the coming calls, in order.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.store().faults.extend(faults);
    }

    async fn next_fault(&self) -> Result<Fault, ForgeError> {
        let fault = self.store().faults.pop_front().unwrap_or(Fault::Fine);
        match fault {
            Fault::Fails(error) => Err(error),
            Fault::Late(span) => {
                tokio::time::sleep(span).await;
                Ok(Fault::Fine)
            }
            other => Ok(other),
        }
    }

    async fn read<T>(&self, look: impl FnOnce(&BTreeMap<PrNumber, PullRequest>) -> T) -> Result<T, ForgeError> {
        let fault = self.next_fault().await?;
        let store = self.store();
        Ok(look(if fault == Fault::Stale { &store.frozen } else { &store.prs }))
    }

    async fn write<T>(&self, change: impl FnOnce(&mut Store) -> Result<T, ForgeError>) -> Result<T, ForgeError> {
        let fault = self.next_fault().await?;
        let done = change(&mut self.store());
        match fault {
            Fault::FailsAfterWriting(error) => Err(error),
            _ => done,
        }
    }
}

impl Store {
    /// New commits have no checks yet, and the forge has to work out whether they can be merged.
    fn set_head(&mut self, branch: &str, head: &CommitId) {
        self.branches.insert(branch.to_owned(), head.clone());
        for pr in self.prs.values_mut().filter(|pr| pr.head_branch == branch && pr.state == PrState::Open) {
            if pr.head != *head {
                pr.head = head.clone();
                pr.checks.clear();
                pr.mergeability = Mergeability::Unknown;
            }
        }
    }

    fn find(&mut self, number: PrNumber) -> Result<&mut PullRequest, ForgeError> {
        self.prs.get_mut(&number).ok_or(ForgeError::NotFound(number))
    }
}

fn expect_head(pr: &PullRequest, expected: &CommitId) -> Result<(), ForgeError> {
    if pr.head == *expected {
        return Ok(());
    }
    Err(ForgeError::HeadMoved { expected: expected.clone(), actual: pr.head.clone() })
}

#[async_trait]
impl Forge for MemoryForge {
    fn kind(&self) -> &'static str {
        "memory"
    }

    async fn find_pr(&self, branch: &str) -> Result<Option<PullRequest>, ForgeError> {
        self.read(|prs| {
            let mine = || prs.values().filter(|pr| pr.head_branch == branch);
            mine().find(|pr| pr.state == PrState::Open).or_else(|| mine().next_back()).cloned()
        })
        .await
    }

    async fn inspect(&self, number: PrNumber) -> Result<PullRequest, ForgeError> {
        self.read(|prs| prs.get(&number).cloned()).await?.ok_or(ForgeError::NotFound(number))
    }

    async fn push_branch(&self, _: &Permit, branch: &str, head: &CommitId) -> Result<(), ForgeError> {
        self.write(|store| {
            store.set_head(branch, head);
            Ok(())
        })
        .await
    }

    async fn open_pr(&self, _: &Permit, new: &NewPr) -> Result<PullRequest, ForgeError> {
        self.write(|store| {
            let open = store.prs.values().find(|pr| pr.head_branch == new.head_branch && pr.state == PrState::Open);
            if let Some(open) = open {
                return Ok(open.clone());
            }
            store.made += 1;
            let number = PrNumber(store.made);
            let pr = PullRequest {
                number,
                url: Some(format!("memory://pull/{}", number.0)),
                title: new.title.clone(),
                state: PrState::Open,
                draft: new.draft,
                head_branch: new.head_branch.clone(),
                head: store.branches.get(&new.head_branch).cloned().unwrap_or_else(|| new.head.clone()),
                base_branch: new.base_branch.clone(),
                base: store.branches.get(&new.base_branch).cloned(),
                mergeability: Mergeability::Unknown,
                checks: Vec::new(),
                reviews: Vec::new(),
                threads: Vec::new(),
                comments: Vec::new(),
                labels: new.labels.clone(),
                pushed_at: None,
            };
            store.prs.insert(number, pr.clone());
            Ok(pr)
        })
        .await
    }

    async fn reopen(&self, _: &Permit, number: PrNumber) -> Result<(), ForgeError> {
        self.write(|store| {
            let pr = store.find(number)?;
            match pr.state {
                PrState::Merged { .. } => Err(ForgeError::Refused("it is merged".into())),
                PrState::Open | PrState::Closed => {
                    pr.state = PrState::Open;
                    Ok(())
                }
            }
        })
        .await
    }

    async fn merge(
        &self,
        _: &Permit,
        number: PrNumber,
        head: &CommitId,
        method: MergeMethod,
    ) -> Result<Merged, ForgeError> {
        self.write(|store| {
            let pr = store.find(number)?;
            match &pr.state {
                PrState::Merged { commit } => return Ok(Merged { commit: commit.clone() }),
                PrState::Closed => return Err(ForgeError::Refused("it is closed".into())),
                PrState::Open => {}
            }
            expect_head(pr, head)?;
            match &pr.mergeability {
                Mergeability::Conflicting { files } => return Err(ForgeError::Conflict { files: files.clone() }),
                Mergeability::Refused { because } => return Err(ForgeError::NotNow(because.clone())),
                Mergeability::Unknown | Mergeability::Clean | Mergeability::Behind => {}
            }
            pr.state = PrState::Merged { commit: Some(head.clone()) };
            let base = pr.base_branch.clone();
            store.branches.insert(base, head.clone());
            store.merges.push((number, head.clone(), method));
            Ok(Merged { commit: Some(head.clone()) })
        })
        .await
    }

    async fn update_branch(&self, _: &Permit, number: PrNumber, head: &CommitId) -> Result<(), ForgeError> {
        self.write(|store| {
            let pr = store.find(number)?;
            expect_head(pr, head)?;
            let branch = pr.head_branch.clone();
            store.set_head(&branch, &CommitId::new(format!("updated-{head}")));
            Ok(())
        })
        .await
    }

    async fn delete_branch(&self, _: &Permit, branch: &str, head: &CommitId) -> Result<(), ForgeError> {
        self.write(|store| {
            if store.branches.get(branch) == Some(head) {
                store.branches.remove(branch);
            }
            Ok(())
        })
        .await
    }
}
