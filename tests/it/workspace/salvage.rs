use std::os::unix::fs::PermissionsExt;

use dirigent::config::workspace::CommitSettings;
use dirigent::domain::ids::RunId;
use dirigent::engine::permit::EffectKind;
use dirigent::workspace::commits::Commits;
use dirigent::workspace::{RestoreTo, WorkspaceConfig, WorkspaceError, Workspaces};

use super::prepare;
use crate::support::{Scratch, allowed, commit_in, git_in, try_git_in, write_in};

const REF: &str = "refs/dirigent/salvage/01";

#[tokio::test]
async fn everything_uncommitted_is_kept_and_the_index_untouched() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    assert_eq!(workspaces.salvage(&worktree.path, &worktree.run).await.unwrap(), None);

    let tree = &worktree.path;
    write_in(tree, "staged.txt", "first\n");
    git_in(tree, ["add", "staged.txt"]);
    write_in(tree, "staged.txt", "second\n");
    write_in(tree, "deep/untracked file.txt", "u\n");
    write_in(tree, "noise.log", "ignored\n");
    write_in(tree, "run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(tree.join("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", tree.join("link")).unwrap();
    std::fs::remove_file(tree.join("README")).unwrap();
    let index = scratch.repo().join(".git/worktrees/ENG-1-01/index");
    let index_before = std::fs::read(&index).unwrap();
    let status_before = git_in(tree, ["--no-optional-locks", "status", "--porcelain"]);

    let salvage = workspaces.salvage(tree, &worktree.run).await.unwrap().unwrap();
    assert_eq!(salvage.reference, REF);
    assert_eq!(salvage.files, 5);
    assert_eq!(salvage.left_out, Vec::<String>::new());
    assert_eq!(std::fs::read(&index).unwrap(), index_before);
    assert_eq!(git_in(tree, ["--no-optional-locks", "status", "--porcelain"]), status_before);
    assert_eq!(scratch.git(["show", &format!("{REF}:staged.txt")]), "second");
    assert_eq!(scratch.git(["show", &format!("{REF}^2:staged.txt")]), "first", "what was staged is reachable too");
    assert_eq!(scratch.git(["show", &format!("{REF}:deep/untracked file.txt")]), "u");
    let modes = scratch.git(["ls-tree", REF]);
    assert!(modes.contains("100755 blob") && modes.contains("120000 blob"), "{modes}");
    assert!(!modes.contains("README") && !modes.contains("noise.log"), "{modes}");
    assert_eq!(scratch.git(["rev-parse", &format!("{REF}^1")]), worktree.head_before.as_str());

    let again = workspaces.salvage(tree, &worktree.run).await.unwrap().unwrap();
    assert_eq!(again.commit, salvage.commit, "asked again it is the same");
    write_in(tree, "more.txt", "m\n");
    let more = workspaces.salvage(tree, &worktree.run).await.unwrap().unwrap();
    assert_ne!(more.commit, salvage.commit);
    let (kept, _) = try_git_in(&scratch.repo(), ["merge-base", "--is-ancestor", salvage.commit.as_str(), REF]);
    assert!(kept, "the earlier salvage stays reachable");
}

#[tokio::test]
async fn large_files_are_left_out_and_named() {
    let scratch = Scratch::new();
    let mut config = scratch.config();
    config.salvage_limit = 1000;
    let workspaces = Workspaces::open(config).unwrap();
    let worktree = prepare(&workspaces, "01").await;
    write_in(&worktree.path, "big.bin", &"x".repeat(1001));
    let salvage = workspaces.salvage(&worktree.path, &worktree.run).await.unwrap().unwrap();
    assert_eq!(salvage.left_out, ["big.bin (1001 bytes, over the limit of 1000)"]);
    write_in(&worktree.path, "small", "s\n");
    let salvage = workspaces.salvage(&worktree.path, &worktree.run).await.unwrap().unwrap();
    assert_eq!((salvage.files, salvage.left_out.len()), (1, 1));
    assert!(scratch.git(["log", "-1", "--format=%B", REF]).contains("Left out: big.bin"));
}

#[tokio::test]
async fn a_locked_index_and_an_unfinished_merge_do_not_matter() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    let tree = &worktree.path;
    write_in(tree, "README", "ours\n");
    commit_in(tree, "ours");
    scratch.write("README", "theirs\n");
    scratch.commit("theirs");
    assert!(!try_git_in(tree, ["merge", "main"]).0);
    std::fs::write(scratch.repo().join(".git/worktrees/ENG-1-01/index.lock"), "").unwrap();
    workspaces.salvage(tree, &worktree.run).await.unwrap().unwrap();
    let text = scratch.git(["show", &format!("{REF}:README")]);
    assert!(text.contains("<<<<<<<") && text.contains("theirs"), "{text}");
}

#[tokio::test]
async fn detached_and_foreign_heads_stay_reachable() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    git_in(&worktree.path, ["checkout", "-q", "--detach"]);
    write_in(&worktree.path, "x", "x\n");
    let stray = commit_in(&worktree.path, "off the branch");
    let salvage = workspaces.salvage(&worktree.path, &worktree.run).await.unwrap().unwrap();
    assert_eq!(salvage.files, 0);
    assert_eq!(scratch.git(["rev-parse", &format!("{REF}^1")]), stray);
    let shown = workspaces.salvage_show(&worktree.run).await.unwrap();
    assert!(shown.contains("+x"), "{shown}");
    std::fs::remove_dir_all(&worktree.path).unwrap();
    assert!(workspaces.salvage(&worktree.path, &worktree.run).await.unwrap().is_some(), "the tree itself may be gone");
}

#[tokio::test]
async fn an_unborn_head_is_salvaged_whole() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    git_in(&worktree.path, ["checkout", "-q", "--orphan", "fresh"]);
    write_in(&worktree.path, "x", "x\n");
    let salvage = workspaces.salvage(&worktree.path, &worktree.run).await.unwrap().unwrap();
    assert_eq!(salvage.files, 4);
    assert_eq!(scratch.git(["rev-list", "--count", REF]).parse::<u32>().unwrap(), 2, "itself and what was staged");
}

#[tokio::test]
async fn files_of_an_embedded_repository_are_taken() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    let inner = worktree.path.join("vendor/inner");
    std::fs::create_dir_all(&inner).unwrap();
    git_in(&inner, ["init", "-q"]);
    scratch.identify(&inner);
    write_in(&inner, "committed.txt", "c\n");
    commit_in(&inner, "inner");
    write_in(&inner, "dirty.txt", "d\n");
    write_in(&inner, "noise.log", "ignored\n");
    let salvage = workspaces.salvage(&worktree.path, &worktree.run).await.unwrap().unwrap();
    assert_eq!(salvage.files, 2);
    assert!(salvage.left_out[0].starts_with("vendor/inner/.git "), "{:?}", salvage.left_out);
    assert_eq!(scratch.git(["show", &format!("{REF}:vendor/inner/dirty.txt")]), "d");
    assert_eq!(scratch.git(["show", &format!("{REF}:vendor/inner/committed.txt")]), "c");
}

#[tokio::test]
async fn a_pipe_in_the_tree_is_named_and_costs_nothing_else() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    nix::unistd::mkfifo(&worktree.path.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    write_in(&worktree.path, "x", "x\n");
    let salvage = workspaces.salvage(&worktree.path, &worktree.run).await.unwrap().unwrap();
    assert_eq!(salvage.files, 1);
}

#[tokio::test]
async fn hidden_changes_are_found() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    for (hide, text) in [("--assume-unchanged", "changed in hiding"), ("--skip-worktree", "changed once more")] {
        git_in(&worktree.path, ["update-index", hide, "README"]);
        write_in(&worktree.path, "README", &format!("{text}\n"));
        workspaces.salvage(&worktree.path, &worktree.run).await.unwrap().unwrap();
        assert_eq!(scratch.git(["show", &format!("{REF}:README")]), text, "{hide}");
        git_in(&worktree.path, ["update-index", "--no-assume-unchanged", "README"]);
    }
}

#[tokio::test]
async fn what_is_restored_is_committed_as_the_file_says() {
    let scratch = Scratch::new();
    let style = CommitSettings { author: Some("Ada <ada@example.org>".to_owned()), signoff: true, sign: Some(false) };
    let config = WorkspaceConfig { commits: Commits::new(&style), ..scratch.config() };
    let workspaces = Workspaces::open(config).unwrap();
    let worktree = prepare(&workspaces, "01").await;
    write_in(&worktree.path, "new.txt", "n\n");
    workspaces.remove(&worktree).await.unwrap();
    for to in [RestoreTo::NewBranch("rescued".into()), RestoreTo::Branch(worktree.branch.clone())] {
        let head = workspaces.salvage_restore(&allowed(EffectKind::CleanUp), &worktree.run, to).await.unwrap();
        let format = "--format=%an <%ae>|%cn|%(trailers:key=Signed-off-by,valueonly,separator=%x2C)";
        let made = scratch.git(["log", "-1", format, head.as_str()]);
        assert_eq!(made, "Ada <ada@example.org>|Ada|Ada <ada@example.org>");
    }
}

#[tokio::test]
async fn files_that_a_sparse_checkout_left_out_are_not_deletions() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    git_in(&worktree.path, ["sparse-checkout", "set", "--no-cone", "/README"]);
    assert!(!worktree.path.join("src/a.txt").exists());
    assert_eq!(workspaces.salvage(&worktree.path, &worktree.run).await.unwrap(), None);
    write_in(&worktree.path, "README", "new\n");
    let salvage = workspaces.salvage(&worktree.path, &worktree.run).await.unwrap().unwrap();
    assert_eq!(salvage.files, 1);
    git_in(&worktree.path, ["sparse-checkout", "set", "--cone", "--sparse-index", "nothing"]);
    let salvage = workspaces.salvage(&worktree.path, &worktree.run).await.unwrap().unwrap();
    assert_eq!(salvage.files, 1, "an index that only newer git reads");
}

#[tokio::test]
async fn salvages_are_listed_shown_and_restored() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let permit = allowed(EffectKind::CleanUp);
    let worktree = prepare(&workspaces, "01").await;
    write_in(&worktree.path, "src/a.txt", "one\n2\nthree\n");
    write_in(&worktree.path, "new.txt", "n\n");
    let salvage = workspaces.remove(&worktree).await.unwrap().salvage.unwrap();
    let listed = workspaces.salvage_list().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].run.as_str(), &listed[0].commit), ("01", &salvage.commit));
    assert!(listed[0].subject.contains("ENG-1"), "{listed:?}");
    let shown = workspaces.salvage_show(&worktree.run).await.unwrap();
    assert!(shown.contains("-two\n+2\n") && shown.contains("+n"), "{shown}");

    let head =
        workspaces.salvage_restore(&permit, &worktree.run, RestoreTo::NewBranch("rescued".into())).await.unwrap();
    assert_eq!(scratch.head("rescued"), head.as_str());
    assert_eq!(scratch.git(["rev-list", "--count", "main..rescued"]), "1");
    let error = workspaces.salvage_restore(&permit, &worktree.run, RestoreTo::NewBranch("rescued".into())).await;
    assert!(matches!(error.unwrap_err(), WorkspaceError::BranchExists { .. }));

    workspaces.salvage_restore(&permit, &worktree.run, RestoreTo::Branch(worktree.branch.clone())).await.unwrap();
    assert_eq!(scratch.git(["show", &format!("{}:new.txt", worktree.branch)]), "n");
    let error = workspaces.salvage_restore(&permit, &worktree.run, RestoreTo::Branch("main".into())).await.unwrap_err();
    assert!(matches!(error, WorkspaceError::BranchInUse { .. }), "{error}");
    scratch.branch_with("other", "src/a.txt", "one\nzwei\nthree\n");
    let error =
        workspaces.salvage_restore(&permit, &worktree.run, RestoreTo::Branch("other".into())).await.unwrap_err();
    assert!(matches!(error, WorkspaceError::SalvageConflict { .. }), "{error}");
    let error = workspaces.salvage_show(&RunId::from("none")).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no salvage of run none");
}
