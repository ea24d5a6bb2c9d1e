//! The address of the API, and the credential for it.

use std::time::Duration;

use http::Uri;
use secrecy::SecretString;

use super::PATIENCE;
use super::error::GithubError;
use crate::domain::loopback::is_loopback;

/// The API of github.com.
const PUBLIC: &str = "https://api.github.com";

/// Everything that is needed to talk to GitHub.
pub struct Access {
    /// `https://host/api/v3` for GitHub Enterprise Server; `None` for github.com.
    pub api_url: Option<String>,
    pub credential: Credential,
    /// The time limit of one exchange.
    pub timeout: Duration,
}

pub enum Credential {
    /// A classic or a fine-grained token.
    Token(SecretString),
    /// An installation of a GitHub App. Its tokens are created when they are needed.
    App { app_id: u64, private_key: SecretString, installation_id: u64 },
}

impl Access {
    pub fn new(api_url: Option<String>, credential: Credential) -> Self {
        Self { api_url, credential, timeout: PATIENCE }
    }
}

/// The parts of the API's address, split once.
#[derive(Debug)]
pub struct Addresses {
    /// Scheme, host and port.
    pub origin: String,
    /// The prefix of every path of the documentation: empty, or `/api/v3`.
    rest: String,
    graphql: String,
}

impl Addresses {
    pub fn of(api_url: Option<&str>) -> Result<Self, GithubError> {
        let text = api_url.unwrap_or(PUBLIC).trim().trim_end_matches('/');
        let wrong = |why: &str| {
            GithubError::Config(format!("`api_url: {text}` {why}; it looks like https://github.example.com/api/v3"))
        };
        let uri: Uri = text.parse().map_err(|_| wrong("is not an address"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(wrong("has no scheme and host"));
        };
        let loopback = uri.host().is_some_and(is_loopback);
        if scheme != "https" && !(scheme == "http" && loopback) {
            return Err(wrong("is not https: the token would be read on its way"));
        }
        if authority.as_str().contains('@') {
            return Err(wrong("holds a user name"));
        }
        let rest = uri.path().trim_end_matches('/').to_owned();
        // An Enterprise server has GraphQL at `/api/graphql`, beside `/api/v3`; github.com has it at `/graphql`.
        let graphql = format!("{}/graphql", rest.strip_suffix("/v3").unwrap_or(&rest));
        Ok(Self { origin: format!("{scheme}://{authority}"), rest, graphql })
    }

    /// Turns a path of GitHub's documentation into the path on this server.
    pub fn rest(&self, path: &str) -> String {
        format!("{}{path}", self.rest)
    }

    /// Returns scheme and host without the port. `None` for github.com.
    pub fn own_host(&self) -> Option<(String, String)> {
        let uri: http::Uri = self.origin.parse().ok()?;
        let (scheme, host) = (uri.scheme_str()?.to_owned(), uri.host()?.to_owned());
        (host != "api.github.com").then_some((scheme, host))
    }

    pub fn graphql(&self) -> &str {
        &self.graphql
    }

    /// Returns the path of the documentation for an address of this API. `None` if the address belongs to another server.
    pub fn path_of(&self, url: &str) -> Option<String> {
        let path = if url.starts_with('/') { url } else { url.strip_prefix(&self.origin)? };
        let path = path.strip_prefix(&self.rest)?;
        path.starts_with('/').then(|| path.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_github_and_of_an_enterprise_server() {
        let public = Addresses::of(None).unwrap();
        assert_eq!((public.rest("/user").as_str(), public.graphql()), ("/user", "/graphql"));
        let own = Addresses::of(Some("https://git.example.com/api/v3/")).unwrap();
        assert_eq!((own.rest("/user").as_str(), own.graphql()), ("/api/v3/user", "/api/graphql"));
        let next = own.path_of("https://git.example.com/api/v3/repositories/7/issues?page=2");
        assert_eq!(next.as_deref(), Some("/repositories/7/issues?page=2"));
        assert_eq!(own.path_of("https://git.example.com.evil.example/api/v3/user"), None);
        assert_eq!(own.path_of("https://elsewhere.example.com/api/v3/user"), None);
    }

    #[test]
    fn an_address_that_would_give_the_token_away_is_refused() {
        for wrong in [
            "http://git.example.com",
            "http://localhost.example.com",
            "git.example.com",
            "https://me@git.example.com",
            "",
            "file:///etc",
        ] {
            let refused = Addresses::of(Some(wrong)).unwrap_err();
            assert!(refused.to_string().contains("api_url"), "{wrong}: {refused}");
        }
        assert!(Addresses::of(Some("http://127.0.0.1:4711")).is_ok());
    }
}
