use dirigent::domain::ids::CommitId;
use dirigent::domain::pr::{MergeMethod, PrState};
use dirigent::engine::permit::EffectKind;
use dirigent::forge::Forge;
use dirigent::forge::local::{Landing, PrBook};

use super::{merge, not_now, open};
use crate::support::{Scratch, allowed, commit_in, write_in};

/// Two commits on a branch, while `main` went on.
fn diverged(scratch: &Scratch) -> String {
    let tree = scratch.dir.path().join("elsewhere");
    scratch.git(["worktree", "add", "-q", "-b", "dirigent/a", &tree.display().to_string(), "main"]);
    write_in(&tree, "a1", "1\n");
    commit_in(&tree, "first step");
    write_in(&tree, "a2", "2\n");
    let head = commit_in(&tree, "second step");
    scratch.git(["worktree", "remove", "--force", &tree.display().to_string()]);
    scratch.write("b", "b\n");
    scratch.commit("main goes on");
    head
}

fn subjects(scratch: &Scratch, range: &str) -> Vec<String> {
    scratch.git(["log", "--format=%s", range]).lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn the_three_methods() {
    for method in [MergeMethod::Squash, MergeMethod::Merge, MergeMethod::Rebase] {
        let scratch = Scratch::new();
        let head = diverged(&scratch);
        let before = scratch.head("main");
        let forge = scratch.forge();
        let pr = open(&forge, "dirigent/a", &head).await;
        let merged = merge(&forge, pr.number, &head, method).await.unwrap();
        assert_eq!(merged.commit().unwrap().as_str(), scratch.head("main"));
        let new = subjects(&scratch, &format!("{before}..main"));
        match method {
            MergeMethod::Squash => {
                assert_eq!(new, ["Work on dirigent/a"]);
                let message = scratch.git(["log", "-1", "--format=%an: %B", "main"]);
                assert_eq!(
                    message,
                    format!("Somebody: Work on dirigent/a\n\nWhat was done.\n\nDirigent-PR: {}", pr.number.0)
                );
            }
            MergeMethod::Merge => {
                assert_eq!(new, ["Work on dirigent/a", "second step", "first step"]);
                assert_eq!(scratch.git(["rev-parse", "main^1", "main^2"]), format!("{before}\n{head}"));
            }
            MergeMethod::Rebase => assert_eq!(new, ["second step", "first step"]),
        }
        assert_eq!(
            (scratch.read("a1"), scratch.read("a2"), scratch.read("b")),
            ("1\n".into(), "2\n".into(), "b\n".into())
        );
        assert_eq!(scratch.git(["status", "--porcelain"]), "");
        let tip = scratch.head("main");
        merge(&forge, pr.number, &head, method).await.unwrap();
        assert_eq!(scratch.head("main"), tip, "a second merge is a success and does nothing");
        assert!(matches!(forge.inspect(pr.number).await.unwrap().state, PrState::Merged { .. }));
        let again = open(&forge, "dirigent/a", &head).await;
        assert_eq!(again.number, pr.number);
        forge.delete_branch(&allowed(EffectKind::CleanUp), "dirigent/a", &pr.head).await.unwrap();
        assert!(matches!(forge.inspect(pr.number).await.unwrap().state, PrState::Merged { .. }));
    }
}

#[tokio::test]
async fn a_rebase_of_a_branch_that_is_simply_ahead_keeps_its_commits() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    let forge = scratch.forge();
    let pr = open(&forge, "dirigent/a", &head).await;
    merge(&forge, pr.number, &head, MergeMethod::Rebase).await.unwrap();
    assert_eq!(scratch.head("main"), head);
    assert_eq!(scratch.read("a"), "a\n");
}

/// What a crash leaves: the landing is written down with a commit that exists.
fn write_landing(scratch: &Scratch, number: dirigent::domain::ids::PrNumber, head: &str) -> String {
    let old = scratch.head("main");
    let new = scratch.git(["commit-tree", "-m", "squashed", "-p", &old, &format!("{head}^{{tree}}")]);
    PrBook::open(&scratch.ledger())
        .unwrap()
        .begin_landing(&Landing {
            base_branch: "main".into(),
            number,
            head: CommitId::new(head),
            old: CommitId::new(old),
            new: CommitId::new(&new),
        })
        .unwrap();
    new
}

#[tokio::test]
async fn a_crash_between_the_ref_and_the_record_is_healed_without_a_second_merge() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    let pr = open(&scratch.forge(), "dirigent/a", &head).await;
    let new = write_landing(&scratch, pr.number, &head);
    scratch.git(["merge", "-q", "--ff-only", &new]);
    scratch.write("after", "x\n");
    let tip = scratch.commit("somebody went on");
    let merged = merge(&scratch.forge(), pr.number, &head, MergeMethod::Squash).await.unwrap();
    assert_eq!(merged.commit().unwrap().as_str(), new);
    assert_eq!(scratch.head("main"), tip);
}

#[tokio::test]
async fn a_crash_between_the_tree_and_the_ref_is_healed() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "src/a.txt", "changed\n");
    let pr = open(&scratch.forge(), "dirigent/a", &head).await;
    let new = write_landing(&scratch, pr.number, &head);
    scratch.git(["read-tree", "-m", "-u", "main", &new]);
    let merged = merge(&scratch.forge(), pr.number, &head, MergeMethod::Squash).await.unwrap();
    assert_eq!(merged.commit().unwrap().as_str(), new);
    assert_eq!(scratch.head("main"), new);
    assert_eq!(scratch.git(["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_crash_in_the_middle_of_the_tree_is_healed() {
    let scratch = Scratch::new();
    let tree = scratch.dir.path().join("side");
    scratch.git(["worktree", "add", "-q", "-b", "dirigent/a", &tree.display().to_string(), "main"]);
    write_in(&tree, "src/a.txt", "changed\n");
    write_in(&tree, "added/deep.txt", "new\n");
    std::fs::remove_file(tree.join("README")).unwrap();
    write_in(&tree, "later.txt", "not yet written\n");
    let head = commit_in(&tree, "work");
    let pr = open(&scratch.forge(), "dirigent/a", &head).await;
    let new = write_landing(&scratch, pr.number, &head);
    scratch.write("src/a.txt", "changed\n");
    scratch.write("added/deep.txt", "new\n");
    std::fs::remove_file(scratch.repo().join("README")).unwrap();
    merge(&scratch.forge(), pr.number, &head, MergeMethod::Squash).await.unwrap();
    assert_eq!(scratch.head("main"), new);
    assert_eq!(scratch.read("later.txt"), "not yet written\n");
    assert_eq!(scratch.git(["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_half_made_merge_of_a_head_that_moved_is_taken_back() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "src/a.txt", "changed\n");
    let forge = scratch.forge();
    let pr = open(&forge, "dirigent/a", &head).await;
    let new = write_landing(&scratch, pr.number, &head);
    scratch.git(["read-tree", "-m", "-u", "main", &new]);
    let other_head = scratch.branch_with("dirigent/b", "b", "b\n");
    let other = open(&forge, "dirigent/b", &other_head).await;
    merge(&forge, other.number, &other_head, MergeMethod::Squash).await.unwrap();
    assert_eq!(scratch.read("src/a.txt"), "one\ntwo\nthree\n");
    assert_eq!(scratch.read("b"), "b\n");
    assert_eq!(scratch.git(["status", "--porcelain"]), "");
    merge(&forge, pr.number, &head, MergeMethod::Squash).await.unwrap();
    assert_eq!(scratch.read("src/a.txt"), "changed\n");
}

#[tokio::test]
async fn merges_at_the_same_time_come_one_after_another() {
    let scratch = Scratch::new();
    let forge = scratch.forge();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..6 {
        let branch = format!("dirigent/t{n}");
        let head = scratch.branch_with(&branch, &format!("file-{n}"), "x\n");
        let number = open(&forge, &branch, &head).await.number;
        let forge = forge.clone();
        tasks.spawn(async move { merge(&forge, number, &head, MergeMethod::Squash).await });
    }
    for merged in tasks.join_all().await {
        merged.unwrap();
    }
    assert_eq!(scratch.git(["rev-list", "--count", "main"]), "7");
    assert_eq!(scratch.git(["status", "--porcelain"]), "");
}

#[tokio::test]
async fn without_a_checked_out_base_only_the_ref_moves() {
    let scratch = Scratch::new();
    scratch.step_aside();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    let forge = scratch.forge();
    let pr = open(&forge, "dirigent/a", &head).await;
    scratch.write("README", "dirty\n");
    merge(&forge, pr.number, &head, MergeMethod::Squash).await.unwrap();
    assert!(!scratch.repo().join("a").exists());
    assert_eq!(scratch.git(["show", "main:a"]), "a");
}

#[tokio::test]
async fn a_base_that_somebody_rebases_waits() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    let forge = scratch.forge();
    let pr = open(&forge, "dirigent/a", &head).await;
    write_in(&scratch.repo(), ".git/rebase-merge/head-name", "refs/heads/main\n");
    scratch.git(["checkout", "-q", "--detach"]);
    let because = not_now(merge(&forge, pr.number, &head, MergeMethod::Squash).await);
    assert!(because.contains("a rebase is unfinished"), "{because}");
}
