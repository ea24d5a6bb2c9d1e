//! A worker script that uses nothing but `tk`: the real program, the real desk, a real run.

use dirigent::domain::evidence::EvidenceKind;
use dirigent::domain::run::{Activity, Declared};
use dirigent::worker::WorkerEvent;

use crate::worker::bench::{Bench, git};

#[tokio::test(flavor = "multi_thread")]
async fn a_script_of_tk_calls_completes_a_ticket() {
    let mut bench = Bench::new(&[]);
    // A copy of a store in the repository, as a worktree would have it: it must stay as it is.
    let copy = bench.repo().join(".tickets");
    std::fs::create_dir(&copy).unwrap();
    std::fs::write(copy.join("t-1.md"), "---\nid: t-1\nstatus: open\n---\n# The copy\n").unwrap();
    git(&bench.repo(), &["add", "-A"]);
    git(&bench.repo(), &["commit", "-qm", "Tickets"]);
    bench.settings.exec.command = "set -e
        tk show | grep -q 'Make it work'
        if tk show | grep -q 'The copy'; then exit 9; fi
        tk comment half way
        echo piped | tk add-note t-1
        if tk comment t-2 not mine; then exit 8; fi
        tk evidence --type test --passed 3 --failed 0
        echo hello > new.txt; git add new.txt; git -c user.name=w -c user.email=w@example.invalid commit -qm Work
        tk done it works"
        .to_owned();
    let mut running = bench.start();
    let (mut comments, mut evidence) = (Vec::new(), 0);
    while evidence == 0 {
        let event = running.event(|event| matches!(event, WorkerEvent::Activity(_))).await;
        match event {
            WorkerEvent::Activity(Activity::Commented { text }) => comments.push(text),
            WorkerEvent::Activity(Activity::Proved { .. }) => evidence += 1,
            _ => {}
        }
    }
    let run = running.run.clone();
    let report = running.report().await;
    assert_eq!(comments, ["half way", "piped"]);
    assert_eq!(report.declared, Some(Declared::Done { summary: "it works".into() }), "{}", bench.transcript(&run));
    assert_eq!(report.evidence[0].kind, EvidenceKind::Test { passed: 3, failed: 0 });
    assert_eq!(report.commits_ahead, 1);
    let kept = bench.content("dirigent/t-1-make-it-work", ".tickets/t-1.md");
    assert_eq!(kept, "---\nid: t-1\nstatus: open\n---\n# The copy");
}
