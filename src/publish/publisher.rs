//! Keeps `agent-state.json` up to date while the runner works: it is written at most four times per second and at least every 30 seconds.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;

use super::carried_over::{self, RECORD, TeammateReport};
use super::team_picture::{TeamIdentity, TeamPicture};
use super::team_state_file::TeamStateFile;
use crate::domain::ids::RunId;
use crate::launcher::environment::Secrets;
use crate::runtime::{Handle, News, Published, now};
use crate::worker::run_directory;

const AT_MOST_EVERY: Duration = Duration::from_millis(250);
/// Readers of the file assume that its writer died when the file is five minutes old.
const AT_LEAST_EVERY: Duration = Duration::from_secs(30);
/// How often the records of the workers' hooks are read.
const HOOKS_EVERY: Duration = Duration::from_secs(1);

/// What is published, and into which file.
pub struct Publication {
    pub file: TeamStateFile,
    pub identity: TeamIdentity,
    /// The runner's state folder, which holds one folder per run.
    pub state_dir: PathBuf,
    pub secrets: Secrets,
}

/// Writes the file until the driver (the runner's loop) is gone. The last write says that the session is over.
pub async fn publish(publication: Publication, handle: Handle) {
    let Handle { inbox, mut snapshots, news, .. } = handle;
    // The snapshot channel closes when the driver drops its end; the other channels must not keep the runner alive.
    drop(inbox);
    let mut heard = news.subscribe();
    drop(news);
    let mut picture = TeamPicture::begun(&publication.identity, now());
    let mut writer = Writer { file: publication.file, secrets: publication.secrets.clone(), failing: false };
    let mut hooks = HookRecords { state_dir: publication.state_dir, positions: BTreeMap::new() };
    let mut look = tokio::time::interval(HOOKS_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut written = tokio::time::Instant::now();
    see(&mut picture, &snapshots.newest(), &mut hooks, &publication.secrets);
    let mut changed = true;
    loop {
        if changed && written.elapsed() >= AT_MOST_EVERY || written.elapsed() >= AT_LEAST_EVERY || !writer.has_written()
        {
            writer.write(&picture).await;
            (written, changed) = (tokio::time::Instant::now(), false);
        }
        let due = written + if changed { AT_MOST_EVERY } else { AT_LEAST_EVERY };
        tokio::select! {
            seen = snapshots.changed() => {
                see(&mut picture, &snapshots.newest(), &mut hooks, &publication.secrets);
                changed = true;
                if seen.is_err() {
                    break;
                }
            }
            news = heard.recv() => match news {
                Ok(news) => {
                    picture.hear(&without_secrets(news, &publication.secrets));
                    changed = true;
                }
                Err(RecvError::Lagged(_)) => {}
                // The driver is going away; the snapshot channel will close next.
                Err(RecvError::Closed) => tokio::time::sleep(AT_MOST_EVERY).await,
            },
            _ = look.tick() => changed |= hooks.carry_over(&mut picture, &publication.secrets),
            () = tokio::time::sleep_until(due) => {}
        }
    }
    picture.end();
    writer.write(&picture).await;
}

/// Takes in a snapshot. For a run that is over, the last reports of its hooks are read first.
fn see(picture: &mut TeamPicture, published: &Published, hooks: &mut HookRecords, secrets: &Secrets) {
    picture.see(published.at(), published.views(), |run| hooks.news_of(run, secrets));
}

fn without_secrets(news: News, secrets: &Secrets) -> News {
    match news {
        News::WorkerSaid { key, attempt, text, at } => {
            News::WorkerSaid { key, attempt, text: secrets.cut_from(&text), at }
        }
        other => other,
    }
}

/// Writes the file, and logs only the first failure and the first success after it.
struct Writer {
    file: TeamStateFile,
    secrets: Secrets,
    failing: bool,
}

impl Writer {
    fn has_written(&self) -> bool {
        self.failing || self.file.path().exists()
    }

    async fn write(&mut self, picture: &TeamPicture) {
        let (file, state) = (self.file.clone(), picture.state().clone());
        let secrets = self.secrets.clone();
        let done = tokio::task::spawn_blocking(move || file.write(&state.without_secrets(&secrets), now())).await;
        let error = match done {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        let path = self.file.path().display();
        match (&error, self.failing) {
            (Some(error), false) => {
                tracing::warn!(%path, error, "agent-state.json cannot be written; everything else goes on")
            }
            (None, true) => tracing::info!(%path, "agent-state.json can be written again"),
            _ => {}
        }
        self.failing = error.is_some();
    }
}

/// How many bytes of each live run's hook record have been read, by run id.
struct HookRecords {
    state_dir: PathBuf,
    positions: BTreeMap<String, u64>,
}

impl HookRecords {
    /// Reads the new reports of all live runs into the picture. Returns whether there were any.
    fn carry_over(&mut self, picture: &mut TeamPicture, secrets: &Secrets) -> bool {
        let live: Vec<(String, String)> =
            picture.workers().map(|(run, name)| (run.to_owned(), name.to_owned())).collect();
        self.positions.retain(|run, _| live.iter().any(|(live, _)| live == run));
        let mut news = false;
        for (run, name) in live {
            for report in self.news_of(&run, secrets) {
                picture.report(&name, report, now());
                news = true;
            }
        }
        news
    }

    /// Reads what the hooks of one run have reported since the last call.
    fn news_of(&mut self, run: &str, secrets: &Secrets) -> Vec<TeammateReport> {
        let path = run_directory(&self.state_dir, &RunId::new(run)).join("artifacts").join(RECORD);
        let position = self.positions.entry(run.to_owned()).or_default();
        carried_over::read_from(&path, position).into_iter().map(|report| report.without_secrets(secrets)).collect()
    }
}
