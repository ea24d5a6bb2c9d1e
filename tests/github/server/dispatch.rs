//! One request from its arrival to its answer: record, faults, credentials, limits, contract, handler, contract again.

use std::sync::PoisonError;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::github::contract::answer::check_data;
use crate::github::contract::graphql::Question;
use crate::github::contract::rest::RestContract;
use crate::github::contract::route::query_pairs;
use crate::github::state::clock::http_date;
use crate::github::state::{TokenKind, World};
use crate::github::{deeds, graphql, rest};

use super::caller::Caller;
use super::exchange::{Answer, Body, Delivery, Request};
use super::faults::{Instead, When};
use super::journal::Entry;
use super::listener::{Door, Shared};
use super::transport::{self, GitRequest};

pub fn handle(shared: &Shared, door: Door, mut request: Request) -> Delivery {
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    if door == Door::Files {
        return Delivery::Whole(file(&lock(), &request));
    }
    if let Some(git) = GitRequest::read(&request) {
        let route = git.route(&request);
        let entry = enter(&mut lock(), route, &request, Value::Null);
        let met = lock().faults.meet(route, git.pushes(&request));
        let before = met.is_some_and(|met| lock().faults.list[met].when == When::Before);
        let answer =
            if before { Answer::general(500, "not looked at") } else { transport::handle(shared, &git, &request) };
        let mut world = lock();
        world.journal.entries[entry].took_effect = git.pushes(&request) && answer.status == 200;
        return leave(&mut world, entry, met, answer);
    }
    // An Enterprise server has its API below a path, and names it in its links.
    let enterprise = request.path.strip_prefix("/api/v3").map(str::to_owned);
    lock().is_enterprise = enterprise.is_some();
    if let Some(rest) = enterprise {
        request.path = rest;
    } else if request.path == "/api/graphql" {
        request.path = "/graphql".to_owned();
    }
    let mut world = lock();
    if request.path == "/graphql" { graphql_request(&mut world, &request) } else { rest_request(&mut world, &request) }
}

fn enter(world: &mut World, route: &str, request: &Request, body: Value) -> usize {
    let login = Caller::read(world, request).map_or_else(|_| "?".to_owned(), |caller| caller.login());
    world.journal.entries.push(Entry {
        route: route.to_owned(),
        method: request.method.clone(),
        path: request.path.clone(),
        query: request.query.clone(),
        body,
        login,
        at: world.now(),
        status: None,
        took_effect: false,
        api_version: request.header("x-github-api-version").map(str::to_owned),
    });
    world.journal.entries.len() - 1
}

/// The last step of every request: the fault, if there is one, and the record.
fn leave(world: &mut World, entry: usize, met: Option<usize>, answer: Answer) -> Delivery {
    let answer = answer.with("date", http_date(world.now()));
    let delivery = match met {
        Some(met) => world.faults.list[met].instead.apply(answer),
        None => Delivery::Whole(answer),
    };
    world.journal.entries[entry].status = match &delivery {
        Delivery::Whole(answer) | Delivery::Truncated(answer) => Some(answer.status),
        Delivery::Silence | Delivery::Disconnect => None,
    };
    delivery
}

/// A refusal for whom the contract was broken; the test fails by it, and the program under test should not go on.
fn violated(world: &mut World, route: &str, what: &str, wrong: &[String]) -> Answer {
    let words = format!("{route}: {what} breaks GitHub's contract:\n  {}", wrong.join("\n  "));
    world.violate(words.clone());
    Answer::general(500, &words)
}

fn rest_request(world: &mut World, request: &Request) -> Delivery {
    let contract = RestContract::get();
    let path = rest::named_path(world, &request.path);
    let query = query_pairs(&request.query);
    let body = match serde_json::from_slice(&request.body) {
        Ok(body) => body,
        Err(_) if request.body.is_empty() => Value::Null,
        Err(wrong) => {
            world.violate(format!("{} {}: the body is not JSON: {wrong}", request.method, request.path));
            Value::Null
        }
    };
    let Some((route, parameters)) = contract.find(&request.method, &path) else {
        let entry = enter(world, "unknown", request, body);
        world.violate(format!("{} {}: not an operation that tests/contracts knows", request.method, request.path));
        return leave(world, entry, None, Answer::general(404, "Not Found"));
    };
    let operation = route.operation.as_str();
    let entry = enter(world, operation, request, body.clone());
    let met = world.faults.meet(operation, request.method != "GET");
    if met.is_some_and(|met| world.faults.list[met].when == When::Before) {
        return leave(world, entry, met, Answer::general(500, "not looked at"));
    }
    let checked = if body.is_null() { None } else { Some(&body) };
    let wrong = contract.check_request(route, &parameters, &query, checked);
    let mut caller_token = None;
    let mut answer = if request.header("user-agent").is_none() {
        Answer::general(
            403,
            "Request forbidden by administrative rules. Please make sure your request has a User-Agent header",
        )
    } else if !wrong.is_empty() {
        violated(world, operation, "the request", &wrong)
    } else {
        match Caller::read(world, request) {
            Err(refusal) => refusal,
            Ok(caller) => {
                if let Caller::Token(token) = &caller {
                    caller_token = Some(token.clone());
                }
                let refused =
                    if operation == "rate-limit/get" { None } else { world.limits.refusal("core", world.now()) };
                match refused.or_else(|| caller.refused(operation)) {
                    Some(refusal) => refusal,
                    None => {
                        for home in 0..world.homes.len() {
                            deeds::refs::sync(world, home, "somebody");
                        }
                        rest::answer(world, operation, caller, parameters, query, body)
                    }
                }
            }
        }
    };
    let reads = request.method == "GET";
    world.journal.entries[entry].took_effect = !reads && answer.status < 300;
    let (now, count) = (world.now(), world.journal.count());
    world.homes.iter_mut().for_each(|home| home.note(count, now));

    let mut checked = met;
    if let Some(Instead::EditedAndChecked(edit)) = met.map(|met| &world.faults.list[met].instead) {
        if let Body::Json(body) = &mut answer.body {
            edit(body);
        }
        checked = None;
    }
    if !answer.general {
        let body = match &answer.body {
            Body::Json(body) => Some(body),
            _ => None,
        };
        let wrong = contract.check_answer(route, answer.status, body);
        if !wrong.is_empty() {
            answer = violated(world, operation, "the answer of the loopback GitHub", &wrong);
        }
    }
    let mut answer = conditional(answer, request);
    if answer.status != 304 && operation != "rate-limit/get" {
        world.limits.core.used += 1;
    }
    answer.headers.extend(world.limits.core.headers("core"));
    if let Some(TokenKind::Classic { scopes }) = caller_token.map(|token| token.kind) {
        answer = answer.with("x-oauth-scopes", scopes.join(", "));
    }
    answer = answer.with("x-github-media-type", "github.v3; format=json");
    answer = answer.with("x-here", format!("{}{}?{}", world.base, request.path, request.query));
    leave(world, entry, checked, answer)
}

/// 304 where the client has it already. GitHub documents that in general, not for each operation.
fn conditional(answer: Answer, request: &Request) -> Answer {
    let (Body::Json(body), "GET", 200) = (&answer.body, request.method.as_str(), answer.status) else { return answer };
    let link = answer.headers.iter().find(|(name, _)| name == "link").map(|(_, link)| link.as_str());
    let mut hash = Sha256::new();
    hash.update(serde_json::to_vec(body).unwrap());
    hash.update(link.unwrap_or(""));
    let tag: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("W/\"{tag}\"");
    let same = request.header("if-none-match").is_some_and(|known| known.split(',').any(|one| one.trim() == tag));
    if same { Answer { general: true, ..Answer::empty(304) }.with("etag", tag) } else { answer.with("etag", tag) }
}

fn graphql_request(world: &mut World, request: &Request) -> Delivery {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let question = match Question::read(&body) {
        Ok(question) => question,
        Err(wrong) => {
            let entry = enter(world, "graphql", request, body);
            let answer = violated(world, "graphql", "the request", &[wrong]);
            return leave(world, entry, None, answer);
        }
    };
    let route = question.route();
    let entry = enter(world, &route, request, body);
    let met = world.faults.meet(&route, question.is_mutation());
    if met.is_some_and(|met| world.faults.list[met].when == When::Before) {
        return leave(world, entry, met, Answer::general(500, "not looked at"));
    }
    let caller = match Caller::read(world, request) {
        Ok(Caller::Nobody) => Err(Answer::general(401, "This endpoint requires you to be authenticated.")),
        Ok(caller) => Ok(caller),
        Err(refusal) => Err(refusal),
    };
    let refused = world.limits.refusal("graphql", world.now());
    let mut answer = match (caller, refused) {
        (Err(refusal), _) | (Ok(_), Some(refusal)) => refusal,
        (Ok(caller), None) => {
            for home in 0..world.homes.len() {
                deeds::refs::sync(world, home, "somebody");
            }
            world.limits.graphql.used += question.cost();
            graphql::answer(world, &question, &caller)
        }
    };
    let failed = matches!(&answer.body, Body::Json(body) if body.get("errors").is_some());
    world.journal.entries[entry].took_effect = question.is_mutation() && answer.status == 200 && !failed;
    let (now, count) = (world.now(), world.journal.count());
    world.homes.iter_mut().for_each(|home| home.note(count, now));
    let mut checked = met;
    if let Some(Instead::EditedAndChecked(edit)) = met.map(|met| &world.faults.list[met].instead) {
        if let Body::Json(body) = &mut answer.body {
            edit(body);
        }
        checked = None;
    }
    if let (false, Body::Json(body)) = (answer.general, &answer.body) {
        let data = &body["data"];
        let wrong = if failed && data.is_null() { Vec::new() } else { check_data(&question, data) };
        if !wrong.is_empty() {
            answer = violated(world, &route, "the answer of the loopback GitHub", &wrong);
        }
    }
    answer.headers.extend(world.limits.graphql.headers("graphql"));
    leave(world, entry, checked, answer)
}

/// Logs and attachments: whoever has the address may read, and a credential of the API is refused, as the real hosts do.
fn file(world: &World, request: &Request) -> Answer {
    if request.header("authorization").is_some() {
        return Answer::raw(403, "application/xml", b"<Error><Code>AuthenticationFailed</Code></Error>".to_vec());
    }
    if let Some(to) = world.forwards.get(&request.path) {
        return Answer::raw(302, "text/html; charset=utf-8", Vec::new()).with("location", to.clone());
    }
    match world.files.get(&request.path) {
        Some(bytes) => Answer::raw(200, "text/plain; charset=utf-8", bytes.clone()),
        None => Answer::raw(404, "application/xml", b"<Error><Code>BlobNotFound</Code></Error>".to_vec()),
    }
}
