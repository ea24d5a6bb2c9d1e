//! Pull requests without a forge, against real git and a real ledger file.

mod landing;
mod requests;
mod tree;

use std::time::Duration;

use dirigent::domain::ids::{CommitId, PrNumber};
use dirigent::domain::pr::{MergeMethod, NewPr, PullRequest};
use dirigent::engine::permit::EffectKind;
use dirigent::forge::local::LocalForge;
use dirigent::forge::{Forge, ForgeError, MergeOrder, Merged};

use crate::support::{Scratch, allowed};

impl Scratch {
    fn ledger(&self) -> std::path::PathBuf {
        self.dir.path().join("ledger.sqlite")
    }

    fn forge(&self) -> LocalForge {
        LocalForge::open(&self.repo(), &self.ledger(), Duration::from_secs(120)).unwrap()
    }

    /// Moves `main` away from under nobody: the user's tree is on another branch.
    fn step_aside(&self) {
        self.git(["checkout", "-q", "-b", "elsewhere"]);
    }
}

fn new_pr(branch: &str, head: &str) -> NewPr {
    NewPr {
        title: format!("Work on {branch}"),
        body: "What was done.\n".to_owned(),
        head_branch: branch.to_owned(),
        head: CommitId::new(head),
        base_branch: "main".to_owned(),
        draft: false,
        labels: vec!["auto".to_owned()],
        reviewers: Vec::new(),
    }
}

async fn open(forge: &LocalForge, branch: &str, head: &str) -> PullRequest {
    forge.open_pr(&allowed(EffectKind::OpenPr), &new_pr(branch, head)).await.unwrap()
}

async fn merge(forge: &LocalForge, number: PrNumber, head: &str, method: MergeMethod) -> Result<Merged, ForgeError> {
    let (expected_head, expected_base) = (CommitId::new(head), "main".to_owned());
    let order = MergeOrder { number, expected_head, expected_base, method, trailers: Vec::new() };
    forge.merge(&allowed(EffectKind::MergePr), &order).await
}

fn not_now(result: Result<Merged, ForgeError>) -> String {
    match result {
        Err(ForgeError::NotNow(because)) => because,
        other => panic!("{other:?}"),
    }
}
