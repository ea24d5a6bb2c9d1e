//! A plain HTTP client, so that the loopback GitHub is tested without the adapter that it is made to test.

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use crate::github::Hub;

pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// The text, or why it did not come whole.
    pub text: Result<String, String>,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(self.text.as_ref().unwrap()).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Sends one request; an error if no answer came, also not within ten seconds.
pub fn send(url: &str, method: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Result<Reply, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let whole = async {
        let uri: hyper::Uri = url.parse().unwrap();
        let stream = tokio::net::TcpStream::connect(uri.authority().unwrap().as_str()).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let place = uri.path_and_query().map_or("/", |place| place.as_str());
        let mut request = hyper::Request::builder().method(method).uri(place).header("host", "127.0.0.1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let bytes = body.map(|body| serde_json::to_vec(body).unwrap()).unwrap_or_default();
        let request = request.body(Full::<Bytes>::from(bytes)).unwrap();
        let (head, body) = sender.send_request(request).await.map_err(|wrong| wrong.to_string())?.into_parts();
        let text = body.collect().await.map_err(|wrong| wrong.to_string());
        let text = text.map(|whole| String::from_utf8_lossy(&whole.to_bytes()).into_owned());
        let pair = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
            (name.to_string(), value.to_str().unwrap_or("").to_owned())
        };
        Ok(Reply { status: head.status.as_u16(), headers: head.headers.iter().map(pair).collect(), text })
    };
    runtime.block_on(async {
        tokio::time::timeout(std::time::Duration::from_secs(10), whole).await.map_err(|_| "no answer".to_owned())?
    })
}

/// Asks as the holder of a token.
pub fn ask(hub: &Hub, token: &str, method: &str, path: &str, body: Option<Value>) -> Reply {
    let url = if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", hub.api()) };
    let bearer = format!("Bearer {token}");
    let headers =
        [("authorization", bearer.as_str()), ("user-agent", "test"), ("accept", "application/vnd.github+json")];
    send(&url, method, &headers, body.as_ref()).unwrap()
}

/// Asks below `/repos/acme/widgets` as `robot`.
pub fn robot(hub: &Hub, method: &str, path: &str, body: Option<Value>) -> Reply {
    ask(hub, "robot-token", method, &format!("/repos/acme/widgets{path}"), body)
}

/// A GraphQL request as `robot`.
pub fn query(hub: &Hub, document: &str, variables: Value) -> Value {
    let body = json!({"query": document, "variables": variables});
    let reply = ask(hub, "robot-token", "POST", "/graphql", Some(body));
    assert_eq!(reply.status, 200, "{:?}", reply.text);
    reply.json()
}
