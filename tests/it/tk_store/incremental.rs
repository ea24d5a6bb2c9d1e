//! Changes are seen, however they are made; what did not change is not read again.

use std::fs;
use std::time::{Duration, Instant};

use dirigent::domain::hint::Hint;
use dirigent::tracker::tk::TkTracker;
use dirigent::tracker::{BoardAnswer, Mark, Tracker};

use super::{put, store_with, ticket_text};

async fn titles(tracker: &TkTracker) -> Vec<String> {
    let tickets = tracker.fetch_by_states(&["open".to_owned()]).await.unwrap();
    tickets.into_iter().map(|ticket| ticket.title).collect()
}

/// Asks as the runner does: only for what is new since the last answer.
struct Follower {
    tracker: TkTracker,
    mark: Option<Mark>,
    titles: Vec<String>,
    lists: usize,
}

impl Follower {
    fn new(dir: &std::path::Path) -> Self {
        Self { tracker: TkTracker::new(dir), mark: None, titles: Vec::new(), lists: 0 }
    }

    async fn titles(&mut self) -> &[String] {
        let reading = self.tracker.poll(&["open".to_owned()], self.mark.as_ref()).await.unwrap();
        if let BoardAnswer::Listed { tickets, mark } = reading.answer {
            self.titles = tickets.into_iter().map(|ticket| ticket.title).collect();
            self.mark = mark;
            self.lists += 1;
        }
        &self.titles
    }
}

#[tokio::test]
async fn a_board_is_listed_again_only_if_it_changed() {
    let (_temp, dir) = store_with(&[("a", &ticket_text("a", "open", "")), ("b", &ticket_text("b", "closed", ""))]);
    let mut follower = Follower::new(&dir);
    for _ in 0..3 {
        assert_eq!(follower.titles().await, ["Title of a"]);
    }
    assert_eq!(follower.lists, 1);
    // What a list says of a ticket depends on others too: a blocker's state, say.
    put(&dir, "b", &ticket_text("b", "closed", "").replace("Title of b", "Elsewhere"));
    follower.titles().await;
    assert_eq!(follower.lists, 2);
    fs::remove_file(dir.join("b.md")).unwrap();
    follower.titles().await;
    follower.titles().await;
    assert_eq!(follower.lists, 3);
}

#[tokio::test]
async fn a_file_whose_name_is_no_id_is_said_and_costs_nothing() {
    let files = ["a", "a[b]", "a..b"].map(|id| (id, ticket_text(id, "open", "")));
    let (_temp, dir) = store_with(&files.each_ref().map(|(id, text)| (*id, text.as_str())));
    let mut follower = Follower::new(&dir);
    for _ in 0..3 {
        assert_eq!(follower.titles().await, ["Title of a"]);
    }
    assert_eq!(follower.lists, 1, "nothing changed");
    let left_out = follower.tracker.left_out();
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    assert!(left_out.iter().all(|why| why.contains("rename the file")), "{left_out:?}");
}

#[tokio::test]
async fn every_kind_of_change_is_seen_by_the_next_look() {
    let (_temp, dir) = store_with(&[("a", &ticket_text("a", "open", ""))]);
    let mut tracker = Follower::new(&dir);
    assert_eq!(tracker.titles().await, ["Title of a"]);

    put(&dir, "b", &ticket_text("b", "open", ""));
    assert_eq!(tracker.titles().await, ["Title of a", "Title of b"]);

    let text = ticket_text("a", "open", "").replace("Title of a", "Title of A");
    put(&dir, "a", &text);
    assert_eq!(tracker.titles().await, ["Title of A", "Title of b"], "same size, in place");

    fs::write(dir.join("x.tmp"), ticket_text("b", "open", "").replace("Title of b", "Renamed over")).unwrap();
    fs::rename(dir.join("x.tmp"), dir.join("b.md")).unwrap();
    assert_eq!(tracker.titles().await, ["Title of A", "Renamed over"]);

    fs::remove_file(dir.join("a.md")).unwrap();
    assert_eq!(tracker.titles().await, ["Renamed over"]);

    fs::rename(&dir, dir.with_extension("old")).unwrap();
    fs::create_dir(&dir).unwrap();
    put(&dir, "c", &ticket_text("c", "open", ""));
    assert_eq!(tracker.titles().await, ["Title of c"], "another directory under the same name");
}

#[tokio::test]
async fn a_linked_ticket_is_followed() {
    let (temp, dir) = store_with(&[]);
    let real = temp.path().join("real.md");
    fs::write(&real, ticket_text("l", "open", "")).unwrap();
    std::os::unix::fs::symlink(&real, dir.join("l.md")).unwrap();
    let mut tracker = Follower::new(&dir);
    assert_eq!(tracker.titles().await, ["Title of l"]);
    fs::write(&real, ticket_text("l", "open", "").replace("Title of l", "Changed elsewhere")).unwrap();
    assert_eq!(tracker.titles().await, ["Changed elsewhere"]);
}

#[tokio::test]
async fn an_unchanged_file_is_not_opened_again() {
    let (_temp, dir) = store_with(&[("a", &ticket_text("a", "open", "")), ("b", &ticket_text("b", "closed", ""))]);
    let tracker = TkTracker::new(&dir);
    titles(&tracker).await;
    let opened = count_opens(&dir);
    titles(&tracker).await;
    titles(&tracker).await;
    put(&dir, "b", &ticket_text("b", "open", ""));
    assert_eq!(titles(&tracker).await.len(), 2);
    let opened = opened();
    assert!(!opened.contains(&"a.md".to_owned()), "{opened:?}");
    assert!(opened.contains(&"b.md".to_owned()), "{opened:?}");
}

/// Counts by the kernel's own record which files are opened from now on.
fn count_opens(dir: &std::path::Path) -> impl FnOnce() -> Vec<String> + use<> {
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
    let inotify = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
    inotify.add_watch(dir, AddWatchFlags::IN_OPEN).unwrap();
    move || {
        let mut names = Vec::new();
        while let Ok(events) = inotify.read_events() {
            names.extend(events.into_iter().filter_map(|event| event.name?.into_string().ok()));
        }
        names
    }
}

#[tokio::test]
async fn a_watch_tells_of_a_new_ticket_also_in_a_directory_made_later() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join(".tickets");
    let tracker = TkTracker::new(&dir);
    let mut changes = tracker.changes().expect("this system has a file watch");
    fs::create_dir(&dir).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    put(&dir, "a", &ticket_text("a", "open", ""));
    let mut seen = Vec::new();
    while seen.is_empty() && Instant::now() < deadline {
        let _ = tokio::time::timeout(Duration::from_secs(1), changes.recv()).await;
        seen = titles(&tracker).await;
    }
    assert_eq!(seen, ["Title of a"]);

    // Only the watch can tell of this one: nothing is polled between.
    tokio::time::sleep(Duration::from_millis(400)).await;
    while changes.try_recv().is_ok() {}
    put(&dir, "b", &ticket_text("b", "open", ""));
    let told = tokio::time::timeout(Duration::from_secs(30), changes.recv()).await.expect("told within the deadline");
    assert_eq!(told.unwrap(), Hint::ticket("b".into()));
}

#[tokio::test]
async fn reading_does_not_look_like_a_change() {
    let (_temp, dir) = store_with(&[("a", &ticket_text("a", "open", ""))]);
    let tracker = TkTracker::new(&dir);
    let mut changes = tracker.changes().unwrap();
    // It tells of the directory once it watches it.
    let begins = async {
        loop {
            put(&dir, "b", &ticket_text("b", "open", ""));
            if let Ok(Ok(hint)) = tokio::time::timeout(Duration::from_millis(200), changes.recv()).await
                && hint == Hint::ticket("b".into())
            {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), begins).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    while changes.try_recv().is_ok() {}
    for _ in 0..20 {
        fs::read(dir.join("a.md")).unwrap();
    }
    assert_eq!(titles(&tracker).await.len(), 2);
    assert!(tokio::time::timeout(Duration::from_millis(300), changes.recv()).await.is_err());
}
