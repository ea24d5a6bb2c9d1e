//! The ticket files sit the exam. People edit them with an editor or with the `tk` command.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use async_trait::async_trait;
use dirigent::domain::ids::{CommentId, TicketId};
use dirigent::domain::time::Timestamp;
use dirigent::tracker::Tracker;
use dirigent::tracker::tk::{Document, Store, TkTracker};

use super::tracker::{Candidate, Columns, Gaps, Outcome};

struct Tk {
    _temp: tempfile::TempDir,
    dir: PathBuf,
    tracker: Arc<TkTracker>,
    made: AtomicUsize,
}

impl Tk {
    fn edit(&self, id: &TicketId, change: impl Fn(&mut Document)) {
        let edited = Store::at(&self.dir).update(id.as_str(), |doc| {
            change(doc);
            Ok(())
        });
        edited.unwrap();
    }

    /// As with an editor.
    fn replace(&self, id: &TicketId, from: &str, to: &str) {
        let path = self.dir.join(format!("{id}.md"));
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from:?} is not in {text:?}");
        fs::write(path, text.replacen(from, to, 1)).unwrap();
    }

    fn text_of(&self, id: &TicketId, comment: &CommentId) -> String {
        let notes = Store::at(&self.dir).document(id.as_str()).unwrap().notes();
        notes.into_iter().find(|note| note.id == comment.as_str()).expect("the note is there").text
    }
}

#[async_trait]
impl Candidate for Tk {
    const CANNOT: Gaps = &[
        ("a_hidden_ticket_is_not_gone_and_hides_no_other", "a file is there or it is not"),
        ("says_who_we_are_and_what_others_may", "whoever can write the files may do anything"),
        ("an_old_reading_is_followed_by_a_new_one", "a directory has no replicas"),
        ("a_comment_whose_answer_was_lost_is_written_once", "a file's answer is not carried over a network"),
        ("a_move_whose_answer_was_lost_is_found_done", "a file's answer is not carried over a network"),
        ("a_ticket_whose_answer_was_lost_is_created_once", "a file's answer is not carried over a network"),
        ("lost_access_is_told_and_nothing_is_done", "files are written without an account"),
        ("a_limit_is_told_with_its_end", "nobody counts how often files are read"),
    ];

    async fn fresh() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("my-app").join(".tickets");
        fs::create_dir_all(&dir).unwrap();
        let tracker = Arc::new(TkTracker::new(&dir));
        Self { _temp: temp, dir, tracker, made: AtomicUsize::new(0) }
    }

    fn tracker(&self) -> Arc<dyn Tracker> {
        self.tracker.clone()
    }

    fn next_life(&self) -> Arc<dyn Tracker> {
        Arc::new(TkTracker::new(&self.dir))
    }

    fn columns(&self) -> Columns {
        Columns { todo: "open", doing: "in_progress", done: "closed" }
    }

    fn person(&self) -> String {
        "tk".to_owned()
    }

    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Timestamp(i64::try_from(since.as_millis()).unwrap())
    }

    async fn add(&self, title: &str, state: &str, labels: &[&str]) -> TicketId {
        let id = TicketId::new(format!("ma-{:04}", self.made.fetch_add(1, Ordering::SeqCst)));
        let tags = labels.join(", ");
        let text = format!("---\nid: {id}\nstatus: {state}\ndeps: []\ntags: [{tags}]\n---\n# {title}\n\n");
        fs::write(self.dir.join(format!("{id}.md")), text).unwrap();
        id
    }

    async fn retitle(&self, id: &TicketId, title: &str) {
        let old = Store::at(&self.dir).record(id.as_str()).unwrap().title.expect("it has a title");
        self.replace(id, &format!("# {old}"), &format!("# {title}"));
    }

    async fn shift(&self, id: &TicketId, state: &str) {
        self.edit(id, |doc| doc.set_status(state));
    }

    async fn delete(&self, id: &TicketId) {
        fs::remove_file(self.dir.join(format!("{id}.md"))).unwrap();
    }

    async fn say(&self, id: &TicketId, text: &str) -> CommentId {
        // Two notes of one second have no names of their own.
        let second = self.made.fetch_add(1, Ordering::SeqCst);
        let timestamp = format!("2026-01-02T03:{:02}:{:02}Z", second / 60, second % 60);
        self.edit(id, |doc| doc.add_note(&timestamp, text));
        let notes = Store::at(&self.dir).document(id.as_str()).unwrap().notes();
        CommentId::new(notes.last().unwrap().id.as_str())
    }

    async fn reword(&self, id: &TicketId, comment: &CommentId, text: &str) {
        self.replace(id, &self.text_of(id, comment), text);
    }

    async fn unsay(&self, id: &TicketId, comment: &CommentId) {
        let note = Store::at(&self.dir).document(id.as_str()).unwrap().notes().into_iter();
        let note = note.into_iter().find(|note| note.id == comment.as_str()).expect("the note is there");
        let heading = format!("**{}**\n", note.timestamp.unwrap());
        let marker = note.key.map(|key| format!("<!-- dirigent:{key} -->\n")).unwrap_or_default();
        self.replace(id, &format!("{heading}\n{}\n{marker}", note.text), "");
    }

    async fn garble(&self, id: &TicketId) -> Outcome {
        fs::write(self.dir.join(format!("{id}.md")), "---\nid: never ends\n").unwrap();
        Ok(())
    }

    async fn break_listings(&self, broken: bool) -> Outcome {
        let away = self.dir.with_extension("away");
        let (from, to) = if broken { (&self.dir, &away) } else { (&away, &self.dir) };
        fs::rename(from, to).unwrap();
        Ok(())
    }
}

tracker_exam!(Tk);
