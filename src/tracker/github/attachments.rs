//! Images and files of an issue that are on GitHub's own hosts.

use super::GithubTracker;
use crate::domain::service::Attachment;
use crate::github::Purpose;
use crate::tracker::{TrackerError, addresses};

/// The hosts where github.com stores files of issues.
const PUBLIC_HOSTS: [&str; 2] = ["user-images.githubusercontent.com", "private-user-images.githubusercontent.com"];
/// The path of uploads on the host of the site itself.
const UPLOADS: &str = "/user-attachments/";

/// The parts of an address that tell which server it belongs to.
struct Address {
    scheme: String,
    host: String,
    port: Option<u16>,
    path: String,
}

impl Address {
    fn read(url: &str) -> Option<Self> {
        let uri: http::Uri = url.parse().ok()?;
        let authority = uri.authority()?;
        // A user name before the host could make the address look like one of another host.
        if authority.as_str().contains('@') {
            return None;
        }
        let (scheme, host) = (uri.scheme_str()?.to_owned(), uri.host()?.to_ascii_lowercase());
        Some(Self { scheme, host, port: uri.port_u16(), path: uri.path().to_owned() })
    }

    /// Whether the address has the scheme and the port of github.com and its file stores.
    fn is_public(&self) -> bool {
        self.scheme == "https" && self.port.is_none_or(|port| port == 443)
    }
}

impl GithubTracker {
    pub(super) fn attachments_in(&self, text: &str) -> Vec<Attachment> {
        addresses::attachments_in(text, |url| self.name_of(url))
    }

    /// Returns the name of a file on one of GitHub's own hosts. `None` for any other address.
    fn name_of(&self, url: &str) -> Option<String> {
        let address = Address::read(url)?;
        let (host, upload) = (address.host.as_str(), self.is_upload(&address.path));
        let own = match self.github.host() {
            None => address.is_public() && (PUBLIC_HOSTS.contains(&host) || (host == "github.com" && upload)),
            Some((own_scheme, own_host)) => address.scheme == own_scheme && host == own_host && upload,
        };
        let name = address.path.rsplit('/').next().filter(|name| !name.is_empty())?;
        own.then(|| name.to_owned())
    }

    /// Whether this is the path of an upload: the current form, or the older one below the repository.
    fn is_upload(&self, path: &str) -> bool {
        let ours = |kind: &str| format!("/{}/{}/{kind}/", self.board.owner, self.board.name);
        path.starts_with(UPLOADS) || ["assets", "files"].into_iter().any(|kind| path.starts_with(&ours(kind)))
    }

    /// Whether a file may be downloaded from this address. Allowed are GitHub's own hosts and the file stores that GitHub redirects
    /// to.
    fn may_be_asked(&self, url: &str) -> bool {
        let Some(address) = Address::read(url) else { return false };
        let host = address.host.as_str();
        match self.github.host() {
            None => address.is_public() && is_store(host),
            Some((own_scheme, own_host)) => {
                address.scheme == own_scheme && (host == own_host || host.ends_with(&format!(".{own_host}")))
            }
        }
    }

    pub(super) async fn fetch(&self, attachment: &Attachment, longest: usize) -> Result<Vec<u8>, TrackerError> {
        if self.name_of(&attachment.url).is_none() {
            return Err(TrackerError::Refused(format!("{} is not on a host of GitHub's", attachment.url)));
        }
        let allowed = |url: &str| self.may_be_asked(url);
        Ok(self.github.fetch_public(Purpose::Look, &attachment.url, longest, allowed).await?)
    }
}

/// Whether github.com stores files on this host.
fn is_store(host: &str) -> bool {
    host == "github.com"
        || host.ends_with(".githubusercontent.com")
        || (host.starts_with("github-production-") && host.ends_with(".s3.amazonaws.com"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_on_githubs_own_hosts_and_on_no_other() {
        for host in
            ["github.com", "objects.githubusercontent.com", "github-production-user-asset-6210df.s3.amazonaws.com"]
        {
            assert!(is_store(host), "{host}");
        }
        for host in [
            "githubusercontent.com.evil.example",
            "evilgithub.com",
            "169.254.169.254",
            "localhost",
            "github-production-x.s3.amazonaws.com.evil.example",
            "s3.amazonaws.com",
        ] {
            assert!(!is_store(host), "{host}");
        }
        assert!(Address::read("https://github.com@evil.example/user-attachments/x").is_none());
        for (url, public) in
            [("https://GitHub.com/x", true), ("https://github.com:8443/x", false), ("http://github.com/x", false)]
        {
            assert_eq!(Address::read(url).unwrap().is_public(), public, "{url}");
        }
        assert!(Address::read("/user-attachments/x").is_none());
    }
}
