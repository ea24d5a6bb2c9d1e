//! Reads comma-separated values with quotes, doubled quotes, and line ends inside quotes.

use crate::cli::tk::failure::Failure;

/// Returns all rows that are not empty. A quote that is never closed is an error that says its line.
pub fn rows(text: &str) -> Result<Vec<Vec<String>>, Failure> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted_since, mut line) = (None, 1);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        line += usize::from(c == '\n');
        match (quoted_since.is_some(), c) {
            (true, '"') if chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            (true, '"') => quoted_since = None,
            (true, c) => field.push(c),
            (false, '"') if field.is_empty() => quoted_since = Some(line),
            (false, ',') => row.push(std::mem::take(&mut field)),
            (false, '\r') if chars.peek() == Some(&'\n') => {}
            (false, '\n') => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            (false, c) => field.push(c),
        }
    }
    if let Some(line) = quoted_since {
        return Err(Failure::said(format!("the CSV has a quote in line {line} that is never closed")));
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    rows.retain(|row| row.iter().any(|field| !field.is_empty()));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_commas_quotes_and_line_ends() {
        let parsed = rows("\u{feff}a,\"b, \"\"c\"\"\r\nd\",\r\n\r\ne,f,g").unwrap();
        assert_eq!(parsed, [vec!["a", "b, \"c\"\r\nd", ""], vec!["e", "f", "g"]]);
    }

    #[test]
    fn an_open_quote_names_its_line() {
        assert!(rows("a\n\"b\nc").unwrap_err().to_string().contains("line 2"));
    }
}
