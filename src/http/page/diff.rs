//! What a head has beyond its base, for people: file by file, with the added and removed lines.

use serde::Serialize;

use super::words::{count, cut};

/// Limit of lines that are shown altogether. The rest has to be read with git.
const LINES: usize = 4_000;
const LONGEST_LINE: usize = 1_000;

/// The diff, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffText {
    /// There is no commit yet.
    Nothing,
    Unknown {
        why: String,
    },
    There {
        base: String,
        head: String,
        text: String,
        cut: bool,
    },
}

#[derive(Debug, Clone, Serialize)]
pub struct DiffView {
    pub there: bool,
    /// Why there is no diff.
    pub why: String,
    pub base: String,
    pub head: String,
    pub files: Vec<FileDiff>,
    pub count: String,
    pub added: usize,
    pub removed: usize,
    pub cut: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct FileDiff {
    pub path: String,
    /// What else happened to the file, such as `new file` or a rename.
    pub how: String,
    pub added: usize,
    pub removed: usize,
    pub parts: Vec<DiffPart>,
}

/// Consecutive lines of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiffPart {
    pub added: bool,
    pub removed: bool,
    pub place: bool,
    pub text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Added,
    Removed,
    Place,
    Same,
}

pub fn diff(source: &DiffText) -> DiffView {
    match source {
        DiffText::Nothing => empty("there is no commit to look at yet"),
        DiffText::Unknown { why } => empty(why),
        DiffText::There { base, head, text, cut } => {
            let (files, shortened) = files(text);
            DiffView {
                there: true,
                why: String::new(),
                base: base.clone(),
                head: head.clone(),
                added: files.iter().map(|file| file.added).sum(),
                removed: files.iter().map(|file| file.removed).sum(),
                count: count(files.len(), "file", "files"),
                files,
                cut: *cut || shortened,
            }
        }
    }
}

fn empty(why: &str) -> DiffView {
    let nothing = String::new;
    DiffView {
        there: false,
        why: why.to_owned(),
        base: nothing(),
        head: nothing(),
        files: Vec::new(),
        count: nothing(),
        added: 0,
        removed: 0,
        cut: false,
    }
}

fn files(text: &str) -> (Vec<FileDiff>, bool) {
    let mut files: Vec<FileDiff> = Vec::new();
    let (mut in_hunk, mut shown, mut shortened) = (false, 0, false);
    for line in text.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            files.push(FileDiff { path: name(names), ..FileDiff::default() });
            in_hunk = false;
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        if line.starts_with("@@ ") {
            in_hunk = true;
        }
        if !in_hunk {
            heading(file, line);
            continue;
        }
        let kind = match line.as_bytes().first() {
            Some(b'+') => Kind::Added,
            Some(b'-') => Kind::Removed,
            Some(b'@') => Kind::Place,
            _ => Kind::Same,
        };
        file.added += usize::from(kind == Kind::Added);
        file.removed += usize::from(kind == Kind::Removed);
        shown += 1;
        if shown > LINES {
            shortened = true;
            continue;
        }
        put(file, kind, &cut(line, LONGEST_LINE));
    }
    (files, shortened)
}

/// Reads one of the lines between the names of a file and its first change.
fn heading(file: &mut FileDiff, line: &str) {
    const TOLD: [&str; 6] = ["new file", "deleted file", "rename from ", "rename to ", "Binary files", "old mode"];
    if let Some(path) = line.strip_prefix("+++ b/") {
        file.path = path.trim_end().to_owned();
    } else if TOLD.iter().any(|told| line.starts_with(told)) {
        let line = line.split(" mode").next().unwrap_or(line);
        file.how = if file.how.is_empty() { line.to_owned() } else { format!("{}, {line}", file.how) };
    }
}

/// Reads the file's path from `a/x b/x`. A name with spaces is corrected later, from the line that begins with `+++`.
fn name(names: &str) -> String {
    let half = names.len() / 2;
    match (names.get(..half), names.get(half + 1..)) {
        (Some(old), Some(new)) if old.strip_prefix("a/").is_some() && old.get(2..) == new.get(2..) => {
            new.get(2..).unwrap_or(new).to_owned()
        }
        _ => names.rsplit(" b/").next().unwrap_or(names).to_owned(),
    }
}

fn put(file: &mut FileDiff, kind: Kind, line: &str) {
    let (added, removed, place) = (kind == Kind::Added, kind == Kind::Removed, kind == Kind::Place);
    match file.parts.last_mut() {
        Some(last) if (last.added, last.removed, last.place) == (added, removed, place) => {
            last.text.push('\n');
            last.text.push_str(line);
        }
        _ => file.parts.push(DiffPart { added, removed, place, text: line.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,4 @@ fn a\n one\n-two\n+2\n+<b>\n three\ndiff --git a/new name.txt b/new name.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new name.txt\n@@ -0,0 +1 @@\n+--- not a heading\ndiff --git a/x.png b/y.png\nrename from x.png\nrename to y.png\n";

    fn of(text: &str) -> DiffView {
        let there =
            |text: &str| DiffText::There { base: "b".into(), head: "h".into(), text: text.to_owned(), cut: false };
        diff(&there(text))
    }

    #[test]
    fn files_and_their_changes_are_told_apart() {
        let diff = of(TEXT);
        let names: Vec<_> = diff.files.iter().map(|file| (file.path.as_str(), file.added, file.removed)).collect();
        assert_eq!(names, [("src/a.rs", 2, 1), ("new name.txt", 1, 0), ("y.png", 0, 0)]);
        assert_eq!((diff.added, diff.removed, diff.cut), (3, 1, false));
        let parts: Vec<_> = diff.files[0].parts.iter().map(|part| part.text.as_str()).collect();
        assert_eq!(parts, ["@@ -1,3 +1,4 @@ fn a", " one", "-two", "+2\n+<b>", " three"]);
        assert_eq!(diff.files[1].how, "new file");
        assert_eq!(diff.files[2].how, "rename from x.png, rename to y.png");
    }

    #[test]
    fn a_long_one_is_cut_and_says_so() {
        let lines = format!("{}{}", "diff --git a/a b/a\n@@ -0,0 +1 @@\n", "+x\n".repeat(LINES + 10));
        let diff = of(&lines);
        assert!(diff.cut);
        assert_eq!(diff.added, LINES + 10, "what is not shown is counted");
        for odd in ["", "no diff at all", "diff --git ", "diff --git é", "@@ -1 +1 @@\n+x"] {
            of(odd);
        }
    }
}
