//! Images and files that people put into an issue. They are on a host of Linear's own and are downloaded with the runner's key.

use super::{ENDPOINT, LinearTracker};
use crate::domain::service::Attachment;
use crate::tracker::TrackerError;

/// The address under which Linear stores files.
const UPLOADS: &str = "https://uploads.linear.app/";

impl LinearTracker {
    /// Returns the name of a file that Linear itself stores, otherwise `None`. With another endpoint, files are below `/uploads/`
    /// on its host.
    pub(super) fn file_name(&self, url: &str) -> Option<String> {
        let place = match self.client.endpoint() {
            ENDPOINT => reqwest::Url::parse(UPLOADS).ok()?,
            other => reqwest::Url::parse(other).ok()?.join("/uploads/").ok()?,
        };
        let address = reqwest::Url::parse(url).ok()?;
        let same_host = address.origin() == place.origin() && address.username().is_empty();
        let name = address.path().rsplit('/').next().filter(|name| !name.is_empty())?;
        (same_host && address.path().starts_with(place.path())).then(|| name.to_owned())
    }

    pub(super) async fn fetch(&self, attachment: &Attachment, longest: usize) -> Result<Vec<u8>, TrackerError> {
        if self.file_name(&attachment.url).is_none() {
            return Err(TrackerError::Refused(format!("{} is not on a host of Linear's", attachment.url)));
        }
        self.client.download(&attachment.url, longest).await
    }
}
