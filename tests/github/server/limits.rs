//! GitHub's limits on requests.

use jiff::{SignedDuration, Timestamp};

use super::exchange::Answer;

/// The primary limit of one resource: `core` or `graphql`.
#[derive(Clone, Debug)]
pub struct Primary {
    pub limit: u64,
    pub used: u64,
    pub reset_at: Timestamp,
}

/// A secondary limit that is in force.
#[derive(Clone, Debug)]
pub struct Secondary {
    pub until: Timestamp,
    /// 403 or 429: GitHub uses both.
    pub status: u16,
    /// Whether the answer says how long to wait.
    pub says_when: bool,
}

#[derive(Clone, Debug)]
pub struct Limits {
    pub core: Primary,
    pub graphql: Primary,
    pub secondary: Option<Secondary>,
}

impl Limits {
    pub fn new(now: Timestamp) -> Self {
        let fresh = Primary { limit: 5000, used: 0, reset_at: now + SignedDuration::from_hours(1) };
        Self { core: fresh.clone(), graphql: fresh, secondary: None }
    }

    pub fn of(&mut self, resource: &str) -> &mut Primary {
        if resource == "graphql" { &mut self.graphql } else { &mut self.core }
    }

    /// Begins the next hour where one is over.
    pub fn renew(&mut self, now: Timestamp) {
        for primary in [&mut self.core, &mut self.graphql] {
            if now >= primary.reset_at {
                primary.used = 0;
                primary.reset_at = now + SignedDuration::from_hours(1);
            }
        }
        if self.secondary.as_ref().is_some_and(|secondary| now >= secondary.until) {
            self.secondary = None;
        }
    }

    /// The refusal, if a limit is reached.
    pub fn refusal(&mut self, resource: &str, now: Timestamp) -> Option<Answer> {
        self.renew(now);
        if let Some(secondary) = &self.secondary {
            return Some(secondary.refusal(now));
        }
        let primary = self.of(resource);
        (primary.used >= primary.limit).then(|| {
            if resource == "graphql" {
                // GraphQL says it with 200.
                let words = "API rate limit exceeded for user ID 1001.";
                let body = serde_json::json!({"errors": [{"type": "RATE_LIMITED", "message": words}]});
                Answer { general: true, ..Answer::json(200, body) }
            } else {
                Answer::general(403, "API rate limit exceeded for user ID 1001. If you reach out to GitHub Support for help, please include the request ID.")
            }
        })
    }
}

impl Secondary {
    pub fn refusal(&self, now: Timestamp) -> Answer {
        let words = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
        let answer = Answer::general(self.status, words);
        let seconds = (self.until.as_second() - now.as_second()).max(1);
        if self.says_when { answer.with("retry-after", seconds.to_string()) } else { answer }
    }
}

impl Primary {
    pub fn headers(&self, resource: &str) -> Vec<(String, String)> {
        let pair = |name: &str, value: String| (format!("x-ratelimit-{name}"), value);
        vec![
            pair("limit", self.limit.to_string()),
            pair("remaining", self.limit.saturating_sub(self.used).to_string()),
            pair("used", self.used.to_string()),
            pair("reset", self.reset_at.as_second().to_string()),
            pair("resource", resource.to_owned()),
        ]
    }
}
