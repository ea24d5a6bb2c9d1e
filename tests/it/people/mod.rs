//! What people type and read at a terminal: several tickets at once, exit codes for scripts, logs, review, the terminal view.

mod completion;
mod drawing;
mod live;
mod logs;
mod many;
mod notify;
mod once;
mod pictures;
mod review;
mod setting_up;
mod small;
mod story;
mod tmux;
mod top;
mod unseen;
mod words;

use super::support::board::text;

/// Commits a file named after the ticket and says done.
const GOOD: &str = "set -eu
echo work > \"$DIRIGENT_TICKET_KEY.txt\"
git add -A
git commit -qm \"Do $DIRIGENT_TICKET_KEY\"
tk done 'it is done'
";

const ASKS: &str = "tk blocked 'which colour?'\n";

/// The front matter under which finished work waits for a person.
const APPROVED: &str = "rollout: {mode: merge}\npr: {forge: local}\nmerge: {mode: auto, no_checks: pass}\n";

/// Times, commits, run ids and ages, which differ every time.
fn settled(shown: &str) -> String {
    let mut out = String::new();
    for line in shown.lines() {
        // What comments of ours are known by holds ids and times.
        if line.starts_with("<!-- dirigent:") {
            out.push_str("<!-- dirigent:MARK -->\n");
            continue;
        }
        let mut words: Vec<String> = line.split(' ').map(settled_word).collect();
        // How long a pause lasts is left to chance.
        for at in 2..words.len() {
            let unit = words[at].trim_end_matches([';', ':', ',', '.']);
            if words[at - 2] == "in" && ["s", "min", "h"].contains(&unit) {
                words[at - 1] = "SOME".into();
            }
        }
        // Columns are as wide as what stands in them.
        let mut line = words.join(" ");
        while line.contains("   ") {
            line = line.replace("   ", "  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn settled_word(word: &str) -> String {
    let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    // `a1b2c3d4e5f6..0a1b2c3d4e5f`, `refs/dirigent/salvage/RUN`
    let parts: Vec<&str> = bare.split(['/', '.', '@']).collect();
    parts.into_iter().fold(word.to_owned(), |word, part| match settled_part(part) {
        Some(settled) => word.replace(part, settled),
        None => word,
    })
}

fn settled_part(part: &str) -> Option<&'static str> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let has_digit = part.bytes().any(|byte| byte.is_ascii_digit());
    let hex = |lengths: &[usize]| {
        lengths.contains(&part.len()) && has_digit && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let numbers: Vec<&str> = part.trim_end_matches('Z').split([':', '-', 'T']).collect();
    let is_run = [6, 26].contains(&part.len())
        && has_digit
        && part.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    let is_age = part.len() > 1 && part.strip_suffix(['s', 'm', 'h']).is_some_and(digits);
    match numbers.len() {
        3 if part.contains(':') && numbers.iter().all(|number| digits(number)) => Some("TIME"),
        3 if part.contains('-') && numbers.iter().all(|number| digits(number)) => Some("DATE"),
        6 if numbers.iter().all(|number| digits(number)) => Some("TIME"),
        _ if hex(&[7, 12, 16, 40, 64]) => Some("COMMIT"),
        _ if is_run => Some("RUN"),
        _ if is_age => Some("AGE"),
        _ => None,
    }
}
