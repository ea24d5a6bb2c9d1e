//! The way with each trouble at each step.

use super::journey::{Journey, Step, Trouble};
use super::scene::Account;

/// This trouble at each of these steps, each on a way of its own.
fn at_each(steps: &[Step], trouble: Trouble) {
    for step in steps {
        let began = std::time::Instant::now();
        Journey::new(Account::Own).play(*step, trouble);
        eprintln!("{trouble:?} at {step:?}: {} ms", began.elapsed().as_millis());
    }
}

#[test]
fn an_account_of_its_own_and_an_approving_review() {
    Journey::new(Account::Own).play(Step::Working, Trouble::Nothing);
}

#[test]
fn the_owners_own_token_and_an_approval_by_command() {
    Journey::new(Account::Owners).play(Step::Working, Trouble::Nothing);
}

#[test]
fn the_kill_switch_file_at_each_step() {
    at_each(&Step::ALL, Trouble::SwitchFile);
}

#[test]
fn the_label_on_the_ticket_at_each_step() {
    // What is merged cannot be held by a label any more.
    at_each(&Step::ALL[..8], Trouble::TicketLabel);
}

#[test]
fn the_label_on_the_pull_request_at_each_step_that_has_one() {
    at_each(&Step::ALL[2..8], Trouble::PrLabel);
}

#[test]
fn the_pause_command_at_each_step() {
    at_each(&Step::ALL, Trouble::Pause);
}

#[test]
fn a_runner_that_is_killed_at_each_step() {
    at_each(&Step::ALL, Trouble::Killed);
}

#[test]
fn a_runner_that_is_killed_between_each_write_and_its_answer() {
    let mut writes = 0;
    while Journey::new(Account::Own).play_killed_at(writes) {
        writes += 1;
    }
    eprintln!("killed at each of {writes} writes");
    assert!(writes > 10, "{writes}");
}
