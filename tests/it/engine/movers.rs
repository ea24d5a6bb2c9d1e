//! Who moved a ticket: only a person whose words count approves, asks for rework or un-blocks by moving it.

use dirigent::config::policy::Policy;
use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::domain::phase::Phase;
use dirigent::domain::run::{RunOutcome, StopReason};
use dirigent::domain::ticket::{StateChange, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::{Action, Said};
use dirigent::engine::event::OperatorCommand;

use super::fixtures::{id, in_state, policy, report, ticket};
use super::machine::Machine;

fn with_approval() -> Policy {
    let mut policy = policy();
    policy.merge.require_human_approval = true;
    policy.review.bots = vec!["reviewer".into()];
    policy
}

/// The ticket after this account moved it there. `None` where the tracker names nobody.
fn moved(machine: &Machine, state: &str, by: Option<Author>) -> Ticket {
    let at = Timestamp(machine.now.0 + 1);
    Ticket { state_changed: Some(StateChange { at, by }), updated_at: Some(at), ..in_state("a", state) }
}

/// Waits for somebody to approve its head.
fn waiting() -> Machine {
    let mut machine = Machine::with_pr(with_approval());
    machine.lands("a");
    machine.poll(vec![ticket("a")]);
    assert_eq!(machine.code("a"), "approval");
    machine
}

fn answers(machine: &Machine) -> Vec<String> {
    let said = machine.effects.iter().filter_map(|effect| match &effect.action {
        Action::Comment { said: Said::Reply { text, .. }, .. } => Some(text.clone()),
        _ => None,
    });
    said.collect()
}

/// Accounts that decide nothing, and whether they are told so.
fn nobodies() -> [(Author, bool); 5] {
    [
        (Author::new("tim", TrustLevel::Triage), true),
        (Author::new("guest", TrustLevel::Stranger), true),
        (Author::new("reviewer", TrustLevel::Write), false),
        (Author::new("automation", TrustLevel::Bot), false),
        (Author::ourselves(), false),
    ]
}

#[test]
fn only_somebody_whose_words_count_approves_by_a_move() {
    for (by, is_told) in nobodies() {
        let mut machine = waiting();
        machine.poll(vec![moved(&machine, "Approved", Some(by.clone()))]);
        machine.lands("a");
        assert_eq!(machine.code("a"), "approval", "{by:?}");
        assert_eq!(answers(&machine).len(), usize::from(is_told), "{by:?}");
        if is_told {
            let text = &answers(&machine)[0];
            assert!(text.contains(&by.name) && text.contains("approves nothing"), "{text}");
            // Moved away and back again: it was said.
            machine.perform_small();
            machine.poll(vec![ticket("a")]);
            machine.poll(vec![moved(&machine, "Approved", Some(by))]);
            assert_eq!(answers(&machine).len(), 1);
        }
    }
    let ann = Author::new("ann", TrustLevel::Write);
    let mut named = with_approval();
    named.tracker.trusted_accounts = vec!["tim".into()];
    for (policy, by) in
        [(with_approval(), Some(ann)), (with_approval(), None), (named, Some(Author::new("tim", TrustLevel::Triage)))]
    {
        let mut machine = waiting();
        machine.policy = policy;
        machine.poll(vec![moved(&machine, "Approved", by)]);
        machine.lands("a");
        assert_eq!((machine.phase("a"), answers(&machine).len()), (Phase::Merging, 0));
    }
}

#[test]
fn only_somebody_whose_words_count_asks_for_rework_by_a_move() {
    for (by, is_told) in nobodies() {
        let mut machine = waiting();
        machine.poll(vec![moved(&machine, "Rework", Some(by.clone()))]);
        assert_eq!(machine.code("a"), "approval", "{by:?}");
        assert_eq!(
            answers(&machine).iter().filter(|text| text.contains("starts no rework")).count(),
            usize::from(is_told)
        );
    }
    let mut machine = waiting();
    machine.poll(vec![moved(&machine, "Rework", Some(Author::new("ann", TrustLevel::Admin)))]);
    assert_eq!(machine.job("a").rework_cycles, 1);
}

#[test]
fn only_somebody_whose_words_count_unblocks_by_a_move() {
    let blocked = || {
        let mut machine = Machine::working(with_approval());
        machine.operator(OperatorCommand::Stop { ticket: id("a") });
        machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::Operator }));
        machine.poll(vec![in_state("a", "Backlog")]);
        assert_eq!(machine.phase("a"), Phase::Blocked);
        machine
    };
    for (by, is_told) in nobodies() {
        let mut machine = blocked();
        machine.poll(vec![moved(&machine, "Todo", Some(by.clone()))]);
        assert_eq!(machine.phase("a"), Phase::Blocked, "{by:?}");
        assert_eq!(answers(&machine).len(), usize::from(is_told), "{by:?}");
    }
    let mut machine = blocked();
    machine.poll(vec![moved(&machine, "Todo", None)]);
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

/// A list of GitHub's shows that a ticket is elsewhere, and neither its comments nor who moved it.
#[test]
fn a_move_that_a_list_shows_counts_once_it_is_known_whose_it_is() {
    let listed = |ticket: &Ticket| Ticket { comments: None, state_changed: None, ..ticket.clone() };
    for (by, phase) in [
        (Author::new("tim", TrustLevel::Triage), Phase::WaitingForHuman),
        (Author::new("automation", TrustLevel::Bot), Phase::WaitingForHuman),
        (Author::new("ann", TrustLevel::Write), Phase::Merging),
    ] {
        for restarted in [false, true] {
            let mut machine = waiting();
            let shown = moved(&machine, "Approved", Some(by.clone()));
            machine.poll(vec![listed(&shown)]);
            assert!(machine.emitted_last(|action| matches!(action, Action::RefreshTickets { .. })));
            machine.lands("a");
            assert_eq!(machine.code("a"), "approval", "{by:?}: nobody knows yet");
            if restarted {
                machine.restart();
                machine.poll(vec![listed(&shown)]);
                assert!(machine.emitted_last(|action| matches!(action, Action::RefreshTickets { .. })));
            }
            machine.refresh(shown);
            machine.lands("a");
            assert_eq!(machine.phase("a"), phase, "{by:?}, restarted: {restarted}");
        }
    }
    let mut machine = waiting();
    let shown = moved(&machine, "Rework", Some(Author::new("ann", TrustLevel::Write)));
    machine.poll(vec![listed(&shown)]);
    assert_eq!(machine.job("a").rework_cycles, 0);
    machine.refresh(shown.clone());
    machine.refresh(shown);
    assert_eq!(machine.job("a").rework_cycles, 1);
}
