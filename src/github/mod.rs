//! The client that the GitHub tracker and the GitHub forge share: one connection pool, one pace, one way to tell errors apart.
//!
//! Nothing here knows what an issue or a pull request is. Paths are those of GitHub's documentation (`/repos/{owner}/{name}/issues`); who may
//! read the answers is the adapters' affair. Nothing is ever sent twice: a read that failed is asked again by whoever wants it, and a
//! write whose answer was lost is [`GithubError::MaybeDone`], to be looked for before it is repeated.

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
pub use standing::{PermitGrounds, while_it_holds};
pub use token::Granted;

use access::Addresses;
use answer::read_written;
use etags::EtagCache;
use pace::Pace;
use renamed::Renamed;
use token::TokenSource;
use transport::{Ask, Transport};

/// A GitHub that we have access to. Clones share everything.
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
    /// Nothing is sent before the first question.
    pub fn new(access: Access) -> Result<Self, GithubError> {
        Self::at_pace(access, Arc::default())
    }

    /// The same, at one pace with every other client of this program that has the same access.
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

    /// One object. What was read before and has not changed costs nothing of the primary limit.
    pub async fn get<T: DeserializeOwned>(&self, purpose: Purpose, path: &str) -> Result<T, GithubError> {
        self.get_cached(purpose, path).await?.read()
    }

    /// Every item of every page, or an error: never a part.
    pub async fn list<T: DeserializeOwned>(&self, purpose: Purpose, path: &str) -> Result<Vec<T>, GithubError> {
        let mut pages = self.pages(purpose, path);
        let mut all = Vec::new();
        while let Some(page) = pages.next().await? {
            all.extend(page.read::<Vec<T>>()?);
        }
        Ok(all)
    }

    /// The pages of a list, one at a time, for lists that are better not held in whole.
    pub fn pages(&self, purpose: Purpose, path: &str) -> Pages {
        Pages::new(self.clone(), purpose, path)
    }

    /// The pages after one that is there already.
    pub fn pages_after(&self, purpose: Purpose, page: &Fetched) -> Result<Pages, GithubError> {
        Pages::after(self.clone(), purpose, page)
    }

    /// One answer as it came, unless it still is what `etag` stands for. Goes past the cache: the caller keeps the tag.
    pub async fn get_unless(&self, purpose: Purpose, path: &str, etag: Option<&str>) -> Result<Unless, GithubError> {
        let answer = self.send(purpose, &Ask::get(path, etag)).await?;
        match answer.status {
            304 => Ok(Unless::Unchanged { date: answer.date() }),
            _ => Ok(Unless::Fetched(answer.into())),
        }
    }

    /// A request that changes something, with what it answers. Sent once.
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

    /// The same for requests whose answer nobody needs, or that have none.
    pub async fn write_blindly(
        &self,
        purpose: Purpose,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync + ?Sized)>,
    ) -> Result<(), GithubError> {
        self.send(purpose, &Ask::write(method, path, body)?).await.map(|_| ())
    }

    /// A file that the API gives out, such as a log. It may lie elsewhere: our credential goes to the API's own host, and nowhere once that
    /// was left.
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

    /// A file that whoever has its address may read. Our credential never goes along, and only addresses that are `allowed` are asked, those
    /// that it leads on to included.
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

    /// The token that is in force, for git. Asked for anew each time: that of an app lives for an hour.
    pub async fn token(&self) -> Result<SecretString, GithubError> {
        self.parts.token.current(&self.parts.transport, &self.parts.addresses).await
    }

    /// What an app's installation may do; nothing for a token, of which GitHub does not tell it.
    pub async fn permissions(&self) -> Result<Option<Granted>, GithubError> {
        self.parts.token.permissions(&self.parts.transport, &self.parts.addresses).await
    }

    /// Scheme and host of a server of one's own; nothing for github.com.
    pub fn host(&self) -> Option<(String, String)> {
        self.parts.addresses.own_host()
    }

    /// Whether we are a GitHub App, and so an account of our own.
    pub fn is_app(&self) -> bool {
        self.parts.token.is_app()
    }

    /// What was asked so far, and what is left of the limits.
    pub fn spent(&self) -> Spent {
        self.parts.pace.spent()
    }

    /// Whether we were told to ask nothing for a while.
    pub fn is_paused(&self) -> bool {
        self.parts.pace.is_paused()
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

    /// One exchange, with a repository that was renamed found under its new name.
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

    /// Where a redirect leads: the same thing in the same repository under its new name, or an error.
    async fn follow(&self, purpose: Purpose, question: &Ask, to: &str) -> Result<Ask, GithubError> {
        let moved = || GithubError::Moved(to.to_owned());
        let target = self.parts.addresses.path_of(to).ok_or_else(moved)?;
        let asked = renamed::RepoPath::read(question.path()).ok_or_else(moved)?;
        let target = renamed::RepoPath::read(&target).filter(|target| target.rest == asked.rest).ok_or_else(moved)?;
        // An issue that was transferred is answered in the same way as a repository that was renamed: ask about the repository itself.
        let repository = self.send_once(purpose, &Ask::get(&asked.repository(), None)).await?;
        let now = repository.location().and_then(|to| self.parts.addresses.path_of(&to)).unwrap_or_default();
        if renamed::RepoPath::read(&now).map(|now| now.repository()) != Some(target.repository()) {
            return Err(moved());
        }
        tracing::warn!(from = asked.repository(), to = target.repository(), "the repository has another name now");
        self.parts.renamed.note(asked.repository(), target.repository());
        Ok(self.parts.renamed.apply(question))
    }

    /// One exchange. A token of an installation that is refused before its time is made anew, and the question asked once more:
    /// what was refused has changed nothing.
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
        // What another host says is nothing about our limits or our token.
        if let (Ok(answer), false) = (&answer, question.is_foreign()) {
            pace.note(answer);
            if answer.status == 401 {
                token.forget();
            }
        }
        answer
    }
}

/// How long one exchange may take where nobody says otherwise: less than the lanes allow a call, so that it is told what happened.
pub const PATIENCE: Duration = Duration::from_secs(25);

/// Where a redirect leads that was met at `url`.
fn absolute(url: &str, to: &str) -> String {
    if !to.starts_with('/') || to.starts_with("//") {
        return to.to_owned();
    }
    let host_at = url.find("://").map_or(0, |at| at + 3);
    let path_at = url[host_at..].find('/').map_or(url.len(), |at| host_at + at);
    format!("{}{to}", &url[..path_at])
}

/// One segment of a path: a label's name, a login.
pub fn segment(text: &str) -> String {
    encode(text, |byte| matches!(byte, b'-' | b'.' | b'_' | b'~'))
}

/// A path with its query.
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
