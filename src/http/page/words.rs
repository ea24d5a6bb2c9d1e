//! How numbers, times and links are written on a page.

use serde::Serialize;

use crate::domain::time::{Timestamp, span};
use crate::domain::words::short_run_ids;

/// How long ago something was, as text, and the time itself. The page's script counts on from that time.
#[derive(Debug, Clone, Serialize)]
pub struct AgeView {
    pub at: String,
    pub words: String,
}

impl AgeView {
    pub fn of(since: Timestamp, now: Timestamp) -> Self {
        Self { at: moment(since), words: span(now.since(since).as_secs()) }
    }

    /// Returns the time until a moment in the future.
    pub fn until(due: Timestamp, now: Timestamp) -> Self {
        Self { at: moment(due), words: span(due.since(now).as_secs()) }
    }
}

/// Formats a time for programs, in UTC without fractions of a second.
pub fn moment(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0 / 1000 * 1000).map(|at| at.to_string()).unwrap_or_default()
}

/// Formats a time as `2026-11-18` and `19:47:29`, in this machine's time zone.
pub fn day_and_time(at: Timestamp) -> (String, String) {
    let Ok(at) = jiff::Timestamp::from_millisecond(at.0) else { return (String::new(), at.0.to_string()) };
    let local = at.to_zoned(jiff::tz::TimeZone::system());
    (local.strftime("%Y-%m-%d").to_string(), local.strftime("%H:%M:%S").to_string())
}

/// Formats a number of tokens: `950`, `12.3k`, `4.5M`.
pub fn tokens(count: u64) -> String {
    match count {
        0..=999 => count.to_string(),
        1_000..=999_949 => format!("{:.1}k", count as f64 / 1e3),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

/// Formats an amount: `$0.0123` below one dollar, else `$12.34`.
pub fn money(microusd: u64) -> String {
    let usd = microusd as f64 / 1e6;
    if microusd == 0 || usd >= 1.0 { format!("${usd:.2}") } else { format!("${usd:.4}") }
}

/// Returns the first line that is not empty, truncated to `longest` characters.
pub fn clip(text: &str, longest: usize) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    cut(line, longest)
}

/// Returns the text with its line breaks, truncated to `longest` characters.
pub fn cut(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest.saturating_sub(1)).chain(['…']).collect()
}

/// Formats a sentence of the engine for people: on one line, truncated to `longest` characters.
pub fn sentence(text: &str, longest: usize) -> String {
    let short = short_run_ids(text);
    let line = short.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" · ");
    let shown = cut(&line, longest);
    let open = shown.matches('`').count() % 2 == 1 && line.matches('`').count() % 2 == 0;
    // Half a command in backticks would be misleading, so it is left out.
    match shown.rfind('`').filter(|_| open && shown != line) {
        Some(at) => format!("{}…", shown[..at].trim_end()),
        None => shown,
    }
}

pub fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// Returns the address if it is one that a browser opens as a page. A ticket's link may contain anything else.
pub fn web_link(url: Option<&str>) -> Option<String> {
    let url = url?.trim();
    let scheme = url.split_once("://")?.0;
    let is_web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    (is_web && !url.contains(|c: char| c.is_control() || c.is_whitespace())).then(|| url.to_owned())
}

/// Encodes a ticket's key as one segment of a path.
pub fn segment(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => out.push(char::from(byte)),
            // A segment of `.` or `..` would change the path.
            b'.' if key.trim_matches('.').len() > 1 => out.push('.'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!([tokens(999), tokens(12_345), tokens(999_960), tokens(4_540_000)], ["999", "12.3k", "1.0M", "4.5M"]);
        assert_eq!([money(0), money(12_345), money(12_345_678)], ["$0.00", "$0.0123", "$12.35"]);
        assert_eq!(clip("\n  one two\nthree", 5), "one …");
    }

    #[test]
    fn what_is_to_be_typed_is_shown_whole_or_not_at_all() {
        let text = "run `dirigent approve t-1` (or comment `/dirigent approve t-1`)";
        assert_eq!(sentence(text, 200), text);
        assert_eq!(sentence(text, 50), "run `dirigent approve t-1` (or comment…");
        assert_eq!(sentence(text, 12), "run…");
        assert_eq!(sentence("one ` and so on and on", 12), "one ` and s…");
    }

    #[test]
    fn only_web_addresses_become_links() {
        assert_eq!(web_link(Some(" https://example.com/1 ")).as_deref(), Some("https://example.com/1"));
        for bad in ["javascript://example.com/%0aalert(1)", "javascript:alert(1)", "data:text/html,x", "http://a b", ""]
        {
            assert_eq!(web_link(Some(bad)), None, "{bad}");
        }
    }

    #[test]
    fn a_key_is_one_segment_whatever_it_holds() {
        assert_eq!(segment("T-1.2"), "T-1.2");
        assert_eq!(segment("owner/name#7"), "owner%2Fname%237");
        assert_eq!(segment(".."), "%2E%2E");
        assert_eq!(segment("a\"><b"), "a%22%3E%3Cb");
    }
}
