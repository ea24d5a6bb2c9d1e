use dirigent::domain::evidence::GateResult;
use dirigent::domain::ids::{CommitId, PrNumber};
use dirigent::domain::pr::{CheckStatus, MergeMethod, Mergeability, PrState};
use dirigent::engine::permit::EffectKind;
use dirigent::forge::{Forge, ForgeError, Pushed};

use super::{merge, new_pr, open};
use crate::support::{Scratch, allowed, commit_in, write_in};

#[tokio::test]
async fn a_pull_request_is_opened_once_and_found_again() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    let forge = scratch.forge();
    assert_eq!(forge.find_pr("dirigent/a").await.unwrap(), None);
    let pr = open(&forge, "dirigent/a", &head).await;
    assert_eq!(
        (pr.state.clone(), pr.head.as_str(), pr.mergeability.clone()),
        (PrState::Open, head.as_str(), Mergeability::Clean)
    );
    assert_eq!(pr.base.as_ref().unwrap().as_str(), scratch.head("main"));
    assert_eq!(pr.labels, ["auto"]);
    assert_eq!(open(&forge, "dirigent/a", &head).await.number, pr.number);
    assert_eq!(scratch.forge().find_pr("dirigent/a").await.unwrap(), Some(pr), "another process sees the same");
    assert_eq!(forge.inspect(PrNumber(99)).await.unwrap_err(), ForgeError::NotFound(PrNumber(99)));
}

#[tokio::test]
async fn a_branch_without_commits_of_its_own_is_refused() {
    let scratch = Scratch::new();
    scratch.git(["branch", "dirigent/empty"]);
    let new = new_pr("dirigent/empty", &scratch.head("main"));
    let error = scratch.forge().open_pr(&allowed(EffectKind::OpenPr), &new).await.unwrap_err();
    assert_eq!(error, ForgeError::Refused("`dirigent/empty` has no commit that `main` does not have".into()));
    let mut new = new_pr("dirigent/b", &scratch.branch_with("dirigent/b", "b", "b\n"));
    new.base_branch = "nope".into();
    let error = scratch.forge().open_pr(&allowed(EffectKind::OpenPr), &new).await.unwrap_err();
    assert!(error.to_string().contains("the base branch `nope` does not exist"), "{error}");
}

#[tokio::test]
async fn checks_are_the_gate_results_of_that_head() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    let forge = scratch.forge();
    let pr = open(&forge, "dirigent/a", &head).await;
    assert_eq!(pr.checks, Some(Vec::new()));
    let result = |name: &str, passed| GateResult {
        name: name.to_owned(),
        command: "true".into(),
        passed,
        exit_code: Some(i32::from(!passed)),
        timed_out: false,
        output_tail: "last words".to_owned(),
        duration_ms: 5,
    };
    forge.record_checks(&CommitId::new(&head), vec![result("test", true), result("lint", false)]).await.unwrap();
    let checks = forge.inspect(pr.number).await.unwrap().checks.unwrap();
    let seen: Vec<_> = checks.iter().map(|check| (check.name.as_str(), check.status)).collect();
    assert_eq!(seen, [("test", CheckStatus::Passed), ("lint", CheckStatus::Failed)]);
    assert_eq!(checks[1].log_tail.as_deref(), Some("last words"));
}

#[tokio::test]
async fn a_new_head_is_seen_and_has_no_checks() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    let forge = scratch.forge();
    let pr = open(&forge, "dirigent/a", &head).await;
    forge.record_checks(&pr.head, Vec::new()).await.unwrap();
    let tree = scratch.git(["commit-tree", "-m", "more", "-p", &head, &format!("{head}^{{tree}}")]);
    scratch.git(["update-ref", "refs/heads/dirigent/a", &tree]);
    let permit = allowed(EffectKind::PushBranch);
    let joined = forge.push_branch(&permit, "dirigent/a", &pr.head, None).await.unwrap();
    assert_eq!(joined, Pushed::Joined { head: CommitId::new(&tree) }, "theirs has ours");
    forge.push_branch(&permit, "dirigent/a", &CommitId::new(&tree), None).await.unwrap();
    let seen = forge.inspect(pr.number).await.unwrap();
    assert_eq!(seen.head.as_str(), tree);
    assert!(seen.pushed_at >= pr.pushed_at);
    assert!(matches!(merge(&forge, pr.number, &head, MergeMethod::Squash).await, Err(ForgeError::HeadMoved { .. })));
}

#[tokio::test]
async fn conflicts_are_told_with_their_files() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "README", "from the branch\n");
    scratch.write("README", "from main\n");
    scratch.commit("main");
    let forge = scratch.forge();
    let pr = open(&forge, "dirigent/a", &head).await;
    assert_eq!(pr.mergeability, Mergeability::Conflicting { files: vec!["README".into()] });
    let before = scratch.head("main");
    for method in [MergeMethod::Squash, MergeMethod::Merge, MergeMethod::Rebase] {
        let error = merge(&forge, pr.number, &head, method).await.unwrap_err();
        assert_eq!(error, ForgeError::Conflict { files: vec!["README".into()] });
    }
    let error = forge.update_branch(&allowed(EffectKind::UpdateBranch), pr.number, &pr.head).await.unwrap_err();
    assert_eq!(error, ForgeError::Conflict { files: vec!["README".into()] });
    assert_eq!(scratch.head("main"), before);
    assert_eq!(scratch.read("README"), "from main\n");
}

#[tokio::test]
async fn the_base_is_merged_into_the_branch() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    let forge = scratch.forge();
    let pr = open(&forge, "dirigent/a", &head).await;
    let permit = allowed(EffectKind::UpdateBranch);
    forge.update_branch(&permit, pr.number, &pr.head).await.unwrap();
    assert_eq!(scratch.head("dirigent/a"), head, "nothing to do");
    scratch.write("b", "b\n");
    let main = scratch.commit("main goes on");
    let updated = forge.update_branch(&permit, pr.number, &pr.head).await.unwrap();
    let seen = forge.inspect(pr.number).await.unwrap();
    assert_ne!(seen.head, pr.head);
    assert_eq!((&updated.head, updated.same_diff), (&seen.head, true));
    assert_eq!(scratch.git(["rev-parse", "dirigent/a^1", "dirigent/a^2"]), format!("{head}\n{main}"));
    let error = forge.update_branch(&permit, pr.number, &pr.head).await.unwrap_err();
    assert!(matches!(error, ForgeError::HeadMoved { .. }), "{error}");
    scratch.git(["checkout", "-q", "dirigent/a"]);
    scratch.git(["commit", "-q", "--allow-empty", "-m", "x"]);
    scratch.git(["branch", "-f", "main", "main~1"]);
    scratch.git([
        "update-ref",
        "refs/heads/main",
        &scratch.git(["commit-tree", "-m", "y", "-p", &main, "main^{tree}"]),
    ]);
    let head = CommitId::new(scratch.head("dirigent/a"));
    let error = forge.update_branch(&permit, pr.number, &head).await.unwrap_err();
    assert!(matches!(error, ForgeError::NotNow(_)), "{error}");
}

/// Forty lines of which some are replaced.
fn lines(replaced: &[(usize, &str)]) -> String {
    let line = |number: usize| match replaced.iter().find(|(at, _)| *at == number) {
        Some((_, text)) => format!("{text}\n"),
        None => format!("line {number}\n"),
    };
    (1..=40).map(line).collect()
}

#[tokio::test]
async fn an_update_says_whether_the_change_is_still_the_same() {
    let moved_down = format!("a new first line\n{}", lines(&[]));
    let with_neighbour = lines(&[(18, "a neighbour of the change")]);
    let taken_over = lines(&[(20, "ours")]);
    let cases = [
        ("elsewhere.txt", "unrelated\n", true),
        ("forty.txt", moved_down.as_str(), true),
        ("forty.txt", with_neighbour.as_str(), false),
        ("forty.txt", taken_over.as_str(), false),
        ("bytes", "a\0b\n", false),
    ];
    for (file, text, same) in cases {
        let scratch = Scratch::new();
        scratch.write("forty.txt", &lines(&[]));
        scratch.commit("forty lines");
        scratch.git(["worktree", "add", "-q", "-b", "dirigent/a", "../side", "main"]);
        let side = scratch.dir.path().join("side");
        write_in(&side, "forty.txt", &lines(&[(20, "ours"), (33, "and ours")]));
        write_in(&side, "bytes", "a\0b\n");
        let head = commit_in(&side, "work");
        scratch.git(["worktree", "remove", "--force", "../side"]);
        let shown = || {
            let diff = scratch.git(["diff", "--binary", "main...dirigent/a"]);
            let lines = diff.lines().filter(|line| !line.starts_with("index ") && !line.starts_with("@@"));
            lines.collect::<Vec<_>>().join("\n")
        };
        let forge = scratch.forge();
        let pr = open(&forge, "dirigent/a", &head).await;
        let before = shown();
        scratch.write(file, text);
        scratch.commit("main goes on");
        let updated = forge.update_branch(&allowed(EffectKind::UpdateBranch), pr.number, &pr.head).await.unwrap();
        assert_eq!(updated.head.as_str(), scratch.head("dirigent/a"));
        assert_eq!((updated.same_diff, before == shown()), (same, same), "{file}: {text:?}");
    }
}

#[tokio::test]
async fn a_merge_by_hand_is_seen() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    let forge = scratch.forge();
    let pr = open(&forge, "dirigent/a", &head).await;
    scratch.git(["merge", "-q", "--no-ff", "--no-edit", "dirigent/a"]);
    assert!(matches!(forge.inspect(pr.number).await.unwrap().state, PrState::Merged { .. }));
    let tip = scratch.head("main");
    merge(&forge, pr.number, &head, MergeMethod::Squash).await.unwrap();
    assert_eq!(scratch.head("main"), tip);
}

#[tokio::test]
async fn a_squash_by_hand_is_seen_and_work_that_is_not_there_is_not() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    let other = scratch.branch_with("dirigent/b", "b", "b\n");
    let forge = scratch.forge();
    let (pr, waits) = (open(&forge, "dirigent/a", &head).await, open(&forge, "dirigent/b", &other).await);
    scratch.git(["merge", "-q", "--squash", "dirigent/a"]);
    scratch.git(["commit", "-q", "-m", "By hand"]);
    assert!(matches!(forge.inspect(pr.number).await.unwrap().state, PrState::Merged { .. }));
    assert_eq!(forge.inspect(waits.number).await.unwrap().state, PrState::Open);
}

#[tokio::test]
async fn a_branch_set_back_into_the_base_is_not_a_merge() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    let forge = scratch.forge();
    let pr = open(&forge, "dirigent/a", &head).await;
    scratch.git(["branch", "-f", "dirigent/a", "main"]);
    for _ in 0..2 {
        let seen = forge.inspect(pr.number).await.unwrap();
        assert_eq!((seen.state, seen.head.as_str()), (PrState::Open, scratch.head("main").as_str()));
    }
}

#[tokio::test]
async fn a_request_whose_branch_is_gone_is_closed_and_can_come_back() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    let forge = scratch.forge();
    let pr = open(&forge, "dirigent/a", &head).await;
    scratch.git(["branch", "-q", "-D", "dirigent/a"]);
    assert_eq!(forge.inspect(pr.number).await.unwrap().state, PrState::Closed);
    assert!(matches!(merge(&forge, pr.number, &head, MergeMethod::Merge).await, Err(ForgeError::Refused(_))));
    let permit = allowed(EffectKind::ReopenPr);
    forge.reopen(&permit, pr.number).await.unwrap();
    assert_eq!(scratch.head("dirigent/a"), head);
    assert_eq!(forge.inspect(pr.number).await.unwrap().state, PrState::Open);
    merge(&forge, pr.number, &head, MergeMethod::Merge).await.unwrap();
    assert!(matches!(forge.reopen(&permit, pr.number).await, Err(ForgeError::Refused(_))));
}

#[tokio::test]
async fn a_branch_is_deleted_only_at_the_expected_head() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    let forge = scratch.forge();
    let permit = allowed(EffectKind::CleanUp);
    let error = forge.delete_branch(&permit, "dirigent/a", &CommitId::new(scratch.head("main"))).await.unwrap_err();
    assert!(matches!(error, ForgeError::HeadMoved { .. }), "{error}");
    scratch.git(["checkout", "-q", "dirigent/a"]);
    let error = forge.delete_branch(&permit, "dirigent/a", &CommitId::new(&head)).await.unwrap_err();
    assert!(matches!(error, ForgeError::NotNow(_)), "{error}");
    scratch.git(["checkout", "-q", "main"]);
    forge.delete_branch(&permit, "dirigent/a", &CommitId::new(&head)).await.unwrap();
    forge.delete_branch(&permit, "dirigent/a", &CommitId::new(&head)).await.unwrap();
}

/// A commit on top of `parent` that no branch has.
fn loose_commit(scratch: &Scratch, parent: &str, file: &str, text: &str) -> CommitId {
    let tree = scratch.dir.path().join(format!("loose-{file}"));
    scratch.git(["worktree", "add", "-q", "--detach", &tree.display().to_string(), parent]);
    write_in(&tree, file, text);
    let head = commit_in(&tree, &format!("change {file}"));
    scratch.git(["worktree", "remove", "--force", &tree.display().to_string()]);
    CommitId::new(head)
}

#[tokio::test]
async fn what_a_person_put_on_the_branch_meanwhile_is_joined_with_ours() {
    let scratch = Scratch::new();
    let first = scratch.branch_with("dirigent/a", "a", "a\n");
    let forge = scratch.forge();
    let pr = open(&forge, "dirigent/a", &first).await;
    let ours = loose_commit(&scratch, &first, "b", "by the run\n");
    let theirs = loose_commit(&scratch, &first, "c", "by a person\n");
    scratch.git(["update-ref", "refs/heads/dirigent/a", theirs.as_str()]);
    let permit = allowed(EffectKind::PushBranch);
    let joined = forge.push_branch(&permit, "dirigent/a", &ours, Some(&pr.head)).await.unwrap();
    let Pushed::Joined { head } = &joined else { panic!("{joined:?}") };
    assert_eq!(scratch.head("dirigent/a"), head.as_str());
    for side in [&ours, &theirs] {
        scratch.git(["merge-base", "--is-ancestor", side.as_str(), head.as_str()]);
    }
    assert_eq!(forge.inspect(pr.number).await.unwrap().head, *head);
    // An answer that was lost: the same again comes to the same.
    assert_eq!(forge.push_branch(&permit, "dirigent/a", &ours, Some(&pr.head)).await.unwrap(), joined);
}

#[tokio::test]
async fn where_the_two_contradict_each_other_theirs_stays_and_ours_is_kept() {
    let scratch = Scratch::new();
    let first = scratch.branch_with("dirigent/a", "a", "a\n");
    let forge = scratch.forge();
    open(&forge, "dirigent/a", &first).await;
    let ours = loose_commit(&scratch, &first, "a", "by the run\n");
    let theirs = loose_commit(&scratch, &first, "a", "by a person\n");
    scratch.git(["update-ref", "refs/heads/dirigent/a", theirs.as_str()]);
    let permit = allowed(EffectKind::PushBranch);
    for _ in 0..2 {
        let error = forge.push_branch(&permit, "dirigent/a", &ours, None).await.unwrap_err();
        let ForgeError::Apart { files, kept } = error else { panic!("{error}") };
        assert_eq!(files, ["a"]);
        assert_eq!(scratch.head(&kept), ours.as_str());
        assert_eq!(scratch.head("dirigent/a"), theirs.as_str());
    }
}
