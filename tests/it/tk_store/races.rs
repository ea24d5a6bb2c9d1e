//! Many writers on one store, each with its own handle: nothing is lost.

use std::fs;
use std::sync::Barrier;

use dirigent::tracker::tk::{Draft, Store, timestamp_now};

use super::{put, store_with, ticket_text};

/// In memory where the system offers that: a hundred rounds of synced writes would only measure the disk.
fn quick_directory() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

#[test]
fn forty_notes_against_forty_statuses_lose_nothing_in_a_hundred_rounds() {
    const ROUNDS: usize = 100;
    const WRITERS: usize = 40;
    let temp = quick_directory();
    let dir = temp.path();
    for round in 0..ROUNDS {
        let id = format!("r-{round}");
        put(dir, &id, &ticket_text(&id, "open", ""));
        let start = Barrier::new(2 * WRITERS);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (id, start) = (&id, &start);
                scope.spawn(move || {
                    start.wait();
                    let note = format!("note {writer};");
                    let noted = Store::at(dir).update(id, |doc| {
                        doc.add_note(&timestamp_now(), &note);
                        Ok(())
                    });
                    noted.unwrap();
                });
                scope.spawn(move || {
                    start.wait();
                    let status = if writer % 2 == 0 { "in_progress" } else { "open" };
                    let set = Store::at(dir).update(id, |doc| {
                        doc.set_status(status);
                        Ok(())
                    });
                    set.unwrap();
                });
            }
        });
        Store::at(dir)
            .update(&id, |doc| {
                doc.set_status("closed");
                Ok(())
            })
            .unwrap();
        let doc = Store::at(dir).document(&id).unwrap();
        let text = String::from_utf8(doc.bytes().to_vec()).unwrap();
        for writer in 0..WRITERS {
            assert_eq!(text.matches(&format!("note {writer};")).count(), 1, "round {round}");
        }
        assert_eq!(doc.notes().len(), WRITERS);
        assert_eq!(text.matches("## Notes").count(), 1);
        assert_eq!(text.matches("\nstatus: ").count(), 1);
        assert_eq!(doc.word("status").as_deref(), Some("closed"), "the last status stays");
    }
    let left = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| !name.ends_with(".md") && name != ".lock").count(), 0, "no temp file stays");
}

#[test]
fn parallel_dependencies_all_stay() {
    let (_temp, dir) = store_with(&[("a", &ticket_text("a", "open", "deps: []\n"))]);
    std::thread::scope(|scope| {
        for number in 0..30 {
            let dir = &dir;
            scope.spawn(move || {
                Store::at(dir).update("a", |doc| Ok(doc.list_add("deps", &format!("d-{number}")))).unwrap();
            });
        }
    });
    let deps = Store::at(&dir).record("a").unwrap().deps;
    assert_eq!(deps.len(), 30, "{deps:?}");
}

#[test]
fn creators_that_draw_the_same_id_do_not_overwrite() {
    let (_temp, dir) = store_with(&[]);
    std::thread::scope(|scope| {
        for creator in 0..30 {
            let dir = &dir;
            scope.spawn(move || {
                let draft = Draft::new(format!("ticket {creator}"), timestamp_now());
                Store::at(dir).lock().unwrap().create("x", &draft).unwrap();
            });
        }
    });
    let store = Store::at(&dir);
    assert_eq!(store.list().unwrap().records.len(), 30);
    let locked = store.lock().unwrap();
    assert!(locked.create_as("fixed", b"---\nid: fixed\n---\n").unwrap());
    assert!(!locked.create_as("fixed", b"other").unwrap());
}

#[test]
fn a_save_without_our_lock_in_the_middle_of_an_edit_is_merged() {
    let (_temp, dir) = store_with(&[("a", &ticket_text("a", "open", ""))]);
    let mut calls = 0;
    Store::at(&dir)
        .update("a", |doc| {
            calls += 1;
            if calls == 1 {
                put(&dir, "a", &ticket_text("a", "open", "").replace("Title", "Edited title"));
            }
            doc.set_status("closed");
            Ok(())
        })
        .unwrap();
    assert_eq!(calls, 2);
    let text = fs::read_to_string(dir.join("a.md")).unwrap();
    assert_eq!(text, ticket_text("a", "closed", "").replace("Title", "Edited title"));
}

#[test]
fn a_writer_that_never_stops_is_refused_not_overwritten() {
    let (_temp, dir) = store_with(&[("a", &ticket_text("a", "open", ""))]);
    let mut calls = 0;
    let refused = Store::at(&dir).update("a", |doc| {
        calls += 1;
        put(&dir, "a", &ticket_text("a", "open", &format!("save: {calls}\n")));
        doc.set_status("closed");
        Ok(())
    });
    assert!(refused.unwrap_err().to_string().contains("a.md"));
    let text = fs::read_to_string(dir.join("a.md")).unwrap();
    assert_eq!(text, ticket_text("a", "open", &format!("save: {calls}\n")));
}

#[test]
fn a_reader_never_sees_half_a_file() {
    let filler = "y".repeat(200_000);
    let (_temp, dir) = store_with(&[("a", &format!("{}{filler}\nEND\n", ticket_text("a", "open", "")))]);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..60 {
                let status = if number % 2 == 0 { "closed" } else { "open" };
                Store::at(&dir)
                    .update("a", |doc| {
                        doc.set_status(status);
                        Ok(())
                    })
                    .unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let mut reads = 0;
        while !done.load(std::sync::atomic::Ordering::Relaxed) || reads == 0 {
            let text = fs::read_to_string(dir.join("a.md")).unwrap();
            assert!(text.starts_with("---\nid: a\n") && text.ends_with("END\n"));
            reads += 1;
        }
    });
}
