//! A lasting directory in which processes of an earlier run are still at work.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use dirigent::domain::ids::RunId;
use dirigent::domain::permit::Permit;
use dirigent::domain::run::{ProcessMark, RunOutcome};
use dirigent::engine::permit::EffectKind;
use dirigent::launcher::{Child, LaunchError, LaunchOrder, Launcher, Leftover, Swept};
use dirigent::worker::{ReclaimOrder, Workplace, transcript_path};
use dirigent::workspace::directory::{Directories, DirectoryRemoval};

use super::bench::{Bench, allowed, fresh_run};

fn failure(outcome: &RunOutcome) -> String {
    match outcome {
        RunOutcome::Failed { failure } => failure.to_string(),
        other => panic!("not a failure: {other:?}"),
    }
}

/// A launcher on a machine where some processes of runs cannot be ended, as long as it says so.
struct Lingering {
    inner: Arc<dyn Launcher>,
    lingers: AtomicBool,
}

#[async_trait]
impl Launcher for Lingering {
    fn how(&self) -> &'static str {
        self.inner.how()
    }

    async fn launch(&self, permit: &Permit, order: LaunchOrder) -> Result<Child, LaunchError> {
        self.inner.launch(permit, order).await
    }

    fn holder(&self) -> Vec<OsString> {
        self.inner.holder()
    }

    fn probe(&self, mark: ProcessMark) -> bool {
        self.inner.probe(mark)
    }

    async fn sweep(&self, leftovers: &[Leftover]) -> Swept {
        let swept = self.inner.sweep(leftovers).await;
        if self.lingers.load(Ordering::SeqCst) { Swept { survivors: vec![4711], ..swept } } else { swept }
    }
}

#[tokio::test]
async fn no_run_starts_in_a_directory_where_an_earlier_one_is_still_at_work() {
    let bench = Bench::new(&["say=here"]);
    let directories = Directories::open(&bench.path("directories")).unwrap();
    let lingering = Arc::new(Lingering { inner: bench.launcher.clone(), lingers: AtomicBool::new(true) });
    let mut worker = bench.worker();
    worker.workplace = Workplace::Directories(directories.clone());
    worker.launcher = lingering.clone();
    let order = bench.order();
    let began = |run: &RunId| transcript_path(&bench.path("state"), run).exists();

    let first = bench.start_with(worker.clone());
    let run = first.run.clone();
    first.report().await;
    assert!(began(&run));
    let second = bench.start_with(worker.clone());
    let run = second.run.clone();
    let refused = failure(&second.report().await.outcome);
    assert!(refused.contains("[4711]") && refused.contains("still at work"), "{refused}");
    assert!(!began(&run), "nothing was started");
    let removal = worker.leave(&allowed(EffectKind::CleanUp), &order.ticket.id, &order.ticket.key).await.unwrap();
    assert!(matches!(removal, DirectoryRemoval::Kept { because } if because.contains("still at work")));

    lingering.lingers.store(false, Ordering::SeqCst);
    let third = bench.start_with(worker.clone());
    let run = third.run.clone();
    third.report().await;
    assert!(began(&run));

    // A run of an earlier life of the runner.
    lingering.lingers.store(true, Ordering::SeqCst);
    let lost = ReclaimOrder {
        run: fresh_run(),
        key: order.ticket.key.clone(),
        branch: order.branch.clone(),
        process: None,
        worktree: None,
    };
    assert!(worker.reclaim(&lost).await.trouble.is_some_and(|trouble| trouble.contains("4711")));
    assert!(failure(&bench.start_with(worker).report().await.outcome).contains("still at work"));
}
