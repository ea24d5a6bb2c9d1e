//! Parses the last words of a reviewer (`structured_markdown_v1`, docs/reviewing.md). Nothing is guessed: a text without its head, with
//! another number of findings than it declares, or with an incomplete finding is not a review.

use thiserror::Error;

use crate::domain::finding::{ReviewFinding, Severity};
use crate::domain::ids::CommitId;
use crate::domain::instruction::fence;

/// The most findings that a review may have. Nobody could answer more.
const FINDINGS: usize = 100;
/// How many characters of each part of a finding are kept.
const LONGEST_PART: usize = 4_000;
/// The shortest accepted beginning of a commit's name.
const SHORTEST_NAME: usize = 7;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unreadable {
    #[error("it has no heading `# Review`")]
    NoReview,
    #[error("it does not say `head:`")]
    NoHead,
    #[error("it is about {named}, and the head that it was given is {given}")]
    OtherHead { named: String, given: String },
    #[error("it does not say `findings:` with their number")]
    NoCount,
    #[error("it counts {said} finding(s) and has {found}")]
    OtherCount { said: usize, found: usize },
    #[error("it has more than {FINDINGS} findings")]
    TooMany,
    #[error("the heading `{heading}` names no finding; it should be `## ID: TITLE`")]
    BadHeading { heading: String },
    #[error("two findings are called {id}")]
    SameId { id: String },
    #[error("{id} lacks `{part}:`")]
    Lacks { id: String, part: &'static str },
    #[error("{id} has the severity `{found}`, which is not one of P0 to P4")]
    BadSeverity { id: String, found: String },
}

/// Returns the findings of the last review in `text`, if it is a valid review of `head`.
pub fn read(text: &str, head: &CommitId) -> Result<Vec<ReviewFinding>, Unreadable> {
    let mut sections = sections(text).ok_or(Unreadable::NoReview)?.into_iter();
    let top = sections.next().unwrap_or_default();
    let named = top.part("head").ok_or(Unreadable::NoHead)?;
    if !names(named, head) {
        let named = named.chars().take(60).collect();
        return Err(Unreadable::OtherHead { named, given: head.short().to_owned() });
    }
    let said: usize = top.part("findings").and_then(|count| count.parse().ok()).ok_or(Unreadable::NoCount)?;
    let mut findings: Vec<ReviewFinding> = Vec::new();
    for section in sections {
        if findings.len() == FINDINGS {
            return Err(Unreadable::TooMany);
        }
        let finding = finding(&section)?;
        if findings.iter().any(|other| other.id.eq_ignore_ascii_case(&finding.id)) {
            return Err(Unreadable::SameId { id: finding.id });
        }
        findings.push(finding);
    }
    if said != findings.len() {
        return Err(Unreadable::OtherCount { said, found: findings.len() });
    }
    Ok(findings)
}

/// Whether `word` is the commit's name or a long enough beginning of it.
fn names(word: &str, head: &CommitId) -> bool {
    let word = word.trim_matches('`').to_ascii_lowercase();
    word.len() >= SHORTEST_NAME && head.as_str().to_ascii_lowercase().starts_with(&word)
}

fn finding(section: &Section) -> Result<ReviewFinding, Unreadable> {
    let bad = || Unreadable::BadHeading { heading: section.heading.chars().take(80).collect() };
    let (id, title) = section.heading.split_once(':').ok_or_else(bad)?;
    let (id, title) = (id.trim(), title.trim());
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if id.is_empty() || id.len() > 40 || !id.chars().all(plain) || title.is_empty() {
        return Err(bad());
    }
    let part = |name: &'static str| {
        let found = section.part(name).filter(|text| !text.is_empty());
        found.map(clipped).ok_or_else(|| Unreadable::Lacks { id: id.to_owned(), part: name })
    };
    let severity = part("severity")?;
    Ok(ReviewFinding {
        id: id.to_owned(),
        severity: Severity::from_name(severity.trim_matches('`'))
            .ok_or_else(|| Unreadable::BadSeverity { id: id.to_owned(), found: severity.clone() })?,
        title: clipped(title),
        place: section.part("place").map(|place| clipped(place.trim_matches('`'))).filter(|place| !place.is_empty()),
        summary: part("summary")?,
        why_it_matters: part("why_it_matters")?,
        suggested_fix: part("suggested_fix")?,
    })
}

fn clipped(text: &str) -> String {
    text.chars().take(LONGEST_PART).collect()
}

/// A heading with the parts below it.
#[derive(Debug, Default)]
struct Section {
    heading: String,
    parts: Vec<(String, String)>,
}

impl Section {
    fn part(&self, name: &str) -> Option<&str> {
        self.parts.iter().find(|(known, _)| known == name).map(|(_, text)| text.trim())
    }
}

/// The code block that the lines of a text are in.
#[derive(Default)]
struct Code {
    /// The character and the length of the fence that closes the block.
    fence: Option<(char, usize)>,
}

impl Code {
    /// Takes in the next line. Returns whether it belongs to a code block, as its fences do.
    fn has(&mut self, line: &str) -> bool {
        match self.fence {
            None => {
                self.fence = fence(line.trim());
                self.fence.is_some()
            }
            Some(_) => {
                if self.ends_with(line) {
                    self.fence = None;
                }
                true
            }
        }
    }

    /// Whether the block is open and this line closes it.
    fn ends_with(&self, line: &str) -> bool {
        let text = line.trim();
        self.fence.is_some_and(|(mark, length)| text.len() >= length && text.chars().all(|c| c == mark))
    }
}

/// Returns the number of the line with which the last review begins. A heading in a code block of an earlier review is part of that one.
fn last_review(lines: &[&str]) -> Option<usize> {
    let mut start = None;
    // The block around the review, if it stands in one as a whole, and the one inside it.
    let (mut around, mut inside) = (Code::default(), Code::default());
    for (number, line) in lines.iter().enumerate() {
        if is_review_heading(line) && inside.fence.is_none() {
            start = Some(number);
        } else if start.is_none() || inside.fence.is_none() && around.ends_with(line) {
            around.has(line);
        } else {
            inside.has(line);
        }
    }
    start
}

/// Returns the last document in the text that begins with `# Review`, split by its headings. Code blocks belong to the part that they are
/// in.
fn sections(text: &str) -> Option<Vec<Section>> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let start = last_review(&lines)?;
    let mut sections = vec![Section::default()];
    let mut code = Code::default();
    for line in lines.iter().skip(start + 1) {
        let in_code = code.has(line);
        let heading = line.strip_prefix("##").filter(|_| !in_code).map(|rest| rest.trim_start_matches('#').trim());
        let part = if in_code { None } else { part_of(line) };
        match (heading, part, sections.last_mut()) {
            (Some("Findings"), ..) => {}
            (Some(heading), ..) => sections.push(Section { heading: heading.to_owned(), parts: Vec::new() }),
            (None, Some((name, rest)), Some(section)) => section.parts.push((name, rest.to_owned())),
            (None, None, Some(section)) => {
                if let Some((_, text)) = section.parts.last_mut() {
                    text.push('\n');
                    text.push_str(line);
                }
            }
            (None, _, None) => {}
        }
    }
    Some(sections)
}

fn is_review_heading(line: &str) -> bool {
    line.strip_prefix("# ").is_some_and(|rest| rest.trim().eq_ignore_ascii_case("review"))
}

/// Parses `- name: text`, also with the name in bold. Only the names of the format count; other words with a colon are text.
fn part_of(line: &str) -> Option<(String, &str)> {
    const NAMES: [&str; 7] = ["head", "findings", "severity", "place", "summary", "why_it_matters", "suggested_fix"];
    let (name, rest) = line.trim_start().trim_start_matches(['-', '*', ' ']).split_once(':')?;
    let name = name.trim_matches(['*', '`', ' ']).to_ascii_lowercase().replace(' ', "_");
    NAMES.contains(&name.as_str()).then(|| (name, rest.trim_start_matches(['*', '`']).trim()))
}
