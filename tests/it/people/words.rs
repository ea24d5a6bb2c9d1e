//! Every reason for which a ticket can be where it is, as people read it. A reason that is made up anew has to be shown here, and
//! named in docs/phases.md.

use std::collections::BTreeSet;
use std::path::Path;

use dirigent::domain::failure::{RunFailure, TurnError};
use dirigent::domain::ids::{CommitId, PrNumber};
use dirigent::domain::job::{
    BlockCause, CheckWait, DoneHow, Hindrance, HumanWait, MergeHold, ReleaseReason, ReworkCause, ReworkTrigger, Stage,
    SwitchSource, Wait, Work,
};
use dirigent::domain::phase::Phase;
use dirigent::domain::reason::Reason;
use dirigent::domain::run::StopReason;
use dirigent::domain::time::Timestamp;

const NOW: Timestamp = Timestamp(0);
const SOON: Timestamp = Timestamp(40_000);
const LATER: Timestamp = Timestamp(7_200_000);

fn head() -> CommitId {
    "0123456789abcdef0123456789abcdef01234567".into()
}

fn rework() -> Work {
    let cause = ReworkCause {
        trigger: ReworkTrigger::GateFailed,
        summary: "failed: lint (exit code 9)".into(),
        evidence: Vec::new(),
    };
    Work::Rework { cause }
}

fn queued(wait: Wait) -> Stage {
    Stage::Queued { work: Work::Implement, wait, since: NOW }
}

fn working(work: Work, stopping: Option<StopReason>) -> Stage {
    Stage::Working { work, run: "RUN".into(), stopping, since: NOW }
}

fn stages() -> Vec<Stage> {
    let silent = RunFailure::Stalled { silent_ms: 300_000, limit_ms: 300_000 };
    let mut all = vec![
        queued(Wait::Ready),
        queued(Wait::Blockers { keys: vec!["t-1".into(), "t-2".into()] }),
        queued(Wait::Cycle { keys: vec!["t-1".into(), "t-2".into(), "t-1".into()] }),
        queued(Wait::Retry { attempt: 2, due: SOON, error: silent }),
        queued(Wait::Continuation { due: SOON }),
        queued(Wait::Labels { missing: vec!["agent".into()] }),
        queued(Wait::Labels { missing: vec!["agent".into(), "ready".into()] }),
        queued(Wait::NotOurs { because: "it is assigned to somebody else".into() }),
        working(Work::Implement, None),
        working(Work::Review { head: head() }, None),
        working(rework(), None),
        working(Work::Implement, Some(StopReason::Operator)),
    ];
    let checks = [
        CheckWait::Gates { head: head() },
        CheckWait::Publishing { head: head() },
        CheckWait::Forge { head: head() },
        CheckWait::Mergeability { head: head() },
        CheckWait::BranchUpdate { head: head() },
        CheckWait::ForgeQueue { head: head() },
        CheckWait::TicketClosed { state: "closed".into() },
    ];
    all.extend(checks.map(|on| Stage::WaitingForChecks { on, since: NOW }));
    let people = [
        HumanWait::Approval { head: head() },
        HumanWait::Branch { branch: "dirigent/t-1".into() },
        HumanWait::Directory,
        HumanWait::NoChecks { head: head() },
        HumanWait::Draft,
        HumanWait::ReviewLimit { head: head(), limit: 2 },
        HumanWait::Remarks { head: head(), by: vec!["ann".into(), "bob".into()] },
        HumanWait::Rule { head: head(), because: "two approvals are required".into() },
        HumanWait::OtherBase { head: head(), base: "next".into() },
        HumanWait::MergeStuck { head: head(), because: "the forge answered 502".into() },
    ];
    all.extend(people.map(|on| Stage::WaitingForHuman { on, since: NOW }));
    let turn = |class| RunFailure::Turn { class, detail: "the model said no".into(), reset_at: None };
    let causes = [
        BlockCause::RetriesExhausted { attempts: 5, last: RunFailure::Exit { code: 3, said: Some("no key".into()) } },
        BlockCause::Permanent { failure: turn(TurnError::Auth) },
        BlockCause::Permanent { failure: turn(TurnError::Model) },
        BlockCause::Permanent {
            failure: RunFailure::Launch { detail: "`agent` is not there".into(), permanent: true },
        },
        BlockCause::Permanent { failure: RunFailure::WorktreeGone },
        BlockCause::NoNewEvidence { fingerprint: Box::default() },
        BlockCause::LostAgain { times: 10 },
        BlockCause::ReworkLimitExceeded { limit: 3, trigger: ReworkTrigger::MergeConflict },
        BlockCause::BudgetExceeded { what: "cost".into(), figure: "10.20 USD".into(), cap: "10 USD".into() },
        BlockCause::WorkerAsked { question: "Which colour?".into() },
        BlockCause::PrClosed { number: PrNumber(7) },
        BlockCause::StoppedByOperator,
        BlockCause::SetAside,
        BlockCause::MergeRefused { because: "the base is protected".into() },
        BlockCause::EffectRefused { effect: "open_pr".into(), because: "403 Forbidden".into() },
        BlockCause::EffectRefused { effect: "run_gate".into(), because: "`lint` cannot be run".into() },
        BlockCause::NoEnd { runs: 20 },
        BlockCause::ReviewUnreadable { head: head(), because: "it names no head".into() },
    ];
    all.extend(causes.map(|cause| Stage::Blocked { cause, resume: Work::Implement, since: NOW }));
    let trigger = ReworkTrigger::GateFailed;
    all.push(Stage::Blocked {
        cause: BlockCause::ReworkLimitExceeded { limit: 3, trigger },
        resume: rework(),
        since: NOW,
    });
    let holds = [
        MergeHold::Queue,
        MergeHold::Forge { because: "a.txt in your work tree is not committed".into(), retry_at: SOON },
    ];
    all.extend(holds.map(|hold| Stage::ReadyToMerge { head: head(), hold, turn: None, since: NOW }));
    all.push(Stage::Merging { head: head(), withdrawn: false, since: NOW });
    for by_us in [true, false] {
        let how = DoneHow::Merged { commit: Some(head()), by_us };
        all.push(Stage::Done { how, ticket_closed: false, since: NOW });
    }
    let released = [
        ReleaseReason::TicketClosed { state: "closed".into() },
        ReleaseReason::NotActive { state: "backlog".into() },
        ReleaseReason::NotEligible { because: "the label `agent` was taken off".into() },
        ReleaseReason::GivenBack,
        ReleaseReason::Gone,
    ];
    all.extend(released.map(|why| Stage::Released { why, since: NOW }));
    all
}

fn hindrances() -> Vec<Hindrance> {
    let sources = [
        SwitchSource::File,
        SwitchSource::TicketLabel,
        SwitchSource::PrLabel,
        SwitchSource::PauseAll,
        SwitchSource::PauseTicket,
    ];
    let mut all: Vec<Hindrance> = sources.into_iter().map(|source| Hindrance::Switch { source }).collect();
    all.extend([
        Hindrance::Slot,
        Hindrance::StateSlot { state: "open".into() },
        Hindrance::Quota { pool: "codex".into(), until: LATER },
        Hindrance::QuotaTrial { pool: "codex".into() },
        Hindrance::Observe,
        Hindrance::Preflight,
        Hindrance::DailyBudget { what: "cost 10.20 USD of 10 USD".into(), until: LATER },
        Hindrance::Tracker,
        Hindrance::ShuttingDown,
        Hindrance::MergeDisabled,
        Hindrance::RolloutForbids,
        Hindrance::Behind { key: "t-1".into() },
    ]);
    all
}

fn reasons() -> Vec<(Phase, Reason)> {
    let mut all: Vec<(Phase, Reason)> = stages().iter().map(|stage| (stage.phase(), stage.reason(NOW))).collect();
    let waits = queued(Wait::Ready);
    all.extend(hindrances().iter().map(|hindrance| (waits.phase(), waits.hindered_reason(hindrance, NOW))));
    all
}

#[test]
fn every_reason_in_words() {
    let told = reasons().into_iter().map(|(phase, reason)| {
        let Reason { code, sentence, next, .. } = reason;
        format!("{} / {code}\n    {sentence}\n    next: {next}\n", phase.words())
    });
    insta::assert_snapshot!("reasons", told.collect::<String>());
}

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

#[test]
fn every_reason_and_phase_of_the_program_is_shown_above_and_on_the_page_about_phases() {
    let source = page("src/domain/reason.rs");
    let in_source: BTreeSet<&str> = source
        .split("reason(")
        .skip(1)
        .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
        .collect();
    assert!(in_source.len() > 50, "the reasons were not found");
    let shown: BTreeSet<&str> = reasons().iter().map(|(_, reason)| reason.code).collect();
    // Told of a job and not of its stage, or of what the engine alone knows.
    let missing: Vec<_> = in_source.difference(&shown).collect();
    assert!(missing.is_empty(), "not shown above: {missing:?}");
    let about = page("docs/phases.md");
    let names = in_source.into_iter().chain(Phase::ALL.map(Phase::name));
    let untold: Vec<&str> = names.filter(|name| !about.contains(&format!("`{name}`"))).collect();
    assert!(untold.is_empty(), "not on docs/phases.md: {untold:?}");
}
