//! Binds the port, accepts connections and gives up on those that cost too much: silent ones, slow ones, and more than the limit.

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

/// Limit of open connections. Clients that follow events are limited to fewer, so that there is always room for other requests.
pub const CONNECTIONS: usize = 1280;
/// Time limit for the head of a request, also on a connection that was idle before.
const HEAD_TIME: Duration = Duration::from_secs(20);
/// Time limit for a client that reads nothing of what is sent.
const WRITE_TIME: Duration = Duration::from_secs(30);
const LARGEST_HEAD: usize = 32 << 10;
/// Pause before the next try after a connection could not be accepted.
const BREATH: Duration = Duration::from_millis(100);
/// Time limit for responses that are still being sent when the runner stops.
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

/// Returns which program uses the address, as an ending for the error message. Empty if the system does not tell.
fn used_by(address: SocketAddr) -> String {
    let pid = sockets::listener(address).and_then(|socket| sockets::holder(socket.inode, &[]));
    match pid.map(|pid| (pid, sockets::program_of(pid))) {
        Some((pid, Some(program))) => format!(" by `{program}` (pid {pid})"),
        Some((pid, None)) => format!(" (pid {pid})"),
        None => String::new(),
    }
}

/// Serves connections until `over` resolves.
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
            // For example, too many open files. Listening must go on.
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
    // Find out which process connects before reading its request.
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
    // An error here concerns only this connection, and its client.
    tokio::select! {
        _ = &mut talking => {}
        () = until_true(&mut ending) => {
            talking.as_mut().graceful_shutdown();
            let _ = talking.await;
        }
    }
}

/// Waits until the flag is true, or until nothing can set it any more.
pub async fn until_true(flag: &mut watch::Receiver<bool>) {
    let _ = flag.wait_for(|flag| *flag).await;
}
