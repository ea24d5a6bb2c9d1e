//! Linear's limits: requests and complexity per hour, as the headers of its last response reported them. None of Linear's numbers
//! is hard-coded here, because they have changed several times.

use std::fmt;
use std::time::Duration;

use reqwest::header::HeaderMap;
use tokio::time::Instant;

use crate::domain::time::Timestamp;

/// A limit is near its end when less than one part in this many is left. The rest is reserved for work that is under way.
const NEAR: u64 = 20;
/// The shortest wait after a refusal.
const SHORTEST: Duration = Duration::from_secs(5);

/// One of the two limits.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    limit: u64,
    remaining: u64,
    /// When the limit is full again, by the local clock. `None` if Linear did not say.
    resets: Option<Instant>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Budget {
    requests: Option<Bucket>,
    complexity: Option<Bucket>,
}

impl Budget {
    /// Takes in the headers of a response. A limit that they do not mention keeps its values.
    pub fn take_in(&mut self, headers: &HeaderMap) {
        for (kind, place) in [("requests", &mut self.requests), ("complexity", &mut self.complexity)] {
            let number = |what: &str| number(headers, &format!("x-ratelimit-{kind}-{what}"));
            if let (Some(limit), Some(remaining)) = (number("limit"), number("remaining")) {
                *place = Some(Bucket {
                    limit,
                    remaining,
                    resets: until_reset(headers, kind).map(|left| Instant::now() + left),
                });
            }
        }
    }

    pub fn is_known(&self) -> bool {
        self.requests.is_some() || self.complexity.is_some()
    }

    /// Returns how long to wait if a limit is near its end. `None` if enough is left.
    pub fn near_its_end(&self) -> Option<Duration> {
        let near = [self.requests, self.complexity].into_iter().flatten();
        let waits = near.filter(|bucket| bucket.remaining < bucket.limit / NEAR).map(|bucket| {
            bucket.resets.map_or(Duration::ZERO, |resets| resets.saturating_duration_since(Instant::now()))
        });
        waits.max().filter(|wait| !wait.is_zero())
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for (bucket, name) in [(self.requests, "requests"), (self.complexity, "complexity")] {
            if let Some(bucket) = bucket {
                parts.push(format!("{} of {} {name}", bucket.remaining, bucket.limit));
            }
        }
        match parts.is_empty() {
            true => out.write_str("not told"),
            false => write!(out, "{} left this hour", parts.join(", ")),
        }
    }
}

/// Returns the time of the response by Linear's clock.
pub fn server_time(headers: &HeaderMap) -> Option<Timestamp> {
    let text = headers.get("date")?.to_str().ok()?;
    let parsed = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(Timestamp(parsed.timestamp().as_millisecond()))
}

/// Returns how long to wait after a rate limit refusal: at least `SHORTEST`, even if the reported end is over. `None` if Linear did
/// not say.
pub fn wait_of(headers: &HeaderMap) -> Option<Duration> {
    named_wait(headers).map(|wait| wait.max(SHORTEST))
}

fn named_wait(headers: &HeaderMap) -> Option<Duration> {
    if let Some(seconds) = number(headers, "retry-after") {
        return Some(Duration::from_secs(seconds));
    }
    let exhausted = |kind: &&&str| number(headers, &format!("x-ratelimit-{kind}-remaining")) == Some(0);
    let kinds = ["requests", "complexity", "endpoint-requests"];
    let of = |kind: &&str| until_reset(headers, kind);
    let waits = kinds.iter().filter(exhausted).filter_map(of).max();
    // Linear does not always say which limit is exhausted. Then the one that ends first allows another attempt.
    waits.or_else(|| kinds.iter().filter_map(of).min())
}

/// Returns the time until a limit is reset. Linear reports it in milliseconds.
fn until_reset(headers: &HeaderMap, kind: &str) -> Option<Duration> {
    let resets = i64::try_from(number(headers, &format!("x-ratelimit-{kind}-reset"))?).ok()?;
    let now = server_time(headers).unwrap_or_else(|| Timestamp(jiff::Timestamp::now().as_millisecond()));
    Some(Timestamp(resets).since(now))
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    text.parse::<u64>().ok().or_else(|| text.parse::<f64>().ok().filter(|n| *n >= 0.0).map(|n| n as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let headers = pairs.iter().map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()));
        headers.collect::<Vec<(reqwest::header::HeaderName, reqwest::header::HeaderValue)>>().into_iter().collect()
    }

    #[test]
    fn a_refusal_ends_when_linear_says_and_never_at_once() {
        let date = ("date", "Wed, 21 Oct 2026 07:28:00 GMT");
        let at = 1_792_567_680_000_i64;
        let reset = |after: i64| (at + after).to_string();
        let wait = |pairs: &[(&'static str, &str)]| wait_of(&said(pairs)).map(|wait| wait.as_secs());
        assert_eq!(wait(&[date]), None, "nothing is said");
        assert_eq!(wait(&[date, ("retry-after", "30")]), Some(30));
        let exhausted = ("x-ratelimit-requests-remaining", "0");
        let (soon, late, over) = (reset(60_000), reset(3_600_000), reset(-1000));
        assert_eq!(wait(&[date, exhausted, ("x-ratelimit-requests-reset", &late)]), Some(3600), "in milliseconds");
        let both = [date, exhausted, ("x-ratelimit-requests-reset", &*late), ("x-ratelimit-complexity-reset", &*soon)];
        assert_eq!(wait(&both), Some(3600), "what is exhausted counts");
        assert_eq!(wait(&[date, exhausted, ("x-ratelimit-requests-reset", &over)]), Some(5), "not at once");
    }
}
