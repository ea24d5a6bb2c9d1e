//! Linear sits the exam, as the loopback server plays it: near, and far away with replicas that lag.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dirigent::domain::comment::TrustLevel;
use dirigent::domain::ids::{CommentId, TicketId};
use dirigent::domain::time::Timestamp;
use dirigent::tracker::Tracker;
use dirigent::tracker::linear::{LinearConfig, LinearTracker, NamedStates, Scope};

use super::tracker::{Candidate, Cannot, Columns, Gaps, Outcome};
use crate::linear::{Instead, KEY, Lag, Linear, Role, When};

/// How the server is set up before anything happens.
trait Setup: Send + Sync + 'static {
    fn set_up(linear: &Linear);
}

struct Board<S> {
    linear: Linear,
    tracker: Arc<LinearTracker>,
    setup: PhantomData<S>,
}

fn adapter(linear: &Linear) -> Arc<LinearTracker> {
    let scope = Scope { team_key: Some("eng".to_owned()), ..Scope::default() };
    let active = ["Todo", "In Progress"].map(str::to_owned).to_vec();
    let config = LinearConfig {
        endpoint: linear.endpoint().to_owned(),
        create_labels: true,
        states: NamedStates { active, ..NamedStates::default() },
        ..LinearConfig::new(KEY.to_owned().into(), scope)
    };
    Arc::new(LinearTracker::new(config).unwrap())
}

#[async_trait]
impl<S: Setup> Candidate for Board<S> {
    const CANNOT: Gaps = &[];
    /// Linear knows members, admins and guests, and nothing between.
    const STANDING: TrustLevel = TrustLevel::Member;

    async fn fresh() -> Self {
        let linear = Linear::start();
        S::set_up(&linear);
        let tracker = adapter(&linear);
        Self { linear, tracker, setup: PhantomData }
    }

    fn tracker(&self) -> Arc<dyn Tracker> {
        self.tracker.clone()
    }

    fn next_life(&self) -> Arc<dyn Tracker> {
        adapter(&self.linear)
    }

    fn columns(&self) -> Columns {
        Columns { todo: "Todo", doing: "In Progress", done: "Done" }
    }

    fn person(&self) -> String {
        "ada".to_owned()
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.linear.now().as_millisecond())
    }

    async fn settle(&self) {
        self.linear.settle();
    }

    async fn add(&self, title: &str, state: &str, labels: &[&str]) -> TicketId {
        TicketId::new(self.linear.add_issue(title, state, labels))
    }

    async fn retitle(&self, id: &TicketId, title: &str) {
        self.linear.edit(id.as_str(), |issue| title.clone_into(&mut issue.title));
    }

    async fn shift(&self, id: &TicketId, state: &str) {
        self.linear.shift(&self.linear.user("ada"), id.as_str(), state);
    }

    async fn delete(&self, id: &TicketId) {
        self.linear.delete(id.as_str());
    }

    async fn say(&self, id: &TicketId, text: &str) -> CommentId {
        CommentId::new(self.linear.say(&self.linear.user("ada"), id.as_str(), text))
    }

    async fn reword(&self, id: &TicketId, comment: &CommentId, text: &str) {
        self.linear.reword(id.as_str(), comment.as_str(), text);
    }

    async fn unsay(&self, id: &TicketId, comment: &CommentId) {
        self.linear.unsay(id.as_str(), comment.as_str());
    }

    async fn grant(&self, login: &str, trust: TrustLevel) -> Outcome {
        let role = match trust {
            TrustLevel::Admin => Role::Admin,
            TrustLevel::Member => Role::Member,
            TrustLevel::Stranger => Role::Guest,
            _ => return Err(Cannot("give somebody a permission that Linear does not know")),
        };
        self.linear.add_user(login, role);
        Ok(())
    }

    async fn hide(&self, id: &TicketId) -> Outcome {
        self.linear.hide(id.as_str());
        Ok(())
    }

    async fn garble(&self, id: &TicketId) -> Outcome {
        self.linear.garble(id.as_str());
        Ok(())
    }

    async fn break_listings(&self, broken: bool) -> Outcome {
        match broken {
            true => self.linear.fault_later("query", When::Before, Instead::Truncated, 0, u32::MAX),
            false => self.linear.heal(),
        }
        Ok(())
    }

    async fn lose_next(&self, done: bool) -> Outcome {
        self.linear.fault("mutation", if done { When::After } else { When::Before }, Instead::Status(502));
        Ok(())
    }

    async fn lag(&self) -> Outcome {
        self.linear.lag(Lag::Frozen);
        Ok(())
    }

    async fn lock_out(&self, out: bool) -> Outcome {
        match out {
            true => self.linear.revoke(KEY),
            false => self.linear.add_key(KEY, "robot"),
        }
        Ok(())
    }

    async fn limit_next(&self, wait: Duration) -> Outcome {
        self.linear.fault("*", When::Before, Instead::RateLimited(wait));
        Ok(())
    }

    async fn reactions(&self, comment: &CommentId) -> Result<usize, Cannot> {
        Ok(self.linear.reactions(comment.as_str()))
    }

    async fn links(&self, id: &TicketId) -> Result<Vec<(String, String)>, Cannot> {
        Ok(self.linear.links(id.as_str()))
    }
}

mod near {
    struct Near;

    impl super::Setup for Near {
        fn set_up(_: &super::Linear) {}
    }

    tracker_exam!(super::Board<Near>);
}

/// Every other request is answered by a replica that has stayed behind.
mod two_replicas {
    struct TwoReplicas;

    impl super::Setup for TwoReplicas {
        fn set_up(linear: &super::Linear) {
            linear.lag(super::Lag::EveryOther);
        }
    }

    tracker_exam!(super::Board<TwoReplicas>);
}

/// Nothing is visible before it settles, not even what we wrote ourselves; and one person has both keys.
mod lagging_and_shared {
    struct Lagging;

    impl super::Setup for Lagging {
        fn set_up(linear: &super::Linear) {
            linear.add_key(super::KEY, "ada");
            linear.oldest_history_first();
            linear.lag(super::Lag::Frozen);
        }
    }

    tracker_exam!(super::Board<Lagging>);
}
