//! What a handler gets: who asks for what, where.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::github::server::caller::Caller;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::server::paging::{self, Page};
use crate::github::state::repo::Gone;
use crate::github::state::{Issue, Permission, Pull, Repo, Thing, World};

pub struct Call<'a> {
    pub world: &'a mut World,
    pub caller: Caller,
    pub login: String,
    /// The repository that the path names; meaningless for operations without one.
    pub home: usize,
    pub parameters: BTreeMap<String, String>,
    pub query: Vec<(String, String)>,
    pub body: Value,
    /// The path of the list, for links.
    pub place: String,
}

impl Call<'_> {
    pub fn text(&self, name: &str) -> &str {
        self.parameters.get(name).map(String::as_str).unwrap_or_default()
    }

    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or_default()
    }

    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn repo(&self) -> &Repo {
        self.world.repo(self.home)
    }

    /// The repository as readers of `thing` see it.
    pub fn seen(&self, thing: &Thing) -> &Repo {
        self.world.seen(self.home, thing)
    }

    /// Leaves with 403 unless the caller has at least this permission.
    pub fn need(&self, permission: Permission) -> Result<(), Answer> {
        if self.repo().permission(&self.login) >= permission {
            return Ok(());
        }
        let words = if permission == Permission::Admin {
            "Must have admin rights to Repository."
        } else {
            "Resource not accessible by personal access token"
        };
        Err(Answer::general(403, words))
    }

    /// The issue of the path, to be changed: how it really is.
    pub fn issue(&self) -> Result<&Issue, Answer> {
        let number = self.number("issue_number");
        self.repo().issue(number).ok_or_else(|| self.missing(number))
    }

    /// The issue of the path, to be read: how a reader sees it.
    pub fn issue_seen(&self) -> Result<&Issue, Answer> {
        let number = self.number("issue_number");
        self.seen(&Thing::Issue(number)).issue(number).ok_or_else(|| self.missing(number))
    }

    pub fn pull(&self) -> Result<&Pull, Answer> {
        let number = self.number("pull_number");
        self.repo().pull(number).ok_or_else(|| Answer { general: true, ..Answer::not_found() })
    }

    /// What GitHub answers for an issue that is not there.
    fn missing(&self, number: u64) -> Answer {
        match self.repo().gone.get(&number) {
            Some(Gone::Deleted) => Answer::message(410, "This issue was deleted"),
            Some(Gone::Transferred { repository, number }) => {
                let url = format!("{}/repositories/{repository}/issues/{number}", self.world.base);
                let body = serde_json::json!({
                    "message": "Moved Permanently", "url": url, "documentation_url": "https://docs.github.com/rest"
                });
                Answer::json(301, body).with("location", url)
            }
            Some(Gone::Hidden) | None => Answer::not_found(),
        }
    }

    /// One page of a list, rendered.
    pub fn page<T>(&self, all: Vec<T>, render: impl Fn(&T) -> Value) -> Answered {
        let Page { items, link } = paging::page(all, &self.query, &self.place);
        Ok(paging::linked(Answer::json(200, items.iter().map(render).collect()), link))
    }

    /// One page of a list that is inside an object, with its length.
    pub fn page_in<T>(&self, key: &str, all: Vec<T>, render: impl Fn(&T) -> Value) -> Answered {
        let total = all.len();
        let Page { items, link } = paging::page(all, &self.query, &self.place);
        let list: Vec<Value> = items.iter().map(render).collect();
        Ok(paging::linked(Answer::json(200, serde_json::json!({"total_count": total, key: list})), link))
    }
}
