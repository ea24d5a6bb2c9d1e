//! What views cost: a picture of 2,000 tickets, and how often the state of 500 can be asked for.
//!
//! `cargo bench --bench http`. Prints figures; judges nothing. The server has one thread of its own, as a core would be.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dirigent::config::Settings;
use dirigent::config::policy::Policy;
use dirigent::config::server::ServerSettings;
use dirigent::domain::basis::Basis;
use dirigent::domain::ids::{TicketId, TicketKey};
use dirigent::domain::ticket::{Dispatchable, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::engine::event::Event;
use dirigent::engine::state::State;
use dirigent::engine::{Picture, step};
use dirigent::http::{HttpServer, Served};
use dirigent::launcher::environment::Secrets;
use dirigent::runtime::{Handle, Published, RunnerFolder, Snapshots, now};
use tokio::sync::{broadcast, mpsc, watch};

const ROUNDS: usize = 200;
const ASKING: Duration = Duration::from_secs(3);

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let (state, settings) = board(2_000);
    let policy = settings.policy("hash", false);
    let policy = Arc::new(policy);
    let published = || Arc::new(Published::new(Picture::of(&state, &policy, now()), policy.clone()));
    let (sender, _receiver) = watch::channel(published());
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        sender.send_replace(published());
        took.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    println!("a picture of 2,000 tickets, built and published: {:.2} ms (median of {ROUNDS})", support::median(took));

    let (state, settings) = board(500);
    let settings_of_500 = settings.clone();
    let policy = settings.policy("hash", false);
    let picture = Picture::of(&state, &policy, now());
    let (snapshots, seen) = watch::channel(Arc::new(Published::new(picture, Arc::new(policy))));
    let dir = tempfile::tempdir().unwrap();
    let folder = RunnerFolder {
        state_dir: dir.path().to_owned(),
        ledger: dir.path().join("ledger.db"),
        socket: dir.path().join("control.sock"),
    };
    let (inbox, _messages) = mpsc::channel(8);
    let handle = Handle {
        inbox,
        snapshots: Snapshots::new(seen),
        news: broadcast::channel(8).0,
        served_at: Arc::default(),
        refresh_waits: Arc::default(),
        meters: Arc::default(),
        deliveries: Arc::default(),
    };
    let server = ServerSettings { port: Some(0), ..ServerSettings::default() };
    let (told, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = HttpServer::open(&server, &folder).await.unwrap().unwrap();
            told.send(server.url().trim_start_matches("http://").to_owned()).unwrap();
            server.serve(&settings, "hash", Served { handle, folder, secrets: Secrets::default(), home: None }).await;
        });
    });
    let address = address.recv().unwrap();
    let asked: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(|| ask(&address))).collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    println!("state of 500 tickets: {:.0} requests a second, asked by 4 clients", asked as f64 / ASKING.as_secs_f64());

    let policy = Arc::new(settings_of_500.policy("hash", false));
    let alone = passes(&state, &policy, &snapshots);
    let over = AtomicBool::new(false);
    let (asked, beside) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(|| ask_at_pace(&address, &over))).collect();
        let beside = passes(&state, &policy, &snapshots);
        over.store(true, Ordering::Relaxed);
        (clients.into_iter().map(|client| client.join().unwrap()).sum::<f64>(), beside)
    });
    println!(
        "a pass of the scheduler over 500 tickets: {alone:.3} ms of processor time; while {asked:.0} requests a second are answered: {beside:.3} ms"
    );
    drop(snapshots);
}

/// What a pass takes of a processor, whoever else uses the machine: a tick and its picture.
fn passes(state: &State, policy: &Arc<Policy>, snapshots: &watch::Sender<Arc<Published>>) -> f64 {
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        let mut state = state.clone();
        let before = processor_time();
        let basis = Basis { asked_at: now(), after: Default::default() };
        let _ = step(&mut state, policy, now(), Event::PolledUnchanged { base: None, basis });
        snapshots.send_replace(Arc::new(Published::new(Picture::of(&state, policy, now()), policy.clone())));
        took.push((processor_time() - before) as f64 / 1e6);
        std::thread::sleep(Duration::from_millis(25));
    }
    support::median(took)
}

/// Of this thread, in nanoseconds.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// 250 times a second; how often it was.
fn ask_at_pace(address: &str, over: &AtomicBool) -> f64 {
    let mut client = Client::new(address);
    let began = Instant::now();
    let mut asked = 0;
    while !over.load(Ordering::Relaxed) {
        client.ask();
        asked += 1;
        let due = Duration::from_millis(4) * asked;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
    }
    f64::from(asked) / began.elapsed().as_secs_f64()
}

/// As often as it is answered.
fn ask(address: &str) -> usize {
    let mut client = Client::new(address);
    let (began, mut asked) = (Instant::now(), 0);
    while began.elapsed() < ASKING {
        client.ask();
        asked += 1;
    }
    asked
}

struct Client {
    stream: TcpStream,
    request: String,
    buffer: Vec<u8>,
}

impl Client {
    fn new(address: &str) -> Self {
        let request = format!("GET /api/v1/state HTTP/1.1\r\nHost: {address}\r\n\r\n");
        Self { stream: TcpStream::connect(address).unwrap(), request, buffer: vec![0; 1 << 20] }
    }

    fn ask(&mut self) {
        let Self { stream, request, buffer } = self;
        stream.write_all(request.as_bytes()).unwrap();
        let mut held = stream.read(buffer).unwrap();
        while !buffer[..held].windows(4).any(|four| four == b"\r\n\r\n") {
            held += stream.read(&mut buffer[held..]).unwrap();
        }
        let head = String::from_utf8_lossy(&buffer[..held.min(2048)]).to_lowercase();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        let start = head.find("\r\n\r\n").unwrap() + 4;
        let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
        let mut left = (start + length.parse::<usize>().unwrap()).saturating_sub(held);
        while left > 0 {
            let size = left.min(buffer.len());
            left -= stream.read(&mut buffer[..size]).unwrap();
        }
    }
}

fn board(tickets: usize) -> (State, Settings) {
    let settings = Settings::default();
    let policy = settings.policy("hash", false);
    let mut state = State::default();
    let tickets = (0..tickets).map(ticket).collect();
    let basis = Basis { asked_at: now(), after: Default::default() };
    let _ = step(&mut state, &policy, now(), Event::Polled { tickets, base: None, basis });
    (state, settings)
}

fn ticket(number: usize) -> Ticket {
    Ticket {
        id: TicketId::new(format!("t-{number}")),
        key: TicketKey::new(format!("t-{number}")),
        title: format!("A ticket with a title of the usual length, number {number}"),
        description: Some("Words. ".repeat(40)),
        priority: Some(2),
        state: "open".into(),
        branch_name: None,
        url: Some(format!("https://board.example/{number}")),
        assignee: None,
        author: None,
        labels: vec!["agent".into(), "bug".into()],
        blocked_by: Vec::new(),
        parent: None,
        dispatchable: Dispatchable::Yes,
        created_at: Some(Timestamp(1_700_000_000_000)),
        updated_at: None,
        native_ref: None,
        comments: Some(Vec::new()),
        state_changed: None,
        history: Default::default(),
    }
}
