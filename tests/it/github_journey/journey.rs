//! The way of one issue, step by step: what people do, how far it got, and what has to be true at the end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::PathBuf;

use super::scene::{Account, Scene, holding};
use crate::github::{ANY_WRITE, Fault, Hub, Instead, Line, When};
use crate::support::board::{Board, Runner, is_pushing};
use crate::support::git_in;

/// Keeps what it was given, commits one more line, and says done.
pub const AGENT: &str = "set -eu
out=$(cat .out)
n=$(ls \"$out\" | grep -c prompt || true)
env > \"$out/env-$n\"
(cat /proc/*/cmdline 2>/dev/null || true) | tr '\\0' ' ' > \"$out/arguments-$n\"
git config --list --show-origin > \"$out/config-$n\" 2>&1 || true
cp \"$DIRIGENT_PROMPT_FILE\" \"$out/prompt-$n\"
while [ -e \"$out/hold\" ]; do sleep 0.05; done
echo \"line $n\" >> work.txt
git add work.txt
git commit -qm \"Step $n\"
tk done \"step $n\"
";
const TITLE: &str = "Write something";
const BROKEN: &str = "error: it does not compile";
const QUESTION: &str = "why this line?";
const SWITCH: &str = "dirigent-pause";

/// How far it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Working,
    Pushed,
    Opened,
    Red,
    Reworked,
    Asked,
    Answered,
    Approved,
    Merged,
    Closed,
}

impl Step {
    pub const ALL: [Self; 10] = [
        Self::Working,
        Self::Pushed,
        Self::Opened,
        Self::Red,
        Self::Reworked,
        Self::Asked,
        Self::Answered,
        Self::Approved,
        Self::Merged,
        Self::Closed,
    ];

    fn next(self) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step > self)
    }
}

/// What happens at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Nothing,
    SwitchFile,
    TicketLabel,
    PrLabel,
    Pause,
    /// `kill -9` of the runner, and another one.
    Killed,
}

pub struct Journey {
    board: Board,
    hub: Hub,
    account: Account,
    issue: u64,
    /// What people have done already.
    acted: RefCell<BTreeSet<Step>>,
    /// The head whose check was red.
    red: RefCell<String>,
    /// The runner is killed when a fault is met.
    doomed: Cell<bool>,
}

impl Journey {
    pub fn new(account: Account) -> Self {
        let Scene { board, hub } = Scene::new(AGENT, account, "");
        let issue = hub.add_issue("ada", TITLE, "Please.", &[]);
        let (acted, red) = (RefCell::default(), RefCell::default());
        Self { board, hub, account, issue, acted, red, doomed: Cell::default() }
    }

    /// The whole way, with the runner killed while the answer to its `write`th write is on its way; whether it wrote so often.
    pub fn play_killed_at(&self, write: u32) -> bool {
        self.doomed.set(true);
        let (route, when, instead) = (ANY_WRITE.to_owned(), When::After, Instead::Silence);
        self.hub.add_fault(Fault { route, when, instead, skip: write, times: 1 });
        let runner = RefCell::new(Some(self.start()));
        for step in Step::ALL {
            self.people(step);
            self.board.until(&format!("{step:?} (killed at write {write})"), || {
                self.kill_if_doomed(&runner);
                self.is_reached(step)
            });
        }
        self.board.until("nothing is left to be written", || {
            self.kill_if_doomed(&runner);
            self.status()["pending_effects"] == 0 && self.is_quiet()
        });
        runner.take().unwrap().end();
        self.check_the_end();
        !self.doomed.get()
    }

    fn kill_if_doomed(&self, runner: &RefCell<Option<Runner>>) {
        if self.doomed.get() && self.hub.has_met_all_faults() {
            self.doomed.set(false);
            let killed = runner.take().unwrap();
            killed.signal(nix::sys::signal::Signal::SIGKILL);
            drop(killed);
            runner.replace(Some(self.start()));
        }
    }

    /// The whole way, with this at that step. Panics if anything of it is not as it should be.
    pub fn play(&self, at: Step, trouble: Trouble) {
        let mut runner = self.start();
        for step in Step::ALL {
            self.people(step);
            self.board.until(&format!("{step:?} ({trouble:?} at {at:?})"), || self.is_reached(step));
            if step == at {
                runner = self.meet(runner, step, trouble);
            }
        }
        self.board.until("nothing is left to be written", || self.status()["pending_effects"] == 0 && self.is_quiet());
        runner.end();
        self.check_the_end();
    }

    fn start(&self) -> Runner {
        self.board.start_with(&[("GITHUB_TOKEN", self.account.token())])
    }

    /// What people do so that this step can be reached.
    fn people(&self, step: Step) {
        if !self.acted.borrow_mut().insert(step) {
            return;
        }
        let (hub, out) = (&self.hub, self.board.scratch.dir.path().join("out"));
        let hold = || std::fs::write(out.join("hold"), "").unwrap();
        match step {
            Step::Working => {
                hold();
                hub.label("ada", self.issue, "agent");
            }
            Step::Pushed | Step::Reworked | Step::Answered => std::fs::remove_file(out.join("hold")).unwrap(),
            Step::Red => {
                hold();
                let head = self.head().unwrap();
                hub.set_job(&head, "build", Some("failure"), &format!("{BROKEN}\n"));
                self.red.replace(head);
            }
            Step::Asked => {
                hold();
                hub.set_job(&self.head().unwrap(), "build", Some("success"), "fine\n");
                let line = Line { path: "work.txt".to_owned(), line: 1, body: QUESTION.to_owned() };
                hub.review("ada", self.pull().unwrap(), "COMMENTED", "", &[line]);
            }
            Step::Approved => {
                let head = self.head().unwrap();
                hub.set_job(&head, "build", Some("success"), "fine\n");
                match self.account {
                    Account::Own => {
                        hub.review("ada", self.pull().unwrap(), "APPROVED", "good", &[]);
                    }
                    Account::Owners => self.board.until("it can be approved", || self.approve(&head)),
                }
            }
            Step::Opened | Step::Merged | Step::Closed => {}
        }
    }

    /// A head that the runner has not seen yet is refused.
    fn approve(&self, head: &str) -> bool {
        self.board.run(&["approve", &self.key(), "--head", head]).status.success()
    }

    fn is_reached(&self, step: Step) -> bool {
        let told = |words: &str| self.prompts().iter().any(|prompt| prompt.contains(words));
        match step {
            Step::Working => told(TITLE),
            Step::Pushed => self.head().is_some(),
            Step::Opened => self.pull().is_some(),
            Step::Red => told(BROKEN),
            Step::Reworked => self.head().is_some_and(|head| head != *self.red.borrow()),
            Step::Asked => told(QUESTION),
            Step::Answered => {
                let said = self.pull().map(|number| self.hub.thread_comments(number)).unwrap_or_default();
                said.first().is_some_and(|said| said.len() > 1)
            }
            Step::Approved => self.acted.borrow().contains(&step),
            Step::Merged => !self.hub.merges().is_empty(),
            Step::Closed => {
                !self.hub.is_open(self.issue) && self.head().is_none() && self.board.phase(&self.key()) == "done"
            }
        }
    }

    /// Lets it happen, lets people go on as if nothing were, and takes it back.
    fn meet(&self, runner: Runner, step: Step, trouble: Trouble) -> Runner {
        let people_go_on = || {
            if let Some(next) = step.next() {
                self.people(next);
            }
        };
        match trouble {
            Trouble::Nothing => runner,
            Trouble::Killed => {
                runner.signal(nix::sys::signal::Signal::SIGKILL);
                drop(runner);
                people_go_on();
                self.start()
            }
            switch => {
                self.pull_switch(switch);
                self.board.until("the switch is seen", || !self.status()["switches"].as_array().unwrap().is_empty());
                self.board.until("everything stops", || self.board.worker_processes().is_empty() && self.is_quiet());
                let before = self.hub.writes();
                people_go_on();
                self.watches(4);
                let after = self.hub.writes();
                let left: Vec<_> = after[before.len()..].iter().map(|entry| &entry.route).collect();
                assert!(left.is_empty(), "{trouble:?} at {step:?}: {left:?} left under a switch\n{}", self.hub.print());
                self.release_switch(switch);
                runner
            }
        }
    }

    fn pull_switch(&self, switch: Trouble) {
        match switch {
            Trouble::SwitchFile => {
                std::fs::create_dir_all(self.switch_file().parent().unwrap()).unwrap();
                std::fs::write(self.switch_file(), "").unwrap();
            }
            Trouble::TicketLabel => self.hub.label("ada", self.issue, SWITCH),
            Trouble::PrLabel => self.hub.label("ada", self.pull().unwrap(), SWITCH),
            Trouble::Pause => drop(self.board.ok(&["pause"])),
            Trouble::Nothing | Trouble::Killed => {}
        }
    }

    fn release_switch(&self, switch: Trouble) {
        match switch {
            Trouble::SwitchFile => std::fs::remove_file(self.switch_file()).unwrap(),
            Trouble::TicketLabel => self.hub.unlabel("ada", self.issue, SWITCH),
            Trouble::PrLabel => self.hub.unlabel("ada", self.pull().unwrap(), SWITCH),
            Trouble::Pause => drop(self.board.ok(&["resume"])),
            Trouble::Nothing | Trouble::Killed => {}
        }
    }

    fn check_the_end(&self) {
        let (hub, number) = (&self.hub, self.pull().unwrap());
        assert_eq!(hub.pulls(), [number], "one pull request");
        assert!(hub.body(number).contains(&format!("Closes #{}", self.issue)), "{}", hub.body(number));
        let sent = |route: &str| hub.requests().iter().filter(|one| one.route == route && one.took_effect).count();
        assert_eq!((hub.merges().len(), sent("pulls/merge")), (1, 1), "one merge");
        assert_eq!(sent("pulls/create"), 1);
        let message = git_in(&hub.git_folder(), ["log", "-1", "--format=%B", "main"]);
        assert!(
            message.contains(&format!("Ticket: {}", self.key())) && message.contains("Dirigent-Run: "),
            "{message}"
        );
        let co_author = message.contains("Co-authored-by: Somebody <somebody@example.invalid>");
        assert_eq!(co_author, self.account == Account::Own, "{message}");
        let answers = &hub.thread_comments(number)[0];
        assert_eq!(answers.len(), 2, "answered once, in its place: {answers:?}");
        assert_eq!(answers[1].author, self.account.login());
        assert!(!hub.is_resolved(number, hub.threads(number)[0]), "that is the person's affair");

        let ours: Vec<_> = hub.comments(self.issue).into_iter().chain(hub.comments(number)).collect();
        let marks: Vec<&str> = ours.iter().map(|one| one.body.trim_end().lines().next_back().unwrap()).collect();
        assert!(ours.iter().all(|one| one.author == self.account.login()), "{ours:?}");
        let different: BTreeSet<&str> = marks.iter().copied().collect();
        assert_eq!(different.len(), marks.len(), "a comment was made twice: {marks:?}");
        assert!(ours.len() <= 8, "not calm: {ours:#?}");

        let held = holding(self.board.scratch.dir.path(), self.account.token());
        assert!(held.is_empty(), "the token is in {held:?}");
        let token = self.account.token();
        let said = ours.iter().chain(answers).map(|one| &one.body);
        assert!(said.chain([&hub.body(number), &hub.body(self.issue)]).all(|body| !body.contains(token)));
        assert!(self.board.worktrees().is_empty(), "{:?}", self.board.worktrees());
        assert!(self.board.worker_processes().is_empty());
    }

    fn key(&self) -> String {
        format!("GH-{}", self.issue)
    }

    fn pull(&self) -> Option<u64> {
        self.hub.pulls().first().copied()
    }

    /// The head of the branch on GitHub.
    fn head(&self) -> Option<String> {
        self.hub.head(&format!("dirigent/{}-write-something", self.key()))
    }

    fn prompts(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.board.scratch.dir.path().join("out")).unwrap().flatten();
        let prompts = files.filter(|entry| entry.file_name().to_string_lossy().starts_with("prompt-"));
        prompts.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect()
    }

    fn switch_file(&self) -> PathBuf {
        self.board.repo().join(".dirigent/pause")
    }

    fn status(&self) -> serde_json::Value {
        self.board.status(&[])
    }

    /// What was under way has arrived: nothing is being pushed, and nothing was written while the board was asked a few times.
    fn is_quiet(&self) -> bool {
        let before = self.hub.writes().len();
        self.watches(3);
        !is_pushing(self.board.scratch.dir.path()) && self.hub.writes().len() == before
    }

    /// The board was asked so many times from now on.
    fn watches(&self, times: usize) {
        let polls = || self.hub.count("issues/list-for-repo");
        let enough = polls() + times;
        self.board.until("it watches the board", || polls() >= enough);
    }
}
