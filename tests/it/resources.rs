//! What the machine and the repository may lack or be like: each is worked with, or told in a sentence, and nothing is lost.
//! The rest of the list is in `bad_input` (a full disk), `workspace::prepare` (bare, shallow and linked repositories, a branch
//! checked out elsewhere, the user's hooks, sparse checkout, rewritten addresses), `workspace::filters` (what LFS does) and
//! `local_forge::tree` (a locked index).

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use super::support::board::{Board, MERGE, text};
use super::support::{commit_in, git_in, write_in};

const GOOD: &str = "echo work > \"$DIRIGENT_TICKET_KEY.txt\"\ngit add -A\ngit commit -qm \"Work\"\ntk done 'did it'\n";
const DIRTY_FIRST: &str =
    "if [ \"$DIRIGENT_ATTEMPT\" = 1 ]; then echo unsaved > \"$DIRIGENT_TICKET_KEY.txt\"; exit 3; fi\n";

/// Goes with its test.
pub struct Mount(pub PathBuf);

impl Mount {
    /// A small file system of its own, where that is allowed.
    pub fn new(place: PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&place).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(&place).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(place));
        }
        println!("skipped: nothing can be mounted here");
        None
    }

    pub fn remount(&self, how: &str) {
        let done = Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(&self.0).output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).stderr(Stdio::null()).status();
    }
}

/// Whoever runs the tests may have left descriptors open, which would count towards a limit.
const ONLY_STANDARD_STREAMS: &str =
    r#"for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ "$fd" -le 2 ] || eval "exec $fd>&-"; done"#;

/// The binary behind a shell that has set its limits first, and told to end after a while.
fn behind(board: &Board, limits: &str, args: &[&str]) -> Output {
    let plain = board.command(args);
    let mut command = Command::new("bash");
    let script = format!("{ONLY_STANDARD_STREAMS}; {limits}; exec timeout \"$@\"");
    command.arg("-c").arg(script).arg(plain.get_program()).args(plain.get_args());
    command.current_dir(board.repo()).env_clear().stdin(Stdio::null());
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.output().unwrap()
}

fn is_merged(board: &Board) {
    assert_eq!(board.scratch.git(["show", "main:t-1.txt"]), "work");
    assert!(board.worktrees().is_empty(), "{:?}", board.worktrees());
}

#[test]
fn a_repository_with_twenty_thousand_files() {
    let board = Board::new(GOOD, MERGE);
    for number in 0..20_000 {
        write_in(&board.repo(), &format!("many/{}/{number}.txt", number % 100), "x\n");
    }
    commit_in(&board.repo(), "many files");
    board.ticket("t-1", "Work");
    board.ok(&["run", "--once"]);
    is_merged(&board);
    assert_eq!(board.scratch.git(["status", "--porcelain", "--", "many"]), "", "the user's tree is as it was");
}

#[test]
fn a_repository_with_submodules() {
    let board = Board::new(GOOD, MERGE);
    let part = board.scratch.dir.path().join("part");
    std::fs::create_dir(&part).unwrap();
    git_in(&part, ["init", "-q", "-b", "main"]);
    board.scratch.identify(&part);
    write_in(&part, "part.txt", "part\n");
    let pinned = commit_in(&part, "a part");
    let from = part.display().to_string();
    board.scratch.git(["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "part"]);
    board.scratch.commit("with a part");
    board.ticket("t-1", "Work");
    board.ok(&["run", "--once"]);
    is_merged(&board);
    assert_eq!(board.scratch.git(["rev-parse", "main:part"]), pinned, "the pinned commit is as it was");
    assert_eq!(board.scratch.read("part/part.txt"), "part\n");
    assert_eq!(board.scratch.git(["status", "--porcelain", "--", "part", ".gitmodules"]), "");
}

#[test]
fn files_that_lfs_would_fetch_stay_pointers() {
    let board = Board::new(GOOD, MERGE);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
    board.scratch.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    board.scratch.write("big.bin", pointer);
    board.scratch.commit("a large file");
    board.ticket("t-1", "Work");
    board.ok(&["run", "--once"]);
    is_merged(&board);
    assert_eq!(board.scratch.git(["show", "main:big.bin"]), pointer.trim_end());
}

#[test]
fn a_user_on_no_branch_stays_where_they_are() {
    let board = Board::new(GOOD, MERGE);
    board.scratch.git(["checkout", "-q", "--detach", "main"]);
    let stood = board.scratch.head("HEAD");
    board.ticket("t-1", "Work");
    board.ok(&["run", "--once"]);
    is_merged(&board);
    assert_eq!(board.scratch.head("HEAD"), stood, "nobody moves the user");
    assert!(!board.repo().join("t-1.txt").exists());
}

#[test]
fn workspaces_on_another_file_system() {
    let board = Board::new(&format!("{DIRTY_FIRST}{GOOD}"), "");
    let Some(mount) = Mount::new(board.scratch.dir.path().join("elsewhere")) else { return };
    let root = mount.0.join("trees");
    board.workflow(&format!("{MERGE}workspace: {{root: {}}}\n", root.display()));
    board.scratch.commit("elsewhere");
    board.ticket("t-1", "Fail, then work");
    board.ok(&["run", "--until-idle"]);
    let saved = board.scratch.git(["for-each-ref", "--format=%(refname)", "refs/dirigent/salvage"]);
    let first = saved.lines().next().unwrap();
    assert_eq!(board.scratch.git(["show", &format!("{first}:t-1.txt")]), "unsaved");
    assert_eq!(board.scratch.git(["show", "main:t-1.txt"]), "work");
    let left: Vec<_> = std::fs::read_dir(&root).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let trees = left.iter().filter(|path| path.join(".git").exists()).count();
    assert_eq!(trees, 0, "{left:?}");
}

#[test]
fn a_ledger_that_is_read_only_is_told_before_anything_is_begun() {
    let board = Board::new(GOOD, MERGE);
    let Some(mount) = Mount::new(board.home()) else { return };
    board.ok(&["run", "--once"]);
    board.ticket("t-1", "Work");
    mount.remount("ro");
    let output = board.run(&["run", "--once"]);
    let said = text(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.to_lowercase().contains("read-only") || said.to_lowercase().contains("readonly"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert!(!board.ticket_text("t-1").contains("Started"), "{}", board.ticket_text("t-1"));
    mount.remount("rw");
    board.ok(&["run", "--once"]);
    is_merged(&board);
}

/// A disk in a file, which can break as a real one does. Goes with its test.
struct Disk {
    image: PathBuf,
    place: PathBuf,
}

impl Disk {
    fn new(image: PathBuf, place: PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&place).unwrap();
        std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let made = Command::new("mkfs.ext4").arg("-q").arg(&image).output();
        let disk = Self { image, place };
        if made.is_ok_and(|output| output.status.success()) && disk.mount() {
            return Some(disk);
        }
        println!("skipped: no disk can be made here");
        None
    }

    fn mount(&self) -> bool {
        let mounted = Command::new("mount").args(["-o", "loop"]).arg(&self.image).arg(&self.place).output();
        mounted.is_ok_and(|output| output.status.success())
    }

    /// What the kernel does after an error of the disk: from now on nothing can be written, whoever has it open.
    fn breaks(&self) {
        let done = Command::new("mount").args(["-o", "remount,abort"]).arg(&self.place).output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert!(std::fs::write(self.place.join("probe"), "").is_err(), "it can still be written");
    }

    /// Puts in a copy of what reached the broken one. (Whoever else still holds that one keeps it broken.)
    fn replace(&mut self) {
        self.unmount();
        let copy = self.image.with_extension("copy");
        std::fs::copy(&self.image, &copy).unwrap();
        self.image = copy;
        assert!(self.mount());
    }

    fn unmount(&self) {
        let _ = Command::new("umount").arg("-l").arg(&self.place).stderr(Stdio::null()).status();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.unmount();
    }
}

#[test]
fn a_ledger_that_turns_read_only_under_its_workers_stops_what_is_new_and_loses_nothing() {
    let agent = format!(
        "if [ \"$DIRIGENT_ATTEMPT\" = 1 ] && [ $DIRIGENT_TICKET_KEY != t-new ]; then
  echo unsaved > \"$DIRIGENT_TICKET_KEY.txt\"; tk comment 'I am at it'
  while [ ! -e \"$HOME/go\" ]; do sleep 0.05; done
  if [ $DIRIGENT_TICKET_KEY = t-fails ]; then : > \"$HOME/failed\"; exit 3; fi
fi
{GOOD}: > \"$HOME/over-$DIRIGENT_TICKET_KEY\"
"
    );
    let board = Board::new(&agent, "");
    let base = board.scratch.dir.path().to_owned();
    let Some(mut disk) = Disk::new(base.join("disk"), board.home()) else { return };
    board.workflow(&format!("{MERGE}workspace: {{root: {}}}\n", base.join("trees").display()));
    let soon = board
        .scratch
        .read("WORKFLOW.md")
        .replace("stop_grace_ms: 1000", "stop_grace_ms: 1000, max_retry_backoff_ms: 50");
    board.scratch.write("WORKFLOW.md", &soon);
    let merged = |id: &str| board.scratch.git(["log", "--format=%s", "main"]).matches(&format!("{id}: ")).count();
    for id in ["t-1", "t-fails"] {
        board.ticket(id, id);
    }
    let runner = board.start();
    board.until("both work", || ["t-1", "t-fails"].iter().all(|id| board.ticket_text(id).contains("I am at it")));
    disk.breaks();
    board.ticket("t-new", "Comes too late");
    board.until("somebody is told", || board.ok(&["status"]).contains("until the ledger can be written"));
    std::fs::write(base.join("go"), "").unwrap();
    board.until("both runs are over", || base.join("over-t-1").exists() && base.join("failed").exists());
    board.until("what they left is saved without the ledger", || {
        board.scratch.git(["for-each-ref", "refs/dirigent/salvage"]).lines().count() == 1
    });
    // What cannot be written down is not done.
    assert_eq!((merged("t-1"), merged("t-new")), (0, 0));
    assert!(!board.ticket_text("t-new").contains("Work started"), "{}", board.ticket_text("t-new"));
    assert!(!runner.log().contains("panicked"), "{}", runner.log());
    drop(runner);

    disk.replace();
    let runner = board.start();
    let ids = ["t-1", "t-fails", "t-new"];
    board.until("all are done", || ids.iter().all(|id| board.phase(id) == "done"));
    runner.end();
    for id in ids {
        assert_eq!(merged(id), 1, "{id}");
        assert_eq!(board.scratch.git(["show", &format!("main:{id}.txt")]), "work");
    }
    let ticket = board.ticket_text("t-fails");
    assert!(ticket.contains("refs/dirigent/salvage/"), "nobody is told of the saved work: {ticket}");
    assert_eq!(board.scratch.git(["worktree", "list"]).lines().count(), 1);
}

/// Keys, branches and files that only differ by case, in a repository whose git believes that case does not matter.
#[test]
fn names_that_only_differ_by_case_are_not_mixed_up() {
    let agent = format!(
        "echo \"unsaved by $DIRIGENT_TICKET_KEY\" > note.txt\nif [ \"$DIRIGENT_ATTEMPT\" = 1 ]; then exit 3; fi\nrm note.txt\n{GOOD}"
    );
    let board = Board::new(&agent, MERGE);
    let text = board
        .scratch
        .read("WORKFLOW.md")
        .replace("stop_grace_ms: 1000", "stop_grace_ms: 1000, max_retry_backoff_ms: 50");
    board.scratch.write("WORKFLOW.md", &text);
    board.scratch.commit("again soon");
    board.scratch.git(["config", "core.ignorecase", "true"]);
    let ids = ["t-1", "T-1"];
    for id in ids {
        board.ticket(id, "The same title");
    }
    let runner = board.start();
    board.until("both are done", || ids.iter().all(|id| board.phase(id) == "done"));
    runner.end();
    for id in ids {
        assert_eq!(board.scratch.git(["show", &format!("main:{id}.txt")]), "work", "{id}");
        let subjects = board.scratch.git(["log", "--format=%s", "main"]);
        assert_eq!(subjects.lines().filter(|line| line.starts_with(&format!("{id}: "))).count(), 1, "{subjects}");
        let named = board.ticket_text(id);
        let at = named.find("refs/dirigent/salvage/").unwrap_or_else(|| panic!("no saved work on {id}: {named}"));
        let name: String = named[at..].chars().take_while(|c| !c.is_whitespace() && *c != '`').collect();
        assert_eq!(board.scratch.git(["show", &format!("{name}:note.txt")]), format!("unsaved by {id}"));
    }
    assert!(board.worktrees().is_empty(), "{:?}", board.worktrees());
}

#[test]
fn too_few_file_descriptors_are_told_and_cost_nothing() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "Work");
    let with = |limit: u32, args: &[&str]| {
        let output = behind(&board, &format!("ulimit -n {limit}; set -- -s TERM 60 \"$0\" \"$@\""), args);
        (output.status.code(), text(&output.stderr) + &text(&output.stdout))
    };
    for limit in [16, 28, 70] {
        let (code, said) = with(limit, &["run", "--once"]);
        assert_eq!(code, Some(1), "with {limit}: {said}");
        let told = format!("only {limit} files may be open at once");
        assert!(said.contains(&told) && said.contains("ulimit -n"), "with {limit}: {said}");
        let (code, said) = with(limit, &["doctor"]);
        assert_eq!(code, Some(7), "with {limit}: {said}");
        assert!(said.contains("open files"), "with {limit}: {said}");
    }
    assert!(board.worktrees().is_empty());
    // Enough for one worker after the other, whatever the settings would like.
    let (code, said) = with(76, &["run", "--once"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("only 76 files may be open at once"), "{said}");
    is_merged(&board);
    assert_eq!(board.scratch.git(["log", "--oneline", "main", "--", "t-1.txt"]).lines().count(), 1);
}

#[test]
fn without_a_way_to_watch_files_the_board_is_still_polled() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "Work");
    let plain = board.command(&["run", "--once"]);
    let script = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", script]).arg(plain.get_program()).args(plain.get_args());
    command.current_dir(board.repo()).env_clear().stdin(Stdio::null());
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    if said.contains("unshare:") || said.contains("max_inotify_instances:") {
        println!("skipped: {said}");
        return;
    }
    assert!(!said.contains("panicked"), "{said}");
    if output.status.success() {
        is_merged(&board);
        return;
    }
    assert!(said.contains("inotify") || said.contains("watch"), "it ends without a sentence about it: {said}");
    board.ok(&["run", "--once"]);
    is_merged(&board);
}
