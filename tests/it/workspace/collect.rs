use std::collections::BTreeSet;
use std::time::Duration;

use dirigent::domain::ids::{CommitId, RunId, TicketKey};
use dirigent::engine::permit::EffectKind;
use dirigent::workspace::GcAction;

use super::try_prepare;
use crate::support::{Scratch, allowed, write_in};

#[tokio::test]
async fn gc_takes_what_is_old_and_nobodys() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let live = try_prepare(&workspaces, "live", "dirigent/a").await.unwrap();
    let dead = try_prepare(&workspaces, "dead", "dirigent/b").await.unwrap();
    let lost = try_prepare(&workspaces, "lost", "dirigent/c").await.unwrap();
    write_in(&dead.path, "x", "x\n");
    std::fs::remove_dir_all(&lost.path).unwrap();
    write_in(workspaces.root(), "somebody-elses/file", "f\n");
    let live_runs = BTreeSet::from([live.run.clone()]);

    let listed = workspaces.list().await.unwrap();
    assert_eq!(
        listed.iter().map(|one| (one.worktree.run.as_str(), one.exists)).collect::<Vec<_>>(),
        [("dead", true), ("live", true), ("lost", false)]
    );
    assert_eq!(listed[0].worktree, dead);
    assert_eq!(workspaces.of_run(&lost.run).await.unwrap().unwrap(), listed[2]);

    let young = workspaces.gc(Duration::from_secs(3600), false, &live_runs).await.unwrap();
    assert!(young.iter().all(|item| matches!(item.action, GcAction::Kept { .. })), "{young:?}");

    let planned = workspaces.gc(Duration::ZERO, true, &live_runs).await.unwrap();
    assert_eq!(planned.iter().filter(|item| item.action == GcAction::WouldRemove).count(), 2);
    assert!(dead.path.exists());

    let done = workspaces.gc(Duration::ZERO, false, &live_runs).await.unwrap();
    let of = |run: &str| &done.iter().find(|item| item.run.as_ref().is_some_and(|r| r.as_str() == run)).unwrap().action;
    assert!(matches!(of("dead"), GcAction::Removed { salvage: Some(salvage) } if salvage.files == 1));
    assert!(matches!(of("lost"), GcAction::Removed { salvage: None }));
    assert!(matches!(of("live"), GcAction::Kept { .. }));
    assert!(live.path.exists() && !dead.path.exists());
    assert!(workspaces.root().join("somebody-elses/file").exists());
    assert!(done.iter().any(|item| item.run.is_none() && item.path.ends_with("somebody-elses")));
}

#[tokio::test]
async fn an_interrupted_removal_is_finished_at_the_next_start() {
    let scratch = Scratch::new();
    let root = scratch.workspaces().root().to_owned();
    write_in(&root, ".trash/gone-abc/ENG-1-01/file", "f\n");
    scratch.workspaces();
    assert!(!root.join(".trash").exists());
}

#[tokio::test]
async fn what_a_killed_process_was_looking_with_is_swept_and_what_a_live_one_uses_is_not() {
    let scratch = Scratch::new();
    let root = scratch.workspaces().root().to_owned();
    // No process has the largest number; this one is alive.
    let (dead, live) = (format!(".scratch/{}-abc", i32::MAX), format!(".scratch/{}-abc", std::process::id()));
    write_in(&root, &format!("{dead}/index"), "x");
    write_in(&root, &format!("{live}/index"), "x");
    let workspaces = scratch.workspaces();
    assert!(!root.join(&dead).exists() && root.join(&live).exists());
    let worktree = try_prepare(&workspaces, "r1", "dirigent/a").await.unwrap();
    write_in(&worktree.path, "new", "n\n");
    let before = outside();
    assert!(workspaces.salvage(&worktree.path, &worktree.run).await.unwrap().is_some());
    assert_eq!(outside(), before);
    assert_eq!(std::fs::read_dir(root.join(".scratch")).unwrap().count(), 1, "a look leaves its scratch behind");
}

fn outside() -> usize {
    let entries = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("dirigent-index-")).count()
}

/// A gate's run is in no ledger and in no picture.
#[tokio::test]
async fn gc_leaves_what_a_gate_works_in_and_takes_what_a_dead_runner_left() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let (permit, head) = (allowed(EffectKind::RunGate), CommitId::new(scratch.head("main")));
    let (run, key) = (RunId::from("gate-01"), TicketKey::from("ENG-1"));
    let look = workspaces.prepare_detached(&permit, &run, &key, "dirigent/a", &head).await.unwrap();
    let collect = async || {
        let mut items = workspaces.gc(Duration::ZERO, false, &BTreeSet::new()).await.unwrap();
        items.remove(0).action
    };
    let kept = collect().await;
    assert!(matches!(&kept, GcAction::Kept { because } if because.contains("gate")), "{kept:?}");
    assert!(look.path.exists());
    // As the next life finds it. No process has the largest number.
    let name = look.path.file_name().unwrap().to_string_lossy().into_owned();
    let record = workspaces.root().join(format!(".records/{name}.json"));
    let mut told: serde_json::Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    told["made_by"] = i32::MAX.into();
    std::fs::write(&record, told.to_string()).unwrap();
    assert!(matches!(collect().await, GcAction::Removed { .. }));
    assert!(!look.path.exists());
}
