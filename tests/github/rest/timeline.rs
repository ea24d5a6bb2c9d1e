//! What happened to an issue.

use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::Thing;

use super::call::Call;
use super::render::{self, joined};

pub fn timeline(call: &mut Call) -> Answered {
    let number = call.issue_seen()?.number;
    let repo = call.seen(&Thing::Comments(number));
    let shown = repo.issue(number).map(|issue| {
        let one = |event| render::event::timeline(call.world, call.home, repo, issue, event);
        issue.events.iter().filter_map(one).collect::<Vec<_>>()
    });
    call.page(shown.unwrap_or_default(), Clone::clone)
}

pub fn events(call: &mut Call) -> Answered {
    let number = call.issue_seen().map_err(|refusal| Answer { general: true, ..refusal })?.number;
    let repo = call.seen(&Thing::Comments(number));
    let shown = repo.issue(number).map(|issue| {
        issue.events.iter().filter_map(|event| render::event::event(call.world, repo, event)).collect::<Vec<_>>()
    });
    call.page(shown.unwrap_or_default(), Clone::clone)
}

/// The newest first, each with its issue.
pub fn events_of_repo(call: &mut Call) -> Answered {
    let repo = call.repo();
    let mut found = Vec::new();
    for issue in repo.issues.values() {
        for event in &issue.events {
            if let Some(shown) = render::event::event(call.world, repo, event) {
                found.push((event.id, issue.number, shown));
            }
        }
    }
    found.sort_by_key(|(id, _, _)| std::cmp::Reverse(*id));
    call.page(found, |(_, number, shown)| {
        let issue = render::issue::issue(call.world, repo, repo.issue(*number).unwrap());
        joined(shown.clone(), serde_json::json!({"issue": issue}))
    })
}
