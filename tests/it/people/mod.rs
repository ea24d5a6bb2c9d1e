//! What people type and read at a terminal: several tickets at once, exit codes for scripts, logs, review, the terminal view.

mod logs;
mod many;
mod notify;
mod once;
mod review;
mod small;
mod top;
mod unseen;

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

/// Times, commits, run ids and places, which differ every time.
fn settled(shown: &str) -> String {
    let mut out = String::new();
    for line in shown.lines() {
        let words: Vec<String> = line.split(' ').map(settled_word).collect();
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
    let hex = |length: usize| bare.len() == length && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_time = bare.len() == 8 && bare.bytes().filter(|byte| *byte == b':').count() == 2;
    let is_run = bare.len() == 6 && bare.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    let is_age =
        bare.len() > 1 && bare.strip_suffix('s').is_some_and(|age| age.bytes().all(|byte| byte.is_ascii_digit()));
    let replaced = if hex(40) || (hex(12) && bare.bytes().any(|byte| byte.is_ascii_digit())) {
        "COMMIT"
    } else if is_time {
        "TIME"
    } else if is_run && bare.bytes().any(|byte| byte.is_ascii_digit()) {
        "RUN"
    } else if is_age {
        "AGE"
    } else {
        return word.to_owned();
    };
    word.replace(bare, replaced)
}
