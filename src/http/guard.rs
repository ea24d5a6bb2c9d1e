//! Decides who may make a request, by the host name in it, the process that connects, the page it comes from, and the token.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, LOCATION, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Site;
use super::error::ApiError;
use crate::runtime::Standing;

/// How many changes one token may request at once, and how many more each second.
const BURST: f64 = 30.0;
const PER_SECOND: f64 = 5.0;
/// The same limits for wrong tokens, over all clients together.
const WRONG_BURST: f64 = 10.0;
const WRONG_PER_SECOND: f64 = 1.0;

/// What the guard knows about a connection.
#[derive(Debug, Clone)]
pub struct Caller {
    pub standing: Arc<Standing>,
    pub ours: SocketAddr,
}

/// The name of the token that the caller presented, which allows changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer(pub String);

/// Runs before every route: checks the caller, and sets security headers on the response.
pub async fn at_the_door(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let mut response = match let_in(&site, &request) {
        Ok(()) => next.run(request).await,
        // A person in a browser is sent to the page that asks for a token.
        Err(error) if error.status == StatusCode::UNAUTHORIZED && wants_a_page(&request) => to_login(request.uri()),
        Err(error) => error.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn let_in(site: &Site, request: &Request) -> Result<(), ApiError> {
    let path = request.uri().path();
    let caller = caller(request)?;
    if let Standing::Worker(why) = caller.standing.as_ref() {
        site.refusals.note(None, path, why);
        return Err(ApiError::forbidden(first_line(why)));
    }
    // Webhook senders sign what they send, and use a host name that their proxy chose.
    if path.starts_with("/webhooks/") {
        return Ok(());
    }
    if !site.names.is_one(&host_of(request.headers(), request.uri())?, caller.ours) {
        let message = "this server is not called that; add the name to server.names if it is right";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "wrong_host", message));
    }
    // The login page and its assets show nothing of the board.
    let is_open = matches!(path, "/healthz" | "/readyz" | "/login") || path.starts_with("/assets/");
    if site.names.wide && !is_open {
        bearer(site, request.headers(), request.method())?;
    }
    Ok(())
}

fn wants_a_page(request: &Request) -> bool {
    let accepted = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    request.method() == Method::GET && accepted.split(',').any(|kind| kind.trim().starts_with("text/html"))
}

/// Redirects to the login page. The path is passed as a parameter, so characters with a meaning in parameters are escaped.
fn to_login(uri: &Uri) -> Response {
    let path = uri.path().replace('%', "%25").replace('&', "%26").replace('+', "%2B");
    let place = HeaderValue::from_str(&format!("/login?to={path}")).unwrap_or(HeaderValue::from_static("/login"));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(LOCATION, place);
    response
}

/// Runs before every route that changes something: checks origin, token, caller and content type, and limits the rate.
pub async fn before_a_change(State(site): State<Arc<Site>>, mut request: Request, next: Next) -> Response {
    match may_change(&site, &request) {
        Ok(bearer) => {
            request.extensions_mut().insert(bearer);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

fn may_change(site: &Site, request: &Request) -> Result<Bearer, ApiError> {
    let caller = caller(request)?;
    same_origin(request)?;
    let bearer = bearer(site, request.headers(), request.method())?;
    if let Some(why) = caller.standing.objection(true) {
        site.refusals.note(None, request.uri().path(), why);
        return Err(ApiError::forbidden(first_line(why)));
    }
    if !is_json(request.headers()) {
        let message = "the body has to be JSON: send `Content-Type: application/json`";
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "not_json", message));
    }
    site.pace.take(&bearer.0, BURST, PER_SECOND)?;
    Ok(bearer)
}

/// Runs before routes that change nothing but cost something: refuses requests by pages of other sites, and limits the rate.
pub async fn before_a_nudge(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let allowed = same_origin(&request).and_then(|()| site.pace.take("", BURST, PER_SECOND));
    match allowed {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn caller(request: &Request) -> Result<&Caller, ApiError> {
    request.extensions().get().ok_or_else(|| ApiError::internal("it is not known who asks"))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text)
}

/// Returns the host name that the client requested. HTTP/1.1 requires exactly one.
fn host_of(headers: &HeaderMap, uri: &Uri) -> Result<String, ApiError> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let host = match (uri.authority(), host) {
        (Some(authority), _) => authority.as_str(),
        (None, Some(host)) => host,
        (None, None) => return Err(ApiError::bad_request("the request has no Host")),
    };
    if hosts.next().is_some() {
        return Err(ApiError::bad_request("the request has more than one Host"));
    }
    Ok(host.to_ascii_lowercase())
}

/// Refuses requests that a browser sends for a page of another site. A client that sends neither header is not a browser.
fn same_origin(request: &Request) -> Result<(), ApiError> {
    let refused = || {
        let message = "a page of another site asks for this, and that is never carried out";
        ApiError::new(StatusCode::FORBIDDEN, "cross_origin", message)
    };
    let headers = request.headers();
    if headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none") {
        return Err(refused());
    }
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let host = host_of(headers, request.uri())?;
    let origin = origin.to_str().map_err(|_| refused())?.to_ascii_lowercase();
    let theirs = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    if theirs == Some(host.as_str()) { Ok(()) } else { Err(refused()) }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()) else { return false };
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn bearer(site: &Site, headers: &HeaderMap, method: &Method) -> Result<Bearer, ApiError> {
    let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    // A browser that follows a link cannot add a header, so for reading the token may be in a cookie.
    let is_look = method == Method::GET || method == Method::HEAD;
    let Some(shown) = shown.or_else(|| if is_look { cookie(headers) } else { None }) else {
        return Err(ApiError::unauthorized("this needs `Authorization: Bearer TOKEN`; `dirigent token` prints it"));
    };
    match site.tokens.name_of(shown) {
        Some(name) => Ok(Bearer(name.to_owned())),
        None => {
            site.pace.take("a wrong token", WRONG_BURST, WRONG_PER_SECOND)?;
            Err(ApiError::unauthorized("that token is not known here"))
        }
    }
}

/// The cookie that the login page sets to the token that a person entered.
pub const TOKEN_COOKIE: &str = "dirigent-token";

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let pairs =
        headers.get_all("cookie").iter().filter_map(|cookie| cookie.to_str().ok()).flat_map(|cookie| cookie.split(';'));
    pairs.filter_map(|pair| pair.trim().split_once('=')).find(|(name, _)| *name == TOKEN_COOKIE).map(|(_, value)| value)
}

/// The host names under which this server answers requests.
#[derive(Debug, Clone)]
pub struct ServedNames {
    /// The names, some of them with a port.
    known: Vec<String>,
    port: u16,
    /// Whether other machines can reach the server. Then nothing is shown without a token.
    pub wide: bool,
}

impl ServedNames {
    pub fn new(host: &str, names: &[String], port: u16, wide: bool) -> Self {
        let known = [host].into_iter().chain(["localhost", "127.0.0.1", "[::1]"]).map(str::to_owned);
        let known = known.chain(names.iter().cloned()).map(|name| name.to_ascii_lowercase()).collect();
        Self { known, port, wide }
    }

    fn is_one(&self, host: &str, ours: SocketAddr) -> bool {
        let with_port = format!(":{}", self.port);
        let bare = host.strip_suffix(with_port.as_str()).unwrap_or(host);
        let address = ours.ip().to_canonical();
        let literal = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
        bare == literal || self.known.iter().any(|known| known == bare || known == host)
    }
}

/// A rate limiter with one token bucket per name.
#[derive(Debug, Default)]
pub struct RequestPace(Mutex<BTreeMap<String, (f64, Instant)>>);

impl RequestPace {
    pub fn take(&self, name: &str, burst: f64, per_second: f64) -> Result<(), ApiError> {
        let now = Instant::now();
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, at) = left.entry(name.to_owned()).or_insert((burst, now));
        *tokens = (*tokens + now.duration_since(*at).as_secs_f64() * per_second).min(burst);
        *at = now;
        if *tokens < 1.0 {
            let wait = Duration::from_secs_f64((1.0 - *tokens) / per_second);
            return Err(ApiError::too_many(wait.as_secs().max(1)));
        }
        *tokens -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_knows_its_names_with_and_without_its_port() {
        let names = ServedNames::new("0.0.0.0", &["board.example".to_owned()], 4041, true);
        let ours: SocketAddr = "192.0.2.7:4041".parse().unwrap();
        for known in [
            "localhost:4041",
            "127.0.0.1:4041",
            "[::1]:4041",
            "localhost",
            "192.0.2.7:4041",
            "board.example",
            "board.example:4041",
        ] {
            assert!(names.is_one(known, ours), "{known}");
        }
        for other in
            ["evil.example", "evil.example:4041", "localhost:80", "192.0.2.8:4041", "", "localhost:4041.evil.example"]
        {
            assert!(!names.is_one(other, ours), "{other}");
        }
    }

    #[test]
    fn a_burst_is_let_through_and_then_it_is_slow() {
        let pace = RequestPace::default();
        assert!((0..3).all(|_| pace.take("ada", 3.0, 0.001).is_ok()));
        let error = pace.take("ada", 3.0, 0.001).unwrap_err();
        assert_eq!(error.code, "too_many_requests");
        assert!(pace.take("bob", 3.0, 0.001).is_ok(), "others are not held back by it");
    }
}
