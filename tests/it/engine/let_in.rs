//! Whose doing lets a ticket be worked on, and what a list shows only half of.

use dirigent::config::policy::Policy;
use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::domain::phase::Phase;
use dirigent::domain::ticket::{Doing, History, Labelled, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::Action;
use dirigent::engine::event::{Event, Lookup};

use super::fixtures::{comment, commit, id, labelled, policy, with_comments};
use super::machine::Machine;

fn demanding() -> Policy {
    let mut policy = policy();
    policy.tracker.required_labels = vec!["Agent".into()];
    policy
}

fn who(trust: TrustLevel) -> Author {
    Author::new(format!("{trust:?}").to_lowercase(), trust)
}

fn put_by(by: Author, at: i64) -> Ticket {
    let put = Labelled { label: "agent".into(), by, at: Some(Timestamp(at)) };
    Ticket { history: History { labelled: vec![put], ..History::default() }, ..labelled("a", &["agent"]) }
}

/// As a list shows it.
fn half(ticket: &Ticket, updated_at: i64) -> Ticket {
    let updated_at = Some(Timestamp(updated_at));
    Ticket { comments: None, history: History::default(), updated_at, ..ticket.clone() }
}

fn starts(machine: &Machine) -> usize {
    machine.emitted(|action| matches!(action, Action::StartRun { .. }))
}

fn asks_for(machine: &Machine) -> Vec<String> {
    let asked = machine.last.iter().filter_map(|effect| match &effect.action {
        Action::RefreshTickets { ids } => Some(ids.iter().map(ToString::to_string)),
        _ => None,
    });
    asked.flatten().collect()
}

#[test]
fn a_label_counts_by_who_put_it_on() {
    for (by, counts) in [
        (who(TrustLevel::Write), true),
        (who(TrustLevel::Admin), true),
        (Author { ourselves: true, ..who(TrustLevel::Bot) }, true),
        (who(TrustLevel::Triage), false),
        (who(TrustLevel::Stranger), false),
        (who(TrustLevel::Bot), false),
    ] {
        let mut machine = Machine::new(demanding());
        machine.poll(vec![put_by(by.clone(), 1)]);
        assert_eq!(starts(&machine), usize::from(counts), "{by:?}");
        let because = machine.job("a").stage.reason(machine.now).sentence;
        assert_eq!(because.contains(&format!("put on by {}", by.name)), !counts, "{because}");
    }
    let mut named = demanding();
    named.tracker.trusted_accounts = vec!["Triage".into()];
    let mut machine = Machine::new(named);
    machine.poll(vec![put_by(who(TrustLevel::Triage), 1)]);
    assert_eq!(starts(&machine), 1, "the file names them");
    let mut machine = Machine::new(demanding());
    machine.poll(vec![labelled("a", &["agent"])]);
    assert_eq!(starts(&machine), 1, "where the tracker does not tell, whoever can write there counts");
}

#[test]
fn what_somebody_else_put_on_again_during_a_run_stops_it() {
    let mut machine = Machine::new(demanding());
    machine.poll(vec![put_by(who(TrustLevel::Write), 1)]);
    machine.run_starts("a");
    machine.refresh(put_by(who(TrustLevel::Stranger), 2));
    assert!(machine.emitted_last(|action| matches!(action, Action::StopRun { .. })));
}

#[test]
fn an_assignment_counts_by_who_made_it() {
    for (trust, counts) in [(TrustLevel::Write, true), (TrustLevel::Triage, false)] {
        let assigned = Some(Doing { by: who(trust), at: Timestamp(1) });
        let ticket = Ticket { history: History { assigned, ..History::default() }, ..super::fixtures::ticket("a") };
        let mut machine = Machine::new(policy());
        machine.poll(vec![ticket]);
        assert_eq!(starts(&machine), usize::from(counts), "{trust:?}");
    }
}

#[test]
fn a_text_that_somebody_else_changed_later_waits_until_it_is_let_in_again() {
    let by_stranger = |reworded_at: i64, put_at: i64| {
        let mut ticket = put_by(who(TrustLevel::Write), put_at);
        ticket.author = Some(who(TrustLevel::Stranger));
        ticket.history.reworded = Some(Doing { by: who(TrustLevel::Stranger), at: Timestamp(reworded_at) });
        ticket
    };
    let mut machine = Machine::new(demanding());
    machine.poll(vec![by_stranger(20, 10)]);
    assert_eq!((starts(&machine), machine.code("a")), (0, "not_ours"));
    let because = machine.job("a").stage.reason(machine.now).sentence;
    assert!(because.contains("stranger changed its text after it was let in"), "{because}");
    machine.refresh(by_stranger(20, 30));
    assert_eq!(starts(&machine), 1);
    // Their own people may.
    let mut machine = Machine::new(demanding());
    let mut ticket = by_stranger(20, 10);
    ticket.history.reworded.as_mut().unwrap().by = who(TrustLevel::Write);
    machine.poll(vec![ticket]);
    assert_eq!(starts(&machine), 1);
}

#[test]
fn nothing_starts_on_half_a_ticket_and_the_other_half_is_asked_for() {
    let whole = put_by(who(TrustLevel::Write), 1);
    let mut machine = Machine::new(demanding());
    machine.poll(vec![half(&whole, 5)]);
    assert_eq!(starts(&machine), 0);
    assert_eq!(asks_for(&machine), ["a"]);
    // What was asked before the list says nothing about what the list showed.
    let early = dirigent::domain::basis::Basis { after: Default::default(), ..machine.basis() };
    machine.refresh_asked(Ticket { updated_at: Some(Timestamp(5)), ..whole.clone() }, early);
    assert_eq!(starts(&machine), 0);
    machine.refresh(Ticket { updated_at: Some(Timestamp(5)), ..whole.clone() });
    assert_eq!(machine.phase("a"), Phase::Implementing);
    // The same once more is nothing new.
    machine.poll(vec![half(&whole, 5)]);
    assert!(asks_for(&machine).is_empty());
}

#[test]
fn words_on_a_ticket_that_waits_are_heard_although_lists_do_not_bring_them() {
    let mut policy = demanding();
    policy.merge.require_human_approval = true;
    let mut machine = Machine::new(policy);
    let whole = put_by(who(TrustLevel::Write), 1);
    let said = |words: &str| with_comments(whole.clone(), vec![comment(1, TrustLevel::Write, words)]);
    machine.poll(vec![half(&whole, 5)]);
    machine.refresh(Ticket { updated_at: Some(Timestamp(5)), ..whole.clone() });
    machine.run_starts("a");
    let basis = machine.basis();
    let tickets = vec![half(&whole, 6)];
    machine.step(Event::PolledChanges { tickets, base: Some(commit("base")), basis });
    assert_eq!(asks_for(&machine), ["a"]);
    machine.refresh(Ticket { updated_at: Some(Timestamp(6)), ..said("/dirigent stop") });
    assert!(machine.emitted_last(|action| matches!(action, Action::StopRun { .. })), "{:?}", machine.last);
}

#[test]
fn what_was_said_before_the_first_whole_reading_was_said_about_nothing() {
    let whole = put_by(who(TrustLevel::Write), 1);
    let old =
        vec![comment(1, TrustLevel::Write, "/dirigent retry"), comment(2, TrustLevel::Write, "/dirigent reject no")];
    let mut machine = Machine::new(demanding());
    machine.poll(vec![half(&whole, 5)]);
    machine.refresh(Ticket { updated_at: Some(Timestamp(5)), ..with_comments(whole.clone(), old) });
    assert_eq!(machine.emitted(|action| matches!(action, Action::Acknowledge { .. })), 0);
    assert_eq!(starts(&machine), 1);
    // That somebody wants it is heard all the same.
    let bare = labelled("a", &[]);
    let mut machine = Machine::new(demanding());
    machine.poll(vec![half(&bare, 5)]);
    machine.refresh(with_comments(bare, vec![comment(1, TrustLevel::Write, "/dirigent run")]));
    assert_eq!(machine.emitted(|action| matches!(action, Action::AddLabels { .. })), 1);
}

#[test]
fn a_large_board_is_asked_for_in_parts_and_what_is_ours_comes_first() {
    let mut machine = Machine::new(demanding());
    let many: Vec<Ticket> = (0..250)
        .map(|n| {
            let labels: &[&str] = if n >= 240 { &["agent"] } else { &[] };
            half(&labelled(&format!("t{n:03}"), labels), 5)
        })
        .collect();
    machine.poll(many);
    let first = asks_for(&machine);
    assert_eq!(first.len(), 100);
    assert!((240..250).all(|n| first.contains(&format!("t{n:03}"))), "{first:?}");
    let basis = machine.basis();
    let found = first.iter().map(|name| (id(name), Lookup::Found { ticket: labelled(name, &[]) })).collect();
    machine.step(Event::TicketsRefreshed { found, basis });
    machine.unchanged();
    let next = asks_for(&machine);
    assert_eq!(next.len(), 100);
    assert!(next.iter().all(|name| !first.contains(name)));
}
