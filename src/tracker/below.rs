//! Keeps the text that people add to the runner's workpad (its one comment on a ticket) when the runner rewrites that comment.

/// The line that ends the runner's part of a comment. Text below it belongs to people.
const END: &str = "<!-- dirigent:end -->";
const MARK: &str = "<!-- dirigent:";
/// The heading above text that can no longer be told apart from the runner's own.
const ARCHIVED: &str = "What stood here before:";

/// Returns the new text of the runner's comment: `new`, followed by the text that people wrote into `known`. If the end line of the
/// runner's part is missing in `known`, all of its text is kept.
pub fn renewed(known: &str, new: &str) -> String {
    if !ends_our_part(new) {
        return new.to_owned();
    }
    let below = match known.lines().position(is_end) {
        Some(end) => words(known.lines().skip(end + 1)),
        None => match words(known.lines()) {
            broken if broken.is_empty() => broken,
            broken => format!("{ARCHIVED}\n\n{broken}"),
        },
    };
    match below.as_str() {
        "" => new.to_owned(),
        below => format!("{}\n\n{below}", new.trim_end()),
    }
}

/// Whether this hidden line is the end of the runner's part. Such a line alone does not make a comment the runner's.
pub fn is_end(line: &str) -> bool {
    line.trim() == END
}

fn ends_our_part(text: &str) -> bool {
    text.lines().any(is_end)
}

/// Joins the lines, without the hidden lines of the runner.
fn words<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let is_mark = |line: &&str| line.trim_start().starts_with(MARK) && line.trim_end().ends_with("-->");
    lines.filter(|line| !is_mark(line)).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "## Pad\n\n**queued**: old\n\n<!-- dirigent:end -->\n";
    const NEW: &str = "## Pad\n\n**done**: new\n\n<!-- dirigent:end -->\n";
    const OURS: &str = "<!-- dirigent:workpad#0011 -->";

    #[test]
    fn what_people_wrote_below_our_part_stays_there() {
        assert_eq!(renewed(&format!("{OLD}\n{OURS}"), NEW), NEW, "nobody wrote anything");
        for known in [
            format!("{OLD}\nKeep an eye on this.\n\n- and that\n{OURS}"),
            format!("{OLD}\n{OURS}\n\nKeep an eye on this.\n\n- and that\n"),
            format!("{OLD}\n{OURS}\n\nKeep an eye on this.\n\n- and that\n").replace('\n', "\r\n"),
            format!("{OLD}\n\nKeep an eye on this.\n\n- and that").replace("<!--", " <!--"),
        ] {
            let once = renewed(&known, NEW);
            assert_eq!(once, format!("{}\n\nKeep an eye on this.\n\n- and that", NEW.trim_end()), "{known:?}");
            assert_eq!(renewed(&format!("{once}\n{OURS}"), NEW), once, "and again");
        }
    }

    #[test]
    fn a_broken_one_is_kept_below_the_new_one() {
        let broken = format!("## Pad\n\nI wrote over it.\n{OURS}");
        let once = renewed(&broken, NEW);
        assert!(
            once.starts_with(NEW.trim_end()) && once.ends_with("What stood here before:\n\n## Pad\n\nI wrote over it.")
        );
        assert_eq!(renewed(&format!("{once}\n{OURS}"), NEW), once, "once");
        assert_eq!(renewed(OURS, NEW), NEW);
    }

    #[test]
    fn a_comment_without_an_end_is_replaced_as_a_whole() {
        assert_eq!(renewed("anything", "Started."), "Started.");
    }
}
