//! Instructions that a person gives in a comment: `/dirigent approve`, on a line of its own. Lines inside code or quotations are not
//! instructions.

use serde::{Deserialize, Serialize};

/// The shortest accepted beginning of a commit's name.
const SHORTEST_NAME: usize = 7;
/// HTML elements (and comments) whose content is only shown. Instructions in them do not count.
const SHOWN: [Element; 4] = [
    COMMENT,
    Element { begin: "<pre", end: "</pre>", is_quoted: false },
    Element { begin: "<code", end: "</code>", is_quoted: false },
    Element { begin: "<blockquote", end: "</blockquote>", is_quoted: true },
];
/// The only one whose content has no elements.
const COMMENT: Element = Element { begin: "<!--", end: "-->", is_quoted: true };

#[derive(Clone, Copy, PartialEq, Eq)]
struct Element {
    begin: &'static str,
    end: &'static str,
    /// Whether the content is another person's words or hidden from readers, and not just code.
    is_quoted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "instruction")]
pub enum Instruction {
    /// Adds the labels that the workflow requires.
    Run,
    Approve {
        /// The commit to approve: its full name or a beginning of it. `None` means the current head.
        head: Option<String>,
        anyway: bool,
    },
    Reject {
        text: String,
    },
    Retry,
    Stop,
    Pause,
    Resume,
    Explain,
    /// Addressed to the runner, but not understood.
    Unclear {
        verb: String,
        because: String,
    },
}

impl Instruction {
    /// Returns the word that is typed after the runner's name.
    pub fn verb(&self) -> &str {
        match self {
            Self::Run => "run",
            Self::Approve { .. } => "approve",
            Self::Reject { .. } => "reject",
            Self::Retry => "retry",
            Self::Stop => "stop",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Explain => "explain",
            Self::Unclear { verb, .. } => verb,
        }
    }
}

/// The instructions of one comment, each once, and the rest of its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spoken {
    pub instructions: Vec<Instruction>,
    /// The comment without the instruction lines. Empty if only quotations are left.
    pub words: String,
}

/// Parses a comment. Only lines that are addressed to `name` are instructions.
pub fn read(body: &str, name: &str) -> Spoken {
    // Fast path: most comments have no such line at all.
    if !body.lines().any(|line| line.trim_start().starts_with('/')) {
        return Spoken { instructions: Vec::new(), words: body.trim().to_owned() };
    }
    let mut scan = Scan::default();
    let (mut instructions, mut rejected): (Vec<Instruction>, Vec<String>) = (Vec::new(), Vec::new());
    let (mut words, mut says_something): (Vec<&str>, bool) = (Vec::new(), false);
    for line in body.lines() {
        let place = scan.place_of(line);
        let Some((verb, rest)) = (place == Place::Said).then(|| addressed(line, name)).flatten() else {
            words.push(line);
            says_something |= place != Place::Quoted && !line.trim().is_empty();
            continue;
        };
        let instruction = understood(&verb, rest, name);
        if let Instruction::Reject { text } = &instruction {
            rejected.push(text.clone());
        } else if !rest.is_empty() && !matches!(instruction, Instruction::Approve { .. } | Instruction::Unclear { .. })
        {
            words.push(rest);
            says_something = true;
        }
        let is_known = |known: &Instruction| {
            *known == instruction
                || matches!((known, &instruction), (Instruction::Reject { .. }, Instruction::Reject { .. }))
        };
        if !instructions.iter().any(is_known) {
            instructions.push(instruction);
        }
    }
    let words = if says_something { words.join("\n").trim().to_owned() } else { String::new() };
    if let Some(instruction) =
        instructions.iter_mut().find(|instruction| matches!(instruction, Instruction::Reject { .. }))
    {
        // The reason for a rejection may stand on other lines of the same comment.
        rejected.push(words.clone());
        let text =
            rejected.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        *instruction = if text.is_empty() {
            unclear("reject", format!("say what should change: `/{name} reject TEXT`"))
        } else {
            Instruction::Reject { text }
        };
    }
    Spoken { instructions, words }
}

/// Returns the first line of the author's own words: not quoted, not code, not empty.
pub fn first_said(body: &str) -> Option<&str> {
    let mut scan = Scan::default();
    body.lines().find(|line| scan.place_of(line) == Place::Said && !line.trim().is_empty()).map(str::trim)
}

/// Returns the verb and the rest of the line, if the line begins with `/name`.
fn addressed<'a>(line: &'a str, name: &str) -> Option<(String, &'a str)> {
    let line = line.trim();
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if first.strip_prefix('/')?.to_lowercase() != name.to_lowercase() {
        return None;
    }
    let rest = rest.trim();
    let (verb, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some((verb.to_lowercase(), rest.trim()))
}

fn unclear(verb: &str, because: String) -> Instruction {
    Instruction::Unclear { verb: verb.to_owned(), because }
}

fn understood(verb: &str, rest: &str, name: &str) -> Instruction {
    match verb {
        "run" => Instruction::Run,
        "approve" => approval(rest, name),
        "reject" | "rework" => Instruction::Reject { text: rest.to_owned() },
        "retry" => Instruction::Retry,
        "stop" => Instruction::Stop,
        "pause" => Instruction::Pause,
        "resume" => Instruction::Resume,
        "explain" => Instruction::Explain,
        other => {
            let what = if other.is_empty() {
                "nothing was asked for".to_owned()
            } else {
                format!("`{}` is not known", clipped(other))
            };
            unclear(
                &clipped(other),
                format!(
                    "{what}; there is run, approve [COMMIT] [--anyway], reject TEXT, retry, stop, pause, resume, explain"
                ),
            )
        }
    }
}

/// Parses the arguments of `approve`. One word that is not understood makes the whole instruction `Unclear`, so that nothing is approved by
/// accident.
fn approval(rest: &str, name: &str) -> Instruction {
    let (mut head, mut anyway) = (None, false);
    for word in rest.split_whitespace() {
        let word = word.trim_matches('`');
        match word {
            // Phone keyboards turn two dashes into one long dash.
            "--anyway" | "—anyway" | "–anyway" => anyway = true,
            _ if head.is_none() && is_commit_name(word) => head = Some(word.to_lowercase()),
            _ => {
                let word = clipped(word);
                return unclear(
                    "approve",
                    format!(
                        "`{word}` is neither a commit (at least {SHORTEST_NAME} of its characters) nor `--anyway`; say `/{name} approve COMMIT`, and anything else on another line"
                    ),
                );
            }
        }
    }
    Instruction::Approve { head, anyway }
}

/// Whether the word can be the name of a commit or the beginning of one: 7 to 64 hexadecimal digits.
pub fn is_commit_name(word: &str) -> bool {
    (SHORTEST_NAME..=64).contains(&word.len()) && word.chars().all(|c| c.is_ascii_hexdigit())
}

fn clipped(word: &str) -> String {
    const LONGEST: usize = 40;
    let word = word.replace('`', "'");
    if word.chars().count() <= LONGEST { word } else { word.chars().take(LONGEST).chain(['…']).collect() }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Said,
    /// Code: part of what the author says, but not an instruction.
    Shown,
    /// Another person's words, or text that is hidden from readers.
    Quoted,
}

/// The position in a Markdown text while it is scanned line by line.
#[derive(Default)]
struct Scan {
    /// The character and the length of the fence that closes the current code block.
    fence: Option<(char, usize)>,
    /// The shown-only elements that are open, the outermost first.
    open: Vec<Element>,
    /// A paragraph that began in a quotation belongs to it until an empty line.
    in_quote: bool,
}

impl Scan {
    fn place_of(&mut self, line: &str) -> Place {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let text = line.trim();
        if let Some(outermost) = self.open.first().copied() {
            self.follow_tags(&text.to_lowercase());
            return outermost.place();
        }
        if let Some((mark, length)) = self.fence {
            if indent < 4 && text.chars().all(|c| c == mark) && text.len() >= length {
                self.fence = None;
            }
            return Place::Shown;
        }
        if text.is_empty() {
            self.in_quote = false;
            return Place::Said;
        }
        if indent < 4 && text.starts_with('>') {
            self.in_quote = true;
            return Place::Quoted;
        }
        if let Some(fence) = fence(text) {
            self.fence = Some(fence);
            self.in_quote = false;
            return Place::Shown;
        }
        if self.in_quote {
            return Place::Quoted;
        }
        let lower = text.to_lowercase();
        if let Some(first) = self.follow_tags(&lower) {
            return if lower.starts_with(first.begin) { first.place() } else { Place::Shown };
        }
        let tab = line.chars().take_while(|c| c.is_whitespace()).any(|c| c == '\t');
        if indent >= 4 || tab { Place::Shown } else { Place::Said }
    }

    /// Notes which shown-only elements the line opens and closes. Returns the first one that it opens.
    fn follow_tags(&mut self, lower: &str) -> Option<Element> {
        let mut first = None;
        for (at, _) in lower.match_indices(['<', '-']) {
            let rest = &lower[at..];
            if self.open.last() == Some(&COMMENT) {
                self.open.pop_if(|_| rest.starts_with(COMMENT.end));
            } else if let Some(element) = SHOWN.iter().find(|element| rest.starts_with(element.begin)) {
                self.open.push(*element);
                first.get_or_insert(*element);
            } else if let Some(depth) = self.open.iter().rposition(|element| rest.starts_with(element.end)) {
                // What was left open inside ends with it.
                self.open.truncate(depth);
            }
        }
        first
    }
}

impl Element {
    fn place(self) -> Place {
        if self.is_quoted { Place::Quoted } else { Place::Shown }
    }
}

/// Returns the character and the length of a code fence that begins on this line, also inside a list item.
pub fn fence(text: &str) -> Option<(char, usize)> {
    let item = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let item =
        item.strip_prefix(['-', '*', '+', '.', ')']).filter(|rest| rest.starts_with(' ')).unwrap_or(text).trim_start();
    let mark = item.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = item.chars().take_while(|c| *c == mark).count();
    let info = &item[length..];
    (length >= 3 && !(mark == '`' && info.contains('`'))).then_some((mark, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instructions(body: &str) -> Vec<Instruction> {
        read(body, "dirigent").instructions
    }

    fn approve(head: Option<&str>, anyway: bool) -> Vec<Instruction> {
        vec![Instruction::Approve { head: head.map(str::to_owned), anyway }]
    }

    #[test]
    fn every_order_is_read_on_a_line_of_its_own() {
        assert_eq!(instructions("/dirigent run"), vec![Instruction::Run]);
        assert_eq!(instructions("/dirigent approve"), approve(None, false));
        assert_eq!(instructions("/dirigent approve `ABC1234` --anyway"), approve(Some("abc1234"), true));
        assert_eq!(instructions("/Dirigent Approve —anyway"), approve(None, true));
        assert_eq!(instructions("Well.\r\n/dirigent retry\r\n"), vec![Instruction::Retry]);
        assert_eq!(instructions("/dirigent stop\n/dirigent stop"), vec![Instruction::Stop]);
        assert_eq!(instructions("  /dirigent pause\n/dirigent resume"), vec![Instruction::Pause, Instruction::Resume]);
        assert_eq!(instructions("/dirigent explain"), vec![Instruction::Explain]);
        assert_eq!(read("/robot stop", "robot").instructions, vec![Instruction::Stop]);
    }

    #[test]
    fn what_is_shown_or_quoted_is_not_an_order() {
        for body in [
            "> /dirigent approve",
            "> he said\n/dirigent approve",
            "   > /dirigent approve",
            "```\n/dirigent approve\n```",
            "~~~ text\n/dirigent approve\n```\n~~~",
            "````\n```\n/dirigent approve\n````",
            "- ```\n  /dirigent approve\n  ```",
            "1. ~~~\n   /dirigent approve\n   ~~~",
            "```\n/dirigent approve",
            "    /dirigent approve",
            "\t/dirigent approve",
            "  \t/dirigent approve",
            "`/dirigent approve`",
            "please /dirigent approve",
            "- /dirigent approve",
            "<!-- for example\n/dirigent approve\n-->",
            "<pre>\n/dirigent approve\n</pre>",
            "<blockquote>\n/dirigent approve\n</blockquote>",
            "<!-- a --> <pre>\n/dirigent approve\n</pre>",
            "<pre>a</pre> <code>\n/dirigent approve\n</code>",
            "<code>a</code> <blockquote>\n/dirigent approve\n</blockquote>",
            "<code>a</code> <code>\n/dirigent approve\n</code>",
            "<pre>\na</pre> <!--\n/dirigent approve\n-->",
            "<blockquote>\n<blockquote>a</blockquote>\n/dirigent approve\n</blockquote>",
            "<!-- <pre> -->\n```\n/dirigent approve\n```",
            "/dirigent-bot approve",
            "/dirigents approve",
            "dirigent approve",
            "@dirigent approve",
            "\\/dirigent approve",
        ] {
            assert_eq!(instructions(body), Vec::new(), "{body}");
        }
        let after = [
            "> he said\n\n/dirigent approve",
            "```\ncode\n```\n/dirigent approve",
            "<!-- a --> \n/dirigent approve",
            "<!-- a -> b <pre> -->\n/dirigent approve",
            "<pre><code>a</pre>\n/dirigent approve",
            "<code>a</code> and <code>b</code>\n/dirigent approve",
            "some `code`\n/dirigent approve",
            "```inline``` fence\n/dirigent approve",
        ];
        for body in after {
            assert_eq!(instructions(body), approve(None, false), "{body}");
        }
    }

    #[test]
    fn nothing_is_approved_by_half_a_sentence() {
        for body in ["/dirigent approve please", "/dirigent approve abc", "/dirigent approve abc1234 abc1235"] {
            assert!(matches!(instructions(body).as_slice(), [Instruction::Unclear { .. }]), "{body}");
        }
        assert!(matches!(instructions("/dirigent").as_slice(), [Instruction::Unclear { verb, .. }] if verb.is_empty()));
        assert!(
            matches!(instructions("/dirigent merge now").as_slice(), [Instruction::Unclear { verb, .. }] if verb == "merge")
        );
    }

    #[test]
    fn a_rejection_takes_the_words_beside_it_along() {
        let text = |body: &str| match instructions(body).as_slice() {
            [Instruction::Reject { text }] => text.clone(),
            other => panic!("{body}: {other:?}"),
        };
        assert_eq!(text("/dirigent reject use another name"), "use another name");
        assert_eq!(text("/dirigent rework use another name"), "use another name");
        assert_eq!(text("The name is taken.\n\n/dirigent reject"), "The name is taken.");
        assert_eq!(
            text("/dirigent reject\nUse this:\n```\n/dirigent approve\n```"),
            "Use this:\n```\n/dirigent approve\n```"
        );
        assert!(matches!(instructions("/dirigent reject").as_slice(), [Instruction::Unclear { .. }]));
        assert!(matches!(instructions("> old words\n\n/dirigent reject").as_slice(), [Instruction::Unclear { .. }]));
    }

    #[test]
    fn words_beside_an_order_are_kept() {
        assert_eq!(read("Mind the gap.\n/dirigent retry", "dirigent").words, "Mind the gap.");
        assert_eq!(read("/dirigent stop it is wrong", "dirigent").words, "it is wrong");
        assert_eq!(read("> quoted\n\n/dirigent approve", "dirigent").words, "");
        assert_eq!(
            read("no instruction here", "dirigent"),
            Spoken { instructions: Vec::new(), words: "no instruction here".to_owned() }
        );
    }

    #[test]
    fn the_first_words_are_the_authors_own() {
        for (body, first) in [
            ("@dirigent rename it", Some("@dirigent rename it")),
            ("> old\n\n```\ncode\n```\n  @dirigent no \nmore", Some("@dirigent no")),
            ("<!-- a -->\nwords", Some("words")),
            ("> only a quotation", None),
            ("    code", None),
            ("", None),
        ] {
            assert_eq!(first_said(body), first, "{body}");
        }
    }

    #[test]
    fn a_very_long_comment_is_read_to_its_end() {
        let body = format!("{}\n/dirigent stop", "words and more words\n".repeat(3_000));
        assert!(body.len() > 60_000);
        assert_eq!(instructions(&body), vec![Instruction::Stop]);
    }
}
