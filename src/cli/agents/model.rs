//! A scripted model on loopback: an HTTP server that behaves like a model provider as far as the clients need it. Its script has two
//! steps: it calls a shell command that commits a file, then says a final message. It listens only on 127.0.0.1 and stops when it is
//! dropped.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::answers::{self, Act, Api};

/// The most bytes of a request body: more than any client sends in a conversation of two steps.
const LONGEST_BODY: u64 = 64 * 1024 * 1024;
const LONGEST_HEAD: u64 = 64 * 1024;

pub const COMMITTED_FILE: &str = "hello.txt";
const COMMIT: &str = "echo 'hello from the self-test' > hello.txt && git add hello.txt && \
     git -c user.name=self-test -c user.email=self-test@example.invalid commit -q -m 'Add hello.txt'";

/// The shell tools of the clients, each with the name of its command argument.
const SHELLS: [(&str, &str); 4] =
    [("exec_command", "cmd"), ("shell_command", "command"), ("Bash", "command"), ("bash", "command")];

/// Counts what the model has been sent so far.
#[derive(Debug, Default)]
pub struct SnapshotSource {
    pub requests: AtomicU32,
    /// Requests that carried the result of the shell command.
    pub results: AtomicU32,
}

pub struct Model {
    pub port: u16,
    pub seen: Arc<SnapshotSource>,
    serving: JoinHandle<()>,
}

impl Drop for Model {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Model {
    pub async fn start() -> io::Result<Model> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let seen = Arc::new(SnapshotSource::default());
        let serving = tokio::spawn(serve(listener, Arc::clone(&seen)));
        Ok(Model { port, seen, serving })
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

async fn serve(listener: TcpListener, seen: Arc<SnapshotSource>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let seen = Arc::clone(&seen);
        // Connection errors are ignored: the result of the run shows what went wrong.
        connections.spawn(async move { answer(stream, &seen).await.ok() });
        while connections.try_join_next().is_some() {}
    }
}

struct Request {
    method: String,
    path: String,
    body: Vec<u8>,
}

async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Request> {
    let mut head = stream.take(LONGEST_HEAD);
    let mut first = String::new();
    head.read_line(&mut first).await?;
    let mut words = first.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut length = 0;
    loop {
        let mut line = String::new();
        if head.read_line(&mut line).await? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<u64>().map_err(io::Error::other)?;
        }
    }
    let mut body = Vec::new();
    stream.take(length.min(LONGEST_BODY)).read_to_end(&mut body).await?;
    Ok(Request { method, path: path.split('?').next().unwrap_or_default().to_owned(), body })
}

async fn answer(stream: TcpStream, seen: &SnapshotSource) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let request = read(&mut stream).await?;
    let (kind, text) = reply(&request, seen);
    let body = if request.method == "HEAD" { "" } else { &text };
    // There is no content-length: the response ends with the connection.
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

fn reply(request: &Request, seen: &SnapshotSource) -> (&'static str, String) {
    const JSON: &str = "application/json";
    if request.method != "POST" {
        return (JSON, json!({"object": "list", "data": [{"id": "mock-model", "object": "model"}]}).to_string());
    }
    let Some(api) = Api::of_path(&request.path) else { return (JSON, json!({"input_tokens": 1}).to_string()) };
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let number = seen.requests.fetch_add(1, Ordering::Relaxed) + 1;
    let act = decide(api, &body, seen);
    if body.get("stream").and_then(Value::as_bool) == Some(true) {
        ("text/event-stream", answers::stream(api, &body, &act, number))
    } else {
        (JSON, answers::whole(api, &body, &act))
    }
}

fn decide(api: Api, body: &Value, seen: &SnapshotSource) -> Act {
    let tools = api.tools(body);
    let Some((shell, argument)) = SHELLS.iter().find(|(name, _)| tools.contains(name)) else {
        // A side question without tools, such as one for a title.
        return Act::Say("A title".to_owned());
    };
    if api.has_result(body) {
        seen.results.fetch_add(1, Ordering::Relaxed);
        return Act::Say(format!("Committed {COMMITTED_FILE}."));
    }
    let mut arguments = json!({ *argument: COMMIT });
    if *shell != "exec_command" {
        arguments["description"] = "Commit a file".into();
    }
    Act::Call { tool: (*shell).to_owned(), arguments }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_calls_the_shell_and_then_speaks() {
        let model = Model::start().await.unwrap();
        let ask = async |body: Value| {
            let mut stream = TcpStream::connect(("127.0.0.1", model.port)).await.unwrap();
            let body = body.to_string();
            let head = format!("POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut heard = String::new();
            stream.read_to_string(&mut heard).await.unwrap();
            heard
        };
        let tools = json!([{"type": "function", "function": {"name": "bash"}}]);
        let first =
            ask(json!({"stream": true, "tools": tools, "messages": [{"role": "user", "content": "Do it."}]})).await;
        assert!(first.contains("git add hello.txt"), "{first}");
        let second =
            ask(json!({"stream": true, "tools": tools, "messages": [{"role": "tool", "content": "ok"}]})).await;
        assert!(second.contains("Committed hello.txt.") && second.ends_with("data: [DONE]\n\n"), "{second}");
        assert_eq!(model.seen.results.load(Ordering::Relaxed), 1);
        assert_eq!(model.seen.requests.load(Ordering::Relaxed), 2);
    }
}
