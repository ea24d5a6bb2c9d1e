//! The forge in memory sits the exam, as a near one and as a far one.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dirigent::domain::comment::{Author, Comment, TrustLevel};
use dirigent::domain::ids::{CommentId, CommitId, PrNumber};
use dirigent::domain::pr::{CheckStatus, Mergeability, PrState, Review, ReviewThread, Verdict};
use dirigent::forge::memory::{Fault, LookPart, MemoryForge};
use dirigent::forge::{Forge, ForgeError};

use super::forge::{Candidate, Cannot, Gaps, Outcome};

/// How the forge is set up before anything happens.
trait Setup: Send + Sync + 'static {
    fn set_up(forge: &MemoryForge);
}

struct Memory<S> {
    forge: Arc<MemoryForge>,
    made: AtomicUsize,
    setup: PhantomData<S>,
}

fn ann() -> Author {
    Author::new("ann", TrustLevel::Admin)
}

impl<S: Setup> Memory<S> {
    fn next(&self, what: &str) -> String {
        format!("{what}-{}", self.made.fetch_add(1, Ordering::SeqCst))
    }

    fn commit(&self) -> CommitId {
        CommitId::new(self.next("commit"))
    }

    fn open_pr_of(&self, branch: &str) -> PrNumber {
        let numbers = (1..).map(PrNumber).map_while(|number| self.forge.pr(number));
        let mut open = numbers.filter(|pr| pr.head_branch == branch && pr.state == PrState::Open);
        open.next().expect("the branch has an open pull request").number
    }
}

#[async_trait]
impl<S: Setup> Candidate for Memory<S> {
    const CANNOT: Gaps = &[("the_same_change_is_what_git_calls_so", "commits in memory are names without content")];

    async fn fresh() -> Self {
        let forge = Arc::new(MemoryForge::default());
        S::set_up(&forge);
        forge.push("main", &CommitId::new("first"));
        Self { forge, made: AtomicUsize::new(0), setup: PhantomData }
    }

    fn forge(&self) -> Arc<dyn Forge> {
        self.forge.clone()
    }

    fn base(&self) -> &'static str {
        "main"
    }

    fn person(&self) -> String {
        ann().name
    }

    async fn settle(&self) {
        self.forge.catch_up();
    }

    async fn work(&self, _branch: &str) -> CommitId {
        self.commit()
    }

    async fn push(&self, branch: &str) -> CommitId {
        let commit = self.commit();
        self.forge.push(branch, &commit);
        commit
    }

    async fn advance_base(&self) {
        self.forge.push("main", &self.commit());
    }

    async fn contradict(&self, branch: &str) -> Vec<String> {
        self.advance_base().await;
        let files = vec!["shared.txt".to_owned()];
        let told = files.clone();
        let number = self.open_pr_of(branch);
        self.forge.edit(number, |pr| pr.mergeability = Mergeability::Conflicting { files: told });
        files
    }

    async fn absorb(&self, branch: &str) {
        self.advance_base().await;
        self.forge.absorb(self.open_pr_of(branch));
    }

    async fn head(&self, branch: &str) -> Option<CommitId> {
        self.forge.branch(branch)
    }

    async fn merges(&self, number: PrNumber) -> usize {
        self.forge.merges().iter().filter(|(merged, ..)| *merged == number).count()
    }

    async fn close(&self, number: PrNumber) {
        self.forge.edit(number, |pr| pr.state = PrState::Closed);
    }

    async fn merge_by_hand(&self, number: PrNumber) {
        let commit = self.commit();
        self.forge.edit(number, |pr| pr.state = PrState::Merged { commit: Some(commit.clone()) });
        self.forge.push("main", &commit);
    }

    async fn retarget(&self, number: PrNumber, base: &str) -> Outcome {
        self.forge.edit(number, |pr| pr.base_branch = base.to_owned());
        Ok(())
    }

    async fn report(&self, number: PrNumber, name: &str, passed: bool, log: &str) {
        let status = if passed { CheckStatus::Passed } else { CheckStatus::Failed };
        self.forge.report(number, name, status, log);
    }

    async fn review(&self, number: PrNumber, verdict: Verdict, text: &str) -> Result<CommentId, Cannot> {
        let id = CommentId::new(self.next("review"));
        let head = self.forge.pr(number).map(|pr| pr.head);
        let review = Review { id: id.clone(), author: ann(), verdict, head, body: text.to_owned(), submitted_at: None };
        self.forge.edit(number, |pr| pr.reviews.get_or_insert_default().push(review));
        Ok(id)
    }

    async fn converse(&self, number: PrNumber, text: &str) -> Result<CommentId, Cannot> {
        let id = CommentId::new(self.next("thread"));
        let question = Comment {
            id: CommentId::new(self.next("question")),
            author: ann(),
            body: text.to_owned(),
            created_at: None,
            updated_at: None,
        };
        let thread = ReviewThread {
            id: id.clone(),
            resolved: false,
            review: None,
            path: Some("src/a.txt".to_owned()),
            line: Some(1),
            comments: vec![question],
        };
        self.forge.edit(number, |pr| pr.threads.get_or_insert_default().push(thread));
        Ok(id)
    }

    async fn say(&self, number: PrNumber, text: &str) -> Result<CommentId, Cannot> {
        Ok(self.forge.say(number, ann(), text))
    }

    async fn delete_remark(&self, number: PrNumber, id: &CommentId) -> Outcome {
        self.forge.delete_remark(number, id);
        Ok(())
    }

    async fn reactions(&self, id: &CommentId) -> Result<usize, Cannot> {
        Ok(self.forge.reactions().iter().filter(|(of, _)| of == id).count())
    }

    async fn append(&self, number: PrNumber, text: &str) -> Outcome {
        self.forge.edit_body(number, |body| body.push_str(text));
        Ok(())
    }

    async fn body(&self, number: PrNumber) -> Result<String, Cannot> {
        Ok(self.forge.body(number))
    }

    async fn reviewers(&self, number: PrNumber) -> Result<Vec<String>, Cannot> {
        Ok(self.forge.requested_reviewers(number))
    }

    async fn lag(&self) -> Outcome {
        self.forge.catch_up();
        self.forge.replicas(&[usize::MAX, 1]);
        Ok(())
    }

    async fn withhold(&self, number: PrNumber, part: LookPart) -> Outcome {
        self.forge.withhold(number, &[part]);
        Ok(())
    }

    async fn lose_next(&self, done: bool) -> Outcome {
        self.forge.script([Fault::lost(done)]);
        Ok(())
    }

    async fn lock_out(&self, out: bool) -> Outcome {
        self.forge.outage(out.then(|| ForgeError::Auth("401 bad credentials".into())));
        Ok(())
    }

    async fn limit_next(&self, wait: Duration) -> Outcome {
        self.forge.script([Fault::Fails(ForgeError::RateLimited { retry_after: Some(wait) })]);
        Ok(())
    }
}

mod near {
    struct Near;

    impl super::Setup for Near {
        fn set_up(_: &super::MemoryForge) {}
    }

    forge_exam!(super::Memory<Near>);
}

mod lagging {
    struct Lagging;

    impl super::Setup for Lagging {
        fn set_up(forge: &super::MemoryForge) {
            forge.replicas(&[3]);
        }
    }

    forge_exam!(super::Memory<Lagging>);
}

mod two_replicas_and_shared {
    struct TwoReplicasAndShared;

    impl super::Setup for TwoReplicasAndShared {
        fn set_up(forge: &super::MemoryForge) {
            forge.share_account(super::ann());
            forge.replicas(&[0, usize::MAX]);
        }
    }

    forge_exam!(super::Memory<TwoReplicasAndShared>);
}
