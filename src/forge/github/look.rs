//! Looks at pull requests: one query for many of them, each with its own result, plus the heads as git has them.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::documents::{self, BATCH};
use super::wire::{GraphPull, InRepository};
use super::{Inner, reading};
use crate::domain::ids::{CommitId, PrNumber};
use crate::forge::{ForgeError, PrLook};
use crate::github::{GraphqlAnswer, GraphqlFault, Purpose};

/// How long the first look waits for others, because looks are usually requested several at a time.
const GATHERED_FOR: Duration = Duration::from_millis(20);

impl Inner {
    /// Looks at pull requests. Looks that are requested at the same time share one query: a caller who comes while a query is under way
    /// waits for it, and the next query covers all callers who still wait.
    pub(super) async fn look_at(&self, numbers: &[PrNumber]) -> Vec<(PrNumber, Result<PrLook, ForgeError>)> {
        let mut answers = Vec::with_capacity(numbers.len());
        for number in numbers {
            let (sender, answer) = oneshot::channel();
            self.wanted.lock().unwrap_or_else(PoisonError::into_inner).push((*number, sender));
            answers.push((*number, answer));
        }
        {
            let _one_at_a_time = self.asking.lock().await;
            // If another caller's query has answered all of these meanwhile, there is nothing left to query here.
            if answers.iter().any(|(_, answer)| answer.is_empty()) {
                tokio::time::sleep(GATHERED_FOR).await;
                let wanted = std::mem::take(&mut *self.wanted.lock().unwrap_or_else(PoisonError::into_inner));
                self.answer(wanted).await;
            }
        }
        let mut looks = Vec::with_capacity(numbers.len());
        for (number, answer) in answers {
            let lost = || Err(ForgeError::Request("the look was given up".to_owned()));
            looks.push((number, answer.await.unwrap_or_else(|_| lost())));
        }
        looks
    }

    async fn answer(&self, wanted: Vec<Wanted>) {
        let mut numbers: Vec<PrNumber> = wanted.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut looks = HashMap::new();
        for batch in numbers.chunks(BATCH) {
            match self.ask_about(batch).await {
                Ok(found) => looks.extend(self.complete(found).await),
                Err(error) => looks.extend(batch.iter().map(|number| (*number, Err(error.clone())))),
            }
        }
        for (number, sender) in wanted {
            if let Some(look) = looks.get(&number) {
                // A closed receiver means that the caller has given up.
                let _ = sender.send(look.clone());
            }
        }
    }

    async fn ask_about(&self, batch: &[PrNumber]) -> Result<Asked, ForgeError> {
        let mut variables = Map::new();
        variables.insert("owner".to_owned(), json!(self.owner()));
        variables.insert("name".to_owned(), json!(self.name()));
        for (at, number) in batch.iter().enumerate() {
            variables.insert(format!("n{at}"), json!(number.0));
        }
        let answer: GraphqlAnswer<InRepository> =
            self.github.query(Purpose::Look, &documents::look(batch.len()), &Value::Object(variables)).await?;
        let faults = answer.faults;
        let data = answer.data.ok_or_else(|| ForgeError::Response("an answer without data".to_owned()))?;
        let mut repository = data.repository.ok_or_else(|| self.not_shown())?;
        if let Some(viewer) = &data.viewer {
            let _ = self.viewer.set(viewer.login.clone());
        }
        let pulls = batch.iter().enumerate().map(|(at, number)| {
            let name = format!("p{at}");
            let pull = match repository.remove(&name).filter(|pull| !pull.is_null()) {
                Some(pull) => serde_json::from_value::<GraphPull>(pull)
                    .map_err(|error| ForgeError::Response(format!("pull request {number}: {error}"))),
                None => Err(missing(*number, &name, &faults)),
            };
            (*number, pull.map(|pull| (pull, faults_of(&faults, &name))))
        });
        let pulls = pulls.collect();
        Ok(Asked { pulls, viewer: data.viewer.map(|viewer| viewer.login) })
    }

    /// Adds what the one query does not return: further pages, and the commits that git has for the branches.
    async fn complete(&self, asked: Asked) -> Vec<(PrNumber, Result<PrLook, ForgeError>)> {
        let begun = Instant::now();
        let mut branches: Vec<&str> = Vec::new();
        for (pull, _) in asked.pulls.iter().filter_map(|(_, pull)| pull.as_ref().ok()) {
            branches.extend([pull.base_ref_name.as_str()]);
            if self.is_here(pull) {
                branches.push(pull.head_ref_name.as_str());
            }
        }
        branches.sort_unstable();
        branches.dedup();
        let heads: Option<HashMap<String, CommitId>> = match branches.is_empty() {
            true => Some(HashMap::new()),
            false => match self.remote.heads(&branches).await {
                Ok(heads) => Some(heads.into_iter().collect()),
                Err(error) => {
                    tracing::debug!(%error, "git does not say what the branches are at");
                    None
                }
            },
        };
        let mut looks = Vec::with_capacity(asked.pulls.len());
        for (number, pull) in asked.pulls {
            let look = match pull {
                Ok((pull, faults)) => {
                    let (heads, viewer) = (heads.as_ref(), asked.viewer.as_deref());
                    let facts = reading::Facts { heads, viewer, faults: &faults, begun };
                    let pr = self.read(pull, &facts).await.map_err(ForgeError::from);
                    pr.map(|pr| PrLook { asked_at: None, pr })
                }
                Err(error) => Err(error),
            };
            looks.push((number, look));
        }
        looks
    }

    /// Whether the head branch is in this repository and not in a fork.
    pub(super) fn is_here(&self, pull: &GraphPull) -> bool {
        pull.head_repository.as_ref().is_some_and(|repo| repo.name_with_owner.eq_ignore_ascii_case(&self.settings.slug))
    }
}

/// A pull request to look at, and the channel to the caller who waits for the result.
pub type Wanted = (PrNumber, oneshot::Sender<Result<PrLook, ForgeError>>);

/// A pull request, and the errors about parts of it that could not be read.
type Answered = (GraphPull, Vec<GraphqlFault>);

struct Asked {
    pulls: Vec<(PrNumber, Result<Answered, ForgeError>)>,
    viewer: Option<String>,
}

fn faults_of(faults: &[GraphqlFault], name: &str) -> Vec<GraphqlFault> {
    faults.iter().filter(|fault| fault.path.iter().any(|step| step == name)).cloned().collect()
}

fn missing(number: PrNumber, name: &str, faults: &[GraphqlFault]) -> ForgeError {
    match faults_of(faults, name).first() {
        Some(fault) if fault.kind == "NOT_FOUND" => ForgeError::NotFound(number),
        Some(fault) if fault.kind == "FORBIDDEN" => ForgeError::Refused(fault.to_string()),
        Some(fault) => ForgeError::Response(fault.to_string()),
        None => ForgeError::NotFound(number),
    }
}
