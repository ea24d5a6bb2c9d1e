//! Durations as people write them: `30s`, `5m`, `2h`, `1h30m`, `250ms`, `1d`.

/// Returns the duration in whole milliseconds; a bare number counts as milliseconds. `None` if the text is no duration or the value is too
/// large.
pub fn parse_millis(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(millis) = text.parse::<i64>() {
        return Some(millis);
    }
    let mut total: i64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|at| *at > 0)?;
        let count: i64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        total = total.checked_add(count.checked_mul(unit_millis(&rest[..letters])?)?)?;
        rest = rest[letters..].trim_start();
    }
    (!text.is_empty()).then_some(total)
}

fn unit_millis(unit: &str) -> Option<i64> {
    match unit {
        "ms" => Some(1),
        "s" | "sec" => Some(1000),
        "m" | "min" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::parse_millis;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, millis) in [
            ("30s", Some(30_000)),
            ("5m", Some(300_000)),
            ("2h", Some(7_200_000)),
            ("1h30m", Some(5_400_000)),
            ("1h 30m", Some(5_400_000)),
            ("250ms", Some(250)),
            (" 1d ", Some(86_400_000)),
            ("1500", Some(1500)),
            ("-1", Some(-1)),
            ("0", Some(0)),
            ("", None),
            ("soon", None),
            ("5", Some(5)),
            ("5x", None),
            ("s5", None),
            ("5m3", None),
            ("99999999999999999999s", None),
            ("9999999999999999d", None),
            ("30 s", Some(30_000)),
            ("1.5h", None),
        ] {
            assert_eq!(parse_millis(text), millis, "{text:?}");
        }
    }
}
