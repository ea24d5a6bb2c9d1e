//! The board in memory sits the exam, as a near one and as a far one.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::domain::ids::{CommentId, TicketId};
use dirigent::domain::ticket::{Dispatchable, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::tracker::memory::{Fault, MemoryTracker};
use dirigent::tracker::{Tracker, TrackerError};

use super::tracker::{Candidate, Cannot, Columns, Gaps, Outcome};

/// How the board is set up before anything happens.
trait Setup: Send + Sync + 'static {
    fn set_up(board: &MemoryTracker);
}

struct Memory<S> {
    board: Arc<MemoryTracker>,
    made: AtomicI64,
    clock: AtomicI64,
    setup: std::marker::PhantomData<S>,
}

fn ann() -> Author {
    Author::new("ann", TrustLevel::Admin)
}

#[async_trait]
impl<S: Setup> Candidate for Memory<S> {
    const CANNOT: Gaps = &[];

    async fn fresh() -> Self {
        let board = Arc::new(MemoryTracker::default());
        S::set_up(&board);
        Self { board, made: AtomicI64::new(0), clock: AtomicI64::new(0), setup: std::marker::PhantomData }
    }

    fn tracker(&self) -> Arc<dyn Tracker> {
        self.board.clone()
    }

    fn next_life(&self) -> Arc<dyn Tracker> {
        self.board.clone()
    }

    fn columns(&self) -> Columns {
        Columns { todo: "Todo", doing: "In Progress", done: "Done" }
    }

    fn person(&self) -> String {
        ann().name
    }

    fn now(&self) -> Timestamp {
        let now = Timestamp(self.clock.fetch_add(1_000_000, Ordering::SeqCst));
        self.board.set_clock(now);
        now
    }

    async fn settle(&self) {
        self.board.catch_up();
    }

    async fn add(&self, title: &str, state: &str, labels: &[&str]) -> TicketId {
        let id = TicketId::new(format!("m-{:04}", self.made.fetch_add(1, Ordering::SeqCst)));
        self.board.put(Ticket {
            id: id.clone(),
            key: id.as_str().into(),
            title: title.into(),
            description: None,
            priority: None,
            state: state.into(),
            branch_name: None,
            url: None,
            assignee: None,
            author: Some(ann()),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            blocked_by: Vec::new(),
            parent: None,
            dispatchable: Dispatchable::Yes,
            created_at: None,
            updated_at: None,
            native_ref: None,
            comments: Some(Vec::new()),
            state_changed: None,
            history: Default::default(),
        });
        id
    }

    async fn retitle(&self, id: &TicketId, title: &str) {
        self.board.edit(id, |ticket| ticket.title = title.into());
    }

    async fn shift(&self, id: &TicketId, state: &str) {
        self.board.edit(id, |ticket| ticket.state = state.into());
    }

    async fn delete(&self, id: &TicketId) {
        self.board.remove(id);
    }

    async fn say(&self, id: &TicketId, text: &str) -> CommentId {
        self.board.say(id, ann(), text)
    }

    async fn reword(&self, id: &TicketId, comment: &CommentId, text: &str) {
        self.board.reword(id, comment, text);
    }

    async fn unsay(&self, id: &TicketId, comment: &CommentId) {
        self.board.unsay(id, comment);
    }

    async fn grant(&self, login: &str, trust: TrustLevel) -> Outcome {
        self.board.grant(login, trust);
        Ok(())
    }

    async fn hide(&self, id: &TicketId) -> Outcome {
        self.board.hide(id, true);
        Ok(())
    }

    async fn garble(&self, id: &TicketId) -> Outcome {
        self.board.garble(id, Some("it has no title"));
        Ok(())
    }

    async fn break_listings(&self, broken: bool) -> Outcome {
        self.board.outage(broken.then(|| TrackerError::Pagination("page 2 was not answered".into())));
        Ok(())
    }

    async fn lose_next(&self, done: bool) -> Outcome {
        self.board.script([Fault::lost(done)]);
        Ok(())
    }

    async fn lag(&self) -> Outcome {
        self.board.catch_up();
        self.board.replicas(&[usize::MAX, 1]);
        Ok(())
    }

    async fn lock_out(&self, out: bool) -> Outcome {
        self.board.outage(out.then(|| TrackerError::Auth("401 bad credentials".into())));
        Ok(())
    }

    async fn limit_next(&self, wait: Duration) -> Outcome {
        self.board.script([Fault::Fails(TrackerError::RateLimited { retry_after: Some(wait) })]);
        Ok(())
    }

    async fn reactions(&self, comment: &CommentId) -> Result<usize, Cannot> {
        Ok(self.board.reactions().iter().filter(|(of, _)| of == comment).count())
    }

    async fn links(&self, id: &TicketId) -> Result<Vec<(String, String)>, Cannot> {
        Ok(self.board.links(id))
    }
}

mod near {
    struct Near;

    impl super::Setup for Near {
        fn set_up(_: &super::MemoryTracker) {}
    }

    tracker_exam!(super::Memory<Near>);
}

mod lagging {
    struct Lagging;

    impl super::Setup for Lagging {
        fn set_up(board: &super::MemoryTracker) {
            board.replicas(&[3]);
        }
    }

    tracker_exam!(super::Memory<Lagging>);
}

mod two_replicas {
    struct TwoReplicas;

    impl super::Setup for TwoReplicas {
        fn set_up(board: &super::MemoryTracker) {
            board.replicas(&[0, usize::MAX]);
        }
    }

    tracker_exam!(super::Memory<TwoReplicas>);
}

/// As most people will have it: a tracker far away, asked for what changed, with the owner's own account.
mod far_and_shared {
    struct FarAndShared;

    impl super::Setup for FarAndShared {
        fn set_up(board: &super::MemoryTracker) {
            board.share_account(super::ann());
            board.report_changes();
            board.list_without_comments();
            board.replicas(&[2, 0, usize::MAX]);
        }
    }

    tracker_exam!(super::Memory<FarAndShared>);
}
