//! What a test does to the world: it plays people, sets checks, and lets things go wrong. All of it is about the repository that the hub began
//! with.

use std::sync::Arc;

use jiff::SignedDuration;

use super::deeds::checks::NewStatus;
use super::deeds::landing::Request;
use super::deeds::pulls::NewPull;
use super::deeds::{self, reviews::Line};
use super::hub::Hub;
use super::server::faults::{Fault, Instead, When};
use super::server::limits::Secondary;
use super::state::app::App;
use super::state::git::Method;
use super::state::repo::{Gone, Settings};
use super::state::rules::{Demands, Ruleset};
use super::state::{Happened, Lag, Milestone, Permission, Thing, git};

/// The place of the one repository in the list.
const HOME: usize = 0;

/// People.
impl Hub {
    pub fn grant(&self, login: &str, permission: Permission) {
        self.change(|world| {
            world.ensure_user(login);
            world.repo_mut(HOME).permissions.insert(login.to_lowercase(), permission);
        });
    }

    /// The token is worth nothing from now on.
    pub fn revoke(&self, token: &str) {
        self.world().tokens.iter_mut().filter(|one| one.text == token).for_each(|one| one.revoked = true);
    }

    /// The token is worth what it was again.
    pub fn restore(&self, token: &str) {
        self.world().tokens.iter_mut().filter(|one| one.text == token).for_each(|one| one.revoked = false);
    }

    /// A GitHub App that is installed; the number of the installation.
    pub fn add_app(&self, id: u64, slug: &str) -> u64 {
        self.change(|world| {
            let (installation, created_at) = (world.next_id(), world.now());
            let owner = world.repo(HOME).owner.clone();
            let app = App { id, slug: slug.to_owned(), owner, installation, created_at };
            let login = app.login();
            world.apps.push(app);
            world.ensure_user(&login);
            world.repo_mut(HOME).permissions.insert(login.to_lowercase(), Permission::Write);
            installation
        })
    }
}

/// Issues.
impl Hub {
    pub fn add_issue(&self, who: &str, title: &str, body: &str, labels: &[&str]) -> u64 {
        self.change(|world| {
            let number = deeds::issues::open(world, HOME, who, title, Some(body));
            for name in labels {
                deeds::issues::label(world, HOME, number, who, name);
            }
            number
        })
    }

    /// An issue of the repository that was added last, which everybody sees then: its number and its id.
    pub fn add_issue_elsewhere(&self, who: &str, title: &str) -> (u64, u64) {
        self.change(|world| {
            let home = world.homes.len() - 1;
            world.repo_mut(home).private = false;
            let number = deeds::issues::open(world, home, who, title, None);
            (number, world.repo(home).issue(number).unwrap().id)
        })
    }

    pub fn label(&self, who: &str, number: u64, name: &str) {
        self.change(|world| deeds::issues::label(world, HOME, number, who, name));
    }

    pub fn unlabel(&self, who: &str, number: u64, name: &str) {
        self.change(|world| deeds::issues::unlabel(world, HOME, number, who, name));
    }

    pub fn assign(&self, who: &str, number: u64, assignee: &str) {
        self.change(|world| deeds::issues::assign(world, HOME, number, who, assignee));
    }

    /// Somebody writes another text into an issue.
    pub fn reword(&self, who: &str, number: u64, body: &str) {
        self.change(|world| deeds::issues::reword(world, HOME, number, who, Some(body)));
    }

    pub fn comment(&self, who: &str, number: u64, body: &str) -> u64 {
        self.change(|world| deeds::issues::comment(world, HOME, number, who, body))
    }

    pub fn edit_comment(&self, id: u64, body: &str) {
        self.change(|world| deeds::issues::edit_comment(world, HOME, id, body));
    }

    pub fn delete_comment(&self, id: u64) {
        self.change(|world| deeds::issues::delete_comment(world, HOME, id));
    }

    pub fn close(&self, who: &str, number: u64, reason: &str) {
        self.change(|world| deeds::issues::close(world, HOME, number, who, Some(reason)));
    }

    pub fn reopen(&self, who: &str, number: u64) {
        self.change(|world| deeds::issues::reopen(world, HOME, number, who));
    }

    pub fn lock(&self, who: &str, number: u64) {
        self.change(|world| {
            world.repo_mut(HOME).issue_mut(number).locked = Some(String::new());
            deeds::issues::note(world, HOME, number, who, Happened::Locked);
        });
    }

    pub fn retitle(&self, who: &str, number: u64, title: &str) {
        self.change(|world| {
            let old = std::mem::replace(&mut world.repo_mut(HOME).issue_mut(number).title, title.to_owned());
            let what = Happened::Renamed { from: old, to: title.to_owned() };
            deeds::issues::note(world, HOME, number, who, what);
            deeds::issues::touch(world, HOME, number);
        });
    }

    /// An issue that is blocked by another.
    pub fn block(&self, number: u64, blocker: u64) {
        self.change(|world| world.repo_mut(HOME).issue_mut(number).blocked_by.push(blocker));
    }

    pub fn add_sub_issue(&self, parent: u64, child: u64) {
        self.change(|world| world.repo_mut(HOME).issue_mut(parent).sub_issues.push(child));
    }

    pub fn set_milestone(&self, number: u64, title: &str) {
        self.change(|world| {
            let (id, now) = (world.next_id(), world.now());
            let repo = world.repo_mut(HOME);
            let known = repo.milestones.iter().find(|one| one.title == title).map(|one| one.number);
            let milestone = known.unwrap_or_else(|| {
                let number = repo.milestones.len() as u64 + 1;
                let new = Milestone { id, number, title: title.to_owned(), created_at: now };
                Arc::make_mut(&mut repo.milestones).push(new);
                number
            });
            repo.issue_mut(number).milestone = Some(milestone);
            deeds::issues::note(world, HOME, number, "ada", Happened::Milestoned(title.to_owned()));
            deeds::issues::touch(world, HOME, number);
        });
    }

    /// The issue is deleted, transferred or hidden.
    pub fn lose(&self, number: u64, how: Gone) {
        self.change(|world| {
            let repo = world.repo_mut(HOME);
            repo.issues.remove(&number);
            repo.gone.insert(number, how);
        });
    }

    /// Nothing tells any more who did what to an issue.
    pub fn forget_events(&self, number: u64) {
        self.change(|world| world.repo_mut(HOME).issue_mut(number).events.clear());
    }

    /// The account of an issue's author and of all its comments is gone.
    pub fn forget_authors(&self, number: u64) {
        self.change(|world| {
            let issue = world.repo_mut(HOME).issue_mut(number);
            issue.author = None;
            issue.comments.iter_mut().for_each(|comment| comment.author = None);
        });
    }
}

/// Pull requests and reviews.
impl Hub {
    /// A person pushes: files on top of a branch, which begins at `main` if it is not there. The new head.
    pub fn push(&self, who: &str, branch: &str, files: &[(&str, Option<&str>)], message: &str) -> String {
        self.change(|world| {
            let head = git::commit(&world.homes[HOME].git, branch, who, message, files);
            deeds::refs::sync(world, HOME, who);
            head
        })
    }

    pub fn delete_branch(&self, who: &str, branch: &str) {
        self.change(|world| {
            git::set(&world.homes[HOME].git, &format!("refs/heads/{branch}"), None);
            deeds::refs::sync(world, HOME, who);
        });
    }

    /// Moves a branch wherever, as a force push does.
    pub fn force(&self, who: &str, branch: &str, sha: &str) {
        self.change(|world| {
            git::set(&world.homes[HOME].git, &format!("refs/heads/{branch}"), Some(sha));
            deeds::refs::sync(world, HOME, who);
        });
    }

    pub fn open_pull(&self, who: &str, head: &str, base: &str, title: &str, body: &str) -> u64 {
        self.change(|world| {
            let new = NewPull { title, body: Some(body), head_owner: None, head, base, draft: false };
            deeds::pulls::open(world, HOME, who, &new)
        })
    }

    /// A pull request from a fork, with one changed file.
    pub fn open_pull_from_fork(&self, who: &str, branch: &str, title: &str) -> u64 {
        self.push(who, &format!("forks/{who}/{branch}"), &[("fork.txt", Some("from a fork\n"))], title);
        self.change(|world| {
            let new = NewPull { title, body: None, head_owner: Some(who), head: branch, base: "main", draft: false };
            deeds::pulls::open(world, HOME, who, &new)
        })
    }

    pub fn body(&self, number: u64) -> String {
        self.world().repo(HOME).issue(number).unwrap().body.clone().unwrap_or_default()
    }

    pub fn set_body(&self, number: u64, body: &str) {
        self.change(|world| {
            world.repo_mut(HOME).issue_mut(number).body = Some(body.to_owned());
            deeds::issues::touch(world, HOME, number);
        });
    }

    /// Who was asked for a review, teams last.
    pub fn reviewers(&self, number: u64) -> Vec<String> {
        let world = self.world();
        let pull = world.repo(HOME).pull(number).unwrap();
        pull.reviewers.iter().chain(&pull.teams).cloned().collect()
    }

    /// A person gives the pull request another base.
    pub fn retarget(&self, who: &str, number: u64, base: &str) {
        self.change(|world| {
            let sha = world.repo(HOME).head(base).unwrap().to_owned();
            let pull = world.repo_mut(HOME).pull_mut(number);
            pull.base_ref = base.to_owned();
            pull.base_sha = sha;
            pull.mergeable = super::state::pull::Mergeable::Unasked;
            let what = Happened::Plain { name: "base_ref_changed".to_owned(), commit: None };
            deeds::issues::note(world, HOME, number, who, what);
            deeds::issues::touch(world, HOME, number);
        });
    }

    pub fn close_pull(&self, who: &str, number: u64) {
        self.change(|world| deeds::issues::close(world, HOME, number, who, None));
    }

    pub fn set_draft(&self, number: u64, draft: bool) {
        self.change(|world| world.repo_mut(HOME).pull_mut(number).draft = draft);
    }

    /// A review is gone, as after its account was deleted by the staff.
    pub fn delete_review(&self, number: u64, id: u64) {
        self.change(|world| world.repo_mut(HOME).pull_mut(number).reviews.retain(|review| review.id != id));
    }

    /// All comments of a conversation are deleted, and so is the conversation.
    pub fn delete_thread(&self, number: u64, id: u64) {
        self.change(|world| world.repo_mut(HOME).pull_mut(number).threads.retain(|thread| thread.id != id));
    }

    pub fn head_branch(&self, number: u64) -> String {
        self.world().repo(HOME).pull(number).unwrap().head_ref.clone()
    }

    /// `APPROVED`, `CHANGES_REQUESTED` or `COMMENTED`, with remarks on lines.
    pub fn review(&self, who: &str, number: u64, state: &str, body: &str, lines: &[Line]) -> u64 {
        self.change(|world| deeds::reviews::submit(world, HOME, number, who, state, body, lines))
    }

    pub fn dismiss(&self, who: &str, number: u64, review: u64) {
        self.change(|world| deeds::reviews::dismiss(world, HOME, number, review, who, "no longer so"));
    }

    /// The threads of a pull request, by id, in the order in which they were opened.
    pub fn threads(&self, number: u64) -> Vec<u64> {
        let world = self.world();
        world.repo(HOME).pull(number).unwrap().threads.iter().map(|thread| thread.id).collect()
    }

    pub fn resolve(&self, who: &str, number: u64, thread: u64) {
        self.change(|world| deeds::reviews::resolve(world, HOME, number, thread, Some(who)));
    }

    pub fn reply(&self, who: &str, number: u64, thread: u64, body: &str) -> u64 {
        self.change(|world| deeds::reviews::reply(world, HOME, number, thread, who, body))
    }

    /// A person merges by hand.
    pub fn merge(&self, who: &str, number: u64, method: Method) -> String {
        self.change(|world| {
            let request = Request { method, head: None, title: None, message: None, by_queue: true };
            let merged = deeds::landing::merge(world, HOME, number, who, &request);
            merged.unwrap_or_else(|refused| panic!("merge of #{number}: {}", refused.words))
        })
    }

    /// The merge queue lands what is first in it, or throws it out.
    pub fn run_merge_queue(&self, lands: bool) -> Option<u64> {
        self.change(|world| {
            let pulls = world.repo(HOME).pulls.values();
            let first =
                pulls.filter(|pull| pull.queued.is_some()).min_by_key(|pull| pull.queued.as_ref().unwrap().id)?;
            let (number, by) = (first.number, first.queued.as_ref().unwrap().by.clone());
            if lands {
                let request =
                    Request { method: Method::Squash, head: None, title: None, message: None, by_queue: true };
                deeds::landing::merge(world, HOME, number, &by, &request).ok()?;
            } else {
                deeds::landing::dequeue(world, HOME, number, "github-merge-queue[bot]");
            }
            Some(number)
        })
    }
}

/// Checks, rules and settings.
impl Hub {
    /// A job of Actions on a commit: running (`None`) or with its conclusion and log.
    pub fn set_job(&self, sha: &str, name: &str, conclusion: Option<&str>, log: &str) -> u64 {
        self.change(|world| deeds::checks::set_job(world, HOME, sha, name, conclusion, log))
    }

    /// A check run of another App.
    pub fn set_check(&self, sha: &str, app: &str, name: &str, conclusion: Option<&str>) -> u64 {
        self.change(|world| deeds::checks::set_check(world, HOME, sha, app, name, conclusion))
    }

    /// The check runs of this name are gone, as when their App was removed.
    pub fn lose_checks(&self, sha: &str, name: &str) {
        self.change(|world| {
            Arc::make_mut(&mut world.repo_mut(HOME).checks).retain(|check| check.sha != sha || check.name != name);
        });
    }

    pub fn set_status(&self, who: &str, sha: &str, context: &str, state: &str) {
        let new = NewStatus { context, state, description: None, target_url: None };
        self.change(|world| deeds::checks::set_status(world, HOME, who, sha, &new));
    }

    /// Classic protection.
    pub fn protect(&self, branch: &str, demands: Demands) {
        self.change(|world| {
            let rules = Arc::make_mut(&mut world.repo_mut(HOME).rules);
            rules.protections.retain(|(name, _)| name != branch);
            rules.protections.push((branch.to_owned(), demands));
        });
    }

    pub fn add_ruleset(&self, name: &str, branch: &str, demands: Demands) {
        self.change(|world| {
            let id = world.next_id();
            let ruleset = Ruleset { id, name: name.to_owned(), branch: branch.to_owned(), demands };
            Arc::make_mut(&mut world.repo_mut(HOME).rules).rulesets.push(ruleset);
        });
    }

    pub fn settings(&self, change: impl FnOnce(&mut Settings)) {
        self.change(|world| change(&mut world.repo_mut(HOME).settings));
    }

    pub fn make_public(&self) {
        self.change(|world| world.repo_mut(HOME).private = false);
    }

    /// The old name redirects.
    pub fn rename(&self, name: &str) {
        self.change(|world| {
            let old = world.repo(HOME).full_name();
            world.homes[HOME].former.push(old);
            world.repo_mut(HOME).name = name.to_owned();
        });
    }

    /// Pushes to refs of this pattern (`refs/heads/*`) are refused with these words.
    pub fn refuse_push(&self, pattern: &str, words: &str) {
        let line = format!("{pattern}\t{}\n", words.replace('\n', "\\n"));
        std::fs::write(self.git_folder().join("refusals"), line).unwrap();
    }

    pub fn allow_push(&self) {
        std::fs::write(self.git_folder().join("refusals"), "").unwrap();
    }

    /// An address on the host for attachments that leads elsewhere; the address.
    pub fn forward(&self, name: &str, to: &str) -> String {
        let mut world = self.world();
        let path = format!("/user-attachments/{name}");
        world.forwards.insert(path.clone(), to.to_owned());
        format!("{}{path}", world.files_base)
    }

    /// A file on the host for attachments; its address.
    pub fn attach(&self, name: &str, bytes: &[u8]) -> String {
        let mut world = self.world();
        let path = format!("/user-attachments/{name}");
        world.files.insert(path.clone(), bytes.to_vec());
        format!("{}{path}", world.files_base)
    }
}

/// Projects.
impl Hub {
    /// A project with a column field; its place.
    pub fn add_project(&self, number: u64, field: &str, columns: &[&str]) -> usize {
        self.change(|world| {
            let owner = world.repo(HOME).owner.clone();
            deeds::projects::create(world, &owner, number, field, columns)
        })
    }

    /// Puts an issue into a column, as this person.
    pub fn move_in_project(&self, who: &str, project: usize, number: u64, column: &str) {
        self.change(|world| {
            let item = deeds::projects::add(world, project, HOME, number);
            let option = world.projects[project].option_named(column).unwrap().to_owned();
            deeds::projects::move_to(world, project, item, Some(&option), who);
        });
    }
}

/// Time, lag, limits, faults.
impl Hub {
    /// The time by the server's clock.
    pub fn now(&self) -> jiff::Timestamp {
        self.world().now()
    }

    pub fn advance(&self, seconds: i64) {
        self.world().clock.advance(SignedDuration::from_secs(seconds));
    }

    pub fn lag(&self, thing: Thing, lag: Lag) {
        self.world().homes[HOME].lag(thing, lag);
    }

    pub fn release(&self, thing: &Thing) {
        self.world().homes[HOME].release(thing);
    }

    /// The next request of this route (a name, or its beginning and a star) meets this fault.
    pub fn fault(&self, route: &str, when: When, instead: Instead) {
        self.add_fault(Fault { route: route.to_owned(), when, instead, skip: 0, times: 1 });
    }

    pub fn add_fault(&self, fault: Fault) {
        self.world().faults.list.push(fault);
    }

    /// Whether every fault has been met as often as it was meant to be.
    pub fn has_met_all_faults(&self) -> bool {
        self.world().faults.list.iter().all(|fault| fault.times == 0)
    }

    /// Takes away the faults that were meant for one request, met or not. Lasting ones stay.
    pub fn clear_expired_faults(&self) {
        self.world().faults.list.retain(|fault| fault.times > 1);
    }

    pub fn clear_faults(&self) {
        self.world().faults.list.clear();
    }

    /// How many requests are left in this hour, of `core` or `graphql`.
    pub fn set_remaining(&self, resource: &str, remaining: u64) {
        let mut world = self.world();
        let primary = world.limits.of(resource);
        primary.used = primary.limit - remaining;
    }

    /// The secondary limit is in force for so many seconds.
    pub fn limit_secondary(&self, status: u16, seconds: i64, says_when: bool) {
        let mut world = self.world();
        let until = world.now() + SignedDuration::from_secs(seconds);
        world.limits.secondary = Some(Secondary { until, status, says_when });
    }
}
