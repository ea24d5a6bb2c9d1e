//! Faults inside an agent, in one vocabulary. Owns the table from HTTP statuses and wordings to classes, and does not know which agent is
//! speaking.

use std::time::Duration;

use super::{AgentEvent, Reset, TurnEnd};
use crate::domain::failure::TurnError;
use crate::domain::time::Timestamp;

/// The longest detail in bytes. Details are for people: a log line, a comment on a ticket.
const DETAIL_LIMIT: usize = 2000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    pub class: TurnError,
    pub detail: String,
    pub retryable: bool,
    pub reset: Option<Reset>,
}

impl Fault {
    pub fn new(class: TurnError, detail: impl AsRef<str>) -> Self {
        let retryable = matches!(class, TurnError::RateLimit | TurnError::Other);
        Self { class, detail: cut(detail.as_ref(), DETAIL_LIMIT), retryable, reset: None }
    }

    /// Classifies a fault by the status of the model's server where it is known, else by the wording.
    pub fn of(status: Option<u64>, detail: &str) -> Self {
        let class = class_of_wording(detail).or_else(|| status.and_then(class_of_status));
        let class = match (status.and_then(class_of_status), class) {
            (Some(certain @ (TurnError::Auth | TurnError::RateLimit)), _) => certain,
            (_, other) => other.unwrap_or(TurnError::Other),
        };
        let mut fault = Self::new(class, detail);
        if class == TurnError::Other && status.is_some_and(|code| (400..500).contains(&code)) {
            fault.retryable = false;
        }
        if class == TurnError::RateLimit {
            fault.reset = reset_of_wording(detail);
        }
        fault
    }

    pub fn with_reset(mut self, reset: Option<Reset>) -> Self {
        if self.class == TurnError::RateLimit {
            self.reset = self.reset.or(reset);
        }
        self
    }

    /// Marks that the agent itself tries again.
    pub fn retrying(mut self) -> Self {
        self.retryable = true;
        self
    }

    pub fn event(&self) -> AgentEvent {
        AgentEvent::Error {
            class: self.class,
            detail: self.detail.clone(),
            retryable: self.retryable,
            reset: self.reset,
        }
    }

    pub fn end(self) -> TurnEnd {
        TurnEnd::Failed { class: self.class, detail: self.detail, reset: self.reset }
    }
}

fn class_of_status(status: u64) -> Option<TurnError> {
    match status {
        401 | 403 => Some(TurnError::Auth),
        429 => Some(TurnError::RateLimit),
        413 => Some(TurnError::Context),
        _ => None,
    }
}

fn class_of_wording(text: &str) -> Option<TurnError> {
    let text = text.to_lowercase();
    let says = |needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
    let model_missing = text.contains("model")
        && says(&["not found", "not_found", "does not exist", "unknown model", "not supported", "invalid model"]);
    if model_missing || says(&["issue with the selected model"]) {
        Some(TurnError::Model)
    } else if says(&["context length", "context window", "context_length", "prompt is too long", "maximum context"]) {
        Some(TurnError::Context)
    } else if says(&["rate limit", "rate_limit", "usage limit", "too many requests", "quota", "resource_exhausted"])
        || has_number(&text, "429")
    {
        Some(TurnError::RateLimit)
    } else if says(&[
        "unauthorized",
        "authentication",
        "invalid api key",
        "api key",
        "not logged in",
        "please run /login",
    ]) || has_number(&text, "401")
    {
        Some(TurnError::Auth)
    } else if says(&["content filter", "content_filter", "refusal", "usage policy", "safety"]) {
        Some(TurnError::Refused)
    } else {
        None
    }
}

fn has_number(text: &str, number: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == number)
}

/// Returns the reset time in a text. Understands `try again in 2 days 3 hours`, `retry after 20s`, `in 5m 30s` and a Unix time after a bar.
pub(super) fn reset_of_wording(text: &str) -> Option<Reset> {
    let lower = text.to_lowercase();
    if let Some(seconds) =
        lower.rsplit('|').next().filter(|_| lower.contains('|')).and_then(|end| end.trim().parse().ok())
    {
        return unix_seconds(seconds);
    }
    let start = ["try again in ", "retry after ", "retry in ", "resets in ", "retry-after: "]
        .iter()
        .find_map(|lead| lower.find(lead).map(|at| at + lead.len()))?;
    span(lower.get(start..)?).map(Reset::In)
}

/// Converts Unix seconds as agents report them. `None` for a value that cannot be a time of this century.
pub(super) fn unix_seconds(seconds: i64) -> Option<Reset> {
    (1_000_000_000..10_000_000_000).contains(&seconds).then(|| Reset::At(Timestamp(seconds * 1000)))
}

fn span(text: &str) -> Option<Duration> {
    let mut seconds = 0.0_f64;
    let mut rest = text;
    let mut found = false;
    loop {
        rest = rest.trim_start_matches([' ', ',']).trim_start_matches("and ");
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Some(number) = rest.get(..digits).and_then(|number| number.trim_end_matches('.').parse::<f64>().ok())
        else {
            break;
        };
        rest = rest.get(digits..).unwrap_or_default().trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let factor = match rest.get(..letters).unwrap_or_default() {
            "ms" => 0.001,
            "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => break,
        };
        seconds += number * factor;
        found = true;
        rest = rest.get(letters..).unwrap_or_default();
    }
    (found && seconds <= 366.0 * 86_400.0).then(|| Duration::from_secs_f64(seconds))
}

/// Truncates to at most `limit` bytes, never inside a character.
pub(super) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_by_status_and_wording() {
        for (status, text, class) in [
            (Some(401), "unexpected status 401", TurnError::Auth),
            (Some(429), "exceeded retry limit", TurnError::RateLimit),
            (None, "429: {\"type\":\"rate_limit_error\"}", TurnError::RateLimit),
            (None, "Model not found: mock/nope", TurnError::Model),
            (Some(404), "model: x does not exist", TurnError::Model),
            (Some(400), "prompt is too long: 210000 tokens", TurnError::Context),
            (None, "Invalid API key · Please run /login", TurnError::Auth),
            (Some(500), "internal server error", TurnError::Other),
            (None, "port 14291 is busy", TurnError::Other),
        ] {
            assert_eq!(Fault::of(status, text).class, class, "{text}");
        }
        assert!(!Fault::of(Some(400), "bad request").retryable);
        assert!(Fault::of(Some(503), "overloaded").retryable);
    }

    #[test]
    fn resets_in_words() {
        let seconds = |text| match reset_of_wording(text) {
            Some(Reset::In(span)) => Some(span.as_secs()),
            _ => None,
        };
        assert_eq!(seconds("You've hit your usage limit. Try again in 2 days 3 hours 5 minutes."), Some(183_900));
        assert_eq!(seconds("please retry after 20s"), Some(20));
        assert_eq!(seconds("Try again in 1m 30s"), Some(90));
        assert_eq!(seconds("try again later"), None);
        assert_eq!(reset_of_wording("usage limit reached|1794801086"), Some(Reset::At(Timestamp(1_794_801_086_000))));
        assert_eq!(reset_of_wording("usage limit reached|99999999999999999999"), None);
    }

    #[test]
    fn cuts_on_a_character() {
        assert_eq!(cut("äöü", 3), "ä…");
        assert_eq!(cut("abc", 3), "abc");
    }
}
