//! The endpoint: one request from its arrival to its answer, on a thread that ends with the handle.

use std::net::TcpListener;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Frame, Incoming};
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::contract::Question;
use super::faults::{Instead, When, complaint, status_body};
use super::resolve::execute;
use super::world::{Entry, World};

pub type Shared = Arc<Mutex<World>>;

/// The serving thread; dropping it ends it.
pub struct Listener {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    pub fn start(world: Shared, socket: TcpListener) -> Self {
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = accept(world, socket) => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_background();
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(world: Shared, socket: TcpListener) {
    socket.set_nonblocking(true).unwrap();
    let socket = tokio::net::TcpListener::from_std(socket).unwrap();
    while let Ok((stream, _)) = socket.accept().await {
        let world = world.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request| serve(world.clone(), request));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    content_type: &'static str,
    bytes: Vec<u8>,
}

enum Delivery {
    Whole(Answer),
    Truncated(Answer),
    Silence,
    Disconnect,
}

async fn serve(world: Shared, request: hyper::Request<Incoming>) -> Result<hyper::Response<Outgoing>, std::io::Error> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return Err(std::io::Error::other("the client went away")) };
    let key = head.headers.get("authorization").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let what = format!("{} {}", head.method, head.uri.path());
    let shared = world.clone();
    let handled = tokio::task::spawn_blocking(move || {
        let mut world = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = what.strip_prefix("GET /uploads/") {
            return Delivery::Whole(file_answer(&mut world, file, key.as_deref()));
        }
        if what != "POST /graphql" {
            world.violate(format!("{what}: Linear has one address"));
        }
        handle(&mut world, key.as_deref(), &body.to_bytes())
    })
    .await;
    match handled {
        Ok(Delivery::Whole(answer)) => Ok(response(answer, false)),
        Ok(Delivery::Truncated(answer)) => Ok(response(answer, true)),
        Ok(Delivery::Silence) => std::future::pending().await,
        Ok(Delivery::Disconnect) => Err(std::io::Error::other("injected")),
        Err(panicked) => {
            let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
            world.violate(format!("the handler panicked: {panicked}"));
            Err(std::io::Error::other("the loopback Linear panicked"))
        }
    }
}

fn handle(world: &mut World, key: Option<&str>, body: &[u8]) -> Delivery {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let question = match Question::read(&body) {
        Ok(question) => question,
        Err(wrong) => {
            world.violate(format!("the request breaks Linear's contract: {wrong}"));
            return Delivery::Whole(json_answer(
                400,
                &json!({"errors": [complaint("GRAPHQL_VALIDATION_FAILED", &wrong)]}),
            ));
        }
    };
    let (name, is_mutation, complexity) = (question.name.clone(), question.is_mutation(), question.complexity());
    world.journal.push(Entry {
        operation: name.clone(),
        is_mutation,
        variables: body["variables"].clone(),
        complexity,
        status: None,
        took_effect: false,
    });
    let entry = world.journal.len() - 1;
    let met = meet(world, &name, is_mutation);
    let before = met.is_some_and(|met| world.faults[met].when == When::Before);
    let viewer = key.map(|key| key.strip_prefix("Bearer ").unwrap_or(key)).and_then(|key| world.keys.get(key)).cloned();
    let mut answer = if before {
        json_answer(500, &json!({}))
    } else if let Some(viewer) = viewer {
        if world.requests.used >= world.requests.limit || world.complexity.used + complexity > world.complexity.limit {
            limited(world, Duration::from_secs(3600))
        } else {
            world.requests.used += 1;
            world.complexity.used += complexity;
            let mut body = execute(world, &question, &viewer);
            let failed = body.get("errors").is_some();
            world.journal[entry].took_effect = is_mutation && !failed;
            garble(&world.garbled, &mut body);
            // Linear answers a mutation that it refuses with 400.
            let answer = json_answer(if failed && is_mutation { 400 } else { 200 }, &body);
            if let Some(tape) = &mut world.tape {
                tape.push(answer.bytes.clone());
            }
            answer
        }
    } else {
        json_answer(401, &status_body(401))
    };
    let now = world.now();
    answer.headers.extend(limits(world, now, complexity));
    let delivery = match met {
        Some(met) => spoil(world, met, answer, now),
        None => Delivery::Whole(answer),
    };
    world.journal[entry].status = match &delivery {
        Delivery::Whole(answer) | Delivery::Truncated(answer) => Some(answer.status),
        Delivery::Silence | Delivery::Disconnect => None,
    };
    delivery
}

fn meet(world: &mut World, name: &str, is_mutation: bool) -> Option<usize> {
    let met = world.faults.iter().position(|fault| fault.concerns(name, is_mutation))?;
    let fault = &mut world.faults[met];
    if fault.skip > 0 {
        fault.skip -= 1;
        return None;
    }
    fault.times -= 1;
    Some(met)
}

fn spoil(world: &World, met: usize, right: Answer, now: Timestamp) -> Delivery {
    let date = ("date", http_date(now));
    let dated = |mut answer: Answer| {
        answer.headers.push(date.clone());
        Delivery::Whole(answer)
    };
    match &world.faults[met].instead {
        Instead::Status(status) => dated(json_answer(*status, &status_body(*status))),
        Instead::Errors(code, words) => {
            dated(json_answer(200, &json!({"data": null, "errors": [complaint(code, words)]})))
        }
        Instead::Partial => {
            let mut body: Value = serde_json::from_slice(&right.bytes).unwrap();
            body["errors"] = json!([complaint("INTERNAL_SERVER_ERROR", "a part could not be read")]);
            dated(json_answer(200, &body))
        }
        Instead::Html(status) => {
            let page = format!("<html><head><title>{status}</title></head><body>Bad gateway</body></html>");
            dated(Answer { status: *status, headers: Vec::new(), content_type: "text/html", bytes: page.into_bytes() })
        }
        Instead::RateLimited(wait) => {
            let mut answer = limited(world, *wait);
            let resets = whole_second(now).as_millisecond() + i64::try_from(wait.as_millis()).unwrap();
            answer.headers.push(("x-ratelimit-requests-limit", "2500".to_owned()));
            answer.headers.push(("x-ratelimit-requests-remaining", "0".to_owned()));
            answer.headers.push(("x-ratelimit-requests-reset", resets.to_string()));
            dated(answer)
        }
        Instead::TooMany => dated(json_answer(429, &json!({"message": "slow down"}))),
        Instead::Edited(edit) => {
            let mut body: Value = serde_json::from_slice(&right.bytes).unwrap();
            edit(&mut body);
            let bytes = serde_json::to_vec(&body).unwrap();
            Delivery::Whole(Answer { bytes, ..right })
        }
        Instead::Truncated => Delivery::Truncated(right),
        Instead::Disconnect => Delivery::Disconnect,
        Instead::Silence => Delivery::Silence,
    }
}

/// A file that somebody put into an issue: only for whoever has a key.
fn file_answer(world: &mut World, name: &str, key: Option<&str>) -> Answer {
    let known = key.is_some_and(|key| world.keys.contains_key(key));
    let (status, bytes) = match world.files.get(name) {
        _ if !known => (401, Vec::new()),
        Some(bytes) => (200, bytes.clone()),
        None => (404, Vec::new()),
    };
    Answer { status, headers: Vec::new(), content_type: "application/octet-stream", bytes }
}

fn limited(_: &World, _: Duration) -> Answer {
    json_answer(400, &json!({"errors": [complaint("RATELIMITED", "Rate limit exceeded")]}))
}

fn limits(world: &World, now: Timestamp, complexity: u64) -> Vec<(&'static str, String)> {
    let resets = (now + SignedDuration::from_hours(1)).as_millisecond().to_string();
    let left = |limit: &super::world::Limit| limit.limit.saturating_sub(limit.used).to_string();
    vec![
        ("date", http_date(now)),
        ("x-complexity", complexity.to_string()),
        ("x-ratelimit-requests-limit", world.requests.limit.to_string()),
        ("x-ratelimit-requests-remaining", left(&world.requests)),
        ("x-ratelimit-requests-reset", resets.clone()),
        ("x-ratelimit-complexity-limit", world.complexity.limit.to_string()),
        ("x-ratelimit-complexity-remaining", left(&world.complexity)),
        ("x-ratelimit-complexity-reset", resets),
    ]
}

/// Null where the schema says that there is always something.
fn garble(ids: &[String], value: &mut Value) {
    if ids.is_empty() {
        return;
    }
    match value {
        Value::Array(all) => all.iter_mut().for_each(|one| garble(ids, one)),
        Value::Object(fields) => {
            let hit = fields.get("id").and_then(Value::as_str).is_some_and(|id| ids.iter().any(|one| one == id));
            if hit && fields.contains_key("title") {
                fields.insert("title".to_owned(), Value::Null);
            }
            fields.values_mut().for_each(|one| garble(ids, one));
        }
        _ => {}
    }
}

fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap()
}

fn http_date(at: Timestamp) -> String {
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

fn json_answer(status: u16, body: &Value) -> Answer {
    let bytes = serde_json::to_vec(body).unwrap();
    Answer { status, headers: Vec::new(), content_type: "application/json; charset=utf-8", bytes }
}

fn response(answer: Answer, cut: bool) -> hyper::Response<Outgoing> {
    let mut builder = hyper::Response::builder().status(answer.status).header("content-type", answer.content_type);
    for (name, value) in &answer.headers {
        builder = builder.header(*name, value);
    }
    let length = answer.bytes.len();
    builder
        .header("content-length", length)
        .body(Outgoing { bytes: Some(answer.bytes.into()), cut, flushed: false })
        .unwrap()
}

/// A body that can end before its length is reached.
struct Outgoing {
    bytes: Option<Bytes>,
    cut: bool,
    /// Whether the first half has had its chance to leave.
    flushed: bool,
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.bytes.take() {
            Some(bytes) if self.cut => Poll::Ready(Some(Ok(Frame::data(bytes.slice(..bytes.len() / 2))))),
            Some(bytes) if !bytes.is_empty() => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None if self.cut && !self.flushed => {
                self.flushed = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            None if self.cut => Poll::Ready(Some(Err(std::io::Error::other("injected")))),
            _ => Poll::Ready(None),
        }
    }
}
