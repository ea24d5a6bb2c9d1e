//! Each operation of the contract is asked once, so that no answer of the fake is left unchecked.

use serde_json::{Value, json};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::github::{Demands, Hub, RestContract};

use super::client::ask;

struct Asker {
    hub: Hub,
    token: String,
}

impl Asker {
    fn ask(&self, method: &str, path: &str, body: Value, expected: u16) -> Value {
        let path = if path.starts_with("//") { path[1..].to_owned() } else { format!("/repos/acme/widgets{path}") };
        let reply = ask(&self.hub, &self.token, method, &path, (!body.is_null()).then_some(body));
        assert_eq!(reply.status, expected, "{method} {path}: {:?}", reply.text);
        reply.text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    fn get(&self, path: &str) -> Value {
        self.ask("GET", path, Value::Null, 200)
    }
}

#[test]
fn every_operation_answers_as_the_contract_says() {
    let hub = Hub::start();
    let app = Asker { hub, token: "ada-token".to_owned() };
    issues(&app);
    relations_and_reactions(&app);
    repository(&app);
    pull_requests(&app);
    checks(&app);
    refs(&app);
    let app = apps(app);
    let missing: Vec<&str> = RestContract::get().operations().filter(|one| app.hub.count(one) == 0).collect();
    assert!(missing.is_empty(), "never asked: {missing:?}\n{}", app.hub.print());
}

fn issues(at: &Asker) {
    at.get("//");
    at.get("//rate_limit");
    at.get("//user");
    at.get("//users/robot");
    at.ask("POST", "/labels", json!({"name": "bug", "color": "ff0000"}), 201);
    at.ask("POST", "/labels", json!({"name": "bug"}), 422);
    at.get("/labels");
    at.get("/labels/bug");
    let issue = json!({"title": "One", "body": "Text", "labels": ["bug"], "assignees": ["robot"]});
    let number = at.ask("POST", "/issues", issue, 201)["number"].clone();
    let path = format!("/issues/{number}");
    at.hub.set_milestone(number.as_u64().unwrap(), "Next");
    at.get("/milestones");
    at.get("/issues?state=all&labels=bug&assignee=robot&milestone=1&sort=comments&direction=desc");
    at.ask("PATCH", &path, json!({"title": "Uno", "state": "closed", "state_reason": "not_planned"}), 200);
    at.ask("PATCH", &path, json!({"state": "open"}), 200);
    at.get(&path);
    at.get(&format!("{path}/labels"));
    at.ask("POST", &format!("{path}/labels"), json!({"labels": ["agent"]}), 200);
    at.ask("DELETE", &format!("{path}/labels/agent"), Value::Null, 200);
    at.ask("DELETE", &format!("{path}/labels/agent"), Value::Null, 404);
    at.ask("PUT", &format!("{path}/labels"), json!({"labels": ["a", "b"]}), 200);
    at.ask("DELETE", &format!("{path}/labels"), Value::Null, 204);
    at.ask("DELETE", &format!("{path}/assignees"), json!({"assignees": ["robot"]}), 200);
    at.ask("POST", &format!("{path}/assignees"), json!({"assignees": ["ada"]}), 201);
    at.get("/assignees");
    at.ask("GET", "/assignees/robot", Value::Null, 204);
    at.ask("GET", "/assignees/nobody", Value::Null, 404);
    let comment = at.ask("POST", &format!("{path}/comments"), json!({"body": "Hello"}), 201)["id"].clone();
    at.get(&format!("{path}/comments?since=2020-01-01T00:00:00Z"));
    at.get("/issues/comments?sort=updated&direction=desc");
    at.get(&format!("/issues/comments/{comment}"));
    at.ask("PATCH", &format!("/issues/comments/{comment}"), json!({"body": "Hello again"}), 200);
    at.ask("PUT", &format!("{path}/lock"), json!({"lock_reason": "resolved"}), 204);
    at.ask("DELETE", &format!("{path}/lock"), Value::Null, 204);
    let events = at.get(&format!("{path}/timeline?per_page=100"));
    assert!(events.as_array().unwrap().len() > 10, "{events}");
    at.get(&format!("{path}/events"));
    at.get("/issues/events");
}

fn relations_and_reactions(at: &Asker) {
    let make = |title: &str| at.ask("POST", "/issues", json!({"title": title}), 201);
    let (parent, child) = (make("Parent"), make("Child"));
    let path = |issue: &Value, rest: &str| format!("/issues/{}{rest}", issue["number"]);
    at.ask("POST", &path(&parent, "/sub_issues"), json!({"sub_issue_id": child["id"]}), 201);
    at.get(&path(&parent, "/sub_issues"));
    at.get(&path(&child, "/parent"));
    at.ask("DELETE", &path(&parent, "/sub_issue"), json!({"sub_issue_id": child["id"]}), 200);
    at.ask("GET", &path(&child, "/parent"), Value::Null, 404);
    at.ask("POST", &path(&child, "/dependencies/blocked_by"), json!({"issue_id": parent["id"]}), 201);
    assert_eq!(at.get(&path(&child, "/dependencies/blocked_by"))[0]["number"], parent["number"]);
    assert_eq!(at.get(&path(&parent, "/dependencies/blocking"))[0]["number"], child["number"]);
    assert_eq!(at.get(&path(&child, ""))["issue_dependencies_summary"]["blocked_by"], 1);
    at.ask("DELETE", &path(&child, &format!("/dependencies/blocked_by/{}", parent["id"])), Value::Null, 200);
    at.get(&path(&child, "/timeline"));

    let reaction = at.ask("POST", &path(&child, "/reactions"), json!({"content": "eyes"}), 201)["id"].clone();
    at.ask("POST", &path(&child, "/reactions"), json!({"content": "eyes"}), 200);
    at.get(&path(&child, "/reactions"));
    at.ask("DELETE", &path(&child, &format!("/reactions/{reaction}")), Value::Null, 204);
    let comment = at.ask("POST", &path(&child, "/comments"), json!({"body": "Hello"}), 201)["id"].clone();
    let place = format!("/issues/comments/{comment}");
    let reaction = at.ask("POST", &format!("{place}/reactions"), json!({"content": "+1"}), 201)["id"].clone();
    at.get(&format!("{place}/reactions"));
    at.ask("DELETE", &format!("{place}/reactions/{reaction}"), Value::Null, 204);
    at.ask("DELETE", &place, Value::Null, 204);
}

fn repository(at: &Asker) {
    at.get("");
    at.get("/contents/README.md?ref=main");
    at.ask("GET", "/collaborators/robot", Value::Null, 204);
    at.get("/collaborators");
    at.get("/collaborators/robot/permission");
    let demands = Demands {
        checks: vec!["ci".to_owned()],
        up_to_date: true,
        reviews: 1,
        conversations_resolved: true,
        ..Demands::default()
    };
    at.ask("GET", "/branches/main/protection", Value::Null, 404);
    at.hub.protect("main", demands.clone());
    at.hub.add_ruleset("strict", "main", Demands { merge_queue: true, signatures: true, ..demands });
    at.get("/branches/main");
    at.get("/branches/main/protection");
    assert_eq!(at.get("/rules/branches/main").as_array().unwrap().len(), 4);
    let id = at.get("/rulesets")[0]["id"].clone();
    at.get(&format!("/rulesets/{id}"));
    at.get("/commits/main");
}

fn pull_requests(at: &Asker) {
    at.hub.add_ruleset("none", "side", Demands::default());
    at.hub.push("ada", "side", &[("side.txt", Some("side\n"))], "Side");
    let head = at.hub.push("robot", "work/one", &[("one.txt", Some("1\n2\n3\n"))], "One");
    let new = json!({"title": "One", "head": "work/one", "base": "side", "body": "Fixes it", "draft": false});
    let number = at.ask("POST", "/pulls", new, 201)["number"].clone();
    let path = format!("/pulls/{number}");
    at.ask("POST", &format!("/issues/{number}/labels"), json!({"labels": ["agent"]}), 200);
    at.get("/pulls?state=all&head=acme:work/one&base=side&sort=updated&direction=desc");
    at.get(&path);
    at.get(&path);
    at.ask("PATCH", &path, json!({"title": "Uno", "body": "Changed"}), 200);
    at.get(&format!("{path}/commits"));
    at.get(&format!("{path}/files"));
    at.get(&format!("/commits/{head}/pulls"));
    at.get(&format!("/git/commits/{head}"));
    at.get("/compare/side...work/one");
    at.ask(
        "POST",
        &format!("{path}/requested_reviewers"),
        json!({"reviewers": ["robot"], "team_reviewers": ["core"]}),
        201,
    );
    at.get(&format!("{path}/requested_reviewers"));
    at.ask("DELETE", &format!("{path}/requested_reviewers"), json!({"reviewers": ["robot"]}), 200);
    let remark = json!({"path": "one.txt", "line": 2, "body": "Why?"});
    let review = json!({"event": "COMMENT", "body": "A question", "comments": [remark]});
    let review = at.ask("POST", &format!("{path}/reviews"), review, 200)["id"].clone();
    at.get(&format!("{path}/reviews"));
    at.get(&format!("{path}/reviews/{review}"));
    let comment = at.get(&format!("{path}/reviews/{review}/comments"))[0]["id"].clone();
    at.ask("POST", &format!("{path}/comments/{comment}/replies"), json!({"body": "Because"}), 201);
    let other = json!({"body": "And?", "commit_id": head, "path": "one.txt", "line": 1});
    let other = at.ask("POST", &format!("{path}/comments"), other, 201)["id"].clone();
    assert_eq!(at.get(&format!("{path}/comments")).as_array().unwrap().len(), 3);
    at.get(&format!("/pulls/comments/{comment}"));
    at.ask("PATCH", &format!("/pulls/comments/{comment}"), json!({"body": "Why so?"}), 200);
    at.ask("POST", &format!("/pulls/comments/{comment}/reactions"), json!({"content": "eyes"}), 201);
    at.get(&format!("/pulls/comments/{comment}/reactions"));
    at.ask("DELETE", &format!("/pulls/comments/{other}"), Value::Null, 204);
    let pending = at.ask("POST", &format!("{path}/reviews"), json!({"body": "Later"}), 200)["id"].clone();
    at.ask("POST", &format!("{path}/reviews/{pending}/events"), json!({"event": "COMMENT", "body": "Now"}), 200);
    let verdict = at.hub.review("robot", number.as_u64().unwrap(), "CHANGES_REQUESTED", "No", &[]);
    at.ask("PUT", &format!("{path}/reviews/{verdict}/dismissals"), json!({"message": "Settled"}), 200);
    at.get(&format!("/issues/{number}/timeline?per_page=100"));
    at.get(&format!("/issues/{number}"));
    at.hub.push("ada", "side", &[("more.txt", Some("more\n"))], "More");
    at.ask("PUT", &format!("{path}/update-branch"), json!({}), 202);
    at.ask("GET", &format!("{path}/merge"), Value::Null, 404);
    let head = at.hub.head("work/one").unwrap();
    at.ask("PUT", &format!("{path}/merge"), json!({"sha": head, "merge_method": "merge"}), 200);
    at.get(&path);
    let fork = at.hub.open_pull_from_fork("stranger", "patch", "From a fork");
    let pull = at.get(&format!("/pulls/{fork}"));
    assert_eq!(pull["head"]["repo"]["full_name"], "stranger/widgets");
}

fn checks(at: &Asker) {
    let head = at.hub.head("main").unwrap();
    let job = at.hub.set_job(&head, "ci", Some("failure"), "boom");
    at.get(&format!("/commits/{head}/check-runs?filter=latest&per_page=100"));
    at.get(&format!("/commits/{head}/check-suites"));
    at.get(&format!("/check-runs/{job}"));
    at.get(&format!("/check-runs/{job}/annotations"));
    let run = at.get(&format!("/actions/runs?head_sha={head}&status=failure"))["workflow_runs"][0]["id"].clone();
    at.get(&format!("/actions/runs/{run}"));
    at.get(&format!("/actions/runs/{run}/jobs"));
    at.get(&format!("/actions/jobs/{job}"));
    at.ask("GET", &format!("/actions/jobs/{job}/logs"), Value::Null, 302);
    at.ask("POST", &format!("/actions/runs/{run}/rerun-failed-jobs"), Value::Null, 201);
    assert_eq!(at.get(&format!("/actions/runs/{run}"))["run_attempt"], 2);
    let job = at.hub.set_job(&head, "ci", Some("failure"), "boom again");
    at.ask("POST", &format!("/actions/jobs/{job}/rerun"), Value::Null, 201);
    let job = at.hub.set_job(&head, "ci", Some("failure"), "boom");
    at.ask("POST", &format!("/check-runs/{job}/rerequest"), Value::Null, 201);
    at.hub.set_job(&head, "ci", Some("action_required"), "");
    at.ask("POST", &format!("/actions/runs/{run}/approve"), Value::Null, 201);
    at.ask("POST", &format!("/actions/runs/{run}/rerun"), Value::Null, 201);
    assert_eq!(at.get(&format!("/commits/{head}/status"))["state"], "pending", "without any status");
    let status = json!({"state": "success", "context": "dirigent/gates", "description": "All passed"});
    at.ask("POST", &format!("/statuses/{head}"), status, 201);
    assert_eq!(at.get("/commits/main/status")["state"], "success");
    at.get(&format!("/commits/{head}/statuses"));
}

fn refs(at: &Asker) {
    let head = at.hub.head("main").unwrap();
    at.ask("POST", "/git/refs", json!({"ref": "refs/heads/made/here", "sha": head}), 201);
    at.ask("POST", "/git/refs", json!({"ref": "refs/heads/made/here", "sha": head}), 422);
    at.get("/git/ref/heads/made/here");
    at.get("/git/matching-refs/heads/made");
    let side = at.hub.head("side").unwrap();
    at.ask("PATCH", "/git/refs/heads/made/here", json!({"sha": side, "force": true}), 200);
    at.ask("DELETE", "/git/refs/heads/made/here", Value::Null, 204);
    at.ask("DELETE", "/git/refs/heads/made/here", Value::Null, 422);
    at.ask("GET", "/git/ref/heads/made/here", Value::Null, 404);
}

fn apps(at: Asker) -> Asker {
    let installation = at.hub.add_app(4711, "dirigent");
    let now = jiff::Timestamp::now().as_second();
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let head = part(json!({"alg": "RS256", "typ": "JWT"}));
    let claims = part(json!({"iat": now - 60, "exp": now + 540, "iss": 4711}));
    let word = format!("{head}.{claims}.{}", URL_SAFE_NO_PAD.encode([7; 256]));
    let app = Asker { token: word, ..at };
    app.get("//app");
    app.get(&format!("//app/installations/{installation}"));
    app.get("/installation");
    let place = format!("//app/installations/{installation}/access_tokens");
    let token =
        app.ask("POST", &place, json!({"repositories": ["widgets"]}), 201)["token"].as_str().unwrap().to_owned();
    let installed = Asker { token, ..app };
    installed.get("//installation/repositories");
    let head = installed.hub.head("main").unwrap();
    let check = json!({"name": "gates", "head_sha": head, "status": "in_progress"});
    let id = installed.ask("POST", "/check-runs", check, 201)["id"].clone();
    let done = json!({"conclusion": "success", "output": {"title": "Passed", "summary": "All of them"}});
    installed.ask("PATCH", &format!("/check-runs/{id}"), done, 200);
    installed
}
