//! The token of each request: the configured one, or the token of an app's installation, which is replaced before it expires.

use std::collections::BTreeMap;

use http::Method;
use octocrab::EncodingKey;
use octocrab::models::AppId;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::access::{Addresses, Credential};
use super::answer::read_json;
use super::error::GithubError;
use super::transport::{Ask, Transport};

/// A token that expires sooner than this is replaced: a request may take a while, and clocks differ.
const RENEWED_BEFORE: jiff::SignedDuration = jiff::SignedDuration::from_mins(5);

pub enum TokenSource {
    Fixed(SecretString),
    App(Box<App>),
}

pub struct App {
    id: u64,
    key: EncodingKey,
    installation: u64,
    current: tokio::sync::Mutex<Option<Made>>,
    /// Whether GitHub refused the current token before its expiry.
    refused: std::sync::atomic::AtomicBool,
}

struct Made {
    token: SecretString,
    expires_at: jiff::Timestamp,
    permissions: Granted,
}

/// The permissions of an installation: `read`, `write` or `admin` by the permission's name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Granted(BTreeMap<String, String>);

impl Granted {
    pub fn may_read(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn may_write(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|level| level != "read")
    }
}

#[derive(Deserialize)]
struct NewToken {
    token: String,
    expires_at: String,
    #[serde(default)]
    permissions: Granted,
}

impl TokenSource {
    pub fn new(credential: Credential) -> Result<Self, GithubError> {
        match credential {
            Credential::Token(token) if token.expose_secret().trim().is_empty() => {
                Err(GithubError::Config("the GitHub token is empty".to_owned()))
            }
            Credential::Token(token) => {
                let trimmed = token.expose_secret().trim();
                if !trimmed.bytes().all(|byte| byte.is_ascii_graphic()) {
                    return Err(GithubError::Config("the GitHub token holds blanks or line breaks".to_owned()));
                }
                Ok(Self::Fixed(trimmed.into()))
            }
            Credential::App { app_id, private_key, installation_id } => {
                let key = EncodingKey::from_rsa_pem(private_key.expose_secret().as_bytes()).map_err(|_| {
                    let words = "the private key of the GitHub App cannot be read: it is the PEM file that GitHub gave you, with its first and last line";
                    GithubError::Config(words.to_owned())
                })?;
                let app = App {
                    id: app_id,
                    key,
                    installation: installation_id,
                    current: tokio::sync::Mutex::default(),
                    refused: std::sync::atomic::AtomicBool::default(),
                };
                Ok(Self::App(Box::new(app)))
            }
        }
    }

    pub fn is_app(&self) -> bool {
        matches!(self, Self::App(_))
    }

    pub async fn current(&self, transport: &Transport, addresses: &Addresses) -> Result<SecretString, GithubError> {
        match self {
            Self::Fixed(token) => Ok(token.clone()),
            Self::App(app) => app.current(transport, addresses).await,
        }
    }

    /// Returns the permissions of an app's installation. `None` for a token, for which GitHub does not report them.
    pub async fn permissions(
        &self,
        transport: &Transport,
        addresses: &Addresses,
    ) -> Result<Option<Granted>, GithubError> {
        let Self::App(app) = self else { return Ok(None) };
        app.current(transport, addresses).await?;
        Ok(app.current.lock().await.as_ref().map(|made| made.permissions.clone()))
    }

    /// Records that the token was refused. The token of an app is replaced before the next request; a fixed token stays.
    pub fn forget(&self) {
        if let Self::App(app) = self {
            app.refused.store(true, std::sync::atomic::Ordering::Release);
        }
    }
}

impl App {
    async fn current(&self, transport: &Transport, addresses: &Addresses) -> Result<SecretString, GithubError> {
        let mut current = self.current.lock().await;
        let refused = self.refused.swap(false, std::sync::atomic::Ordering::AcqRel);
        let usable = |made: &&Made| !refused && made.expires_at > jiff::Timestamp::now() + RENEWED_BEFORE;
        if let Some(made) = current.as_ref().filter(usable) {
            return Ok(made.token.clone());
        }
        let made = self.make(transport, addresses).await?;
        let token = made.token.clone();
        *current = Some(made);
        Ok(token)
    }

    async fn make(&self, transport: &Transport, addresses: &Addresses) -> Result<Made, GithubError> {
        let proof = octocrab::auth::create_jwt(AppId(self.id), &self.key).map_err(|error| {
            GithubError::Config(format!("the private key of the GitHub App signs nothing: {error}"))
        })?;
        let path = format!("/app/installations/{}/access_tokens", self.installation);
        let question = Ask::write(Method::POST, &path, None::<&()>)?;
        let answer = transport.exchange(addresses, &question, Some(&proof.into())).await;
        // Creating a token twice does no harm, so a lost response is treated like a failed read.
        let answer = answer.and_then(|answer| answer.checked(false)).map_err(|error| match error {
            GithubError::MaybeDone(detail) => GithubError::Unreachable(detail),
            GithubError::NotFound(_) => GithubError::Auth(format!(
                "GitHub App {} has no installation {}; look the number up under the App's `Install App`",
                self.id, self.installation
            )),
            GithubError::Refused(refusal) => GithubError::Auth(refusal.to_string()),
            other => other,
        })?;
        let NewToken { token, expires_at, permissions } = read_json(&answer.body)?;
        let expires_at =
            expires_at.parse().map_err(|_| GithubError::Unreadable(format!("`{expires_at}` is not a time")))?;
        Ok(Made { token: token.into(), expires_at, permissions })
    }
}
