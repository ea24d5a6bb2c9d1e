//! The client that the GitHub tracker and the GitHub forge share: one connection pool, one pace (its adherence to GitHub's limits),
//! one set of errors.
//!
//! It knows nothing about issues or pull requests. Paths are those of GitHub's documentation (`/repos/{owner}/{name}/issues`); the
//! adapters interpret the responses. The client does not retry: the caller repeats a failed read, and a write whose response was
//! lost is [`GithubError::MaybeDone`], which the caller looks up before repeating it.

mod access;
mod answer;
mod error;
mod etags;
mod graphql;
mod pace;
mod pages;
mod renamed;
mod shared_pace;
mod standing;
mod token;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use secrecy::SecretString;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use access::{Access, Credential};
pub use answer::{Fetched, Unless};
pub use error::{FieldFault, GithubError, LimitKind, Rejection};
pub use graphql::{GraphqlAnswer, GraphqlFault};
pub use pace::{Purpose, Spent};
pub use pages::Pages;
pub use standing::{PermitGrounds, holds as permit_holds, while_it_holds};
pub use token::Granted;

use access::Addresses;
use answer::read_written;
use etags::EtagCache;
use pace::Pace;
use renamed::Renamed;
use token::TokenSource;
use transport::{Ask, Transport};

/// A client for one GitHub server and one credential. Clones share everything.
#[derive(Clone)]
pub struct Github {
    parts: Arc<Parts>,
}

struct Parts {
    addresses: Addresses,
    transport: Transport,
    token: TokenSource,
    pace: Arc<Pace>,
    etags: EtagCache,
    renamed: Renamed,
}

impl Github {
    /// Makes a client. Nothing is sent before the first request.
    pub fn new(access: Access) -> Result<Self, GithubError> {
        Self::at_pace(access, Arc::default())
    }

    /// Like `new`, but shares its pace with all other clients of this process that have the same access.
    pub fn in_step(access: Access) -> Result<Self, GithubError> {
        let pace = shared_pace::pace_of(&access);
        Self::at_pace(access, pace)
    }

    fn at_pace(access: Access, pace: Arc<Pace>) -> Result<Self, GithubError> {
        let addresses = Addresses::of(access.api_url.as_deref())?;
        let transport = Transport::new(&addresses, access.timeout);
        let token = TokenSource::new(access.credential)?;
        let parts =
            Parts { addresses, transport, token, pace, etags: EtagCache::default(), renamed: Renamed::default() };
        Ok(Self { parts: Arc::new(parts) })
    }

    /// Reads one object. An object that was read before and has not changed does not count against the primary limit.
    pub async fn get<T: DeserializeOwned>(&self, purpose: Purpose, path: &str) -> Result<T, GithubError> {
        self.get_cached(purpose, path).await?.read()
    }

    /// Reads all items of all pages. If one page fails, the whole call fails.
    pub async fn list<T: DeserializeOwned>(&self, purpose: Purpose, path: &str) -> Result<Vec<T>, GithubError> {
        let mut pages = self.pages(purpose, path);
        let mut all = Vec::new();
        while let Some(page) = pages.next().await? {
            all.extend(page.read::<Vec<T>>()?);
        }
        Ok(all)
    }

    /// Reads a list page by page, for lists that are too large to hold in memory as a whole.
    pub fn pages(&self, purpose: Purpose, path: &str) -> Pages {
        Pages::new(self.clone(), purpose, path)
    }

    /// Reads the pages after one that was already read.
    pub fn pages_after(&self, purpose: Purpose, page: &Fetched) -> Result<Pages, GithubError> {
        Pages::after(self.clone(), purpose, page)
    }

    /// Reads one response, unless it is still the one that `etag` stands for. Does not use the cache: the caller keeps the etag.
    pub async fn get_unless(&self, purpose: Purpose, path: &str, etag: Option<&str>) -> Result<Unless, GithubError> {
        let answer = self.send(purpose, &Ask::get(path, etag)).await?;
        match answer.status {
            304 => Ok(Unless::Unchanged { date: answer.date() }),
            _ => Ok(Unless::Fetched(answer.into())),
        }
    }

    /// Sends a request that changes something, once, and returns its response.
    pub async fn write<T: DeserializeOwned>(
        &self,
        purpose: Purpose,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync + ?Sized)>,
    ) -> Result<T, GithubError> {
        let answer = self.send(purpose, &Ask::write(method, path, body)?).await?;
        read_written(&answer.body)
    }

    /// Like `write`, for requests whose response is empty or not needed.
    pub async fn write_blindly(
        &self,
        purpose: Purpose,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync + ?Sized)>,
    ) -> Result<(), GithubError> {
        self.send(purpose, &Ask::write(method, path, body)?).await.map(|_| ())
    }

    /// Downloads a file that the API offers, such as a log, of at most `longest` bytes. The file may be on another host: the
    /// credential is sent to the API's own host only, and no longer once a redirect has left that host.
    pub async fn download(&self, purpose: Purpose, path: &str, longest: usize) -> Result<Vec<u8>, GithubError> {
        let mut question = Ask::get(path, None);
        for _ in 0..transport::MOST_REDIRECTS {
            let answer = self.send_once(purpose, &question.clone().no_longer_than(longest)).await?;
            let Some(next) = answer.redirect() else { return answer.checked(false).map(|answer| answer.body) };
            let own = self.parts.addresses.path_of(&next).filter(|_| !question.is_foreign());
            question = own.map_or_else(|| Ask::foreign(&next), |path| Ask::get(&path, None));
        }
        Err(GithubError::Unreadable(format!("{path} leads from one address to the next and to no file")))
    }

    /// Downloads a public file of at most `longest` bytes, without the credential. Every address, including each redirect target,
    /// must pass `allowed`.
    pub async fn fetch_public(
        &self,
        purpose: Purpose,
        url: &str,
        longest: usize,
        allowed: impl Fn(&str) -> bool + Send + Sync,
    ) -> Result<Vec<u8>, GithubError> {
        let mut url = url.to_owned();
        for _ in 0..transport::MOST_REDIRECTS {
            if !allowed(&url) {
                return Err(GithubError::Unreadable(format!("it leads to {url}, which is not a host of GitHub's")));
            }
            let answer = self.send_once(purpose, &Ask::foreign(&url).no_longer_than(longest)).await?;
            match answer.redirect() {
                Some(next) => url = absolute(&url, &next),
                None => return answer.checked(false).map(|answer| answer.body),
            }
        }
        Err(GithubError::Unreadable(format!("{url} leads from one address to the next and to no file")))
    }

    /// Returns the current token, for git. Callers request it each time, because the token of an app lives for an hour.
    pub async fn token(&self) -> Result<SecretString, GithubError> {
        self.parts.token.current(&self.parts.transport, &self.parts.addresses).await
    }

    /// Returns the permissions of an app's installation. `None` for a token, for which GitHub does not report them.
    pub async fn permissions(&self) -> Result<Option<Granted>, GithubError> {
        self.parts.token.permissions(&self.parts.transport, &self.parts.addresses).await
    }

    /// Returns scheme and host of a GitHub Enterprise server. `None` for github.com.
    pub fn host(&self) -> Option<(String, String)> {
        self.parts.addresses.own_host()
    }

    /// Whether the credential is a GitHub App, and so an account of its own.
    pub fn is_app(&self) -> bool {
        self.parts.token.is_app()
    }

    /// Returns the number of requests so far and what is left of the limits.
    pub fn spent(&self) -> Spent {
        self.parts.pace.spent()
    }

    async fn get_cached(&self, purpose: Purpose, path: &str) -> Result<Fetched, GithubError> {
        let known = self.parts.etags.find(path);
        let etag = known.as_ref().and_then(|known| known.etag.clone());
        let answer = self.send(purpose, &Ask::get(path, etag.as_deref())).await?;
        if let (304, Some(known)) = (answer.status, known) {
            return Ok(Fetched { date: answer.date(), ..known });
        }
        let fetched = Fetched::from(answer);
        self.parts.etags.keep(path, &fetched);
        Ok(fetched)
    }

    /// Sends a request, following the redirect of a renamed repository to its new name.
    async fn send(&self, purpose: Purpose, question: &Ask) -> Result<answer::Exchanged, GithubError> {
        let mut question = self.parts.renamed.apply(question);
        for _ in 0..transport::MOST_REDIRECTS {
            let answer = self.send_once(purpose, &question).await?;
            if !matches!(answer.status, 301 | 302 | 307 | 308) {
                return answer.checked(question.writes());
            }
            let to = answer.location().unwrap_or_default();
            question = self.follow(purpose, &question, &to).await?;
        }
        Err(GithubError::Unreadable(format!("{} leads from one address to the next", question.path())))
    }

    /// Follows a redirect if it leads to the same thing in the same repository under its new name. Anything else is an error.
    async fn follow(&self, purpose: Purpose, question: &Ask, to: &str) -> Result<Ask, GithubError> {
        let moved = || GithubError::Moved(to.to_owned());
        let target = self.parts.addresses.path_of(to).ok_or_else(moved)?;
        let asked = renamed::RepoPath::read(question.path()).ok_or_else(moved)?;
        let target = renamed::RepoPath::read(&target).filter(|target| target.rest == asked.rest).ok_or_else(moved)?;
        // A transferred issue gives the same redirect as a renamed repository, so the repository itself is requested too.
        let repository = self.send_once(purpose, &Ask::get(&asked.repository(), None)).await?;
        let now = repository.location().and_then(|to| self.parts.addresses.path_of(&to)).unwrap_or_default();
        if renamed::RepoPath::read(&now).map(|now| now.repository()) != Some(target.repository()) {
            return Err(moved());
        }
        tracing::warn!(from = asked.repository(), to = target.repository(), "the repository has another name now");
        self.parts.renamed.note(asked.repository(), target.repository());
        Ok(self.parts.renamed.apply(question))
    }

    /// Sends a request. If the token of an app's installation is refused, a new token is made and the request is sent once more; a
    /// refused request has changed nothing.
    async fn send_once(&self, purpose: Purpose, question: &Ask) -> Result<answer::Exchanged, GithubError> {
        let answer = self.exchange(purpose, question).await?;
        if answer.status != 401 || question.is_foreign() || !self.is_app() {
            return Ok(answer);
        }
        tracing::info!("GitHub refuses the installation's token; it is made anew");
        self.exchange(purpose, question).await
    }

    async fn exchange(&self, purpose: Purpose, question: &Ask) -> Result<answer::Exchanged, GithubError> {
        let Parts { addresses, transport, token, pace, .. } = &*self.parts;
        let _turn = pace.admit(purpose, question).await?;
        let credential = match question.is_foreign() {
            true => None,
            false => Some(token.current(transport, addresses).await?),
        };
        if question.writes() && !standing::holds() {
            return Err(GithubError::Withdrawn);
        }
        let answer = transport.exchange(addresses, question, credential.as_ref()).await;
        // A response of another host says nothing about GitHub's limits or the token.
        if let (Ok(answer), false) = (&answer, question.is_foreign()) {
            pace.note(answer);
            if answer.status == 401 {
                token.forget();
            }
        }
        answer
    }
}

/// The default time limit of one exchange. Shorter than the time limit of a lane (an adapter's queue of calls), so that the real
/// error is reported.
pub const PATIENCE: Duration = Duration::from_secs(25);

/// Resolves the target of a redirect against the address `url` that sent it.
fn absolute(url: &str, to: &str) -> String {
    if !to.starts_with('/') || to.starts_with("//") {
        return to.to_owned();
    }
    let host_at = url.find("://").map_or(0, |at| at + 3);
    let path_at = url[host_at..].find('/').map_or(url.len(), |at| host_at + at);
    format!("{}{to}", &url[..path_at])
}

/// Encodes one segment of a path, such as a label's name or a login.
pub fn segment(text: &str) -> String {
    encode(text, |byte| matches!(byte, b'-' | b'.' | b'_' | b'~'))
}

/// Appends an encoded query to a path.
pub fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    let encoded = |text: &str| encode(text, |byte| matches!(byte, b'-' | b'.' | b'_' | b'~' | b':'));
    let pairs: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

fn encode(text: &str, plain: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || plain(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
