//! Delivers one notification to one receiver: words it, removes secrets, and tries again when a delivery fails.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::notices::Notice;
use crate::config::notify::{NotifyReceiver, NotifySettings, Occasion};
use crate::engine::permit::EffectKind;
use crate::launcher::environment::Secrets;
use crate::runtime::Gatekeeper;
use crate::workflow::Texts;
use crate::workspace::command::{self, Input};

/// Pauses between attempts. After the last one the notification is given up.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120)];
const OUTPUT_LIMIT: usize = 4 << 10;

/// The result of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    Told,
    /// The permit was refused for now: by a switch, by the rollout mode, or because the preflight is missing.
    Refused,
    GivenUp,
}

pub struct Mailer {
    http: reqwest::Client,
    texts: Texts,
    secrets: Secrets,
    /// The working directory of commands; `env` is their environment.
    cwd: PathBuf,
    env: BTreeMap<String, String>,
}

impl Mailer {
    pub fn new(
        texts: Texts,
        secrets: Secrets,
        cwd: PathBuf,
        env: &BTreeMap<String, String>,
    ) -> Result<Self, reqwest::Error> {
        // Fails only if another part of the program has already installed the same provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .user_agent(concat!("dirigent/", env!("CARGO_PKG_VERSION")))
            // The address is a secret and must not be passed on to another server by a redirect.
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let env = env.iter().filter(|(name, value)| !secrets.hide(name, value));
        let env = env.map(|(name, value)| (name.clone(), value.clone())).collect();
        Ok(Self { http, texts, secrets, cwd, env })
    }

    pub async fn deliver(&self, receiver: &NotifySettings, notice: &Notice, gatekeeper: &Gatekeeper) -> Delivered {
        let body = self.body(notice);
        for pause in PAUSES.into_iter().map(Some).chain([None]) {
            // Every attempt needs a fresh permit, because a switch may have been pulled since the last one.
            let Ok(_permit) = gatekeeper.permit(EffectKind::Notify, notice.ticket.as_ref()) else {
                return Delivered::Refused;
            };
            let Err(error) = self.send(receiver, &body).await else { return Delivered::Told };
            let error = self.secrets.cut_from(&error);
            match pause {
                Some(pause) => {
                    tracing::debug!(notice = notice.id, error, "a notification did not get through; it is tried again");
                    tokio::time::sleep(pause).await;
                }
                None => tracing::warn!(notice = notice.id, error, "a notification is given up"),
            }
        }
        Delivered::GivenUp
    }

    fn body(&self, notice: &Notice) -> Value {
        let mut body = json!({
            "id": notice.id,
            "event": notice.occasion.name(),
            "what": what(notice.occasion),
            "ticket": notice.ticket,
            "key": notice.key,
            "title": notice.title,
            "sentence": notice.sentence,
            "next": notice.next,
            "url": notice.url,
            "at": crate::publish::time_text(notice.at),
        });
        let text = self.texts.notification(&body).unwrap_or_else(|error| {
            tracing::warn!(%error, "the template of notifications cannot be used");
            format!("{}: {}", notice.title, notice.sentence)
        });
        body["text"] = json!(text.trim());
        clean(&body, &self.secrets)
    }

    async fn send(&self, receiver: &NotifySettings, body: &Value) -> Result<(), String> {
        let timeout = receiver.timeout.unwrap_or(NotifySettings::TIMEOUT);
        match (receiver.to, &receiver.url, &receiver.command) {
            (NotifyReceiver::Webhook, Some(url), _) => self.post(url.expose_secret(), body, timeout).await,
            (NotifyReceiver::Slack, Some(url), _) => {
                self.post(url.expose_secret(), &json!({ "text": body["text"] }), timeout).await
            }
            (NotifyReceiver::Command, _, Some(script)) => self.run(script, body, timeout).await,
            // The validation of the workflow file rules this out.
            _ => Err("the receiver has no address".into()),
        }
    }

    async fn post(&self, url: &str, body: &Value, timeout: Duration) -> Result<(), String> {
        // The error's own text would contain the address.
        let failed = |error: reqwest::Error| error.without_url().to_string();
        let answer = self.http.post(url).json(body).timeout(timeout).send().await.map_err(failed)?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("the receiver answered {status}")),
        }
    }

    async fn run(&self, script: &str, body: &Value, timeout: Duration) -> Result<(), String> {
        let text = body.to_string();
        let mut env: Vec<_> = self.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        env.push(("DIRIGENT_NOTIFICATION".into(), text.clone().into()));
        let mut invocation = command::shell(script, &self.cwd, env, timeout, OUTPUT_LIMIT);
        invocation.stdin = Input::Bytes(text.into_bytes());
        let ended = command::run(invocation).await.map_err(|error| error.to_string())?;
        if ended.status.success() {
            return Ok(());
        }
        Err(format!("the command ended with {}: {}", ended.status, command::tail(&ended.stderr.text())))
    }
}

fn what(occasion: Occasion) -> &'static str {
    match occasion {
        Occasion::Blocked => "is blocked",
        Occasion::Done => "is done",
        Occasion::Failed => "failed, and is tried again",
        Occasion::Budget => "has spent its budget",
        Occasion::Stuck => "may be stuck",
        Occasion::Waiting => "waits for approval",
    }
}

/// Returns the JSON with secrets removed from every string in it.
fn clean(body: &Value, secrets: &Secrets) -> Value {
    match body {
        Value::String(text) => Value::String(secrets.cut_from(text)),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), clean(value, secrets))).collect())
        }
        other => other.clone(),
    }
}
