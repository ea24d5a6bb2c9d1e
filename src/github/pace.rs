//! The pace of all requests to GitHub: GitHub's limits, as far as its responses have reported them, and Dirigent's own.
//!
//! A request waits only briefly here. Instead of a longer wait the caller gets a limit error with its end, so that the lanes (the
//! adapters' queues of calls) can pause and show it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::answer::Exchanged;
use super::error::{GithubError, LimitKind, classify, until_reset};
use super::transport::Ask;

/// What a request is for. The last requests of an hour are reserved for stopping and landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A worker's own request. However many it sends, the runner keeps what it needs.
    Worker,
    /// A reading for more detail, on which nothing urgent depends.
    Look,
    /// A write: a comment, a label or a column.
    Write,
    /// A reading of the board or of the tickets of running work, which may say that work has to stop.
    Watch,
    /// A merge, and the readings right before it.
    Land,
}

impl Purpose {
    /// Returns how many requests of the hour's limit are left to more important purposes.
    fn leaves(self, limit: u64) -> u64 {
        match self {
            Self::Worker => limit / 2,
            Self::Look | Self::Write => limit / 20,
            Self::Watch | Self::Land => 0,
        }
    }
}

/// The number of requests sent, and what is left of the limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    pub requests: u64,
    /// The number of these requests with the response 304, which cost nothing.
    pub unchanged: u64,
    pub writes: u64,
    /// What is left of this hour for REST, and the limit. `None` if GitHub has not reported them yet.
    pub rest_left: Option<(u64, u64)>,
    pub graphql_left: Option<(u64, u64)>,
}

/// Limits on writes. GitHub accepts about 80 writes per minute and 500 per hour.
const WRITES: [Bucket; 2] = [Bucket::new(20.0, 1.0), Bucket::new(80.0, 400.0 / 3600.0)];
/// The longest time that a write waits for its turn. Beyond that it gets a limit error.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The longest pause for a secondary limit that keeps coming back.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

#[derive(Default)]
pub struct Pace {
    known: Mutex<Known>,
    /// Held during a write: GitHub requires writes one after the other.
    writing: tokio::sync::Mutex<()>,
}

struct Known {
    spent: Spent,
    rest: Option<Window>,
    graphql: Option<Window>,
    paused_until: Option<Instant>,
    /// How often in a row GitHub reported a secondary limit.
    strikes: u32,
    writes: [Bucket; 2],
}

/// GitHub's limit for one kind of request, until the hour ends.
#[derive(Clone, Copy)]
struct Window {
    limit: u64,
    left: u64,
    ends: Instant,
}

/// A token bucket: `size` writes at once, refilled at `per_second`.
#[derive(Clone, Copy)]
struct Bucket {
    size: f64,
    per_second: f64,
    left: f64,
    filled: Option<Instant>,
}

/// The permission to send one request. A write holds it until its response has arrived.
pub struct Admission<'a> {
    _writing: Option<tokio::sync::MutexGuard<'a, ()>>,
}

impl Pace {
    /// Waits for the request's turn. An error says which limit stops the request, and for how long.
    pub async fn admit(&self, purpose: Purpose, question: &Ask) -> Result<Admission<'_>, GithubError> {
        if question.is_foreign() {
            return Ok(Admission { _writing: None });
        }
        let writing = match question.writes() && purpose != Purpose::Land {
            true => Some(self.writing.lock().await),
            false => None,
        };
        let wait = self.known().ask(purpose, question, Instant::now())?;
        tokio::time::sleep(wait).await;
        Ok(Admission { _writing: writing })
    }

    /// Takes in what a response says about the limits.
    pub fn note(&self, answer: &Exchanged) {
        self.known().note(answer, Instant::now());
    }

    pub fn spent(&self) -> Spent {
        let known = self.known();
        let left = |window: Option<Window>| window.map(|window| (window.left, window.limit));
        Spent { rest_left: left(known.rest), graphql_left: left(known.graphql), ..known.spent.clone() }
    }

    /// Returns the time until GraphQL's current hour ends. `None` if GitHub has not reported an hour that is not over yet.
    pub fn graphql_wait(&self) -> Option<Duration> {
        let window = self.known().graphql?;
        Some(window.ends.saturating_duration_since(Instant::now())).filter(|wait| !wait.is_zero())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Known {
    fn default() -> Self {
        Self { spent: Spent::default(), rest: None, graphql: None, paused_until: None, strikes: 0, writes: WRITES }
    }
}

impl Known {
    fn ask(&mut self, purpose: Purpose, question: &Ask, now: Instant) -> Result<Duration, GithubError> {
        let limited = |until: Instant, by| GithubError::RateLimited { wait: until - now, by };
        if let Some(until) = self.paused_until.filter(|until| *until > now) {
            return Err(limited(until, LimitKind::Secondary));
        }
        let window = if question.is_graphql() { self.graphql } else { self.rest };
        if let Some(window) = window.filter(|window| window.ends > now) {
            if window.left == 0 {
                return Err(limited(window.ends, LimitKind::Primary));
            }
            if window.left <= purpose.leaves(window.limit) {
                return Err(limited(window.ends, LimitKind::Reserve));
            }
        }
        let mut wait = Duration::ZERO;
        if question.writes() {
            wait = self.writes.iter_mut().map(|bucket| bucket.until_free(now)).max().unwrap_or_default();
            if purpose == Purpose::Land {
                wait = Duration::ZERO;
            }
            if wait > LONGEST_WAIT {
                return Err(limited(now + wait, LimitKind::OwnPace));
            }
            self.writes.iter_mut().for_each(|bucket| bucket.left -= 1.0);
            self.spent.writes += 1;
        }
        self.spent.requests += 1;
        Ok(wait)
    }

    fn note(&mut self, answer: &Exchanged, now: Instant) {
        self.spent.unchanged += u64::from(answer.status == 304);
        let numbers = (answer.number("x-ratelimit-limit"), answer.number("x-ratelimit-remaining"), until_reset(answer));
        if let (Some(limit), Some(left), Some(reset)) = numbers {
            let window = Some(Window { limit, left, ends: now + reset });
            match answer.header("x-ratelimit-resource") {
                Some("graphql") => self.graphql = window,
                Some("core") | None => self.rest = window,
                Some(_) => {}
            }
        }
        match classify_limit(answer) {
            Some((wait, LimitKind::Secondary)) => {
                // After each further secondary limit in a row the pause doubles, as GitHub requires.
                let longer = wait.saturating_mul(1 << self.strikes.min(6)).min(LONGEST_PAUSE.max(wait));
                self.strikes += 1;
                self.paused_until = Some(now + longer);
            }
            Some(_) => {}
            None if answer.status < 300 => self.strikes = 0,
            None => {}
        }
    }
}

fn classify_limit(answer: &Exchanged) -> Option<(Duration, LimitKind)> {
    match (answer.status, classify(answer, false)) {
        (403 | 429, GithubError::RateLimited { wait, by }) => Some((wait, by)),
        _ => None,
    }
}

impl Bucket {
    const fn new(size: f64, per_second: f64) -> Self {
        Self { size, per_second, left: size, filled: None }
    }

    /// Returns the time until one more write fits.
    fn until_free(&mut self, now: Instant) -> Duration {
        let since = self.filled.map_or(0.0, |filled| now.saturating_duration_since(filled).as_secs_f64());
        self.filled = Some(now);
        self.left = (self.left + since * self.per_second).min(self.size);
        if self.left >= 1.0 { Duration::ZERO } else { Duration::from_secs_f64((1.0 - self.left) / self.per_second) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue, Method};

    fn answer(status: u16, headers: &[(&'static str, &'static str)]) -> Exchanged {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_static(value));
        }
        let body = br#"{"message": "You have exceeded a secondary rate limit."}"#;
        Exchanged { status, headers: map, body: if status == 200 { Vec::new() } else { body.to_vec() } }
    }

    fn read() -> Ask {
        Ask::get("/user", None)
    }

    fn write() -> Ask {
        Ask::write(Method::POST, "/x", None::<&()>).unwrap()
    }

    const LOW: [(&str, &str); 4] = [
        ("x-ratelimit-limit", "5000"),
        ("x-ratelimit-remaining", "250"),
        ("x-ratelimit-reset", "1000"),
        ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ];

    #[test]
    fn the_last_requests_are_for_stopping_and_landing() {
        let (mut known, now) = (Known::default(), Instant::now());
        known.note(&answer(200, &LOW), now);
        for purpose in [Purpose::Worker, Purpose::Look, Purpose::Write] {
            let wait = Duration::from_secs(1000);
            let refused = known.ask(purpose, &read(), now).unwrap_err();
            assert_eq!(refused, GithubError::RateLimited { wait, by: LimitKind::Reserve });
        }
        for purpose in [Purpose::Watch, Purpose::Land] {
            assert_eq!(known.ask(purpose, &read(), now), Ok(Duration::ZERO));
        }
        let later = now + Duration::from_secs(1001);
        assert_eq!(known.ask(Purpose::Look, &read(), later), Ok(Duration::ZERO), "the hour is over");
    }

    #[test]
    fn an_hour_that_is_over_says_nothing_about_the_wait() {
        let pace = Pace::default();
        assert_eq!(pace.graphql_wait(), None);
        pace.known().graphql = Some(Window { limit: 5000, left: 0, ends: Instant::now() });
        assert_eq!(pace.graphql_wait(), None);
        pace.known().graphql = Some(Window { limit: 5000, left: 0, ends: Instant::now() + Duration::from_secs(60) });
        assert!(pace.graphql_wait().is_some_and(|wait| wait > Duration::from_secs(1)));
    }

    #[test]
    fn workers_have_half_of_an_hour_and_the_runner_goes_on() {
        let (mut known, now) = (Known::default(), Instant::now());
        let mut half = LOW;
        half[1].1 = "2500";
        known.note(&answer(200, &half), now);
        let refused = known.ask(Purpose::Worker, &read(), now).unwrap_err();
        assert!(matches!(refused, GithubError::RateLimited { by: LimitKind::Reserve, .. }), "{refused:?}");
        assert_eq!(known.ask(Purpose::Look, &read(), now), Ok(Duration::ZERO));
    }

    #[test]
    fn used_up_is_used_up_for_everybody() {
        let (mut known, now) = (Known::default(), Instant::now());
        let mut none = LOW;
        none[1].1 = "0";
        known.note(&answer(200, &none), now);
        let wait = Duration::from_secs(1000);
        let refused = known.ask(Purpose::Land, &read(), now).unwrap_err();
        assert_eq!(refused, GithubError::RateLimited { wait, by: LimitKind::Primary });
    }

    #[test]
    fn a_secondary_limit_that_comes_back_lasts_longer() {
        let (mut known, mut now) = (Known::default(), Instant::now());
        for seconds in [60, 120, 240] {
            known.note(&answer(403, &[]), now);
            let GithubError::RateLimited { wait, .. } = known.ask(Purpose::Watch, &read(), now).unwrap_err() else {
                panic!("not limited")
            };
            assert_eq!(wait, Duration::from_secs(seconds));
            now += wait;
            assert!(known.ask(Purpose::Watch, &read(), now).is_ok());
        }
        known.note(&answer(200, &[]), now);
        known.note(&answer(429, &[("retry-after", "7")]), now);
        let refused = known.ask(Purpose::Watch, &read(), now).unwrap_err();
        assert_eq!(refused, GithubError::RateLimited { wait: Duration::from_secs(7), by: LimitKind::Secondary });
    }

    #[test]
    fn writes_come_in_a_burst_and_then_one_per_second() {
        let (mut known, now) = (Known::default(), Instant::now());
        let waits: Vec<Duration> = (0..25).map(|_| known.ask(Purpose::Write, &write(), now).unwrap()).collect();
        assert!(waits[..20].iter().all(Duration::is_zero), "{waits:?}");
        assert_eq!(waits[24].as_secs(), 5, "{waits:?}");
        assert_eq!(known.ask(Purpose::Land, &write(), now), Ok(Duration::ZERO), "landing does not queue");
        for _ in 0..10 {
            let _ = known.ask(Purpose::Write, &write(), now);
        }
        let refused = known.ask(Purpose::Write, &write(), now).unwrap_err();
        assert!(matches!(refused, GithubError::RateLimited { by: LimitKind::OwnPace, .. }), "{refused:?}");
        assert_eq!(known.ask(Purpose::Look, &read(), now), Ok(Duration::ZERO), "reading goes on");
    }
}
