//! Images and files that a ticket refers to. The runner fetches them into the run's artifacts, because the worker has no credential for
//! them.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::RunOrder;
use super::ticket_text::Audience;
use crate::domain::service::Attachment;
use crate::workflow::AttachedFile;

/// The number of files fetched for one ticket.
const MOST: usize = 10;
/// The limits in bytes: for one file, and for all files of a ticket together.
const LONGEST: usize = 10 << 20;
const ALL_TOGETHER: usize = 25 << 20;

/// Fetches the files that the shown texts of the ticket refer to. A file that cannot be fetched is mentioned in the prompt and does not
/// keep the run from starting.
pub async fn fetch_all(order: &RunOrder, audience: &Audience, artifacts: &Path) -> Vec<AttachedFile> {
    let Some(service) = &order.service else { return Vec::new() };
    let mut wanted: Vec<Attachment> = Vec::new();
    for text in texts(order, audience) {
        for attachment in service.attachments(text) {
            if !wanted.contains(&attachment) {
                wanted.push(attachment);
            }
        }
    }
    let mut left = ALL_TOGETHER;
    let mut files = Vec::new();
    for (index, attachment) in wanted.iter().enumerate() {
        let outcome = match index < MOST {
            false => Err(format!("only the first {MOST} files of a ticket are fetched")),
            true => service.fetch(attachment, LONGEST.min(left)).await,
        };
        let outcome = outcome.and_then(|bytes| {
            left = left.saturating_sub(bytes.len());
            save(artifacts, index + 1, attachment, &bytes).map_err(|error| format!("it cannot be saved: {error}"))
        });
        let (path, trouble) = match outcome {
            Ok(path) => (Some(path), None),
            Err(why) => (None, Some(why)),
        };
        files.push(AttachedFile { path, url: attachment.url.clone(), trouble });
    }
    files
}

/// Returns the texts of the ticket that the worker is shown, and no others.
fn texts<'a>(order: &'a RunOrder, audience: &'a Audience) -> impl Iterator<Item = &'a str> {
    let ticket = &order.ticket;
    let description = audience.text_of(ticket);
    let comments = ticket.known_comments().iter().filter(|comment| audience.shows(&comment.author));
    description.into_iter().chain(comments.map(|comment| comment.body.as_str()))
}

fn save(artifacts: &Path, number: usize, attachment: &Attachment, bytes: &[u8]) -> io::Result<PathBuf> {
    let directory = artifacts.join("attachments");
    DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = attachment.name.chars().rev().take(80).map(plain).collect();
    let name: String = name.chars().rev().collect();
    let path = directory.join(format!("{number:02}-{name}"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    file.write_all(bytes)?;
    Ok(path)
}
