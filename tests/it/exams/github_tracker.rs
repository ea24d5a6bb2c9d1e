//! The GitHub tracker sits the exam against the loopback GitHub: with states from labels, and with the columns of a project.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dirigent::domain::comment::TrustLevel;
use dirigent::domain::ids::{CommentId, TicketId};
use dirigent::domain::time::Timestamp;
use dirigent::github::{Access, Credential, Github};
use dirigent::tracker::Tracker;
use dirigent::tracker::github::{Columns, Done, GithubBoard, GithubTracker, ProjectColumn};

use super::tracker::{Candidate, Cannot, Columns as Names, Gaps, Outcome};
use crate::github::{ANY_WRITE, Fault, Gone, Hub, Instead, Lag, Permission, Thing, When};

const TOKEN: &str = "robot-token";
const PERSON: &str = "ada";
const STATES: [(&str, &str); 3] = [("Todo", "status/todo"), ("In Progress", "status/doing"), ("Done", "status/done")];

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Where the states of the board come from, and how a person moves a ticket there.
trait Board: Send + Sync + 'static {
    const SHARED: bool;
    const NAMES_MOVERS: bool;
    fn set_up(hub: &Hub);
    fn columns() -> Columns;
    fn shift(hub: &Hub, number: u64, state: &str);
}

struct OnGithub<B> {
    hub: Hub,
    /// A limit that it was told is kept by an adapter; only the next life asks again.
    tracker: Mutex<Arc<GithubTracker>>,
    is_limited: AtomicBool,
    board: PhantomData<B>,
}

fn adapter<B: Board>(hub: &Hub) -> Arc<GithubTracker> {
    let access = Access::new(Some(hub.api().to_owned()), Credential::Token(TOKEN.into()));
    let board = GithubBoard {
        owner: "acme".into(),
        name: "widgets".into(),
        columns: B::columns(),
        shared_account: B::SHARED,
        assignee: None,
        milestone: None,
        required_labels: Vec::new(),
        approval_states: Vec::new(),
        done: Done::default(),
    };
    Arc::new(GithubTracker::new(Github::new(access).unwrap(), board))
}

fn number(id: &TicketId) -> u64 {
    id.as_str().strip_prefix("GH-").unwrap().parse().unwrap()
}

fn comment_number(id: &CommentId) -> u64 {
    id.as_str().parse().unwrap()
}

impl<B: Board> OnGithub<B> {
    fn renew(&self) {
        *self.tracker.lock().unwrap() = adapter::<B>(&self.hub);
    }

    fn always(&self, route: &str, instead: Instead) {
        self.hub.add_fault(Fault { route: route.into(), when: When::After, instead, skip: 0, times: u32::MAX });
    }
}

#[async_trait]
impl<B: Board> Candidate for OnGithub<B> {
    const CANNOT: Gaps = &[];
    const NAMES_MOVERS: bool = B::NAMES_MOVERS;

    async fn fresh() -> Self {
        let hub = Hub::start();
        B::set_up(&hub);
        let tracker = Mutex::new(adapter::<B>(&hub));
        Self { hub, tracker, is_limited: AtomicBool::default(), board: PhantomData }
    }

    fn tracker(&self) -> Arc<dyn Tracker> {
        self.tracker.lock().unwrap().clone()
    }

    fn next_life(&self) -> Arc<dyn Tracker> {
        adapter::<B>(&self.hub)
    }

    fn columns(&self) -> Names {
        Names { todo: STATES[0].0, doing: STATES[1].0, done: STATES[2].0 }
    }

    fn person(&self) -> String {
        PERSON.to_owned()
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.hub.now().as_millisecond())
    }

    /// A while passes: GitHub's times are whole seconds, and what changed just now may change again within the same one.
    async fn settle(&self) {
        self.hub.release(&Thing::Everything);
        self.hub.advance(5);
        if self.is_limited.swap(false, Ordering::Relaxed) {
            self.renew();
        }
    }

    async fn add(&self, title: &str, state: &str, labels: &[&str]) -> TicketId {
        let number = self.hub.add_issue(PERSON, title, "", labels);
        B::shift(&self.hub, number, state);
        TicketId::new(format!("GH-{number}"))
    }

    async fn retitle(&self, id: &TicketId, title: &str) {
        self.hub.retitle(PERSON, number(id), title);
    }

    async fn shift(&self, id: &TicketId, state: &str) {
        B::shift(&self.hub, number(id), state);
    }

    async fn delete(&self, id: &TicketId) {
        self.hub.lose(number(id), Gone::Deleted);
    }

    async fn say(&self, id: &TicketId, text: &str) -> CommentId {
        CommentId::new(self.hub.comment(PERSON, number(id), text).to_string())
    }

    async fn reword(&self, _: &TicketId, comment: &CommentId, text: &str) {
        self.hub.edit_comment(comment_number(comment), text);
    }

    async fn unsay(&self, _: &TicketId, comment: &CommentId) {
        self.hub.delete_comment(comment_number(comment));
    }

    async fn grant(&self, login: &str, trust: TrustLevel) -> Outcome {
        let permission = match trust {
            TrustLevel::Maintain => Permission::Maintain,
            TrustLevel::Stranger => Permission::None,
            _ => return Err(Cannot("give somebody this permission")),
        };
        self.hub.grant(login, permission);
        Ok(())
    }

    async fn hide(&self, id: &TicketId) -> Outcome {
        self.hub.lose(number(id), Gone::Hidden);
        Ok(())
    }

    async fn garble(&self, id: &TicketId) -> Outcome {
        let wanted = number(id);
        let rest = move |body: &mut serde_json::Value| {
            for issue in body.as_array_mut().into_iter().flatten().filter(|issue| issue["number"] == wanted) {
                issue["title"] = serde_json::json!({"unexpected": true});
            }
        };
        let graphql = move |body: &mut serde_json::Value| {
            if let Some(issue) = body.pointer_mut(&format!("/data/r0/i{wanted}")).filter(|issue| !issue.is_null()) {
                issue["title"] = serde_json::json!({"unexpected": true});
            }
        };
        self.always("issues/list-for-repo", Instead::Edited(Box::new(rest)));
        self.always("graphql*", Instead::Edited(Box::new(graphql)));
        Ok(())
    }

    async fn break_listings(&self, broken: bool) -> Outcome {
        self.hub.clear_faults();
        if broken {
            self.always("issues/list-for-repo", Instead::Truncated);
        }
        Ok(())
    }

    async fn lose_next(&self, done: bool) -> Outcome {
        let when = if done { When::After } else { When::Before };
        self.hub.fault(ANY_WRITE, when, Instead::Status(502));
        Ok(())
    }

    async fn lag(&self) -> Outcome {
        self.hub.lag(Thing::Everything, Lag::Requests(3));
        Ok(())
    }

    async fn lock_out(&self, out: bool) -> Outcome {
        if out {
            self.hub.revoke(TOKEN)
        } else {
            self.hub.add_token("robot", TOKEN)
        }
        Ok(())
    }

    async fn limit_next(&self, wait: Duration) -> Outcome {
        self.renew();
        self.is_limited.store(true, Ordering::Relaxed);
        let instead = Instead::SecondaryLimit { status: 403, retry_after: Some(wait.as_secs()) };
        self.hub.fault("*", When::Before, instead);
        Ok(())
    }

    async fn reactions(&self, comment: &CommentId) -> Result<usize, Cannot> {
        Ok(self.hub.reactions(comment_number(comment)).len())
    }
}

mod labels {
    use super::*;

    struct Labels;

    impl Board for Labels {
        const SHARED: bool = false;
        const NAMES_MOVERS: bool = true;

        fn set_up(_: &Hub) {}

        fn columns() -> Columns {
            let labels = STATES.map(|(state, label)| (state.to_owned(), label.to_owned()));
            Columns::of_labels(labels, &owned(&["Todo", "In Progress"]), &owned(&["Done"]))
        }

        fn shift(hub: &Hub, number: u64, state: &str) {
            for (other, label) in STATES {
                match other == state {
                    true => hub.label(PERSON, number, label),
                    false => hub.unlabel(PERSON, number, label),
                }
            }
            if state == "Done" { hub.close(PERSON, number, "completed") } else { hub.reopen(PERSON, number) }
        }
    }

    tracker_exam!(OnGithub<Labels>);
}

mod project {
    use super::*;

    struct Project;

    impl Board for Project {
        const SHARED: bool = true;
        const NAMES_MOVERS: bool = false;

        fn set_up(hub: &Hub) {
            hub.add_project(1, "Status", &STATES.map(|(state, _)| state));
        }

        fn columns() -> Columns {
            let terminal = owned(&["Done"]);
            let first = Some("Todo".to_owned());
            Columns::Project(ProjectColumn { owner: "acme".into(), number: 1, field: "Status".into(), terminal, first })
        }

        fn shift(hub: &Hub, number: u64, state: &str) {
            hub.move_in_project(PERSON, 0, number, state);
        }
    }

    tracker_exam!(OnGithub<Project>);
}
