//! Tests of a ticket's page.

use super::super::sample;
use super::*;
use crate::domain::evidence::{GateResult, Receipt, Verification};
use crate::domain::ids::{CommitId, TicketId, TicketKey};
use crate::domain::job::BranchName;
use crate::domain::phase::Phase;
use crate::domain::time::Timestamp;

const HEAD: &str = "0a73732755ca1111111111111111111111111111";
const CHANGE: &str =
    "diff --git a/door.txt b/door.txt\n--- a/door.txt\n+++ b/door.txt\n@@ -1 +1 @@\n-red\n+<b>blue</b>\n";

fn there(head: &str) -> DiffText {
    DiffText::There { base: "b".to_owned(), head: head.to_owned(), text: CHANGE.to_owned(), cut: false }
}

fn page(job: &JobView, record: Option<&Job>, diff: &DiffText) -> String {
    let picture = Snapshot { jobs: vec![job.clone()], ..sample::picture() };
    let note = |at: i64, text: &str| Note {
        at: Timestamp(at),
        ticket: None,
        run: None,
        code: "moved".to_owned(),
        text: text.to_owned(),
    };
    let notes = [note(1_000, "the first <i>note</i>"), note(2_000, "the second note")];
    let sources = TicketSources {
        picture: &picture,
        repository: "a-repository",
        job,
        record,
        notes: &notes,
        runs: &[],
        peek: &[],
        diff,
    };
    ticket(&sources).unwrap().html(str::to_owned).unwrap()
}

fn waiting() -> JobView {
    JobView { reason: "approval".to_owned(), ..sample::finished("T-1", Phase::WaitingForHuman) }
}

#[test]
fn a_head_is_approved_with_its_diff_in_view_and_not_without() {
    let button = "data-post=\"/api/v1/T-1/approve\"";
    let with = page(&waiting(), None, &there(HEAD));
    assert!(with.contains(button) && with.contains(HEAD), "{with}");
    assert!(with.contains("<del>-red</del><ins>+&lt;b&gt;blue&lt;/b&gt;</ins>"), "{with}");
    let another = page(&waiting(), None, &there("b".repeat(40).as_str()));
    assert!(!another.contains(button), "the diff of another head approves nothing");
    let without = page(&waiting(), None, &DiffText::Unknown { why: "git cannot show it".to_owned() });
    assert!(!without.contains(button) && without.contains("git cannot show it"));
}

#[test]
fn the_story_has_the_newest_first_and_the_receipt_says_when_it_is_old() {
    let mut facts = crate::domain::job::TicketFacts::of(&crate::domain::ticket::Ticket {
        id: TicketId::new("id-T-1"),
        key: TicketKey::new("T-1"),
        title: "x".to_owned(),
        description: None,
        priority: None,
        state: "open".to_owned(),
        branch_name: None,
        url: None,
        assignee: None,
        author: None,
        labels: Vec::new(),
        blocked_by: Vec::new(),
        parent: None,
        dispatchable: crate::domain::ticket::Dispatchable::Yes,
        created_at: None,
        updated_at: None,
        native_ref: None,
        comments: None,
        state_changed: None,
        history: Default::default(),
    });
    facts.title = "x".to_owned();
    let mut record = Job::new(facts, BranchName { name: "b".to_owned(), generation: 1 }, sample::NOW);
    record.evidence.receipt = Some(Receipt {
        verification: Verification::Contradicted,
        head: Some(CommitId::new("c".repeat(40))),
        base: None,
        commits: 2,
        facts: vec!["two commits beyond main".to_owned()],
        gates: vec![GateResult {
            name: "check".to_owned(),
            command: "sh ./check.sh".to_owned(),
            passed: false,
            exit_code: Some(1),
            timed_out: false,
            output_tail: "1 2 4 is wrong".to_owned(),
            duration_ms: 12,
        }],
    });
    let page = page(&waiting(), Some(&record), &there(HEAD));
    for what in
        ["Contradicted", "failed with exit code 1 in 12 ms", "1 2 4 is wrong", "nobody has run the gates on this one"]
    {
        assert!(page.contains(what), "{what}: {page}");
    }
    let (second, first) = (page.find("the second note").unwrap(), page.find("the first &lt;i&gt;note").unwrap());
    assert!(second < first, "the newest first");
}
