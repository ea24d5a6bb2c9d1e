//! Reviews and requests for them.

use serde_json::{Value, json};

use crate::github::deeds;
use crate::github::deeds::reviews::Line;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::{Happened, Permission, Thing};

use super::call::Call;
use super::issues::undocumented;
use super::render;

pub fn list(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    let repo = call.seen(&Thing::Reviews(number));
    let login = &call.login;
    // A pending review is seen by its author alone.
    let visible = |state: &str, author: &Option<String>| state != "PENDING" || author.as_ref() == Some(login);
    let found =
        repo.pull(number).map(|pull| pull.reviews.iter().filter(|one| visible(&one.state, &one.author)).collect());
    call.page(found.unwrap_or_default(), |one| render::review::review(call.world, repo, number, one))
}

pub fn get(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    let repo = call.seen(&Thing::Reviews(number));
    let review = repo.pull(number).and_then(|pull| pull.review(call.number("review_id")));
    let review = review.ok_or_else(Answer::not_found)?;
    Ok(Answer::json(200, render::review::review(call.world, repo, number, review)))
}

fn state(event: Option<&str>) -> &'static str {
    match event {
        Some("APPROVE") => "APPROVED",
        Some("REQUEST_CHANGES") => "CHANGES_REQUESTED",
        Some("COMMENT") => "COMMENTED",
        _ => "PENDING",
    }
}

/// GitHub does not let the author judge his own pull request.
fn check_author(call: &Call, number: u64, verdict: &str) -> Result<(), Answer> {
    let own = call.repo().issue(number).is_some_and(|issue| issue.author.as_deref() == Some(call.login.as_str()));
    let words = match verdict {
        "APPROVED" => "Can not approve your own pull request",
        "CHANGES_REQUESTED" => "Can not request changes on your own pull request",
        _ => return Ok(()),
    };
    if !own {
        return Ok(());
    }
    let body = json!({
        "message": "Unprocessable Entity", "errors": [words], "documentation_url": "https://docs.github.com/rest"
    });
    Err(Answer::json(422, body))
}

pub fn create(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    let body = call.body.clone();
    let verdict = state(body["event"].as_str());
    check_author(call, number, verdict)?;
    let line = |one: &Value| Line {
        path: one["path"].as_str().unwrap_or_default().to_owned(),
        line: one["line"].as_u64().or_else(|| one["position"].as_u64()).unwrap_or(1),
        body: one["body"].as_str().unwrap_or_default().to_owned(),
    };
    let lines: Vec<Line> = body["comments"].as_array().into_iter().flatten().map(line).collect();
    let (home, login) = (call.home, call.login.clone());
    let text = body["body"].as_str().unwrap_or_default();
    let id = deeds::reviews::submit(call.world, home, number, &login, verdict, text, &lines);
    show(call, number, id)
}

fn show(call: &Call, number: u64, id: u64) -> Answered {
    let repo = call.repo();
    let review = repo.pull(number).unwrap().review(id).unwrap();
    Ok(Answer::json(200, render::review::review(call.world, repo, number, review)))
}

pub fn submit(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    let id = call.number("review_id");
    call.repo().pull(number).unwrap().review(id).ok_or_else(Answer::not_found)?;
    let verdict = state(call.body["event"].as_str());
    check_author(call, number, verdict)?;
    let (home, login) = (call.home, call.login.clone());
    let (text, now) = (call.body["body"].as_str().unwrap_or_default().to_owned(), call.world.now());
    let pull = call.world.repo_mut(home).pull_mut(number);
    let review = pull.reviews.iter_mut().find(|one| one.id == id).unwrap();
    review.state = verdict.to_owned();
    review.body = text;
    review.submitted_at = now;
    deeds::issues::note(call.world, home, number, &login, Happened::Reviewed(id));
    deeds::issues::touch(call.world, home, number);
    show(call, number, id)
}

pub fn dismiss(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    call.need(Permission::Write)?;
    let id = call.number("review_id");
    call.repo().pull(number).unwrap().review(id).ok_or_else(Answer::not_found)?;
    let (home, login) = (call.home, call.login.clone());
    let message = call.body["message"].as_str().unwrap_or_default().to_owned();
    deeds::reviews::dismiss(call.world, home, number, id, &login, &message);
    show(call, number, id)
}

pub fn requested(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    let repo = call.seen(&Thing::Pull(number));
    let pull = repo.pull(number).ok_or_else(|| undocumented(Answer::not_found()))?;
    let users: Vec<Value> = pull.reviewers.iter().map(|login| render::user::simple(call.world, login)).collect();
    let teams: Vec<Value> = pull.teams.iter().map(|slug| render::pull::team(call.world, repo, slug)).collect();
    Ok(Answer::json(200, json!({"users": users, "teams": teams})))
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

pub fn request(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    call.need(Permission::Write)?;
    let (home, login) = (call.home, call.login.clone());
    let author = call.repo().issue(number).unwrap().author.clone();
    let (people, teams) = (texts(&call.body["reviewers"]), texts(&call.body["team_reviewers"]));
    for one in &people {
        let unknown = call.repo().permission(one) < Permission::Read || call.world.user(one).is_none();
        if author.as_ref() == Some(one) || unknown {
            let words = "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the repository.";
            return Err(Answer::unprocessable(words));
        }
    }
    for one in people {
        let pull = call.world.repo_mut(home).pull_mut(number);
        if !pull.reviewers.contains(&one) {
            pull.reviewers.push(one.clone());
        }
        deeds::issues::note(call.world, home, number, &login, Happened::ReviewRequested(one));
    }
    let pull = call.world.repo_mut(home).pull_mut(number);
    pull.teams.extend(teams);
    deeds::issues::touch(call.world, home, number);
    simple(call, 201, number)
}

pub fn remove_request(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    call.need(Permission::Write)?;
    let (home, login) = (call.home, call.login.clone());
    for one in texts(&call.body["reviewers"]) {
        call.world.repo_mut(home).pull_mut(number).reviewers.retain(|other| *other != one);
        deeds::issues::note(call.world, home, number, &login, Happened::ReviewRequestRemoved(one));
    }
    simple(call, 200, number)
}

fn simple(call: &Call, status: u16, number: u64) -> Answered {
    let repo = call.repo();
    let shown = render::pull::simple(call.world, repo, repo.issue(number).unwrap(), repo.pull(number).unwrap());
    Ok(Answer::json(status, shown))
}
