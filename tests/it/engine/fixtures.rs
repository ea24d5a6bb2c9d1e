//! Policies, tickets, pull requests and reports with sensible defaults, for tests that name only what they are about.

use std::collections::BTreeMap;
use std::time::Duration;

use dirigent::config::policy::{
    AgentPolicy, BudgetPolicy, ClosedPrPolicy, ForgeKind, GatesPolicy, MergePolicy, OnComment, OrchestrationPolicy,
    Order, Policy, PrPolicy, ReviewComment, ReviewPolicy, RolloutMode, RolloutPolicy, RoutePolicy, RuntimeTimeouts,
    TrackerPolicy,
};
use dirigent::domain::comment::{Author, Comment, TrustLevel};
use dirigent::domain::failure::{RunFailure, TurnError};
use dirigent::domain::finding::Severity;
use dirigent::domain::ids::{CommentId, CommitId, PoolName, PrNumber, TicketId};
use dirigent::domain::pr::{
    Check, CheckStatus, MergeMethod, Mergeability, PrState, PullRequest, Review, ReviewThread, Verdict,
};
use dirigent::domain::remark::{RemarkKey, RemarkKind};
use dirigent::domain::route::Route;
use dirigent::domain::run::{Declared, RunOutcome, RunReport};
use dirigent::domain::ticket::{Blocker, Dispatchable, Ticket};
use dirigent::domain::time::Timestamp;

pub const SWITCH_LABEL: &str = "dirigent:stop";

pub fn policy() -> Policy {
    Policy {
        hash: "policy-1".into(),
        tracker: TrackerPolicy {
            active_states: vec!["Todo".into(), "In Progress".into()],
            terminal_states: vec!["Done".into(), "Cancelled".into()],
            required_labels: Vec::new(),
            authors: Vec::new(),
            trusted: vec![TrustLevel::Admin, TrustLevel::Member, TrustLevel::Write],
            trusted_accounts: Vec::new(),
            mention: "dirigent".into(),
            acknowledgements: vec!["lgtm".into(), "thanks".into()],
            completion_state: Some("Done".into()),
        },
        agent: AgentPolicy {
            routes: vec![route("codex", "default")],
            timeouts: BTreeMap::from([("codex".to_owned(), TIMEOUTS)]),
            max_concurrent: 10,
            max_concurrent_by_state: BTreeMap::new(),
            max_turns: 20,
            max_retries: 5,
            max_retry_backoff: Duration::from_secs(300),
            max_run: Duration::ZERO,
            fresh_start: Duration::ZERO,
            tool_timeout: Duration::from_secs(1800),
            start_timeout: Duration::from_secs(120),
            order: Order::Oldest,
        },
        orchestration: OrchestrationPolicy {
            max_rework_cycles: 3,
            rework_states: vec!["Rework".into()],
            required_label: None,
            on_comment: OnComment::Hold,
            workpad: false,
            workpad_min_interval: Duration::from_secs(30),
            states: BTreeMap::new(),
        },
        rollout: RolloutPolicy {
            mode: RolloutMode::Merge,
            kill_switch_label: Some(SWITCH_LABEL.into()),
            preflight_missing: false,
        },
        pr: PrPolicy {
            forge: ForgeKind::Github,
            auto_create: true,
            base_branch: "main".into(),
            closed_pr: ClosedPrPolicy::Stop,
            draft: false,
            labels: Vec::new(),
            reviewers: Vec::new(),
            resolve_answered: false,
            ready_when_green: false,
            publish_gates: false,
            attach_to_tracker: true,
            has_links: false,
        },
        review: ReviewPolicy {
            enabled: false,
            max_passes: 2,
            bots: Vec::new(),
            fix_consideration_severities: vec![Severity::P0, Severity::P1, Severity::P2],
            comment: ReviewComment::Upsert,
        },
        merge: MergePolicy {
            auto: true,
            method: MergeMethod::Squash,
            queue: true,
            prepare: false,
            max_rebase_attempts: 3,
            require_green_checks: true,
            require_head_match: true,
            require_human_approval: false,
            approval_states: vec!["Approved".into()],
            checks_grace: Duration::from_secs(60),
            no_checks_pass: false,
            rerun_failed_checks: 0,
            guards_not_in_force: Vec::new(),
        },
        gates: GatesPolicy {
            has_task_gates: false,
            task_names: Vec::new(),
            required_evidence: Vec::new(),
            allow_followups: true,
        },
        budget: BudgetPolicy::default(),
        branch_prefix: "dirigent/".into(),
        branch_by_tracker: false,
        directories: false,
        polling_interval: Duration::from_secs(30),
        archive_after: Duration::from_secs(1000 * 24 * 60 * 60),
    }
}

pub const TIMEOUTS: RuntimeTimeouts =
    RuntimeTimeouts { stall: Duration::from_secs(300), turn: Duration::from_secs(3600), quiet: Duration::ZERO };

/// Every ticket goes to this runtime, with the credentials of this pool.
pub fn route(runtime: &str, pool: &str) -> RoutePolicy {
    let route = Route {
        runtime: runtime.into(),
        model: None,
        model_provider: None,
        thinking_level: None,
        prompt: None,
        pool: PoolName::new(pool),
    };
    RoutePolicy { labels: Vec::new(), priority: Vec::new(), states: Vec::new(), role: None, route }
}

pub fn id(name: &str) -> TicketId {
    TicketId::new(name)
}

pub fn commit(name: &str) -> CommitId {
    CommitId::new(format!("{name:0<40}"))
}

pub fn ticket(name: &str) -> Ticket {
    Ticket {
        id: id(name),
        key: name.into(),
        title: format!("Do {name}"),
        description: None,
        priority: None,
        state: "Todo".into(),
        branch_name: None,
        url: None,
        assignee: None,
        author: Some(Author::new("ann", TrustLevel::Admin)),
        labels: Vec::new(),
        blocked_by: Vec::new(),
        parent: None,
        dispatchable: Dispatchable::Yes,
        created_at: Some(Timestamp(1_000)),
        updated_at: None,
        native_ref: None,
        comments: Some(Vec::new()),
        state_changed: None,
        history: Default::default(),
    }
}

/// The ticket with these comments on it, and no others.
pub fn with_comments(ticket: Ticket, comments: Vec<Comment>) -> Ticket {
    Ticket { comments: Some(comments), ..ticket }
}

pub fn in_state(name: &str, state: &str) -> Ticket {
    Ticket { state: state.into(), ..ticket(name) }
}

pub fn labelled(name: &str, labels: &[&str]) -> Ticket {
    Ticket { labels: labels.iter().map(ToString::to_string).collect(), ..ticket(name) }
}

pub fn blocker(name: &str, state: Option<&str>) -> Blocker {
    Blocker { id: id(name), key: name.into(), state: state.map(Into::into), failed: false }
}

pub fn comment(number: u32, trust: TrustLevel, text: &str) -> Comment {
    let at = Timestamp(i64::from(number) * 1000);
    Comment {
        id: CommentId::new(format!("comment-{number}")),
        author: Author::new(format!("{trust:?}").to_lowercase(), trust),
        body: text.into(),
        created_at: Some(at),
        updated_at: None,
    }
}

pub fn pr(number: u64, branch: &str, head: &CommitId) -> PullRequest {
    PullRequest {
        number: PrNumber(number),
        url: Some(format!("https://forge.example/pull/{number}")),
        title: "A change".into(),
        state: PrState::Open,
        draft: false,
        author: Some(Author::ourselves()),
        head_branch: branch.into(),
        head: head.clone(),
        head_repo: None,
        ref_head: Some(head.clone()),
        base_branch: "main".into(),
        base: Some(commit("base")),
        mergeability: Mergeability::Clean,
        checks: Some(vec![check("build", CheckStatus::Passed)]),
        required_checks: Some(vec!["build".into()]),
        reviews: Some(Vec::new()),
        threads: Some(Vec::new()),
        comments: Some(Vec::new()),
        labels: Vec::new(),
        in_queue: false,
        pushed_at: None,
    }
}

pub fn check(name: &str, status: CheckStatus) -> Check {
    Check { id: name.into(), name: name.into(), status, url: None, log_tail: Some("the log".into()) }
}

/// The same pull request after somebody pushed this commit, on the forge and on its git remote.
pub fn at_head(pr: PullRequest, head: &str) -> PullRequest {
    PullRequest { head: commit(head), ref_head: Some(commit(head)), ..pr }
}

/// What the engine calls this comment on a ticket.
pub fn comment_key(comment: &Comment) -> RemarkKey {
    RemarkKey { kind: RemarkKind::TicketComment, id: comment.id.clone(), version: comment.version() }
}

pub fn review(number: u32, trust: TrustLevel, verdict: Verdict, head: &CommitId) -> Review {
    Review {
        id: CommentId::new(format!("review-{number}")),
        author: Author::new(format!("{trust:?}").to_lowercase(), trust),
        verdict,
        head: Some(head.clone()),
        body: "please".into(),
        submitted_at: Some(Timestamp(i64::from(number))),
    }
}

pub fn thread(number: u32, resolved: bool) -> ReviewThread {
    ReviewThread {
        id: CommentId::new(format!("thread-{number}")),
        resolved,
        review: None,
        path: Some("src/lib.rs".into()),
        line: Some(7),
        comments: vec![comment(900 + number, TrustLevel::Member, "why?")],
    }
}

pub fn report(outcome: RunOutcome) -> RunReport {
    RunReport::bare(outcome)
}

/// The worker says done, and made one commit that is now the head.
pub fn done_report(head: &CommitId) -> RunReport {
    RunReport {
        declared: Some(Declared::Done { summary: "did it".into() }),
        base: Some(commit("base")),
        head_before: Some(commit("before")),
        head: Some(head.clone()),
        commits_ahead: 1,
        turns: 1,
        ..report(RunOutcome::Done)
    }
}

/// What a reviewer says of a head: one finding per severity.
pub fn review_text(head: &CommitId, severities: &[Severity]) -> String {
    let mut text = format!("# Review\n- head: {head}\n- findings: {}\n", severities.len());
    for (index, severity) in severities.iter().enumerate() {
        text.push_str(&format!(
            "\n## F{}: It is wrong\n- severity: {}\n- place: src/lib.rs:7\n- summary: It breaks.\n- why_it_matters: People wait.\n- suggested_fix: Mend it.\n",
            index + 1,
            severity.name()
        ));
    }
    text
}

/// A review run that ended well, with this as its last words.
pub fn reviewed(said: &str) -> RunReport {
    RunReport { said: Some(said.to_owned()), turns: 1, ..report(RunOutcome::Done) }
}

pub fn failed(failure: RunFailure) -> RunReport {
    report(RunOutcome::Failed { failure })
}

pub fn turn_error(class: TurnError) -> RunFailure {
    RunFailure::Turn { class, detail: "the agent said so".into(), reset_at: None }
}

pub fn exit() -> RunFailure {
    RunFailure::Exit { code: 1, said: None }
}
