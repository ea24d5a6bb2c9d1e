//! Two loopback sockets and a thread that serves them until the handle is dropped.

use std::net::TcpListener;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;

use crate::github::state::World;

use super::dispatch;
use super::exchange::{Answer, Body, Delivery, Request};

pub type Shared = Arc<Mutex<World>>;

/// The serving thread; dropping it ends it.
pub struct Listener {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Which socket a request came in at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Door {
    Api,
    Files,
}

impl Listener {
    pub fn start(world: Shared, api: TcpListener, files: TcpListener) -> Self {
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = accept(world.clone(), api, Door::Api) => {}
                    () = accept(world, files, Door::Files) => {}
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

async fn accept(world: Shared, socket: TcpListener, door: Door) {
    socket.set_nonblocking(true).unwrap();
    let socket = tokio::net::TcpListener::from_std(socket).unwrap();
    while let Ok((stream, _)) = socket.accept().await {
        let world = world.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request| serve(world.clone(), door, request));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

type Sent = Result<hyper::Response<Outgoing>, std::io::Error>;

async fn serve(world: Shared, door: Door, request: hyper::Request<Incoming>) -> Sent {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return Err(std::io::Error::other("the client went away")) };
    let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let request = Request {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or("").to_owned(),
        headers: head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body: body.to_bytes().to_vec(),
    };
    let what = format!("{} {}", request.method, request.path);
    let shared = world.clone();
    // Handlers run git and hold a lock, so they must not stand in the way of the other connections.
    let handled = tokio::task::spawn_blocking(move || dispatch::handle(&shared, door, request)).await;
    match handled {
        Ok(Delivery::Whole(answer)) => Ok(response(answer, false)),
        Ok(Delivery::Truncated(answer)) => Ok(response(answer, true)),
        Ok(Delivery::Silence) => std::future::pending().await,
        Ok(Delivery::Disconnect) => Err(std::io::Error::other("injected")),
        Err(panicked) => {
            let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
            world.violate(format!("{what}: the handler panicked: {panicked}"));
            Ok(response(Answer::general(500, "the loopback GitHub panicked"), false))
        }
    }
}

fn response(answer: Answer, cut: bool) -> hyper::Response<Outgoing> {
    let mut builder = hyper::Response::builder().status(answer.status);
    for (name, value) in answer.headers.iter().filter(|(name, _)| name != "x-here") {
        builder = builder.header(name, value);
    }
    let bytes = match answer.body {
        Body::Empty => Vec::new(),
        Body::Json(value) => {
            builder = builder.header("content-type", "application/json; charset=utf-8");
            serde_json::to_vec(&value).unwrap()
        }
        Body::Raw { content_type, bytes } => {
            if !content_type.is_empty() {
                builder = builder.header("content-type", content_type);
            }
            bytes
        }
    };
    builder.body(Outgoing { length: bytes.len(), bytes: Some(bytes.into()), cut, flushed: false }).unwrap()
}

/// A body that can end before its length is reached.
struct Outgoing {
    length: usize,
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

    fn is_end_stream(&self) -> bool {
        !self.cut && self.bytes.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length as u64)
    }
}
