//! Listening: one place that binds, accepts and gives up on connections. Whoever is slow, silent or one too many is sent away
//! before it costs anything.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use thiserror::Error;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::guard::Caller;
use super::patient_stream::PatientStream;
use crate::launcher::sockets;
use crate::runtime::standing_over_tcp;

/// Connections at once; events are fewer, so that there is always room for a question.
pub const CONNECTIONS: usize = 1280;
/// For the head of a request, also on a connection that was quiet.
const HEAD_TIME: Duration = Duration::from_secs(20);
/// For somebody who takes nothing of what is sent.
const WRITE_TIME: Duration = Duration::from_secs(30);
const LARGEST_HEAD: usize = 32 << 10;
/// Before another connection is accepted when one could not be.
const BREATH: Duration = Duration::from_millis(100);
/// How long answers that are being given when the runner ends may take.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

#[derive(Debug, Error)]
pub enum ListenError {
    #[error(
        "{address} is in use already{by}\n  fix: choose another port (`--port`, `server.port`; 0 takes any free one), or end that program"
    )]
    InUse { address: SocketAddr, by: String },
    #[error("{address} cannot be listened at: {source}\n  fix: choose another `server.port` or `server.host`")]
    Bind { address: SocketAddr, source: io::Error },
    #[error(
        "the token of the API cannot be kept in {file}: {source}\n  fix: put right that file, or write `server.token: $NAME`"
    )]
    Token { file: String, source: io::Error },
    #[error("`server.host` is `{0}`, which is not an address")]
    Host(String),
}

pub async fn bind(address: SocketAddr) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse { address, by: used_by(address) },
        _ => ListenError::Bind { address, source },
    })
}

/// By whom, where the system tells.
fn used_by(address: SocketAddr) -> String {
    let pid = sockets::listener(address).and_then(|socket| sockets::holder(socket.inode, &[]));
    match pid.map(|pid| (pid, sockets::program_of(pid))) {
        Some((pid, Some(program))) => format!(" by `{program}` (pid {pid})"),
        Some((pid, None)) => format!(" (pid {pid})"),
        None => String::new(),
    }
}

/// Answers until `over` resolves.
pub async fn serve(listener: TcpListener, router: Router, over: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let known = Arc::new(Mutex::new(None));
    let mut conversations = JoinSet::new();
    let (ending, _) = watch::channel(false);
    tokio::pin!(over);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = conversations.join_next() => continue,
            () = &mut over => break,
        };
        let Ok((stream, theirs)) = accepted else {
            // Too many open files, say. It must not be the end of listening.
            tokio::time::sleep(BREATH).await;
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            conversations.spawn(send_away(stream));
            continue;
        };
        let (router, known, ending) = (router.clone(), known.clone(), ending.subscribe());
        conversations.spawn(async move {
            converse(stream, theirs, router, known, ending).await;
            drop(place);
        });
    }
    drop(listener);
    ending.send_replace(true);
    let all = async { while conversations.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_ANSWERS, all).await;
}

async fn send_away(mut stream: TcpStream) {
    const FULL: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 5\r\n\
        Connection: close\r\nContent-Length: 74\r\n\r\n\
        {\"error\":{\"code\":\"unavailable\",\"message\":\"too many connections are open\"}}";
    let _ = tokio::time::timeout(BREATH, stream.write_all(FULL.as_bytes())).await;
}

async fn converse(
    stream: TcpStream,
    theirs: SocketAddr,
    router: Router,
    known: Arc<Mutex<Option<i32>>>,
    mut ending: watch::Receiver<bool>,
) {
    let Ok(ours) = stream.local_addr() else { return };
    let _ = stream.set_nodelay(true);
    // Who it is comes before what they say.
    let asked = tokio::task::spawn_blocking(move || standing_over_tcp(ours, theirs, &known)).await;
    let Ok(standing) = asked else { return };
    let caller = Caller { standing: Arc::new(standing), ours };
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(caller.clone());
        router.call(request.map(Body::new))
    });
    let stream = TokioIo::new(PatientStream::new(stream, WRITE_TIME));
    let talking = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(stream, service);
    tokio::pin!(talking);
    // Whatever goes wrong here is the other end's affair.
    tokio::select! {
        _ = &mut talking => {}
        () = until_true(&mut ending) => {
            talking.as_mut().graceful_shutdown();
            let _ = talking.await;
        }
    }
}

/// Also where nobody is left who could make it true.
pub async fn until_true(flag: &mut watch::Receiver<bool>) {
    let _ = flag.wait_for(|flag| *flag).await;
}
